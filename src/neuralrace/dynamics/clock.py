"""What the steps of a run mean in time.

Descent with rates η₁, η₂, … moves along the flow by their sum. With momentum μ each gradient is
applied again μ, μ², … times as large in later steps, altogether η/(1 − μ): about the flow at that
time, as long as the gradient changes slowly. Nothing of the kind holds for other optimizers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from neuralrace.dynamics.functions import ByCode, leaves

if TYPE_CHECKING:
    from optax import GradientTransformation


@final
@dataclass(frozen=True, eq=False)
class Clock:
    """How steps are turned into time.

    `rates` holds the rate of every step, a single one that all steps share, or None where time
    counts steps.
    """

    rates: Float[np.ndarray, " steps"] | float | None = None
    momentum: float = 0.0

    @property
    def kind(self) -> str:
        """What time is: "flow", "approximate flow" (momentum) or "steps"."""
        return "steps" if self.rates is None else "approximate flow" if self.momentum else "flow"

    @property
    def rate(self) -> float | None:
        """The learning rate, where it is the same at every step."""
        return self.rates if isinstance(self.rates, float) else None

    @property
    def name(self) -> str:
        """What takes the steps, for a trajectory's settings."""
        return {"flow": "descent", "approximate flow": "momentum", "steps": "other"}[self.kind]

    def time(self, stops: Int[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """The time at some steps: the sum of the rates until then, over 1 − momentum."""
        if self.rates is None:
            return stops.astype(float)
        if isinstance(self.rates, float):
            return self.rates / (1 - self.momentum) * stops
        return np.concatenate([[0.0], np.cumsum(self.rates)])[stops] / (1 - self.momentum)


def clock_of(optimizer: GradientTransformation, steps: int) -> Clock:
    """The clock of an optimizer: that of descent where it is an `optax.sgd`, otherwise steps.

    It is one if `optax.sgd`, given a rate or schedule, and a momentum, that the optimizer closes
    over, makes an equal optimizer.
    """
    import optax

    held = leaves((optimizer.init, optimizer.update))
    numbers = sorted({abs(v) for v in held if isinstance(v, int | float | np.number)})
    momenta = [None, *(number for number in numbers if number < 1)]
    rates = [*numbers, *(value for value in held if callable(value))]
    for rate, momentum, nesterov in itertools.product(rates, momenta, (False, True)):
        if ByCode(optax.sgd(rate, momentum, nesterov)) == ByCode(optimizer):
            each = _scheduled(rate, steps) if callable(rate) else float(rate)
            return Clock(each, float(momentum or 0.0))
    return Clock()


def _scheduled(schedule: object, steps: int) -> Float[np.ndarray, " steps"]:
    """The rate of every step."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda n: jax.lax.map(schedule, n))(jnp.arange(steps)), float)
