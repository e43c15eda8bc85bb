"""Whether checkpoints follow gradient descent with a given rate, and which rate they follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Float

from neuralrace.dataset import Dataset
from neuralrace.dynamics import StoppedError, train
from neuralrace.errors import NeuralRaceError, warn_user
from neuralrace.gdln import Network
from neuralrace.losses import SampleLoss, squared
from neuralrace.tolerances import REPLAYS, SAME_RATE, TELLS

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
