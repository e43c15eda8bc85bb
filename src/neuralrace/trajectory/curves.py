"""The curves of a trajectory: when they first reach a level, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.checks import real_array
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.tolerances import ROUNDING
from neuralrace.trajectory.metadata import flat
from neuralrace.trajectory.run import Trajectory
from neuralrace.types import ArrayLike, Finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@door
def crossing_time(
    time: ArrayLike, curves: ArrayLike, level: Finite, *, rising: bool = False
) -> Float[np.ndarray, "*runs"]:
    """When curves `(…, T)` first fall to `level`, or rise to it: NaN where they never do.

    Linear between recorded times. A curve that is there from the beginning and stays has the first
    time. One that leaves and comes back, such as a path that grows and then decays, has the time at
    which it first comes back: when it rises to the level before is asked for by `rising`. If it
    leaves, and ends farther beyond the level than it ever went the right way, an error says so.

    ```python
    >>> from neuralrace.trajectory import crossing_time
    >>> crossing_time([0.0, 1.0, 2.0], [[3.0, 1.0, 0.0], [3.0, 3.0, 3.0]], 2.0)
    array([0.5, nan])
    >>> crossing_time([0.0, 1.0, 2.0], [0.0, 0.4, 0.8], 0.5, rising=True)
    array(1.25)
    >>> path = [0.0, 0.4, 0.8, 0.2]
    >>> t = [0.0, 1.0, 2.0, 3.0]
    >>> crossing_time(t, path, 0.5, rising=True), crossing_time(t, path, 0.5)
    (array(1.25), array(2.5))

    ```
    """
    t = real_array("time", time, fix="pass run.time")
    values = real_array("curves", curves, fix="pass run.loss")  # not finite where it diverged
    require(
        t.ndim == 1 and values.ndim >= 1 and values.shape[-1] == len(t) and len(t),
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
    size = np.maximum(np.abs(values[..., :1]), abs(level))
    left = np.logical_or.accumulate(values > level + ROUNDING * size, axis=-1)
    back = reached & left
    reached = np.where(back.any(axis=-1, keepdims=True), back, reached)
    after = reached.argmax(axis=-1)
    before = np.maximum(after - 1, 0)
    high, low = (np.take_along_axis(values, i[..., None], -1)[..., 0] for i in (before, after))
    part = np.divide(high - level, high - low, out=np.ones_like(high), where=high > low)
    return np.where(reached.any(axis=-1), t[before] + part * (t[after] - t[before]), np.nan)


@door
def half_time(time: ArrayLike, loss: ArrayLike) -> Float[np.ndarray, "*runs"]:
    """When losses `(…, T)` have first fallen to half of their initial value; see `crossing_time`.

    Linear between recorded times, and NaN where that is not seen: a longer run may get there.

    ```python
    >>> from neuralrace.trajectory import half_time
    >>> half_time([0.0, 1.0, 2.0], [[4.0, 3.0, 1.0], [1.0, 0.9, 0.8]])
    array([1.5, nan])

    ```
    """
    losses = np.atleast_1d(real_array("loss", loss, fix="pass run.loss"))
    require(
        losses.size,
        "loss is empty",
        got=f"shape {losses.shape}",
        wanted="shape (…, T)",
        fix="pass run.loss",
    )
    each = losses.reshape(-1, losses.shape[-1])
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


# ---- pictures ------------------------------------------------------------------------------------


THEORY = ("race", "closed form")
"""The methods whose trajectories are predictions."""


def draw(run: Trajectory, what: str, *, label: str | None, ax: Axes | None, **style: Any) -> Axes:
    """See `Trajectory.plot`."""
    from neuralrace.plot import draw_curves

    require(
        label is None or isinstance(label, str),
        "the label is a name",
        got=f"{label!r:.80}",
        wanted="text",
        fix="label='simulation'",
    )
    method = run.settings.get("method")
    curves = named_curves(run, what, label, ax)
    time, clock = _on_axes(run, ax)
    return draw_curves(
        time,
        curves,
        kind="theory" if method in THEORY else "simulation",
        ylabel=what,
        xlabel=clock,
        ax=ax,
        **style,
    )


def named_curves(
    run: Trajectory, what: str, label: str | None = None, ax: Axes | None = None
) -> dict[str, np.ndarray]:
    """What to draw of a run by name, each of shape (T,), or (seeds, T).

    A lone curve is called by the `label`, or by a name that the axes do not have yet.
    """
    curves = _by_place(run, _values(run, what))
    if len(curves) == 1:
        (name,) = curves
        method = run.settings.get("method")
        fallback = method if not name and isinstance(method, str) else name or what
        return {label or _unused(fallback, ax): curves[name]}
    if label is not None:
        return {f"{label}, {name}": curve for name, curve in curves.items()}
    return curves


def _on_axes(run: Trajectory, ax: Axes | None) -> tuple[np.ndarray, str]:
    """The times to draw at, and what they are: those of the curves that the axes have already."""
    own = "step" if run.clock == "steps" else "time"
    there = ax.get_xlabel() if ax is not None and ax.lines else own
    if there not in ("step", "time") or there == own:
        return run.time, own
    if there == "step" and run.steps is not None:
        return run.steps, there
    raise NeuralRaceError(
        "the axes show another clock",
        got=f"curves over {there}, and a run whose time is {run.clock!r}",
        wanted="runs of one clock on one pair of axes",
        fix="draw it on axes of its own; a run that knows its steps can be added to one in steps, "
        "so draw that one first",
    )


def _values(run: Trajectory, what: str) -> dict[str, np.ndarray]:
    """What to draw by name, each of shape (*axes, T)."""
    require(
        isinstance(what, str),
        "say by name what to draw",
        got=f"{type(what).__name__}",
        wanted=f"'loss', or one of {listed(run.values)}",
        fix="for example run.plot('loss')",
    )
    if what == "loss":
        return {"": run.loss}
    recorded = flat(run.values)
    found: dict[str, np.ndarray] = {}
    for name, value in recorded.items():
        if name == what or name.startswith(what + "."):
            found |= _entries(name.removeprefix(what).lstrip(".") or name, value, run.loss.ndim)
    require(
        found,
        f"nothing to draw under {what!r}",
        got=repr(what),
        wanted=f"'loss', or the start of one of {listed(recorded)}",
        fix="record it: record={'name': f}",
    )
    return found


def _entries(name: str, value: np.ndarray, lead: int) -> dict[str, np.ndarray]:
    """One curve for each entry of an array, or one for all of them."""
    own = value.shape[lead:]
    size = int(np.prod(own))
    if size == 1:
        return {name: value.reshape(value.shape[:lead])}
    if size > 64 or size == 0:
        axes = tuple(range(lead, value.ndim))
        return {f"‖{name}‖": np.sqrt((np.asarray(value, float) ** 2).sum(axis=axes))}
    return {
        f"{name} {', '.join(str(i + 1) for i in place)}": value[(..., *place)]
        for place in np.ndindex(own)
    }


def _by_place(run: Trajectory, curves: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Each value at each place on the axes other than the seeds', of shape (T,) or (seeds, T)."""
    names = list(run.axes)
    others = [name for name in names if name != "seed"]
    if "seed" in names:
        at = names.index("seed")
        curves = {name: np.moveaxis(v, at, -2) for name, v in curves.items()}
    if not others:
        return dict(curves)
    found = {}
    for name, value in curves.items():
        for place in np.ndindex(value.shape[: len(others)]):
            words = [
                f"{axis} = {_rounded(run.axes[axis][i])}"
                for axis, i in zip(others, place, strict=True)
            ]
            found[", ".join(filter(None, [name, *words]))] = value[place]
    return found


def _rounded(coordinate: Any) -> str:
    return f"{coordinate:.3g}" if isinstance(coordinate, (float, np.floating)) else str(coordinate)


def _unused(name: str, ax: Any) -> str:
    """The name, with a number if the axes have a curve of that name already."""
    taken = set() if ax is None else {str(line.get_label()) for line in ax.lines}
    numbered = (name if i == 1 else f"{name} {i}" for i in range(1, len(taken) + 2))
    return next(text for text in numbered if text not in taken)
