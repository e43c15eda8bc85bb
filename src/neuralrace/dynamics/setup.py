"""What every simulation begins with: checked inputs, the loss, and what may be compressed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from neuralrace.checks import check_known, real_array
from neuralrace.compression import (
    UNCHANGED,
    compress,
    search_work,
    split_work,
    step_work,
)
from neuralrace.dataset import Dataset, require_samples
from neuralrace.dynamics.functions import ByCode
from neuralrace.dynamics.loop import device_memory
from neuralrace.dynamics.record import Middles, Record, Recorder, make_recorder
from neuralrace.dynamics.schedule import Schedule, checked_schedule
from neuralrace.dynamics.systems import NetworkSystem, View, checked_law
from neuralrace.errors import NeuralRaceError, require, warn_user
from neuralrace.gdln import GDLN, Network, always_on
from neuralrace.losses import (
    SampleLoss,
    check_sample_losses,
    checked_loss,
    class_middles,
    cross_entropy,
    loss_name,
    squared,
    with_classes,
)
from neuralrace.relu import ReLUNetwork
from neuralrace.statistics import join_nodes
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Weights, WeightsLike
from neuralrace.weights import check_finite, checked_weights, warn_if_narrowed


class StoppedError(NeuralRaceError):
    """A run that could not go on. `trajectory` holds all that was computed before it stopped.

    Its `final` weights are those of its last recorded moment.

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
@dataclass(frozen=True, eq=False)
class Problem:
    """A network with checked weights and data: what to simulate, and how it was compressed.

    `settings` says where its numbers come from, for the trajectory.
    """

    net: Network
    system: NetworkSystem
    weights: Weights
    recorder: Recorder
    compression: str
    settings: dict[str, Any]
    sample_weight: np.ndarray | None

    @property
    def dtype(self) -> np.dtype:
        """The precision of the weights."""
        return jnp.result_type(*self.weights.values())

    def provenance(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What a trajectory of this problem says about where it came from."""
        here = {"dtype": str(self.dtype), "compression": self.compression}
        told = self.settings | here | dict(settings)
        decays = [of.get("weight_decay", 0.0) for of in (self.settings, settings)]
        told |= {"weight_decay": sum(decays)} if any(decays) else {}
        return {
            "net": self.net,
            "sample_weight": self.sample_weight,
            "settings": told,
        }


class Options(TypedDict):
    """What every simulation measures and records; see `train`."""

    loss: str | SampleLoss
    record: Record | None
    evaluate: Mapping[str, Dataset] | None
    schedule: Schedule | None
    weight_decay: float | None
    rates: Mapping[str, float] | None


def pose(
    net: Network,
    weights: WeightsLike,
    data: Dataset,
    *,
    loss: str | SampleLoss = "squared",
    record: Record | None = None,
    evaluate: Mapping[str, Dataset] | None = None,
    steps: float = 0,
    compressing: bool | None = False,
    width: bool = True,
    batched: bool = False,
    weight_decay: float | None = None,
    rates: Mapping[str, float] | None = None,
    schedule: Schedule | None = None,
) -> Problem:
    """Check a network, its weights and its data, and put them together as something that learns.

    `steps` and `compressing` decide whether the network is compressed: False never, True always,
    None where that at least halves the work. `width` allows fewer neurons besides fewer samples,
    where nothing but the loss moves the weights: what fewer neurons leave out would move, too.
    """
    measure = checked_loss(loss)
    if batched:
        require_samples(data, "data for mini-batches")
        require(
            schedule is None,
            "a schedule weighs all samples, and batch_size takes some",
            got="schedule and batch_size",
            wanted="one of the two",
            fix="leave batch_size out: every step sees the samples of its phase",
        )
    given = data.gated({}) if isinstance(net, ReLUNetwork) and data.gates else data
    arrays, data = prepared(net, weights, given, measure)
    check_known("the initial weights", arrays)
    others, classes = _evaluations(net, arrays, data, evaluate, measure)
    kept = measure if measure is squared or measure is cross_entropy else ByCode(measure)
    recorder = make_recorder(net, record, arrays, data, others, classes, kept)
    known = checked_law(weight_decay, rates, arrays)
    dtype = jnp.result_type(*arrays.values())
    law = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), known) if known.settings else None
    phases = checked_schedule(schedule, data)
    rows = None if phases is None else jnp.asarray(phases.weights, dtype)
    system = NetworkSystem(net, data, kept, recorder, View(UNCHANGED, data), others, law, rows)
    told: dict[str, Any] = {"loss": loss_name(measure), "data": given.digest()} | known.settings
    told |= {} if phases is None else {"schedule": phases.settings}
    if others:
        assert evaluate is not None
        told["evaluate"] = {name: evaluate[name].digest() for name in others}
    weight = None if given.sample_weight is None else np.asarray(given.sample_weight)
    as_it_is = Problem(net, system, arrays, recorder, "none", told, weight)
    _check_compressing(compressing, net, measure, batched, phases is not None)
    one_loss = measure is squared and phases is None
    if compressing is False or batched or not one_loss or not isinstance(net, GDLN):
        return as_it_is
    return _shrunk(as_it_is, steps, compressing is True, width and law is None)


def prepared(
    net: Network,
    weights: WeightsLike,
    data: Dataset,
    measure: SampleLoss = squared,
) -> tuple[Weights, Dataset]:
    """Weights and data, checked, as JAX arrays of the weights' precision."""
    if net.needs_samples or measure is not squared:
        require_samples(
            data, f"data for a {type(net).__name__} and the loss {loss_name(measure)!r}"
        )
    net.check(data)
    arrays = checked_weights(net.arch, weights, net.shapes)
    check_finite(arrays)
    dtype = jnp.result_type(*arrays.values())
    _check_in_memory(data, dtype)
    arrays = {edge: w.astype(dtype) for edge, w in arrays.items()}
    if measure is cross_entropy:
        data = with_classes(net.arch, data)
    warn_if_narrowed(arrays, data)
    data = net.completed(data.gated({}) if isinstance(net, ReLUNetwork) and data.gates else data)
    if measure is not squared:
        few = jax.tree.map(lambda leaf: leaf[:2], data)
        outputs = net(arrays, few)
        targets = {v: jnp.asarray(few.y[v], dtype) for v in outputs}
        check_sample_losses(measure, measure(outputs, targets), few.n_samples)
    for line in always_on(net.arch, data) if isinstance(net, GDLN) else ():
        warn_user(line)
    return arrays, as_arrays(data, dtype)


def as_arrays(data: Dataset, dtype: np.dtype) -> Dataset:
    """The dataset as JAX arrays of one precision, with its sample weights spelled out."""
    data = eqx.tree_at(
        lambda d: d.sample_weight, data, data.probability, is_leaf=lambda v: v is None
    )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), data)


def _check_in_memory(data: Dataset, dtype: np.dtype) -> None:
    """Raise where data are memory-mapped, or too large for the memory of the device."""
    fix = (
        "pass fewer samples (data.take), nr.compress a gated linear network first, or train in "
        "PyTorch and read the run with nr.TorchRecorder"
    )
    fields = {"x": data.x, "y": data.y, "gates": data.gates}
    named = {f"{f}[{name!r}]": a for f, arrays in fields.items() for name, a in arrays.items()}
    for name, array in named.items():
        require(
            not _is_mapped(array),
            f"{name} is memory-mapped, and a simulation needs its data in memory",
            got=f"numpy.memmap of shape {np.shape(array)}",
            wanted="arrays in memory",
            fix=f"np.array(…) copies an array into memory; if it does not fit, {fix}",
        )
    size = sum(np.size(array) for array in named.values()) * np.dtype(dtype).itemsize
    if size > device_memory():
        largest = max(named, key=lambda name: np.size(named[name]))
        raise NeuralRaceError(
            f"the data do not fit into the memory of the device; the largest array is {largest}",
            got=f"{size / 2**30:.3g} GiB in {np.dtype(dtype)}",
            wanted=f"at most {device_memory() / 2**30:.3g} GiB",
            fix=fix,
        )


def _is_mapped(array: object) -> bool:
    """Whether an array is a memory-mapped file or a view of one."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


def _evaluations(
    net: Network,
    weights: Weights,
    training: Dataset,
    evaluate: Mapping[str, Dataset] | None,
    measure: SampleLoss,
) -> tuple[dict[str, Dataset], dict[str, Middles | None]]:
    """Further datasets to record the loss on, checked, and what tells their classes apart."""
    if evaluate is None:
        return {}, {}
    found, classes = {}, {}
    for name, data in evaluate.items():
        try:
            found[name] = prepared(net, weights, data, measure)[1]
        except NeuralRaceError as error:
            raise NeuralRaceError(
                f"the evaluation set {name!r} does not fit the network: {error.what}",
                got=error.got,
                wanted=error.wanted,
                fix=error.fix,
            ) from error
        middles = class_middles(training, found[name])
        classes[name] = None if middles is None else tuple(middles.items())
    return found, classes


# ---- compression --------------------------------------------------------------------------------


def _check_compressing(
    compressing: bool | None, net: Network, measure: SampleLoss, batched: bool, phases: bool
) -> None:
    if compressing is not True:
        return
    reason = (
        "mini-batches, whose samples must stay apart"
        if batched
        else "a schedule, in whose phases samples count differently"
        if phases
        else f"the loss {loss_name(measure)!r}, which sees more than second moments"
        if measure is not squared
        else f"a {type(net).__name__}, whose gates change as it learns"
        if not isinstance(net, GDLN)
        else None
    )
    require(
        reason is None,
        "this run cannot be compressed exactly",
        got=f"compress=True with {reason}",
        wanted="full batches, the squared loss and a gated linear network",
        fix="leave compress out: it is used where it is exact and saves work",
    )


WORTHWHILE = 1e9
"""Multiplications in a run from which on compressing is tried at all: a fraction of a second."""


def _shrunk(problem: Problem, steps: float, always: bool, width: bool) -> Problem:
    """The problem compressed, always or where that at least halves the work."""
    system, data = problem.system, problem.system.data
    arch = system.net.arch
    each = step_work(arch, data.n_samples)
    worthwhile = steps * each >= max(WORTHWHILE, 10 * search_work(arch))
    if not always and (not worthwhile or split_work(arch, data) > each / 2):
        return problem
    assert isinstance(system.net, GDLN)
    small = compress(system.net, problem.weights, data, width=width)
    if not always and small.work > 0.5:
        return problem
    fewer = as_arrays(small.data, problem.dtype)
    shrunk = replace(system, net=small.net, data=fewer, view=View(small.lift, data))
    return replace(problem, system=shrunk, weights=small.weights, compression=small.summary)


def joined(problem: Problem) -> Problem:
    """The same with hidden nodes between the same neighbours as one: it compiles much faster."""
    system, view = problem.system, problem.system.view
    if not isinstance(system.net, GDLN) or (system.law is not None and system.law.rates):
        return problem
    one = join_nodes(system.net.arch, system.data.gates)
    if one is None:
        return problem
    data = as_arrays(one.data(system.data), problem.dtype)
    view = replace(view, lift=replace(view.lift, places=one.places))
    weights = {edge: jnp.asarray(w) for edge, w in one.join(problem.weights).items()}
    return replace(
        problem, system=replace(system, net=GDLN(one.arch), data=data, view=view), weights=weights
    )


# ---- steps and rates ----------------------------------------------------------------------------


COUNTED = 2**31
"""The first number that an integer of 32 bits cannot hold."""


def recording_steps(
    steps: int, record_every: int, record_at: ArrayLike | None
) -> Int[np.ndarray, " T"]:
    """The steps at which to record, the first and the last included."""
    require(
        steps < COUNTED or jax.config.read("jax_enable_x64"),
        "too many steps for the step counter",
        got=f"steps={steps}",
        wanted=f"fewer than {COUNTED} = 2³¹ where JAX counts in 32 bits",
        fix="jax.config.update('jax_enable_x64', True), or fewer and larger steps",
    )
    if record_at is None:
        return np.unique(np.append(np.arange(0, steps + 1, record_every), steps))
    wanted = f"increasing whole numbers from 0 to steps = {steps}"
    fix = "sort them and remove repeats; np.unique does both"
    stops = np.atleast_1d(real_array("record_at", record_at, wanted=wanted, fix=fix))
    whole = stops.ndim == 1 and stops.size > 0 and bool((stops == np.floor(stops)).all())
    require(
        whole and (np.diff(stops) > 0).all() and stops[0] >= 0 and stops[-1] <= steps,
        "the steps to record must increase",
        got=f"record_at = {np.array2string(stops, threshold=8)}",
        wanted=wanted,
        fix=fix,
    )
    return np.unique(np.concatenate([[0], stops.astype(int), [steps]]))
