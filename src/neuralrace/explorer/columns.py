"""The columns of a task's table: what there is to choose from, and what each row of a task is."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralrace.study import Problem, read_table


def columns_of(problem: Problem) -> list[dict[str, Any]]:
    """Every column of the task's table, with its kind and how many values it has; [] for none."""
    return [
        {"name": name, "text": column.dtype.kind in "US", "values": len(np.unique(column))}
        for name, column in _table(problem).items()
    ]


def features_of(problem: Problem) -> dict[str, list[str]]:
    """For each node of a task from a table, what each of its numbers is; {} for other tasks."""
    table, task = _table(problem), problem.settings.task
    if not table:
        return {}
    return {
        node or end: [text for name in names for text in _parts(name, table[name])]
        for end, nodes in (("x", task.x), ("y", task.y))
        for node, names in nodes.items()
    }


def _table(problem: Problem) -> dict[str, np.ndarray]:
    file = problem.settings.task.file
    return {} if file is None else read_table(problem.document.folder / file)


def _parts(name: str, column: np.ndarray) -> list[str]:
    """What the numbers are that one column stands for: text is one number per value."""
    if column.dtype.kind in "US":
        return [f"{name} {value}" for value in np.unique(column).tolist()]
    return [name] if column.ndim == 1 else [f"{name} {i + 1}" for i in range(column.shape[1])]
