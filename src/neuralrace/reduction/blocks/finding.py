"""The blocks of a network: its independent parts, the shared bases of each, and what they drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import final

import numpy as np

from neuralrace.dataset import zero_loss
from neuralrace.reduction.blocks.basis import shared_basis
from neuralrace.reduction.blocks.block import Block
from neuralrace.reduction.blocks.components import components
from neuralrace.reduction.blocks.exactness import (
    EXACT,
    NEGLIGIBLE,
    Exactness,
    faint_nodes,
    is_exact_tolerance,
)
from neuralrace.reduction.blocks.making import make_block
from neuralrace.reduction.blocks.mixtures import Mixer, in_unit_sizes
from neuralrace.statistics import SplitNetwork, class_factor
from neuralrace.types import Matrix

SAME_DIRECTION = 1e-8
"""A singular value of combined unit vectors below this adds no direction to their span."""


@final
@dataclass(frozen=True, eq=False)
class FoundBlocks:
    """The blocks of a network, strongest first, with what lies outside all of them.

    `constant` is the loss outside the blocks of an exact reduction, which no weights can remove; it
    is set to zero if it is rounding compared with the loss at zero weights. What else is missing
    from the sum of the blocks' losses, a tolerance dropped (`Exactness.dropped_loss`). `silent`
    counts, for every input and output node, the directions that belong to no block.
    """

    blocks: tuple[Block, ...]
    constant: float
    silent: Mapping[str, int]
    exactness: Exactness


def find_blocks(whole: SplitNetwork, tolerance: float) -> FoundBlocks:
    """The finest blocks of a network whose couplings to each other stay below `tolerance`."""
    factor = class_factor(whole.data)
    cutoff = 0.0 if is_exact_tolerance(tolerance) else tolerance
    parts, dropped = components(whole.arch, factor, tolerance, cutoff)
    bases = [shared_basis(Mixer(p.arch, in_unit_sizes(p.factor)), tolerance) for p in parts]
    blocks = [
        block
        for part, basis in zip(parts, bases, strict=True)
        for k in range(basis.count)
        if (block := make_block(part, basis.of(k))) is not None
    ]
    blocks.sort(key=lambda block: -block.drive)
    named = tuple(
        block.named(f"{'mode' if block.is_scalar else 'block'}{i + 1}")
        for i, block in enumerate(blocks)
    )
    total = zero_loss(whole.data)
    outside = fsum([total, *(-block.initial_loss for block in named)])
    outside = outside if outside > NEGLIGIBLE * total else 0.0
    constant = find_blocks(whole, EXACT).constant if cutoff else outside
    ends = (*whole.arch.inputs, *whole.arch.outputs)
    silent = {
        v: whole.arch.sizes[v] - _rank([block.basis[v] for block in named if v in block.basis])
        for v in ends
    }
    exactness = Exactness(
        max([dropped, *(basis.residual for basis in bases)]),
        faint_nodes(factor, ends),
        all(basis.settled for basis in bases),
        any(basis.dropped_directions for basis in bases),
        max(outside - constant, 0.0),
    )
    return FoundBlocks(named, constant, silent, exactness)


def _rank(bases: list[Matrix]) -> int:
    """The dimension of the space that these bases span together."""
    if not bases:
        return 0
    return int(np.linalg.matrix_rank(np.concatenate(bases, axis=1), tol=SAME_DIRECTION))
