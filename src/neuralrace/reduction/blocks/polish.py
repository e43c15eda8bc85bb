"""Approximate blocks: turn their directions so that they drop as little as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuralrace.reduction.blocks.mixtures import Draw, Mixer

STEPS = 2
"""The number of Newton steps; each squares the error of the directions."""

DRAWS = 6
"""The number of mixtures used: the latest ones."""


def polished(
    mixer: Mixer,
    draws: Sequence[Draw],
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
    seen: Mixer,
    draws: Sequence[Draw],
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
    turn = opened(lsmr(operator, -wrong, atol=1e-8, btol=1e-8, maxiter=100)[0])
    found = {}
    for v, d in directions.items():
        u, _, wt = np.linalg.svd(np.eye(widths[v]) + turn[v])
        found[v] = d @ (u @ wt)
    return found
