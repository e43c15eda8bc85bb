"""When a candidate has learned: its reduction, its start, and the time to a criterion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from numbers import Real
from typing import TypeAlias, cast, final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import plain_number, switch, weight_scale
from neuralrace.contests.leads import EDGE
from neuralrace.dataset import Dataset, zero_loss
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.reduction import Race, Start, reduce
from neuralrace.reduction.solving.initial import check_start_known, start_from_scale
from neuralrace.reduction.solving.solution import checked_tolerance
from neuralrace.trajectory import Trajectory, crossing_time
from neuralrace.types import WeightsLike

POINTS = 256
"""A bracket of a learning time is divided into this many parts, twice."""

FIRST = 128.0
"""The first bracket of a learning time, in units of one over the largest strength."""

CANCELLED = 1e-9
"""A strength below this part of its bound is rounding."""

LATER = 3.0
"""The next bracket lasts this many times as long as all brackets before it."""

DECOUPLED = 1e-6
"""Weights are decoupled if a start carries all but this share of them."""

TIE = 1e-6
"""Learning times that differ by less than this share are equal; they are not known better."""

SCALE = 1e-3
"""The standard deviation of random weights if neither `start` nor `scale` is given."""

Candidates: TypeAlias = Mapping[str, tuple[Architecture, Dataset]]
"""The gatings of a contest by name."""

CandidatesLike: TypeAlias = Mapping[str, tuple[Architecture, Dataset] | Race]
"""The gatings of a contest by name; some may be reduced already."""

StartLike: TypeAlias = float | WeightsLike | Start
"""What `Race.start` accepts: one number, one per edge, actual weights, or a `Start`."""

StartsLike: TypeAlias = StartLike | Mapping[str, StartLike]
"""One start for all candidates, or one for each of them by name."""


@final
@dataclass(frozen=True, eq=False)
class Entrant:
    """A candidate of a contest: its race, its start, and when it reaches the criterion.

    `criterion` is a loss; `time` is infinite if the loss never falls that far; `method` says how
    the time was found. `number` is the common start value of all singular values of all edges, or
    None if they start differently or from a scale. `strength` is the drive of the strongest
    block (`Block.drive`), and `growth_rate` the largest rate at which small weights first grow.

    `is_unknown` says that the criterion could be reached, and was not, from an average start. That
    proves little: on average, random weights start a pathway with the signs of its Σ^yx at the
    beginning, and a race that starts so keeps them. Actual weights can change them, where other
    pathways turn around what is left to learn.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(0.5)
    >>> entrant = nr.contest({"xor": nr.tasks.xor_pathways(data)}, start=0.01).entrants["xor"]
    >>> entrant.method, entrant.number
    ('closed form', 0.01)
    >>> run = entrant.race.solve(start=entrant.start, times=[0, entrant.time])
    >>> round(float(run.loss[-1]), 6), entrant.criterion
    (0.2, 0.2)

    ```
    """

    race: Race
    start: Start
    criterion: float
    time: float
    method: str
    number: float | None
    is_unknown: bool = False

    @property
    def starts_roughly(self) -> bool:
        """Whether the start stands for weights that are not decoupled, and paths are long.

        With two edges per path such a start is a good approximation for small weights. With more,
        random weights mix the modes in the hidden layers, and times can be off by several per cent.
        """
        alignment = self.start.alignment
        mixed = alignment is not None and alignment < 1 - DECOUPLED
        return mixed and max(self.race.arch.path_lengths) > 2

    @property
    def lateness(self) -> str:
        """In a word, what is known of the time of one that does not reach the criterion."""
        return "unknown" if self.is_unknown or self.was_dropped else "never"

    @property
    def was_dropped(self) -> bool:
        """Whether only what a tolerance dropped keeps the loss above the criterion."""
        return self.race.constant < self.criterion <= self.race.outside

    @property
    def learns(self) -> float:
        """The part of the loss ½⟨‖y‖²⟩ that this gating can learn at all."""
        return 1 - self.race.constant / initial_loss(self.race)

    def end(self, longest: float) -> float:
        """When all is learned but a hundredth of what this gating can learn."""
        initial, least = initial_loss(self.race), self.race.constant
        return learning_time(self.race, self.start, least + EDGE * (initial - least), longest)[0]

    @property
    def strength(self) -> float:
        return max((block.drive for block in self.race.blocks), default=0.0)

    @property
    def growth_rate(self) -> float:
        return max((block.growth_rate for block in self.race.blocks), default=0.0)


@final
@dataclass(frozen=True)
class Rule:
    """How learning times are measured: the start, the criterion, and the longest time allowed.

    Exactly one of `start` and `scale` is given; `start` may be a mapping with every candidate.
    """

    start: StartsLike | None
    scale: float | None
    criterion: float
    relative: bool
    longest: float
    tolerance: float | None
    rtol: float | None = None

    def __post_init__(self) -> None:
        check_start_known(self.start)
        if (self.start is None) == (self.scale is None):
            raise NeuralRaceError(
                "a contest needs one way to start",
                got="neither start nor scale" if self.start is None else "both start and scale",
                wanted="start= for aligned starts, or scale= for random weights",
                fix="start=0.01 starts every edge at that singular value, whatever its width; "
                "scale=1e-3 at what random weights of that standard deviation have on average, "
                "so that wider pathways start ahead",
            )
        if self.scale is not None:
            weight_scale(self.scale)
        if self.longest is not None and not positive(self.longest):
            raise NeuralRaceError(
                "longest must be a positive number",
                got=repr(self.longest),
                wanted="a finite number above 0",
                fix="leave it out for the default",
            )
        switch("relative", self.relative)
        checked_tolerance(self.rtol)
        fine = positive(self.criterion) and (self.criterion < 1 or not self.relative)
        if not fine:
            raise NeuralRaceError(
                "the criterion is not possible",
                got=f"criterion = {self.criterion!r}" + ", relative" * self.relative,
                wanted="a share of ½⟨‖y‖²⟩ between 0 and 1" if self.relative else "a positive loss",
                fix="criterion=0.2 is the loss of MHS Fig. 2d; with relative=True it is a share",
            )

    def describe(self) -> str:
        """The start in words."""
        if self.scale is not None:
            return (
                f"random weights of standard deviation {self.scale:g}, on average: "
                f"a pathway of N units starts at N·{self.scale:g}²/2"
            )
        if isinstance(start := plain_number(self.start), Real):
            return f"equal aligned starts: every edge at {start:g}, whatever its width"
        return "as given for each candidate"

    def enter(self, candidates: CandidatesLike) -> dict[str, Entrant]:
        """An entrant for every candidate; raises unless all are candidates for one task."""
        check_kind("candidates", candidates, Mapping, "pass {name: (arch, data)}")
        if not candidates:
            raise NeuralRaceError(
                "a contest needs candidates",
                got="none",
                wanted="{name: (arch, data)}",
                fix="for example {'xor': nr.tasks.xor_pathways(data)}",
            )
        check_one_task(pairs_of(candidates))
        return {name: self._entrant(name, each) for name, each in candidates.items()}

    def _entrant(self, name: str, candidate: tuple[Architecture, Dataset] | Race) -> Entrant:
        """Reduce a candidate, place it at its start, and find when it reaches the criterion."""
        options = {} if self.tolerance is None else {"tolerance": self.tolerance}
        race = candidate if isinstance(candidate, Race) else reduce(*candidate, **options)
        source = self._source(name, race)
        start = race.start(source)
        initial = initial_loss(race)
        criterion = self.criterion * (initial if self.relative else 1.0)
        if criterion >= initial:
            raise NeuralRaceError(
                f"candidate {name!r} meets the criterion before it learns anything",
                got=f"criterion = {criterion:g}, and an initial loss of {initial:g}",
                wanted=f"a loss below {initial:g}",
                fix="criterion=0.4, relative=True takes a share of ½⟨‖y‖²⟩",
            )
        time, method = learning_time(race, start, criterion, self.longest, self.rtol)
        if time == 0:
            raise NeuralRaceError(
                f"candidate {name!r} meets the criterion already at its start",
                got=f"criterion = {criterion:g}, and {start.description}",
                wanted="a start whose loss is above the criterion",
                fix="start nearer to zero, or lower the criterion",
            )
        unknown = self.scale is not None and np.isinf(time) and criterion > race.outside
        return Entrant(race, start, criterion, time, method, _one_number(source), unknown)

    def _source(self, name: str, race: Race) -> StartLike:
        """The argument of `Race.start` for this candidate."""
        if self.scale is not None:
            return expected_start(name, race, self.scale)
        if isinstance(self.start, Mapping):
            if name not in self.start:
                raise NeuralRaceError(
                    f"candidate {name!r} has no start",
                    got=f"starts for {listed(self.start)}",
                    wanted="a start for every candidate",
                    fix="start={name: number or weights}, or one number for all",
                )
            return cast(StartLike, self.start[name])
        assert self.start is not None  # checked when the rule was made
        return self.start

    def of_first(self) -> Rule | None:
        """The rule with the first candidate's start, in a form that fits any gating, or None."""
        start = self.start
        if isinstance(start, Mapping):
            start = next(iter(start.values()), None)
        start = plain_number(start)
        if self.scale is not None or isinstance(start, Real):
            return replace(self, start=start)
        if isinstance(start, Mapping) and all(np.ndim(w) == 2 for w in start.values()):
            entries = np.concatenate([np.ravel(np.asarray(w)) for w in start.values()])
            return replace(self, start=None, scale=float(np.sqrt(np.mean(entries**2))))
        return None

    def random_scale(self, width: int) -> float | None:
        """The standard deviation of random weights that starts this width as the rule does.

        Starting both edges of a two-edge pathway of N units at b corresponds to b² = N σ²/2.
        """
        rule = self.of_first()
        if rule is None or rule.scale is not None:
            return None if rule is None else rule.scale
        return abs(float(rule.start)) * sqrt(2 / width)  # type: ignore[arg-type]


def _one_number(source: StartLike) -> float | None:
    """The number at which all edges start, if there is one."""
    values = list(source.values()) if isinstance(source, Mapping) else [source]
    numbers = [plain_number(v) for v in values]
    if not all(isinstance(v, Real) for v in numbers) or len({float(v) for v in numbers}) != 1:
        return None
    return float(numbers[0])


def positive(value: object) -> bool:
    """Whether it is a finite number above zero."""
    return isinstance(value, Real) and isfinite(value) and float(value) > 0


def pairs_of(candidates: CandidatesLike) -> Candidates:
    """All candidates as (arch, data), or an error that names one."""
    return {name: checked_candidate(name, each) for name, each in candidates.items()}


def checked_candidate(name: object, candidate: object) -> tuple[Architecture, Dataset]:
    """A candidate as (arch, data), or an error that names it."""
    check_kind(f"the name {name!r} of a candidate", name, str, "pass {'name': (arch, data)}")
    if isinstance(candidate, Race):
        return candidate.arch, candidate.data
    if not (isinstance(candidate, tuple) and len(candidate) == 2):
        many = f" of {len(candidate)}" if isinstance(candidate, tuple) else ""
        raise NeuralRaceError(
            f"candidate {name!r} is not a pair",
            got=type(candidate).__name__ + many,
            wanted="(arch, data)",
            fix="pass what nr.pathways or a gating of nr.tasks returns",
        )
    arch, data = candidate
    what = f"candidate {name!r}"
    check_kind(what, arch, Architecture, "a candidate is (arch, data), in this order")
    check_kind(what, data, Dataset, "a candidate is (arch, data), in this order")
    return arch, data


def check_one_task(candidates: Candidates) -> None:
    """Raise if candidates differ in more than their gates, graph and choice of inputs."""
    (name, (_, first)), *others = candidates.items()
    for other, (_, data) in others:
        different = _difference(first, data)
        if different:
            raise NeuralRaceError(
                f"candidates {name!r} and {other!r} do not learn the same task",
                got=different,
                wanted="equal samples, inputs and targets: only gates, graphs and the choice of "
                "input nodes may differ",
                fix="make all candidates from one dataset, samples in one order: learning times of "
                "different tasks cannot be compared. A candidate that should read other inputs "
                "needs an input node of another name",
            )


def _difference(a: Dataset, b: Dataset) -> str:
    """How two datasets differ, ignoring gates and inputs that only one of them has."""
    if a.n_samples != b.n_samples:
        return f"{a.n_samples} and {b.n_samples} samples"
    if set(a.y) != set(b.y):
        return f"targets {listed(a.y)} and {listed(b.y)}"
    if not np.allclose(np.asarray(a.probability), np.asarray(b.probability)):
        return "different sample weights"
    for what, ours, theirs in (("inputs", a.x, b.x), ("targets", a.y, b.y)):
        for node in sorted(set(ours) & set(theirs)):
            if ours[node].shape != theirs[node].shape:
                return f"{what} {node!r} of shape {ours[node].shape} and {theirs[node].shape}"
            rounding = 1e-8 * np.abs(ours[node]).max(initial=0.0)
            apart = ~np.isclose(ours[node], theirs[node], atol=rounding).all(axis=1)
            if apart.any():
                return f"{what} {node!r} that differ on {apart.sum()} of {a.n_samples} samples"
    return ""


def expected_start(name: str, race: Race, scale: float) -> Start:
    """Where Gaussian weights of standard deviation σ start a race on average.

    In a two-edge pathway with N hidden units, the growing half ½(W₁v + W₂ᵀu) of a mode has the
    expected squared length N σ²/2. In the wide limit the mode starts with this strength: both edges
    at b = σ √(N/2). If the hidden layer has several inputs or outputs, u and v extend over all of
    them, and the edge to output k starts at b |u_k|: an output node and its parts start alike. No
    such average is known for pathways of other lengths; they need actual weights.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    >>> race = nr.reduce(nr.Architecture.chain(1, 8, 1), data)
    >>> start = nr.contests.expected_start("chain", race, scale=0.01)
    >>> {edge: w.round(12).tolist() for edge, w in start.weights[0].items()}
    {'W1': [[0.02]], 'W2': [[0.02]]}

    ```
    """
    check_kind("race", race, Race, "pass a race of nr.reduce(arch, data)")
    scale = weight_scale(scale)
    found = start_from_scale(race.blocks, race.split, scale)
    if found is None:
        raise NeuralRaceError(
            f"candidate {name!r} has pathways of other than two edges: their average start from "
            "random weights is not known",
            got=f"scale = {scale:g}",
            wanted="pathways input → hidden → output",
            fix="start={name: net.init(key, scale)} starts from actual weights, "
            "start=0.01 from an aligned number",
        )
    return found


def tied_first(times: Mapping[str, float]) -> tuple[str, ...]:
    """The candidates with the shortest time or one equal to it, in their order.

    Empty if all times are infinite. Equal candidates have equal times except for rounding, which
    must not decide who is first.

    ```python
    >>> from neuralrace.contests.times import tied_first
    >>> tied_first({"a": 8.0 + 1e-12, "late": 9.0, "b": 8.0})
    ('a', 'b')

    ```
    """
    shortest = min(times.values(), default=np.inf)
    if not isfinite(shortest):
        return ()
    return tuple(name for name, time in times.items() if time <= (1 + TIE) * shortest)


def initial_loss(race: Race) -> float:
    """½⟨‖y‖²⟩, the loss of a network whose output is zero."""
    return zero_loss(race.data)


def learning_time(
    race: Race, start: Start, criterion: float, longest: float, rtol: float | None = None
) -> tuple[float, str]:
    """When the loss falls to the criterion, and how that was found.

    The closed form is used if there is one. Otherwise the race is solved; since its loss can only
    fall, the time is bracketed by ever longer spans, up to `longest`, the bracket is divided twice,
    and the last part is interpolated. Each solution starts where the previous one ended. The time
    is 0 if the criterion is met at the start.
    """
    if race.constant < criterion <= race.outside:
        return np.inf, "what the tolerance dropped is above the criterion"
    if criterion <= race.constant or not race.blocks:
        return np.inf, "the loss that cannot be learned is above the criterion"
    form = race.complete_form(start)
    if form is not None:
        return float(form.time_to_loss(criterion)), "closed form"
    now, span = 0.0, min(FIRST / _rate(race), longest)
    divided = 0
    while True:
        times = np.linspace(0.0, span, POINTS + 1)
        solution = race.solve(times=times, start=start, rtol=rtol)
        loss = solution.loss
        if loss[0] <= criterion:
            return now, "solved race"
        if loss[-1] > criterion:
            now += span
            if now >= longest:
                return np.inf, f"solved race; not reached by t = {longest:.3g}"
            start, span = _state(race, solution, -1), min(LATER * now, longest - now)
            continue
        k = int(np.argmax(loss <= criterion))
        divided += 1
        if divided == 2:
            return now + float(crossing_time(times, loss, criterion)), "solved race"
        start = _state(race, solution, k - 1)
        now, span = now + float(times[k - 1]), float(times[k] - times[k - 1])


def _rate(race: Race) -> float:
    """The largest strength of a block; where what reaches every node cancels, the bound on it.

    The bound is √(⟨‖x‖²⟩⟨‖y‖²⟩).
    """
    bounds = []
    for block in race.blocks:
        probability = np.asarray(block.data.probability)
        squares = [
            sum(float(probability @ (np.asarray(v) ** 2).sum(axis=1)) for v in side.values())
            for side in (block.data.x, block.data.y)
        ]
        bounds.append(np.sqrt(np.prod(squares)))
    strength, bound = max(block.drive for block in race.blocks), float(max(bounds))
    return strength if strength > CANCELLED * bound else bound


def _state(race: Race, solution: Trajectory, when: int) -> Start:
    """A start at the state of a solution at one of its times."""
    at = solution.values["variables"]
    weights = tuple({e: w[when] for e, w in at[block.name].items()} for block in race.blocks)
    return Start(weights, None, f"the race at t = {solution.time[when]:g}")
