"""When untrained routes work, and when learning begins: predictions from the start (NRR §5).

The derivation is in `docs/images.md`, with what was found. Nothing in it is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool

from neuralrace.tasks import circulant_routes, random_routes
from neuralrace.types import ArrayLike
from papers.cells import stored_rows

NODES = 101
"""Points of the Gaussian quadrature over the start value of the shared mode."""

MAKE = {"circulant": circulant_routes, "random": random_routes}
"""Trained routes by their kind."""


def shared_chance(
    routes: Bool[np.ndarray, "M M"], hidden: int, *, spread: float | None = None
) -> float:
    """The chance that the mode which all routes share is learned first.

    In the singular vectors of the route matrix the modes of a regular G grow by
    dx_k/dt ∝ g_k x_k², with g_k = σ_k/σ₁, until one of them is large: at time 1/(g_k x_k(0)). The
    shared mode, g₁ = 1, is first where x₁(0) > g_k x_k(0) for every k. Start values are lengths of
    Gaussian vectors with `hidden` entries: normal, with relative `spread` (2 H)^−½. So

        chance = ∫ φ(z) Π_{k ≥ 2} Φ( ((1 + δ z) / g_k − 1) / δ ) dz.

    Measured transfer to untrained routes is close to it for H = 128 and a gain of .1. It does not
    follow it over other widths and gains (`docs/images.md`).

    ```python
    >>> from papers.nrr.transition import shared_chance
    >>> from neuralrace.tasks import circulant_routes
    >>> [round(shared_chance(circulant_routes(40, K), 128), 2) for K in (2, 8, 16, 40)]
    [0.17, 0.65, 1.0, 1.0]

    ```
    """
    from scipy.special import ndtr

    values = np.linalg.svd(np.asarray(routes, float), compute_uv=False)
    rivals = values[1:][values[1:] > 1e-9 * values[0]] / values[0]
    delta = (2 * hidden) ** -0.5 if spread is None else spread
    z, weight = np.polynomial.hermite_e.hermegauss(NODES)
    ahead = ndtr(((1 + delta * z)[:, None] / rivals - 1) / delta).prod(axis=1)
    return float(weight @ ahead / weight.sum())


def transfer_from_equal_starts(
    routes: Bool[np.ndarray, "M M"], hidden: int, scale: float, strength: float
) -> float:
    """The transfer to untrained routes if all modes of the routes start alike.

    Modes grow as in `shared_chance`, dx_k/dt ∝ g_k x_k², but all from one x(0), that of
    `escape_time`: x_k = x(0) / (1 − g_k x(0) t). Learning ends where trained routes are right, at
    Σ_k g_k x_k³ = M s with s = `strength`. Of this, x₁³ is the answer on all routes, and the rest
    is 0 on average over all routes. So untrained routes answer on average, as a share of trained
    ones, (x₁³ − K/(M − K) · rest) / (M s). Written down after the cells that it is compared with.

    ```python
    >>> from papers.nrr.transition import transfer_from_equal_starts
    >>> from neuralrace.tasks import circulant_routes
    >>> routes = circulant_routes(10, 2)
    >>> [round(transfer_from_equal_starts(routes, 64, g, 0.287), 2) for g in (0.3, 0.1, 0.03, 0.01)]
    [0.24, 0.68, 0.97, 1.0]

    ```
    """
    M, K = len(routes), int(routes[0].sum())
    if K == M:
        return 1.0
    g = np.linalg.svd(np.asarray(routes, float), compute_uv=False) / K
    start = M / (strength * escape_time(strength, M, scale, hidden))
    low, high = 0.0, 1.0 / start  # the shared mode is infinite at this time
    for _ in range(100):
        time = (low + high) / 2
        done = g @ (start / (1 - g * start * time)) ** 3 > M * strength
        low, high = (low, time) if done else (time, high)
    answers = g * (start / (1 - g * start * low)) ** 3
    rest = answers[1:].sum()
    return float((answers[0] - K / (M - K) * rest) / (answers[0] + rest))


def printed_rows() -> tuple[Mapping[str, Any], ...]:
    """Races with M = 10, 40 and 100 as measured on a GPU, after the prediction was written down.

    Only means over seeds were printed: `trained` (.861 where left out; .8603 to .8612), `untrained`
    and `sd`, the standard deviation of `untrained`, None where it was not printed.
    """
    return stored_rows("nrr", "transition.jsonl")


def transferred(trained: ArrayLike, untrained: ArrayLike, classes: int = 10) -> np.ndarray:
    """The accuracy of untrained routes: 0 at chance, 1 where it is that of trained ones."""
    chance = 1 / classes
    return np.divide(np.subtract(untrained, chance), np.subtract(trained, chance))[...]


def escape_time(strength: float, M: int, scale: float, hidden: int = 128) -> float:
    """The flow time after which the first class mode is learned, from small Xavier weights.

    Of the shared mode, encoder a, hidden layer w and decoder c grow by da/dt = (s/M) w c and so on,
    with s = `strength`, the largest singular value of ⟨y xᵀ⟩. w² − a² and c² − a² do not change.
    They start at w = `scale`, c = `scale` √(2H/(H + 10)); a starts at right angles to what drives
    it, so at 0. They are infinite at the time (M / s) ∫₀^∞ da / √((a² + w²)(a² + c²)), which is
    ∝ M / (s · `scale`).

    ```python
    >>> from papers.nrr.transition import escape_time
    >>> [round(escape_time(0.574, 40, scale), -1) for scale in (0.1, 0.01)]
    [930.0, 9320.0]

    ```
    """
    from scipy.special import ellipk

    low, high = sorted((1.0, float(np.sqrt(2 * hidden / (hidden + 10)))))
    return float(M / (strength * scale) * ellipk(1 - (low / high) ** 2) / high)


STRENGTHS = {"statistics": 0.574, "race": 0.287}
"""The largest singular value of ⟨y xᵀ⟩ of MNIST: of centred pixels, and of white inputs."""

FALLEN = 0.05
"""Learning has begun where the loss has fallen by this share of what it was at first."""


def begun_at(row: Mapping[str, Any]) -> float:
    """The flow time at which the loss of a stored cell has fallen by 5 %; infinite if never.

    Accuracy rises long before: an answer can be right before it has any size. Between the recorded
    times the loss is taken to be linear.

    ```python
    >>> from papers.nrr.transition import begun_at
    >>> begun_at({"course": {"elapsed": [0, 100, 200], "loss": [0.4, 0.4, 0.36]}})
    150.0

    ```
    """
    time, loss = (np.asarray(row["course"][name], float) for name in ("elapsed", "loss"))
    level = (1 - FALLEN) * loss[0]
    there = np.flatnonzero(loss <= level)
    if not len(there):
        return float("inf")
    k = there[0]
    part = (loss[k - 1] - level) / (loss[k - 1] - loss[k])
    return round(float(time[k - 1] + part * (time[k] - time[k - 1])), 6)
