"""Whether a state is small enough, each check with a message that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuralrace.explorer.limits import (
    DEPTH,
    EDGES,
    FEATURES,
    GATINGS,
    LAYERS,
    NODES,
    OPTIONS,
    PATHWAYS,
    RECORDED,
    SAMPLES,
    TEXT,
    VALUES,
    WIDTH,
    WORK,
)
from neuralrace.study import Problem, StudyError


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


def check_settings(settings: Any) -> None:
    """Raise where an option of a study costs more than the explorer takes on."""
    for key, (most, what) in OPTIONS.items():
        section, _, name = key.partition(".")
        given = getattr(settings, section)
        value = None if given is None else getattr(given, name)
        if value is not None and value > most:
            what = what if what.startswith("the ") else f"this number of {what}"
            raise too_much(key, what, value, f"{most:g}")
    if isinstance(settings.discover.pathways, int) and settings.discover.pathways > 16:
        raise too_much("discover.pathways", "the number", settings.discover.pathways, 16)
    network = settings.network
    if len(network.widths) > LAYERS:
        raise too_much("network.widths", "the number of layers", len(network.widths), LAYERS)
    sizes = network.widths if network.graph is None else tuple(network.graph.sizes.values())
    if max(sizes, default=0) > WIDTH:
        raise too_much("network.widths", "a hidden layer", f"{max(sizes)} neurons", WIDTH)
    if network.graph is not None:
        nodes, edges = len(network.graph.sizes), len(network.graph.edges)
        if nodes > NODES or edges > EDGES:
            got = f"{nodes} hidden nodes and {edges} edges"
            raise too_much("network.graph", "this graph", got, f"{NODES} and {EDGES}")
    if len(settings.gatings) > GATINGS:
        raise too_much("gatings", "the number of gatings", len(settings.gatings), GATINGS)
    for name, gating in settings.gatings.items():
        _check_gating(f"gatings.{name}", gating)
    if settings.training.record_at is not None and len(settings.training.record_at) > 1000:
        got = f"{len(settings.training.record_at)} steps"
        raise too_much("training.record_at", "the number of records", got, 1000)
    if settings.training.record:
        raise StudyError(
            "the page",
            "training.record",
            "the explorer keeps no weights, outputs or activity",
            got=", ".join(settings.training.record),
            wanted="nothing",
            fix="leave it out, or run the study on the command line",
        )


def _check_gating(key: str, gating: Any) -> None:
    masks = gating.masks or gating.gates or {}
    if len(masks) > PATHWAYS:
        raise too_much(f"{key}.masks", "the number of pathways", len(masks), PATHWAYS)
    widths = gating.hidden if isinstance(gating.hidden, Mapping) else {"": gating.hidden or 1}
    for name, width in widths.items():
        if width > WIDTH:
            where = f"{key}.hidden.{name}" if name else f"{key}.hidden"
            raise too_much(where, "a pathway", f"{width} neurons", WIDTH)


def check_problem(problem: Problem) -> None:
    """Raise where a task or a gating is larger than the explorer takes on."""
    data = problem.data
    if data.n_samples > SAMPLES:
        raise too_much("task", "this task", f"{data.n_samples} samples", f"{SAMPLES} samples")
    features = sum(a.shape[1] for a in (*data.x.values(), *data.y.values()))
    if features > FEATURES:
        got = f"{features} inputs and outputs"
        raise too_much("task", "this task", got, f"{FEATURES} of them")
    for name, (arch, _) in problem.candidates.items():
        nodes, edges = len(arch.sizes), len(arch.edges)
        if nodes > NODES or edges > EDGES:
            got, most = f"{nodes} nodes and {edges} edges", f"{NODES} and {EDGES}"
            raise too_much(f"gatings.{name}", "the graph of this gating", got, most)


def check_training(problem: Problem, networks: int | None = None, *, recorded: bool) -> None:
    """Raise where training would take too long, or record too much."""
    training, arch = problem.settings.training, problem.relu.arch
    networks = training.seeds if networks is None else networks
    weights = sum(arch.sizes[s] * arch.sizes[t] for s, t in arch.edges.values())
    work = float(training.steps) * networks * weights * problem.data.n_samples
    if work > WORK:
        raise too_much(
            "training.steps",
            "this training",
            f"{training.steps} steps of {networks} networks with {weights} weights",
            f"{max(1, int(training.steps * WORK / work))} steps",
            "fewer steps, networks or neurons",
        )
    records = len(training.record_at or ()) or training.steps // training.every + 2
    if recorded and float(records) * networks * weights > RECORDED:
        raise too_much(
            "training.record_every",
            "what is recorded",
            f"{records} records of {networks} networks with {weights} weights",
            f"{RECORDED:.0e} numbers",
            "record less often, or train fewer or narrower networks",
        )
