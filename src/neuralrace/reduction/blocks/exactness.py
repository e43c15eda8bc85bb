"""What "exact" means for a reduction: the one place that defines it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.statistics import ClassFactor
from neuralrace.types import Matrix

EXACT = 1e-8
"""A reduction that dropped no coupling above this is exact: smaller couplings are rounding."""

NEGLIGIBLE = 1e-13
"""A size below this, relative to what it is measured against, is zero in double precision."""

RANGE = 1e9
"""The largest ratio of sizes at one node for which float64 still resolves both directions.

The ratio of their squares stays within the precision that remains after a few hundred operations.
"""


@final
@dataclass(frozen=True)
class Exactness:
    """How far the blocks of a race can be trusted.

    `residual` is the largest relative size that was dropped: of a coupling between blocks, relative
    to the sizes of the two directions it couples, or of a direction, relative to its node.
    `dropped_directions` says whether any direction was dropped. A direction smaller than 1e-6 of
    its node (`mixtures.SIZE_FLOOR`) is judged as if it had that size. `faint` names the nodes with
    directions more than `RANGE` times smaller than others: float64 cannot distinguish their
    contribution from rounding. `settled` says whether fresh mixtures of the statistics confirmed
    the blocks. `dropped_loss` is the loss at zero weights that is in no block, although an exact
    reduction has it in one: a tolerance dropped it, and it can be learned.
    """

    residual: float
    faint: tuple[str, ...] = ()
    settled: bool = True
    dropped_directions: bool = False
    dropped_loss: float = 0.0

    def __bool__(self) -> bool:
        """Whether the reduction is exact: settled, nothing but rounding dropped, nothing faint."""
        dropped = self.dropped_directions or self.residual > EXACT
        return self.settled and not self.faint and not dropped

    def __str__(self) -> str:
        if self.faint:
            names = ", ".join(self.faint)
            return f"not checked: directions of {names} differ too much in size for float64"
        if not self.settled:
            return f"not settled: fresh mixtures still couple the blocks by {self.residual:.1e}"
        if self:
            return f"exact (no coupling above {EXACT:.0e})"
        what = "couplings or directions" if self.dropped_directions else "couplings"
        return f"approximate: {what} up to {self.residual:.1e} dropped"


def is_exact_tolerance(tolerance: float) -> bool:
    """Whether a reduction with this tolerance may drop nothing but rounding."""
    return tolerance <= EXACT


def faint_nodes(factor: ClassFactor, nodes: Iterable[str]) -> tuple[str, ...]:
    """The nodes with directions or features that differ in size by more than `RANGE`."""
    values = {**factor.x, **factor.y}
    return tuple(v for v in nodes if _span_of_sizes(values[v]) > RANGE)


def _span_of_sizes(values: Matrix) -> float:
    """The ratio of the largest to the smallest size, for features and for principal directions.

    Sizes that are zero, or rounding compared with the largest, do not count.
    """
    features = np.linalg.norm(values, axis=0)
    directions = np.linalg.svd(values, compute_uv=False) if values.size else features
    spans = [1.0]
    for sizes in (features, directions):
        counted = sizes[sizes > NEGLIGIBLE * sizes.max(initial=0.0)]
        spans += [float(counted.max() / counted.min())] if len(counted) else []
    return max(spans)
