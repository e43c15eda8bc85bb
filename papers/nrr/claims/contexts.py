"""The claim of NRR App. A.2 on contexts."""

from __future__ import annotations

import numpy as np

from evidence import Basis, Claim, Measure, Read, Tables


def _end(name: str, wanted: list[list[float]]) -> Read:
    """The largest difference of any entry of the total weights from its predicted final value."""

    def read(tables: Tables) -> float:
        totals = tables("nrr/appendix_a2")[f"{name}_total"].to_numpy()[:, :, -1]
        return float(np.abs(totals - np.array(wanted)).max())

    return read


CLAIMS = (
    Claim(
        "nrr/contexts",
        "App. A.2, Eqs. 24–29",
        "One pathway converges to [½ ½]; two pathways, one for each context, converge to [1 0] "
        "and [0 1].",
        "Total weights of every pathway at the end: the largest difference of any entry, worst "
        "seed.",
        (
            Measure(
                "one", "one pathway", _end("single", [[0.5, 0.5]]), most=0.005, rests=Basis.THEOREM
            ),
            Measure(
                "two",
                "two pathways",
                _end("two", [[1.0, 0.0], [0.0, 1.0]]),
                most=0.005,
                rests=Basis.THEOREM,
            ),
        ),
        quote="the total weights converge to the linear least squares solution […] [1/2 1/2] […] "
        "W^tot(1) = [1 0] and W^tot(2) = [0 1], such that each pathway picks out the correct input "
        "coordinate.",
    ),
)
