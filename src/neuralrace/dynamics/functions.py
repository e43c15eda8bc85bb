"""When two functions of a user count as one, so that a second run compiles nothing."""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
import types
from typing import Any, Generic, TypeGuard, TypeVar, final

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.checks import is_traced

V = TypeVar("V")

PLAIN = (bool, int, float, complex, str, bytes, type(None))
"""Kinds of values that are compared by what they are, besides those of NumPy."""

STABLE = ("builtins", "jax", "jaxlib", "numpy", "math", "optax", "equinox", "neuralrace")
"""Packages whose functions do not change while a program runs."""

NAMED = (
    *(types.ModuleType, types.BuiltinFunctionType, type, np.ufunc, type(np.sum)),
    *(jax.custom_jvp, jax.custom_vjp, jnp.ufunc, type(jax.jit(abs))),
)
"""What a function may name of a stable package, besides functions."""

READERS = (
    *("eval", "exec", "getattr", "globals", "locals", "open", "vars", "numpy.random"),
    *("fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "open_memmap"),
)
"""What can read more than a function names, such as a file, or has a state of its own."""


@final
class ByCode(Generic[V]):
    """A function or an optimizer as a static value under `jit`.

    Two are equal if they have the same code and use equal numbers, arrays and functions, as they
    were when this was made: as defaults, closed over, or named in their module, such as `FACTOR`.
    A function that uses anything else, such as `settings.factor`, a list, or an attribute of a
    function, equals nothing made at another time, since what it uses may have changed. If the
    value can be called, so can this.
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
        return self is other if self._key is None else self._key == other._key

    def __hash__(self) -> int:
        return hash(id(self) if self._key is None else self._key)


class _UnreadableError(Exception):
    """A value that may change in ways that cannot be seen."""


def _key(value: object, inside: tuple[object, ...]) -> Any:
    """What decides whether two values are equal; `inside` are the functions being read."""
    if _is_plain(value):
        return type(value), repr(value)
    if isinstance(value, tuple):
        return type(value), tuple(_key(each, inside) for each in value)
    if _is_numeric(value):
        array = np.asarray(value)
        return _key((array.shape, array.dtype, array.tobytes()), inside)
    if isinstance(value, NAMED) and _is_stable(value):
        return value
    if not isinstance(value, types.FunctionType) or (vars(value) and not _is_stable(value)):
        raise _UnreadableError
    if _is_stable(value) and "<locals>" not in value.__qualname__:
        return value
    if value in inside:
        return inside.index(value)
    named = () if _is_stable(value) else _named(value)
    keywords = tuple((value.__kwdefaults__ or {}).items())
    parts = (*_held(value), named, value.__defaults__, keywords)
    return value.__code__, _key(parts, (*inside, value))


def _is_plain(value: object) -> bool:
    number = isinstance(value, np.generic) and not isinstance(value, np.void)
    return type(value) in PLAIN or number or isinstance(value, np.dtype)


def _is_numeric(value: object) -> TypeGuard[np.ndarray | jax.Array]:
    """Whether a value is an array whose bytes are its numbers: objects have only addresses."""
    if not isinstance(value, np.ndarray | jax.Array) or is_traced(value):
        return False
    return getattr(value.dtype, "kind", "") in [*"biufc"] or value.dtype == jnp.bfloat16


def _is_stable(value: Any) -> bool:
    """Whether a value of a stable package tells by itself what it computes.

    The module that a function names can be that of another, which it wraps: only its globals are
    its own.
    """
    if isinstance(value, types.ModuleType):
        home, name = value.__name__, value.__name__
    elif isinstance(value, types.FunctionType):
        home, name = value.__globals__.get("__name__"), value.__name__
    else:
        home, name = value.__module__, getattr(value, "__name__", "")
    if str(home).partition(".")[0] not in STABLE:
        return False
    if name in READERS:
        raise _UnreadableError
    wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
    return wrapped is None or _is_stable(wrapped)


def _named(function: types.FunctionType) -> tuple[tuple[str, object], ...]:
    """What a function names of its module, of other modules and of Python's own functions."""
    found, names, codes = dict[str, object](), set[str](), [function.__code__]
    for code in codes:
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
        names |= {*code.co_names}
        for step in dis.get_instructions(code):
            if step.opname == "IMPORT_NAME":
                if step.argval.partition(".")[0] not in STABLE:
                    raise _UnreadableError
                found[f"import {step.argval}"] = sys.modules.get(step.argval)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                own = function.__globals__.get(step.argval)
                found[step.argval] = getattr(builtins, step.argval, None) if own is None else own
    if any(name.startswith("__") for name in names):
        raise _UnreadableError  # such as function.__globals__
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    there = (*found.values(), *_held(function), *given)
    modules = [each for each in there if isinstance(each, types.ModuleType)]
    for module in modules:
        for name in names:
            value = getattr(module, name, None)
            found[f"{module.__name__}.{name}"] = value
            if isinstance(value, types.ModuleType) and value not in modules:
                modules.append(value)
    return tuple(sorted(found.items()))


def leaves(value: object) -> list[object]:
    """The numbers and functions that an optimizer or a function closes over, at any depth."""
    seen: list[object] = []
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, tuple):
            left += each
        elif _is_plain(each):
            seen.append(each)
        elif isinstance(each, types.FunctionType) and each not in seen:
            seen.append(each)
            left += _held(each)
    return seen


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
        return ", ".join(text for text in inner if text not in ("", "identity()"))
    name = update.__qualname__.partition(".<locals>")[0]
    numbers = {k: v for k, v in sorted(held.items()) if isinstance(v, bool | int | float)}
    return f"{name}({', '.join(f'{key}={value}' for key, value in numbers.items())})"
