"""The merged equations of a block, scalar or not, if there are few enough to write out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import comb

import numpy as np

from neuralrace.reduction.blocks.block import Block
from neuralrace.reduction.blocks.mixtures import edge_depths, longest_path
from neuralrace.reduction.equations.lumping import distinct, merged
from neuralrace.reduction.equations.polynomial import (
    MAX_PATHS,
    PolynomialSystem,
    block_statistics,
    merged_system,
    scalar_race,
)
from neuralrace.reduction.equations.subspace import (
    MAX_TERMS,
    closed_subspace,
    filled,
    flat,
    subspace_system,
    weight_shapes,
)
from neuralrace.types import Matrix

FEW_PATHS = 100
"""Blocks with up to this many paths are written out, whatever their gates."""

MAX_PAIRS = 30_000
"""Blocks in which more pairs of paths overlap than this are solved as networks instead."""

MAX_MERGED = 64
"""Scalar blocks with more variables than this after merging are also solved as networks."""


def block_system(
    block: Block, start: Mapping[str, Matrix] | None = None
) -> tuple[PolynomialSystem, np.ndarray] | None:
    """The merged equations of a block and its start values, or None if there are too many.

    `start=None` assumes an aligned start in which all edges are equal. Equal variables are merged.
    In matrix blocks, signs and rotations hide which variables are equal, so the smallest closed
    subspace is used. Variables are ordered by their depth in the graph.
    """
    weights = block.aligned if start is None else start
    if not _is_manageable(block):
        return None
    if all(w.shape == (1, 1) for w in weights.values()):
        values = np.array([weights[edge][0, 0] for edge in block.arch.edges])
        label, signs = distinct(np.abs(values)), np.where(values < 0, -1, 1)
        found = _scalar_system(block, tuple(label.tolist()), tuple(signs.tolist()))
        return None if found is None else (found[0], np.abs(values)[found[1]])
    if not any(w.any() for w in weights.values()):
        return None
    parts = closed_subspace(block, weights)
    degree = 2 * longest_path(block.arch) - 1
    if parts is None or comb(len(parts) + degree, degree) > MAX_TERMS:
        return None
    edges, shapes = tuple(block.arch.edges), weight_shapes(parts, block)
    basis = np.stack([flat(filled(part, shapes), edges) for part in parts])
    values = flat(weights, edges) @ np.linalg.pinv(basis)
    signs = np.where(values < 0, -1.0, 1.0)
    parts = tuple({e: s * w for e, w in p.items()} for s, p in zip(signs, parts, strict=True))
    system = subspace_system(block, parts)
    return None if system is None else (system, signs * values)


def _is_manageable(block: Block) -> bool:
    """Whether few enough pairs of paths end at one output and are on together."""
    count = block.arch.path_count()
    if count <= FEW_PATHS or count > MAX_PATHS:
        return count <= MAX_PATHS

    def pairs() -> int:
        together: Counter[tuple[str, int]] = Counter()
        for group in block_statistics(block).groups:
            together.update((group.target, int(c)) for c in group.classes)
        return sum(n * n for n in together.values())

    return block.cached("pairs", pairs) <= MAX_PAIRS


def _scalar_system(
    block: Block, label: tuple[int, ...], signs: tuple[int, ...]
) -> tuple[PolynomialSystem, list[int]] | None:
    """The merged equations of a scalar block; edges of one class start with equal size."""

    def made() -> tuple[PolynomialSystem, list[int]] | None:
        race = replace(scalar_race(block), signs=np.array(signs, float))
        classes = merged(race, np.array(label))
        if len(classes) > MAX_MERGED:
            return None
        depth = edge_depths(block.arch)
        classes.sort(key=lambda members: min(depth[race.edges[i]] for i in members))
        return merged_system(race, classes), [members[0] for members in classes]

    return block.cached(("system", label, signs), made)
