"""The public door: what kind of thing each argument of a public function is, checked as it comes.

The annotations of a function say what it takes. `door` makes a test of each, by beartype, when the
function is first called; where one fails, the error names the argument, says what was got and what
was wanted in words, and replays what is right from the example in the docstring. Whatever reads as
what is wanted is let in: integers as numbers, NumPy's and JAX's numbers, lists as arrays, arrays
that JAX is tracing. Where a number is asked for, an array without axes comes in as one of Python's,
unless it is traced. Values are checked by the function itself.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import numpy as np

from neuralrace.checks import is_integer, is_number, is_traced, kind_of, shown
from neuralrace.errors import NeuralRaceError, spelled
from neuralrace.types import ArrayLike, JaxArray

__all__ = ["door"]

F = TypeVar("F", bound=Callable[..., Any])


def door(function: F) -> F:
    """Check the kind of every argument of a public function by its annotation, before it runs.

    Of a class, the arguments of its constructor.

    ```python
    >>> from neuralrace.door import door
    >>> @door
    ... def double(number: float) -> float:
    ...     '''>>> double(number=2.5)
    ...     5.0
    ...     '''
    ...     return 2 * number
    >>> double(2)
    4
    >>> double("2")
    Traceback (most recent call last):
        ...
    neuralrace.errors.NeuralRaceError: number is not valid.
      got:    str '2'
      wanted: a number
      fix:    for example number=2.5

    ```
    """
    if isinstance(function, type):
        function.__init__ = _guarded(function.__init__, sys.modules[function.__module__].__dict__)
        return function  # type: ignore[return-value]
    return _guarded(function, inspect.unwrap(function).__globals__)


def _guarded(function: Any, names: Mapping[str, Any]) -> Any:
    """A function that tests its arguments, whose annotations use these names."""
    tests: _Tests | None = None

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        nonlocal tests
        if tests is None:
            tests = _Tests(function, names)
        placed = map(tests.checked, tests.places, args)
        args = (*placed, *args[len(tests.places) :])
        kwargs = {name: tests.checked(name, value) for name, value in kwargs.items()}
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            tests.bind(args, kwargs)
            tests.check_known(error, {**dict(zip(tests.places, args, strict=False)), **kwargs})
            raise

    return guarded


class _Tests:
    """A test of every parameter of a function whose annotation says something."""

    def __init__(self, function: Any, names: Mapping[str, Any]) -> None:
        self.signature = inspect.signature(function)
        kinds = self.signature.parameters
        one = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.function, self.name = function, function.__qualname__.removesuffix(".__init__")
        self.places = [name for name, parameter in kinds.items() if parameter.kind in one]
        self.hints = {
            name: _read(parameter.annotation, names)
            for name, parameter in kinds.items()
            if parameter.kind in (*one, inspect.Parameter.KEYWORD_ONLY)
        }
        self.by_name = {name: _test(hint) for name, hint in self.hints.items()}
        self.numbers = {name for name, hint in self.hints.items() if _is_plain(hint)}

    def checked(self, name: str, value: Any) -> Any:
        """A value that fits, as a number of Python if it is an array without axes for a number."""
        test = self.by_name.get(name)
        if test is not None and not test(value):
            raise self.error(name, value)
        array = name in self.numbers and hasattr(value, "dtype") and is_number(value)
        if not array or is_traced(value):
            return value
        return int(value) if is_integer(value) else float(value)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise where the arguments are not those that the function takes."""
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            odd = next((name for name in kwargs if name not in self.hints), "")
            names = [name for name in self.signature.parameters if name not in ("self", "cls")]
            known = f"the arguments of {self.name}: {', '.join(names)}"
            raise NeuralRaceError(
                f"{self.name}: {error}",
                got=f"{len(args)} arguments by place and {', '.join(kwargs) or 'none'} by name",
                wanted=known,
                fix=spelled(odd, self.hints, f"leave {odd} out")
                if odd
                else f"see help({self.name})",
            ) from None

    def check_known(self, error: TypeError, values: Mapping[str, object]) -> None:
        """Raise where JAX is tracing an argument whose value was needed."""
        jax = sys.modules.get("jax")
        traced = [name for name in self.hints if is_traced(values.get(name))]
        if traced and jax is not None and isinstance(error, jax.errors.JAXTypeError):
            raise NeuralRaceError(
                f"{traced[0]} must be known before tracing",
                got="a value that JAX is tracing",
                wanted=_in_words(self.hints[traced[0]]),
                fix="call this outside jit, grad and vmap",
            ) from error

    def error(self, name: str, value: object) -> NeuralRaceError:
        """What an argument must be."""
        words, kinds = _in_words(self.hints[name]), list(_flat(self.hints[name]))
        choices = [c for kind in kinds if get_origin(kind) is Literal for c in get_args(kind)]
        ways = (FIXES.get(getattr(kind, "__name__", "")) for kind in kinds)
        example = _example(self.function, name, self.places)
        replay = f"for example {name}={example}" if example else f"pass {words}"
        fix, what = next(filter(None, ways), replay), f"{name} is not valid"
        if isinstance(value, tuple) and "Dataset" in words:
            fix = "gatings return (arch, data): pass the data alone"
        if isinstance(value, Mapping) and "Dataset" in words:
            fix = "the order is network, weights, data; arrays: nr.Dataset({'x': …}, {'y': …})"
        if callable(getattr(value, "init", None)) and callable(getattr(value, "update", None)):
            fix = "pass it as optimizer=optax.adam(1e-3), without a learning rate"
        if isinstance(value, str) and choices:
            what, fix = f"unknown {name} {value!r:.80}", spelled(value, choices, fix)
        return NeuralRaceError(what, got=shown(value), wanted=words, fix=fix)


FIXES = {
    "Architecture": "pass an nr.Architecture; that of a network is net.arch",
    "Dataset": "pass a dataset, such as nr.Dataset({'x': inputs}, {'y': targets})",
    "Dataset of samples": "a population has second moments alone: draw samples from it, or pass "
    "nr.Dataset({'x': inputs}, {'y': targets})",
    "GDLN": "pass a network, such as nr.GDLN(arch)",
    "Network": "pass a network, such as nr.GDLN(arch) or nr.ReLUNetwork(arch)",
    "ReLUNetwork": "pass a network, such as nr.ReLUNetwork(arch)",
    "TorchModule": "pass an nn.Module, its state_dict(), or a list of them; files of torch.save: "
    "torch.load(path, weights_only=True); others: nr.from_file",
    "Trajectory": "pass what nr.train, nr.flow or race.solve returned",
}
"""How to come by the package's own kinds of things."""


def _example(function: Any, name: str, places: Sequence[str]) -> str | None:
    """How a parameter is written in a call of a function, in the example of its docstring."""
    import doctest

    examples = doctest.DocTestParser().get_examples(inspect.getdoc(function) or "")
    for node in ast.walk(ast.parse("".join(example.source for example in examples))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(function.__name__):
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            if not any(isinstance(each, ast.Starred) for each in node.args):
                named |= dict(zip(places, node.args, strict=False))
            if name in named:
                return ast.unparse(named[name])
    return None


# ---- kinds --------------------------------------------------------------------------------------


class _Kind(type):
    """A kind of value that is known by a test."""

    test: Callable[[Any], bool]

    def __instancecheck__(cls, value: object) -> bool:
        return cls.test(value)


def _kind(test: Callable[[Any], bool]) -> type:
    return _Kind("Kind", (), {"test": staticmethod(test)})


def _is_switch(value: object) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1))


def _list_of(hint: Any, ordered: bool) -> Callable[[Any], bool]:
    """Whether a value is a list, a tuple or an array, each entry of which is of this type."""
    fits, alike = _test(hint) or _anything, get_origin(hint) is not Annotated

    def test(value: Any) -> bool:
        single = isinstance(value, str | bytes | Mapping) or getattr(value, "shape", None) == ()
        several = isinstance(value, Iterable) and isinstance(value, Sized)
        several &= not (ordered and isinstance(value, set | frozenset))
        if single or not several or is_traced(value):
            return False
        entries: Any = value
        if alike and kind_of(value) in ("b", "i", "u", "f"):  # all entries are of one kind
            entries = entries[:1]
        return all(map(fits, entries))

    return test


def _mapping_of(key: Any, entry: Any) -> Callable[[Any], bool]:
    """Whether a value is a mapping, with all keys and entries of these types."""
    key_fits, fits = _test(key) or _anything, _test(entry) or _anything

    def test(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(map(key_fits, value)) and all(map(fits, value.values()))

    return test


def _anything(_: object) -> bool:
    return True


def _in_range(hint: Any) -> Callable[[Any], bool]:
    """Whether a value is a number in the range that is written beside its kind, or is traced."""
    kind, (within,) = PLAIN[hint.__origin__], hint.__metadata__
    return lambda value: isinstance(value, kind) and (is_traced(value) or within.holds(value))


def _has_shape(hint: Any) -> Callable[[object], bool]:
    """Whether a value has the shape that jaxtyping writes, and holds numbers if it says so."""
    import jaxtyping

    axes: Any = jaxtyping.Shaped[np.ndarray, hint.dim_str]

    anything = hint.dtypes is axes.dtypes

    def test(value: Any) -> bool:
        try:
            array = value if hasattr(value, "dtype") else np.asarray(value)
            numeric = anything or kind_of(array) in ("b", "i", "u", "f", "V")
            with jaxtyping.jaxtyped("context"):  # the axes of a caller are others
                return numeric and isinstance(np.broadcast_to(np.False_, np.shape(array)), axes)
        except ValueError:  # ragged
            return False

    return test


PLAIN = {
    float: _kind(is_number),
    int: _kind(is_integer),
    bool: _kind(_is_switch),
}
"""What is let in as one of Python's own kinds."""


LATE = {"Axes": "matplotlib", "matplotlib": "matplotlib", "xarray": "xarray", "pandas": "pandas"}
"""Names in annotations that functions import when they run, with the package that has them."""


class _Late(type):
    """A class, or a package with classes, that is known by its name and need not be imported."""

    root: str

    def __instancecheck__(cls, value: object) -> bool:
        name = lambda each: (each.__module__.partition(".")[0], each.__name__)
        return any(name(each) == (cls.root, cls.__name__) for each in type(value).__mro__)

    def __getattr__(cls, name: str) -> type:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Late(name, (), {"root": cls.root})


def _read(annotation: Any, names: Mapping[str, Any]) -> Any:
    """An annotation as a type; `Any` where it is missing, or names what only checkers import."""
    if annotation is inspect.Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    late = {name: _Late(name, (), {"root": root}) for name, root in LATE.items()}
    try:
        return typing.get_type_hints(holder, late | dict(names), include_extras=True)["it"]
    except NameError:
        return Any


def _test(hint: Any) -> Callable[[object], bool] | None:
    """Whether a value is of this type, or None where anything is."""
    kind = _lenient(hint)
    kinds = tuple(_flat(kind))
    if kind is Any or Any in kinds:
        return None
    if all(isinstance(each, type) and get_origin(each) is None for each in kinds):
        return lambda value: isinstance(value, kinds)
    from beartype.door import is_bearable
    from beartype.roar import BeartypeException

    def test(value: object) -> bool:
        try:
            return is_bearable(value, kind)
        except BeartypeException:  # what cannot be tested, such as a name that is not found
            return True

    return test


def _lenient(hint: Any) -> Any:
    """A type that lets in whatever reads as this one."""
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, TypeVar | str | typing.ForwardRef) or _is_open(hint):
        return Any
    if _has_axes(hint):
        return _kind(_has_shape(hint))
    if origin is Annotated and hint.__origin__ in PLAIN:
        return _kind(_in_range(hint))
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_lenient(each) for each in args)]  # noqa: UP007
    if origin in (Sequence, Collection, Iterable):
        return _kind(_list_of(args[0], origin is Sequence))
    if origin is Mapping:
        return _kind(_mapping_of(*args))
    if origin is Callable:
        return Callable
    return PLAIN.get(hint, hint) if isinstance(hint, type) else hint


def _is_plain(hint: Any) -> bool:
    """Whether a type asks for a number, and has no member that is an array."""
    kinds = {getattr(each, "__origin__", each) for each in _flat(hint)}
    arrays = any(hasattr(each, "dtype") or _has_axes(each) for each in kinds)
    return bool({float, int} & kinds) and not arrays and not {Any, ArrayLike, JaxArray} & kinds


def _has_axes(hint: Any) -> bool:
    """Whether a type is an array with a shape that jaxtyping writes."""
    return hasattr(hint, "dim_str") and not isinstance(hint, _Late)


def _is_open(hint: Any) -> bool:
    """Whether nothing can be asked of a value of this type, as of most protocols."""
    protocol = getattr(hint, "_is_protocol", False) is True
    return typing.is_typeddict(hint) or (protocol and not getattr(hint, "_is_runtime_protocol", 0))


# ---- words --------------------------------------------------------------------------------------

WORDS = {
    float: "a number",
    int: "an integer",
    bool: "True or False",
    str: "text",
    type(None): "None",
    dict: "a mapping from names to values",
    Any: "anything",
    ArrayLike: "an array of numbers",
    JaxArray: "a key of jax.random",
    os.PathLike: "a path of a file",
}
"""Kinds as errors name them."""


def _flat(hint: Any) -> Iterator[Any]:
    """The members of a union, or the type itself."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        for each in get_args(hint):
            yield from _flat(each)
    else:
        yield hint


def _in_words(hint: Any) -> str:
    """A type as an error says it."""
    return " or ".join(dict.fromkeys(map(_one_in_words, _flat(hint))))


def _one_in_words(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if _has_axes(kind):
        return f"an array of shape ({kind.dim_str.strip()})"
    if origin is Annotated:
        return f"{_one_in_words(args[0])} {args[1]}".rstrip()
    if origin is Literal:
        return f"one of {', '.join(map(repr, args))}"
    if origin is Mapping:
        return f"a mapping from {_in_words(args[0])} to {_in_words(args[1])}"
    if origin in (Sequence, Collection, Iterable):
        return f"a list, each {_in_words(args[0])}"
    if origin is Callable or kind is Callable:
        return "a function"
    name = getattr(origin or kind, "__name__", str(kind))
    return WORDS.get(origin or kind) or f"a{'n' * (name[0] in 'AEIO')} {name}"
