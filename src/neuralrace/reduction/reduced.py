"""A gated network as a sum of blocks: what a race consists of, and where it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from neuralrace.architecture import Architecture
from neuralrace.checks import plain_number
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.dynamics.systems import Law, checked_law
from neuralrace.errors import require
from neuralrace.reduction.block import Block
from neuralrace.reduction.find_blocks import Exactness
from neuralrace.reduction.start import (
    Start,
    StartLike,
    check_start_known,
    start_from_number,
    start_from_weights,
)
from neuralrace.results import Result
from neuralrace.statistics import SplitNetwork, threads_for

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False, repr=False)
class Reduced(Result):
    """The blocks of a gated network, what lies outside them, and where they may start."""

    arch: Architecture
    data: Dataset
    split: SplitNetwork
    blocks: tuple[Block, ...]
    constant: float
    silent: Mapping[str, int]
    tolerance: float
    exactness: Exactness

    @property
    def is_decoupled(self) -> bool:
        """Whether every block has one direction per node: MHS Assumption 2.1.1 holds."""
        return bool(self.blocks) and all(block.is_scalar for block in self.blocks)

    @property
    def is_exact(self) -> bool:
        """Whether the blocks are exact, and hidden nodes have a neuron for each direction.

        That is, only rounding was dropped, no feature is too small for float64, and `exactness`
        counts no class of nodes as too narrow.
        """
        return bool(self.exactness)

    @property
    def residual(self) -> float:
        """The largest relative size that was dropped; 0, up to rounding, for an exact reduction.

        It is the size of a coupling between blocks, relative to the sizes of the two directions it
        couples, or of a direction, relative to its node.
        """
        return self.exactness.residual

    @property
    def dropped_loss(self) -> float:
        """The loss at zero weights that a tolerance dropped; 0 for an exact reduction.

        It can be learned, but no block does so: in solutions it stays, and when the loss falls
        further than that is not known.
        """
        return self.exactness.dropped_loss

    @property
    def outside(self) -> float:
        """The loss outside all blocks, `constant` and `dropped_loss`, which stays in solutions."""
        return self.constant + self.dropped_loss

    @property
    def faint(self) -> tuple[str, ...]:
        """The nodes with directions so small beside others that float64 cannot resolve them."""
        return self.exactness.faint

    @property
    def reduces(self) -> bool:
        """Whether the problem splits into smaller parts at all."""
        return len(self.blocks) > 1 or self.is_decoupled

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """Where MHS Assumption 2.1.1 (all statistics diagonal in shared bases) fails, in words."""
        return tuple(block.failure for block in self.blocks if block.failure)

    @door
    def start(self, start: StartLike) -> Start:
        """Where the race starts: from actual weights, nothing fitted, or from one number.

        A mapping is taken as the network's initial weights. In a two-edge pathway, a mode starts
        from its growing half `c = ½ (W₁v + W₂ᵀu)`, or more precisely from the part of it that is
        orthogonal to the modes that grow faster. Pathways of other lengths are restricted to each
        block's directions. Where the
        weights are decoupled already (`alignment` is 1), the solution from there is exact. From
        other weights it is an approximation for small starts, which is not in the papers: the
        growing half is multiplied by e^{st} and the other half by e^{−st}, so that only the first
        matters, and a learned mode expels later ones from its hidden direction (docs/reduction.md,
        "Random starts of deep networks", shows the limits). Where other pathways turn the error
        along a path around, the decaying half is the one that grows in the end, and hidden
        directions that modes share decide how soon: `solve` goes back to the weights there, and
        follows all modes of these hidden nodes together, which is exact. A number
        b gives an aligned start: b times weights of unit size along the singular vectors of Σ^yx,
        so that every edge of a mode starts at b or −b; in a matrix block, the parts of an edge that
        share a hidden node together have singular values b. Where hidden nodes have fewer neurons
        than the blocks have directions, the strongest take them all; the others start at 0 and stay
        there, and the solution is not called exact (`exactness.narrow`). `{edge: b}` sets one
        number per edge.
        `alignment` of the result is the share of the weights' squared norm that it carries, and
        `gap` the distance of its loss from that of the network, which says whether the weights are
        small enough. A `Start` is checked against the data and the blocks of this race, and
        returned. A start that JAX is tracing (`jax.grad`, `jax.vmap`, `jax.jit`) is refused.

        ```python
        >>> import jax, numpy as np, neuralrace as nr
        >>> arch = nr.Architecture.chain(8, 64, 15)
        >>> data = nr.Dataset({"x": np.eye(8)}, {"y": nr.tasks.hierarchy().T})
        >>> race = nr.reduce(arch, data)
        >>> start = race.start(nr.GDLN(arch).init(jax.random.key(0), scale=1e-3))
        >>> len(start.weights), race.start(1e-3).alignment
        (8, None)

        ```
        """
        check_start_known(start)
        if isinstance(start, Start):
            self._check_start(start)
            return start
        if isinstance(start, Mapping):
            plain = {edge: plain_number(value) for edge, value in start.items()}
            if any(_has_axes(w) for w in plain.values()):
                with threads_for(self._width):
                    found = start_from_weights(self.blocks, self.split, self.outside, plain)
            else:
                found = start_from_number(self.blocks, self.split, plain)
        else:
            found = start_from_number(self.blocks, self.split, plain_number(start))
        return replace(found, data=self._digest)

    def _check_start(self, start: Start) -> None:
        """Raise where a start belongs to other data, or does not fit the blocks."""
        fits = len(start.weights) == len(self.blocks) and all(
            block.fits(w) for block, w in zip(self.blocks, start.weights, strict=True)
        )
        require(
            not (not fits or start.data not in (None, self._digest)),
            "this is the start of another race",
            got=f"{len(start.weights)} blocks: {start.description}"
            + (", of other data" if fits else ""),
            wanted=f"a start of the {len(self.blocks)} blocks of this race",
            fix="make it with race.start(…) of the same race",
        )

    def _law(self, weight_decay: float | None, rates: Mapping[str, float] | None) -> Law:
        """Weight decay and rates as those of the edges of the blocks."""
        law = checked_law(weight_decay, rates, self.arch.matrices)
        pieces = self.split.pieces
        return Law(law.weight_decay, {p: r for e, r in law.rates.items() for p in pieces[e]})

    @cached_property
    def _width(self) -> int:
        """The neurons of the widest node of a block."""
        return max((n for block in self.blocks for n in block.arch.sizes.values()), default=1)

    @cached_property
    def _digest(self) -> str:
        return self.data.digest()


def _has_axes(value: object) -> bool:
    """Whether this is an array or a nested list rather than one number."""
    return isinstance(value, list | tuple) or getattr(value, "shape", ()) != ()
