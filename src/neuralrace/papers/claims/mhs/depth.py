"""Claims of MHS §6 and App. B: two hidden layers, and Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.claims import Claim, Measure, Read, Tables

if TYPE_CHECKING:
    import xarray

RUNS = {"seeds": 5, "at_once": 5}
"""Fig. 6, with fewer runs if it is not stored at full size."""


def _depth(of: Callable[[xarray.Dataset], Any]) -> Read:
    return lambda tables: float(of(tables.at_hand("mhs/fig6", **RUNS)))


def _typical(table: xarray.Dataset) -> nr.trajectory.Comparison:
    """The stereotypical ReLU network against the stereotypical ReLN."""
    time, (first, second) = table["time"].to_numpy(), table["typical"].to_numpy()
    runs = table["relu"].to_numpy()[first], table["gated"].to_numpy()[second]
    return nr.compare(*(nr.Trajectory(time, run) for run in runs))


def _two_of_one_or_two(table: xarray.Dataset) -> float:
    """The share of two contexts in the second layer's weight nearest to one or two."""
    one, two = (float(table["share"][:, 1, k].mean()) for k in (0, 1))
    return two / (one + two) if one + two else float("nan")


def _floor(table: xarray.Dataset) -> float:
    """Mean |ΔL|/L(0) between the stereotypical ReLU network and the other runs."""
    time, loss = table["time"].to_numpy(), table["relu"].to_numpy()
    first = int(table["typical"][0])
    apart = np.trapezoid(np.abs(loss - loss[first]), time, axis=1)
    return float(apart.sum() / (len(loss) - 1) / (time[-1] - time[0]) / loss[first, 0])


def spreads(table: xarray.Dataset) -> tuple[float, float]:
    """Standard deviation of the loss over runs relative to L(0), mean over time: ReLU, ReLN."""
    a, b = (table[name].to_numpy() for name in ("relu", "gated"))
    return a.std(axis=0).mean() / a[:, 0].mean(), b.std(axis=0).mean() / b[:, 0].mean()


def _profiles(table: xarray.Dataset) -> float:
    a, b = (table[name].std("seed").to_numpy() for name in ("relu", "gated"))
    return float(np.corrcoef(a, b)[0, 1])


def outputs_apart(table: xarray.Dataset) -> float:
    """Distance of the stereotypes' outputs at half the initial loss of each, relative to ‖Y‖."""
    outputs, typical = table["outputs"].to_numpy(), table["typical"].to_numpy()
    losses = [table[name].to_numpy()[k] for name, k in zip(("relu", "gated"), typical, strict=True)]
    at = [int((loss <= 0.5 * loss[0]).argmax()) for loss in losses]
    size = np.sqrt(2 * losses[0][0] * outputs.shape[2])  # L = ‖Y − O‖² / 2N
    return float(np.linalg.norm(outputs[0, at[0]] - outputs[1, at[1]]) / size)


def _many() -> Measure:
    return Measure(
        "runs of each network",
        _depth(lambda t: t.sizes["seed"]),
        least=100,
        form=".0f",
        otherwise="Measured on {:.0f} runs of each network, not on the paper's 100.",
    )


# ---- Algorithm 1 --------------------------------------------------------------------------------


def samples_off(centroid: np.ndarray, context: np.ndarray) -> int:
    """On how many samples the worst rounded centroid differs from its pattern in the gating.

    The gating of §4 has patterns on in all contexts, and in all but one; centroids are paired with
    these patterns as well as possible.
    """
    contexts = np.unique(context)
    wanted = np.stack([np.ones(len(context), bool), *(context != c for c in contexts)])
    if len(centroid) != len(wanted):
        return len(context)
    apart = ((centroid > 0.5)[:, None] != wanted).sum(axis=-1)
    pairs = permutations(range(len(wanted)))
    return int(min(max(apart[k, p] for k, p in enumerate(order)) for order in pairs))


def _four(tables: Tables) -> float:
    table = tables("mhs/fig8")
    centroid = table["centroid"].sel(clusters=4).dropna("cluster").to_numpy()
    return samples_off(centroid, table["context"].to_numpy())


def _common_found(tables: Tables) -> float:
    """The share of values of K for which some centroid rounds to all-on."""
    centroids = tables("mhs/fig8")["centroid"].to_numpy()
    return float(np.mean([(c > 0.5).all(axis=1).any() for c in centroids]))


def _errors(tables: Tables) -> np.ndarray:
    return tables("mhs/fig9")["discrepancy"].mean("seed").to_numpy()


CLAIMS = (
    Claim(
        "mhs/depth-first-layer",
        "§6, Fig. 6",
        "With two hidden layers the first does not gate: its neurons are on for all samples.",
        "Final weight ‖w_in‖‖w_out‖ of the first layer: in neurons that are on for every sample, "
        "and in those whose nearest context pattern is all-on.",
        (
            Measure("on for every sample", _depth(lambda t: t["always"][:, 0].mean()), least=0.95),
            Measure(
                "nearest to all contexts", _depth(lambda t: t["share"][:, 0, -1].mean()), least=0.9
            ),
            _many(),
        ),
    ),
    Claim(
        "mhs/depth-second-layer",
        "§6, Fig. 6",
        "The second layer keeps a common pathway and pathways on in two of three contexts.",
        "Final weight of the second layer by nearest context pattern.",
        (
            Measure(
                "two or all contexts",
                _depth(lambda t: t["share"][:, 1, 1:].sum("number").mean()),
                least=0.9,
            ),
            Measure(
                "two contexts, as a share of one or two",
                _depth(_two_of_one_or_two),
                least=0.5,
            ),
            _many(),
        ),
    ),
    Claim(
        "mhs/depth-follows",
        "§6, Fig. 6b",
        "The stereotypical ReLN follows the stereotypical ReLU network.",
        "The runs nearest to the mean of each; all pathways on from the start, without switching "
        "times set by hand. Mean |ΔL| / L(0); distance of outputs where both have half the "
        "initial loss, relative to the size of the targets.",
        (
            Measure("loss", _depth(lambda t: _typical(t).mean), most=0.1),
            Measure(
                "loss, as in “close agreement”",
                _depth(lambda t: _typical(t).mean),
                most=0.02,
                otherwise="Without switching times set by hand it follows to {:.1%}.",
            ),
            Measure(
                "loss, relative to other runs of the ReLU network",
                _depth(lambda t: _typical(t).mean / _floor(t)),
                most=2.0,
                otherwise="That is {:.1f} times as far as another run of the ReLU network.",
            ),
            Measure(
                "outputs at half the initial loss, “exact agreement”",
                _depth(outputs_apart),
                most=0.05,
                otherwise=(
                    "At half the initial loss, outputs differ by {:.0%} of the size of the targets."
                ),
            ),
            _many(),
        ),
    ),
    Claim(
        "mhs/depth-variance",
        "§6, Fig. 6b",
        "Runs now differ, and ReLN and ReLU network have the same variance profiles.",
        "Standard deviation of the loss over runs relative to L(0), mean over time; correlation "
        "of the two profiles over time.",
        (
            Measure("spread of the ReLU networks", _depth(lambda t: spreads(t)[0]), least=0.002),
            Measure(
                "spread, ReLN over ReLU network",
                _depth(lambda t: spreads(t)[1] / spreads(t)[0]),
                least=0.5,
                most=2.0,
            ),
            Measure("correlation of the profiles", _depth(_profiles), least=0.5),
            _many(),
        ),
    ),
    Claim(
        "mhs/algorithm-1",
        "App. B, Fig. 8",
        "K-means with K = 4 on the activity of ReLU networks finds the gating of §4; with 2 and 3 "
        "it finds the common pathway.",
        "Activity every 100 epochs, three trainings, all neurons weighted equally; rounded "
        "centroids.",
        (
            Measure(
                "share of K = 2, 3, 4 with a centroid that is on for all samples",
                _common_found,
                least=1,
            ),
            Measure(
                "K = 4: samples of 24 on which the worst centroid is wrong",
                _four,
                most=2,
                form=".0f",
            ),
            Measure(
                "K = 4: the exact gating",
                _four,
                most=0,
                form=".0f",
                otherwise="With these trainings, one centroid rounds to a pattern that is wrong "
                "on {:.0f} of 24 samples.",
            ),
        ),
    ),
    Claim(
        "mhs/elbow",
        "App. B, Fig. 9",
        "The error of the GDLN that is built from K clusters has its elbow at K = 4.",
        "Mean |ΔL| / L(0) of the GDLN from each run's own initial weights, K = 1 … 8; the elbow "
        "by `nr.reln.elbow`, and by ratios: the gain of the fourth cluster against that of a "
        "fifth.",
        (
            Measure(
                "error with 4 over error with 3",
                lambda t: _errors(t)[3] / _errors(t)[2],
                most=0.75,
            ),
            Measure(
                "error with 5 over error with 4",
                lambda t: _errors(t)[4] / _errors(t)[3],
                least=0.75,
            ),
            Measure(
                "elbow",
                lambda t: nr.reln.elbow(_errors(t).tolist()),
                least=4,
                most=4,
                form=".0f",
                otherwise="By the library's rule for the elbow, gain against number of clusters, "
                "it is at {:.0f}: there is no sharp bend.",
            ),
        ),
    ),
)
