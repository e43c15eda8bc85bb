"""What a sweep is: a function, its axes and settings, and the batches that these alone fix."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, final

import numpy as np

from neuralrace import __version__
from neuralrace.checks import by_name, entries, list_of_names, shown
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, listed, require, whole_number
from neuralrace.text import dotted

Cell: TypeAlias = Mapping[str, Any]
"""One point of the grid: the value of every axis."""

Function: TypeAlias = Callable[..., Sequence[Any]]
"""What is computed: `function(cells, **settings)`, one `{name: array or number}` per cell."""

FORMAT = "neuralrace sweep 1"
"""What is written."""

BATCH = 100
"""Cells of a batch, at most, where nothing else is said."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
"""Names of axes and results: identifiers, or several of them joined by dots."""

RESERVED = ("status", "error")
"""Names that a store uses itself."""


@final
@dataclass(frozen=True)
class Definition:
    """All that the numbers of a sweep depend on.

    `batch` is the size of a batch along every axis; batches are boxes of the grid, counted in the
    order of its axes. `dims` and `coords` label what the function returns.

    ```python
    >>> from neuralrace.sweeps import Definition
    >>> told = Definition("module:function", {"delta": (0.0, 0.5), "seed": (1, 2, 3)}, {},
    ...                   batch=(1, 2), dims={}, coords={}, float64=True)
    >>> told.cells, told.grid, told.batches
    (6, (2, 2), 4)
    >>> told.cells_of(1)
    [{'delta': 0.0, 'seed': 3}]

    ```
    """

    function: str
    axes: Mapping[str, tuple[Any, ...]]
    settings: Mapping[str, Any]
    batch: tuple[int, ...]
    dims: Mapping[str, tuple[str, ...]]
    coords: Mapping[str, tuple[Any, ...]]
    float64: bool
    version: str = __version__

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def grid(self) -> tuple[int, ...]:
        """How many batches there are along every axis."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.batch, strict=True))

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return math.prod(self.grid)

    @staticmethod
    @door
    def count(lengths: Mapping[str, int], batch: int | Mapping[str, int]) -> int:
        """How many batches axes of these lengths would have.

        ```python
        >>> from neuralrace.sweeps import Definition
        >>> Definition.count({"delta": 4, "seed": 3}, batch=6)
        2

        ```
        """
        sizes = zip(lengths.values(), _box(batch, lengths), strict=True)
        return math.prod(-(-length // size) for length, size in sizes)

    @door
    def box(self, batch: int) -> tuple[slice, ...]:
        """The part of the grid that a batch covers."""
        place = np.unravel_index(batch, self.grid)
        sizes = zip(place, self.batch, self.shape, strict=True)
        return tuple(slice(int(i) * b, min((int(i) + 1) * b, n)) for i, b, n in sizes)

    @door
    def cells_of(self, batch: int) -> list[dict[str, Any]]:
        """The cells of a batch, the last axis changing fastest."""
        parts = [v[s] for v, s in zip(self.axes.values(), self.box(batch), strict=True)]
        return [dict(zip(self.axes, values, strict=True)) for values in itertools.product(*parts)]

    @door
    def cell_at(self, index: Sequence[int]) -> dict[str, Any]:
        """The cell at a place of the grid."""
        return {name: values[i] for (name, values), i in zip(self.axes.items(), index, strict=True)}

    def to_json(self) -> str:
        """The definition as text, equal for equal definitions."""
        told = {"format": FORMAT, **vars(self)}
        return json.dumps(told)

    @staticmethod
    @door
    def from_json(text: str) -> Definition:
        """The definition that a text holds."""
        told = json.loads(text)
        if told.pop("format") != FORMAT:
            raise ValueError("another format")
        several = ("axes", "dims", "coords")
        told |= {key: {k: tuple(v) for k, v in told[key].items()} for key in several}
        return Definition(**told | {"batch": tuple(told["batch"])})

    @door
    def differences(self, other: Definition) -> dict[str, tuple[Any, Any]]:
        """The keys in which two definitions differ, with the value of each."""
        mine, yours = (dict(dotted(json.loads(d.to_json()))) for d in (self, other))
        keys = [*mine, *(key for key in yours if key not in mine)]
        gone = "-"
        pairs = {key: (mine.get(key, gone), yours.get(key, gone)) for key in keys}
        return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


# ---- from what a user gives ---------------------------------------------------------------------


def defined(
    function: Function | str,
    axes: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any] | None,
    batch: int | Mapping[str, int],
    dims: Mapping[str, str | Sequence[str]] | None,
    coords: Mapping[str, Sequence[Any]] | None,
) -> tuple[Definition, Function]:
    """Check everything; the definition, and the function that it names."""
    called = found_function(function) if isinstance(function, str) else function
    check_kind("function", called, Callable, "for example function='my_module:my_function'")  # type: ignore[arg-type]
    given = by_name("axes", axes, "for example axes={'delta': [0.0, 0.5], 'seed': range(10)}")
    grid = {_name("an axis", name): _values(name, values) for name, values in given.items()}
    require(
        grid,
        "a sweep needs at least one axis",
        got="axes={}",
        wanted="names with their values",
        fix="for example axes={'seed': range(10)}",
    )
    options = by_name("settings", {} if settings is None else settings, "settings={'steps': 100}")
    _check_settings(called, options)
    names = {
        _name("a result", name): (d,) if isinstance(d, str) else tuple(list_of_names("dims", d))
        for name, d in by_name("dims", {} if dims is None else dims, "{'loss': 'time'}").items()
    }
    labels = {
        _name("a coordinate", name): _values(name, values)
        for name, values in by_name(
            "coords", {} if coords is None else coords, "coords={'time': times}"
        ).items()
    }
    _check_labels(grid, names, labels)
    shape = tuple(len(values) for values in grid.values())
    definition = Definition(
        name_of(called),
        grid,
        plain("settings", options),
        _box(batch, dict(zip(grid, shape, strict=True))),
        names,
        labels,
        precision(),
    )
    return definition, called


def precision() -> bool:
    """Whether JAX computes in float64 here; it is not imported for that."""
    if "jax" in sys.modules:
        return bool(sys.modules["jax"].config.read("jax_enable_x64"))
    return os.environ.get("JAX_ENABLE_X64", "0").lower() in ("y", "yes", "t", "true", "on", "1")


def set_precision(float64: bool) -> None:
    """Let JAX compute in float64 or float32, now or when it will be imported."""
    if "jax" in sys.modules and precision() != float64:
        sys.modules["jax"].config.update("jax_enable_x64", float64)
    os.environ["JAX_ENABLE_X64"] = "1" if float64 else "0"


def name_of(function: Function) -> str:
    """A function as text, `module:name`."""
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}:{getattr(function, '__qualname__', type(function).__qualname__)}"


def found_function(name: str) -> Function:
    """The function that a text `module:name` stands for, imported."""
    module, _, inner = name.partition(":")
    fix = "for example 'my_module:my_function', with the folder of my_module.py on Python's path"
    try:
        value: Any = import_module(module)
        for part in inner.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise NeuralRaceError(
            f"the function {name!r} of the sweep cannot be imported",
            got=f"{type(error).__name__}: {error}",
            wanted="'module:name' of a function",
            fix=fix,
        ) from error
    check_kind("function", value, Callable, fix)  # type: ignore[arg-type]
    return value


def check_importable(function: Function) -> None:
    """Raise where other processes cannot import the function."""
    name = name_of(function)
    try:
        same = found_function(name) is function and not name.startswith("__main__:")
    except NeuralRaceError:
        same = False
    require(
        same,
        "workers cannot import the function of the sweep",
        got=name,
        wanted="a function at the top of a module that can be imported",
        fix="move it to a file, such as cells.py, and pass 'cells:name'; or leave workers out",
    )


def plain(what: str, value: Any) -> Any:
    """A value as JSON would give it back: numbers, text, lists and mappings of these."""
    if isinstance(value, Mapping):
        return {k: plain(f"{what}.{k}", v) for k, v in by_name(what, value, "use text").items()}
    if isinstance(value, str | bool | int | float | None.__class__):
        return value
    if hasattr(value, "tolist"):  # NumPy's and JAX's numbers and arrays
        return plain(what, np.asarray(value).tolist())
    if isinstance(value, Sequence | range) and not isinstance(value, bytes):
        return [plain(what, each) for each in value]
    raise NeuralRaceError(
        f"{what} of a sweep must be numbers, text, lists or mappings of these",
        got=shown(value),
        wanted="what a JSON file can hold, so that the store can say what it belongs to",
        fix="pass a name or numbers, and make the object inside the function",
    )


def _name(what: str, name: str) -> str:
    require(
        NAME.fullmatch(name) and name not in RESERVED,
        f"{name!r:.60} cannot be the name of {what} of a sweep",
        got=f"{name!r:.60}",
        wanted="letters, digits, _ and dots, a letter first; not " + listed(RESERVED),
        fix="for example 'delta' or 'task.delta'",
    )
    return name


def _values(name: str, values: Any) -> tuple[Any, ...]:
    found = plain(f"axis {name!r}", entries(f"axis {name!r}", values))
    keys = [json.dumps(value) for value in found]
    odd = [v for v in found if isinstance(v, float) and not math.isfinite(v)]
    if not found or len(set(keys)) < len(keys) or odd:
        twice = next((v for v in keys if keys.count(v) > 1), None)
        raise NeuralRaceError(
            f"the values of axis {name!r} must be finite, different and at least one",
            got="no values" if not found else f"{odd[0]}" if odd else f"{twice} twice",
            wanted="each value once",
            fix=f"for example axes={{{name!r}: [0.0, 0.5, 1.0]}}",
        )
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in found]
    if all(numbers) and any(isinstance(v, float) for v in found):
        found = [float(v) for v in found]
    return tuple(found)


def labels_of(values: Sequence[Any]) -> np.ndarray:
    """The values of an axis as a coordinate: numbers or text, and all else as JSON."""
    array = np.asarray(values) if all(np.ndim(v) == 0 for v in values) else np.zeros((), object)
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and array.dtype.kind in "biufU":
        return array
    return np.asarray([v if isinstance(v, str) else json.dumps(v) for v in values])


def _box(batch: Any, shape: Mapping[str, int]) -> tuple[int, ...]:
    """The size of a batch along every axis.

    A number is the most cells of a batch: as much of the last axis as fits, in equal parts, then
    of the one before it where the whole last axis fits, and so on.
    """
    fix = f"a number of cells, or of some along each axis: batch={{{next(iter(shape))!r}: 1}}"
    if isinstance(batch, Mapping):
        odd = [name for name in by_name("batch", batch, fix) if name not in shape]
        if odd:
            raise NeuralRaceError(
                f"batch names an axis {odd[0]!r} that the sweep does not have",
                got=listed(batch),
                wanted=f"some of {listed(shape)}",
                fix=fix,
            )
        sizes = {name: whole_number("batch", size, fix=fix) for name, size in batch.items()}
        return tuple(min(sizes.get(name, n), n) for name, n in shape.items())
    room, found = whole_number("batch", batch, fix=fix), []
    for n in reversed([*shape.values()]):
        parts = -(-n // max(room, 1))
        size = -(-n // parts)
        found.append(size)
        room = room // size if parts == 1 else 1
    return tuple(reversed(found))


def _check_settings(function: Function, settings: Mapping[str, Any]) -> None:
    """Raise where the function does not take these settings, before any cell fails of it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C: it has none
        return
    try:
        signature.bind([], **settings)
    except TypeError as error:
        raise NeuralRaceError(
            f"the function {name_of(function)!r} does not take these settings",
            got=f"{error} (settings: {listed(settings)})",
            wanted=f"function{signature}",
            fix="the function is called as function(cells, **settings)",
        ) from error


def _check_labels(
    grid: Mapping[str, Any], dims: Mapping[str, tuple[str, ...]], coords: Mapping[str, Any]
) -> None:
    inner = {_name("a dimension", d) for names in dims.values() for d in names}
    clash = sorted({*grid} & ({*dims} | inner | {*coords}))
    unused = sorted({*coords} - inner)
    if clash or unused:
        name = (clash or unused)[0]
        raise NeuralRaceError(
            f"{name!r} is both an axis and a result or its dimension"
            if clash
            else f"no result has the dimension {name!r} of coords",
            got=f"axes {listed(grid)}, dims {dict(dims)}, coords {listed(coords)}",
            wanted="names of their own" if clash else "a dimension that dims names",
            fix="call one of them something else" if clash else f"dims={{'loss': {name!r}}}",
        )
