"""What any run or solution returns: time, loss, what was recorded, and how it came about."""

from __future__ import annotations

import functools
import json
import operator
import os
import platform
import secrets
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from neuralrace import __version__
from neuralrace.architecture import Architecture
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.gdln import GDLN, Network
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory.names import check_names, flat, nested

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

FORMAT = "neuralrace trajectory 1"

CLOCKS = ("flow", "approximate flow", "steps")
"""What the time of a trajectory may be; see `Trajectory`."""


@final
class Trajectory(eqx.Module):
    """A run of a network or a solution of its theory; both come back as this.

    `time` has shape `(T,)`, `loss` `(*axes, T)`, each recorded value `(*axes, T, …)`, and the
    weights in `final` `(*axes, |t|, |s|)`. A single run has no axes; an ensemble's are named in
    `axes`, name → coordinates, in order.

    **What it knows of its making.** `steps` (T,) is the number of the step at each moment, or
    None. `sample_weight` (N,), or (*axes, N) where it differs, are the weights of the samples, None
    if all count equally. `settings` is a dictionary that JSON can hold: the method, rates, seeds,
    `data` (the digest of the dataset) and the versions of the packages. A setting that differs
    along an axis is written `{axis: [one for each place]}`. `source` is the theory behind a
    solution, which can compute its outputs; it is not saved to a file.

    **Clocks.** `settings["clock"]` says what `time` is: `"flow"` (the sum of the learning rates, so
    that τ = 1; the default), `"approximate flow"` (momentum μ: the sum of rate / (1 − μ)) or
    `"steps"`.

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(1, 4, 1))
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    >>> run = nr.train(net, net.init(jax.random.key(0)), data, learning_rate=0.1, steps=20,
    ...                record_every=10)
    >>> run.time, run.loss.shape, run.settings["steps"]
    (array([0., 1., 2.]), (3,), 20)

    ```
    """

    time: Float[np.ndarray, " T"]
    loss: Float[np.ndarray, "*axes T"]
    values: dict[str, Any]
    final: dict[str, Any]
    net: Network | None
    axes: dict[str, np.ndarray]
    steps: Int[np.ndarray, " T"] | None
    sample_weight: Float[np.ndarray, "*axes N"] | None
    _settings: str = eqx.field(static=True)
    source: Any = eqx.field(static=True)

    def __init__(
        self,
        time: Any,
        loss: Any,
        *,
        values: Mapping[str, Any] | None = None,
        final: Mapping[str, Any] | None = None,
        net: Network | None = None,
        axes: Mapping[str, Any] | None = None,
        steps: Any = None,
        sample_weight: Any = None,
        settings: Mapping[str, Any] | None = None,
        source: Any = None,
    ) -> None:
        self.time, self.loss = np.asarray(time, np.float64), np.asarray(loss)
        self.values, self.final = dict(values or {}), dict(final or {})
        self.net = net
        self.axes = {name: np.asarray(c) for name, c in (axes or {}).items()}
        self.steps = None if steps is None else np.asarray(steps)
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight, float)
        self._settings = json.dumps({"versions": versions()} | dict(settings or {}))
        self.source = source
        check_names(self.values, self.axes)
        wanted = (*(len(c) for c in self.axes.values()), len(self.time))
        if self.loss.shape != wanted:
            raise NeuralRaceError(
                "the loss does not fit the times and axes of the trajectory",
                got=f"loss of shape {self.loss.shape}",
                wanted=f"shape {wanted}",
                fix="give one loss for each time, ensemble axes first",
            )
        if self.steps is not None and (
            self.steps.shape != self.time.shape or self.steps.dtype.kind not in "iu"
        ):
            raise NeuralRaceError(
                "the steps do not fit the times of the trajectory",
                got=f"steps of shape {self.steps.shape} and dtype {self.steps.dtype}",
                wanted=f"integers of shape {self.time.shape}",
                fix="give the number of the step at each recorded moment",
            )
        if self.clock not in CLOCKS:
            raise NeuralRaceError(
                f"unknown clock {self.clock!r}",
                got=repr(self.clock),
                wanted=f"one of {listed(CLOCKS)}",
                fix="settings['clock'] says what time is; leave it out for 'flow'",
            )

    @property
    def settings(self) -> dict[str, Any]:
        """How this was made: method, steps, rates, seeds, versions of the packages."""
        return json.loads(self._settings)

    @property
    def clock(self) -> str:
        """What `time` is: `"flow"`, `"approximate flow"` or `"steps"`; see the class."""
        return self.settings.get("clock", "flow")

    @property
    def outputs(self) -> dict[str, np.ndarray] | None:
        """The outputs over time, `{node: (*axes, T, N, size)}`, or None where nobody knows them.

        Those that were recorded, or else those that the `source` of a solution computes.
        """
        if "outputs" in self.values:
            return self.values["outputs"]
        return None if self.source is None else self.source.outputs(self)

    def plot(
        self, what: str = "loss", *, label: str | None = None, log: bool = False, ax: Any = None
    ) -> Axes:
        """Draw the loss over time, or recorded values: `what` is a name such as `"pathways.mode1"`.

        Of an ensemble, every seed is drawn faintly and their mean, with one colour for each place
        on the other axes. Of values, all that have one number a time.

        ```python
        >>> import neuralrace as nr
        >>> ax = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.2]).plot(label="a run")

        ```
        """
        from neuralrace.plot import draw_curves

        kind = "theory" if self.settings.get("method") in THEORY else "simulation"
        lead = self.loss.shape[:-1]
        if what == "loss":
            curves = {label or self.settings.get("method", "loss"): self.loss}
        else:
            named = flat(self.values)
            curves = {
                name.removeprefix(what).lstrip(".") or label or name: value
                for name, value in named.items()
                if (name == what or name.startswith(what + ".")) and value.shape == self.loss.shape
            }
            if not curves:
                raise NeuralRaceError(
                    f"nothing to draw under {what!r}",
                    got=repr(what),
                    wanted=f"'loss', or the start of one of {listed(named)}",
                    fix="record it: record={'name': f}, with one number a time",
                )
        if len(lead) > 1:
            places = list(np.ndindex(lead[:-1]))
            axes = list(self.axes.items())[:-1]
            curves = {
                ", ".join(f"{a} = {c[i]}" for (a, c), i in zip(axes, place, strict=True)): v[place]
                for v in curves.values()
                for place in places
            }
        return draw_curves(self.time, curves, kind=kind, log=log, ylabel=what, ax=ax)

    def to_xarray(self) -> xarray.Dataset:
        """The same as an `xarray.Dataset`: dimensions are the axes, `time`, and each value's own.

        Nested names are joined by a dot: `outputs.y`, `final.W1`.

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Trajectory([0, 1], [1.0, 0.5]).to_xarray().sizes)
        {'time': 2}

        ```
        """
        import xarray

        lead = tuple(self.axes)
        variables: dict[str, Any] = {"loss": ((*lead, "time"), self.loss)}
        for name, value in flat(self.values).items():
            variables[name] = _dims(name, value, (*lead, "time"))
        for name, value in flat(self.final).items():
            variables[f"final.{name}"] = _dims(f"final.{name}", value, lead)
        attrs = {
            "format": FORMAT,
            "settings": self._settings,
            "net": json.dumps(_described(self.net)),
        }
        return xarray.Dataset(variables, {"time": self.time, **self.axes}, attrs)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a netCDF file, whole or not at all; `nr.load` reads it back.

        ```python
        >>> import tempfile, neuralrace as nr
        >>> folder = tempfile.mkdtemp()
        >>> nr.load(nr.Trajectory([0, 1], [1.0, 0.5]).save(f"{folder}/run.nc")).loss
        array([1. , 0.5])

        ```
        """
        return save_table(self.to_xarray(), Path(path))


def save_table(table: xarray.Dataset, path: Path) -> Path:
    """Write a table to a netCDF file, whole or not at all."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        draft.touch(exist_ok=False)
    except OSError as error:
        raise NeuralRaceError(
            f"cannot write to the folder {str(path.parent)!r}",
            got=error.strerror,
            wanted="a folder that exists and is writable",
            fix="make the folder or choose another; nothing is lost, call save again",
        ) from error
    try:
        table.to_netcdf(draft, engine="h5netcdf")
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return path


THEORY = ("race", "closed form")
"""The methods whose trajectories are predictions."""


def load(path: str | os.PathLike[str]) -> Trajectory:
    """Read a trajectory that `Trajectory.save` wrote.

    ```python
    >>> import tempfile, neuralrace as nr
    >>> path = nr.Trajectory([0, 1], [1.0, 0.5]).save(f"{tempfile.mkdtemp()}/run.nc")
    >>> nr.load(path).time
    array([0., 1.])

    ```
    """
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            table = opened.load()
    except FileNotFoundError:
        raise
    except Exception as error:
        raise _not_a_trajectory(path, f"{type(error).__name__}: {error}") from error
    if table.attrs.get("format") != FORMAT:
        raise _not_a_trajectory(path, f"format {table.attrs.get('format')!r}")
    table_values = {
        str(name): value.to_numpy() for name, value in table.data_vars.items() if name != "loss"
    }
    final = {k.removeprefix("final."): v for k, v in table_values.items() if k.startswith("final.")}
    values = {k: v for k, v in table_values.items() if not k.startswith("final.")}
    return Trajectory(
        table["time"].to_numpy(),
        table["loss"].to_numpy(),
        values=nested(values),
        final=nested(final),
        net=_rebuilt(json.loads(table.attrs["net"])),
        axes={str(d): table[d].to_numpy() for d in table["loss"].dims if d != "time"},
        settings=json.loads(table.attrs["settings"]),
    )


def _not_a_trajectory(path: Any, got: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{str(path)!r} is not a trajectory",
        got=got,
        wanted=f"a netCDF file of format {FORMAT!r}",
        fix="load what Trajectory.save wrote",
    )


def join(*runs: Trajectory) -> Trajectory:
    """Runs one after another on one time axis, each starting where the one before it ended.

    For gates in stages: train, then train on from `run.final` with other gates. The moment of
    change is kept once, with the loss before the change. What only some runs recorded, or in other
    shapes, is left out.

    ```python
    >>> import neuralrace as nr
    >>> first, second = nr.Trajectory([0, 1], [1.0, 0.5]), nr.Trajectory([0, 1, 2], [0.5, 0.3, 0.2])
    >>> both = nr.join(first, second)
    >>> both.time, both.loss
    (array([0., 1., 2., 3.]), array([1. , 0.5, 0.3, 0.2]))

    ```
    """
    axes = [[(name, c.tolist()) for name, c in run.axes.items()] for run in runs]
    if not runs or any(those != axes[0] for those in axes):
        raise NeuralRaceError(
            "only runs with the same axes can be joined",
            got=axes,
            wanted="one or more runs, single ones or ensembles over the same axes",
            fix="join runs that were made alike",
        )
    lead = len(runs[0].axes)
    recorded = [flat(run.values) for run in runs]
    shapes = ({(name, v.shape[lead + 1 :]) for name, v in each.items()} for each in recorded)
    shared = {name for name, _ in set.intersection(*shapes)}
    starts = np.concatenate([[0.0], np.cumsum([run.time[-1] - run.time[0] for run in runs])])
    time, loss, values = [], [], {name: [] for name in recorded[0] if name in shared}
    for i, run in enumerate(runs):
        keep = slice(1 if i else 0, None)
        time.append(run.time[keep] - run.time[0] + starts[i] + runs[0].time[0])
        along_time = (slice(None),) * lead + (keep,)
        loss.append(run.loss[along_time])
        for name, parts in values.items():
            parts.append(recorded[i][name][along_time])
    return Trajectory(
        np.concatenate(time),
        np.concatenate(loss, axis=lead),
        values=nested({name: np.concatenate(parts, axis=lead) for name, parts in values.items()}),
        final=runs[-1].final,
        net=runs[-1].net,
        axes=runs[0].axes,
        settings={"method": "join", "parts": [run.settings for run in runs]},
    )


def member(run: Trajectory, **where: SupportsIndex) -> Trajectory:
    """One run of an ensemble, by the index along each of its axes (0 where none is given).

    ```python
    >>> import neuralrace as nr
    >>> many = nr.Trajectory([0, 1], [[1.0, 0.5], [1.0, 0.4]], axes={"seed": [0, 1]})
    >>> nr.member(many, seed=1).loss
    array([1. , 0.4])

    ```
    """
    unknown = sorted(set(where) - set(run.axes))
    if unknown:
        raise NeuralRaceError(
            f"the trajectory has no axis {unknown[0]!r}",
            got=repr(unknown[0]),
            wanted=f"one of {listed(run.axes)}",
            fix="an ensemble names its axes in run.axes",
        )
    index = tuple(operator.index(where.get(name, 0)) for name in run.axes)
    for i, (name, coordinates) in zip(index, run.axes.items(), strict=True):
        if not -len(coordinates) <= i < len(coordinates):
            raise NeuralRaceError(
                f"axis {name!r} has no member {i}",
                got=i,
                wanted=f"an index from 0 to {len(coordinates) - 1}",
                fix="members are picked by index; run.axes has their coordinates",
            )
    pick = lambda array: np.asarray(array)[index]  # noqa: E731
    return Trajectory(
        run.time,
        run.loss[index],
        values=jax.tree.map(pick, run.values),
        final=jax.tree.map(pick, run.final),
        net=run.net,
        settings=run.settings | {"member": dict(zip(run.axes, index, strict=True))},
    )


@functools.cache
def versions() -> dict[str, str]:
    """The versions of everything that decides a number."""
    found = {"neuralrace": __version__, "python": platform.python_version()}
    for package in ("jax", "jaxlib", "equinox", "diffrax", "optax", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _dims(name: str, value: Any, lead: tuple[str, ...]) -> tuple[tuple[str, ...], np.ndarray]:
    value = np.asarray(value)
    own = tuple(f"{name}.{i}" for i in range(value.ndim - len(lead)))
    return (*lead, *own), value


def _described(net: Network | None) -> dict[str, Any] | None:
    if net is None:
        return None
    described = {"sizes": dict(net.arch.sizes), "edges": dict(net.arch.edges)}
    return described | ({"leak": net.leak} if isinstance(net, ReLUNetwork) else {})


def _rebuilt(described: dict[str, Any] | None) -> Network | None:
    if described is None:
        return None
    edges = {e: (s, t) for e, (s, t) in described["edges"].items()}
    arch = Architecture(described["sizes"], edges)
    return ReLUNetwork(arch, leak=described["leak"]) if "leak" in described else GDLN(arch)
