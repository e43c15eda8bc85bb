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
from pathlib import Path
from typing import Any

from neuralrace.checks import shown
from neuralrace.errors import NeuralRaceError
from neuralrace.sweeps.arrays import InStore, furnish
from neuralrace.sweeps.definition import Definition
from neuralrace.sweeps.results import Results

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
