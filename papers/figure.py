"""A figure: its settings with their sources, and the functions that compute, draw and judge it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

from evidence import Found, Measure
from evidence.tables import found_in
from neuralrace.errors import NeuralRaceError, nearest_name
from papers.record import Record, Written, read_record, row_of, stamped, typed, write

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

Settings: TypeAlias = Mapping[str, Any]
"""The value of every setting by its name: numbers, words, switches, or lists of these."""

Table: TypeAlias = "xarray.Dataset"
"""The data of a figure: everything that its picture and its measures need."""

Picture: TypeAlias = "matplotlib.figure.Figure"
"""A figure as it is drawn."""


_KINDS: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}
"""What a setting of each type takes, in words."""


@final
@dataclass(frozen=True)
class Setting:
    """A setting of a figure: the paper's value, a smaller one for `--quick`, and its source.

    `quick=None` means that the quick version also uses the paper's value. `choices`, if given,
    lists all valid values.

    ```python
    >>> from papers.figure import Setting
    >>> Setting(10, "repetitions", "NRR Fig. 4e", quick=2).parse("seeds", "5")
    5
    >>> Setting((0.2, 2.5), "scales", "NRR Fig. 6").parse("scales", "0.1, 1, 3")
    (0.1, 1.0, 3.0)

    ```
    """

    value: Any
    about: str
    source: str
    quick: Any = None
    choices: tuple[Any, ...] = ()

    def parse(self, name: str, text: str) -> Any:
        """`text` as a value of this setting's kind, or an error that says what is valid.

        Lists are written with commas, with or without brackets. A setting whose value is None
        accepts a number, a word, or `none`.
        """
        try:
            value = _parsed(text.strip(), self.value)
        except ValueError as error:
            raise NeuralRaceError(
                f"{text!r} is no value for the setting {name!r}: {self.about}",
                got=repr(text),
                wanted=self._wanted(),
                fix=f"such as --set {name}={typed(self.value)}",
            ) from error
        return self.checked(name, value)

    def checked(self, name: str, value: Any) -> Any:
        """The value, checked to be among the choices, and positive if it is a count."""
        if _counts(self.value) and any(v < 1 for v in _several(value)):
            raise NeuralRaceError(
                f"{value!r} is no value for the setting {name!r}: {self.about}",
                got=repr(value),
                wanted="at least 1",
                fix=f"such as --set {name}={typed(self.value)}",
            )
        if self.choices and value not in self.choices:
            close = nearest_name(value, self.choices)
            raise NeuralRaceError(
                f"{value!r} is no value for the setting {name!r}: {self.about}",
                got=repr(value),
                wanted=self._wanted(),
                fix=f"did you mean {close!r}?" if close else f"use {self.value!r}",
            )
        return value

    def _wanted(self) -> str:
        if self.choices:
            return "one of " + ", ".join(map(repr, self.choices))
        if isinstance(self.value, (list, tuple)):
            kind = _KINDS.get(type(self.value[0]), "word") if self.value else "number"
            return f"one {kind} or more, with commas between"
        return {**_KINDS, type(None): "a number, a word or 'none'"}.get(type(self.value), "a word")


def stated(
    id: str, what: str, target: str, measured: str, value: float = nan, **bounds: Any
) -> Measure:
    """A measure of a figure whose number is computed already, with the words for it.

    Without bounds (`least`, `most`), it is only reported.

    ```python
    >>> from papers.figure import stated
    >>> stated("gap", "the gap", "none", "none at all", 0.0, most=1e-9).read(None).text
    'none at all'

    ```
    """
    return Measure(id, what, lambda _: Found(float(value), text=measured), target=target, **bounds)


def noted(measures: Mapping[str, Measure], notes: Mapping[str, str]) -> list[Measure]:
    """Measures with what follows their numbers on the figure's page, by their keys."""
    return [replace(m, beside=notes.get(key, m.beside)) for key, m in measures.items()]


@final
@dataclass(frozen=True)
class Figure:
    """A figure of a paper, from settings to picture.

    `compute` takes every setting by name and returns everything that `draw` and `measures` need,
    so that a stored result can be drawn again without computing. `measures` returns those of these
    data: they read the data, or have their numbers already (`stated`).

    ```python
    >>> from papers import find
    >>> figure = find("nrr/fig3")
    >>> figure.resolve(quick=True, changes={"hidden": "64"})["hidden"]
    64

    ```
    """

    name: str
    title: str
    states: str
    settings: Mapping[str, Setting]
    compute: Callable[[Mapping[str, Any]], Table]
    draw: Callable[[Table], Picture]
    measures: Callable[[Table], Iterable[Measure]]

    def resolve(self, *, quick: bool = False, changes: Settings | None = None) -> dict[str, Any]:
        """The value of every setting: the paper's, the quick one, or the given one.

        **Arguments:** `changes` maps names of settings to values; a text is parsed to the kind of
        the setting (`Setting.parse`).
        """
        changes = dict(changes or {})
        for name in changes:
            if name not in self.settings:
                raise unknown("setting", name, self.settings, f"of {self.name}")
        values = {}
        for name, setting in self.settings.items():
            small = quick and setting.quick is not None
            values[name] = setting.quick if small else setting.value
            if name in changes:
                given = changes[name]
                parse = isinstance(given, str)
                values[name] = (setting.parse if parse else setting.checked)(name, given)
        return values

    def run(self, values: Settings, *, quick: bool = False) -> xarray.Dataset:
        """Compute in float64 with these settings (from `resolve`), and record them in the data.

        `settings_of` reads the settings back.
        """
        import jax

        from neuralrace.report import provenance

        begin = time.perf_counter()
        with jax.enable_x64(True):
            table = self.compute(values)
        made = provenance()
        record = Record(
            name=self.name,
            title=self.title,
            states=self.states,
            settings={
                name: {
                    "value": values[name],
                    "default": setting.value,
                    "about": setting.about,
                    "source": setting.source,
                }
                for name, setting in self.settings.items()
            },
            quick=quick,
            versions={"neuralrace": made.version, **made.packages},
            seconds=time.perf_counter() - begin,
            device=", ".join(made.devices),
            commit=made.commit,
            date=made.date,
        )
        table = stamped(table, record)
        return self._judged(stamped(table, record))

    def publish(self, table: xarray.Dataset, out: Path) -> Written:
        """Draw, judge and write the data that `run` returned; nothing is computed.

        **Returns:** the paths of the picture as PDF and PNG, and of the data.
        """
        import matplotlib.pyplot

        from neuralrace.plot import style

        table = self._judged(table)
        with style():
            picture = self.draw(table)
            try:
                return write(table, picture, out)
            finally:
                matplotlib.pyplot.close(picture)

    def lines(self, table: xarray.Dataset) -> tuple[tuple[Measure, Found], ...]:
        """Every measure with its number, by the same rules as in the evidence.

        ```python
        >>> from papers import find
        >>> figure = find("talk/depth")
        >>> lines = figure.lines(figure.run(figure.resolve(quick=True), quick=True))
        >>> [measure.outcome(number).value for measure, number in lines]
        ['met', 'reported']

        ```
        """
        return tuple((measure, found_in(measure, table)) for measure in self.measures(table))

    def within(self, table: xarray.Dataset) -> dict[str, bool]:
        """Whether each number with bounds lies within them, by its id, on however few seeds.

        Few seeds settle nothing, so that a small version has no verdicts; this is to test it.
        """
        return {m.id: m.met(found.value) for m, found in self.lines(table) if m.judges}

    def _judged(self, table: xarray.Dataset) -> xarray.Dataset:
        """The data with what was measured on them in their record."""
        rows = [row_of(measure, found) for measure, found in self.lines(table)]
        return stamped(table, replace(read_record(table), agreement=rows))


class TooSlow(NeuralRaceError):
    """A figure is too much for this machine; with several figures, the others are still made.

    ```python
    >>> import papers
    >>> papers.TooSlow("too much", got="18 days", wanted="a GPU", fix="--quick").fix
    '--quick'

    ```
    """


def _counts(usual: Any) -> bool:
    """Whether these are counts: whole numbers above 0."""
    return all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in _several(usual))


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def settings_of(table: xarray.Dataset) -> dict[str, Any]:
    """The settings with which the data of a figure were computed by `Figure.run`.

    Lists are returned as lists, whether the data are fresh or read from a file.

    ```python
    >>> import papers
    >>> figure = papers.find("talk/depth")
    >>> table = figure.run(figure.resolve(quick=True), quick=True)
    >>> list(papers.settings_of(table)) == list(figure.settings)
    True

    ```
    """
    return {name: s["value"] for name, s in read_record(table).settings.items()}


def unknown(what: str, name: str, there: Iterable[str], where: str = "") -> NeuralRaceError:
    """The error for a name that is not among `there`, with the nearest name as a hint.

    ```python
    >>> import papers
    >>> papers.unknown("figure", "figg4", ["fig3", "fig4"]).fix
    "did you mean 'fig4'?"

    ```
    """
    there = list(there)
    close = nearest_name(name, there)
    return NeuralRaceError(
        f"there is no {what} {name!r}" + (f" {where}" if where else ""),
        got=repr(name),
        wanted=f"one of {', '.join(there)}" if there else "nothing: there are none",
        fix=f"did you mean {close!r}?" if close else "choose one of these",
    )


_TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
"""The words for true and false."""


def _parsed(text: str, like: Any) -> Any:
    """The text as a value of the type of `like`."""
    if like is None:
        return _number_or_word(text)
    if isinstance(like, bool):
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if isinstance(like, int):
        return int(text)
    if isinstance(like, float):
        number = float(text)
        if not isfinite(number):
            raise ValueError(text)
        return number
    if isinstance(like, (list, tuple)):
        parts = [part.strip() for part in text.strip("[]()").split(",") if part.strip()]
        if not parts:
            raise ValueError(text)
        first = like[0] if like else 0.0
        return type(like)(_parsed(part, first) for part in parts)
    if not text:
        raise ValueError(text)
    return text


def _number_or_word(text: str) -> Any:
    if not text:
        raise ValueError(text)
    if text.lower() == "none":
        return None
    try:
        return _parsed(text, 0.0)
    except ValueError:
        return text
