"""Merged equations that are those of a single pathway, recognised by their shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.reduction.equations.polynomial import PolynomialSystem

ZERO = 1e-9
"""Coefficients smaller than this, relative to the largest in natural units, are zero."""


@final
@dataclass(frozen=True)
class MonomialRace:
    """db_k/dt = γ_k (M/b_k)(S − D M), M = Π b_k^{n_k}; the total power is the depth."""

    powers: tuple[int, ...]
    rates: tuple[float, ...]
    S: float
    D: float

    @property
    def depth(self) -> int:
        """The number of edges on a path, Σ_k n_k."""
        return sum(self.powers)


def natural_unit(system: PolynomialSystem) -> float:
    """The size of the variables at which drive and brake of the longest paths balance.

    On paths of D edges drives have the degree D − 1 and brakes 2D − 1. In this unit of the
    variables all coefficients have one unit, and their sizes can be compared.
    """
    degree = system.powers.sum(axis=1)
    moving = (system.velocity != 0).any(axis=0)
    depth = (int(degree[moving].max(initial=1)) + 1) // 2
    largest = lambda n: float(np.abs(system.velocity[:, degree == n]).max(initial=0.0))  # noqa: E731
    drive, brake = largest(depth - 1), largest(2 * depth - 1)
    return (drive / brake) ** (1 / depth) if drive and brake else 1.0


def recognised(system: PolynomialSystem) -> MonomialRace | None:
    """The single pathway whose race these equations are, or None."""
    K = len(system.parts)
    if K == 0:
        return None
    sizes = np.abs(system.velocity) * natural_unit(system) ** system.powers.sum(axis=1)
    terms = sizes > ZERO * sizes.max(initial=0.0)
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
    if any(n == 0 for n in powers) or max(ratios) - min(ratios) > ZERO * max(map(abs, ratios)):
        return None
    top = max(rates, key=abs)
    if any(rate / top <= 0 for rate in rates):
        return None
    return MonomialRace(powers, tuple(r / top for r in rates), float(top), float(top * ratios[0]))
