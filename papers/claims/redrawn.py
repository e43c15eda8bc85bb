"""Seeds of the ledger's data drawn again: how far a number over all seeds may be off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.measure import FEWEST_SEEDS, Basis, Found, Measure

if TYPE_CHECKING:
    import xarray

    from papers.claims.tables import Tables

DRAWS = 200
"""How often seeds are drawn again: enough to know a standard error to about 5 %."""


def chosen(count: int, number: int) -> np.ndarray:
    """As many seeds, drawn with replacement; the same `number` always draws the same ones."""
    return np.random.default_rng([number, count]).integers(count, size=count)


def drawn_table(table: xarray.Dataset, number: int) -> xarray.Dataset:
    """The data of a figure with its seeds drawn again; without seeds, as they are."""
    if "seed" not in table.dims:
        return table
    return table.isel(seed=chosen(table.sizes["seed"], number))


def drawn_lists(found: Mapping[str, Any], count: int, number: int) -> dict[str, Any]:
    """The numbers of a measurement, with the seeds of lists of this length drawn again."""
    seeds = chosen(count, number)
    many = lambda v: isinstance(v, list) and len(v) == count
    return {k: [v[i] for i in seeds] if many(v) else v for k, v in found.items()}


def with_interval(measure: Measure, found: Found, tables: Tables) -> Found:
    """The number with the interval that drawing its seeds again gives (the bootstrap).

    The standard error is the standard deviation over `DRAWS` draws, corrected for few seeds by
    √(n / (n − 1)); the interval is Student's, as for a mean over seeds, for which both are equal.
    A ratio to the seed floor, whose own spread then counts, has the interval of its logarithm.
    Draws that have no number, such as those of one and the same seed, are left out. Fewer seeds
    than a verdict needs are not drawn.
    """
    if found.seeds is None or found.seeds < FEWEST_SEEDS or not np.isfinite(found.value):
        return found
    values = [
        Found.of(measure.read(tables.redrawn(number)), scale=measure.scale).value
        for number in range(DRAWS)
    ]
    return found.spread(values, scale="log" if measure.rests is Basis.SEEDS else measure.scale)
