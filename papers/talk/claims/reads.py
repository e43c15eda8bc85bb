"""Numbers that several of the talk's claims read from the data of its figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evidence import FEWEST_SEEDS, Read, Tables
from papers import find
from papers.figure import Table

DRAWS = {
    "differentiation": "key",
    "lambda_trajectories": "seed",
    "delayed_rich": "seed",
    "continual": "seed",
}
"""The setting of figures that draw one task and one network: these are drawn again."""


def read(name: str, of: Callable[[Table], Any], **changes: Any) -> Read:
    """A function that reads a number from the data of one figure.

    For a figure with one random draw, it reads one number for each of `FEWEST_SEEDS` draws.
    """

    def each(tables: Tables) -> float | list[float]:
        figure = f"talk/{name}"
        if name not in DRAWS:
            return float(of(tables(figure, **changes)))
        first = find(figure).settings[DRAWS[name]].value
        draws = range(first, first + (1 if tables.quick else FEWEST_SEEDS))
        return [float(of(tables(figure, **{DRAWS[name]: k}, **changes))) for k in draws]

    return each


def gap(one: str, other: str) -> Callable[[Table], float]:
    """The largest difference of two curves, relative to the largest value of the first."""
    return lambda table: float(np.abs(table[one] - table[other]).max() / np.abs(table[one]).max())


def first_over_steepest(curves: np.ndarray) -> np.ndarray:
    """(K,): the first change of each curve (K, T) over its largest change: 1 for an exponential."""
    changes = np.abs(np.diff(curves, axis=1))
    return changes[:, 0] / changes.max(axis=1)
