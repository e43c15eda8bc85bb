"""The checks that several tasks share."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from neuralrace.dataset import Dataset
from neuralrace.errors import check_kind, listed, require


def label(data: Dataset, name: str, task: str) -> Shaped[np.ndarray, " N"]:
    """The label `name` of every sample, or an error that says which task has it."""
    check_kind("data", data, Dataset, f"pass the ungated dataset, such as that of {task}")
    require(
        name in data.labels,
        f"this gating needs the label {name!r}",
        got=f"labels {listed(data.labels)}",
        wanted=f"a dataset such as that of {task}",
        fix=f"pass labels={{{name!r}: …}} to the Dataset, or use nr.pathways with masks",
    )
    return np.asarray(data.labels[name])
