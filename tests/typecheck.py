"""The runtime type checker of the tests: beartype, in which an int is a float too (PEP 484).

Public functions check their arguments themselves and say what is wrong in their own words, which
tests of bad input want to see. Of their parameters only shapes of arrays are checked here; of
private functions, and of everything that is returned, all.
"""

import re
from typing import Any

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
