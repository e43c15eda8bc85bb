"""What every result is: a table of plain values and sentences for people; printing shows both."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neuralrace.text import percent, table_lines

if TYPE_CHECKING:
    import pandas

__all__ = ["Result", "Sentence"]

SENTENCES = 5
"""At most this many sentences of a result are printed, the most important ones."""

ROWS = 20
"""At most this many rows of a result are printed."""

SHARE, KEPT, TIME = "share", "kept", "time"
"""Units of columns: parts of a whole, printed as per cent; kept shares, with two decimals; times,
infinite for what never comes."""


class Sentence(NamedTuple):
    """A sentence of a result: `id` says what it is about, `text` is for people only.

    Sentences about several things of one kind share their `id`.

    ```python
    >>> from neuralrace.results import Sentence
    >>> Sentence("first", "xor is first.").id
    'first'

    ```
    """

    id: str
    text: str


class Result(ABC):
    """A result that is a table and sentences, and is printed as both.

    `frame()` has one row per thing, plain numbers, names and enums; `frame().attrs["units"]` has
    the units of columns that have one. `sentences()` come most important first. Nothing depends on
    their texts.

    ```python
    >>> from neuralrace.results import Result, Sentence, framed
    >>> class Race(Result):
    ...     def frame(self):
    ...         rows = [{"name": "a", "time": 1.0}, {"name": "b", "time": 2.5}]
    ...         return framed(["name", "time"], rows, units={"time": "time"})
    ...     def sentences(self):
    ...         return (Sentence("first", "a is first."),)
    >>> print(Race())
    a is first.
    name  time
    a        1
    b      2.5

    ```
    """

    @abstractmethod
    def frame(self) -> pandas.DataFrame:
        """The result as a table."""

    @abstractmethod
    def sentences(self) -> tuple[Sentence, ...]:
        """The result in words, the most important sentence first."""

    def _printed(self) -> pandas.DataFrame | None:
        """What is printed of the table; None where sentences say it all."""
        return self.frame()

    def _shown(self) -> tuple[str, pandas.DataFrame | None, list[str]]:
        """The first sentence, the table and the sentences below it, all as text."""
        first, *others = [sentence.text for sentence in self.sentences()]
        below = others[: SENTENCES - 1]
        if len(others) > len(below):
            below.append(f"({len(others) - len(below)} more: sentences())")
        table = self._printed()
        if table is not None and len(table) > ROWS:
            below.insert(0, f"({len(table) - ROWS} more rows: frame())")
        return first, None if table is None else as_text(table.head(ROWS)), below

    def __str__(self) -> str:
        first, table, below = self._shown()
        lines = (
            []
            if table is None
            else table_lines(list(table), table.to_numpy().tolist(), right=table.attrs["right"])
        )
        return "\n".join([first, *lines, *below])

    def _repr_html_(self) -> str:
        first, table, below = self._shown()
        cells = "" if table is None else table.to_html(index=False, border=0)
        lines = (f"<p>{html.escape(line)}</p>" for line in (first, *below))
        return "".join([next(lines), cells, *lines])


def framed(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    units: Mapping[str, str] | None = None,
) -> pandas.DataFrame:
    """A table with these columns, the units of some in its `attrs`."""
    import pandas

    rows = list(rows)
    values = {name: [row[name] for row in rows] for name in columns}
    frame = pandas.DataFrame({n: pandas.Series(v, dtype=_dtype(v)) for n, v in values.items()})
    frame.attrs["units"] = dict(units or {})
    return frame


def _dtype(values: Sequence[Any]) -> Any:
    """What pandas should not infer: enums stay what they are."""
    return object if any(isinstance(value, Enum) for value in values) else None


def as_text(frame: pandas.DataFrame) -> pandas.DataFrame:
    """The cells of a table as they are printed, without columns that are empty.

    `attrs["right"]` names the columns that are aligned at their right end.
    """
    import pandas

    units = frame.attrs.get("units", {})
    cells = {
        str(name).replace("_", " "): [_cell(value, units.get(name, "")) for value in column]
        for name, column in frame.items()
    }
    right = [n for n, c in zip(cells, frame, strict=True) if frame[c].dtype.kind in "iufb"]
    empty = [name for name, texts in cells.items() if texts and not {*texts} - {"", "–"}]
    text = pandas.DataFrame(cells).drop(columns=empty)
    text.attrs["right"] = right
    return text


def _cell(value: Any, unit: str) -> str:
    """A value as it is printed."""
    match value:
        case None:
            return "–"
        case Enum():
            return str(value.value)
        case bool() | np.bool_():
            return "yes" if bool(value) else "no"
        case tuple() | list():
            return ", ".join(map(str, value))
        case float() | np.floating():
            if np.isnan(value):
                return "–"
            if np.isinf(value) and unit in (SHARE, TIME):
                return "never" if unit == TIME else "–"
            if unit == KEPT:
                return f"{value:.2f}"
            return percent(float(value)) if unit == SHARE else f"{value:.4g}"
    return str(value)
