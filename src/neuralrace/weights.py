"""Checks of weights: one real array of the right shape for every edge, usually a matrix."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import DTypeLike

from neuralrace.architecture import Architecture
from neuralrace.checks import kind_of, plain_array, real_number
from neuralrace.dataset import Dataset, is_concrete
from neuralrace.errors import NeuralRaceError, listed, warn_user
from neuralrace.types import ArrayLike, Weights, WeightsLike

__all__ = [
    "check_finite",
    "check_shapes",
    "checked_weights",
    "float_dtype",
    "one_number",
    "warn_if_narrowed",
]


def checked_weights(
    arch: Architecture,
    weights: WeightsLike,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Weights:
    """The weights as JAX arrays, or an error naming the edge that is missing or misshapen.

    `shapes` are those of a network (`Network.shapes`); without them every edge is a matrix.
    """
    if isinstance(weights, Dataset):
        raise NeuralRaceError(
            "a dataset stands where the weights should",
            got="Dataset",
            wanted=f"weights for {listed(arch.edges)}",
            fix="the order is network, weights, data",
        )
    if not isinstance(weights, Mapping) or set(weights) != set(arch.edges):
        names = weights if isinstance(weights, Mapping) else ()
        odd = sorted(set(arch.edges) ^ set(names), key=str)
        missing = [edge for edge in odd if edge in arch.edges]
        raise NeuralRaceError(
            f"weights lack edge {missing[0]!r}"
            if missing
            else f"unknown edge {odd[0]!r} in weights",
            got=f"weights for {listed(names)}",
            wanted=f"weights for {listed(arch.edges)}",
            fix="make them with net.init(key), and update every edge together",
        )
    if shapes is not None:
        check_shapes(arch, shapes)
    arrays = {edge: _real(edge, weights[edge]) for edge in arch.edges}
    arrays = {e: w if jnp.issubdtype(w.dtype, jnp.inexact) else w * 1.0 for e, w in arrays.items()}
    for edge, (source, target) in arch.edges.items():
        matrix = (arch.sizes[target], arch.sizes[source])
        wanted = matrix if shapes is None else shapes[edge]
        if arrays[edge].shape != wanted:
            why = f" = (size of {target!r}, size of {source!r})" if wanted == matrix else ""
            raise NeuralRaceError(
                f"the weights of edge {edge!r} have the wrong shape",
                got=f"shape {arrays[edge].shape}",
                wanted=f"shape {wanted}{why}",
                fix="transpose it: a matrix maps its source (columns) to its target (rows)"
                if arrays[edge].shape == matrix[::-1] == wanted[::-1]
                else "use the weights of a network with these sizes, made by its init",
            )
    return arrays


def check_shapes(arch: Architecture, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless the `shapes` of a network name every edge and nothing else."""
    if set(shapes) != set(arch.edges):
        odd = sorted(set(arch.edges) ^ set(shapes), key=str)
        raise NeuralRaceError(
            "shapes of the network must name every edge and nothing else",
            got=f"shapes for {listed(shapes)}",
            wanted=f"shapes for {listed(arch.edges)}",
            fix=f"start from super().shapes and replace those of single edges; look at {odd[0]!r}",
        )


def _real(edge: str, value: ArrayLike) -> Array:
    """The weights of an edge as a JAX array of real numbers."""
    if not isinstance(value, jax.Array):  # which tracers are too
        what = f"the array of weights of edge {edge!r}"
        wanted = "a matrix of real numbers"
        value = plain_array(what, value, wanted=wanted, fix="make weights with net.init(key)")
    if jnp.issubdtype(value.dtype, jnp.floating) or kind_of(value) in ("i", "u", "b"):
        return jnp.asarray(value)
    raise NeuralRaceError(
        f"the weights of edge {edge!r} are "
        + ("complex" if kind_of(value) == "c" else "no numbers"),
        got=f"dtype {value.dtype}",
        wanted="real numbers",
        fix="take the real part, or check what made them complex"
        if kind_of(value) == "c"
        else "make weights with net.init(key)",
    )


def check_finite(weights: WeightsLike) -> None:
    """Raise where a concrete weight is NaN or infinite."""
    for edge, w in weights.items():
        if is_concrete(w) and not np.isfinite(np.asarray(w)).all():
            raise NeuralRaceError(
                f"the weights of edge {edge!r} hold NaN or infinity",
                got=f"{int((~np.isfinite(np.asarray(w))).sum())} such values",
                wanted="finite weights",
                fix="start again from net.init; a diverged run needs a smaller learning rate",
            )


def one_number(what: str, value: ArrayLike, fix: str) -> float | Array:
    """A finite number; under `jit` or `vmap` it may be a traced one."""
    if not isinstance(value, jax.Array) or is_concrete(value):
        return real_number(what, value, fix=fix)
    numeric = jnp.issubdtype(value.dtype, jnp.floating) or kind_of(value) in ("i", "u")
    if value.shape != () or not numeric:
        raise NeuralRaceError(
            f"{what} must be one finite number",
            got=f"a traced array of shape {value.shape}, dtype {value.dtype}",
            wanted="a number without axes",
            fix="map over several with jax.vmap",
        )
    return value


def float_dtype(dtype: DTypeLike | None) -> np.dtype:
    """A floating dtype of JAX, or an error."""
    try:
        found = None if dtype is None else jnp.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found is None or not jnp.issubdtype(found, jnp.floating):
        raise NeuralRaceError(
            "dtype must be one of floating-point numbers",
            got=f"{dtype!r:.80}",
            wanted="such as jnp.float32 or jnp.float64",
            fix="leave it out for JAX's own float",
        )
    return found


def warn_if_narrowed(weights: Mapping[str, Array], data: Dataset) -> None:
    """Warn, once, where float64 data meets float32 weights."""
    if jnp.result_type(*weights.values()) == jnp.float32 and any(
        v.dtype == np.float64 for v in data.x.values()
    ):
        _warn_narrowed()


@functools.cache
def _warn_narrowed() -> None:
    warn_user(
        "float64 data is used in float32, the precision of the weights. For float64 throughout, "
        "run jax.config.update('jax_enable_x64', True) before making the weights."
    )
