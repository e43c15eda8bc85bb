"""Blocks that share hidden directions, solved together as the one network that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.reduction.block import Block
from neuralrace.reduction.scipy_solver import BlockSolution, NetworkFlow
from neuralrace.reduction.two_edge_start import orthonormal
from neuralrace.statistics import ClassFactor
from neuralrace.types import Matrix


def sharing(blocks: Sequence[Block], turned: Iterable[int]) -> list[list[int]]:
    """Groups of blocks that share hidden nodes, those that have some of the turned ones.

    Blocks of two-edge paths share all of them, or have other edges and count as apart.
    """
    left = {i for i, block in enumerate(blocks) if block.arch.path_lengths == {2}}
    found = []
    for first in turned:
        if first in left:
            same = {i for i in left if blocks[i].arch.edges == blocks[first].arch.edges}
            left -= same
            found.append(sorted(same))
    return found


@final
@dataclass(frozen=True, eq=False)
class Together:
    """Blocks on one graph as one block, whose directions are those of all.

    Blocks have no common statistics, so that their rows of data stand below one another. A row
    wants nothing of the outputs of other blocks, which it may reach where hidden directions meet.
    """

    whole: Block
    places: tuple[Mapping[str, slice], ...]
    rows: tuple[slice, ...]

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Together:
        """These blocks side by side."""
        ends = dict.fromkeys(v for block in blocks for v in block.basis)
        places: list[dict[str, slice]] = [{} for _ in blocks]
        for v in ends:
            at = 0
            for block, place in zip(blocks, places, strict=True):
                width = block.basis[v].shape[1] if v in block.basis else 0
                place[v], at = slice(at, at + width), at + width
        counts = np.cumsum([0, *(len(block.factor.row_class) for block in blocks)]).tolist()
        rows = tuple(slice(*pair) for pair in pairwise(counts))
        basis = {
            v: np.concatenate([b.basis[v] for b in blocks if v in b.basis], axis=1) for v in ends
        }
        sizes = {v: basis[v].shape[1] if v in basis else n for v, n in blocks[0].arch.sizes.items()}
        factors = [block.factor for block in blocks]
        first_class = np.cumsum([0, *(f.count for f in factors[:-1])])
        gates = dict.fromkeys(name for f in factors for name in f.gates)

        def spread(sides: Sequence[Mapping[str, Matrix]]) -> dict[str, Matrix]:
            found = {v: np.zeros((counts[-1], sizes[v])) for side in sides for v in side}
            for side, row, place in zip(sides, rows, places, strict=True):
                for v, values in side.items():
                    found[v][row, place[v]] = values
            return found

        bounds = zip(factors, rows, strict=True)
        factor = ClassFactor(
            np.concatenate([f.row_class + n for f, n in zip(factors, first_class, strict=True)]),
            np.append(0, np.concatenate([f.start[1:] + row.start for f, row in bounds])),
            spread([f.x for f in factors]),
            spread([f.y for f in factors]),
            {n: np.concatenate([f.gates.get(n, np.ones(f.count)) for f in factors]) for n in gates},
        )
        whole = Block(
            ", ".join(block.name for block in blocks), basis,
            Architecture(sizes, blocks[0].arch.edges), factor, max(b.drive for b in blocks), {},
        )  # fmt: skip
        return cls(whole, tuple(places), rows)

    def begin(self, network: Mapping[str, Matrix]) -> dict[str, Matrix]:
        """The network's weights between these directions, and the hidden ones that they reach.

        Gradient flow and descent never leave these, so that nothing is lost.
        """
        arch, basis = self.whole.arch, self.whole.basis
        found = {}
        for edge, (s, t) in arch.edges.items():
            w = network[edge] @ basis[s] if s in basis else network[edge]
            found[edge] = basis[t].T @ w if t in basis else w
        for node in arch.hidden:
            into, out = arch.incoming[node], arch.outgoing[node]
            q = orthonormal(
                np.concatenate([*(found[e] for e in into), *(found[e].T for e in out)], axis=1)
            )
            found |= {e: q.T @ found[e] for e in into} | {e: found[e] @ q for e in out}
        return found

    def apart(self, solution: BlockSolution, arch: Architecture) -> list[BlockSolution]:
        """The part of every block in a solution of all; `arch` is as wide as the weights.

        The loss of a block is that of its rows: what they reach of other blocks' outputs counts.
        """
        states = [w.reshape(len(w), -1) for w in (solution.weights[e] for e in arch.edges)]
        data, found = self.whole.data, []
        for place, row in zip(self.places, self.rows, strict=True):
            weights = {
                e: solution.weights[e][:, place.get(t, slice(None)), place.get(s, slice(None))]
                for e, (s, t) in arch.edges.items()
            }
            gates = {name: g[row] for name, g in data.gates.items()}
            x, y = ({v: a[row] for v, a in side.items()} for side in (data.x, data.y))
            first = {e: w[0] for e, w in solution.weights.items()}
            flow = NetworkFlow(arch, first, Dataset(x, y, gates))
            share = (row.stop - row.start) / data.n_samples
            losses = share * flow.losses(np.concatenate(states, axis=1))
            found.append(replace(solution, weights=weights, losses=losses))
        return found
