"""What a value is, as a digest that is equal in every process: arrays, functions, containers."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, final

import jax
import numpy as np


def fingerprint(value: Any) -> str:
    """A digest of a value's content, equal in every process: arrays, functions, containers.

    A function is known by its instructions, its defaults, what it closes over, the object that it
    is a method of, and the data and functions of its module that it names, also in functions
    inside it. Of other objects the type and the fields count.
    """
    digest = hashlib.sha256()
    for part in _content(value, set()):
        digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()


def _content(value: Any, seen: set[int]) -> Iterator[bytes]:
    if isinstance(value, str | bytes | int | float | complex | None):
        yield f"{type(value).__name__} {value!r}".encode()
        return
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array: Any = jax.random.key_data(value) if is_key(value) else value  # type: ignore
        yield f"{array.dtype}{array.shape}".encode()
        yield np.asarray(array).tobytes()
        return
    if id(value) in seen:
        yield b"again"
        return
    seen = seen | {id(value)}
    if isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield repr(key).encode()
            yield from _content(value[key], seen)
    elif isinstance(value, frozenset | set):  # whose order differs from process to process
        for entry in sorted(value, key=repr):
            yield from _content(entry, seen)
    elif isinstance(value, tuple | list):
        yield f"{type(value).__name__} {len(value)}".encode()
        for entry in value:
            yield from _content(entry, seen)
    elif isinstance(value, types.MethodType):
        yield from _content((value.__self__, value.__func__), seen)
    elif isinstance(value, functools.partial):
        yield from _content((value.func, value.args, value.keywords), seen)
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield repr(value.co_names).encode()
        yield from _content(value.co_consts, seen)
    elif callable(value) and hasattr(function := inspect.unwrap(value), "__code__"):
        yield from _function(function, seen)
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        own = (
            {field.name: getattr(value, field.name) for field in fields(value)}
            if is_dataclass(value) and not isinstance(value, type)
            else getattr(value, "__dict__", {})
        )
        yield from _content(own, seen)


def _function(function: Any, seen: set[int]) -> Iterator[bytes]:
    yield function.__qualname__.encode()
    yield from _content(function.__code__, seen)
    yield from _content((function.__defaults__, function.__kwdefaults__), seen)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name.encode()
        try:
            held = cell.cell_contents
        except ValueError:  # not yet filled in
            continue
        yield from _content(held, seen)
    for name in sorted(_names(function.__code__)):
        named = function.__globals__.get(name)
        if _is_seen(named, function.__module__):
            yield name.encode()
            yield from _content(named, seen)


def _names(code: types.CodeType) -> set[str]:
    """The names that a function and those inside it look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _is_seen(named: Any, module: str) -> bool:
    """Whether what a function names counts: data, and functions of its own module."""
    if named is None or isinstance(named, types.ModuleType | type):
        return False
    if isinstance(named, str | int | float | np.ndarray | jax.Array | Mapping | tuple | list | set):
        return True
    if callable(named):
        return getattr(inspect.unwrap(named), "__module__", None) == module
    return is_dataclass(named)


def is_key(value: Any) -> bool:
    """Whether an array holds random keys."""
    return isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)


@final
class Known:
    """A value that is equal to another with the same content, so that nothing is compiled anew.

    Functions are otherwise equal only if they are one object.
    """

    def __init__(self, value: Any) -> None:
        self.value, self.digest = value, fingerprint(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def described(transformation: Any) -> str:
    """What an optax transformation is made of, in words: its parts with their numbers.

    ```python
    >>> import optax
    >>> from neuralrace.dynamics.fingerprint import described
    >>> described(optax.sgd(0.1, momentum=0.9))
    'trace(decay=0.9, nesterov=False), scale(step_size=-0.1)'

    ```
    """
    update = inspect.unwrap(transformation.update)
    cells = inspect.getclosurevars(update).nonlocals if hasattr(update, "__code__") else {}
    parts = cells.get("update_fns")
    if parts:
        told = [described(types.SimpleNamespace(update=part)) for part in parts]
        return ", ".join(text for text in told if text != "identity()")
    inner = cells.get("tx", cells.get("inner", cells.get("transform")))
    if hasattr(inner, "update"):
        return described(inner)
    name = getattr(update, "__qualname__", type(update).__name__).partition(".<locals>")[0]
    numbers = {
        key: float(value) if isinstance(value, float) else value
        for key, value in sorted(cells.items())
        if isinstance(value, bool | int | float)
    }
    return f"{name}({', '.join(f'{key}={value}' for key, value in numbers.items())})"
