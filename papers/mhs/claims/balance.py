"""The claim of MHS Fig. 3 that pathways balance each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evidence import Basis, Claim, Measure, Read, Remark
from papers.figure import Table


def _unbalanced(of: Callable[[np.ndarray], np.ndarray], *factors: float) -> Read:
    """A number per seed from losses (seed, pathway, factor) with one pathway changed."""

    def read(tables: Callable[..., Table]) -> np.ndarray:
        from papers.mhs.fig3 import unbalanced

        return of(unbalanced(tables("mhs/fig3"), factors))

    return read


def _misplaced(tables: Callable[..., Table]) -> np.ndarray:
    """The share of a contextual lesion's errors where the target is zero, over pathways."""
    from papers.mhs.fig3 import misplaced

    return misplaced(tables("mhs/fig3"))[:, 1:].min(axis=1)


CLAIMS = (
    Claim(
        "mhs/balance",
        "Fig. 3, caption; §4",
        "The pathways of the ReLN balance each other: each contextual one also produces outputs "
        "that are wrong, which the others remove. If the balance is broken, errors appear.",
        "The ReLN of §4 at the end of training, as computed by its race, 5 starts. One pathway is "
        "silenced, or made 10 % weaker or stronger; the loss relative to zero output, smallest "
        "over pathways. After a contextual pathway is silenced, the share of the squared errors "
        "that lie where the target is zero.",
        (
            Measure(
                "balanced",
                "all pathways in balance: loss",
                _unbalanced(lambda loss: loss[:, 0, 0], 1.0),
                most=0.01,
            ),
            Measure(
                "silenced",
                "one pathway silenced: loss, smallest over pathways",
                _unbalanced(lambda loss: loss[..., 0].min(axis=1), 0.0),
                least=0.05,
            ),
            Measure(
                "nudged",
                "one pathway 10 % weaker or stronger: rise of the loss, smallest over pathways",
                _unbalanced(
                    lambda loss: (loss[..., [0, 2]] - loss[..., [1]]).min(axis=(1, 2)),
                    0.9,
                    1.0,
                    1.1,
                ),
                least=0.0,
                rests=Basis.PAPER,
                form=".2e",
            ),
            Measure(
                "lesion-misplaced",
                "errors of a lesion that lie where the target is zero, smallest share",
                _misplaced,
                least=0.5,
                otherwise="Only {:.0%} of a lesion's errors are outputs that should be silent; the "
                "rest is missing from outputs that are wanted.",
            ),
        ),
        quote="While each context-specific pathway is only on in two contexts (blocks of columns) "
        "they still produce labels for all three context-specific parts of the output space […]. "
        "This creates errors which other pathways learn to remove. If this fine balance of "
        "activity between pathways is broken then errors will be incurred.",
        instead=(
            Remark(
                "With one contextual pathway silenced, the loss is {:.0%} of that of zero output.",
                (_unbalanced(lambda loss: loss[:, 1:, 0].mean(axis=1), 0.0),),
            ),
        ),
    ),
)
