"""The checks that several tasks share."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from neuralrace.checks import real_number
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, check_kind, listed


def label(data: Dataset, name: str, task: str) -> Shaped[np.ndarray, " N"]:
    """The label `name` of every sample, or an error that says which task has it."""
    check_kind("data", data, Dataset, f"pass the ungated dataset, such as that of {task}")
    if name not in data.labels:
        raise NeuralRaceError(
            f"this gating needs the label {name!r}",
            got=f"labels {listed(data.labels)}",
            wanted=f"a dataset such as that of {task}",
            fix=f"pass labels={{{name!r}: …}} to the Dataset, or use nr.pathways with masks",
        )
    return np.asarray(data.labels[name])


def finite_number(what: str, value: object, *, fix: str) -> float:
    """`value` as a finite float, or an error that says `what` it is."""
    return real_number(what, value, fix=fix)


def positive_number(what: str, value: object, *, fix: str) -> float:
    """`value` as a finite float above zero, or an error that says `what` it is."""
    number = finite_number(what, value, fix=fix)
    if number <= 0:
        raise NeuralRaceError(
            f"{what} must be positive", got=repr(value), wanted="a number above 0", fix=fix
        )
    return number
