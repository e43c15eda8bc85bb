"""When a recorded curve first reaches a level."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.checks import real_array, real_number
from neuralrace.errors import NeuralRaceError
from neuralrace.tolerances import ROUNDING
from neuralrace.types import ArrayLike


def crossing_time(
    time: ArrayLike, curves: ArrayLike, level: float, *, rising: bool = False
) -> Float[np.ndarray, "*runs"]:
    """When curves `(…, T)` first fall to `level`, or rise to it: NaN where they never do.

    Linear between recorded times. A curve that is there from the beginning has the first time; if
    it leaves, and ends farther beyond the level than it ever went the right way, an error says so.

    ```python
    >>> from neuralrace.trajectory import crossing_time
    >>> crossing_time([0.0, 1.0, 2.0], [[3.0, 1.0, 0.0], [3.0, 3.0, 3.0]], 2.0)
    array([0.5, nan])
    >>> crossing_time([0.0, 1.0, 2.0], [0.0, 0.4, 0.8], 0.5, rising=True)
    array(1.25)

    ```
    """
    t = real_array("time", time, fix="pass run.time")
    values = np.asarray(curves, np.float64)  # a run that diverged is not finite at its end
    level = real_number("level", level, fix="for example level=0.1")
    if t.ndim != 1 or values.ndim < 1 or values.shape[-1] != len(t) or not len(t):
        raise NeuralRaceError(
            "the curves do not fit the times",
            got=f"times {t.shape}, curves {values.shape}",
            wanted="times (T,), curves (…, T): the last axis is time",
            fix="pass run.time and run.loss; curves.T if time comes first",
        )
    if rising:
        values, level = -values, -level
    reached = values <= level
    turned = _turned(values, level)
    if turned.any():
        way, other = ("rise", "falls") if rising else ("fall", "rises")
        size = -1 if rising else 1
        first, last = (size * float(values[turned][0, k]) for k in (0, -1))
        raise NeuralRaceError(
            f"a curve that should {way} to the level {other} from it",
            got=f"a curve from {first:.6g} to {last:.6g}, and the level {size * level:.6g}",
            wanted=f"curves that {way}, with rising={rising}",
            fix=f"pass rising={not rising}, or select the curves that {way}",
        )
    after = reached.argmax(axis=-1)
    before = np.maximum(after - 1, 0)
    high, low = (np.take_along_axis(values, i[..., None], -1)[..., 0] for i in (before, after))
    part = np.divide(high - level, high - low, out=np.ones_like(high), where=high > low)
    return np.where(reached.any(axis=-1), t[before] + part * (t[after] - t[before]), np.nan)


def half_time(time: ArrayLike, loss: ArrayLike) -> Float[np.ndarray, "*runs"]:
    """When losses `(…, T)` have first fallen to half of their initial value; see `crossing_time`.

    Linear between recorded times, and NaN where that is not seen: a longer run may get there.

    ```python
    >>> from neuralrace.trajectory import half_time
    >>> half_time([0.0, 1.0, 2.0], [[4.0, 3.0, 1.0], [1.0, 0.9, 0.8]])
    array([1.5, nan])

    ```
    """
    losses = np.asarray(loss, np.float64)
    each = losses.reshape(-1, losses.shape[-1]) if losses.ndim else losses
    times = [crossing_time(time, run, float(run[0]) / 2) for run in each]
    return np.reshape(times, losses.shape[:-1])


def _turned(values: Float[np.ndarray, "*runs T"], level: float) -> Bool[np.ndarray, "*runs"]:
    """Which curves begin at or below the level and rise away from it."""
    first, last = values[..., 0], values[..., -1]
    with np.errstate(invalid="ignore"):  # a run that diverged is not finite at its end
        above, below = last - level, first - values.min(axis=-1)
    size = np.maximum(np.abs(first), abs(level))
    left = above > np.maximum(below, ROUNDING * size)
    return np.asarray((first <= level) & np.isfinite(last) & left)
