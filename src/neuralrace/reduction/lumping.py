"""Merging: variables whose equations and start values coincide stay equal for ever.

Pathway counting (NRR §3.1) is a consequence: an edge of the routing network stands for all edges
like it, with a coefficient that counts the paths through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb

import numpy as np
from jaxtyping import Float, Int

from neuralrace.architecture import Architecture
from neuralrace.reduction.block import Block, Matrix
from neuralrace.reduction.mixtures import edge_depths
from neuralrace.reduction.polynomial import (
    MAX_PATHS,
    PolynomialSystem,
    ScalarRace,
    merged_system,
    scalar_race,
)
from neuralrace.statistics import path_statistics

SAME = 1e-9
"""Values closer than this, relatively, are equal."""

POINTS = 3


def merged(
    race: ScalarRace, label: Int[np.ndarray, " E"] | None = None, seed: int = 0
) -> list[list[int]]:
    """The coarsest partition of the edges whose members stay equal, from equal start values.

    Partition refinement: give every class one random value, evaluate the right-hand side, split
    classes whose velocities differ, and repeat until nothing splits (the coarsest backward
    differential equivalence). `label` says which edges start alike: all, if it is None. Values are
    nearer to one where paths are long, so that no product of them is too large or too small.
    """
    rng = np.random.default_rng(seed)
    longest = race.paths.shape[1]
    typical = _typical(race)
    label = np.zeros(len(race.edges), int) if label is None else np.asarray(label)
    while True:
        finer = label
        for strength in typical:
            spread = rng.uniform(0.5, 1.5, label.max() + 1)[label]
            b = (strength * spread) ** (1 / longest)
            finer = _refined(finer, _distinct(race.velocity(b), 1e-12 * race.size(b)))
        if finer.max() == label.max():
            break
        label = finer
    classes = [np.flatnonzero(label == k).tolist() for k in range(label.max() + 1)]
    return sorted(classes, key=lambda members: members[0])


def _typical(race: ScalarRace) -> list[float]:
    """Strengths of a path at which what drives it and what brakes it are of one size, S = B D.

    The least, the middle and the greatest: far from them one of the two is rounding, and paths
    that differ in it would look alike.
    """
    brake = race.D.diagonal()
    on = (race.S != 0) & (brake > 0)
    found = np.abs(race.S[on]) / brake[on] if on.any() else np.ones(1)
    return np.quantile(found, np.linspace(0, 1, POINTS), method="nearest").tolist()


def _distinct(
    values: Float[np.ndarray, " E"], rounding: Float[np.ndarray, " E"] | float = 0.0
) -> np.ndarray:
    """A label for each value; values that differ relatively by less than `SAME` share one.

    `rounding` is what each value may be off by.
    """
    order = np.argsort(values)
    size, off = np.abs(values[order]), np.broadcast_to(rounding, values.shape)[order]
    near = np.maximum(SAME * np.maximum(size[1:], size[:-1]), np.maximum(off[1:], off[:-1]))
    steps = np.diff(values[order]) > near
    label = np.empty(len(values), int)
    label[order] = np.concatenate([[0], np.cumsum(steps)])
    return label


def _refined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The partition in which two members are together only if they are in both."""
    return np.unique(np.stack([left, right]), axis=1, return_inverse=True)[1].reshape(-1)


# ---- matrix blocks -----------------------------------------------------------------------------

MAX_VARIABLES = 8
"""Closed subspaces larger than this are not written out."""

MAX_TERMS = 500
"""Nor are polynomials that could have more terms than this."""

OUTSIDE = 1e-8
"""A velocity that leaves a subspace by less than this, relatively, stays in it."""


def closed_subspace(
    block: Block, start: Mapping[str, Matrix], seed: int = 0
) -> tuple[Mapping[str, Matrix], ...] | None:
    """The smallest linear subspace of weights that holds the start and is closed under the flow.

    It sees symmetries that equal variables do not show: signs and rotations. Evaluates the flow at
    random points of the span and appends what falls outside, until nothing does; the basis is in
    echelon form, so that every variable is the value of one weight. None where it grows beyond
    `MAX_VARIABLES`.
    """
    rng = np.random.default_rng(seed)
    edges = tuple(block.arch.edges)
    shapes = {e: start[e].shape for e in edges}
    stats = path_statistics(_as_wide_as(block, shapes), block.data)
    basis = _flat(start, edges)[None]
    basis = basis / np.linalg.norm(basis)
    calm, unit = 0, _weight_unit(block)
    while calm < POINTS:
        w = unit * rng.normal(size=len(basis)) @ basis
        v = _flat(stats.velocity(_shaped(w, shapes)), edges)
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


def subspace_system(block: Block, parts: tuple[Mapping[str, Matrix], ...]) -> PolynomialSystem:
    """The polynomial flow and loss in the coordinates of a closed subspace.

    Their degree is known, twice the longest path less one; the coefficients follow from the values
    at as many random points, with more points to spare as a check.
    """
    edges, shapes = tuple(block.arch.edges), _shapes(parts, block)
    stats = path_statistics(_as_wide_as(block, shapes), block.data)
    basis = np.stack([_flat(_filled(part, shapes), edges) for part in parts])
    powers, unit = (
        _powers(len(parts), 2 * max(len(p.edges) for p in stats.paths)),
        _weight_unit(block),
    )
    points = np.random.default_rng(1).normal(size=(2 * len(powers) + 10, len(parts)))
    table = np.prod(points[:, None, :] ** powers, axis=-1)
    inverse = np.linalg.pinv(basis)
    velocities, losses = [], []
    constant = block.initial_loss - stats.loss({e: np.zeros(s) for e, s in shapes.items()})
    for z in points:
        weights = _shaped(unit * z @ basis, shapes)
        velocities.append(_flat(stats.velocity(weights), edges) @ inverse)
        losses.append(stats.loss(weights) + constant)
    solved = np.linalg.lstsq(table, np.column_stack([*np.array(velocities).T, losses]))[0].T
    scale = np.abs(solved).max(axis=1, keepdims=True)
    solved[np.abs(solved) < 1e-10 * scale] = 0.0
    solved = solved / unit ** powers.sum(axis=1)
    keep = np.abs(solved).max(axis=0) > 0
    return PolynomialSystem(parts, powers[keep], solved[:-1, keep], solved[-1, keep])


def _weight_unit(block: Block) -> float:
    """The size of weights at which what drives the longest path and what brakes it are alike.

    In this unit the coefficients of all powers are of one size, and a small one is rounding.
    """
    shown = max(float((x**2).sum()) for x in block.factor.x.values())
    longest = max(edge_depths(block.arch).values()) + 1
    return float((block.strength / shown) ** (1 / longest))


def _shapes(parts: tuple[Mapping[str, Matrix], ...], block: Block) -> dict[str, tuple[int, ...]]:
    """The shape of every edge's weights; the block's own where no variable has a part in it."""
    known = {e: w.shape for part in parts for e, w in part.items()}
    sizes = block.arch.sizes
    return {e: known.get(e, (sizes[t], sizes[s])) for e, (s, t) in block.arch.edges.items()}


def _as_wide_as(block: Block, shapes: Mapping[str, tuple[int, ...]]) -> Architecture:
    """The block's graph with hidden nodes as wide as these weights."""
    sizes = dict(block.arch.sizes)
    for edge, (source, target) in block.arch.edges.items():
        sizes[target], sizes[source] = shapes[edge]
    return Architecture(sizes, block.arch.edges)


def _filled(part: Mapping[str, Matrix], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Matrix]:
    return {e: part.get(e, np.zeros(shape)) for e, shape in shapes.items()}


def _flat(weights: Mapping[str, Matrix], edges: tuple[str, ...]) -> np.ndarray:
    return np.concatenate([np.ravel(weights[e]) for e in edges])


def _shaped(w: np.ndarray, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Matrix]:
    ends = np.cumsum([0, *(int(np.prod(s)) for s in shapes.values())]).tolist()
    return {e: w[ends[i] : ends[i + 1]].reshape(s) for i, (e, s) in enumerate(shapes.items())}


def echelon(basis: np.ndarray) -> np.ndarray:
    """The reduced row echelon form: each row is one at a place where the others are zero."""
    rows = basis.copy()
    pivots: list[int] = []
    for k in range(len(rows)):
        free = np.abs(rows[k:]).max(axis=0)
        column = int(np.flatnonzero(free > 0.1 * free.max())[0])
        swap = k + int(np.argmax(np.abs(rows[k:, column])))
        rows[[k, swap]] = rows[[swap, k]]
        rows[k] /= rows[k, column]
        for other in range(len(rows)):
            if other != k:
                rows[other] -= rows[other, column] * rows[k]
        pivots.append(column)
    rows[np.abs(rows) < 1e-12] = 0.0
    return rows[np.argsort(pivots)]


def _powers(variables: int, degree: int) -> np.ndarray:
    """Every tuple of powers with a sum of at most `degree`."""
    grid = np.indices((degree + 1,) * variables).reshape(variables, -1).T
    return grid[grid.sum(axis=1) <= degree]


def block_system(
    block: Block, start: Mapping[str, Matrix] | None = None
) -> tuple[PolynomialSystem, np.ndarray] | None:
    """The merged equations of a block and its start values, or None where they are too many.

    `start=None` supposes an aligned start in which all edges are alike. Equal variables are
    merged; in matrix blocks, where signs and rotations hide which are equal, the smallest closed
    subspace is taken. Variables are ordered by their depth in the graph.
    """
    weights = block.aligned if start is None else start
    if all(w.shape == (1, 1) for w in weights.values()):
        if block.arch.path_count() > MAX_PATHS:
            return None
        values = np.array([weights[edge][0, 0] for edge in block.arch.edges])
        label, signs = _distinct(np.abs(values)), np.where(values < 0, -1, 1)
        system, first = _scalar_system(block, tuple(label.tolist()), tuple(signs.tolist()))
        return system, np.abs(values)[first]
    if not any(w.any() for w in weights.values()):
        return None
    parts = closed_subspace(block, weights)
    degree = 2 * (max(edge_depths(block.arch).values()) + 1)
    if parts is None or comb(len(parts) + degree, degree) > MAX_TERMS:
        return None
    edges, shapes = tuple(block.arch.edges), _shapes(parts, block)
    basis = np.stack([_flat(_filled(part, shapes), edges) for part in parts])
    values = _flat(weights, edges) @ np.linalg.pinv(basis)
    signs = np.where(values < 0, -1.0, 1.0)
    parts = tuple({e: s * w for e, w in p.items()} for s, p in zip(signs, parts, strict=True))
    return subspace_system(block, parts), signs * values


def _scalar_system(
    block: Block, label: tuple[int, ...], signs: tuple[int, ...]
) -> tuple[PolynomialSystem, list[int]]:
    """The merged equations of a scalar block whose edges start in these classes of equal size."""

    def made() -> tuple[PolynomialSystem, list[int]]:
        race = replace(scalar_race(block), signs=np.array(signs, float))
        classes = merged(race, np.array(label))
        depth = edge_depths(block.arch)
        classes.sort(key=lambda members: min(depth[race.edges[i]] for i in members))
        return merged_system(race, classes), [members[0] for members in classes]

    return block.kept(("system", label, signs), made)
