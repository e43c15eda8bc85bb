"""When two functions of a user count as one, so that a second run compiles nothing."""

from __future__ import annotations

import inspect
import types
from typing import Any, Generic, TypeVar, final

import jax
import numpy as np

V = TypeVar("V")

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.number, np.dtype)
"""Values that are compared by what they are."""

STABLE = ("builtins", "jax", "jaxlib", "numpy", "math", "optax", "equinox", "neuralrace")
"""Packages whose functions do not change while a program runs."""

NAMED = (types.ModuleType, types.BuiltinFunctionType, type, np.ufunc, type(jax.jit(abs)))
"""What a function may name of a stable package, besides functions."""


@final
class ByCode(Generic[V]):
    """A function or an optimizer as a static value under `jit`.

    Two are equal if they are the same object, or have the same code and the same plain numbers and
    functions: those they close over, and those of their module that they name. Nothing else is
    inspected: a function that uses an array, an object or a module of one's own equals itself
    alone, whatever happens to these. If the value can be called, so can this.
    """

    def __init__(self, value: V) -> None:
        self.value = value
        self.__name__ = getattr(value, "__name__", type(value).__name__)
        try:
            self._key = _key(value, ())
        except _UnreadableError:
            self._key = None

    def __call__(self, *arguments: Any) -> Any:
        assert callable(self.value)
        return self.value(*arguments)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByCode):
            return False
        return self.value is other.value if self._key is None else self._key == other._key

    def __hash__(self) -> int:
        return hash(id(self.value) if self._key is None else self._key)


class _UnreadableError(Exception):
    """A value that equals itself alone."""


def _key(value: object, inside: tuple[object, ...]) -> Any:
    """What decides whether two values are equal; `inside` are the functions being read."""
    if isinstance(value, PLAIN):
        return type(value), repr(value)
    if isinstance(value, tuple | list):
        return type(value), tuple(_key(each, inside) for each in value)
    if isinstance(value, dict):
        return dict, tuple((name, _key(each, inside)) for name, each in value.items())
    if isinstance(value, NAMED) and _is_stable(value):
        return value
    if not isinstance(value, types.FunctionType):
        raise _UnreadableError
    if value in inside:
        return inside.index(value)
    inside = (*inside, value)
    try:
        named = [] if _is_stable(value) else _named(value)
        parts = (_held(value), named, value.__defaults__, value.__kwdefaults__)
        return value.__code__, _key(parts, inside)
    except _UnreadableError:
        return value


def _is_stable(value: object) -> bool:
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return str(name).partition(".")[0] in STABLE


def _named(function: types.FunctionType) -> list[tuple[str, object]]:
    """What a function names of its module."""
    names, codes = set[str](), [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    return [(name, function.__globals__[name]) for name in sorted(names & {*function.__globals__})]


def leaves(value: object) -> list[object]:
    """The numbers and functions that an optimizer or a function closes over, at any depth."""
    found: list[object] = []
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, tuple | list):
            left += each
        elif isinstance(each, PLAIN):
            found.append(each)
        elif isinstance(each, types.FunctionType) and each not in found:
            found.append(each)
            left += _held(each)
    return found


def _held(function: types.FunctionType) -> list[object]:
    """What a function closes over, as far as that is already there."""
    empty = types.CellType()
    return [cell.cell_contents for cell in function.__closure__ or () if cell != empty]


def described(update: object) -> str:
    """What an optimizer's `update` is made of, in words: its parts with their numbers.

    ```python
    >>> import optax
    >>> from neuralrace.dynamics.functions import described
    >>> described(optax.sgd(0.1, momentum=0.9).update)
    'trace(decay=0.9, nesterov=False), scale(step_size=-0.1)'

    ```
    """
    if not isinstance(update, types.FunctionType):
        return type(update).__name__
    held = inspect.getclosurevars(update).nonlocals
    parts = [getattr(value, "update", value) for value in held.values()]
    parts = [p for each in parts for p in (each if isinstance(each, tuple) else (each,))]
    inner = [described(part) for part in parts if isinstance(part, types.FunctionType)]
    if inner:
        return ", ".join(text for text in inner if text != "identity()")
    name = update.__qualname__.partition(".<locals>")[0]
    numbers = {k: v for k, v in sorted(held.items()) if isinstance(v, bool | int | float)}
    return f"{name}({', '.join(f'{key}={value}' for key, value in numbers.items())})"
