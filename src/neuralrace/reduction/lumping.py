"""Merging: variables whose equations and start values coincide stay equal for ever.

Pathway counting (NRR §3.1) is a consequence: an edge of the routing network stands for all edges
like it, with a coefficient that counts the paths through it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from neuralrace.reduction.polynomial import ScalarRace

SAME = 1e-9
"""Velocities closer than this, relative to the largest, are equal."""

POINTS = 3


def merged(
    race: ScalarRace, start: Float[np.ndarray, " E"] | None = None, seed: int = 0
) -> list[list[int]]:
    """The coarsest partition of the edges whose members stay equal, from equal start values.

    Partition refinement: give every class one random value, evaluate the right-hand side, split
    classes whose velocities differ, and repeat until nothing splits (the coarsest backward
    differential equivalence). `start=None` supposes that all edges start alike.
    """
    rng = np.random.default_rng(seed)
    label = np.zeros(len(race.edges), int) if start is None else _distinct(start)
    while True:
        finer = label
        for _ in range(POINTS):
            b = rng.uniform(0.5, 1.5, label.max() + 1)[label]
            finer = _refined(finer, _distinct(race.velocity(b)))
        if finer.max() == label.max():
            break
        label = finer
    classes = [np.flatnonzero(label == k).tolist() for k in range(label.max() + 1)]
    return sorted(classes, key=lambda members: members[0])


def _distinct(values: Float[np.ndarray, " E"]) -> np.ndarray:
    """A label for each value; values that differ only by rounding share one."""
    order = np.argsort(values)
    scale = np.abs(values).max(initial=0.0)
    steps = np.diff(values[order]) > SAME * max(scale, 1e-300)
    label = np.empty(len(values), int)
    label[order] = np.concatenate([[0], np.cumsum(steps)])
    return label


def _refined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The partition in which two members are together only if they are in both."""
    return np.unique(np.stack([left, right]), axis=1, return_inverse=True)[1].reshape(-1)


def sizes(classes: Sequence[Sequence[int]]) -> list[int]:
    """The multiplicity of every merged variable."""
    return [len(members) for members in classes]
