"""The checks that several tasks share."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Shaped

from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, listed


def whole(what: str, value: Any, least: int, fix: str) -> int:
    """`value` as an integer of at least `least`, or an error that says what it is."""
    number = value.__index__() if hasattr(value, "__index__") and value is not True else least - 1
    if number < least:
        raise NeuralRaceError(
            f"{what} is not possible", got=value, wanted=f"an integer of at least {least}", fix=fix
        )
    return number


def label(data: Dataset, name: str, task: str) -> Shaped[np.ndarray, " N"]:
    """The label `name` of every sample, or an error that says which task has it."""
    if name not in data.labels:
        raise NeuralRaceError(
            f"this gating needs the label {name!r}",
            got=f"labels {listed(data.labels)}",
            wanted=f"a dataset such as that of {task}",
            fix=f"pass labels={{{name!r}: …}} to the Dataset, or use nr.pathways with masks",
        )
    return np.asarray(data.labels[name])
