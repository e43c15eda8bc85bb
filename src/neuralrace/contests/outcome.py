"""A contest as a table and in words: who is first, who leads at which loss, what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING, final

import numpy as np

from neuralrace.checks import real_array
from neuralrace.contests.verdicts import ALIGNED, BECOMES
from neuralrace.dataset import zero_loss
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.reduction.coupled import stages_of, told
from neuralrace.reduction.start import LARGE_HOLDS
from neuralrace.results import KEPT_SHARE, SHARE, TIME, Sentence, framed
from neuralrace.text import percent, several
from neuralrace.tolerances import EQUAL, FALLEN, MENTIONED
from neuralrace.types import ArrayLike

if TYPE_CHECKING:
    import pandas

    from neuralrace.contests.contest import Contest
    from neuralrace.reduction import Start

COLUMNS = (
    "candidate",
    "time",
    "margin",
    "kept",
    "verdict",
    "least_loss",
    "learns",
    "strength",
    "implementable",
    "residual",
    "exact",
    "method",
    "reference",
    "rough",
)
"""The columns of `Contest.frame`."""

PRINTED = (
    "candidate",
    "time",
    "margin",
    "learns",
    "strength",
    "implementable",
    "kept",
    "verdict",
    "exact",
    "method",
)
"""Those that are printed."""

ZERO = "½⟨‖y‖²⟩"
"""The loss of a network whose output is zero."""

KNOWN = " of those whose time is known"
"""What is added to a winner where the time of another candidate is not known."""


@final
@dataclass(frozen=True)
class Lead:
    """The candidate `name` is the first to reach every loss between `low` and `high`.

    ```python
    >>> from neuralrace.contests import Lead, leads
    >>> leads([0, 1, 2], {"fast": [1.0, 0.5, 0.0], "slow": [1.0, 0.9, 0.8]})
    (Lead(name='fast', low=0.01, high=0.99),)

    ```
    """

    name: str
    low: float
    high: float


@door
def leads(times: ArrayLike, losses: Mapping[str, ArrayLike]) -> tuple[Lead, ...]:
    """Who is first to reach a loss, for every loss, from the largest to the least.

    The winner of a contest is the first to reach one loss, the criterion; at another loss it can be
    another candidate. Whoever is first to reach a loss is at that moment below all others, so the
    leaders are the candidates along the lower envelope of the curves.

    **Assumes** losses that do not rise, as those of gradient flow. Between two moments they are
    taken to be straight lines. The first and the last hundredth of the fall are left out: there all
    candidates have learned next to nothing, or one of them next to all, and leads mean nothing.

    **Arguments:** `times` is (T,), and the losses of every candidate by name are (T,).

    ```python
    >>> from neuralrace.contests import leads
    >>> found = leads([0, 1, 2, 3], {"early": [1, 0.6, 0.5, 0.5], "late": [1, 1, 0.4, 0.0]})
    >>> [(lead.name, round(lead.low, 2)) for lead in found]
    [('early', 0.52), ('late', 0.01)]

    ```
    """
    moments = real_array("times", times, wanted="shape (T,)", fix="pass those of the losses")
    named = losses
    curves = [
        real_array(f"losses of {name!r}", loss, wanted="(T,)", fix="one loss per time")
        for name, loss in named.items()
    ]
    require(
        curves and not any(curve.shape != moments.shape for curve in curves),
        "the losses do not fit the times",
        got=f"times {moments.shape}, losses {[curve.shape for curve in curves]}",
        wanted="one loss per time for at least one candidate",
        fix="solve all races at the same times",
    )
    names, many = list(named), np.stack(curves)
    initial, least = float(many[:, 0].max()), float(many.min())
    high, low = (least + part * (initial - least) for part in (1 - FALLEN, FALLEN))
    envelope = many.min(axis=0)
    inside = np.flatnonzero((envelope <= high) & (envelope >= low))
    if not len(inside) or least == initial:
        return ()
    equal = EQUAL * initial  # of equal candidates, the first leads
    now, found = int((many[:, inside[0]] <= envelope[inside[0]] + equal).argmax()), []
    for i in inside[1:]:
        ahead = int((many[:, i] <= envelope[i] + equal).argmax())
        if many[now, i] - envelope[i] > equal:
            level = _meeting(many[now, i - 1 : i + 1], many[ahead, i - 1 : i + 1])
            found.append(Lead(names[now], level, high))
            high, now = level, ahead
    return (*found, Lead(names[now], low, high))


def _meeting(one: np.ndarray, other: np.ndarray) -> float:
    """The loss at which two straight lines meet that change their order."""
    gap = one - other
    share = np.clip(gap[0] / (gap[0] - gap[1]), 0, 1)
    return float(one[0] + share * (one[1] - one[0]))


def contest_frame(found: Contest) -> pandas.DataFrame:
    """See `Contest.frame`."""
    check = found.checked
    entrants = {name: found.entrants[name] for name in in_order(found)}
    if check is not None and check.reference is not None:
        entrants.setdefault(ALIGNED, check.reference)
    first = np.nan if found.winner is None else found.times[found.winner]
    verdicts = {} if check is None else check.verdicts
    shares = {} if check is None else check.kept
    possible = {} if check is None else check.implementable
    rows = [
        {
            "candidate": name,
            "time": np.nan if entrant.is_unknown else entrant.time,
            "margin": np.nan if entrant.is_unknown else entrant.time / first - 1,
            "kept": shares.get(name, np.nan),
            "verdict": verdicts.get(name),
            "least_loss": float(entrant.race.constant),
            "learns": entrant.learns,
            "strength": entrant.strength,
            "implementable": possible.get(name),
            "residual": float(entrant.race.residual),
            "exact": entrant.is_exact,
            "method": entrant.method,
            "reference": name not in found.entrants,
            "rough": bool(entrant.starts_roughly),
        }
        for name, entrant in entrants.items()
    ]
    return framed(
        COLUMNS, rows, {"time": TIME, "margin": SHARE, "kept": KEPT_SHARE, "learns": SHARE}
    )


def contest_sentences(found: Contest, leads: Sequence[Lead]) -> Iterator[Sentence]:
    """See `Contest.sentences`; `leads` say who is first at other criteria."""
    check = found.checked
    if any(entrant.start.is_large for entrant in found.entrants.values()):
        yield Sentence("large", _what_is_large(found))
    yield Sentence("first", first_sentence(found))
    if check is None:
        text = "Not checked: would a ReLU network keep these gates? Ask check(). For what a ReLU "
        text += "network learns without gates that are given, see nr.predict."
        yield Sentence("unchecked", text)
    else:
        short = found.winner in check.kept and not check.detail(str(found.winner))
        every = check.sentences(found.winner)
        yield from (said for said in every if said.id != "kept" or not short)
    yield from limit_sentences(found)
    if found.entrants:
        yield Sentence("basis", _basis(found))
    for name, entrant in found.entrants.items():
        if entrant.is_unknown:
            text = f"{name}: when it learns is not known: {entrant.unknown}."
            yield Sentence("unknown", text)
        if entrant.starts_roughly:
            text = f"{name}: started from weights that are not decoupled, through paths of three "
            yield Sentence("rough", text + "edges or more, so that its time is approximate.")
        elif entrant.start.network and not (entrant.start.is_exact or entrant.start.is_large):
            yield Sentence("rough", f"{name}: {_what_is_left_out(entrant.start)}")
        for _, stages in groupby(
            stages_of(entrant.race, entrant.start, solve=False), lambda stage: stage.block
        ):
            yield Sentence("stages", f"{name}, {told(list(stages), compared=False)}")
        if not entrant.race.is_exact:
            yield Sentence("inexact", f"{name}: its reduction is {entrant.race.exactness}.")
    yield from lead_sentences(found, leads)
    if check is not None:
        for name in in_order(found):
            if name not in (found.winner, ALIGNED) and check.detail(name):
                yield Sentence("verdict", f"{name}: {check.describe(name)}.")


def _what_is_large(found: Contest) -> str:
    """That the start is too large, and by how much the race is off there."""
    starts = {name: entrant.start for name, entrant in found.entrants.items()}
    off = [f"{percent(s.gap)} for {n}" for n, s in starts.items() if s.is_large and s.gap]
    return (
        "The start is too large for learning times to be known: the loss of the race there is off "
        f"by {several(off)}. {LARGE_HOLDS}"
    )


def _what_is_left_out(start: Start) -> str:
    """Why a time from weights is approximate, and by how much."""
    part = start.mixing if start.is_measured else max(start.mixing, start.gap or 0.0)
    size = f", by a part of about {part:.1g}" if isfinite(part) else ""
    return (
        f"its time is approximate{size}: its modes share hidden neurons, or its start is not small."
    )


def _basis(found: Contest) -> str:
    """What the times refer to: the criterion and the start."""
    levels = {float(f"{entrant.criterion:.9g}") for entrant in found.entrants.values()}
    level = " / ".join(f"{each:.4g}" for each in sorted(levels))
    share = f"{found.rule.criterion:g} of {ZERO}, " * found.rule.relative
    assumed = f"; width: {found.width} neurons" * ({*found.candidates} <= {ALIGNED})
    return f"Criterion: {share}loss {level}; start: {found.start}{assumed}."


def in_order(found: Contest) -> list[str]:
    """All candidates, the first to learn first; of equal ones, the one that was given first."""
    return sorted(found.times, key=lambda name: (name not in found.tied, found.times[name]))


def nobody(unsure: bool) -> str:
    """What is said where no candidate is first; `unsure` if the time of some is not known."""
    return f"no gating {'is known to reach' if unsure else 'reaches'} the criterion"


def first_sentence(found: Contest) -> str:
    """Who is first, how much later the next is, and what was checked of the winner.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.contests.outcome import first_sentence
    >>> first_sentence(nr.contest({"xor": nr.tasks.xor_pathways(nr.tasks.extended_xor(0.5))}))
    'xor is predicted to reach the criterion at t = 13.46.'

    ```
    """
    if found.winner is None:
        said = nobody(found.is_unsure)
        return f"{said[0].upper()}{said[1:]}."
    first, time = found.tied, f"t = {found.times[found.winner]:.4g}"
    check, then = found.checked, "."
    if check is not None and found.winner != ALIGNED:
        then = f"; a ReLU network {BECOMES[check.verdict(found.winner)].format(found.winner)}."
    if len(found.entrants) == 1:  # there is nobody to be before
        return f"{found.winner} is predicted to reach the criterion at {time}{then}"
    known = KNOWN * found.is_unsure
    text = f"{found.winner} is predicted to learn first{known}, at {time}"
    if len(first) > 1:
        text = f"{several(first)} are predicted to learn first{known}, at the same time, {time}"
    second = [name for name in in_order(found) if name not in first][:1]
    if not second:
        return f"{text}{then}"
    takes = "takes " if 1 < found.margins[second[0]] < np.inf else ""
    takes = "is " if found.entrants[second[0]].is_unknown else takes
    return f"{text}; {second[0]} {takes}{place(found, second[0])}{then}"


def place(found: Contest, name: str) -> str:
    """See `Contest.place`."""
    if name in found.tied:
        return "first" if len(found.tied) == 1 else "tie for first"
    entrant, margin = found.entrants[name], found.margins[name]
    if not np.isfinite(entrant.time):
        return entrant.lateness
    return f"{percent(margin)} later" if margin <= 1 else f"{1 + margin:.2g} times as long"


def _whole(found: Contest) -> float | None:
    """The loss of which losses are said as shares, where the criterion is a share; or None."""
    return float(zero_loss(found.task)) if found.rule.relative else None


def lead_sentences(found: Contest, leads: Sequence[Lead]) -> Iterator[Sentence]:
    """The losses at which another candidate than the winner leads."""
    if found.winner is None or len(found.entrants) == 1:
        return
    if any(entrant.start.is_large for entrant in found.entrants.values()):
        return
    whole, criterion = _whole(found), found.entrants[found.winner].criterion
    what, unit = ("losses", 1.0) if whole is None else ("shares of the initial loss", whole)
    for lead in leads:
        if lead.name in found.tied or lead.low < criterion < lead.high:
            continue
        between = f"between {lead.low / unit:.2g} and {lead.high / unit:.2g}"
        yield Sentence("lead", f"At {what} {between} {lead.name} leads.")


def limit_sentences(found: Contest) -> Iterator[Sentence]:
    """What the winner leaves unlearned, if that is more than a little."""
    if found.winner is None:
        return
    least = {name: entrant.race.constant for name, entrant in found.entrants.items()}
    left = least[found.winner] / float(zero_loss(found.task))
    if left <= MENTIONED:
        return
    whole = _whole(found)
    level = f"{least[found.winner]:.2g}, {percent(left)}"
    if whole is not None:
        level = f"a share of {left:.2g}"
    text = f"{found.winner} cannot learn the whole task: no weights bring its loss below {level} "
    text += "of the initial loss"
    best = min(least, key=least.__getitem__)
    if least[best] < least[found.winner] * (1 - MENTIONED):
        text += f"; {best} can get to {least[best] / (whole or 1.0):.2g}"
    yield Sentence("limit", f"{text}.")
