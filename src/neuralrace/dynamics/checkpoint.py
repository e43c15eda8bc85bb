"""Runs that survive being killed: what is needed to go on, written as the run goes.

A folder holds `run.json`, which says whose checkpoints these are; `start`, what a compressed run
begins from; and for every part of the run `record-k`, what was recorded in it, and `state-k`, where
it ended. Every file is written whole or not at all and carries its own checksum.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import final

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from neuralrace.dynamics.fingerprint import UNKNOWN, fingerprint, is_key
from neuralrace.dynamics.setup import Problem
from neuralrace.dynamics.systems import View
from neuralrace.errors import NeuralRaceError, listed, warn_user
from neuralrace.trajectory.provenance import versions

DIGEST = 64
"""Bytes of the checksum that every file begins with."""

KEPT = 2
"""States that are kept: should the last be damaged, the one before it serves."""


@final
class Checkpoints:
    """The checkpoints of one run in one folder; see the module's text for what is in it."""

    def __init__(self, folder: str | os.PathLike[str], run: dict[str, object], every: int) -> None:
        self.folder, self.every = _made(folder), every
        self._check_run(run)
        self._mark = (self.folder / "run.json").read_bytes()  # part of every file's checksum

    def _check_run(self, run: dict[str, object]) -> None:
        """Refuse the checkpoints of another run; mark a new folder as this run's."""
        path = self.folder / "run.json"
        files = list(self.folder.iterdir())
        if not path.exists():
            if any(path.name.startswith(("start", "state-", "record-")) for path in files):
                raise self._refused("checkpoints without the run.json that says whose they are")
            unread = [name for name, value in run.items() if value == UNKNOWN]
            if unread:
                _warn(
                    f"{listed(unread)} cannot be read completely (a lock, a file, a generator?). "
                    "The run cannot be continued from this folder, because no later call can show "
                    "that it is the same"
                )
            _write(path, json.dumps(run, indent=1, ensure_ascii=False).encode())
            return
        try:
            theirs = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise self._refused("a run.json that cannot be read") from error
        ours = json.loads(json.dumps(run))
        names = {*ours, *theirs}
        differ = sorted(name for name in names if ours.get(name) != theirs.get(name))
        if differ:
            raise self._refused(f"those of a run that differs in {listed(differ)}")
        unread = sorted(name for name in names if ours.get(name) == UNKNOWN)
        if unread:
            raise self._refused(f"those of a run of which {listed(unread)} is unknown")

    def _refused(self, got: str) -> NeuralRaceError:
        return NeuralRaceError(
            f"the checkpoints in {str(self.folder)!r} are not of this run",
            got=got,
            wanted="checkpoints of the same network, weights, data and settings, or none",
            fix="choose another folder, or delete this one to begin anew",
        )

    def begin(self, problem: Problem) -> Problem:
        """The problem as the run began with it: a restart uses the same bits of a compression."""
        if problem.compression == "none":
            return problem
        path = self.folder / "start"
        system = problem.system
        made = (problem.weights, system.data, system.view.lift)
        if not path.exists():
            _write(path, self._packed(made))
        try:
            weights, data, lift = jax.tree.map(jax.numpy.asarray, self._unpacked(path, made))
        except _DamagedError as error:
            raise self._refused(f"a compressed start that is damaged ({error})") from error
        view = View(lift, system.view.data)
        whole = eqx.tree_at(lambda s: (s.data, s.view), system, (data, view))
        return replace(problem, system=whole, weights=weights)

    def load(self, state: PyTree, shapes: tuple[PyTree, PyTree]) -> tuple[PyTree, list[PyTree]]:
        """The last good state, and what was recorded up to it; the start if there is none."""
        recorded: list[PyTree] = []
        while (path := self.folder / f"record-{len(recorded):06d}").exists():
            try:
                recorded.append(self._unpacked(path, shapes[1], rows=True))
            except _DamagedError as error:
                _warn(f"{path.name} is damaged ({error})")
                break
        found = (re.fullmatch(r"state-(\d+)", path.name) for path in self.folder.iterdir())
        states = sorted((int(name[1]) for name in found if name), reverse=True)
        for part in states:
            name = f"state-{part:06d}"
            if part >= len(recorded):
                continue
            try:
                loaded = self._unpacked(self.folder / name, shapes[0])
            except _DamagedError as error:
                _warn(f"{name} is damaged ({error})")
                continue
            if part != states[0]:
                _warn(f"going on from the last good one, {name}")
            return jax.tree.map(jax.numpy.asarray, loaded), recorded[: part + 1]
        if states:
            _warn("no good one is left, beginning anew")
        return state, []

    def save(self, part: int, state: PyTree, recorded: PyTree) -> None:
        """Write what this part recorded, then where it ended; older states go."""
        _write(self.folder / f"record-{part:06d}", self._packed(recorded))
        _write(self.folder / f"state-{part:06d}", self._packed(state))
        (self.folder / f"state-{part - KEPT:06d}").unlink(missing_ok=True)

    def _packed(self, tree: PyTree) -> bytes:
        """The arrays of a pytree as bytes, the checksum first."""
        buffer = io.BytesIO()
        np.savez(buffer, *(np.asarray(_plain(leaf)) for leaf in jax.tree.leaves(tree)))
        content = buffer.getvalue()
        return _digest([self._mark, content]).encode() + content

    def _unpacked(self, path: Path, like: PyTree, rows: bool = False) -> PyTree:
        """The arrays of a file in the shape of `like`, bit for bit as they were written.

        With `rows` they may have another length than `like` has.
        """
        content = path.read_bytes()
        if _digest([self._mark, content[DIGEST:]]).encode() != content[:DIGEST]:
            raise _DamagedError("its checksum is wrong")
        leaves, structure = jax.tree.flatten(like)
        with np.load(io.BytesIO(content[DIGEST:])) as file:
            arrays = [file[name] for name in file]
        skip = 1 if rows else 0
        plain = [_plain(leaf) for leaf in leaves]
        if [a.shape[skip:] for a in arrays] != [leaf.shape[skip:] for leaf in plain]:
            raise _DamagedError("its arrays have other shapes")
        typed = [a.view(leaf.dtype) for a, leaf in zip(arrays, plain, strict=True)]
        typed = [
            jax.random.wrap_key_data(a, impl=jax.random.key_impl(leaf)) if is_key(leaf) else a
            for a, leaf in zip(typed, leaves, strict=True)
        ]
        return jax.tree.unflatten(structure, typed)


def _plain(leaf: PyTree) -> PyTree:
    """An array that can be written: random keys as their numbers."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


class _DamagedError(Exception):
    """A file that is not what was written."""


def _made(folder: PyTree) -> Path:
    try:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
    except (TypeError, OSError) as error:
        raise NeuralRaceError(
            "checkpoint must be a folder that can be written",
            got=f"{folder!r}: {error}",
            wanted="the path of a folder, which is made if it is missing",
            fix="for example checkpoint='runs/first'",
        ) from error
    return path


def _warn(message: str) -> None:
    warn_user(f"checkpoint: {message}")


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside it first, then moved into place."""
    beside = path.with_name(f".{path.name}.part")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


# ---- whose checkpoints these are ---------------------------------------------------------------


def describe(**run: object) -> dict[str, object]:
    """All that decides the bits of a run, by name, so that a difference can be told.

    Numbers and words are kept as they are, everything else as a digest of its content.
    """
    told: dict[str, object] = {
        name: value if isinstance(value, str | int | float | None) else fingerprint(value)
        for name, value in run.items()
    }
    return told | {"versions": versions(), "device": jax.devices()[0].device_kind}


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
