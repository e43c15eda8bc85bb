"""A contest over a parameter of the task: who wins where, and where that changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from neuralrace.checks import entries, real_array, real_number, shown
from neuralrace.contests.contest import Contest, contest_by
from neuralrace.contests.times import SCALE, Candidates, Rule, StartsLike, positive
from neuralrace.errors import NeuralRaceError, listed, whole_number
from neuralrace.plot import COLOURS, cycle_colour, draw_curves, shade, style
from neuralrace.progress import progress
from neuralrace.reduction.blocks.exactness import Exactness
from neuralrace.types import ArrayLike

if TYPE_CHECKING:
    import matplotlib.axes


@final
@dataclass(frozen=True)
class Crossover:
    """A change of winner: the parameter's value, and who wins below and above it."""

    value: float
    below: str | None
    above: str | None


@final
@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Learning times over a task parameter and the crossovers between winners.

    See `phase_diagram`. `times[name]` has the shape of `values`; `winners` has one name per
    value, or `None` where no candidate reaches the criterion; `residual` is the largest coupling
    that any of the reductions dropped.

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
    contest_at: Callable[[float], Contest]

    @cached_property
    def kept(self) -> tuple[bool | None, ...]:
        """Whether a ReLU network would keep the winner's gates, at every value.

        None where no candidate reaches the criterion, or where the check cannot tell
        (`Check.keeps`). `contest_at(value).check` has the full answer. It is computed on first use,
        and shows its progress.
        """
        found = []
        with progress(len(self.values), "checking gates", "values") as advance:
            for value, winner in zip(self.values, self.winners, strict=True):
                found.append(
                    None if winner is None else self.contest_at(float(value)).keeps(winner)
                )
                advance(1)
        return tuple(found)

    @property
    def unknown(self) -> dict[str, tuple[float, ...]]:
        """The values at which the time of a candidate is not known: see `Entrant.is_unknown`.

        It counts as late there, so that another one may be called first.
        """
        found: dict[str, tuple[float, ...]] = {}
        for value in map(float, self.values):
            for name, entrant in self.contest_at(value).entrants.items():
                if entrant.is_unknown:
                    found[name] = (*found.get(name, ()), value)
        return found

    @property
    def winners(self) -> tuple[str | None, ...]:
        """Who is first at every value."""
        return tuple(
            _first({name: times[k] for name, times in self.times.items()})
            for k in range(len(self.values))
        )

    def winner_at(self, value: float) -> str | None:
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
        value = real_number("value", value, fix=f"a value of {self.parameter!r}")
        if not self.values[0] <= value <= self.values[-1]:
            raise NeuralRaceError(
                f"the phase diagram does not reach that far in {self.parameter!r}",
                got=value,
                wanted=f"a value between {self.values[0]:g} and {self.values[-1]:g}",
                fix="make the diagram over a wider range",
            )
        passed = [c for c in self.crossovers if c.value <= value]
        return passed[-1].above if passed else self.winners[0]

    def plot(
        self,
        *,
        trained: tuple[ArrayLike, ArrayLike] | None = None,
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """Learning times over the parameter, with the winner's range shaded and crossovers marked.

        Straight lines join the times at `values`. Crossovers are computed, not read off these
        lines: with few values, lines may cross beside the mark. `trained` are values of the
        parameter `(V,)` and the learning times of ReLU networks trained there `(V, seeds)`; they
        are drawn as points.
        """
        curves = {
            name: np.where(np.isfinite(times), times, np.nan) for name, times in self.times.items()
        }
        ax = draw_curves(self.values, curves, kind="theory", ylabel="learning time", ax=ax)
        names = list(self.times)
        edges = [self.values[0], *(c.value for c in self.crossovers), self.values[-1]]
        with style():
            for low, high in pairwise(edges):
                winner = self.winner_at((low + high) / 2)
                if winner is not None:
                    colour = shade(cycle_colour(names.index(winner)), 0.85)
                    ax.axvspan(low, high, color=colour, linewidth=0, zorder=0)
            for crossover in self.crossovers:
                ax.axvline(crossover.value, color=COLOURS["neutral"], linewidth=0.8, linestyle=":")
                ax.annotate(
                    f"{crossover.value:.4g}",
                    (crossover.value, 1.0),
                    (3, -3),
                    xycoords=("data", "axes fraction"),
                    textcoords="offset points",
                    va="top",
                    fontsize=7,
                    color=COLOURS["neutral"],
                )
            for index, (low, high) in enumerate(self._not_kept()):
                label = "winner not kept by ReLU networks" if index == 0 else None
                ax.axvspan(
                    low, high, facecolor="none", edgecolor="0.75", hatch="//", linewidth=0.5,
                    zorder=0.5, label=label,
                )  # fmt: skip
            if trained is not None:
                _draw_trained(ax, trained)
            if trained is not None or any(kept is False for kept in self.kept):
                ax.legend(loc="best" if trained is None else "upper right")
            fastest = np.min(list(self.times.values()), axis=0)
            top = fastest[np.isfinite(fastest)].max(initial=0.0)
            ax.set(xlabel=self.parameter, xlim=(self.values[0], self.values[-1]))
            ax.set_ylim(0, 2 * top or None)  # candidates far behind leave the picture
        return ax

    def _not_kept(self) -> list[tuple[float, float]]:
        """The ranges of the parameter, around values in `values`, where the winner is not kept."""
        middles = (self.values[1:] + self.values[:-1]) / 2
        ends = [float(v) for v in (self.values[0], *middles, self.values[-1])]
        found: list[tuple[float, float]] = []
        for low, high, kept in zip(ends, ends[1:], self.kept, strict=False):
            if kept is False and found and found[-1][1] == low:
                found[-1] = (found[-1][0], high)
            elif kept is False:
                found.append((low, high))
        return found

    def __str__(self) -> str:
        edges = [self.values[0], *(c.value for c in self.crossovers), self.values[-1]]
        lines = [f"Who is first, by {self.parameter}:"]
        for low, high in pairwise(edges):
            winner = self.winner_at((low + high) / 2) or "no candidate reaches the criterion"
            inside = zip(self.values, self.kept, strict=True)
            checked = [kept for value, kept in inside if low <= value <= high and kept is not None]
            lost = len(checked) - sum(checked)
            note = f" (not kept at {lost} of {len(checked)} values)" if lost else ""
            lines.append(f"  {low:<12.8g} … {high:<12.8g} {winner}{note}")
        lines += [
            f"{name} at {len(values)} of {len(self.values)} values: when it learns is not known "
            "from an average start."
            for name, values in self.unknown.items()
        ]
        lines.append(f"criterion: {self.criterion}; start: {self.start}")
        lines.append(
            "every reduction exact"
            if Exactness(self.residual)
            else f"reductions approximate: couplings up to {self.residual:.1e} dropped"
        )
        return "\n".join(lines)


def phase_diagram(
    candidates: Callable[[float], Candidates],
    parameter: str,
    values: ArrayLike,
    *,
    start: StartsLike | None = None,
    scale: float | None = None,
    criterion: float = 0.2,
    relative: bool = False,
    longest: float = 1e5,
    tolerance: float | None = None,
    width: int | None = None,
    precision: float = 1e-9,
) -> PhaseDiagram:
    """A contest at every value of a task parameter, and the values where the winner changes.

    Between two neighbouring values with different winners, the crossover is a root of the
    difference of their speeds (one over learning time). If a third candidate is first in between,
    its crossovers are found in the same way. A range in which no candidate reaches the criterion
    has a crossover at each end. A candidate that wins only between two neighbouring values that
    have the same winner is missed: choose the values densely enough. `print` and `plot` mark the
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
    >>> print(nr.phase_diagram(gatings, "delta", [0, 2], start=1e-3))
    Who is first, by delta:
      0            … 0.87286536   xor
      0.87286536   … 2            linear
    criterion: loss 0.2; start: equal aligned starts: every edge at 0.001, whatever its width
    every reduction exact

    ```
    """
    if not callable(candidates):
        raise NeuralRaceError(
            "a phase diagram needs the candidates at any value",
            got=type(candidates).__name__,
            wanted="a function of the parameter's value",
            fix="lambda value: {'xor': nr.tasks.xor_pathways(nr.tasks.extended_xor(value))}",
        )
    fix = "for example np.linspace(0, 2, 21)"
    grid = np.atleast_1d(real_array("values", values, fix=fix))
    if grid.ndim != 1 or len(grid) < 2 or not np.isfinite(grid).all() or (np.diff(grid) <= 0).any():
        raise NeuralRaceError(
            "the values of the parameter must increase",
            got=np.array2string(grid, threshold=6),
            wanted="two or more increasing finite numbers",
            fix=fix,
        )
    if not positive(precision):
        raise NeuralRaceError(
            "the precision of a crossover must be a positive number",
            got=repr(precision),
            wanted="a share of the range of values, such as 1e-9",
            fix="leave it out for the default",
        )
    if width is not None:
        width = whole_number("the width", width, fix="width=200")
    scale = SCALE if start is None and scale is None else scale
    rule = Rule(start, scale, criterion, relative, longest, tolerance)
    scout = _Scout(candidates, rule, width)
    found = [scout.times(value) for value in grid]

    crossovers = [
        crossover
        for low, high in pairwise(grid)
        for crossover in scout.between(low, high, precision * (grid[-1] - grid[0]))
    ]
    return PhaseDiagram(
        parameter,
        grid,
        {name: np.array([times[name] for times in found]) for name in found[0]},
        tuple(crossovers),
        rule.describe(),
        f"{criterion:g} of ½⟨‖y‖²⟩" if relative else f"loss {criterion:g}",
        scout.residual,
        scout.contest,
    )


class _Scout:
    """The contest at any value of the parameter, each computed once."""

    def __init__(self, make: Callable[[float], Candidates], rule: Rule, width: int | None) -> None:
        self.make, self.rule, self.width = make, rule, width
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
            found = contest_by(self.rule, self.make(value), self.width)
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

    def between(self, low: float, high: float, precision: float) -> list[Crossover]:
        """The crossovers between two values, including those of a third winner in between."""
        from scipy.optimize import brentq

        below, above = _first(self.times(low)), _first(self.times(high))
        if below == above:
            return []
        if below is None or above is None:  # no winner on one side: bisect
            middle = (low + high) / 2
            if high - low <= precision:
                return [Crossover(middle, below, above)]
            return self.between(low, middle, precision) + self.between(middle, high, precision)

        def lead(value: float) -> float:
            """How much faster the winner at `low` is than the winner at `high`."""
            times = self.times(value)
            return 1 / times[below] - 1 / times[above]

        at = float(brentq(lead, low, high, xtol=precision))  # type: ignore[arg-type]
        times = self.times(at)
        third = _first(times)
        if third is None:  # no winner here: there is one crossover on each side
            return self.between(low, at, precision) + self.between(at, high, precision)
        inside = min(at - low, high - at) > 2 * precision
        rivals = min(times[below], times[above])
        if inside and times[third] < (1 - 1e-9) * rivals:
            return self.between(low, at, precision) + self.between(at, high, precision)
        return [Crossover(at, below, above)]


def _first(times: Mapping[str, float]) -> str | None:
    """The candidate with the shortest time, or None if all times are infinite."""
    name = min(times, key=times.__getitem__)
    return name if np.isfinite(times[name]) else None


def _draw_trained(ax: matplotlib.axes.Axes, trained: object) -> None:
    fix = "pass trained=(values, times), with one row of times per value and one column per seed"
    pair = entries("trained", trained, fix)
    if len(pair) != 2:
        raise NeuralRaceError("trained must be a pair", got=shown(trained), wanted="two", fix=fix)
    values, times = (real_array("trained", each, fix=fix) for each in pair)
    if values.ndim != 1 or times.ndim != 2 or len(values) != len(times):
        raise NeuralRaceError(
            "the times of trained networks do not fit their values",
            got=f"values of shape {values.shape}, times of shape {times.shape}",
            wanted="(V,) and (V, seeds)",
            fix=fix,
        )
    ax.plot(
        np.repeat(values, times.shape[1]),
        times.ravel(),
        "o",
        color="white",
        markeredgecolor=COLOURS["theory"],
        markeredgewidth=0.8,
        markersize=4,
        clip_on=False,
        label="ReLU networks",
    )
