"""Parts of a network that learn independently of each other.

Two paths influence each other only if they share an edge, or end at one output with a Σ^x(j,p)
that is not zero (NRR Eqs. 3–4). Parts that do neither, such as the four pathways of XoR, have
statistics and bases of their own: each gets its own copy of the inputs and outputs it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.reduction.mixtures import Mixer, Pair
from neuralrace.statistics import ClassFactor


@final
@dataclass(frozen=True)
class Component:
    """A part of the graph that learns by itself, and the gate classes that it sees."""

    arch: Architecture
    factor: ClassFactor


def components(
    arch: Architecture, factor: ClassFactor, tolerance: float, seed: int = 0
) -> tuple[list[Component], float]:
    """The finest parts of a gated network that learn independently of each other.

    Also the largest correlation between inputs of different parts that was not more than the
    tolerance, and so was dropped.
    """
    rng = np.random.default_rng(seed)
    mixer = Mixer(arch, factor)
    parts = _edge_components(arch)
    scalars = mixer.scalars(rng)
    sums = [
        mixer.path_sums({e: scalars[e] if e in part else 0.0 for e in arch.edges}) for part in parts
    ]
    group = list(range(len(parts)))
    apart: dict[tuple[int, int], float] = {}
    for i, k in _that_meet(sums, factor.count):
        correlation = _correlation(sums[i], sums[k], factor)
        if correlation > tolerance:
            old, new = group[k], group[i]
            group = [new if g == old else g for g in group]
        else:
            apart[i, k] = correlation
    found = []
    for label in dict.fromkeys(group):
        members = [i for i, g in enumerate(group) if g == label]
        edges = {e for i in members for e in parts[i]}
        on = np.zeros(factor.count, bool)
        for i in members:
            for value in sums[i].values():
                on |= value != 0
        if on.any():
            found.append(Component(_part_of(arch, edges), _restricted(factor, on)))
    dropped = [size for (i, k), size in apart.items() if group[i] != group[k]]
    return found, max(dropped, default=0.0)


def _edge_components(arch: Architecture) -> list[set[str]]:
    """Edges joined through hidden nodes; inputs and outputs join nothing."""
    group = {edge: edge for edge in arch.edges}

    def root(edge: str) -> str:
        while group[edge] != edge:
            edge = group[edge]
        return edge

    for node in arch.hidden:
        first, *others = (*arch.incoming[node], *arch.outgoing[node])
        for other in others:
            group[root(other)] = root(first)
    parts: dict[str, set[str]] = {}
    for edge in arch.edges:
        parts.setdefault(root(edge), set()).add(edge)
    return list(parts.values())


def _that_meet(sums: list[dict[Pair, np.ndarray]], classes: int) -> list[tuple[int, int]]:
    """Pairs of parts that are on together at one output in some gate class."""
    found: set[tuple[int, int]] = set()
    for t in {t for part in sums for t, _ in part}:
        on = np.zeros((len(sums), classes), np.float32)
        for i, part in enumerate(sums):
            for (target, _), value in part.items():
                if target == t:
                    on[i] = np.maximum(on[i], value != 0)
        found |= {(int(i), int(k)) for i, k in np.argwhere(np.triu(on @ on.T, k=1))}
    return sorted(found)


def _correlation(
    left: Mapping[Pair, np.ndarray], right: Mapping[Pair, np.ndarray], factor: ClassFactor
) -> float:
    """How correlated the inputs of two parts are where both drive one output, from 0 to 1."""
    found = 0.0
    for (t, s), a in left.items():
        for (target, r), b in right.items():
            if t == target:
                x = a[factor.row_class][:, None] * factor.x[s]
                z = b[factor.row_class][:, None] * factor.x[r]
                size = np.linalg.norm(x.T @ x) * np.linalg.norm(z.T @ z)
                found = max(found, float(np.linalg.norm(x.T @ z) / np.sqrt(max(size, 1e-300))))
    return found


def _part_of(arch: Architecture, edges: set[str]) -> Architecture:
    kept = {e: ends for e, ends in arch.edges.items() if e in edges}
    nodes = {v for ends in kept.values() for v in ends}
    return Architecture({v: n for v, n in arch.sizes.items() if v in nodes}, kept)


def _restricted(factor: ClassFactor, on: np.ndarray) -> ClassFactor:
    """The factor of the gate classes in `on` alone."""
    if on.all():
        return factor
    rows = on[factor.row_class]
    counts = np.diff(factor.start)[on]
    return ClassFactor(
        np.repeat(np.arange(int(on.sum())), counts),
        np.concatenate([[0], np.cumsum(counts)]),
        {v: x[rows] for v, x in factor.x.items()},
        {v: y[rows] for v, y in factor.y.items()},
        {name: g[on] for name, g in factor.gates.items()},
    )
