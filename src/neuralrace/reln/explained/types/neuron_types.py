"""Neurons come in types: a ReLU network predicted from task, width and initial scale alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import generator, real_number, shown
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, check_kind, whole_number
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.reln.explained.types.crowd import Crowd, Descended, Neurons, descend
from neuralrace.reln.explained.types.staged import split_outputs
from neuralrace.reln.explained.types.symmetries import (
    Symmetries,
    fold,
    moved,
    row_space,
    symmetries_of,
    tolerance_of,
)
from neuralrace.reln.explained.types.timeline import (
    Event,
    draw_timeline,
    events_of,
    states_of,
    story,
)
from neuralrace.reln.explained.types.type_stages import TypeStages, event_driven
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEURONS = 2000
"""The number of random neurons that stand for the network."""

BEGUN = 1e-4
"""Neurons count as aligned when the loss has fallen by this share of its initial value."""

GROWN = 2.0
"""Neurons cannot have aligned if their squared norm has grown by less than this factor by then."""

LOOKS = 8
"""The number of times, evenly in log time after the alignment, at which directions are compared."""

TRIES = 4
"""The number of clusterings, with and without split clusters each, among which to choose."""

BEFORE = 200
"""The steps are divided by this to see when neurons have aligned."""

BETWEEN = 32
"""The number of recorded moments from one such time to the next."""


@final
@dataclass(frozen=True, eq=False)
class NeuronTypes:
    """A ReLU network as a few types of neurons; see `types`.

    `trajectory` is the prediction by types, `wide` that of the wide limit, both from t = 0 on. All
    else is known from the time `time[0]` at which neurons have aligned. Types are in decreasing
    order of their strength at the end. `gates[i, k, n]` is the gate of type k on sample n, averaged
    over the steps from moment i to the next (the last one is repeated); it is a fraction where the
    type slides. `w` and `a`
    are its input and output weights, and `symmetries` those of the task: a type stands for all of
    its images under them.
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
        shares = (self.gates[:-1] - self.leak) / (1 - self.leak)  # one per interval
        states = states_of(shares)
        return np.concatenate([states, states[-1:]])

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """When a type turns on, turns off or begins to slide, and on which samples."""
        return events_of(self.time, self.states)

    def stages(self, tolerance: float = 0.05) -> TypeStages:
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
        tolerance = real_number("tolerance", tolerance, above=0, fix="for example tolerance=0.05")
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

    def plot(self) -> Figure:
        """A timeline: the loss, the share of every type, and its gates on every sample."""
        return draw_timeline(
            (self.trajectory, self.wide), self.time, self.shares, self.gates, self.data
        )

    def __str__(self) -> str:
        return story(
            self.trajectory,
            self.time,
            self.shares[-1],
            self.states,
            self.events,
            str(self.symmetries),
            self.data,
        )


def types(
    data: Dataset,
    *,
    width: int,
    scale: float,
    learning_rate: float,
    steps: int,
    types: int,
    key: Key = 0,
    neurons: int = NEURONS,
    leak: float = 0.0,
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
    `learning_rate` and `steps` of its training. `types` K, how many types. `key` (a JAX key or an
    integer) draws the neurons. `neurons` M, how many. `leak`, the slope of a neuron that is off.

    Moments are recorded evenly until neurons have aligned, and about evenly in log time from then.

    **Assumes** one hidden layer and a start that is small enough for neurons to align before the
    loss falls.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.reln.types(nr.tasks.extended_xor(0.4), width=128, scale=2e-5,
    ...                       learning_rate=0.1, steps=600, types=1)
    >>> nr.compare(found.wide, found.trajectory).mean < 0.01
    True

    ```
    """
    check_kind("data", data, Dataset, "pass the task, for example tasks.extended_xor(0.4)")
    if isinstance(width, list | tuple):
        raise NeuralRaceError(
            "types are known for one hidden layer",
            got=f"width = {shown(width)}",
            wanted="one whole number",
            fix="for deeper networks train them, and use nr.reln.discover",
        )
    width = whole_number("the width", width, fix="for example width=700")
    count = whole_number("the number of types", types, fix="for example types=8")
    many = whole_number("the number of neurons", neurons, fix="for example neurons=2000")
    scale = real_number("scale", scale, above=0, fix="for example scale=1e-5")
    rate = real_number("the learning rate", learning_rate, above=0, fix="for example 0.1")
    leak = real_number("leak", leak, least=0, below=1, fix="leak=0.0 is the plain ReLU")
    steps = whole_number("steps", steps, fix="for example steps=8000")
    if count > min(width, many):
        raise NeuralRaceError(
            "there cannot be more types than neurons",
            got=f"types = {count}",
            wanted=f"at most {min(width, many)}, the smaller of width and neurons",
            fix="ask for fewer types; a narrow network needs none",
        )
    random = generator(key)
    samples = Samples.of(data)
    tolerance = tolerance_of(data)
    inputs, outputs = row_space(samples.x, tolerance), row_space(samples.y, tolerance)
    small = Samples(samples.x @ inputs, samples.y @ outputs, samples.p)
    found = symmetries_of(small, tolerance)
    with jax.enable_x64(True):
        crowd = Crowd.of(small, found, leak)
    wide = _wide_limit(crowd, _drawn(small, random, many, scale, width), rate, steps, scale)
    grid = wide.stops
    done, members = _nearest(crowd, found, wide, count, rate, random)
    counts = np.diff(done.values["on"], axis=0) / np.diff(done.stops)[:, None, None]
    gates = leak + (1 - leak) * np.concatenate([counts, counts[-1:]])
    strength = np.linalg.norm(done.final["w"], axis=1) * np.linalg.norm(done.final["a"], axis=1)
    order = np.argsort(-strength)
    told = {
        "width": width,
        "scale": scale,
        "learning_rate": rate,
        "steps": steps,
        "neurons": many,
        "data": data.gated({}).digest(),
    }

    def trajectory(loss: np.ndarray, seen: np.ndarray, method: str) -> Trajectory:
        return Trajectory(
            rate * grid,
            loss,
            values={"outputs": split_outputs(seen @ outputs.T, data)},
            steps=grid,
            sample_weight=data.sample_weight,
            settings=told | {"method": method},
        )

    at = wide.begins
    return NeuronTypes(
        trajectory=trajectory(
            np.append(wide.loss[:at], done.loss),
            np.concatenate([wide.outputs[:at], done.values["outputs"]]),
            f"{count} types of neurons",
        ),
        wide=trajectory(wide.loss, wide.outputs, "the wide limit"),
        time=rate * done.stops,
        gates=gates[:, order],
        w=done.values["w"][:, order] @ inputs.T,
        a=done.values["a"][:, order] @ outputs.T,
        members=members[order],
        symmetries=replace(found, samples=samples),
        data=data.gated({}),
        learning_rate=rate,
        leak=leak,
        _reduced=(small, found, inputs, outputs),
    )


# ---- the wide limit -----------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class _Wide:
    """The wide limit: loss and outputs, the moment at which it begins to learn, and neurons then.

    `looks` are the neurons at a few moments, the first of them when the loss begins to fall.
    """

    stops: Int[np.ndarray, " T"]
    loss: Float[np.ndarray, " T"]
    outputs: Float[np.ndarray, "T N o"]
    begins: int
    looks: list[Neurons]


def _drawn(
    samples: Samples, random: np.random.Generator, many: int, scale: float, width: int
) -> Neurons:
    """Random neurons with the total strength of a network of this width and scale."""
    _, d, o = samples.shape
    deviation = scale * np.sqrt(width / many)
    both = deviation * random.normal(size=(many, d + o))
    return {"w": both[:, :d], "a": both[:, d:]}


def _wide_limit(crowd: Crowd, neurons: Neurons, rate: float, steps: int, scale: float) -> _Wide:
    """All neurons together, from their start to the end."""
    grid = np.unique(np.append(np.arange(0, steps + 1, max(1, steps // BEFORE)), steps))
    initial = float(0.5 * (crowd.p @ (crowd.y**2).sum(axis=1)))
    part = descend(crowd, neurons, rate, grid, until=(1 - BEGUN) * initial)
    begins = len(part.stops) - 1
    if not part.loss[-1] <= (1 - BEGUN) * initial or begins > len(grid) - 3:
        raise NeuralRaceError(
            "the loss does not begin to fall in this time",
            got=f"{part.loss[-1]:.6g} after {part.stops[-1]} steps, at first {initial:.6g}",
            wanted=f"a fall by {BEGUN:g} of the initial loss, and some steps after it",
            fix="take more steps; nr.reln.aligned_patterns(data) says whether neurons learn at all",
        )
    grown = _squares(part.final) / _squares(neurons)
    if grown < GROWN:
        raise NeuralRaceError(
            "the initial weights are too large for neurons to align before the loss falls",
            got=f"scale = {scale:g}: squared norms grow by a factor of {grown:.3g} until then",
            wanted=f"a factor of at least {GROWN:g}",
            fix="predict a network with smaller initial weights, such as a tenth of this scale",
        )
    stops, loss, outputs = [part.stops], [part.loss], [part.values["outputs"]]
    looks = [part.final]
    cuts = np.unique(np.geomspace(part.stops[-1], steps, LOOKS + 1).round().astype(int))
    for i, j in pairwise(cuts):
        some = np.unique(np.linspace(i, j, BETWEEN + 1).round().astype(int))
        part = descend(crowd, looks[-1], rate, some)
        stops.append(part.stops[1:])
        loss.append(part.loss[1:])
        outputs.append(part.values["outputs"][1:])
        looks.append(part.final)
    joined = np.concatenate
    return _Wide(joined(stops), joined(loss), joined(outputs), begins, looks)


def _squares(neurons: Neurons) -> float:
    return float((neurons["w"] ** 2).sum() + (neurons["a"] ** 2).sum())


# ---- clusters -----------------------------------------------------------------------------------


def _nearest(
    crowd: Crowd,
    symmetries: Symmetries,
    wide: _Wide,
    count: int,
    rate: float,
    random: np.random.Generator,
) -> tuple[Descended, Int[np.ndarray, " K"]]:
    """Types that stay close to the wide limit: what became of them, and their members."""
    directions = _Directions.of(symmetries, wide.looks)
    stops, wanted = wide.stops[wide.begins :], wide.outputs[wide.begins :]
    best: tuple[Descended, np.ndarray] | None = None
    least = np.inf
    for split in (False, True) if count % 2 == 0 else (False,):
        for _ in range(TRIES if 1 < count - split < len(directions.weight) else 1):
            start, members = directions.clustered(count, split, int(random.integers(2**31)))
            done = descend(crowd, start, rate, stops, counting=True)
            squares = ((done.values["outputs"] - wanted) ** 2).sum(axis=2) @ np.asarray(crowd.p)
            apart = float(np.trapezoid(np.sqrt(squares), stops))
            if best is None or apart < least:
                best, least = (done, members), apart
    assert best is not None
    return best


@final
@dataclass(frozen=True, eq=False)
class _Directions:
    """Folded neurons: unit directions at every look, squared norms at first, and mean strengths."""

    units: list[np.ndarray]
    squares: Float[np.ndarray, " M"]
    weight: Float[np.ndarray, " M"]
    inputs: int

    @staticmethod
    def of(symmetries: Symmetries, looks: list[Neurons]) -> _Directions:
        every = [np.concatenate([n["w"], n["a"]], axis=1) for n in looks]
        d = looks[0]["w"].shape[1]
        squares = [(both**2).sum(axis=1) for both in every]
        units = [both / np.sqrt(size)[:, None] for both, size in zip(every, squares, strict=True)]
        pairs = [(unit[:, :d], unit[:, d:]) for unit in units]
        images = fold(symmetries, pairs)
        units = [np.concatenate(moved(symmetries, images, w, a), axis=1) for w, a in pairs]
        weight = np.mean([size / size.sum() for size in squares], axis=0)
        return _Directions(units, squares[0], weight, d)

    def clustered(self, count: int, split: bool, seed: int) -> tuple[Neurons, np.ndarray]:
        """The types at their start, and how many neurons each has as members."""
        from sklearn.cluster import KMeans

        options: dict[str, Any] = {"n_init": 1, "random_state": seed}
        means = KMeans(count // 2 if split else count, **options)
        label = means.fit(np.concatenate(self.units, axis=1), sample_weight=self.weight).labels_
        types, members = [], []
        for k in range(means.n_clusters):  # type: ignore[arg-type]
            mine = np.asarray(label) == k
            unit, size = self.units[0][mine], self.squares[mine]
            total = size.sum()
            mean = size @ unit / total
            spread = np.zeros_like(mean)
            if split:
                _, s, vt = np.linalg.svd(
                    np.sqrt(size / total)[:, None] * (unit - mean), full_matrices=False
                )
                spread = s[0] * vt[0]
            for sign in (1, -1) if split else (1,):
                place = mean + sign * spread
                length = float(np.linalg.norm(place)) or 1.0
                types.append(place / length * np.sqrt(total / (1 + split)))
                members.append(int(mine.sum()))
        both = np.array(types)
        return {"w": both[:, : self.inputs], "a": both[:, self.inputs :]}, np.array(members)
