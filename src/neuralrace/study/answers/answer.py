"""What every answer is made of, and words that several of them use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.errors import NeuralRaceError
from neuralrace.plot import current_look
from neuralrace.report import Part, Section, Table
from neuralrace.text import percent as percent

if TYPE_CHECKING:
    import pandas
    import xarray

PICTURE = (3.5, 2.5)
"""Inches of a picture: as wide as fits a phone with text that can be read."""


def picture_size() -> tuple[float, float]:
    """Inches of a picture: those of the look, or `PICTURE`, larger where text is larger."""
    look = current_look()
    return look.figsize or (look.text_scale * PICTURE[0], look.text_scale * PICTURE[1])


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one question of a study.

    `sentences` sum it up in words, of which `short` stand at the top of the report. `parts` are
    what the report shows of it; they are made on first use, because a sweep needs the `numbers`
    alone. `value` is the library's own object, such as a `Contest`. `data` are tables to keep as
    netCDF, by the name of the file.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(questions=["reduce"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> answer = study.run().answers["reduce"]
    >>> answer.question, list(answer.value)
    ('reduce', ['xor'])
    >>> answer.table["strength"].round(4).tolist()
    [0.3536, 0.3536, 0.3536, 0.3536]

    ```
    """

    question: str
    title: str
    sentences: tuple[str, ...]
    make_parts: Callable[[], Sequence[Part]]
    numbers: Mapping[str, float] = field(default_factory=dict)
    value: Any = None
    data: Mapping[str, xarray.Dataset] = field(default_factory=dict)
    short: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> Sequence[Part]:
        """Tables, curves, pictures and equations, in the order of the report."""
        return self.make_parts()

    @property
    def table(self) -> pandas.DataFrame:
        """The first table of the answer, also where it is folded away."""
        import pandas

        for part in _tables(self.parts):
            return pandas.DataFrame(list(map(list, part.rows)), columns=list(part.head))
        raise NeuralRaceError(
            f"the answer to {self.question!r} has no table",
            got="sentences, curves and pictures",
            wanted="a table",
            fix="look at its value, sentences and numbers",
        )


def _tables(parts: Sequence[Part]) -> Iterator[Table]:
    """All tables of parts and of the sections among them, in order."""
    for part in parts:
        if isinstance(part, Table):
            yield part
        elif isinstance(part, Section):
            yield from _tables(part.parts)


def decimals(values: np.ndarray) -> int | None:
    """How many decimals numbers of several networks have that their spread supports.

    The last one is the first digit of half of their range; None where they do not differ.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.answers.answer import decimals
    >>> decimals(np.array([7.11, 7.35])), decimals(np.array([510.0, 590.0]))
    (1, -1)

    ```
    """
    half = (np.max(values) - np.min(values)) / 2
    return -int(np.floor(np.log10(half))) if half > 0 and np.isfinite(half) else None


def to_spread(values: np.ndarray, value: float | None = None) -> str:
    """The mean of several networks, or another value, with the digits that they support.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.answers.answer import to_spread
    >>> to_spread(np.array([7.114, 7.35])), to_spread(np.array([7.23456]))
    ('7.2', '7.235')
    >>> to_spread(np.array([512.0, 593.0])), to_spread(np.array([1.1e-3, 1.9e-3]))
    ('550', '0.0015')

    ```
    """
    shown = float(np.mean(values)) if value is None else value
    places = decimals(values)
    if places is None:
        return f"{shown:.4g}"
    size = int(np.floor(np.log10(abs(shown)))) if shown else 0
    digits = min(max(size + places, 0), 3)
    rounded = float(f"{shown:.{digits}e}")
    if rounded and not 1e-4 <= abs(rounded) < 1e6:
        return f"{rounded:.{digits + 1}g}"
    return f"{rounded:.{max(digits - size, 0)}f}"


def time_range(times: np.ndarray) -> str:
    """Times of several networks: their mean, and from least to largest.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.answers.answer import time_range
    >>> time_range(np.array([1.0, 2.0])), time_range(np.array([3.0]))
    ('t = 1.5 (1.0 to 2.0)', 't = 3')

    ```
    """
    text = f"t = {to_spread(times)}"
    if len(times) == 1:
        return text
    return f"{text} ({to_spread(times, times.min())} to {to_spread(times, times.max())})"


def finite(value: float) -> float | None:
    """A number for a table, or None where it is infinite or not a number."""
    return float(value) if np.isfinite(value) else None


def table_of(frame: pandas.DataFrame, caption: str, file: str) -> Table:
    """The `frame()` of a result as a part of the report; what is not known or never is empty."""

    def cell(value: Any) -> Any:
        value = value.value if isinstance(value, Enum) else value
        value = value.item() if isinstance(value, np.generic) else value
        return finite(value) if isinstance(value, float) else value

    rows = [[cell(value) for value in row] for row in frame.itertuples(index=False)]
    return Table(list(frame.columns), rows, caption, file)
