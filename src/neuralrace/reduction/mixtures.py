"""Random mixtures of the path statistics, without listing a single path.

Give every edge a random scalar and run the gated forward pass once for each gate class: T_ts(c) is
then a random combination of the gates g_p(c) of all paths from input s to output t. The data
weighted by it, Σ_c T_ts C_c^yx and Σ_c T_ts T_tr C_c^xx, are the same combinations of all Σ^yx(p)
and of all Σ^x(j,p). Enough such mixtures span the same space as the statistics of all paths, at a
cost that grows with the edges and gate classes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TypeAlias, final

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.statistics import ClassFactor
from neuralrace.tolerances import NOISE, SIZE_FLOOR
from neuralrace.types import Array, Matrix
from neuralrace.weights import by_edge

Pair = tuple[str, str]
"""The two nodes of a statistic."""

SPREAD = (0.5, 1.5)
"""Random positive weights are drawn from this interval, so that they have similar sizes."""

Steps: TypeAlias = Sequence[
    tuple[str, np.ndarray | None, Sequence[tuple[str, str, np.ndarray | None]]]
]
"""Every node with its gate, and its edges with their sources and gates, from the bottom up."""


def columns(gates: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """Gates as columns, one for each sample or one for each neuron of a node."""
    return {name: np.asarray(g, np.float64).reshape(len(g), -1) for name, g in gates.items()}


def steps_of(arch: Architecture, gates: Mapping[str, np.ndarray]) -> Steps:
    """What `forward` goes through; gates are `columns`."""
    ends = lambda node: [(arch.edges[e][0], e, gates.get(e)) for e in arch.incoming[node]]
    return [(v, gates.get(v), ends(v)) for v in arch.order if v not in arch.inputs]


def steps_back(arch: Architecture, gates: Mapping[str, np.ndarray]) -> Steps:
    """The same from the outputs to the inputs, every edge turned round."""
    ends = lambda node: [(arch.edges[e][1], e, gates.get(e)) for e in arch.outgoing[node]]
    return [(v, gates.get(v), ends(v)) for v in reversed(arch.order) if v not in arch.outputs]


def forward(
    steps: Steps, x: Mapping[str, np.ndarray], turned: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The activity of every node that some of these inputs reach: h_v = g_v Σ_e g_e h_s(e) W_eᵀ.

    `turned` are the transposed weights W_eᵀ, with leading axes or without; edges that it lacks do
    not count. Inputs come with their gates.
    """
    h = dict(x)
    for node, gate, incoming in steps:
        parts = [gated(h[s] @ turned[e], g) for s, e, g in incoming if s in h and e in turned]
        if parts:
            h[node] = gated(functools.reduce(np.add, parts), gate)
    return h


def gated(h: np.ndarray, gate: np.ndarray | None) -> np.ndarray:
    """The activity times its gate; None is always on."""
    return h if gate is None else h * gate


def edge_depths(arch: Architecture) -> dict[str, int]:
    """The number of edges before each edge on the longest path to it."""
    at = dict.fromkeys(arch.sizes, 0)
    for node in arch.order:
        for edge in arch.incoming[node]:
            at[node] = max(at[node], at[arch.edges[edge][0]] + 1)
    return {edge: at[source] for edge, (source, _) in arch.edges.items()}


def longest_path(arch: Architecture) -> int:
    """The number of edges on the longest path."""
    return max(edge_depths(arch).values(), default=0) + 1


def in_unit_sizes(factor: ClassFactor) -> ClassFactor:
    """The same data with every node and every gate divided by its size.

    Rescaling a whole node or a gate leaves all shared bases unchanged, so bases can be found in
    data without units. (Rescaling single *features* would change them: gradient flow is invariant
    under rotations of a node, but not under a rescaling of its features.)
    """

    def unit(a: np.ndarray) -> np.ndarray:
        largest = float(np.abs(a).max(initial=0.0))
        a = a / largest if largest else a
        return a / (float(np.linalg.norm(a)) or 1.0) if a.ndim == 2 else a

    fields = {field: getattr(factor, field).items() for field in ("x", "y", "gates")}
    return replace(factor, **{name: {v: unit(a) for v, a in f} for name, f in fields.items()})


Weighted = tuple[np.ndarray | slice, np.ndarray]
"""The rows of a factor with nonzero weight, and these weights."""


@final
@dataclass(frozen=True, eq=False)
class Draw:
    """One random mixture: T_ts(c) of every pair (t, s), and a positive weight of every output.

    It can be used with every mixer that has the classes of `factor`, in any basis.
    """

    sums: Mapping[Pair, Float[np.ndarray, " C"]]
    output_weight: Mapping[str, float]
    factor: ClassFactor

    @cached_property
    def yx(self) -> dict[Pair, Weighted]:
        """T_ts on the rows where it is not zero."""
        return {pair: rows_of(self.factor, T) for pair, T in self.sums.items()}

    @cached_property
    def xx(self) -> dict[Pair, Weighted]:
        """The `products` on the rows where they are not zero."""
        return {pair: rows_of(self.factor, T) for pair, T in self.products.items()}

    @cached_property
    def on(self) -> dict[str, Weighted]:
        """For every output, the rows on which some path to it is on."""
        found: dict[str, np.ndarray] = {}
        for (t, _), T in self.sums.items():
            found[t] = np.maximum(found[t], T != 0) if t in found else (T != 0).astype(float)
        return {t: rows_of(self.factor, T) for t, T in found.items()}

    @cached_property
    def products(self) -> dict[Pair, Float[np.ndarray, " C"]]:
        """Σ_t weight_t T_ts(c) T_tr(c) for every two inputs s ≤ r that meet at an output."""
        found: dict[Pair, np.ndarray] = {}
        by_output: dict[str, list[str]] = {}
        for t, s in self.sums:
            by_output.setdefault(t, []).append(s)
        for t, ends in by_output.items():
            ends = sorted(ends)
            on = np.array([self.sums[t, s] != 0 for s in ends], np.float32)
            for i, k in np.argwhere(np.triu(on @ on.T)):
                s, r = ends[i], ends[k]
                weight = self.output_weight[t] * self.sums[t, s] * self.sums[t, r]
                found[s, r] = found[s, r] + weight if (s, r) in found else weight
        return found


@final
@dataclass(frozen=True, eq=False)
class Mixer:
    """Draws mixtures of the statistics of a gated dataset; gates must be per node or edge."""

    arch: Architecture
    factor: ClassFactor

    def draw(self, rng: np.random.Generator) -> Draw:
        """A fresh mixture."""
        weight = {t: float(rng.uniform(*SPREAD)) for t in self.arch.outputs}
        return Draw(self.path_sums(self.scalars(rng)), weight, self.factor)

    def seen_in(self, basis: Mapping[str, Matrix]) -> Mixer:
        """A mixer of the same data in the directions that are the columns of `basis[v]`."""
        x, y = (
            {v: a @ basis[v] if v in basis else a for v, a in field.items()}
            for field in (self.factor.x, self.factor.y)
        )
        return Mixer(self.arch, replace(self.factor, x=x, y=y))

    def scalars(self, rng: np.random.Generator) -> dict[str, float]:
        """A random scalar for every edge, away from zero and nearer to ±1 where paths are long.

        The logarithms of products along paths then have mean 0 and a standard deviation of at most
        1/√3, however long a path is, so that no path is drawn too faintly.
        """
        edges = sorted(self.arch.edges)
        spread = 1 / np.sqrt(longest_path(self.arch))
        values = np.exp(rng.uniform(-spread, spread, len(edges)))
        signs = rng.choice([-1.0, 1.0], len(edges))
        return dict(zip(edges, (values * signs).tolist(), strict=True))

    def path_sums(self, scalars: Mapping[str, complex]) -> dict[Pair, np.ndarray]:
        """T_ts(c) = Σ_p g_p(c) Π_{e∈p} scalar_e over the paths from s to t: `{(t, s): (C,)}`."""
        matrices = {edge: np.array([[z]]) for edge, z in scalars.items() if z != 0}
        return {pair: T[:, 0] for pair, T in self.path_products(matrices, np.ones(1)).items()}

    def path_products(
        self, matrices: Mapping[str, np.ndarray], first: Float[np.ndarray, " k"]
    ) -> dict[Pair, np.ndarray]:
        """first · Σ_p g_p(c) Π_{e∈p} matrix_e over the paths from s to t: `{(t, s): (C, k)}`.

        The matrices commute, so that paths can be followed from the side that has fewer nodes.
        """
        gates, begun = columns(self.factor.gates), np.tile(first, (self.factor.count, 1))
        arch, found = self.arch, {}
        back = len(arch.outputs) < len(arch.inputs)
        begin, end = (arch.outputs, arch.inputs) if back else (arch.inputs, arch.outputs)
        steps = steps_back(arch, gates) if back else steps_of(arch, gates)
        for v in begin:
            h = forward(steps, {v: gated(begun, gates.get(v))}, matrices)
            reached = (u for u in end if u in h and h[u].any())
            found |= {(v, u) if back else (u, v): h[u] for u in reached}
        return found

    def yx(self, weighted: Mapping[Pair, Weighted]) -> dict[Pair, Matrix]:
        """Σ_c T_ts(c) C_c^yx for every pair of an output and an input."""
        x, y = self.factor.x, self.factor.y
        return {
            (t, s): (weight[:, None] * y[t][rows]).T @ x[s][rows]
            for (t, s), (rows, weight) in weighted.items()
        }

    def yx_of(self, scalars: Mapping[str, float]) -> dict[Pair, Matrix]:
        """Σ^yx summed over all paths, each with the product of its scalars."""
        sums = self.path_sums(scalars)
        return self.yx({pair: rows_of(self.factor, T) for pair, T in sums.items()})

    def xx(self, draw: Draw) -> dict[Pair, Matrix]:
        """Σ_c T_ts(c) T_tr(c) C_c^xx for inputs s ≤ r, mixed over the outputs t they share."""
        x = self.factor.x
        return {
            (s, r): (weight[:, None] * x[s][rows]).T @ x[r][rows]
            for (s, r), (rows, weight) in draw.xx.items()
        }

    @property
    def ends(self) -> tuple[str, ...]:
        """The nodes that have directions."""
        return (*self.arch.inputs, *self.arch.outputs)

    @property
    def variety(self) -> int:
        """How many draws may differ: with one gate class, all mixtures are the same."""
        return max(1, self.factor.count)

    def statistics(self, draw: Draw) -> list[tuple[Pair, Matrix]]:
        """Every statistic of a draw; those of a node with itself are symmetric and positive."""
        return [*self.yx(draw.yx).items(), *self.xx(draw).items()]

    def squares(self, draw: Draw) -> dict[str, np.ndarray]:
        """The mean square of every direction, as a draw shows it."""
        x, y = self.factor.x, self.factor.y
        found = {v: np.zeros(a.shape[1]) for v, a in x.items()}
        for s in self.arch.inputs:
            if (s, s) in draw.xx:
                rows, weight = draw.xx[s, s]
                found[s] = weight @ x[s][rows] ** 2
        return found | {t: (a**2).sum(axis=0) for t, a in y.items()}

    def couplings(self, draw: Draw) -> Iterator[tuple[Pair, Matrix, np.ndarray, np.ndarray]]:
        """Every statistic of a draw, between nodes a and b, with the sizes of what it couples.

        The size of an input direction is √⟨(T x_i)²⟩, that of an output direction √⟨y_j²⟩ where
        some path to it is on: in these units a statistic is a correlation, from −1 to 1.
        """
        x, y = self.factor.x, self.factor.y
        heard = {t: _sizes(weight @ y[t][rows] ** 2) for t, (rows, weight) in draw.on.items()}
        for (t, s), matrix in self.yx(draw.yx).items():
            rows, weight = draw.yx[t, s]
            yield (t, s), matrix, heard[t], _sizes(weight**2 @ x[s][rows] ** 2)
        seen = {
            s: _sizes(weight @ x[s][rows] ** 2)
            for (s, r), (rows, weight) in draw.xx.items()
            if s == r
        }
        for (s, r), matrix in self.xx(draw).items():
            yield (s, r), matrix, seen[s], seen[r]


@final
@dataclass(frozen=True, eq=False)
class TiedDraw:
    """One random mixture by classes of nodes: the matrices between every two, and all sizes."""

    matrices: Mapping[Pair, Matrix]


@final
@dataclass(frozen=True, eq=False)
class TiedMixer:
    """Draws mixtures of the statistics of a network with shared weights, class by class.

    Nodes whose edges share weights form a class (`Architecture.class_of`) and have one basis. The
    statistics from class X to class Y are then the Σ^yx(p) of *all* paths between their members;
    the Σ^x(j, p) between members of one class are operators on it that need not be symmetric. With
    z_tX = Σ_{s∈X} T_ts x_s, a mixture holds Σ_t y_tᵀ z_tX and Σ_t z_tXᵀ z'_tX', z and z' from two
    draws of the scalars.
    """

    nodes: Mixer
    basis: Mapping[str, Matrix] | None = None

    @property
    def arch(self) -> Architecture:
        return self.nodes.arch

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """The classes of inputs and outputs."""
        return tuple(dict.fromkeys(self.arch.class_of[v] for v in self.nodes.ends))

    @property
    def variety(self) -> int:
        return self.nodes.variety * len(self.nodes.ends) ** 2

    def seen_in(self, basis: Mapping[str, Matrix]) -> TiedMixer:
        """The same in the directions that are the columns of `basis[class]`."""
        mixer = TiedMixer(self.nodes, basis)
        vars(mixer)["shown"] = self.shown  # computed once
        return mixer

    @cached_property
    def shown(self) -> dict[str, Matrix]:
        """What each class shows where a path is on, all its members below one another, in few rows.

        Inputs and targets count.
        """
        factor, of = self.nodes.factor, self.arch.class_of
        sums = self.nodes.path_sums(self.nodes.scalars(np.random.default_rng(0)))
        found: dict[str, list[np.ndarray]] = {}
        for end, field in ((1, factor.x), (0, factor.y)):
            for v, values in field.items():
                on = np.zeros(factor.count, bool)
                for pair, T in sums.items():
                    on |= (T != 0) & (pair[end] == v)
                found.setdefault(of[v], []).append(values[on[factor.row_class]])
        every = {v: np.concatenate(parts) for v, parts in found.items()}
        return {v: few_rows(rows[rows.any(axis=1)]) for v, rows in every.items()}

    def draw(self, rng: np.random.Generator) -> TiedDraw:
        """A fresh mixture."""
        factor, of = self.nodes.factor, self.arch.class_of
        both = [self.nodes.path_sums(self.nodes.scalars(rng)) for _ in range(2)]
        found: dict[Pair, Matrix] = {}
        for t in self.arch.outputs:
            first, second = (self._mixed(sums, t) for sums in both)
            weight, other = rng.uniform(*SPREAD, 2)
            for X, z in first.items():
                pair = of[t], X
                found[pair] = found.get(pair, 0.0) + weight * factor.y[t].T @ z
            for (X, z), (other_X, z_other) in product(first.items(), second.items()):
                pair = X, other_X
                found[pair] = found.get(pair, 0.0) + other * z.T @ z_other
        return TiedDraw(found)

    def _mixed(self, sums: Mapping[Pair, np.ndarray], t: str) -> dict[str, np.ndarray]:
        """z_tX for every class X of inputs."""
        factor, found = self.nodes.factor, {}
        for s in self.arch.inputs:
            if (t, s) in sums:
                X = self.arch.class_of[s]
                part = sums[t, s][factor.row_class, None] * factor.x[s]
                found[X] = found[X] + part if X in found else part
        return found

    def _turned(self, pair: Pair, matrix: Matrix) -> Matrix:
        left, right = pair
        return matrix if self.basis is None else self.basis[left].T @ matrix @ self.basis[right]

    def couplings(self, draw: TiedDraw) -> Iterator[tuple[Pair, Matrix, np.ndarray, np.ndarray]]:
        """Every statistic of a draw, with the sizes of the directions it couples."""
        sizes = {v: _sizes(square) for v, square in self.squares(draw).items()}
        for pair, matrix in draw.matrices.items():
            yield pair, self._turned(pair, matrix), sizes[pair[0]], sizes[pair[1]]

    def statistics(self, draw: TiedDraw) -> list[tuple[Pair, Matrix]]:
        """Matrices that generate the same algebra; those on one class are symmetric and positive.

        An operator on a class is given as its symmetric part, shifted by a multiple of the
        identity, and the square of its antisymmetric part.
        """
        found = []
        for pair, matrix in draw.matrices.items():
            m = self._turned(pair, matrix)
            if pair[0] != pair[1]:
                found.append((pair, m))
                continue
            even, odd = (m + m.T) / 2, (m - m.T) / 2
            found.append((pair, even + np.linalg.norm(even) * np.eye(len(m))))
            if np.linalg.norm(odd) > NOISE * np.linalg.norm(m):
                found.append((pair, odd.T @ odd))
        return found

    def squares(self, draw: TiedDraw) -> dict[str, np.ndarray]:
        turn = self.basis or {}
        return {
            v: ((rows @ turn[v] if v in turn else rows) ** 2).sum(axis=0)
            for v, rows in self.shown.items()
        }


AnyMixer: TypeAlias = Mixer | TiedMixer
"""Mixtures by nodes, or by the classes of nodes that share weights."""


def mixer_of(arch: Architecture, factor: ClassFactor) -> AnyMixer:
    """What draws mixtures of the statistics of a network, with shared weights or without."""
    mixer = Mixer(arch, factor)
    return TiedMixer(mixer) if arch.ties or arch.frozen else mixer


def as_wide_as(arch: Architecture, weights: Mapping[str, np.ndarray]) -> Architecture:
    """The graph with nodes as wide as these weights, which may have leading axes."""
    width = {}
    for name, (source, target) in arch.matrix_ends.items():
        width[arch.class_of[target]], width[arch.class_of[source]] = weights[name].shape[-2:]
    return arch.with_sizes({v: width.get(arch.class_of[v], n) for v, n in arch.sizes.items()})


def of_edges(arch: Architecture, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The matrix of every edge (`weights.by_edge`); hidden nodes may be as wide as weights."""
    return by_edge(as_wide_as(arch, weights) if arch.frozen else arch, weights)


def through_class(
    arch: Architecture, factor: ClassFactor, node: str, inner: Mapping[str, complex]
) -> np.ndarray:
    """Σ^yx of the paths into a class of hidden nodes, along edges within it, and out again.

    Its rows are the matrices to outputs, side by side, and its columns those from inputs, in the
    order of `ways`; every path counts with the product of the scalars in `inner`, one for each
    matrix within the class, and of what is frozen there. It sums over all edges of a tie.
    """
    mixer, of = Mixer(arch, factor), arch.class_of
    frozen = {e: v for e, v in arch.frozen.items() if of[arch.edges[e][0]] == node}
    within = {e: inner.get(name, 0.0) for e, (name, _) in arch.matrix_of.items()} | frozen
    into, out = ways(arch, node)
    rows = []
    for after in out:
        row = []
        for before in into:
            on = dict.fromkeys(arch.edges, 0.0) | within
            on |= dict.fromkeys((e for e, m in arch.matrix_of.items() if m in (after, before)), 1.0)
            height, _ = turned_to(after, arch.shapes[after[0]])
            _, width = turned_to(before, arch.shapes[before[0]])
            total = np.zeros((height, width))
            for pair, T in mixer.path_sums(on).items():
                for unit, part in ((1.0, np.real(T)), (1j, np.imag(T))):
                    if part.any():
                        total = total + unit * mixer.yx({pair: rows_of(factor, part)})[pair]
            row.append(total)
        rows.append(row)
    return np.block(rows) if rows and rows[0] else np.zeros((0, 0))


Way: TypeAlias = tuple[str, bool]
"""A matrix, and whether it is taken transposed."""


def turned_to(way: Way, shape: tuple[int, int]) -> tuple[int, int]:
    """The shape of a matrix as a way takes it."""
    rows, columns = shape
    return (columns, rows) if way[1] else shape


def ways(arch: Architecture, node: str) -> tuple[list[Way], list[Way]]:
    """The matrices from inputs into a class of hidden nodes, and from it to outputs."""
    of = arch.class_of
    into: dict[Way, None] = {}
    out: dict[Way, None] = {}
    for edge, way in arch.matrix_of.items():
        s, t = arch.edges[edge]
        if s in arch.inputs and of[t] == node and t in arch.hidden:
            into[way] = None
        if t in arch.outputs and of[s] == node and s in arch.hidden:
            out[way] = None
    return list(into), list(out)


def few_rows(table: Matrix) -> Matrix:
    """The triangular factor of a table: ‖R z‖ = ‖table z‖ for every z, with as few rows as columns.

    It is computed group by group of rows, so that a tall table needs little memory.
    """
    rows, columns = table.shape
    if rows <= columns:
        return table
    found = table[:0]
    step = max(columns, TALL)
    for low in range(0, rows, step):
        found = np.linalg.qr(np.concatenate([found, table[low : low + step]])).R
    return found


TALL = 4096
"""Rows that `few_rows` factorises at once."""


def _sizes(squares: np.ndarray) -> np.ndarray:
    """The size of every direction, given its mean square, and never less than `SIZE_FLOOR`."""
    found = np.sqrt(squares + SIZE_FLOOR**2 * squares.sum())
    return np.where(found > 0, found, 1.0)


def rows_of(factor: ClassFactor, by_class: np.ndarray) -> Weighted:
    """The rows of the classes where this is not zero, and its value on each."""
    on = np.flatnonzero(by_class)
    if len(on) == len(by_class):
        return slice(None), by_class[factor.row_class]
    start = factor.start
    counts = start[on + 1] - start[on]
    skipped = start[on] - np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.arange(counts.sum()) + np.repeat(skipped, counts), np.repeat(by_class[on], counts)
