"""Shared bases: the finest block form that all statistics of a gated task have in common.

The papers assume orthogonal bases that make every Σ^yx(p) and Σ^x(j,p) diagonal (NRR Eqs. 7–8, MHS
Assumption 2.1.1). This module finds such bases; where the matrices do not commute, it finds the
finest common *blocks*. The statistics generate an algebra of matrices between the nodes. Everything
that commutes with them is block diagonal in the eigenspaces of a random symmetric element of that
algebra, so the eigenvectors of a few elements show the blocks (Murota, Kanno, Kojima & Kojima
2010). An eigenspace that no element splits holds identical copies of a block; `aligned` turns its
directions into each other. In the end only the directions count: those joined by couplings above
the tolerance form a block, with each coupling taken relative to the sizes of the two directions it
couples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.reduction.eigenspaces import aligned, refined, signal_directions
from neuralrace.reduction.mixtures import AnyMixer, Mixer, Pair, TiedMixer
from neuralrace.tolerances import CONVERGED, EXACT, GAPS, POLISHED, WIDE_GAPS

FIRST_DRAWS = 3
"""The number of mixtures drawn first."""

CHECK_DRAWS = 2
"""The number of mixtures drawn to check the blocks; if they disagree, they join the others."""

MAX_ROUNDS = 40
"""The most rounds of adding mixtures; blocks that still disagree are not called exact."""

MANY_DRAWS = 8
"""Mixtures drawn first for an approximate reduction; fewer may show some directions faintly."""


@final
@dataclass(frozen=True, eq=False)
class SharedBasis:
    """Orthonormal directions at every input and output node, sorted into blocks.

    Column i of `directions[v]` belongs to block `block[v][i]`; blocks count from 0 to `count − 1`.
    Directions of a node outside the span of `directions` are silent: no statistic touches them.
    Direction i of node v lies in the eigenspace `space[v][i]`; copies of a block have one direction
    each in the same spaces.
    `residual` is the largest relative size that was dropped, over all mixtures drawn: of a coupling
    between blocks, relative to the sizes of the two directions it couples, or of a direction,
    relative to its node. `dropped_directions` says whether an approximate reduction left out any
    direction, and `settled` whether fresh mixtures confirmed the blocks.
    """

    directions: Mapping[str, Float[np.ndarray, "_ _"]]
    block: Mapping[str, Int[np.ndarray, " _"]]
    space: Mapping[str, Int[np.ndarray, " _"]]
    count: int
    residual: float
    settled: bool = True
    dropped_directions: bool = False

    def of(self, block: int) -> dict[str, Float[np.ndarray, "_ _"]]:
        """The directions of one block, by node; nodes that have none are left out."""
        found = {v: self.directions[v][:, self.block[v] == block] for v in self.directions}
        return {v: d for v, d in found.items() if d.shape[1]}

    def spaces_of(self, block: int) -> tuple[tuple[str, int], ...]:
        """The eigenspaces of the directions of one block: blocks with equal ones may be copies."""
        at = ((v, self.space[v][self.block[v] == block].tolist()) for v in self.directions)
        return tuple((v, i) for v, spaces in at for i in spaces)


def shared_basis(mixer: AnyMixer, tolerance: float, seed: int = 0) -> SharedBasis:
    """The finest blocks whose couplings to each other stay below `tolerance`.

    Assumes nodes of similar size (`mixtures.in_unit_sizes`). Draws mixtures of the statistics until
    fresh ones agree with the blocks found from the earlier ones. `settled` is False if they never
    do.
    """
    rng = np.random.default_rng(seed)
    first = min(FIRST_DRAWS, mixer.variety) if tolerance <= EXACT else MANY_DRAWS
    draws = [mixer.draw(rng) for _ in range(first)]
    found = _blocks(mixer, draws, tolerance, rng)
    rounds, left_out = 0, np.inf
    while left_out > tolerance:
        fresh = [mixer.draw(rng) for _ in range(min(CHECK_DRAWS, mixer.variety))]
        left_out = _largest_dropped(mixer, fresh, found)
        if rounds == MAX_ROUNDS:
            break
        if left_out > tolerance:
            draws += fresh
            found = _blocks(mixer, draws, tolerance, rng)
            rounds += 1
    settled = left_out <= tolerance
    return replace(found, residual=max(found.residual, left_out), settled=settled)


def _blocks(
    mixer: AnyMixer, draws: Sequence[Any], tolerance: float, rng: np.random.Generator
) -> SharedBasis:
    """The finest blocks found with any of the gaps between eigenvalues.

    Among equally fine blocks, those that drop the least; close to a symmetry, candidates differ in
    this.
    """
    approximate = not tolerance <= EXACT
    spaces, dropped = signal_directions(mixer, draws, tolerance if approximate else 0.0)
    gaps = WIDE_GAPS if approximate else GAPS
    found: list[SharedBasis] = []
    for gap in gaps:
        spaces = refined(mixer, spaces, draws, gap, rng)
        if approximate or gap == gaps[-1]:
            turned = aligned(mixer, spaces, draws, tolerance, rng)
            loose = tuple(np.geomspace(1, POLISHED, 25)) if approximate else ()
            found += _candidates(mixer, draws, turned, spaces.label, tolerance, loose)
    best = min(found, key=lambda basis: (-basis.count, max(basis.residual, EXACT)))
    return replace(best, residual=max(best.residual, dropped), dropped_directions=dropped > 0)


def _candidates(
    mixer: AnyMixer,
    draws: Sequence[Any],
    directions: Mapping[str, np.ndarray],
    space: Mapping[str, np.ndarray],
    tolerance: float,
    loose: Sequence[float],
) -> list[SharedBasis]:
    """Candidate blocks: of these directions, and of directions polished for looser tolerances."""
    coupling = _couplings(mixer.seen_in(directions), draws)
    found = [_joined(coupling, directions, space, tolerance)]
    tried: set[int] = {1}
    for factor in loose:
        rough = _joined(coupling, directions, space, factor * tolerance)
        if rough.count not in tried:
            tried.add(rough.count)
            better = polished(mixer, draws, directions, rough.block)
            seen = _couplings(mixer.seen_in(better), draws)
            found.append(_joined(seen, better, space, tolerance))
    return found


def _largest_dropped(mixer: AnyMixer, draws: Sequence[Any], basis: SharedBasis) -> float:
    """The largest coupling between blocks, or to directions of an output that count as silent."""
    coupling = _couplings(mixer.seen_in(basis.directions), draws)
    return max(_outside(coupling, basis), _largest_silent(mixer, draws, basis))


def _largest_silent(mixer: AnyMixer, draws: Sequence[Any], basis: SharedBasis) -> float:
    """The largest statistic of targets outside the directions found, relative to their node."""
    if isinstance(mixer, TiedMixer):
        return _largest_silent_of_classes(mixer, draws, basis)
    seen = mixer.seen_in({v: d for v, d in basis.directions.items() if v in mixer.arch.inputs})
    targets = {}
    for t in mixer.arch.outputs:
        y, u = mixer.factor.y[t], basis.directions[t]
        targets[t] = y - (y @ u) @ u.T
    rest = Mixer(seen.arch, replace(seen.factor, y=targets))
    worst = 0.0
    sizes = {t: float(np.linalg.norm(y)) or 1.0 for t, y in mixer.factor.y.items()}
    for draw in draws:
        for (t, _), matrix, _, size in rest.couplings(draw):
            if t in sizes:
                worst = max(worst, float(np.abs(matrix / size).max(initial=0.0)) / sizes[t])
    return worst


def _largest_silent_of_classes(mixer: TiedMixer, draws: Sequence[Any], basis: SharedBasis) -> float:
    """The same for classes of nodes: what a statistic has outside the directions of its class."""
    worst = 0.0
    norm = {v: float(np.linalg.norm(rows)) or 1.0 for v, rows in mixer.shown.items()}
    for draw in draws:
        for (a, b), matrix in draw.matrices.items():
            u = basis.directions[a]
            rest = (matrix - u @ (u.T @ matrix)) / (norm[a] * norm[b])
            worst = max(worst, float(np.abs(rest).max(initial=0.0)))
    return worst


def _couplings(mixer: AnyMixer, draws: Sequence[Any]) -> dict[Pair, np.ndarray]:
    """The largest correlation, over all draws, between every two directions."""
    found: dict[Pair, np.ndarray] = {}
    for draw in draws:
        for pair, matrix, left, right in mixer.couplings(draw):
            size = np.abs(matrix) / left[:, None] / right
            found[pair] = np.maximum(found[pair], size) if pair in found else size
    return found


def _joined(
    coupling: Mapping[Pair, np.ndarray],
    directions: Mapping[str, np.ndarray],
    space: Mapping[str, np.ndarray],
    tolerance: float,
) -> SharedBasis:
    """Directions joined by couplings above the tolerance, directly or through others."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    widths = {v: d.shape[1] for v, d in directions.items()}
    start = dict(zip(widths, np.cumsum([0, *widths.values()]).tolist(), strict=False))
    total = sum(widths.values())
    rows, columns = [np.zeros(0, int)], [np.zeros(0, int)]
    for (a, b), size in coupling.items():
        i, j = np.nonzero(size > tolerance)
        rows.append(start[a] + i)
        columns.append(start[b] + j)
    ends = np.concatenate(rows), np.concatenate(columns)
    graph = coo_matrix((np.ones(len(ends[0])), ends), shape=(total, total))
    count, label = connected_components(graph, directed=False)
    block = {v: label[start[v] : start[v] + n] for v, n in widths.items()}
    basis = SharedBasis(directions, block, space, int(count), residual=0.0)
    return replace(basis, residual=_outside(coupling, basis))


def _outside(coupling: Mapping[Pair, np.ndarray], basis: SharedBasis) -> float:
    """The largest coupling between different blocks."""
    worst = 0.0
    for (a, b), size in coupling.items():
        apart = basis.block[a][:, None] != basis.block[b][None, :]
        worst = max(worst, float(size[apart].max(initial=0.0)))
    return worst


# Approximate blocks: turn their directions so that they drop as little as possible.

STEPS = 2
"""The number of Newton steps; each squares the error of the directions."""

DRAWS = 6
"""The number of mixtures used: the latest ones."""


def polished(
    mixer: AnyMixer,
    draws: Sequence[Any],
    directions: Mapping[str, np.ndarray],
    block: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """The directions after small rotations that minimise all couplings between blocks.

    A statistic M between nodes a and b becomes M + M Θ_b − Θ_a M under small rotations 1 + Θ. Least
    squares gives the antisymmetric Θ between different blocks that minimise the sum of squares of
    all couplings between blocks (a Gauss–Newton step).
    """
    found = dict(directions)
    for _ in range(STEPS):
        found = _step(mixer.seen_in(found), draws, found, block)
    return found


def _step(
    seen: AnyMixer,
    draws: Sequence[Any],
    directions: Mapping[str, np.ndarray],
    block: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    from scipy.sparse.linalg import LinearOperator, lsmr

    widths = {v: d.shape[1] for v, d in directions.items()}
    apart = {v: block[v][:, None] != block[v] for v in widths}
    ends = np.cumsum([0, *(n * n for n in widths.values())])
    terms = [
        (a, b, m, (block[a][:, None] != block[b]) / left[:, None] / right)
        for draw in draws[-DRAWS:]
        for (a, b), m, left, right in seen.couplings(draw)
    ]
    cuts = np.cumsum([0, *(m.size for _, _, m, _ in terms)])

    def opened(z: np.ndarray) -> dict[str, np.ndarray]:
        parts = {
            v: z[ends[i] : ends[i + 1]].reshape(n, n) for i, (v, n) in enumerate(widths.items())
        }
        return {v: apart[v] * (t - t.T) / 2 for v, t in parts.items()}

    def forward(z: np.ndarray) -> np.ndarray:
        turn = opened(z)
        return np.concatenate([(w * (m @ turn[b] - turn[a] @ m)).ravel() for a, b, m, w in terms])

    def adjoint(r: np.ndarray) -> np.ndarray:
        found = {v: np.zeros((n, n)) for v, n in widths.items()}
        for i, (a, b, m, w) in enumerate(terms):
            part = w * r[cuts[i] : cuts[i + 1]].reshape(m.shape)
            found[b] += m.T @ part
            found[a] -= part @ m.T
        return np.concatenate([(apart[v] * (t - t.T) / 2).ravel() for v, t in found.items()])

    make: Any = LinearOperator
    operator = make((int(cuts[-1]), int(ends[-1])), matvec=forward, rmatvec=adjoint, dtype=float)
    wrong = np.concatenate([np.zeros(0), *((w * m).ravel() for _, _, m, w in terms)])
    turn = opened(lsmr(operator, -wrong, atol=CONVERGED, btol=CONVERGED, maxiter=100)[0])
    found = {}
    for v, d in directions.items():
        u, _, wt = np.linalg.svd(np.eye(widths[v]) + turn[v])
        found[v] = d @ (u @ wt)
    return found
