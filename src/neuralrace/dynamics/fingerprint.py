"""A digest of a value's content that is equal in every process: arrays, functions, containers."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeGuard, TypeVar, final, runtime_checkable

import jax
import numpy as np
from jax.core import Tracer

V = TypeVar("V")

UNKNOWN = "unknown"
"""What stands for the digest of a value that could not be read completely."""


def fingerprint(value: object) -> str:
    """A digest of a value's content, equal in every process, or `UNKNOWN`.

    A function is identified by its instructions, its defaults, what it closes over, the object
    that it is a method of, and the data, functions and classes that it names in its module.
    Functions inside it count too. A function of an installed library is identified by its name,
    and by its closure if a call has made it; its library's version fixes the rest. Other objects
    are identified by their class and their fields. A compiled function (`jax.jit`) equals the
    function it was made from. Where something has no readable content, such as a lock or a
    generator, the result is `UNKNOWN`.
    """
    return Known(value).digest


@final
class Known(Generic[V]):
    """A value that equals another one with the same content, so that nothing is compiled again.

    Functions are otherwise equal only if they are the same object. Values that cannot be read
    completely still are: their `digest` is `UNKNOWN`, and equality means identity. If the value
    can be called, so can this.
    """

    def __init__(self, value: V) -> None:
        self.value, reader = value, _Reader()
        digest = reader.digest(value).hex()
        self.digest = digest if reader.complete else UNKNOWN
        self.__name__ = getattr(value, "__name__", type(value).__name__)

    def __call__(self, *arguments: Any) -> Any:
        assert callable(self.value)
        return self.value(*arguments)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Known):
            return False
        if UNKNOWN in (self.digest, other.digest):
            return self.value is other.value
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class _Reader:
    """Reads content part by part. `complete` says whether all of it could be read."""

    def __init__(self) -> None:
        self.complete = True
        self._done: dict[int, tuple[object, bytes]] = {}  # holds the objects, so that ids stay
        self._open: dict[int, int] = {}

    def digest(self, value: object) -> bytes:
        """The digest of one value. Inside a cycle, how far back the value was met stands for it."""
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._open:
            return f"cycle {len(self._open) - self._open[id(value)]}".encode()
        self._open[id(value)] = len(self._open)
        found = hashlib.sha256()
        for part in self._parts(value):
            found.update(len(part).to_bytes(8, "little"))
            found.update(part)
        del self._open[id(value)]
        self._done[id(value)] = (value, found.digest())
        return found.digest()

    def _each(self, *values: object) -> Iterator[bytes]:
        return map(self.digest, values)

    def _parts(self, value: object) -> Iterator[bytes]:
        if isinstance(value, Known):
            yield from self._parts(value.value)
        elif isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}".encode()
        elif isinstance(value, Tracer):
            self.complete = False
        elif isinstance(value, np.ndarray | np.generic | jax.Array):
            array = np.asarray(jax.random.key_data(value) if is_key(value) else value)
            yield f"{array.dtype}{array.shape}".encode()
            if array.dtype.hasobject:
                yield from self._each(*array.ravel().tolist())
            else:
                yield array.tobytes()
        elif isinstance(value, Mapping):
            yield b"mapping"
            yield from sorted(self.digest(k) + self.digest(v) for k, v in value.items())
        elif isinstance(value, frozenset | set):
            yield b"set"
            yield from sorted(self._each(*value))
        elif isinstance(value, tuple | list):
            yield type(value).__name__.encode()
            yield from self._each(*value)
        elif isinstance(value, types.CodeType):
            yield from (value.co_code, value.co_exceptiontable)
            yield from self._each(value.co_names, value.co_consts)
        elif isinstance(value, types.ModuleType):
            yield value.__name__.encode()
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, _BUILT_IN):
            yield getattr(value, "__qualname__", value.__name__).encode()
            owner = getattr(value, "__self__", None)
            yield from self._each(owner, getattr(value, "__objclass__", None))
        elif isinstance(value, types.MethodType):
            yield from self._each(value.__self__, value.__func__)
        elif isinstance(value, functools.partial):
            yield from self._each(value.func, value.args, value.keywords)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, _COMPILED):
            yield from self._parts(inspect.unwrap(value, stop=lambda f: hasattr(f, "__code__")))
        else:
            yield from self._object(value)

    def _function(self, function: types.FunctionType) -> Iterator[bytes]:
        if _of_library(function.__module__):
            yield f"{function.__module__}.{function.__qualname__}".encode()
            if _found_by_name(function):
                return
        code = function.__code__
        yield from self._each(code, function.__defaults__, function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:  # not yet filled in
                continue
            yield self.digest(held)
        if _of_library(function.__module__):
            return
        own = {name: v for name, v in vars(function).items() if name != "__wrapped__"}
        yield self.digest(own)
        names = sorted(_names(code))
        for name in names:
            if name not in function.__globals__:
                continue
            named = function.__globals__[name]
            yield from (name.encode(), self.digest(named))
            if isinstance(named, types.ModuleType) and not _of_library(named.__name__):
                yield from self._each(*(vars(named)[n] for n in names if n in vars(named)))

    def _class(self, kind: type) -> Iterator[bytes]:
        yield f"{kind.__module__}.{kind.__qualname__}".encode()
        if _of_library(kind.__module__):
            return
        yield from self._each(*kind.__bases__)
        for name, item in sorted(vars(kind).items()):
            inner = getattr(item, "__func__", item)
            if isinstance(inner, property):
                yield from self._each(inner.fget)
            elif isinstance(inner, types.FunctionType) or not name.startswith(("__", "_abc_")):
                yield from (name.encode(), self.digest(inner))

    def _object(self, value: object) -> Iterator[bytes]:
        yield self.digest(type(value))
        state = _state(value)
        if state is not None:
            yield self.digest(state)
            return
        try:
            yield self.digest(value.__reduce_ex__(4))  # what pickle would write
        except Exception:  # whatever a foreign object raises: it has no content to be read
            self.complete = False


def _state(value: object) -> dict[str, object] | None:
    """The fields of an object: those of a dataclass, or of its `__dict__` and `__slots__`."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    slots = [
        name
        for kind in type(value).__mro__
        for name, item in vars(kind).items()
        if isinstance(item, types.MemberDescriptorType)
    ]
    if not (slots or hasattr(value, "__dict__")):
        return None
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return found | dict(getattr(value, "__dict__", {}))


_PLAIN = (str, bytes, int, float, complex, type(None), type(...), range, slice, np.dtype)
"""Values that are written in full by their `repr`."""

_BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    np.ufunc,
)
"""Functions and descriptors without Python code, identified by name and owner."""

_COMPILED = (type(jax.jit(lambda: None)), type(functools.cache(lambda: None)))
"""Wrappers without Python code that do not change what the function inside returns."""


@functools.cache
def _of_library(module: str | None) -> bool:
    """Whether a module is installed, so that its version says what is in it."""
    if module is None or module == "__main__":
        return False
    if module.partition(".")[0] == "neuralrace":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module in sys.builtin_module_names or module in sys.modules
    path = Path(file).resolve()
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return path.is_relative_to(Path(sysconfig.get_path("stdlib")).resolve())


def _found_by_name(function: types.FunctionType) -> bool:
    """Whether a module has the function under its own name, so that the name says which it is."""
    found = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function or getattr(found, "__wrapped__", None) is function


def _names(code: types.CodeType) -> set[str]:
    """The names that a function and those inside it look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def is_key(value: object) -> TypeGuard[jax.Array]:
    """Whether an array holds random keys."""
    return isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)


@runtime_checkable
class Updates(Protocol):
    """What `described` needs of an optimizer: a function `update`."""

    @property
    def update(self) -> Callable[..., object]: ...


@final
@dataclass(frozen=True)
class _Part:
    """One of the transformations that an optimizer chains."""

    update: Callable[..., object]


def described(transformation: Updates) -> str:
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
        told = [described(_Part(part)) for part in parts]
        return ", ".join(text for text in told if text != "identity()")
    inner = cells.get("tx", cells.get("inner", cells.get("transform")))
    if isinstance(inner, Updates):
        return described(inner)
    name = getattr(update, "__qualname__", type(update).__name__).partition(".<locals>")[0]
    numbers = {
        key: float(value) if isinstance(value, float) else value
        for key, value in sorted(cells.items())
        if isinstance(value, bool | int | float)
    }
    return f"{name}({', '.join(f'{key}={value}' for key, value in numbers.items())})"
