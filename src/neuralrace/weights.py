"""Weights: one real array, usually a matrix, for every edge, or for all edges of a tie."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import DTypeLike

from neuralrace.architecture import Architecture
from neuralrace.checks import kind_of, plain_array, real_number
from neuralrace.dataset import Dataset, is_concrete
from neuralrace.errors import NeuralRaceError, listed, require, warn_user
from neuralrace.types import ArrayLike, Weights, WeightsLike

__all__ = [
    "by_edge",
    "by_matrix",
    "check_finite",
    "check_shapes",
    "check_untied",
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
    """The weights as JAX arrays, or an error naming the edge or tie that is missing or misshapen.

    `shapes` are those of a network (`Network.shapes`); without them every edge is a matrix.
    """
    require(
        not isinstance(weights, Dataset),
        "a dataset stands where the weights should",
        got="Dataset",
        wanted=f"weights for {listed(arch.matrices)}",
        fix="the order is network, weights, data",
    )
    if not isinstance(weights, Mapping) or set(weights) != set(arch.matrices):
        names = weights if isinstance(weights, Mapping) else ()
        odd = sorted(set(arch.matrices) ^ set(names), key=str)
        missing = [name for name in odd if name in arch.matrices]
        tied = [e for e in odd if e not in arch.matrices and e in arch.edges]
        raise NeuralRaceError(
            f"edge {tied[0]!r} has no weights of its own: it is frozen or shares those of a tie"
            if tied
            else f"weights lack {_kind(arch, missing[0])} {missing[0]!r}"
            if missing
            else f"unknown edge {odd[0]!r} in weights",
            got=f"weights for {listed(names)}",
            wanted=f"weights for {listed(arch.matrices)}",
            fix="make them with net.init(key), and update every edge together",
        )
    if shapes is not None:
        check_shapes(arch, shapes)
    arrays = {name: _real(name, weights[name]) for name in arch.matrices}
    arrays = {e: w if jnp.issubdtype(w.dtype, jnp.inexact) else w * 1.0 for e, w in arrays.items()}
    for name, matrix in arch.shapes.items():
        wanted = matrix if shapes is None else shapes[name]
        if arrays[name].shape != wanted:
            ends = arch.edges[name][::-1] if name in arch.edges else ()
            why = " = (size of {!r}, size of {!r})".format(*ends) if ends else " of all its edges"
            raise NeuralRaceError(
                f"the weights of {_kind(arch, name)} {name!r} have the wrong shape",
                got=f"shape {arrays[name].shape}",
                wanted=f"shape {wanted}{why if wanted == matrix else ''}",
                fix="transpose it: a matrix maps its source (columns) to its target (rows)"
                if arrays[name].shape == matrix[::-1] == wanted[::-1]
                else "use the weights of a network with these sizes, made by its init",
            )
    return arrays


def _kind(arch: Architecture, name: str) -> str:
    return "edge" if name in arch.edges else "tie"


def check_shapes(arch: Architecture, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless the `shapes` of a network name every edge or tie and nothing else."""
    if set(shapes) != set(arch.matrices):
        odd = sorted(set(arch.matrices) ^ set(shapes), key=str)
        raise NeuralRaceError(
            "shapes of the network must name every edge or tie and nothing else",
            got=f"shapes for {listed(shapes)}",
            wanted=f"shapes for {listed(arch.matrices)}",
            fix=f"start from super().shapes and replace those of single edges; look at {odd[0]!r}",
        )


W = TypeVar("W")
"""An array of NumPy or JAX."""


def by_edge(arch: Architecture, weights: Mapping[str, W]) -> dict[str, W]:
    """The matrix of every edge: those of ties given to all of their edges, frozen ones filled in.

    Leading axes are kept. A gradient through this adds up over the edges of a tie by itself.
    """
    if not arch.ties and not arch.frozen:
        return {edge: weights[edge] for edge in arch.edges}
    dtype = np.result_type(*(w.dtype for w in weights.values()))  # type: ignore[attr-defined]
    found: dict[str, Any] = {}
    for edge, (source, _) in arch.edges.items():
        if edge in arch.frozen:
            value = arch.frozen[edge]
            number = isinstance(value, float)
            matrix = value * np.eye(arch.sizes[source]) if number else np.array(value)
            found[edge] = matrix.astype(dtype)
        else:
            name, turned = arch.matrix_of[edge]
            w: Any = weights[name]
            found[edge] = w.swapaxes(-1, -2) if turned else w
    return found


def by_matrix(arch: Architecture, velocities: Mapping[str, W]) -> dict[str, W]:
    """The velocity of every matrix that is learned: the sum over its edges, each turned its way."""
    each: Mapping[str, Any] = velocities
    turned = lambda edge, way: each[edge].swapaxes(-1, -2) if way else each[edge]
    return {
        name: functools.reduce(operator.add, (turned(*member) for member in members))
        for name, members in arch.matrices.items()
    }


def check_untied(arch: Architecture, what: str) -> None:
    """Raise where a graph has shared or frozen weights, which `what` does not know of."""
    shared = [*arch.ties, *arch.frozen]
    require(
        not shared,
        f"{what} is not known for networks with shared or frozen weights",
        got=f"ties {listed(arch.ties)}, frozen edges {listed(arch.frozen)}",
        wanted="a network whose edges each have weights of their own",
        fix="nr.reduce, nr.train, nr.flow, nr.path_statistics and nr.compress know them",
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
    require(
        value.shape == () and numeric,
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
        "run jax.config.update('jax_enable_x64', True) before making the weights, and where they "
        "come from PyTorch, import them from model.double()."
    )
