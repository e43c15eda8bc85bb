"""*How* a system is integrated: plain descent, any optax transformation, gradient flow.

Each is a small object that is handed to the driver. The first two take steps; the flow is solved
by an adaptive solver.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from neuralrace.dynamics.functions import ByCode
from neuralrace.dynamics.systems import Batch, State, System
from neuralrace.errors import NeuralRaceError

if TYPE_CHECKING:
    from diffrax import AbstractSolver, AbstractStepSizeController
    from optax import GradientTransformation


class Stepper(eqx.Module):
    """A method that takes steps. Its `memory` is what it carries from one step to the next.

    Write `step`, and `begin` where there is a memory. `take_steps` lets any `System` learn by it,
    and `nr.train(optimizer=…)` any network.

    ```python
    >>> import jax, jax.numpy as jnp, neuralrace as nr
    >>> from neuralrace.dynamics import Stepper
    >>> class Signs(Stepper):  # every weight moves by the same amount
    ...     size: float
    ...     def step(self, system, state, memory, batch=None):
    ...         loss, change = system.loss_and_step(state, 1.0, batch)
    ...         move = lambda w, c: w + self.size * jnp.sign(c)
    ...         return loss, jax.tree.map(move, state, change), memory
    >>> net, data = nr.ReLUNetwork((2, 16, 1)), nr.tasks.xor()
    >>> start = net.init(jax.random.key(0), scale=0.1)
    >>> run = nr.train(net, start, data, optimizer=Signs(0.01), steps=100)
    >>> run.clock, bool(run.loss[-1] < 0.05)
    ('steps', True)

    ```
    """

    def begin(self, state: State) -> PyTree:
        """The memory before the first step."""
        return ()

    @abstractmethod
    def step(
        self, system: System, state: State, memory: PyTree, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State, PyTree]:
        """The loss before the step, then state and memory after it."""


@final
class Descent(Stepper):
    """Gradient descent: `state ← state − rate · ∂L/∂state`."""

    rate: float | Array

    def step(
        self, system: System, state: State, memory: PyTree, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State, PyTree]:
        loss, change = system.loss_and_step(state, self.rate, batch)
        return loss, jax.tree.map(jnp.add, state, change), memory


def _by_code(
    transformation: GradientTransformation | ByCode[GradientTransformation],
) -> ByCode[GradientTransformation]:
    return transformation if isinstance(transformation, ByCode) else ByCode(transformation)


@final
class Optimized(Stepper):
    """Any optax `GradientTransformation`: momentum, Adam, weight decay, schedules.

    Transformations with the same content count as one, so that a second run compiles nothing.
    """

    transformation: ByCode[GradientTransformation] = eqx.field(static=True, converter=_by_code)

    def begin(self, state: State) -> PyTree:
        return self.transformation.value.init(state)

    def step(
        self, system: System, state: State, memory: PyTree, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State, PyTree]:
        import optax

        loss, gradient = system.loss_and_step(state, -1.0, batch)
        update = optax.with_extra_args_support(self.transformation.value).update
        change, after = update(gradient, memory, state, value=loss)
        return loss, optax.apply_updates(state, change), after


@final
class Flow(eqx.Module):
    """Gradient flow dstate/dt = −∂L/∂state, by Dormand and Prince's pair of order 8.

    A step is accepted where the norm (`System.norm`) of its errors, each divided by
    `atol + rtol · |state|`, is at most 1. `solver` and `controller` put other objects of diffrax in
    place of these; a controller has tolerances of its own.
    """

    rtol: float | Array
    atol: float | Array
    max_steps: int = eqx.field(static=True, default=100_000)
    solver: AbstractSolver | None = None
    controller: AbstractStepSizeController | None = None


def in_precision(dtype: np.dtype, tree: PyTree) -> PyTree:
    """A pytree with its real numbers as arrays of one precision."""
    real = eqx.is_inexact_array_like
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype) if real(leaf) else leaf, tree)


def checked_optimizer(optimizer: GradientTransformation | None) -> GradientTransformation:
    """An optax transformation, or an error that says what one is."""
    named = (getattr(optimizer, name, None) for name in ("init", "update"))
    if optimizer is None or not all(map(callable, named)):
        raise NeuralRaceError(
            "the optimizer is not one of optax",
            got=repr(optimizer)[:80],
            wanted="an optax.GradientTransformation, which has init and update",
            fix="for example optimizer=optax.adam(1e-3); for plain descent learning_rate=0.1",
        )
    return optimizer
