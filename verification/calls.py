"""Claims about wrong calls: each raises the package's own error.

Every public call is made with one or two of its arguments replaced by something that is seldom
right: another type, another shape, ragged or masked or complex numbers, a damaged file. It must
either make sense and succeed, or raise `NeuralRaceError`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import shutil
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np

import neuralrace as nr
from verification.claim import Measurement, claim
from verification.valid_calls import RESULTS, Call, things, valid_calls

SECTION = "Wrong calls"

FULL = 5000
"""The number of calls at full size."""

SMALL = 300
"""The number of calls in the tests."""

TWO = 0.15
"""The share of calls in which two arguments are wrong."""


class UserError(Exception):
    """An error raised by a user's function; it may surface unchanged.

    Used as a value, it is a class that raises when it is called.
    """

    def __init__(self, *given: Any) -> None:
        if given != ("of the user",):
            raise UserError("of the user")
        super().__init__(*given)


def _raises(*_: Any, **__: Any) -> Any:
    raise UserError("of the user")


class Marker:
    """A placeholder for a value that is made afresh for every call."""


TRACER = Marker()
"""Stands for an array that JAX is tracing."""

GENERATOR = Marker()
"""Stands for a generator, which can be read only once."""


@functools.cache
def bad_values() -> dict[str, Any]:
    """Values of every kind, by their names in the table of failures."""
    t = things()
    damaged = t.folder / "damaged.nc"
    damaged.write_bytes(Path(t.file).read_bytes()[:-400])
    text = t.folder / "text.nc"
    text.write_text("no run\n")
    return {
        "None": None,
        "True": True,
        "-1": -1,
        "0": 0,
        "2.5": 2.5,
        "nan": float("nan"),
        "inf": float("inf"),
        "1e308": 1e308,
        "1e-320": 1e-320,
        "complex": 1 + 2j,
        "text": "text",
        "empty text": "",
        "bytes": b"",
        "object": object(),
        "empty list": [],
        "empty mapping": {},
        "ragged": [[1.0], [1.0, 2.0]],
        "ragged numbers": [1.0, [2.0, 3.0]],
        "list of text": ["a", "b"],
        "list of None": [None, None],
        "mapping of text": {"x": "a", "y": "b"},
        "mapping with number keys": {1: 2, 2: 3},
        "mapping with mixed keys": {"x": 1, 2: 3},
        "set": {1, 2},
        "scalar array": np.array(1.0),
        "vector": np.array([1.0, 2.0, 3.0]),
        "rank 4": np.ones((2, 2, 2, 2)),
        "wrong shape": np.ones((3, 5)),
        "empty array": np.empty((0,)),
        "empty matrix": np.empty((0, 2)),
        "object array": np.array([object(), None]),
        "text array": np.array(["a", "b"]),
        "complex array": np.eye(2) * 1j,
        "masked array": np.ma.masked_array(np.eye(2), np.eye(2) > 0),
        "dates": np.array(["2020-01-01"], "datetime64[D]"),
        "huge array": np.eye(2) * 1e200,
        "nan array": np.eye(2) * np.nan,
        "decreasing": [1.0, 0.0],
        "jax array": jnp.eye(2),
        "tracer": TRACER,
        "dataset": t.data,
        "architecture": t.arch,
        "network": t.net,
        "run": t.run,
        "key": t.key,
        "directory": t.folder,
        "missing file": t.folder / "no" / "such.nc",
        "damaged file": damaged,
        "file of text": text,
        "generator": GENERATOR,
        "function": lambda *given, **named: 0.0,
        "raising function": _raises,
        "class": UserError,
    }


def _inside(value: Any, rng: np.random.Generator) -> tuple[str, Any] | None:
    """A valid value with something wrong inside, if it is a container."""
    bad = bad_values()
    kind = list(bad)[rng.integers(len(bad))]
    wrong = bad[kind]
    wrong = iter([1, 2]) if isinstance(wrong, Marker) else wrong
    if isinstance(value, Mapping) and value:
        first = next(iter(value))
        rest = {k: v for k, v in value.items() if k != first}
        ways = {
            f"with {kind} inside": {**value, first: wrong},
            "with a further key": {**value, "unknown": value[first]},
            "with a key of another type": {**rest, 3: value[first]},
            "with a key less": rest,
            "with another key": {**rest, "unknown": value[first]},
        }
    elif isinstance(value, np.ndarray | list | tuple) and np.ndim(np.asarray(value, object)):
        array = np.asarray(value, None if isinstance(value, np.ndarray) else _kind(value))
        ways = {
            "twice as long": np.concatenate([array, array]),
            "with a further axis": array[None],
            "its first entry": value[0],
            "complex": array * 1j if array.dtype.kind in "iuf" else list(value),
            "masked": np.ma.masked_array(array, np.ones(array.shape, bool)),
            "as text": [str(entry) for entry in value],
            "negative": -array if array.dtype.kind in "iuf" else list(value),
            "times 1e200": array * 1e200 if array.dtype.kind in "iuf" else list(value),
            f"with {kind} first": [wrong, *list(value)[1:]],
        }
    else:
        return None
    name = list(ways)[rng.integers(len(ways))]
    return name, ways[name]


def _kind(values: Any) -> type | None:
    """The dtype with which a list can become an array: object unless it is a list of numbers."""
    return None if all(isinstance(v, int | float) for v in values) else object


def wrong_call(call: Call, rng: np.random.Generator) -> tuple[str, tuple, dict[str, Any]]:
    """The arguments of a call with one or two of them wrong, and a description of the change."""
    places: list[int | str] = [*range(len(call.positional)), *call.named]
    number = min(len(places), 2 if rng.random() < TWO else 1)
    positional, named, told = list(call.positional), dict(call.named), []
    for index in rng.choice(len(places), number, replace=False):
        place = places[int(index)]
        held: Any = positional if isinstance(place, int) else named
        changed = _inside(held[place], rng) if rng.random() < 0.3 else None
        if changed is None:
            bad = bad_values()
            kind = list(bad)[rng.integers(len(bad))]
            changed = kind, bad[kind]
        kind, held[place] = changed
        told.append(f"{place}={kind}")
    return f"{call.name}({', '.join(told)})", tuple(positional), named


def refused(call: Call, positional: tuple, named: dict[str, Any]) -> BaseException | None:
    """The error of a call, if it is not one that the call may raise."""

    def made(tracer: Any) -> float:
        def filled(value: Any) -> Any:
            return value if not isinstance(value, Marker) else stands_for(value)

        stands_for = lambda marker: tracer if marker is TRACER else iter([1, 2])
        call.function(*map(filled, positional), **{k: filled(v) for k, v in named.items()})
        return 0.0

    try:
        if any(v is TRACER for v in (*positional, *named.values())):
            jax.eval_shape(made, jnp.eye(2))
        else:
            made(None)
    except (nr.NeuralRaceError, MemoryError, UserError):
        return None
    except FileNotFoundError as error:  # the documented error of nr.load for a missing file
        return None if call.name == "load" else error
    except Exception as error:
        return error
    finally:
        _close_figures()
    return None


def _close_figures() -> None:
    import matplotlib.pyplot as plt

    plt.close("all")


def failures(number: int, seed: int = 0) -> dict[str, BaseException]:
    """The calls, of this number of seeded ones, that raised something other than `NeuralRaceError`.

    Every public call is made about equally often.
    """
    rng = np.random.default_rng(seed)
    calls = valid_calls()
    found: dict[str, BaseException] = {}
    with warnings.catch_warnings(), contextlib.chdir(things().folder):  # names of files to write
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        jaxtyping.config.update("jaxtyping_disable", True)  # as users run it, not as the tests do
        try:
            order = [rng.permutation(len(calls)) for _ in range(-(-number // len(calls)))]
            for index in np.concatenate(order)[:number]:
                told, positional, named = wrong_call(calls[index], rng)
                error = refused(calls[index], positional, named)
                if error is not None:
                    found[told] = error
        finally:
            logging.disable(logging.NOTSET)
            jaxtyping.config.update("jaxtyping_disable", False)
    return found


@claim(
    "calls/wrong",
    SECTION,
    f"public calls with one or two wrong arguments, {FULL} of them, that raise something else "
    "than NeuralRaceError",
    "none",
)
def wrong_calls(full: bool) -> Measurement:
    found = failures(FULL if full else SMALL)
    kinds = Counter(type(error).__name__ for error in found.values())
    some = "; ".join(f"{told}: {error!r:.80}" for told, error in list(found.items())[:5])
    return Measurement(f"{len(found)} {dict(kinds) or ''}".strip(), not found, some)


@claim(
    "calls/valid",
    SECTION,
    "public functions, constructors and methods without a valid call in the table, and valid calls "
    "that fail (at full size alone)",
    "none",
)
def valid(full: bool) -> Measurement:
    for checkpoint in things().folder.glob("*.ckpt"):  # wrong calls that turned out to be valid
        shutil.rmtree(checkpoint) if checkpoint.is_dir() else checkpoint.unlink()
    failed = [call.name for call in valid_calls() if not succeeds(call)] if full else []
    found = sorted(uncalled()) + failed
    return Measurement(", ".join(found) or "none", not found)


def succeeds(call: Call) -> bool:
    """Whether a call raises no error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call.function(*call.positional, **call.named)
        except Exception:
            return False
        finally:
            _close_figures()
    return True


def uncalled() -> set[str]:
    """The public names without a valid call in the table."""
    rooms = ("analysis", "contests", "linear", "reln", "study", "sweeps", "tasks")
    names = {name for name in nr.__all__ if not inspect.ismodule(getattr(nr, name))}
    for room in rooms:
        public = getattr(nr, room)
        exported = getattr(public, "__all__", None) or vars(public)
        for name in exported:
            value = getattr(public, name)
            home = str(getattr(value, "__module__", ""))
            if callable(value) and not name.startswith("_") and home.startswith("neuralrace"):
                names.add(f"{room}.{name}")
    called = {call.name.partition(" ")[0] for call in valid_calls()}
    elsewhere = {f"{room}.{name}" for room in rooms for name in nr.__all__}
    return names - called - RESULTS - elsewhere
