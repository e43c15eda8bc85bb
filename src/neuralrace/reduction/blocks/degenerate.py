"""Identical copies of a block: bases of their eigenspaces that match each other.

An eigenspace of dimension m that no element of the algebra splits belongs to m identical copies of
a block. Each copy has one direction in it. In another eigenspace of the same copies, the direction
of each is the image of the first under the coupling; its polar factor gives this map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from neuralrace.reduction.blocks.eigenspaces import Spaces
from neuralrace.reduction.blocks.mixtures import Draw, Mixer

Space = tuple[str, int]
"""A node and the index of one of its spaces."""

Link = tuple[Space, Space, np.ndarray]
"""The coupling between two spaces of equal dimension."""

MIXES = 3
"""The number of random combinations of the couplings in which copies must not mix."""

ROUNDING = 1e-10
"""Couplings that differ from a multiple of the identity by less than this do not mix copies."""

LONG = 0.5
"""A unit vector starts a new block if more than this of it lies outside the blocks found."""

MARGIN = 100
"""A direction joins a block if its coupling exceeds this many times the rounding error."""


def aligned(
    mixer: Mixer,
    spaces: Spaces,
    draws: Sequence[Draw],
    tolerance: float,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """The directions of all spaces, rotated within each so that copies stay separate."""
    basis = {v: b.copy() for v, b in spaces.basis.items()}
    if spaces.all_simple:
        return basis
    links = list(_links(mixer, spaces, draws, tolerance))
    turns = _spanning_turns(links)
    for members in _linked_groups(turns):
        loops = [
            turns[a][1].T @ k @ turns[b][1] for a, b, k in links if a in members and b in members
        ]
        turn = _separating_turn(loops, tolerance, rng)
        for space in members:
            turns[space] = (turns[space][0], turns[space][1] @ turn)
    for (v, i), (_, turn) in turns.items():
        part = spaces.parts(v)[i]
        basis[v][:, part] = basis[v][:, part] @ turn
    return basis


def _links(mixer: Mixer, spaces: Spaces, draws: Sequence[Draw], tolerance: float) -> Iterator[Link]:
    """Couplings, as correlations, between spaces of the same dimension, which is more than 1."""
    large = {
        v: [(i, part) for i, part in enumerate(spaces.parts(v)) if part.stop - part.start > 1]
        for v in spaces.basis
    }
    seen = mixer.seen_in(spaces.basis)
    for draw in draws:
        for (a, b), matrix, left, right in seen.couplings(draw):
            for i, rows in large[a]:
                for j, columns in large[b]:
                    k = matrix[rows, columns]
                    if k.shape[0] == k.shape[1]:
                        k = k / np.sqrt((left[rows] ** 2).mean() * (right[columns] ** 2).mean())
                        if np.linalg.norm(k) > tolerance * np.sqrt(len(k)):
                            yield (a, i), (b, j), k


def _spanning_turns(links: Sequence[Link]) -> dict[Space, tuple[Space, np.ndarray]]:
    """For every space, the first space of its linked group and the rotation that matches it.

    Follows the strongest links (Kruskal's maximum spanning tree), joining rotated groups.
    """
    found: dict[Space, tuple[Space, np.ndarray]] = {}
    for a, b, k in links:
        for space in (a, b):
            found.setdefault(space, (space, np.eye(len(k))))
    for a, b, k in sorted(links, key=lambda link: -float(np.linalg.norm(link[2]))):
        if found[a][0] == found[b][0]:
            continue
        u, _, wt = np.linalg.svd(found[a][1].T @ k @ found[b][1])
        old, new, turn = found[b][0], found[a][0], wt.T @ u.T
        for space, (first, mine) in found.items():
            if first == old:
                found[space] = (new, mine @ turn)
    return found


def _linked_groups(turns: Mapping[Space, tuple[Space, np.ndarray]]) -> list[list[Space]]:
    groups: dict[Space, list[Space]] = {}
    for space, (first, _) in turns.items():
        groups.setdefault(first, []).append(space)
    return list(groups.values())


def _separating_turn(
    loops: Sequence[np.ndarray], tolerance: float, rng: np.random.Generator
) -> np.ndarray:
    """An orthonormal basis in which the couplings around all loops have common blocks.

    Along the tree all couplings are multiples of the identity. Where another coupling is not, a
    direction and all its images under the couplings form one block (two directions, for a
    rotation). The next block starts from a direction orthogonal to it.
    """
    n = len(loops[0])
    off = [k - np.trace(k) / n * np.eye(n) for k in loops]
    near = max(tolerance, ROUNDING)
    if max(float(np.linalg.norm(k)) for k in off) <= near:
        return np.eye(n)
    mixes = [np.tensordot(rng.normal(size=len(off)), off, axes=1) for _ in range(MIXES)]
    mixes = [m / (float(np.linalg.norm(m, 2)) or 1.0) for m in mixes]
    odd = mixes[0] - mixes[0].T
    element = sum((m + m.T for m in mixes), np.zeros((n, n))) + odd.T @ odd
    first = np.linalg.eigh(element)[1]
    done = np.zeros((n, 0))
    steps = [s for m in mixes for s in (m, m.T)]
    while done.shape[1] < n:
        rest = first - done @ (done.T @ first)
        start = rest[:, int(np.argmax(np.linalg.norm(rest, axis=0) > LONG))]
        block = (start / np.linalg.norm(start))[:, None]
        at = 0
        while at < block.shape[1]:
            for step in steps:
                v = step @ block[:, at]
                for _ in range(2):
                    v = v - done @ (done.T @ v) - block @ (block.T @ v)
                if np.linalg.norm(v) > MARGIN * near:
                    block = np.concatenate([block, (v / np.linalg.norm(v))[:, None]], axis=1)
            at += 1
        done = np.concatenate([done, block], axis=1)
    return done
