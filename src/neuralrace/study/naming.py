"""What the rows and columns of a task are called, where that is known."""

from __future__ import annotations

import numpy as np

from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.study.build import Problem
from neuralrace.study.files import read_table


@door
def feature_names(problem: Problem) -> dict[str, list[str]]:
    """For each node of a task from a table, what each of its numbers is; {} for other tasks.

    `problem` is what `Study.check` returns.

    ```python
    >>> import tempfile, neuralrace as nr
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "fruit.csv").write_text("size,kind,sweet\\n1.0,pear,1\\n2.0,fig,0\\n")
    >>> task = {"file": "fruit.csv", "x": ["size", "kind"], "y": ["sweet"]}
    >>> study = nr.Study.of(folder=folder, questions=["train"], task=task)
    >>> nr.study.feature_names(study.check())
    {'x': ['size', 'kind fig', 'kind pear'], 'y': ['sweet']}

    ```
    """
    task = problem.settings.task
    if task.file is None:
        return {}
    table = read_table(problem.document.folder / task.file)
    return {
        node or end: [text for name in names for text in _parts(name, table[name])]
        for end, nodes in (("x", task.x), ("y", task.y))
        for node, names in nodes.items()
    }


def sample_names(data: Dataset) -> list[str] | None:
    """Samples by their labels that are text, such as "spoon, home"; None where there are none."""
    texts = [np.asarray(v) for v in data.labels.values() if np.asarray(v).dtype.kind in "US"]
    return [", ".join(values) for values in zip(*texts, strict=True)] if texts else None


def _parts(name: str, column: np.ndarray) -> list[str]:
    """What the numbers are that one column stands for: text is one number per value."""
    if column.dtype.kind in "US":
        return [f"{name} {value}" for value in np.unique(column).tolist()]
    return [name] if column.ndim == 1 else [f"{name} {i + 1}" for i in range(column.shape[1])]
