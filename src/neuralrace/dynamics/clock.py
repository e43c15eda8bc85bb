"""What an optimizer's steps mean in time: found by trying it on gradients that are known.

Descent with rates η₁, η₂, … moves along the flow by their sum. With momentum μ each gradient is
applied again μ, μ², … times as large in later steps, altogether η/(1 − μ): about the flow at that
time, as long as the gradient changes slowly. Nothing of the kind holds for other optimizers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

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
    nesterov: bool = False

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
        first = float(self.rates[0])
        return first if bool((np.abs(self.rates - first) <= CLOSE * abs(first)).all()) else None

    @property
    def name(self) -> str:
        """What kind of optimizer this is: "descent", "momentum" or "other"."""
        return {"flow": "descent", "approximate flow": "momentum"}.get(self.kind, "other")


def clock_of(transformation: Any, edges: Any, steps: int) -> Clock:
    """The clock of an optax transformation over a run of so many steps.

    It is tried on one number per edge: on a constant gradient, on a random one, on the same a
    million times as large, and at other weights. Plain descent and momentum, with any schedule,
    are recognised by their responses; whatever answers otherwise has no clock but its steps.
    """
    random = np.random.default_rng(0).normal(size=steps) + 3.0
    try:
        with jax.enable_x64(True):
            one = _responses(transformation, edges, np.ones(steps), 0.0)
            some = _responses(transformation, edges, random, 0.0)
            large = _responses(transformation, edges, 1e6 * random, 0.0)
            elsewhere = _responses(transformation, edges, random, 1.0)
    except Exception:  # an optimizer that needs more than numbers, such as whole matrices
        return Clock("steps")
    scale = np.abs(one).max()
    same = lambda a, b: bool((np.abs(a - b) <= CLOSE * np.abs(b).max()).all())  # noqa: E731
    alike = same(one, one[:, :1]) and same(some, elsewhere) and same(large, 1e6 * some)
    if not (np.isfinite(one).all() and scale > 0 and alike):
        return Clock("steps")
    one, some = one[:, 0], some[:, 0]
    for momentum, nesterov in _candidates(one, some, random):
        rates = -one / _filtered(np.ones(steps), momentum, nesterov)
        if same(some, -rates * _filtered(random, momentum, nesterov)):
            kind = "approximate flow" if momentum else "flow"
            return Clock(kind, rates, momentum, nesterov)
    return Clock("steps")


def _responses(
    transformation: Any, edges: Any, gradients: np.ndarray, at: float
) -> Float[np.ndarray, "steps edges"]:
    """The change of one number per edge at every step, the weights held where they are."""
    weights = {edge: jnp.full((1, 1), at) for edge in edges}

    @jax.jit
    def run(gradients: Any) -> Any:
        def step(memory: Any, g: Any) -> Any:
            gradient = {edge: jnp.full((1, 1), g) for edge in weights}
            change, memory = transformation.update(gradient, memory, weights)
            return memory, jnp.stack([change[edge][0, 0] for edge in weights])

        return jax.lax.scan(step, transformation.init(weights), gradients)[1]

    return np.asarray(run(jnp.asarray(gradients)), np.float64)


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
    digits = 10  # what is left of float64 after two differences
    return [(round(m, digits), nesterov) for m, nesterov in found if 0 <= m < 1]


def _filtered(gradients: np.ndarray, momentum: float, nesterov: bool) -> np.ndarray:
    """Σ_k μ^k g_{t−k}, the memory of momentum; Nesterov's looks one step ahead."""
    from scipy.signal import lfilter

    memory = np.asarray(lfilter([1.0], [1.0, -momentum], gradients))
    return gradients + momentum * memory if nesterov else memory
