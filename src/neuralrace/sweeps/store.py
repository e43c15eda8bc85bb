"""The results of a sweep as a labelled dataset in a Zarr store, which one process writes."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from neuralrace.checks import file_path, shown
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.sweeps.definition import Definition
from neuralrace.sweeps.engine import need_packages
from neuralrace.sweeps.results import DONE, FAILED, InStore, Results, furnish

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PATIENCE = 2.0
"""Seconds to wait for another process that looks at the store to let go of it."""

RUNNING = ".running.json"
"""What the process that writes tells `status`: since when, and how many cells are under way."""

LOCK = ".lock"
"""A file that the process that writes holds; the system lets go of it when that is killed."""


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
        furnish(InStore(draft, definition, group), definition)
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


# ---- how far it is ------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Status:
    """How far a sweep is, in cells; see `status`.

    `running` counts the cells that are being computed; `active` says whether a process works on
    the sweep; `seconds_left` is None where that is not known.

    ```python
    >>> from neuralrace.sweeps import Status
    >>> found = Status(cells=10, done=6, failed=1, running=2, active=True, seconds_left=90.0)
    >>> found.missing, found.is_complete
    (1, False)

    ```
    """

    cells: int
    done: int
    failed: int
    running: int
    active: bool
    seconds_left: float | None

    @property
    def missing(self) -> int:
        """Cells that are neither done nor failed, and that are not being computed."""
        return self.cells - self.done - self.failed - self.running

    @property
    def is_complete(self) -> bool:
        """Whether every cell is done or failed."""
        return self.done + self.failed == self.cells

    def __str__(self) -> str:
        counts = f"{self.done} done, {self.running} running, {self.failed} failed"
        line = f"{self.cells} cells: {counts}, {self.missing} missing"
        if self.is_complete:
            return f"{line}; complete"
        if not self.active:
            return f"{line}; stopped; the same call continues it"
        if self.seconds_left is None:
            return f"{line}; just begun"
        return f"{line}; {_span(self.seconds_left)} left"


@door
def status(store: str | os.PathLike[str]) -> Status:
    """How far the sweep in a store is. The time left assumes that the rate stays as it was.

    ```python
    >>> import tempfile, neuralrace as nr
    >>> def squares(cells):
    ...     return [{"square": cell["x"] ** 2} for cell in cells]
    >>> store = tempfile.mkdtemp()
    >>> first = nr.sweep(squares, {"x": [1, 2, 3]}, store=store)
    >>> print(nr.sweeps.status(store))
    3 cells: 3 done, 0 running, 0 failed, 0 missing; complete

    ```
    """
    need_packages("zarr")
    path = file_path(store, "status('runs/xor.zarr')")
    results = read_store(path)
    done, failed = (int((results.status == mark).sum()) for mark in (DONE, FAILED))
    now = told(path)
    if now is None:
        return Status(results.definition.cells, done, failed, 0, False, None)
    missing = results.definition.cells - done - failed
    since = done + failed - now.get("before", done + failed)
    seconds = (now["now"] - now["since"]) * missing / since if since > 0 else None
    running = min(now.get("running", 0), missing)
    return Status(results.definition.cells, done, failed, running, True, seconds)


def _span(seconds: float) -> str:
    """A time in words, to two figures."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.2g} {unit}"
    return f"about {max(seconds, 1):.0f} s"
