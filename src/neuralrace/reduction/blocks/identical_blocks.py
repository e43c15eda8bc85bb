"""Blocks that are copies of each other: equal statistics up to a rotation of their directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.reduction.blocks.block import Block, few_rows, places
from neuralrace.reduction.blocks.mixtures import Mixer, Pair
from neuralrace.types import Matrix

CLOSE = 1e-6
"""Singular values closer than this, relatively, count as equal."""

NOT_A_TURN = 1e-3
"""A map counts as a rotation if its singular values differ by less than this, relatively."""

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
    mine, theirs = (_mixtures(b) for b in (block, other))
    if set(mine) != set(theirs):
        return None
    dims = block.dims
    place = places(tuple(dims), {v: n * n for v, n in dims.items()})
    table = np.zeros((0, sum(n * n for n in dims.values())))
    for (a, b), stack in mine.items():
        scale = float(np.abs(stack).max()) or 1.0
        for m, w in zip(stack / scale, theirs[a, b] / scale, strict=True):
            row = np.zeros((dims[a] * dims[b], table.shape[1]))
            row[:, place[a]] += np.kron(np.eye(dims[a]), m.T)
            row[:, place[b]] -= np.kron(w, np.eye(dims[b]))
            table = few_rows(np.concatenate([table, row]))
    _, s, vt = np.linalg.svd(table, full_matrices=True)
    if len(s) == vt.shape[0] and s[-1] > CLOSE * s[0]:
        return None
    found = {v: vt[-1][place[v]].reshape(n, n) for v, n in dims.items()}
    turns = {}
    for v, o in found.items():
        u, size, wt = np.linalg.svd(o)
        if size[-1] < (1 - NOT_A_TURN) * size[0] or size[0] == 0:
            return None
        turns[v] = u @ wt
    return turns


def _mixtures(block: Block) -> dict[Pair, np.ndarray]:
    """Mixtures of all statistics of a block, with the same scalars for all blocks of one graph."""
    mixer, rng = Mixer(block.arch, block.factor), np.random.default_rng(0)
    found: dict[Pair, list[np.ndarray]] = {}
    for draw in [mixer.draw(rng) for _ in range(MIXTURES)]:
        for pair, matrix in (*mixer.yx(draw.yx).items(), *mixer.xx(draw).items()):
            found.setdefault(pair, []).append(matrix)
    return {pair: np.stack(stack) for pair, stack in found.items()}
