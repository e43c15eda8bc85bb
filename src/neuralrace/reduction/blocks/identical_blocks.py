"""Blocks that are copies of each other: equal statistics up to a rotation of their directions.

All directions of a block side by side, its statistics generate an algebra of matrices. A random
symmetric element of it has simple eigenvalues, because a block has no smaller parts. A copy has the
same eigenvalues, and a rotation onto it takes eigenvectors to eigenvectors, so that only signs are
left to find (Maehara & Murota 2011). This takes a few eigendecompositions of the block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from typing import final

import numpy as np

from neuralrace.reduction.blocks.block import Block, few_rows, places
from neuralrace.reduction.blocks.mixtures import Mixer, Pair
from neuralrace.types import Matrix

CLOSE = 1e-6
"""Singular values closer than this, relatively, count as equal."""

NOT_A_TURN = 1e-3
"""A map is a rotation onto a copy if it leaves less than this of itself and of each statistic."""

MIXTURES = 3
"""The number of mixtures of all statistics in which two blocks are compared."""


@final
@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of another block: `turns[v]` rotates its directions into those of the first."""

    block: int
    turns: Mapping[str, Matrix]


def identical(blocks: Sequence[Block]) -> list[list[Copy]]:
    """Groups of two or more blocks with the same statistics up to a rotation."""
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
    """Orthogonal O_v with O_a M = M' O_b for all statistics M, M' of the two blocks, or None."""
    if block.arch != other.arch or abs(block.drive - other.drive) > CLOSE * other.drive:
        return None
    return block.cached(("turns onto", other.name), lambda: _intertwiner(block, other))


def _intertwiner(block: Block, other: Block) -> dict[str, Matrix] | None:
    mine, theirs = (b.cached("side by side", partial(_side_by_side, b)) for b in (block, other))
    if mine.shape != theirs.shape:
        return None
    sizes = np.linalg.norm(mine, axis=(1, 2))
    if (np.abs(sizes - np.linalg.norm(theirs, axis=(1, 2))) > CLOSE * sizes).any():
        return None
    scale = np.where(sizes > 0, sizes, 1.0)[:, None, None]
    mine, theirs = mine / scale, theirs / scale
    (s, q), (s_other, q_other) = (np.linalg.eigh(_element(each, 0)) for each in (mine, theirs))
    near = CLOSE * float(np.abs(s).max())
    if np.abs(s - s_other).max() > near:
        return None
    if (np.diff(s) <= near).any():
        turn = _null_vector(block.dims, mine, theirs)
    else:
        seen, seen_other = q.T @ _element(mine, 1) @ q, q_other.T @ _element(theirs, 1) @ q_other
        # seen_other_ij = σ_i σ_j seen_ij, so that the leading vector of the product has the signs σ
        signs = np.where(np.linalg.eigh(seen * seen_other)[1][:, -1] < 0, -1.0, 1.0)
        turn = (q_other * signs) @ q.T
    left = np.abs(turn @ turn.T - np.eye(len(turn))).max()
    if max(left, np.abs(turn @ mine - theirs @ turn).max()) > NOT_A_TURN:
        return None
    place = places(tuple(block.dims), block.dims)
    polar = (np.linalg.svd(turn[place[v], place[v]]) for v in block.dims)
    return {v: u @ vt for v, (u, _, vt) in zip(block.dims, polar, strict=True)}


def _side_by_side(block: Block) -> np.ndarray:
    """Mixtures of all statistics, and projectors onto the nodes: symmetric, `(K, n, n)`.

    The directions of all nodes stand side by side. Blocks of one graph are mixed alike.
    """
    mixer, rng = Mixer(block.arch, block.factor), np.random.default_rng(0)
    place = places(tuple(block.dims), block.dims)
    n = sum(block.dims.values())
    found: dict[tuple[int, Pair], Matrix] = {}
    for v in block.dims:
        found[-1, (v, v)] = np.zeros((n, n))
        np.fill_diagonal(found[-1, (v, v)][place[v], place[v]], 1.0)
    for k, draw in enumerate([mixer.draw(rng) for _ in range(MIXTURES)]):
        for (a, b), matrix in (*mixer.yx(draw.yx).items(), *mixer.xx(draw).items()):
            whole = found[k, (a, b)] = np.zeros((n, n))
            whole[place[a], place[b]] = matrix
            whole[place[b], place[a]] = matrix.T
    return np.stack([found[key] for key in sorted(found)])


def _element(matrices: np.ndarray, seed: int) -> Matrix:
    """A random symmetric element of the algebra that symmetric matrices generate."""
    first, second = np.random.default_rng(seed).normal(size=(2, len(matrices)))
    a, b = np.tensordot(first, matrices, axes=1), np.tensordot(second, matrices, axes=1)
    return a + a @ b + b @ a + b @ b


def _null_vector(dims: Mapping[str, int], mine: np.ndarray, theirs: np.ndarray) -> Matrix:
    """A map O, block by block of the nodes, for which O M − M' O is least.

    It is needed only for blocks in which every symmetric element has double eigenvalues, since
    their directions come in pairs: the unknowns are all entries of O at once.
    """
    place = places(tuple(dims), dims)
    unknown = places(tuple(dims), {v: n * n for v, n in dims.items()})
    table = np.zeros((0, sum(n * n for n in dims.values())))
    for m, w in zip(mine, theirs, strict=True):
        for a, b in combinations_with_replacement(dims, 2):
            here, there = m[place[a], place[b]], w[place[a], place[b]]
            if here.any() or there.any():
                row = np.zeros((dims[a] * dims[b], table.shape[1]))
                row[:, unknown[a]] += np.kron(np.eye(dims[a]), here.T)
                row[:, unknown[b]] -= np.kron(there, np.eye(dims[b]))
                table = few_rows(np.concatenate([table, row]))
    least = np.linalg.svd(table, full_matrices=True)[2][-1]
    turn = np.zeros(mine.shape[1:])
    for v, n in dims.items():
        turn[place[v], place[v]] = least[unknown[v]].reshape(n, n)
    return turn * np.sqrt(len(turn))
