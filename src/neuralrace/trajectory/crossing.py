"""When a recorded loss first falls to a level."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_array, real_number
from neuralrace.errors import NeuralRaceError
from neuralrace.types import ArrayLike


def crossing_time(time: ArrayLike, loss: ArrayLike, level: float) -> Float[np.ndarray, "*runs"]:
    """When losses `(…, T)` are first at most `level`: linear between recorded times, NaN if never.

    A loss that is at most `level` from the beginning has the first time.

    ```python
    >>> from neuralrace.trajectory import crossing_time
    >>> crossing_time([0.0, 1.0, 2.0], [[3.0, 1.0, 0.0], [3.0, 3.0, 3.0]], 2.0)
    array([0.5, nan])

    ```
    """
    t = real_array("time", time, fix="pass run.time")
    values = np.asarray(loss, np.float64)  # a run that diverged is not finite at its end
    level = real_number("level", level, fix="for example level=0.1")
    if t.ndim != 1 or values.ndim < 1 or values.shape[-1] != len(t) or not len(t):
        raise NeuralRaceError(
            "the losses do not fit the times",
            got=f"times {t.shape}, losses {values.shape}",
            wanted="times (T,), losses (…, T)",
            fix="pass run.time and run.loss",
        )
    reached = values <= level
    after = reached.argmax(axis=-1)
    before = np.maximum(after - 1, 0)
    high, low = (np.take_along_axis(values, i[..., None], -1)[..., 0] for i in (before, after))
    part = np.divide(high - level, high - low, out=np.ones_like(high), where=high > low)
    return np.where(reached.any(axis=-1), t[before] + part * (t[after] - t[before]), np.nan)
