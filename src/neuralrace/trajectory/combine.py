"""Several trajectories as one: one after another, or side by side along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neuralrace.checks import entries, plain_array
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.trajectory.run import Trajectory
from neuralrace.trajectory.table import FINAL, from_table, to_table
from neuralrace.types import ArrayLike

if TYPE_CHECKING:
    import xarray


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
    settings = _settings(parts, name, lengths) | {"clock": clock}
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
    for i, run in enumerate(runs):
        check_kind(f"{what}[{i}]", run, Trajectory, "pass trajectories, as nr.train returns them")
    axes = [list(run.axes) for run in runs]
    if not runs or any(those != axes[0] for those in axes):
        raise NeuralRaceError(
            f"{what} must have the same axes",
            got=axes,
            wanted="one or more runs, single ones or ensembles over the same axes",
            fix="pick members with run.isel(seed=0) first",
        )


def _check_one_clock(runs: Sequence[Trajectory]) -> None:
    clocks = [run.clock for run in runs]
    if len(set(clocks)) > 1:
        raise NeuralRaceError(
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
    if coordinates.shape != (count,):
        raise NeuralRaceError(
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
    if len(counts) > 1:
        raise NeuralRaceError(
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


def _settings(parts: Sequence[Trajectory], axis: str, lengths: Sequence[int]) -> dict[str, Any]:
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
