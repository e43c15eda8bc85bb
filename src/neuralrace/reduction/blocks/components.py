"""Parts of a network that learn independently of each other.

Two paths influence each other only if they share an edge, or end at one output with a Σ^x(j,p) that
is not zero (NRR Eqs. 3–4). Parts that do neither, such as the four pathways of XoR, each have their
own statistics and bases, and get their own copy of the inputs and outputs they use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.reduction.blocks.exactness import NEGLIGIBLE
from neuralrace.reduction.blocks.mixtures import Mixer, Pair, in_unit_sizes, rows_of
from neuralrace.statistics import ClassFactor, restricted


@final
@dataclass(frozen=True, eq=False)
class Component:
    """A part of the graph that learns independently, and the gate classes that it sees."""

    arch: Architecture
    factor: ClassFactor


def components(
    arch: Architecture, factor: ClassFactor, tolerance: float, cutoff: float = 0.0, seed: int = 0
) -> tuple[list[Component], float]:
    """The finest parts of a gated network that learn independently of each other.

    Also returns the largest correlation between inputs of different parts that was dropped because
    it does not exceed the tolerance. Directions of an input that are smaller than the `cutoff`,
    relative to the largest, do not count.
    """
    rng = np.random.default_rng(seed)
    unit = in_unit_sizes(factor)
    order = {v: i for i, v in enumerate(arch.sizes)}
    place = {e: i for i, e in enumerate(arch.edges)}
    parts = [_part_of(arch, edges, order) for edges in _edge_components(arch)]
    mixers = [Mixer(part, unit) for part in parts]
    sums = [mixer.path_sums(mixer.scalars(rng)) for mixer in mixers]
    spans: list[dict[Pair, tuple[np.ndarray, np.ndarray]]] = [{} for _ in parts]
    group = list(range(len(parts)))

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = group[group[i]]
            i = group[i]
        return i

    apart: dict[tuple[int, int], float] = {}
    for i, k, shared in _meeting_parts(sums):
        if root(i) == root(k):
            continue
        for part in (i, k):
            for pair in sums[part]:
                if pair[0] in shared and pair not in spans[part]:
                    spans[part][pair] = _span(mixers[part], pair[1], sums[part][pair], cutoff)
        correlation = _correlation(spans[i], spans[k], len(unit.row_class))
        if correlation > tolerance:
            group[root(k)] = root(i)
        else:
            apart[i, k] = correlation
    members: dict[int, list[int]] = {}
    for i in range(len(parts)):
        members.setdefault(root(i), []).append(i)
    found = []
    for together in members.values():
        on = np.zeros(factor.count, bool)
        for i in together:
            for value in sums[i].values():
                on |= value != 0
        if on.any():
            edges = sorted((e for i in together for e in parts[i].edges), key=place.__getitem__)
            part = _part_of(arch, edges, order)
            found.append(Component(part, restricted(factor, part, on)))
    dropped = [size for (i, k), size in apart.items() if root(i) != root(k)]
    return found, max(dropped, default=0.0)


def _edge_components(arch: Architecture) -> list[list[str]]:
    """Groups of edges connected through hidden nodes; inputs and outputs connect nothing."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {e: i for i, e in enumerate(arch.edges)}
    near = [[place[e] for e in (*arch.incoming[v], *arch.outgoing[v])] for v in arch.hidden]
    joined = [(edges[0], e) for edges in near for e in edges]
    first, other = np.array(joined, int).reshape(-1, 2).T
    graph = coo_array((np.ones(len(joined)), (first, other)), shape=(len(place), len(place)))
    label = connected_components(graph, directed=False)[1]
    parts: dict[int, list[str]] = {}
    for edge, i in place.items():
        parts.setdefault(int(label[i]), []).append(edge)
    return list(parts.values())


def _meeting_parts(sums: list[dict[Pair, np.ndarray]]) -> Iterator[tuple[int, int, set[str]]]:
    """Pairs of parts that drive an output together in some gate class, with these outputs."""
    at: dict[str, dict[int, np.ndarray]] = {}
    for i, part in enumerate(sums):
        for (t, _), value in part.items():
            on = value != 0
            here = at.setdefault(t, {})
            here[i] = here[i] | on if i in here else on
    found: dict[tuple[int, int], set[str]] = {}
    for t, here in at.items():
        index = list(here)
        on = np.array(list(here.values()), np.float32)
        for i, k in np.argwhere(np.triu(on @ on.T, k=1)):
            found.setdefault((index[i], index[k]), set()).add(t)
    for (i, k), shared in sorted(found.items()):
        yield i, k, shared


def _span(
    mixer: Mixer, node: str, value: np.ndarray, cutoff: float
) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis of what a part sees of an input through its gates, and the rows used."""
    rows, weight = rows_of(mixer.factor, value)
    rows = np.arange(len(mixer.factor.row_class))[rows]
    u, s, _ = np.linalg.svd(weight[:, None] * mixer.factor.x[node][rows], full_matrices=False)
    return rows, u[:, s > max(NEGLIGIBLE, cutoff) * s.max(initial=0.0)]


def _correlation(
    left: Mapping[Pair, tuple[np.ndarray, np.ndarray]],
    right: Mapping[Pair, tuple[np.ndarray, np.ndarray]],
    count: int,
) -> float:
    """How correlated the inputs of two parts are where both drive one output, from 0 to 1.

    This is the largest canonical correlation: the largest between a direction of one part's input
    and one of the other's.
    """
    found = 0.0
    for (t, _), (rows, u) in left.items():
        at = np.full(count, -1)
        at[rows] = np.arange(len(rows))
        for (target, _), (others, v) in right.items():
            if t == target:
                both = at[others] >= 0
                inner = u[at[others[both]]].T @ v[both]
                found = max(found, float(np.linalg.norm(inner, 2)) if inner.size else 0.0)
    return found


def _part_of(arch: Architecture, edges: list[str], order: Mapping[str, int]) -> Architecture:
    """The subgraph of these edges, with nodes in the order of the whole graph."""
    if len(edges) == len(arch.edges):
        return arch
    nodes = sorted({v for e in edges for v in arch.edges[e]}, key=order.__getitem__)
    return Architecture({v: arch.sizes[v] for v in nodes}, {e: arch.edges[e] for e in edges})
