"""Closed subspaces of matrix blocks: the few variables in which their flow can be written."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.reduction.blocks.block import Block, few_rows
from neuralrace.reduction.equations.flows import NetworkFlow
from neuralrace.reduction.equations.lumping import POINTS
from neuralrace.reduction.equations.polynomial import (
    NOISE,
    PolynomialSystem,
    is_noise,
)
from neuralrace.types import Matrix

MAX_VARIABLES = 12
"""Closed subspaces larger than this are not written out."""


MAX_TERMS = 500
"""Polynomials that could have more terms than this are not written out either."""


SPARE = 10
"""Coefficients are found from twice their number of random points, plus this many."""

FRESH = 5
"""The number of further random points at which the polynomials are checked."""

PIVOT = 0.1
"""The pivot of a row is its first entry above this, relative to the largest."""

ROUNDING = 1e-12
"""Entries of an echelon form below this are zero."""

OUTSIDE = 1e-8
"""A velocity lies in a subspace if less than this share of it is outside."""


def closed_subspace(
    block: Block, start: Mapping[str, Matrix], seed: int = 0
) -> tuple[Mapping[str, Matrix], ...] | None:
    """The smallest linear subspace of weights that holds the start and is closed under the flow.

    It captures symmetries that do not make variables equal: signs and rotations. The flow is
    evaluated at random points of the span, and what falls outside is added until nothing does. The
    basis is in echelon form, so that every variable is the value of one weight. None if it grows
    beyond `MAX_VARIABLES`.
    """
    rng = np.random.default_rng(seed)
    edges = tuple(block.arch.edges)
    shapes = {e: start[e].shape for e in edges}
    network = _network(block, shapes)
    basis = flat(start, edges)[None]
    basis = basis / np.linalg.norm(basis)
    unit, calm = _unit(block, network.depth), 0
    while calm < POINTS:
        w = unit * rng.normal(size=len(basis)) @ basis
        v = network.velocity(w)
        outside = v - (v @ basis.T) @ basis
        outside = outside - (outside @ basis.T) @ basis
        if np.linalg.norm(outside) <= OUTSIDE * np.linalg.norm(v):
            calm += 1
            continue
        calm = 0
        basis = np.concatenate([basis, outside[None] / np.linalg.norm(outside)])
        if len(basis) > MAX_VARIABLES:
            return None
    parts = []
    for row in echelon(basis):
        matrices = _shaped(row, shapes)
        parts.append({e: w for e, w in matrices.items() if w.any()})
    return tuple(parts)


def subspace_system(
    block: Block, parts: tuple[Mapping[str, Matrix], ...]
) -> PolynomialSystem | None:
    """The polynomial flow and loss in the coordinates of a closed subspace.

    Their degree is known, twice the longest path less one. The coefficients follow from values at
    more random points than there are coefficients. These points have the size at which drive and
    brake balance: there, all coefficients have the same unit, and those below `NOISE` are rounding.
    The polynomials are checked at fresh points; None if they are off by more than `NOISE`.
    """
    edges, shapes = tuple(block.arch.edges), weight_shapes(parts, block)
    network = _network(block, shapes)
    basis = np.stack([flat(filled(part, shapes), edges) for part in parts])
    powers = _powers(len(parts), 2 * network.depth - 1)
    unit = _unit(block, network.depth)
    fitted = 2 * len(powers) + SPARE
    points = np.random.default_rng(1).normal(size=(fitted + FRESH, len(parts)))
    table = np.prod(points[:, None, :] ** powers, axis=-1)
    states = unit * points @ basis
    velocities = np.stack([network.velocity(w) for w in states]) @ np.linalg.pinv(basis) / unit
    errors = np.stack([network.errors(w) for w in states])
    velocity = np.linalg.lstsq(table[:fitted], velocities[:fitted])[0].T
    error = np.zeros((errors.shape[1], len(powers)))
    low = powers.sum(axis=1) <= network.depth
    error[:, low] = np.linalg.lstsq(table[:fitted, low], errors[:fitted])[0].T
    velocity, error = (np.where(is_noise(rows), 0.0, rows) for rows in (velocity, error))
    for rows, wanted in ((velocity, velocities), (error, errors)):
        found = table[fitted:] @ rows.T
        if np.linalg.norm(found - wanted[fitted:]) > NOISE * np.linalg.norm(wanted[fitted:]):
            return None
    keep = (np.abs(velocity).max(axis=0) > 0) | (np.abs(error).max(axis=0, initial=0.0) > 0)
    powers = powers[keep]
    degree = powers.sum(axis=1)
    return PolynomialSystem(
        parts,
        powers,
        velocity[:, keep] * unit ** (1.0 - degree),
        few_rows(error[:, keep] * unit ** (0.0 - degree)),
    )


def _unit(block: Block, depth: int) -> float:
    """The size of weights at which the drive s of a path of this depth and its brake balance."""
    rows = np.asarray(block.data.probability)
    brake = sum(float((rows @ np.asarray(x) ** 2).sum()) for x in block.data.x.values())
    return (block.drive / brake) ** (1 / depth)


def _network(block: Block, shapes: Mapping[str, tuple[int, ...]]) -> NetworkFlow:
    """The block as a network with weights of these shapes."""
    return NetworkFlow(
        _as_wide_as(block, shapes),
        {e: np.zeros((1, *shape)) for e, shape in shapes.items()},
        block.data,
    )


def weight_shapes(
    parts: tuple[Mapping[str, Matrix], ...], block: Block
) -> dict[str, tuple[int, ...]]:
    """The shape of every edge's weights; the block's own shape where no variable enters."""
    known = {e: w.shape for part in parts for e, w in part.items()}
    sizes = block.arch.sizes
    return {e: known.get(e, (sizes[t], sizes[s])) for e, (s, t) in block.arch.edges.items()}


def _as_wide_as(block: Block, shapes: Mapping[str, tuple[int, ...]]) -> Architecture:
    """The block's graph with hidden nodes as wide as these weights."""
    sizes = dict(block.arch.sizes)
    for edge, (source, target) in block.arch.edges.items():
        sizes[target], sizes[source] = shapes[edge]
    return Architecture(sizes, block.arch.edges)


def filled(part: Mapping[str, Matrix], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Matrix]:
    """The weights of every edge; zero where the variable does not enter."""
    return {e: part.get(e, np.zeros(shape)) for e, shape in shapes.items()}


def flat(weights: Mapping[str, Matrix], edges: tuple[str, ...]) -> np.ndarray:
    """All weights in one row, edge after edge."""
    return np.concatenate([np.ravel(weights[e]) for e in edges])


def _shaped(w: np.ndarray, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Matrix]:
    ends = np.cumsum([0, *(int(np.prod(s)) for s in shapes.values())]).tolist()
    return {e: w[ends[i] : ends[i + 1]].reshape(s) for i, (e, s) in enumerate(shapes.items())}


def echelon(basis: np.ndarray) -> np.ndarray:
    """The reduced row echelon form: each row is 1 at a place where all others are zero."""
    rows = basis.copy()
    pivots: list[int] = []
    for k in range(len(rows)):
        free = np.abs(rows[k:]).max(axis=0)
        column = int(np.flatnonzero(free > PIVOT * free.max())[0])
        swap = k + int(np.argmax(np.abs(rows[k:, column])))
        rows[[k, swap]] = rows[[swap, k]]
        rows[k] /= rows[k, column]
        for other in range(len(rows)):
            if other != k:
                rows[other] -= rows[other, column] * rows[k]
        pivots.append(column)
    rows[np.abs(rows) < ROUNDING] = 0.0
    return rows[np.argsort(pivots)]


def _powers(variables: int, degree: int) -> np.ndarray:
    """Every tuple of powers with a sum of at most `degree`."""
    factors = combinations_with_replacement(range(variables + 1), degree)  # the last stands for 1
    return np.array([np.bincount(each, minlength=variables + 1)[:-1] for each in factors])
