"""The merged equations of a block, scalar or not, if there are few enough to write out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.reduction.block import Block
from neuralrace.reduction.mixtures import SPREAD, edge_depths, few_rows, longest_path
from neuralrace.reduction.polynomial import (
    MAX_PATHS,
    PolynomialSystem,
    ScalarRace,
    block_statistics,
    gradient_system,
    is_noise,
    merged_system,
    natural_unit,
    scalar_race,
    without_noise,
)
from neuralrace.reduction.scipy_solver import NetworkFlow
from neuralrace.tolerances import EXACT, NOISE, PIVOT, ROUNDING
from neuralrace.types import Matrix

FEW_PATHS = 100
"""Blocks with up to this many paths are written out, whatever their gates."""

MAX_PAIRS = 30_000
"""Blocks in which more pairs of paths overlap than this are solved as networks instead."""

MAX_MERGED = 64
"""Scalar blocks with more variables than this after merging are also solved as networks."""


def block_system(
    block: Block,
    start: Mapping[str, Matrix] | None = None,
    rates: Mapping[str, float] | None = None,
) -> tuple[PolynomialSystem, np.ndarray] | None:
    """The merged equations of a block and its start values, or None if there are too many.

    With `rates` of edges, variables share the rate of their edges too; matrix blocks in which rates
    differ are not written out. `start=None` assumes an aligned start in which all edges are equal.
    Equal variables are merged. In matrix blocks, signs and rotations hide which variables are
    equal, so the smallest closed subspace is used. Variables are ordered by their depth in the
    graph.
    """
    weights = block.aligned if start is None else start
    each = np.array([(rates or {}).get(edge, 1.0) for edge in block.arch.matrices])
    if not _is_manageable(block):
        return None
    if all(w.shape == (1, 1) for w in weights.values()):
        values = np.array([weights[edge][0, 0] for edge in block.arch.matrices])
        label, signs = (
            _refined(distinct(np.abs(values)), distinct(each)),
            np.where(values < 0, -1, 1),
        )
        found = _scalar_system(block, tuple(label.tolist()), tuple(signs.tolist()))
        if found is None:
            return None
        system, first = found
        if (each != 1).any():
            system = replace(system, velocity=each[first][:, None] * system.velocity)
        return system, np.abs(values)[first]
    if np.ptp(each) or not any(w.any() for w in weights.values()):
        return None
    parts = closed_subspace(block, weights)
    degree = 2 * longest_path(block.arch) - 1
    if parts is None or comb(len(parts) + degree, degree) > MAX_TERMS:
        return None
    edges, shapes = tuple(block.arch.matrices), weight_shapes(parts, block)
    basis = np.stack([flat(filled(part, shapes), edges) for part in parts])
    values = flat(weights, edges) @ np.linalg.pinv(basis)
    signs = np.where(values < 0, -1.0, 1.0)
    parts = tuple({e: s * w for e, w in p.items()} for s, p in zip(signs, parts, strict=True))
    system = subspace_system(block, parts)
    if system is None:
        return None
    return replace(system, velocity=each[0] * system.velocity), signs * values


def _is_manageable(block: Block) -> bool:
    """Whether few enough pairs of paths end at one output and are on together."""

    def manageable() -> bool:
        count = block.arch.path_count()
        if count <= FEW_PATHS or count > MAX_PATHS:
            return count <= MAX_PATHS
        together: Counter[tuple[str, int]] = Counter()
        for group in block_statistics(block).groups:
            together.update((group.target, int(c)) for c in group.classes)
        return sum(n * n for n in together.values()) <= MAX_PAIRS

    return block.cached("manageable", manageable)


def _scalar_system(
    block: Block, label: tuple[int, ...], signs: tuple[int, ...]
) -> tuple[PolynomialSystem, list[int]] | None:
    """The merged equations of a scalar block; edges of one class start with equal size."""

    def made() -> tuple[PolynomialSystem, list[int]] | None:
        race = replace(scalar_race(block), signs=np.array(signs, float))
        classes = merged(race, np.array(label))
        if len(classes) > MAX_MERGED:
            return None
        at = edge_depths(block.arch)
        depth = {n: min(at[e] for e, _ in ms) for n, ms in block.arch.matrices.items()}
        classes.sort(key=lambda members: min(depth[race.edges[i]] for i in members))
        return merged_system(race, classes), [members[0] for members in classes]

    return block.cached(("system", label, signs), made)


# Merging: variables whose equations and start values coincide stay equal forever.

POINTS = 3
"""The number of path strengths, from smallest to largest, at which velocities are compared."""


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
            finer = _refined(finer, distinct(race.velocity(b), NOISE * race.size(b)))
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
    """One label per value; values that differ by less than `ROUNDING`, relatively, share a label.

    `rounding` is the error that each value may have.
    """
    order = np.argsort(values)
    size, off = np.abs(values[order]), np.broadcast_to(rounding, values.shape)[order]
    near = np.maximum(ROUNDING * np.maximum(size[1:], size[:-1]), np.maximum(off[1:], off[:-1]))
    steps = np.diff(values[order]) > near
    label = np.empty(len(values), int)
    label[order] = np.concatenate([[0], np.cumsum(steps)])
    return label


def _refined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The common refinement: two members stay together only if both partitions join them."""
    return np.unique(np.stack([left, right]), axis=1, return_inverse=True)[1].reshape(-1)


# Closed subspaces of matrix blocks: the few variables in which their flow can be written.

MAX_VARIABLES = 12
"""Closed subspaces larger than this are not written out."""


MAX_TERMS = 500
"""Polynomials that could have more terms than this are not written out either."""


SPARE = 10
"""Coefficients are found from twice their number of random points, plus this many."""

FRESH = 5
"""The number of further random points at which the polynomials are checked."""


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
    edges = tuple(block.arch.matrices)
    shapes = {e: start[e].shape for e in edges}
    network = _network(block, shapes)
    basis = flat(start, edges)[None]
    basis = basis / np.linalg.norm(basis)
    unit, calm = block.natural_size, 0
    while calm < POINTS:
        w = unit * rng.normal(size=len(basis)) @ basis
        v = network.velocity(w)
        outside = v - (v @ basis.T) @ basis
        outside = outside - (outside @ basis.T) @ basis
        if np.linalg.norm(outside) <= EXACT * np.linalg.norm(v):
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

    The errors y − h are polynomials whose degree is the longest path. Their coefficients follow
    from values at more random points than there are coefficients, of the size at which drive and
    brake balance: there, all coefficients have the same unit, and those below `EXACT` are rounding.
    They are checked at fresh points; None if they are off by more than `EXACT`.
    """
    edges, shapes = tuple(block.arch.matrices), weight_shapes(parts, block)
    network = _network(block, shapes)
    basis = np.stack([flat(filled(part, shapes), edges) for part in parts])
    powers = _powers(len(parts), network.depth)
    fitted = 2 * len(powers) + SPARE
    points = np.random.default_rng(1).normal(size=(fitted + FRESH, len(parts)))
    table = np.prod(points[:, None, :] ** powers, axis=-1)
    errors = np.stack([network.errors(w) for w in block.natural_size * points @ basis])
    found = np.linalg.lstsq(table[:fitted], errors[:fitted])[0].T
    found[is_noise(found)] = 0.0
    gap = np.linalg.norm(table[fitted:] @ found.T - errors[fitted:])
    if gap > EXACT * np.linalg.norm(errors[fitted:]):
        return None
    scaled = found * block.natural_size ** (0.0 - powers.sum(axis=1))
    return without_noise(gradient_system(parts, powers, few_rows(scaled)))


def _network(block: Block, shapes: Mapping[str, tuple[int, ...]]) -> NetworkFlow:
    """The block as a network with weights of these shapes."""
    return NetworkFlow(block.arch, {e: np.zeros(n) for e, n in shapes.items()}, block.data)


def weight_shapes(
    parts: tuple[Mapping[str, Matrix], ...], block: Block
) -> dict[str, tuple[int, ...]]:
    """The shape of every edge's weights; the block's own shape where no variable enters."""
    known = {e: w.shape for part in parts for e, w in part.items()}
    return {name: known.get(name, shape) for name, shape in block.arch.shapes.items()}


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
    rows[np.abs(rows) < EXACT] = 0.0
    return rows[np.argsort(pivots)]


def _powers(variables: int, degree: int) -> np.ndarray:
    """Every tuple of powers with a sum of at most `degree`."""
    factors = combinations_with_replacement(range(variables + 1), degree)  # the last stands for 1
    return np.array([np.bincount(each, minlength=variables + 1)[:-1] for each in factors])


@final
@dataclass(frozen=True)
class MonomialRace:
    """db_k/dt = γ_k (M/b_k)(S − D M), M = Π b_k^{n_k}; the total power is the depth.

    The rates γ are scaled so that the largest is 1. S and D then contain the number of paths
    through the variable that moves fastest: they are Σ^yx and Σ^x summed over these paths.
    """

    powers: tuple[int, ...]
    rates: tuple[float, ...]
    S: float
    D: float

    @property
    def depth(self) -> int:
        """The number of edges on a path, Σ_k n_k."""
        return sum(self.powers)


@lru_cache(maxsize=1024)
def recognised(system: PolynomialSystem) -> MonomialRace | None:
    """The single pathway that these equations describe, or None."""
    K = len(system.parts)
    if K == 0:
        return None
    unit = natural_unit(system) ** system.powers.sum(axis=1).astype(float)
    terms = ~is_noise(system.velocity * unit)
    if (terms.sum(axis=1) != 2).any():
        return None
    rows = [
        {tuple(system.powers[m].tolist()): float(row[m]) for m in np.flatnonzero(there)}
        for row, there in zip(system.velocity, terms, strict=True)
    ]
    powers = None
    rates, ratios = [], []
    for k, row in enumerate(rows):
        (low, drive), (high, brake) = sorted(row.items(), key=lambda term: sum(term[0]))
        path = tuple(n + (i == k) for i, n in enumerate(low))
        double = tuple(2 * n - (i == k) for i, n in enumerate(path))
        if high != double or (powers is not None and path != powers) or drive == 0:
            return None
        powers = path
        rates.append(drive)
        ratios.append(-brake / drive)
    assert powers is not None
    if any(n == 0 for n in powers) or max(ratios) - min(ratios) > EXACT * max(map(abs, ratios)):
        return None
    top = max(rates, key=abs)
    if any(rate / top <= 0 for rate in rates):
        return None
    return MonomialRace(powers, tuple(r / top for r in rates), float(top), float(top * ratios[0]))
