"""Claims about wrong calls: each raises the package's own error, which names the argument.

The calls are those of the examples that docstrings have. In each call one argument is replaced by
something that is seldom right: another kind of thing, another shape, ragged or masked or complex
numbers, a name that is not there. It must either make sense and succeed, or raise
`NeuralRaceError`.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import functools
import importlib
import inspect
import io
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import EnumType
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, claim

SECTION = "Wrong calls"
TOP = "interop"

FULL = 5000
"""The number of calls at full size."""

SMALL = 300
"""The number of calls in the tests."""

ROOMS = (
    *("architecture", "dataset", "tasks", "losses", "gdln", "relu", "statistics", "compression"),
    *("trajectory", "dynamics", "analysis", "reduction", "linear", "reln", "contests"),
    *("explanation", "behaviour", "interop", "sweeps", "study"),
)
"""The rooms whose examples are run, from the bottom up; the explorer's would start a server."""

QUICK = ("architecture", "dataset", "tasks", "losses", "linear")
"""Rooms whose examples run in seconds."""


@dataclass(frozen=True)
class Call:
    """A function with the arguments that an example gives it."""

    name: str
    function: Callable[..., Any]
    arguments: inspect.BoundArguments


# ---- calls of examples --------------------------------------------------------------------------


class _Watched(ast.NodeTransformer):
    """Every call f(…) becomes _made(f, …)."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "vars"):
            return node
        watched = ast.Call(ast.Name("_made", ast.Load()), [node.func, *node.args], node.keywords)
        return ast.copy_location(watched, node)


def public_names(rooms: tuple[str, ...]) -> dict[str, Any]:
    """The public functions and classes of rooms, and the public methods of these classes."""
    found = {}
    for room in rooms:
        module = importlib.import_module(f"neuralrace.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, EnumType):  # whose members are named
                continue
            if callable(value) and str(getattr(value, "__module__", "")).startswith("neuralrace"):
                found[value.__qualname__] = value
                members = vars(value).items() if isinstance(value, type) else ()
                for member, method in members:
                    method = getattr(method, "__func__", method)
                    if inspect.isfunction(method) and not member.startswith("_"):
                        found[method.__qualname__] = method
    return found


@functools.cache
def example_calls(rooms: tuple[str, ...]) -> tuple[Call, ...]:
    """The first call of every public name in the examples of docstrings."""
    names, calls = public_names(rooms), {}

    def made(function: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(function, "__qualname__", "")
        if name in names and name not in calls:
            with contextlib.suppress(TypeError, ValueError):
                bound = inspect.signature(function).bind(*args, **kwargs)
                leaves = jax.tree.leaves((args, kwargs))
                if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
                    calls[name] = Call(name, function, bound)
        return function(*args, **kwargs)

    for value in names.values():
        space = {"_made": made, "__name__": "evidence.own.calls"}
        for example in doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""):
            tree = ast.fix_missing_locations(_Watched().visit(ast.parse(example.source)))
            expected = nr.NeuralRaceError if example.exc_msg else ()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(expected):
                exec(compile(tree, value.__qualname__, "exec"), space)
        _close_figures()
    return tuple(calls.values())


# ---- wrong values -------------------------------------------------------------------------------


class UserError(Exception):
    """An error raised by a user's function; it may surface unchanged."""


def _raises(*_: Any, **__: Any) -> Any:
    raise UserError("of the user")


TRACER, GENERATOR = object(), object()
"""Stand for an array that JAX is tracing, and for a generator, which can be read only once."""


@functools.cache
def bad_values() -> dict[str, Any]:
    """Values of every kind, by their names in the table of failures."""
    arch = nr.Architecture.chain(2, 2, 2)
    net, data = nr.GDLN(arch), nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 1.0])})
    run = nr.train(net, net.init(0, 0.1), data, learning_rate=0.1, steps=2)
    folder = Path(tempfile.mkdtemp(prefix="calls"))
    file = run.save(folder / "run.nc")
    damaged, text = folder / "damaged.nc", folder / "text.nc"
    damaged.write_bytes(file.read_bytes()[:-400])
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
        "list of text": ["a", "b"],
        "list of None": [None, None],
        "mapping of text": {"x": "a", "y": "b"},
        "mapping with number keys": {1: 2, 2: 3},
        "set": {1, 2},
        "scalar array": np.array(1.0),
        "vector": np.array([1.0, 2.0, 3.0]),
        "rank 4": np.ones((2, 2, 2, 2)),
        "wrong shape": np.ones((3, 5)),
        "empty array": np.empty((0,)),
        "object array": np.array([object(), None]),
        "complex array": np.eye(2) * 1j,
        "masked array": np.ma.masked_array(np.eye(2), np.eye(2) > 0),
        "dates": np.array(["2020-01-01"], "datetime64[D]"),
        "huge array": np.eye(2) * 1e200,
        "nan array": np.eye(2) * np.nan,
        "decreasing": [1.0, 0.0],
        "jax array": jnp.eye(2),
        "tracer": TRACER,
        "dataset": data,
        "architecture": arch,
        "network": net,
        "run": run,
        "key": jax.random.key(0),
        "directory": folder,
        "missing file": folder / "no" / "such.nc",
        "damaged file": damaged,
        "file of text": text,
        "generator": GENERATOR,
        "function": lambda *args, **kwargs: 0.0,
        "raising function": _raises,
    }


def _damaged(value: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """A valid value with something wrong inside, in every way that its kind allows."""
    wrong = bad_values()[kind]
    if isinstance(value, Mapping) and value:
        first = next(iter(value))
        rest = {k: v for k, v in value.items() if k != first}
        yield f"with {kind} inside", {**value, first: wrong}
        yield "with a further key", {**value, "unknown": value[first]}
        yield "with a key of another type", {**rest, 3: value[first]}
        yield "with a key less", rest
    elif isinstance(value, np.ndarray | list | tuple) and getattr(value, "shape", True) != ():
        yield "its first entry", value[0] if len(value) else value
        yield "as text", [str(entry) for entry in value]
        yield f"with {kind} first", [wrong, *list(value)[1:]]
        if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
            yield "twice as long", np.concatenate([value, value])
            yield "with a further axis", value[None]
            yield "complex", value * 1j
            yield "masked", np.ma.masked_array(value, np.ones(value.shape, bool))
            yield "times -1e200", value * -1e200


@dataclass(frozen=True)
class Wrong:
    """A call with one argument replaced."""

    call: Call
    argument: str
    kind: str
    value: Any

    def __str__(self) -> str:
        return f"{self.call.name}({self.argument}={self.kind})"

    def error(self) -> Exception | None:
        """What the call raises; None where it succeeds, or where a user's function failed."""
        bound = self.call.arguments
        given = inspect.BoundArguments(bound.signature, type(bound.arguments)(bound.arguments))

        def made(tracer: Any) -> float:
            stands = {id(TRACER): tracer, id(GENERATOR): iter([1, 2])}
            given.arguments[self.argument] = stands.get(id(self.value), self.value)
            self.call.function(*given.args, **given.kwargs)
            return 0.0

        try:
            with contextlib.redirect_stdout(io.StringIO()):
                jax.eval_shape(made, jnp.eye(2)) if self.value is TRACER else made(None)
        except (MemoryError, UserError):
            return None
        except Exception as error:
            return error
        finally:
            _close_figures()
        return None


def wrong_call(call: Call, rng: np.random.Generator) -> Wrong | None:
    """A call with one of its arguments wrong, or None where it has none."""
    places = [
        name
        for name in call.arguments.arguments
        if name != "self" and call.arguments.signature.parameters[name].kind not in (2, 4)
    ]
    if not places:
        return None
    argument, kinds = places[rng.integers(len(places))], list(bad_values())
    kind = kinds[rng.integers(len(kinds))]
    inside = list(_damaged(call.arguments.arguments[argument], kind)) if rng.random() < 0.3 else []
    if inside:
        kind, value = inside[rng.integers(len(inside))]
        return Wrong(call, argument, kind, value)
    return Wrong(call, argument, kind, bad_values()[kind])


def _close_figures() -> None:
    import matplotlib.pyplot as plt

    plt.close("all")


@functools.cache
def outcomes(number: int, rooms: tuple[str, ...]) -> tuple[tuple[Wrong, Exception | None], ...]:
    """This number of seeded wrong calls with what they raised; every call about equally often."""
    rng = np.random.default_rng(0)
    found = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        with contextlib.chdir(folder):  # names of files to write
            calls = example_calls(rooms)
            jaxtyping.config.update("jaxtyping_disable", True)  # as users run it, not as the tests
            try:
                while len(found) < number:
                    wrong = wrong_call(calls[len(found) % len(calls)], rng)
                    found.append((wrong, None if wrong is None else wrong.error()))
            finally:
                jaxtyping.config.update("jaxtyping_disable", False)
    return tuple(pair for pair in found if pair[0] is not None)


def _some(found: list[tuple[Wrong, Exception]]) -> str:
    return "; ".join(f"{wrong}: {error!r:.80}" for wrong, error in found[:5])


@claim(
    "calls/wrong",
    SECTION,
    f"calls of the docstrings' examples with one wrong argument, {FULL} of them, that raise "
    "something else than NeuralRaceError",
    "none",
)
def wrong_calls(full: bool) -> Measurement:
    found = outcomes(FULL, ROOMS) if full else outcomes(SMALL, QUICK)
    other = [(w, e) for w, e in found if e is not None and not isinstance(e, nr.NeuralRaceError)]
    other = [(w, e) for w, e in other if (w.call.name, type(e)) != ("load", FileNotFoundError)]
    kinds = Counter(type(error).__name__ for _, error in other)
    return Measurement(f"{len(other)} {dict(kinds) or ''}".strip(), not other, _some(other))


@claim(
    "calls/named",
    SECTION,
    "of the errors of these wrong calls, the share that names the argument as the signature does",
    "≥ 90 %",
)
def named_arguments(full: bool) -> Measurement:
    found = outcomes(FULL, ROOMS) if full else outcomes(SMALL, QUICK)
    errors = [(wrong, error) for wrong, error in found if isinstance(error, nr.NeuralRaceError)]
    odd = [(w, e) for w, e in errors if not re.search(rf"(?<![^\W_]){w.argument}", str(e))]
    share = 1 - len(odd) / max(1, len(errors))
    return Measurement(f"{share:.1%} of {len(errors)}", share >= 0.9, _some(odd))


@claim(
    "calls/valid",
    SECTION,
    "public functions that the example of their docstring neither calls nor passes on",
    "none",
)
def valid(full: bool) -> Measurement:
    rooms = ROOMS if full else QUICK
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        with contextlib.chdir(folder):
            called = {call.name for call in example_calls(rooms)}
    missing = [
        name
        for name, value in public_names(rooms).items()
        if inspect.isfunction(value) and "." not in name and name not in called
        if inspect.signature(value).parameters and f".{name}" not in (value.__doc__ or "")
    ]
    return Measurement(", ".join(sorted(missing)) or "none", not missing)
