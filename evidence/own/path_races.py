"""Claims about races of paths inside one network, against the full network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence.promise import Measurement, claim

EDGES = "abcdef"
"""The edges of the three pathways: x–a→h₁–b→y, h₁–c→h₂–d→y, x–e→g–f→y."""

TIED = 1e-4
"""Paths whose strengths differ by less have no leader that the check could be wrong about."""


def three_pathways(
    share: float, other: float = 1.0, units: int = 3
) -> tuple[nr.Architecture, nr.Dataset]:
    """x→h₁→y, x→h₁→h₂→y, and x→g→y, on for a share; y = 2x when g is on and 2·other·x when off."""
    arch = nr.Architecture(
        {"x": 1, "h1": units, "h2": units, "g": units, "y": 1},
        {
            "a": ("x", "h1"),
            "b": ("h1", "y"),
            "c": ("h1", "h2"),
            "d": ("h2", "y"),
            "e": ("x", "g"),
            "f": ("g", "y"),
        },
    )
    x, y = {"x": [[1.0], [1.0]]}, {"y": [[2.0], [2 * other]]}
    return arch, nr.Dataset(x, y, {"g": [1.0, 0.0]}, [share, 1 - share])


def initial_loss(share: float, other: float) -> float:
    """The loss of three pathways at zero weights."""
    return 2 * (share + other**2 * (1 - share))


def integrated(
    weights: Mapping[str, np.ndarray], share: float, other: float, level: float
) -> dict[str, float]:
    """The products of the full network's matrices along its paths when its loss is at a level."""
    shapes = {e: np.shape(weights[e]) for e in EDGES}
    ends = np.cumsum([np.prod(s) for s in shapes.values()])[:-1]
    chances, targets = np.array([share, 1 - share]), np.array([2.0, 2 * other])

    def matrices(flat: np.ndarray) -> dict[str, np.ndarray]:
        parts = zip(shapes.items(), np.split(flat, ends), strict=True)
        return {e: part.reshape(shape) for (e, shape), part in parts}

    def strengths(w: Mapping[str, np.ndarray]) -> dict[str, float]:
        products = {
            "a-b": w["b"] @ w["a"],
            "a-c-d": w["d"] @ w["c"] @ w["a"],
            "e-f": w["f"] @ w["e"],
        }
        return {name: product.item() for name, product in products.items()}

    def errors(w: Mapping[str, np.ndarray]) -> np.ndarray:
        made = strengths(w)
        return targets - (made["a-b"] + made["a-c-d"] + made["e-f"] * np.array([1.0, 0.0]))

    def left(t: float, flat: np.ndarray) -> float:
        return float(chances @ errors(matrices(flat)) ** 2 / 2) - level

    def velocity(t: float, flat: np.ndarray) -> np.ndarray:
        w = matrices(flat)
        error = chances * errors(w)
        always, gated = error.sum(), error[0]
        moved = {
            "a": always * (w["b"] + w["d"] @ w["c"]).T,
            "b": always * w["a"].T,
            "c": always * w["d"].T @ w["a"].T,
            "d": always * (w["c"] @ w["a"]).T,
            "e": gated * w["f"].T,
            "f": gated * w["e"].T,
        }
        return np.concatenate([moved[e].ravel() for e in EDGES])

    left.terminal = True  # type: ignore[attr-defined]
    flat = np.concatenate([np.ravel(weights[e]) for e in EDGES])
    if left(0, flat) > 0:
        found = solve_ivp(velocity, [0, 1e5], flat, events=left, rtol=1e-10, atol=1e-14)
        flat = found.y_events[0][0]
    return strengths(matrices(flat))


def cells_off(found: nr.PhaseDiagram, other: float, key: int | None) -> tuple[int, float]:
    """How many cells of a diagram name another leader than the network, and the largest gap.

    The network starts decoupled at the first parameter or, with a `key`, from weights drawn with
    this standard deviation; its share is the second parameter.
    """
    wrong, gap = 0, 0.0
    for k, (size, share) in enumerate(found.points):
        arch, data = three_pathways(share, other)
        if key is None:
            race = nr.reduce(arch, data)
            weights = race.weights(race.solve(times=[0.0, 1.0], start=size), 0.0)
        else:
            weights = nr.GDLN(arch).init(key, scale=size)
        each = {e: np.asarray(w, np.float64) for e, w in weights.items()}
        wanted = integrated(each, share, other, 0.5 * initial_loss(share, other))
        gap = max(gap, *(abs(found.strengths[n].ravel()[k] - s) for n, s in wanted.items()))
        first, second, *_ = sorted(wanted, key=lambda n: -abs(wanted[n]))
        apart = abs(wanted[first]) - abs(wanted[second]) > TIED
        wrong += apart and found.winners[k] != first
    return wrong, float(gap)


def diagram(
    sizes: np.ndarray, shares: np.ndarray, other: float, key: int | None = None
) -> nr.PhaseDiagram:
    """Who leads when half of the initial loss is left: aligned starts, or weights of a key."""
    return nr.phase_diagram(
        lambda share: three_pathways(share, other),
        {"start" if key is None else "scale": sizes, "share": shares},
        race="paths",
        criterion=0.5,
        relative=True,
        key=0 if key is None else key,
    )


@claim(
    "contests/paths",
    "Contests",
    "three pathways in one network, y = 2x when the gated one is on and 2κx when off, over start "
    "and share, κ = 1 and −.5: who leads at half of the initial loss, and the strengths of the "
    "paths, against the full network in every cell",
    "every leader; strengths within 1e-5",
)
def paths(full: bool) -> Measurement:
    counts = (9, 9) if full else (2, 2)
    sizes, shares = np.geomspace(0.01, 1.3, counts[0]), np.linspace(0.05, 0.95, counts[1])
    wrong, gap, cells = 0, 0.0, 0
    for other in (1.0, -0.5):
        drawn = sizes[: max(2, counts[0] // 2)] / 3, shares[:: counts[1] // 2]
        for key, grid in ((None, (sizes, shares)), (3, drawn)):
            found = diagram(*grid, other, key)
            off, most = cells_off(found, other, key)
            wrong, gap, cells = wrong + off, max(gap, most), cells + len(found.points)
    text = f"{cells - wrong} of {cells} leaders; strengths within {gap:.1e}"
    return Measurement(text, wrong == 0 and gap <= 1e-5)
