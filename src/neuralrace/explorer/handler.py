"""From a request to its answer, whoever carries them: a worker of the server, or a notebook.

A request is `{"id", "kind", "state", …}`. `answered` computes it and sends every message of the
answer: parts on the way, then one end, which is a result, an error, or that it was cancelled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from neuralrace.explorer.catalogue import default_state
from neuralrace.explorer.limits import KINDS
from neuralrace.explorer.messages import error_of, kind_of, number_of
from neuralrace.explorer.trust import Trust


class CancelledError(Exception):
    """The answer is no longer wanted."""


def answered(
    message: Mapping[str, Any], trust: Trust, send: Callable[[dict[str, Any]], None]
) -> None:
    """Compute the answer of a request and send all of its messages; errors are messages too.

    `send` may raise `CancelledError`, and the answer then ends there.
    """
    begin = time.perf_counter()
    head = {"id": number_of(message), "kind": message.get("kind")}
    try:
        kind = kind_of(message)

        def tell(part: str, result: dict[str, Any]) -> None:
            send({**head, "part": part, "result": result})

        home = import_module(f"neuralrace.explorer.{KINDS[kind].home}")
        result = getattr(home, kind)(message, trust.now(), tell)
        took = round(1e3 * (time.perf_counter() - begin), 2)
        send({**head, "done": True, "result": result, "ms": took})
    except CancelledError:
        send({**head, "cancelled": True})
    except Exception as error:  # a page gets a message, never a traceback
        send({**head, "error": error_of(error)})


def warm(trust: Trust) -> None:
    """Answer what every page asks first."""
    state = default_state("extended_xor")
    for kind in ("tasks", "data", "predict"):
        answered({"kind": kind, "state": state}, trust, lambda message: None)
