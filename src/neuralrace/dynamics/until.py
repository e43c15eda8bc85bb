"""When a run ends before its last step: at a loss, or where a function of the weights says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from neuralrace.checks import kind_of
from neuralrace.dynamics.functions import ByCode
from neuralrace.dynamics.systems import State, System
from neuralrace.errors import NeuralRaceError

UntilLike: TypeAlias = float | Callable[[dict[str, Array]], Array | bool]
"""What `until` may be: a loss, or a function of the weights that returns True at the end."""

Stop: TypeAlias = Callable[[System, State], Bool[Array, ""] | bool]
"""A function of system and state that is true where a run should end."""


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Until:
    """When a run ends early: at a loss, or where a function of system and state is true.

    A pytree whose one leaf is the loss: another loss needs no other program.
    """

    loss: float | Array | None = None
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


def checked_until(until: UntilLike | None) -> Until:
    """When a run ends early, or an error."""
    if until is None:
        return Until()
    if callable(until):
        return Until(function=_OfWeights(ByCode(until)))
    value = float(until) if hasattr(until, "__float__") and np.ndim(until) == 0 else np.nan
    if not np.isfinite(value):
        raise NeuralRaceError(
            "until says when to end",
            got=f"{until!r:.80}",
            wanted="a loss, or a function of the weights that is true at the end",
            fix="for example until=0.01",
        )
    return Until(loss=value)
