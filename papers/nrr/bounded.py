"""Descent whose steps are as long as the curvature allows, up to a given flow time."""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from neuralrace.dynamics.methods import Stepper
from neuralrace.dynamics.systems import Batch, State, System


class TimedSystem(System):
    """A system whose state counts its own flow time, in `state["time"]`, up to `horizon`.

    It knows a bound on its curvature, so that steps of any length can be taken safely.
    """

    horizon: float | Array

    @abstractmethod
    def probe(self, state: State) -> PyTree:
        """What the search for the largest curvature begins from."""

    @abstractmethod
    def curvature(
        self, state: State, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], PyTree]:
        """A bound on the largest eigenvalue of the Gauss–Newton matrix, and the next probe.

        It begins from `state["probe"]`.
        """


@final
class BoundedDescent(Stepper):
    """Gradient descent with step min(`largest`, `caution` / curvature, what remains of the time).

    Descent on a quadratic with curvature c converges for steps below 2/c; `caution` = 1 is half
    of that. The curvature comes from power iterations that go on from step to step, one per step.
    """

    largest: float | Array
    caution: float | Array = 1.0

    def begin(self, state: State) -> PyTree:
        return None

    def step(
        self, system: System, state: State, memory: PyTree, batch: Batch | None, going: Array | None
    ) -> tuple[Float[Array, ""], State, PyTree]:
        assert isinstance(system, TimedSystem)
        curvature, probe = system.curvature(state, batch)
        bound = jnp.minimum(self.largest, self.caution / jnp.maximum(curvature, 1e-30))
        rate = jnp.maximum(jnp.minimum(bound, system.horizon - state["time"]), 0.0)
        rate = rate if going is None else rate * going
        loss, change = system.loss_and_step(state, rate, batch)
        return loss, jax.tree.map(jnp.add, state, change) | {"probe": probe}, memory


def arrived(system: System, state: State) -> Array:
    """Whether a state has reached the horizon of its system, to the rounding of its clock."""
    assert isinstance(system, TimedSystem)
    return state["time"] >= system.horizon * (1 - 1e-6)
