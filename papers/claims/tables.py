"""The data that claims are measured on: figures and measurements, each made once and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np

from neuralrace.errors import NeuralRaceError
from papers.claims.redrawn import drawn_lists, drawn_table, with_interval
from papers.claims.sources import (
    Origin,
    checked_out,
    place_of,
    read_origins,
    write_origins,
)
from papers.measure import Basis, Found
from papers.record import Record, load_figure, pack, read_record, stored, unpack

if TYPE_CHECKING:
    import xarray

    from papers.claims.claim import Claim
    from papers.measure import Measure

Read = TypeVar("Read")

DRAWN = {"key", "seed"}
"""The settings that tell that a figure has a random draw: one, if it has no `seeds`."""


def table_file(name: str, settings: Mapping[str, Any], ending: str = "npz") -> str:
    """The name of the file in which a table of the ledger is kept.

    ```python
    >>> from papers.claims import table_file
    >>> table_file("nrr/fig5", {"seeds": 5})
    'nrr_fig5-6c6c5162.npz'

    ```
    """
    text = json.dumps(settings, sort_keys=True)
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{name.replace('/', '_')}-{mark}.{ending}"


@final
@dataclass(eq=False)
class Tables:
    """The data of figures, each computed once: `tables("nrr/fig4", init="xavier")`.

    `once` keeps measurements that no figure makes; `at_hand` is for figures that take long to
    compute; `found` reads a measure and counts the seeds behind it.

    **Arguments:** `quick` uses the figures' small settings. `folder` holds data that `reproduce`
    wrote: a figure stored with exactly the settings wanted is read instead of computed. What is
    computed is kept there, in `ledger/`, so that an interrupted run continues; beside it,
    `made.json` has the commit at which each table was computed. A table that is there is read,
    whatever has changed since; delete it to compute it again. `tell` is called for every figure
    with a line that says whether it is read or computed. `whole` refuses the smaller
    settings of `at_hand`.
    """

    quick: bool = False
    folder: Path | None = None
    tell: Callable[[str], None] = lambda _: None
    whole: bool = False
    _kept: dict[Any, Any] = field(default_factory=dict)
    _read: dict[Any, tuple[Found, tuple[str, ...]]] = field(default_factory=dict)
    _origins: dict[str, Origin] = field(default_factory=dict)
    _draw: int | None = None
    _seeds: list[int] = field(default_factory=list)
    _drawn: bool = False
    _files: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise NeuralRaceError(
                f"there is no folder {str(self.folder)!r} to read figures from",
                got="a file" if self.folder.exists() else "nothing of that name",
                wanted="a folder that exists, such as out/figures; what is computed is kept there",
                fix="correct the name, make the folder, or leave it out to keep nothing",
            )

    def __call__(self, name: str, **changes: Any) -> xarray.Dataset:
        key = (name, tuple(sorted(changes.items())))
        if key not in self._kept:
            self._kept[key] = self._made(name, changes)
        return self._counted(self._kept[key])

    def at_hand(self, name: str, **smaller: Any) -> xarray.Dataset:
        """The figure at full size if that is stored, otherwise computed with smaller settings.

        If these tables are to be `whole`, an error takes the place of smaller settings.
        """
        full = self._full(name)
        if full is None and self.whole:
            raise _not_stored(name, "each claim that rests on it")
        return self(name, **smaller) if full is None else self._counted(full)

    def check(self, claims: Sequence[Claim]) -> None:
        """Raise if these tables are to be `whole` and a figure of the claims is not stored.

        The figures are those of `Claim.at_hand`: nothing is computed to find this out.
        """
        for name in dict.fromkeys(name for claim in claims for name in claim.at_hand):
            if self.whole and self._full(name) is None:
                raise _not_stored(name, *(c.name for c in claims if name in c.at_hand))

    def _full(self, name: str) -> xarray.Dataset | None:
        """The figure at full size, if that is stored."""
        from papers import find

        if name not in self._kept:
            self._kept[name] = None if self.quick else self._stored(name, find(name).resolve())
        return self._kept[name]

    def once(self, measurement: Callable[..., Any], **settings: Any) -> Any:
        """The result of a function with these settings, computed once.

        It is kept as JSON: a mapping of names to numbers, or to lists with one number per seed. A
        setting `seeds` is counted as those of the result.
        """
        key = (measurement, tuple(sorted(settings.items())))
        if key not in self._kept:
            self._kept[key] = self._measured(measurement, settings)
        found = self._kept[key]
        self._files[table_file(measurement.__name__, settings, "json")] = None
        if "seeds" not in settings:
            return found
        self._seeds.append(settings["seeds"])
        return found if self._draw is None else drawn_lists(found, settings["seeds"], self._draw)

    def found(self, measure: Measure) -> Found:
        """The number of a measure, with the fewest seeds of anything that was read for it.

        A number that is `pooled`, or rests on the seed floor, has the interval that drawing the
        seeds again gives (`claims/redrawn.py`).

        ```python
        >>> from papers.claims import Measure, Tables
        >>> twice = lambda seeds: {"gap": [0.1] * seeds}
        >>> gap = Measure("gap", "gap", lambda t: t.once(twice, seeds=6)["gap"], most=1)
        >>> Tables().found(gap).seeds
        6

        ```
        """
        key = (measure.read, measure.scale, measure.rests, measure.pooled)
        if key not in self._read:
            self._read[key] = self.tracked(lambda: self._found(measure))
        found, files = self._read[key]
        self._files |= dict.fromkeys(files)
        return found

    def tracked(self, read: Callable[[], Read]) -> tuple[Read, tuple[str, ...]]:
        """What a function returns, and the names of the files of all tables that it reads."""
        before, self._files = self._files, {}
        found, files = read(), tuple(self._files)
        self._files = before | dict.fromkeys(files)
        return found, files

    def _found(self, measure: Measure) -> Found:
        self._seeds.clear()
        self._drawn = False
        numbers = measure.read(self)
        if self._drawn and not self._seeds and np.ndim(numbers) == 0:
            self._seeds.append(1)
        found = Found.of(numbers, min(self._seeds, default=None), scale=measure.scale)
        drawn = measure.pooled or measure.rests is Basis.SEEDS
        return with_interval(measure, found, self) if drawn else found

    def redrawn(self, number: int) -> Tables:
        """The same tables with as many seeds drawn from them with replacement.

        Figures that have equally many seeds, and measurements with one number per seed, are drawn
        alike. `number` is that of the draw: the same one draws the same seeds.
        """
        other = copy(self)
        other._draw = number
        return other

    @property
    def origins(self) -> dict[str, Origin]:
        """Where the tables that were read so far come from, by the names of their files."""
        return dict(self._origins)

    def _counted(self, table: xarray.Dataset) -> xarray.Dataset:
        """The table; its number of seeds and its file are remembered for `found`."""
        record = read_record(table)
        settings = record.settings
        values = {name: each["value"] for name, each in settings.items()}
        self._files[table_file(record.name, values, "npz")] = None
        if "seeds" in settings:
            self._seeds.append(settings["seeds"]["value"])
        else:
            self._drawn |= not DRAWN.isdisjoint(settings)
        return table if self._draw is None else drawn_table(table, self._draw)

    def _made(self, name: str, changes: Mapping[str, Any]) -> xarray.Dataset:
        from papers import find

        figure = find(name)
        values = figure.resolve(quick=self.quick, changes=changes)
        at_hand = self._stored(name, values)
        if at_hand is not None:
            return at_hand
        with_what = ", ".join(f"{k} = {v}" for k, v in changes.items())
        self.tell(f"{name}{f' ({with_what})' if with_what else ''}: computing …")
        table = figure.run(values, quick=self.quick)
        path = self._place(name, values, "npz")
        if path is not None:
            pack(table, path)
            self._note(path, figure.compute, table)
        return table

    def _measured(self, measurement: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
        name = measurement.__name__
        path = self._place(name, settings, "json")
        if path is not None and path.exists():
            self._tell_read(name.replace("_", " "), path, measurement)
            return json.loads(path.read_text())
        self.tell(f"{name.replace('_', ' ')}: computing …")
        result = measurement(**settings)
        if path is not None:
            part = path.with_suffix(".part")
            part.write_text(json.dumps(result))
            part.replace(path)
            self._note(path, measurement)
        return result

    def _note(self, path: Path, function: Callable[..., Any], table: Any = None) -> None:
        """Write down where a table comes from."""
        made = Origin(checked_out(), place_of(function), device_of(table))
        self._origins[path.name] = made
        write_origins(path.parent, {path.name: made})

    def _tell_read(
        self, name: str, path: Path, function: Callable[..., Any], table: Any = None
    ) -> None:
        """Say that a table is read, and at which commit it was computed."""
        made = read_origins(path.parent).get(path.name, Origin())
        self._origins[path.name] = replace(made, code=place_of(function), device=device_of(table))
        self.tell(f"{name}: read from {path}{f', of {made.commit}' if made.commit else ''}")

    def _place(self, name: str, settings: Mapping[str, Any], ending: str) -> Path | None:
        """Where a result with these settings is kept, if there is a folder."""
        if self.folder is None:
            return None
        place = self.folder / "ledger"
        place.mkdir(exist_ok=True)
        return place / table_file(name, settings, ending)

    @cached_property
    def _shelf(self) -> dict[Path, Record]:
        return stored(self.folder) if self.folder else {}

    def _stored(self, name: str, values: Mapping[str, Any]) -> xarray.Dataset | None:
        path = self._place(name, values, "npz")
        if path is not None and path.exists():
            from papers import find

            table = unpack(path)
            self._tell_read(name, path, find(name).compute, table)
            return table
        wanted = json.loads(json.dumps(dict(values)))  # lists, as they are stored
        for path, record in self._shelf.items():
            has = {k: s["value"] for k, s in record.settings.items()}
            if record.name == name and has == wanted:
                self.tell(f"{name}: read from {path}")
                table = load_figure(path)
                if device := device_of(table):
                    self._origins[table_file(name, values, "npz")] = Origin(device=device)
                return table
        return None


def _not_stored(name: str, *claims: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{name} is not stored at full size",
        got="no file of it with its full settings",
        wanted="its data: smaller settings do not replace the numbers of a page",
        fix=f"`python -m papers reproduce {name}` where it is fast, and name its folder by --from; "
        "or keep the numbers of the claims that rest on it: --keep (once for each), or "
        f'`make claims KEEP="…"`, with {" ".join(claims)}',
    )


def device_of(table: Any) -> str:
    """What computed a figure, if its data say so."""
    return str(table["device"].item()) if table is not None and "device" in table else ""
