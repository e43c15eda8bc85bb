"""Blocks that start alike and learn the same: one of them is solved for all.

A block is known up to a rotation of its directions at every input and output node. Copies of one
block, of which symmetric tasks have many, therefore differ in their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.reduction.equations.polynomial import PolynomialSystem
from neuralrace.types import Matrix

ALIKE = 12
"""Numbers that agree to this many digits are equal."""

TURNED = 1e-10
"""A rotation fits if it leaves less than this, relative to the largest number."""

Network = tuple[Mapping[str, Matrix], Dataset]
"""The initial weights and the data of a block."""

Turns = Mapping[str, Matrix]
"""For every input and output node, the rotation from the first block of a group to this one."""


def alike_races(systems: Mapping[int, tuple[PolynomialSystem, np.ndarray]]) -> list[list[int]]:
    """Merged races in groups with the same equations and starts, whatever their names.

    Only signs of errors may differ: the loss is the sum of their squares.
    """
    groups: dict[bytes, list[int]] = {}
    for i, (system, begin) in systems.items():
        key = _digits(system.powers, system.velocity, _signed(system.errors), begin)
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def alike_networks(
    arch: Architecture, networks: Sequence[Network]
) -> list[list[tuple[int, Turns]]]:
    """Networks of one graph in groups that are equal up to rotations, and so stay equal.

    Each member has its place in `networks`, and the rotations O of the first member's weights into
    its own: `Oᵀ_target W O_source`. The inner products of samples and weights at a node say all
    about them but for a rotation. A sample may also change the sign of its inputs and targets
    together.
    """
    groups: dict[bytes, list[tuple[int, Turns]]] = {}
    first: dict[bytes, dict[str, Matrix]] = {}
    for i, (weights, data) in enumerate(networks):
        vectors, sizes = _vectors(arch, weights, data)
        gates = [np.asarray(gate) for gate in data.gates.values()]
        key = _digits(*sizes, *gates, *(v @ v.T for v in vectors.values()))
        seen = first.setdefault(key, vectors)
        turns = {node: _rotation(seen[node], vectors[node]) for node in vectors}
        gaps = (seen[node] @ turns[node] - vectors[node] for node in vectors)
        fits = max(float(np.abs(gap).max(initial=0.0)) for gap in gaps) <= TURNED
        groups.setdefault(key if fits else key + str(i).encode(), []).append((i, turns))
    return list(groups.values())


def turned(
    arch: Architecture, weights: Mapping[str, np.ndarray], turns: Turns
) -> dict[str, np.ndarray]:
    """The weights `(*T, |t|, |s|)` of another member of the group."""
    found = {}
    for edge, (source, target) in arch.edges.items():
        w = weights[edge]
        w = w @ turns[source] if source in turns else w
        found[edge] = turns[target].T @ w if target in turns else w
    return found


def _vectors(
    arch: Architecture, weights: Mapping[str, Matrix], data: Dataset
) -> tuple[dict[str, Matrix], list[np.ndarray]]:
    """Samples and weights at every end of the graph as rows, and the size of each group of rows.

    All groups have unit size, so that small weights are compared as closely as large samples.
    """
    ends = {v: np.asarray(a, np.float64) for v, a in (*data.x.items(), *data.y.items())}
    parts = {v: [a] for v, a in ends.items()}
    for edge, (source, target) in arch.edges.items():
        if source in parts:
            parts[source].append(weights[edge])
        if target in parts:
            parts[target].append(weights[edge].T)
    sizes = {v: [float(np.linalg.norm(a)) for a in rows] for v, rows in parts.items()}
    for v, rows in parts.items():
        parts[v] = [a / (size or 1.0) for a, size in zip(rows, sizes[v], strict=True)]
    seen = [parts[v][0] @ np.concatenate([*parts[v][1:], ends[v][:0]]).T for v in parts]
    signs = _signs(np.concatenate(seen, axis=1))
    found = {v: np.concatenate([signs * rows[0], *rows[1:]]) for v, rows in parts.items()}
    return found, [np.array(size) for v in sizes for size in sizes[v]]


def _rotation(here: Matrix, there: Matrix) -> Matrix:
    """The orthogonal O for which `here @ O` is nearest to `there`."""
    if here is there:
        return np.eye(here.shape[1])
    u, _, vt = np.linalg.svd(here.T @ there)
    return u @ vt


def _signs(rows: Matrix) -> Matrix:
    """−1 for every row whose largest number is negative, otherwise 1."""
    if not rows.shape[1]:
        return np.ones((len(rows), 1))
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return np.where(largest < 0, -1.0, 1.0)


def _signed(rows: Matrix) -> Matrix:
    """Every row with the sign that makes its largest number positive."""
    return _signs(rows) * rows


def _digits(*arrays: np.ndarray) -> bytes:
    """Shapes and contents of arrays, to twelve digits of the largest number in each."""
    found = []
    for array in arrays:
        largest = float(np.abs(array).max(initial=0.0))
        shown = np.round(array / (largest or 1.0), ALIKE) + 0.0
        found += [repr((shown.shape, f"{largest:.{ALIKE}g}")).encode(), shown.tobytes()]
    return b"".join(found)
