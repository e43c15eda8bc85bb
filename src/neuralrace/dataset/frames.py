"""Columns of a table, such as a pandas DataFrame, as arrays; nothing of pandas is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from neuralrace.dataset.text import TextLabel
from neuralrace.errors import NeuralRaceError, listed, require, spelled


@runtime_checkable
class Table(Protocol):
    """As much of a pandas DataFrame as is read here."""

    @property
    def columns(self) -> Iterable[str]:
        """The names of the columns."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, name: str) -> Any: ...


def numbers(frame: Table, names: Sequence[str]) -> np.ndarray:
    """Columns of numbers, shape (N, number of columns)."""
    found = []
    for name in names:
        column = _column(frame, name)
        try:
            found.append(np.asarray(column, dtype=float))
        except (TypeError, ValueError) as error:
            raise NeuralRaceError(
                f"column {name!r} does not hold numbers",
                got=f"dtype {column.dtype}: {error}",
                wanted="numbers, none missing",
                fix="encode names as numbers, one-hot with pandas.get_dummies(frame), and drop "
                "rows with missing values: frame.dropna()",
            ) from error
        wrong = np.flatnonzero(~np.isfinite(found[-1]))
        if wrong.size:
            raise NeuralRaceError(
                f"column {name!r} holds NaN or infinity",
                got=f"{wrong.size} such values, the first in row {wrong[0]}",
                wanted="finite numbers, none missing",
                fix="drop these rows, frame.dropna(), or fill them, frame.fillna(…)",
            )
    return np.stack(found, axis=1) if found else np.empty((len(frame), 0))


def label(frame: Table, name: str) -> np.ndarray | TextLabel:
    """A column of labels: numbers as they are, everything else as text."""
    column = _column(frame, name)
    categories = getattr(getattr(column, "cat", None), "codes", None)
    values = np.asarray(column)
    if categories is None and values.dtype.kind in "iufb":
        return values
    isna = getattr(column, "isna", None)
    require(
        not (any(value is None for value in values) if isna is None else isna().any()),
        f"label {name!r} has missing values",
        got=f"column {name!r} of dtype {column.dtype}",
        wanted="a label for every sample",
        fix="drop these rows, frame.dropna(), or name them, frame.fillna('unknown')",
    )
    if categories is not None:
        return TextLabel(np.asarray(categories, int), tuple(map(str, column.cat.categories)))
    return TextLabel.of(values)


def _column(frame: Any, name: str) -> Any:
    if not isinstance(name, str) or name not in list(frame.columns):
        raise NeuralRaceError(
            f"the table has no column {name!r}",
            got=repr(name),
            wanted=f"one of {listed(frame.columns)}",
            fix=spelled(name, frame.columns, "check the spelling"),
        )
    return frame[name]
