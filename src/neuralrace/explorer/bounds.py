"""Whether a state is small enough, each check with a message that says what to do."""

from __future__ import annotations

from typing import Any

from neuralrace.explorer.limits import (
    DEPTH,
    FEATURES,
    RECORDED,
    SAMPLES,
    TEXT,
    VALUES,
    WORK,
)
from neuralrace.study import LIMITS, Problem, StudyError


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
    >>> from neuralrace.explorer.bounds import check_values
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
