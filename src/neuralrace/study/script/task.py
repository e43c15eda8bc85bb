"""The task, the network and the gatings of a study, as code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.study import expressions
from neuralrace.study.build import (
    SAMPLE,
    Problem,
    chain_parts,
    ends_of,
    graph_of,
    hidden_widths,
    masks_of,
    pathway_names,
    pathway_widths,
)
from neuralrace.study.copies import copies
from neuralrace.study.files import read_table
from neuralrace.study.script.code import call, heading, mapping

if TYPE_CHECKING:
    from neuralrace.study.model import Gating, Settings, Task


def task_lines(problem: Problem) -> list[str]:
    settings = problem.settings
    lines = [*heading("the task"), f"data = {task_code(problem, settings.task)}"]
    if settings.training.dtype != "float64":
        kind = settings.training.dtype
        lines += [
            "",
            "",
            "def narrow(data):",
            f'    """The data in {kind}, as the networks are trained."""',
            f"    cut = lambda arrays: {{n: np.asarray(a, {kind!r}) for n, a in arrays.items()}}",
            "    weight, labels = data.sample_weight, data.labels",
            "    return nr.Dataset(cut(data.x), cut(data.y), cut(data.gates), weight, labels)",
            "",
        ]
    return lines


def task_code(problem: Problem, task: Task) -> str:
    """The dataset of a task."""
    if task.file is not None:
        options: dict[str, Any] = {
            "x": _columns(task.x, "x"),
            "y": _columns(task.y, "y"),
            "labels": list(task.labels),
        }
        options |= {} if task.weight is None else {"weight": task.weight}
        options |= {"standardise": True} if task.standardise else {}
        options |= {"scale": dict(task.scale)} if task.scale else {}
        return call("nr.study.read_task", _copy(problem, task.file), **options)
    if task.python is not None:
        module, _, function = task.python.partition(":")
        return call(f"{module}.{function}", **task.parameters)
    made = call(f"nr.tasks.{task.builtin}", **task.parameters)
    return f"{made}[0]  # the trained routes" if task.builtin == "routing" else made


def _copy(problem: Problem, file: str) -> str:
    """The path of the copy of a file."""
    return f"HERE / {copies(problem)[problem.document.folder / file]!r}"


def _columns(columns: Mapping[str, tuple[str, ...]], node: str) -> dict[str, list[str]]:
    return {name or node: list(names) for name, names in columns.items()}


def network_code(problem: Problem) -> str:
    settings, data = problem.settings, problem.data
    network = settings.network
    options: dict[str, Any] = {"leak": network.leak} if network.leak else {}
    options |= {"bias": True} if network.bias else {}
    plain = network.graph is None and [*data.x, *data.y] == ["x", "y"]
    if plain:
        ends = data.x["x"].shape[1], data.y["y"].shape[1]
        sizes = (ends[0], *hidden_widths(settings), ends[1])
        return call("nr.ReLUNetwork", repr(sizes), **options)
    return call("nr.ReLUNetwork", "graph", **options)


def _graph_lines(problem: Problem) -> list[str]:
    """The graph, where the network is no plain chain."""
    settings, data = problem.settings, problem.data
    if settings.network.graph is not None:
        arch = graph_of(settings, data)
        sizes, edges = dict(arch.sizes), dict(arch.edges)
    elif [*data.x, *data.y] == ["x", "y"]:
        return []
    else:
        sizes, edges = chain_parts(data, hidden_widths(settings))
    return [f"graph = {call('nr.Architecture', sizes=sizes, edges=edges)}"]


def gating_lines(problem: Problem) -> list[str]:
    lines = _graph_lines(problem)
    if problem.candidates:
        lines += heading("which pathway is on for which sample")
        if problem.settings.task.file is not None and _uses_columns(problem):
            file = _copy(problem, problem.settings.task.file)
            lines.append(f"table = nr.study.read_table({file})")
        codes = gating_codes(problem, problem.settings)
        lines.append(f"gatings = {mapping(codes)}")
    return lines


def gating_codes(problem: Problem, settings: Settings) -> dict[str, str]:
    """The code of every gating by name."""
    return {n: _gating_code(problem, g, settings) for n, g in settings.gatings.items()}


def _gating_code(problem: Problem, gating: Gating, settings: Settings) -> str:
    if gating.builtin is not None:
        return call(f"nr.tasks.{gating.builtin}", "data", **gating.parameters)
    if gating.python is not None:
        module, _, function = gating.python.partition(":")
        return call(f"{module}.{function}", "data", **gating.parameters)
    if gating.gates is not None:
        gates = {n: t for n, t in gating.gates.items() if expressions.parse(t) is not None}
        codes = mapping({n: _mask_code(problem, t) for n, t in gates.items()})
        return f"(graph, data.gated({codes}))"
    folder, place = problem.document.folder, problem.place
    masks = masks_of(gating, settings, problem.data, folder, place)
    widths = pathway_widths(gating, settings, masks)
    if gating.file is not None:
        code = f"nr.study.read_masks({_copy(problem, gating.file)})"
    elif gating.masks is not None:
        code = mapping({n: _mask_code(problem, text) for n, text in gating.masks.items()})
    else:
        code = _each_code(problem, str(gating.each))
    return call("nr.pathways", "data", code, hidden=widths, **ends_of(gating))


def _each_code(problem: Problem, label: str) -> str:
    if label == SAMPLE and label not in problem.data.labels:
        return "data.one_per_sample()"
    values = np.unique(np.asarray(problem.data.labels[label]))
    code = f"np.asarray(data.labels[{label!r}])"
    names = pathway_names(label, values)
    return mapping({name: f"{code} == {value!r}" for name, value in names.items()})


def _mask_code(problem: Problem, text: str | tuple[int, ...]) -> str:
    tree = expressions.parse(text)
    return "None" if tree is None else expressions.code(tree, lambda name: _spelled(problem, name))


def _spelled(problem: Problem, name: expressions.Name) -> str:
    """The code of a label, a column or a node."""
    data = problem.data
    if name.name in data.labels:
        return f"np.asarray(data.labels[{name.name!r}])"
    if name.name in {**data.x, **data.y} and not _is_column(problem, name.name):
        end = "x" if name.name in data.x else "y"
        return f"data.{end}[{name.name!r}][:, {name.column or 0}]"
    if name.name == SAMPLE and not _is_column(problem, SAMPLE):
        return "np.arange(1, data.n_samples + 1)"
    return f"table[{name.name!r}]"


def _is_column(problem: Problem, name: str) -> bool:
    task, folder = problem.settings.task, problem.document.folder
    if task.file is None:
        return False
    column = read_table(folder / task.file).get(name)
    return column is not None and column.ndim == 1


def _uses_columns(problem: Problem) -> bool:
    codes = "".join(gating_codes(problem, problem.settings).values())
    return "table[" in codes


def narrowed(problem: Problem, code: str) -> str:
    return code if problem.settings.training.dtype == "float64" else f"narrow({code})"
