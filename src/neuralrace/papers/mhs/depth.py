"""The numbers of MHS Fig. 6 with their bounds: for its agreement and for the ledger of claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from neuralrace.papers.measure import FLOOR, Basis, Measure

if TYPE_CHECKING:
    import xarray

RELNS = {"staged": "pathways opened in stages, as in the paper", "gated": "all open from the start"}
"""The two ReLNs of Fig. 6."""


def stereotypes(table: xarray.Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The losses of the stereotypical ReLU network and of a stereotypical ReLN."""
    first, second = table["typical"].to_numpy()
    if name == "staged":
        second = int(table["staged_typical"])
    return table["relu"].to_numpy()[first], table[name].to_numpy()[second]


def typical_apart(name: str) -> Callable[[xarray.Dataset], float]:
    """Mean |ΔL|/L(0) between the stereotypical ReLU network and a stereotypical ReLN."""

    def of(table: xarray.Dataset) -> float:
        time = table["time"].to_numpy()
        return nr.compare(*(nr.Trajectory(time, run) for run in stereotypes(table, name))).mean

    return of


def runs_apart(table: xarray.Dataset) -> float:
    """Mean |ΔL|/L(0) between the stereotypical ReLU network and the other runs."""
    time, loss = table["time"].to_numpy(), table["relu"].to_numpy()
    first = int(table["typical"][0])
    apart = np.trapezoid(np.abs(loss - loss[first]), time, axis=1)
    return float(apart.sum() / (len(loss) - 1) / (time[-1] - time[0]) / loss[first, 0])


def spread(table: xarray.Dataset, name: str) -> float:
    """Standard deviation of the loss over runs relative to L(0), mean over time."""
    loss = table[name].to_numpy()
    return float(loss.std(axis=0).mean() / loss[:, 0].mean())


def profiles(table: xarray.Dataset, name: str) -> float:
    """The correlation over time of the spread of a ReLN and of the ReLU network."""
    a, b = (table[n].std("seed").to_numpy() for n in ("relu", name))
    return float(np.corrcoef(a, b)[0, 1])


def outputs_apart(table: xarray.Dataset, name: str) -> float:
    """Distance of the stereotypes' outputs at half the initial loss of each, relative to ‖Y‖."""
    outputs = table["outputs"].to_numpy()
    theirs = table["staged_outputs"].to_numpy() if name == "staged" else outputs[1]
    losses = stereotypes(table, name)
    at = [int((loss <= 0.5 * loss[0]).argmax()) for loss in losses]
    size = np.sqrt(2 * losses[0][0] * outputs.shape[2])  # L = ‖Y − O‖² / 2N
    return float(np.linalg.norm(outputs[0, at[0]] - theirs[at[1]]) / size)


def share(layer: int, number: int) -> Callable[[xarray.Dataset], np.ndarray]:
    """The share of a layer's final weight nearest to patterns on in that many contexts, by run."""
    return lambda table: table["share"][:, layer, number - 1].to_numpy()


def _everywhere(table: xarray.Dataset) -> np.ndarray:
    """The share of the first layer's weight nearest to all contexts, by run."""
    return table["share"][:, 0, -1].to_numpy()


def _common(table: xarray.Dataset) -> np.ndarray:
    """The share of the second layer's weight nearest to all contexts, by run."""
    return table["share"][:, 1, -1].to_numpy()


def _two_of_one_or_two(table: xarray.Dataset) -> np.ndarray:
    """The share of two contexts in the second layer's weight nearest to one or two, by run."""
    one, two = (share(1, n)(table) for n in (1, 2))
    return two / (one + two)


def half_epochs(table: xarray.Dataset, name: str) -> np.ndarray:
    """The epoch at which each run falls to half of its initial loss."""
    loss = table[name].to_numpy()
    return nr.trajectory.crossing_time(table["step"].to_numpy(), loss / loss[:, :1], 0.5)


MEASURES = {
    "always": Measure(
        "first layer: final weight in neurons that are on for every sample",
        lambda t: t["always"][:, 0].to_numpy(),
        least=0.95,
        origin=1.0,
    ),
    "everywhere": Measure(
        "first layer: final weight nearest to all contexts", _everywhere, least=0.9, origin=1.0
    ),
    "two": Measure(
        "second layer: two contexts, as a share of one or two",
        _two_of_one_or_two,
        least=0.5,
        rests=Basis.PAPER,
    ),
    "common": Measure(
        "second layer: all contexts, a common pathway",
        _common,
        least=0.05,
    ),
    "one": Measure("second layer: one context", share(1, 1), most=0.1),
    **{
        f"loss, {name}": Measure(
            f"stereotypical ReLN against stereotypical ReLU network, {title}: mean |ΔL| / L(0)",
            typical_apart(name),
            most=0.05,
        )
        for name, title in RELNS.items()
    },
    **{
        f"over runs, {name}": Measure(
            f"the same over other runs of the ReLU network, {title}",
            lambda t, name=name: typical_apart(name)(t) / runs_apart(t),
            most=FLOOR,
            rests=Basis.SEEDS,
        )
        for name, title in RELNS.items()
    },
    **{
        f"outputs, {name}": Measure(
            "outputs of the stereotypes where both have half the initial loss, relative to the "
            f"size of the targets, {title}",
            lambda t, name=name: outputs_apart(t, name),
            most=0.1,
        )
        for name, title in RELNS.items()
    },
    "spread": Measure(
        "ReLU networks: standard deviation of the loss over runs / L(0), mean over time",
        lambda t: spread(t, "relu"),
        least=0.002,
    ),
    **{
        f"spread, {name}": Measure(
            f"spread, ReLN over ReLU network, {title}",
            lambda t, name=name: spread(t, name) / spread(t, "relu"),
            least=0.5,
            most=2.0,
            origin=1.0,
        )
        for name, title in RELNS.items()
    },
    **{
        f"profiles, {name}": Measure(
            f"correlation of the two spreads over time, {title}",
            lambda t, name=name: profiles(t, name),
            least=0.5,
        )
        for name, title in RELNS.items()
    },
}
"""The numbers with their bounds."""

WORDS = {
    "always": "all neurons are active for all datapoints",
    "two": "active in two out of the three contexts",
    "common": "the common pathway remains",
    "loss, staged": "close agreement",
    "outputs, staged": "exact agreement between the outputs",
    "spread, staged": "the same variance profiles",
    "profiles, staged": "the same variance profiles",
}
"""The paper's words for what is measured."""
