"""Where modes of networks with shared weights start: from actual weights, with nothing fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.reduction.block import Block
from neuralrace.reduction.mixtures import through_class, ways
from neuralrace.reduction.two_edge_start import Halves, faster_than
from neuralrace.tolerances import EQUAL, NOISY_GROWTH, ROUNDING
from neuralrace.types import Matrix


@final
@dataclass(frozen=True, eq=False)
class _AtClass(Halves):
    """A block at a class of hidden nodes: all that goes in and all that goes out, side by side.

    `inner` is the multiple of the identity that each matrix within the class is near, and `slopes`
    how the largest singular value moves at most with each; `noise` is what random weights may add
    to it.
    """

    noise: float
    inner: Mapping[str, float]
    slopes: Mapping[str, float]


def tied_start(
    blocks: Sequence[Block], restricted: Sequence[Mapping[str, Matrix]], arch: Architecture
) -> tuple[list[dict[str, Matrix]], set[int], float | None]:
    """The start of every block, which of them leave something out, and `Start.noise`.

    A class of hidden nodes has matrices W_in from inputs, W_out to outputs and W_h within itself,
    such as a recurrent network unrolled in time. While all are small, or W_h is near a multiple
    γ of the identity, r = ½ (W_in v + W_outᵀu) grows along each mode, at the rate s of Σ^yx summed
    over paths with γ for every step within the class. A learned mode expels later ones from its
    hidden direction. So a scalar mode starts at ‖r‖ on both sides, r without the r of modes with
    larger s, and at r̂ᵀW_h r̂ within. Where the halves lie along one direction already, they start as
    they are. What W_h adds to the growth beyond γ is at most ‖W_h − γI‖ times the derivative of s
    by γ; the noise is the largest such part of s.

    Where blocks beside others are not scalar, or equally fast, no start of one block alone is
    known. These, and networks of another form, start from the weights between their directions,
    with the hidden nodes whole.
    """
    found = [dict(weights) for weights in restricted]
    left_out, noises = set[int](), list[float]()
    for node in dict.fromkeys(arch.class_of[v] for v in arch.hidden):
        if not _is_recurrent(arch, node):
            continue
        users = [i for i, block in enumerate(blocks) if _passes(block, arch, node)]
        parts = {i: _at_class(blocks[i], found[i], arch, node) for i in users}
        for i in users:
            part, block = parts[i], blocks[i]
            near = EQUAL * part.s[0]
            alike = any(abs(p.s[0] - part.s[0]) <= near for k, p in parts.items() if k != i)
            if len(users) > 1 and (alike or not block.is_scalar):
                left_out.add(i)
            elif block.is_scalar:
                faster = faster_than(part.s[0], part, [p for k, p in parts.items() if k != i])
                found[i], is_half = _scalar(block, part, faster, found[i], arch, node)
                if is_half:
                    left_out.add(i)
                    noises.append(part.noise / part.s[0] if part.s[0] else np.inf)
    return found, left_out, max(noises, default=None)


def average_tied_start(
    block: Block, arch: Architecture, sizes: Mapping[str, int], scale: float
) -> tuple[dict[str, Matrix], float] | None:
    """Where Gaussian weights of standard deviation σ start a scalar block on average.

    Also what random weights may add to its growth, as a part of it. A class of N hidden neurons
    has r = ½ (W_in v + W_outᵀu), of expected squared length ¼ N σ² Σ ‖v_m + u_m‖² over the
    matrices m at its ends, which is N σ²/2 where none is both at inputs and at outputs; the matrix
    within the class starts at r̂ᵀW_h r̂, on average 0. None where no such average is known: matrix
    blocks, other graphs, and modes whose growth random weights decide, as after a delay.
    """
    nodes = dict.fromkeys(arch.class_of[v] for v in block.arch.hidden)
    if not block.is_scalar or not all(_is_recurrent(arch, node) for node in nodes):
        return None
    found = {name: np.zeros((1, 1)) for name in block.arch.matrices}
    noise = 0.0
    for node in nodes:
        part = _at_class(block, found, arch, node)
        random = 2 * scale * np.sqrt(sizes[node])  # about the largest of a square matrix
        added = random * sum(part.slopes.values()) / part.s[0] if part.s[0] else np.inf
        if added > NOISY_GROWTH:
            return None
        noise, end = max(noise, float(added)), dict[str, float]()
        for way, vectors in zip(
            ways(block.arch, _name(block, arch, node)), (part.right, part.left), strict=True
        ):
            for (name, _), value in zip(way, vectors[:, 0].tolist(), strict=True):
                end[name] = end.get(name, 0.0) + value
        length = scale * np.sqrt(sizes[node] * sum(v**2 for v in end.values())) / 2
        for way, vectors in zip(
            ways(block.arch, _name(block, arch, node)), (part.right, part.left), strict=True
        ):
            for (name, _), value in zip(way, vectors[:, 0].tolist(), strict=True):
                found[name] = np.full((1, 1), length * value)
    return found, noise


def _is_recurrent(arch: Architecture, node: str) -> bool:
    """Whether a class of hidden nodes is joined to inputs, to outputs and to itself alone."""
    of = arch.class_of
    members = {v for v in arch.sizes if of[v] == node}
    near = {
        of[u] if u in arch.hidden else ""
        for e, ends in arch.edges.items()
        for u in ends
        if not members.isdisjoint(ends)
    }
    return members <= set(arch.hidden) and near <= {node, ""}


def _passes(block: Block, arch: Architecture, node: str) -> bool:
    return any(arch.class_of[v] == node for v in block.arch.hidden)


def _name(block: Block, arch: Architecture, node: str) -> str:
    """What the block, which may lack some of its nodes, calls a class."""
    return next(block.arch.class_of[v] for v in block.arch.hidden if arch.class_of[v] == node)


def _inner(block: Block, arch: Architecture, node: str) -> dict[str, None]:
    """The matrices within a class."""
    ends = block.arch.matrix_ends.items()
    return {n: None for n, (s, t) in ends if arch.class_of[s] == arch.class_of[t] == node}


def _at_class(
    block: Block, weights: Mapping[str, Matrix], arch: Architecture, node: str
) -> _AtClass:
    here = _name(block, arch, node)
    into, out = ways(block.arch, here)
    reads = np.concatenate([weights[n].T if turned else weights[n] for n, turned in into], axis=1)
    writes = np.concatenate([weights[n] if turned else weights[n].T for n, turned in out], axis=1)
    inner = _inner(block, arch, node)
    gamma = {n: float(np.trace(weights[n])) / len(weights[n]) for n in inner}
    u, s, vt = np.linalg.svd(through_class(block.arch, block.factor, here, gamma))
    slopes, noise = {}, 0.0
    for n in inner:
        off = np.linalg.norm(weights[n] - gamma[n] * np.eye(len(weights[n])), 2)
        step = {**gamma, n: gamma[n] + 1e-30j}
        slope = np.imag(through_class(block.arch, block.factor, here, step)) / 1e-30
        slopes[n] = float(np.linalg.norm(slope, 2))
        noise += float(off) * slopes[n]
    return _AtClass(reads, writes, s, vt.T[:, : len(s)], u[:, : len(s)], noise, gamma, slopes)


def _scalar(
    block: Block,
    part: _AtClass,
    faster: Matrix,
    weights: Mapping[str, Matrix],
    arch: Architecture,
    node: str,
) -> tuple[dict[str, Matrix], bool]:
    """The weights of a scalar mode, without the hidden directions of faster ones.

    Also whether some of them were left out. Edges from inputs to outputs start where they are.
    """
    reads, writes = (w - faster @ (faster.T @ w) for w in (part.reads, part.writes))
    left = np.linalg.norm(reads) + np.linalg.norm(writes)
    if left <= ROUNDING * (np.linalg.norm(part.reads) + np.linalg.norm(part.writes)):
        reads, writes = 0 * reads, 0 * writes  # no hidden direction is left
    u, size, _ = np.linalg.svd(np.concatenate([reads, writes], axis=1), full_matrices=False)
    is_half = len(size) > 1 and bool(size[1] > ROUNDING * size[0])
    r, found = u[:, :1], dict(weights)
    if is_half:
        half = (reads @ part.right[:, :1] + writes @ part.left[:, :1]) / 2
        length = float(np.linalg.norm(half))
        r = half / (length or 1.0)
        reads, writes = r @ (length * part.right[:, :1].T), r @ (length * part.left[:, :1].T)
    found |= {n: r.T @ weights[n] @ r for n in _inner(block, arch, node)}
    sides = ways(block.arch, _name(block, arch, node))
    for side, columns in zip(sides, (r.T @ reads, r.T @ writes), strict=True):
        found |= {name: columns[:, [k]] for k, (name, _) in enumerate(side)}
    for n in _inner(block, arch, node):
        w = weights[n]
        off = [v - r @ (r.T @ v) for v in (w @ r, w.T @ r)]
        is_half |= bool(np.linalg.norm(off) > ROUNDING * np.linalg.norm(w))
    return found, is_half
