"""Gates that are learned: variables of their own, or the outputs of a gating network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import DTypeLike

from neuralrace.architecture import Architecture
from neuralrace.checks import is_traced, list_of_names, one_of, switch
from neuralrace.dataset import Dataset, require_samples
from neuralrace.dataset.text import TextLabel
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, listed, require, spelled
from neuralrace.gdln import GDLN, InitKind, Network
from neuralrace.losses import SampleLoss, squared
from neuralrace.types import ArrayLike, Key, NotNegative, Weights, WeightsLike

__all__ = ["LearnedGates"]

LINKS = ("free", "sigmoid", "softmax")
"""What makes gates: variables of their own, or a gating network with one of these functions."""

CONSTANT = "constant"
"""The input node of gates that are the same on all samples: it is always one."""


@final
@dataclass(frozen=True, init=False)
class LearnedGates(Network):
    """A gated deep linear network whose gates are learned with its weights.

    The gate of node p on a sample is g_p = f(Σ_z C_{zp} z): C are the *gate weights*, edges of the
    network from what the gates read (z) to the node that they gate, named `z_gates_p`. With
    `kind="free"`, f is the identity and z is the label of the sample, one-hot, so that
    C_{zp} = c_p(z) is one gate per pathway and value of the label. `"sigmoid"` (of every gate) and
    `"softmax"` (over all gates) make a *gating network* of labels and inputs. Everything else is
    the `GDLN` on `graph`. The flow is

        dW/dt = −∂L/∂W,    dC/dt = −rate · ∂(L + P)/∂C,
        P = ½ ⟨ budget · (Σ_p g_p − 1)² + decay · Σ_p g_p² ⟩,

    so that rate = τ_W/τ_c; L, without the penalty P, is the loss that is recorded. ⟨·⟩ is the mean
    over samples: a context that is absent moves no gates. Free gates stay non-negative unless
    `signed`: one that is zero does not move down. Steps of descent may overshoot zero by one step,
    which the network reads as zero. With penalties and no labels this is the learner of Sandbrink
    et al. (2024), "Flexible task abstractions emerge in linear networks".

    **Arguments:** `graph`, whose hidden nodes `nodes` are gated (all, if left out); `labels`, such
    as `{"context": (1, 2, 3)}`, with all values that may come; `inputs`, input nodes that a gating
    network reads; without either, gates read a constant, as they do besides with `bias`;
    `kind`; `neurons=True` gives every neuron its gate, and P the mean gate of a node; `rate`, how
    much faster gates learn than weights, 0 for gates that are held; `budget`, `decay`, `signed`.
    Gates of other nodes and of edges come with the data, as in a `GDLN`.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[1.0], [-1.0]]}, labels={"task": [1, 2]})
    >>> net = nr.LearnedGates(nr.Architecture.parallel({"x": 1}, {"a": 8, "b": 8}, {"y": 1}),
    ...                       labels={"task": (1, 2)}, budget=1.0)
    >>> net.shapes["task_gates_a"], net.graph.hidden
    ((1, 2), ('a', 'b'))
    >>> run = nr.flow(net, net.init(0, scale=0.1), data, times=[0, 100], record={"activity": True})
    >>> bool(run.loss[-1] < 1e-6), sorted(run.values["activity"])  # gates of every sample
    (True, ['a', 'b'])

    ```
    """

    graph: Architecture
    nodes: tuple[str, ...]
    labels: tuple[tuple[str, tuple[int | float | str, ...]], ...]
    inputs: tuple[str, ...]
    bias: bool
    kind: str
    neurons: bool
    rate: float
    budget: float
    decay: float
    signed: bool

    @door
    def __init__(
        self,
        arch: Architecture,
        nodes: Iterable[str] | None = None,
        *,
        labels: Mapping[str, Any] | Sequence[Any] = (),
        inputs: Iterable[str] = (),
        bias: bool = False,
        kind: str = "free",
        neurons: bool = False,
        rate: NotNegative = 1.0,
        budget: NotNegative = 0.0,
        decay: NotNegative = 0.0,
        signed: bool = False,
    ) -> None:
        check_kind("arch", arch, Architecture, "make one with nr.Architecture.parallel(…)")
        one_of("kind", kind, LINKS, "kind='free' makes every gate a variable")
        gated = tuple(arch.hidden if nodes is None else list_of_names("nodes", nodes))
        reads = tuple(list_of_names("inputs", inputs))
        for name, names, known in (("nodes", gated, arch.hidden), ("inputs", reads, arch.inputs)):
            what = "hidden" if name == "nodes" else "input"
            require(
                set(names) <= set(known) and len(set(names)) == len(names),
                f"{name} must name {what} nodes, each once",
                got=listed(names),
                wanted=f"some of {listed(known)}",
                fix=spelled(next(iter(set(names) - set(known)), ""), known, f"{what} nodes alone"),
            )
        require(
            gated,
            "nodes must name what is gated",
            got="no hidden node",
            wanted=f"some of {listed(arch.hidden)}",
            fix="leave nodes out to gate all hidden nodes of a graph that has some",
        )
        values = _checked_labels(labels, arch)
        require(
            kind != "free" or (not reads and not bias and len(values) < 2),
            "gates of kind 'free' belong to the values of one label, or to all samples",
            got=f"labels {listed(dict(values))}, inputs {listed(reads)}, bias={bias}",
            wanted="one label or none, no inputs and no bias",
            fix="kind='sigmoid' or kind='softmax' is a gating network, which reads these",
        )
        require(
            kind != "softmax" or not budget,
            "budget is nothing to a softmax",
            got=f"budget={budget:g} with kind='softmax', whose gates sum to 1",
            wanted="budget=0",
            fix="leave budget out",
        )
        fields = {
            "graph": arch, "nodes": gated, "labels": values, "inputs": reads,
            "bias": switch("bias", bias), "kind": kind, "neurons": switch("neurons", neurons),
            "rate": float(rate), "budget": float(budget), "decay": float(decay),
            "signed": switch("signed", signed),
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        own = {CONSTANT: 1} if self._constant else {}
        sizes = {name: len(of) for name, of in values} | own
        for taken in (
            set(dict(values)) & (set(own) | set(arch.sizes)),
            set(own) & set(arch.sizes),
            set(self.gate_edges) & set(arch.edges),
        ):
            require(
                not taken,
                "what gates read has the name of something in arch",
                got=listed(taken),
                wanted="other names",
                fix="rename the label, the node or the edge",
            )
        edges = {**arch.edges, **self.gate_edges}
        whole = Architecture({**sizes, **arch.sizes}, edges, arch.ties, arch.frozen)
        object.__setattr__(self, "arch", whole)

    @property
    def _constant(self) -> bool:
        return self.bias or not (self.labels or self.inputs)

    @property
    def gate_edges(self) -> dict[str, tuple[str, str]]:
        """The edges of gate weights, from what the gates read to the node they gate.

        ```python
        >>> import neuralrace as nr
        >>> nr.LearnedGates(nr.Architecture.chain(2, 8, 1)).gate_edges
        {'constant_gates_h': ('constant', 'h')}

        ```
        """
        reads = [*dict(self.labels), *self.inputs, *([CONSTANT] if self._constant else [])]
        return {f"{source}_gates_{node}": (source, node) for node in self.nodes for source in reads}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        sizes = self.arch.sizes
        return super().shapes | {
            edge: (sizes[node] if self.neurons else 1, sizes[source])
            for edge, (source, node) in self.gate_edges.items()
        }

    @property
    def needs_samples(self) -> bool:
        return bool(self.inputs)

    @door
    def completed(self, data: Dataset, classes: bool = False) -> Dataset:
        """The data with what gates read filled in: labels, one-hot, and the constant."""
        given = set(data.gates) & set(self.nodes)
        require(
            not given,
            f"nodes {listed(given)} have gates in the data, and learn their gates",
            got=f"gates for {listed(data.gates)}",
            wanted=f"no gates for {listed(self.nodes)}",
            fix="data.gated({}) removes them; nodes=[…] says which nodes learn their gates",
        )
        more = {n: _one_hot(data, n, values) for n, values in self.labels if n not in data.x}
        if self._constant and CONSTANT not in data.x:
            more[CONSTANT] = np.ones((data.n_samples, 1))
        if more:
            data = eqx.tree_at(lambda d: d.x, data, {**more, **data.x})
        if self.needs_samples:
            require_samples(data, "data whose inputs make gates")
        return super().completed(data, classes)

    @door
    def activity(
        self, weights: WeightsLike, data: Dataset
    ) -> dict[str, Float[Array, " N"] | Float[Array, "N size"]]:
        """The learned gates: `{node: (N,)}`, or `(N, size)` for gates of neurons.

        Usable as gates: `data.gated(net.activity(weights, data))` is data for `nr.GDLN(net.graph)`
        and for theory. Recorded by `record={"activity": True}`.

        ```python
        >>> import neuralrace as nr
        >>> net = nr.LearnedGates(nr.Architecture.chain(1, 8, 1))
        >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [2.0]]})
        >>> net.activity(net.init(0, scale=0.0), data)["h"]
        Array([1., 1.], dtype=float64)

        ```
        """
        matrices, x, _ = self.prepared(weights, data)
        z: dict[str, Any] = {}
        for edge, (source, node) in self.gate_edges.items():
            z[node] = z.get(node, 0.0) + x[source] @ matrices[edge].T
        if self.kind == "free" and not self.signed:  # below zero the slope is that of the edge
            z = {n: v + jax.lax.stop_gradient(jnp.maximum(v, 0) - v) for n, v in z.items()}
        elif self.kind == "sigmoid":
            z = {n: jax.nn.sigmoid(v) for n, v in z.items()}
        elif self.kind == "softmax":
            ends = np.cumsum([v.shape[1] for v in z.values()])
            shares = jax.nn.softmax(jnp.concatenate([*z.values()], axis=1), axis=1)
            z = dict(zip(z, jnp.split(shares, ends[:-1], axis=1), strict=True))
        return z if self.neurons else {n: v[:, 0] for n, v in z.items()}

    @door
    def responses(self, weights: WeightsLike, data: Dataset) -> dict[str, Array]:
        data = self.completed(data, classes=True)
        gates = {**data.gates, **self.activity(weights, data)}
        x = {node: value for node, value in data.x.items() if node in self.graph.sizes}
        inner = eqx.tree_at(lambda d: (d.x, d.gates), data, (x, gates))
        reads = {n: jnp.asarray(v) for n, v in data.x.items() if n not in x}
        of_graph = {name: weights[name] for name in self.graph.matrices}
        return reads | GDLN(self.graph).responses(of_graph, inner)

    @door
    def penalty(self, weights: WeightsLike, data: Dataset) -> Float[Array, ""]:
        """P = ½ ⟨budget · (Σ_p g_p − 1)² + decay · Σ_p g_p²⟩, which moves gates besides the loss.

        ```python
        >>> import neuralrace as nr
        >>> net = nr.LearnedGates(nr.Architecture.chain(1, 8, 1), budget=2.0)
        >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
        >>> edge = net.init(0) | {"constant_gates_h": [[3.0]]}
        >>> float(net.penalty(edge, data))
        4.0

        ```
        """
        gates = self.activity(weights, data).values()
        each = jnp.stack([g if g.ndim == 1 else g.mean(axis=1) for g in gates])
        size = jnp.stack([g**2 if g.ndim == 1 else (g**2).mean(axis=1) for g in gates])
        rows = self.budget * (each.sum(axis=0) - 1) ** 2 + self.decay * size.sum(axis=0)
        return 0.5 * jnp.dot(jnp.asarray(data.probability, rows.dtype), rows)

    @door
    def loss_and_step(
        self, weights: WeightsLike, data: Dataset, rate: float | Array, loss: SampleLoss = squared
    ) -> tuple[Float[Array, ""], Weights]:
        """The loss, and −rate · ∂L/∂W of every edge; of gate weights, what the class says."""
        data = self.completed(data, classes=True)
        value, change = super().loss_and_step(weights, data, rate, loss)
        weights = self._checked(weights)
        if self.budget or self.decay:
            pull = jax.grad(self.penalty)(weights, data)
            change |= {e: change[e] - rate * pull[e] for e in self.gate_edges}
        for edge in self.gate_edges:
            move = jnp.asarray(self.rate, change[edge].dtype) * change[edge]
            if self.kind == "free" and not self.signed:
                move = jnp.where((weights[edge] <= 0) & (move * rate < 0), 0, move)
            change[edge] = move
        return value, change

    @door
    def init(
        self,
        key: Key = 0,
        scale: ArrayLike | Mapping[str, ArrayLike] = 1.0,
        kind: InitKind = "gaussian",
        dtype: DTypeLike | None = None,
    ) -> Weights:
        """Random initial weights, as of any network; gates begin near equal ones.

        Free gates begin at 1/P, for P gated nodes, plus what is drawn at the scale of their edge.

        ```python
        >>> import neuralrace as nr
        >>> net = nr.LearnedGates(nr.Architecture.parallel({"x": 1}, {"a": 8, "b": 8}, {"y": 1}))
        >>> net.init(0, scale=0.0)["constant_gates_a"]
        Array([[0.5]], dtype=float64)

        ```
        """
        weights = super().init(key, scale, kind, dtype)
        if self.kind != "free":
            return weights
        return weights | {e: weights[e] + 1 / len(self.nodes) for e in self.gate_edges}

    def describe(self) -> dict[str, Any]:
        told = super().describe()
        del told["graph"]
        return told | {"arch": self.graph.describe()}


def _checked_labels(
    labels: Any, arch: Architecture
) -> tuple[tuple[str, tuple[int | float | str, ...]], ...]:
    """Labels with their values, as they are kept; pairs, as JSON returns them, are taken too."""
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    fix = "labels={'context': (1, 2, 3)}: every value that the label may have"
    checked = []
    for pair in pairs:
        require(
            isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], str),
            "labels must name labels and their values",
            got=f"{pair!r:.80}",
            wanted="{label: values}",
            fix=fix,
        )
        name, values = pair
        plain = np.asarray(values).tolist()
        require(
            isinstance(plain, list)
            and plain
            and all(isinstance(v, int | float | str) for v in plain)
            and len(set(plain)) == len(plain),
            f"labels[{name!r}] must list the values of the label, each once",
            got=f"{values!r:.80}",
            wanted="numbers or text, all different",
            fix=fix,
        )
        checked.append((name, tuple(plain)))
    return tuple(checked)


def _one_hot(data: Dataset, name: str, values: Sequence[int | float | str]) -> Any:
    """The label of every sample as a row that is one at its value."""
    if name not in data.labels:
        raise NeuralRaceError(
            f"unknown label {name!r}, which the gates read",
            got=f"labels {listed(data.labels)}",
            wanted=f"a label {name!r} of every sample, with values among {values}",
            fix=spelled(name, data.labels, f"nr.Dataset(…, labels={{{name!r}: …}})"),
        )
    label = data.labels[name]
    if isinstance(label, TextLabel):
        table = np.array([[text == value for value in values] for text in label.texts], float)
        rows = table[label.codes] if not is_traced(label.codes) else jnp.asarray(table)[label.codes]
    else:
        rows = (
            (label[:, None] == jnp.asarray(values)[None]) * 1.0
            if is_traced(label)
            else (np.asarray(label)[:, None] == np.asarray(values)[None]).astype(float)
        )
    if not is_traced(rows):
        strange = np.asarray(label)[np.asarray(rows).sum(axis=1) == 0]
        require(
            not len(strange),
            f"the label {name!r} has values that the gates do not know",
            got=listed(np.unique(strange).tolist()),
            wanted=f"values among {values}",
            fix=f"LearnedGates(…, labels={{{name!r}: every value}})",
        )
    return rows
