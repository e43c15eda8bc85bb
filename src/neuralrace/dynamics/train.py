"""Training one network: gradient descent or any optimizer, on all samples or in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from neuralrace.checks import random_key
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.dynamics.checkpoint import Checkpoints
from neuralrace.dynamics.functions import described
from neuralrace.dynamics.loop import take_steps
from neuralrace.dynamics.methods import (
    Clock,
    Descent,
    Optimized,
    Stepper,
    UntilLike,
    checked_optimizer,
    checked_until,
    clock_of,
    in_precision,
)
from neuralrace.dynamics.record import Record
from neuralrace.dynamics.schedule import Schedule
from neuralrace.dynamics.setup import (
    StoppedError,
    pose,
    recording_steps,
)
from neuralrace.dynamics.systems import Batches, checked_batch_size
from neuralrace.errors import require
from neuralrace.gdln import Network
from neuralrace.losses import SampleLoss
from neuralrace.progress import progress
from neuralrace.trajectory import Trajectory
from neuralrace.trajectory.files import network_described
from neuralrace.types import ArrayLike, BelowOne, Count, Key, NotNegative, Positive, WeightsLike

if TYPE_CHECKING:
    from optax import GradientTransformation

Callback = Callable[[int, float], None]
"""Called about once a second with the step that was reached and the loss there."""


@door
def train(
    net: Network,
    weights: WeightsLike,
    data: Dataset,
    *,
    learning_rate: Positive | None = None,
    optimizer: GradientTransformation | Stepper | None = None,
    momentum: BelowOne | None = None,
    weight_decay: NotNegative | None = None,
    rates: Mapping[str, Positive] | None = None,
    steps: Count,
    batch_size: Count | None = None,
    key: Key = 0,
    loss: str | SampleLoss = "squared",
    evaluate: Mapping[str, Dataset] | None = None,
    until: UntilLike | None = None,
    callback: Callback | None = None,
    record_every: Count = 1,
    record_at: ArrayLike | None = None,
    record: Record | None = None,
    compress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: Count | None = None,
    schedule: Schedule | None = None,
) -> Trajectory:
    """Train a network: `W ← W − learning_rate · ∂L/∂W`, L the mean loss, or by an optimizer.

    One compiled program: a second call with equal shapes and settings compiles nothing. Memory
    follows what is recorded. The loss over all data is always recorded; the weights are those
    *before* the step.

    **What takes the steps:** either `learning_rate`, for gradient descent, or `optimizer`, any
    optax `GradientTransformation` (`optax.sgd(0.1, momentum=0.9)`, `optax.adamw(1e-3)`, schedules)
    or a `dynamics.Stepper` of your own. `momentum` μ goes with a learning rate: V ← μV + ∂L/∂W,
    W ← W − learning_rate · V. `weight_decay` λ and `rates={edge: η}` (1 if not named) put
    η_e (∂L/∂W_e + λ W_e) in the place of ∂L/∂W_e, whatever takes the steps; the loss recorded is L,
    without the penalty. With `batch_size` every step sees that many samples, drawn
    without replacement in each epoch by `key` (a JAX key or an integer); the last batch of an epoch
    has the remaining samples. Within a batch, sample weights are normalised.

    **What is made small:** `loss` is `"squared"`, `"cross_entropy"` (softmax at each output node;
    targets are one-hot rows or one column of class indices), or a function of outputs and targets
    (`{node: (N, size)}` each) that returns one loss per sample.

    **What is recorded:** every `record_every` steps, the first and last always, or at the
    increasing steps `record_at`; `record` names what else to keep: `"outputs"`, `"weights"`,
    `"activity"` (ReLU networks) with `True`, or any name with a function `f(weights)` or
    `f(weights, data)` that JAX can compile. `evaluate={"test": data}` records loss and, where its
    targets are classes, accuracy on other data, as `values["test"]`.

    **When it ends:** after `steps`, or at the first recorded step where the loss is at most
    `until`, or where the function `until(weights)` is true. `callback(step, loss)` sees progress.

    `compress` simulates a gated linear network by `nr.compress`: by default where that is exact
    and at least halves the work, with True always, with False never; recorded and final weights
    are the full-width ones. `checkpoint`, a folder, makes the run survive being killed: every
    `checkpoint_every` steps (1000 if left out) what is needed to go on is written there, and the
    same call goes on from it, to bit-identical results.

    `schedule`, a `dynamics.Schedule`, weighs the samples anew in every phase, such as for contexts
    that come in blocks; the first step of every phase is recorded as well.

    **Returns:** a `Trajectory`. Its `time` is the sum of the learning rates (that of gradient
    flow) for plain descent and `optax.sgd`, with momentum μ over (1 − μ), which is approximate, and
    the number of steps for other optimizers; `settings["clock"]` says which.

    **Raises:** `StoppedError` when the loss stops being finite, with what was computed.

    ```python
    >>> import jax, jax.numpy as jnp, optax, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 1))
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> start = net.init(jax.random.key(0), scale=0.1)
    >>> run = nr.train(net, start, data, learning_rate=0.1, steps=200, record_every=50,
    ...                record={"norm": lambda w: jnp.sum(w["W1"] ** 2)})
    >>> run.time, bool(run.loss[-1] < 1e-3), run.values["norm"].shape
    (array([ 0.,  5., 10., 15., 20.]), True, (5,))
    >>> adam = nr.train(net, start, data, optimizer=optax.adam(0.01), steps=200, batch_size=1,
    ...                 key=0, record_every=50)
    >>> adam.settings["clock"], bool(adam.loss[-1] < 1e-3)
    ('steps', True)

    ```
    """
    stops = recording_steps(steps, record_every, record_at)
    batches = _batches(batch_size, key, data)
    method, clock = chosen_method(learning_rate, optimizer, int(stops[-1]), momentum)
    stops, moments = phases_of(schedule, stops, clock)
    problem = pose(
        net,
        weights,
        data,
        schedule=schedule,
        loss=loss,
        record=record,
        evaluate=evaluate,
        steps=float(stops[-1]),
        compressing=compress,
        width=clock.name != "other",
        batched=batches is not None,
        weight_decay=weight_decay,
        rates=rates,
    )
    saved = checkpoints_of(
        checkpoint, checkpoint_every,
        **method_settings(clock, int(stops[-1]), optimizer) | _batch_settings(batches, key),
        network=network_described(net), weights=dict(weights), data=problem.settings["data"],
        loss=problem.settings["loss"], record=sorted(record or {}),
        evaluate=problem.settings.get("evaluate"), until=until, recording_steps=stops,
        compression=problem.compression, law=[weight_decay, rates],
        schedule=None if schedule is None else [schedule.settings, schedule.weights],
    )  # fmt: skip
    method = in_precision(problem.dtype, method)
    with progress(int(stops[-1]), _title(clock)) as advance:
        done = take_steps(
            problem.system,
            problem.weights,
            method,
            stops,
            batches=batches,
            until=checked_until(until),
            moments=moments,
            checkpoints=saved,
            seen=watched(advance, callback),
        )
    run = Trajectory(
        clock.time(done.stops),
        done.loss,
        values=done.values,
        final=done.final,
        steps=done.stops,
        **problem.provenance(
            method_settings(clock, int(stops[-1]), optimizer)
            | _batch_settings(batches, key)
            | ({"stopped": done.why} if until is not None else {})
        ),
    )
    if done.stopped is not None:
        raise diverged(run, done.stopped, clock.rate)
    return run


def watched(
    advance: Callable[[float], None], callback: Callback | None, members: int = 1
) -> Callback:
    """What is told of every call: the progress of all members, and the user's function."""
    past = 0

    def seen(step: int, loss: float) -> None:
        nonlocal past
        advance(float((step - past) * members))
        past = step
        if callback is not None:
            callback(step, loss)

    return seen


def diverged(run: Trajectory, step: int, rate: float | None) -> StoppedError:
    """The error of a run whose loss stopped being finite."""
    smaller = "a smaller learning rate" if rate is None else f"a learning rate below {rate:g}"
    assert run.steps is not None
    return StoppedError(
        run,
        f"the loss stopped being finite at step {step}",
        got=f"a last finite loss of {run.loss[-1]:.3g} at step {run.steps[-1]}"
        if len(run.loss)
        else "a loss that is not finite to begin with",
        wanted="a loss that falls",
        fix=f"{smaller}, or smaller initial weights; what was computed is in error.trajectory",
    )


# ---- options ------------------------------------------------------------------------------------


def chosen_method(
    learning_rate: float | None,
    optimizer: GradientTransformation | Stepper | None,
    steps: int,
    momentum: float | None = None,
) -> tuple[Stepper, Clock]:
    """What takes the steps, and what they mean in time."""
    mu = checked_momentum(momentum, learning_rate)
    require(
        (learning_rate is None) != (optimizer is None),
        "training needs either a learning rate or an optimizer",
        got="neither" if optimizer is None else "both",
        wanted="one of the two",
        fix="learning_rate=0.1 for gradient descent, or optimizer=optax.adam(1e-3)",
    )
    if learning_rate is not None:
        rate = float(learning_rate)
        if mu:
            import optax

            return Optimized(optax.sgd(rate, momentum=mu)), Clock(rate, mu)
        return Descent(rate), Clock(rate)
    if isinstance(optimizer, Stepper):
        return optimizer, Clock()
    known = checked_optimizer(optimizer)
    return Optimized(known), clock_of(known, steps)


def phases_of(
    schedule: Schedule | None, stops: np.ndarray, clock: Clock
) -> tuple[np.ndarray, np.ndarray | None]:
    """The stops with those at which a phase begins, and the number of the phase from each on."""
    if not isinstance(schedule, Schedule):
        return stops, None
    phase = schedule.phase(clock.time(np.arange(stops[-1] + 1)))
    stops = np.union1d(stops, np.flatnonzero(np.diff(phase)) + 1)
    return stops, phase[stops]


def checked_momentum(momentum: float | None, learning_rate: float | None) -> float:
    """The momentum of steps with a learning rate, or an error."""
    require(
        momentum is None or learning_rate is not None,
        "momentum goes with a learning rate",
        got=f"momentum={momentum!r} without learning_rate",
        wanted="both, or neither",
        fix="learning_rate=0.1, momentum=0.9; an optimizer has its own, optax.sgd(0.1, 0.9); "
        "gradient flow has none",
    )
    return float(momentum or 0.0)


def method_settings(
    clock: Clock, steps: int, optimizer: GradientTransformation | Stepper | None
) -> dict[str, Any]:
    """What a trajectory says about the method that made it."""
    told: dict[str, Any] = {
        "method": "optimizer" if clock.name == "other" else "gradient descent",
        "optimizer": clock.name,
        "learning_rate": clock.rate,
        "clock": clock.kind,
        "steps": steps,
    }
    told |= {"momentum": clock.momentum} if clock.momentum else {}
    told |= {"weight_decay": clock.weight_decay} if clock.weight_decay else {}
    if isinstance(optimizer, Stepper):
        return told | {"optimizer": type(optimizer).__name__}
    return told | ({} if optimizer is None else {"transformation": described(optimizer.update)})


def _title(clock: Clock) -> str:
    return "training" if clock.name == "other" else "gradient descent"


def _batches(batch_size: int | None, key: Key, data: Dataset) -> Batches | None:
    if batch_size is None:
        return None
    size = checked_batch_size(batch_size, data.n_samples)
    return Batches(random_key(key, "drawing batches"), size, data.n_samples)


def _batch_settings(batches: Batches | None, key: Key) -> dict[str, int | list[int]]:
    return {} if batches is None else {"batch_size": batches.size, "key": key_data(key)}


def key_data(key: Key) -> int | list[int]:
    """A key as numbers that can be written to a file."""
    if hasattr(key, "__index__"):
        return int(key)
    return np.asarray(jax.random.key_data(key)).tolist()


def checkpoints_of(
    folder: str | os.PathLike[str] | None, every: int | None, **run: object
) -> Checkpoints | None:
    """The checkpoints of a run, where it has a folder for them."""
    if folder is None:
        require(
            every is None,
            "checkpoint_every without a folder for the checkpoints",
            got=f"checkpoint_every={every!r}, checkpoint=None",
            wanted="both, or neither",
            fix="name a folder, for example checkpoint='runs/first', or leave checkpoint_every out",
        )
        return None
    return Checkpoints(Path(folder), 1000 if every is None else int(every), **run)
