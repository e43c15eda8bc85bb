"""Parts of a trajectory: some members of an ensemble, some moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuralrace.checks import plain_array
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.tolerances import ROUNDING
from neuralrace.trajectory.run import Trajectory
from neuralrace.trajectory.table import FINAL, from_table, to_table

SHOWN = 12
"""The largest number of coordinates that a message lists."""

Places = np.ndarray
"""Indices along an axis; a single integer, without axes, drops the axis."""


def by_index(run: Trajectory, where: Mapping[str, Any]) -> Trajectory:
    """See `Trajectory.isel`."""
    places = {name: _places(name, index, len(_along(run, name))) for name, index in where.items()}
    return _picked(run, places)


def by_value(run: Trajectory, where: Mapping[str, Any], method: str | None) -> Trajectory:
    """See `Trajectory.sel`."""
    if not (method is None or (isinstance(method, str) and method == "nearest")):
        raise NeuralRaceError(
            f"unknown method {method!r}",
            got=repr(method),
            wanted="None or 'nearest'",
            fix="omit it for exact values",
        )
    nearest = method == "nearest"
    return _picked(
        run, {a: _found(a, value, _along(run, a), nearest) for a, value in where.items()}
    )


def _along(run: Trajectory, axis: str) -> np.ndarray:
    """The coordinates of an axis, or the times."""
    coordinates = {**run.axes, "time": run.time}
    if axis not in coordinates:
        raise NeuralRaceError(
            f"the trajectory has no axis {axis!r}",
            got=repr(axis),
            wanted=f"one of {listed(coordinates)}",
            fix="an ensemble names its axes in run.axes",
        )
    return coordinates[axis]


def _places(axis: str, index: Any, length: int) -> Places:
    """The indices that NumPy would take along an axis of this length."""
    wanted, fix = "an integer, a slice, or a list of integers", "sel picks by coordinate"
    if not isinstance(index, slice):
        index = plain_array(f"the index of axis {axis!r}", index, wanted=wanted, fix=fix)
        index = index if index.size else index.astype(int)
    try:
        places = np.asarray(np.arange(length)[index])
    except IndexError as error:
        raise NeuralRaceError(
            f"axis {axis!r} cannot be indexed like this",
            got=f"{index!r:.80}: {error}",
            wanted=f"{wanted} from 0 to {length - 1}",
            fix=fix,
        ) from error
    if places.ndim > 1:
        raise NeuralRaceError(
            f"axis {axis!r} cannot be indexed like this",
            got=f"{index!r:.80}",
            wanted=wanted,
            fix=fix,
        )
    return places


def _found(axis: str, value: Any, coordinates: np.ndarray, nearest: bool) -> Places:
    """The indices of coordinates, or of those between the two ends of a slice."""
    wanted = "a coordinate, a list of them, or slice(first, last) with both included"
    if isinstance(value, slice) and value.step is None:
        low = True if value.start is None else coordinates >= value.start
        high = True if value.stop is None else coordinates <= value.stop
        return np.flatnonzero(np.broadcast_to(np.logical_and(low, high), coordinates.shape))
    wished = plain_array(f"the place on axis {axis!r}", value, wanted=wanted, fix="see run.axes")
    if wished.ndim > 1 or wished.dtype.kind not in "fiubU":
        raise NeuralRaceError(
            f"axis {axis!r} has no such places",
            got=f"{value!r:.80}",
            wanted=wanted,
            fix="isel picks by index, and every k-th member",
        )
    each = [_one_place(axis, v, coordinates, nearest) for v in wished.ravel().tolist()]
    return np.array(each, int).reshape(wished.shape)


def _one_place(axis: str, value: Any, coordinates: np.ndarray, nearest: bool) -> int:
    if coordinates.dtype.kind in "iufb" and not isinstance(value, str):
        gap = np.abs(coordinates.astype(float) - float(value))
        close = gap <= (gap.min() if nearest else ROUNDING * abs(float(value)))
    else:
        close = coordinates == value
    if not np.any(close):
        shown = [f"{c:.6g}" if coordinates.dtype.kind == "f" else str(c) for c in coordinates]
        shown = shown if len(shown) <= SHOWN else [*shown[: SHOWN - 1], "…", shown[-1]]
        raise NeuralRaceError(
            f"axis {axis!r} has no {value!r}",
            got=repr(value),
            wanted=f"one of {', '.join(shown)}",
            fix="method='nearest' takes the nearest; isel picks by index",
        )
    return int(np.argmax(close))


def _picked(run: Trajectory, places: Mapping[str, Places]) -> Trajectory:
    """The part of a trajectory at these indices, its time and settings with it."""
    moments = np.atleast_1d(places.get("time", np.arange(len(run.time))))
    if not len(moments) or (np.diff(moments) <= 0).any():
        raise NeuralRaceError(
            "the times of a part must be some of the trajectory's, in order",
            got=f"indices {moments.tolist()[:SHOWN]}",
            wanted="at least one time, each later than the one before",
            fix="sort them and remove repeats",
        )
    table = to_table(run).isel(dict(places) | {"time": moments})
    dropped = {a: _along(run, a)[p].item() for a, p in places.items() if not p.ndim and a != "time"}
    settings = _settings(run, places)
    pace = _pace(run, dropped, settings)
    if pace is not None:
        if "steps" not in table.coords:
            table = table.assign_coords(
                steps=("time", np.round(table["time"].to_numpy()).astype(int))
            )
        table = table.assign_coords(time=pace[0] * table["time"])
        settings["clock"] = pace[1]
    if dropped:
        settings["at"] = settings.get("at", {}) | dropped
    if moments[-1] != len(run.time) - 1:
        table = _final_at_last_moment(table)
    return from_table(table, settings, run.net, run.source)


def _final_at_last_moment(table: Any) -> Any:
    """The weights at the end of a part that ends early, where they were recorded; else none."""
    final = [name for name in table.data_vars if name.startswith(FINAL)]
    recorded = {name: "weights." + name.removeprefix(FINAL) for name in final}
    part = table.drop_vars(final)
    if all(name in part for name in recorded.values()):
        part = part.assign(
            {name: part[each].isel(time=-1, drop=True) for name, each in recorded.items()}
        )
    return part


def _settings(run: Trajectory, places: Mapping[str, Places]) -> dict[str, Any]:
    """Settings that differ along an axis, at the places that are kept."""
    settings = dict(run.settings)
    for axis, place in places.items():
        for name, value in settings.items():
            along = value[axis] if isinstance(value, dict) and set(value) == {axis} else None
            if along is None and name == axis:
                along = value
            if axis == "time" or not isinstance(along, list) or len(along) != len(run.axes[axis]):
                continue
            if not place.ndim:
                settings[name] = along[int(place)]
            else:
                kept = [along[i] for i in place]
                settings[name] = kept if name == axis else {axis: kept}
    return settings


def _pace(
    run: Trajectory, dropped: Mapping[str, Any], picked: Mapping[str, Any]
) -> tuple[float, str] | None:
    """Time per step of a member of an ensemble over learning rates, and its clock.

    An ensemble over rates counts steps, since its members have no time in common; one member does
    have a time: rate · step, or rate · step / (1 − μ) with momentum μ. None where the time stays.
    """
    plain = run.settings.get("optimizer", "descent") in ("descent", "momentum")
    momentum = run.settings.get("momentum") or 0.0
    if run.clock != "steps" or "learning_rate" not in dropped or not plain:
        return None
    rate = picked.get("learning_rate", dropped["learning_rate"])
    if not isinstance(rate, int | float) or not isinstance(momentum, int | float):
        return None
    return float(rate) / (1 - momentum), "approximate flow" if momentum else "flow"
