"""Runs of networks that were trained elsewhere, made of their weights at one or more moments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_array
from neuralrace.dataset import Dataset, check_targets, check_unweighed, weighed_by
from neuralrace.dynamics import StoppedError, train
from neuralrace.errors import NeuralRaceError, require, warn_user
from neuralrace.gdln import Network
from neuralrace.losses import (
    SampleLoss,
    called,
    check_sample_losses,
    checked_loss,
    cross_entropy,
    loss_name,
    squared,
    with_classes,
)
from neuralrace.tolerances import REPLAYS, SAME_RATE, TELLS
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike

REPLAYED = 1_000_000
"""The most samples times steps that are replayed to check a learning rate."""

Replay = Callable[[float, int], Float[np.ndarray, " n"] | None]
"""How all weights move with some rate over some steps; None where the run diverges."""


def check_rate(
    net: Network,
    moments: Sequence[Mapping[str, np.ndarray]],
    data: Dataset,
    steps: np.ndarray,
    measure: SampleLoss,
    rate: float,
) -> None:
    """Raise where gradient descent with this rate does not lead from a checkpoint to the next.

    The shortest interval is replayed if that takes at most `REPLAYED` steps of a sample. Each step
    may round every weight in the precision of the checkpoints. Where other rates lead to the same
    weights, as they do once a run has converged, a warning says that the rate was not checked.
    """
    if len(moments) < 2:
        return
    k = int(np.diff(steps).argmin())
    count = int(steps[k + 1] - steps[k])
    if count * data.n_samples > REPLAYED:
        return
    before, after = moments[k], moments[k + 1]

    def moved(weights: Mapping[str, np.ndarray]) -> Float[np.ndarray, " n"]:
        differ = [np.asarray(weights[e], np.float64) - before[e] for e in before]
        return np.concatenate([each.ravel() for each in differ])

    def replay(rate: float, count: int) -> Float[np.ndarray, " n"] | None:
        try:
            with jax.enable_x64(True):
                run = train(net, before, data, learning_rate=rate, steps=count, loss=measure)
        except StoppedError:
            return None
        assert run.final is not None  # that of a single run
        return moved(run.final)

    def follows(rate: float) -> bool:
        taken = replay(rate, count)
        return taken is not None and bool(np.linalg.norm(taken - change) <= allowed)

    def is_told(rate: float) -> bool:
        """Whether only rates near this one lead to the next checkpoint."""
        return not follows(rate * TELLS) and not follows(rate / TELLS)

    change, taken = moved(after), replay(rate, count)
    rounding = count * np.sqrt(
        sum(float(((np.finfo(w.dtype).eps * w) ** 2).sum()) for w in before.values())
    )
    allowed = REPLAYS * float(np.linalg.norm(change)) + float(rounding)
    if taken is not None and np.linalg.norm(taken - change) <= allowed:
        if not is_told(rate):
            warn_user(
                f"the learning rate {rate:g} was not checked: from step {steps[k]} to "
                f"{steps[k + 1]}, the shortest interval between checkpoints, other rates lead to "
                "the same weights. Times are steps times this rate; save checkpoints more often "
                "to have it checked."
            )
        return
    factor = _factor(replay, change, rate, count, allowed)
    told = factor is not None and is_told(rate * factor)
    would = "diverge" if taken is None else f"change by {np.linalg.norm(taken):.3g}"
    raise NeuralRaceError(
        "the checkpoints do not follow gradient descent with this learning rate",
        got=f"rate {rate:g}; from step {steps[k]} to {steps[k + 1]} the weights changed by "
        f"{np.linalg.norm(change):.3g}, and with that rate they would {would}",
        wanted="plain gradient descent on all of these samples with the loss ½⟨‖y − ŷ‖²⟩, or the "
        "one given as loss=",
        fix=_advice(factor, told, rate, net, data, measure),
    )


def _factor(
    replay: Replay, change: Float[np.ndarray, " n"], rate: float, count: int, allowed: float
) -> float | None:
    """By how much the rate must be multiplied to lead to the next checkpoint, if that does.

    The first guess takes every step for the first one. The next ones are the secant's, between the
    logarithms of the rate and of the length of the change.
    """
    step = replay(rate, 1)
    if step is None or not step.any() or not change.any():
        return None
    factor = float(np.linalg.norm(change) / (count * np.linalg.norm(step)))
    slope, last = 1.0, None
    for _ in range(20):
        taken = replay(rate * factor, count)
        if taken is None:
            factor /= 2
            continue
        if not taken.any():
            return None
        far = float(np.log(np.linalg.norm(taken) / np.linalg.norm(change)))
        if abs(far) < SAME_RATE / 10:
            return factor if np.linalg.norm(taken - change) <= allowed else None
        if last is not None and last[0] != factor:
            slope = (far - last[1]) / float(np.log(factor / last[0]))
        if not slope > 0:
            return None
        last = factor, far
        factor *= float(np.exp(-far / slope))
    return None


def _advice(
    factor: float | None, told: bool, rate: float, net: Network, data: Dataset, measure: SampleLoss
) -> str:
    """What to do, by the factor between the two rates, and whether no other factor would do."""
    outputs, samples = sum(net.arch.sizes[v] for v in net.arch.outputs), data.n_samples
    means = f"torch's MSELoss() over K = {outputs} outputs is 2/K of this loss"
    summed = f"a loss that is summed over the N = {samples} samples is N times this one"
    known = [(float(samples), summed)]
    if measure is squared:
        both = f"torch's MSELoss(reduction='sum') over N = {samples} samples is 2N times this loss"
        known = [
            (2 / outputs, means),
            (2.0, "a loss without the ½ is twice this one"),
            (1 / outputs, f"a mean over the K = {outputs} outputs is 1/K of this loss"),
            (2.0 * samples, both),
            *known,
        ]
    others = "momentum, Adam, weight decay, or data that are only a part of those trained on"
    momentum = "momentum μ is like 1/(1 − μ) times the rate"
    for exact, why in known:
        if factor is not None and abs(factor / exact - 1) < SAME_RATE:
            pass_it = f"pass learning_rate={rate * exact:.4g}, {exact:.4g} times this: {why}"
            return f"{pass_it}; or leave the rate out if there was momentum ({momentum})"
    if factor is None or not told:
        mse = f"{means}, and with reduction='sum' 2N times it: pass lr · 2/K or lr · 2N; "
        return (
            "see whether times= are the steps at which they were saved, and whether the loss was a "
            f"mean or a sum over samples and outputs; {mse if measure is squared else ''}leave the "
            f"rate out for {others}"
        )
    return (
        f"with learning_rate={rate * factor:.3g}, {factor:.3g} times this, they do: see whether "
        "times= are the steps at which they were saved, and how the loss is averaged; leave the "
        f"rate out for {others} ({momentum})"
    )


PIECE = 8192
"""Samples whose outputs are computed at once, which bounds the memory."""


@final
@dataclass(frozen=True)
class Trained:
    """How a run was trained, as far as its user says: where, on which loss, and by which steps."""

    source: str
    loss: str | SampleLoss
    learning_rate: float | None
    batch_size: int | None


@final
@dataclass(frozen=True, eq=False)
class Moment:
    """A network and its weights at one moment, under the name by which errors speak of it."""

    name: str
    net: Network
    weights: dict[str, np.ndarray]

    @property
    def precision(self) -> str:
        return np.result_type(*self.weights.values()).name


def imported_run(
    checkpoints: Sequence[Moment], data: Dataset, times: ArrayLike | None, trained: Trained
) -> tuple[Network, Trajectory]:
    """The one network of all checkpoints, and its run, with outputs and losses computed from them.

    Time counts steps unless a learning rate is given: the run is then taken as gradient descent
    with that rate, on all samples or in batches, and time is rate · step.
    """
    _check_one_network(checkpoints)
    net, moments = checkpoints[0].net, [each.weights for each in checkpoints]
    learning_rate, batch_size = trained.learning_rate, trained.batch_size
    measure = checked_loss(trained.loss)
    steps = checked_times(times, len(moments))
    whole = bool((steps == np.rint(steps)).all())
    settings: dict[str, object] = {
        "method": f"an unknown optimizer ({trained.source})",
        "clock": "steps",
        "loss": loss_name(measure),
        "data": data.digest(),
        "dtype": checkpoints[0].precision,
    }
    time = steps
    if learning_rate is not None:
        rate = float(learning_rate)
        if not whole:
            raise NeuralRaceError(
                "with a learning rate, times count steps",
                got=f"times such as {steps[steps != np.rint(steps)][0]:g}",
                wanted="whole numbers",
                fix="pass the number of the step of every checkpoint as times",
            )
        settings |= {"method": "gradient descent", "clock": "flow", "learning_rate": rate}
        settings |= {"steps": int(steps[-1]), "source": trained.source}
        time = rate * steps
    if batch_size not in (None, data.n_samples):  # a batch of all samples is no batch
        settings["batch_size"] = int(batch_size)
    outputs, losses = _seen(net, moments, data, measure)
    if learning_rate is not None and "batch_size" not in settings:
        check_rate(net, moments, data, steps.astype(int), measure, float(learning_rate))
    run = Trajectory(
        time,
        losses,
        values={
            "outputs": outputs,
            "weights": {edge: np.stack([w[edge] for w in moments]) for edge in net.arch.matrices},
        },
        final=dict(moments[-1]),
        net=net,
        steps=steps.astype(int) if whole else None,
        sample_weight=data.sample_weight,
        settings=settings,
    )
    return net, run


def _check_one_network(checkpoints: Sequence[Moment]) -> None:
    """Raise where a checkpoint is of another network or in another precision than the first."""
    first = checkpoints[0]
    for each in checkpoints:
        require(
            each.net == first.net,
            f"{each.name} is of another network than {first.name}",
            got=f"sizes {dict(each.net.arch.sizes)}",
            wanted=f"sizes {dict(first.net.arch.sizes)}, and biases in the same places",
            fix="pass the checkpoints of one run",
        )
        require(
            each.precision == first.precision,
            f"{each.name} is in another precision than {first.name}",
            got=each.precision,
            wanted=first.precision,
            fix="convert all of them to float64, which changes no number",
        )


def checked_times(times: ArrayLike | None, moments: int) -> np.ndarray:
    """The step of every checkpoint; 0, 1, 2, … where they are not given."""
    if times is None:
        return np.arange(moments, dtype=np.float64)
    fix = "pass the step of every checkpoint, in the order of the checkpoints"
    array = np.atleast_1d(real_array("times", times, wanted=f"{moments} numbers", fix=fix))
    require(
        array.shape == (moments,) and np.isfinite(array).all(),
        "times and checkpoints do not fit",
        got=f"times of shape {array.shape} for {moments} checkpoints",
        wanted=f"{moments} finite numbers",
        fix=fix,
    )
    back = np.flatnonzero(np.diff(array) <= 0)
    if back.size:
        k = int(back[0])
        raise NeuralRaceError(
            "the checkpoints are out of order",
            got=f"time {array[k + 1]:g} after time {array[k]:g}",
            wanted="increasing times",
            fix="sort the checkpoints by step, and drop repeated ones",
        )
    return array


def outputs_of(
    net: Network, weights: Mapping[str, np.ndarray], data: Dataset
) -> dict[str, np.ndarray]:
    """The outputs on all samples, in the precision of the weights.

    They are computed piece by piece. Double precision is kept even where JAX is set to single.
    """
    dtype = np.result_type(*weights.values())
    found: dict[str, list[np.ndarray]] = {node: [] for node in net.arch.outputs}
    with jax.enable_x64(dtype == np.float64), jax.ensure_compile_time_eval():
        arrays = {edge: jnp.asarray(w) for edge, w in weights.items()}
        for low in range(0, data.n_samples, PIECE):
            rows = slice(low, low + PIECE)
            piece = Dataset(
                {node: np.asarray(x[rows], dtype) for node, x in data.x.items()},
                {node: np.asarray(y[rows], dtype) for node, y in data.y.items()},
                {name: np.asarray(g[rows], dtype) for name, g in data.gates.items()},
            )
            for node, out in _outputs(net, arrays, piece).items():
                found[node].append(np.asarray(out))
    return {node: np.concatenate(parts) for node, parts in found.items()}


@functools.partial(jax.jit, static_argnums=0)
def _outputs(net: Network, weights: dict[str, jax.Array], data: Dataset) -> dict[str, jax.Array]:
    return net(weights, data)


def _seen(
    net: Network,
    moments: Sequence[Mapping[str, np.ndarray]],
    data: Dataset,
    measure: SampleLoss,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Outputs and loss at every moment; the mean over samples is taken in float64."""
    every = [outputs_of(net, weights, data) for weights in moments]
    if measure is cross_entropy:
        data = with_classes(net.arch, data)
    check_targets(net.arch, data)
    losses = []
    for outputs in every:
        dtype = np.result_type(*outputs.values())
        with jax.enable_x64(dtype == np.float64), jax.ensure_compile_time_eval():
            found = {node: jnp.asarray(out) for node, out in outputs.items()}
            targets = {node: jnp.asarray(np.asarray(data.y[node], dtype)) for node in outputs}
            if measure is not squared:
                check_unweighed(data, "another loss than the squared one")
            found, targets = (weighed_by(data, each) for each in (found, targets))
            each = called(measure, found, targets)
        check_sample_losses(measure, each, data.n_samples)
        each = np.asarray(each, np.float64)
        losses.append(float(np.asarray(data.probability, np.float64) @ each))
    over_time = {node: np.stack([o[node] for o in every]) for node in net.arch.outputs}
    return over_time, np.array(losses)
