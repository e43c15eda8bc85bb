"""What "exact" means for a reduction: the one place that defines it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.types import ArrayLike, Matrix

EXACT = 1e-8
"""A reduction that dropped no coupling above this is exact: smaller couplings are rounding."""

NEGLIGIBLE = 1e-13
"""A size below this, relative to what it is measured against, is zero in double precision."""

RANGE = 1e9
"""The largest ratio of the sizes of two features of a node at which float64 can still be trusted.

Their squares then differ by less than the precision that a few hundred operations leave.
"""


@final
@dataclass(frozen=True)
class Exactness:
    """How far the blocks of a race can be trusted.

    `residual` is the largest coupling between blocks that was dropped, relative to the sizes of
    what it couples. `faint` names the nodes with features more than `RANGE` times smaller than
    others: float64 cannot tell what these contribute from rounding. `settled` says whether fresh
    mixtures of the statistics confirmed the blocks.
    """

    residual: float
    faint: tuple[str, ...] = ()
    settled: bool = True

    def __bool__(self) -> bool:
        """Whether the reduction is exact: settled, nothing but rounding dropped, nothing faint."""
        return self.settled and not self.faint and self.residual <= EXACT

    def __str__(self) -> str:
        if self.faint:
            names = ", ".join(self.faint)
            return f"not checked: features of {names} differ too much in size for float64"
        if not self.settled:
            return f"not settled: fresh mixtures still couple the blocks by {self.residual:.1e}"
        if self:
            return f"exact (no coupling above {EXACT:.0e})"
        return f"approximate: couplings up to {self.residual:.1e} dropped"


def is_exact_tolerance(tolerance: float) -> bool:
    """Whether a reduction with this tolerance may drop nothing but rounding."""
    return tolerance <= EXACT


def faint_nodes(values: Mapping[str, ArrayLike], nodes: Iterable[str]) -> tuple[str, ...]:
    """The nodes whose features differ in size by more than `RANGE`."""
    return tuple(v for v in nodes if _span_of_sizes(np.asarray(values[v], np.float64)) > RANGE)


def _span_of_sizes(values: Matrix) -> float:
    """The largest over the smallest size of the features (columns), without those that are zero."""
    top = np.abs(values).max(axis=0, initial=0.0)
    sizes = top[top > NEGLIGIBLE * top.max(initial=0.0)]
    return float(sizes.max() / sizes.min()) if len(sizes) else 1.0
