"""What an optimizer's steps mean in time: found by trying it on gradients that are known.

Descent with rates η₁, η₂, … moves along the flow by their sum. With momentum μ each gradient is
applied again μ, μ², … times as large in later steps, altogether η/(1 − μ): about the flow at that
time, as long as the gradient changes slowly. Nothing of the kind holds for other optimizers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from neuralrace.dynamics.fingerprint import Known

CLOSE = 1e-9
"""Two responses of an optimizer that differ by less, relatively, count as equal."""


@final
@dataclass(frozen=True)
class Clock:
    """How steps are turned into time.

    `kind` is "flow" (time is the sum of the rates), "approximate flow" (momentum) or "steps".
    `rates` has the rate of every step, `(steps,)`, where there is one.
    """

    kind: str
    rates: Float[np.ndarray, " steps"] | None = None
    momentum: float = 0.0

    def time(self, stops: Int[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """The time at some steps."""
        if self.rates is None:
            return stops.astype(float)
        if self.rate is not None:
            return self.rate / (1 - self.momentum) * stops
        passed = np.concatenate([[0.0], np.cumsum(self.rates)]) / (1 - self.momentum)
        return passed[stops]

    @property
    def rate(self) -> float | None:
        """The learning rate, where it is the same at every step."""
        if self.rates is None or len(self.rates) == 0:
            return None
        first = float(f"{self.rates[0]:.12g}")  # responses are rounded
        return first if bool((np.abs(self.rates - first) <= CLOSE * abs(first)).all()) else None

    @property
    def name(self) -> str:
        """What kind of optimizer this is: "descent", "momentum" or "other"."""
        return {"flow": "descent", "approximate flow": "momentum"}.get(self.kind, "other")


def clock_of(transformation: Any, shapes: Mapping[str, tuple[int, ...]], steps: int) -> Clock:
    """The clock of an optax transformation over a run of `steps` steps.

    It is tried on weights of a few rows and columns: on a constant gradient, on one that varies in
    time, on the same 10¹² times as large, and at other weights; then for the first steps on
    weights of the true shapes. Plain descent and momentum, with any schedule, are recognised by
    their responses: the same multiple of the gradient in every entry. Whatever answers otherwise
    has no clock but its steps.
    """
    vary = np.random.default_rng(0).normal(size=steps) + 3.0
    small = {edge: tuple(min(n, FEW) for n in shape) for edge, shape in shapes.items()}
    known = Known(transformation)
    try:
        with jax.enable_x64(True):
            one, some, large, elsewhere = _responses(known, small, vary)
            true = _responses(known, dict(shapes), vary[:FEW])[1]
    except Exception:  # an optimizer that needs more than gradients
        return Clock("steps")
    same = lambda a, b: bool((np.abs(a - b) <= CLOSE * np.abs(b).max()).all())  # noqa: E731
    alike = same(one, one[:, :1]) and same(some, elsewhere) and same(large, LARGE * some)
    alike = alike and same(true, some[: len(true)])
    if not (np.isfinite(one).all() and np.abs(one).max() > 0 and alike):
        return Clock("steps")
    one, some = one[:, 0], some[:, 0]
    for momentum, nesterov in _candidates(one, some, vary):
        rates = -one / _filtered(np.ones(steps), momentum, nesterov)
        if same(some, -rates * _filtered(vary, momentum, nesterov)):
            return Clock("approximate flow" if momentum else "flow", rates, momentum)
    return Clock("steps")


FEW = 3
"""Rows and columns of the weights, and steps at the true shapes, that an optimizer is tried on."""

LARGE = 1e12
"""How much larger gradients are tried too, to see where they are clipped."""


def _responses(
    known: Known, shapes: Mapping[str, tuple[int, ...]], vary: np.ndarray
) -> Float[np.ndarray, "4 steps edges"]:
    """What multiple of its gradient each edge moves by, at every step; NaN where it is none."""
    rng = np.random.default_rng(1)
    pattern = {edge: jnp.asarray(rng.normal(size=shape) + 2.0) for edge, shape in shapes.items()}
    runs = jnp.stack([jnp.ones(len(vary)), vary, LARGE * vary, vary])
    at = jnp.array([0.0, 0.0, 0.0, 1.0])
    return np.asarray(_tried(known, pattern, runs, at), np.float64)


@functools.partial(jax.jit, static_argnums=0)
def _tried(known: Known, pattern: Any, runs: Any, at: Any) -> Any:
    def one(gradients: Any, at: Any) -> Any:
        weights = jax.tree.map(lambda p: jnp.full(p.shape, at), pattern)

        def step(memory: Any, g: Any) -> Any:
            gradient = jax.tree.map(lambda p: g * p, pattern)
            change, memory = known.value.update(gradient, memory, weights)
            return memory, jnp.stack([multiple(change[e], pattern[e]) for e in pattern])

        return jax.lax.scan(step, known.value.init(weights), gradients)[1]

    def multiple(change: Any, pattern: Any) -> Any:
        each = change / pattern
        fine = jnp.max(jnp.abs(each - each.mean())) <= CLOSE * jnp.max(jnp.abs(each))
        return jnp.where(fine, each.mean(), jnp.nan)

    return jax.vmap(one)(runs, at)


def _candidates(one: np.ndarray, some: np.ndarray, random: np.ndarray) -> list[tuple[float, bool]]:
    """The momenta that would explain the second step: none, heavy ball, Nesterov's."""
    found = [(0.0, False)]
    if len(one) < 2 or one[1] == 0:
        return found
    a, b, q = random[0], random[1], some[1] / one[1]
    if q != a:
        found.append((float((b - q) / (q - a)), False))
    roots = np.roots([a - q, b - q, b - q]) if q != a else np.zeros(0)
    found += [(float(root.real), True) for root in roots if abs(root.imag) < CLOSE]
    digits = 10  # that float64 keeps after two differences
    return [(round(m, digits), nesterov) for m, nesterov in found if 0 <= m < 1]


def _filtered(gradients: np.ndarray, momentum: float, nesterov: bool) -> np.ndarray:
    """Σ_k μ^k g_{t−k}, the memory of momentum; Nesterov's looks one step ahead."""
    from scipy.signal import lfilter

    memory = np.asarray(lfilter([1.0], [1.0, -momentum], gradients))
    return gradients + momentum * memory if nesterov else memory
