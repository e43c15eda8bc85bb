"""A race over one or two parameters: who leads where, and where that changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, final

import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_array
from neuralrace.contests.contest import Contest, contest_by
from neuralrace.contests.outcome import KNOWN, nobody
from neuralrace.contests.paths import PathRace, path_race
from neuralrace.contests.pictures import draw_map, draw_phases
from neuralrace.contests.times import CandidatesLike, Rule, StartsLike, foremost
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.progress import progress
from neuralrace.reduction.start import LARGE_HOLDS
from neuralrace.results import SHARE, TIME, Result, Sentence, framed
from neuralrace.text import several
from neuralrace.tolerances import (
    CHANGES,
    CROSSOVER,
    CROSSOVERS,
    EQUAL,
    LONGEST,
    NEAR_RIVAL,
    ROUNDING,
    SCALE,
)
from neuralrace.types import (
    ArrayLike,
    Count,
    Finite,
    Key,
    NotNegative,
    Positive,
    Scale,
    Share,
    Tolerance,
)

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

    from neuralrace.architecture import Architecture
    from neuralrace.dataset import Dataset
    from neuralrace.reduction import Race


Point: TypeAlias = float | tuple[float, ...]
"""The value of the parameter or, of several, the values of all in their order."""

VARIED = ("scale", "start", "criterion", "weight_decay")
"""Parameters of these names vary the argument of the diagram; all others are those of `build`."""

HALVINGS = 2
"""How often an interval with one winner at both ends is halved to look for another one inside."""


@final
@dataclass(frozen=True)
class Crossover:
    """A change of winner: the parameter's value, and who wins below and above it.

    With two parameters, `value` is that of the parameter `along`, and `at` has the other one's.
    """

    value: float
    below: str | None
    above: str | None
    along: str = ""
    at: Mapping[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True, eq=False)
class PhaseDiagram(Result):
    """Who leads a race over one or two parameters, and where that changes.

    See `phase_diagram`. `axes` has the values of every parameter, `(V,)` each. `measured[name]` is
    one number for each of their combinations, in an array of their `shape`: of gatings, the
    learning time (`times`), of paths, the strength (`strengths`). `crossovers` are the refined
    changes of winner along every line of the grid; `residual` is the largest coupling that any of
    the reductions dropped; `contests` has a `Contest` of gatings, or a `PathRace`, for every point
    that was computed: the parameter's value or, of several, a tuple.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> def gatings(delta):
    ...     data = nr.tasks.extended_xor(delta)
    ...     return {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}
    >>> phases = nr.phase_diagram(gatings, "delta", np.linspace(0, 2, 9), scale=1e-3)
    >>> phases.winners[0], phases.winners[-1], round(phases.crossovers[0].value, 6)
    ('xor', 'linear', 0.816497)

    ```
    """

    axes: Mapping[str, Float[np.ndarray, " V"]]
    race: Literal["gatings", "paths"]
    measured: Mapping[str, Float[np.ndarray, "*shape"]]
    crossovers: tuple[Crossover, ...]
    start: str
    criterion: str
    residual: float
    contests: Mapping[Point, Contest | PathRace]
    make: Callable[[Point], Contest | PathRace] | None = field(
        default=None, metadata={"save": False}
    )

    _asked = ("_kept",)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.axes)

    @property
    def parameter(self) -> str:
        """The name of the first parameter."""
        return self.parameters[0]

    @property
    def values(self) -> Float[np.ndarray, " V"]:
        """The values of the first parameter."""
        return self.axes[self.parameter]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values every parameter has."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def points(self) -> tuple[Point, ...]:
        """All combinations of the parameters' values, the last parameter moving fastest.

        Of one parameter they are numbers, of two they are pairs.
        """
        every = product(*(map(float, values) for values in self.axes.values()))
        return tuple(map(_plain, every))

    @property
    def times(self) -> Mapping[str, Float[np.ndarray, "*shape"]]:
        """The learning time of every gating; infinite for never, and where it is not known."""
        self._check_race("gatings", "learning times", "strengths, of the paths")
        return self.measured

    @property
    def strengths(self) -> Mapping[str, Float[np.ndarray, "*shape"]]:
        """The strength of every path at the stated moment, with its sign; see `PathRace`."""
        self._check_race("paths", "strengths of paths", "times, of the gatings")
        return self.measured

    def _check_race(self, race: str, what: str, fix: str) -> None:
        require(
            self.race == race,
            f"a phase diagram of {self.race} has no {what}",
            got=f"race={self.race!r}",
            wanted=f"race={race!r}",
            fix=f"phase_diagram(…, race={race!r}), or ask for {fix}",
        )

    def _at(self, point: Point) -> Contest | PathRace:
        if point in self.contests:
            return self.contests[point]
        if self.make is None:
            raise NeuralRaceError(
                "a diagram that was loaded cannot hold new contests",
                got=f"value = {point}",
                wanted="one of contests",
                fix="make the diagram again with nr.phase_diagram",
            )
        return self.make(point)

    def _point(self, value: float, other: float | None) -> Point:
        """The point with these values, within the ranges of the diagram."""
        point = (float(value),) if other is None else (float(value), float(other))
        require(
            len(point) == len(self.axes),
            "a point has one value for every parameter",
            got=f"value={value!r}, other={other!r}",
            wanted=f"values of {listed(self.parameters)}",
            fix="contest_at(value) with one parameter, contest_at(value, other) with two",
        )
        return _plain(point)

    @door
    def contest_at(self, value: Finite, other: Finite | None = None) -> Contest | PathRace:
        """The contest, or the race of paths, at a point: one of `contests`, or a new one.

        A diagram that was loaded knows no other values than those of `contests`.

        ```python
        >>> import neuralrace as nr
        >>> def gatings(delta):
        ...     return {"linear": nr.tasks.linear_pathways(nr.tasks.extended_xor(delta))}
        >>> phases = nr.phase_diagram(gatings, "delta", [0.5, 1.0])
        >>> round(phases.contest_at(1.0).times["linear"], 2)
        9.81

        ```
        """
        return self._at(self._point(value, other))

    def check(self) -> tuple[bool | None, ...]:
        """Whether a ReLU network would keep the winner's gates, at every one of `points`.

        None where no candidate reaches the criterion, or where the check cannot tell
        (`Check.keeps`). `contest_at(value).check()` has the full answer. It takes seconds per
        value, and shows its progress. The result is remembered, and shown by `print` and `plot`
        from then on. Paths inside one network have gates that are given: they have no check.
        """
        self._check_race("gatings", "check", "strengths")
        return self._kept

    @property
    def kept(self) -> tuple[bool | None, ...]:
        """What `check` finds; makes the check."""
        return self.check()

    @property
    def checked(self) -> tuple[bool | None, ...] | None:
        """What `check` found, or None where nobody asked yet."""
        return self.__dict__.get("_kept")

    @cached_property
    def _kept(self) -> tuple[bool | None, ...]:
        found = []
        with progress(len(self.points), "checking gates", "values") as advance:
            for point, winner in zip(self.points, self.winners, strict=True):
                cell = None if winner is None else cast(Contest, self._at(point))
                found.append(None if cell is None else cell.keeps(str(winner)))
                advance(1)
        return tuple(found)

    @property
    def large(self) -> tuple[Point, ...]:
        """The points at which a start is too large for learning times to be known."""
        return tuple(
            point
            for point in self.points
            if any(entrant.start.is_large for entrant in self.contests[point].entrants.values())
        )

    @property
    def unknown(self) -> dict[str, tuple[Point, ...]]:
        """The points at which the time of a candidate is not known: see `Entrant.is_unknown`.

        It counts as late there, so that another one may be called first. Of paths, those at which
        the moment is not known.
        """
        found: dict[str, tuple[Point, ...]] = {}
        for point in self.points:
            for name, entrant in self.contests[point].entrants.items():
                if entrant.is_unknown:
                    found[name] = (*found.get(name, ()), point)
        return found

    @door
    def is_unsure(self, low: float, high: float) -> bool:
        """Whether the time of some candidate is not known at one of the values from low to high.

        ```python
        >>> import neuralrace as nr
        >>> def gatings(delta):
        ...     return {"linear": nr.tasks.linear_pathways(nr.tasks.extended_xor(delta))}
        >>> nr.phase_diagram(gatings, "delta", [0.5, 1.0]).is_unsure(0.5, 1.0)
        False

        ```
        """
        return any(low <= _of(point)[0] <= high for each in self.unknown.values() for point in each)

    @property
    def winners(self) -> tuple[str | None, ...]:
        """Who is first at every one of `points`; of several that are equal, the one given first."""
        return tuple(next(iter(names), None) for names in self.tied)

    @property
    def tied(self) -> tuple[tuple[str, ...], ...]:
        """The winner at every one of `points`, and those that are equal to it."""
        flat = {name: values.ravel() for name, values in self.measured.items()}
        return tuple(
            foremost(_scores(self.race, {name: values[k] for name, values in flat.items()}))
            for k in range(len(self.points))
        )

    @door
    def winner_at(self, value: Finite, other: Finite | None = None) -> str | None:
        """Who is first at any values within the ranges.

        With one parameter, according to the crossovers found; with two, by computing it there.

        ```python
        >>> import neuralrace as nr
        >>> def gatings(delta):
        ...     data = nr.tasks.extended_xor(delta)
        ...     linear, xor = nr.tasks.linear_pathways(data), nr.tasks.xor_pathways(data)
        ...     return {"linear": linear, "xor": xor}
        >>> nr.phase_diagram(gatings, "delta", [0.5, 1.0], scale=1e-3).winner_at(0.8)
        'xor'

        ```
        """
        point = self._point(value, other)
        for (name, values), each in zip(self.axes.items(), _of(point), strict=True):
            require(
                values[0] <= each <= values[-1],
                f"the phase diagram does not reach that far in {name!r}",
                got=each,
                wanted=f"a value between {values[0]:g} and {values[-1]:g}",
                fix="make the diagram over a wider range",
            )
        if len(self.axes) > 1:
            return self._at(point).winner
        passed = [c for c in self.crossovers if c.value <= value]
        return passed[-1].above if passed else self.winners[0]

    @door
    def plot(
        self,
        *,
        trained: tuple[ArrayLike, ArrayLike] | None = None,
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """Times or strengths over the parameter, the winner's range shaded; a map over two.

        Words at the bottom say who is first in each range. Straight lines join what was computed
        at `values`. Crossovers are computed, not read off these lines: with few values, lines may
        cross beside the mark. `trained` are values of the parameter `(V,)` and the learning times
        of ReLU networks trained there `(V, seeds)`; they are drawn as points. Over two parameters,
        every cell has the colour of its winner, and dots are the refined boundaries; axes whose
        values grow by equal factors are logarithmic.
        """
        if len(self.axes) > 1:
            require(
                trained is None,
                "trained networks are drawn over one parameter",
                got=f"a map over {listed(self.parameters)}",
                wanted="no trained",
                fix="leave out trained",
            )
            return draw_map(self, ax)
        return draw_phases(self, trained, ax)

    @door
    def equals(self, low: float, high: float) -> list[str]:
        """The candidates that are equal to the winner at all values of a range."""
        pairs = zip(self.points, self.tied, strict=True)
        inside = [names for point, names in pairs if low <= _of(point)[0] <= high]
        return [n for n in inside[0][1:] if all(n in names for names in inside)] if inside else []

    def frame(self) -> pandas.DataFrame:
        """One row per point and candidate.

        `value`, of the parameter; `other`, of the second one, NaN where there is none;
        `candidate`, a gating or a path; `time`, that of the gating, or the moment at which paths
        are compared, infinite for never, NaN where it is not known; `strength`, that of a path,
        otherwise NaN; `first`, whether it wins there or is equal to the winner; `kept`, whether a
        ReLU network would keep its gates: known of winners, after `check`.
        """
        kept = self.checked or (None,) * len(self.points)
        rows = []
        for k, (point, first) in enumerate(zip(self.points, self.tied, strict=True)):
            entrants = self.contests[point].entrants
            for name, values in self.measured.items():
                entrant = next(iter(entrants.values())) if self.is_of_paths else entrants[name]
                row = {
                    "value": _of(point)[0],
                    "other": (*_of(point), np.nan)[1],
                    "candidate": name,
                    "time": np.nan if entrant.is_unknown else entrant.time,
                    "strength": float(values.ravel()[k]) if self.is_of_paths else np.nan,
                    "first": name in first,
                    "kept": kept[k] if name == next(iter(first), None) else None,
                }
                rows.append(row)
        columns = ("value", "other", "candidate", "time", "strength", "first", "kept")
        return framed(columns, rows, {"time": TIME})

    @property
    def is_of_paths(self) -> bool:
        """Whether paths inside one network are compared, not gatings."""
        return self.race == "paths"

    @property
    def counts(self) -> dict[str | None, int]:
        """At how many of `points` each is first; None stands for nobody.

        ```python
        >>> import neuralrace as nr
        >>> def gatings(delta):
        ...     return {"linear": nr.tasks.linear_pathways(nr.tasks.extended_xor(delta))}
        >>> nr.phase_diagram(gatings, "delta", [0.5, 1.0]).counts
        {'linear': 2}

        ```
        """
        every = [*self.measured, None]
        return {name: self.winners.count(name) for name in every if name in self.winners}

    def _printed(self) -> pandas.DataFrame:
        """Who is first in each range of the parameter; of two, at how many points."""
        if len(self.axes) > 1:
            rows = [
                {"first": name or "nobody", "points": count, "share": count / len(self.points)}
                for name, count in self.counts.items()
            ]
            return framed(("first", "points", "share"), rows, {"share": SHARE})
        edges = [self.values[0], *(c.value for c in self.crossovers), self.values[-1]]
        rows = []
        for low, high in pairwise(map(float, edges)):
            inside = zip(self.values, self.checked or (), strict=False)
            kept = [each for v, each in inside if low <= v <= high and each is not None]
            unsure, winner = self.is_unsure(low, high), self.winner_at((low + high) / 2)
            winner = nobody(unsure) if winner is None else winner + KNOWN * unsure
            row = {"from": low, "to": high, "first": winner, "equal": self.equals(low, high)}
            rows.append(row | {"kept": f"{sum(kept)} of {len(kept)}" if kept else ""})
        return framed(("from", "to", "first", "equal", "kept"), rows)

    def sentences(self) -> tuple[Sentence, ...]:
        """Where the winner changes, what was asked, and what is not known."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        known = [kept for kept in self.checked or () if kept is not None]
        often = f"; ReLU networks would keep the winner's gates at {sum(known)} of {len(known)} "
        if self.large:
            said = f"At {len(self.large)} of {len(self.points)} values the start is too large for "
            yield Sentence("large", f"{said}learning times to be known. {LARGE_HOLDS}")
        yield Sentence("first", f"{self._first()}{f'{often}values' if known else ''}.")
        if self.checked is None and not self.is_of_paths:
            text = "Not checked: would ReLU networks keep these gates? Ask check()."
            yield Sentence("unchecked", text)
        asked = "Paths are compared at" if self.is_of_paths else "Criterion:"
        yield Sentence("basis", f"{asked} {self.criterion}; start: {self.start}.")
        for name, points in self.unknown.items():
            text = f"{name} at {len(points)} of {len(self.points)} values: when it learns is not "
            yield Sentence("unknown", f"{text}known.")
        entered = (each for contest in self.contests.values() for each in contest.entrants.items())
        inexact = {n: entrant.race.exactness for n, entrant in entered if not entrant.race.is_exact}
        for name, exactness in inexact.items():
            yield Sentence("inexact", f"{name}: its reduction is {exactness}.")

    def _first(self) -> str:
        """Who is first where, without the full stop."""
        what = "path" if self.is_of_paths else "gating"
        if len(self.axes) > 1:
            over = " and ".join(f"{n} from {v[0]:.4g} to {v[-1]:.4g}" for n, v in self.axes.items())
            each = [f"{name or f'no {what}'} at {count}" for name, count in self.counts.items()]
            text = f"Who {'leads' if self.is_of_paths else 'is first'} over {over}: {several(each)}"
            return f"{text} of {len(self.points)} points"
        name = self.parameter
        if not self.crossovers:
            verb = "leads" if self.is_of_paths else "is first"
            text = f"{self.winners[0] or f'No {what}'} {verb} for {name} from "
            return f"{text}{self.values[0]:.4g} to {self.values[-1]:.4g}"
        none = f"no {what}" + " whose time is known" * bool(self.unknown)
        places = ", ".join(
            f"from {c.below or none} to {c.above or none} at {name} = {c.value:.4f}"
            for c in self.crossovers
        )
        which = "path that leads" if self.is_of_paths else "gating that learns first"
        return f"Without training anything, the {which} is predicted to change {places}"


def _plain(values: tuple[float, ...]) -> Point:
    """A point: its one number, or a tuple."""
    return values[0] if len(values) == 1 else values


def _of(point: Point) -> tuple[float, ...]:
    """The values of a point, in the order of the parameters."""
    return point if isinstance(point, tuple) else (point,)


def _scores(race: str, measured: Mapping[str, float]) -> dict[str, float]:
    """Numbers of which the largest leads: speeds of gatings, sizes of the strengths of paths."""
    if race == "gatings":
        return {name: float(1 / time) for name, time in measured.items()}
    return {name: float(np.nan_to_num(abs(strength))) for name, strength in measured.items()}


Build: TypeAlias = Callable[..., Any]
"""Makes what races at values of the parameters: named gatings, or one network."""


@door
def phase_diagram(
    build: Build,
    parameter: str | Mapping[str, ArrayLike],
    values: ArrayLike | None = None,
    *,
    race: Literal["gatings", "paths"] = "gatings",
    start: StartsLike | None = None,
    scale: Scale | None = None,
    criterion: Positive = 0.2,
    relative: bool = False,
    mode: str | None = None,
    at: Positive | None = None,
    longest: Positive = LONGEST,
    tolerance: Positive | None = None,
    width: Count | None = None,
    key: Key = 0,
    rtol: Tolerance | None = None,
    weight_decay: NotNegative | None = None,
    precision: Positive | None = None,
    leak: Share = 0.0,
    bias: bool = False,
    check: bool = False,
) -> PhaseDiagram:
    """Who leads a race at every value of one or two parameters, and where the leader changes.

    With `race="gatings"`, the candidate gatings of a `contest` race for the criterion. With
    `race="paths"`, the paths inside one network race: the strongest one leads, by the size of its
    strength (`PathRace`) at a moment, which is when the loss of the network reaches the criterion,
    or the time `at`.

    **Boundaries.** Between two neighbouring values with different winners, the crossover is a root
    of the difference of their speeds (one over learning time), or of the sizes of their strengths.
    If a third candidate is first in between, its crossovers are found in the same way. A range in
    which no candidate reaches the criterion has a crossover at each end. Where two neighbouring
    values have the same winner, another one is looked for between them only if it is near the
    winner at one of them and their distance changes in between: a range inside in which it wins can
    be missed, so take values that are close enough. Candidates that are equal at every value have
    no crossover. With two parameters this is done along every line of the grid.

    After `check=True` or `PhaseDiagram.check()`, `print` and `plot` mark the values at which a ReLU
    network would not keep the winner's gates (see `contest`); this takes seconds per value.

    **Arguments:** `build`, a function that returns `{name: (arch, data)}`, always with the same
    names, or for paths one `(arch, data)`. With the name of one `parameter` and its increasing
    `values`, it is called with the value. With `{parameter: values}` of one or two parameters it is
    called with their values by name, `build(share=0.2)`, but for those named `scale`, `start`,
    `criterion` or `weight_decay`: these vary the argument of that name, and networks that differ in
    them alone are reduced once. `mode` compares paths in this block of the race alone (by default
    in all), and `at` at a time. `precision` of a crossover is a share of the distance between
    neighbouring values, by default 1e-9, with two parameters 1e-3. The others are as in `contest`;
    for paths, `scale` without a known average, as for paths of three edges, draws the weights from
    `key`.

    ```python
    >>> import neuralrace as nr
    >>> def gatings(delta):
    ...     data = nr.tasks.extended_xor(delta)
    ...     return {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}
    >>> phases = nr.phase_diagram(gatings, "delta", [0, 2], start=1e-3)
    >>> print(phases)  # doctest: +NORMALIZE_WHITESPACE
    Without training anything, the gating that learns first is predicted to change
    from xor to linear at delta = 0.8729.
      from      to  first
         0  0.8729  xor
    0.8729       2  linear
    Not checked: would ReLU networks keep these gates? Ask check().
    Criterion: loss 0.2; start: equal aligned starts: every edge at 0.001, whatever its width.
    >>> found = nr.phase_diagram(gatings, {"start": [1e-6, 1e-2], "delta": [0.5, 2]})
    >>> found.winners, [round(c.value, 3) for c in found.crossovers]
    (('xor', 'linear', 'xor', 'linear'), [0.844, 0.903])

    ```
    """
    require(
        callable(build),
        "a phase diagram needs the candidates at any value: build must be a function",
        got=type(build).__name__,
        wanted="a function of the parameter's value",
        fix="lambda value: {'xor': nr.tasks.xor_pathways(nr.tasks.extended_xor(value))}",
    )
    of_paths = race == "paths"
    for name, used, only in (
        ("mode", mode is not None, "paths"),
        ("at", at is not None, "paths"),
        ("check", check, "gatings"),
        ("leak", leak != 0, "gatings"),
        ("width", width is not None, "gatings"),
    ):
        require(
            not used or race == only,
            f"{name} is an argument for race={only!r}",
            got=f"{name}= with race={race!r}",
            wanted=f"race={only!r}",
            fix=f"leave out {name}",
        )
    axes = _axes(parameter, values)
    varied = [name for name in axes if name in VARIED] if values is None else []
    precision = precision or (CROSSOVER if len(axes) == 1 else CROSSOVERS)
    options = {"start": start, "scale": scale, "criterion": criterion, "weight_decay": weight_decay}
    for name in varied:
        options[name] = float(axes[name][0])
    if options["start"] is None and options["scale"] is None:
        options["scale"] = SCALE
    rule = Rule(
        relative=relative, longest=longest, tolerance=tolerance, rtol=rtol, leak=leak, bias=bias,
        draws=key if of_paths else None, **options,
    )  # fmt: skip

    def hold(point: tuple[float, ...], made: Made) -> Contest | PathRace:
        here = replace(rule, **{n: v for n, v in zip(axes, point, strict=True) if n in varied})
        if isinstance(made, Mapping):
            return contest_by(here, made, width, key)
        return path_race(here, made, mode, at)

    scout = _Scout(_Builder(build, race, tuple(axes), varied, values is None), hold)
    grid = list(product(*(map(float, each) for each in axes.values())))
    with progress(len(grid) + _gaps(axes), "phase diagram", "points") as advance:
        for point in grid:
            scout.at(point)
            advance(1)
        crossovers = [
            crossover
            for along in range(len(axes))
            for crossover in scout.crossovers(axes, along, precision, advance)
        ]
    every = [scout.measured(point) for point in grid]
    names = dict.fromkeys(name for each in every for name in each)
    shape = tuple(map(len, axes.values()))
    missing = 0.0  # of a path that is never on
    what = f"{criterion:g} of ½⟨‖y‖²⟩" if relative else f"loss {criterion:g}"
    what = "the criterion of each" if "criterion" in varied else what
    seen = {_plain(point): cell for point, cell in scout.seen.items()}
    diagram = PhaseDiagram(
        axes,
        race,
        {n: np.array([each.get(n, missing) for each in every]).reshape(shape) for n in names},
        tuple(crossovers),
        "as each has it" if {"scale", "start"} & {*varied} else rule.describe(),
        what if at is None else f"t = {at:g}",
        scout.residual,
        seen,
        lambda point: scout.at(_of(point)),
    )
    if check:
        diagram.check()
    return diagram


def _axes(
    parameter: str | Mapping[str, ArrayLike], values: ArrayLike | None
) -> dict[str, np.ndarray]:
    """The values of every parameter, or an error."""
    named = isinstance(parameter, str)
    require(
        named == (values is not None),
        "a phase diagram needs the values of its parameters",
        got=f"parameter={parameter!r:.60} {'without' if named else 'and'} values",
        wanted="the name of one parameter and its values, or {parameter: values}",
        fix="phase_diagram(build, 'delta', np.linspace(0, 2, 21)), or "
        "phase_diagram(build, {'scale': [1e-3, 1e-2], 'delta': np.linspace(0, 2, 21)})",
    )
    asked = {parameter: values} if isinstance(parameter, str) else dict(parameter)
    require(
        0 < len(asked) <= 2,
        "a phase diagram has one or two parameters",
        got=listed(asked),
        wanted="{parameter: values} with one or two names",
        fix="nr.sweep computes a function over more",
    )
    return {name: _increasing(name, each) for name, each in asked.items()}


def _increasing(name: str, values: ArrayLike | None) -> np.ndarray:
    fix = "for example np.linspace(0, 2, 21)"
    grid = np.atleast_1d(real_array("values", values, fix=fix))
    require(
        grid.ndim == 1 and len(grid) > 1 and np.isfinite(grid).all() and (np.diff(grid) > 0).all(),
        f"the values of the parameter {name!r} must increase",
        got=np.array2string(grid, threshold=6),
        wanted="two or more increasing finite numbers",
        fix=fix,
    )
    return grid


def _gaps(axes: Mapping[str, np.ndarray]) -> int:
    """How many pairs of neighbours a grid has."""
    counts = [len(values) for values in axes.values()]
    return sum(int(np.prod(counts)) * (n - 1) // n for n in counts)


WANTED = {"gatings": "{name: (arch, data)}", "paths": "one (arch, data)"}
"""What a `Build` returns."""

Made: TypeAlias = "CandidatesLike | tuple[Architecture, Dataset] | Race"
"""What a `Build` made, reduced or not."""


class _Builder:
    """What races at a point; where points differ in an argument of the diagram alone, made once."""

    def __init__(
        self, build: Build, race: str, names: tuple[str, ...], varied: Sequence[str], by_name: bool
    ) -> None:
        self.build, self.race, self.by_name = build, race, by_name
        self.names, self.varied = names, varied
        self.made: dict[tuple[float, ...], Made] = {}

    def at(self, point: tuple[float, ...]) -> Made:
        own = {n: v for n, v in zip(self.names, point, strict=True) if n not in self.varied}
        at = tuple(own.values())
        if at not in self.made:
            self._check_takes(own)
            made = self.build(**own) if self.by_name else self.build(*at)
            require(
                isinstance(made, Mapping) == (self.race == "gatings"),
                f"build does not return what race={self.race!r} needs",
                got=type(made).__name__,
                wanted=WANTED[self.race],
                fix="race='gatings' compares gatings, race='paths' the paths of one network",
            )
            self.made[at] = made
        return self.made[at]

    def _check_takes(self, own: Mapping[str, float]) -> None:
        """Raise where the function does not take the parameters that are its own."""
        try:
            call = inspect.signature(self.build)
            _ = call.bind(**own) if self.by_name else call.bind(*own.values())
        except TypeError as error:
            raise NeuralRaceError(
                "build does not take the parameters of the diagram",
                got=str(error),
                wanted=f"a function of {listed(own)}",
                fix=f"{', '.join(VARIED)} vary arguments of the diagram; all others are passed to "
                "build by name",
            ) from None
        except ValueError:  # of a compiled function, whose parameters are not known
            return

    def keep(self, point: tuple[float, ...], cell: Contest | PathRace) -> None:
        """Keep the races that a cell has reduced, for others that are built alike."""
        if not self.varied:
            return
        at = tuple(v for n, v in zip(self.names, point, strict=True) if n not in self.varied)
        races = {name: entrant.race for name, entrant in cell.entrants.items()}
        self.made[at] = races if isinstance(cell, Contest) else next(iter(races.values()))


class _Scout:
    """The contest or the race of paths at any point, each computed once."""

    def __init__(
        self,
        builder: _Builder,
        hold: Callable[[tuple[float, ...], Made], Contest | PathRace],
    ) -> None:
        self.builder, self.hold = builder, hold
        self.seen: dict[tuple[float, ...], Contest | PathRace] = {}

    @property
    def residual(self) -> float:
        """The largest coupling that any of the reductions dropped."""
        cells = self.seen.values()
        return max(float(e.race.residual) for cell in cells for e in cell.entrants.values())

    def at(self, point: tuple[float, ...]) -> Contest | PathRace:
        """What is computed at a point."""
        if point not in self.seen:
            found = self.hold(point, self.builder.at(point))
            names = next((each.entrants for each in self.seen.values()), found.entrants)
            if set(names) != set(found.entrants):
                raise NeuralRaceError(
                    "the candidates must have the same names at every value",
                    got=f"{listed(found.entrants)} at {point}",
                    wanted=f"{listed(names)}, as at {next(iter(self.seen))}",
                    fix="return a gating under every name, even where it cannot win",
                )
            self.builder.keep(point, found)
            self.seen[point] = found
        return self.seen[point]

    def measured(self, point: tuple[float, ...]) -> Mapping[str, float]:
        """Learning times of gatings, or strengths of paths."""
        cell = self.at(point)
        return cell.times if isinstance(cell, Contest) else cell.strengths

    def scores(self, point: tuple[float, ...]) -> dict[str, float]:
        """Numbers of which the largest leads."""
        race = "gatings" if isinstance(self.at(point), Contest) else "paths"
        return _scores(race, self.measured(point))

    def crossovers(
        self,
        axes: Mapping[str, np.ndarray],
        along: int,
        precision: float,
        advance: Callable[[float], None],
    ) -> Iterator[Crossover]:
        """All changes of winner along the lines of the grid in one direction."""
        names, lines = list(axes), [list(map(float, values)) for values in axes.values()]
        values = lines[along]
        lines[along] = values[:1]
        for place in product(*lines):
            at = {n: v for n, v in zip(names, place, strict=True) if n != names[along]}
            line = _Line(lambda v, p=place: self.scores((*p[:along], v, *p[along + 1 :])))
            for low, high in pairwise(values):
                for value, below, above in line.between(low, high, precision * (high - low)):
                    yield Crossover(value, below, above, names[along], at)
                advance(1)


Change: TypeAlias = tuple[float, "str | None", "str | None"]
"""A value, and who wins below and above it."""


@dataclass(frozen=True)
class _Line:
    """The scores of all candidates along one parameter, and where their order changes."""

    scores: Callable[[float], Mapping[str, float]]

    def first(self, value: float) -> str | None:
        """Who leads at a value."""
        return next(iter(foremost(self.scores(value))), None)

    def may_change(self, low: float, high: float, winner: str) -> bool:
        """Whether a rival is near the winner of both values, and its margin changes between."""
        one, other = self.scores(low), self.scores(high)
        rivals = [n for n in one if one[n] > 0 and other.get(n, 0.0) > 0]
        margins = ((one[winner] / one[n] - 1, other[winner] / other[n] - 1) for n in rivals)
        return any(
            min(m) < NEAR_RIVAL and abs(m[0] - m[1]) > CHANGES * min(m) + EQUAL for m in margins
        )

    def between(
        self, low: float, high: float, precision: float, halvings: int = HALVINGS
    ) -> list[Change]:
        """The crossovers between two values, including those of a third winner in between."""
        from scipy.optimize import brentq

        below, above = self.first(low), self.first(high)
        middle = (low + high) / 2
        if below == above:
            if below is None or halvings == 0 or not self.may_change(low, high, below):
                return []
            halves = ((low, middle), (middle, high))
            return [c for half in halves for c in self.between(*half, precision, halvings - 1)]
        if below is None or above is None:  # no winner on one side: bisect
            if high - low <= precision:
                return [(middle, below, above)]
            return self.between(low, middle, precision) + self.between(middle, high, precision)

        def lead(value: float) -> float:
            """By how much the winner at `low` is ahead of the winner at `high`."""
            scores = self.scores(value)
            return scores.get(below, 0.0) - scores.get(above, 0.0)

        if lead(low) <= 0:  # equal there, and the other one was given first
            return [(low, below, above)]
        if lead(high) >= 0:
            return [(high, below, above)]
        at = float(brentq(lead, low, high, xtol=precision))  # type: ignore[arg-type]
        scores, third = self.scores(at), self.first(at)
        if third is None:  # no winner here: there is one crossover on each side
            return self.between(low, at, precision) + self.between(at, high, precision)
        inside = min(at - low, high - at) > 2 * precision
        rivals = max(scores.get(below, 0.0), scores.get(above, 0.0))
        if inside and (1 - ROUNDING) * scores[third] > rivals:
            return self.between(low, at, precision) + self.between(at, high, precision)
        return [(at, below, above)]
