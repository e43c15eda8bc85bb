"""What every simulation begins with: checked inputs, and what to record of the weights."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.compression import (
    UNCHANGED,
    Lift,
    compress,
    search_work,
    split_work,
    step_work,
)
from neuralrace.dataset import Dataset, matched
from neuralrace.errors import NeuralRaceError, check_kind, listed, whole_number
from neuralrace.gdln import GDLN, Network, Weights, always_on, check_finite, checked_weights
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory

Record = Mapping[str, bool | Callable[[Weights], Any]]
"""What to record: `{"outputs": True, "weights": True, "activity": True, name: f(weights)}`."""

RESERVED = ("outputs", "weights", "activity", "loss", "time", "final")
"""What a trajectory names by itself, so that no recording function can."""


class StoppedError(NeuralRaceError):
    """A run that could not go on. `trajectory` holds all that was computed before it stopped.

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(1, 4, 1))
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    >>> try:
    ...     nr.train(net, net.init(jax.random.key(0)), data, learning_rate=50.0, steps=100)
    ... except nr.StoppedError as error:
    ...     print(error.what, len(error.trajectory.time) > 1)
    the loss stopped being finite at step 4 True

    ```
    """

    trajectory: Trajectory

    def __init__(self, trajectory: Trajectory, what: str, *, got: object, wanted: object, fix: str):
        super().__init__(what, got=got, wanted=wanted, fix=fix)
        self.trajectory = trajectory

    def __reduce__(self) -> tuple:
        again = functools.partial(
            type(self), got=str(self.got), wanted=str(self.wanted), fix=self.fix
        )
        return again, (self.trajectory, self.what)


@final
@dataclass(frozen=True)
class Recorder:
    """What to record of the weights, as a hashable value that can be static under `jit`."""

    net: Network
    what: tuple[tuple[str, Callable[[Weights], Any] | None], ...]

    def __call__(self, weights: Weights, data: Dataset) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, function in self.what:
            if function is not None:
                values[name] = function(weights)
            elif name == "outputs":
                values[name] = self.net(weights, data)
            elif name == "weights":
                values[name] = weights
            else:
                values[name] = self.net.activity(weights, data)  # type: ignore[attr-defined]
        return values


def make_recorder(net: Network, record: Any, weights: Weights, data: Dataset) -> Recorder:
    """Check a record and try it once, without computing anything."""
    if record is not None:
        check_kind("record", record, Mapping, "for example record={'weights': True}")
    built_in = ("outputs", "weights", *(["activity"] if hasattr(net, "activity") else []))
    what: list[tuple[str, Callable[[Weights], Any] | None]] = []
    for name, value in (record or {}).items():
        if callable(value):
            if name in RESERVED or "." in name:
                raise NeuralRaceError(
                    f"a recording function cannot be called {name!r}",
                    got=repr(name),
                    wanted=f"a name without dots, other than {', '.join(RESERVED)}",
                    fix="choose another name",
                )
            what.append((name, value))
        elif name not in built_in:
            raise NeuralRaceError(
                f"cannot record {name!r}",
                got=f"{name!r}: {value!r}",
                wanted=f"{listed(built_in)}: True, or a name with a function of the weights",
                fix="for example record={'outputs': True, 'norm': lambda w: jnp.sum(w['W1']**2)}",
            )
        elif value:
            what.append((name, None))
    recorder = Recorder(net, tuple(what))
    names = [name for name, function in what if function is not None]
    try:  # a new function each time: JAX remembers the shapes of one that it has seen
        first, again = (
            jax.eval_shape(lambda *given: recorder(*given), weights, data) for _ in range(2)
        )
    except NeuralRaceError:
        raise
    except Exception as error:
        message = str(error).partition("\n")[0]
        raise _unrecordable(names, f"{type(error).__name__}: {message}") from error
    if first != again:
        raise _unrecordable(names, "shapes that differ from call to call")
    if not _is_named(first):
        raise _unrecordable(names, "a value that is neither an array nor a dictionary of arrays")
    return recorder


def _unrecordable(names: list[str], got: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"the recording functions {listed(names)} cannot be compiled",
        got=got,
        wanted="functions of the weights made of jax.numpy, returning arrays of fixed shapes, or "
        "dictionaries of them with names without dots",
        fix="use jnp.where instead of indexing with a mask, jnp instead of np, and no state",
    )


def _is_named(value: Any) -> bool:
    """Whether this is an array, or nested dictionaries of arrays that a file can name."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and "." not in k and _is_named(v) for k, v in value.items())
    return hasattr(value, "shape")


def prepared(net: Any, weights: Any, data: Any) -> tuple[Weights, Dataset]:
    """Weights and data, checked, as JAX arrays of the weights' precision."""
    check_kind("net", net, Network, "wrap the graph: nr.GDLN(arch) or nr.ReLUNetwork(arch)")
    check_kind("data", data, Dataset, "gatings return (arch, data): pass the data alone")
    arrays = checked_weights(net.arch, weights)
    check_finite(arrays)
    dtype = jnp.result_type(*arrays.values())
    arrays = {edge: w.astype(dtype) for edge, w in arrays.items()}
    net(arrays, data)  # checks the data and warns of lost precision
    data = matched(net.arch, data.gated({}) if isinstance(net, ReLUNetwork) else data)
    for line in always_on(net.arch, data) if isinstance(net, GDLN) else ():
        logging.getLogger(__name__).warning("%s", line)
    return arrays, _as_arrays(data, dtype)


def _as_arrays(data: Dataset, dtype: Any) -> Dataset:
    """The dataset as JAX arrays of one precision, with its sample weights spelled out."""
    data = eqx.tree_at(
        lambda d: d.sample_weight, data, data.probability, is_leaf=lambda v: v is None
    )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), data)


@final
class View(eqx.Module):
    """How recording functions see a run: full-width weights, on all the samples."""

    lift: Lift
    data: Any


@final
@dataclass(frozen=True)
class Problem:
    """What to simulate, how recording functions see it, and in words how it was compressed."""

    net: Network
    weights: Weights
    data: Dataset
    view: View
    compression: str = "none"


WORTHWHILE = 1e9
"""Multiplications in a run from which on compressing is tried at all: a fraction of a second."""


def shrunk(
    net: Network, weights: Weights, data: Dataset, steps: float, compressing: bool
) -> Problem:
    """The network compressed where that at least halves the work, or as it is."""
    as_it_is = Problem(net, weights, data, View(UNCHANGED, data))
    each = step_work(net.arch, data.n_samples)
    worthwhile = steps * each >= max(WORTHWHILE, 10 * search_work(net.arch))
    if not (compressing and worthwhile and isinstance(net, GDLN)):
        return as_it_is
    if split_work(net.arch, data) > each / 2:
        return as_it_is
    small = compress(net, weights, data)
    if small.work > 0.5:
        return as_it_is
    fewer = _as_arrays(small.data, jnp.result_type(*weights.values()))
    return Problem(small.net, small.weights, fewer, View(small.lift, data), small.summary)


def recording_steps(steps: Any, record_every: Any, record_at: Any) -> np.ndarray:
    """The steps at which to record, the first and the last included."""
    steps = whole_number("steps", steps, fix="for example steps=1000")
    every = whole_number("record_every", record_every, fix="record_every=1 records every step")
    if record_at is None:
        return np.unique(np.append(np.arange(0, steps + 1, every), steps))
    stops = np.atleast_1d(np.asarray(record_at))
    whole = stops.ndim == 1 and stops.size > 0 and bool((stops == np.floor(stops)).all())
    if not whole or (np.diff(stops) <= 0).any() or stops[0] < 0 or stops[-1] > steps:
        raise NeuralRaceError(
            "the steps to record must increase",
            got=f"record_at = {np.array2string(stops, threshold=8)}",
            wanted=f"increasing whole numbers from 0 to steps = {steps}",
            fix="sort them and remove repeats; np.unique does both",
        )
    return np.unique(np.concatenate([[0], stops.astype(int), [steps]]))


def positive_rate(rate: Any) -> float:
    """A learning rate as a number, or an error."""
    value = float(rate) if hasattr(rate, "__float__") and np.ndim(rate) == 0 else math.nan
    if not 0 < value < math.inf:
        raise NeuralRaceError(
            "the learning rate must be a positive number",
            got=repr(rate),
            wanted="a finite number above 0",
            fix="for example learning_rate=0.1",
        )
    return value
