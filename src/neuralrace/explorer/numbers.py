"""Numbers for a page: JSON without infinities, with as many digits as can be seen."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from neuralrace.errors import NeuralRaceError
from neuralrace.explorer.limits import NESTED

DIGITS = 6
"""Digits of the numbers of a curve."""

LONG = 600
"""Characters of each part of an error."""


def curve(values: Any) -> list[float | None]:
    """An array as a list with six digits; what is not finite is None.

    ```python
    >>> from neuralrace.explorer.numbers import curve
    >>> curve([1 / 3, 123456.789, float("inf"), 0.0])
    [0.333333, 123457.0, None, 0.0]

    ```
    """
    array = np.asarray(values, np.float64)
    size = np.abs(np.where(np.isfinite(array) & (array != 0), array, 1.0))
    places = np.clip(DIGITS - 1 - np.floor(np.log10(size)), -300, 300)
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        short = np.round(array * up / down) * down / up
    if np.isfinite(short).all():
        return short.tolist()
    return [v if math.isfinite(v) else None for v in short.tolist()]


def number(value: Any) -> float | None:
    """One number with all its digits, or None where it is not finite."""
    value = float(value)
    return value if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Any value for JSON: arrays as lists, numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def dumps(message: Any) -> str:
    """A message as JSON; in ASCII, since texts of a page may hold halves of characters."""
    return json.dumps(message, allow_nan=False, separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """A message from JSON, which has no infinities; raises a `NeuralRaceError` for what is none.

    Lists and objects may be inside each other as far as `limits.NESTED` says, so that whoever goes
    through a message later, level by level, comes to its end.

    ```python
    >>> from neuralrace.explorer.numbers import loads
    >>> loads('{"id": 1}')
    {'id': 1}

    ```
    """

    def refused(name: str) -> Any:
        raise ValueError(f"{name:.20} is no number of JSON")

    def finite(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refused(digits)

    try:
        message = json.loads(text, parse_constant=refused, parse_float=finite)
    except RecursionError as error:
        raise _too_nested() from error
    except ValueError as error:  # also text that is not UTF-8
        raise NeuralRaceError(
            "this message is not JSON",
            got=f"{type(error).__name__}: {error}"[:200],
            wanted="one JSON object",
            fix="see docs/explorer.md for the messages",
        ) from error
    level = [message]
    for _ in range(NESTED + 1):
        below = [v.values() if isinstance(v, dict) else v for v in level if type(v) in (dict, list)]
        if not below:
            return message
        level = [value for values in below for value in values]
    raise _too_nested()


def _too_nested() -> NeuralRaceError:
    """The error of a message that is nested more deeply than any state needs."""
    return message_error(
        "this message has too many lists and objects inside each other",
        f"more than {NESTED}",
        f"at most {NESTED}",
        "send a state as docs/explorer.md has it",
    )


def error_of(error: BaseException) -> dict[str, str]:
    """An error as a page shows it; one that is not ours names no path."""
    if isinstance(error, NeuralRaceError):
        what = getattr(error, "problem", error.what)  # a `StudyError` has a key as well
        key = getattr(error, "key", "")
        parts = {"what": what, "got": error.got, "wanted": error.wanted, "fix": error.fix}
        return {**{k: str(v)[:LONG] for k, v in parts.items()}, "key": key[:LONG]}
    said = error.strerror if isinstance(error, OSError) else str(error)  # without its path
    text = (said or "").strip().splitlines()
    return {
        "what": "this could not be computed",
        "got": f"{type(error).__name__}: {text[0] if text else ''}"[:LONG],
        "wanted": "a state that can be computed",
        "fix": "undo the last change",
        "key": "",
    }


def message_error(what: str, got: object, wanted: object, fix: str) -> NeuralRaceError:
    """The error for a message that is not understood."""
    return NeuralRaceError(what, got=got, wanted=wanted, fix=fix)
