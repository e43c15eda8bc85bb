"""What a ReLU network will do, as a result: its loss, its times, its outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, final, overload

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import generator
from neuralrace.dataset import Dataset, zero_loss
from neuralrace.plot import COLOURS, draw_curves, style
from neuralrace.reln import NeuronTypes, Rest
from neuralrace.reln.explained.types.limit import Limit, Start
from neuralrace.reln.explained.types.neuron_types import grouped
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.text import percent, several
from neuralrace.tolerances import ELSEWHERE, LARGE_START
from neuralrace.trajectory import Trajectory, crossing_time
from neuralrace.types import Inside, Key

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("share", "time", "low", "high", "gap")
"""The columns of `Prediction.frame`."""

OUTCOMES = ("outcome", "left", "chance", "low", "high", "decides", "networks")
"""The columns of `Prediction.outcomes`."""

SIMULATED = "simulated networks"
"""The method of a course that is the mean of these, not the wide limit."""


class TimeTo(NamedTuple):
    """When a share of the initial loss is left: `mean`, and from `low` to `high`.

    `mean` is the time of the most likely outcome (`Prediction.likely`), `low` and `high` the first
    and the last of the simulated networks of this width, NaN where there are none. Infinite where
    the loss was not there by the last step.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.predict(nr.tasks.extended_xor(0.4), width=64, scale=1e-3, learning_rate=0.1,
    ...                    steps=400, neurons=500)
    >>> mean, low, high = found.time_to(0.1)
    >>> low < mean < high
    True

    ```
    """

    mean: float
    low: float
    high: float


@final
@dataclass(frozen=True, eq=False)
class Band:
    """The losses between which simulated networks lie: `lower` and `upper` at every time.

    `networks` are their losses, one row per network. Each network was drawn as one of this width
    starts, and trained. A further one is between the lowest and the highest of n networks at any
    one time with a chance of (n − 1)/(n + 1), `chance`, whatever their distribution.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.predict(nr.tasks.extended_xor(0.4), width=64, scale=1e-3, learning_rate=0.1,
    ...                    steps=400, neurons=500)
    >>> band = found.band
    >>> band.networks.shape == (19, len(band.time)), band.chance
    (True, 0.9)

    ```
    """

    time: Float[np.ndarray, " T"]
    networks: Float[np.ndarray, "n T"]

    @property
    def lower(self) -> Float[np.ndarray, " T"]:
        """The lowest loss at every time."""
        return self.networks.min(axis=0)

    @property
    def upper(self) -> Float[np.ndarray, " T"]:
        """The highest loss at every time."""
        return self.networks.max(axis=0)

    @property
    def mean(self) -> Float[np.ndarray, " T"]:
        """The mean loss at every time, which has no error of finite width but that of its draws.

        On average over draws it is at least as near to a further network as one other network is,
        in mean |ΔL|: E|X − (X₁ + … + Xₙ)/n| ≤ E|X − X₁|, by the triangle inequality.
        """
        return self.networks.mean(axis=0)

    @property
    def chance(self) -> float:
        """The chance that a further network is inside at one time, (n − 1)/(n + 1)."""
        many = len(self.networks)
        return (many - 1) / (many + 1)


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """One way in which networks of this width end: its course in the wide limit, and its chance.

    `initial` is the mean initial loss of networks. `rest` is where a network stays that lacks rare
    neurons, None for one that lacks none. `low` and `high` are the 95 % interval of `chance`. Where
    simulated networks end elsewhere than the wide limit, or later, `trajectory` is the mean of as
    many `networks`, which end alike, and the chance is their share. From a large start, it is the
    mean of simulated networks, too.

    ```python
    >>> from neuralrace import Trajectory
    >>> from neuralrace.explanation import Outcome
    >>> Outcome(Trajectory([0, 1], [0.5, 0.1]), initial=0.5, chance=0.9, low=0.7, high=1.0).left
    0.2

    ```
    """

    trajectory: Trajectory
    initial: float
    chance: float
    low: float
    high: float
    rest: Rest | None = None
    networks: int = 0

    @property
    def left(self) -> float:
        """The part of the initial loss that is left at the end."""
        return float(self.trajectory.loss[-1]) / self.initial


@final
@dataclass(frozen=True, eq=False)
class Prediction(Result):
    """What a ReLU network with one hidden layer will do; see `predict`.

    `trajectory` is the wide limit. `start` says how weights start, `criteria` are the shares of the
    initial loss that were asked for, and `initial` is that loss, the mean over networks of this
    width. `courses` are the outcomes, the most likely first; `outcomes` is their table. `no_types`
    says why there are no `types`; it is empty where there are.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.predict(nr.tasks.extended_xor(0.4), width=64, scale=1e-3, learning_rate=0.1,
    ...                    steps=400, neurons=500)
    >>> found.frame().columns.tolist(), len(found.outcomes)
    (['share', 'time', 'low', 'high', 'gap'], 1)
    >>> found.types is not None and found.no_types == ""
    True

    ```
    """

    _asked = ("types",)

    trajectory: Trajectory
    start: Start
    courses: tuple[Outcome, ...]
    initial: float
    criteria: tuple[float, ...]
    data: Dataset
    leak: float
    key: Key
    init: str | None
    no_types: str
    networks: Float[np.ndarray, "n T"] = field(repr=False)
    _limit: Limit | None = field(repr=False, default=None, metadata={"save": False})

    @property
    def band(self) -> Band | None:
        """Simulated networks of this width, and between which losses they lie; None without."""
        return Band(self.trajectory.time, self.networks) if len(self.networks) else None

    @property
    def likely(self) -> Trajectory:
        """The course of the most likely outcome; `trajectory` where that is the only one."""
        return self.courses[0].trajectory

    @property
    def gap(self) -> float:
        """The part of the mean initial loss of networks that the wide limit lacks.

        It is the variance of their random first function.
        """
        return 1 - zero_loss(self.data) / self.initial

    @property
    def is_large(self) -> bool:
        """Whether the weights start too large for the wide limit to stand for networks (`gap`)."""
        return self.gap > LARGE_START

    def time_to(self, share: Inside) -> TimeTo:
        """When a share of the initial loss is left, of the mean over networks of this width.

        ```python
        >>> import neuralrace as nr
        >>> found = nr.predict(nr.tasks.extended_xor(0.4), width=64, scale=1e-3, learning_rate=0.1,
        ...                    steps=400, neurons=500)
        >>> found.time_to(0.5).mean < found.time_to(0.1).mean
        True

        ```
        """
        mean, many = self._reached(self.likely.loss, share), self._times(share)
        return TimeTo(mean, min(many, default=math.nan), max(many, default=math.nan))

    def _times(self, share: float) -> list[float]:
        """When each of the simulated networks is there."""
        return [self._reached(loss, share) for loss in self.networks]

    def _reached(self, loss: np.ndarray, share: float) -> float:
        """When a loss is first down to a share of `initial`; infinite where it never is."""
        if loss[0] <= share * self.initial:
            return 0.0
        found = float(crossing_time(self.trajectory.time, loss, share * self.initial))
        return math.inf if math.isnan(found) else found

    @property
    def outcomes(self) -> pandas.DataFrame:
        """The ways in which networks of this width end, the most likely first.

        `left`, the part of the initial loss that is left; `chance` of this outcome with its 95 %
        interval from `low` to `high`; `decides`, what decides; `networks`, how many of the
        simulated ones end so.
        """
        near = ended(self.networks, self.courses)
        rows = [
            {
                "outcome": i + 1,
                "left": each.left,
                "chance": each.chance,
                "low": each.low,
                "high": each.high,
                "decides": _decides(each, bool(self.rests)),
                "networks": each.networks or int((near == i).sum()),
            }
            for i, each in enumerate(self.courses)
        ]
        return framed(OUTCOMES, rows, dict.fromkeys(("left", "chance", "low", "high"), SHARE))

    @property
    def rests(self) -> tuple[Rest, ...]:
        """The rests at which networks stay that lack rare neurons."""
        return tuple(each.rest for each in self.courses if each.rest is not None)

    @cached_property
    def types(self) -> NeuronTypes | None:
        """The few types of neurons that explain the prediction, where neurons align: `reln.types`.

        Computed when it is first asked for. None where `no_types` says why there are none.
        """
        if self.no_types:
            return None
        settings = self.trajectory.settings
        limit = self._limit or Limit.of(
            self.data, self.start, settings["learning_rate"], settings["steps"], self.leak,
            settings["neurons"], generator(self.key),
        )  # fmt: skip
        return grouped(self.data, limit, None, self.rests, self.key)

    def frame(self) -> pandas.DataFrame:
        """One row per criterion.

        `share` of the initial loss; `time` at which the wide limit of the most likely outcome is
        there; `low` and `high`, the first and the last of the simulated networks. Infinite where
        it was not reached by the last step. `gap`, the part of the mean initial loss of networks
        that the wide limit lacks; where it is large, `time` is that of simulated networks.
        """
        times = [(share, *self.time_to(share), self.gap) for share in self.criteria]
        rows = [dict[str, float](zip(COLUMNS, row, strict=True)) for row in times]
        return framed(COLUMNS, rows, {"share": SHARE, "gap": SHARE})

    def sentences(self) -> tuple[Sentence, ...]:
        """What the network will do, and what that rests on."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        width, many = self.start.width, len(self.networks)
        yield Sentence(
            "answer",
            f"A ReLU network of width {width} {self._started}: {self._answer}.",
        )
        if self.is_large:
            yield Sentence(
                "large",
                f"The start is large: {percent(self.gap)} of the initial loss, {self.initial:.4g}, "
                "is that of the random first function, which the wide limit lacks.",
            )
        if len(self.data.x) > 1:
            yield Sentence(
                "inputs",
                f"{several([*self.data.x])} are taken as plain inputs side by side: every neuron "
                "sees all of them at once.",
            )
        for rest in self.rests:
            yield Sentence("rare", str(rest))
        if self.band is not None:
            yield Sentence(
                "band",
                f"The time is that of {self._whose}; the interval is that of {many} simulated "
                "ones. A further network is "
                f"inside with a chance of {percent(self.band.chance)}.",
            )
        else:
            yield Sentence("band", "No network was simulated, so that there is no interval.")
        yield Sentence(
            "types",
            f"It has no explanation by types of neurons: {self.no_types}."
            if self.no_types
            else "Neurons align before the loss falls: .types says which types they form.",
        )

    @property
    def _started(self) -> str:
        if self.init is not None:
            return "started as PyTorch starts it"
        sizes = {float(each) for each in np.unique(self.start.w)} | {*map(float, self.start.a)}
        sizes |= set() if self.start.c is None else {*map(float, self.start.c)}
        if len(sizes) == 1:
            return f"started at σ = {sizes.pop():.4g}"
        return f"started at σ = {min(sizes):.4g} to {max(sizes):.4g}"

    @property
    def _whose(self) -> str:
        """Whose time the first one is."""
        if self.likely.settings.get("method") == SIMULATED:
            return "the mean of simulated networks"
        return f"the wide limit, for which no network of width {self.start.width} is trained"

    @property
    def _answer(self) -> str:
        share, likely = self.criteria[0], self.courses[0]
        time, low, high = self.time_to(share)
        end, left = f"t = {self.trajectory.time[-1]:.4g}", f"{percent(share)} of the loss is left"
        when = self._times(share)
        many, there = len(when), int(np.isfinite(when).sum())
        simulated = f"{many} simulated network{'s' * (many > 1)}"
        late = 2 * there < many and not math.isinf(time)
        if math.isinf(time):
            said = (
                f"{percent(likely.left)} of the loss is left at {end}, more than {percent(share)}"
            )
            said += f", and in all of {simulated}" * (many > there == 0)
        elif late:
            said = f"no more than {there} of {simulated} have {percent(share)} of the loss left by "
            said += f"{end}; {self._whose.split(',')[0]} gets there at t = {time:.4g}"
        else:
            said = f"{left} at t = {time:.4g}"
            said += f" ({low:.4g} to {high:.4g} in {simulated})" * (many == there > 0)
        if there and not late and (there < many or math.isinf(time)):
            said += f"; {there} of {simulated} get there, from t = {low:.4g} on"
        if len(self.courses) > 1:
            said += f". This has a chance of {percent(likely.chance)}"
            rest = self.courses[1:]
            for other in (each for each in rest if not each.networks):
                said += f"; with a chance of {percent(other.chance)}, {self._where(other)}, "
                said += f"{percent(other.left)} of the loss is left at the end"
            others = [each for each in rest if each.networks]
            if others:
                chance = percent(sum(each.chance for each in others))
                ends = [percent(pick(each.left for each in others)) for pick in (min, max)]
                said += f"; with a chance of {chance}, {self._where(others[0])}, "
                said += f"{' to '.join(dict.fromkeys(ends))} of the loss is left at the end"
        return said

    def _where(self, outcome: Outcome) -> str:
        """In which networks, in few words."""
        if outcome.networks:
            return "elsewhere or later, as simulated networks"
        if not self.rests:
            return "as the wide limit"
        return f"with{'out' * (outcome.rest is not None)} rare neurons"

    @overload
    def plot(self, *, ax: None = None) -> Figure: ...
    @overload
    def plot(self, *, ax: Axes) -> Axes: ...
    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """The loss of every outcome over time, between those of simulated networks."""
        many = len(self.courses) > 1
        name = lambda each: (
            (
                "mean of networks"
                if each.trajectory.settings.get("method") == SIMULATED
                else "wide limit"
            )
            + (f" to {percent(each.left)}, chance {percent(each.chance)}" * many)
        )
        curves = {name(each): each.trajectory.loss for each in self.courses}
        with style():
            drawn = draw_curves(self.trajectory.time, curves, kind="theory", ax=ax)
            if self.band is not None:
                label = f"{len(self.networks)} simulated networks"
                drawn.fill_between(
                    self.band.time, self.band.lower, self.band.upper, alpha=0.25, linewidth=0,
                    color=COLOURS["neutral"], label=label,
                )  # fmt: skip
            drawn.set(ylim=(0, None), xlim=(0, self.trajectory.time[-1]))
            drawn.legend()
        return drawn if ax is not None else drawn.figure  # type: ignore[return-value]


def ended(losses: Float[np.ndarray, "n T"], courses: Sequence[Outcome]) -> Int[np.ndarray, " n"]:
    """Which of the outcomes of the wide limit every network comes to, −1 where it is none."""
    ends = losses[:, -1] / courses[0].initial
    far = [math.inf if course.networks else course.left for course in courses]
    apart = np.abs(ends[:, None] - far)
    return np.where(apart.min(axis=1) <= ELSEWHERE, apart.argmin(axis=1), -1)


def _decides(outcome: Outcome, rests: bool) -> str:
    if outcome.networks:
        return "chance: simulated networks are later than the wide limit, or end elsewhere"
    if outcome.rest is None:
        return "it has the neurons that later learning needs" if rests else "nothing rare"
    return f"it lacks the neurons that end the rest at t = {outcome.rest.time:.4g}"
