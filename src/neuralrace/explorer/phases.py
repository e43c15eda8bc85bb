"""Who is first over one or two numbers of a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, final

import numpy as np

from neuralrace.errors import NeuralRaceError
from neuralrace.explorer import limits
from neuralrace.explorer.catalogue import called
from neuralrace.explorer.messages import curve, error_of, number
from neuralrace.explorer.racing import contest_of
from neuralrace.explorer.showing import Tell, texts
from neuralrace.explorer.state import need, problem_of, without, wrong
from neuralrace.explorer.trust import Trust
from neuralrace.study import QUESTIONS, Work


def phases(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """A phase diagram over one key of the state, or the winner over a grid of two."""
    state = without(message.get("state"))
    axes = _axes(message.get("over"))
    for axis in axes:  # the ends of every axis stand for what is between
        for value in (axis["values"][0], axis["values"][-1]):
            problem_of(_with(state, axis["key"], value), ["contest"], trust)
    if len(axes) == 1:
        return _line(state, axes[0], trust)
    return _grid(state, axes, trust, tell)


def _axes(over: Any) -> list[dict[str, Any]]:
    """The keys that are varied, with their values."""
    need(
        isinstance(over, list) and len(over) in (1, 2),
        "over",
        "a phase diagram needs one or two keys",
        f"{over!r:.60}",
        "a list of one or two",
        'for example [{"key": "task.parameters.delta", "start": 0, "stop": 2, "count": 21}]',
    )
    found = [_axis(one, f"over.{i}") for i, one in enumerate(over)]
    cells = int(np.prod([len(axis["values"]) for axis in found]))
    limits.within(cells <= limits.CELLS, "over", "this grid", f"{cells} contests", limits.CELLS)
    if len({axis["key"] for axis in found}) < len(found):
        raise wrong(
            "over.1.key",
            "this key is varied already",
            found[1]["key"],
            "another key",
            "choose another number, or only one",
        )
    return found


def _axis(one: Any, key: str) -> dict[str, Any]:
    """One key with its values: evenly spaced, or in their logarithm, or whole numbers."""
    given: Mapping[str, Any] = one if isinstance(one, Mapping) else {}
    name, low, high = (given.get(part) for part in ("key", "start", "stop"))
    count = given.get("count", 21)
    named = isinstance(name, str) and len(name) < 200
    numbers = _is_number(low) and _is_number(high) and _is_whole(count)
    need(
        named and numbers and low < high and count >= 2,  # type: ignore[operator]
        key,
        "the axis of a phase diagram is not valid",
        f"{one!r:.120}",
        "a key, start below stop, and a count of 2 or more",
        '{"key": "task.parameters.delta", "start": 0, "stop": 2, "count": 21}',
    )
    limits.within(count <= limits.PHASES, f"{key}.count", "this number", count, limits.PHASES)
    first, last = float(low), float(high)  # type: ignore[arg-type]
    log = given.get("log") is True and first > 0
    values = np.geomspace(first, last, count) if log else np.linspace(first, last, count)
    if given.get("whole") is True:
        return {"key": name, "values": sorted({round(v) for v in values.tolist()})}
    return {"key": name, "values": values.tolist()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _with(state: Any, key: str, value: Any) -> Any:
    """The state with another number at a dotted key that it has, or that a section may have."""
    parts = key.split(".")
    need(
        isinstance(state, Mapping) and parts[0] in ("task", "network", "contest", "gatings"),
        "over.0.key",
        "this key cannot be varied",
        f"{key!r:.60}",
        "a number of the task, the network, a gating or the contest",
        "for example task.parameters.delta",
    )
    return _changed(state, parts, key, value)


def _changed(table: Any, parts: list[str], key: str, value: Any) -> dict[str, Any]:
    first, *rest = parts
    inner = table.get(first, {} if rest else None) if isinstance(table, Mapping) else None
    is_leaf = not rest and isinstance(inner, int | float | None) and not isinstance(inner, bool)
    need(
        isinstance(table, Mapping) and (is_leaf or (rest and isinstance(inner, Mapping))),
        "over.0.key",
        "there is no number of this name",
        f"{key!r:.60}",
        "the dotted key of a number of the state",
        "for example task.parameters.delta",
    )
    return {**table, first: _changed(inner, rest, key, value) if rest else value}


def _line(state: Any, axis: dict[str, Any], trust: Trust) -> dict[str, Any]:
    """One number: learning times, and where the winner changes, to many digits if it can."""
    task = state.get("task") if isinstance(state, Mapping) else None
    name = called(task.get("builtin") if isinstance(task, Mapping) else None, axis["key"])
    if not isinstance(state.get("gatings"), Mapping) or not state["gatings"]:
        raise wrong("gatings", "there is no gating yet", "none", "at least one", "add a gating")
    cells = [_cell(_with(state, axis["key"], value), trust) for value in axis["values"]]
    found = _at_values(axis, name, cells)
    between = axis["key"].startswith(("task.", "gatings."))  # all that a study's diagram varies
    winners = found["winners"]
    changed = [i for i, pair in enumerate(pairwise(winners)) if pair[0] != pair[1]]
    if not between or not changed or None in winners or isinstance(axis["values"][0], int):
        return found
    ends = sorted({float(axis["values"][i + k]) for i in changed for k in (0, 1)})
    section = {"key": axis["key"], "values": ends, "name": name}
    whole = _with(state, axis["key"], ends[0]) | {"phase_diagram": section}
    whole["contest"] = {**whole.get("contest", {}), "check": False}
    try:
        answer = QUESTIONS["phase_diagram"].answer(
            Work(problem_of(whole, ["phase_diagram"], trust))
        )
    except NeuralRaceError:  # a value in between at which the contest cannot be held
        return found
    return found | {
        "crossovers": [
            {"value": number(c.value), "below": c.below, "above": c.above}
            for c in answer.value[0].crossovers
        ],
        "sentences": [*texts(answer), f"Drawn for {drawn(name, axis['values'])}."],
    }


def _at_values(axis: dict[str, Any], name: str, cells: Sequence[_Cell]) -> dict[str, Any]:
    """What contests at the values alone say."""
    winners = [cell.winner for cell in cells]
    untold = [value for value, cell in zip(axis["values"], cells, strict=True) if cell.why]
    ends = dict.fromkeys(f"{value:.3g}" for value in untold[:1] + untold[-1:])
    where = f"At {name} = {' … '.join(ends)} ({len(untold)} of {len(cells)} values)"
    return {
        "over": [axis],
        "winners": winners,
        "times": _times(cells),
        "crossovers": [],
        "sentences": [
            changes(name, axis["values"], winners),
            *_untold(where, cells),
        ],
    }


def _untold(where: str, cells: Sequence[_Cell]) -> list[str]:
    """Why nobody can be called first at some places, as a sentence."""
    whys = list(dict.fromkeys(cell.why for cell in cells if cell.why))
    more = f", and {len(whys) - 1} other reasons" if len(whys) > 1 else ""
    return [f"{where} nobody can be called first: {whys[0]}{more}."] if whys else []


def changes(name: str, values: Sequence[float], winners: Sequence[str | None]) -> str:
    """Between which values of a number the winner changes, as a sentence.

    ```python
    >>> from neuralrace.explorer.phases import changes
    >>> changes("M", [2, 3, 4], ["a", "a", None])
    'For M from 2 to 4, the first is a up to M = 3, nobody from M = 4 on.'
    >>> changes("M", [2, 3], ["a", "a"])
    'a is first for M from 2 to 3.'

    ```
    """
    places = zip((winner or "nobody" for winner in winners), values, strict=True)
    runs = [(who, [v for _, v in those]) for who, those in groupby(places, key=itemgetter(0))]
    if len(runs) == 1:
        return f"{runs[0][0]} is first for {drawn(name, values)}."
    (first, begin), *middle, (last, end) = runs
    parts = [f"{first} up to {name} = {begin[-1]:.3g}"]
    parts += [f"{who} from {those[0]:.3g} to {those[-1]:.3g}" for who, those in middle]
    told = ", ".join([*parts, f"{last} from {name} = {end[0]:.3g} on"])
    return f"For {drawn(name, values)}, the first is {told}."


def drawn(name: str, values: Sequence[float]) -> str:
    """The range that a diagram covers, in words.

    ```python
    >>> from neuralrace.explorer.phases import drawn
    >>> drawn("Δ", [0.0, 1.0, 2.0])
    'Δ from 0 to 2'

    ```
    """
    return f"{name} from {values[0]:.4g} to {values[-1]:.4g}"


def _grid(state: Any, axes: list[dict[str, Any]], trust: Trust, tell: Tell) -> dict[str, Any]:
    """Two numbers: a contest at every combination, told row by row."""
    first, second = axes
    rows, every = [], []
    for j, value in enumerate(second["values"]):
        there = _with(state, second["key"], value)
        cells = [_cell(_with(there, first["key"], v), trust) for v in first["values"]]
        row = {"winners": [cell.winner for cell in cells], "times": _times(cells)}
        tell("row", {"row": j, **row})
        rows.append(row)
        every += cells
    untold = sum(bool(cell.why) for cell in every)
    names = dict.fromkeys(name for row in rows for name in row["times"])
    empty = [None] * len(first["values"])
    return {
        "over": axes,
        "winners": [row["winners"] for row in rows],
        "times": {name: [row["times"].get(name, empty) for row in rows] for name in names},
        "sentences": _untold(f"In {untold} of {len(every)} cells", every),
    }


@final
@dataclass(frozen=True)
class _Cell:
    """One place: who is first there, the times, and why nobody can be called first, if so."""

    winner: str | None
    times: Mapping[str, float]
    why: str = ""


def _cell(state: Any, trust: Trust) -> _Cell:
    """The contest at one place; nobody is first where a gating cannot be built or timed."""
    try:
        problem = problem_of(state, ["contest"], trust)
        contest, failed = contest_of(problem)
    except NeuralRaceError as error:
        return _Cell(None, {}, error_of(error)["what"])
    why = next((error["what"] for error in failed.values()), "")
    if contest is None:
        return _Cell(None, {}, why)
    return _Cell(None if why else contest.winner, contest.times, why)


def _times(cells: Sequence[_Cell]) -> dict[str, list[float | None]]:
    names = dict.fromkeys(name for cell in cells for name in cell.times)
    return {name: curve([cell.times.get(name, np.nan) for cell in cells]) for name in names}
