"""Runs that survive being killed: what is needed to go on, written as the run goes.

A folder holds `run.json`: the settings, and digests of weights and data, so that no other run goes
on from here; functions are not compared. For every part of the run `record-k` is what was recorded
in it, and `state-k` where it ended. Every file begins with a checksum of itself and `run.json`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from neuralrace.dynamics.functions import described
from neuralrace.errors import NeuralRaceError, listed, warn_user
from neuralrace.gdln import Network
from neuralrace.trajectory.files import network_described, write_whole
from neuralrace.trajectory.provenance import versions


@final
class Checkpoints:
    """The checkpoints of one run in one folder; `run` has what decides its numbers."""

    def __init__(self, folder: str | os.PathLike[str], every: int, **run: object) -> None:
        try:
            self.folder, self.every = Path(folder), every
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in self.folder.glob(".*.part"):
                path.unlink()
        except (TypeError, OSError) as error:
            raise NeuralRaceError(
                "checkpoint must be a folder that can be written",
                got=f"{folder!r}: {error}",
                wanted="the path of a folder, which is made if it is missing",
                fix="for example checkpoint='runs/first'",
            ) from error
        here = {"versions": versions(), "device": jax.devices()[0].device_kind, "every": every}
        self._mark = json.dumps({name: _told(run[name]) for name in run} | here, indent=1).encode()
        path = self.folder / "run.json"
        if not path.exists() and not any(self.folder.glob("record-*")):
            write_whole(path, self._mark)
        elif not path.exists() or path.read_bytes() != self._mark:
            raise NeuralRaceError(
                f"the checkpoints in {str(self.folder)!r} are not of this run",
                got=f"those of a run that differs in {listed(_differences(path, self._mark))}",
                wanted="checkpoints of the same network, weights, data and settings, or none",
                fix="choose another folder, or delete this one to begin anew",
            )

    def load(self, state: PyTree, record: PyTree) -> tuple[PyTree, list[PyTree]]:
        """The last good state, and the records up to it; the start if there is none.

        `record` is one of the shape of the records, of any number of rows.
        """
        records: list[PyTree] = []
        while (found := self._read(f"record-{len(records):06d}", record, rows=True)) is not None:
            records.append(found)
        for part in range(len(records) - 1, -1, -1):
            if (loaded := self._read(f"state-{part:06d}", state)) is not None:
                return loaded, records[: part + 1]
        return state, []

    def save(self, part: int, state: PyTree, records: PyTree) -> None:
        """Write what this part recorded, then where it ended; only the last two states stay."""
        self._write(f"record-{part:06d}", records)
        self._write(f"state-{part:06d}", state)
        (self.folder / f"state-{part - 2:06d}").unlink(missing_ok=True)

    def _write(self, name: str, tree: PyTree) -> None:
        file = io.BytesIO()
        np.save(file, len(jax.tree.leaves(tree)[0]) if name.startswith("record") else 0)
        eqx.tree_serialise_leaves(file, jax.tree.map(_plain, tree))
        write_whole(self.folder / name, self._checksum(file.getvalue()) + file.getvalue())

    def _read(self, name: str, like: PyTree, rows: bool = False) -> PyTree | None:
        """The arrays of a file, bit for bit; None where it is missing, or damaged (a warning)."""
        if not (self.folder / name).exists():
            return None
        content = (self.folder / name).read_bytes()
        if content[:32] != self._checksum(content[32:]):
            warn_user(f"checkpoint: {name} is damaged; the run goes on from before it")
            return None
        file = io.BytesIO(content[32:])
        count = int(np.load(file))
        shape = lambda leaf: (count, *leaf.shape[1:]) if rows else leaf.shape
        plain = jax.tree.map(lambda leaf: jax.eval_shape(_plain, leaf), like)
        plain = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(shape(leaf), leaf.dtype), plain)
        arrays = eqx.tree_deserialise_leaves(file, plain)
        return jax.tree.map(_like, arrays, like)

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self._mark + content).digest()


def _plain(leaf: PyTree) -> PyTree:
    """An array that can be written: random keys as their numbers."""
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def _like(array: PyTree, leaf: PyTree) -> PyTree:
    """An array that was read as what was written."""
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf)) if is_key else array


def _told(value: object) -> Any:
    """A setting as JSON: numbers and words as they are, arrays by a digest, functions by a word."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _told(each) for name, each in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(_plain(value))
        return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()
    if isinstance(value, Network):
        return network_described(value)
    if (update := getattr(value, "update", None)) is not None:
        return described(update)
    return "a function, which is not compared"


def _differences(path: Path, mark: bytes) -> list[str]:
    """In what the run of a folder differs from this one."""
    try:
        theirs, ours = json.loads(path.read_bytes()), json.loads(mark)
        return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    except (OSError, ValueError, TypeError, AttributeError):
        return ["run.json, which cannot be read"]
