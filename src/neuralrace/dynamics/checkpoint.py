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
from pathlib import Path
from typing import final

import jax
import numpy as np
from jaxtyping import PyTree

from neuralrace.dynamics.functions import described
from neuralrace.errors import NeuralRaceError, listed, warn_user
from neuralrace.gdln import Network
from neuralrace.trajectory.files import network_described, write_whole
from neuralrace.trajectory.metadata import versions


@final
class Checkpoints:
    """The checkpoints of one run in one folder; `run` has what decides its numbers."""

    def __init__(self, folder: str | os.PathLike[str], every: int, **run: object) -> None:
        try:
            self.folder, self.every = Path(folder), every
            self.folder.mkdir(parents=True, exist_ok=True)
        except (TypeError, OSError) as error:
            raise NeuralRaceError(
                "checkpoint must be a folder that can be written",
                got=f"{folder!r}: {error}",
                wanted="the path of a folder, which is made if it is missing",
                fix="for example checkpoint='runs/first'",
            ) from error
        for path in self.folder.glob(".*.part"):
            path.unlink()
        here = {"versions": versions(), "device": jax.devices()[0].device_kind, "every": every}
        self._mark = json.dumps(run | here, indent=1, sort_keys=True, default=_as_json).encode()
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
            file = io.BytesIO()
            np.savez(file, *(np.asarray(_plain(leaf)) for leaf in jax.tree.leaves(tree)))
            content = self._checksum(file.getvalue()) + file.getvalue()
            write_whole(self.folder / f"{name}-{part:06d}", content)
        (self.folder / f"state-{part - 2:06d}").unlink(missing_ok=True)

    def _read(self, name: str, like: PyTree) -> PyTree | None:
        """The arrays of a file, bit for bit; None where it is missing, or damaged (a warning)."""
        if not (self.folder / name).exists():
            return None
        content = (self.folder / name).read_bytes()
        if content[:32] != self._checksum(content[32:]):
            warn_user(f"checkpoint: {name} is damaged; the run goes on from before it")
            return None
        leaves, structure = jax.tree.flatten(like)
        with np.load(io.BytesIO(content[32:])) as file:
            arrays = [_like(file[f"arr_{i}"], leaf) for i, leaf in enumerate(leaves)]
        return jax.tree.unflatten(structure, arrays)

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self._mark + content).digest()


def _plain(leaf: PyTree) -> PyTree:
    """An array that can be written: random keys as their numbers."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _like(array: np.ndarray, leaf: PyTree) -> PyTree:
    """An array that was read as what was written."""
    if _is_key(leaf):
        return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=jax.random.key_impl(leaf))
    return array.view(leaf.dtype) if array.dtype.kind == "V" else array  # such as bfloat16


def _is_key(leaf: PyTree) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _as_json(value: object) -> object:
    """What JSON has no word for: arrays by a digest, a network as a graph, functions by a word."""
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(_plain(value))
        return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()
    if isinstance(value, Network):
        return network_described(value)
    update = getattr(value, "update", None)
    return "a function, which is not compared" if update is None else described(update)


def _differences(path: Path, mark: bytes) -> list[str]:
    """In what the run of a folder differs from this one."""
    try:
        theirs, ours = json.loads(path.read_bytes()), json.loads(mark)
        return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    except (OSError, ValueError, TypeError, AttributeError):
        return ["run.json, which cannot be read"]
