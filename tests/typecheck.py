"""The runtime type checker of the tests: beartype, in which an int is a float too (PEP 484).

Public functions check their arguments themselves and say what is wrong in their own words, which
tests of bad input want to see. Of their parameters only shapes of arrays are checked here; of
private functions, and of everything that is returned, all.

A check takes longer than most functions that are called in a loop, so that in every test each
function is checked the first times that it is called. It is compiled when it is first needed.
"""

import functools
import re
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
_apart = _whole("context")
"""Names of axes belong to one call, checked or not."""

_made: dict[int, tuple[Any, Any]] = {}


def jaxtyped(*, typechecker: Any) -> Any:
    """What jaxtyping's import hook decorates with, for the first calls alone."""

    def decorated(thing: Any) -> Any:
        if not isinstance(thing, types.FunctionType):
            return _whole(thing, typechecker=typechecker)

        code = id(thing.__code__)

        @functools.wraps(thing)
        def first_calls(*args: Any, **kwargs: Any) -> Any:
            before = calls.get(code, 0)
            if before == ENOUGH:
                with _apart:
                    return thing(*args, **kwargs)
            calls[code] = before + 1
            if code not in _made or _made[code][0] is not thing:  # a new one of a local function
                _made[code] = thing, _whole(thing, typechecker=checked)
            return _made[code][1](*args, **kwargs)

        return first_calls

    return decorated


jaxtyping.jaxtyped = jaxtyped
__name__ = jaxtyping.__name__  # a warning that names the user's line passes over these frames
