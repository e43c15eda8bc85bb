"""A real ReLU network beside the prediction: its loss and gates as it learns, and its types."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from neuralrace.dataset import Dataset
from neuralrace.dynamics import train_ensemble
from neuralrace.errors import NeuralRaceError
from neuralrace.explorer.limits import check_training
from neuralrace.explorer.messages import curve, number
from neuralrace.explorer.showing import Tell, rounded, texts
from neuralrace.explorer.state import need, problem_of, without
from neuralrace.explorer.trust import Trust
from neuralrace.reln import sliding_gates
from neuralrace.relu import ReLUNetwork
from neuralrace.study import QUESTIONS, Problem, Work
from neuralrace.trajectory import Trajectory, join

FOUND = "found"
"""The name of a gating that was found in trained networks."""


NEURONS = 500
"""How many neurons stand for those of a network on a page, where it names no other number."""

SIMULATED = 9
"""How many networks are simulated for the interval of times there."""

SAID = ("answer", "large", "rare")
"""The sentences of a prediction that a page shows, by id."""

CONSTANT = (
    "As a gating they are constant, while the gates of the networks change as they learn: its time "
    "may differ from theirs, and its gates need not be kept."
)
"""What is said of gates that were found."""


# ---- training -----------------------------------------------------------------------------------


def train(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """Train ReLU networks; losses and gates are told while they learn."""
    problem = problem_of(without(message.get("state"), "gatings"), ["train"], trust)
    check_training(problem, recorded=False)
    work, net = Work(problem), problem.relu
    steps, rate = problem.settings.training.steps, _rate(problem)
    tell(
        "begin",
        {
            "seeds": work.count,
            "steps": steps,
            "clock": "time" if problem.settings.training.optimizer is None else "step",
            "node": net.arch.hidden[0],
            "neurons": net.arch.sizes[net.arch.hidden[0]],
        },
    )
    runs = _whole(work, tell) if rate is None else _in_chunks(work, rate, tell)
    answer = QUESTIONS["train"].answer(Work(problem, relu=runs))
    return {
        "final": [number(loss) for loss in runs.loss[:, -1]],
        "learning_time": [number(time) for time in answer.frame()["time"]],
        "sentences": texts(answer),
    }


def _rate(problem: Problem) -> float | None:
    """The learning rate of gradient descent that can be cut into pieces; None for all others."""
    training = problem.settings.training
    if training.optimizer is not None or training.batch_size is not None:
        return None
    if training.loss != "squared" or training.evaluate or training.record_at is not None:
        return None
    return 0.1 if training.learning_rate is None else training.learning_rate


def _whole(work: Work, tell: Tell) -> Trajectory:
    """Networks with an optimizer or in batches, whose state is more than their weights."""
    runs = work.relu
    _tell_losses(runs.steps, runs.time, runs.loss, 1.0, tell)
    return runs


def _in_chunks(work: Work, rate: float, tell: Tell) -> Trajectory:
    """Gradient descent piece by piece: each goes on from the weights of the one before.

    With `until`, they end where one run of all steps would.
    """
    problem = work.problem
    net, data, network = problem.relu, work.narrow(problem.data), problem.settings.network
    training, starts = problem.settings.training, work.start_keys(0)
    first = [net.init(key, network.scale, network.kind, dtype=work.dtype) for key in starts]
    weights = {name: np.stack([np.asarray(w[name]) for w in first]) for name in first[0]}
    parts: list[Trajectory] = []
    done = 0
    if tell_gates := _can_slide(net):
        _tell_gates(net, first[0], data, rate, 0.0, tell)
    for steps in _pieces(training.steps, training.every):
        part = train_ensemble(
            net, data, key=0, seeds=len(starts), weights=weights, learning_rate=rate, steps=steps,
            record_every=training.every, until=training.until,
        )  # fmt: skip
        assert part.steps is not None
        parts, weights = [*parts, part], part.final
        new = slice(int(done > 0), None)  # a piece begins where the one before it ended
        taken = done + part.steps[new]
        done += int(part.steps[-1])
        diverged = not np.isfinite(part.loss).all()
        ended = diverged or part.settings.get("stopped") == "until"
        share = 1.0 if ended else done / training.steps
        _tell_losses(taken, rate * taken, part.loss[:, new], share, tell)
        if tell_gates and not diverged:
            _tell_gates(net, {n: w[0] for n, w in weights.items()}, data, rate, rate * done, tell)
        if ended:
            break
    return join(*parts)


def _pieces(steps: int, every: int) -> list[int]:
    """The steps of each piece: whole numbers of records, and what remains.

    ```python
    >>> from neuralrace.explorer.learning import _pieces
    >>> pieces = _pieces(1000, 3)
    >>> sum(pieces), sorted(set(pieces))
    (1000, [16, 24])

    ```
    """
    size = min(steps, every * max(1, steps // every // 40))  # about so many pieces
    rest = steps % size
    return [size] * (steps // size) + [rest] * (rest > 0)


def _tell_losses(steps: Any, time: Any, losses: np.ndarray, share: float, tell: Tell) -> None:
    """Tell the losses of every network, `(S, T)`, and which share of the steps is done."""
    for seed, loss in enumerate(losses):
        shown = {"step": np.asarray(steps).tolist(), "time": curve(time), "loss": curve(loss)}
        tell("chunk", {"seed": seed, **shown, "share": round(share, 4)})


# ---- gates --------------------------------------------------------------------------------------


def _can_slide(net: ReLUNetwork) -> bool:
    """Whether it is known which gates slide: one hidden layer, without a bias."""
    return len(net.arch.hidden) == 1 and net.arch.path_lengths == {2}


def _tell_gates(
    net: ReLUNetwork, weights: Any, data: Dataset, rate: float, time: float, tell: Tell
) -> None:
    """Tell the gates of a network: its patterns, with their share of Σ‖w‖‖a‖."""
    try:
        found = sliding_gates(net, weights, data, learning_rate=rate)
    except NeuralRaceError:
        return
    node = net.arch.hidden[0]
    states, weight = found.states[node].T, found.weight[node]
    total = float(weight.sum()) or 1.0
    patterns, inverse = np.unique(states, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    shares = np.bincount(inverse, weights=weight, minlength=len(patterns)) / total
    counts = np.bincount(inverse, minlength=len(patterns))
    first = np.argsort(-shares, kind="stable")[:32]  # the largest ones
    tell(
        "gates",
        {
            "seed": 0,
            "time": time,
            "patterns": [
                {
                    "states": "".join(map(str, patterns[i].tolist())),
                    "share": round(float(shares[i]), 5),
                    "neurons": int(counts[i]),
                }
                for i in first
            ],
            "rest": round(float(1 - shares[first].sum()), 5),
            "sliding": round(float(found.share(node)), 5),
        },
    )


# ---- what a ReLU network will do ---------------------------------------------------------------


def wide(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """What ReLU networks of this width will do: the wide limit as soon as it is known, then more.

    What follows is the interval of simulated networks, as far as the state asks for no other.
    """
    state = without(message.get("state"), "gatings")
    own: Any = state.get("relu")
    own = own if isinstance(own, Mapping) else {}
    shown: dict[str, Any] = {}
    for networks in (0, SIMULATED):
        options = {"neurons": NEURONS, "networks": networks} | dict(own if networks else {})
        problem = problem_of(state | {"relu": options | {"types": False}}, ["relu"], trust)
        shown = _foreseen(problem)
        if not networks:
            tell("limit", shown)
    return shown


def _foreseen(problem: Problem) -> dict[str, Any]:
    relu, widths = problem.settings.relu, problem.settings.network.widths
    check_training(problem, relu.networks + -(-relu.neurons // widths[0]), recorded=False)
    found = Work(problem)["relu_prediction"]
    time, low, high = found.time_to(found.criteria[0])
    return {
        "time": number(time),
        "low": number(low),
        "high": number(high),
        "networks": relu.networks,
        "level": number(found.criteria[0] * found.initial),
        "times": curve(found.likely.time),
        "loss": curve(found.likely.loss),
        "sentences": [each.text for each in found.sentences() if each.id in SAID],
    }


# ---- types and discovery ------------------------------------------------------------------------


def types(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The ReLU network as a few types of neurons, from task, width and scale alone."""
    problem = problem_of(without(message.get("state"), "gatings"), ["types"], trust)
    check_training(problem, 1, recorded=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the answer says how far it is from the wide limit
        answer = QUESTIONS["types"].answer(Work(problem))
    found = answer.value
    at = np.unique(np.linspace(0, len(found.time) - 1, 80).astype(int))  # at most so many
    states, shares = found.states[at], found.shares[at]
    return {
        "time": curve(found.trajectory.time),
        "loss": curve(found.trajectory.loss),
        "wide": curve(found.wide.loss),
        "moments": curve(found.time[at]),
        "types": [
            {
                "share": curve(shares[:, k]),
                "states": ["".join(map(str, row)) for row in states[:, k].tolist()],
                "neurons": int(found.members[k]),
            }
            for k in range(len(found))
        ],
        "events": [
            {
                "time": number(event.time),
                "type": event.type,
                "state": event.state,
                "samples": (event.samples + 1).tolist(),
            }
            for event in found.events[:200]
        ],
        "sentences": texts(answer),
    }


def discover(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """Train ReLU networks and find gates in their activity, as a gating for the state."""
    problem = problem_of(without(message.get("state"), "gatings"), ["discover"], trust)
    check_training(problem, recorded=True)
    need(
        _can_slide(problem.relu),
        "network.widths",
        "gates of several hidden layers cannot be drawn as pathways",
        f"hidden nodes {', '.join(problem.relu.arch.hidden)}",
        "one hidden layer",
        "for example widths = 128; nr.reln.discover takes deeper networks",
    )
    work = Work(problem, lambda line: tell("progress", {"line": line}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = QUESTIONS["discover"].answer(work)
    network = answer.value.network()
    gating, _ = rounded(network.arch, network.data)
    return {"name": FOUND, "gating": gating, "sentences": [*texts(answer), CONSTANT]}
