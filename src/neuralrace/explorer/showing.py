"""The task as a picture, and the graph as the library draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, zero_loss
from neuralrace.errors import NeuralRaceError
from neuralrace.explorer.messages import curve, number
from neuralrace.explorer.state import expression, label_expression, problem_of, without
from neuralrace.explorer.trust import Trust
from neuralrace.plot import cycle_colour, graph_layout
from neuralrace.report import Table
from neuralrace.results import Result
from neuralrace.study import Problem, feature_names, read_table
from neuralrace.text import plain

Tell: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Sends a part of an answer; raises where the answer is no longer wanted."""

SHOWN = 40_000
"""Numbers of a task that are sent to a page; of larger nodes the first columns are."""


NAME = "given"
"""The name of the gating and of the table of a pair."""


def texts(found: Result) -> list[str]:
    """The sentences of a result, for people to read."""
    return [said.text for said in found.sentences()]


@cache
def colours() -> list[str]:
    """The colours of the style's cycle."""
    return [cycle_colour(i) for i in range(8)]


def data(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """Inputs, targets and labels of the task of a state, and the columns of its table."""
    problem = problem_of(without(message.get("state"), "gatings"), ["train"], trust)
    task, features = problem.data, feature_names(problem)
    ends = {"input": task.x, "output": task.y}
    total = sum(a.shape[1] for arrays in ends.values() for a in arrays.values())
    share = min(1.0, SHOWN / max(1, total * task.n_samples))
    nodes = []
    for end, arrays in ends.items():
        for name, values in arrays.items():
            values = np.asarray(values, float)
            most = max(1, int(share * values.shape[1]))
            nodes.append(
                {
                    "name": name,
                    "end": end,
                    "size": values.shape[1],
                    "values": [curve(row) for row in values[:, :most]],
                    "cut": most < values.shape[1],
                    "features": features.get(name, [])[:most],
                }
            )
    every = np.concatenate(
        [np.asarray(a, float).ravel() for e in ends.values() for a in e.values()]
    )
    sizes = ", ".join(f"{node['name']} ({node['size']})" for node in nodes)
    labels = f", labels {', '.join(task.labels)}" if task.labels else ""
    return {
        "samples": task.n_samples,
        "nodes": nodes,
        "columns": columns_of(problem),
        "labels": {name: plain(np.asarray(values)) for name, values in task.labels.items()},
        "weight": None if task.sample_weight is None else curve(task.sample_weight),
        "lowest": number(every.min()),
        "largest": number(every.max()),
        "zero_loss": number(zero_loss(task)),
        "sentence": f"{task.n_samples} samples, {sizes}{labels}",
    }


@lru_cache(maxsize=64)
def drawn(arch: Architecture) -> dict[str, Any]:
    """Where the nodes and edges of a graph stand, in inches, as the library draws it."""
    found = graph_layout(arch.sizes, arch.edges)
    kinds = dict.fromkeys(arch.inputs, "input") | dict.fromkeys(arch.outputs, "output")
    nodes = [
        {
            "name": name,
            "size": arch.sizes[name],
            "kind": kinds.get(name, "hidden"),
            "x": round(box.x, 4),
            "y": round(box.y, 4),
            "w": round(box.width, 4),
            "h": round(box.height, 4),
            "branch": found.branches.get(name),
        }
        for name, box in found.boxes.items()
    ]
    edges = []
    for name, (source, target) in arch.edges.items():
        branch = found.branches.get(source, found.branches.get(target))
        path = np.round(found.paths[name], 4).tolist()
        ends = {"source": source, "target": target}
        edges.append({"name": name, **ends, "path": path, "branch": branch})
    size = {"width": round(found.width, 4), "height": round(found.height, 4)}
    return {**size, "nodes": nodes, "edges": edges}


def branches_of(arch: Architecture) -> dict[str, list[str]]:
    """The pathways of a graph by name: hidden nodes in an unforked chain are one."""
    groups: dict[int, list[str]] = {}
    for node in drawn(arch)["nodes"]:
        if node["branch"] is not None:
            groups.setdefault(node["branch"], []).append(node["name"])
    return {nodes[0]: nodes for _, nodes in sorted(groups.items())}


def gate_of(task: Dataset, nodes: list[str]) -> np.ndarray:
    """On which samples all nodes of a pathway are on, as one number per sample."""
    found = np.ones(task.n_samples)
    for node in nodes:
        gate = np.asarray(task.gates.get(node, found), float)
        found = found * (gate if gate.ndim == 1 else gate.mean(axis=1))
    return found


def pathway_list(arch: Architecture, task: Dataset) -> list[dict[str, Any]]:
    """Every pathway with its width, its gates and where it reads and writes."""
    found = []
    edges = list(arch.edges.values())
    for branch, (name, nodes) in enumerate(branches_of(arch).items()):
        gate = gate_of(task, nodes)
        binary = bool(np.isin(gate, (0, 1)).all())
        found.append(
            {
                "name": name,
                "width": arch.sizes[name],
                "nodes": nodes,
                "mask": gate.astype(int).tolist() if binary else curve(gate),
                "expression": _in_words(gate > 0, task) if binary else "",
                "branch": branch,
                "inputs": [s for s, t in edges if t in nodes and s in arch.inputs],
                "outputs": [t for s, t in edges if s in nodes and t in arch.outputs],
            }
        )
    return found


def _in_words(mask: np.ndarray, task: Dataset) -> str:
    return label_expression(mask, task.labels) or expression(mask)


def rounded(arch: Architecture, task: Dataset) -> tuple[dict[str, Any], int]:
    """Gates of one hidden layer as masks, and how many of them lay between 0 and 1.

    A gate is on above one half. Pathways that are then equal are joined, and those that are never
    on are left out; numbers in the names of the others are without gaps.
    """
    gates = {v: np.asarray(task.gates.get(v, np.ones(task.n_samples))) for v in arch.hidden}
    between = sum(int(np.sum((gate > 0) & (gate < 1))) for gate in gates.values())
    gated = task.gated({v: (gate > 0.5).astype(float) for v, gate in gates.items()})
    made = editable(arch, gated)
    assert made is not None, "one hidden layer of gates 0 and 1 is a set of pathways"
    first: dict[Any, str] = {}
    for name, mask in list(made["masks"].items()):
        ends = [made.get(key, {}).get(name) for key in ("inputs", "outputs")]
        home = first.setdefault(str((mask, ends)), name)
        if home != name and any(mask):
            made["hidden"][home] += made["hidden"][name]
        if home != name or not any(mask):
            for part in made.values():
                part.pop(name, None)
    names = _numbered(list(made["masks"]))
    return {k: {names[v]: x for v, x in part.items()} for k, part in made.items()}, between


def _numbered(names: list[str]) -> dict[str, str]:
    """Names that end with a number, counted anew.

    ```python
    >>> from neuralrace.explorer.showing import _numbered
    >>> _numbered(["aligned1", "aligned3", "later2", "other"])
    {'aligned1': 'aligned1', 'aligned3': 'aligned2', 'later2': 'later1', 'other': 'other'}

    ```
    """
    seen: dict[str, int] = {}
    found = {}
    for name in names:
        stem = name.rstrip("0123456789")
        seen[stem] = seen.get(stem, 0) + 1
        found[name] = name if stem == name else f"{stem}{seen[stem]}"
    return found


def editable(arch: Architecture, task: Dataset) -> dict[str, Any] | None:
    """The gating as masks, which a page can edit; None where it is no set of pathways."""
    simple = arch.path_lengths == {2} and set(task.gates) <= set(arch.hidden)
    gates = {v: np.asarray(task.gates.get(v, np.ones(task.n_samples))) for v in arch.hidden}
    if not simple or any(g.ndim != 1 or not np.isin(g, (0, 1)).all() for g in gates.values()):
        return None
    made: dict[str, Any] = {
        "masks": {v: gate.astype(int).tolist() for v, gate in gates.items()},
        "hidden": {v: arch.sizes[v] for v in arch.hidden},
    }
    edges = list(arch.edges.values())
    inputs = {v: [s for s, t in edges if t == v] for v in arch.hidden}
    outputs = {v: [t for s, t in edges if s == v] for v in arch.hidden}
    for key, ends, every in (("inputs", inputs, task.x), ("outputs", outputs, task.y)):
        some = {v: those for v, those in ends.items() if len(those) < len(every)}
        made |= {key: some} if some else {}
    return made


def columns_of(problem: Problem) -> list[dict[str, Any]]:
    """Every column of the task's table, with its kind and how many values it has; [] for none."""
    return [
        {"name": name, "text": column.dtype.kind in "US", "values": len(np.unique(column))}
        for name, column in _table(problem).items()
    ]


def _table(problem: Problem) -> dict[str, np.ndarray]:
    file = problem.settings.task.file
    return {} if file is None else read_table(problem.document.folder / file)


# ---- a gated network that was made in Python, as the state of a page ----------------------------


def state_of_pair(arch: Architecture, data: Dataset) -> dict[str, Any]:
    """The state that shows a pair `(arch, data)`: its samples as a table, its gates as lists.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.explorer.showing import state_of_pair
    >>> state = state_of_pair(*nr.tasks.linear_pathways(nr.tasks.extended_xor(0.5)))
    >>> state["task"]["x"], state["gatings"]["given"]["masks"]["positive"]
    ({'x': ['x_1', 'x_2', 'x_3']}, [0, 1, 1, 0])

    ```
    """
    columns: dict[str, np.ndarray] = {}
    task: dict[str, Any] = {"file": f"{NAME}.csv", "x": {}, "y": {}, "labels": []}
    for end, arrays in (("x", data.x), ("y", data.y)):
        for node, values in arrays.items():
            values = np.asarray(values, float)
            names = [f"{node}_{i + 1}" for i in range(values.shape[1])]
            task[end][node] = names
            columns |= dict(zip(names, values.T, strict=True))
    for label, values in data.labels.items():
        if label != "sample" and label not in columns and label.isidentifier():
            task["labels"].append(label)
            columns[label] = np.asarray(values)
    if data.sample_weight is not None:
        task["weight"] = "weight_of_sample"
        columns["weight_of_sample"] = np.asarray(data.sample_weight)
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    state: dict[str, Any] = {
        "title": "A gated network",
        "task": task,
        "network": {"widths": max(1, sum(arch.sizes[v] for v in arch.hidden)), "scale": 1e-3},
        "gatings": {NAME: _gating(arch, data)},
        "training": {"learning_rate": 0.05, "steps": 1000, "seeds": 1, "key": 0},
        "contest": {"criterion": 0.5, "relative": True},
        "table": {
            "name": f"{NAME}.csv",
            "text": Table([*columns], rows).csv(),
        },
    }
    if "gates" in state["gatings"][NAME]:
        hidden = {v: arch.sizes[v] for v in arch.hidden}
        edges = {edge: list(ends) for edge, ends in arch.edges.items()}
        state["network"] = {"scale": 1e-3, "graph": {"sizes": hidden, "edges": edges}}
        state["contest"]["start"] = 0.05
    return state


def _gating(arch: Architecture, data: Dataset) -> dict[str, Any]:
    """The gates as masks of pathways, or as gates of the nodes and edges of a graph."""
    made = editable(arch, data)
    if made is not None:
        return made
    gates = {name: np.asarray(gate) for name, gate in data.gates.items()}
    odd = [n for n, g in gates.items() if g.ndim != 1 or not np.isin(g, (0, 1)).all()]
    if odd:
        raise NeuralRaceError(
            "the explorer shows gates that are on or off",
            got=f"other gates of {', '.join(odd[:5])}",
            wanted="0 or 1 for every sample, the same for all neurons of a node",
            fix="round the gates, or divide the node",
        )
    return {"gates": {name: gate.astype(int).tolist() for name, gate in gates.items()}}
