"""What every result is: a table of plain values, sentences for people, a picture; one printing."""

from __future__ import annotations

import html
import importlib.util
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from zipfile import BadZipFile

import numpy as np

from neuralrace.checks import file_path, write_whole
from neuralrace.errors import NeuralRaceError, require
from neuralrace.text import percent, table_lines

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SHARE", "TIME", "Result", "Sentence", "framed"]

SENTENCES = 5
"""At most this many sentences of a result are printed, the most important ones."""

ROWS = 20
"""At most this many rows of a result are printed."""

SHARE, KEPT_SHARE, TIME = "share", "kept", "time"
"""Units of columns: parts of a whole, printed as per cent; kept shares, with two decimals; times,
infinite for what never comes."""


CACHE = "_cache"
"""The name of fields that only save time; they are not stored."""


SEVERAL = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
"""Kinds of collections that are stored as such, by name."""


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


R = TypeVar("R", bound="Result")


class Result(ABC):
    """A result that is a table and sentences, is printed as both, and can be drawn.

    `frame()` has one row per thing, plain numbers, names and enums; `frame().attrs["units"]` has
    the units of columns that have one. `sentences()` come most important first. Nothing depends on
    their texts. `plot(ax=ax)` draws on these axes; results with several panels draw the main one
    there, and all of them on a figure of their own without `ax`.

    ```python
    >>> from neuralrace.results import Result, Sentence, framed
    >>> class Race(Result):
    ...     def frame(self):
    ...         rows = [{"name": "a", "time": 1.0}, {"name": "b", "time": 2.5}]
    ...         return framed(["name", "time"], rows, units={"time": "time"})
    ...     def sentences(self):
    ...         return (Sentence("first", "a is first."),)
    ...     def plot(self, *, ax=None):
    ...         return self.frame().plot.bar("name", "time", ax=ax)
    >>> print(Race())
    a is first.
    name  time
    a        1
    b      2.5

    ```
    """

    _asked: ClassVar[tuple[str, ...]] = ()
    """What is computed only when it is asked for, and stored by `save` if it was."""

    @abstractmethod
    def frame(self) -> pandas.DataFrame:
        """The result as a table."""

    @abstractmethod
    def sentences(self) -> tuple[Sentence, ...]:
        """The result in words, the most important sentence first."""

    @abstractmethod
    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """The result as a picture, on these axes or on a figure of its own."""

    def save(self, path: str | PathLike[str]) -> Path:
        """Store the result in one file, with all that it was asked for; see `load`.

        The file holds numbers and names, as JSON and NumPy arrays; nothing in it is ever run.

        ```python
        >>> import tempfile, neuralrace as nr
        >>> run = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = nr.compare(run, run).save(f"{folder}/comparison.npz")
        ...     Result.load(path).mean
        0.0

        ```
        """
        path = file_path(path, "result.save('result.npz')")
        require(
            path.suffix in ("", ".npz"),
            f"path has the ending {path.suffix!r} of another kind of file",
            got=repr(path.name),
            wanted="a file that ends in .npz",
            fix="result.save('result.npz'); a table is written by result.frame().to_csv('x.csv')",
        )
        store, file = _Store(), io.BytesIO()
        text = json.dumps({"result": store.written(self), "objects": store.objects})
        np.savez_compressed(file, **store.arrays, text=np.array(text))  # type: ignore[arg-type]
        return write_whole(path, file.getvalue())

    @classmethod
    def load(cls: type[R], path: str | PathLike[str]) -> R:
        """A result that was stored by `save`, with the same numbers, table and sentences."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            text = json.loads(str(arrays.pop("text")))
        except (AttributeError, BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
            raise _not_loaded(cls, "a file of another kind") from error
        made = _Store(arrays, text["objects"]).read(text["result"])
        if not isinstance(made, cls):
            raise _not_loaded(cls, f"a {type(made).__name__}")
        return made

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
            if unit == KEPT_SHARE:
                return f"{value:.2f}"
            return percent(float(value)) if unit == SHARE else f"{value:.4g}"
    return str(value)


class _Store:
    """Results as JSON and arrays, and back; what occurs several times is stored once.

    Only dataclasses and enums of this package are made again, field by field. Fields that are
    marked with `metadata={"save": False}`, and caches, are left out.
    """

    def __init__(
        self, arrays: dict[str, np.ndarray] | None = None, objects: list[Any] | None = None
    ) -> None:
        self.arrays = {} if arrays is None else arrays
        self.objects = [] if objects is None else objects
        self.known: dict[int, tuple[Any, Any]] = {}

    def written(self, value: Any) -> Any:
        """A value as JSON."""
        if isinstance(value, Enum):
            return {"enum": _name_of(type(value)), "value": value.value}
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            kind = "proxy" if isinstance(value, MappingProxyType) else "map"
            return {kind: [[self.written(k), self.written(v)] for k, v in value.items()]}
        if type(value) in SEVERAL.values():
            return {type(value).__name__: [self.written(each) for each in value]}
        if id(value) not in self.known:
            self.known[id(value)] = (value, self._made_json(value))
        return self.known[id(value)][1]

    def _made_json(self, value: Any) -> dict[str, Any]:
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if hasattr(value, "dtype"):
            is_key = str(value.dtype).startswith("key<")
            if is_key:
                import jax

                value = jax.random.key_data(value)
            self.arrays[name := f"array{len(self.arrays)}"] = np.asarray(value)
            return {"key" if is_key else "array": name}
        if not is_dataclass(value) or not _is_ours(type(value).__module__):
            raise NeuralRaceError(
                "the result holds something that cannot be stored",
                got=type(value).__name__,
                wanted="numbers, names, arrays and what this package makes of them",
                fix="store its frame(): result.frame().to_csv(path)",
            )
        asked = [n for n in getattr(value, "_asked", ()) if n in value.__dict__]
        stored = [*(field.name for field in fields(value) if _is_stored(field)), *asked]
        named = {name: self.written(getattr(value, name)) for name in stored}
        self.objects.append({"class": _name_of(type(value)), "fields": named})
        return {"object": len(self.objects) - 1}

    def read(self, value: Any) -> Any:
        """The value that was written as JSON."""
        if not isinstance(value, dict):
            return value
        ((kind, content), *more) = value.items()
        match kind:
            case "enum":
                return _ours(content)(dict(more)["value"])
            case "map" | "proxy":
                items = {self.read(k): self.read(v) for k, v in content}
                return MappingProxyType(items) if kind == "proxy" else items
            case "list" | "tuple" | "set" | "frozenset":
                return SEVERAL[kind](self.read(each) for each in content)
            case "complex":
                return complex(*content)
            case "array":
                return self.arrays[content]
            case "key":
                import jax

                return jax.random.wrap_key_data(jax.numpy.asarray(self.arrays[content]))
        if content not in self.known:
            self.known[content] = (None, self._made(**self.objects[content]))
        return self.known[content][1]

    def _made(self, **stored: Any) -> Any:
        """An object with these fields; what is left out has its default."""
        kind = _ours(stored["class"])
        made = object.__new__(kind)
        values = {name: self.read(value) for name, value in stored["fields"].items()}
        for field in fields(kind):
            values.setdefault(field.name, {} if field.name == CACHE else None)
        for name, value in values.items():
            made.__dict__[name] = value
        return made


def _is_stored(field: Field[Any]) -> bool:
    return field.name != CACHE and field.metadata.get("save", True)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "neuralrace"


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _ours(name: str) -> Any:
    """A dataclass or an enum of this package by its name."""
    module, _, kind = name.partition(":")
    known = _is_ours(module) and importlib.util.find_spec(module) is not None
    found = getattr(importlib.import_module(module), kind, None) if known else None
    if not (is_dataclass(found) or (isinstance(found, type) and issubclass(found, Enum))):
        raise NeuralRaceError(
            "the file holds what this version does not know",
            got=name,
            wanted="a result of this package",
            fix="load it with the version that stored it",
        )
    return found


def _not_loaded(cls: type, got: str) -> NeuralRaceError:
    return NeuralRaceError(
        "the file does not hold what was asked for",
        got=got,
        wanted=f"a file that {cls.__name__}.save wrote",
        fix="Result.load takes a result of any kind",
    )
