"""Claims of MHS on what depth does to reuse, and why runs differ (abstract, §6, §7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.claims import Basis, Claim, Measure, Read, Remark
from neuralrace.papers.claims.mhs.depth import FIRST, RUNS, SECOND

if TYPE_CHECKING:
    import xarray

CONTEXTS = 3
"""The number of contexts of MHS §6, and of the first column of Fig. 5."""


def contexts_on(share: np.ndarray) -> np.ndarray:
    """In how many contexts a neuron is on, mean over the weight, from shares (…, number)."""
    numbers = np.arange(1, share.shape[-1] + 1)
    return (share * numbers).sum(axis=-1) / share.sum(axis=-1)


def _single(tables: Any) -> np.ndarray:
    """The same for networks with one hidden layer on the task of §6, by seed."""
    share = tables("mhs/fig5")["share"].sel(contexts=CONTEXTS).to_numpy()[:, :CONTEXTS]
    return contexts_on(share)


def _deep(tables: Any, layer: int) -> np.ndarray:
    return contexts_on(tables.at_hand("mhs/fig6", **RUNS)["share"].to_numpy()[:, layer])


def _more(layer: int) -> Read:
    """By how many contexts more a neuron of a layer is on than with one hidden layer, by run."""
    return lambda tables: _deep(tables, layer) - _single(tables).mean()


def _runs(of: Callable[[xarray.Dataset], Any]) -> Read:
    return lambda tables: of(tables.at_hand("mhs/fig6", **RUNS))


def crossings(table: xarray.Dataset, level: float, name: str = "relu") -> np.ndarray:
    """The epoch at which each run falls to a share of its initial loss; NaN if it does not."""
    loss = table[name].to_numpy()
    return nr.trajectory.crossing_time(table["step"].to_numpy(), loss / loss[:, :1], level)


def shifted_spread(table: xarray.Dataset, name: str = "relu", level: float = 0.9) -> float:
    """The spread of the loss over runs shifted to a common first drop, over that before.

    The first drop is where a run falls to `level` of its initial loss. The spread is the standard
    deviation over runs, mean over the epochs that all shifted runs have.
    """
    step, loss = table["step"].to_numpy().astype(float), table[name].to_numpy()
    drop = crossings(table, level, name)
    late = drop - np.nanmin(drop)
    inside = step[step <= step[-1] - np.nanmax(late)]
    moved = np.stack(
        [np.interp(inside + by, step, run) for by, run in zip(late, loss, strict=True)]
    )
    before = loss[:, : len(inside)].std(axis=0).mean()
    return float(moved.std(axis=0).mean() / before)


def later_drops(table: xarray.Dataset, name: str = "relu") -> float:
    """The spread of the time from the first drop to half the loss, over that of the first drop."""
    first, half = crossings(table, 0.9, name), crossings(table, 0.5, name)
    return float(np.nanstd(half - first) / np.nanstd(first))


CLAIMS = (
    Claim(
        "mhs/depth-reuse",
        "abstract; §1; §6; §7",
        "Another hidden layer makes neurons active in more contexts.",
        "In how many of three contexts a neuron is on, by its nearest context pattern, mean over "
        "the final weight: each layer of the networks of Fig. 6 minus the mean of networks with "
        "one hidden layer on the same task (Fig. 5, C = 3).",
        (
            Measure(
                "second layer, contexts more than with one hidden layer",
                _more(1),
                least=0.0,
                rests=Basis.PAPER,
                form=".2f",
            ),
            Measure(
                "first layer, contexts more than with one hidden layer",
                _more(0),
                least=0.0,
                rests=Basis.PAPER,
                form=".2f",
            ),
        ),
        quote="This effect is amplified with the addition of more contexts and hidden layers. […] "
        "we find that the bias towards node reuse increases with the addition of more contexts "
        "and greater depth.",
        instead=(
            Remark(
                "With one hidden layer, a neuron is on in {:.2f} of 3 contexts on average; with "
                "two, in {:.2f} in the first layer and {:.2f} in the second.",
                (_single, lambda t: _deep(t, 0), lambda t: _deep(t, 1)),
            ),
            FIRST,
            SECOND,
        ),
    ),
    Claim(
        "mhs/variance-cause",
        "§6",
        "Runs of deep networks differ because they align with the data at different times; from "
        "there on, drops and plateaus follow each other alike.",
        "ReLU networks of Fig. 6. Each run is shifted so that all fall to 90 % of the initial loss "
        "at the same epoch: the spread of the loss over runs, relative to that without the shift. "
        "And the spread of the time from there to half the loss, relative to the spread of the "
        "first drop.",
        (
            Measure("spread after the shift over that before", _runs(shifted_spread), most=0.5),
            Measure(
                "spread of the time to the next drop, over that of the first drop",
                _runs(later_drops),
                most=1.0,
                rests=Basis.PAPER,
            ),
        ),
        quote="This is due to an inconsistency in the timing at which the network singular vectors "
        "align with the singular vectors of the dataset correlation matrices. […] The relative "
        "timing of the drops in loss and positions of the plateaus in loss are all consistent "
        "following the alignment.",
        instead=(
            Remark(
                "The first drop comes at epoch {:.0f} ± {:.0f} (standard deviation over runs), and "
                "half the loss is reached {:.0f} ± {:.0f} epochs later.",
                (
                    _runs(lambda t: float(np.nanmean(crossings(t, 0.9)))),
                    _runs(lambda t: float(np.nanstd(crossings(t, 0.9)))),
                    _runs(lambda t: float(np.nanmean(crossings(t, 0.5) - crossings(t, 0.9)))),
                    _runs(lambda t: float(np.nanstd(crossings(t, 0.5) - crossings(t, 0.9)))),
                ),
            ),
        ),
    ),
)
