"""Gates in stages: every neuron of a ReLU network with gates that are constant in each stage."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Literal

import jax
import numpy as np
from jaxtyping import Float, Int

from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.gdln import GDLN
from neuralrace.reln.explained.types.crowd import Crowd, descend
from neuralrace.reln.explained.types.sliding import (
    SLIDING,
    Layer,
    filippov,
    filippov_between,
    one_hidden_layer,
)
from neuralrace.reln.observed.runs import check_trained_on, descent_of, recorded_weights
from neuralrace.relu import ReLUNetwork
from neuralrace.tolerances import BEGUN, ROUNDING
from neuralrace.trajectory import Trajectory
from neuralrace.types import Count


@door
def staged(
    run: Trajectory,
    data: Sampled,
    *,
    stages: Count = 64,
    gates: Literal["sliding", "rounded", "measured"] = "sliding",
) -> Trajectory:
    """A gated network with the ReLU network's own gates, held constant in each of some stages.

    It starts when neurons have aligned (the loss has fallen by 1e-4 of its initial value), from
    the ReLU network's weights then, and goes its own way. Every neuron has its own gates. Stages
    are cut evenly in the logarithm of time, at recorded moments: gates also change while the loss
    is flat, so the fall of the loss is no guide. Late in learning most gates slide, and a stage is
    only as good as their fractions: rounding them to 0 and 1 leaves an error that more stages do
    not remove.

    **Arguments:** `run`, of `nr.train` with a `ReLUNetwork` of one hidden layer and
    `record={"weights": True}`; `data`, the dataset it was trained on; `stages`, the number of
    stages; fewer are used where fewer moments were recorded. `gates`:

    - `"sliding"`: fractions by Filippov's condition, as in `sliding_gates`, from the weights at
      recorded moments: between two of them a gate is the fraction with which the neuron moves from
      its one place to its other, which at a boundary that holds it is nowhere;
    - `"measured"`: the share of steps on which a neuron was on. This trains the network again, to
      count at every step;
    - `"rounded"`: the same, rounded to 0 and 1, for comparison.

    **Returns:** a `Trajectory` at the recorded moments of `run` from its start on, with outputs.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 32, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-3), data, learning_rate=0.1,
    ...                steps=300, record_every=5, record={"weights": True})
    >>> nr.compare(run, nr.reln.staged(run, data, stages=16)).mean < 0.01
    True

    ```
    """
    recorded = recorded_weights(run)
    check_trained_on(run, data)
    rate, stops = descent_of(run)
    fallen = np.flatnonzero(run.loss <= (1 - BEGUN) * run.loss[0])
    if not len(fallen) or fallen[0] == len(stops) - 1:
        raise NeuralRaceError(
            "the loss of the run has not begun to fall before its last recorded moment",
            got=f"a loss of {run.loss[-1]:.6g} at the end, at first {run.loss[0]:.6g}",
            wanted=f"a fall by {BEGUN:g} of the initial loss, and recorded moments after it",
            fix="train for more steps, or record more often: nr.train(…, record_every=…)",
        )
    stops = stops[fallen[0] :]
    recorded = {edge: w[fallen[0] :] for edge, w in recorded.items()}
    net = run.net
    assert isinstance(net, ReLUNetwork)  # recorded_weights has checked it
    cuts = log_cuts(stops, stages)

    def layer(i: int) -> Layer:
        return one_hidden_layer(net, {e: w[i] for e, w in recorded.items()}, data)

    start = layer(0)
    first, leak = {"w": start.w, "a": start.a}, net.leak
    with jax.enable_x64(True):
        crowd = Crowd.of(start.samples, None, leak)
    if gates == "sliding":
        table = _sliding(layer, stops, cuts, rate, leak)
    else:
        on = descend(crowd, first, rate, stops[cuts], counting=True).values["on"]
        share = np.diff(on, axis=0) / np.diff(stops[cuts])[:, None, None]
        share = np.round(share) if gates == "rounded" else share
        table = leak + (1 - leak) * share.swapaxes(1, 2)
    stage = np.searchsorted(cuts, np.arange(len(stops)), side="right") - 1
    done = descend(crowd, first, rate, stops, gates=table[np.minimum(stage, len(table) - 1)])
    return Trajectory(
        rate * done.stops,
        done.loss,
        values={"outputs": split_outputs(done.values["outputs"], data)},
        net=GDLN(net.arch),
        steps=done.stops,
        sample_weight=data.sample_weight,
        settings={
            "method": "gradient descent",
            "gates": f"{gates}, in {len(table)} stages",
            "learning_rate": rate,
            "steps": int(stops[-1]),
            "data": run.settings.get("data"),
        },
    )


def log_cuts(stops: Int[np.ndarray, " T"], count: int) -> Int[np.ndarray, " S"]:
    """Where stages begin, as indices of recorded moments, and the last moment."""
    ends = np.geomspace(max(stops[0], 1), stops[-1], count + 1)
    at = np.searchsorted(stops, ends * (1 - ROUNDING)).clip(0, len(stops) - 1)
    return np.unique(np.concatenate([[0], at, [len(stops) - 1]]))


def split_outputs(
    outputs: Float[np.ndarray, "T N o"], data: Dataset
) -> dict[str, Float[np.ndarray, "T N size"]]:
    """Outputs that are side by side, by output node."""
    cuts = np.cumsum([np.shape(y)[1] for y in data.y.values()])[:-1]
    return dict(zip(data.y, np.split(outputs, cuts, axis=2), strict=True))


def _sliding(
    layer: Callable[[int], Layer],
    stops: Int[np.ndarray, " T"],
    cuts: Int[np.ndarray, " S_1"],
    rate: float,
    leak: float,
) -> Float[np.ndarray, "S N M"]:
    """The mean gates of every stage, from the weights at some of its recorded moments."""

    @cache
    def at(i: int) -> tuple[Layer, np.ndarray]:
        seen = layer(i)
        return seen, filippov(seen.samples, seen.w, seen.a, rate, leak)[1] == SLIDING

    means = []
    for begin, end in pairwise(cuts):
        looks = np.unique(np.linspace(begin, end, 5).round().astype(int))  # at most so many
        total = 0.0
        for i, j in pairwise(looks):
            (early, held), (late, holds) = at(int(i)), at(int(j))
            steps = int(stops[j] - stops[i])
            ends = (early.w, early.a), (late.w, late.a)
            gates = filippov_between(early.samples, *ends, held | holds, rate * steps, leak)
            total = total + steps * gates.T
        means.append(total / (stops[end] - stops[begin]))
    return np.stack(means)
