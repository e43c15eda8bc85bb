"""Neurons come in types: a ReLU network predicted from task, width and initial scale alone."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, final, overload

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import generator
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.reln.explained.alignment import LARGE, NEURONS, aligned_patterns
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.reln.explained.sentences import story
from neuralrace.reln.explained.types.evaluation import evaluations, judged
from neuralrace.reln.explained.types.grouping import chosen_types
from neuralrace.reln.explained.types.limit import Limit, Start
from neuralrace.reln.explained.types.rare import Rest, rests_of
from neuralrace.reln.explained.types.sliding import ON, SLIDING
from neuralrace.reln.explained.types.staged import split_outputs
from neuralrace.reln.explained.types.symmetries import Symmetries
from neuralrace.reln.explained.types.timeline import (
    Event,
    draw_shares,
    draw_timeline,
    events_of,
    states_of,
    together,
    without_chatter,
)
from neuralrace.reln.explained.types.type_stages import TypeStages, event_driven
from neuralrace.reln.naming import where
from neuralrace.reln.observed.activity import opened
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.text import numbered, percent
from neuralrace.tolerances import ENOUGH, GROWN
from neuralrace.trajectory import Comparison, Trajectory, compare
from neuralrace.types import BelowOne, Count, Key, Positive, Scale

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = "the wide limit"
"""The method of a trajectory of many neurons in place of a network."""

COLUMNS = ("type", "neurons", "share_first", "share", "on_for", "slides_on", "events")
"""The columns of `NeuronTypes.frame`."""


@final
@dataclass(frozen=True, eq=False)
class NeuronTypes(Result):
    """A ReLU network as a few types of neurons; see `types`.

    `trajectory` is the prediction by types, `wide` that of the wide limit, both from t = 0 on. All
    else is known from the time `time[0]` at which neurons have aligned. Types are in decreasing
    order of their strength at the end. `gates[i, k, n]` is the gate of type k on sample n, averaged
    over the steps from moment i to the next (the last one is repeated); it is a fraction where the
    type slides. `w` and `a`
    are its input and output weights, and `symmetries` those of the task: a type stands for all of
    its images under them. `chosen` says how the number of types came about where it is not the one
    that was asked for. `rests` are the rests of the loss in the wide limit that few neurons may
    end, with the chance that a network of this width has none of them; `rare` is the one to know.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.reln.types(nr.tasks.extended_xor(0.4), width=128, scale=2e-5,
    ...                       learning_rate=0.1, steps=600, types=2)
    >>> len(found), found.gates.shape[1:], found.error.mean < 0.001
    (2, (2, 4), True)

    ```
    """

    trajectory: Trajectory
    wide: Trajectory
    time: Float[np.ndarray, " T"]
    gates: Float[np.ndarray, "T K N"]
    w: Float[np.ndarray, "T K d"]
    a: Float[np.ndarray, "T K o"]
    members: Int[np.ndarray, " K"]
    symmetries: Symmetries
    data: Dataset
    learning_rate: float
    leak: float = 0.0
    chosen: str = ""
    rests: tuple[Rest, ...] = ()
    _reduced: tuple[Samples, Symmetries, np.ndarray, np.ndarray] = field(repr=False, kw_only=True)

    def __len__(self) -> int:
        return self.w.shape[1]

    @property
    def strengths(self) -> Float[np.ndarray, "T K"]:
        """The strength ‖w‖‖a‖ of every type over time, that of all its neurons together."""
        return np.linalg.norm(self.w, axis=2) * np.linalg.norm(self.a, axis=2)

    @property
    def shares(self) -> Float[np.ndarray, "T K"]:
        """The strength of every type as a share of all."""
        strengths = self.strengths
        return strengths / strengths.sum(axis=1, keepdims=True)

    @cached_property
    def states(self) -> Int[np.ndarray, "T K N"]:
        """0 where a type is off, 1 where it is on, 2 where it slides, at every moment."""
        states = states_of(opened(self.gates[:-1], self.leak))  # one per interval
        return np.concatenate([states, states[-1:]])

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """When a type turns on, turns off or begins to slide, and on which samples.

        A gate that goes back and forth counts as one that slides, states that last for less than a
        tenth of their time are left out, and events that follow each other so closely are one.
        """
        return together(events_of(self.time, self._steady))

    @cached_property
    def _steady(self) -> Int[np.ndarray, "T K N"]:
        return without_chatter(self.time, self.states)

    @cached_property
    def error(self) -> Comparison:
        """How far the types are from the wide limit: an estimate of what grouping costs.

        `error.mean` is mean |ΔL|/L(0), `error.outputs` the mean distance of outputs over √(2 L(0)).
        A trained network is away from the wide limit too, by chance: about as far as two of its
        seeds are from each other.
        """
        return compare(self.wide, self.trajectory)

    @property
    def words(self) -> tuple[str, ...]:
        """For which samples every type is on at the end, in words, by the labels of the data.

        ```python
        >>> import neuralrace as nr
        >>> found = nr.reln.types(nr.tasks.xor(), width=64, scale=1e-3, learning_rate=0.1,
        ...                       steps=400, types=1, neurons=200)
        >>> len(found.words)
        1

        ```
        """
        return tuple(where(np.flatnonzero(on == ON), self.data) for on in self.states[-1])

    @property
    def rare(self) -> Rest | None:
        """The rest at which a network most likely lacks the neurons that the prediction rests on.

        None where no such chance is above 5 %, or the prediction ends the same without them.
        """
        known = (rest for rest in self.rests if rest.matters)
        return max(known, key=lambda rest: rest.chance, default=None)

    @door
    def stages(self, tolerance: Positive = 0.05) -> TypeStages:
        """The event-driven form: a sequence of gated networks with rank-one pathways.

        Gates are constant in a stage. A stage ends at every event, and where a sliding gate has
        moved by more than `tolerance` since it began. Each type and each of its images is a neuron
        with its own gates, so that a stage is a gated network that `nr.reduce` takes.

        ```python
        >>> import neuralrace as nr
        >>> found = nr.reln.types(nr.tasks.extended_xor(0.4), width=128, scale=2e-5,
        ...                       learning_rate=0.1, steps=600, types=1)
        >>> stages = found.stages()
        >>> nr.compare(found.trajectory, stages.trajectory).mean < 0.002
        True
        >>> nr.reduce(stages[-1].arch, stages[-1].data).is_decoupled
        True

        ```
        """
        return event_driven(
            self._reduced,
            self.data,
            self.trajectory,
            self.time,
            self.gates,
            self.states,
            {"w": self.w[0], "a": self.a[0]},
            self.learning_rate,
            tolerance,
        )

    @overload
    def plot(self, *, ax: None = None) -> Figure: ...
    @overload
    def plot(self, *, ax: Axes) -> Axes: ...
    @door
    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """A timeline: the loss, the share of every type, and its gates on every sample.

        With `ax`, the shares alone.
        """
        if ax is not None:
            return draw_shares(ax, self.time, self.shares, self._steady)
        return draw_timeline(
            (self.trajectory, self.wide),
            self.time,
            self.shares,
            self._steady,
            self.gates,
            self.data,
        )

    def frame(self) -> pandas.DataFrame:
        """One row per type, the strongest at the end first.

        `type`, counted from 1; `neurons`, how many of those that were drawn are its members;
        `share_first` and `share`, its part of the strength when neurons have aligned and at the
        end; `on_for` and `slides_on`, the numbers of samples for which it is on and on which it
        slides at the end; `events`, how often it changes.
        """
        last = self._steady[-1]
        changes = [event.type for event in self.events]
        rows = [
            {
                "type": k + 1,
                "neurons": int(self.members[k]),
                "share_first": float(self.shares[0, k]),
                "share": float(self.shares[-1, k]),
                "on_for": int((last[k] == ON).sum()),
                "slides_on": int((last[k] == SLIDING).sum()),
                "events": changes.count(k + 1),
            }
            for k in range(len(self))
        ]
        return framed(COLUMNS, rows, dict.fromkeys(("share_first", "share"), SHARE))

    def sentences(self) -> tuple[Sentence, ...]:
        """What the network will do, what that rests on, and what every type does over time."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        settings, error, loss = self.trajectory.settings, self.error, self.wide.loss
        many, rare = f"{numbered(len(self), 'type', '1')} of neurons", self.rare
        lacking = "" if rare is None else (
            f", unless it lacks rare neurons, which has a chance of {percent(rare.chance)}"
        )  # fmt: skip
        yield Sentence(
            "answer",
            f"A ReLU network of width {settings['width']} is predicted to bring its loss from "
            f"{loss[0]:.4g} to {loss[-1]:.4g} by t = {self.wide.time[-1]:.4g}{lacking}.",
        )
        if rare is not None:
            yield Sentence("rare", str(rare))
        assert error.outputs is not None  # types record them
        apart, outputs = (f"{max(100 * each, 0.01):.2g}" for each in (error.mean, error.outputs))
        one = len(self) == 1
        can = f"follow{'s' * one} this" if error.outputs <= ENOUGH else (
            f"do{'es' * one} not follow this closely, and bring{'s' * one} it to "
            f"{self.trajectory.loss[-1]:.4g}"
        )  # fmt: skip
        network = "a trained network" + " that has these neurons" * (rare is not None)
        yield Sentence(
            "error",
            f"{many} in place of {settings['width']}{self.chosen}{',' * bool(self.chosen)} {can}: "
            f"{'it differs' if one else 'they differ'} from the wide limit, which predicts it, by "
            f"{apart} % in the loss and {outputs} % in the outputs, on average; {network} differs "
            "from it by chance, about as two seeds do.",
        )
        if self.chosen:
            yield Sentence(
                "chosen",
                "Their number was chosen so that they follow the outputs; they do not describe "
                f"every neuron. types={max(8, 2 * len(self))} tells more.",
            )
        images = " A type stands for all of its images under them." * (self.symmetries.order > 1)
        yield Sentence("symmetries", f"{self.symmetries}{images}")
        yield from story(self.time, self.shares, self._steady, self.events, self.data)


@door
def types(
    data: Sampled,
    *,
    width: Count,
    scale: Scale,
    learning_rate: Positive,
    steps: Count,
    types: Count | None = None,
    key: Key = 0,
    neurons: Count = NEURONS,
    leak: BelowOne = 0.0,
    evaluate: Mapping[str, Sampled] | None = None,
) -> NeuronTypes:
    """What a ReLU network with one hidden layer will do, from task, width and scale alone.

    Neurons whose weights (w, a) point in the same direction evolve alike, and a group of them
    equals one neuron of the group's strength, since w·x and a scale together. So:

    1. *Wide limit.* `neurons` random neurons with the total strength of the network (standard
       deviation σ√(H/M) for M neurons in place of H) learn together. Where the task has
       symmetries, their outputs are averaged over all images. This is a prediction by itself.
    2. *Fold.* Each neuron is replaced by one representative of its orbit under the symmetries.
    3. *Types.* Neurons are clustered by their directions at a few times (k-means, weighted by
       strength). A type starts, when the loss begins to fall, in the mean direction of its members,
       with the sum of their squared norms. Or half as many clusters have two types each, at the
       mean plus and minus the leading spread of directions.
    4. *Race.* The types learn together; each gates itself. Of several clusterings, the one whose
       outputs stay closest to the wide limit is kept.

    Found by experiment, not in the papers. Nothing is fitted to a trained network. A narrow ReLU
    network of K neurons with the same total strength (standard deviation σ√(H/K)) is the yardstick
    for K types: compare both.

    **Arguments:** `data`, the task, whose gates are ignored; a bias is a column of ones. `width` H
    and `scale` σ, the standard deviation of all initial weights, of the network that is predicted.
    `learning_rate` and `steps` of its training. `types` K, how many types; left out, it is the
    smallest of 1, 2, 4, 8, 16 and 32 whose outputs stay within 2 % of the wide limit, which is
    about what two seeds of a trained network differ by, or 32. Types that never turn on are
    left out, so that there may be fewer. `key` (a JAX key or an integer) draws the neurons.
    `neurons` M, how many. `leak`, the slope of a neuron that is off.

    `evaluate={"untrained": data}` predicts what the network does on other samples, or on some of
    its own (`data.take(data.mask(odour="A"))`): `values["untrained"]` of both trajectories has
    `"loss"`, `"outputs"` by node and, where targets are classes, `"accuracy"`. Symmetries are those
    of the samples that are learned from, and a sample that is not among them may break them: it is
    asked of all images of all neurons. Directions of the inputs in which no sample varies are not
    learned, and count as nothing there.

    Moments are recorded evenly until neurons have aligned, and about evenly in log time from then.

    **Rare neurons.** The prediction draws `neurons` neurons, the network has `width`. Where the
    loss rests and later falls further, the neurons that end the rest may be so few that a network
    lacks them, and stays. With p the share of drawn neurons, dead ones included, outside the
    patterns that lead when the loss comes to rest, the chance is (1 − p)^H. Where it is above 5 %
    and the wide limit ends elsewhere without them, the first sentence of `print` says so, and
    `NeuronTypes.rare` has the numbers. Some of these neurons may be of no use, so that the chance
    is rather larger. Where no drawn neuron ends a rest, nothing is known of those not drawn.

    **Assumes** one hidden layer and a start that is small enough for neurons to align before the
    loss falls.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.reln.types(nr.tasks.extended_xor(0.4), width=128, scale=2e-5,
    ...                       learning_rate=0.1, steps=600, types=1)
    >>> nr.compare(found.wide, found.trajectory).mean < 0.01
    True

    ```

    What will the network answer on a condition that was left out?

    ```python
    >>> task = nr.tasks.extended_xor(0.4)
    >>> found = nr.reln.types(task.take([0, 1, 2]), width=128, scale=2e-5, learning_rate=0.1,
    ...                       steps=900, types=8, evaluate={"untrained": task.take([3])})
    >>> found.wide.values["untrained"]["loss"].shape == found.wide.time.shape
    True
    >>> found.wide.values["untrained"]["outputs"]["y"][-1].round(1) + 0
    array([[0.]])

    ```
    """
    count = types
    if count is not None and count > min(width, neurons):
        raise NeuralRaceError(
            "there cannot be more types than neurons",
            got=f"types = {count}",
            wanted=f"at most {min(width, neurons)}, the smaller of width and neurons",
            fix="ask for fewer types; a narrow network needs none",
        )
    others = evaluations(evaluate, data)
    random, start = generator(key), Start.equal(data, width, scale)
    _check_scale(data, width, scale, leak, key)
    limit = Limit.of(data, start, learning_rate, steps, leak, neurons, random, others)
    rests = tuple(rest for rest, _ in rests_of(limit, child(key, 0)))
    return grouped(data, limit, count, rests, key, others)


def child(key: Key, place: int) -> np.random.Generator:
    """A generator of its own for one part of a prediction, whatever the other parts draw."""
    return generator(key).spawn(place + 1)[place]


def grouped(
    data: Dataset,
    limit: Limit,
    count: int | None,
    rests: tuple[Rest, ...],
    key: Key,
    others: Mapping[str, Dataset] | None = None,
) -> NeuronTypes:
    """The types that the neurons of a wide limit form; see `types`."""
    wide, crowd, symmetries, rate, leak = (
        limit.wide, limit.crowd, limit.symmetries, limit.rate, limit.crowd.leak
    )  # fmt: skip
    grid, begins, loss = wide.stops, wide.begins, wide.loss
    if begins is None:
        raise NeuralRaceError(
            "the loss does not begin to fall in this time",
            got=f"{loss[-1]:.6g} after {grid[-1]} steps, at first {loss[0]:.6g}",
            wanted="a fall of the initial loss, and some steps after it",
            fix="take more steps; nr.reln.aligned_patterns(data) says whether neurons learn",
        )
    others, inputs, outputs = others or {}, limit.inputs, limit.outputs
    width, many = limit.start.width, len(limit.first["w"])
    most = min(width, many)
    done, members, chosen = chosen_types(crowd, symmetries, wide, count, most, rate, child(key, 1))
    counts = np.diff(done.values["on"], axis=0) / np.diff(done.stops)[:, None, None]
    gates = leak + (1 - leak) * np.concatenate([counts, counts[-1:]])
    strength = np.linalg.norm(done.final["w"], axis=1) * np.linalg.norm(done.final["a"], axis=1)
    order = np.argsort(-strength)
    if leak == 0:  # a neuron that is never on never moves
        order = order[done.values["on"][-1].any(axis=1)[order]]
    run = functools.partial(trajectory_of, data, limit, others=others)
    weights = (done.values["w"], done.values["a"])
    later = {
        name: np.concatenate([wide.others[name][:begins], place.over(*weights, leak)])
        for name, place in limit.places.items()
    }
    return NeuronTypes(
        trajectory=run(
            np.append(wide.loss[:begins], done.loss),
            np.concatenate([wide.outputs[:begins], done.values["outputs"]]),
            f"{numbered(len(order), 'type', '1')} of neurons",
            later,
        ),
        wide=run(wide.loss, wide.outputs, WIDE, wide.others),
        time=rate * done.stops,
        gates=gates[:, order],
        w=done.values["w"][:, order] @ inputs.T,
        a=done.values["a"][:, order] @ outputs.T,
        members=members[order],
        symmetries=replace(symmetries, samples=limit.samples),
        data=data.gated({}),
        learning_rate=rate,
        leak=leak,
        chosen=chosen,
        rests=rests,
        _reduced=(symmetries.samples, symmetries, inputs, outputs),
    )


def trajectory_of(
    data: Dataset,
    limit: Limit,
    loss: np.ndarray,
    seen: np.ndarray,
    method: str = WIDE,
    elsewhere: Mapping[str, np.ndarray] | None = None,
    others: Mapping[str, Dataset] | None = None,
) -> Trajectory:
    """A run of the neurons of a wide limit, or of some of them, recorded when the limit was."""
    start, stops = limit.start, limit.wide.stops
    by_node = lambda values: split_outputs(values @ limit.outputs.T, data)
    told = {
        "width": start.width,
        "scale": float(start.w[0]),
        "learning_rate": limit.rate,
        "steps": int(stops[-1]),
        "neurons": len(limit.first["w"]),
        "data": data.gated({}).digest(),
        "method": method,
    }
    others = others or {}
    if others:
        told["evaluate"] = {name: other.digest() for name, other in others.items()}
    return Trajectory(
        limit.rate * stops,
        loss,
        values={
            "outputs": by_node(seen),
            **{n: judged(by_node(o), others[n], data) for n, o in (elsewhere or {}).items()},
        },
        steps=stops,
        sample_weight=data.sample_weight,
        settings=told,
    )


def _check_scale(data: Dataset, width: int, scale: float, leak: float, key: Key) -> None:
    """Raise where neurons do not align before the loss falls."""
    reason = aligned_patterns(data, key=key, leak=leak).too_large(width, scale)
    require(
        reason is None,
        LARGE,
        got=f"scale = {scale:g}: {reason}",
        wanted=f"a factor of at least {GROWN:g}",
        fix="predict a network with smaller initial weights, such as a tenth of this scale",
    )
