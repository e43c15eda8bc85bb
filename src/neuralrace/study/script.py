"""A study as a Python script: the steps of its questions, printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from neuralrace import __version__
from neuralrace.study.build import Problem, build
from neuralrace.study.copies import own_modules
from neuralrace.study.plan import STEPS, graph_call, needed
from neuralrace.study.steps import Given, code, indented

NARROW = '''

def narrow(data):
    """The data in {kind}, as the networks are trained."""
    cut = lambda arrays: {{n: np.asarray(a, "{kind}") for n, a in arrays.items()}}
    weight, labels = data.sample_weight, data.labels
    return nr.Dataset(cut(data.x), cut(data.y), cut(data.gates), weight, labels)

'''

VARIED = """
# where does the winner change with {name}?
def task(value):
    return {task}


def candidates(value):
    data = task(value)
    return {gatings}


values = {values!r}
"""


def script_of(problem: Problem) -> str:
    """The whole script."""
    settings = problem.settings
    text = "\n".join(_body(problem))
    own = own_modules(settings)
    here = bool(own) or "HERE" in text
    title = one_line(settings.title or Path(problem.document.file).stem)
    head = [f'"""{title}. Made from a study by neuralrace {__version__}."""', ""]
    head += ["import sys"] * bool(own) + ["from pathlib import Path"] * here + [""] * here
    head += ["import jax"] + ["import numpy as np"] * ("np." in text)
    head += ["import optax"] * ("optax." in text)
    head += ["", "import neuralrace as nr", "", 'jax.config.update("jax_enable_x64", True)']
    head += ["HERE = Path(__file__).parent  # the files of the study lie beside this script"] * here
    if own:
        head += ["sys.path.insert(0, str(HERE))", ""]
        head += [f"import {name}  # noqa: E402" for name in own]
    return "\n".join([*head, text, ""])


def _body(problem: Problem) -> Iterator[str]:
    """The task, the network, the gatings, and the steps of every question."""
    settings, steps = problem.settings, needed(problem)
    yield f"\n# the task\ndata = {code(problem.calls['task'])}"
    if settings.training.dtype != "float64":
        yield NARROW.format(kind=settings.training.dtype)
    if (graph := graph_call(problem)) is not None:
        yield f"graph = {code(graph)}"
    if problem.candidates:
        gatings = code(_gatings(problem))
        yield "\n# which pathway is on for which sample"
        if settings.task.file is not None and "table[" in gatings:
            (path,) = problem.calls["task"].arguments
            yield f"table = nr.study.read_table({path})"
        yield f"gatings = {gatings}"
    for name in steps:
        if name == "phases":
            yield _varied(problem)
        step = STEPS[name](problem, settings.training.seeds)
        if step.heading:
            yield f"\n# {step.heading}"
        yield "\n".join([f"{name} = {code(step.makes)}", *step.shown])


def _gatings(problem: Problem) -> dict[str, Any]:
    return {name: problem.calls[f"gatings.{name}"] for name in problem.settings.gatings}


def _varied(problem: Problem) -> str:
    """The functions of a phase diagram: the task and the gatings at a value of its number."""
    options = problem.settings.phase_diagram
    assert options is not None
    settings = _with(problem.settings, options.key.split("."), Given(options.points[0], "value"))
    made = build(settings, problem.document)
    return VARIED.format(
        name=one_line(options.called),
        task=indented(code(made.calls["task"])).strip(),
        gatings=indented(code(_gatings(made))).strip(),
        values=options.points,
    ) + f"networks_at = {options.trained_at}" * bool(options.networks)


def _with(model: Any, path: list[str], value: Given) -> Any:
    """Settings with another value at one place; nothing is checked."""
    first, *rest = path
    if isinstance(model, Mapping):
        return {**model, first: _with(model[first], rest, value) if rest else value}
    inner = _with(getattr(model, first), rest, value) if rest else value
    return model.model_copy(update={first: inner})


def one_line(text: str) -> str:
    """Text of the user's for a comment or a docstring: it cannot end either."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")
