"""What each number of a task from a table is: a column, or a value of a column of text."""

from __future__ import annotations

import numpy as np

from neuralrace.errors import check_kind
from neuralrace.study.build import Problem
from neuralrace.study.files import read_table


def features_of(problem: Problem) -> dict[str, list[str]]:
    """For each node of a task from a table, what each of its numbers is; {} for other tasks.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> import neuralrace as nr
    >>> path = Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = path.write_text("size,kind,sweet\\n1.0,pear,1\\n2.0,fig,0\\n")
    >>> study = nr.Study.of(questions=["train"],
    ...                     task={"file": str(path), "x": ["size", "kind"], "y": ["sweet"]})
    >>> nr.study.features_of(study.check())
    {'x': ['size', 'kind fig', 'kind pear'], 'y': ['sweet']}

    ```
    """
    check_kind("problem", problem, Problem, "pass what study.check() returns")
    task = problem.settings.task
    if task.file is None:
        return {}
    table = read_table(problem.document.folder / task.file)
    return {
        node or end: [text for name in names for text in _parts(name, table[name])]
        for end, nodes in (("x", task.x), ("y", task.y))
        for node, names in nodes.items()
    }


def _parts(name: str, column: np.ndarray) -> list[str]:
    """What the numbers are that one column stands for: text is one number per value."""
    if column.dtype.kind in "US":
        return [f"{name} {value}" for value in np.unique(column).tolist()]
    return [name] if column.ndim == 1 else [f"{name} {i + 1}" for i in range(column.shape[1])]
