"""How much the explorer takes on: every size, count and time, each with its own sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

from neuralrace.study import LIMITS, Problem, StudyError

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


# ---- whether a state is small enough ------------------------------------------------------------


def too_much(key: str, what: str, got: object, most: object, fix: str = "") -> StudyError:
    """The error for something that is larger than the explorer takes on."""
    return StudyError(
        "the page",
        key,
        f"{what} is more than the explorer takes on",
        got=got,
        wanted=f"at most {most}",
        fix=fix or "take less; the command line has no such limit",
    )


def within(ok: object, key: str, what: str, got: object, most: object, fix: str = "") -> None:
    """Raise unless something is as small as the explorer takes on."""
    if not ok:
        raise too_much(key, what, got, most, fix)


def check_values(value: Any, key: str = "", depth: int = 0) -> int:
    """How many values there are; raises where texts are too long or tables too deep.

    ```python
    >>> from neuralrace.explorer.limits import check_values
    >>> check_values({"task": {"builtin": "xor"}, "widths": [1, 2]})
    3

    ```
    """
    if depth > DEPTH:
        raise too_much(key, "a table inside tables", f"more than {DEPTH} of them", DEPTH)
    if isinstance(value, str):
        if len(value) > TEXT:
            raise too_much(key, "this text", f"{len(value)} characters", TEXT)
        return 1
    if not isinstance(value, dict | list):
        return 1
    count = 0
    inside = value.items() if isinstance(value, dict) else ((None, v) for v in value)
    for name, inner in inside:
        if name is not None and len(name) > 100:
            raise too_much(key, "the name of a key", f"{len(name)} characters", 100)
        below = key if name is None else f"{key}.{name}" if key else name
        count += check_values(inner, below, depth + 1)
        if count > VALUES:
            raise too_much(key, "the number of values", f"more than {VALUES}", VALUES)
    return count


def check_problem(problem: Problem) -> None:
    """Raise where a task or a gating is larger than the explorer takes on."""
    data = problem.data
    within(
        data.n_samples <= SAMPLES,
        "task",
        "this task",
        f"{data.n_samples} samples",
        f"{SAMPLES} samples",
    )
    features = sum(a.shape[1] for a in (*data.x.values(), *data.y.values()))
    if features > FEATURES:
        got = f"{features} inputs and outputs"
        raise too_much("task", "this task", got, f"{FEATURES} of them")
    for name, (arch, _) in problem.candidates.items():
        nodes, edges = len(arch.sizes), len(arch.edges)
        if nodes > LIMITS["nodes"] or edges > LIMITS["edges"]:
            got = f"{nodes} nodes and {edges} edges"
            most = f"{LIMITS['nodes']} and {LIMITS['edges']}"
            raise too_much(f"gatings.{name}", "the graph of this gating", got, most)


def check_training(problem: Problem, networks: int | None = None, *, recorded: bool) -> None:
    """Raise where training would take too long, or record too much."""
    training, arch = problem.settings.training, problem.relu.arch
    networks = training.seeds if networks is None else networks
    weights = sum(arch.sizes[s] * arch.sizes[t] for s, t in arch.edges.values())
    work = float(training.steps) * networks * weights * problem.data.n_samples
    within(
        work <= WORK,
        "training.steps",
        "this training",
        f"{training.steps} steps of {networks} networks with {weights} weights",
        f"{max(1, int(training.steps * WORK / work))} steps",
        "fewer steps, networks or neurons",
    )
    records = len(training.record_at or ()) or training.steps // training.every + 2
    within(
        not recorded or float(records) * networks * weights <= RECORDED,
        "training.record_every",
        "what is recorded",
        f"{records} records of {networks} networks with {weights} weights",
        f"{RECORDED:.0e} numbers",
        "record less often, or train fewer or narrower networks",
    )
