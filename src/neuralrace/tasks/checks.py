"""The checks that several tasks share."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, listed


def label(data: Dataset, name: str, task: str) -> Shaped[np.ndarray, " N"]:
    """The label `name` of every sample, or an error that says which task has it."""
    if name not in data.labels:
        raise NeuralRaceError(
            f"this gating needs the label {name!r}",
            got=f"labels {listed(data.labels)}",
            wanted=f"a dataset such as that of {task}",
            fix=f"pass labels={{{name!r}: …}} to the Dataset, or use nr.pathways with masks",
        )
    return np.asarray(data.labels[name])


def finite_number(what: str, value: Any, *, fix: str) -> float:
    """`value` as a finite float, or an error that says `what` it is."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise NeuralRaceError(
            f"{what} must be a finite number", got=repr(value), wanted="a finite number", fix=fix
        )
    return float(value)


def positive_number(what: str, value: Any, *, fix: str) -> float:
    """`value` as a finite float above zero, or an error that says `what` it is."""
    number = finite_number(what, value, fix=fix)
    if number <= 0:
        raise NeuralRaceError(
            f"{what} must be positive", got=repr(value), wanted="a number above 0", fix=fix
        )
    return number


def generator(key: Any) -> np.random.Generator:
    """NumPy's random numbers from a key of JAX or an integer."""
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    index = None if isinstance(key, bool) else getattr(key, "__index__", None)
    if index is None or index() < 0:
        raise NeuralRaceError(
            "key is not a random key",
            got=repr(key),
            wanted="a key of jax.random or an integer of at least 0",
            fix="for example key=0",
        )
    return np.random.default_rng(index())
