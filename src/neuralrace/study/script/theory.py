"""The questions that need no training, as code: contest, reduction, phase diagram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neuralrace.study.build import UNGATED, Problem
from neuralrace.study.grid import spread
from neuralrace.study.options import Raw, contest_options, modes_options, training_options
from neuralrace.study.script.code import call, heading, indented, mapping
from neuralrace.study.script.task import gating_codes, narrowed, network_code, task_code
from neuralrace.study.script.training import key_code

if TYPE_CHECKING:
    from neuralrace.study.model import Settings


def theory_lines(problem: Problem) -> list[str]:
    settings, asked = problem.settings, problem.settings.questions
    lines: list[str] = []
    if "contest" in asked or _needs_winner(problem):
        options = contest_options(settings) | {"key": settings.training.key}
        options |= {"check": True} if settings.contest.check else {}
        task = "gatings" if problem.candidates else "data"
        lines += heading("which gating learns first? Nothing is trained")
        lines.append(f"who = {call('nr.contest', task, **options)}")
        lines.append("print(who)" if settings.contest.check else "print(who.winner, who.times)")
    if "reduce" in asked or "modes" in asked:
        tolerance = settings.reduce.tolerance
        lines += heading("the neural race reduction of every gating")
        net = network_code(problem)
        graph = "graph" if "graph" in net else f"{net}.arch"
        pairs = "gatings" if problem.candidates else f"{{{UNGATED!r}: ({graph}, data)}}"
        lines.append("races = {")
        lines.append(f"    name: nr.reduce(*pair, tolerance={tolerance!r})")
        lines += [f"    for name, pair in {pairs}.items()", "}"]
        if "reduce" in asked:
            lines += ["for name, race in races.items():", '    print(name, race, sep="\\n")']
    if "modes" in asked:
        lines += heading("which distinctions are learned first?")
        given = indented(call("race.modes", **modes_options(problem)))
        lines += ["modes = {", f"    name: {given.strip()}", "    for name, race in races.items()"]
        lines += ["}", "for name, table in modes.items():", '    print(name, table, sep="\\n")']
    return lines


def _needs_winner(problem: Problem) -> bool:
    settings = problem.settings
    follows = bool({"predict", "certify"} & set(settings.questions))
    return follows and settings.predict.gating is None and len(problem.candidates) > 1


def phase_lines(problem: Problem) -> list[str]:
    settings = problem.settings
    options = settings.phase_diagram
    if "phase_diagram" not in settings.questions or options is None:
        return []
    varied = with_raw(settings, options.key.split("."), Raw(None, "value"))
    values = spread(options.values)
    name = options.name or options.key.rpartition(".")[2]
    arguments = contest_options(settings) | {"precision": options.precision}
    arguments |= {"check": True} if settings.contest.check else {}
    lines = [
        *heading(f"where does the winner change with {name}?"),
        "def task(value):",
        f"    return {indented(task_code(problem, varied.task)).strip()}",
        "",
        "",
        "def candidates(value):",
        "    data = task(value)",
        f"    return {indented(mapping(gating_codes(problem, varied))).strip()}",
        "",
        "",
        f"values = {values!r}",
        f"phases = {call('nr.phase_diagram', 'candidates', repr(name), 'values', **arguments)}",
        "print(phases)" if settings.contest.check else "print(phases.crossovers)",
    ]
    if options.networks:
        chosen = "values" if options.networks_at is None else repr(list(options.networks_at))
        trained = training_options(problem) | {"seeds": options.networks}
        lines += [
            f"relu = {network_code(problem)}",
            f"networks_at = {chosen}",
            "many = "
            + call(
                "nr.train_ensemble",
                "relu",
                f"[{narrowed(problem, 'task(value)')} for value in networks_at]",
                axis=Raw(None, '("value", networks_at)'),
                key=Raw(None, key_code(problem, 0)),
                **trained,
            ),
            "learning_times = [",
            f"    nr.trajectory.crossing_time(many.time, loss, {_criterion_code(settings)})",
            "    for loss, value in zip(many.loss, networks_at, strict=True)",
            "]",
            "print(learning_times)",
        ]
    return lines


def with_raw(model: Any, path: list[str], raw: Raw) -> Any:
    """Settings with a piece of code in place of one value; nothing is checked."""
    first, *rest = path
    if isinstance(model, Mapping):
        return {**model, first: with_raw(model[first], rest, raw) if rest else raw}
    inner = with_raw(getattr(model, first), rest, raw) if rest else raw
    return model.model_copy(update={first: inner})


def _criterion_code(settings: Settings) -> str:
    level = settings.contest.criterion
    text = repr(0.2 if level is None else level)
    return f"{text} * nr.dataset.zero_loss(task(value))" if settings.contest.relative else text
