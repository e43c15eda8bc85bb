"""Candidate gatings side by side: who learns first, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from neuralrace.checks import weight_scale
from neuralrace.contests.colours import candidate_colours
from neuralrace.contests.joint import Joint, train_together
from neuralrace.contests.times import (
    SCALE,
    Candidates,
    CandidatesLike,
    Entrant,
    Rule,
    StartsLike,
    pairs_of,
    tied_first,
)
from neuralrace.contests.verdicts import ALIGNED, Check, check, task_of, width_of
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, listed, whole_number
from neuralrace.plot import COLOURS, draw_curves, mark_line, style
from neuralrace.reln.explained.aligned import gating_of
from neuralrace.reln.explained.alignment import aligned_patterns
from neuralrace.text import table_lines
from neuralrace.types import ArrayLike, Key

if TYPE_CHECKING:
    import matplotlib.axes

COLUMNS = ("candidate", "time", "later by", "strength", "implementable", "kept", "reduction")
"""The columns of a printed contest."""

WIDTH = 200
"""The number of neurons of the reference if there are no candidates to take it from."""


@final
@dataclass(frozen=True, eq=False)
class Contest:
    """Learning times of candidate gatings; see `contest`.

    `entrants` holds every candidate's race, start and time by name; `start` describes in words how
    they started. Times refer to gradient flow with τ = 1.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(0.5)
    >>> found = nr.contest({"linear": nr.tasks.linear_pathways(data),
    ...                     "xor": nr.tasks.xor_pathways(data)}, scale=1e-3)
    >>> found.winner, round(found.margins["linear"], 3)
    ('xor', 0.56)

    ```
    """

    candidates: Candidates
    entrants: Mapping[str, Entrant]
    start: str
    scale: float | None
    task: Dataset
    rule: Rule
    width: int
    key: Key

    @cached_property
    def check(self) -> Check:
        """Whether a ReLU network would keep each candidate's gates.

        The reference is the gating that small neurons align to by themselves (`reln.aligned`). The
        check solves the races once more. It takes seconds, shows its progress, and runs on first
        use, which includes `print`.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(0.4)
        >>> found = nr.contest({"side": nr.tasks.natural_gatings(data)["side"]}, scale=1e-3)
        >>> found.check.is_kept("side"), found.check.implementable
        (False, {'side': True})

        ```
        """
        return check(self.task, self.entrants, self.rule, self.width, self.key)

    def keeps(self, name: str) -> bool | None:
        """Whether a candidate is kept and not outrun, as `check.keeps`, measured for it alone.

        This is quicker than `check` where there are many candidates.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(0.4)
        >>> found = nr.contest({"side": nr.tasks.natural_gatings(data)["side"]}, scale=1e-3)
        >>> found.keeps("side")
        False

        ```
        """
        if name not in self.entrants:
            raise NeuralRaceError(
                f"there is no candidate {name!r}",
                got=repr(name),
                wanted=f"one of {listed(self.entrants)}",
                fix="pass the name of a candidate of this contest",
            )
        if "check" in self.__dict__:  # everything was measured already
            return self.check.keeps(name)
        only = check(self.task, self.entrants, self.rule, self.width, self.key, only=name)
        return only.keeps(name)

    @property
    def kept(self) -> dict[str, float]:
        """The kept share of every candidate, and of the reference as `aligned`."""
        return dict(self.check.kept)

    @property
    def verdicts(self) -> dict[str, str]:
        """What a ReLU network would do with each candidate's gates, in words."""
        return {name: self.check.verdict(name) for name in self.entrants}

    @property
    def times(self) -> dict[str, float]:
        """When each candidate's loss falls to the criterion; infinite if it never does."""
        return {name: entrant.time for name, entrant in self.entrants.items()}

    @property
    def winner(self) -> str | None:
        """The candidate that is first, or None where no candidate reaches the criterion.

        Of several that are equal (`tied`), the one that was given first.
        """
        return next(iter(self.tied), None)

    @property
    def tied(self) -> tuple[str, ...]:
        """The winner, and those whose times are equal to its time but for rounding."""
        return tied_first(self.times)

    @property
    def margins(self) -> dict[str, float]:
        """How much later each candidate is than the winner, as a share of the winner's time."""
        if self.winner is None:
            return dict.fromkeys(self.times, np.nan)
        return {name: time / self.times[self.winner] - 1 for name, time in self.times.items()}

    @property
    def strengths(self) -> dict[str, float]:
        """The strength of each candidate's strongest block (`Block.drive`).

        With two edges per path, this is the rate at which small weights first grow: that of the
        fastest pathway, with all its inputs and outputs side by side. Pathways that overlap do not
        grow faster for it, and an output node has the rate of its parts together.
        """
        return {name: entrant.strength for name, entrant in self.entrants.items()}

    @property
    def residuals(self) -> dict[str, float]:
        """The largest coupling that each candidate's reduction dropped (`Race.residual`)."""
        return {name: entrant.race.residual for name, entrant in self.entrants.items()}

    def joint(
        self,
        *,
        key: Key = 0,
        times: ArrayLike | None = None,
        seeds: int = 1,
        scale: float | None = None,
    ) -> Joint:
        """All candidates trained together in one gated network, to see who really wins.

        Their pathways stand side by side between the same inputs and outputs and share one error
        (gradient flow). Weights are random: with this `scale` or the contest's, or, if the
        contest's `start` is one number, such that every pathway starts there on average.
        `Joint.carried` says how much of the targets each candidate supplies.

        **Arguments:** `key`, a JAX key or an integer; `times`, by default up to twice the winner's
        learning time; `seeds`, how many starts to try; `scale`, the standard deviation of the
        weights, which pathways of more than two edges need.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(1.5)
        >>> found = nr.contest({"linear": nr.tasks.linear_pathways(data),
        ...                     "xor": nr.tasks.xor_pathways(data)}, scale=1e-3)
        >>> together = found.joint()
        >>> together.winner, bool(together.carried["linear"][0, -1] > 0.9)
        ('linear', True)

        ```
        """
        if times is None:
            if self.winner is None:
                raise NeuralRaceError(
                    "no candidate reaches the criterion, so it is not known how long to train",
                    got=f"times {self.times}",
                    wanted="times= for the joint training",
                    fix="pass times=np.linspace(0, 100, 201), or a criterion that can be reached",
                )
            times = np.linspace(0, 2 * self.times[self.winner], 201)
        scale = self.scale if scale is None else weight_scale(scale)
        return train_together(self.candidates, self.entrants, scale, key, times, seeds)

    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """The predicted loss of every candidate, the criterion, and when each reaches it.

        The aligned gates are drawn too, as a reference; gates that a ReLU network would not keep
        are marked.
        """
        shown = dict(self.entrants)
        if ALIGNED not in shown and self.check.reference is not None:
            shown[f"{ALIGNED} (reference)"] = self.check.reference
        marks = {n: " (not kept)" if self.check.keeps(n) is False else "" for n in self.entrants}
        reached = [entrant.time for entrant in shown.values() if np.isfinite(entrant.time)]
        times = np.linspace(0, 1.6 * max(reached, default=1.0), 301)
        curves = {
            name + marks.get(name, ""): entrant.race.solve(times=times, start=entrant.start).loss
            for name, entrant in shown.items()
        }
        colours = dict(zip(curves, candidate_colours(self.entrants).values(), strict=False))
        colours |= dict.fromkeys(set(curves) - set(colours), COLOURS["theory"])
        ax = draw_curves(times, curves, kind="theory", color=colours, ax=ax)
        with style():
            levels = {entrant.criterion for entrant in self.entrants.values()}
            for level in levels:
                mark_line(ax, "criterion, reached at ●", y=level)
            for entrant, line in zip(shown.values(), ax.get_lines(), strict=False):
                if np.isfinite(entrant.time):
                    colour = line.get_color()
                    ax.plot(entrant.time, entrant.criterion, "o", color=colour, markersize=5)
            top = (1.05 + 0.1 * len(shown)) * max(loss.max() for loss in curves.values())
            ax.set(ylim=(0, top), xlim=(0, times[-1]))
            ax.legend(loc="upper right")  # above the curves
            ax.set_title(
                f"first: {', '.join(name + marks[name] for name in self.tied)}"
                if self.tied
                else "no candidate reaches the criterion"
            )
        return ax

    def __str__(self) -> str:
        order = sorted(self.times, key=self.times.__getitem__)
        shown = {name: self.entrants[name] for name in order}
        if ALIGNED not in shown and self.check.reference is not None:
            shown[ALIGNED] = self.check.reference
        rows = []
        for name, entrant in shown.items():
            first = np.nan if self.winner is None else self.times[self.winner]
            margin = entrant.time / first - 1
            later = "–" if not np.isfinite(margin) else f"{margin:.1%}".replace("%", " %")
            how = "exact" if entrant.race.is_exact else f"residual {entrant.race.residual:.1e}"
            time = f"{entrant.time:.5g}" if np.isfinite(entrant.time) else entrant.lateness
            can = {True: "yes", False: "no", None: "–"}[self.check.implementable.get(name)]
            share = self.check.kept.get(name, np.nan)
            kept = "–" if np.isnan(share) else f"{share:.2f}"
            how += "; reference" if name not in self.entrants else ""
            how += "; approximate start" if entrant.starts_roughly else ""
            rows.append(
                (
                    name,
                    time,
                    later,
                    f"{entrant.strength:.4g}",
                    can,
                    kept,
                    f"{how}; {entrant.method}",
                )
            )
        one = f"{self.winner} is first."
        several = f"{' and '.join(self.tied)} are first, at the same time."
        lines = [
            (one if len(self.tied) == 1 else several)
            if self.tied
            else "No candidate reaches the criterion.",
            *table_lines(COLUMNS, rows, right=COLUMNS[1:-1]),
        ]
        levels = sorted({f"{entrant.criterion:.4g}" for entrant in shown.values()})
        if levels:
            lines += [f"criterion: loss {' / '.join(levels)}", f"start: {self.start}"]
        lines += [
            f"{name}: when it learns is not known from an average start, in which pathways keep "
            "the signs of their first Σ^yx; start={name: weights} starts from actual weights."
            for name, entrant in shown.items()
            if entrant.is_unknown
        ]
        rough = [name for name, entrant in shown.items() if entrant.starts_roughly]
        if rough:
            lines.append(
                f"{', '.join(rough)}: started from weights that are not decoupled, through paths "
                "of three edges or more, so that times are approximate."
            )
        others = [name for name in order if name not in (self.winner, ALIGNED)]
        lines += self.check.sentences(self.winner)
        lines += [f"{name}: {self.check.verdict(name)}." for name in others]
        return "\n".join(lines)


def contest(
    candidates: CandidatesLike | Dataset,
    *,
    start: StartsLike | None = None,
    scale: float | None = None,
    criterion: float | None = None,
    relative: bool = False,
    longest: float = 1e5,
    tolerance: float | None = None,
    width: int | None = None,
    key: Key = 0,
    rtol: float | None = None,
) -> Contest:
    """Who wins the race: predicted learning times of candidate gatings, without training.

    Every candidate is reduced (`reduce`) and started. The time at which its loss falls to the
    criterion comes from its closed form if there is one, otherwise from the solved race. MHS (§3,
    Fig. 2d) assumes that a ReLU network takes the gating that learns first.

    **What a contest can tell:** learning times, winner and margins of gated networks, with nothing
    fitted; and, before anything is trained, whether a ReLU network would keep the winner's gates.

    **What it cannot tell:** a gated network obeys any gates, but a ReLU network keeps only those
    that its own weights produce. The winner need not be one of those, and a gating that was not
    entered may be faster. So the gates that small neurons align to by themselves (`reln.aligned`)
    are always entered as a reference, `aligned`. `print` shows for every candidate whether single
    neurons can have its gates (*implementable*, which predicts little) and the share of them that
    a ReLU network would keep (*kept*, `reln.consistency`). A candidate is kept if that share is at
    least .9 and it is no later than 1.15 times the reference. The check covers the first half of
    learning, from small weights. How often it was right on 18 tasks is measured in docs/kept.md.
    Aligned gates are known for one hidden layer. Where a candidate has several, it is checked layer
    by layer, and there is no reference: how long a deeper network takes is not known.

    **Arguments:** `candidates`, `{name: (arch, data)}`, of one task: the same samples, inputs and
    targets, with different gates and graphs (a candidate may read other input nodes than the rest;
    the reference then reads all of them); or one `Dataset`, to get the reference alone. A
    candidate that was reduced already may be given as its `Race`, which saves time where only the
    start or the criterion changes; it keeps its own `tolerance`. At most one of `start` and
    `scale`. `start` is a number for aligned starts that are equal whatever the widths, or for each
    candidate what `Race.start` takes (a number, or weights). `scale`, by default 1e-3, is the
    standard deviation of random weights, from which a two-edge pathway of N units starts on average
    at N σ²/2, so that at equal total width fewer pathways start ahead. The two differ: the XoR
    gatings cross at Δ = √(2/3) with `scale`, and at a larger Δ with `start`. `criterion`, a loss,
    by default 0.2 (MHS Fig. 2d), or with `relative=True` a share of ½⟨‖y‖²⟩, the loss of a network
    whose output is zero; for a dataset alone, by default half of that loss. `longest`, the time
    after which a race without closed form counts as never learning. `tolerance`, as in `reduce`.
    `width`, the number of neurons of the reference, by default that of the widest candidate, or
    200. `key` (a JAX key or an integer) draws the random neurons used to find the reference.
    `rtol`, the relative tolerance of races that must be solved, as in `Race.solve`.

    To rank single pathways by their early growth instead, see `rank_patterns`.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(1.0)
    >>> print(nr.contest({"linear": nr.tasks.linear_pathways(data),
    ...                   "xor": nr.tasks.xor_pathways(data)}, start=0.01)
    ... )  # doctest: +NORMALIZE_WHITESPACE
    linear is first.
    candidate    time  later by  strength  implementable  kept  reduction
    linear     8.6675     0.0 %       0.5            yes  1.00  exact; closed form
    xor         9.374     8.2 %     0.433            yes  1.00  exact; closed form
    aligned    8.2147    -5.2 %       0.5              –  1.00  exact; reference; solved race
    criterion: loss 0.2
    start: equal aligned starts: every edge at 0.01, whatever its width
    A ReLU network would keep the gates of linear.
    The check covers the first half of learning only, and the criterion is below that. For the whole
    curve, see types of neurons (nr.reln.types).
    xor: kept.
    >>> nr.contest(data).winner
    'aligned'

    ```
    """
    scale = SCALE if start is None and scale is None else scale
    alone = isinstance(candidates, Dataset)
    if criterion is None:
        criterion, relative = (0.5, True) if alone else (0.2, relative)
    rule = Rule(start, scale, criterion, relative, longest, tolerance, rtol)
    if width is not None:
        width = whole_number("the width", width, fix="width=200")
    if isinstance(candidates, Dataset):
        task, width = candidates.gated({}), WIDTH if width is None else width
        found = aligned_patterns(task, key=key)
        pairs = {ALIGNED: gating_of(found, width)} if len(found) else {}
        entrants = rule.enter(pairs) if pairs else {}
        return Contest(pairs, entrants, rule.describe(), scale, task, rule, width, key)
    return contest_by(rule, candidates, width, key)


def contest_by(
    rule: Rule, candidates: CandidatesLike, width: int | None = None, key: Key = 0
) -> Contest:
    """The contest of these candidates by a rule."""
    entrants = rule.enter(candidates)
    if ALIGNED in candidates:
        raise NeuralRaceError(
            f"no candidate can be called {ALIGNED!r}",
            got=f"candidates {listed(candidates)}",
            wanted="another name: the aligned gates are always entered, under this one",
            fix="rename it; contest(data) asks for the aligned gates alone",
        )
    pairs = dict(pairs_of(candidates))
    wide = width_of(pairs) if width is None else width
    return Contest(pairs, entrants, rule.describe(), rule.scale, task_of(pairs), rule, wide, key)
