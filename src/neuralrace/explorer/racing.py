"""The race of every gating: losses, strengths, who is first, equations, whether gates are kept."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.contests import Contest, Entrant, leads
from neuralrace.dataset import Dataset, zero_loss
from neuralrace.errors import NeuralRaceError
from neuralrace.explorer.messages import curve, error_of, number
from neuralrace.explorer.showing import (
    Tell,
    branches_of,
    colours,
    drawn,
    editable,
    pathway_list,
    rounded,
)
from neuralrace.explorer.state import need, problem_of, without, wrong
from neuralrace.explorer.trust import Trust
from neuralrace.mathml import formula
from neuralrace.reduction import Race, reduce
from neuralrace.reln import aligned as aligned_gating
from neuralrace.reln import consistency
from neuralrace.report import Code, Equation, Section, Table, Text, equations_of
from neuralrace.study import LIMITS, Problem, StudyError, Work
from neuralrace.text import numbered, plain
from neuralrace.tolerances import EQUAL, KEPT, LONGER, SENT
from neuralrace.trajectory import Trajectory

POINTS = 201
"""Moments at which curves are sent."""

FURTHEST = 4.0
"""For the reference and for trained networks, curves last at most this many times longer still."""

ENDLESS = 20.0
"""Where none learns, curves last this many times one over the largest strength."""

MODES = 24
"""The most modes of a gating whose curves are sent, the strongest first."""

SAID = ("first", "lead", "limit")
"""The sentences of a contest that a page shows, by id."""

ALIGNED = "aligned_gates"
"""The name of a gating made of aligned gates: `aligned` itself is the reference of a contest."""

ROUNDED = "aligned_rounded"
"""Its name where some gates had to be rounded, so that it is not the reference."""


# ---- problems in which some gatings may be wrong ------------------------------------------------


def tolerant(state: Any, trust: Trust) -> tuple[Problem, dict[str, dict[str, str]]]:
    """The problem of a state without the gatings that cannot be built, and what is wrong there."""
    state = without(state)
    failed: dict[str, dict[str, str]] = {}
    for _ in range(int(LIMITS["gatings"]) + 1):
        try:
            return problem_of(state, ["contest"], trust), failed
        except StudyError as error:
            gatings = state.get("gatings")
            name = error.key.split(".")[1] if error.key.startswith("gatings.") else ""
            if not isinstance(gatings, Mapping) or name not in gatings:
                raise
            failed[name] = error_of(error)
            state = {**state, "gatings": {n: g for n, g in gatings.items() if n != name}}
    raise wrong("gatings", "no gating can be built", len(failed), "at least one", "undo a change")


def contest_of(problem: Problem) -> tuple[Contest | None, dict[str, dict[str, str]]]:
    """The contest of the gatings that can be entered, and what is wrong with the others."""
    if not problem.candidates:
        return None, {}
    try:
        return _work(problem).contest, {}
    except NeuralRaceError:
        failed, fine = {}, {}
        for name, pair in problem.candidates.items():
            try:
                _ = _work(replace(problem, candidates={name: pair})).contest
                fine[name] = pair
            except NeuralRaceError as error:
                failed[name] = error_of(error)
        return (_work(replace(problem, candidates=fine)).contest if fine else None), failed


def _work(problem: Problem) -> Work:
    """What is computed for a page: reductions are remembered, and tolerances suit a picture."""
    return Work(problem, reducing=reduced, rtol=SENT)


def _solution(entrant: Entrant, times: np.ndarray) -> Trajectory:
    return entrant.race.solve(times=times, start=entrant.start, rtol=SENT)


# ---- the prediction -----------------------------------------------------------------------------


def predict(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """Losses, strengths and learning times of all gatings, without training anything.

    `until` asks for curves that last longer than by themselves, for what is drawn beside them.
    """
    until = _until(message.get("until"))
    problem, failed = tolerant(message.get("state"), trust)
    contest, more = contest_of(problem)
    failed |= more
    found: dict[str, Any] = {
        "zero_loss": number(zero_loss(problem.data)),
        "failed": failed,
        "winner": None,
        "order": [],
        "gatings": {},
        "times": [],
        "end": None,
        "criterion": None,
        "start": "",
        "sentences": [] if failed else ["There is no gating yet."],
    }
    if contest is None:
        return found
    times = _axis(contest, until)
    solved = {name: _solution(entrant, times) for name, entrant in contest.entrants.items()}
    losses = {name: solution.loss[:POINTS] for name, solution in solved.items()}
    order = sorted(contest.times, key=contest.times.__getitem__)
    names = list(problem.settings.gatings)
    return found | {
        "times": times.tolist(),
        "end": number(times[POINTS - 1]),
        "criterion": number(next(iter(contest.entrants.values())).criterion),
        "start": contest.start,
        "winner": contest.winner,
        "order": order,
        "sentences": _sentences(contest, times[:POINTS], losses, failed),
        "gatings": {
            name: {
                **_described(entrant, solved[name], problem.candidates[name]),
                "margin": number(contest.margins[name]),
                "place": contest.place(name),
                "colour": colours()[names.index(name) % len(colours())],
            }
            for name, entrant in contest.entrants.items()
        },
    }


def _sentences(
    contest: Contest, times: np.ndarray, losses: Mapping[str, np.ndarray], failed: Mapping[str, Any]
) -> list[str]:
    """The contest in words, which say without whom it was held."""
    every = contest.sentences(leads=leads(times, losses))
    said = [each.text for each in every if each.id in SAID]
    if not failed or contest.winner is None:
        return said
    return [f"Without {', '.join(failed)}, {said[0]}", *said[1:]]


def _until(asked: Any) -> float:
    """How long curves shall last at least."""
    if asked is None:
        return 0.0
    need(
        not isinstance(asked, bool) and isinstance(asked, int | float) and asked > 0,
        "until",
        "the time is not valid",
        f"{asked!r:.60}",
        "a number above 0",
        "leave it out",
    )
    return float(asked)


def _axis(contest: Contest, until: float = 0.0) -> np.ndarray:
    """The moments of all curves: those that the candidates need, and more where asked for."""
    reached = [time for time in contest.times.values() if np.isfinite(time)]
    strongest = max(contest.strengths.values(), default=0.0)
    end = LONGER * max(reached) if reached else ENDLESS / (strongest or 1.0)
    times = np.linspace(0, end, POINTS)
    if until <= (1 + EQUAL) * end:
        return times
    return np.append(times, np.linspace(end, min(until, FURTHEST * end), POINTS // 2 + 1)[1:])


def _described(
    entrant: Entrant, solution: Trajectory, pair: tuple[Architecture, Dataset]
) -> dict[str, Any]:
    """One gating: its times, its reduction, its pathways, modes and graph."""
    race, (arch, data) = entrant.race, pair
    pathways = pathway_list(arch, data)
    modes, by_pathway = _strengths(race, solution)
    for pathway in pathways:
        pathway["strength"] = curve(by_pathway[pathway["name"]])
    return {
        "time": number(entrant.time),
        "least": number(race.constant),
        "strength": number(entrant.strength),
        "method": entrant.method,
        "loss": curve(solution.loss),
        "exact": race.is_exact,
        "residual": number(race.residual),
        "reduction": race.sentences()[0].text,
        "notes": _notes(race),
        "pathways": pathways,
        "modes": modes,
        "modes_cut": max(0, len(race.blocks) - MODES),
        "gates": _gates(race),
        "graph": drawn(arch),
        "editable": editable(arch, data),
    }


def _strengths(
    race: Race, solution: Trajectory
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Curves of the strongest modes, and the strength of every pathway.

    The strength of several paths together is the Frobenius norm of what they compute: the root of
    the sum of their squares, since modes have orthogonal directions.
    """
    groups = branches_of(race.arch)
    home = {part: name for name, nodes in groups.items() for node in nodes for part in (node,)}
    split = race.split.arch
    whole = {part: node for node, parts in race.split.parts.items() for part, _ in parts}
    owner = {node: home.get(whole.get(node, node)) for node in split.sizes}
    squares = {name: np.zeros(len(solution.time)) for name in groups}
    paths: Any = solution.values.get("pathways", {})
    losses = np.asarray(solution.values["losses"])
    modes = []
    for i, block in enumerate(race.blocks):
        total, through = np.zeros(len(solution.time)), []
        for path, strength in paths.get(block.name, {}).items():
            square = np.asarray(strength) ** 2
            total = total + square
            nodes = [split.edges[edge][1] for edge in path.split("-") if edge in split.edges]
            for name in dict.fromkeys(owner.get(node) for node in nodes):
                if name is not None:
                    squares[name] = squares[name] + square
                    through.append(name)
        if i < MODES:
            modes.append(
                {
                    "name": block.name,
                    "scalar": bool(block.is_scalar),
                    "drive": number(block.drive),
                    "pathways": list(dict.fromkeys(through)),
                    "strength": curve(np.sqrt(total)) if block.name in paths else None,
                    "loss": curve(losses[:, i]),
                }
            )
    return modes, {name: np.sqrt(square) for name, square in squares.items()}


def _notes(race: Race) -> list[str]:
    """What the reduction leaves out or cannot learn, one line each."""
    quiet = [f"{node} {count}" for node, count in race.silent.items() if count]
    named = f"{', '.join(quiet[:6])}{' …' * (len(quiet) > 6)}"
    lines = [f"silent directions, which the task does not touch: {named}"] if quiet else []
    if race.constant:
        lines.append(f"loss outside all blocks: {race.constant:.4g}")
    if race.dropped_loss:
        lines.append(f"loss that the tolerance dropped: {race.dropped_loss:.4g}")
    return lines


def _gates(race: Race) -> dict[str, list[Any]]:
    """The gates of all nodes and edges; those of single neurons are averaged."""
    gates = {name: np.asarray(gate, float) for name, gate in race.data.gates.items()}
    return {n: curve(g if g.ndim == 1 else g.mean(axis=1)) for n, g in gates.items()}


# ---- equations ----------------------------------------------------------------------------------


def equations(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The equations of one gating, typeset: the one that is named, or the winner."""
    problem, _ = tolerant(message.get("state"), trust)
    contest, _ = contest_of(problem)
    entrants = {} if contest is None else contest.entrants
    chosen = message.get("gating") or (contest and contest.winner) or next(iter(entrants), None)
    need(
        isinstance(chosen, str) and chosen in entrants,
        "gating",
        "there is no such gating",
        f"{chosen!r:.60}",
        f"one of {', '.join(entrants) or '–'}",
        "choose a gating",
    )
    race = entrants[str(chosen)].race
    return {"gating": chosen, "parts": shown(equations_of(race)), "printed": str(race)}


def shown(parts: Any) -> list[dict[str, Any]]:
    """Parts of a report for a page: equations as MathML, tables and texts; folded ones say so."""
    found: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Equation():
                text = formula(part.expressions)
                found.append({"kind": "equation", "mathml": text, "caption": part.caption})
            case Text():
                found.append({"kind": "text", "text": part.text})
            case Table():
                rows = plain([list(row) for row in part.rows[:200]])
                found.append({"kind": "table", "head": list(part.head), "rows": rows})
            case Code():
                found.append({"kind": "code", "text": part.text})
            case Section():
                inner = {"title": part.title, "parts": shown(part.parts), "folded": part.folded}
                found.append({"kind": "section", **inner})
    return found


# ---- would a ReLU network keep these gates? -----------------------------------------------------


def kept(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The kept share of every gating and of each of its pathways, and the contest's words on it."""
    problem, failed = tolerant(message.get("state"), trust)
    contest, more = contest_of(problem)
    found: dict[str, Any] = {"threshold": KEPT, "gatings": {}, "failed": failed | more}
    found |= {"sentences": [], "aligned": None}
    if contest is None:
        return found
    need(
        not problem.settings.network.bias,
        "network.bias",
        "whether networks with output biases would keep these gates is not known",
        "bias = true",
        "a column of ones in the task, which is a bias of the hidden neurons",
        "leave out bias",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the check says it in its sentences
        check = contest.check()
        for name, entrant in contest.entrants.items():
            found["gatings"][name] = {
                "share": number(check.kept[name]),
                "standing": check.verdict(name).value,
                "detail": check.detail(name),
                "implementable": check.implementable.get(name),
                "pathways": _kept_pathways(problem, name, entrant),
            }
    found["sentences"] = [said.text for said in check.sentences(contest.winner)]
    if check.reference is not None:
        time = number(check.reference.time)
        times = _axis(contest, LONGER * (time or 0.0))
        solution = _solution(check.reference, times)
        found["aligned"] = {"time": time, "times": times.tolist(), "loss": curve(solution.loss)}
    return found


def _kept_pathways(problem: Problem, name: str, entrant: Entrant) -> dict[str, Any]:
    """The share that each pathway keeps, and the samples on which it loses the rest."""
    try:
        arch, data = problem.candidates[name]
        each = consistency(
            arch,
            data,
            start=entrant.start,
            key=problem.settings.training.key,
            leak=problem.settings.network.leak,
        )
    except NeuralRaceError:
        return {}
    return {
        pathway: {"share": number(share), "lost": curve(each.lost[pathway])}
        for pathway, share in each.pathways.items()
    }


def aligned(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The gating that small neurons align to by themselves."""
    problem, _ = tolerant(message.get("state"), trust)
    settings = problem.settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arch, data = aligned_gating(
            problem.data,
            width=problem.settings.network.widths[0],
            key=settings.training.key,
            leak=settings.network.leak,
        )
    gating, between = rounded(arch, data)
    count = len(arch.hidden)
    said = [f"Small neurons align to {numbered(count, 'pattern', '1')} of gates."]
    if between:
        left = len(gating["masks"])
        said.append(
            f"{between} gate{'s lie' if between != 1 else ' lies'} between 0 and 1. They are "
            f"rounded here, which leaves {numbered(left, 'pattern', '1')}."
        )
    return {"name": ROUNDED if between else ALIGNED, "gating": gating, "sentences": said}


# ---- reductions that are kept from one request to the next --------------------------------------
#
# Most sliders leave task and gates as they are: the start, the criterion, the learning rate. The
# race of every gating is then the same, and so is everything that it has worked out.


@final
@dataclass(frozen=True)
class _Question:
    """What a reduction depends on; the data count by their fingerprint, which leaves out labels."""

    arch: Architecture
    digest: str
    tolerance: float | None
    data: Dataset = field(compare=False)


def reduced(arch: Architecture, data: Dataset, *, tolerance: float | None = None) -> Race:
    """The same as `nr.reduce`, but what was reduced before is given again.

    The labels of `race.data` may be those of an equal task that was asked for earlier.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.explorer.racing import reduced
    >>> data = nr.tasks.extended_xor(0.5)
    >>> race = reduced(*nr.tasks.xor_pathways(data))
    >>> race is reduced(*nr.tasks.xor_pathways(nr.tasks.extended_xor(0.5)))
    True
    >>> race is reduced(*nr.tasks.xor_pathways(nr.tasks.extended_xor(0.6)))
    False

    ```
    """
    return _reduced(_Question(arch, data.digest(), tolerance, data))


@lru_cache(maxsize=2 * int(LIMITS["gatings"]))
def _reduced(question: _Question) -> Race:
    """The races of two states with as many gatings as there may be."""
    options = {} if question.tolerance is None else {"tolerance": question.tolerance}
    return reduce(question.arch, question.data, **options)
