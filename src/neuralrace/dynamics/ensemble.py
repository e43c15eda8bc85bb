"""Many runs in one compiled program: over seeds, datasets, scales and learning rates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.dynamics.flow import checked_times, flow_settings, make_flow, solve_flows
from neuralrace.dynamics.grid import Chunk, Grid, Scales, Starts, one_row
from neuralrace.dynamics.loop import Members, StepResult, take_steps
from neuralrace.dynamics.methods import Descent, Stepper, UntilLike, checked_until, in_precision
from neuralrace.dynamics.record import Record
from neuralrace.dynamics.schedule import Schedule
from neuralrace.dynamics.setup import Options, pose, recording_steps
from neuralrace.dynamics.systems import checked_batch_size
from neuralrace.dynamics.train import (
    Callback,
    checkpoints_of,
    chosen_method,
    method_settings,
    phases_of,
    watched,
)
from neuralrace.errors import require, warn_user
from neuralrace.gdln import InitKind, Network
from neuralrace.losses import SampleLoss
from neuralrace.progress import progress
from neuralrace.trajectory import Trajectory
from neuralrace.trajectory.files import network_described
from neuralrace.types import (
    ArrayLike,
    BelowOne,
    Count,
    Key,
    NotNegative,
    Positive,
    WeightsLike,
    Whole,
)

if TYPE_CHECKING:
    from optax import GradientTransformation


@door
def train_ensemble(
    net: Network,
    data: Dataset | Sequence[Dataset],
    *,
    key: Key = 0,
    seeds: Count | Sequence[Whole] = 1,
    scale: Scales = 1.0,
    kind: InitKind = "gaussian",
    weights: WeightsLike | None = None,
    learning_rate: Positive | Sequence[Positive] | None = None,
    momentum: BelowOne | None = None,
    weight_decay: NotNegative | None = None,
    rates: Mapping[str, Positive] | None = None,
    optimizer: GradientTransformation | Stepper | None = None,
    steps: Count,
    batch_size: Count | None = None,
    loss: str | SampleLoss = "squared",
    evaluate: Mapping[str, Dataset] | None = None,
    until: UntilLike | None = None,
    callback: Callback | None = None,
    record_every: Count = 1,
    record_at: ArrayLike | None = None,
    record: Record | None = None,
    axis: tuple[str, ArrayLike] | None = None,
    members_at_once: Count | None = None,
    dtype: DTypeLike | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: Count | None = None,
    schedule: Schedule | None = None,
) -> Trajectory:
    """Many runs in one program: over seeds, and over datasets, scales and learning rates.

    Every combination is run. Run i of the seeds starts from
    `net.init(jax.random.split(key, seeds)[i], scale, kind)` and gives the numbers that `train`
    gives from there; its batches are those of `key=jax.random.fold_in(that key, 1)`. A list of
    seeds instead of their number starts the run of seed s from `jax.random.fold_in(key, s)`, so
    that it does not depend on which others run with it.

    **Arguments:** `key`, a JAX key or an integer; `data`, one dataset or several of one shape (a
    task over a parameter), whose axis in the result is `axis = (name, coordinates)`, `("data",
    0 … n−1)` by default; `scale` and `learning_rate`, a number each or a sequence; a scale may
    also be `{edge: scale}`, and in a sequence of these, place i has the coordinate i; `weights`,
    one start for every seed in place of a drawn one, `{edge: (seeds, target, source)}`: the
    `final` of an ensemble goes on from there, such as with other gates, and `nr.join` puts the
    stages together; `members_at_once` bounds the memory by running that many at a time (by default
    as many as keep the recorded values of a call small). On several devices the members are spread
    over them. Everything else is as in `train`. With `until` an ensemble runs until all members may
    end.

    **Returns:** a `Trajectory` whose axes are those of `data`, `scale`, `learning_rate` that are
    sequences, in this order, then `seed`. Learning rates give different times to equal steps:
    with several, `time` counts steps, and `sel(learning_rate=…)` turns it into time.

    ```python
    >>> import neuralrace as nr
    >>> net = nr.ReLUNetwork((2, 16, 1))
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> many = nr.train_ensemble(net, data, key=0, seeds=3, scale=[0.01, 0.1],
    ...                          learning_rate=0.1, steps=100, record_every=50)
    >>> many.loss.shape, list(many.axes)
    ((2, 3, 3), ['scale', 'seed'])

    ```
    """
    stops = recording_steps(steps, record_every, record_at)
    row = one_row("learning_rate", learning_rate)
    several = [] if learning_rate is None else [float(rate) for rate in row.ravel().tolist()]
    method, clock = chosen_method(
        several[0] if several else None, optimizer, int(stops[-1]), momentum
    )
    stops, phases = phases_of(schedule, stops, clock)
    require(
        len(several) < 2 or (phases is None and not clock.momentum),
        f"{'momentum' if phases is None else 'a schedule'} goes with one learning rate",
        got=f"{len(several)} learning rates, with which equal steps lie at different times",
        wanted="one learning rate",
        fix="one ensemble for each learning rate",
    )
    starts = Starts.of(net, key, seeds, scale, kind, dtype, weights)
    options: Options = {
        "loss": loss, "evaluate": evaluate, "record": record, "schedule": schedule,
        "weight_decay": weight_decay, "rates": rates,
    }  # fmt: skip
    posed = lambda data: pose(net, starts.sample, data, batched=batch_size is not None, **options)
    grid = Grid.of(data, posed, starts, several if row.ndim else clock.rate, axis)
    problem, samples = grid.problem, grid.problem.system.data.n_samples
    size = None if batch_size is None else checked_batch_size(batch_size, samples)
    described = {
        **method_settings(clock, int(stops[-1]), optimizer), **starts.settings,
        "network": network_described(net), "data": grid.data, "learning_rate": several,
        "batch_size": batch_size, "loss": problem.settings["loss"], "weights": starts.own,
        "record": sorted(record or {}), "dtype": str(problem.dtype),
        "evaluate": problem.settings.get("evaluate"), "law": [weight_decay, rates],
        "schedule": None if schedule is None else [schedule.settings, schedule.weights],
    }  # fmt: skip
    method = in_precision(problem.dtype, method)

    def run_chunk(
        members: Chunk, stops: np.ndarray, until: UntilLike | None, seen: Callback
    ) -> StepResult:
        folder = None if checkpoint is None else Path(checkpoint) / f"members-{members.low:06d}"
        told = described | {"until": until, "recording_steps": stops}
        if until is None and folder is not None:
            folder = folder / f"until-{stops[-1]}"
        saved = checkpoints_of(
            folder, checkpoint_every, members=[members.low, len(members)], **told
        )
        return take_steps(
            grid.system(members),
            grid.weights(members),
            Descent(grid.rate(members)) if len(several) > 1 else method,
            stops,
            batches=grid.batches(members, size),
            until=checked_until(until),
            members=Members(len(members), grid.axes_of_system, 0 if len(several) > 1 else None),
            moments=None if phases is None else phases[: len(stops)],
            checkpoints=saved,
            seen=seen,
        )

    chunks = list(grid.chunks(len(stops), members_at_once))
    with progress(int(stops[-1]) * len(grid), "ensemble") as advance:
        done = [
            run_chunk(members, stops, until, watched(advance, callback, members.real))
            for members in chunks
        ]
        last = max(len(part.stops) for part in done)
        for i, part in enumerate(done):  # all members go on until the last of them may end
            if len(part.stops) < last:
                done[i] = run_chunk(chunks[i], stops[:last], None, lambda step, loss: None)
    reached = done[0].stops
    settings = method_settings(clock, int(stops[-1]), optimizer)
    settings |= {} if size is None else {"batch_size": size}
    if until is not None:
        settings["stopped"] = "until" if len(reached) < len(stops) else "end"
    if len(several) > 1:
        settings |= {"learning_rate": several, "clock": "steps"}
    time = reached if len(several) > 1 else clock.time(reached)
    parts = [(part.loss, part.values, part.final) for part in done]
    run = grid.trajectory(time, parts, settings, reached)
    _warn_of_stopped(run, "a smaller learning rate")
    return run


@door
def flow_ensemble(
    net: Network,
    data: Dataset | Sequence[Dataset],
    *,
    key: Key = 0,
    times: ArrayLike,
    seeds: Count | Sequence[Whole] = 1,
    scale: Scales = 1.0,
    kind: InitKind = "gaussian",
    loss: str | SampleLoss = "squared",
    evaluate: Mapping[str, Dataset] | None = None,
    record: Record | None = None,
    rtol: Positive | None = None,
    atol: Positive | None = None,
    max_steps: Count = 100_000,
    axis: tuple[str, ArrayLike] | None = None,
    members_at_once: Count | None = None,
    dtype: DTypeLike | None = None,
    schedule: Schedule | None = None,
    weight_decay: NotNegative | None = None,
    rates: Mapping[str, Positive] | None = None,
) -> Trajectory:
    """Gradient flow from many starts in one program: over seeds, datasets and scales.

    Members start as those of `train_ensemble` do, and each is solved as `flow` solves it, with
    tolerances that follow the smallest weights of all. Members that do not reach the last time
    within `max_steps` are not finite from where they stopped, with a warning. `weight_decay` and
    `rates` of edges are as in `flow`.

    ```python
    >>> import neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(1, 4, 1))
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    >>> many = nr.flow_ensemble(net, data, key=0, seeds=3, scale=1e-3, times=[0, 10, 20])
    >>> many.loss.shape, list(many.axes)
    ((3, 3), ['seed'])

    ```
    """
    times = checked_times(times)
    starts = Starts.of(net, key, seeds, scale, kind, dtype)
    options: Options = {
        "loss": loss, "evaluate": evaluate, "record": record, "schedule": schedule,
        "weight_decay": weight_decay, "rates": rates,
    }  # fmt: skip
    grid = Grid.of(data, lambda d: pose(net, starts.sample, d, **options), starts, None, axis)
    chunks = list(grid.chunks(len(times), members_at_once))
    begun = [grid.weights(members) for members in chunks]
    each = [w for weights in begun for stack in weights.values() for w in np.asarray(stack)]
    method = make_flow(each, rtol, atol, max_steps, schedule)
    done = []
    with progress(len(grid), "gradient flows", "members") as advance:
        for members, weights in zip(chunks, begun, strict=True):
            system = grid.system(members)
            done.append(solve_flows(system, weights, method, times, grid.axes_of_system))
            advance(members.real)
    run = grid.trajectory(times, [part[:3] for part in done], flow_settings(method))
    if not grid.gathered([part[3] for part in done]).all():
        _warn_of_stopped(run, "a larger max_steps or rtol")
    return run


def _warn_of_stopped(run: Trajectory, fix: str) -> None:
    bad = int((~np.isfinite(run.loss).all(axis=-1)).sum())
    if bad:
        warn_user(
            f"the loss of {bad} of {run.loss[..., 0].size} runs stopped being finite; "
            f"they are not finite from there on. Usual fix: {fix}."
        )
