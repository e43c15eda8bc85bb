"""Calls of the library as values: the same step of a computation is run, or printed as Python.

Nothing that is printed is ever evaluated: a step is run by calling what it names.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeAlias, final

WIDTH = 88
"""Columns of a line of code; a call that is longer is broken at its arguments."""

Lookup: TypeAlias = Callable[[str], Any]
"""What a name stands for while steps are run."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class Given:
    """A value with the code that makes it."""

    value: Any
    code: str

    def __repr__(self) -> str:
        return self.code


@final
@dataclass(frozen=True, repr=False)
class Name:
    """What another step has made, or a part of it: `data`, `gatings.items`."""

    text: str

    def __repr__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, repr=False)
class Item:
    """One entry of a list, or of a dictionary."""

    of: Any
    at: Any

    def __repr__(self) -> str:
        return f"{self.of!r}[{self.at!r}]"


@final
@dataclass(frozen=True, repr=False)
class Merged:
    """Several dictionaries as one."""

    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        return " | ".join(map(code, self.parts))


@final
class Call:
    """A function, by its name, with its arguments; a name with `*` stands for several of them."""

    def __init__(self, function: str, *arguments: Any, **options: Any) -> None:
        self.function, self.arguments, self.options = function, arguments, options

    def __repr__(self) -> str:
        return call(
            self.function,
            *map(code, self.arguments),
            **{name: Given(None, code(value)) for name, value in self.options.items()},
        )


@final
@dataclass(frozen=True, repr=False)
class Each:
    """A step for each entry of a list; where it has a `key`, for each pair of a dictionary."""

    step: Any
    names: str
    over: Any
    key: str = ""

    def __repr__(self) -> str:
        first = indented(f"{self.key}: {code(self.step)}" if self.key else code(self.step))
        names = f"{self.key}, {self.names}" if self.key else self.names
        over = f"{code(self.over)}.items()" if self.key else code(self.over)
        left, right = "{}" if self.key else "[]"
        return f"{left}\n{first}\n    for {names} in {over}\n{right}"


def value(step: Any, names: Lookup) -> Any:
    """What a step makes.

    ```python
    >>> from neuralrace.study.steps import Call, Name, value
    >>> value(Call("max", [Name("a"), 2]), {"a": 3, "max": max}.__getitem__)
    3

    ```
    """
    match step:
        case Given():
            return step.value
        case Name(text):
            first, *rest = text.split(".")
            return reduce(getattr, rest, names(first))
        case Item(of, at):
            return value(of, names)[value(at, names)]
        case Call():
            arguments = [each for part in step.arguments for each in _arguments(part, names)]
            options = {name: value(option, names) for name, option in step.options.items()}
            return value(Name(step.function), names)(*arguments, **options)
        case Each():
            made = {key: make() for key, make in entries(step, names)}
            return made if step.key else [*made.values()]
        case Mapping():
            return {key: value(inner, names) for key, inner in step.items()}
        case Merged(parts):
            return reduce(operator.or_, (value(part, names) for part in parts), {})
        case list() | tuple():
            return type(step)(value(each, names) for each in step)
    return step


def _arguments(step: Any, names: Lookup) -> Any:
    """One argument, or several where its name has a star."""
    starred = isinstance(step, Name) and step.text.startswith("*")
    return value(Name(step.text[1:]), names) if starred else [value(step, names)]


def entries(step: Each, names: Lookup) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """What makes each entry, with its key or its place."""
    over = value(step.over, names)
    several = [name.strip() for name in step.names.split(",")]
    for key, entry in over.items() if step.key else enumerate(over):
        local = dict(zip(several, entry if len(several) > 1 else [entry], strict=True))
        inner = lambda name, local=local: local[name] if name in local else names(name)
        yield key, partial(value, step.step, inner)


# ---- as text ------------------------------------------------------------------------------------


def code(step: Any) -> str:
    """A step as Python code; what is no step is written as it is.

    ```python
    >>> from neuralrace.study.steps import Call, Name, code
    >>> code(Call("nr.reduce", Name("*pair"), tolerance=1e-8))
    'nr.reduce(*pair, tolerance=1e-08)'

    ```
    """
    if not isinstance(step, Mapping):
        return repr(step)
    parts = [f"{name!r}: {code(inner)}" for name, inner in step.items()]
    one = "{" + ", ".join(parts) + "}"
    if len(one) <= WIDTH - 8 and "\n" not in one:
        return one
    return "{\n" + "".join(f"{indented(part)},\n" for part in parts) + "}"


def call(function: str, *arguments: str, **options: Any) -> str:
    """A call as code, on one line where it fits."""
    parts = [*arguments, *(f"{name}={value!r}" for name, value in options.items())]
    one = f"{function}({', '.join(parts)})"
    if len(one) <= WIDTH and "\n" not in one:
        return one
    return f"{function}(\n" + "".join(f"{indented(part)},\n" for part in parts) + ")"


def indented(text: str, by: int = 4) -> str:
    """Lines of code further to the right."""
    return "\n".join(" " * by + line for line in text.split("\n"))
