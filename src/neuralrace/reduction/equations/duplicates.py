"""Blocks that start alike and learn the same: one of them is solved for all.

A block is known up to a rotation of its directions at every input and output node. Copies of one
block, of which symmetric tasks have many, therefore differ in their numbers by rounding. Starts are
compared as they are, or, where they are turned too, each neuron by its own size: a start that is
tiny beside others still says how long its pathway waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.reduction.equations.polynomial import PolynomialSystem
from neuralrace.types import Matrix

ALIKE = 12
"""Coefficients of equations that agree to this many digits are equal."""

TURNED = 1e-13
"""A rotation fits if it leaves less than this of every sample and of every neuron's weights.

Copies differ by some 1e-15.
"""

Network = tuple[Mapping[str, Matrix], Dataset]
"""The initial weights and the data of a block."""

Turns = Mapping[str, Matrix]
"""For every input and output node, the rotation from the first block of a group to this one."""


def alike_races(systems: Mapping[int, tuple[PolynomialSystem, np.ndarray]]) -> list[list[int]]:
    """Merged races in groups with the same equations and starts, whatever their names.

    Only signs of errors may differ: the loss is the sum of their squares.
    """
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for i, (system, begin) in systems.items():
        key = _each(system.powers, system.velocity) + _digits(_signed(system.errors))
        groups.setdefault((key, begin.tobytes()), []).append(i)
    return list(groups.values())


def alike_networks(
    arch: Architecture, networks: Sequence[Network]
) -> list[list[tuple[int, Turns]]]:
    """Networks of one graph in groups that are equal up to rotations, and so stay equal.

    Each member has its place in `networks`, and the rotations O of the first member's weights into
    its own: `Oᵀ_target W O_source`. Networks whose inner products of samples and weights at every
    input and output agree may be equal up to rotations, and are if a rotation fits. A sample may
    also change the sign of its inputs and targets together. Weights between hidden nodes are not
    turned.
    """
    groups: list[list[tuple[int, Turns]]] = []
    similar: dict[bytes, list[tuple[dict[str, Matrix], list[tuple[int, Turns]]]]] = {}
    for i, (weights, data) in enumerate(networks):
        vectors, sizes = _vectors(arch, weights, data)
        inner = [w for e, w in weights.items() if not set(arch.edges[e]) & set(vectors)]
        names = sorted(data.gates)
        fixed = [np.asarray(a) for a in (*inner, *(data.gates[name] for name in names))]
        key = repr(names).encode() + _each(sizes) + _digits(*(v @ v.T for v in vectors.values()))
        key += b"".join(a.tobytes() for a in fixed)
        rivals = similar.setdefault(key, [])
        for first, group in rivals:
            turns = {node: _rotation(first[node], vectors[node]) for node in vectors}
            if all(_fits(first[node] @ turns[node], vectors[node]) for node in vectors):
                group.append((i, turns))
                break
        else:
            groups.append([(i, {node: np.eye(v.shape[1]) for node, v in vectors.items()})])
            rivals.append((vectors, groups[-1]))
    return groups


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
) -> tuple[dict[str, Matrix], np.ndarray]:
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
    return found, np.array([size for v in sizes for size in sizes[v]])


def _rotation(here: Matrix, there: Matrix) -> Matrix:
    """The orthogonal O for which `here @ O` is nearest to `there`."""
    u, _, vt = np.linalg.svd(here.T @ there)
    return u @ vt


def _fits(here: Matrix, there: Matrix) -> bool:
    """Whether every row is the same, relative to its own size."""
    gaps, sizes = (np.linalg.norm(rows, axis=1) for rows in (here - there, there))
    return bool((gaps <= TURNED * sizes).all())


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
    sizes = (np.abs(array).max(initial=0.0) for array in arrays)
    return b"".join(_rounded(array, size) for array, size in zip(arrays, sizes, strict=True))


def _each(*arrays: np.ndarray) -> bytes:
    """Shapes and contents of arrays, every number to its own twelve digits."""
    return b"".join(_rounded(array, np.abs(array)) for array in arrays)


def _rounded(array: np.ndarray, size: np.ndarray | np.float64) -> bytes:
    """An array to twelve digits of numbers of this size."""
    places = ALIKE - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    shown = np.round(array * up / down) * down / up + 0.0  # no −0
    return repr(shown.shape).encode() + shown.tobytes()
