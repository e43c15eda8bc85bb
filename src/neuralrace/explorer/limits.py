"""How much the explorer takes on: every size, count and time, each with its own sentence."""

from __future__ import annotations

from typing import NamedTuple

from neuralrace.study import LIMITS

MESSAGE = 1_000_000
"""Bytes of a message from a page."""

TABLE = 250_000
"""Characters of a table that is dropped on the page."""

VIEW = 20_000
"""Characters of what a page keeps in the state for itself."""

TEXT = 4_000
"""Characters of any other text in a state."""

VALUES = 100_000
"""Values in a state, those in lists included."""

DEPTH = 8
"""Tables inside tables."""

NESTED = 32
"""Lists and objects inside each other in a message."""

SAMPLES = 1024
"""Samples of a task."""

FEATURES = 512
"""Numbers of all inputs and outputs of one sample."""

WORK = 4e11
"""Steps × networks × weights × samples of a training: some minutes of one processor."""

RECORDED = 3e7
"""Numbers that are recorded while networks are trained for `discover` and reports."""

PHASES = 61
"""Values along one axis of a phase diagram."""

CELLS = 700
"""Contests of a phase diagram over two numbers."""

REPORT = 30_000_000
"""Bytes of a report."""

CLIENTS = 64
"""Pages that may be connected at a time."""

POSTS = 16
"""Requests without a page that are answered at a time."""

WAITING = 512
"""Messages that wait for a page to take them; a page that takes none for so long is let go."""

WORKER = 2.5e9
"""Bytes of memory after which a worker is replaced by a fresh one."""


class Kind(NamedTuple):
    """What can be asked: `home` is the module whose function of that name answers it.

    Kinds of one `lane` share a worker, so that none waits for one that takes longer. `seconds` are
    the most that it may take. What is `kept` is not computed again when it is asked again.
    """

    home: str
    lane: str
    seconds: float
    kept: bool = True


KINDS: dict[str, Kind] = {
    "tasks": Kind("saving", "quick", 20, kept=False),
    "data": Kind("showing", "quick", 10),
    "predict": Kind("racing", "quick", 20),
    "python": Kind("saving", "quick", 20),
    "study": Kind("saving", "quick", 20),
    "csv": Kind("saving", "quick", 20, kept=False),
    "equations": Kind("racing", "equations", 30),
    "kept": Kind("racing", "kept", 60),
    "wide": Kind("learning", "wide", 120),
    "aligned": Kind("racing", "long", 60),
    "train": Kind("learning", "long", 300),
    "types": Kind("learning", "long", 120),
    "discover": Kind("learning", "long", 300),
    "phases": Kind("phases", "long", 300),
    "report": Kind("saving", "long", 600, kept=False),
}
"""Every kind of request. Those of the lane `quick` answer while a slider moves; `long` takes
minutes; the others take up to some seconds, and are asked together whenever the state rests."""

LANES = tuple(dict.fromkeys(kind.lane for kind in KINDS.values()))
"""The lanes, each with a worker of its own."""

GRACE = {"quick": 20.0, "wide": 20.0, "long": 1.0}
"""Seconds that a cancelled request of a lane may go on before its worker is ended; 4 in others.

A fresh worker needs some seconds itself, so that it is quicker to wait for what is nearly done.
"""


def table_of_limits() -> dict[str, float]:
    """What a page says of limits before it asks."""
    return {
        **LIMITS,
        "samples": SAMPLES,
        "table": TABLE,
        "phases": PHASES,
        "cells": CELLS,
        "message": MESSAGE,
        "view": VIEW,
    }
