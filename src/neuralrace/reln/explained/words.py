"""Sets of samples in words."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from neuralrace.dataset import Dataset
from neuralrace.text import several

NAMED = 4
"""The most samples or values of a label that are named one by one."""

NUMBERED = 20
"""The most columns of a picture that have a number each."""


def columns_of(count: int) -> list[str] | str:
    """What the columns of a picture are called that has one per sample."""
    return [str(n + 1) for n in range(count)] if count <= NUMBERED else "sample"


def where(samples: Int[np.ndarray, " n"], data: Dataset) -> str:
    """A set of samples in words, by the labels of the data where these name it."""
    count = data.n_samples
    if len(samples) == count:
        return "for all samples"
    if not len(samples):
        return "for no sample"
    labels = {name: np.asarray(values) for name, values in data.labels.items()}
    labels = {name: values for name, values in labels.items() if values.ndim == 1}
    mine = {name: np.unique(values[samples]) for name, values in labels.items()}
    mine = {name: some for name, some in mine.items() if len(some) < len(np.unique(labels[name]))}

    def meant(names: list[str]) -> int:
        return int(np.all([np.isin(labels[name], mine[name]) for name in names], axis=0).sum())

    for name in list(mine):  # the labels without which it is not known what is meant
        others = [each for each in mine if each != name]
        if others and meant(others) == len(samples):
            del mine[name]
    named = mine and meant(list(mine)) == len(samples)
    if named and max(map(len, mine.values())) <= NAMED:
        word = "and" if len(mine) == 1 else "or"
        parts = [f"{name} {several([str(v) for v in v], word)}" for name, v in mine.items()]
        return f"for {' and '.join(parts)}"
    if len(samples) <= NAMED:
        return f"for sample{'s' * (len(samples) > 1)} {several([str(n + 1) for n in samples])}"
    return f"for {len(samples)} samples"
