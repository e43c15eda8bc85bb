"""The data in as few rows as learning can tell apart, one gate class after another."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int
from threadpoolctl import ThreadpoolController

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, GateClasses, weighed
from neuralrace.tolerances import DEPENDENT, THIN
from neuralrace.types import Array, Matrix


def threads_for(width: int) -> AbstractContextManager[Any]:
    """One thread for products and factorisations of matrices up to this width, if it is small."""
    return nullcontext() if width > THIN else _threads().limit(limits=1, user_api="blas")


@cache
def _threads() -> ThreadpoolController:
    """The libraries of linear algebra that are loaded; SciPy has one of its own."""
    import scipy.linalg as scipy_linalg

    del scipy_linalg
    return ThreadpoolController()


@final
@dataclass(frozen=True, eq=False)
class ClassFactor:
    """The data, class by class of equal gates, with as few rows as tell all there is to know.

    Row r belongs to gate class `row_class[r]` and already carries the root of its weight, so that
    Σ_r y_r x_rᵀ over the rows of a class is the class's share of ⟨y xᵀ⟩. A class of n samples
    with d input features in all keeps min(n, d) rows: the triangular factor R of the QR
    decomposition of its weighted inputs, with targets Qᵀy. The rest of the targets, Σ‖y − QQᵀy‖²,
    is `left`: no input reaches it.
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

    Inputs that their own gate switches off count as zero; weights of the loss are gates here.
    """
    data = weighed(data)
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
        shown[~large] = _shown(x, start[:-1][~large])
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
    columns: Mapping[str, Bool[np.ndarray, " _"]] | None = None,
) -> ClassFactor:
    """The factor as a part of the network sees it: some classes, nodes and directions of nodes.

    `arch` is the graph of the part, `on` the gate classes it sees and `columns[v]` the directions
    of node v; without them it sees all. Classes that have the same gates in the part are joined, so
    that there are again as few rows as tell all there is to know. A part of the directions keeps no
    target that it cannot reach.
    """
    on = np.ones(factor.count, bool) if on is None else on
    gates = {
        name: g[on] for name, g in factor.gates.items() if name in arch.sizes or name in arch.edges
    }
    table = np.stack([np.zeros(int(on.sum())), *gates.values()], axis=1) + 0.0  # −0 → 0
    _, first, joined = np.unique(table, axis=0, return_index=True, return_inverse=True)
    rows = slice(None) if on.all() else on[factor.row_class]
    index = joined.reshape(-1)[(np.cumsum(on) - 1)[factor.row_class[rows]]]

    def seen(field: Mapping[str, Matrix], nodes: tuple[str, ...]) -> dict[str, Matrix]:
        at = columns or {}
        return {v: field[v][rows][:, at[v]] if v in at else field[v][rows] for v in nodes}

    x, y = seen(factor.x, arch.inputs), seen(factor.y, arch.outputs)
    known = {name: g[first] for name, g in gates.items()}
    return _condensed(index, x, y, known, len(first), by_rank=columns is not None)


def _condensed(
    index: Int[np.ndarray, " N"],
    x: Mapping[str, Matrix],
    y: Mapping[str, Matrix],
    gates: Mapping[str, Float[np.ndarray, " C"]],
    count: int,
    by_rank: bool = False,
) -> ClassFactor:
    """Rows, already weighted, sorted into their classes, as few of each as tell all.

    Each class keeps at most as many rows as it shows features or, `by_rank`, as its inputs have
    rank: then no target is kept that these inputs cannot reach.
    """
    if (np.diff(index) < 0).any():
        order = np.argsort(index, kind="stable")
        index = index[order]
        x, y = ({v: a[order] for v, a in field.items()} for field in (x, y))
    bounds = np.searchsorted(index, np.arange(count + 1))
    x_all, y_all = (np.concatenate(list(field.values()), axis=1) for field in (x, y))
    filled = np.diff(bounds) > 0
    shown = np.zeros((count, x_all.shape[1]), bool)  # features that a class shows at all
    if filled.any():
        shown[filled] = _shown(x_all, bounds[:-1][filled])
    kept = np.minimum(np.diff(bounds), shown.sum(axis=1))
    left = 0.0
    fewest = _independent_rows if by_rank else _fewest_rows
    if (kept < np.diff(bounds)).any() or (by_rank and (kept > 1).any()):
        parts = [
            fewest(x_all[low:high], y_all[low:high], shown[c])
            for c, (low, high) in enumerate(pairwise(bounds))
        ]
        x_all, y_all = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        left = sum(part[2] for part in parts)
        x, y = _columns(x_all, x), _columns(y_all, y)
        kept = np.array([len(part[0]) for part in parts])
    start = np.concatenate([[0], np.cumsum(kept)])
    return ClassFactor(np.repeat(np.arange(count), kept), start, x, y, gates, left)


def _shown(x: Matrix, starts: Int[np.ndarray, " C"]) -> Bool[np.ndarray, "C _"]:
    """Which features the rows of every class show at all, given where each class starts."""
    if len(starts) == 1:
        return (x != 0).any(axis=0, keepdims=True)
    return np.add.reduceat(x != 0, starts, axis=0) > 0


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
    """The rows of R, targets Qᵀy and the squared norm of the rest of the targets.

    Unchanged where a class has no more samples than it shows features.
    """
    if len(x) <= shown.sum():
        return x, y, 0.0
    q, r = np.linalg.qr(x[:, shown])
    wide = np.zeros((len(r), x.shape[1]))
    wide[:, shown] = r
    seen = q.T @ y
    seen[:, _is_rounding(seen, len(y), np.linalg.norm(y, axis=0))] = 0.0
    return wide, seen, float(((y - q @ seen) ** 2).sum())


def _independent_rows(
    x: np.ndarray, y: np.ndarray, shown: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """What `_fewest_rows` gives, in as few rows as the inputs of the class have rank."""
    x, y, left = _fewest_rows(x, y, shown)
    if len(x) < 2:
        return x, y, left
    u = orthonormal_columns(x)
    if u.shape[1] == len(x):
        return x, y, left
    seen = u.T @ y
    return u.T @ x, seen, left + float(((y - u @ seen) ** 2).sum())


def reachable(factor: ClassFactor, arch: Architecture) -> dict[str, Matrix]:
    """For every output, orthonormal columns that span what paths can give it on the rows.

    A path p from s gives g_p x_s, times a matrix. The gates g_p of all paths from s to a node span
    those to the nodes before it, times the gates between, so that few paths are listed. Products
    of gates are never mixed: where later gates are 0, rounding would remain of a mixture. They are
    weighted by the size of x_s in each class, so that rounding stays small beside what is seen.
    """
    gate = {name: g[:, None] for name, g in factor.gates.items()}
    ends = lambda node: [(arch.edges[e][0], gate.get(e)) for e in arch.incoming[node]]
    steps = [(node, ends(node)) for node in arch.order if node not in arch.inputs]
    place = {node: i for i, (node, _) in enumerate(steps)}
    seen = {t: [np.zeros((len(factor.row_class), 0))] for t in arch.outputs}
    largest = {t: np.zeros(factor.count) for t in arch.outputs}
    for source in arch.inputs:
        x = factor.x[source]
        size = np.sqrt(np.bincount(factor.row_class, (x**2).sum(axis=1), factor.count))[:, None]
        spans = {source: size * gate.get(source, 1.0)}
        unit = x / np.where(size > 0, size, 1.0)[factor.row_class]
        first = min(place[arch.edges[e][1]] for e in arch.outgoing[source])
        for node, into in steps[first:]:
            parts = [spans[s] if g is None else spans[s] * g for s, g in into if s in spans]
            if parts:
                columns = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
                columns = columns * gate[node] if node in gate else columns
                one = columns.shape[1] == 1
                spans[node] = columns if one else columns[:, independent_columns(columns)]
        for t in seen.keys() & spans.keys():
            on = np.abs(spans[t]).max(axis=1, initial=0.0) / np.where(size > 0, size, 1.0)[:, 0]
            largest[t] = np.maximum(largest[t], on)
            span = spans[t][factor.row_class]
            seen[t] += [span[:, k : k + 1] * unit for k in range(span.shape[1])]
    return {
        t: _span_of(np.concatenate(parts, axis=1), largest[t][factor.row_class])
        for t, parts in seen.items()
    }


def _span_of(table: Matrix, gate: Float[np.ndarray, " rows"]) -> Matrix:
    """An orthonormal basis of the span of columns whose rows have gates of these sizes.

    Which columns are independent does not depend on the gates, which may differ by many orders. A
    factorisation with rows in the order of their size is accurate in every row.
    """
    size = np.linalg.norm(table, axis=0)
    table = table[:, size > 0] / size[size > 0]
    places = _independent(table / np.where(gate > 0, gate, 1.0)[:, None])
    order = np.argsort(-gate, kind="stable")
    basis = np.empty((len(table), len(places)))
    basis[order] = np.linalg.qr(table[order][:, places])[0]
    return basis


EVEN = 8
"""How often rows and columns are brought to one size in turn."""


def independent_columns(table: Matrix) -> np.ndarray:
    """The places of columns that form a basis; units of columns and of rows do not change them."""
    there = np.flatnonzero(table.any(axis=0))
    table = table[:, there]
    for _ in range(EVEN):
        for axis in (1, 0):
            size = np.linalg.norm(table, axis=axis, keepdims=True)
            table = table / np.where(size > 0, size, 1.0)
    return there[np.sort(_independent(table))]


def _independent(table: Matrix) -> np.ndarray:
    """The places of columns that form a basis, whatever their units; the first ones matter most."""
    from scipy.linalg import qr

    size = np.linalg.norm(table, axis=0)
    found: Any = qr(table / np.where(size > 0, size, 1.0), mode="r", pivoting=True)
    left = np.abs(np.diagonal(found[0]))
    return found[1][: int((left > DEPENDENT * left.max(initial=0.0)).sum())]


def orthonormal_columns(table: Matrix) -> Matrix:
    """An orthonormal basis of the span of some columns; their units do not change its dimension."""
    size = np.linalg.norm(table, axis=0)
    u, s, _ = np.linalg.svd(table / np.where(size > 0, size, 1.0), full_matrices=False)
    return u[:, s > DEPENDENT * s.max(initial=0.0)]


def _is_rounding(
    seen: np.ndarray, samples: int, size: Float[np.ndarray, " targets"]
) -> Bool[np.ndarray, " targets"]:
    """Which targets of this size the inputs see nothing of but rounding errors."""
    rounding = 10 * np.finfo(float).eps * np.sqrt(samples) * size
    return np.linalg.norm(seen, axis=0) <= rounding


def _columns(table: np.ndarray, like: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """Cut a table into the columns of each node."""
    cuts = np.cumsum([a.shape[1] for a in like.values()])[:-1]
    return dict(zip(like, np.split(table, cuts, axis=1), strict=True))
