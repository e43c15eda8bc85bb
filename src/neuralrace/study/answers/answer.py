"""What every answer is made of, and words that several of them use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import numpy as np

from neuralrace.door import door
from neuralrace.plot import current_look
from neuralrace.report import Code, Curves, Part, Section
from neuralrace.results import Result, Sentence

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = (3.5, 2.5)
"""Inches of a picture: as wide as fits a phone with text that can be read."""


def picture_size() -> tuple[float, float]:
    """Inches of a picture: those of the look, or `PICTURE`, larger where text is larger."""
    look = current_look()
    return look.figsize or (look.text_scale * PICTURE[0], look.text_scale * PICTURE[1])


@final
@dataclass(frozen=True, eq=False)
class Answer(Result):
    """The answer to one question of a study.

    `result` has its table and its sentences, of which those with ids in `without` are left out, and
    those in `short`, or the first one, stand at the top of the report. `parts` are what the report
    shows of it; they are made on first use, because a sweep needs the `numbers` alone. `value` is
    the library's own object, such as a `Contest`. `data` are tables to keep as netCDF, by the name
    of the file.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(questions=["reduce"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> answer = study.run().answers["reduce"]
    >>> answer.question, list(answer.value)
    ('reduce', ['xor'])
    >>> answer.frame()["s"].round(4).tolist()
    [0.3536, 0.3536, 0.3536, 0.3536]

    ```
    """

    question: str
    title: str
    result: Result
    make_parts: Callable[[], Sequence[Part]]
    numbers: Mapping[str, float]
    value: Any
    short: Collection[str] = ()
    without: Collection[str] = ()
    data: Mapping[str, xarray.Dataset] = field(default_factory=dict)

    @cached_property
    def parts(self) -> Sequence[Part]:
        """Tables, curves, pictures and equations, in the order of the report."""
        return self.make_parts()

    def frame(self) -> pandas.DataFrame:
        """The answer as a table: the one that the report keeps as CSV."""
        return self.result.frame()

    def _printed(self) -> pandas.DataFrame | None:
        return self.result._printed()

    def sentences(self) -> tuple[Sentence, ...]:
        """The answer in words, the most important sentence first."""
        return tuple(each for each in self.result.sentences() if each.id not in self.without)

    @door
    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """The curves of the answer, or its result as that draws itself."""
        curves = (part for part in self.parts if isinstance(part, Curves))
        return next(curves, self.result).plot(ax=ax)

    @property
    def top(self) -> tuple[Sentence, ...]:
        """What stands at the top of the report."""
        said = self.sentences()
        return tuple(each for each in said if each.id in self.short) or said[:1]


R = TypeVar("R", bound=Result)


@dataclass(frozen=True, eq=False)
class Several(Result, Generic[R]):
    """Results of one kind by name, in one table with a `column` of the names.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.study.answers.answer import Several
    >>> pair = nr.tasks.xor_pathways(nr.tasks.xor())
    >>> Several({"xor": nr.reduce(*pair)}, "gating").frame().columns[:2].to_list()
    ['gating', 'block']

    ```
    """

    results: Mapping[Any, R]
    column: str

    def frame(self) -> pandas.DataFrame:
        """The rows of all results, below each other."""
        return self._joined({name: each.frame() for name, each in self.results.items()})

    def _printed(self) -> pandas.DataFrame | None:
        printed = {name: each._printed() for name, each in self.results.items()}
        there = {name: table for name, table in printed.items() if table is not None}
        return self._joined(there) if there else None

    def _joined(self, tables: Mapping[Any, pandas.DataFrame]) -> pandas.DataFrame:
        import pandas

        joined = pandas.concat(tables, names=[self.column]).reset_index(0).reset_index(drop=True)
        joined.attrs["units"] = next(iter(tables.values())).attrs.get("units", {})
        return joined

    def sentences(self) -> tuple[Sentence, ...]:
        """The first sentences of all results, then what else they say."""
        front = lambda name: f"{name}: " if len(self.results) > 1 else ""
        said = [
            [Sentence(s.id, front(name) + s.text) for s in each.sentences()]
            for name, each in self.results.items()
        ]
        return *(first for first, *_ in said), *(s for _, *others in said for s in others)

    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """The first result."""
        return next(iter(self.results.values())).plot(ax=ax)


@final
@dataclass(frozen=True, eq=False)
class Beside(Result, Generic[R]):
    """A result of the library, with what the study knows besides, `said` after its first sentence.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.study.answers.answer import Beside
    >>> run = nr.Trajectory([0, 1], [1.0, 0.5])
    >>> compared, said = nr.compare(run, run), (nr.results.Sentence("short", "They are short."),)
    >>> [each.id for each in Beside(compared, said).sentences()]
    ['apart', 'short']

    ```
    """

    found: R
    said: Sequence[Sentence]

    def frame(self) -> pandas.DataFrame:
        """That of the result."""
        return self.found.frame()

    def _printed(self) -> pandas.DataFrame | None:
        return self.found._printed()

    def sentences(self) -> tuple[Sentence, ...]:
        """Its first sentence, what is said besides, and its others."""
        first, *rest = self.found.sentences()
        return first, *self.said, *rest

    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """That of the result."""
        return self.found.plot(ax=ax)


def printed(*results: Result) -> Section:
    """Results as the library prints them."""
    return Section("As the library prints it", [Code(str(each)) for each in results], folded=True)


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
