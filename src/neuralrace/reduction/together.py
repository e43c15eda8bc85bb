"""Blocks that share hidden nodes, solved together as the one network that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.reduction.block import Block
from neuralrace.reduction.mixtures import Mixer
from neuralrace.reduction.scipy_solver import BlockSolution, NetworkFlow
from neuralrace.reduction.two_edge_start import narrowed
from neuralrace.statistics import SplitNetwork, class_factor, restricted
from neuralrace.types import Matrix


def sharing(blocks: Sequence[Block], turned: Iterable[int]) -> list[list[int]]:
    """Groups of blocks that share hidden nodes, those with some turned ones.

    They need not share inputs or outputs; a block between two others joins them. Their paths have
    two edges each.
    """
    left = {i for i, block in enumerate(blocks) if block.arch.path_lengths == {2}}
    found = []
    for first in turned:
        group, near = set[int](), {first} & left
        while near:
            left, group = left - near, group | near
            nodes = {v for i in near for v in blocks[i].arch.hidden}
            near = {i for i in left if not nodes.isdisjoint(blocks[i].arch.hidden)}
        found += [sorted(group)] if group else []
    return found


@final
@dataclass(frozen=True, eq=False)
class Together:
    """Blocks on the edges of all as one block, whose directions are those of all.

    It has all their targets: what no path reaches of them is a constant, and changes no weight.
    """

    whole: Block
    blocks: tuple[Block, ...]
    places: tuple[Mapping[str, slice], ...]

    @classmethod
    def of(cls, blocks: Sequence[Block], network: SplitNetwork) -> Together:
        """These blocks of a network side by side."""
        basis: dict[str, Matrix] = {}
        places: list[dict[str, slice]] = []
        for block in blocks:
            places.append({})
            for v, directions in block.basis.items():
                before = basis.get(v, directions[:, :0])
                basis[v] = np.concatenate([before, directions], axis=1)
                places[-1][v] = slice(before.shape[1], basis[v].shape[1])
        used = {e for block in blocks for e in block.arch.edges}
        arch = network.arch.part(list(used))
        arch = arch.with_sizes({v: basis[v].shape[1] if v in basis else 1 for v in arch.sizes})
        seen = Mixer(arch, class_factor(network.data)).seen_in(basis).factor
        factor = restricted(seen, arch, columns={})
        name, drive = ", ".join(b.name for b in blocks), max(b.drive for b in blocks)
        whole = Block(name, basis, arch, factor, drive, {})
        return cls(whole, tuple(blocks), tuple(places))

    def begin(self, network: Mapping[str, Matrix]) -> dict[str, Matrix]:
        """The network's weights between these directions, and the hidden ones that they reach.

        Gradient flow and descent never leave these, so that nothing is lost.
        """
        arch, found = self.whole.arch, self.whole.restricted(network)
        return narrowed(arch, found)

    @property
    def unreached(self) -> float:
        """The loss of targets that no path of the blocks reaches."""
        return self.whole.initial_loss - sum(block.initial_loss for block in self.blocks)

    def apart(self, solution: BlockSolution, arch: Architecture) -> list[BlockSolution]:
        """The part of every block in a solution of all; `arch` is as wide as the weights.

        The loss of a block is that at its outputs: what other blocks send there counts.
        """
        states = [w.reshape(len(w), -1) for w in (solution.weights[e] for e in arch.matrices)]
        first = {e: w[0] for e, w in solution.weights.items()}
        flow = NetworkFlow(arch, first, self.whole.data)
        squares, found = flow.squares(np.concatenate(states, axis=1)), []
        for block, place in zip(self.blocks, self.places, strict=True):
            weights = {
                e: solution.weights[e][:, place.get(t, slice(None)), place.get(s, slice(None))]
                for e, (s, t) in block.arch.matrix_ends.items()
            }
            ends = [(squares[t], self.whole.factor.y[t], place[t]) for t in block.arch.outputs]
            losses = block.initial_loss + sum(
                (square[:, at].sum(axis=1) - (y[:, at] ** 2).sum()) / 2 for square, y, at in ends
            )
            found.append(replace(solution, weights=weights, losses=losses))
        return found
