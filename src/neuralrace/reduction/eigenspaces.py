"""Eigenspaces of random elements of the algebra that the statistics of a task generate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.reduction.mixtures import SPREAD, AnyMixer, TiedDraw, TiedMixer
from neuralrace.tolerances import COUPLED, DEPENDENT, GRADED, OUTSIDE, ROUNDING

CALM = 2
"""The number of rounds without a split after which the spaces are final."""

MOST = 40
"""The most rounds."""


@final
@dataclass(frozen=True, eq=False)
class Spaces:
    """Orthonormal directions of every node, in the columns of `basis[v]`, sorted into spaces.

    Directions of one space are neighbours and share an entry of `label[v]`; `size[v]` holds their
    sizes. At first every node is one space, and sizes are singular values.
    """

    basis: Mapping[str, Float[np.ndarray, "_ _"]]
    label: Mapping[str, Int[np.ndarray, " _"]]
    size: Mapping[str, Float[np.ndarray, " _"]]

    @property
    def count(self) -> int:
        """The number of spaces."""
        return sum(int(label[-1]) + 1 for label in self.label.values() if len(label))

    @property
    def all_simple(self) -> bool:
        """Whether every space has one dimension."""
        return self.count == sum(len(label) for label in self.label.values())

    def parts(self, node: str) -> list[slice]:
        """The columns of every space of a node."""
        label = self.label[node]
        ends = np.append(np.flatnonzero(np.diff(label, prepend=-1)), len(label))
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def signal_directions(mixer: AnyMixer, draws: Sequence[Any], cutoff: float) -> tuple[Spaces, float]:
    """The directions that some statistic touches, with their sizes; all of a node in one space.

    At an input, these are the directions that some open path shows. At an output, they are those in
    which targets correlate with any input; inputs are whitened first, which applies a function of
    their Σ^x. Also returns the largest size, relative to its node, that the `cutoff` left out.
    """
    if isinstance(mixer, TiedMixer):
        return _class_directions(mixer, draws), 0.0
    basis, size, dropped = {}, {}, 0.0
    white: dict[str, np.ndarray] = {}
    for s in mixer.arch.inputs:
        x = mixer.factor.x[s]
        rows, weight = draws[0].xx.get((s, s), (slice(0), np.zeros(0)))
        basis[s], size[s], out = _principal(np.sqrt(weight)[:, None] * x[rows], cutoff)
        white[s] = x @ (basis[s] / size[s])
        dropped = max(dropped, out)
    heard: dict[str, list[np.ndarray]] = {}
    for draw in draws:
        for (t, s), (rows, weight) in draw.yx.items():
            y = weight[:, None] * mixer.factor.y[t][rows]
            heard.setdefault(t, []).append(white[s][rows].T @ y)
    for t in mixer.arch.outputs:
        y = mixer.factor.y[t]
        stack = np.concatenate([np.zeros((1, y.shape[1])), *heard.get(t, [])])
        loud, own, out = _principal(y, cutoff)
        if cutoff:  # drop targets that, in units of their own sizes, correlate with no input
            inner, _, faint = _principal(stack @ (loud / own), cutoff)
            loud = loud @ np.linalg.qr(own[:, None] * inner)[0]
            dropped = max(dropped, out, faint)
        inner, size[t], _ = _principal(stack @ loud, 0.0, own.max(initial=0.0))
        basis[t] = loud @ inner
    label = {v: np.zeros(b.shape[1], int) for v, b in basis.items()}
    return Spaces(basis, label, size), dropped


def _class_directions(mixer: TiedMixer, draws: Sequence[TiedDraw]) -> Spaces:
    """The directions of every class that some statistic touches, with their sizes.

    Those that its inputs show, and those in which targets correlate with any input.
    """
    shown = {v: _principal(rows, 0.0) for v, rows in mixer.shown.items()}
    inputs = {mixer.arch.class_of[v] for v in mixer.arch.inputs}
    basis, size = {}, {}
    for v, (loud, own, _) in shown.items():
        basis[v], size[v] = loud, own
        if v not in inputs:
            white = {u: b / s for u, (b, s, _) in shown.items()}
            heard = [m @ white[b] for d in draws for (a, b), m in d.matrices.items() if a == v]
            stack = np.concatenate([np.zeros((len(loud), 1)), *heard], axis=1).T
            inner, size[v], _ = _principal(stack @ loud, 0.0, own.max(initial=0.0))
            basis[v] = loud @ inner
    label = {v: np.zeros(b.shape[1], int) for v, b in basis.items()}
    return Spaces(basis, label, size)


def _principal(
    x: np.ndarray, cutoff: float, largest: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Right singular vectors and values above the cutoff, and the largest value below it.

    The cutoff is relative to the largest value; `largest` is the reference for rounding. If the
    columns are independent after scaling to unit length, small values belong to small features and
    are not rounding.
    """
    if not x.any():
        return np.zeros((x.shape[1], 0)), np.zeros(0), 0.0
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    largest = max(largest, float(s[0]))
    rank = int((s > DEPENDENT * largest).sum())
    if rank < x.shape[1] <= len(x) and not largest > s[0]:
        norms = np.linalg.norm(x, axis=0)
        unit = np.linalg.svd(x / np.where(norms > 0, norms, 1.0), compute_uv=False)
        rank = max(rank, int((unit > DEPENDENT * unit[0]).sum()))
    loud = int((s[:rank] > cutoff * s[0]).sum())
    return vt[:loud].T, s[:loud], float(s[loud] / s[0]) if loud < rank else 0.0


def refined(
    mixer: AnyMixer, spaces: Spaces, draws: Sequence[Any], gap: float, rng: np.random.Generator
) -> Spaces:
    """Split every space by the eigenvalues of random elements until no space splits any further.

    Eigenvalues count as different if their relative difference exceeds `gap`. Closer ones may be
    separated by another element; splitting them here would let rounding mix their eigenvectors.
    """
    calm = 0
    for k in range(MOST):
        if spaces.all_simple or calm == CALM:
            break
        finer = _split(mixer, spaces, draws[k % len(draws)], gap, rng)
        calm = calm + 1 if finer.count == spaces.count else 0
        spaces = finer
    return spaces


def _split(
    mixer: AnyMixer, spaces: Spaces, draw: Any, gap: float, rng: np.random.Generator
) -> Spaces:
    element = _element(mixer, spaces, draw, rng)
    basis, label, size = dict(spaces.basis), dict(spaces.label), dict(spaces.size)
    for v, old in spaces.basis.items():
        turned, names, at = [], [], 0
        for part in spaces.parts(v):
            inner = element[v][part, part]
            if len(inner) == 1:
                groups, directions = np.zeros(1, int), old[:, part]
            else:
                values, turn = _eigenvectors(inner, spaces.size[v][part])
                steps = np.diff(values) > gap * values[1:]
                groups = np.concatenate([[0], np.cumsum(steps)])
                directions = old[:, part] @ turn if steps.any() else old[:, part]
            turned.append(directions)
            names.append(at + groups)
            at += int(groups[-1]) + 1
        if turned:
            basis[v] = np.concatenate(turned, axis=1)
            label[v] = np.concatenate(names)
    found = Spaces(basis, label, size)
    return Spaces(basis, label, _common_sizes(mixer, found, draw))


def _common_sizes(mixer: AnyMixer, spaces: Spaces, draw: Any) -> dict[str, np.ndarray]:
    """One size for every space: the root mean square of its directions."""
    found = {}
    for v, square in mixer.seen_in(spaces.basis).squares(draw).items():
        count = np.bincount(spaces.label[v])
        mean = np.bincount(spaces.label[v], square) / np.maximum(count, 1)
        found[v] = np.sqrt(np.where(mean > 0, mean, 1.0))[spaces.label[v]]
    return found


def _element(
    mixer: AnyMixer, spaces: Spaces, draw: Any, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """A random positive element: 1 + Σ M + Σ M w Mᵀ, with one random w for every space.

    Directions are in units of their sizes. Within a space all sizes are equal; at first, the sizes
    are themselves roots of an element. In both cases the sum is again an element of the algebra.
    """
    unit = mixer.seen_in({v: b / spaces.size[v] for v, b in spaces.basis.items()})
    found = {v: np.eye(b.shape[1]) for v, b in spaces.basis.items()}
    weight = {
        v: rng.uniform(*SPREAD, int(label.max(initial=0)) + 1)[label]
        for v, label in spaces.label.items()
    }
    for (a, b), matrix in unit.statistics(draw):
        norm = float(np.linalg.norm(matrix))
        if norm:
            m = matrix * (np.sqrt(min(matrix.shape)) / norm)
            found[a] += rng.uniform(*SPREAD) * (m * weight[b]) @ m.T
            if a != b:
                found[b] += rng.uniform(*SPREAD) * (m.T * weight[a]) @ m
            else:
                found[a] += rng.uniform(*SPREAD) * m
    return found


def _eigenvectors(inner: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of D K D, smallest first, for K well conditioned and sizes D.

    Where the sizes differ widely, it uses one-sided Jacobi rotations, which find every eigenvector
    with a precision relative to its own size (Demmel & Veselić 1992).
    """
    if size.min() > GRADED * size.max():
        return np.linalg.eigh(size[:, None] * inner * size)
    from scipy.linalg import lapack

    jacobi: Any = lapack  # SciPy's type stubs lack this routine
    root = np.linalg.cholesky(inner).T * size
    s, _, v, work, _, info = jacobi.dgejsv(root, joba=0, jobu=3, jobv=0)
    if info:
        return np.linalg.eigh(size[:, None] * inner * size)
    values = (s * (work[0] / work[1])) ** 2
    order = np.argsort(values)
    return values[order], v[:, order]


# Identical copies of a block: bases of their eigenspaces that match each other.

Space = tuple[str, int]
"""A node and the index of one of its spaces."""

Link = tuple[Space, Space, np.ndarray]
"""The coupling between two spaces of equal dimension."""

MIXES = 3
"""The number of random combinations of the couplings in which copies must not mix."""


def aligned(
    mixer: AnyMixer,
    spaces: Spaces,
    draws: Sequence[Any],
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


def _links(
    mixer: AnyMixer, spaces: Spaces, draws: Sequence[Any], tolerance: float
) -> Iterator[Link]:
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
        start = rest[:, int(np.argmax(np.linalg.norm(rest, axis=0) > OUTSIDE))]
        block = (start / np.linalg.norm(start))[:, None]
        at = 0
        while at < block.shape[1]:
            for step in steps:
                v = step @ block[:, at]
                for _ in range(2):
                    v = v - done @ (done.T @ v) - block @ (block.T @ v)
                if np.linalg.norm(v) > COUPLED * near:
                    block = np.concatenate([block, (v / np.linalg.norm(v))[:, None]], axis=1)
            at += 1
        done = np.concatenate([done, block], axis=1)
    return done
