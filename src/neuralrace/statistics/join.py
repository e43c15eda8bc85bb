"""Nodes between the same neighbours as one node: fewer and larger products of matrices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset

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
        return Dataset(data.x, data.y, gates, data.sample_weight, data.labels)


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
    have gates: a node at a gated edge, or with several edges to one neighbour, stays as it is.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> from neuralrace.statistics import join_nodes
    >>> arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=8)
    >>> one = join_nodes(arch, data.gates)
    >>> dict(one.arch.sizes), one.data(data).gates["sample1"].shape
    ({'x': 2, 'sample1': 8, 'y': 1}, (4, 8))

    ```
    """
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
