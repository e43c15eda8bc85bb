"""Policies: from the values of the choices to the probability of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuralrace.checks import real_number, shown
from neuralrace.errors import NeuralRaceError, require
from neuralrace.tolerances import CERTAIN, CROSSING, JUMP

Policy: TypeAlias = Callable[[Float[Array, "N choices"]], Float[Array, "N choices"]]
"""A function of the values of all choices, one row per stimulus, to their probabilities."""


@final
@dataclass(frozen=True)
class Softmax:
    """Choice c has probability e^{β Q_c} / Σ_k e^{β Q_k}; `beta` is the inverse temperature β.

    ```python
    >>> import numpy as np, jax.numpy as jnp
    >>> from neuralrace.behaviour import Softmax
    >>> np.asarray(Softmax(2.0)(jnp.array([[0.0, 1.0]]))).round(3)
    array([[0.119, 0.881]])

    ```
    """

    beta: float = 5.0

    def __post_init__(self) -> None:
        fix = "beta=5.0; beta=0 chooses at random"
        object.__setattr__(self, "beta", real_number("beta", self.beta, least=0, fix=fix))

    def __call__(self, values: Float[Array, "N choices"]) -> Float[Array, "N choices"]:
        return jax.nn.softmax(self.beta * values, axis=-1)


@final
@dataclass(frozen=True)
class EpsilonGreedy:
    """The best choice with probability 1 − ε + ε/K, each of the other K − 1 with ε/K.

    Choices with exactly equal values share the probability of the best. The probabilities jump
    where the values cross, so that such an agent has no stationary points in the usual sense.

    ```python
    >>> import numpy as np, jax.numpy as jnp
    >>> from neuralrace.behaviour import EpsilonGreedy
    >>> np.asarray(EpsilonGreedy(0.2)(jnp.array([[0.0, 1.0], [1.0, 1.0]]))).round(3)
    array([[0.1, 0.9],
           [0.5, 0.5]])

    ```
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        fix = "epsilon=0.1; epsilon=1 chooses at random"
        checked = real_number("epsilon", self.epsilon, least=0, most=1, fix=fix)
        object.__setattr__(self, "epsilon", checked)

    def __call__(self, values: Float[Array, "N choices"]) -> Float[Array, "N choices"]:
        best = (values == jnp.max(values, axis=-1, keepdims=True)).astype(values.dtype)
        greedy = best / jnp.sum(best, axis=-1, keepdims=True)
        return (1 - self.epsilon) * greedy + self.epsilon / values.shape[-1]


KINDS = {"softmax": Softmax, "epsilon_greedy": EpsilonGreedy}
"""The policies that a file can name."""


def described(policy: Policy) -> dict[str, Any] | Policy:
    """A policy as JSON can hold it, or as it is where it is a function of the user's."""
    for kind, cls in KINDS.items():
        if isinstance(policy, cls):
            return {"kind": kind} | vars(policy)
    return policy


def from_description(told: Any) -> Policy:
    """The policy that `described` described."""
    return KINDS[told["kind"]](**{k: v for k, v in told.items() if k != "kind"})


PROBES = (0.0, 1.0, -1.0, 0.3, 30.0, -30.0, 1e-3)
"""Values on which a policy is tried: the k-th choice of probe i has value PROBES[i] · k."""


def check_policy(policy: Any, choices: int) -> None:
    """Raise where a policy does not turn values of choices into probabilities."""
    wanted = f"probabilities of shape (N, {choices}): none negative, each row with sum 1"
    fix = "for example behaviour.Softmax(5.0), or lambda q: jax.nn.softmax(5 * q, axis=-1)"
    require(
        callable(policy),
        "the policy must be a function",
        got=shown(policy),
        wanted=wanted,
        fix=fix,
    )
    values = jnp.outer(jnp.asarray(PROBES), jnp.arange(choices))
    try:
        found = np.asarray(policy(values), float)
    except Exception as error:
        message = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise NeuralRaceError(
            "the policy cannot be evaluated", got=message, wanted=wanted, fix=fix
        ) from error
    got = fault(found, values.shape)
    require(
        got is None,
        "the policy is not a distribution",
        got=got,
        wanted=wanted,
        fix=fix,
    )


def fault(found: np.ndarray, shape: tuple[int, ...]) -> str | None:
    """What is wrong with probabilities of choices, None if nothing is."""
    if found.shape != shape:
        return f"shape {found.shape} for values of shape {shape}"
    if np.isnan(found).any():
        return "NaN"
    if not (found >= 0).all():
        return f"a probability of {found.min():.4g}"
    sums = found.sum(axis=1)
    if not np.allclose(sums, 1, atol=CERTAIN):
        return f"a sum of {sums[np.abs(sums - 1).argmax()]:.4g}"
    return None


def jumps(policy: Policy, choices: int) -> bool:
    """Whether the probabilities jump where the values of the first two choices cross."""
    near = CROSSING * np.eye(2, choices)
    first, second = np.asarray(policy(jnp.asarray(near)), float)
    return bool(np.abs(first - second).max() > JUMP)
