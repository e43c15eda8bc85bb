"""When a candidate has learned: its reduction, its start, and the time to a criterion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from numbers import Real
from typing import TypeAlias, cast, final

import numpy as np

from neuralrace.architecture import BIAS, Architecture
from neuralrace.checks import plain_number
from neuralrace.dataset import Dataset, with_bias, zero_loss
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, listed, require
from neuralrace.gdln import GDLN
from neuralrace.reduction import ClosedForm, Race, Start, reduce
from neuralrace.reduction.start import check_start_known, joined, later, start_from_scale
from neuralrace.reln.explained.fall import stretches
from neuralrace.tolerances import (
    APART,
    BLOCK_RESTS,
    EQUAL,
    EXACT,
    FALLEN,
    LONGER,
    LOOSE,
    NOISE,
    PRINTED,
    RTOL,
)
from neuralrace.trajectory import Trajectory, crossing_time
from neuralrace.types import Key, NotNegative, Positive, Scale, Share, Tolerance, WeightsLike
from neuralrace.weights import check_untied

DRAWN = 301
"""The number of moments of a curve that is drawn."""

POINTS = 256
"""A bracket of a learning time is divided into this many parts, at least twice."""

FIRST = 128.0
"""The first bracket of a learning time, in units of one over the largest strength."""

LATER = 3.0
"""The next bracket lasts this many times as long as all brackets before it."""

AVERAGE = (
    "an average start keeps the signs of the first Σ^yx; start={name: weights} starts from "
    "actual weights"
)
"""Why it is not known when a pathway learns from an average start that does not learn."""

LARGE = (
    "the start is so large that the part of it that the race leaves out matters; a smaller one is "
    "predicted"
)
"""Why it is not known when a candidate learns whose loss at the start is off (`Start.gap`)."""

DROPPED = (
    "what the tolerance of its reduction dropped keeps the loss above the criterion, and can be "
    "learned; a smaller tolerance drops less"
)
"""Why it is not known when a candidate learns what its reduction left out."""

SADDLE = "the race rests at a saddle"
"""Why it is not known when a candidate learns that leaves a saddle by rounding alone."""

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

    `unknown` says why the time is not known, where it is not: the race was not followed for longer,
    or it rests at a saddle that it leaves by rounding alone, or it did not reach the criterion from
    an average start. That proves little: on average, random weights start a pathway with the signs
    of its Σ^yx at the beginning, and a race that starts so keeps them. Actual weights can change
    them, where other pathways turn around what is left to learn. `time` is infinite then too.

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
    unknown: str = ""
    weight_decay: float | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the time is not known; an infinite time means never otherwise."""
        return bool(self.unknown)

    @property
    def starts_roughly(self) -> bool:
        """Whether the start stands for weights that are not decoupled, and paths are long.

        With two edges per path such a start is a good approximation for small weights. With more,
        random weights mix the modes in the hidden layers, and times can be off by several per cent.
        """
        alignment = self.start.alignment
        mixed = alignment is not None and alignment < 1 - EQUAL
        return mixed and max(self.race.arch.path_lengths) > 2

    @property
    def is_exact(self) -> bool:
        """Whether the reduction drops nothing, and nothing that the start leaves out matters."""
        return self.race.is_exact and self.start.is_exact

    @property
    def lateness(self) -> str:
        """In a word, what is known of the time of one that does not reach the criterion."""
        return "unknown" if self.is_unknown else "never"

    @property
    def learns(self) -> float:
        """The part of the loss ½⟨‖y‖²⟩ that this gating can learn at all."""
        return 1 - self.race.constant / initial_loss(self.race)

    @door
    def end(self, longest: float) -> float:
        """When all is learned but a hundredth of what this gating can learn."""
        initial, least = initial_loss(self.race), self.race.constant
        level = least + FALLEN * (initial - least)
        decay = self.weight_decay
        return learning_time(self.race, self.start, level, longest, weight_decay=decay).time

    @property
    def has_form(self) -> bool:
        """Whether the race has a closed form from its start."""
        return _form(self.race, self.start, self.weight_decay) is not None

    @property
    def strength(self) -> float:
        return max((block.drive for block in self.race.blocks), default=0.0)

    @property
    def growth_rate(self) -> float:
        return max((block.growth_rate for block in self.race.blocks), default=0.0)


@final
@door
@dataclass(frozen=True)
class Rule:
    """How learning times are measured: the start, the criterion, and how long races are followed.

    Exactly one of `start` and `scale` is given; `start` may be a mapping with every candidate.
    `leak` is that of the ReLU network that would have to keep the gates; with `bias`, the hidden
    neurons of every candidate read an input that is always one. `draws` is the key with which
    weights are drawn where the average start is not known; without it, that is an error.
    """

    start: StartsLike | None
    scale: Scale | None
    criterion: Positive
    relative: bool
    longest: Positive
    tolerance: Positive | None
    rtol: Tolerance | None = None
    leak: Share = 0.0
    bias: bool = False
    weight_decay: NotNegative | None = None
    draws: Key | None = None

    def __post_init__(self) -> None:
        check_start_known(self.start)
        require(
            (self.start is None) != (self.scale is None),
            "a contest needs one way to start",
            got="neither start nor scale" if self.start is None else "both start and scale",
            wanted="start= for aligned starts, or scale= for random weights",
            fix="start=0.01 starts every edge at that singular value, whatever its width; "
            "scale=1e-3 at what random weights of that standard deviation have on average, "
            "so that wider pathways start ahead",
        )
        require(
            self.criterion < 1 or not self.relative,
            "the criterion is not possible",
            got=f"criterion = {self.criterion!r}, relative",
            wanted="a share of ½⟨‖y‖²⟩ between 0 and 1",
            fix="criterion=0.2 is the loss of MHS Fig. 2d; with relative=True it is a share",
        )

    def describe(self) -> str:
        """The start in words."""
        if self.scale is not None and self.draws is not None:
            drawn = f"drawn from key {self.draws} where no average is known"
            return f"random weights of standard deviation {self.scale:g}, {drawn}"
        if self.scale is not None:
            return (
                f"random weights of standard deviation {self.scale:g}, on average: "
                f"a pathway of N units starts at N·{self.scale:g}²/2"
            )
        if isinstance(start := plain_number(self.start), Real):
            return f"equal aligned starts: every edge at {start:g}, whatever its width"
        return "as given for each candidate"

    def enter(self, candidates: CandidatesLike, *, begun: bool = False) -> dict[str, Entrant]:
        """An entrant for every candidate; raises unless all are candidates for one task.

        A candidate that meets the criterion at its start has the time 0 if it may have `begun`.
        """
        require(
            candidates,
            "a contest needs candidates",
            got="none",
            wanted="{name: (arch, data)}",
            fix="for example {'xor': nr.tasks.xor_pathways(data)}",
        )
        check_one_task(self.pairs(candidates))
        return {n: self._entrant(n, each, begun) for n, each in self.ready(candidates).items()}

    def ready(self, candidates: CandidatesLike) -> CandidatesLike:
        """All candidates with the bias that is asked for, those reduced already as they are."""
        pairs = self.pairs(candidates)
        return {
            name: each if isinstance(each, Race) and each.arch == pairs[name][0] else pairs[name]
            for name, each in candidates.items()
        }

    def pairs(self, candidates: CandidatesLike) -> Candidates:
        """All candidates as (arch, data), with the bias that is asked for."""
        pairs = pairs_of(candidates)
        return {n: _biased(*pair) for n, pair in pairs.items()} if self.bias else pairs

    def begin(
        self, name: str, candidate: tuple[Architecture, Dataset] | Race
    ) -> tuple[Race, Start, float | None]:
        """A candidate's race, its start, and the number at which all edges start if there is one.

        The candidate is reduced if it was not before.
        """
        options = {} if self.tolerance is None else {"tolerance": self.tolerance}
        race = candidate if isinstance(candidate, Race) else reduce(*candidate, **options)
        source = self._source(name, race)
        start = joined(race.blocks, race.split, race.outside, race.start(source))
        return race, start, _one_number(source)

    def _entrant(
        self, name: str, candidate: tuple[Architecture, Dataset] | Race, begun: bool
    ) -> Entrant:
        """A candidate at its start, and when it reaches the criterion."""
        race, start, number = self.begin(name, candidate)
        initial = initial_loss(race)
        criterion = self.criterion * (initial if self.relative else 1.0)
        require(
            criterion < initial,
            f"candidate {name!r} meets the criterion before it learns anything",
            got=f"criterion = {criterion:g}, and an initial loss of {initial:g}",
            wanted=f"a loss below {initial:g}",
            fix="criterion=0.4, relative=True takes a share of ½⟨‖y‖²⟩",
        )
        found = learning_time(race, start, criterion, self.longest, self.rtol, self.weight_decay)
        require(
            begun or found.time != 0,
            f"candidate {name!r} meets the criterion already at its start",
            got=f"criterion = {criterion:g}, and {start.description}",
            wanted="a start whose loss is above the criterion",
            fix="start nearer to zero, or lower the criterion",
        )
        unknown = found.unknown
        if start.is_large and np.isinf(found.time) and criterion > race.constant:
            unknown = LARGE
        elif (
            self.scale is not None
            and np.isinf(found.time)
            and found.unknown != DROPPED
            and criterion > race.constant
        ):
            unknown = AVERAGE
        return Entrant(
            race, start, criterion, found.time, found.method, number, unknown, self.weight_decay
        )

    def _source(self, name: str, race: Race) -> StartLike:
        """The argument of `Race.start` for this candidate."""
        if self.scale is not None:
            if self.draws is not None:
                known = start_from_scale(race.blocks, race.split, race.outside, self.scale)
                return known or GDLN(race.arch).init(self.draws, self.scale)
            return _expected(race, self.scale, f"candidate {name!r}")
        if isinstance(self.start, Mapping):
            require(
                name in self.start,
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


def _biased(arch: Architecture, data: Dataset) -> tuple[Architecture, Dataset]:
    """A candidate whose hidden nodes read an input that is always one."""
    if BIAS in arch.sizes:
        return arch, data
    check_untied(arch, "bias=True in a contest")
    edges = {f"{BIAS}_{node}": (BIAS, node) for node in arch.hidden}
    return Architecture({**arch.sizes, BIAS: 1}, {**arch.edges, **edges}), with_bias(data)


def pairs_of(candidates: CandidatesLike) -> Candidates:
    """All candidates as (arch, data), or an error that names one."""
    return {name: checked_candidate(name, each) for name, each in candidates.items()}


def checked_candidate(name: object, candidate: object) -> tuple[Architecture, Dataset]:
    """A candidate as (arch, data), or an error that names it."""
    if isinstance(candidate, Race):
        candidate = candidate.arch, candidate.data
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
        require(
            not different,
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
    ones = np.ones(a.n_samples)
    counts = [{v: np.asarray(d.loss_weight.get(v, ones))[:, None] for v in d.y} for d in (a, b)]
    pairs = (("inputs", a.x, b.x), ("targets", a.y, b.y), ("loss weights of", *counts))
    for what, ours, theirs in pairs:
        for node in sorted(set(ours) & set(theirs)):
            if ours[node].shape != theirs[node].shape:
                return f"{what} {node!r} of shape {ours[node].shape} and {theirs[node].shape}"
            rounding = EXACT * np.abs(ours[node]).max(initial=0.0)
            apart = ~np.isclose(ours[node], theirs[node], atol=rounding).all(axis=1)
            if apart.any():
                return f"{what} {node!r} that differ on {apart.sum()} of {a.n_samples} samples"
    return ""


@door
def expected_start(race: Race, scale: Scale) -> Start:
    """Where Gaussian weights of standard deviation σ start a race on average.

    In a two-edge pathway with N hidden units, the growing half ½(W₁v + W₂ᵀu) of a mode has the
    expected squared length N σ²/2. In the wide limit the mode starts with this strength: both edges
    at b = σ √(N/2). If the hidden layer has several inputs or outputs, u and v extend over all of
    them, and the edge to output k starts at b |u_k|: an output node and its parts start alike. A
    recurrent pathway starts so too, its W_h at 0. No such average is known for other pathways;
    they need actual weights.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    >>> race = nr.reduce(nr.Architecture.chain(1, 8, 1), data)
    >>> start = nr.contests.expected_start(race, scale=0.01)
    >>> {edge: w.round(12).tolist() for edge, w in start.weights[0].items()}
    {'W1': [[0.02]], 'W2': [[0.02]]}

    ```
    """
    return _expected(race, scale, "the race")


def _expected(race: Race, scale: float, what: str) -> Start:
    found = start_from_scale(race.blocks, race.split, race.outside, scale)
    if found is None:
        raise NeuralRaceError(
            f"the average start of {what} from random weights is not known",
            got=f"scale = {scale:g}, and pathways of other than two edges, or shared weights "
            "that decide which modes grow",
            wanted="pathways input → hidden → output, or scalar modes of a recurrent network "
            "without delay",
            fix="start={name: net.init(key, scale)} starts from actual weights, "
            "start=0.01 from an aligned number",
        )
    return found


@door
def moments(entrants: Iterable[Entrant]) -> np.ndarray:
    """The moments at which losses are drawn, (T,): until all have learned for a while.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.contest({"xor": nr.tasks.xor_pathways(nr.tasks.xor())})
    >>> times = nr.contests.moments(found.entrants.values())
    >>> bool(times[0] == 0 and times[-1] > found.times["xor"])
    True

    ```
    """
    reached = [entrant.time for entrant in entrants if np.isfinite(entrant.time)]
    return np.linspace(0, LONGER * max(reached, default=1.0), DRAWN)


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
    return foremost({name: 1 / time for name, time in times.items()})


def foremost(scores: Mapping[str, float]) -> tuple[str, ...]:
    """Those with the largest score or one equal to it, in their order; none if all are zero."""
    best = max(scores.values(), default=0.0)
    return tuple(name for name, score in scores.items() if score * (1 + EQUAL) >= best > 0)


def initial_loss(race: Race) -> float:
    """½⟨‖y‖²⟩, the loss of a network whose output is zero."""
    return zero_loss(race.data)


@final
@dataclass(frozen=True)
class LearningTime:
    """When a loss is reached, infinite if never; how that was found; why it is unknown, if it is.

    An unknown time is infinite too. "Never" is proved: the loss stays above the criterion at any
    weights, or by the closed form.
    """

    time: float
    method: str
    unknown: str = ""


def _form(race: Race, start: Start, weight_decay: float | None) -> ClosedForm | None:
    """The closed form of a whole race, if there is one."""
    return None if start.joined else race.complete_form(start, weight_decay=weight_decay)


def learning_time(
    race: Race,
    start: Start,
    criterion: float,
    longest: float,
    rtol: float | None = None,
    weight_decay: float | None = None,
) -> LearningTime:
    """When the loss falls to the criterion, and how that was found.

    The closed form is used if there is one. Otherwise the race is solved, for `longest` times one
    over the largest strength. Where it rests before it reaches the criterion, and always where some
    block is a matrix, it may be at a saddle that it leaves by rounding alone: it is solved again
    with another tolerance, from a start that differs by rounding, and the time is unknown if the
    two differ. The time is 0 if the criterion is met at the start.
    """
    if race.constant < criterion <= race.outside:
        return LearningTime(np.inf, "solved race", DROPPED)
    if criterion <= race.constant or not race.blocks:
        return LearningTime(np.inf, "the loss that cannot be learned is above the criterion")
    if min(race.arch.path_lengths) > 1 and not any(
        w.any() for weights in start.weights for w in weights.values()
    ):
        return LearningTime(np.inf, "weights of zero never move")
    form = _form(race, start, weight_decay)
    if form is not None:
        return LearningTime(float(form.time_to_loss(criterion)), "closed form")
    found, rests = _solved_time(race, start, criterion, longest, rtol, weight_decay)
    if rests or any(w.size > 1 for weights in start.weights for w in weights.values()):
        usual = RTOL if rtol is None else rtol
        other = usual / APART if usual > LOOSE else usual * APART
        again, _ = _solved_time(race, _nudged(start), criterion, longest, other, weight_decay)
        if not abs(found.time - again.time) <= PRINTED * found.time:
            return LearningTime(np.inf, "solved race", SADDLE)
    return found


def _solved_time(
    race: Race,
    start: Start,
    criterion: float,
    longest: float,
    rtol: float | None,
    weight_decay: float | None,
) -> tuple[LearningTime, bool]:
    """The time to the criterion by solving the race, and whether the race rests before it.

    The time is bracketed by ever longer spans, the bracket is divided at least twice, until its
    parts are short beside the time, and the last part is interpolated. Each solution starts where
    the previous one ended. Without weight decay the loss can only fall, and no crossing is missed.
    """

    def solve(start: Start, lasts: float) -> Trajectory:
        times = np.linspace(0.0, lasts, POINTS + 1)
        return race.solve(times=times, start=start, rtol=rtol, weight_decay=weight_decay)

    def follow(start: Start, solution: Trajectory) -> Start:
        return later(race.blocks, start, solution)

    first, last = FIRST / _rate(race), longest / _rate(race)
    for now, at, solution in stretches(solve, follow, start, first, last, growth=LATER):
        if solution.loss.min() > criterion:
            continue
        k = int(np.argmax(solution.loss <= criterion))
        rests = now > 0 or _rests(solution, k)  # now > 0: or between two times of a longer piece
        if k == 0:
            return LearningTime(now, "solved race"), rests
        while True:
            begin, end = map(float, solution.time[k - 1 : k + 1])
            now, at = now + begin, later(race.blocks, at, solution, k - 1)
            solution = solve(at, end - begin)
            if solution.loss.min() > criterion:  # by the error of solving
                return LearningTime(now + end - begin, "solved race"), rests
            k = int(np.argmax(solution.loss <= criterion))
            rests = rests or _rests(solution, k)
            if k == 0 or float(solution.time[1]) <= now / POINTS:
                crossed = (
                    float(crossing_time(solution.time, solution.loss, criterion)) if k else 0.0
                )
                return LearningTime(now + crossed, "solved race"), rests
    return LearningTime(np.inf, "solved race", f"not before t = {last:.3g}"), False


def _nudged(start: Start) -> Start:
    """A start whose matrices differ by rounding.

    Single numbers stay as they are: in scalar races that start alike, rounding breaks no symmetry.
    """
    rng = np.random.default_rng(0)

    def nudged(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if all(w.size == 1 for w in block.values()):
            return dict(block)
        return {e: w + NOISE * np.abs(w).max() * rng.normal(size=w.shape) for e, w in block.items()}

    network = None if start.network is None else nudged(start.network)
    return replace(start, weights=tuple(map(nudged, start.weights)), network=network)


def _rests(solution: Trajectory, end: int) -> bool:
    """Whether some block comes to rest and moves again before one of the times of a solution."""
    for weights in solution.values["variables"].values():
        state = np.concatenate(
            [w[: end + 1].reshape(end + 1, -1) for w in weights.values()], axis=1
        )
        size = np.abs(state).max(axis=1)[1:]
        still = np.abs(np.diff(state, axis=0)).max(axis=1) <= BLOCK_RESTS * size
        if still.any() and not still[int(np.argmax(still)) :].all():
            return True
    return False


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
    return strength if strength > NOISE * bound else bound
