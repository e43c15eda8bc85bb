"""The numbers of MHS Fig. 4 with their bounds: for its agreement and for the ledger of claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence import FLOOR, Basis, Measure
from papers.figure import Table, noted, settings_of, stated
from papers.mhs.contextual import STRUCTURES, apart, floor, mean_and_max, seed_floor

if TYPE_CHECKING:
    import xarray

SCRIPT_LOSS = {0: 105.6, 250: 105.4, 500: 70.7, 1000: 46.9, 2000: 22.9, 4000: 4.3, 8000: 0.016}
"""The ReLU network's loss by epoch, summed over samples, in the authors' script."""


def losses_apart(reference: str, other: str) -> Callable[[Table], np.ndarray]:
    """Mean |ΔL|/L(0) between two losses of the figure, seed by seed."""
    return lambda t: apart(*(t[name].to_numpy() for name in ("time", reference, other)))


def over_floor(kind: str, name: str = "gated") -> Callable[[Table], np.ndarray]:
    """A distance from the ReLU network relative to that of another seed, seed by seed.

    `kind` is `loss`, `outputs`, `shown` (outputs at the epochs shown), `similarity` or `shape`.
    """

    def read(table: Table) -> np.ndarray:
        if kind == "loss":
            return losses_apart("relu", name)(table) / seed_floor(table, "relu")
        return _by_seed(table[f"{name}_{kind}"]) / float(table[f"floor_{kind}"].mean())

    return read


def _by_seed(values: xarray.DataArray) -> np.ndarray:
    """The mean over everything but seeds."""
    return values.mean([d for d in values.dims if d != "seed"]).to_numpy()


def _strengths_apart(table: Table) -> np.ndarray:
    """Mean difference of the pathways' singular values, relative to the largest, by seed."""
    a, b = (table[f"{n}_strength"].to_numpy() for n in ("simulated", "predicted"))
    apart = np.abs(a - b).reshape(len(a), -1).mean(axis=1)
    return apart / a.reshape(len(a), -1).max(axis=1)


MEASURES = {
    "follows": Measure(
        "follows",
        "(a) ReLU networks against the trained ReLN, mean |ΔL| / L(0)",
        losses_apart("relu", "gated"),
        most=0.02,
        words="excellent agreement",
    ),
    "predicted": Measure(
        "predicted",
        "(a) ReLU networks against the race of the ReLN, nothing fitted, mean |ΔL| / L(0)",
        losses_apart("relu", "predicted"),
        most=0.02,
        words="excellent agreement",
    ),
    "nearer": Measure(
        "nearer",
        "(a) distance of the ReLN's loss over that of common + single contexts (“GDLN Single”)",
        lambda t: losses_apart("relu", "gated")(t) / losses_apart("relu", "single")(t),
        most=1.0,
        rests=Basis.PAPER,
        words="unable to imitate",
    ),
    "race": Measure(
        "race",
        "(a) trained ReLN against its race from the actual weights, mean |ΔL| / L(0)",
        losses_apart("gated", "predicted"),
        most=1e-3,
    ),
    "outputs": Measure(
        "outputs",
        "(a) outputs at the epochs shown, distance relative to the initial error √(2 L(0))",
        lambda t: _by_seed(t["gated_shown"]),
        most=0.1,
        words="exact agreement between these output samples",
    ),
    "strengths": Measure(
        "strengths",
        "(b) singular values of the pathways, race against the trained ReLN, relative to the "
        "largest",
        _strengths_apart,
        most=0.01,
    ),
    "shape": Measure(
        "shape",
        "(c) relative positions in all dimensions, ReLN against ReLU network: share of the shape "
        "that differs, mean over time",
        lambda t: _by_seed(t["gated_shape"]) if "gated_shape" in t else np.nan,
        most=0.1,
        words="near exact correspondence between the relative positions",
    ),
    "places": Measure(
        "places",
        "(c) the same in the first two dimensions, as in the figure",
        lambda t: _by_seed(t["gated_places"]),
        most=0.1,
    ),
    "loss over floor": Measure(
        "loss-over-floor",
        "(a) distance of the ReLN's loss over that of another seed of the ReLU network",
        over_floor("loss"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "outputs over floor": Measure(
        "outputs-over-floor",
        "(a) distance of the outputs over that of another seed, mean over time",
        over_floor("outputs"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "shown over floor": Measure(
        "shown-over-floor",
        "(a) distance of the outputs at the epochs shown over that of another seed",
        over_floor("shown"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "similarity over floor": Measure(
        "similarity-over-floor",
        "(c) distance of all hidden similarities over that of another seed",
        over_floor("similarity"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "shape over floor": Measure(
        "shape-over-floor",
        "(c) difference of the relative positions in all dimensions over that of another seed",
        lambda t: over_floor("shape")(t) if "gated_shape" in t else np.nan,
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
}
"""The numbers of this figure with their bounds: for its agreement and for the ledger of claims."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Losses, outputs, positions and singular values, each with another seed's distance."""
    share = table["share"].to_numpy().mean(axis=0)
    fastest = float((table["gated"] < table["single"]).mean())
    beside = {
        "follows": f"another seed of the ReLU network: {mean_and_max(floor(table, 'relu'))}",
        "outputs": f"another seed: {float(table['floor_shown'].mean()):.3g}",
        "places": f"another seed: {float(table['floor_places'].mean()):.3g}",
    }
    return (
        *noted(MEASURES, beside),
        stated(
            "below-single",
            "(a) share of the epochs at which the ReLN's loss is below that of common + single",
            "reported; Proposition 4.2 has “fastest”",
            f"{fastest:.0%}",
        ),
        stated(
            "nearest-contexts",
            "share of the ReLU networks' final weight whose nearest context pattern is on in one, "
            "two, all contexts",
            "reported",
            ", ".join(f"{part:.0%}" for part in share),
        ),
        *_script_losses(table, settings_of(table)),
    )


def _script_losses(table: Table, s: Mapping[str, Any]) -> list[Measure]:
    """The ReLU network's loss against that of the authors' script, at the epochs both have."""
    if tuple(s["structures"]) != STRUCTURES or s["hidden"] != 700:
        return []
    step, loss = table["step"].to_numpy(), table["relu"].to_numpy().mean(axis=0)
    samples = table.sizes["sample"]
    known = {k: v for k, v in SCRIPT_LOSS.items() if k <= step[-1]}
    found = np.interp(list(known), step, samples * loss)
    first = SCRIPT_LOSS[0]
    off = np.abs(found - list(known.values())).max() / first
    return [
        stated(
            "script-losses",
            "loss of the ReLU networks, summed over samples, at epochs "
            + ", ".join(map(str, known)),
            ", ".join(f"{v:g}" for v in known.values()) + " (authors' script): within 2 % of L(0)",
            ", ".join(f"{v:.3g}" for v in found),
            off,
            most=0.02,
        )
    ]
