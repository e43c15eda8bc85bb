"""Weights that came from elsewhere, as a trajectory with its loss and outputs."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.checks import by_name, real_array
from neuralrace.dataset import Dataset, check_data
from neuralrace.errors import NeuralRaceError, check_kind
from neuralrace.gdln import Network
from neuralrace.trajectory.run import Trajectory, numbers
from neuralrace.types import ArrayLike, WeightsLike
from neuralrace.weights import checked_weights


def from_weights(net: Network, weights: WeightsLike, data: Dataset, times: ArrayLike) -> Trajectory:
    """See `Trajectory.from_weights`."""
    check_kind("net", net, Network, "from_weights(net, weights, data, times)")
    check_data(data)
    fix = "sort them and remove repeats; np.unique does both"
    time = real_array("times", times, wanted="increasing numbers of shape (T,)", fix=fix)
    if time.ndim != 1 or not time.size or not (np.diff(time) > 0).all():
        raise NeuralRaceError(
            "the times must increase",
            got=f"times of shape {time.shape}",
            wanted="increasing numbers of shape (T,)",
            fix=fix,
        )
    fix = "stack the weights of every moment: np.stack([w0, w1, …])"
    given = by_name("weights", weights, "pass {edge: array of shape (T, |t|, |s|)}")
    weights = {edge: numbers(f"the weights of edge {edge!r}", w, fix) for edge, w in given.items()}
    lengths = {len(w) if w.ndim > 1 else None for w in weights.values()}
    if lengths != {len(time)}:
        raise NeuralRaceError(
            "the weights do not fit the times",
            got={edge: np.shape(w) for edge, w in weights.items()},
            wanted=f"shape (T, |t|, |s|) with T = {len(time)} for every edge",
            fix=fix,
        )
    checked_weights(net.arch, {edge: w[0] for edge, w in weights.items()}, net.shapes)
    over_time = {edge: jnp.asarray(weights[edge]) * 1.0 for edge in net.arch.edges}
    loss, outputs = jax.tree.map(np.asarray, _seen(net, over_time, data))
    stored = jax.tree.map(np.asarray, over_time)
    return Trajectory(
        time,
        loss,
        values={"outputs": outputs, "weights": stored},
        final={edge: w[-1] for edge, w in stored.items()},
        net=net,
        sample_weight=data.sample_weight,
        settings={
            "method": "given weights",
            "data": data.digest(),
            "dtype": str(jnp.result_type(*over_time.values())),
        },
    )


@functools.partial(jax.jit, static_argnums=0)
def _seen(net: Network, weights: Any, data: Dataset) -> tuple[Any, dict[str, Any]]:
    """Loss and outputs at every moment."""
    return jax.lax.map(lambda w: (net.loss(w, data), net(w, data)), weights)
