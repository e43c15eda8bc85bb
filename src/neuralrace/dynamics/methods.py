"""*How* a system is integrated: what takes the steps, when they end, what they mean in time.

Each method is a small object that is handed to the loop: plain descent and any optax transformation
take steps; gradient flow is solved by an adaptive solver.

Descent with rates η₁, η₂, … moves along the flow by their sum. With momentum μ each gradient is
applied again μ, μ², … times as large in later steps, altogether η/(1 − μ): about the flow at that
time, as long as the gradient changes slowly. Nothing of the kind holds for other optimizers.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from neuralrace.checks import kind_of, real_number
from neuralrace.dynamics.functions import ByCode, leaves
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
    """Gradient descent: `state ← state − rate · ∂L/∂state`.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Descent, System, take_steps
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> take_steps(Line(), jnp.array([1.0]), Descent(0.5), np.arange(3)).loss
    array([0.5    , 0.125  , 0.03125])

    ```
    """

    rate: float | Array

    def step(
        self, system: System, state: State, memory: PyTree, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State, PyTree]:
        loss, change = system.loss_and_step(state, self.rate, batch)
        return loss, jax.tree.map(jnp.add, state, change), memory


def _by_code(
    transformation: GradientTransformation | ByCode[GradientTransformation],
) -> ByCode[GradientTransformation]:
    return (
        transformation
        if isinstance(transformation, ByCode)
        else ByCode(checked_optimizer(transformation))
    )


@final
class Optimized(Stepper):
    """Any optax `GradientTransformation`: momentum, Adam, weight decay, schedules.

    Transformations with the same content count as one, so that a second run compiles nothing.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Optimized, System, take_steps
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> import optax
    >>> momentum = Optimized(optax.sgd(0.5, momentum=0.5))
    >>> take_steps(Line(), jnp.array([1.0]), momentum, np.arange(3)).loss
    array([0.5  , 0.125, 0.   ])

    ```
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
    place of these; a controller has tolerances of its own. With `jumps`, increasing times,
    what is integrated after k of them is `system.during(k)`.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Flow, System, solve_flow
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> done = solve_flow(Line(), jnp.array([1.0]), Flow(1e-8, 1e-10), np.array([0.0, 1.0]))
    >>> done.loss.round(6)  # e^{−2t} / 2
    array([0.5     , 0.067668])

    ```
    """

    rtol: float | Array
    atol: float | Array
    max_steps: int = eqx.field(static=True, default=100_000)
    solver: AbstractSolver | None = None
    controller: AbstractStepSizeController | None = None
    jumps: Float[Array, " jumps"] | Float[np.ndarray, " jumps"] | None = None


def in_precision(dtype: np.dtype, tree: PyTree) -> PyTree:
    """A pytree with its real numbers as arrays of one precision."""
    real = eqx.is_inexact_array_like
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype) if real(leaf) else leaf, tree)


def checked_optimizer(optimizer: GradientTransformation | None) -> GradientTransformation:
    """An optax transformation, or an error that says what one is."""
    named = (getattr(optimizer, name, None) for name in ("init", "update"))
    if optimizer is None or not all(map(callable, named)):
        raise NeuralRaceError(
            "the optimizer is not a transformation of optax",
            got=repr(optimizer)[:80],
            wanted="an optax.GradientTransformation, which has init and update",
            fix="for example optimizer=optax.adam(1e-3); for plain descent learning_rate=0.1",
        )
    return optimizer


# ---- when a run ends ----------------------------------------------------------------------------


Stop: TypeAlias = Callable[[System, State], Bool[Array, ""] | bool]
"""A function of system and state that is true where a run should end."""


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Until:
    """When a run ends early: where one of these is reached.

    **Arguments:** `loss`, at most this; `stationary`, of gradient flow: ‖dW/dt‖ is at most this
    times ‖W‖; `function`, of system and state, is true. A pytree whose leaves are the two numbers:
    others need no other program.

    ```python
    >>> import neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(1, 4, 1))
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    >>> rest = nr.dynamics.Until(stationary=1e-4)
    >>> run = nr.flow(net, net.init(0, scale=0.1), data, times=[0, 1e3], until=rest)
    >>> run.settings["stopped"], bool(run.time[-1] < 100)
    ('stationary', True)

    ```
    """

    loss: float | Array | None = None
    stationary: float | Array | None = None
    function: Stop | None = field(default=None, metadata={"static": True})

    @property
    def never(self) -> bool:
        """Whether only the last step ends the run."""
        return self.loss is None and self.function is None

    def reached(
        self, system: System, state: State, loss: Float[Array, "*members"], axes: PyTree = None
    ) -> Bool[Array, ""]:
        """Whether the run may end. An ensemble ends when all of its members may.

        A member that has diverged does not hold up the others. `axes` says what of the system an
        ensemble batches, as in `jax.vmap`.
        """
        ended = jnp.zeros((), bool)
        if self.loss is not None:
            ended |= jnp.all((loss <= self.loss) | ~jnp.isfinite(loss))
        if self.function is not None:
            told = self.function
            told = jax.vmap(told, in_axes=(axes, 0)) if jnp.ndim(loss) else told
            ended |= jnp.all(told(system, state))
        return ended


UntilLike: TypeAlias = float | Callable[[dict[str, Array]], Array | bool] | Until
"""What `until` may be: a loss, a function of the weights that is True at the end, or an `Until`."""


@dataclass(frozen=True)
class _OfWeights:
    """A user's function of the weights as one of system and state."""

    function: ByCode[Callable[[dict[str, Array]], object]]

    def __call__(self, system: System, state: State) -> Bool[Array, ""] | bool:
        try:
            found = self.function(system.shown(state))
        except NeuralRaceError:
            raise
        except Exception as error:
            message = str(error).partition("\n")[0]
            raise _no_condition(f"{type(error).__name__}: {message}") from error
        truth = kind_of(found) == "b" and getattr(found, "shape", None) == ()
        if not (truth or isinstance(found, bool)):
            raise _no_condition(_told(found))
        return found


def _told(found: PyTree) -> str:
    """What a function returned, in a few words."""
    if hasattr(found, "dtype"):
        return f"a function that returns shape {found.shape} of {found.dtype}"
    return f"a function that returns a {type(found).__name__}"


def _no_condition(got: str) -> NeuralRaceError:
    return NeuralRaceError(
        "until must return one truth value",
        got=got,
        wanted="a function of the weights, made of jax.numpy, that returns True or False",
        fix="for example until=lambda w: jnp.max(w['W1']) > 1, or a loss: until=0.01",
    )


def checked_until(until: UntilLike | None, *, flow: bool = False) -> Until:
    """When a run ends early, or an error; only a `flow` can end where the weights are at rest."""
    if callable(until):
        return Until(function=_OfWeights(ByCode(until)))
    ends = until if isinstance(until, Until) else Until(loss=until)
    numbers = {"until": ends.loss, "until.stationary": ends.stationary}
    for name, value in numbers.items():
        if value is not None:
            real_number(name, value, wanted=WANTED, fix="for example until=0.01")
    if ends.stationary is not None and not flow:
        raise NeuralRaceError(
            "until.stationary is for gradient flow",
            got=f"{ends.stationary:g} in a run that takes steps",
            wanted=WANTED,
            fix="nr.flow(…, until=Until(stationary=1e-6)), or until=a function of the weights",
        )
    return ends


WANTED = "a loss, a function of the weights that is true at the end, or a dynamics.Until"
"""What `until` may be."""


# ---- what steps mean in time --------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Clock:
    """How steps are turned into time.

    `rates` holds the rate of every step, a single one that all steps share, or None where time
    counts steps.
    """

    rates: Float[np.ndarray, " steps"] | float | None = None
    momentum: float = 0.0
    weight_decay: float = 0.0

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
    over, makes an equal optimizer, alone or after `optax.add_decayed_weights`.
    """
    import optax

    held = leaves((optimizer.init, optimizer.update))
    numbers = sorted({abs(v) for v in held if isinstance(v, int | float | np.number)})
    momenta = [None, *(number for number in numbers if number < 1)]
    rates = [*numbers, *(value for value in held if callable(value))]
    decays = [None, *numbers]
    wanted = ByCode(optimizer)
    for decay, *how in itertools.product(decays, rates, momenta, (False, True)):
        rate, momentum, nesterov = how
        made = optax.sgd(rate, momentum, nesterov)
        if decay is not None:
            made = optax.chain(optax.add_decayed_weights(decay), made)
        if ByCode(made) == wanted:
            each = _scheduled(rate, steps) if callable(rate) else float(rate)
            return Clock(each, float(momentum or 0.0), float(decay or 0.0))
    return Clock()


def _scheduled(schedule: object, steps: int) -> Float[np.ndarray, " steps"]:
    """The rate of every step."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda n: jax.lax.map(schedule, n))(jnp.arange(steps)), float)
