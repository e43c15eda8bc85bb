"""Several trajectories as one: one after another, or side by side along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuralrace.checks import entries, plain_array
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.trajectory.names import flat, nested
from neuralrace.trajectory.run import Trajectory
from neuralrace.types import ArrayLike


def join(*runs: Trajectory) -> Trajectory:
    """Runs one after another on one time axis, each starting where the one before it ended.

    For gates in stages: train, then train on from `run.final` with other gates. The moment of
    change is kept once, with the loss before the change. What only some runs recorded, or in other
    shapes, is left out. All must have the same clock; steps are counted on.

    ```python
    >>> import neuralrace as nr
    >>> first, second = nr.Trajectory([0, 1], [1.0, 0.5]), nr.Trajectory([0, 1, 2], [0.5, 0.3, 0.2])
    >>> both = nr.join(first, second)
    >>> both.time, both.loss
    (array([0., 1., 2., 3.]), array([1. , 0.5, 0.3, 0.2]))

    ```
    """
    for i, run in enumerate(runs):
        check_kind(f"run {i}", run, Trajectory, "pass the runs one by one: nr.join(first, second)")
    axes = [[(name, c.tolist()) for name, c in run.axes.items()] for run in runs]
    if not runs or any(those != axes[0] for those in axes):
        raise NeuralRaceError(
            "only runs with the same axes can be joined",
            got=axes,
            wanted="one or more runs, single ones or ensembles over the same axes",
            fix="join runs that were made in the same way",
        )
    _check_one_clock(runs)
    lead = len(runs[0].axes)
    recorded = [flat(run.values) for run in runs]
    kept = _shared(recorded, lead + 1)

    def along_time(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
        rest = (array[(slice(None),) * axis + (slice(1, None),)] for array in arrays[1:])
        return np.concatenate([arrays[0], *rest], axis=axis)

    def counted_on(counts: Sequence[np.ndarray]) -> np.ndarray:
        ends = np.cumsum([0, *(c[-1] - c[0] for c in counts)])
        parts = [c - c[0] + e + counts[0][0] for c, e in zip(counts, ends, strict=False)]
        return along_time(parts, 0)

    steps = [run.steps for run in runs if run.steps is not None]
    weights = [run.sample_weight for run in runs]
    return Trajectory(
        counted_on([run.time for run in runs]),
        along_time([run.loss for run in runs], lead),
        values=nested({name: along_time([r[name] for r in recorded], lead) for name in kept}),
        final=runs[-1].final,
        net=runs[-1].net,
        axes=runs[0].axes,
        steps=counted_on(steps) if len(steps) == len(runs) else None,
        sample_weight=weights[0] if all(_same(w, weights[0]) for w in weights) else None,
        settings={
            "method": "join",
            "clock": runs[0].clock,
            **_common(runs),
            "parts": [run.settings for run in runs],
        },
    )


def concat(parts: Sequence[Trajectory], axis: str | tuple[str, ArrayLike]) -> Trajectory:
    """Trajectories side by side: one ensemble along a new axis, or along one that all have.

    **Arguments:** `parts` over the same times; `axis`, `(name, coordinates)`, or the name alone:
    an existing axis keeps its coordinates, a new one gets 0, 1, …. A new axis comes first. Runs
    at different learning rates have different times: along the axis `learning_rate` they are
    counted in steps (`clock` is `"steps"`), which all must have in common.

    **Returns** an ensemble. What only some parts recorded, or in other shapes, is left out, so are
    networks that differ; settings that differ become `{axis: [one for each place]}`.

    ```python
    >>> import neuralrace as nr
    >>> a, b = nr.Trajectory([0, 1], [1.0, 0.5]), nr.Trajectory([0, 1], [1.0, 0.4])
    >>> nr.concat([a, b], axis=("width", [10, 20])).sel(width=20).loss
    array([1. , 0.4])

    ```
    """
    parts = entries("parts", parts, "pass a list of trajectories")
    for i, part in enumerate(parts):
        check_kind(f"part {i}", part, Trajectory, "pass a list of trajectories")
    name, given = _named_axis(axis)
    axes = [list(part.axes) for part in parts]
    if not parts or any(a != axes[0] for a in axes):
        raise NeuralRaceError(
            "only runs with the same axes can be put side by side",
            got=axes,
            wanted="one or more runs, single ones or ensembles over the same axes",
            fix="pick members with run.isel(seed=0) first",
        )
    clock, times = _shared_times(parts, name)
    old = name in parts[0].axes
    at = axes[0].index(name) if old else 0
    lengths = [len(part.axes[name]) if old else 1 for part in parts]
    whole = [part.axes[name] for part in parts] if old else [[i] for i in range(len(parts))]
    coordinates = np.concatenate(whole) if given is None else given
    _check_coordinates(name, coordinates, sum(lengths))
    for other in axes[0]:
        if other != name and any(not _same(p.axes[other], parts[0].axes[other]) for p in parts):
            raise NeuralRaceError(
                f"the parts have different coordinates along axis {other!r}",
                got=[part.axes[other].tolist() for part in parts],
                wanted="the same coordinates along every axis but that of concat",
                fix="select the coordinates that they share with run.sel",
            )

    def side_by_side(arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(arrays, axis=at) if old else np.stack(arrays)

    lead = len(axes[0])
    recorded, final = (
        [flat(t) for t in trees] for trees in ([p.values for p in parts], [p.final for p in parts])
    )
    keep = {key: side_by_side([r[key] for r in recorded]) for key in _shared(recorded, lead + 1)}
    last = {key: side_by_side([f[key] for f in final]) for key in _shared(final, lead)}
    along = dict(parts[0].axes)
    along = along | {name: coordinates} if old else {name: coordinates, **along}
    steps = parts[0].steps
    return Trajectory(
        times,
        side_by_side([part.loss for part in parts]),
        values=nested(keep),
        final=nested(last),
        net=parts[0].net if all(part.net == parts[0].net for part in parts) else None,
        axes=along,
        steps=steps if all(_same(part.steps, steps) for part in parts) else None,
        sample_weight=_weights(parts, side_by_side),
        settings=_settings(parts, name, lengths) | {"clock": clock},
    )


def _named_axis(axis: Any) -> tuple[str, np.ndarray | None]:
    """The name of an axis, and its coordinates where they are given."""
    pair = isinstance(axis, tuple | list) and len(axis) == 2
    name = axis[0] if pair else axis
    if not isinstance(name, str):
        raise NeuralRaceError(
            "the axis has no name",
            got=f"{axis!r:.80}",
            wanted="a name, or (name, coordinates)",
            fix="for example 'seed' or ('seed', [0, 1])",
        )
    if not pair:
        return name, None
    given = entries("coordinates", axis[1], "one for each part: ('seed', [0, 1])")
    return name, plain_array("coordinates", given, wanted="one per part", fix="numbers or names")


def _shared_times(parts: Sequence[Trajectory], axis: str) -> tuple[str, np.ndarray]:
    """The clock and times of all parts; steps where the learning rates differ."""
    first = parts[0]
    steps = first.steps
    new_rates = axis == "learning_rate" and axis not in first.axes and steps is not None
    if new_rates and all(_same(part.steps, steps) for part in parts):
        return "steps", np.asarray(steps, float)
    _check_one_clock(parts)
    for i, part in enumerate(parts):
        if not _same(part.time, first.time):
            raise NeuralRaceError(
                f"part {i} was recorded at other times than part 0",
                got=f"{len(part.time)} times from {part.time[0]:g} to {part.time[-1]:g}",
                wanted=f"{len(first.time)} times from {first.time[0]:g} to {first.time[-1]:g}",
                fix="record all at the same times, or select those they share with run.sel(time=…)",
            )
    return first.clock, first.time


def _check_one_clock(runs: Sequence[Trajectory]) -> None:
    clocks = [run.clock for run in runs]
    if len(set(clocks)) > 1:
        raise NeuralRaceError(
            "the trajectories have different clocks",
            got=f"times in {', '.join(clocks)}",
            wanted="one clock for all",
            fix="settings['clock'] says what time is; combine runs of one kind",
        )


def _check_coordinates(name: str, coordinates: np.ndarray, count: int) -> None:
    if coordinates.shape != (count,):
        raise NeuralRaceError(
            f"the coordinates of axis {name!r} do not fit the parts",
            got=f"{len(coordinates)} coordinates",
            wanted=f"{count}, one for each member along the axis",
            fix="pass axis=(name, coordinates) with one coordinate for each",
        )


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _shared(recorded: Sequence[dict[str, np.ndarray]], lead: int) -> list[str]:
    """The names that all recorded in one shape, the leading axes apart."""
    shapes = ({(name, v.shape[lead:]) for name, v in each.items()} for each in recorded)
    shared = {name for name, _ in set.intersection(*shapes)}
    return [name for name in recorded[0] if name in shared]


def _common(runs: Sequence[Trajectory]) -> dict[str, Any]:
    """The settings by which runs are compared, as far as all agree."""
    settings = [run.settings for run in runs]
    return {
        name: settings[0][name]
        for name in ("loss", "data", "learning_rate")
        if name in settings[0] and all(s.get(name) == settings[0][name] for s in settings)
    }


def _weights(parts: Sequence[Trajectory], side_by_side: Any) -> np.ndarray | None:
    """The sample weights: one row where all agree, one for each member where they differ."""
    weights = [part.sample_weight for part in parts]
    if all(_same(w, weights[0]) for w in weights) and (weights[0] is None or weights[0].ndim == 1):
        return weights[0]
    counts = {w.shape[-1] for w in weights if w is not None}
    if len(counts) > 1:
        raise NeuralRaceError(
            "the parts were made on different numbers of samples",
            got=f"{listed(counts)} sample weights",
            wanted="the same number of samples in all",
            fix="combine runs on one dataset",
        )
    count = counts.pop()
    return side_by_side(
        [
            np.broadcast_to(
                np.full(count, 1 / count) if w is None else w, (*part.loss.shape[:-1], count)
            )
            for part, w in zip(parts, weights, strict=True)
        ]
    )


def _settings(parts: Sequence[Trajectory], axis: str, lengths: Sequence[int]) -> dict[str, Any]:
    """What all settings have in common, and along the axis what differs."""
    settings = [part.settings for part in parts]
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for s in settings for name in s):
        values = [s.get(name) for s in settings]
        spread = [v[axis] if isinstance(v, dict) and set(v) == {axis} else None for v in values]
        listed_rates = name == axis and isinstance(values[0], list)
        if all(v == values[0] for v in values) and not any(spread) and not listed_rates:
            found[name] = values[0]
            continue
        if name == "at":
            continue  # the places that members had elsewhere
        each = [
            s or (v if name == axis and isinstance(v, list) else [v] * n)
            for v, s, n in zip(values, spread, lengths, strict=True)
        ]
        along = [v for part in each for v in part]
        found[name] = along if name == axis else {axis: along}
    return found
