"""Merging: variables whose equations and start values coincide stay equal forever.

Pathway counting (NRR §3.1) is a consequence: one edge of the routing network represents all
equivalent edges, with a coefficient that counts the paths through it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from neuralrace.reduction.equations.polynomial import ScalarRace

SAME = 1e-9
"""Values that differ by less than this, relatively, count as equal."""

ROUNDING = 1e-12
"""The rounding error of a velocity, relative to the sum of the sizes of its terms."""

POINTS = 3
"""The number of path strengths, from smallest to largest, at which velocities are compared."""

SPREAD = (0.5, 1.5)
"""The interval from which the random value of each class is drawn, relative to the strength."""


def merged(
    race: ScalarRace, label: Int[np.ndarray, " E"] | None = None, seed: int = 0
) -> list[list[int]]:
    """The coarsest partition of the edges whose members stay equal, from equal start values.

    Partition refinement: give every class one random value, evaluate the right-hand side, split
    classes whose velocities differ, and repeat until nothing splits (the coarsest backward
    differential equivalence). Edges with equal `label` start with equal values; with None, all do.
    Where paths are long, the random values are closer to one, so that no product of them is too
    large or too small.
    """
    rng = np.random.default_rng(seed)
    longest = race.paths.shape[1]
    typical = _typical(race)
    label = np.zeros(len(race.edges), int) if label is None else np.asarray(label)
    while True:
        finer = label
        for strength in typical:
            spread = rng.uniform(*SPREAD, label.max() + 1)[label]
            b = (strength * spread) ** (1 / longest)
            finer = _refined(finer, distinct(race.velocity(b), ROUNDING * race.size(b)))
        if finer.max() == label.max():
            break
        label = finer
    classes = [np.flatnonzero(label == k).tolist() for k in range(label.max() + 1)]
    return sorted(classes, key=lambda members: members[0])


def _typical(race: ScalarRace) -> list[float]:
    """Strengths of a path at which its drive and its brake are equally large, S = B D.

    The smallest, the median and the largest. Far from these strengths, either drive or brake is
    lost in rounding, and paths that differ only in it would seem equal.
    """
    brake = race.D.diagonal()
    on = (race.S != 0) & (brake > 0)
    found = np.abs(race.S[on]) / brake[on] if on.any() else np.ones(1)
    return np.quantile(found, np.linspace(0, 1, POINTS), method="nearest").tolist()


def distinct(
    values: Float[np.ndarray, " E"], rounding: Float[np.ndarray, " E"] | float = 0.0
) -> np.ndarray:
    """One label per value; values that differ by less than `SAME`, relatively, share a label.

    `rounding` is the error that each value may have.
    """
    order = np.argsort(values)
    size, off = np.abs(values[order]), np.broadcast_to(rounding, values.shape)[order]
    near = np.maximum(SAME * np.maximum(size[1:], size[:-1]), np.maximum(off[1:], off[:-1]))
    steps = np.diff(values[order]) > near
    label = np.empty(len(values), int)
    label[order] = np.concatenate([[0], np.cumsum(steps)])
    return label


def _refined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The common refinement: two members stay together only if both partitions join them."""
    return np.unique(np.stack([left, right]), axis=1, return_inverse=True)[1].reshape(-1)
