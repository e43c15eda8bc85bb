"""Which candidate leads at which loss, and where the lead changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.checks import by_name, real_array
from neuralrace.errors import NeuralRaceError
from neuralrace.tolerances import EQUAL, FALLEN
from neuralrace.types import ArrayLike


@final
@dataclass(frozen=True)
class Lead:
    """The candidate `name` is the first to reach every loss between `low` and `high`.

    ```python
    >>> from neuralrace.contests import Lead, leads
    >>> leads([0, 1, 2], {"fast": [1.0, 0.5, 0.0], "slow": [1.0, 0.9, 0.8]})
    (Lead(name='fast', low=0.01, high=0.99),)

    ```
    """

    name: str
    low: float
    high: float


def leads(times: ArrayLike, losses: Mapping[str, ArrayLike]) -> tuple[Lead, ...]:
    """Who is first to reach a loss, for every loss, from the largest to the least.

    The winner of a contest is the first to reach one loss, the criterion; at another loss it can be
    another candidate. Whoever is first to reach a loss is at that moment below all others, so the
    leaders are the candidates along the lower envelope of the curves.

    **Assumes** losses that do not rise, as those of gradient flow. Between two moments they are
    taken to be straight lines. The first and the last hundredth of the fall are left out: there all
    candidates have learned next to nothing, or one of them next to all, and leads mean nothing.

    **Arguments:** `times` is (T,), and the losses of every candidate by name are (T,).

    ```python
    >>> from neuralrace.contests import leads
    >>> found = leads([0, 1, 2, 3], {"early": [1, 0.6, 0.5, 0.5], "late": [1, 1, 0.4, 0.0]})
    >>> [(lead.name, round(lead.low, 2)) for lead in found]
    [('early', 0.52), ('late', 0.01)]

    ```
    """
    moments = real_array("times", times, wanted="shape (T,)", fix="pass those of the losses")
    named = by_name("losses", losses, "for example leads(times, {'xor': loss})")
    curves = [
        real_array(f"losses of {name!r}", loss, wanted="(T,)", fix="one loss per time")
        for name, loss in named.items()
    ]
    if not curves or any(curve.shape != moments.shape for curve in curves):
        raise NeuralRaceError(
            "the losses do not fit the times",
            got=f"times {moments.shape}, losses {[curve.shape for curve in curves]}",
            wanted="one loss per time for at least one candidate",
            fix="solve all races at the same times",
        )
    names, many = list(named), np.stack(curves)
    initial, least = float(many[:, 0].max()), float(many.min())
    high, low = (least + part * (initial - least) for part in (1 - FALLEN, FALLEN))
    envelope = many.min(axis=0)
    inside = np.flatnonzero((envelope <= high) & (envelope >= low))
    if not len(inside) or least == initial:
        return ()
    equal = EQUAL * initial  # of equal candidates, the first leads
    now, found = int((many[:, inside[0]] <= envelope[inside[0]] + equal).argmax()), []
    for i in inside[1:]:
        ahead = int((many[:, i] <= envelope[i] + equal).argmax())
        if many[now, i] - envelope[i] > equal:
            level = _meeting(many[now, i - 1 : i + 1], many[ahead, i - 1 : i + 1])
            found.append(Lead(names[now], level, high))
            high, now = level, ahead
    return (*found, Lead(names[now], low, high))


def _meeting(one: np.ndarray, other: np.ndarray) -> float:
    """The loss at which two straight lines meet that change their order."""
    gap = one - other
    share = np.clip(gap[0] / (gap[0] - gap[1]), 0, 1)
    return float(one[0] + share * (one[1] - one[0]))
