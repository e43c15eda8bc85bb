"""Numbers that several of the talk's claims read from the data of its figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.papers.claims import Read

if TYPE_CHECKING:
    import xarray


def read(name: str, of: Callable[[xarray.Dataset], Any], **changes: Any) -> Read:
    """A function that reads a number from the data of one figure."""
    return lambda tables: float(of(tables(f"talk/{name}", **changes)))


def gap(one: str, other: str) -> Callable[[xarray.Dataset], float]:
    """The largest difference of two curves, relative to the largest value of the first."""
    return lambda table: float(np.abs(table[one] - table[other]).max() / np.abs(table[one]).max())


def first_over_steepest(curves: np.ndarray) -> np.ndarray:
    """(K,): the first change of each curve (K, T) over its largest change: 1 for an exponential."""
    changes = np.abs(np.diff(curves, axis=1))
    return changes[:, 0] / changes.max(axis=1)
