"""The part of random weights that grows: start values of blocks with two-edge paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.reduction.block import (
    Block,
    groups_of_copies,
    own_sizes,
    rank_of_correlations,
    two_edge_statistic,
)
from neuralrace.tolerances import EQUAL, NOISE, REACHED, ROUNDING
from neuralrace.types import Matrix


@dataclass(frozen=True, eq=False)
class Halves:
    """A block at hidden nodes: its weights in (h × K_in) and out (h × K_out), and its modes.

    The modes belong to the block's Σ^yx through these nodes: singular values `s`, largest first,
    and singular vectors in the columns of `right` and `left`.
    """

    reads: Matrix
    writes: Matrix
    s: np.ndarray
    right: Matrix
    left: Matrix

    @property
    def growing(self) -> Matrix:
        """½ (W₁v + W₂ᵀu) of every mode, in columns."""
        return (self.reads @ self.right + self.writes @ self.left) / 2

    @property
    def size(self) -> float:
        """The larger norm of the two sides."""
        return max(float(np.linalg.norm(w)) for w in (self.reads, self.writes))


def faster_than(s: float, part: Halves, others: Sequence[Halves]) -> Matrix:
    """An orthonormal basis of the growing halves of other blocks' modes that are faster than `s`.

    A mode whose growing half is only rounding never grows, and expels no other.
    """
    largest = max(p.size for p in (part, *others))
    faster = [p.growing[:, p.s > s * (1 + EQUAL)] for p in others]
    faster = [g[:, np.linalg.norm(g, axis=0) > NOISE * largest] for g in faster]
    return orthonormal(np.concatenate([part.reads[:, :0], *faster], axis=1))


@final
@dataclass(frozen=True, eq=False)
class _AtNode(Halves):
    """The same of the block at this place, at one node."""

    block: int


def two_edge_start(
    blocks: Sequence[Block], restricted: Sequence[dict[str, Matrix]]
) -> tuple[list[dict[str, Matrix]], list[bool], float]:
    """Remove from every block, at each hidden node, the directions that faster blocks will take.

    While modes are small, `W₁v + W₂ᵀu` grows and `W₁v − W₂ᵀu` decays; a learned mode then expels
    later modes from its hidden direction. So a scalar mode behaves as if it had started aligned and
    balanced, with a strength equal to the squared distance of its growing half from the span of the
    faster modes' growing halves. A matrix block keeps both halves but loses these directions.
    Blocks that are copies of each other are first rotated so that their growing halves are
    orthogonal.

    **Returns:** the weights of every block, whether a mode's decaying half was left out, and by
    which part modes that share hidden directions are estimated to disturb each other (`_mixing`).
    """
    found: list[dict[str, Matrix]] = [dict(weights) for weights in restricted]
    halved, mixing = [False] * len(restricted), 0.0
    for copies in groups_of_copies(blocks):
        _turn_copies(blocks, found, copies)
    for node in dict.fromkeys(v for block in blocks for v in block.arch.hidden):
        users = [i for i, block in enumerate(blocks) if node in block.arch.sizes]
        here = [_at_node(i, blocks[i], found[i], node) for i in users]
        mixing = max(mixing, _mixing(blocks, here))
        for part in here:
            reads, writes = _expelled(part, [p for p in here if p is not part])
            if reads.shape[1] == writes.shape[1] == 1:
                most = 2 * blocks[part.block].initial_loss
                reads, writes = reads * part.right, writes * part.left
                into, out, is_half = _scalar_start(reads, writes)
                arch = blocks[part.block].arch
                edges = arch.incoming[node][0], arch.outgoing[node][0]
                found[part.block] |= {edges[0]: into * part.right, edges[1]: part.left * out}
                halved[part.block] |= is_half
                if is_half:  # the decaying half delays the mode by this part
                    decaying = float(((reads - writes) ** 2).sum()) / 4
                    mixing = max(mixing, decaying * blocks[part.block].drive / most)
            else:
                arch, own = blocks[part.block].arch, found[part.block]
                for edges, rest in ((arch.incoming[node], reads), (arch.outgoing[node], writes)):
                    widths = [own[e].shape[rest is reads] for e in edges]
                    cuts = np.split(rest, np.cumsum(widths)[:-1], axis=1)
                    for e, w in zip(edges, cuts, strict=True):
                        own[e] = w if rest is reads else w.T
                own.update(narrowed(arch, own, [node]))
    return found, halved, mixing


def _mixing(blocks: Sequence[Block], here: Sequence[_AtNode]) -> float:
    """The part by which modes that share directions of a hidden node disturb each other, estimated.

    A mode of rate s, final strength f and growing half c is learned at t = log(f/c²)/2s. A later
    one has then reached c'² e^{2s't}, which is a part (c'²/f') (f/c²)^{s'/s} of its own final
    strength. It was removed from the direction of the first as if it were still 0 then; what this
    misses is that part of the squared cosine between the two. Where several pathways overlap, rates
    change on the way, and nothing is estimated: the result is infinite, if directions are shared.
    """
    modes, worst = [], 0.0
    for part in here:
        block = blocks[part.block]
        lone = block.is_scalar and block.drive > 0 and block.arch.path_count() == 1
        final = 2 * block.initial_loss / block.drive if lone else None
        modes += [(s, final, c, part.block) for s, c in zip(part.s, part.growing.T, strict=True)]
    for i, (s, final, c, block) in enumerate(modes):
        for other_s, other_final, other_c, other in modes[:i]:
            sizes = float(c @ c), float(other_c @ other_c)
            shared = float(c @ other_c) ** 2
            if other == block or shared <= ROUNDING * sizes[0] * sizes[1]:
                continue
            if final is None or other_final is None:
                return np.inf
            both = (s, final, sizes[0]), (other_s, other_final, sizes[1])
            fast, slow = sorted(both, key=lambda m: -m[0])
            grown = slow[2] / slow[1] * (fast[1] / fast[2]) ** (slow[0] / fast[0])
            worst = max(worst, float(shared / sizes[0] / sizes[1] * grown))
    return worst


def _scalar_start(reads: Matrix, writes: Matrix) -> tuple[float, float, bool]:
    """Where a scalar mode's two edges start, from its incoming r and outgoing weights l.

    If both already lie along one direction, at their lengths along it (one may be 0). Otherwise
    the growing half c = ½‖r + l‖ starts aligned and balanced, and the decaying half d = ½‖r − l‖ is
    left out, which is the third result. While the error along the path is e, dc/dt = e c and
    dd/dt = −e d, and the path has the strength r·l = c² − d².
    """
    a, b = float(np.linalg.norm(reads)), float(np.linalg.norm(writes))
    overlap = float((reads * writes).sum())
    if min(a, b) <= NOISE * max(a, b):
        return (a, 0.0, False) if a > b else (0.0, b, False)
    if overlap < 0 and np.linalg.norm(reads + writes) <= ROUNDING * max(a, b):
        return a, -a, False  # no growing half: a difference that is rounding must not grow
    if abs(overlap) >= (1 - ROUNDING) * a * b:
        return a, b * float(np.sign(overlap)), False
    c = float(np.linalg.norm(reads + writes)) / 2
    return c, c, True


def _expelled(part: _AtNode, others: Sequence[_AtNode]) -> tuple[Matrix, Matrix]:
    """A block's incoming and outgoing weights, each mode without the directions of faster modes."""
    reads, writes = part.reads.copy(), part.writes.copy()
    for i, s in enumerate(part.s.tolist()):
        q = faster_than(s, part, others)
        for whole, direction in ((reads, part.right[:, i]), (writes, part.left[:, i])):
            before = whole @ direction
            after = before - q @ (q.T @ before)
            if np.linalg.norm(after) <= ROUNDING * np.linalg.norm(before):
                after[:] = 0.0  # no hidden direction is left: what is rounding must not grow
            whole += np.outer(after - before, direction)
    return reads, writes


def _turn_copies(
    blocks: Sequence[Block], weights: list[dict[str, Matrix]], copies: Sequence[int]
) -> None:
    """Replace the copies of one block by combinations whose growing halves are orthogonal.

    The halves are compared without the directions that faster modes of other blocks will take.
    """
    first = blocks[copies[0]]
    seen = [weights[i] for i in copies]
    gram = np.zeros((len(copies), len(copies)))
    for node in first.arch.hidden:
        others = [
            _at_node(i, block, weights[i], node)
            for i, block in enumerate(blocks)
            if node in block.arch.sizes and i not in copies
        ]
        halves = []
        for w in seen:
            part = _at_node(0, first, w, node)
            reads, writes = _expelled(part, others)
            halves.append((reads @ part.right + writes @ part.left).ravel())
        gram += np.array(halves) @ np.array(halves).T
    mix = np.linalg.eigh(gram)[1][:, ::-1].T
    for i, shares in zip(copies, mix, strict=True):
        weights[i] = {
            e: np.tensordot(shares, [w[e] for w in seen], axes=1) for e in first.arch.edges
        }


def average_start(
    block: Block, widths: Mapping[str, int], scale: float
) -> dict[str, Matrix] | None:
    """Where Gaussian weights of standard deviation σ start a block on average.

    A hidden node of N units sees all its inputs and all its outputs side by side. With u and v the
    singular vectors of Σ^yx between them, the growing half ½ (W₁v + W₂ᵀu) of a mode has the
    expected squared length N σ²/2. So W₁ starts at b vᵀ and W₂ at b u, with b = σ √(N/2), and the
    edge to output k at b u_k: cutting a node into parts changes nothing. None for paths of other
    than two edges, of which no such average is known.
    """
    arch = block.arch
    if arch.path_lengths != {2}:
        return None
    found: dict[str, Matrix] = {}
    for node in arch.hidden:
        _, right, left = _modes_at(block, node)
        b = scale * sqrt(widths[node] / 2) * np.where(right.sum(axis=0) < 0, -1.0, 1.0)
        right, left = b * right, b * left
        for edges, end, side in ((arch.incoming[node], 0, right), (arch.outgoing[node], 1, left)):
            sizes = [arch.sizes[arch.edges[e][end]] for e in edges]
            for edge, part in zip(edges, np.split(side, np.cumsum(sizes)[:-1]), strict=True):
                found[edge] = part if end else part.T
    return found


def _at_node(index: int, block: Block, weights: Mapping[str, Matrix], node: str) -> _AtNode:
    arch = block.arch
    reads = np.concatenate([weights[e] for e in arch.incoming[node]], axis=1)
    writes = np.concatenate([weights[e].T for e in arch.outgoing[node]], axis=1)
    return _AtNode(reads, writes, *_modes_at(block, node), index)


def _modes_at(block: Block, node: str) -> tuple[np.ndarray, Matrix, Matrix]:
    """Σ^yx through a hidden node, ends side by side: singular values, right and left vectors."""
    arch, statistic = block.arch, two_edge_statistic(block.arch, block.factor, node)
    u, s, vt = np.linalg.svd(statistic, full_matrices=False)
    out = [block.factor.y[arch.edges[e][1]] for e in arch.outgoing[node]]
    into = [block.factor.x[arch.edges[e][0]] for e in arch.incoming[node]]
    sizes = (np.concatenate([own_sizes(a) for a in parts]) for parts in (out, into))
    rank = max(1, rank_of_correlations(statistic, *sizes))
    return s[:rank], vt[:rank].T, u[:, :rank]


def orthonormal(columns: Matrix) -> Matrix:
    """An orthonormal basis of the span of some columns, whatever their lengths."""
    from scipy.linalg import qr

    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 0] / norms[norms > 0]
    if not columns.shape[1]:
        return columns
    found: Any = qr(columns, mode="economic", pivoting=True)
    rank = int((np.abs(np.diagonal(found[1])) > NOISE).sum())
    return found[0][:, :rank]


def narrowed(
    arch: Architecture, weights: Mapping[str, Matrix], nodes: Sequence[str] | None = None
) -> dict[str, Matrix]:
    """The weights between the hidden directions that learning reaches, at these nodes or at all.

    These are the directions that the edges from inputs and to outputs have, those to which the
    matrices between hidden nodes take them, there and back, and so on. Every matrix counts by its
    directions, whatever its size: small weights grow for longer, so that what they leave out
    at first is no smaller a part in the end. A direction that is reached with less than `REACHED`
    of a matrix's size is left out: what goes there and comes back is then rounding.
    """
    nodes = arch.hidden if nodes is None else nodes
    ends = {
        v: [weights[e] for e in arch.incoming[v] if arch.edges[e][0] not in nodes]
        + [weights[e].T for e in arch.outgoing[v] if arch.edges[e][1] not in nodes]
        for v in nodes
    }
    sizes = {v: weights[arch.incoming[v][0]].shape[0] for v in nodes}
    basis = {
        v: orthonormal(np.concatenate([np.zeros((sizes[v], 0)), *sides], axis=1))
        for v, sides in ends.items()
    }
    inner = [(e, s, t) for e, (s, t) in arch.edges.items() if s in nodes and t in nodes]
    unit = {e: weights[e] / (float(np.linalg.norm(weights[e], 2)) or 1.0) for e, _, _ in inner}
    fresh = dict(basis)
    while any(new.shape[1] for new in fresh.values()):
        pushed: dict[str, list[Matrix]] = {v: [np.zeros((sizes[v], 0))] for v in nodes}
        for e, s, t in inner:
            pushed[t].append(unit[e] @ fresh[s])
            pushed[s].append(unit[e].T @ fresh[t])
        for v, parts in pushed.items():
            new = np.concatenate(parts, axis=1)
            for _ in range(2):  # twice, for orthogonality to rounding
                new = new - basis[v] @ (basis[v].T @ new)
            u, size, _ = np.linalg.svd(new, full_matrices=False)
            kept = min(int((size > REACHED).sum()), sizes[v] - basis[v].shape[1])
            fresh[v] = u[:, :kept] * size[:kept]
            basis[v] = np.concatenate([basis[v], u[:, :kept]], axis=1)
    for v, q in basis.items():
        if q.shape[1] in (0, sizes[v]):
            basis[v] = np.eye(sizes[v], q.shape[1] or 1)
    found = dict(weights)
    for e, (s, t) in arch.edges.items():
        found[e] = basis[t].T @ found[e] if t in basis else found[e]
        found[e] = found[e] @ basis[s] if s in basis else found[e]
    return found
