"""Parts of a trajectory: some members of an ensemble, some moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from neuralrace.checks import plain_array
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.trajectory.run import Trajectory

Index = int | slice | np.ndarray
"""Where along an axis: an integer drops the axis, a slice or an array of integers keeps it."""


def by_index(run: Trajectory, where: Mapping[str, Any]) -> Trajectory:
    """See `Trajectory.isel`."""
    _check_axes(run, where)
    lengths = _coordinates(run)
    return _picked(run, {name: _index(name, i, len(lengths[name])) for name, i in where.items()})


def by_value(run: Trajectory, where: Mapping[str, Any], method: str | None) -> Trajectory:
    """See `Trajectory.sel`."""
    if not (method is None or (isinstance(method, str) and method == "nearest")):
        raise NeuralRaceError(
            f"unknown method {method!r}",
            got=repr(method),
            wanted="None or 'nearest'",
            fix="leave it out for exact values",
        )
    _check_axes(run, where)
    found = _coordinates(run)
    return _picked(run, {a: _place(a, value, found[a], method) for a, value in where.items()})


def _coordinates(run: Trajectory) -> dict[str, np.ndarray]:
    return {**run.axes, "time": run.time}


def _check_axes(run: Trajectory, where: Mapping[str, Any]) -> None:
    unknown = sorted(set(where) - {*run.axes, "time"})
    if unknown:
        raise NeuralRaceError(
            f"the trajectory has no axis {unknown[0]!r}",
            got=repr(unknown[0]),
            wanted=f"one of {listed((*run.axes, 'time'))}",
            fix="an ensemble names its axes in run.axes",
        )


def _index(axis: str, index: Any, length: int) -> Index:
    if isinstance(index, slice):
        return index
    fix = "run.sel picks by coordinate, run.isel by index"
    wanted = "an integer, a slice, or a list of integers"
    single = getattr(index, "shape", ()) == () and hasattr(index, "__index__")
    places = plain_array(f"the index of axis {axis!r}", index, wanted=wanted, fix=fix)
    if places.dtype == bool and places.shape == (length,):
        return np.flatnonzero(places)
    if places.ndim != 1 - single or (places.size and places.dtype.kind not in "iu"):
        raise NeuralRaceError(
            f"axis {axis!r} cannot be indexed like this",
            got=repr(index),
            wanted=wanted,
            fix=fix,
        )
    outside = [i for i in np.atleast_1d(places).tolist() if not -length <= i < length]
    if outside:
        raise NeuralRaceError(
            f"axis {axis!r} has no member {outside[0]}",
            got=outside[0],
            wanted=f"an index from 0 to {length - 1}",
            fix="isel picks by index, sel by coordinate; run.axes has the coordinates",
        )
    return int(places) if single else places.astype(int)


ROUNDING = 1e-9
"""Coordinates that differ by less than this fraction are equal: 0.3 and 0.1 + 0.2 are."""


def _place(axis: str, value: Any, coordinates: np.ndarray, method: str | None) -> Index:
    if isinstance(value, slice):
        if value.step is not None:
            raise NeuralRaceError(
                f"a range of axis {axis!r} has no step",
                got=repr(value),
                wanted="slice(first, last), both included",
                fix="use isel for every k-th member",
            )
        low = True if value.start is None else coordinates >= value.start
        high = True if value.stop is None else coordinates <= value.stop
        return np.flatnonzero(np.broadcast_to(np.logical_and(low, high), coordinates.shape))
    wanted = "a coordinate, a list of them, or a slice"
    given = plain_array(f"the place on axis {axis!r}", value, wanted=wanted, fix=f"see run.{axis}")
    if given.ndim > 1 or given.dtype.kind not in "fiubU":
        raise NeuralRaceError(
            f"axis {axis!r} has no such places",
            got=f"{given.dtype} of shape {given.shape}",
            wanted=wanted,
            fix="isel picks by index, sel by coordinate",
        )
    if given.ndim:
        places = [_one_place(axis, v, coordinates, method) for v in given.tolist()]
        return np.array(places, int)
    return _one_place(axis, given[()].item(), coordinates, method)


def _one_place(axis: str, value: Any, coordinates: np.ndarray, method: str | None) -> int:
    numbers = coordinates.dtype.kind in "iufb" and isinstance(value, (int, float, np.number))
    if numbers:
        gap = np.abs(coordinates.astype(float) - float(value))
        best = int(np.argmin(gap))
        found = method == "nearest" or gap[best] <= ROUNDING * abs(float(value))
    else:
        equal = np.flatnonzero(coordinates == value)
        found = len(equal) > 0
        best = int(equal[0]) if found else 0
    if not found:
        shown = [f"{c:.6g}" if coordinates.dtype.kind == "f" else str(c) for c in coordinates]
        shown = shown if len(shown) <= SHOWN else [*shown[: SHOWN - 1], "…", shown[-1]]
        raise NeuralRaceError(
            f"axis {axis!r} has no {value!r}",
            got=repr(value),
            wanted=f"one of {', '.join(shown)}",
            fix="method='nearest' takes the nearest; isel picks by index",
        )
    return best


SHOWN = 12
"""The largest number of coordinates that a message lists."""


def _picked(run: Trajectory, where: Mapping[str, Index]) -> Trajectory:
    """The part of a trajectory at these indices, its time and settings with it."""
    places = [where.get(name, slice(None)) for name in run.axes]
    moments = _moments(where.get("time", slice(None)), run.time)
    of_axes = lambda array: _taken(np.asarray(array), places)
    over_time = lambda array: _taken(np.asarray(array), [*places, moments])
    whole = _coordinates(run)
    dropped = {name: whole[name][i].item() for name, i in where.items() if isinstance(i, int)}
    axes = {
        name: coordinates[place]
        for (name, coordinates), place in zip(run.axes.items(), places, strict=True)
        if not isinstance(place, int)
    }
    time, settings = run.time[moments], _picked_settings(run, where, dropped)
    steps = None if run.steps is None else run.steps[moments]
    pace = _pace(run, dropped, settings)
    if pace is not None:
        steps = np.round(time).astype(int) if steps is None else steps
        time, settings["clock"] = pace[0] * time, pace[1]
    weight = run.sample_weight
    return Trajectory(
        time,
        over_time(run.loss),
        values=jax.tree.map(over_time, run.values),
        final=_final(run, moments, of_axes, over_time),
        net=run.net,
        axes=axes,
        steps=steps,
        sample_weight=weight if weight is None or weight.ndim == 1 else of_axes(weight),
        settings=settings,
        source=run.source,
    )


def _taken(array: np.ndarray, places: list[Any]) -> np.ndarray:
    """These places along the leading axes, each axis by itself."""
    for axis in reversed(range(len(places))):
        array = array[(*[slice(None)] * axis, places[axis])]
    return array


def _moments(where: Index, time: np.ndarray) -> slice | np.ndarray:
    """Some of the times, in order; one alone is still an axis."""
    if isinstance(where, int):
        where = np.array([where])
    chosen = np.arange(len(time))[where]
    if not len(chosen) or (np.diff(chosen) <= 0).any():
        raise NeuralRaceError(
            "the times of a part must be some of the trajectory's, in order",
            got=f"indices {chosen.tolist()[:SHOWN]}",
            wanted="at least one time, each later than the one before",
            fix="sort them and remove repeats",
        )
    return where


def _final(
    run: Trajectory, moments: Any, of_axes: Callable, over_time: Callable
) -> dict[str, np.ndarray]:
    """The weights at the last moment of the part, as far as they are known."""
    if np.arange(len(run.time))[moments][-1] == len(run.time) - 1:
        return jax.tree.map(of_axes, run.final)
    weights = run.values.get("weights", {})
    if not isinstance(weights, Mapping) or set(weights) != set(run.final):
        return {}
    lead = over_time(run.loss).ndim - 1
    return {e: over_time(w)[(*[slice(None)] * lead, -1)] for e, w in weights.items()}


def _picked_settings(
    run: Trajectory, where: Mapping[str, Index], dropped: Mapping[str, Any]
) -> dict[str, Any]:
    """Settings that differ along an axis, at the places that are kept."""
    settings = run.settings
    for axis, place in where.items():
        if axis == "time":
            continue
        for name, value in settings.items():
            along = value.get(axis) if isinstance(value, dict) and set(value) == {axis} else None
            if along is None and name == axis and isinstance(value, list):
                along = value
            if not isinstance(along, list) or len(along) != len(run.axes[axis]):
                continue
            picked = np.array([*along, None], object)[:-1][place]
            if isinstance(place, int):
                settings[name] = picked
            else:
                settings[name] = picked.tolist() if name == axis else {axis: picked.tolist()}
    at = settings.get("at", {}) | dict(dropped)
    return settings | ({"at": at} if at else {})


def _pace(
    run: Trajectory, dropped: Mapping[str, Any], picked: Mapping[str, Any]
) -> tuple[float, str] | None:
    """Time per step of a member of an ensemble over learning rates, and its clock.

    An ensemble over rates counts steps, since its members have no time in common; one member does
    have a time: rate · step, or rate · step / (1 − μ) with momentum μ. None where the time stays.
    """
    settings = run.settings
    plain = settings.get("optimizer", "descent") in ("descent", "momentum")
    momentum = settings.get("momentum") or 0.0
    if run.clock != "steps" or "learning_rate" not in dropped or not plain:
        return None
    if not isinstance(momentum, (int, float)):
        return None
    rate = picked.get("learning_rate", dropped["learning_rate"])
    if not isinstance(rate, (int, float)):
        return None
    pace = float(rate) / (1 - momentum)
    return pace, "approximate flow" if momentum else "flow"
