"""One batch of cells, computed anywhere: what it returns, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from neuralrace.checks import shown
from neuralrace.errors import NeuralRaceError
from neuralrace.sweeps.definition import (
    NAME,
    RESERVED,
    Cell,
    Function,
    found_function,
    name_of,
    set_precision,
)

Result: TypeAlias = dict[str, np.ndarray]
"""What the function returned for one cell."""


@final
@dataclass(frozen=True)
class Failure:
    """A cell that failed, and the error: its kind and its message.

    `function([failure.cell], **settings)` shows it again, with its traceback.

    ```python
    >>> from neuralrace.sweeps import Failure
    >>> print(Failure({"delta": 0.5, "seed": 1}, "ValueError: no such task"))
    delta=0.5, seed=1: ValueError: no such task

    ```
    """

    cell: Mapping[str, Any]
    error: str

    def __str__(self) -> str:
        where = ", ".join(f"{name}={value}" for name, value in self.cell.items())
        return f"{where}: {self.error}"


def run_named(
    function: str, cells: list[Cell], settings: Mapping[str, Any], float64: bool
) -> list[Result | str]:
    """`run_cells` on a worker: the function by its name, in the precision of the sweep."""
    set_precision(float64)
    called = found_function(function)
    return run_cells(called, cells, settings)


def run_cells(
    function: Function, cells: list[Cell], settings: Mapping[str, Any]
) -> list[Result | str]:
    """The result of every cell, or the text of its error.

    Where the batch as a whole raises, its cells are run one by one, so that only those fail that
    raise on their own.
    """
    try:
        given: Any = function(cells, **settings)
    except Exception as error:
        if len(cells) == 1:
            return [_told(error)]
        return [run_cells(function, [cell], settings)[0] for cell in cells]
    if not isinstance(given, Sequence) or len(given) != len(cells):
        count = f" of {len(given)}" if isinstance(given, Sequence) else ""
        raise NeuralRaceError(
            f"the function {name_of(function)!r} of the sweep must return one result per cell",
            got=f"{type(given).__name__}{count} for {len(cells)} cells",
            wanted="a list as long as the cells, each entry {name: array or number}",
            fix="for example return [{'loss': loss(**cell)} for cell in cells]",
        )
    return [_checked(result) for result in given]


def _checked(given: Any) -> Result | str:
    if isinstance(given, Exception):
        return _told(given)
    if not isinstance(given, Mapping) or not given:
        return f"TypeError: the cell returned {shown(given)}, not {{name: array or number}}"
    found: Result = {}
    for name, value in given.items():
        if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED:
            return f"TypeError: {name!r:.60} cannot be the name of a result"
        array = np.asarray(value)
        if array.dtype.kind not in "biufc" and not isinstance(value, str):
            return f"TypeError: the result {name!r} is no number, text or array: {shown(value)}"
        found[name] = np.ascontiguousarray(array) if array.ndim else array
    return found


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip()
