"""Where a race starts: from actual weights, with nothing fitted, or from one number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from textwrap import shorten
from typing import Any, final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import check_known, is_traced
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.gdln import check_finite, checked_weights
from neuralrace.reduction.block import (
    Block,
    Matrix,
    own_sizes,
    places,
    rank_of_correlations,
)
from neuralrace.reduction.mixtures import Mixer, Pair
from neuralrace.statistics import SplitNetwork


@final
@dataclass(frozen=True, eq=False, repr=False)
class Start:
    """Initial weights of every block of a race; see `Race.start`.

    `weights[i]` are those of block i, `{edge: (|t|, |s|)}`. `alignment` is the share of the
    squared norm of the network's weights, at its ends, that the start carries, less the part in
    which blocks share hidden directions: 1 where the weights are decoupled already (MHS Assumption
    2.1.2), little for wide random weights, of which only the growing half along the modes matters;
    `None` for a start that was not made from weights.

    ```python
    >>> import neuralrace as nr
    >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    >>> race.start(0.01)
    Start(4 blocks; aligned, 0.01)
    >>> race.start(0.01).weights[0]["x_sample1"]
    array([[0.01]])

    ```
    """

    weights: tuple[dict[str, Matrix], ...]
    alignment: float | None
    description: str

    def __repr__(self) -> str:
        blocks = f"{len(self.weights)} block{'s' * (len(self.weights) != 1)}"
        parts = [blocks, shorten(self.description, 120, placeholder=" …")]
        parts += [] if self.alignment is None else [f"alignment {self.alignment:.3g}"]
        return f"Start({'; '.join(parts)})"


def start_from_number(blocks: Sequence[Block], value: Any) -> Start:
    """Aligned weights in which every singular value of an edge is `value`, or `value[edge]`."""
    edges = {e for block in blocks for e in block.arch.edges}
    by_edge: dict[str, Any] = dict.fromkeys(edges, value)
    if isinstance(value, Mapping):
        by_edge = dict(value)
    numbers = all(
        isinstance(b, Real) and not is_traced(b) and isfinite(b) for b in by_edge.values()
    )
    if not numbers or not edges <= set(by_edge):
        raise NeuralRaceError(
            "a start is a finite number, one for every edge, or the weights of the network",
            got=f"numbers for {listed(by_edge)}"
            if isinstance(value, Mapping)
            else f"{type(value).__name__} {value!r:.80}",
            wanted=f"a number, or {{edge: number}} or {{edge: matrix}} for {listed(edges)}",
            fix="race.start(0.01), or race.start(net.init(key, scale=1e-3))",
        )
    _check_size(blocks, max((abs(float(b)) for b in by_edge.values()), default=0.0))
    weights = tuple({e: float(by_edge[e]) * w for e, w in b.aligned.items()} for b in blocks)
    return Start(weights, None, f"aligned, {value}")


def _check_size(blocks: Sequence[Block], largest: float) -> None:
    """Raise where the loss at a start would be beyond the range of float64.

    A path of D edges of strength b carries b^D, and the loss has its square, times a moment of the
    data.
    """
    depth = max((_depth(block.arch) for block in blocks), default=1)
    bound = np.finfo(np.float64).max ** (1 / (2 * depth + 2))
    if largest > bound:
        raise NeuralRaceError(
            "the start is so large that the loss would overflow",
            got=f"weights of size {largest:.3g}",
            wanted=f"at most {bound:.3g}, with paths of {depth} edges",
            fix="start small: race.start(0.01); the scale that is learned is about 1",
        )


def _depth(arch: Architecture) -> int:
    """The number of edges on the longest path."""
    depth: dict[str, int] = {}
    for node in arch.order:
        depth[node] = max((depth[arch.edges[e][0]] + 1 for e in arch.incoming[node]), default=0)
    return max(depth.values(), default=1)


def start_from_weights(
    blocks: Sequence[Block], whole: SplitNetwork, weights: Mapping[str, Any]
) -> Start:
    """What the race sees of actual initial weights."""
    given = checked_weights(whole.whole, weights)
    check_known("the initial weights", given)
    check_finite(given)
    parts = whole.split(weights)
    _check_size(blocks, max(float(np.abs(w).max(initial=0.0)) for w in parts.values()))
    found = [_restricted(block, parts) for block in blocks]
    two = [i for i, block in enumerate(blocks) if _is_two_edge(block)]
    shared = _overlap([b for i, b in enumerate(blocks) if i not in two], found, blocks)
    for i, weights_i in zip(
        two, _two_edges([blocks[i] for i in two], [found[i] for i in two]), strict=True
    ):
        found[i] = weights_i
    ends = set(_end_edges(whole))
    carried = sum(float((w**2).sum()) for f in found for e, w in f.items() if e in ends)
    total = sum(float((parts[e] ** 2).sum()) for e in ends)
    how = "from weights: two-edge pathways by what is orthogonal to faster modes"
    if len(two) < len(blocks):
        how += ", others restricted to the directions of each block"
    alignment = min(1.0, carried / total) * (1 - shared) if total else None
    return Start(tuple(found), alignment, how)


def _overlap(
    deep: Sequence[Block], weights: Sequence[Mapping[str, Matrix]], blocks: Sequence[Block]
) -> float:
    """How far blocks share hidden directions: the part of all inner products that joins two.

    Of what inputs write into, and outputs read from, each hidden node; 0 where the blocks have
    directions of their own, as the race supposes.
    """
    index = {id(block): i for i, block in enumerate(blocks)}
    within = between = 0.0
    for node in dict.fromkeys(v for block in deep for v in block.arch.hidden):
        for into in (True, False):
            seen = []
            for block in (b for b in deep if node in b.arch.sizes):
                arch, mine = block.arch, weights[index[id(block)]]
                edges = arch.incoming[node] if into else arch.outgoing[node]
                ends = [e for e in edges if arch.edges[e][0 if into else 1] in block.basis]
                seen += [[mine[e] if into else mine[e].T for e in ends]] if ends else []
            columns = [np.concatenate(parts, axis=1) for parts in seen]
            for i, a in enumerate(columns):
                within += float(np.linalg.norm(a.T @ a) ** 2)
                between += sum(2 * float(np.linalg.norm(a.T @ b) ** 2) for b in columns[i + 1 :])
    return between / (within + between) if between else 0.0


def _end_edges(whole: SplitNetwork) -> list[str]:
    """The edges that touch an input or an output."""
    ends = {*whole.arch.inputs, *whole.arch.outputs}
    return [e for e, (s, t) in whole.arch.edges.items() if s in ends or t in ends]


def _restricted(block: Block, weights: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """The weights between the block's directions; hidden nodes keep all their neurons."""
    found = {}
    for edge, (s, t) in block.arch.edges.items():
        w = weights[edge]
        w = w @ block.basis[s] if s in block.basis else w
        found[edge] = block.basis[t].T @ w if t in block.basis else w
    return found


def _is_two_edge(block: Block) -> bool:
    """Whether every path of the block has two edges."""
    arch = block.arch
    ends = {*arch.inputs, *arch.outputs}
    return all((s in ends) != (t in ends) for s, t in arch.edges.values())


@final
@dataclass(frozen=True)
class _AtNode:
    """A block at a hidden node: what it reads (h × K_in) and writes (h × K_out), and its modes.

    The modes are those of the block's Σ^yx through the node, singular values `s`, largest first,
    and vectors in the columns of `right` and `left`.
    """

    block: int
    reads: Matrix
    writes: Matrix
    s: np.ndarray
    right: Matrix
    left: Matrix

    @property
    def growing(self) -> Matrix:
        """½ (W₁v + W₂ᵀu) of every mode, in columns."""
        return (self.reads @ self.right + self.writes @ self.left) / 2


def _two_edges(
    blocks: Sequence[Block], restricted: Sequence[dict[str, Matrix]]
) -> list[dict[str, Matrix]]:
    """Remove from every block, at each hidden node, what the faster blocks will expel.

    While modes are small, `W₁v + W₂ᵀu` grows and `W₁v − W₂ᵀu` decays; a learned mode then expels
    later modes from its hidden direction. So a scalar mode behaves as if it had started, aligned
    and balanced, at the squared distance of its growing half from those of faster modes; a matrix
    block keeps both halves and loses these directions. Blocks that are copies of each other are
    first turned so that their growing halves are orthogonal.
    """
    found: list[dict[str, Matrix]] = [dict(weights) for weights in restricted]
    for copies in identical(blocks):
        _turn(blocks, found, copies)
    for node in dict.fromkeys(v for block in blocks for v in block.arch.hidden):
        users = [i for i, block in enumerate(blocks) if node in block.arch.sizes]
        here = [_at_node(i, blocks[i], found[i], node) for i in users]
        for part in here:
            reads, writes = _expelled(part, [p for p in here if p is not part])
            if reads.shape[1] == writes.shape[1] == 1:
                into, out = _scalar_start(reads * part.right, writes * part.left)
                arch = blocks[part.block].arch
                found[part.block][arch.incoming[node][0]] = into * part.right
                found[part.block][arch.outgoing[node][0]] = out * part.left
            else:
                _replace(found[part.block], blocks[part.block], node, reads, writes)
    return found


def _scalar_start(reads: Matrix, writes: Matrix) -> tuple[float, float]:
    """The start values of a scalar mode's two edges, from what it reads and writes.

    If both already lie along one direction, their lengths there (one of them may be 0); else,
    aligned and balanced, the length of the growing half.
    """
    a, b = float(np.linalg.norm(reads)), float(np.linalg.norm(writes))
    overlap = float((reads * writes).sum())
    if min(a, b) <= NO_GROWTH * max(a, b):
        return (a, 0.0) if a > b else (0.0, b)
    if abs(overlap) >= (1 - 1e-9) * a * b:
        return a, b * float(np.sign(overlap))
    half = float(np.linalg.norm(reads + writes)) / 2
    return half, half


def _expelled(part: _AtNode, others: Sequence[_AtNode]) -> tuple[Matrix, Matrix]:
    """What a block reads and writes, each mode without the directions of other, faster modes.

    A mode whose growing half is zero but for rounding never grows, and expels none.
    """
    reads, writes = part.reads.copy(), part.writes.copy()
    largest = max(float(np.linalg.norm(w)) for p in (part, *others) for w in (p.reads, p.writes))
    for i, s in enumerate(part.s):
        faster = [p.growing[:, p.s > s * (1 + CLOSE)] for p in others]
        faster = [g[:, np.linalg.norm(g, axis=0) > NO_GROWTH * largest] for g in faster]
        q = _orthonormal(np.concatenate([reads[:, :0], *faster], axis=1))
        for whole, direction in ((reads, part.right[:, i]), (writes, part.left[:, i])):
            whole -= np.outer(q @ (q.T @ (whole @ direction)), direction)
    return reads, writes


NO_GROWTH = 1e-12
"""Weights of a mode below this, relative to the largest at their node, are rounding."""

CLOSE = 1e-6
"""Singular values closer than this, relatively, count as equal."""


def _turn(
    blocks: Sequence[Block], weights: list[dict[str, Matrix]], copies: Sequence[Copy]
) -> None:
    """Replace copies of one block by the combinations whose growing halves are orthogonal.

    The halves are compared without the directions that faster modes of other blocks will take.
    """
    first = blocks[copies[0].block]
    seen = [_seen_as_first(blocks[c.block], weights[c.block], c.turns) for c in copies]
    among = {c.block for c in copies}
    gram = np.zeros((len(copies), len(copies)))
    for node in first.arch.hidden:
        others = [
            _at_node(i, block, weights[i], node)
            for i, block in enumerate(blocks)
            if node in block.arch.sizes and i not in among
        ]
        halves = []
        for w in seen:
            part = _at_node(0, first, w, node)
            reads, writes = _expelled(part, others)
            halves.append((reads @ part.right + writes @ part.left).ravel())
        gram += np.array(halves) @ np.array(halves).T
    mix = np.linalg.eigh(gram)[1][:, ::-1].T
    for k, copy in enumerate(copies):
        turned = {e: np.tensordot(mix[k], [w[e] for w in seen], axes=1) for e in first.arch.edges}
        weights[copy.block] = _seen_as_first(first, turned, {v: o.T for v, o in copy.turns.items()})


def _seen_as_first(
    block: Block, weights: Mapping[str, Matrix], turns: Mapping[str, Matrix]
) -> dict[str, Matrix]:
    """Weights in the coordinates of the first copy: directions turned at the ends."""
    found = {}
    for edge, (s, t) in block.arch.edges.items():
        w = weights[edge]
        w = w @ turns[s].T if s in turns else w
        found[edge] = turns[t] @ w if t in turns else w
    return found


@final
@dataclass(frozen=True)
class Copy:
    """A block that is a copy of another: `turns[v]` brings its directions to those of the first."""

    block: int
    turns: Mapping[str, Matrix]


def identical(blocks: Sequence[Block]) -> list[list[Copy]]:
    """Groups of two or more blocks whose statistics are the same but for a turn."""
    groups: list[list[Copy]] = []
    for i, block in enumerate(blocks):
        for group in groups:
            turns = intertwiner(block, blocks[group[0].block])
            if turns is not None:
                group.append(Copy(i, turns))
                break
        else:
            eye = {v: np.eye(n) for v, n in block.dims.items()}
            groups.append([Copy(i, eye)])
    return [group for group in groups if len(group) > 1]


def intertwiner(block: Block, other: Block) -> dict[str, Matrix] | None:
    """Orthogonal O_v with O_a M = M' O_b for all statistics M of `block`, M' of `other`, if any."""
    if block.arch != other.arch or abs(block.strength - other.strength) > CLOSE * other.strength:
        return None
    mine, theirs = (_mixtures(b) for b in (block, other))
    if set(mine) != set(theirs):
        return None
    dims = block.dims
    place = places(tuple(dims), {v: n * n for v, n in dims.items()})
    rows = []
    for (a, b), stack in mine.items():
        scale = max(float(np.abs(stack).max()), 1e-300)
        for m, w in zip(stack / scale, theirs[a, b] / scale, strict=True):
            row = np.zeros((dims[a] * dims[b], sum(n * n for n in dims.values())))
            row[:, place[a]] += np.kron(np.eye(dims[a]), m.T)
            row[:, place[b]] -= np.kron(w, np.eye(dims[b]))
            rows.append(row)
    _, s, vt = np.linalg.svd(np.concatenate(rows), full_matrices=True)
    if len(s) == vt.shape[0] and s[-1] > CLOSE * s[0]:
        return None
    found = {v: vt[-1][place[v]].reshape(n, n) for v, n in dims.items()}
    turns = {}
    for v, o in found.items():
        u, size, wt = np.linalg.svd(o)
        if size[-1] < (1 - 1e-3) * size[0] or size[0] == 0:
            return None
        turns[v] = u @ wt
    return turns


def _mixtures(block: Block) -> dict[Pair, np.ndarray]:
    """Three mixtures of all statistics of a block, the same ones for blocks of one graph."""
    mixer, rng = Mixer(block.arch, block.factor), np.random.default_rng(0)
    found: dict[Pair, list[np.ndarray]] = {}
    for draw in [mixer.draw(rng) for _ in range(3)]:
        for pair, matrix in (*mixer.yx(draw.yx).items(), *mixer.xx(draw).items()):
            found.setdefault(pair, []).append(matrix)
    return {pair: np.stack(stack) for pair, stack in found.items()}


def _at_node(index: int, block: Block, weights: Mapping[str, Matrix], node: str) -> _AtNode:
    arch = block.arch
    reads = np.concatenate([weights[e] for e in arch.incoming[node]], axis=1)
    writes = np.concatenate([weights[e].T for e in arch.outgoing[node]], axis=1)
    statistic = np.block(
        [[_yx(block, node, e, f) for e in arch.incoming[node]] for f in arch.outgoing[node]]
    )
    u, s, vt = np.linalg.svd(statistic, full_matrices=False)
    out = [block.factor.y[arch.edges[e][1]] for e in arch.outgoing[node]]
    into = [block.factor.x[arch.edges[e][0]] for e in arch.incoming[node]]
    sizes = (np.concatenate([own_sizes(a) for a in parts]) for parts in (out, into))
    rank = max(1, rank_of_correlations(statistic, *sizes))
    return _AtNode(index, reads, writes, s[:rank], vt[:rank].T, u[:, :rank])


def _yx(block: Block, node: str, into: str, out: str) -> Matrix:
    """Σ^yx of the path of two edges through a hidden node, in the block's directions."""
    source, target = block.arch.edges[into][0], block.arch.edges[out][1]
    factor = block.factor
    gate = np.ones(factor.count)
    for name in (source, into, node, out, target):
        gate = gate * factor.gates.get(name, 1.0)
    return (gate[factor.row_class][:, None] * factor.y[target]).T @ factor.x[source]


def _orthonormal(columns: Matrix) -> Matrix:
    """An orthonormal basis of the span of some columns, whatever their lengths."""
    from scipy.linalg import qr

    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 0] / norms[norms > 0]
    if not columns.shape[1]:
        return columns
    found: Any = qr(columns, mode="economic", pivoting=True)
    rank = int((np.abs(np.diagonal(found[1])) > 1e-12).sum())
    return found[0][:, :rank]


def _replace(
    weights: dict[str, Matrix], block: Block, node: str, reads: Matrix, writes: Matrix
) -> None:
    """Put in the weights that are left, seen from an orthonormal basis of what they span."""
    q = _orthonormal(np.concatenate([reads, writes], axis=1))
    if not q.shape[1]:
        q = np.eye(len(reads), 1)
    at = 0
    for edge in block.arch.incoming[node]:
        width = weights[edge].shape[1]
        weights[edge] = q.T @ reads[:, at : at + width]
        at += width
    at = 0
    for edge in block.arch.outgoing[node]:
        width = weights[edge].shape[0]
        weights[edge] = writes[:, at : at + width].T @ q
        at += width
