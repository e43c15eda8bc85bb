"""What any run or solution returns: time, loss, what was recorded, and how it came about."""

from __future__ import annotations

import functools
import html
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import by_name, file_path, plain_array, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import Network
from neuralrace.text import percent
from neuralrace.trajectory.metadata import check_names, with_versions
from neuralrace.types import ArrayLike, WeightsLike
from neuralrace.weights import checked_weights

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType, LineStyleType

CLOCKS = ("flow", "approximate flow", "steps")
"""What the time of a trajectory may be; see `Trajectory`."""


class Source(Protocol):
    """The theory behind a solution."""

    def outputs(self, run: Trajectory, /) -> dict[str, np.ndarray]:
        """The outputs at every time of the solution."""
        ...


ArrayTree: TypeAlias = ArrayLike | Mapping[str, "ArrayTree"]
"""An array, or arrays by name, nested or not."""


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Trajectory:
    """A run of a network or a solution of its theory; both come back as this.

    `time` has shape `(T,)`, `loss` `(*axes, T)`, each recorded value `(*axes, T, …)`, and the
    weights in `final` `(*axes, |t|, |s|)`. A single run has no axes; an ensemble's are named in
    `axes`, name → coordinates, in order.

    **Provenance.** `steps` (T,) is the number of the step at each moment, or
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
    settings: dict[str, Any]
    source: Source | None

    @door
    def __init__(
        self,
        time: ArrayLike,
        loss: ArrayLike,
        *,
        values: Mapping[str, ArrayTree] | None = None,
        final: Mapping[str, ArrayTree] | None = None,
        net: Network | None = None,
        axes: Mapping[str, ArrayLike] | None = None,
        steps: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        settings: Mapping[str, object] | None = None,
        source: Source | None = None,
    ) -> None:
        fix = "give one number per recorded moment, ensemble axes first"
        row = lambda what, value: plain_array(what, value, wanted="shape (n,)", fix=fix)
        weight = (
            None if sample_weight is None else real_array("sample_weight", sample_weight, fix=fix)
        )
        fields = {
            "time": real_array("time", time, wanted="shape (T,)", fix=fix),
            "loss": numbers("loss", loss, fix),
            "values": _tree("values", values),
            "final": _tree("final", final),
            "net": net,
            "axes": {name: row(name, coordinates) for name, coordinates in (axes or {}).items()},
            "steps": None if steps is None else row("steps", steps),
            "sample_weight": weight,
            "settings": with_versions(settings),
            "source": source,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        check_names(self.values, self.axes)
        self._check_shapes(fix)

    def _check_shapes(self, fix: str) -> None:
        """Raise where arrays do not fit the times and axes."""
        moments, members = self.time.shape, tuple(len(c) for c in self.axes.values())
        weight, steps = self.sample_weight, self.steps
        rows = {"time": self.time, **self.axes}
        wrong = [name for name, row in rows.items() if row.ndim != 1]
        if wrong:
            raise NeuralRaceError(
                f"{wrong[0]} must be a row of numbers or names",
                got=f"shape {rows[wrong[0]].shape}",
                wanted="shape (T,), and shape (n,) for every axis",
                fix=fix,
            )
        require(
            self.loss.shape == (*members, *moments),
            "the loss does not fit the times and axes of the trajectory",
            got=f"loss of shape {self.loss.shape}",
            wanted=f"shape {(*members, *moments)}",
            fix=fix,
        )
        if steps is not None and (steps.shape != moments or steps.dtype.kind not in "iu"):
            raise NeuralRaceError(
                "the steps do not fit the times of the trajectory",
                got=f"steps of shape {steps.shape} and dtype {steps.dtype}",
                wanted=f"integers of shape {moments}",
                fix="give the number of the step at each recorded moment",
            )
        if weight is not None and weight.ndim != 1 and weight.shape[:-1] != members:
            raise NeuralRaceError(
                "sample_weight does not fit the axes of the trajectory",
                got=f"sample_weight of shape {weight.shape}",
                wanted=f"shape (N,) or {(*members, 'N')}",
                fix="give one weight for each sample, ensemble axes first where they differ",
            )
        require(
            self.clock in CLOCKS,
            f"unknown clock {self.clock!r}",
            got=repr(self.clock),
            wanted=f"one of {listed(CLOCKS)}",
            fix="settings['clock'] says what time is; omit it for 'flow'",
        )

    @classmethod
    @door
    def from_weights(
        cls, net: Network, weights: WeightsLike, data: Dataset, times: ArrayLike
    ) -> Trajectory:
        """The trajectory of weights that came from elsewhere, with its loss and outputs.

        **Arguments:** `net` and `data` as for `nr.train`; `weights[edge]` of shape `(T, |t|, |s|)`;
        `times`, increasing, of shape `(T,)`.

        ```python
        >>> import neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(1, 1))
        >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[2.0]]})
        >>> run = nr.Trajectory.from_weights(net, {"W1": [[[0.0]], [[1.0]]]}, data, [0, 1])
        >>> run.loss, run.final["W1"]
        (array([2. , 0.5]), array([[1.]]))

        ```
        """
        fix = "sort them and remove repeats; np.unique does both"
        time = real_array("times", times, wanted="increasing numbers of shape (T,)", fix=fix)
        require(
            time.ndim == 1 and time.size and (np.diff(time) > 0).all(),
            "the times must increase",
            got=f"times of shape {time.shape}",
            wanted="increasing numbers of shape (T,)",
            fix=fix,
        )
        fix = "stack the weights of every moment: np.stack([w0, w1, …])"
        weights = {
            edge: numbers(f"the weights of edge {edge!r}", w, fix) for edge, w in weights.items()
        }
        lengths = {len(w) if w.ndim > 1 else None for w in weights.values()}
        if lengths != {len(time)}:
            raise NeuralRaceError(
                "the weights do not fit the times",
                got={edge: np.shape(w) for edge, w in weights.items()},
                wanted=f"shape (T, |t|, |s|) with T = {len(time)} for every edge",
                fix=fix,
            )
        checked_weights(net.arch, {edge: w[0] for edge, w in weights.items()}, net.shapes)
        over_time = {edge: jnp.asarray(weights[edge]) * 1.0 for edge in net.arch.matrices}
        loss, outputs = jax.tree.map(np.asarray, _seen(net, over_time, data))
        stored = jax.tree.map(np.asarray, over_time)
        return cls(
            time,
            loss,
            values=({} if data.is_population else {"outputs": outputs}) | {"weights": stored},
            final={edge: w[-1] for edge, w in stored.items()},
            net=net,
            sample_weight=data.sample_weight,
            settings={
                "method": "given weights",
                "data": data.digest(),
                "dtype": str(jnp.result_type(*over_time.values())),
            },
        )

    def __repr__(self) -> str:
        return f"Trajectory({', '.join(f'{k}: {v}' for k, v in self._summary().items())})"

    def _repr_html_(self) -> str:
        row = "<tr><th style='text-align:left'>{}</th><td style='text-align:left'>{}</td></tr>"
        rows = (row.format(*map(html.escape, entry)) for entry in self._summary().items())
        return f"<table>{''.join(rows)}</table>"

    def _summary(self) -> dict[str, str]:
        """What it is, in a few words each."""
        if not len(self.time):
            return {"loss": str(self.loss)}
        settings, mean = self.settings, self.loss.reshape(-1, len(self.time)).mean(axis=0)
        rows = {
            "method": settings.get("method"),
            "time": f"{self._from_to(self.time, 'g', ' … ')} ({len(self.time)} "
            + f"moment{'s' * (len(self.time) > 1)}"
            + (")" if self.clock == "flow" else f", {self.clock})"),
            "loss": self._from_to(mean, ".3g", " → ") + (" on average" if self.axes else ""),
            "axes": ", ".join(f"{name} ({len(c)})" for name, c in self.axes.items()),
            "error": said_error(settings.get("error"), settings.get("error_alone")),
            "values": ", ".join(self.values),
            "net": "" if self.net is None else type(self.net).__name__,
        }
        return {name: str(text) for name, text in rows.items() if text}

    @staticmethod
    def _from_to(values: np.ndarray, form: str, between: str) -> str:
        """The first and the last value, or the only one."""
        ends = values[:1] if len(values) == 1 else values[[0, -1]]
        return between.join(f"{value:{form}}" for value in ends)

    @property
    def clock(self) -> str:
        """What `time` is: `"flow"`, `"approximate flow"` or `"steps"`; see the class."""
        return self.settings.get("clock", "flow")

    @property
    def outputs(self) -> dict[str, np.ndarray] | None:
        """The outputs over time, `{node: (*axes, T, N, size)}`, or None if unknown.

        Those that were recorded, or else those that the `source` of a solution computes.
        """
        if "outputs" in self.values:
            return self.values["outputs"]
        return None if self.source is None else self.source.outputs(self)

    @door
    def plot(
        self,
        what: str = "loss",
        *,
        color: ColorType | None = None,
        linestyle: LineStyleType | None = None,
        label: str | None = None,
        log: bool = False,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the loss over time, or recorded values: `what` is a name such as `"pathways.mode1"`.

        A name that holds others, such as `"variables"`, draws them all. Of a value that is an
        array at each time, every entry is a curve (`sv 1`, `sv 2`); where it has more than 64,
        its norm is drawn. Of an ensemble, every seed is drawn faintly and their mean, with one
        curve for each place on the other axes. A second run on the same axes has the next colour.

        **Arguments:** `color` and `linestyle`, of matplotlib, for all curves; `label` names the
        curve, or stands before the names if there are several; `log` makes the vertical axis
        logarithmic.

        ```python
        >>> import neuralrace as nr
        >>> ax = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.2]).plot(label="a run")
        >>> ax = nr.Trajectory([0, 1, 2], [1.0, 0.6, 0.3]).plot(label="another", ax=ax)

        ```
        """
        from neuralrace.trajectory.curves import draw

        return draw(self, what, color=color, linestyle=linestyle, label=label, log=log, ax=ax)

    @door
    def isel(self, **where: int | slice | ArrayLike) -> Trajectory:
        """A part of the trajectory by index along its axes or `time`, as in xarray.

        An integer drops the axis; a slice or a list keeps it. Time is never dropped: an integer
        leaves one moment. A single member of an ensemble over learning rates, which counts steps,
        has the time rate · step again. `final` holds the weights at the last moment that is kept,
        or nothing where they were not recorded.

        ```python
        >>> import neuralrace as nr
        >>> many = nr.Trajectory([0, 1], [[1.0, 0.5], [1.0, 0.4]], axes={"seed": [5, 6]})
        >>> many.isel(seed=1).loss, many.isel(seed=[1], time=0).loss
        (array([1. , 0.4]), array([[1.]]))

        ```
        """
        from neuralrace.trajectory.labelled import part

        return part(self, where, "index")

    @door
    def sel(self, *, method: str | None = None, **where: str | slice | ArrayLike) -> Trajectory:
        """A part of the trajectory by coordinate along its axes or `time`, as in xarray.

        A single coordinate drops the axis; a list keeps it, and so does `slice(first, last)`, both
        ends included. `method="nearest"` takes the nearest coordinate. Otherwise as `isel`.

        ```python
        >>> import neuralrace as nr
        >>> many = nr.Trajectory([0, 1], [[1.0, 0.5], [1.0, 0.4]], axes={"seed": [5, 6]})
        >>> many.sel(seed=6).loss, many.sel(seed=6, time=0.9, method="nearest").loss
        (array([1. , 0.4]), array([0.4]))

        ```
        """
        from neuralrace.trajectory.labelled import part

        require(
            (method is None or (isinstance(method, str) and method == "nearest")),
            f"unknown method {method!r}",
            got=repr(method),
            wanted="None or 'nearest'",
            fix="omit it for exact values",
        )
        return part(self, where, method or "exact")

    def to_xarray(self) -> xarray.Dataset:
        """The same as an `xarray.Dataset`: dimensions are the axes, `time`, and each value's own.

        Nested names are joined by a dot: `outputs.y`, `final.W1`. The steps are a coordinate along
        `time`.

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Trajectory([0, 1], [1.0, 0.5]).to_xarray().sizes)
        {'time': 2}

        ```
        """
        from neuralrace.trajectory.labelled import to_table

        return to_table(self)

    @door
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a netCDF file, whole or not at all; `nr.load` reads it back.

        ```python
        >>> import tempfile, neuralrace as nr
        >>> folder = tempfile.mkdtemp()
        >>> nr.load(nr.Trajectory([0, 1], [1.0, 0.5]).save(f"{folder}/run.nc")).loss
        array([1. , 0.5])

        ```
        """
        from neuralrace.trajectory.files import save

        path = file_path(path, "run.save('run.nc')")
        require(
            path.suffix not in (".csv", ".json", ".npz", ".txt", ".xlsx"),
            f"path has the ending {path.suffix!r} of another kind of file",
            got=repr(path.name),
            wanted="a netCDF file, which usually ends in .nc",
            fix="run.save('run.nc'); a table is written by run.to_xarray().to_dataframe()",
        )
        return save(self, path)


def numbers(what: str, value: ArrayLike, fix: str) -> np.ndarray:
    """An array of real numbers in the precision it came in."""
    array = plain_array(what, value, wanted="an array of numbers", fix=fix)
    return array if array.dtype.kind in "fiub" else real_array(what, value, fix=fix)


def _tree(what: str, values: Any) -> dict[str, Any]:
    """Arrays by name, nested or not; what is no array yet becomes one."""
    if values is None:
        return {}
    fix = "arrays by name, such as {'outputs': {'y': array}}"
    named = by_name(what, values, fix)
    return {
        name: _tree(f"{what}[{name!r}]", value)
        if isinstance(value, Mapping)
        else value
        if hasattr(value, "dtype") and hasattr(value, "shape")
        else plain_array(f"{what}[{name!r}]", value, wanted="an array", fix=fix)
        for name, value in named.items()
    }


def said_error(error: float | None, alone: float | None) -> str:
    """How far a solution is off, and whether it had to follow the network for that; see `solve`."""
    if error is None or alone is None:
        return ""
    if error:
        return f"at most {percent(error)} of the initial loss, measured on the whole network"
    return f"0: the whole network was followed, since its blocks alone are off by {percent(alone)}"


def check_single(name: str, run: Trajectory) -> None:
    """Raise where a trajectory is an ensemble."""
    require(
        not run.axes,
        f"{name} must be a single run",
        got=f"an ensemble over {listed(run.axes)}",
        wanted="a trajectory without axes",
        fix="pick a member with run.isel(seed=0)",
    )


@functools.partial(jax.jit, static_argnums=0)
def _seen(net: Network, weights: Any, data: Dataset) -> tuple[Any, dict[str, Any]]:
    """Loss and outputs at every moment."""
    return jax.lax.map(lambda w: (net.loss(w, data), net(w, data)), weights)
