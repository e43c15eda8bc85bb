"""The tangent kernel of a network, and how far it travels in training."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuralrace.analysis.representations import finite_array, over_runs, ratio, weights_of_runs
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.gdln import Network
from neuralrace.types import ArrayLike, WeightsLike


@door
def tangent_kernel(
    net: Network, weights: WeightsLike, data: Sampled
) -> Float[np.ndarray, "*runs NO NO"]:
    """The tangent kernel K = J Jᵀ, with J = ∂(all outputs on all samples)/∂(all weights).

    In the lazy regime, K keeps its initial value and the network learns as a kernel machine (NRR
    §4.2; Jacot et al. 2018). Samples are not weighted.

    **Arguments:** `weights[edge]` of shape `(…, |t|, |s|)`. **Returns:** shape
    `(…, N·O, N·O)`, O the neurons of all output nodes in the order of `net.arch.outputs`; row
    n·O + o is output o on sample n. Memory grows as (N·O)²; for long runs see `kernel_travel`.

    ```python
    >>> import neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(1, 1, 1))
    >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[0.0], [0.0]]})
    >>> nr.analysis.tangent_kernel(net, {"W1": [[2.0]], "W2": [[1.0]]}, data)
    array([[ 5., 10.],
           [10., 20.]])

    ```
    """
    lead, stacked = runs_of(net, weights)
    found = []
    for run in range(len(next(iter(stacked.values())))):
        jacobian = _jacobian(net, {edge: w[run] for edge, w in stacked.items()}, data)
        found.append(jacobian @ jacobian.T)
    kernels = np.stack(found)
    return kernels.reshape(*lead, *kernels.shape[1:])


@door
def kernel_distance(first: ArrayLike, second: ArrayLike) -> Float[np.ndarray, "*runs"]:
    """1 − ⟨K, K′⟩ / ‖K‖‖K′‖: 0 for kernels that differ only by a factor (Fort et al. 2020).

    At most 1, since kernels are positive. **Arguments:** `(…, n, n)` each; leading axes are
    broadcast: `kernel_distance(K[0], K)` is the distance from the start over time. NaN where a
    kernel is zero.

    ```python
    >>> import numpy as np
    >>> from neuralrace import analysis
    >>> analysis.kernel_distance(np.eye(2), [2 * np.eye(2), np.diag([1.0, 0.0])]).round(4)
    array([0.    , 0.2929])

    ```
    """
    a, b = (
        finite_array(f"the {name} kernel", k, "(…, n, n)")
        for name, k in (("first", first), ("second", second))
    )
    require(
        not (a.shape[-2:] != b.shape[-2:] or a.shape[-1] != a.shape[-2]),
        "the kernels are of different size or not square",
        got=f"shapes {a.shape} and {b.shape}",
        wanted="shapes (…, n, n), with leading axes that can be broadcast",
        fix="compute both on the same data, with networks of the same outputs",
    )
    size = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(b, axis=(-2, -1))
    return np.asarray(np.maximum(1 - ratio((a * b).sum(axis=(-2, -1)), size), 0.0))  # rounding


@door
def kernel_travel(net: Network, weights: WeightsLike, data: Sampled) -> Float[np.ndarray, "*runs"]:
    """The distance of the tangent kernel from its initial value, over a run.

    It is near 0 in the lazy regime and well above 0 in the rich one. Only two kernels are held at a
    time, and outputs that no weight affects (gated off) take no memory.

    **Arguments:** `weights[edge]` of shape `(…, T, |t|, |s|)`, as `run.values["weights"]`.
    **Returns:** `kernel_distance(K(0), K(t))`, shape `(…, T)`.

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 2))
    >>> data = nr.Dataset({"x": [[1.0, 0.0], [0.0, 1.0]]}, {"y": [[3.0, 0.0], [0.0, 0.3]]})
    >>> rich, lazy = (
    ...     nr.train(net, net.init(jax.random.key(0), scale=scale), data, learning_rate=0.02,
    ...              steps=1000, record_every=500, record={"weights": True})
    ...     for scale in (0.01, 2.0))
    >>> [bool(nr.analysis.kernel_travel(net, run.values["weights"], data)[-1] > 0.05)
    ...  for run in (rich, lazy)]
    [True, False]

    ```
    """
    lead, stacked = runs_of(net, weights)
    require(
        lead,
        "kernel_travel needs weights over time",
        got="the weights of one network",
        wanted="weights of shape (…, T, |t|, |s|)",
        fix="train with record={'weights': True} and pass run.values['weights']",
    )
    travelled = np.empty(lead).reshape(-1, lead[-1])
    start = np.empty((0, 0))
    for run, t in np.ndindex(travelled.shape):
        at = run * lead[-1] + t
        jacobian = _jacobian(net, {edge: w[at] for edge, w in stacked.items()}, data)
        start = start if t else jacobian
        moved = np.any(start != 0, axis=1) | np.any(jacobian != 0, axis=1)
        first, now = (j[moved] @ j[moved].T for j in (start, jacobian))
        travelled[run, t] = kernel_distance(first, now) if moved.any() else np.nan
    return travelled.reshape(lead)


def runs_of(net: Network, weights: WeightsLike) -> tuple[tuple[int, ...], dict[str, np.ndarray]]:
    with jax.enable_x64(True):
        return weights_of_runs(net.arch, weights)


def _jacobian(
    net: Network, weights: dict[str, np.ndarray], data: Dataset
) -> Float[np.ndarray, "NO P"]:
    """∂(output o on sample n)/∂(every weight): one row for each n and o."""
    by_sample = over_runs(_sample_jacobians, net, weights, data)
    return by_sample.reshape(-1, by_sample.shape[-1])


def _sample_jacobians(net: Network, weights: Any, data: Dataset) -> Float[Array, "N O P"]:
    """The derivatives sample by sample: a sample's output depends only on its own input."""

    def outputs(weights: Any, sample: Any) -> Any:
        x, y, gates = jax.tree.map(lambda value: value[None], sample)
        found = net(weights, Dataset(x, y, gates))
        return jnp.concatenate([found[node][0] for node in net.arch.outputs])

    def derivative(sample: Any) -> Any:
        by_edge = jax.jacrev(outputs)(weights, sample)
        return jnp.concatenate([d.reshape(len(d), -1) for d in by_edge.values()], axis=1)

    return jax.lax.map(derivative, (data.x, data.y, data.gates), batch_size=64)  # bounds the memory
