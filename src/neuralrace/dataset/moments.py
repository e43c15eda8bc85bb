"""Moments of a dataset that several rooms need."""

from __future__ import annotations

import numpy as np

from neuralrace.dataset.samples import Dataset
from neuralrace.door import door


@door
def zero_loss(data: Dataset) -> float:
    """½⟨‖y‖²⟩, the squared loss of a network whose outputs are zero.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.dataset import zero_loss
    >>> zero_loss(nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[2.0], [4.0]]}))
    5.0

    ```
    """
    rows = np.asarray(data.probability, np.float64)
    targets = (np.asarray(y, np.float64) for y in data.y.values())
    return sum(float((rows @ y**2).sum()) for y in targets) / 2
