"""The runtime type checker of the tests: beartype, in which an int is a float too (PEP 484).

It checks what the static type checker cannot know: functions and classes that name the shape of an
array. Public functions check their arguments themselves and say what is wrong in their own words,
which tests of bad input want to see. Of their parameters only shapes are checked here; of private
functions, and of everything that is returned, all.

A check takes longer than most functions that are called in a loop, so that in every test each
function is checked the first times that it is called. It is compiled when it is first needed.
"""

import functools
import inspect
import re
import sys
import types
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

_strict = beartype(conf=BeartypeConf(is_pep484_tower=True))
DOORS = ("__init__", "__call__", "__getitem__")
"""Special methods that users call."""

_SHAPED = re.compile(r"\b(Float|Int|Bool|Num|Shaped|Inexact)\[")


def checked(function: Any) -> Any:
    name = getattr(function, "__name__", "_")
    if not isinstance(function, type) and (not name.startswith("_") or name in DOORS):
        function.__annotations__ = {
            parameter: hint if parameter == "return" or _SHAPED.search(str(hint)) else Any
            for parameter, hint in function.__annotations__.items()
        }
    return _strict(function)


ENOUGH = 10
"""Calls of a function in a test that are checked."""

calls: dict[int, int] = {}
"""How many calls of each function were checked in this test, by the identity of its code."""

_whole = jaxtyping.jaxtyped
_made: dict[int, tuple[Any, Any]] = {}


def has_shapes(thing: Any) -> bool:
    """Whether an annotation of a function or a class names a shape, also by another name for it."""
    kinds = thing.__mro__ if isinstance(thing, type) else (thing,)
    hints = [str(hint) for kind in kinds for hint in inspect.get_annotations(kind).values()]
    names = vars(sys.modules[thing.__module__])
    words = {word for hint in hints for word in re.findall(r"\w+", hint)}
    return any(map(_SHAPED.search, (*hints, *(str(names.get(word)) for word in words))))


def jaxtyped(*context: str, typechecker: Any = None) -> Any:
    """What jaxtyping's import hook decorates with, for the first calls alone."""
    if context:
        return _whole(*context)

    def decorated(thing: Any) -> Any:
        if not has_shapes(thing):
            return thing
        if not isinstance(thing, types.FunctionType):
            return _whole(thing, typechecker=typechecker)

        code = id(thing.__code__)

        @functools.wraps(thing)
        def first_calls(*args: Any, **kwargs: Any) -> Any:
            before = calls.get(code, 0)
            if before == ENOUGH:
                return thing(*args, **kwargs)
            calls[code] = before + 1
            if code not in _made or _made[code][0] is not thing:  # a new one of a local function
                _made[code] = thing, _whole(thing, typechecker=checked)
            return _made[code][1](*args, **kwargs)

        return first_calls

    return decorated


jaxtyping.jaxtyped = jaxtyped
__name__ = jaxtyping.__name__  # a warning that names the user's line passes over these frames
