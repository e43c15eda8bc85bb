"""Claims of MHS on what depth does to reuse, and why runs differ (abstract, §6, §7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure, Read, Remark
from papers.figure import Table
from papers.mhs.claims.depth import FIRST, RUNS, SECOND
from papers.mhs.contextual import contexts_on

CONTEXTS = 3
"""The number of contexts of MHS §6, and of the first column of Fig. 5."""


def _single(tables: Any) -> np.ndarray:
    """The same for networks with one hidden layer on the task of §6, by seed."""
    share = tables("mhs/fig5")["share"].sel(contexts=CONTEXTS).to_numpy()[:, :CONTEXTS]
    return contexts_on(share)


def _deep(tables: Any, layer: int) -> np.ndarray:
    return contexts_on(tables.at_hand("mhs/fig6", **RUNS)["share"].to_numpy()[:, layer])


def more_than_one(deep: np.ndarray, single: np.ndarray) -> np.ndarray:
    """By how many contexts more neurons are on with two hidden layers, as many numbers as `single`.

    The runs of the deep network are divided into as many groups as there are runs with one hidden
    layer, and each group is compared with one of these: the interval has the spread of both.
    """
    groups = np.array_split(deep, len(single))
    return np.array([group.mean() for group in groups]) - single


def _more(*layers: int) -> Read:
    """By how many contexts more a neuron is on than with one hidden layer, mean over layers."""

    def read(tables: Any) -> np.ndarray:
        deep = np.mean([_deep(tables, layer) for layer in layers], axis=0)
        return more_than_one(deep, _single(tables))

    return read


def _runs(of: Callable[[Table], Any]) -> Read:
    return lambda tables: of(tables.at_hand("mhs/fig6", **RUNS))


def crossings(table: Table, level: float, name: str = "relu") -> np.ndarray:
    """The epoch at which each run falls to a share of its initial loss; NaN if it does not."""
    loss = table[name].to_numpy()
    return nr.trajectory.crossing_time(table["step"].to_numpy(), loss / loss[:, :1], level)


LEVELS = (0.9, 0.6, 0.4, 0.2, 0.08)
"""Shares of the initial loss, one inside each drop of the stereotypical run of Fig. 6."""

CONTEXTUAL = (0.4, 0.2, 0.08)
"""Those that the staged ReLN passes only after its contextual pathways open, at epoch 12000."""

GROUPS = 5
"""The number of groups of runs that numbers over many runs are taken from."""


def by_group(of: Callable[[Table], float], table: Table) -> float | list[float]:
    """A number over runs, for each of `GROUPS` groups; of all runs if groups would be too small."""
    runs = table.sizes["seed"]
    if runs < 4 * GROUPS:
        return of(table)
    return [of(table.isel(seed=part)) for part in np.array_split(np.arange(runs), GROUPS)]


def spread_at_equal_drops(table: Table, name: str = "relu") -> float:
    """The spread of the loss over runs whose drops are moved to the same epochs, over that before.

    The time of each run is stretched piece by piece, so that it falls to each of `LEVELS` where
    the runs do on average. Runs that do not reach the last level are left out. The spread is the
    standard deviation over runs, mean over epochs.
    """
    step, loss = table["step"].to_numpy().astype(float), table[name].to_numpy()
    drops = np.stack([crossings(table, level, name) for level in LEVELS], axis=1)
    whole = np.isfinite(drops).all(axis=1)
    loss, drops = loss[whole], drops[whole]
    if len(loss) < 2:
        return float("nan")
    common = [0.0, *drops.mean(axis=0), step[-1]]
    moved = np.stack(
        [
            np.interp(np.interp(step, common, [0.0, *own, step[-1]]), step, run)
            for own, run in zip(drops, loss, strict=True)
        ]
    )
    return float(moved.std(axis=0).mean() / loss.std(axis=0).mean())


def later_drops(table: Table, name: str = "relu") -> float:
    """The spread of the time of the contextual drop that varies least, over that of the first."""
    first = np.nanstd(crossings(table, LEVELS[0], name))
    return float(min(np.nanstd(crossings(table, level, name)) for level in CONTEXTUAL) / first)


CLAIMS = (
    Claim(
        "mhs/depth-reuse",
        "abstract; §1; §6; §7",
        "Another hidden layer makes neurons active in more contexts.",
        "In how many of three contexts a neuron is on, by its nearest context pattern, mean over "
        "the final weight: the networks of Fig. 6, mean over both layers, minus networks with one "
        "hidden layer on the same task (Fig. 5, C = 3). §6 has the first layer shared by all "
        "contexts, and the second much as with one layer. The runs of Fig. 6 are divided into as "
        "many groups as there are networks with one layer, so that the interval has the spread of "
        "both.",
        (
            Measure(
                "both-layers",
                "both layers, contexts more than with one hidden layer",
                _more(0, 1),
                least=0.0,
                rests=Basis.PAPER,
                form=".2f",
            ),
            Measure(
                "second-layer",
                "second layer alone, contexts more than with one hidden layer",
                _more(1),
                least=0.0,
                rests=Basis.PAPER,
                form=".2f",
                otherwise="It is the first layer that is shared more. In the second, the number of "
                "contexts differs by {:+.2f} from that with one hidden layer.",
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
        "mhs/variance-timing",
        "§6",
        "Runs of deep networks differ in when their loss drops, and the later drops, those of the "
        "contextual pathways, come at less consistent times than the first.",
        "ReLU networks of Fig. 6, in five groups of runs. Time is stretched so that all runs fall "
        "to .9, .6, .4, .2 and .08 of the initial loss, once inside each drop, at the same epochs: "
        "the spread of the loss over runs, relative to that before. And the standard deviation "
        "over runs of the epoch of each drop to .4 and below, relative to that of the first: the "
        "smallest. The paper's ReLN passes .4 only after its contextual pathways open; a linear "
        "network could reach .18. The singular vectors were not recorded: this tests when the loss "
        "drops, and not that alignment is why. That ReLN and ReLU network drop alike is measured "
        "in `depth-follows`. Levels and the bound of the first number were set with the stored "
        "losses in view: that number decides nothing.",
        (
            Measure(
                "equal-drops",
                "spread of the loss with drops at the same epochs, over that before",
                _runs(lambda t: by_group(spread_at_equal_drops, t)),
                most=0.5,
                seen=True,
            ),
            Measure(
                "later-drops",
                "spread of the epoch of contextual drops over that of the first drop, least",
                _runs(lambda t: by_group(later_drops, t)),
                least=1.0,
                rests=Basis.PAPER,
            ),
        ),
        quote="This is due to an inconsistency in the timing at which the network singular vectors "
        "align with the singular vectors of the dataset correlation matrices. As a consequence "
        "there is variance in the loss trajectories as the contextual pathways do not align "
        "perfectly to a consistent set of singular vectors from early in training.",
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
