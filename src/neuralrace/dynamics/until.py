"""When a run ends before its last step: at a loss, or where a function of the weights says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from neuralrace.checks import kind_of, real_number
from neuralrace.dynamics.functions import ByCode
from neuralrace.dynamics.systems import State, System
from neuralrace.errors import NeuralRaceError

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
