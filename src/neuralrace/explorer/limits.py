"""How much the explorer takes on: every size, count and time, each with its own sentence."""

from __future__ import annotations

from collections.abc import Mapping

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

SECONDS: Mapping[str, float] = {
    "data": 10,
    "predict": 20,
    "equations": 30,
    "kept": 60,
    "aligned": 60,
    "python": 20,
    "study": 20,
    "csv": 20,
    "tasks": 20,
    "train": 300,
    "types": 120,
    "discover": 300,
    "phases": 300,
    "report": 600,
}
"""How long each kind of request may take."""


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
