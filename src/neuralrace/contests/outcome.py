"""A contest as a table and in words: who is first, and what a ReLU network would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.contests.leads import Lead
from neuralrace.contests.verdicts import ALIGNED
from neuralrace.dataset import zero_loss
from neuralrace.results import KEPT, SHARE, TIME, Sentence, framed
from neuralrace.text import percent, several

if TYPE_CHECKING:
    import pandas

    from neuralrace.contests.contest import Contest

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

UNLEARNED = 0.01
"""A winner that leaves more than this part of the initial loss is said to leave it."""


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
            "exact": bool(entrant.race.is_exact),
            "method": entrant.method,
            "reference": name not in found.entrants,
            "rough": bool(entrant.starts_roughly),
        }
        for name, entrant in entrants.items()
    ]
    return framed(COLUMNS, rows, {"time": TIME, "margin": SHARE, "kept": KEPT, "learns": SHARE})


def contest_sentences(found: Contest, leads: Sequence[Lead]) -> Iterator[Sentence]:
    """See `Contest.sentences`; `leads` say who is first at other criteria."""
    check = found.checked
    yield Sentence("first", first_sentence(found))
    if found.entrants:
        yield Sentence("basis", _basis(found))
    if check is None:
        text = "Not checked: would a ReLU network keep these gates? Ask check()."
        yield Sentence("unchecked", text)
    else:
        yield from check.sentences(found.winner)
    yield from limit_sentences(found)
    for name, entrant in found.entrants.items():
        if entrant.is_unknown:
            text = f"{name}: when it learns is not known: {entrant.unknown}."
            yield Sentence("unknown", text)
        if entrant.starts_roughly:
            text = f"{name}: started from weights that are not decoupled, through paths of three "
            yield Sentence("rough", text + "edges or more, so that its time is approximate.")
        if not entrant.race.is_exact:
            text = f"{name}: its reduction drops couplings up to {entrant.race.residual:.1e}."
            yield Sentence("inexact", text)
    yield from lead_sentences(found, leads)
    if check is not None:
        for name in in_order(found):
            if name not in (found.winner, ALIGNED):
                yield Sentence("verdict", f"{name}: {check.describe(name)}.")


def _basis(found: Contest) -> str:
    """What the times refer to: the criterion and the start."""
    levels = {float(f"{entrant.criterion:.9g}") for entrant in found.entrants.values()}
    level = " / ".join(f"{each:.4g}" for each in sorted(levels))
    share = f"{found.rule.criterion:g} of {ZERO}, " * found.rule.relative
    return f"Criterion: {share}loss {level}; start: {found.start}."


def in_order(found: Contest) -> list[str]:
    """All candidates, the first to learn first; of equal ones, the one that was given first."""
    return sorted(found.times, key=lambda name: (name not in found.tied, found.times[name]))


def nobody(unsure: bool) -> str:
    """What is said where no candidate is first; `unsure` if the time of some is not known."""
    return f"no gating {'is known to reach' if unsure else 'reaches'} the criterion"


def first_sentence(found: Contest) -> str:
    """Who is first, or who share the first place, and how much later the next is.

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
    if len(found.entrants) == 1:  # there is nobody to be before
        return f"{found.winner} is predicted to reach the criterion at {time}."
    known = KNOWN * found.is_unsure
    text = f"{found.winner} is predicted to learn first{known}, at {time}"
    if len(first) > 1:
        text = f"{several(first)} are predicted to learn first{known}, at the same time, {time}"
    second = [name for name in in_order(found) if name not in first][:1]
    if not second:
        return f"{text}."
    takes = "takes " if 1 < found.margins[second[0]] < np.inf else ""
    takes = "is " if found.entrants[second[0]].is_unknown else takes
    return f"{text}; {second[0]} {takes}{place(found, second[0])}."


def place(found: Contest, name: str) -> str:
    """See `Contest.place`."""
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
    if left <= UNLEARNED:
        return
    whole = _whole(found)
    level = f"{least[found.winner]:.2g}, {percent(left)}"
    if whole is not None:
        level = f"a share of {left:.2g}"
    text = f"{found.winner} cannot learn the whole task: no weights bring its loss below {level} "
    text += "of the initial loss"
    best = min(least, key=least.__getitem__)
    if least[best] < least[found.winner] * (1 - UNLEARNED):
        text += f"; {best} can get to {least[best] / (whole or 1.0):.2g}"
    yield Sentence("limit", f"{text}.")
