"""The columns of a task's table: what there is to choose from."""

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


def _table(problem: Problem) -> dict[str, np.ndarray]:
    file = problem.settings.task.file
    return {} if file is None else read_table(problem.document.folder / file)
