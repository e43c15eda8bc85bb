"""Merged equations that describe a single pathway, recognised by their form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.reduction.equations.polynomial import (
    NOISE,
    PolynomialSystem,
    is_noise,
    natural_unit,
)


@final
@dataclass(frozen=True)
class MonomialRace:
    """db_k/dt = γ_k (M/b_k)(S − D M), M = Π b_k^{n_k}; the total power is the depth.

    The rates γ are scaled so that the largest is 1. S and D then contain the number of paths
    through the variable that moves fastest: they are Σ^yx and Σ^x summed over these paths.
    """

    powers: tuple[int, ...]
    rates: tuple[float, ...]
    S: float
    D: float

    @property
    def depth(self) -> int:
        """The number of edges on a path, Σ_k n_k."""
        return sum(self.powers)


def recognised(system: PolynomialSystem) -> MonomialRace | None:
    """The single pathway that these equations describe, or None."""
    K = len(system.parts)
    if K == 0:
        return None
    unit = natural_unit(system) ** system.powers.sum(axis=1).astype(float)
    terms = ~is_noise(system.velocity * unit)
    if (terms.sum(axis=1) != 2).any():
        return None
    rows = [
        {tuple(system.powers[m].tolist()): float(row[m]) for m in np.flatnonzero(there)}
        for row, there in zip(system.velocity, terms, strict=True)
    ]
    powers = None
    rates, ratios = [], []
    for k, row in enumerate(rows):
        (low, drive), (high, brake) = sorted(row.items(), key=lambda term: sum(term[0]))
        path = tuple(n + (i == k) for i, n in enumerate(low))
        double = tuple(2 * n - (i == k) for i, n in enumerate(path))
        if high != double or (powers is not None and path != powers) or drive == 0:
            return None
        powers = path
        rates.append(drive)
        ratios.append(-brake / drive)
    assert powers is not None
    if any(n == 0 for n in powers) or max(ratios) - min(ratios) > NOISE * max(map(abs, ratios)):
        return None
    top = max(rates, key=abs)
    if any(rate / top <= 0 for rate in rates):
        return None
    return MonomialRace(powers, tuple(r / top for r in rates), float(top), float(top * ratios[0]))
