"""Candidate gatings side by side: who learns first, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from neuralrace.checks import one_of
from neuralrace.contests.joint import Joint, train_together
from neuralrace.contests.outcome import (
    PRINTED,
    Lead,
    contest_frame,
    contest_sentences,
    leads,
    nobody,
    place,
)
from neuralrace.contests.pictures import draw_contest
from neuralrace.contests.times import (
    Candidates,
    CandidatesLike,
    Entrant,
    Rule,
    StartsLike,
    moments,
    tied_first,
)
from neuralrace.contests.verdicts import ALIGNED, Check, Kept, check, task_of, width_of
from neuralrace.dataset import Dataset, with_bias
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.reln.explained.aligned import gating_of
from neuralrace.reln.explained.alignment import aligned_patterns
from neuralrace.results import Result, Sentence
from neuralrace.tolerances import LONGEST, MENTIONED, SCALE
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, Key, NotNegative, Positive, Scale, Share, Tolerance

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

MOMENTS = 201
"""The number of moments until the end of each candidate at which all curves are compared."""

FOLLOWED = 3.0
"""Races that must be solved are followed for this many times their learning time."""

WIDTH = 200
"""The number of neurons of the reference if no candidate has hidden neurons."""


@final
@dataclass(frozen=True, eq=False)
class Contest(Result):
    """Learning times of candidate gatings; see `contest`.

    `entrants` holds every candidate's race, start and time by name; `start` describes in words how
    they started. Times refer to gradient flow with τ = 1. `checked` is what `check` found, or None
    before it was asked for. Printing and drawing show what is there, and compute no check.

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

    _asked = ("_check", "_ends", "curves", "leads")

    def check(self) -> Check:
        """Whether a ReLU network would keep each candidate's gates.

        The reference is the gating that small neurons align to by themselves (`reln.aligned`). The
        check solves the races once more: it takes seconds, and shows its progress. The result is
        remembered, and shown by `print` and `plot` from then on. What ReLU networks do with gates
        is known without weight decay only.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(0.4)
        >>> found = nr.contest({"side": nr.tasks.natural_gatings(data)["side"]}, scale=1e-3)
        >>> found.checked is None, found.check().verdict("side"), found.checked.implementable
        (True, <Kept.NOT_KEPT: 'not kept'>, {'side': True})

        ```
        """
        self._check_plain("check()", "whether a ReLU network would keep gates")
        return self._check

    def _check_plain(self, what: str, known: str) -> None:
        decay = self.rule.weight_decay
        require(
            not decay,
            f"{what} does not know weight decay",
            got=f"a contest with weight_decay={decay!r}",
            wanted=f"a contest without it: {known} is known for the loss alone",
            fix="nr.contest(…) without weight_decay",
        )

    @cached_property
    def _check(self) -> Check:
        return check(self.task, self.entrants, self.rule, self.width, self.key)

    @property
    def checked(self) -> Check | None:
        """What `check` found, or None where nobody asked yet."""
        return self.__dict__.get("_check")

    @door
    def keeps(self, name: str) -> bool | None:
        """Whether a candidate is kept and not outrun, as `Check.keeps`, measured for it alone.

        This is quicker than `check` where there are many candidates.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(0.4)
        >>> found = nr.contest({"side": nr.tasks.natural_gatings(data)["side"]}, scale=1e-3)
        >>> found.keeps("side")
        False

        ```
        """
        self._check_plain("keeps()", "whether a ReLU network would keep gates")
        one_of("name", name, self.entrants, "a candidate of this contest")
        if self.checked is not None:  # everything was measured already
            return self.checked.keeps(name)
        only = check(self.task, self.entrants, self.rule, self.width, self.key, only=name)
        return only.keeps(name)

    @property
    def kept(self) -> dict[str, float]:
        """The kept share of every candidate, and of the reference as `aligned`; makes the check."""
        return dict(self.check().kept)

    @property
    def verdicts(self) -> dict[str, Kept]:
        """What a ReLU network would do with each candidate's gates; makes the check."""
        return self.check().verdicts

    @property
    def times(self) -> dict[str, float]:
        """When each candidate's loss falls to the criterion; infinite if never, or not known."""
        return {name: entrant.time for name, entrant in self.entrants.items()}

    @property
    def is_unsure(self) -> bool:
        """Whether the time of some candidate is not known (`Entrant.unknown`): it may be first."""
        return any(entrant.is_unknown for entrant in self.entrants.values())

    @property
    def winner(self) -> str | None:
        """The candidate that is first, or None where no candidate reaches the criterion.

        Of several that are equal (`tied`), the one that was given first. Candidates whose time is
        not known count as late; `is_unsure` says whether there are any.
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

    @door
    def place(self, name: str) -> str:
        """Whether a candidate is first, how much later it is, or what is known of its time.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(0.2)
        >>> nr.contest({"linear": nr.tasks.linear_pathways(data),
        ...             "xor": nr.tasks.xor_pathways(data)}).place("linear")
        '4 times as long'

        ```
        """
        return place(self, one_of("name", name, self.entrants, "a candidate of this contest"))

    @property
    def strengths(self) -> dict[str, float]:
        """The drive of each candidate's strongest block (`Block.drive`).

        It belongs to one pathway, with all its inputs and outputs side by side: pathways that
        overlap are not stronger for it, and an output node is as strong as its parts together. The
        rate at which small weights first grow is `Block.growth_rate`.
        """
        return {name: entrant.strength for name, entrant in self.entrants.items()}

    @property
    def residuals(self) -> dict[str, float]:
        """The largest coupling that each candidate's reduction dropped (`Race.residual`)."""
        return {name: entrant.race.residual for name, entrant in self.entrants.items()}

    @door
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
                    f"{nobody(self.is_unsure)}, so times, how long to train, must be given",
                    got=f"times {self.times}",
                    wanted="times= for the joint training",
                    fix="pass times=np.linspace(0, 100, 201), or a criterion that can be reached",
                )
            times = np.linspace(0, 2 * self.times[self.winner], 201)
        scale = self.scale if scale is None else scale
        decay = self.rule.weight_decay
        return train_together(self.candidates, self.entrants, scale, key, times, seeds, decay)

    @door
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The predicted loss of every candidate, the criterion, and when each reaches it.

        After a `check`, the aligned gates are drawn too, as a reference, and gates that a ReLU
        network would not keep are marked. Nothing is solved, unless the contest said `leads=False`
        and `curves` were not asked for.
        """
        return draw_contest(self, ax)

    @cached_property
    def _ends(self) -> list[float]:
        """How long each candidate is followed, of those for which that is known."""
        ends = [
            e.end(self.rule.longest) if e.has_form or np.isinf(e.time) else FOLLOWED * e.time
            for e in self.entrants.values()
        ]
        return [end for end in ends if np.isfinite(end)]

    @cached_property
    def curves(self) -> dict[str, Trajectory]:
        """The predicted loss of every candidate, all over the same times.

        They are solved with the contest, unless it said `leads=False`. `Check.curve` is that of the
        reference.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(1.0)
        >>> found = nr.contest({"xor": nr.tasks.xor_pathways(data)}, scale=1e-3)
        >>> run = found.curves["xor"]
        >>> bool(run.loss[0] > 0.49 > 0.01 > run.loss[-1] > 0)
        True

        ```
        """
        grids = [moments(self.entrants.values())]
        grids += [np.linspace(0, end, MOMENTS) for end in self._ends]
        times = np.unique(np.concatenate(grids))
        return {
            name: e.race.solve(
                times=times, start=e.start, rtol=self.rule.rtol, weight_decay=e.weight_decay
            )
            for name, e in self.entrants.items()
        }

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Who would be first at other criteria, from the largest loss to the least (`leads`).

        Curves are followed until every candidate has learned all but a hundredth of what it can,
        or, where a race must be solved, for three times as long as it takes to the criterion; a
        lead that changes later is not seen.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(1.0)
        >>> found = nr.contest({"linear": nr.tasks.linear_pathways(data),
        ...                     "xor": nr.tasks.xor_pathways(data)}, scale=1e-3)
        >>> [lead.name for lead in found.leads]
        ['linear']

        ```
        """
        if len(self.entrants) < 2 or not self._ends:
            return ()
        time = next(iter(self.curves.values())).time
        return leads(time, {name: run.loss for name, run in self.curves.items()})

    @property
    def followed(self) -> tuple[Lead, ...]:
        """The `leads` if they were computed, as with the contest unless it said `leads=False`."""
        return self.__dict__.get("leads", ())

    def frame(self) -> pandas.DataFrame:
        """One row per candidate, the first to learn first, and one for the reference if checked.

        `candidate`; `time`, infinite for never, NaN where it is not known; `margin`, how much later
        than the winner's, as a share; `kept`, the share of its gates that a ReLU network would
        keep, NaN where not known or not asked; `verdict`, a `Kept`, or None before the check;
        `least_loss`, below which no weights get; `learns`, the part of the loss ½⟨‖y‖²⟩ that can be
        learned; `strength` (`strengths`); `implementable`, or None; `residual`, the largest
        coupling that the reduction dropped; `exact`, whether it dropped none; `method`, where the
        time comes from; `reference`, whether it is the aligned gates of the check; `rough`, whether
        its start is approximate. Makes no check.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.tasks.extended_xor(0.5)
        >>> found = nr.contest({"linear": nr.tasks.linear_pathways(data),
        ...                     "xor": nr.tasks.xor_pathways(data)})
        >>> found.frame()[["candidate", "margin"]].round(3).values.tolist()
        [['xor', 0.0], ['linear', 0.56]]

        ```
        """
        return contest_frame(self)

    @door
    def sentences(self, *, leads: Sequence[Lead] | None = None) -> tuple[Sentence, ...]:
        """Who is first, what was asked, what a ReLU network would do, and what else to know.

        `leads` are those of the contest, as far as they were computed, unless they are given.
        """
        return tuple(contest_sentences(self, self.followed if leads is None else leads))

    def _printed(self) -> pandas.DataFrame:
        table = self.frame()
        full = bool((table["learns"] > 1 - MENTIONED).all())
        return table.loc[:, [name for name in PRINTED if not (full and name == "learns")]]


@door
def contest(
    candidates: CandidatesLike | Dataset,
    *,
    start: StartsLike | None = None,
    scale: Scale | None = None,
    criterion: Positive | None = None,
    relative: bool = False,
    longest: Positive = LONGEST,
    tolerance: Positive | None = None,
    width: Count | None = None,
    key: Key = 0,
    rtol: Tolerance | None = None,
    leak: Share = 0.0,
    bias: bool = False,
    weight_decay: NotNegative | None = None,
    leads: bool = True,
    check: bool = False,
) -> Contest:
    """Who wins the race: predicted learning times of candidate gatings, without training.

    Every candidate is reduced (`reduce`) and started. The time at which its loss falls to the
    criterion comes from its closed form if there is one, otherwise from the solved race. MHS (§3,
    Fig. 2d) assumes that a ReLU network takes the gating that learns first.

    **What a contest can tell:** learning times, winner and margins of gated networks, with nothing
    fitted; and, before anything is trained, whether a ReLU network would keep the winner's gates.

    **What it cannot tell:** a gated network obeys any gates, but a ReLU network keeps only those
    that its own weights produce. The winner need not be one of those, and a gating that was not
    entered may be faster. So `check=True` or `Contest.check()` compares all with the gates that
    small neurons align to by themselves (`reln.aligned`), as the reference `aligned`. From then on
    `print` shows for every candidate whether single neurons can have its gates (*implementable*,
    which predicts little) and the share of them that a ReLU network would keep (*kept*,
    `reln.consistency`). A candidate is kept if that share is at least .9 and its time is within a
    factor of 1.15 of the reference's; `Check.verdict` gives the verdict as a `Kept`. The check
    covers the first half of learning, from small weights. How often it was right on 18 tasks is
    measured in docs/kept.md. Aligned gates are known for one hidden layer. Where a candidate has
    several, it is checked layer by layer, and there is no reference: how long a deeper network
    takes is not known. Where candidates share weights, such as recurrent pathways, there is no
    check: what holds for one step is not known for several.

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
    whose output is zero; for a dataset alone, by default half of that loss. `longest`, how
    long a race without closed form is followed, in units of one over its largest strength; where
    that is too short, its time is unknown. `tolerance`, as in `reduce`.
    `width`, the number of neurons of the reference, by default that of the widest candidate, or
    200. `key` (a JAX key or an integer) draws the random neurons used to find the reference.
    `rtol`, the relative tolerance of races that must be solved, as in `Race.solve`. `leak` and
    `bias` say which ReLU network would have to keep the gates: `leak` is the slope of a neuron that
    is off, from 0 to 1, and with `bias=True` the hidden neurons of every candidate and of the
    reference read one more input, `bias`, that is always one. An output bias is not gated, and is
    not known here. `leads=False` does not ask who would be first at other criteria, which saves up
    to half of the time. `weight_decay` λ is as in `nr.flow`: every candidate decays, and the
    criterion is one of the loss alone; there is no check then. Momentum and other rules belong to
    descent with a rate, which a contest does not have: `race.solve` follows them.
    `check=True` makes the check at once; it takes seconds.

    To rank single pathways by their early growth instead, see `rank_patterns`.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(1.0)
    >>> print(nr.contest({"linear": nr.tasks.linear_pathways(data),
    ...                   "xor": nr.tasks.xor_pathways(data)}, start=0.01, check=True)
    ... )  # doctest: +NORMALIZE_WHITESPACE
    linear is predicted to learn first, at t = 8.667; xor 8.2 % later; a ReLU network would keep
    the gates of linear.
    candidate   time  margin  strength  implementable  kept  verdict  exact  method
    linear     8.667     0 %       0.5  yes            1.00  kept       yes  closed form
    xor        9.374   8.2 %     0.433  yes            1.00  kept       yes  closed form
    aligned    8.215  -5.2 %       0.5  –              1.00  –          yes  solved race
    The check covers the first half of learning only, and the criterion is below that.
    For the whole curve, see nr.predict.
    Criterion: loss 0.2; start: equal aligned starts: every edge at 0.01, whatever its width.
    At losses between 0.49 and 0.49 xor leads.
    >>> nr.contest(data).winner
    'aligned'

    ```
    """
    scale = SCALE if start is None and scale is None else scale
    alone = isinstance(candidates, Dataset)
    if criterion is None:
        criterion, relative = (0.5, True) if alone else (0.2, relative)
    rule = Rule(
        start, scale, criterion, relative, longest, tolerance, rtol, leak, bias, weight_decay
    )
    if isinstance(candidates, Dataset):
        task, width = candidates.gated({}), WIDTH if width is None else width
        task = with_bias(task) if bias else task
        patterns = aligned_patterns(task, key=key, leak=leak)
        pairs = {ALIGNED: gating_of(patterns, width)} if len(patterns) else {}
        entrants = rule.enter(pairs) if pairs else {}
        held = Contest(pairs, entrants, rule.describe(), scale, task, rule, width, key)
    else:
        held = contest_by(rule, candidates, width, key)
    if leads:
        _ = held.curves, held.leads
    if check:
        held.check()
    return held


def contest_by(
    rule: Rule, candidates: CandidatesLike, width: int | None = None, key: Key = 0
) -> Contest:
    """The contest of these candidates by a rule."""
    entrants = rule.enter(candidates)
    require(
        ALIGNED not in candidates,
        f"no candidate can be called {ALIGNED!r}",
        got=f"candidates {listed(candidates)}",
        wanted="another name: the aligned gates are always entered, under this one",
        fix="rename it; contest(data) asks for the aligned gates alone",
    )
    pairs = dict(rule.pairs(candidates))
    wide = width_of(pairs) or WIDTH if width is None else width
    return Contest(pairs, entrants, rule.describe(), rule.scale, task_of(pairs), rule, wide, key)
