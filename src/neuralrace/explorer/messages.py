"""Messages between a page and whoever answers: JSON, kinds, digests, errors, kept answers.

Nothing here computes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from neuralrace.errors import NeuralRaceError
from neuralrace.explorer.limits import KINDS, NESTED

DIGITS = 6
"""Digits of the numbers of a curve."""

PART = 600
"""Characters of each part of an error."""


def curve(values: Any) -> list[float | None]:
    """An array as a list with six digits; what is not finite is None.

    ```python
    >>> from neuralrace.explorer.messages import curve
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


def dumps(message: Any) -> str:
    """A message as JSON; in ASCII, since texts of a page may hold halves of characters."""
    return json.dumps(message, allow_nan=False, separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """A message from JSON, which has no infinities; raises a `NeuralRaceError` for what is none.

    Lists and objects may be inside each other as far as `limits.NESTED` says, so that whoever goes
    through a message later, level by level, comes to its end.

    ```python
    >>> from neuralrace.explorer.messages import loads
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
        return {**{k: str(v)[:PART] for k, v in parts.items()}, "key": key[:PART]}
    said = error.strerror if isinstance(error, OSError) else str(error)  # without its path
    text = (said or "").strip().splitlines()
    return {
        "what": "this could not be computed",
        "got": f"{type(error).__name__}: {text[0] if text else ''}"[:PART],
        "wanted": "a state that can be computed",
        "fix": "undo the last change",
        "key": "",
    }


def message_error(what: str, got: object, wanted: object, fix: str) -> NeuralRaceError:
    """The error for a message that is not understood."""
    return NeuralRaceError(what, got=got, wanted=wanted, fix=fix)


AT_ONCE = 20_000
"""Characters of JSON that are read in the event loop, which takes about a millisecond."""

REMEMBERED = 32_000_000
"""Characters of answers that are kept."""


def kind_of(message: Any) -> str:
    """The kind of a request, or an error that lists all kinds.

    ```python
    >>> from neuralrace.explorer.messages import kind_of
    >>> kind_of({"kind": "predict"})
    'predict'

    ```
    """
    kind = message.get("kind") if isinstance(message, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise message_error(
            "this is no request",
            f"{kind!r:.60}" if isinstance(message, Mapping) else type(message).__name__,
            f'an object with "kind", one of {", ".join(KINDS)}',
            'for example {"id": 1, "kind": "tasks"}',
        )
    return kind


def number_of(message: Any) -> int | float | str | None:
    """The id of a request, if it is one that can be given back."""
    found = message.get("id") if isinstance(message, Mapping) else None
    fine = isinstance(found, int | float | str) and not isinstance(found, bool)
    return found if fine and len(str(found)) <= 40 else None


def understood(text: str | bytes, kind: str | None = None) -> tuple[Any, str]:
    """A message, of this kind if one is given, and its digest; "" for what is no request.

    ```python
    >>> from neuralrace.explorer.messages import understood
    >>> understood('{"kind":"cancel","of":"train"}')
    ({'kind': 'cancel', 'of': 'train'}, '')

    ```
    """
    message = loads(text)
    if kind is not None and isinstance(message, dict):
        message = {**message, "kind": kind}
    known = isinstance(message, dict) and message.get("kind") in KINDS
    return message, digest(message) if known else ""


async def read(text: str | bytes, kind: str | None = None) -> tuple[Any, str]:
    """The same as `understood`; a long message is read in a thread, so that others are heard."""
    if len(text) <= AT_ONCE:
        return understood(text, kind)
    return await asyncio.to_thread(understood, text, kind)


def too_slow(kind: str) -> dict[str, str]:
    """The error of a request that took too long."""
    error = message_error(
        "this took too long and was stopped",
        f"more than {KINDS[kind].seconds:g} s",
        "a smaller task, gating or network",
        "fewer samples, steps or pathways; the command line has no such limit",
    )
    return error_of(error)


def digest(message: Mapping[str, Any]) -> str:
    """What an answer depends on, as a short text: all of a request but its id and its view."""
    state = message.get("state")
    plain = {k: v for k, v in message.items() if k not in ("id", "state")}
    if isinstance(state, Mapping):
        plain["state"] = {k: v for k, v in state.items() if k != "view"}
    return hashlib.sha256(dumps(plain).encode()).hexdigest()


# ---- answers ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Message:
    """A message of an answer: `about` is all but its result, which can be long and stays JSON.

    ```python
    >>> from neuralrace.explorer.messages import Message
    >>> said = Message.of({"id": 7, "kind": "data", "done": True, "result": {}, "ms": 12.5})
    >>> said.text
    '{"id":7,"kind":"data","done":true,"ms":12.5,"result":{}}'
    >>> said.again(8).text
    '{"id":8,"kind":"data","done":true,"ms":0,"kept":true,"result":{}}'

    ```
    """

    about: Mapping[str, Any]
    result: str = ""

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Message:
        """A message with its result as JSON, if it has one."""
        about = {key: value for key, value in message.items() if key != "result"}
        return cls(about, dumps(message["result"]) if "result" in message else "")

    @property
    def last(self) -> bool:
        """Whether it ends its answer."""
        return "part" not in self.about

    @property
    def is_fine(self) -> bool:
        """Whether it ends its answer with a result, which can be given again."""
        return "done" in self.about

    @property
    def text(self) -> str:
        """The message as JSON; its result is not read for that."""
        about = dumps(self.about)
        return f'{about[:-1]},"result":{self.result}}}' if self.result else about

    def again(self, number: Any) -> Message:
        """The same for another request."""
        end = {"ms": 0, "kept": True} if self.last else {}
        return Message({**self.about, "id": number, **end}, self.result)

    def without(self, *keys: str) -> Message:
        """The same with less about it."""
        return Message({k: v for k, v in self.about.items() if k not in keys}, self.result)


def joined(said: list[Message]) -> str:
    """All messages of an answer as one object.

    ```python
    >>> from neuralrace.explorer.messages import Message, joined
    >>> joined([Message({"id": 1, "kind": "data", "done": True, "ms": 1}, '{"samples":4}')])
    '{"parts":[],"ms":1,"result":{"samples":4}}'
    >>> joined([Message({"id": 1, "kind": "data", "cancelled": True})])
    '{"cancelled":true}'

    ```
    """
    *parts, end = (each.without("id", "kind", "done") for each in said)
    if not said[-1].is_fine:
        return end.text
    return f'{{"parts":[{",".join(part.text for part in parts)}],{end.text[1:]}'


@final
class Memory:
    """Answers by the content of their requests; the oldest are forgotten first.

    ```python
    >>> from neuralrace.explorer.messages import Memory, Message
    >>> memory = Memory(most=10)
    >>> memory.put("a", [Message({}, "12345")])
    >>> memory.put("b", [Message({}, "123456")])
    >>> memory.get("a"), memory.get("b")
    (None, [Message(about={}, result='123456')])

    ```
    """

    def __init__(self, most: int = REMEMBERED) -> None:
        self.most, self.size = most, 0
        self._kept: OrderedDict[str, list[Message]] = OrderedDict()

    def get(self, key: str) -> list[Message] | None:
        """The messages of an answer, or None."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: str, messages: list[Message]) -> None:
        """Keep an answer, unless it is larger than all that may be kept."""
        size = _characters(messages)
        if size > self.most or key in self._kept:
            return
        self._kept[key] = messages
        self.size += size
        while self.size > self.most:
            _, old = self._kept.popitem(last=False)
            self.size -= _characters(old)


def _characters(messages: list[Message]) -> int:
    return sum(len(each.result) for each in messages)


def ended_badly() -> dict[str, str]:
    """The error of a request whose worker ended."""
    error = message_error(
        "the computation ended before it was done",
        "a worker process that was ended, for example for lack of memory",
        "an answer",
        "ask again, or for less",
    )
    return error_of(error)
