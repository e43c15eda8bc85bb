"""A figure's files: its picture, and its data with the record of how they were made."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from evidence import Found, Measure, Outcome
from neuralrace.errors import NeuralRaceError

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

__all__ = [
    "Record",
    "Written",
    "command",
    "load_figure",
    "pack",
    "read_record",
    "row_of",
    "same",
    "shown",
    "stamped",
    "stored",
    "typed",
    "unpack",
    "write",
]

FORMAT = "neuralrace figure 1"


@final
@dataclass(frozen=True)
class Record:
    """What stands beside a figure's data: what it is, how it was made, how well it agrees.

    Kept as one JSON attribute in the data. `settings` maps each name to its `value`, the
    `default`, what it is `about` and its `source`; each row of `agreement` has `id`, `what`,
    `target`, `measured` and `holds`. `device`, `commit` and `date` say where and when the data were
    computed; they are empty where that was not recorded.

    ```python
    >>> import papers
    >>> figure = papers.find("talk/depth")
    >>> data = figure.run(figure.resolve(quick=True, changes={"d": 2.0}), quick=True)
    >>> record = papers.read_record(data)
    >>> record.name, record.settings["d"]["value"], "d" in record.changed
    ('talk/depth', 2.0, True)

    ```
    """

    name: str
    title: str
    states: str
    settings: Mapping[str, Mapping[str, Any]]
    quick: bool
    versions: Mapping[str, str]
    seconds: float
    agreement: Sequence[Mapping[str, Any]] = field(default=())
    device: str = ""
    commit: str = ""
    date: str = ""

    @property
    def verdict(self) -> str:
        """How many of the lines that can hold do.

        ```python
        >>> from papers.record import Record
        >>> row = {"id": "a", "what": "a", "target": "1", "measured": "1.01", "holds": True}
        >>> Record("nrr/fig0", "", "", {}, False, {}, 0.0, [row]).verdict
        '1 of 1 agree'

        ```
        """
        judged = [bool(row["holds"]) for row in self.agreement if row["holds"] is not None]
        return f"{sum(judged)} of {len(judged)} agree" if judged else "nothing to judge"

    @property
    def origin(self) -> str:
        """On which device and at which commit the data were computed, as the end of a sentence.

        ```python
        >>> from papers import Record
        >>> Record("nrr/fig0", "", "", {}, False, {}, 0.0, device="a GPU", commit="abc").origin
        ' on a GPU, at commit abc'

        ```
        """
        on = f" on {self.device}" if self.device else ""
        return on + (f", at commit {self.commit}" if self.commit else "")

    @property
    def changed(self) -> tuple[str, ...]:
        """The settings that are not the defaults, for which the bounds of the agreement are."""
        return tuple(
            name for name, s in self.settings.items() if not same(s["value"], s["default"])
        )


@final
@dataclass(frozen=True)
class Written:
    """The files of a figure, and the record that stands in them.

    `others` are pictures in further formats that `neuralrace.plot.look` asks for.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> import papers
    >>> figure = papers.find("talk/depth")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = figure.run(figure.resolve(quick=True), quick=True)
    ...     written = figure.publish(data, Path(folder))
    ...     written.pdf.name, written.data.exists(), written.record.quick
    ('depth.pdf', True, True)

    ```
    """

    record: Record
    pdf: Path
    png: Path
    data: Path
    others: tuple[Path, ...] = ()


def row_of(measure: Measure, found: Found) -> dict[str, Any]:
    """A measure and its number as plain values: `holds` is None where nothing is settled.

    ```python
    >>> from evidence import Found, Measure
    >>> from papers.record import row_of
    >>> row_of(Measure("gap", "the gap", lambda t: 0, most=1, words="close"), Found(0.5))["target"]
    '“close”: ≤ 1 (our choice)'

    ```
    """
    beside = f"; {measure.beside}" if measure.beside else ""
    doubt = measure.doubt(found)
    words = f"“{measure.words}”: " if measure.words else ""
    return {
        "id": measure.id,
        "what": measure.what,
        "target": measure.target or f"{words}{measure.threshold} ({measure.rests.value})",
        "measured": (found.text or f"{found.value:{measure.form}}{beside}")
        + (f"; unclear: {doubt}" if doubt else ""),
        "holds": {Outcome.MET: True, Outcome.MISSED: False}.get(measure.outcome(found)),
    }


def stamped(table: xarray.Dataset, record: Record) -> xarray.Dataset:
    """The data with the record as their attribute."""
    return table.assign_attrs(format=FORMAT, record=json.dumps(asdict(record), ensure_ascii=False))


def read_record(table: xarray.Dataset) -> Record:
    """The record of a figure's data: its settings, how it was made, how well it agrees.

    ```python
    >>> import papers
    >>> figure = papers.find("talk/depth")
    >>> papers.read_record(figure.run(figure.resolve(quick=True), quick=True)).name
    'talk/depth'

    ```
    """
    if table.attrs.get("format") != FORMAT:
        raise _not_a_figure("the data", f"format {table.attrs.get('format')!r}")
    return Record(**json.loads(table.attrs["record"]))


def load_figure(path: str | os.PathLike[str]) -> xarray.Dataset:
    """The data of a figure, as `python -m papers reproduce` saved them.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> import papers
    >>> figure = papers.find("talk/depth")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = figure.run(figure.resolve(quick=True), quick=True)
    ...     written = figure.publish(data, Path(folder))
    ...     papers.load_figure(written.data).equals(data)
    True

    ```
    """
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            table = opened.load()
    except FileNotFoundError as error:
        raise _not_a_figure(repr(str(path)), "no file of that name") from error
    except Exception as error:
        raise _not_a_figure(repr(str(path)), f"{type(error).__name__}: {error}") from error
    if table.attrs.get("format") != FORMAT:
        raise _not_a_figure(repr(str(path)), f"format {table.attrs.get('format')!r}")
    return table


def stored(folder: Path, pattern: str = "**/*.nc") -> dict[Path, Record]:
    """The record of every figure whose data lie in a folder; the data themselves are not read.

    Other files are left out, with a warning.
    """
    paths = sorted(folder.glob(pattern))
    if not paths:
        return {}
    import h5py

    found = {}
    for path in paths:
        try:
            with h5py.File(path) as file:
                if file.attrs.get("format") == FORMAT:
                    found[path] = Record(**json.loads(str(file.attrs["record"])))
        except (OSError, KeyError, TypeError, ValueError) as error:
            logging.getLogger(__name__).warning(
                "%s", _not_a_figure(repr(str(path)), f"{type(error).__name__}: {error}")
            )
    return found


def pack(table: xarray.Dataset) -> dict[str, Any]:
    """A figure's data as plain values and arrays, which a file of cells keeps; `unpack` reads it.

    For pictures, pages and exchange use `write`, which stores netCDF.
    """
    arrays = {str(name): np.asarray(values) for name, values in table.variables.items()}
    words = {name: each.astype(str) for name, each in arrays.items() if each.dtype == object}
    return {
        "attrs": dict(table.attrs),
        "dims": {str(name): list(values.dims) for name, values in table.variables.items()},
        "coords": [str(name) for name in table.coords],
        "arrays": arrays | words,
    }


def unpack(packed: Mapping[str, Any]) -> xarray.Dataset:
    """The data that `pack` made plain."""
    import xarray

    arrays = packed["arrays"]
    values = {name: (dims, np.asarray(arrays[name])) for name, dims in packed["dims"].items()}
    coords = {name: values.pop(name) for name in packed["coords"]}
    return xarray.Dataset(values, coords, packed["attrs"])


def _not_a_figure(what: str, got: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{what} cannot be read as the data of a figure",
        got=got,
        wanted=f"a netCDF file of format {FORMAT!r}",
        fix="give a file that `python -m papers reproduce` wrote, such as out/figures/nrr/fig4.nc",
    )


def write(table: xarray.Dataset, picture: matplotlib.figure.Figure, out: Path) -> Written:
    """Write a figure's picture and data under `out`, in the folder of its paper."""
    from neuralrace.plot import current_look, picture_bytes
    from neuralrace.trajectory import save_table

    record = read_record(table)
    stem = out / record.name
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NeuralRaceError(
            f"cannot make the folder {str(stem.parent)!r}",
            got=error.strerror,
            wanted="a folder that can be made and written to",
            fix="choose another with --out",
        ) from error
    pdf, png, data = (stem.with_suffix(f".{end}") for end in ("pdf", "png", "nc"))
    save_table(table, data)
    look = current_look()
    if look.figsize is not None:
        picture.set_size_inches(look.figsize)
    dpi = look.rc.get("savefig.dpi", 200)
    picture.savefig(pdf, metadata={"Title": f"{record.name}: {record.title}"})
    picture.savefig(png, dpi=dpi, pil_kwargs={"optimize": True})
    others = {stem.with_suffix(f".{k}"): k for k in look.formats if k not in ("pdf", "png")}
    for path, kind in others.items():
        path.write_bytes(picture_bytes(picture, kind))
    return Written(record, pdf, png, data, tuple(others))


def same(value: object, other: object) -> bool:
    """Whether two settings are equal, a list and a tuple of the same numbers included."""
    return json.dumps(value) == json.dumps(other)


def shown(value: object) -> str:
    """A setting as it is read on a page.

    ```python
    >>> from papers import shown
    >>> shown([0.2, 1.0]), shown(0.0002), shown(None)
    ('0.2, 1', '0.0002', '–')

    ```
    """
    if isinstance(value, (list, tuple)):
        return ", ".join(map(shown, value))
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def typed(value: object) -> str:
    """A setting as `--set` takes it, to the last digit.

    ```python
    >>> from papers.record import typed
    >>> typed([0.1234567891, 1.0]), typed(True), typed(None)
    ('0.1234567891,1.0', 'true', 'none')

    ```
    """
    if isinstance(value, (list, tuple)):
        return ",".join(map(typed, value))
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")


def command(record: Record) -> str:
    """A command that makes the figure again, with every setting that is not the default.

    ```python
    >>> from papers import Record, command
    >>> settings = {"M": {"value": 5, "default": 7}, "K": {"value": 4, "default": 4}}
    >>> command(Record("nrr/fig4", "", "", settings, False, {}, 0.0))
    'python -m papers reproduce nrr/fig4 --set M=5'

    ```
    """
    changes = [
        "--set " + shlex.quote(f"{name}={typed(s['value'])}")
        for name, s in record.settings.items()
        if name in record.changed
    ]
    return " ".join(["python -m papers reproduce", record.name, *changes])
