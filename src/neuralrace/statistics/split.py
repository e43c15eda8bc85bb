"""Gates that act on whole nodes: neurons with equal gates become separate nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Int

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, check_moments, matched
from neuralrace.types import Matrix, WeightsLike


@final
@dataclass(frozen=True, eq=False)
class SplitNetwork:
    """A network in which every gate acts on whole nodes, with the way there and back.

    Neurons of a node that share their gate on every sample form a separate node; `parts[v]`
    lists, for each part of node v, its name and the neurons it holds; `pieces[e]` names the edges
    that edge e became, the parts of its source first.
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
        joined = {
            e: np.zeros((self.whole.sizes[t], self.whole.sizes[s]))
            for e, (s, t) in self.whole.edges.items()
        }
        for name, edge, block in self.blocks():
            joined[edge][block] = np.asarray(weights[name], np.float64)
        return joined

    def blocks(self) -> Iterator[tuple[str, str, tuple[np.ndarray, ...]]]:
        """(edge of the parts, edge of the whole, rows and columns it occupies there)."""
        for edge, (source, target) in self.whole.edges.items():
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
    keep their names; others become `h_1`, `h_2`, …, in the order of their gates. Where the group
    of every neuron is known, `groups[node]` gives its number, counted from 0, and `counts[node]`
    the number of groups: group k is then `h_{k + 1}`, and a group without neurons has no node.

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
    taken = {*arch.sizes, *arch.edges}
    parts: dict[str, tuple[tuple[str, np.ndarray], ...]] = {}
    gates: dict[str, np.ndarray] = {}
    x, y = ({v: np.asarray(a, np.float64) for v, a in field.items()} for field in (data.x, data.y))
    for node, size in arch.sizes.items():
        gate = np.asarray(data.gates.get(node, 1.0), np.float64)
        if gate.ndim < 2:
            parts[node] = ((node, np.arange(size)),)
            gates |= {node: gate} if node in data.gates else {}
            continue
        if groups is None or counts is None or node not in groups:
            inverse = np.unique(gate, axis=1, return_inverse=True)[1].ravel()
            count = int(inverse.max(initial=-1)) + 1
        else:
            inverse, count = groups[node], counts[node]
        names = _part_names(node, count, taken)
        members = [np.flatnonzero(inverse == k) for k in range(count)]
        parts[node] = tuple((n, m) for n, m in zip(names, members, strict=True) if len(m))
        gates |= {name: gate[:, m[0]] for name, m in parts[node]}
        for field in (x, y):
            if node in field:
                whole = field.pop(node)
                field |= {name: whole[:, m] for name, m in parts[node]}
    gates |= {e: np.asarray(data.gates[e], np.float64) for e in arch.edges if e in data.gates}
    edges: dict[str, tuple[str, str]] = {}
    pieces: dict[str, tuple[str, ...]] = {}
    for edge, (source, target) in arch.edges.items():
        ends = [(s, t) for s, _ in parts[source] for t, _ in parts[target]]
        pieces[edge] = _part_names(edge, len(ends), taken)
        edges |= dict(zip(pieces[edge], ends, strict=True))
        if edge in gates:
            gates |= dict.fromkeys(pieces[edge], gates.pop(edge))
    sizes = {name: len(members) for v in arch.sizes for name, members in parts[v]}
    split = Dataset(x, y, gates, data.sample_weight, data.labels)
    return SplitNetwork(Architecture(sizes, edges), split, arch, parts, pieces)


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
