"""The checks that several analyses share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.checks import real_array
from neuralrace.errors import NeuralRaceError
from neuralrace.tolerances import LARGEST
from neuralrace.types import ArrayLike, WeightsLike
from neuralrace.weights import checked_weights


def finite_array(what: str, value: ArrayLike, shape: str) -> Float[np.ndarray, ...]:
    """`value` in float64, with at least the axes of `shape`, "(…, N, size)", and all finite."""
    wanted = f"an array of shape {shape}"
    fix = "pass one entry of a dictionary: hidden['h'], weights['W1']"
    array = real_array(what, value, wanted=wanted, fix=fix)
    least = len(shape.split(",")) - ("…" in shape)
    if array.ndim < least or 0 in array.shape:
        raise NeuralRaceError(
            f"{what} has the wrong shape",
            got=f"shape {array.shape}",
            wanted=f"shape {shape}, no axis empty",
            fix="leading axes (ensemble, time) come first; keep axes of length one",
        )
    if np.abs(array).max() > LARGEST and np.isfinite(array).all():
        raise NeuralRaceError(
            f"{what} is so large that its squares would overflow",
            got=f"numbers up to {np.abs(array).max():.3g}",
            wanted=f"numbers up to {LARGEST:.0e}",
            fix="divide by a constant, or leave out the runs that diverged",
        )
    if not np.isfinite(array).all():
        raise NeuralRaceError(
            f"{what} holds NaN or infinity",
            got=f"{int((~np.isfinite(array)).sum())} such values of {array.size}",
            wanted="finite numbers",
            fix="leave out the runs that diverged, or train them with a smaller learning rate",
        )
    return array


def weights_of_runs(
    arch: Architecture, weights: WeightsLike
) -> tuple[tuple[int, ...], dict[str, Float[np.ndarray, "runs _ _"]]]:
    """The leading axes of the weights, and the weights with these axes merged into one."""
    named = dict(weights) if isinstance(weights, Mapping) else {}
    if set(named) != set(arch.edges):
        checked_weights(arch, named)  # says which edge is missing or unknown
    arrays = {
        edge: finite_array(f"the weights of edge {edge!r}", w, "(…, |t|, |s|)")
        for edge, w in named.items()
    }
    leads = {edge: w.shape[:-2] for edge, w in arrays.items()}
    lead = next(iter(leads.values()))
    for edge, other in leads.items():
        if other != lead:
            raise NeuralRaceError(
                f"the weights of edge {edge!r} have other leading axes than the first edge",
                got=f"{other} and {lead}",
                wanted="the same leading axes for every edge",
                fix="pass run.values['weights'] or run.final as it is",
            )
    checked_weights(arch, {edge: w[(0,) * len(lead)] for edge, w in arrays.items()})
    return lead, {edge: arrays[edge].reshape(-1, *arrays[edge].shape[-2:]) for edge in arch.edges}


def ratio(part: ArrayLike, whole: ArrayLike) -> Float[np.ndarray, ...]:
    """`part / whole`, NaN where the whole is zero."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole != 0)
