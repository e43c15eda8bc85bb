"""Nodes as gates see them: neurons with gates of their own apart, equal pathways side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, final

import numpy as np
from jaxtyping import Int

from neuralrace.architecture import TRANSPOSED, Architecture
from neuralrace.dataset import Dataset, check_moments, matched
from neuralrace.types import Matrix, WeightsLike


@final
@dataclass(frozen=True, eq=False)
class SplitNetwork:
    """A network in which every gate acts on whole nodes, with the way there and back.

    Neurons of a node that share their gate on every sample form a separate node; `parts[v]`
    lists, for each part of node v, its name and the neurons it holds; `pieces[e]` names the edges
    that edge e became, or the ties that a tie became, the parts of its source first.
    """

    arch: Architecture
    data: Dataset
    whole: Architecture
    parts: Mapping[str, tuple[tuple[str, np.ndarray], ...]]
    pieces: Mapping[str, tuple[str, ...]]

    def split(self, weights: WeightsLike) -> dict[str, Matrix]:
        """The weights of the parts, cut out of those of the whole network."""
        arrays = {e: np.asarray(w, np.float64) for e, w in weights.items()}
        return {name: arrays[edge][block] for name, edge, block in self.blocks()}

    def join(self, weights: WeightsLike) -> dict[str, Matrix]:
        """The weights of the whole network, put together from those of its parts."""
        joined = {e: np.zeros(shape) for e, shape in self.whole.shapes.items()}
        for name, edge, block in self.blocks():
            joined[edge][block] = np.asarray(weights[name], np.float64)
        return joined

    def blocks(self) -> Iterator[tuple[str, str, tuple[np.ndarray, ...]]]:
        """(matrix of the parts, that of the whole, rows and columns it occupies there)."""
        for edge, (source, target) in self.whole.matrix_ends.items():
            ends = [(s, t) for s in self.parts[source] for t in self.parts[target]]
            for name, ((_, columns), (_, rows)) in zip(self.pieces[edge], ends, strict=True):
                yield name, edge, np.ix_(rows, columns)


def split_neurons(
    arch: Architecture,
    data: Dataset,
    groups: Mapping[str, Int[np.ndarray, " size"]] | None = None,
    counts: Mapping[str, int] | None = None,
) -> SplitNetwork:
    """Split nodes with one gate per neuron into groups of equally gated neurons.

    The result computes and learns exactly what the original does. Nodes without gates per neuron
    keep their names; others become `h_1`, `h_2`, …, in the order of their gates. Nodes of one
    class (`Architecture.class_of`) are split alike, so that ties remain. Where the group
    of every neuron is known, `groups[node]` gives its number, counted from 0, and `counts[node]`
    the number of groups: group k is then `h_{k + 1}`, and a group without neurons has no node.
    Nodes of one class must have the same groups.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> from neuralrace.statistics import split_neurons
    >>> arch = nr.Architecture.chain(2, 3, 1)
    >>> gates = {"h": np.array([[1, 0, 1], [0, 1, 0]])}
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": [[1.0], [2.0]]}, gates=gates)
    >>> dict(split_neurons(arch, data).arch.sizes)
    {'x': 2, 'h_1': 1, 'h_2': 2, 'y': 1}

    ```
    """
    data = matched(arch, data)
    check_moments(data)
    taken = {*arch.sizes, *arch.edges, *arch.ties}
    parts: dict[str, tuple[tuple[str, np.ndarray], ...]] = {}
    gates: dict[str, np.ndarray] = {}
    x, y = ({v: np.asarray(a, np.float64) for v, a in field.items()} for field in (data.x, data.y))
    per_neuron: dict[str, list[np.ndarray]] = {}
    for node, gate in data.gates.items():
        if np.ndim(gate) == 2:
            gate = np.asarray(gate, np.float64)
            per_neuron.setdefault(arch.class_of[node], []).append(gate)
    for node, size in arch.sizes.items():
        gate = np.asarray(data.gates.get(node, 1.0), np.float64)
        alike = per_neuron.get(arch.class_of[node])
        if alike is None:
            parts[node] = ((node, np.arange(size)),)
            gates |= {node: gate} if node in data.gates else {}
            continue
        if groups is None or counts is None or node not in groups:
            inverse = np.unique(np.concatenate(alike), axis=1, return_inverse=True)[1].ravel()
            count = int(inverse.max(initial=-1)) + 1
        else:
            inverse, count = groups[node], counts[node]
        names = _part_names(node, count, taken)
        members = [np.flatnonzero(inverse == k) for k in range(count)]
        parts[node] = tuple((n, m) for n, m in zip(names, members, strict=True) if len(m))
        if node in data.gates:
            whole = gate if gate.ndim == 2 else np.repeat(gate[:, None], size, axis=1)
            gates |= {name: whole[:, m[0]] for name, m in parts[node]}
        for field in (x, y):
            if node in field:
                whole = field.pop(node)
                field |= {name: whole[:, m] for name, m in parts[node]}
    edges: dict[str, tuple[str, str]] = {}
    frozen: dict[str, Any] = {}
    of_edge: dict[str, tuple[str, ...]] = {}
    for edge, (source, target) in arch.edges.items():
        turned = arch.matrix_of[edge][1] if edge in arch.matrix_of else False
        first, last = (parts[v] for v in ((target, source) if turned else (source, target)))
        of_edge[edge] = _part_names(edge, len(first) * len(last), taken)
        places = [(a, b) for a in first for b in last]
        for name, ((s, columns), (t, rows)) in zip(of_edge[edge], places, strict=True):
            value = arch.frozen.get(edge)
            if isinstance(value, float) and not np.array_equal(rows, columns):
                continue  # the identity joins nothing else
            edges[name] = (t, s) if turned else (s, t)
            if value is not None:
                identity = isinstance(value, float)
                frozen[name] = value if identity else np.array(value)[np.ix_(rows, columns)]
            if edge in data.gates:
                gates[name] = np.asarray(data.gates[edge], np.float64)
    pieces = {e: tuple(name for name in names if name in edges) for e, names in of_edge.items()}
    ties: dict[str, list[str]] = {}
    for tie, members in arch.ties.items():
        pieces[tie] = _part_names(tie, len(of_edge[members[0].removesuffix(TRANSPOSED)]), taken)
        for k, name in enumerate(pieces[tie]):
            ties[name] = [
                of_edge[edge][k] + TRANSPOSED * turned for edge, turned in arch.matrices[tie]
            ]
    sizes = {name: len(members) for v in arch.sizes for name, members in parts[v]}
    loss_weight = {name: c for v, c in data.loss_weight.items() for name, _ in parts[v]}
    split = replace(data, x=x, y=y, gates=gates, loss_weight=loss_weight)
    graph = Architecture(sizes, edges, ties, frozen)
    return SplitNetwork(graph, split, arch, parts, pieces)


def _part_names(name: str, count: int, taken: set[str]) -> tuple[str, ...]:
    """Names for the parts of a node or edge, none of them taken: `h_1`, or `h__1` and so on."""
    if count == 1:
        return (name,)
    stem = name + "_"
    while any(f"{stem}{k + 1}" in taken for k in range(count)):
        stem += "_"
    names = tuple(f"{stem}{k + 1}" for k in range(count))
    taken |= set(names)
    return names


Place: TypeAlias = tuple[str, int, int, int, int]
"""Where an edge is found in a joined one: its name, and the first and last row and column."""


@final
@dataclass(frozen=True)
class JoinedNodes:
    """A network in which hidden nodes between the same neighbours are one, and the way back.

    The neurons of such nodes stand side by side, with one gate per neuron; the network computes and
    learns what it did. `places` says where every edge went, `members` of which nodes each node is
    made, with their sizes.
    """

    arch: Architecture
    members: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    places: tuple[tuple[str, Place], ...]

    def join(self, weights: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The weights of the joined network, from those of the given one, `(…, |t|, |s|)`."""
        found: dict[str, np.ndarray] = {}
        for edge, (name, top, bottom, left, right) in self.places:
            w = np.asarray(weights[edge])
            if name not in found:
                source, target = self.arch.edges[name]
                shape = (*w.shape[:-2], self.arch.sizes[target], self.arch.sizes[source])
                found[name] = np.zeros(shape, w.dtype)
            found[name][..., top:bottom, left:right] = w
        return found

    def split(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """The weights of the given network, cut out of those of the joined one."""
        return cut_out(weights, self.places)

    def data(self, data: Dataset) -> Dataset:
        """The dataset with the gates of the joined nodes."""
        gates = dict(data.gates)
        for name, nodes in self.members:
            if len(nodes) > 1 and any(node in gates for node, _ in nodes):
                gates[name] = np.concatenate(
                    [_per_neuron(gates.pop(node, None), n, data.n_samples) for node, n in nodes], -1
                )
        return replace(data, gates=gates)


def cut_out(weights: Mapping[str, Any], places: Collection[tuple[str, Place]]) -> dict[str, Any]:
    """The weights of edges from the larger matrices that they are parts of."""
    return {
        edge: weights[name][..., top:bottom, left:right]
        for edge, (name, top, bottom, left, right) in places
    }


def _per_neuron(gate: Any, size: int, samples: int) -> np.ndarray:
    """A gate of a node as one gate per neuron."""
    if gate is None:
        return np.ones((samples, size))
    gate = np.asarray(gate)
    return gate if gate.ndim == 2 else np.repeat(gate[:, None], size, axis=1)


def join_nodes(arch: Architecture, gates: Collection[str] = ()) -> JoinedNodes | None:
    """Join hidden nodes that have the same sources and the same targets; None where there are none.

    Such are pathways between the same inputs and outputs. `gates` names the nodes and edges that
    have gates: a node at a gated edge, or with several edges to one neighbour, stays as it is, and
    so do all where some weights are shared or frozen.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> from neuralrace.statistics import join_nodes
    >>> arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=8)
    >>> one = join_nodes(arch, data.gates)
    >>> dict(one.arch.sizes), one.data(data).gates["sample1"].shape
    ({'x': 2, 'sample1': 8, 'y': 1}, (4, 8))

    ```
    """
    if arch.ties or arch.frozen:
        return None
    gated = set(gates)
    alike: dict[Any, list[str]] = {}
    for v in arch.sizes:
        touching = (*arch.incoming[v], *arch.outgoing[v])
        ends = {arch.edges[e] for e in touching}
        alone = v not in arch.hidden or len(ends) < len(touching) or not gated.isdisjoint(touching)
        sources, targets = (frozenset(pair[i] for pair in ends) - {v} for i in (0, 1))
        alike.setdefault(v if alone else (sources, targets), []).append(v)
    if all(len(nodes) == 1 for nodes in alike.values()):
        return None
    at = {}  # the joined node of each node, and where its neurons begin and end there
    for nodes in alike.values():
        ends = accumulate((arch.sizes[v] for v in nodes), initial=0)
        at |= {v: (nodes[0], *span) for v, span in zip(nodes, pairwise(ends), strict=True)}
    sizes = {nodes[0]: sum(arch.sizes[v] for v in nodes) for nodes in alike.values()}
    edges: dict[str, tuple[str, str]] = {}
    names: dict[tuple[str, str], str] = {}
    places: list[tuple[str, Place]] = []
    for edge, (source, target) in arch.edges.items():
        (s, left, right), (t, top, bottom) = at[source], at[target]
        apart = sizes[s] == arch.sizes[source] and sizes[t] == arch.sizes[target]
        name = edge if apart else names.setdefault((s, t), edge)
        edges[name] = (s, t)
        places.append((edge, (name, top, bottom, left, right)))
    members = tuple((n[0], tuple((v, arch.sizes[v]) for v in n)) for n in alike.values())
    return JoinedNodes(Architecture(sizes, edges), members, tuple(places))
