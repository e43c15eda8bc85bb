"""Gated deep linear networks (NRR §2): initial weights, forward pass, loss.

A network is a frozen description; its weights are a plain dictionary `{edge: (|t(e)|, |s(e)|)}`,
and everything here is a pure function of them.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import DTypeLike

from neuralrace.architecture import Architecture
from neuralrace.checks import kind_of, one_of, plain_array, random_key, real_number
from neuralrace.dataset import Dataset, check_data, check_targets, is_concrete, matched
from neuralrace.errors import NeuralRaceError, check_kind, listed, warn_user
from neuralrace.losses import (
    SampleLoss,
    check_sample_losses,
    checked_loss,
    cross_entropy,
    squared,
    with_classes,
)
from neuralrace.types import ArrayLike, Key, WeightsLike

__all__ = [
    "GDLN",
    "Network",
    "Weights",
]

Weights = dict[str, Array]
"""The matrix of every edge: `weights[e]` has shape `(|t(e)|, |s(e)|)`."""

INIT_KINDS = ("gaussian", "xavier", "orthogonal")


@jax.tree_util.register_static
@dataclass(frozen=True)
class Network(abc.ABC):
    """What all networks share: a graph, initial weights, a loss and its gradient.

    Abstract; see `GDLN` and `ReLUNetwork`. For a network of your own, subclass it and write
    `responses`, with `prepared` and `incoming` as helpers. It then trains like any other. Its
    parameters are fields of a frozen dataclass; networks with equal fields count as equal.

    ```python
    >>> import jax, jax.numpy as jnp, neuralrace as nr
    >>> class Tanh(nr.Network):
    ...     def responses(self, weights, data):
    ...         weights, activity, gates = self.prepared(weights, data)
    ...         for node in self.arch.order:
    ...             if node not in self.arch.inputs:
    ...                 z = self.incoming(node, weights, activity, gates)
    ...                 activity[node] = jnp.tanh(z) if node in self.arch.hidden else z
    ...         return activity
    >>> net = Tanh(nr.Architecture.chain(2, 16, 1))
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[0.5], [-1.0]]})
    >>> run = nr.train(net, net.init(jax.random.key(0), scale=0.1), data, learning_rate=0.2,
    ...                steps=300, record_every=100)
    >>> bool(run.loss[-1] < 1e-3)
    True

    ```
    """

    arch: Architecture

    def __post_init__(self) -> None:
        fix = "make one with nr.Architecture.chain(2, 8, 1)"
        check_kind("arch", self.arch, Architecture, fix)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        jax.tree_util.register_static(cls)

    @abc.abstractmethod
    def responses(self, weights: WeightsLike, data: Dataset) -> dict[str, Array]:
        """The response h_v of every node on every sample: `{node: (N, size)}`."""

    def describe(self) -> dict[str, Any]:
        """All fields, in a form that JSON can hold if they are numbers, text or sequences of them.

        `Trajectory.save` writes it, and `nr.load` calls `from_description`. Override both for
        fields of other types.

        ```python
        >>> import neuralrace as nr
        >>> nr.GDLN(nr.Architecture.chain(2, 1)).describe()
        {'arch': {'sizes': {'x': 2, 'y': 1}, 'edges': {'W1': ('x', 'y')}}}

        ```
        """
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "arch"}
        return {"arch": {"sizes": dict(self.arch.sizes), "edges": dict(self.arch.edges)}} | told

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Network:
        """The network that `describe` described, also after JSON, which turns tuples to lists."""
        graph = description["arch"]
        edges = {edge: (s, t) for edge, (s, t) in graph["edges"].items()}
        told = {name: _frozen(value) for name, value in description.items()}
        return cls(**told | {"arch": Architecture(graph["sizes"], edges)})

    def __call__(self, weights: WeightsLike, data: Dataset) -> dict[str, Array]:
        """The outputs on every sample: `{output node: (N, size)}`."""
        found = self.responses(weights, data)
        missing = [node for node in self.arch.outputs if node not in found]
        if missing:
            raise NeuralRaceError(
                f"responses of {type(self).__name__} lack output node {missing[0]!r}",
                got=f"responses of {listed(found)}",
                wanted=f"at least those of {listed(self.arch.outputs)}",
                fix="fill in every node of self.arch.order",
            )
        return {node: found[node] for node in self.arch.outputs}

    def loss(
        self, weights: WeightsLike, data: Dataset, loss: str | SampleLoss = squared
    ) -> Float[Array, ""]:
        """L = ½ ⟨ Σ_v ‖y_v − h_v‖² ⟩ over output nodes v (NRR Eq. 1), ⟨·⟩ the weighted mean.

        `loss` puts another loss per sample in place of the squared error: `"cross_entropy"`, or a
        function as in `nr.train`.

        ```python
        >>> import jax, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 1))
        >>> data = nr.Dataset({"x": [[1.0, 1.0]]}, {"y": [[2.0]]})
        >>> zero = net.init(jax.random.key(0), scale=0.0)
        >>> float(net.loss(zero, data))
        2.0

        ```
        """
        measure = checked_loss(loss)
        outputs = self(weights, data)
        dtype = jnp.result_type(*outputs.values())
        if measure is cross_entropy:
            data = with_classes(self.arch, data)
        check_targets(self.arch, data)
        targets = {node: jnp.asarray(data.y[node], dtype) for node in outputs}
        each = measure(outputs, targets)
        if measure is not squared:
            check_sample_losses(measure, each, data.n_samples)
        return jnp.dot(jnp.asarray(data.probability, dtype), each)

    def velocity(self, weights: WeightsLike, data: Dataset) -> Weights:
        """−∂L/∂W_e of every edge: the direction of gradient flow (NRR Eq. 2 with τ = 1).

        ```python
        >>> import jax, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(1, 1))
        >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[2.0]]})
        >>> float(net.velocity({"W1": [[0.5]]}, data)["W1"][0, 0])
        1.5

        ```
        """
        return self.loss_and_step(weights, data, 1.0)[1]

    def loss_and_step(
        self, weights: WeightsLike, data: Dataset, rate: float | Array, loss: SampleLoss = squared
    ) -> tuple[Float[Array, ""], Weights]:
        """The loss and −rate · ∂L/∂W_e of every edge, in one pass.

        The rate multiplies the loss before it is differentiated, and so the errors of the outputs,
        which are few, instead of the gradients.
        """

        rate = _one_number("the rate", rate, "for example rate=0.1")

        def paced(arrays: Weights) -> tuple[Array, Array]:
            value = self.loss(arrays, data, loss)
            return -rate * value, value

        step, value = jax.grad(paced, has_aux=True)(checked_weights(self.arch, weights))
        return value, step

    def init(
        self,
        key: Key,
        scale: ArrayLike | Mapping[str, ArrayLike] = 1.0,
        kind: str = "gaussian",
        dtype: DTypeLike | None = None,
    ) -> Weights:
        """Random initial weights.

        **Arguments:** `key` of `jax.random.key`; `scale`, one number or one for every edge;
        `kind`: `"gaussian"` has standard deviation `scale`; `"xavier"` is Gaussian with variance
        `scale² · 2 / (fan in + fan out)`; `"orthogonal"` has every singular value equal to
        `scale`. `dtype` defaults to JAX's float.

        ```python
        >>> import jax, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 1))
        >>> weights = net.init(jax.random.key(0), scale={"W1": 1e-3, "W2": 1e-6})
        >>> {edge: w.shape for edge, w in weights.items()}
        {'W1': (8, 2), 'W2': (1, 8)}

        ```
        """
        fix = "kind='gaussian' has standard deviation scale"
        one_of("kind of initial weights", kind, INIT_KINDS, fix)
        key = random_key(key, "init")
        edges = sorted(self.arch.edges)
        scales = scale if isinstance(scale, Mapping) else dict.fromkeys(edges, scale)
        if set(scales) != set(edges):
            raise NeuralRaceError(
                "scale must name every edge and nothing else",
                got=f"scales for {listed(scales)}",
                wanted=f"scales for {listed(edges)}",
                fix="pass one number for all edges, or {edge: scale} for each of them",
            )
        scales = {
            edge: _one_number(f"the scale of edge {edge!r}", value, "for example scale=0.01")
            for edge, value in scales.items()
        }
        dtype = jnp.zeros(()).dtype if dtype is None else float_dtype(dtype)
        weights = {}
        for edge_key, edge in zip(jax.random.split(key, len(edges)), edges, strict=True):
            source, target = (self.arch.sizes[v] for v in self.arch.edges[edge])
            if kind == "orthogonal":
                draw = _orthogonal(edge_key, target, source, dtype)
            else:
                draw = jax.random.normal(edge_key, (target, source), dtype)
            if kind == "xavier":
                draw = draw * math.sqrt(2 / (source + target))
            weights[edge] = draw * jnp.asarray(scales[edge], dtype)
        return {edge: weights[edge] for edge in self.arch.edges}

    def prepared(
        self, weights: WeightsLike, data: Dataset
    ) -> tuple[Weights, dict[str, Array], dict[str, Array]]:
        """Weights, inputs and gates, checked against the graph, in the weights' precision."""
        check_data(data)
        weights = checked_weights(self.arch, weights)
        full = matched(self.arch, data, classes=True)
        dtype = jnp.result_type(*weights.values())
        warn_if_narrowed(weights, data)  # of what was given: a bias filled in does not count
        x = {node: jnp.asarray(value, dtype) for node, value in full.x.items()}
        return weights, x, {name: jnp.asarray(g, dtype) for name, g in full.gates.items()}

    def incoming(
        self,
        node: str,
        weights: Weights,
        activity: Mapping[str, Array],
        gates: Mapping[str, Array],
    ) -> Float[Array, "N size"]:
        """Σ_{e: t(e)=v} g_e W_e h_{s(e)} for a node v whose sources are known."""
        terms = []
        for edge in self.arch.incoming[node]:
            source = self.arch.edges[edge][0]
            terms.append(_gated(activity[source] @ weights[edge].T, gates.get(edge)))
        return functools.reduce(jnp.add, terms)


@final
@dataclass(frozen=True)
class GDLN(Network):
    """A gated deep linear network on the graph `arch` (NRR §2, MHS Eq. 1).

    `h_v = g_v · Σ_{e: t(e)=v} g_e W_e h_{s(e)}`; an input node is clamped to `x_v`, times its own
    gate. The cost of output, loss and gradient follows the edges, not the paths.

    ```python
    >>> import jax, neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> arch, data = nr.pathways(data, {"a": [1, 0], "b": [0, 1]}, hidden=16)
    >>> net = nr.GDLN(arch)
    >>> weights = net.init(jax.random.key(0), scale=1e-3)
    >>> net(weights, data)["y"].shape, round(float(net.loss(weights, data)), 3)
    ((2, 1), 0.5)

    ```
    """

    def responses(self, weights: WeightsLike, data: Dataset) -> dict[str, Array]:
        weights, x, gates = self.prepared(weights, data)
        activity: dict[str, Array] = {}
        for node in self.arch.order:
            h = x[node] if node in x else self.incoming(node, weights, activity, gates)
            activity[node] = _gated(h, gates.get(node))
        return activity


def _frozen(value: Any) -> Any:
    """Lists as tuples, so that they can be fields of a hashable value."""
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _gated(h: Float[Array, "N size"], gate: Array | None) -> Float[Array, "N size"]:
    """`h` times its gate, one per sample or one per neuron; no gate means always on."""
    if gate is None:
        return h
    return h * (gate[:, None] if gate.ndim == 1 else gate)


def _one_number(what: str, value: Any, fix: str) -> Any:
    """A finite number; under `jit` or `vmap` it may be a traced one."""
    if is_concrete(value):
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


def checked_weights(arch: Architecture, weights: WeightsLike) -> dict[str, Array]:
    """The weights as JAX arrays, or an error naming the edge that is missing or misshapen."""
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
    arrays = {edge: _real(edge, weights[edge]) for edge in arch.edges}
    arrays = {e: w if jnp.issubdtype(w.dtype, jnp.inexact) else w * 1.0 for e, w in arrays.items()}
    for edge, (source, target) in arch.edges.items():
        wanted = (arch.sizes[target], arch.sizes[source])
        if arrays[edge].shape != wanted:
            raise NeuralRaceError(
                f"the weights of edge {edge!r} have the wrong shape",
                got=f"shape {arrays[edge].shape}",
                wanted=f"shape {wanted} = (size of {target!r}, size of {source!r})",
                fix="transpose it: a matrix maps its source (columns) to its target (rows)"
                if arrays[edge].shape == wanted[::-1]
                else "use the weights of a network with these sizes, made by its init",
            )
    return arrays


def _real(edge: str, value: Any) -> Array:
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


def _orthogonal(key: Any, rows: int, columns: int, dtype: Any) -> Array:
    """A random matrix with orthonormal rows or columns, whichever are fewer (Haar)."""
    tall, wide = max(rows, columns), min(rows, columns)
    q, r = jnp.linalg.qr(jax.random.normal(key, (tall, wide), dtype))
    q = q * jnp.where(jnp.diagonal(r) < 0, -1, 1).astype(dtype)
    return q if rows >= columns else q.T


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


def always_on(arch: Architecture, data: Dataset) -> list[str]:
    """In words: which hidden nodes have the same ends, where the data has no gates at all.

    They learn exactly as one wider node would: most likely gated data was meant.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in arch.hidden if not data.gates else ():
        sources = sorted(arch.edges[e][0] for e in arch.incoming[node])
        targets = sorted(arch.edges[e][1] for e in arch.outgoing[node])
        groups.setdefault((*sources, "", *targets), []).append(node)
    return [
        f"the data has no gates: {', '.join(nodes[:NAMED])}{', …' * (len(nodes) > NAMED)} are "
        "always on, and learn as one node would"
        for nodes in groups.values()
        if len(nodes) > 1
    ]


NAMED = 5
"""The largest number of nodes that a warning names."""
