"""What every answer is made of, and words that several of them use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.errors import NeuralRaceError
from neuralrace.report import Part, Table

if TYPE_CHECKING:
    import pandas
    import xarray

PICTURE = (3.5, 2.5)
"""Inches of a picture: as wide as fits a phone with text that can be read."""


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one question of a study.

    `sentences` sum it up in words, of which `short` stand at the top of the report. `parts` are
    what the report shows of it; they are made on first use, because a sweep needs the `numbers`
    alone. `value` is the library's own object, such as a `Contest`. `data` are tables to keep as
    netCDF, by the name of the file.
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
        """The first table of the answer."""
        import pandas

        for part in self.parts:
            if isinstance(part, Table):
                return pandas.DataFrame(list(map(list, part.rows)), columns=list(part.head))
        raise NeuralRaceError(
            f"the answer to {self.question!r} has no table",
            got="sentences, curves and pictures",
            wanted="a table",
            fix="look at its value, sentences and numbers",
        )


def percent(value: float) -> str:
    """Two digits; what is below a ten-thousandth of a per cent is written as such.

    ```python
    >>> from neuralrace.study.answers.answer import percent
    >>> percent(0.1234), percent(0.00071), percent(1e-9)
    ('12 %', '0.071 %', 'less than 0.0001 %')

    ```
    """
    if 0 <= value < 1e-6:
        return "less than 0.0001 %"
    digits = f"{100 * value:.0f}" if value >= 0.0995 else f"{100 * value:.2g}"
    return f"{digits} %"


def numbered(count: int, what: str) -> str:
    """`one network`, `2 networks`."""
    return f"{count} {what}s" if count != 1 else f"one {what}"


def time_range(times: np.ndarray) -> str:
    """Times of several networks: their mean, and from least to largest.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.answers.answer import time_range
    >>> time_range(np.array([1.0, 2.0])), time_range(np.array([3.0]))
    ('t = 1.5 (1 to 2)', 't = 3')

    ```
    """
    text = f"t = {times.mean():.4g}"
    return text if len(times) == 1 else f"{text} ({times.min():.4g} to {times.max():.4g})"


def finite(value: float) -> float | None:
    """A number for a table, or None where it is infinite or not a number."""
    return float(value) if np.isfinite(value) else None
