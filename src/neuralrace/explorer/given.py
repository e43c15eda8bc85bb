"""A gated network that was made in Python as the state of a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.explorer.showing import editable

NAME = "given"
"""The name of the gating and of the table of a pair."""


def state_of_pair(arch: Architecture, data: Dataset) -> dict[str, Any]:
    """The state that shows a pair `(arch, data)`: its samples as a table, its gates as lists.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.explorer.given import state_of_pair
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
    state: dict[str, Any] = {
        "title": "A gated network",
        "task": task,
        "network": {"widths": max(1, sum(arch.sizes[v] for v in arch.hidden)), "scale": 1e-3},
        "gatings": {NAME: _gating(arch, data)},
        "training": {"learning_rate": 0.05, "steps": 1000, "seeds": 1, "key": 0},
        "contest": {"criterion": 0.5, "relative": True},
        "table": {"name": f"{NAME}.csv", "text": _csv(columns)},
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


def _csv(columns: dict[str, np.ndarray]) -> str:
    """Columns as the text of a table, every number with all its digits."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    values = [column.tolist() for column in columns.values()]
    writer.writerows(zip(*values, strict=True))
    return text.getvalue()
