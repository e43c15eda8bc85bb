"""A contest over a parameter of the task: who wins where, and where that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_array
from neuralrace.contests.contest import Contest, contest_by
from neuralrace.contests.outcome import KNOWN, nobody
from neuralrace.contests.pictures import draw_phases
from neuralrace.contests.times import SCALE, Candidates, Rule, StartsLike, positive, tied_first
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.progress import progress
from neuralrace.reduction.start import LARGE_HOLDS
from neuralrace.reln.explained.fall import LONGEST
from neuralrace.results import TIME, Result, Sentence, framed
from neuralrace.tolerances import CHANGES, EQUAL, NEAR_RIVAL, ROUNDING
from neuralrace.types import ArrayLike, Count, Finite, Key

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas


HALVINGS = 2
"""How often an interval with one winner at both ends is halved to look for another one inside."""


@final
@dataclass(frozen=True)
class Crossover:
    """A change of winner: the parameter's value, and who wins below and above it."""

    value: float
    below: str | None
    above: str | None


@final
@dataclass(frozen=True, eq=False)
class PhaseDiagram(Result):
    """Learning times over a task parameter and the crossovers between winners.

    See `phase_diagram`. `times[name]` has the shape of `values`; `winners` has one name per
    value, or `None` where no candidate reaches the criterion; `residual` is the largest coupling
    that any of the reductions dropped; `contests` those that were held, by value.

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

    parameter: str
    values: Float[np.ndarray, " V"]
    times: Mapping[str, Float[np.ndarray, " V"]]
    crossovers: tuple[Crossover, ...]
    start: str
    criterion: str
    residual: float
    contests: Mapping[float, Contest]
    make: Callable[[float], Contest] | None = field(default=None, metadata={"save": False})

    _asked = ("_kept",)

    @door
    def contest_at(self, value: Finite) -> Contest:
        """The contest at a value of the parameter: one of `contests`, or a new one.

        A diagram that was loaded knows no other values than those of `contests`.
        """
        if value in self.contests:
            return self.contests[value]
        if self.make is None:
            raise NeuralRaceError(
                "a diagram that was loaded cannot hold new contests",
                got=f"value = {value:g}",
                wanted="one of contests",
                fix="make the diagram again with nr.phase_diagram",
            )
        return self.make(value)

    def check(self) -> tuple[bool | None, ...]:
        """Whether a ReLU network would keep the winner's gates, at every value.

        None where no candidate reaches the criterion, or where the check cannot tell
        (`Check.keeps`). `contest_at(value).check()` has the full answer. It takes seconds per
        value, and shows its progress. The result is remembered, and shown by `print` and `plot`
        from then on.
        """
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
        with progress(len(self.values), "checking gates", "values") as advance:
            for value, winner in zip(self.values, self.winners, strict=True):
                found.append(
                    None if winner is None else self.contest_at(float(value)).keeps(winner)
                )
                advance(1)
        return tuple(found)

    @property
    def large(self) -> tuple[float, ...]:
        """The values at which a start is too large for learning times to be known."""
        contests = ((value, self.contests[value]) for value in map(float, self.values))
        return tuple(
            value
            for value, contest in contests
            if any(entrant.start.is_large for entrant in contest.entrants.values())
        )

    @property
    def unknown(self) -> dict[str, tuple[float, ...]]:
        """The values at which the time of a candidate is not known: see `Entrant.is_unknown`.

        It counts as late there, so that another one may be called first.
        """
        found: dict[str, tuple[float, ...]] = {}
        for value in map(float, self.values):
            for name, entrant in self.contests[value].entrants.items():
                if entrant.is_unknown:
                    found[name] = (*found.get(name, ()), value)
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
        return any(low <= value <= high for each in self.unknown.values() for value in each)

    @property
    def winners(self) -> tuple[str | None, ...]:
        """Who is first at every value; of several that are equal, the one that was given first."""
        return tuple(next(iter(names), None) for names in self.tied)

    @property
    def tied(self) -> tuple[tuple[str, ...], ...]:
        """The winner at every value, and those whose times are equal to its time."""
        return tuple(
            tied_first({name: times[k] for name, times in self.times.items()})
            for k in range(len(self.values))
        )

    @door
    def winner_at(self, value: Finite) -> str | None:
        """Who is first at any value within the range, according to the crossovers found.

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
        require(
            self.values[0] <= value <= self.values[-1],
            f"the phase diagram does not reach that far in {self.parameter!r}",
            got=value,
            wanted=f"a value between {self.values[0]:g} and {self.values[-1]:g}",
            fix="make the diagram over a wider range",
        )
        passed = [c for c in self.crossovers if c.value <= value]
        return passed[-1].above if passed else self.winners[0]

    @door
    def plot(
        self,
        *,
        trained: tuple[ArrayLike, ArrayLike] | None = None,
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """Learning times over the parameter, with the winner's range shaded and crossovers marked.

        Words at the bottom say who is first in each range. Straight lines join the times at
        `values`. Crossovers are computed, not read off these lines: with few values, lines may
        cross beside the mark. `trained` are values of the parameter `(V,)` and the learning times
        of ReLU networks trained there `(V, seeds)`; they are drawn as points.
        """
        return draw_phases(self, trained, ax)

    @door
    def equals(self, low: float, high: float) -> list[str]:
        """The candidates that are equal to the winner at all values of a range."""
        pairs = zip(self.values, self.tied, strict=True)
        inside = [names for value, names in pairs if low <= value <= high]
        return [n for n in inside[0][1:] if all(n in names for names in inside)] if inside else []

    def frame(self) -> pandas.DataFrame:
        """One row per value of the parameter and candidate.

        `value`; `candidate`; `time`, infinite for never, NaN where it is not known; `first`,
        whether it wins there or is equal to the winner; `kept`, whether a ReLU network would keep
        its gates: known of winners, after `check`.
        """
        unknown = self.unknown
        kept = self.checked or (None,) * len(self.values)
        rows = [
            {
                "value": value,
                "candidate": name,
                "time": np.nan if value in unknown.get(name, ()) else float(times[k]),
                "first": name in self.tied[k],
                "kept": kept[k] if name == self.winners[k] else None,
            }
            for k, value in enumerate(map(float, self.values))
            for name, times in self.times.items()
        ]
        return framed(("value", "candidate", "time", "first", "kept"), rows, {"time": TIME})

    def _printed(self) -> pandas.DataFrame:
        """Who is first in each range of the parameter."""
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
        name = self.parameter
        none = "no gating" + " whose time is known" * bool(self.unknown)
        places = ", ".join(
            f"from {c.below or none} to {c.above or none} at {name} = {c.value:.4f}"
            for c in self.crossovers
        )
        text = "Without training anything, the gating that learns first is predicted to change "
        if not self.crossovers:
            text = f"{self.winners[0] or 'No gating'} is first for {name} from "
            places = f"{self.values[0]:.4g} to {self.values[-1]:.4g}"
        known = [kept for kept in self.checked or () if kept is not None]
        often = f"; ReLU networks would keep the winner's gates at {sum(known)} of {len(known)} "
        if self.large:
            said = f"At {len(self.large)} of {len(self.values)} values the start is too large for "
            yield Sentence("large", f"{said}learning times to be known. {LARGE_HOLDS}")
        yield Sentence("first", f"{text}{places}{f'{often}values' if known else ''}.")
        if self.checked is None:
            text = "Not checked: would ReLU networks keep these gates? Ask check()."
            yield Sentence("unchecked", text)
        yield Sentence("basis", f"Criterion: {self.criterion}; start: {self.start}.")
        for name, values in self.unknown.items():
            text = f"{name} at {len(values)} of {len(self.values)} values: when it learns is not "
            yield Sentence("unknown", f"{text}known.")
        entered = (each for contest in self.contests.values() for each in contest.entrants.items())
        inexact = {n: entrant.race.exactness for n, entrant in entered if not entrant.race.is_exact}
        for name, exactness in inexact.items():
            yield Sentence("inexact", f"{name}: its reduction is {exactness}.")


@door
def phase_diagram(
    candidates: Callable[[float], Candidates],
    parameter: str,
    values: ArrayLike,
    *,
    start: StartsLike | None = None,
    scale: float | None = None,
    criterion: float = 0.2,
    relative: bool = False,
    longest: float = LONGEST,
    tolerance: float | None = None,
    width: Count | None = None,
    key: Key = 0,
    rtol: float | None = None,
    precision: float = 1e-9,
    leak: float = 0.0,
    bias: bool = False,
    check: bool = False,
) -> PhaseDiagram:
    """A contest at every value of a task parameter, and the values where the winner changes.

    Between two neighbouring values with different winners, the crossover is a root of the
    difference of their speeds (one over learning time). If a third candidate is first in between,
    its crossovers are found in the same way. A range in which no candidate reaches the criterion
    has a crossover at each end. Where two neighbouring values have the same winner, another one is
    looked for between them only if it is near the winner at one of them and their distance changes
    in between: a range inside in which it wins can be missed, so take values that are close enough.
    Candidates that are equal at every value
    have no crossover. After `check=True` or `PhaseDiagram.check()`, `print` and `plot` mark the
    values at which a ReLU network would not keep the winner's gates (see `contest`); this takes
    seconds per value.

    **Arguments:** `candidates`, a function of the parameter's value that returns `{name: (arch,
    data)}`, always with the same names; `values`, increasing; `precision` of a crossover, as a
    share of the range of values; the others as in `contest`.

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

    ```
    """
    require(
        callable(candidates),
        "a phase diagram needs the candidates at any value",
        got=type(candidates).__name__,
        wanted="a function of the parameter's value",
        fix="lambda value: {'xor': nr.tasks.xor_pathways(nr.tasks.extended_xor(value))}",
    )
    fix = "for example np.linspace(0, 2, 21)"
    grid = np.atleast_1d(real_array("values", values, fix=fix))
    require(
        grid.ndim == 1 and len(grid) > 1 and np.isfinite(grid).all() and (np.diff(grid) > 0).all(),
        "the values of the parameter must increase",
        got=np.array2string(grid, threshold=6),
        wanted="two or more increasing finite numbers",
        fix=fix,
    )
    require(
        positive(precision),
        "the precision of a crossover must be a positive number",
        got=repr(precision),
        wanted="a share of the range of values, such as 1e-9",
        fix="leave it out for the default",
    )
    scale = SCALE if start is None and scale is None else scale
    rule = Rule(start, scale, criterion, relative, longest, tolerance, rtol, leak, bias)
    scout = _Scout(candidates, rule, width, key)
    found = [scout.times(value) for value in grid]

    crossovers = [
        crossover
        for low, high in pairwise(map(float, grid))
        for crossover in scout.between(low, high, precision * (grid[-1] - grid[0]))
    ]
    diagram = PhaseDiagram(
        parameter,
        grid,
        {name: np.array([times[name] for times in found]) for name in found[0]},
        tuple(crossovers),
        rule.describe(),
        f"{criterion:g} of ½⟨‖y‖²⟩" if relative else f"loss {criterion:g}",
        scout.residual,
        scout.seen,
        scout.contest,
    )
    if check:
        diagram.check()
    return diagram


class _Scout:
    """The contest at any value of the parameter, each computed once."""

    def __init__(
        self, make: Callable[[float], Candidates], rule: Rule, width: int | None, key: Key
    ) -> None:
        self.make, self.rule, self.width, self.key = make, rule, width, key
        self.seen: dict[float, Contest] = {}

    @property
    def residual(self) -> float:
        """The largest coupling that any of the reductions dropped."""
        return max(r for contest in self.seen.values() for r in contest.residuals.values())

    def times(self, value: float) -> dict[str, float]:
        return self.contest(value).times

    def contest(self, value: float) -> Contest:
        value = float(value)
        if value not in self.seen:
            found = contest_by(self.rule, self.make(value), self.width, self.key)
            names = next((each.entrants for each in self.seen.values()), found.entrants)
            if set(names) != set(found.entrants):
                raise NeuralRaceError(
                    "the candidates must have the same names at every value",
                    got=f"{listed(found.entrants)} at {value:g}",
                    wanted=f"{listed(names)}, as at {next(iter(self.seen)):g}",
                    fix="return a gating under every name, even where it cannot win",
                )
            self.seen[value] = found
        return self.seen[value]

    def may_change(self, low: float, high: float, winner: str) -> bool:
        """Whether a rival is near the winner of both values, and its margin changes between."""
        one, other = self.times(low), self.times(high)
        margins = ((one[n] / one[winner] - 1, other[n] / other[winner] - 1) for n in one)
        return any(
            min(m) < NEAR_RIVAL and abs(m[0] - m[1]) > CHANGES * min(m) + EQUAL for m in margins
        )

    def between(
        self, low: float, high: float, precision: float, halvings: int = HALVINGS
    ) -> list[Crossover]:
        """The crossovers between two values, including those of a third winner in between."""
        from scipy.optimize import brentq

        below, above = _first(self.times(low)), _first(self.times(high))
        middle = (low + high) / 2
        if below == above:
            if below is None or halvings == 0 or not self.may_change(low, high, below):
                return []
            halves = ((low, middle), (middle, high))
            return [c for half in halves for c in self.between(*half, precision, halvings - 1)]
        if below is None or above is None:  # no winner on one side: bisect
            if high - low <= precision:
                return [Crossover(middle, below, above)]
            return self.between(low, middle, precision) + self.between(middle, high, precision)

        def lead(value: float) -> float:
            """How much faster the winner at `low` is than the winner at `high`."""
            times = self.times(value)
            return 1 / times[below] - 1 / times[above]

        if lead(low) <= 0:  # equal there, and the other one was given first
            return [Crossover(low, below, above)]
        if lead(high) >= 0:
            return [Crossover(high, below, above)]
        at = float(brentq(lead, low, high, xtol=precision))  # type: ignore[arg-type]
        times = self.times(at)
        third = _first(times)
        if third is None:  # no winner here: there is one crossover on each side
            return self.between(low, at, precision) + self.between(at, high, precision)
        inside = min(at - low, high - at) > 2 * precision
        rivals = min(times[below], times[above])
        if inside and times[third] < (1 - ROUNDING) * rivals:
            return self.between(low, at, precision) + self.between(at, high, precision)
        return [Crossover(at, below, above)]


def _first(times: Mapping[str, float]) -> str | None:
    """The candidate with the shortest time, or None if all times are infinite."""
    return next(iter(tied_first(times)), None)
