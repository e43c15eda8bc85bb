"""The race of a scalar block, written out: one polynomial equation for each edge.

τ dB_e/dt = Σ_{p∋e} B_{p∖e} [ S(p) − Σ_j B_j D(j,p) ]   (NRR Eq. 10)

with one number B_e for every edge, and B_p their product along a path. Only paths that are on for
some sample take part. The vector field and the loss are polynomials; `merging` merges variables
that stay equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.dataset import Dataset
from neuralrace.reduction.block import Block
from neuralrace.reduction.mixtures import few_rows
from neuralrace.statistics import PathGroup, PathStatistics, factored_statistics, split_neurons
from neuralrace.tolerances import DEPENDENT, EXACT

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MAX_PATHS = 20_000
"""Blocks with more paths than this are solved as networks instead."""


ALIKE = 12
"""Coefficients of equations that agree to this many digits are equal."""


@final
@dataclass(frozen=True, eq=False)
class ScalarRace:
    """S(p) and D(j,p) of a scalar block, by group of paths with equal ends and gates.

    `paths[i]` lists the matrices on path i (indices into `edges`, padded with −1; a tie as often as
    it is passed), `factor[i]` is the product of what is frozen on it, `group[i]` its group; `S` has
    shape `(G,)` and `D` is a sparse `(G, G)` matrix, zero between groups that end at different
    outputs. The loss is ½‖targets − shown · B‖² with B_g the sum over the paths of group g: `shown`
    is a sparse `(R, G)` matrix of what each row of the factored data shows to each group. A
    variable is the weight of its edge times the edge's entry of `signs`, so that edges that differ
    by a sign can be merged.
    """

    edges: tuple[str, ...]
    paths: Int[np.ndarray, "P L"]
    group: Int[np.ndarray, " P"]
    factor: Float[np.ndarray, " P"]
    S: Float[np.ndarray, " G"]
    D: csr_matrix
    shown: csr_matrix
    targets: Float[np.ndarray, " R"]
    signs: Float[np.ndarray, " E"]

    def velocity(self, b: Float[np.ndarray, " E"]) -> Float[np.ndarray, " E"]:
        """db_e/dt of every edge (NRR Eq. 10 with τ = 1)."""
        return self.signs * self._push(self.signs * b, self.S, -self.D)

    def size(self, b: Float[np.ndarray, " E"]) -> Float[np.ndarray, " E"]:
        """The sum of the sizes of all terms of `velocity`, the reference for its rounding error."""
        positive = replace(self, factor=np.abs(self.factor))
        return positive._push(np.abs(b), np.abs(self.S), abs(self.D))

    def _push(self, b: np.ndarray, S: np.ndarray, D: csr_matrix) -> np.ndarray:
        """Σ_{p∋e} B_{p∖e} [ S(p) + Σ_j B_j D(j,p) ] of every edge."""
        values = np.append(b, 1.0)[self.paths]
        before = np.cumprod(np.concatenate([np.ones((len(values), 1)), values[:, :-1]], 1), 1)
        after = np.cumprod(np.concatenate([np.ones((len(values), 1)), values[:, :0:-1]], 1), 1)
        others = self.factor[:, None] * before * after[:, ::-1]
        total = np.bincount(self.group, self.factor * values.prod(axis=1), minlength=len(self.S))
        error = (S + D @ total)[self.group]
        used = self.paths >= 0
        push = (others * error[:, None])[used]
        return np.bincount(self.paths[used], push, minlength=len(self.edges))


def block_statistics(block: Block) -> PathStatistics:
    """The path statistics of a block, from its factored data."""

    def made() -> PathStatistics:
        return factored_statistics(
            split_neurons(block.arch, block.data), block.factor, limit=MAX_PATHS
        )

    return block.cached("statistics", made)


def scalar_race(block: Block) -> ScalarRace:
    """The coefficients of a scalar block's equations.

    A statistic that is rounding, relative to the sizes of the directions it joins, is set to zero.
    """
    return block.cached("scalar race", lambda: _scalar_race(block))


def _scalar_race(block: Block) -> ScalarRace:
    from scipy.sparse import csr_matrix

    stats = block_statistics(block)
    on = [group for group in stats.groups if len(group.classes)]
    edges, frozen = tuple(block.arch.matrices), block.arch.frozen
    place = {name: i for i, name in enumerate(edges)}
    index = {edge: place[name] for edge, (name, _) in block.arch.matrix_of.items()}
    listed = [path for group in on for path in group.paths]
    learned = [[index[e] for e in path.edges if e in index] for path in listed]
    paths = np.full((len(listed), max(map(len, learned))), -1)
    for i, row in enumerate(learned):
        paths[i, : len(row)] = row
    factor = np.array([prod(frozen.get(e, 1.0) for e in path.edges) for path in listed])
    group = np.repeat(np.arange(len(on)), [len(g.paths) for g in on])
    S = np.array([stats.yx[g.paths[0]][0, 0] for g in on])
    seen_by = np.sqrt([stats.x[g.paths[0], g.paths[0]][0, 0] for g in on])
    heard = {t: float(np.linalg.norm(y)) for t, y in block.factor.y.items()}
    S[np.abs(S) <= DEPENDENT * seen_by * [heard[g.target] for g in on]] = 0.0
    rows, columns, values = [], [], []
    seen: dict[tuple[str, int], list[int]] = {}
    for i, g in enumerate(on):
        for c in g.classes:
            seen.setdefault((g.target, int(c)), []).append(i)
    pairs = {(i, k) for together in seen.values() for i in together for k in together}
    for i, k in sorted(pairs):
        value = stats.x[on[i].paths[0], on[k].paths[0]][0, 0]
        if abs(value) > DEPENDENT * seen_by[i] * seen_by[k]:
            rows.append(i)
            columns.append(k)
            values.append(value)
    D = csr_matrix((values, (rows, columns)), shape=(len(on), len(on)))
    shown, targets = _rows_shown(block, stats, on)
    signs = np.ones(len(edges))
    return ScalarRace(edges, paths, group, factor, S, D, shown, targets, signs)


def _rows_shown(
    block: Block, stats: PathStatistics, groups: Sequence[PathGroup]
) -> tuple[csr_matrix, Float[np.ndarray, " R"]]:
    """What every row of the factored data shows to each group, and the target of the row.

    The rows of all outputs are stacked.
    """
    from scipy.sparse import csr_matrix

    factor, outputs = block.factor, block.arch.outputs
    count = len(factor.row_class)
    first = {t: i * count for i, t in enumerate(outputs)}
    rows, columns, values = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]
    for k, group in enumerate(groups):
        on, gate = stats.rows(group)
        rows.append(first[group.target] + on)
        columns.append(np.full(len(on), k))
        values.append(gate * factor.x[group.source][on, 0])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    shown = csr_matrix(entries, shape=(count * len(outputs), len(groups)))
    return shown, np.concatenate([factor.y[t][:, 0] for t in outputs])


@final
@dataclass(frozen=True, eq=False)
class PolynomialSystem:
    """db_k/dt = Σ_m velocity[k, m] Π_l b_l^powers[m, l], errors likewise; the loss is ½‖errors‖².

    A sum of squares stays accurate where the loss is nearly zero. `parts[k]` says what variable k
    stands for: the weights of edge e are Σ_k b_k parts[k][e]. `powers` has shape `(m, K)`,
    `velocity` `(K, m)` and `errors` `(r, m)`.
    """

    parts: tuple[Mapping[str, np.ndarray], ...]
    powers: Int[np.ndarray, "m K"]
    velocity: Float[np.ndarray, "K m"]
    errors: Float[np.ndarray, "r m"]

    def expanded(self, values: Float[np.ndarray, "*T K"]) -> dict[str, np.ndarray]:
        """The weights of every edge, `(*T, |t|, |s|)`, given the variables along the last axis."""
        found: dict[str, np.ndarray] = {}
        for k, part in enumerate(self.parts):
            for edge, matrix in part.items():
                own = values[..., k, None, None]
                own = own if matrix.size == 1 and matrix[0, 0] == 1 else own * matrix
                found[edge] = found[edge] + own if edge in found else own
        return found

    @cached_property
    def _exponents(self) -> Float[np.ndarray, "m K"]:
        return self.powers.astype(float)

    @cached_property
    def digits(self) -> tuple[object, ...]:
        """What equal equations share, whatever their names: coefficients to `ALIKE` digits.

        Only signs of errors may differ: the loss is the sum of their squares.
        """
        largest = np.abs(self.errors).argmax(axis=1)[:, None]
        signs = np.where(np.take_along_axis(self.errors, largest, 1) < 0, -1.0, 1.0)
        velocity = _rounded(self.velocity, np.abs(self.velocity))
        errors = _rounded(signs * self.errors, np.abs(self.errors).max(initial=0.0))
        return self.powers.shape, self.powers.tobytes(), velocity, errors

    def velocity_at(self, b: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
        """db/dt at one point."""
        return self.velocity @ np.multiply.reduce(b**self._exponents, axis=1)

    def loss_at(self, b: Float[np.ndarray, "*T K"]) -> np.ndarray | np.floating:
        """The loss of the block at one point or several."""
        errors = np.prod(b[..., None, :] ** self._exponents, axis=-1) @ self.errors.T
        return (errors**2).sum(axis=-1) / 2


def _rounded(array: np.ndarray, size: np.ndarray | np.floating) -> bytes:
    """An array to `ALIKE` digits of numbers of this size."""
    places = ALIKE - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    return (np.round(array * up / down) * down / up + 0.0).tobytes()  # no −0


def merged_system(race: ScalarRace, classes: Sequence[Sequence[int]]) -> PolynomialSystem:
    """The equations in one variable per class of edges that stay equal."""
    K = len(classes)
    of = np.full(len(race.edges) + 1, K)  # the last is padding
    for k, members in enumerate(classes):
        of[list(members)] = k
    each = np.stack([np.bincount(of[path], minlength=K + 1)[:K] for path in race.paths])
    powers, column = np.unique(each, axis=0, return_inverse=True)
    groups = np.zeros((len(race.S), len(powers)))
    signs = race.factor * np.prod(np.append(race.signs, 1.0)[race.paths], axis=1)
    np.add.at(groups, (race.group, column.reshape(-1)), signs)
    errors = few_rows(np.column_stack([race.targets, -(race.shown @ groups)]))
    parts = tuple(
        {race.edges[i]: np.full((1, 1), race.signs[i]) for i in members} for members in classes
    )
    return gradient_system(parts, np.concatenate([np.zeros((1, K), int), powers]), errors)


def gradient_system(
    parts: tuple[Mapping[str, np.ndarray], ...],
    powers: Int[np.ndarray, "m K"],
    errors: Float[np.ndarray, "r m"],
) -> PolynomialSystem:
    """The gradient flow of the weights Σ_k b_k parts[k], for the loss L = ½‖errors‖².

    db/dt = −G⁻¹ ∂L/∂b with the inner products G of the parts. A coefficient is rounding, and zero,
    where it is small beside the sizes of the two columns of errors whose product it is.
    """
    K, size = powers.shape[1], np.linalg.norm(errors, axis=0)
    products = errors.T @ errors
    products[np.abs(products) <= DEPENDENT * np.outer(size, size)] = 0.0
    i, j = np.nonzero(np.triu(products))
    each, degrees = np.where(i == j, 0.5, 1.0) * products[i, j], powers[i] + powers[j]
    pair, k = np.nonzero(degrees)
    lower = degrees[pair] - np.eye(K, dtype=int)[k]  # the powers of ∂L/∂b_k
    table, place = np.unique(np.concatenate([powers, lower]), axis=0, return_inverse=True)
    own, at = np.split(place.reshape(-1), [len(powers)])
    slopes, wide = np.zeros((K, len(table))), np.zeros((len(errors), len(table)))
    np.add.at(slopes, (k, at), each[pair] * degrees[pair, k])
    for column, values in zip(own, errors.T, strict=True):
        wide[:, column] += values
    velocity = -np.linalg.solve(inner_products(parts), slopes)
    keep = (velocity != 0).any(axis=0) | (wide != 0).any(axis=0)
    return PolynomialSystem(parts, table[keep], velocity[:, keep], wide[:, keep])


@final
@dataclass(frozen=True, eq=False)
class PathForm:
    """The same equations by what is left to learn on each group of paths (NRR Eq. 10).

        db_k/dt = Σ_g (∂T_g/∂b_k) E_g,   E_g = S_g − Σ_h D_gh T_h,   T_g = Σ_{p∈g} count_p M_p

    with the products M_p = Π_l b_l^powers[p, l]. Paths of one group share their statistics: S_g is
    Σ^yx of one of them, and D_gh is Σ^x between one of g and one of h. `group[p]` is the group of
    product p, `count[p]` how many of its paths there are, with their sign. Where parts of the
    weights overlap or stand for several edges, `mix` turns the slopes by their inner products:
    db/dt = mix · slopes. The loss is `targets` − Σ_g S_g T_g + ½ Σ_gh D_gh T_g T_h.
    """

    powers: Int[np.ndarray, "P K"]
    group: Int[np.ndarray, " P"]
    count: Float[np.ndarray, " P"]
    S: Float[np.ndarray, " G"]
    D: Float[np.ndarray, "G G"]
    mix: Float[np.ndarray, "K K"]
    targets: float


def path_form(
    system: PolynomialSystem, counts: Mapping[tuple[int, ...], int], *, faint: float = DEPENDENT
) -> PathForm:
    """The equations of a system by groups of paths.

    `counts` says how many paths each product of variables stands for; without it, one. Statistics
    below `faint`, relative to the sizes of the two that they join, are zero.
    """
    still = ~system.powers.any(axis=1)
    target = system.errors[:, still].sum(axis=1)
    moving = np.flatnonzero(~still & system.errors.any(axis=0))[::-1]  # B1 first
    group, count, shared = [], [], []
    share = lambda seen, other: float(seen @ other / (other @ other))
    for m in moving:
        paths = counts.get(tuple(system.powers[m].tolist()), 1)
        seen = system.errors[:, m] / paths
        apart = [np.linalg.norm(seen - share(seen, other) * other) for other in shared]
        alike = np.flatnonzero(apart <= EXACT * np.linalg.norm(seen)).tolist()
        group.append(alike[0] if alike else len(shared))
        if not alike:
            shared.append(seen)
        count.append(paths * share(seen, shared[group[-1]]))
    all_seen = np.array(shared).reshape(len(shared), len(target))
    size = np.linalg.norm(all_seen, axis=1)
    S, D = -all_seen @ target, all_seen @ all_seen.T
    S[np.abs(S) <= faint * size * np.linalg.norm(target)] = 0.0
    D[np.abs(D) <= faint * np.outer(size, size)] = 0.0
    mix = np.linalg.inv(inner_products(system.parts))
    mix[is_noise(mix)] = 0.0
    return PathForm(
        system.powers[moving],
        np.array(group, int),
        np.array(count, float),
        S,
        D,
        mix,
        float(target @ target) / 2,
    )


def inner_products(parts: Sequence[Mapping[str, np.ndarray]]) -> Float[np.ndarray, "K K"]:
    """The inner products of the parts of a system, as weights of the whole network."""
    rows = [[sum(float((p[e] * q[e]).sum()) for e in p if e in q) for q in parts] for p in parts]
    return np.array(rows)


def natural_unit(system: PolynomialSystem) -> float:
    """The size of the variables at which drive and brake of the longest paths balance.

    On paths of D edges drives have the degree D − 1 and brakes 2D − 1. With the variables in this
    unit, all coefficients have the same unit, and their sizes can be compared.
    """
    degree = system.powers.sum(axis=1)
    moving = (system.velocity != 0).any(axis=0)
    depth = (int(degree[moving].max(initial=1)) + 1) // 2
    largest = lambda n: float(np.abs(system.velocity[:, degree == n]).max(initial=0.0))
    drive, brake = largest(depth - 1), largest(2 * depth - 1)
    return (drive / brake) ** (1 / depth) if drive and brake else 1.0


def is_noise(rows: Float[np.ndarray, "n m"]) -> Bool[np.ndarray, "n m"]:
    """Which coefficients, in natural units, are rounding compared with the largest of their row."""
    sizes = np.abs(rows)
    return sizes <= EXACT * sizes.max(axis=1, keepdims=True, initial=0.0)


def without_noise(system: PolynomialSystem) -> PolynomialSystem:
    """The equations without terms that are rounding; the loss is unchanged."""
    unit = natural_unit(system) ** system.powers.sum(axis=1).astype(float)
    velocity, errors = (
        np.where(is_noise(system.velocity * unit), 0.0, system.velocity),
        system.errors,
    )
    keep = (velocity != 0).any(axis=0) | (errors != 0).any(axis=0)
    return PolynomialSystem(system.parts, system.powers[keep], velocity[:, keep], errors[:, keep])


def drive_when_on(block: Block, data: Dataset) -> float | None:
    """Σ^yx(p) / Pr(g_p = 1), the drive of a path given that it is on (NRR Eq. 40).

    None unless the block is scalar, all its paths have the same drive, gates are 0 or 1, and no two
    paths overlap: Σ^x(j,p) is zero for j ≠ p.
    """
    if not block.is_scalar or block.arch.path_count() > MAX_PATHS:
        return None
    race = scalar_race(block)
    overlap = race.D.nnz > np.count_nonzero(race.D.diagonal())
    if overlap or len(race.paths) > len(race.S):
        return None
    classes = data.gate_classes()
    if any(((g != 0) & (g != 1)).any() for g in classes.gates.values()):
        return None
    stats = block_statistics(block)
    found = []
    for group in stats.groups:
        if len(group.classes):
            path = group.paths[0]
            nodes = [path.source, *(block.arch.edges[e][1] for e in path.edges)]
            on = np.ones(len(classes), bool)
            for name in (*nodes, *path.edges):
                on &= classes.gates.get(name, np.ones(len(classes))) != 0
            found.append(float(stats.yx[path][0, 0]) / float(classes.weight[on].sum()))
    return found[0] if np.ptp(found) <= EXACT * abs(found[0]) else None
