"""Hidden values on a dataset, for the weights of one network, of a run or of an ensemble."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from neuralrace.analysis.checks import weights_of_runs
from neuralrace.checks import one_of
from neuralrace.dataset import Dataset, check_moments
from neuralrace.errors import check_kind
from neuralrace.gdln import Network
from neuralrace.types import WeightsLike


def hidden(
    net: Network, weights: WeightsLike, data: Dataset, node: str
) -> Float[np.ndarray, "*runs N size"]:
    """The values of one node on every sample, for one set of weights or for those of many runs.

    **Arguments:** `weights[edge]` of shape `(…, |t|, |s|)`: one network's, a run's, an ensemble's.
    `data` may differ from the data that the network was trained on.

    **Returns:** an array of shape `(…, N, size)`, computed in float64.

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 1))
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> run = nr.train(net, net.init(jax.random.key(0)), data, learning_rate=0.01, steps=5,
    ...                record={"weights": True})
    >>> nr.analysis.hidden(net, run.values["weights"], data, "h").shape
    (6, 2, 8)

    ```
    """
    check_kind("net", net, Network, "pass the network first: hidden(net, weights, data, node)")
    one_of("node", node, net.arch.sizes, "net.arch.hidden lists the hidden nodes")
    return over_runs(_Hidden(node), net, weights, data)


def over_runs(
    measure: Callable[..., Any], net: Network, weights: WeightsLike, data: Dataset
) -> Float[np.ndarray, ...]:
    """`measure(net, weights, data)` for every set of weights, in float64, with leading axes kept.

    `measure` is a key of the compilation cache: one that compares equal is not compiled again.
    """
    check_kind("net", net, Network, "pass the network first, then the weights and the data")
    check_kind("data", data, Dataset, "gate each of the two datasets that tasks.routing returns")
    check_moments(data)
    with jax.enable_x64(True):
        lead, stacked = weights_of_runs(net.arch, weights)
        found = np.asarray(_over_runs(measure, net, stacked, data))
    return found.reshape((*lead, *found.shape[1:]))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _over_runs(
    measure: Callable[..., Any], net: Network, weights: Mapping[str, Any], data: Dataset
) -> jax.Array:
    return jax.lax.map(lambda w: measure(net, w, data), weights, batch_size=32)  # bounds the memory


class _Hidden(str):
    """A measure that returns the values of one node."""

    __slots__ = ()

    def __call__(self, net: Network, weights: Mapping[str, jax.Array], data: Dataset) -> jax.Array:
        return net.responses(weights, data)[str(self)]
