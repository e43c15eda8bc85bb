"""What a ReLU network with one hidden layer will do, from its task, width and start alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import jax
import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import (
    generator,
)
from neuralrace.dataset import Dataset, Sampled, zero_loss
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.explanation.prediction import SIMULATED, Outcome, Prediction, ended
from neuralrace.reln.explained.alignment import LARGE, NEURONS, aligned_patterns
from neuralrace.reln.explained.types.crowd import Crowd, Descended, losses_of
from neuralrace.reln.explained.types.limit import Limit, Start
from neuralrace.reln.explained.types.neuron_types import child, trajectory_of
from neuralrace.reln.explained.types.rare import Rest, rests_of
from neuralrace.tolerances import ELSEWHERE, LARGE_START, SMALLEST_SCALE, UNSTABLE
from neuralrace.trajectory import Trajectory
from neuralrace.types import BelowOne, Count, Inside, Key, NotNegative, Positive, Scale, Whole

LAYERS = ("W1", "W2")
"""The layers of the network; `BIASES` are those of its biases."""

BIASES = ("bias_h", "bias_y")

NETWORKS = 19
"""How many networks of the width are simulated: nine in ten others are between these."""


@door
def predict(
    data: Sampled,
    *,
    width: Count,
    scale: Scale | Mapping[str, NotNegative] | None = None,
    init: Literal["torch"] | None = None,
    bias: bool = False,
    leak: BelowOne = 0.0,
    learning_rate: Positive,
    steps: Count,
    criterion: Inside | Sequence[Inside] = 0.1,
    loss: str = "squared",
    networks: Whole = NETWORKS,
    neurons: Count = NEURONS,
    key: Key = 0,
) -> Prediction:
    """What a ReLU network with one hidden layer will do, at any scale of its first weights.

    *The wide limit.* The network computes f(x) = Σ_j a_j relu(w_j·x), a sum over H neurons that
    are drawn independently. So M neurons stand for H where both layers, and the biases of neurons,
    are multiplied by √(H/M): each then has H/M times the strength ‖w‖‖a‖, and learns at the same
    rate, since the velocities of w and a are linear in a and w. The biases of outputs stay; they
    begin at their mean, zero. Where the start is Gaussian, outputs are averaged over the images
    under the symmetries of the task. Nothing is assumed of how small weights are. Found by
    experiment, not in the papers; nothing is fitted.

    *The band.* `networks` networks of the user's width are drawn and trained beside it, and the
    result says so; `networks=0` leaves them out.

    *Outcomes.* Where the wide limit rests and then learns by neurons that are so few that a network
    may have none of them, each way to end has its chance (`reln.Rest`). Where simulated networks
    end further than 5 % of the initial loss from all of these, or have not come there by the last
    step, those that end within 5 % of each other are one more outcome: its course is their mean,
    and its chance their share.

    *The initial loss* is that of a network of this width on average, and all shares are of it:
    E[L(0)] = ½⟨‖y‖²⟩ + ½ Σ_o (H σ_a² (1 + leak²)/2 Σ_i σ_i² ⟨x_i²⟩ + σ_c²), for weights with
    symmetric distributions of these standard deviations, a bias as an input of ones (derived by
    us; E[relu(z)²] = E[z²]/2). The last sum is the variance of the random first function, which
    the wide limit lacks. Where that is more than 10 % of it, the start is large, which a
    sentence says, and the course of an outcome is the mean of the simulated networks that end so.

    *Types.* Where neurons align before the loss falls, `Prediction.types` groups them.

    **Arguments:** `data`, the task, whose gates are ignored; several input nodes are taken side by
    side as one layer of inputs, and so are outputs. `width` H of the hidden layer.
    How weights start, one of two: `scale`, the standard deviation of all Gaussian weights, or one
    for each of the layers `"W1"` and `"W2"` (with bias, also `"bias_h"` and `"bias_y"`); or
    `init="torch"`, PyTorch's own start of `nn.Linear`, uniform between ±1/√(fan in), biases too.
    `bias` adds learned biases to hidden and output neurons. `leak`, the slope of a neuron that is
    off. `learning_rate` and `steps` of plain descent on all samples; `time` is their product.
    `criterion`, the share of the initial loss that is left when it counts as learned, or several;
    the first is that of the first sentence. `loss` must be `"squared"`. `neurons` M, how many stand
    for the network. `key`, a JAX key or an integer, draws all weights.

    **Costs:** about as much as training M/H networks for the wide limit, `networks` for the band,
    and up to as much again where rare neurons must be looked for.

    **Assumes** one hidden layer, and a rate at which descent is stable.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.predict(nr.tasks.extended_xor(0.4), width=100, scale=1e-2, learning_rate=0.1,
    ...                    steps=300, neurons=500)
    >>> trained = nr.train_ensemble(nr.ReLUNetwork((3, 100, 1)), nr.tasks.extended_xor(0.4),
    ...                             seeds=3, scale=1e-2, learning_rate=0.1, steps=300)
    >>> time = nr.trajectory.crossing_time(trained.time, trained.loss.mean(axis=0), 0.025)
    >>> abs(time / found.time_to(0.1).mean - 1) < 0.1
    np.True_

    ```
    """
    require(
        loss == "squared",
        "predict knows the squared loss only: loss is another one",
        got=f"loss = {loss!r:.60}",
        wanted="loss='squared'",
        fix="train instead: nr.train_ensemble(nr.ReLUNetwork(…), data, loss=…, seeds=8)",
    )
    shares = np.ravel(criterion).tolist()
    fix = "a share of the initial loss, such as criterion=0.1, or several"
    require(shares, "criterion is empty", got="no share", wanted="one share or more", fix=fix)
    start = _start(data, int(width), scale, init, bool(bias))
    limit = Limit.of(data, start, learning_rate, steps, leak, neurons, generator(key))
    _check_stable(limit.wide.loss, learning_rate)
    every = rests_of(limit, child(key, 0))
    trained = np.zeros((0, len(limit.wide.stops)))
    if networks:
        with jax.enable_x64(True):
            crowd = Crowd.of(limit.samples, None, leak)
        first = start.networks(child(key, 2), networks)
        trained = losses_of(crowd, first, learning_rate, limit.wide.stops)
        for one in trained:
            _check_stable(one, learning_rate)
    whole = trajectory_of(data, limit, limit.wide.loss, limit.wide.outputs)
    initial = zero_loss(data) + _first_function(limit)
    courses = _courses(data, limit, whole, every, trained, initial)
    return Prediction(
        trajectory=whole,
        start=start,
        courses=courses,
        initial=initial,
        criteria=tuple(shares),
        data=data.gated({}),
        leak=leak,
        key=key,
        init=init,
        no_types=_no_types(data, limit, key),
        networks=trained,
        _limit=limit,
    )


def _start(
    data: Dataset,
    width: int,
    scale: float | Mapping[str, float] | None,
    init: str | None,
    bias: bool,
) -> Start:
    """The standard deviations of all weights."""
    require(
        (scale is None) != (init is None),
        "predict needs to know how weights start: either scale or init",
        got="neither" if scale is None else "both",
        wanted="one of the two",
        fix="scale=1e-2, or init='torch' for PyTorch's own start",
    )
    d, o = (sum(np.shape(v)[1] for v in nodes.values()) for nodes in (data.x, data.y))
    layers = LAYERS + BIASES * bias
    if init is not None:
        first, second = 1 / math.sqrt(3 * d), 1 / math.sqrt(3 * width)
        spreads = {"W1": first, "W2": second, "bias_h": first, "bias_y": second}
    else:
        each = scale if isinstance(scale, Mapping) else dict.fromkeys(layers, scale or 0.0)
        require(
            {*each} == {*layers} and all(each[name] >= SMALLEST_SCALE for name in LAYERS),
            "scale must name every layer and nothing else, and be above zero",
            got=f"scale = {each}",
            wanted=f"numbers for {listed(layers)}, those of {listed(LAYERS)} above zero",
            fix="pass one number for all, or {layer: standard deviation}",
        )
        spreads = {name: float(value) for name, value in each.items()}
    w, c = np.full(d, spreads["W1"]), None
    if bias:
        w, c = np.append(w, spreads["bias_h"]), np.full(o, spreads["bias_y"])
    return Start(width, w, np.full(o, spreads["W2"]), c, uniform=init is not None)


def _first_function(limit: Limit) -> float:
    """½⟨E‖f(x)‖²⟩ of the first function of a network, whose mean is zero."""
    start, samples = limit.start, limit.samples
    each = (1 + limit.crowd.leak**2) / 2 * float(samples.p @ samples.x**2 @ start.w**2)
    biases = 0.0 if start.c is None else float(start.c @ start.c)
    return (start.width * float(start.a @ start.a) * each + biases) / 2


def _check_stable(loss: np.ndarray, rate: float) -> None:
    require(
        loss.max() <= UNSTABLE * loss[0],
        "the loss grows: the scale is too large for learning_rate, so that descent is not stable",
        got=f"learning_rate = {rate:g}: a loss of {loss.max():.4g}, at first {loss[0]:.4g}",
        wanted="a loss that falls",
        fix="use a smaller learning_rate, and as many more steps, or a smaller scale",
    )


def _courses(
    data: Dataset,
    limit: Limit,
    whole: Trajectory,
    every: tuple[tuple[Rest, Descended | None], ...],
    trained: Float[np.ndarray, "n T"],
    initial: float,
) -> tuple[Outcome, ...]:
    """Every way to end, the most likely first: with all neurons, or without those that end a rest.

    A network that lacks the neurons of one rest does not come to the next. Simulated networks that
    end as none of these are further outcomes, one for those that end alike.
    """
    mean_of = lambda losses: Trajectory(
        whole.time, losses.mean(axis=0), steps=whole.steps,
        settings={**whole.settings, "method": SIMULATED},
    )  # fmt: skip
    wide, found = limit.wide, []
    chance, low, high = 1.0, 1.0, 1.0  # that it has all neurons so far
    for rest, done in every:
        if done is None or not rest.matters:
            continue
        before = len(wide.stops) - len(done.stops)
        course = trajectory_of(
            data, limit,
            np.append(wide.loss[:before], done.loss),
            np.concatenate([wide.outputs[:before], done.values["outputs"]]),
            "the wide limit without rare neurons",
        )  # fmt: skip
        least, most = rest.interval
        found.append(Outcome(course, initial, chance * rest.chance, low * least, high * most, rest))
        chance, low, high = chance * (1 - rest.chance), low * (1 - most), high * (1 - least)
    found.append(Outcome(whole, initial, chance, low, high))
    near = ended(trained, found)
    if initial - zero_loss(data) > LARGE_START * initial:
        found = [
            replace(each, trajectory=mean_of(trained[near == i])) if (near == i).any() else each
            for i, each in enumerate(found)
        ]
    away = trained[near < 0]
    if len(away):
        low, chance, high = _share(len(away), len(trained))
        found = [
            replace(
                each,
                chance=each.chance * (1 - chance),
                low=each.low * (1 - high),
                high=each.high * (1 - low),
            )
            for each in found
        ]
        alike = _alike(away[:, -1] / initial)
        for one in (away[alike == label] for label in np.unique(alike)):
            low, chance, high = _share(len(one), len(trained))
            found.append(Outcome(mean_of(one), initial, chance, low, high, networks=len(one)))
    return tuple(sorted(found, key=lambda each: -each.chance))


def _share(few: int, many: int) -> tuple[float, float, float]:
    """A share between the ends of its 95 % interval (Clopper & Pearson 1934)."""
    from scipy.stats import binomtest

    interval = binomtest(few, many).proportion_ci()
    return float(interval.low), few / many, float(interval.high)


def _alike(ends: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Labels of ends; no two of one label are further apart than `ELSEWHERE`."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(ends) == 1:
        return np.ones(1, int)
    return fcluster(linkage(ends[:, None], "complete"), ELSEWHERE, "distance")


def _no_types(data: Dataset, limit: Limit, key: Key) -> str:
    """Why neurons are not grouped into types, or nothing."""
    start = limit.start
    if start.bias:
        return "outputs have biases, which are no neurons; a bias as an input of ones has types"
    if start.uniform or len(np.unique([*start.w, *start.a])) > 1:
        return "weights do not all start Gaussian with one standard deviation"
    if limit.wide.begins is None:
        return "the loss does not begin to fall in this time"
    patterns = aligned_patterns(data, key=key, leak=limit.crowd.leak)
    reason = patterns.too_large(start.width, float(start.w[0]))
    return "" if reason is None else f"{LARGE}, {reason}"
