"""The data that claims are measured on: figures and measurements, each made once and kept."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np

from evidence.measure import FEWEST_SEEDS, Basis, Found, Measure
from neuralrace.errors import NeuralRaceError, require
from neuralrace.sweeps import CellFile

if TYPE_CHECKING:
    import xarray


Read = TypeVar("Read")

DRAWN = {"key", "seed"}
"""The settings that tell that a figure has a random draw: one, if it has no `seeds`."""

DRAWS = 200
"""How often seeds are drawn again: enough to know a standard error to about 5 %."""

CELLS = "cells.jsonl"
"""The file in a folder of figures in which the tables of the evidence are kept."""

LOCK = Path(__file__).parents[1] / "out/tables.lock"
"""A file of which the process that computes a table holds one byte: no table is computed twice."""


def made(seconds: float | None = None) -> dict[str, Any]:
    """Where a number that is made now comes from: commit, date, versions, device, and how long.

    A commit with a plus is one whose source has been changed since. NEURALRACE_COMMIT names it on a
    machine that only computes, where the repository is not or is not up to date.
    """
    from neuralrace.report import provenance

    this = provenance()
    return {
        "commit": os.environ.get("NEURALRACE_COMMIT") or this.commit,
        "date": this.date,
        "versions": {"neuralrace": this.version, "jax": this.packages["jax"]},
        "device": ", ".join(this.devices),
        **({} if seconds is None else {"seconds": round(seconds, 1)}),
    }


def table_name(name: str, settings: Mapping[str, Any]) -> str:
    """The name of a table of the evidence: a figure or measurement, and a mark of its settings.

    ```python
    >>> from evidence.tables import table_name
    >>> table_name("nrr/fig5", {"seeds": 5})
    'nrr_fig5-6c6c5162'

    ```
    """
    text = json.dumps(settings, sort_keys=True)
    return f"{name.replace('/', '_')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _name(measurement: Callable[..., Any]) -> str:
    """The name under which a measurement is kept: two modules may have functions of one name."""
    return f"{measurement.__module__}.{measurement.__name__}"


def figures() -> Any:
    """The module with the papers' figures, found by its name."""
    return import_module("papers")


@final
@dataclass(eq=False)
class Tables:
    """The data of figures, each computed once: `tables("nrr/fig4", init="xavier")`.

    `once` keeps measurements that no figure makes; `at_hand` is for figures that take long to
    compute; `found` reads a measure and counts the seeds behind it.

    **Arguments:** `quick` uses the figures' small settings. `folder` holds data that `reproduce`
    wrote: a figure stored with exactly the settings wanted is read instead of computed. What is
    computed is added there to `cells.jsonl` with its commit, date, versions and device, so that an
    interrupted run continues, and several processes may share it. What is there is read, whatever
    has changed since; delete the file to compute it again. `tell` is called with a line that says
    whether a table is read or computed. `whole` refuses the smaller settings of `at_hand`.
    """

    quick: bool = False
    folder: Path | None = None
    tell: Callable[[str], None] = lambda _: None
    whole: bool = False
    origins: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _kept: dict[Any, Any] = field(default_factory=dict)
    _read: dict[Any, tuple[Found, tuple[str, ...]]] = field(default_factory=dict)
    _draw: int | None = None
    _seeds: list[int] = field(default_factory=list)
    _drawn: bool = False
    _files: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(
            self.folder is None or self.folder.is_dir(),
            f"there is no folder {str(self.folder)!r} to read figures from",
            got="a file" if self.folder and self.folder.exists() else "nothing of that name",
            wanted="a folder that exists, such as out/figures; what is computed is kept there",
            fix="correct the name, make the folder, or leave it out to keep nothing",
        )
        self._cells = CellFile(None if self.folder is None else self.folder / CELLS)

    def __call__(self, name: str, **changes: Any) -> xarray.Dataset:
        key = (name, tuple(sorted(changes.items())))
        if key not in self._kept:
            self._kept[key] = self._made(name, changes)
        return self._counted(name, self._kept[key])

    def at_hand(self, name: str, **smaller: Any) -> xarray.Dataset:
        """The figure at full size if that is stored, otherwise computed with smaller settings.

        If these tables are to be `whole`, an error takes the place of smaller settings.
        """
        full = self._full(name)
        if full is None and self.whole:
            raise _not_stored(name)
        return self(name, **smaller) if full is None else self._counted(name, full)

    def _full(self, name: str) -> xarray.Dataset | None:
        """The figure at full size, if that is stored."""
        if name not in self._kept:
            wanted = figures().find(name).resolve()
            self._kept[name] = None if self.quick else self._stored(name, wanted)
        return self._kept[name]

    def once(self, measurement: Callable[..., Any], **settings: Any) -> Any:
        """The result of a function with these settings, computed once.

        It is kept as JSON: a mapping of names to numbers, or to lists with one number per seed. A
        setting `seeds` is counted as those of the result.
        """
        key = (measurement, tuple(sorted(settings.items())))
        if key not in self._kept:
            self._kept[key] = self._measured(measurement, settings)
        result = self._kept[key]
        self._files[table_name(_name(measurement), settings)] = None
        if "seeds" not in settings:
            return result
        self._seeds.append(settings["seeds"])
        return result if self._draw is None else drawn_lists(result, settings["seeds"], self._draw)

    def found(self, measure: Measure) -> Found:
        """The number of a measure, with the fewest seeds of anything that was read for it.

        A number that is `pooled`, or rests on the seed floor, has the interval that drawing the
        seeds again gives (the bootstrap).

        ```python
        >>> from evidence import Measure, Tables
        >>> twice = lambda seeds: {"gap": [0.1] * seeds}
        >>> gap = Measure("gap", "gap", lambda t: t.once(twice, seeds=6)["gap"], most=1)
        >>> Tables().found(gap).seeds
        6

        ```
        """
        key = (measure.read, measure.scale, measure.rests, measure.pooled)
        if key not in self._read:
            self._read[key] = self.tracked(lambda: self._found(measure))
        number, files = self._read[key]
        self._files |= dict.fromkeys(files)
        return number

    def tracked(self, read: Callable[[], Read]) -> tuple[Read, tuple[str, ...]]:
        """What a function returns, and the names of all tables that it reads."""
        before, self._files = self._files, {}
        result, files = read(), tuple(self._files)
        self._files = before | dict.fromkeys(files)
        return result, files

    def _found(self, measure: Measure) -> Found:
        self._seeds.clear()
        self._drawn = False
        numbers = measure.read(self)
        if isinstance(numbers, Found):
            return numbers
        if self._drawn and not self._seeds and np.ndim(numbers) == 0:
            self._seeds.append(1)
        number = Found.of(numbers, min(self._seeds, default=None), scale=measure.scale)
        return with_interval(measure, number, self.redrawn)

    def redrawn(self, number: int) -> Tables:
        """The same tables with as many seeds drawn from them with replacement.

        Figures that have equally many seeds, and measurements with one number per seed, are drawn
        alike. `number` is that of the draw: the same one draws the same seeds.
        """
        other = copy(self)
        other._draw = number
        return other

    def _counted(self, name: str, table: xarray.Dataset) -> xarray.Dataset:
        """The table; its number of seeds and its name are remembered for `found`."""
        settings = figures().settings_of(table)
        self._files[table_name(name, settings)] = None
        if "seeds" in settings:
            self._seeds.append(settings["seeds"])
        else:
            self._drawn |= not DRAWN.isdisjoint(settings)
        return table if self._draw is None else drawn_table(table, self._draw)

    def _made(self, name: str, changes: Mapping[str, Any]) -> xarray.Dataset:
        figure = figures().find(name)
        values = figure.resolve(quick=self.quick, changes=changes)
        with self._alone(table_name(name, values)):
            there = self._stored(name, values)
            if there is not None:
                return there
            with_what = ", ".join(f"{k} = {v}" for k, v in changes.items())
            self.tell(f"{name}{f' ({with_what})' if with_what else ''}: computing …")
            begin = time.perf_counter()
            table = figure.run(values, quick=self.quick)
            self._keep(name, values, figures().pack(table), time.perf_counter() - begin)
        return table

    def _measured(self, measurement: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
        name, earlier = _name(measurement), measurement.__name__
        with self._alone(table_name(name, settings)):
            row = self._row(name, settings, earlier)
            if row is not None:
                return row["result"]
            self.tell(f"{name}: computing …")
            begin = time.perf_counter()
            result = measurement(**settings)
            return self._keep(name, settings, result, time.perf_counter() - begin)

    @contextmanager
    def _alone(self, table: str) -> Iterator[None]:
        """Wait until no other process computes this table, if tables are shared by a folder."""
        if self.folder is None:
            yield
            return
        LOCK.parent.mkdir(exist_ok=True)
        with LOCK.open("a") as file:
            fcntl.lockf(file, fcntl.LOCK_EX, 1, int(table[-8:], 16))
            yield

    def _keep(self, name: str, settings: Mapping[str, Any], result: Any, seconds: float) -> Any:
        """Keep a result with where it comes from, and how long it took."""
        origin = made(seconds)
        self.origins[table_name(name, settings)] = origin
        cell = {"table": name, "settings": dict(settings)}
        self._cells.add(cell, {"result": result}, **origin)
        return result

    def _row(
        self, name: str, settings: Mapping[str, Any], *earlier: str
    ) -> Mapping[str, Any] | None:
        """The row with these settings, if it is kept under this name, or else an earlier one."""
        cells = ({"table": each, "settings": dict(settings)} for each in (name, *earlier))
        row = next((row for row in map(self._cells.find, cells) if row is not None), None)
        if row is not None:
            self.origins[table_name(name, settings)] = {k: row[k] for k in ORIGIN if k in row}
            self.tell(f"{name}: read from {self._cells.path}, of {row.get('commit')}")
        return row

    @cached_property
    def _shelf(self) -> Mapping[Path, Any]:
        return figures().stored(self.folder) if self.folder else {}

    def _stored(self, name: str, values: Mapping[str, Any]) -> xarray.Dataset | None:
        row = self._row(name, values)
        if row is not None:
            return figures().unpack(row["result"])
        wanted = json.loads(json.dumps(dict(values)))  # lists, as they are stored
        for path, record in self._shelf.items():
            has = {k: s["value"] for k, s in record.settings.items()}
            if record.name == name and has == wanted:
                self.tell(f"{name}: read from {path}")
                origin = {"commit": record.commit, "device": record.device}
                self.origins[table_name(name, values)] = origin
                return figures().load_figure(path)
        return None


ORIGIN = ("commit", "date", "versions", "device", "seconds")
"""What is known of where a number comes from."""


def _not_stored(name: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{name} is not stored at full size",
        got="no file of it with its full settings",
        wanted="its data: smaller settings do not replace the numbers of a page",
        fix=f"`python -m papers reproduce {name}` where it is fast, and name its folder by --from",
    )


# ---- seeds drawn again ---------------------------------------------------------------------------


def chosen(count: int, number: int) -> np.ndarray:
    """As many seeds, drawn with replacement; the same `number` always draws the same ones."""
    return np.random.default_rng([number, count]).integers(count, size=count)


def drawn_table(table: xarray.Dataset, number: int) -> xarray.Dataset:
    """The data of a figure with its seeds drawn again; without seeds, as they are."""
    if "seed" not in table.dims:
        return table
    return table.isel(seed=chosen(table.sizes["seed"], number))


def drawn_lists(result: Mapping[str, Any], count: int, number: int) -> dict[str, Any]:
    """The numbers of a measurement, with the seeds of lists of this length drawn again."""
    seeds = chosen(count, number)
    many = lambda v: isinstance(v, list) and len(v) == count
    return {k: [v[i] for i in seeds] if many(v) else v for k, v in result.items()}


def found_in(measure: Measure, table: xarray.Dataset) -> Found:
    """The number of a figure's measure in its data, by the same rules as in the ledger."""
    settings = figures().settings_of(table)
    seeds = settings.get("seeds", None if DRAWN.isdisjoint(settings) else 1)
    numbers = measure.read(table)
    if isinstance(numbers, Found):
        return replace(numbers, seeds=seeds)
    number = Found.of(numbers, seeds, scale=measure.scale)
    return with_interval(measure, number, lambda draw: drawn_table(table, draw))


def with_interval(measure: Measure, number: Found, redrawn: Callable[[int], Any]) -> Found:
    """The number with the interval that drawing its seeds again gives (the bootstrap).

    This is for numbers that are `pooled` or rest on the seed floor; others are returned as they
    are. The standard error is the standard deviation over `DRAWS` draws, corrected for few seeds by
    √(n / (n − 1)); the interval is Student's, as for a mean over seeds, for which both are equal.
    A ratio to the seed floor, whose own spread then counts, has the interval of its logarithm.
    Draws that have no number, such as those of one and the same seed, are left out. Fewer seeds
    than a verdict needs are not drawn.
    """
    drawn = measure.pooled or measure.rests is Basis.SEEDS
    few = number.seeds is None or number.seeds < FEWEST_SEEDS
    if not drawn or few or not np.isfinite(number.value):
        return number
    values = [
        Found.of(measure.read(redrawn(draw)), scale=measure.scale).value for draw in range(DRAWS)
    ]
    return number.spread(values, scale="log" if measure.rests is Basis.SEEDS else measure.scale)
