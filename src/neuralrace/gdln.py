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
from typing import Any, Literal, TypeAlias, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import DTypeLike

from neuralrace.architecture import BIAS, Architecture
from neuralrace.checks import random_key
from neuralrace.dataset import (
    Dataset,
    check_targets,
    check_unweighed,
    matched,
    require_samples,
    weighed_by,
)
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, listed, require
from neuralrace.losses import (
    SampleLoss,
    check_sample_losses,
    checked_loss,
    cross_entropy,
    squared,
    with_classes,
)
from neuralrace.types import ArrayLike, Key, Weights, WeightsLike
from neuralrace.weights import (
    by_edge,
    check_shapes,
    checked_weights,
    float_dtype,
    one_number,
    warn_if_narrowed,
)

__all__ = [
    "GDLN",
    "Network",
]

InitKind: TypeAlias = Literal["gaussian", "xavier", "orthogonal", "torch"]
"""The kinds of initial weights that `init` draws."""

NAMED = 5
"""The largest number of nodes that a warning names."""


@jax.tree_util.register_static
@dataclass(frozen=True)
class Network(abc.ABC):
    """What all networks share: a graph, initial weights, a loss and its gradient.

    Abstract; see `GDLN` and `ReLUNetwork`. For a network of your own, subclass it and write
    `responses`, with `prepared` and `incoming` as helpers. It then trains like any other. Its
    parameters are fields of a frozen dataclass; networks with equal fields count as equal. Where
    the weights of an edge are no matrix, as in a convolution, also write `shapes`.

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

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of the weights of every edge, (|t(e)|, |s(e)|), or of all edges of a tie.

        A network of your own may have others: the kernel of a convolution, which all positions
        share, is (channels of the target, channels of the source, height, width).

        ```python
        >>> import neuralrace as nr
        >>> nr.GDLN(nr.Architecture.chain(2, 8, 1)).shapes
        {'W1': (8, 2), 'W2': (1, 8)}

        ```
        """
        return dict(self.arch.shapes)

    @abc.abstractmethod
    @door
    def responses(self, weights: WeightsLike, data: Dataset) -> dict[str, Array]:
        """The response h_v of every node on every sample: `{node: (N, size)}`."""

    @property
    def needs_samples(self) -> bool:
        """Whether it can learn from single samples only, as most networks, not from moments."""
        return True

    @door
    def completed(self, data: Dataset, classes: bool = False) -> Dataset:
        """The data as this network needs it: names and sizes checked, what follows filled in.

        A network with a bias has an input that is always one. With `classes`, targets may also be
        one column of class indices.

        ```python
        >>> import neuralrace as nr
        >>> net = nr.ReLUNetwork((1, 8, 1), bias=True)
        >>> sorted(net.completed(nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})).x)
        ['bias', 'x']

        ```
        """
        return matched(self.arch, data, classes)

    def check(self, data: Dataset) -> None:  # noqa: B027  # nothing to check by default
        """Raise where this network cannot learn from the data; called before every run.

        Any data will do unless a subclass says otherwise. Names and shapes are checked elsewhere.
        """

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
        return {"arch": self.arch.describe()} | told

    @classmethod
    @door
    def from_description(cls, description: Mapping[str, Any]) -> Network:
        """The network that `describe` described, also after JSON, which turns tuples to lists."""
        told = {name: _frozen(value) for name, value in description.items() if name != "arch"}
        return cls(**told | {"arch": Architecture.from_description(description["arch"])})

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

    @door
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
        if measure is not squared:
            require_samples(data, "data for another loss than the squared one")
            check_unweighed(data, "another loss than the squared one")
        outputs = self(weights, data)
        dtype = jnp.result_type(*outputs.values())
        if measure is cross_entropy:
            data = with_classes(self.arch, data)
        check_targets(self.arch, data)
        targets = {node: jnp.asarray(data.y[node], dtype) for node in outputs}
        outputs, targets = (weighed_by(data, each) for each in (outputs, targets))
        each = measure(outputs, targets)
        if measure is not squared:
            check_sample_losses(measure, each, data.n_samples)
        return jnp.dot(jnp.asarray(data.probability, dtype), each)

    @door
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

    @door
    def loss_and_step(
        self, weights: WeightsLike, data: Dataset, rate: float | Array, loss: SampleLoss = squared
    ) -> tuple[Float[Array, ""], Weights]:
        """The loss and −rate · ∂L/∂W_e of every edge, in one pass."""
        rate = one_number("the rate", rate, "for example rate=0.1")
        value, slope = jax.value_and_grad(self.loss)(self._checked(weights), data, loss)
        return value, jax.tree.map(lambda g: jnp.asarray(-rate, g.dtype) * g, slope)

    @door
    def init(
        self,
        key: Key = 0,
        scale: ArrayLike | Mapping[str, ArrayLike] = 1.0,
        kind: InitKind = "gaussian",
        dtype: DTypeLike | None = None,
    ) -> Weights:
        """Random initial weights.

        **Arguments:** `key` of `jax.random.key`; `scale`, one number or one for every edge;
        `kind`: `"gaussian"` has standard deviation `scale`; `"xavier"` is Gaussian with variance
        `scale² · 2 / (fan in + fan out)`; `"orthogonal"` has every singular value equal to
        `scale`; `"torch"` is uniform between ± `scale` / √(fan in), as PyTorch starts `nn.Linear`
        and its bias, where the fan in is all that a node reads but a bias. `dtype` defaults to
        JAX's float. Of an array of more than two axes, such as a kernel, the first counts the
        targets; each has all further numbers as its fan in.

        ```python
        >>> import jax, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 1))
        >>> weights = net.init(jax.random.key(0), scale={"W1": 1e-3, "W2": 1e-6})
        >>> {edge: w.shape for edge, w in weights.items()}
        {'W1': (8, 2), 'W2': (1, 8)}

        ```
        """
        scales = self.checked_scales(scale, kind)
        key, edges = random_key(key, "init"), sorted(self.arch.matrices)
        dtype = jnp.zeros(()).dtype if dtype is None else float_dtype(dtype)
        weights, shapes = {}, self.shapes
        check_shapes(self.arch, shapes)
        for edge_key, edge in zip(jax.random.split(key, len(edges)), edges, strict=True):
            shape = shapes[edge]
            if kind == "orthogonal":
                flat = (shape[0], math.prod(shape[1:]))
                draw = jax.nn.initializers.orthogonal()(edge_key, flat, dtype).reshape(shape)
            elif kind == "torch":
                bound = 1 / math.sqrt(self._read(edge))
                draw = jax.random.uniform(edge_key, shape, dtype, -bound, bound)
            else:
                draw = jax.random.normal(edge_key, shape, dtype)
            if kind == "xavier":
                fans = math.prod(shape[1:]) + shape[0] * math.prod(shape[2:])
                draw = draw * math.sqrt(2 / fans)
            weights[edge] = draw * jnp.asarray(scales[edge], dtype)
        return {edge: weights[edge] for edge in self.arch.matrices}

    def _read(self, name: str) -> int:
        """How many numbers each neuron reads that the edges of a matrix lead to, biases aside."""
        arch, shape = self.arch, self.shapes[name]
        if len(shape) > 2:
            return math.prod(shape[1:])
        _, target = arch.edges[arch.matrices[name][0][0]]
        sources = [arch.edges[edge][0] for edge in arch.incoming[target]]
        return sum(arch.sizes[node] for node in sources if node != BIAS) or 1

    @door
    def checked_scales(
        self, scale: ArrayLike | Mapping[str, ArrayLike], kind: InitKind
    ) -> dict[str, float | Array]:
        """The scale of every edge of initial weights of a kind, or an error."""
        edges = sorted(self.arch.matrices)
        scales = scale if isinstance(scale, Mapping) else dict.fromkeys(edges, scale)
        require(
            set(scales) == set(edges),
            "scale must name every edge and nothing else",
            got=f"scales for {listed(scales)}",
            wanted=f"scales for {listed(edges)}",
            fix="pass one number for all edges, or {edge: scale} for each of them",
        )
        return {
            edge: one_number(f"the scale of edge {edge!r}", value, "for example scale=0.01")
            for edge, value in scales.items()
        }

    @door
    def prepared(
        self, weights: WeightsLike, data: Dataset
    ) -> tuple[Weights, dict[str, Array], dict[str, Array]]:
        """Weights by edge, inputs and gates, checked, in the weights' precision."""
        if self.needs_samples:
            require_samples(data, f"data for a {type(self).__name__}")
        weights = self._checked(weights)
        full = self.completed(data, classes=True)
        dtype = jnp.result_type(*weights.values())
        warn_if_narrowed(weights, data)  # of what was given: a bias filled in does not count
        x = {node: jnp.asarray(value, dtype) for node, value in full.x.items()}
        return (
            {edge: jnp.asarray(w) for edge, w in by_edge(self.arch, weights).items()},
            x,
            {name: jnp.asarray(g, dtype) for name, g in full.gates.items()},
        )

    def _checked(self, weights: WeightsLike) -> Weights:
        return checked_weights(self.arch, weights, self.shapes)

    @door
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

    @property
    def needs_samples(self) -> bool:
        return False

    @door
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
