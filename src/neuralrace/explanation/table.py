"""Explanations of one ReLU network in one table, best first, and the advice that follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.checks import one_of
from neuralrace.contests.pictures import candidate_colours
from neuralrace.door import door
from neuralrace.plot import COLOURS, draw_curves
from neuralrace.reln import Discovery, NeuronTypes
from neuralrace.results import KEPT_SHARE, SHARE, TIME, Result, Sentence, framed
from neuralrace.text import percent, several
from neuralrace.tolerances import AT_REST, END, LATE, MISSED, NEAR, RELIABLE, SEVERAL
from neuralrace.trajectory import Trajectory, crossing_time, half_time

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

GATING = "gating"
"""The kind of a row whose pathways have constant gates."""

STAGED = "staged"
"""The kind of a row whose gates are constant in stages."""

TYPES = "types"
"""The kind of a row of self-gated types of neurons."""

NARROW = "narrow"
"""The kind of a row that is a ReLU network with few neurons."""

NETWORK = "network"
"""The kind of the line of the table that has the times of the network itself."""

DRAWN = 7
"""The number of rows that are drawn in colours of their own, the best ones."""

NONE = "None of the gatings describes the network"
"""What is said where outputs of gatings are near, and something else speaks against each."""

NOTHING = "Nothing here describes the network"
"""The same where the outputs of other rows are near too."""

COLUMNS = (
    "explanation",
    "kind",
    "loss",
    "loss_per_seed",
    "outputs",
    "outputs_per_seed",
    "kept",
    "variables",
    "half_time",
    "time",
    "left",
    "differ",
    "pace",
    "near",
)
"""The columns of `Explanation.frame`."""


@final
@dataclass(frozen=True, eq=False)
class Row:
    """One explanation of a ReLU network; see `explain`.

    `name` is shown, and `kind` is `"gating"`, `"staged"`, `"types"` or `"narrow"`. `trajectory` is
    one run of it, None where no network can take the steps of the run that is explained; `differ`
    is then the part of the samples on which a neuron differs from its pathway. `pace` is the
    half-time over the mean of the networks, of the start that is furthest off. `loss` is
    mean |ΔL| / L(0), `outputs` the mean distance of the outputs over √(2 L(0)), both None where no
    network was trained to compare with. `kept` is the share of the gates that a ReLU network would
    keep (`reln.consistency`), the least of several draws where the gating is deeper, None where it
    is not known. `variables` is how many numbers evolve, None where nothing does. `found` is the
    `Discovery` or the `NeuronTypes` behind the row, if there is one; that of a narrow network has
    the gates of its neurons at the end.

    ```python
    >>> from neuralrace import Trajectory
    >>> from neuralrace.explanation import Row
    >>> row = Row("xor", "gating", Trajectory([0, 1, 2], [0.5, 0.3, 0.1]), variables=8, loss=0.02)
    >>> row.half_time, row.left, row.error
    (1.25, 0.2, 0.02)

    ```
    """

    name: str
    kind: str
    trajectory: Trajectory | None
    variables: int | None
    loss: float | None = None
    outputs: float | None = None
    kept: float | None = None
    found: Discovery | NeuronTypes | None = None
    differ: float | None = None
    pace: float | None = None

    @property
    def half_time(self) -> float:
        """When half of the initial loss is gone (`trajectory.half_time`); NaN if not seen."""
        run = self.trajectory
        return np.nan if run is None else float(half_time(run.time, run.loss))

    @property
    def time(self) -> float:
        """When the loss is down to 10 % of the initial one; NaN if not seen."""
        return _time_to_end(self.trajectory)

    @property
    def left(self) -> float | None:
        """The loss at the end as a part of the initial loss."""
        loss = None if self.trajectory is None else self.trajectory.loss
        return None if loss is None else float(loss[-1] / loss[0])

    @property
    def error(self) -> float:
        """What rows are sorted by: the distance of outputs, else that of the loss, of patterns.

        Infinite where a network diverged.
        """
        known = (self.outputs, self.loss, self.differ)
        found = next((e for e in known if e is not None), np.inf)
        return np.inf if np.isnan(found) else found


@final
@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """Explanations of a ReLU network side by side, best first; made by `explain`.

    `rows` are sorted by the distance of their outputs, or by half-time where no network was
    trained. `floor` is how far two seeds of the network are apart, in loss and in outputs, or None.
    `left_out[name]` says why a row or a column could not be made. `made` says what the table was
    made from, `remarks` what else to know. `runs` are the networks that are explained.

    ```python
    >>> from neuralrace import Trajectory
    >>> from neuralrace.explanation import Explanation, Row
    >>> run = Trajectory([0, 1], [0.5, 0.1])
    >>> rows = (Row("types", "types", run, 24, loss=0.01, outputs=0.02),
    ...         Row("xor", "gating", run, 8, loss=0.02, outputs=0.03, kept=0.97))
    >>> found = Explanation(rows, floor=(0.01, 0.02), runs=(run,), made="two rows")
    >>> found.best.name, found.times_floor("xor")
    ('xor', (2.0, 1.5))

    ```
    """

    rows: tuple[Row, ...]
    floor: tuple[float, float] | None
    runs: tuple[Trajectory, ...]
    made: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Row:
        one_of("row", name, [row.name for row in self.rows], "print the table for its names")
        return next(row for row in self.rows if row.name == name)

    def __len__(self) -> int:
        return len(self.rows)

    @door
    def times_floor(self, name: str) -> tuple[float, float] | None:
        """How many times further away than another seed a row is, in loss and in outputs."""
        row = self[name]
        if self.floor is None or row.loss is None or row.outputs is None or not all(self.floor):
            return None
        return row.loss / self.floor[0], row.outputs / self.floor[1]

    @property
    def near(self) -> tuple[Row, ...]:
        """The rows whose outputs are at most twice as far away as those of another seed."""
        if self.floor is None:
            return ()
        known = [row for row in self.rows if row.outputs is not None]
        return tuple(row for row in known if row.error <= NEAR * self.floor[1])

    @property
    def just_missed(self) -> str:
        """The rows that just miss being near, with the threshold; empty where there are none."""
        if self.floor is None or not self.floor[1]:
            return ""
        times = {row.name: row.error / self.floor[1] for row in self.rows}
        named = ", ".join(
            f"{name} ({ratio:.3g} times)"
            for name, ratio in times.items()
            if NEAR < ratio <= MISSED * NEAR
        )
        if not named:
            return ""
        return (
            f"What is at most {NEAR:g} times as far away as another seed counts as near; just not: "
            f"{named}."
        )

    @property
    def best(self) -> Row | None:
        """The row to use: of those that are near, the one with the fewest variables.

        Rows with a `doubt` are out, and types of neurons where a narrow network of as many
        neurons is as good. None where nothing is left, or no network was trained to compare with.
        """
        near = [row for row in self.near if not (row.kind == TYPES and self._narrow_is_as_good)]
        near = [row for row in near if not self.doubt(row.name)]
        return min(near, key=lambda row: row.variables or 0, default=None)

    @door
    def doubt(self, name: str) -> str:
        """Why a row does not describe the network, in words; empty where nothing says so.

        Outputs as near as those of another seed are not enough: the loss may be at most 3 times as
        far away as that of a seed and no half-time off by more than 15 %, whatever the random
        start, and of the gates of a gating a ReLU network must keep at least 85 %.
        """
        row, floor = self[name], self.floor
        said = []
        if row.kind == GATING and row.kept is None:
            said.append("it is not known whether a ReLU network would keep its gates")
        if row.kept is not None and row.kept < RELIABLE:
            said.append(f"a ReLU network would keep {100 * row.kept:.0f} % of its gates")
        if floor is not None and row.loss is not None and row.loss > SEVERAL * floor[0]:
            times = f" {row.loss / floor[0]:.3g} times" if floor[0] else ""
            said.append(f"its loss is{times} as far away as that of another seed")
        if row.pace is not None and not abs(row.pace - 1) <= LATE:
            said.append(
                f"its half-time is {row.pace:.3g} times that of the network"
                if np.isfinite(row.pace)
                else "it does not reach half of the loss in the time in which the network does"
            )
        return ", ".join(said)

    @property
    def _narrow_is_as_good(self) -> bool:
        """Whether the narrow network is at least as near as the types of neurons."""
        types, narrow = self._first(TYPES), self._first(NARROW)
        if types is None or narrow is None or not self.runs:
            return False
        return narrow.error <= types.error

    @property
    def advice(self) -> str:
        """What to use, in one sentence."""
        if not self.rows:
            return "No explanation could be made."
        if not self.runs:
            return "These are predictions: train the network to see which of them holds."
        if self._patterns_only:
            closest = self.rows[0]
            return (
                f"The patterns of the neurons are nearest to {closest.name}: a neuron differs "
                f"from its pathway on {percent(closest.differ or 0.0)} of the samples, on average "
                "over moments and over neurons, by their weights."
            )
        if self.floor is None or all(row.outputs is None for row in self.rows):
            closest = self.rows[0]
            return f"The closest is {closest.name}; how far two seeds are apart is not known."
        best = self.best
        if best is None:
            closest = self.rows[0]
            if self.near:
                what = NONE if all(row.kind == GATING for row in self.near) else NOTHING
                return f"{what}, not even the closest, {closest.name}, whose outputs are near."
            ratio = closest.error / self.floor[1] if self.floor[1] else np.inf
            return (
                f"Nothing here follows the network: the closest, {closest.name}, is {ratio:.1f} "
                "times as far away as another seed."
            )
        the = "the " * (best.kind == NARROW)
        doubts = self._doubts
        gatings = [row.name for row in self.near if row.kind == GATING]
        if gatings and all(name in doubts for name in gatings):
            return f"{NONE}: use {the}{best.name}."
        others = {row.kind for row in self.rows} - {best.kind}
        if best.kind == STAGED and others and len(self.near) == 1:
            return "Nothing small follows the network: only its own gates in stages do."
        if best.kind == NARROW and GATING in others:
            return f"Use the {best.name}: no gating is as good with fewer variables."
        left = " and not doubtful" * bool(doubts)
        return (
            f"Use {the}{best.name}: the fewest variables of all that are about as near as another "
            f"seed{left}."
        )

    def sentences(self) -> tuple[Sentence, ...]:
        """The advice, what to know besides, and what the table was made from."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        yield Sentence("advice", self.advice)
        for name, why in self._doubts.items():
            yield Sentence("doubt", f"The outputs of {name} are near, but {why}.")
        best = self.best
        if best is not None and isinstance(best.found, Discovery):
            yield Sentence("gates", f"Of the {best.name}, {'; '.join(best.found.in_words)}.")
        types, narrow = self._first(TYPES), self._first(NARROW)
        gatings = [row.error for row in self.rows if row.kind == GATING]
        if self._narrow_is_as_good and types is not None and narrow is not None:
            text = f"The {narrow.name} is as good as {types.name}, and costs less."
            yield Sentence("narrow", text)
        if narrow is not None and gatings and narrow.error <= min(gatings):
            yield Sentence("narrow", f"The {narrow.name} is as good as any gating.")
        yield from (Sentence("remark", text) for text in self.remarks)
        for reason in dict.fromkeys(self.left_out.values()):
            names = [name for name, why in self.left_out.items() if why == reason]
            are = "is" if len(names) == 1 else "are"
            yield Sentence("left out", f"{several(names)} {are} left out: {reason}.")
        if self.made:
            yield Sentence("made", self.made)

    def _first(self, kind: str) -> Row | None:
        """The best row of a kind."""
        return next((row for row in self.rows if row.kind == kind), None)

    @property
    def _doubts(self) -> dict[str, str]:
        """What speaks against rows whose outputs are near, by name."""
        return {row.name: why for row in self.near if (why := self.doubt(row.name))}

    @property
    def _patterns_only(self) -> bool:
        """Whether rows are compared by the patterns of neurons alone."""
        return bool(self.rows) and all(row.differ is not None for row in self.rows)

    @door
    def plot(self, *, log: bool = False, ax: Axes | None = None) -> Axes:
        """Draw the loss of the network, solid, and that of the best rows, dashed, best first.

        Rows after the seventh are thin grey lines, counted above the legend. Time ends where all
        coloured curves have come to rest: a twentieth after the last moment at which one of them
        is further than 1 % of its initial loss from where it ends.
        """
        every = {r.name: r.trajectory for r in self.rows if r.trajectory is not None}
        shown = dict(list(every.items())[:DRAWN])
        kind = dict.fromkeys(shown, "theory")
        colours = candidate_colours(shown)
        if self.runs:
            shown = {"network": self.runs[0], **shown}
            kind["network"] = "relu"
        times = {name: run.time for name, run in shown.items()}
        losses = {name: run.loss for name, run in shown.items()}
        ax = draw_curves(times, losses, kind=kind, color=colours, log=log, ax=ax)
        more = list(every.values())[DRAWN:]
        for run in more:
            ax.plot(run.time, run.loss, color=COLOURS["neutral"], alpha=0.5, lw=0.6, zorder=1.5)
        legend = ax.get_legend()
        if more and legend is not None:
            legend.set_title(f"grey: {len(more)} further away")
            legend.get_title().set_fontsize(7)
        if shown:
            last = max(run.time[-1] for run in shown.values())
            ax.set_xlim(0, min(1.05 * max(map(_rests, shown.values())), last) or last)
        return ax

    def frame(self) -> pandas.DataFrame:
        """One row per explanation, best first, one for another seed, and one for the network.

        `explanation`, its name; `kind`, `"gating"`, `"staged"`, `"types"`, `"narrow"`, `"seed"` or
        `"network"`, the last two where they are known;
        `loss` and `outputs`, how far it is from the network, and `loss_per_seed` and
        `outputs_per_seed`, how many times as far as another seed is; `kept`, the share of gates
        that a ReLU network would keep; `variables`, how many numbers evolve; `half_time`; `time`,
        when the loss is down to 10 % of the initial one; `left`, the loss at the end as a part of
        the initial loss; `differ`, the part of the samples on which a neuron differs from its
        pathway; `pace`, the half-time over that of the networks, of the start that is furthest off;
        `near`, whether the outputs are about as near as those of another seed. NaN where a number
        is not known.
        """
        near = {row.name for row in self.near}
        rows: list[dict[str, Any]] = []
        for row in self.rows:
            ratios = self.times_floor(row.name) or (None, None)
            numbers = (row.loss, ratios[0], row.outputs, ratios[1], row.kept, row.variables)
            numbers = (*numbers, row.half_time, row.time, row.left, row.differ, row.pace)
            numbers = (np.nan if number is None else float(number) for number in numbers)
            values = (row.name, row.kind, *numbers, row.name in near)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        if self.floor is not None:
            loss, outputs = self.floor
            values = ("another seed", "seed", loss, 1.0, outputs, 1.0, *[np.nan] * 7, True)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        if self.runs and not self._patterns_only:
            own = [Row("the network", NETWORK, run, None) for run in self.runs]
            times = [float(np.mean([getattr(r, k) for r in own])) for k in ("half_time", "time")]
            left = float(np.mean([run.loss[-1] / run.loss[0] for run in self.runs]))
            values = ("the network", NETWORK, *[np.nan] * 6, *times, left, np.nan, 1.0, True)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        units = dict.fromkeys(("loss", "outputs", "left", "differ"), SHARE)
        return framed(COLUMNS, rows, units | {"half_time": TIME, "time": TIME, "kept": KEPT_SHARE})

    def _printed(self) -> pandas.DataFrame:
        columns = ["loss", "loss_per_seed", "outputs", "outputs_per_seed", "kept", "variables"]
        columns += ["half_time", "time"]
        if self._patterns_only:
            columns = ["differ"]
        elif not self.runs:
            columns = ["half_time", "time", "left", "kept", "variables"]
        table = self.frame().loc[:, ["explanation", *columns]]
        return table.rename(columns={"time": "time to 10 %"})


def _time_to_end(run: Trajectory | None) -> float:
    """When a run has `END` of its initial loss; NaN if not seen."""
    if run is None:
        return np.nan
    return float(crossing_time(run.time, run.loss, END * float(run.loss[0])))


def _rests(run: Trajectory) -> float:
    """The time from which on the loss of a run stays where it ends: 0 for one that is flat."""
    away = np.flatnonzero(np.abs(run.loss - run.loss[-1]) > AT_REST * run.loss[0])
    return float(run.time[min(away[-1] + 1, len(run.time) - 1)]) if len(away) else 0.0
