"""Where modes of networks with shared weights start: from actual weights, with nothing fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.errors import require
from neuralrace.reduction.block import Block
from neuralrace.reduction.mixtures import through_class, ways
from neuralrace.reduction.two_edge_start import orthonormal, scalar_start
from neuralrace.tolerances import EQUAL, NOISE, NOISY_GROWTH
from neuralrace.types import Matrix


@final
@dataclass(frozen=True, eq=False)
class _AtClass:
    """A block at a class of hidden nodes: all that goes in and all that goes out, side by side.

    `s` are the singular values of Σ^yx through the class, largest first, with singular vectors in
    the columns of `right` and `left`; `noise` is what random weights may add to the largest.
    """

    reads: Matrix
    writes: Matrix
    s: np.ndarray
    right: Matrix
    left: Matrix
    noise: float

    @property
    def growing(self) -> Matrix:
        """½ (W_in v + W_outᵀu) of every mode, in columns."""
        return (self.reads @ self.right + self.writes @ self.left) / 2


def tied_start(
    blocks: Sequence[Block], restricted: Sequence[Mapping[str, Matrix]], arch: Architecture
) -> tuple[list[dict[str, Matrix]], float | None]:
    """The start of every block, and how much of its growth is not known from the rule.

    A class of hidden nodes has matrices W_in from inputs, W_out to outputs and W_h within itself,
    such as a recurrent network unrolled in time. While all are small, or W_h is near a multiple
    γ of the identity, r = ½ (W_in v + W_outᵀu) grows along each mode, at the rate s of Σ^yx summed
    over paths with γ for every step within the class. A learned mode expels later ones from its
    hidden direction. So a scalar mode starts at ‖r‖ on both sides, r without the r of modes with
    larger s, and at r̂ᵀW_h r̂ within. Where the halves lie along one direction already, they start as
    they are. Blocks that are not scalar, and networks of another form, start from the weights
    between their directions.

    What W_h adds to the growth beyond γ is at most ‖W_h − γI‖ times the derivative of s by γ; its
    largest part of s is the second result. Raises where it exceeds `NOISY_GROWTH`: which mode grows
    then depends on the random weights, such as after a delay.
    """
    found = [dict(weights) for weights in restricted]
    worst: float | None = None
    for node in dict.fromkeys(arch.class_of[v] for v in arch.hidden):
        if not _is_recurrent(arch, node):
            continue
        users = [i for i, block in enumerate(blocks) if _passes(block, arch, node)]
        parts = {i: _at_class(blocks[i], found[i], arch, node) for i in users}
        for i in (i for i in users if blocks[i].is_scalar):
            part, block = parts[i], blocks[i]
            noise = part.noise / part.s[0] if part.s[0] else np.inf
            require(
                noise <= NOISY_GROWTH,
                "the start of a mode is not known: it grows by random shared weights",
                got=f"{block.name}, which grows at {part.s[0]:.3g}, and random weights that may "
                f"add {part.noise:.3g}",
                wanted=f"at most {NOISY_GROWTH:g} times the growth that is known",
                fix="start W_h near a multiple of the identity, or smaller; where the target is "
                "delayed, nothing grows by small weights alone. race.start(number) is aligned",
            )
            worst = noise if worst is None else max(worst, noise)
            found[i] = _scalar(block, part, _faster(part, parts, i), restricted[i], arch, node)
    return found, worst


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
    noise = 0.0
    for n in inner:
        off = np.linalg.norm(weights[n] - gamma[n] * np.eye(len(weights[n])), 2)
        step = {**gamma, n: gamma[n] + 1e-30j}
        slope = through_class(block.arch, block.factor, here, step).imag / 1e-30
        noise += float(off * np.linalg.norm(slope, 2))
    return _AtClass(reads, writes, s, vt.T[:, : len(s)], u[:, : len(s)], noise)


def _faster(part: _AtClass, parts: Mapping[int, _AtClass], index: int) -> Matrix:
    """An orthonormal basis of the growing halves of modes that are faster than a block's first."""
    others = [p for i, p in parts.items() if i != index]
    largest = max(float(np.linalg.norm(w)) for p in parts.values() for w in (p.reads, p.writes))
    faster = [p.growing[:, p.s > part.s[0] * (1 + EQUAL)] for p in others]
    faster = [g[:, np.linalg.norm(g, axis=0) > NOISE * largest] for g in faster]
    return orthonormal(np.concatenate([part.reads[:, :0], *faster], axis=1))


def _scalar(
    block: Block,
    part: _AtClass,
    faster: Matrix,
    weights: Mapping[str, Matrix],
    arch: Architecture,
    node: str,
) -> dict[str, Matrix]:
    """The weights of a scalar mode, without the hidden directions of faster ones.

    Edges from inputs to outputs start where they are.
    """
    rest = lambda w: w - faster @ (faster.T @ w)
    reads, writes = rest(part.reads @ part.right[:, :1]), rest(part.writes @ part.left[:, :1])
    into, out, is_half = scalar_start(reads, writes)
    r = reads + writes if is_half or not reads.any() else reads
    r = r / (float(np.linalg.norm(r)) or 1.0)
    incoming, outgoing = ways(block.arch, _name(block, arch, node))
    found = dict(weights) | {n: r.T @ weights[n] @ r for n in _inner(block, arch, node)}
    for (name, _), v in zip(incoming, part.right[:, 0], strict=True):
        found[name] = np.array([[into * v]])
    for (name, turned), u in zip(outgoing, part.left[:, 0], strict=True):
        if (name, not turned) not in incoming:
            found[name] = np.array([[out * u]])
    return found
