"""Runs that survive being killed: what is needed to go on, written as the run goes.

A folder holds `run.json`: the settings, and digests of weights and data, so that no other run goes
on from here; functions are not compared. For every part of the run `record-k` is what was recorded
in it, and `state-k` where it ended. Every file begins with a checksum of itself and `run.json`.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import final

import jax
import numpy as np
from jaxtyping import PyTree

from neuralrace.checks import kind_of, writable_folder, write_whole
from neuralrace.errors import listed, require, warn_user
from neuralrace.trajectory.metadata import versions


@final
class Checkpoints:
    """The checkpoints of one run in one folder; `run` has what decides its numbers."""

    def __init__(self, folder: Path, every: int, **run: object) -> None:
        self.folder, self.every = writable_folder(folder, "checkpoint"), every
        for path in self.folder.glob(".*.part"):
            path.unlink()
        here = {"versions": versions(), "device": jax.devices()[0].device_kind, "every": every}
        self._mark = json.dumps(run | here, indent=1, sort_keys=True, default=_as_json).encode()
        path = self.folder / "run.json"
        if not path.exists() and not any(self.folder.glob("record-*")):
            write_whole(path, self._mark)
        try:
            theirs, ours = json.loads(path.read_bytes()), json.loads(self._mark)
            differ = [name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)]
        except (OSError, ValueError):
            differ = ["run.json, which cannot be read"]
        require(
            not differ,
            f"the checkpoints in {str(self.folder)!r} are not of this run",
            got=f"those of a run that differs in {listed(differ)}",
            wanted="checkpoints of the same network, weights, data and settings, or none",
            fix="choose another folder, or delete this one to begin anew",
        )

    def load(self, state: PyTree, record: PyTree) -> tuple[PyTree, list[PyTree]]:
        """The last good state, and the records up to it; the start if there is none."""
        records: list[PyTree] = []
        while (part := self._read(f"record-{len(records):06d}", record)) is not None:
            records.append(part)
        for part in range(len(records) - 1, -1, -1):
            if (loaded := self._read(f"state-{part:06d}", state)) is not None:
                return loaded, records[: part + 1]
        return state, []

    def save(self, part: int, state: PyTree, records: PyTree) -> None:
        """Write what this part recorded, then where it ended; only the last two states stay."""
        for name, tree in (("record", records), ("state", state)):
            numbers = (x if kind_of(x) else jax.random.key_data(x) for x in jax.tree.leaves(tree))
            np.savez(file := io.BytesIO(), *numbers)
            content = self._checksum(file.getvalue()) + file.getvalue()
            write_whole(self.folder / f"{name}-{part:06d}", content)
        (self.folder / f"state-{part - 2:06d}").unlink(missing_ok=True)

    def _read(self, name: str, like: PyTree) -> PyTree | None:
        """The arrays of a file, bit for bit; None where it is missing, or damaged (a warning)."""
        path = self.folder / name
        content = path.read_bytes() if path.exists() else b""
        if content[:32] == self._checksum(content[32:]):
            leaves, structure = jax.tree.flatten(like)
            with np.load(io.BytesIO(content[32:])) as file:
                return jax.tree.unflatten(structure, map(_as_it_was, file.values(), leaves))
        if content:
            warn_user(f"checkpoint: {name} is damaged; the run goes on from before it")
        return None

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self._mark + content).digest()


def _as_it_was(array: np.ndarray, leaf: PyTree) -> PyTree:
    """An array that was read as what was written, such as a random key or bfloat16."""
    if not kind_of(leaf):
        return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=jax.random.key_impl(leaf))
    return array.view(leaf.dtype) if array.dtype.kind == "V" else array  # bfloat16 is read as bytes


def _as_json(value: object) -> object:
    """What JSON has no word for: arrays by a digest, functions by a word."""
    if not isinstance(value, np.ndarray | np.generic | jax.Array):
        return "a function, which is not compared"
    array = np.asarray(value)
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()
