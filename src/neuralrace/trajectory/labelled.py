"""A trajectory as an `xarray.Dataset` and back, and all that is done with labels: parts, joins.

Everything labelled goes through `to_table` and `from_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neuralrace.checks import entries, plain_array
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import Network
from neuralrace.tolerances import ROUNDING
from neuralrace.trajectory.metadata import flat, nested
from neuralrace.trajectory.run import Source, Trajectory
from neuralrace.types import ArrayLike

if TYPE_CHECKING:
    import xarray

FINAL = "final."
"""What stands before the names of the weights at the end."""

OWN = ("loss", "sample_weight")
"""The variables of a table that are not recorded values."""


def to_table(run: Trajectory) -> xarray.Dataset:
    """The arrays of a trajectory by name, each dimension named; see `Trajectory.to_xarray`."""
    import xarray

    lead = tuple(run.axes)
    variables: dict[str, Any] = {"loss": ((*lead, "time"), run.loss)}
    variables |= {n: _dims(n, v, (*lead, "time")) for n, v in flat(run.values).items()}
    variables |= {n: _dims(n, v, lead) for n, v in flat(run.final, FINAL).items()}
    if run.sample_weight is not None:
        along = lead if run.sample_weight.ndim > 1 else ()
        variables["sample_weight"] = ((*along, "sample"), run.sample_weight)
    coordinates: dict[str, Any] = {"time": run.time, **run.axes}
    if run.steps is not None:
        coordinates["steps"] = ("time", run.steps)
    return xarray.Dataset(variables, coordinates)


def _dims(name: str, value: np.ndarray, lead: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    own = tuple(f"{name}.{i}" for i in range(value.ndim - len(lead)))
    return (*lead, *own), value


def from_table(
    table: xarray.Dataset,
    settings: Mapping[str, Any],
    net: Network | None = None,
    source: Source | None = None,
) -> Trajectory:
    """The trajectory of these arrays; the opposite of `to_table`."""
    arrays = {str(name): v.to_numpy() for name, v in table.data_vars.items() if name not in OWN}
    final = {k.removeprefix(FINAL): v for k, v in arrays.items() if k.startswith(FINAL)}
    return Trajectory(
        table["time"].to_numpy(),
        table["loss"].to_numpy(),
        values=nested({k: v for k, v in arrays.items() if not k.startswith(FINAL)}),
        final=nested(final),
        net=net,
        axes={str(d): table[d].to_numpy() for d in table["loss"].dims if d != "time"},
        steps=table["steps"].to_numpy() if "steps" in table.coords else None,
        sample_weight=table["sample_weight"].to_numpy() if "sample_weight" in table else None,
        settings=settings,
        source=source,
    )


# ---- parts ---------------------------------------------------------------------------------------


SHOWN = 12
"""The largest number of coordinates that a message lists."""


def part(run: Trajectory, where: Mapping[str, Any], how: str) -> Trajectory:
    """The part of a trajectory by "index", by "exact" or by "nearest" coordinate."""
    places = {axis: _places(run, axis, wanted, how) for axis, wanted in where.items()}
    moments = np.atleast_1d(places.get("time", np.arange(len(run.time))))
    require(
        len(moments) and (np.diff(moments) > 0).all(),
        "the times of a part must be some of the trajectory's, in order",
        got=f"indices {moments.tolist()[:SHOWN]}",
        wanted="at least one time, each later than the one before",
        fix="sort them and remove repeats",
    )
    table = to_table(run).isel(places | {"time": moments})
    dropped = {a: run.axes[a][p].item() for a, p in places.items() if not p.ndim and a != "time"}
    settings = _settings_at(run, places)
    pace = _pace(run, dropped, settings)
    if pace is not None:
        if "steps" not in table.coords:
            steps = np.round(table["time"].to_numpy()).astype(int)
            table = table.assign_coords(steps=("time", steps))
        table = table.assign_coords(time=pace[0] * table["time"])
        settings["clock"] = pace[1]
    if dropped:
        settings["at"] = settings.get("at", {}) | dropped
    if moments[-1] != len(run.time) - 1:
        table = _final_at_last_moment(table)
    return from_table(table, settings, run.net, run.source)


def _places(run: Trajectory, axis: str, wanted: Any, how: str) -> np.ndarray:
    """Indices along an axis; a single one, without axes, drops the axis."""
    along = {**run.axes, "time": run.time}
    require(
        axis in along,
        f"the trajectory has no axis {axis!r}",
        got=repr(axis),
        wanted=f"one of {listed(along)}",
        fix="an ensemble names its axes in run.axes",
    )
    coordinates, rows = along[axis], np.arange(len(along[axis]))
    try:
        if how == "index":
            index = wanted if isinstance(wanted, slice) else np.asarray(wanted)
            index = index if isinstance(index, slice) or index.size else index.astype(int)
            places = np.asarray(rows[index])
        elif isinstance(wanted, slice) and wanted.step is None:
            low = True if wanted.start is None else coordinates >= wanted.start
            high = True if wanted.stop is None else coordinates <= wanted.stop
            places = rows[np.logical_and(low, high) & np.ones(len(rows), bool)]
        else:
            values = np.asarray(wanted)
            each = [_place(v, coordinates, how == "nearest") for v in values.ravel().tolist()]
            places = np.array(each, int).reshape(values.shape)
        if places.ndim > 1:
            raise IndexError("a list of lists")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        shown = [f"{c:.6g}" if coordinates.dtype.kind == "f" else str(c) for c in coordinates]
        shown = shown if len(shown) <= SHOWN else [*shown[: SHOWN - 1], "…", shown[-1]]
        raise NeuralRaceError(
            f"axis {axis!r} has no such place",
            got=f"{wanted!r:.80}: {error}",
            wanted=f"an integer, a slice or a list of integers from 0 to {len(rows) - 1}"
            if how == "index"
            else f"one of {', '.join(shown)}, a list of them, or slice(first, last) with both",
            fix="sel picks by coordinate, isel by index; method='nearest' takes the nearest",
        ) from error
    return places


def _place(value: Any, coordinates: np.ndarray, nearest: bool) -> int:
    """The index of a coordinate."""
    if coordinates.dtype.kind in "iufb" and not isinstance(value, str):
        gap = np.abs(coordinates.astype(float) - float(value))
        close = gap <= (gap.min() if nearest else ROUNDING * abs(float(value)))
    else:
        close = coordinates == value
    if not np.any(close):
        raise KeyError(value)
    return int(np.argmax(close))


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


def _settings_at(run: Trajectory, places: Mapping[str, np.ndarray]) -> dict[str, Any]:
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


# ---- together ------------------------------------------------------------------------------------


@door
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
    _check_alike("runs", runs)
    _check_one_clock(runs)
    tables = _shared([to_table(run) for run in runs])
    weights = [run.sample_weight for run in runs]
    uncounted = [] if all("steps" in table.coords for table in tables) else ["steps"]
    placed: list[Any] = []
    for table in tables:
        table = table.drop_vars(["sample_weight", *uncounted, *_final(table)], errors="ignore")
        for name in ("time", "steps"):
            if name in table.coords and placed:
                begin = placed[-1][name].to_numpy()[-1] - table[name].to_numpy()[0]
                table = table.assign_coords({name: ("time", table[name].to_numpy() + begin)})
        placed.append(table.isel(time=slice(1, None)) if placed else table)
    whole = _along(placed, "time", "minimal")
    last = to_table(runs[-1])
    whole = whole.assign({name: last[name] for name in _final(last)})
    if weights[0] is not None and all(_same(w, weights[0]) for w in weights):
        whole = whole.assign(sample_weight=last["sample_weight"])
    settings = {"method": "join", "clock": runs[0].clock, **_agreed(runs)}
    return from_table(whole, settings | {"parts": [run.settings for run in runs]}, runs[-1].net)


@door
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
    _check_alike("parts", parts)
    name, coordinates = _named_axis(axis)
    tables, clock = _on_shared_times([to_table(part) for part in parts], parts, name)
    tables, common = _with_shared_weights(_shared(tables))
    if not all(_same(table.get("steps"), tables[0].get("steps")) for table in tables):
        tables = [table.drop_vars("steps", errors="ignore") for table in tables]
    whole = _along(tables, name, "all")
    if coordinates is None and name not in parts[0].axes:
        coordinates = np.arange(len(parts))
    if coordinates is not None:
        _check_coordinates(name, coordinates, whole.sizes[name])
        whole = whole.assign_coords({name: coordinates})
    whole = whole if common is None else whole.assign(sample_weight=common)
    lengths = [table.sizes.get(name, 1) for table in tables]
    same_net = all(part.net == parts[0].net for part in parts)
    settings = _settings_along(parts, name, lengths) | {"clock": clock}
    return from_table(whole, settings, parts[0].net if same_net else None)


def _along(tables: list[Any], name: str, variables: Literal["all", "minimal"]) -> xarray.Dataset:
    """Tables along one dimension; all others must agree."""
    import xarray

    try:
        whole = xarray.concat(tables, name, join="exact", data_vars=variables, coords="minimal")
    except ValueError as error:
        raise NeuralRaceError(
            "the runs have other times or other coordinates than each other",
            got=str(error).partition("\n")[0],
            wanted=f"the same times and coordinates along every axis but {name!r}",
            fix="select those that all share with run.sel",
        ) from error
    assert isinstance(whole, xarray.Dataset)
    return whole


def _final(table: xarray.Dataset) -> list[str]:
    return [str(name) for name in table.data_vars if str(name).startswith(FINAL)]


def _check_alike(what: str, runs: Sequence[Trajectory]) -> None:
    """Trajectories over the same axes, at least one."""
    axes = [list(run.axes) for run in runs]
    require(
        runs and not any(those != axes[0] for those in axes),
        f"{what} must have the same axes",
        got=axes,
        wanted="one or more runs, single ones or ensembles over the same axes",
        fix="pick members with run.isel(seed=0) first",
    )


def _check_one_clock(runs: Sequence[Trajectory]) -> None:
    clocks = [run.clock for run in runs]
    require(
        len(set(clocks)) <= 1,
        "the trajectories have different clocks",
        got=f"times in {', '.join(clocks)}",
        wanted="one clock for all",
        fix="settings['clock'] says what time is; combine runs of one kind",
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
    coordinates = entries("coordinates", axis[1], "one for each part: ('seed', [0, 1])")
    return name, plain_array(
        "coordinates", coordinates, wanted="one per part", fix="numbers, names"
    )


def _check_coordinates(name: str, coordinates: np.ndarray, count: int) -> None:
    require(
        coordinates.shape == (count,),
        f"the coordinates of axis {name!r} do not fit the parts",
        got=f"{len(coordinates)} coordinates",
        wanted=f"{count}, one for each member along the axis",
        fix="pass axis=(name, coordinates) with one coordinate for each",
    )


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _on_shared_times(
    tables: list[xarray.Dataset], parts: Sequence[Trajectory], axis: str
) -> tuple[list[xarray.Dataset], str]:
    """The tables on one clock: that of the parts, or steps where learning rates differ."""
    steps = parts[0].steps
    new_rates = axis == "learning_rate" and axis not in parts[0].axes and steps is not None
    if new_rates and all(_same(part.steps, steps) for part in parts):
        return [table.assign_coords(time=np.asarray(steps, float)) for table in tables], "steps"
    _check_one_clock(parts)
    return tables, parts[0].clock


def _shared(tables: list[xarray.Dataset]) -> list[xarray.Dataset]:
    """What all recorded with the same dimensions of its own, in the same sizes."""

    def own(table: xarray.Dataset) -> set[tuple[str, tuple[tuple[str, int], ...]]]:
        sizes = {
            str(name): tuple(
                (str(d), n) for d, n in v.sizes.items() if str(d).startswith(f"{name}.")
            )
            for name, v in table.data_vars.items()
        }
        return set(sizes.items())

    shared = {name for name, _ in set.intersection(*map(own, tables))} | {"sample_weight"}
    return [table.drop_vars([n for n in table.data_vars if n not in shared]) for table in tables]


def _with_shared_weights(
    tables: list[xarray.Dataset],
) -> tuple[list[xarray.Dataset], xarray.DataArray | None]:
    """The row of sample weights that all share; else weights for every part, equal if unset."""
    rows = [table.get("sample_weight") for table in tables]
    first = rows[0]
    if all(_same(row, first) for row in rows) and (first is None or first.ndim == 1):
        return [table.drop_vars("sample_weight", errors="ignore") for table in tables], first
    counts = {row.sizes["sample"] for row in rows if row is not None}
    require(
        len(counts) <= 1,
        "parts were made on different numbers of samples",
        got=f"{listed(counts)} sample weights",
        wanted="the same number of samples in all",
        fix="combine runs on one dataset",
    )
    equal = ("sample", np.full(n := counts.pop(), 1 / n))
    return [t if "sample_weight" in t else t.assign(sample_weight=equal) for t in tables], None


def _agreed(runs: Sequence[Trajectory]) -> dict[str, Any]:
    """The settings by which runs are compared, as far as all agree."""
    settings = [run.settings for run in runs]
    return {
        name: settings[0][name]
        for name in ("loss", "data", "learning_rate")
        if name in settings[0] and all(s.get(name) == settings[0][name] for s in settings)
    }


def _settings_along(
    parts: Sequence[Trajectory], axis: str, lengths: Sequence[int]
) -> dict[str, Any]:
    """What all settings have in common, and along the axis what differs."""
    settings = [part.settings for part in parts]
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for s in settings for name in s):
        values = [s.get(name) for s in settings]
        spread = [v[axis] if isinstance(v, dict) and set(v) == {axis} else None for v in values]
        listed_rates = name == axis and isinstance(values[0], list)
        if all(v == values[0] for v in values) and not any(spread) and not listed_rates:
            merged[name] = values[0]
            continue
        if name == "at":
            continue  # the places that members had elsewhere
        each = [
            s or (v if name == axis and isinstance(v, list) else [v] * n)
            for v, s, n in zip(values, spread, lengths, strict=True)
        ]
        along = [v for part in each for v in part]
        merged[name] = along if name == axis else {axis: along}
    return merged
