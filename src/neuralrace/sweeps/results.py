"""Where the results of a sweep are kept: in memory, or as a labelled dataset in a Zarr store.

One process writes. Every batch is one chunk of every variable, so that nothing is read to be
written again, and its place in `status` is written last: that is its done-mark.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import numpy as np

from neuralrace.checks import shown
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.sweeps.cells import Failure, Result
from neuralrace.sweeps.definition import Definition, labels_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

if TYPE_CHECKING:
    import xarray

MISSING, DONE, FAILED = 0, 1, 2
"""What `status` says of a cell."""

SECONDS = ".seconds"
"""The file in which a store keeps how long all calls computed."""

PATIENCE = 2.0
"""Seconds to wait for another process that looks at the store to let go of it."""


@runtime_checkable
class Arrays(Protocol):
    """Named arrays that can be written in parts: NumPy's in memory, Zarr's in a store."""

    def make(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype | str, dims: Sequence[str]
    ) -> Any: ...

    def names(self) -> list[str]: ...

    def get(self, name: str) -> Any: ...

    @property
    def seconds(self) -> float: ...

    @seconds.setter
    def seconds(self, value: float) -> None: ...


class InMemory:
    """Arrays of NumPy, by name."""

    def __init__(self, definition: Definition) -> None:
        self.kept: dict[str, np.ndarray] = {}
        self.seconds = 0.0
        _furnish(self, definition)

    def make(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype | str, dims: Sequence[str]
    ) -> np.ndarray:
        """A new array, filled with what stands for nothing."""
        if dtype == "text":
            self.kept[name] = np.full(shape, "", object)
        else:
            self.kept[name] = np.full(shape, _nothing(np.dtype(dtype)), dtype)
        return self.kept[name]

    def names(self) -> list[str]:
        """All arrays, the oldest first."""
        return list(self.kept)

    def get(self, name: str) -> np.ndarray:
        """The array of that name."""
        return self.kept[name]


class InStore:
    """Arrays of a Zarr group in a folder."""

    def __init__(self, path: Path, definition: Definition, group: Any) -> None:
        self.path, self.definition, self.group = path, definition, group

    @property
    def seconds(self) -> float:
        """How long all calls computed."""
        try:
            return float((self.path / "status" / SECONDS).read_text())
        except (OSError, ValueError):  # nothing is written yet
            return 0.0

    @seconds.setter
    def seconds(self, value: float) -> None:
        draft = self.path / "status" / f"{SECONDS}.partial"
        draft.write_text(repr(float(value)))
        draft.replace(self.path / "status" / SECONDS)

    def make(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype | str, dims: Sequence[str]
    ) -> Any:
        """A new array with one chunk per batch; one that was begun before is replaced."""
        lead = len(self.definition.shape)
        along = self.definition.batch if tuple(dims[:lead]) == tuple(self.definition.axes) else ()
        chunks = (*along, *shape[len(along) :])
        return self.group.create_array(
            name,
            shape=shape,
            chunks=tuple(max(1, c) for c in chunks),
            dtype=str if dtype == "text" else dtype,
            fill_value="" if dtype == "text" else _nothing(np.dtype(dtype)),
            dimension_names=tuple(dims),
            overwrite=True,
        )

    def names(self) -> list[str]:
        """All arrays."""
        return sorted(self.group.array_keys())

    def get(self, name: str) -> Any:
        """The array of that name."""
        return self.group[name]


def _furnish(arrays: Arrays, definition: Definition) -> None:
    """The coordinates, and the places for errors and done-marks."""
    axes = tuple(definition.axes)
    for name, values in {**definition.axes, **definition.coords}.items():
        labels = labels_of(values)
        kind = "text" if labels.dtype.kind == "U" else labels.dtype
        arrays.make(name, labels.shape, kind, (name,))[:] = (
            labels.astype(object) if kind == "text" else labels
        )
    arrays.make("error", definition.shape, "text", axes)
    arrays.make("status", definition.shape, "uint8", axes)


def _nothing(dtype: np.dtype) -> Any:
    return np.nan if dtype.kind in "fc" else np.zeros((), dtype)[()]


def _is_text(array: Any) -> bool:
    """Whether it holds text: NumPy's own kinds, and the one of Zarr."""
    return np.dtype(array.dtype).kind in "UOT"


def _kind(array: Any) -> str:
    return "text" if _is_text(array) else str(array.dtype)


@final
class Results:
    """What a sweep has so far; `write` adds a batch.

    The first cell that was done, in the order of the batches, fixes the names, shapes and types
    of the results: results of later batches wait until it is known, so that the order in which
    workers finish changes nothing.
    """

    def __init__(self, definition: Definition, arrays: Arrays) -> None:
        self.definition, self.arrays = definition, arrays
        self.marks = arrays.get("status")
        self.status = np.asarray(self.marks[...])
        self.template = self._known()
        self.waiting: dict[int, list[Result | str]] = {}
        self.given_up: set[int] = set()

    def _known(self) -> dict[str, Any] | None:
        if not (self.status == DONE).any():
            return None
        own = {*self.definition.axes, *self.definition.coords, "status", "error"}
        return {n: self.arrays.get(n) for n in self.arrays.names() if n not in own}

    @property
    def seconds(self) -> float:
        """How long all calls computed, up to their last batch."""
        return self.arrays.seconds

    def took(self, seconds: float) -> None:
        """Add the time of a batch."""
        self.arrays.seconds += seconds

    def missing(self) -> list[int]:
        """The batches that are not done."""
        marks = (self.status[self.definition.box(b)] for b in range(self.definition.batches))
        return [b for b, mark in enumerate(marks) if (mark == MISSING).any()]

    def write(self, batch: int, found: list[Result | str]) -> int:
        """Keep the results of a batch, or let them wait; how many cells were written."""
        self.waiting[batch] = found
        return self._written()

    def give_up(self, batch: int) -> int:
        """Wait no longer for a batch; how many cells were written that waited for it."""
        self.given_up.add(batch)
        return self._written()

    def _written(self) -> int:
        written = 0
        for batch in sorted(self.waiting):
            if self.template is None:
                first = next((b for b in self.missing() if b not in self.given_up), batch)
                if first < batch:
                    break
            written += self._put(batch, self.waiting.pop(batch))
        return written

    def _put(self, batch: int, found: list[Result | str]) -> int:
        box = self.definition.box(batch)
        shape = tuple(s.stop - s.start for s in box)
        first = next((r for r in found if isinstance(r, dict)), None)
        if self.template is None and first is not None:
            self.template = self._made(first)
        told = [r if isinstance(r, str) else self._odd(r) for r in found]
        for name, array in (self.template or {}).items():
            inner = array.shape[len(shape) :]
            text = _is_text(array)
            part = np.full(
                (len(found), *inner),
                "" if text else _nothing(array.dtype),
                object if text else array.dtype,
            )
            for i, result in enumerate(found):
                if isinstance(result, dict) and not told[i]:
                    part[i] = str(result[name]) if text else result[name]
            array[box] = part.reshape(*shape, *inner)
        if any(told):
            errors = np.empty(len(told), object)
            errors[:] = told
            self.arrays.get("error")[box] = errors.reshape(shape)
        marks = np.array([FAILED if error else DONE for error in told], "uint8").reshape(shape)
        self.marks[box] = marks  # last: the batch is done
        self.status[box] = marks
        return len(found)

    def _made(self, first: Result) -> dict[str, Any]:
        made = {}
        axes = tuple(self.definition.axes)
        clash = sorted({*first} & {*axes, *self.definition.coords})
        if clash:
            raise NeuralRaceError(
                f"a result of the sweep has the name {clash[0]!r} of an axis",
                got=f"results {listed(first)}, axes {listed(axes)}",
                wanted="names of their own",
                fix="call the result something else",
            )
        for name, value in sorted(first.items()):
            own = self.definition.dims.get(name)
            inner = tuple(f"{name}.{i}" for i in range(value.ndim)) if own is None else own
            lengths = {d: len(self.definition.coords.get(d, ())) for d in inner}
            fits = [lengths[d] in (0, n) for d, n in zip(inner, value.shape, strict=False)]
            if len(inner) != value.ndim or not all(fits):
                raise NeuralRaceError(
                    f"dims and coords do not fit the result {name!r}",
                    got=f"shape {value.shape} for {inner} of lengths {tuple(lengths.values())}",
                    wanted="one dimension per axis of the result, and as many coordinates",
                    fix="change dims or coords, or what the function returns",
                )
            shape = (*self.definition.shape, *value.shape)
            dtype = "text" if _is_text(value) else value.dtype
            made[name] = self.arrays.make(name, shape, dtype, (*axes, *inner))
        return made

    def _odd(self, result: Result) -> str:
        """Why a result does not fit into the table; nothing where it does."""
        assert self.template is not None
        lead = len(self.definition.shape)
        wanted = {n: (a.shape[lead:], _kind(a)) for n, a in self.template.items()}
        got = {n: (a.shape, _kind(a)) for n, a in result.items()}
        if {*got} != {*wanted}:
            return f"TypeError: the cell returned {listed(got)}, the first one {listed(wanted)}"
        for name in wanted:
            if got[name] != wanted[name]:
                return (
                    f"TypeError: the cell returned {name!r} with shape and type {got[name]}, "
                    f"the first one {wanted[name]}"
                )
        return ""

    def failures(self) -> tuple[Failure, ...]:
        """The cells that failed, in the order of the grid."""
        places = np.argwhere(self.status == FAILED)
        if not len(places):
            return ()
        errors = self.arrays.get("error")[...]
        return tuple(
            Failure(self.definition.cell_at(place), str(errors[tuple(place)]))
            for place in places.tolist()
        )

    def table(self) -> xarray.Dataset:
        """All results as one labelled dataset; what is not done is NaN."""
        import xarray

        axes = tuple(self.definition.axes)
        lead = len(axes)
        coordinates = {
            name: labels_of(v)
            for name, v in {**self.definition.axes, **self.definition.coords}.items()
        }
        found: dict[str, Any] = {}
        for name, array in (self.template or {}).items():
            own = self.definition.dims.get(name)
            inner = own or tuple(f"{name}.{i}" for i in range(len(array.shape) - lead))
            value = np.asarray(array[...], object if _is_text(array) else None)
            if value.dtype.kind in "biu" and (self.status != DONE).any():
                gone = (self.status != DONE).reshape(*self.status.shape, *[1] * len(inner))
                value = np.where(gone, np.nan, value)
            found[name] = ((*axes, *inner), value)
        used = {dim for dims, _ in found.values() for dim in dims} | {*axes}
        return xarray.Dataset(found, {n: v for n, v in coordinates.items() if n in used})


# ---- stores -------------------------------------------------------------------------------------


def read_store(path: Path) -> Results:
    """The results in a store, as they are now."""
    return Results(*_opened(path, "r"))


@contextmanager
def writing(path: Path, definition: Definition) -> Iterator[Results]:
    """The results of a store for the one process that may write; made where it is not there."""
    if not path.is_dir() or not any(path.iterdir()):
        _make_store(path, definition)
    there, arrays = _opened(path, "r+")
    apart = there.differences(definition)
    if apart:
        lines = "; ".join(
            f"{k}: {_brief(a)} there, {_brief(b)} here" for k, (a, b) in apart.items()
        )
        raise NeuralRaceError(
            f"the store {str(path)!r} belongs to another sweep",
            got=lines,
            wanted="the same definition",
            fix="choose another store (another --out), or change these keys back",
        )
    with _locked(path):
        for left in (*path.rglob("*.partial"), path / "status" / RUNNING):
            left.unlink(missing_ok=True)  # of a process that was killed
        try:
            yield Results(there, arrays)
        finally:
            (path / "status" / RUNNING).unlink(missing_ok=True)


RUNNING = ".running.json"
"""What the process that writes tells `status`: since when, and how many cells are under way."""

LOCK = ".lock"
"""A file that the process that writes holds; the system lets go of it when that is killed."""


def tell(path: Path, since: float, before: int, running: int) -> None:
    """Write down how a run goes, for `status`."""
    told = {
        "since": since, "before": before, "running": running, "now": time.time(),
        "process": os.getpid(), "host": socket.gethostname(),
    }  # fmt: skip
    draft = path / "status" / f"{RUNNING}.partial"
    draft.write_text(json.dumps(told))
    draft.replace(path / "status" / RUNNING)


def told(path: Path) -> dict[str, Any] | None:
    """What a process that writes to the store at this moment tells; None if there is none."""
    if not _held(path):
        return None
    try:
        return json.loads((path / "status" / RUNNING).read_text())
    except (OSError, ValueError):  # it has just begun, or ends
        return {}


def _make_store(path: Path, definition: Definition) -> None:
    """A store without results, made beside its place: it is there as a whole or not at all."""
    import zarr

    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"sweep": definition.to_json()}
        group = zarr.create_group(draft, zarr_format=3, attributes=told)
        _furnish(InStore(draft, definition, group), definition)
        draft.replace(path)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if path.is_dir() and any(path.iterdir()):  # another process was quicker
            return
        raise NeuralRaceError(
            f"cannot write to {str(path)!r}",
            got=error.strerror or type(error).__name__,
            wanted="a path in a folder that is writable",
            fix="choose another path, such as store='runs/xor.zarr'",
        ) from error


def _opened(path: Path, mode: Any) -> tuple[Definition, InStore]:
    import zarr

    try:
        group: Any = zarr.open_group(path, mode=mode)
        definition = Definition.from_json(str(group.attrs["sweep"]))
        group["status"]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise NeuralRaceError(
            f"{str(path)!r} is no store of a sweep",
            got=f"{type(error).__name__}: {error}"[:200],
            wanted="a folder that nr.sweep(…, store=…) wrote",
            fix="check the path",
        ) from error
    return definition, InStore(path, definition, group)


def _brief(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 60 else shown(value)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Be the only process that writes; an error where another one does."""
    if fcntl is None:  # a system without such locks
        yield
        return
    with (path / "status" / LOCK).open("a") as file:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(0.05)
                    continue
                other = told(path) or {}
                who = f"process {other.get('process', '?')} on {other.get('host', '?')}"
                raise NeuralRaceError(
                    f"another process writes to the store {str(path)!r}",
                    got=who,
                    wanted="one process per store",
                    fix="wait for it, or end it; nothing that is done is lost",
                ) from None
        yield


def _held(path: Path) -> bool:
    if fcntl is None:
        return (path / "status" / RUNNING).exists()
    try:
        with (path / "status" / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
