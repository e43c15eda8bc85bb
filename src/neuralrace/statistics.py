"""What learning sees of the data: Σ^yx(p) and Σ^x(j,p), and the gradient flow through them.

NRR Eqs. 2–6, MHS Eqs. 3–4. Everything here is float64 NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.architecture import Architecture, Path
from neuralrace.checks import check_known
from neuralrace.dataset import Dataset, GateClasses, check_moments, matched
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.gdln import checked_weights

__all__ = [
    "PathGroup",
    "PathStatistics",
    "path_statistics",
]

Matrix = Float[np.ndarray, "_ _"]


@final
@dataclass(frozen=True)
class SplitNetwork:
    """A network in which every gate acts on whole nodes, with the way there and back.

    Neurons of a node that share their gate on every sample form a node of their own; `parts[v]`
    lists, for each part of node v, its name and the neurons it holds; `pieces[e]` names the edges
    that edge e became, the parts of its source first.
    """

    arch: Architecture
    data: Dataset
    whole: Architecture
    parts: Mapping[str, tuple[tuple[str, np.ndarray], ...]]
    pieces: Mapping[str, tuple[str, ...]]

    def split(self, weights: Mapping[str, Any]) -> dict[str, Matrix]:
        """The weights of the parts, cut out of those of the whole network."""
        arrays = {e: np.asarray(w, np.float64) for e, w in weights.items()}
        return {name: arrays[edge][block] for name, edge, block in self.blocks()}

    def join(self, weights: Mapping[str, Any]) -> dict[str, Matrix]:
        """The weights of the whole network, put together from those of its parts."""
        joined = {
            e: np.zeros((self.whole.sizes[t], self.whole.sizes[s]))
            for e, (s, t) in self.whole.edges.items()
        }
        for name, edge, block in self.blocks():
            joined[edge][block] = np.asarray(weights[name], np.float64)
        return joined

    def blocks(self) -> Iterator[tuple[str, str, tuple[np.ndarray, ...]]]:
        """(edge of the parts, edge of the whole, rows and columns it occupies there)."""
        for edge, (source, target) in self.whole.edges.items():
            ends = [(s, t) for s in self.parts[source] for t in self.parts[target]]
            for name, ((_, columns), (_, rows)) in zip(self.pieces[edge], ends, strict=True):
                yield name, edge, np.ix_(rows, columns)


def split_neurons(arch: Architecture, data: Dataset) -> SplitNetwork:
    """Split nodes whose neurons have gates of their own into groups of equally gated neurons.

    The result computes and learns exactly what the original does. Nodes without gates a neuron
    keep their names; others become `h_1`, `h_2`, ….

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> from neuralrace.statistics import split_neurons
    >>> arch = nr.Architecture.chain(2, 3, 1)
    >>> gates = {"h": np.array([[1, 0, 1], [0, 1, 0]])}
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": [[1.0], [2.0]]}, gates=gates)
    >>> dict(split_neurons(arch, data).arch.sizes)
    {'x': 2, 'h_1': 1, 'h_2': 2, 'y': 1}

    ```
    """
    data = matched(arch, data)
    check_moments(data)
    taken = {*arch.sizes, *arch.edges}
    parts: dict[str, tuple[tuple[str, np.ndarray], ...]] = {}
    gates: dict[str, np.ndarray] = {}
    x, y = ({v: np.asarray(a, np.float64) for v, a in field.items()} for field in (data.x, data.y))
    for node, size in arch.sizes.items():
        gate = np.asarray(data.gates.get(node, 1.0), np.float64)
        if gate.ndim < 2:
            parts[node] = ((node, np.arange(size)),)
            gates |= {node: gate} if node in data.gates else {}
            continue
        columns, inverse = np.unique(gate, axis=1, return_inverse=True)
        names = _part_names(node, columns.shape[1], taken)
        members = [np.flatnonzero(inverse == k) for k in range(len(names))]
        parts[node] = tuple(zip(names, members, strict=True))
        gates |= dict(zip(names, columns.T, strict=True))
        for field in (x, y):
            if node in field:
                whole = field.pop(node)
                field |= {name: whole[:, m] for name, m in parts[node]}
    gates |= {e: np.asarray(data.gates[e], np.float64) for e in arch.edges if e in data.gates}
    edges: dict[str, tuple[str, str]] = {}
    pieces: dict[str, tuple[str, ...]] = {}
    for edge, (source, target) in arch.edges.items():
        ends = [(s, t) for s, _ in parts[source] for t, _ in parts[target]]
        pieces[edge] = _part_names(edge, len(ends), taken)
        edges |= dict(zip(pieces[edge], ends, strict=True))
        if edge in gates:
            gates |= dict.fromkeys(pieces[edge], gates.pop(edge))
    sizes = {name: len(members) for v in arch.sizes for name, members in parts[v]}
    split = Dataset(x, y, gates, data.sample_weight, data.labels)
    return SplitNetwork(Architecture(sizes, edges), split, arch, parts, pieces)


def _part_names(name: str, count: int, taken: set[str]) -> tuple[str, ...]:
    """Names for the parts of a node or edge, none of them taken: `h_1`, or `h__1` and so on."""
    if count == 1:
        return (name,)
    stem = name + "_"
    while any(f"{stem}{k + 1}" in taken for k in range(count)):
        stem += "_"
    names = tuple(f"{stem}{k + 1}" for k in range(count))
    taken |= set(names)
    return names


@final
@dataclass(frozen=True)
class ClassFactor:
    """The data, class by class of equal gates, with as few rows as tell all there is to know.

    Row r belongs to gate class `row_class[r]` and already carries the root of its weight, so that
    Σ_r y_r x_rᵀ over the rows of a class is the class's share of ⟨y xᵀ⟩. A class of n samples
    with d input features in all keeps min(n, d) rows: the triangular factor R of the QR
    decomposition of its weighted inputs, with targets Qᵀy. What that leaves of the targets,
    Σ‖y − QQᵀy‖², is `left`: no input reaches it.
    """

    row_class: Int[np.ndarray, " R"]
    start: Int[np.ndarray, " C_plus_1"]
    x: Mapping[str, Float[np.ndarray, "R _"]]
    y: Mapping[str, Float[np.ndarray, "R _"]]
    gates: Mapping[str, Float[np.ndarray, " C"]]
    left: float = 0.0

    @property
    def count(self) -> int:
        """The number of gate classes."""
        return len(self.start) - 1


def class_factor(data: Dataset) -> ClassFactor:
    """Sort samples into gate classes and keep a factor of each; gates must be per node or edge.

    Inputs that their own gate switches off count as zero.
    """
    classes = data.gate_classes()
    narrow = classes.index.astype(np.min_scalar_type(len(classes)))  # small integers sort quicker
    order = np.argsort(narrow, kind="stable")
    index = classes.index[order]
    bounds = np.searchsorted(index, np.arange(len(classes) + 1))
    sizes = np.diff(bounds)
    rows = _Rows(data, classes)
    large = sizes > rows.features
    small = order[~large[index]] if large.any() else order
    x, y = rows(small)
    start = np.concatenate([[0], np.cumsum(np.where(large, 0, sizes))])
    shown = np.zeros((len(classes), rows.features), bool)  # features a small class shows at all
    if len(small):
        shown[~large] = np.add.reduceat(x != 0, start[:-1][~large], axis=0) > 0
    left = 0.0
    kept = np.minimum(sizes, shown.sum(axis=1))
    if (kept < sizes).any():
        parts = []
        for c, (low, high) in enumerate(pairwise(bounds)):
            if large[c]:
                parts.append(_streamed(rows, order[low:high]))
            else:
                at = slice(start[c], start[c + 1])
                parts.append(_fewest_rows(x[at], y[at], shown[c]))
        x, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        kept = np.array([len(part[0]) for part in parts])
        left = sum(part[2] for part in parts)
    start = np.concatenate([[0], np.cumsum(kept)])
    row_class = np.repeat(np.arange(len(classes)), kept)
    return ClassFactor(
        row_class, start, _columns(x, data.x), _columns(y, data.y), classes.gates, left
    )


def restricted(
    factor: ClassFactor,
    arch: Architecture,
    on: Bool[np.ndarray, " C"] | None = None,
    basis: Mapping[str, Matrix] | None = None,
) -> ClassFactor:
    """The factor as a part of the network sees it: some classes, nodes and directions of nodes.

    `arch` is the graph of the part, `on` the gate classes it sees and `basis[v]` holds, in its
    columns, the directions of node v; without them it sees all. Classes that have the same gates
    in the part are joined, so that there are again as few rows as tell all there is to know.
    """
    on = np.ones(factor.count, bool) if on is None else on
    gates = {
        name: g[on] for name, g in factor.gates.items() if name in arch.sizes or name in arch.edges
    }
    table = np.stack([np.zeros(int(on.sum())), *gates.values()], axis=1) + 0.0  # −0 → 0
    _, first, joined = np.unique(table, axis=0, return_index=True, return_inverse=True)
    rows = on[factor.row_class]
    index = joined.reshape(-1)[(np.cumsum(on) - 1)[factor.row_class[rows]]]

    def seen(field: Mapping[str, Matrix], nodes: tuple[str, ...]) -> dict[str, Matrix]:
        turn = basis or {}
        return {v: field[v][rows] @ turn[v] if v in turn else field[v][rows] for v in nodes}

    x, y = seen(factor.x, arch.inputs), seen(factor.y, arch.outputs)
    return _condensed(index, x, y, {name: g[first] for name, g in gates.items()}, len(first))


def _condensed(
    index: Int[np.ndarray, " N"],
    x: Mapping[str, Matrix],
    y: Mapping[str, Matrix],
    gates: Mapping[str, Float[np.ndarray, " C"]],
    count: int,
) -> ClassFactor:
    """Rows, already weighted, sorted into their classes, as few of each as tell all."""
    order = np.argsort(index, kind="stable")
    index = index[order]
    x, y = ({v: a[order] for v, a in field.items()} for field in (x, y))
    bounds = np.searchsorted(index, np.arange(count + 1))
    x_all, y_all = (np.concatenate(list(field.values()), axis=1) for field in (x, y))
    filled = np.diff(bounds) > 0
    shown = np.zeros((count, x_all.shape[1]), bool)  # features that a class shows at all
    if filled.any():
        shown[filled] = np.add.reduceat(x_all != 0, bounds[:-1][filled], axis=0) > 0
    kept = np.minimum(np.diff(bounds), shown.sum(axis=1))
    left = 0.0
    if (kept < np.diff(bounds)).any():
        parts = [
            _fewest_rows(x_all[low:high], y_all[low:high], shown[c])
            for c, (low, high) in enumerate(pairwise(bounds))
        ]
        x_all, y_all = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        left = sum(part[2] for part in parts)
        x, y = _columns(x_all, x), _columns(y_all, y)
    start = np.concatenate([[0], np.cumsum(kept)])
    return ClassFactor(np.repeat(np.arange(count), kept), start, x, y, gates, left)


class _Rows:
    """Weighted inputs and targets of some samples, all nodes side by side."""

    def __init__(self, data: Dataset, classes: GateClasses) -> None:
        self.x, self.y = ([np.asarray(a) for a in f.values()] for f in (data.x, data.y))
        self.root = np.sqrt(np.asarray(data.probability, np.float64))
        self.off = {v: np.asarray(classes.gates[v]) == 0 for v in data.x if v in classes.gates}
        self.index, self.names = classes.index, list(data.x)
        self.features = sum(a.shape[1] for a in self.x)

    def __call__(self, samples: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        root = self.root[samples, None]
        x = [a[samples] * root for a in self.x]
        for i, v in enumerate(self.names):
            if v in self.off:
                x[i] = np.where(self.off[v][self.index[samples]][:, None], 0.0, x[i])
        y = [a[samples] * root for a in self.y]
        return tuple(f[0] if len(f) == 1 else np.concatenate(f, axis=1) for f in (x, y))  # pyright: ignore[reportReturnType]


BLOCK = 2048
"""Samples whose inputs and targets are factorised at once: few enough for the processor's cache."""


def _streamed(rows: _Rows, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """What `_fewest_rows` gives for a class of many samples, block after block.

    The factors of all blocks, one below the other, are factorised in turn (the QR decomposition
    of tall matrices): each step is orthogonal, so that nothing is lost, and every sample is read
    once.
    """
    left, shown, size = 0.0, np.zeros(rows.features, bool), 0.0
    triangles, targets = [], []
    step = max(BLOCK, 4 * rows.features)
    for low in range(0, len(samples), step):
        some = samples[low : low + step]
        together = some[-1] - some[0] == len(some) - 1  # they are sorted
        x, y = rows(slice(some[0], some[-1] + 1) if together else some)
        shown |= (x != 0).any(axis=0)
        size += (y**2).sum(axis=0)
        q, r = np.linalg.qr(x)
        seen = q.T @ y
        y -= q @ seen
        left += float(np.vdot(y, y))
        triangles.append(r)
        targets.append(seen)
    x, y, rest = _fewest_rows(np.concatenate(triangles), np.concatenate(targets), shown)
    y[:, _is_rounding(y, len(samples), np.sqrt(size))] = 0.0
    return x, y, left + rest


def _fewest_rows(
    x: np.ndarray, y: np.ndarray, shown: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The rows of R, targets Qᵀy and what is left of them, if a class has more samples than it
    shows features."""
    if len(x) <= shown.sum():
        return x, y, 0.0
    q, r = np.linalg.qr(x[:, shown])
    wide = np.zeros((len(r), x.shape[1]))
    wide[:, shown] = r
    seen = q.T @ y
    seen[:, _is_rounding(seen, len(y), np.linalg.norm(y, axis=0))] = 0.0
    return wide, seen, float(((y - q @ seen) ** 2).sum())


def _is_rounding(
    seen: np.ndarray, samples: int, size: Float[np.ndarray, " targets"]
) -> Bool[np.ndarray, " targets"]:
    """Which targets of this size the inputs see nothing of but rounding errors."""
    rounding = 10 * np.finfo(float).eps * np.sqrt(samples) * size
    return np.linalg.norm(seen, axis=0) <= rounding


def _columns(table: np.ndarray, like: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Cut a table into the columns of each node."""
    cuts = np.cumsum([a.shape[1] for a in like.values()])[:-1]
    return dict(zip(like, np.split(table, cuts, axis=1), strict=True))


@final
@dataclass(frozen=True)
class PathGroup:
    """Paths with equal ends and equal gates: learning sees one Σ^yx for all of them.

    `classes` are the gate classes on which these paths are on and `gates` their g_p there; a
    group that is never on has none.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [2.0]]})
    >>> arch, data = nr.pathways(data, {"a": [1, 0], "b": [1, 0], "c": None}, hidden=4)
    >>> [len(group.paths) for group in nr.path_statistics(arch, data).groups]
    [2, 1]

    ```
    """

    paths: tuple[Path, ...]
    source: str
    target: str
    classes: Int[np.ndarray, " k"]
    gates: Float[np.ndarray, " k"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class PathStatistics:
    """The statistics of every path, made when they are asked for; see `path_statistics`.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [3.0]]}, {"y": [[2.0], [4.0]]})
    >>> stats = nr.path_statistics(nr.Architecture.chain(1, 8, 1), data)
    >>> (path,) = stats.paths
    >>> stats.yx[path].round(6), stats.x[path, path].round(6)
    (array([[7.]]), array([[5.]]))
    >>> stats
    PathStatistics(paths: 1, in groups of equal ends and gates: 1, gate classes: 1)

    ```
    """

    whole: SplitNetwork
    factor: ClassFactor
    groups: tuple[PathGroup, ...]

    def __repr__(self) -> str:
        paths, groups = sum(len(group.paths) for group in self.groups), len(self.groups)
        return (
            f"PathStatistics(paths: {paths}, in groups of equal ends and gates: {groups}, "
            f"gate classes: {self.factor.count})"
        )

    @property
    def arch(self) -> Architecture:
        """The graph whose paths these are, nodes with gates a neuron split."""
        return self.whole.arch

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Every path, group by group."""
        return tuple(self._group_of)

    @cached_property
    def _group_of(self) -> dict[Path, int]:
        return {path: i for i, group in enumerate(self.groups) for path in group.paths}

    @cached_property
    def yx(self) -> LazyMatrices:
        """`yx[p]` is Σ^yx(p) = ⟨ g_p y_{t(p)} x_{s(p)}ᵀ ⟩, shape `(|t(p)|, |s(p)|)` (NRR Eq. 5)."""
        return LazyMatrices(self, 1)

    @cached_property
    def x(self) -> LazyMatrices:
        """`x[j, p]` is Σ^x(j,p) = ⟨ g_j x_{s(j)} x_{s(p)}ᵀ g_p ⟩, shape `(|s(j)|, |s(p)|)`.

        NRR Eq. 6. Zero, and never built, for two paths that are never on together.
        """
        return LazyMatrices(self, 2)

    def _rows(self, group: PathGroup) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the factor on which a group is on, and its gate on each."""
        start = self.factor.start
        counts = start[group.classes + 1] - start[group.classes]
        rows = [np.arange(int(start[c]), int(start[c + 1])) for c in group.classes]
        return np.concatenate([np.zeros(0, int), *rows]), np.repeat(group.gates, counts)

    def velocity(self, weights: Mapping[str, Any]) -> dict[str, Matrix]:
        """−∂L/∂W_e of every edge from the statistics alone (NRR Eqs. 3–4).

        `Σ_{p∋e} W_{t̄(p,e)}ᵀ E(p) W_{s̄(p,e)}ᵀ` with
        `E(p) = Σ^yx(p) − Σ_{j: t(j)=t(p)} W_j Σ^x(j,p)`. The inner sum is taken on the rows of the
        factor, Σ_j g_j W_j x_{s(j)} first, so that the cost follows groups and not pairs of paths.

        ```python
        >>> import jax, neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
        >>> arch, data = nr.pathways(data, {"a": [1, 0], "b": [0, 1]}, hidden=4)
        >>> net = nr.GDLN(arch)
        >>> weights = net.init(jax.random.key(0))
        >>> descent = jax.grad(net.loss)(weights, data)
        >>> flow = nr.path_statistics(arch, data).velocity(weights)
        >>> bool(abs(flow["x_a"] + descent["x_a"]).max() < 1e-6)
        True

        ```
        """
        parts = self._parts(weights)
        errors = self._errors(parts)
        velocity = {edge: np.zeros_like(w) for edge, w in parts.items()}
        for group, error in zip(self.groups, errors, strict=True):
            if len(group.classes) == 0:
                continue
            for path in group.paths:
                matrices = [parts[edge] for edge in path.edges]
                later = accumulate(reversed(matrices[1:]), lambda E, w: w.T @ E, initial=error)
                first = np.eye(error.shape[1])
                sooner = accumulate(matrices[:-1], lambda W, w: W @ w.T, initial=first)
                for edge, left, right in zip(path.edges, [*later][::-1], sooner, strict=True):
                    velocity[edge] += left @ right
        return self.whole.join(velocity)

    def loss(self, weights: Mapping[str, Any]) -> float:
        """½⟨‖y − h‖²⟩ less the part of the targets that no input can reach: 0 if all is learned."""
        error, _ = self._row_errors(self._parts(weights))
        return sum(float((e**2).sum()) for e in error.values()) / 2

    def _parts(self, weights: Any) -> dict[str, Matrix]:
        """The weights of the parts, cut out of checked ones."""
        given = checked_weights(self.whole.whole, weights)
        check_known("the weights", given)
        return self.whole.split(weights)

    def _errors(self, parts: Mapping[str, Matrix]) -> list[Matrix]:
        """E(p) of every group (NRR Eq. 4)."""
        factor = self.factor
        error, rows = self._row_errors(parts)
        return [
            (gate[:, None] * error[group.target][on]).T @ factor.x[group.source][on]
            for group, (on, gate) in zip(self.groups, rows, strict=True)
        ]

    def _row_errors(
        self, parts: Mapping[str, Matrix]
    ) -> tuple[dict[str, Matrix], list[tuple[np.ndarray, np.ndarray]]]:
        """y − h on every row of the factor, and the rows and gates of every group."""
        factor = self.factor
        rows = [self._rows(group) for group in self.groups]
        error = {v: y.copy() for v, y in factor.y.items()}
        for group, (on, gate) in zip(self.groups, rows, strict=True):
            if len(on):
                total = sum((_product(parts, p.edges) for p in group.paths), np.zeros(()))
                error[group.target][on] -= gate[:, None] * (factor.x[group.source][on] @ total.T)
        return error, rows


def _product(weights: Mapping[str, Matrix], edges: tuple[str, ...]) -> Matrix:
    """W_p, the ordered product of the matrices on a path."""
    return reduce(lambda product, edge: weights[edge] @ product, edges[1:], weights[edges[0]])


@final
class LazyMatrices:
    """Σ^yx by path, or Σ^x by pair of paths, computed once for a group when first asked for."""

    def __init__(self, statistics: PathStatistics, arity: int) -> None:
        self._statistics, self._arity = statistics, arity
        self._built: dict[tuple[int, ...], Matrix] = {}

    def __getitem__(self, paths: Path | tuple[Path, Path]) -> Matrix:
        key = (paths,) if isinstance(paths, Path) else tuple(paths)
        statistics = self._statistics
        if len(key) != self._arity or any(p not in statistics._group_of for p in key):
            raise NeuralRaceError(
                "no statistics for these paths",
                got=", ".join(str(p) for p in key),
                wanted=f"{self._arity} of statistics.paths",
                fix="yx[p] takes one path and x[j, p] two; take them from statistics.paths, "
                "where nodes with gates a neuron are split",
            )
        indices = tuple(statistics._group_of[p] for p in key)
        if indices not in self._built:
            groups = [statistics.groups[i] for i in indices]
            if self._arity == 2 and not np.intersect1d(groups[0].classes, groups[1].classes).size:
                sizes = statistics.arch.sizes
                return np.zeros((sizes[groups[0].source], sizes[groups[1].source]))
            self._built[indices] = self._build(*groups)
        return self._built[indices]

    def _build(self, left: PathGroup, right: PathGroup | None = None) -> Matrix:
        factor = self._statistics.factor
        rows, gate = self._statistics._rows(left)
        if right is None:
            return (gate[:, None] * factor.y[left.target][rows]).T @ factor.x[left.source][rows]
        weight = np.zeros(factor.count)
        weight[right.classes] = right.gates
        gate = gate * weight[factor.row_class[rows]]
        return (gate[:, None] * factor.x[left.source][rows]).T @ factor.x[right.source][rows]

    def __len__(self) -> int:
        """How many different matrices have been built so far."""
        return len(self._built)


def path_statistics(arch: Architecture, data: Dataset, limit: int = 100_000) -> PathStatistics:
    """The input-output and input statistics of every path: all that learning sees of the data.

    Assumes full-batch gradient flow on the squared loss. Paths with equal ends and gates share
    one group and one computation, and matrices are made when first asked for. Raises where there
    are more than `limit` paths.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> x = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
    >>> base = nr.Dataset({"x": x}, {"y": x[:, :1] * x[:, 1:]})
    >>> arch, data = nr.pathways(base, base.one_per_sample(), hidden=32)
    >>> stats = nr.path_statistics(arch, data)
    >>> p, q, *_ = stats.paths
    >>> stats.yx[p], stats.x[p, p].tolist(), stats.x[p, q].any()
    (array([[0.25, 0.25]]), [[0.25, 0.25], [0.25, 0.25]], np.False_)

    ```
    """
    limit = whole_number("limit", limit, fix="for example limit=100_000")
    whole = split_neurons(arch, data)
    return factored_statistics(whole, class_factor(whole.data), limit)


def factored_statistics(
    whole: SplitNetwork, factor: ClassFactor, limit: int = 100_000
) -> PathStatistics:
    """The statistics of every path of a network whose data are factored already."""
    whole.arch.paths(limit)  # raises, naming the count, before any work
    found: dict[tuple[str, str, bytes, bytes], list[tuple[Path, np.ndarray, np.ndarray]]] = {}
    for path, classes, gates in _gated_paths(whole.arch, factor):
        key = (path.source, path.target, classes.tobytes(), gates.tobytes())
        found.setdefault(key, []).append((path, classes, gates))
    groups = tuple(
        PathGroup(tuple(path for path, _, _ in members), key[0], key[1], *members[0][1:])
        for key, members in found.items()
    )
    return PathStatistics(whole, factor, groups)


def _gated_paths(
    arch: Architecture, factor: ClassFactor
) -> Iterator[tuple[Path, Int[np.ndarray, " k"], Float[np.ndarray, " k"]]]:
    """Every path with the gate classes on which it is on and its gate g_p on each of them."""

    def through(name: str, classes: np.ndarray, gates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if name not in factor.gates:
            return classes, gates
        gates = gates * factor.gates[name][classes]
        return classes[gates != 0], gates[gates != 0]

    everywhere = np.arange(factor.count), np.ones(factor.count)
    waiting: list[tuple[str, tuple[str, ...], str, np.ndarray, np.ndarray]]
    waiting = [(node, (), node, *everywhere) for node in reversed(arch.inputs)]
    while waiting:
        node, edges, source, *on = waiting.pop()
        classes, gates = through(node, *on)
        if not arch.outgoing[node]:
            yield Path(edges, source, node), classes, gates
        for edge in reversed(arch.outgoing[node]):
            onward = through(edge, classes, gates)
            waiting.append((arch.edges[edge][1], (*edges, edge), source, *onward))
