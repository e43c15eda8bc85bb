"""A ready function for sweeps: ReLU networks on the papers' tasks, many cells in one program."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.checks import by_name, entries, one_of, real_number
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, listed, require, whole_number
from neuralrace.sweeps.definition import plain

if TYPE_CHECKING:
    from neuralrace.dataset import Dataset

OWN = ("seed", "scale", "learning_rate")
"""Axes that are not parameters of the task."""


@door
def train_relu(
    cells: Sequence[Mapping[str, Any]],
    *,
    task: str,
    steps: int,
    hidden: int = 128,
    scale: float | None = None,
    learning_rate: float | None = None,
    criterion: float = 0.2,
    key: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> list[dict[str, float]]:
    """Train a ReLU network with one hidden layer at every cell; when and how far it learned.

    All cells of one shape run as one vmapped program (`nr.train_ensemble`): a cell may have a
    dataset, a seed, a scale of the initial weights and a learning rate of its own. A cell's
    numbers depend on the cell alone, up to rounding: seed s starts from
    `net.init(jax.random.fold_in(key, s), scale)`.

    **Arguments:** `task`, the name of a function of `nr.tasks` that returns a dataset with one
    input node `x` and one output node `y`. Axes of the sweep other than `seed`, `scale` and
    `learning_rate` are its parameters; `parameters` are the fixed ones. `scale` and
    `learning_rate` are needed where no axis has them.

    **Returns** for every cell `loss`, the last one, and `time`, when the loss was first at most
    `criterion` (NaN if never). A run that diverged is an error in its place.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.sweep(nr.sweeps.train_relu, {"delta": [0.0, 1.5], "seed": range(5)},
    ...                  settings={"task": "extended_xor", "hidden": 16, "scale": 0.01,
    ...                            "learning_rate": 0.2, "steps": 200})
    >>> times = found.data["time"].mean("seed").values
    >>> bool(times[0] > times[1])
    True

    ```
    """
    from neuralrace import tasks
    from neuralrace.dynamics import train_ensemble
    from neuralrace.relu import ReLUNetwork
    from neuralrace.trajectory import crossing_time

    one_of("task", task, tasks.__all__, "for example task='extended_xor'")
    fix = "for example cells=[{'delta': 0.5, 'seed': 0}]"
    cells = [by_name("a cell", cell, fix) for cell in entries("cells", cells, fix)]
    given = by_name("parameters", {} if parameters is None else parameters, "{'sign': -1.0}")
    fixed = {"scale": scale, "learning_rate": learning_rate}
    datasets: dict[str, Dataset] = {}
    groups: dict[Any, list[int]] = {}
    names = []
    for i, cell in enumerate(cells):
        own = {**given, **{k: v for k, v in cell.items() if k not in OWN}}
        name = json.dumps(plain("parameters", own), sort_keys=True)
        if name not in datasets:
            datasets[name] = _made(task, own)
        names.append(name)
        groups.setdefault(_shape(datasets[name]), []).append(i)
    found: list[Any] = [None] * len(cells)
    for members in groups.values():
        places = {
            axis: list(dict.fromkeys(_of(cells[i], axis, fixed) for i in members))
            for axis in ("scale", "learning_rate", "seed")
        }
        own = list(dict.fromkeys(names[i] for i in members))
        first = datasets[own[0]]
        net = ReLUNetwork((first.x["x"].shape[1], hidden, first.y["y"].shape[1]))
        runs = train_ensemble(
            net,
            [datasets[name] for name in own],
            key=key,
            seeds=places["seed"],
            scale=places["scale"],
            learning_rate=places["learning_rate"],
            steps=steps,
        )
        rate = np.asarray(places["learning_rate"])[None, None, :, None]
        assert runs.steps is not None
        when = crossing_time(runs.steps, runs.loss, criterion) * rate
        for i in members:
            at = (own.index(names[i]), *(places[a].index(_of(cells[i], a, fixed)) for a in places))
            last = float(runs.loss[at][-1])
            found[i] = (
                {"loss": last, "time": float(when[at])}
                if np.isfinite(last)
                else FloatingPointError("the loss stopped being finite")
            )
    return found


def _made(task: str, parameters: Mapping[str, Any]) -> Dataset:
    from neuralrace import tasks
    from neuralrace.dataset import Dataset

    made = getattr(tasks, task)
    try:
        inspect.signature(made).bind(**parameters)
    except TypeError as error:
        raise NeuralRaceError(
            f"the task {task!r} does not take these parameters",
            got=f"{error} (parameters: {listed(parameters)})",
            wanted=f"{task}{inspect.signature(made)}",
            fix="axes other than 'seed', 'scale' and 'learning_rate' are parameters of the task",
        ) from error
    data = made(**parameters)
    check_kind(
        f"what the task {task!r} returns", data, Dataset, "choose one that returns a dataset"
    )
    require(
        [*data.x] == ["x"] and [*data.y] == ["y"],
        f"the task {task!r} has other nodes than a network with one hidden layer",
        got=f"inputs {listed(data.x)}, outputs {listed(data.y)}",
        wanted="inputs 'x', outputs 'y'",
        fix="write a function of your own for the sweep, with its own network",
    )
    return data


def _shape(data: Dataset) -> tuple[Any, ...]:
    return data.x["x"].shape, data.y["y"].shape, tuple(data.labels), data.sample_weight is None


def _of(cell: Mapping[str, Any], axis: str, fixed: Mapping[str, Any]) -> Any:
    value = cell.get(axis, 0 if axis == "seed" else fixed[axis])
    if value is None:
        raise NeuralRaceError(
            f"the cells have no {axis}",
            got=f"neither an axis {axis!r} nor a setting",
            wanted=f"a {axis} for every cell",
            fix=f"for example settings={{{axis!r}: 0.1, …}}",
        )
    if axis == "seed":
        return whole_number("a seed", value, least=0, fix="for example 'seed': range(10)")
    return real_number(f"the {axis} of a cell", value, fix=f"for example {axis}=0.1")
