"""Answers that need no training: the contest, and the reduction of every gating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuralrace.contests import Check, Contest, Entrant, Lead, leads
from neuralrace.contests.contest_picture import LONGER
from neuralrace.dataset import zero_loss
from neuralrace.errors import check_kind
from neuralrace.reduction import Race
from neuralrace.report import Code, Curve, Curves, Equation, Part, Section, Table, equations_of
from neuralrace.study.answers.answer import Answer, finite
from neuralrace.study.work import Work
from neuralrace.text import numbered, percent, several
from neuralrace.tolerances import EQUAL, MENTIONED

ALIGNED = "aligned"
"""The reference of a contest: the gates that small neurons align to by themselves."""

BLOCKS = 12
"""More blocks than this, of all gatings together, are folded away with their equations."""

SYSTEMS = 6
"""More systems of equations than this are folded away."""


def contest(work: Work) -> Answer:
    """Which gating learns first, by how much, and whether a ReLU network would keep its gates."""
    found = work.contest
    check = found.check() if work.settings.contest.check else None
    entrants = dict(found.entrants)
    if check is not None and check.reference is not None:
        entrants.setdefault(ALIGNED, check.reference)
    losses = _losses(entrants)
    curves = {c.name: c.mean for c in losses.curves if c.name in found.entrants}
    times = np.asarray(losses.curves[0].x if curves else [], float)
    first, *limits = contest_sentences(found, times, curves)
    sentences = [first, *limits]
    kept = [] if check is None else check.sentences(found.winner)
    if check is not None:
        others = [n for n in _order(found) if n not in (found.winner, ALIGNED)]
        sentences += [*kept, *(f"{name}: {check.describe(name)}." for name in others)]

    def parts() -> list[Part]:
        _ = found.leads  # which the library prints too
        printed = Section("As the library prints it", [Code(str(found))], folded=True)
        shown = [_table(found, entrants, check), losses]
        return shown if check is None else [*shown, printed]

    numbers = {f"time_{name}": _known_time(e) for name, e in found.entrants.items()}
    if check is not None:
        reference, shares = check.reference, check.kept
        numbers[f"time_{ALIGNED}"] = np.nan if reference is None else _known_time(reference)
        numbers |= {f"kept_{n}": float(shares.get(n, np.nan)) for n in (*found.times, ALIGNED)}
    return Answer(
        "contest",
        "Which gating learns first?" if len(found.entrants) > 1 else "When is the task learned?",
        tuple(sentences),
        parts,
        numbers,
        found,
        short=(sentences[0], *limits, *kept[:2]),
    )


def _known_time(entrant: Entrant) -> float:
    """When a gating reaches the criterion: infinite if never, NaN where that is not known."""
    return np.nan if entrant.is_unknown else float(entrant.time)


def first_sentence(found: Contest) -> str:
    """Who is first, or who share the first place, and how much later the next is.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.study.answers.theory import first_sentence
    >>> first_sentence(nr.contest({"xor": nr.tasks.xor_pathways(nr.tasks.extended_xor(0.5))}))
    'xor is predicted to reach the criterion at t = 13.46.'

    ```
    """
    if found.winner is None:
        said = "is known to reach" if found.is_unsure else "reaches"
        return f"No gating {said} the criterion."
    first, time = _tied(found), f"t = {found.times[found.winner]:.4g}"
    if len(found.entrants) == 1:  # there is nobody to be before
        return f"{found.winner} is predicted to reach the criterion at {time}."
    text = f"{found.winner} is predicted to learn first, at {time}"
    if len(first) > 1:
        text = f"{several(first)} are predicted to learn first, at the same time, {time}"
    second = [name for name in _order(found) if name not in first][:1]
    if not second:
        return f"{text}."
    margin = found.margins[second[0]]
    takes = "takes " if 1 < margin < np.inf else ""
    takes = "is " if found.entrants[second[0]].is_unknown else takes
    return f"{text}; {second[0]} {takes}{_place(found, second[0])}."


def contest_places(found: Contest) -> dict[str, str]:
    """Which place each gating has, in words: who is first, and how much later the others are.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(0.2)
    >>> linear, xor = nr.tasks.linear_pathways(data), nr.tasks.xor_pathways(data)
    >>> nr.study.contest_places(nr.contest({"linear": linear, "xor": xor}))
    {'linear': '4 times as long', 'xor': 'first'}
    >>> nr.study.contest_places(nr.contest({"xor": xor, "again": xor}))
    {'xor': 'tie for first', 'again': 'tie for first'}

    ```
    """
    check_kind("found", found, Contest, "nr.contest({name: (arch, data)})")
    first = _tied(found)
    best = "first" if len(first) == 1 else "tie for first"
    return {name: best if name in first else _place(found, name) for name in found.entrants}


def _place(found: Contest, name: str) -> str:
    """How much later than the first a gating is, or what is known of one that does not arrive."""
    entrant = found.entrants[name]
    return _later(found.margins[name]) if np.isfinite(entrant.time) else entrant.lateness


def _tied(found: Contest) -> list[str]:
    """The winner, and all whose times are no different."""
    return [name for name in _order(found) if found.margins[name] < EQUAL]


def _later(margin: float) -> str:
    """How much later than the first one is, from the difference as a share of the first's time.

    ```python
    >>> from neuralrace.study.answers.theory import _later
    >>> _later(0.177), _later(7.29)
    ('18 % later', '8.3 times as long')

    ```
    """
    return f"{percent(margin)} later" if margin <= 1 else f"{1 + margin:.2g} times as long"


def contest_sentences(
    found: Contest, times: np.ndarray, losses: Mapping[str, np.ndarray]
) -> list[str]:
    """A contest in words: who is first, where another leads, what the winner cannot learn.

    `losses` are the predicted losses of all candidates at `times`.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data, times = nr.tasks.extended_xor(0.5), np.linspace(0, 30, 301)
    >>> found = nr.contest({"linear": nr.tasks.linear_pathways(data),
    ...                     "xor": nr.tasks.xor_pathways(data)})
    >>> losses = {n: e.race.solve(times=times, start=e.start).loss
    ...           for n, e in found.entrants.items()}
    >>> nr.study.contest_sentences(found, times, losses)
    ['xor is predicted to learn first, at t = 13.46; linear 56 % later.']

    ```
    """
    check_kind("found", found, Contest, "nr.contest({name: (arch, data)})")
    every = leads(times, losses)
    said = [first_sentence(found)]
    if found.winner is not None and len(found.entrants) > 1:
        criterion = found.entrants[found.winner].criterion
        said += lead_sentences(every, found.winner, criterion, _whole(found))
    return [*said, *_limit_sentences(found)]


def _whole(found: Contest) -> float | None:
    """The loss of which losses are said as shares, where the criterion is a share; or None."""
    return float(zero_loss(found.task)) if found.rule.relative else None


def lead_sentences(
    every: Sequence[Lead], winner: str, criterion: float, whole: float | None = None
) -> list[str]:
    """The losses at which another candidate than the winner leads, as shares of `whole` if given.

    ```python
    >>> from neuralrace.contests import Lead
    >>> from neuralrace.study.answers.theory import lead_sentences
    >>> leads = [Lead("a", 0.4, 1.0), Lead("b", 0.2, 0.4), Lead("a", 0.0, 0.2)]
    >>> lead_sentences(leads, "a", criterion=0.5)
    ['At losses between 0.2 and 0.4 b leads.']
    >>> lead_sentences(leads, "a", criterion=0.5, whole=2.0)
    ['At shares of the initial loss between 0.1 and 0.2 b leads.']

    ```
    """
    said = []
    what, unit = ("losses", 1.0) if whole is None else ("shares of the initial loss", whole)
    for lead in every:
        if lead.name == winner or lead.low < criterion < lead.high:
            continue
        low, high = f"{lead.low / unit:.2g}", f"{lead.high / unit:.2g}"
        where = f"between {low} and {high}"
        if lead is every[-1]:
            where = f"below {high}"
        elif lead is every[0]:
            where = f"above {low}"
        said.append(f"At {what} {where} {lead.name} leads.")
    return said


def _limit_sentences(found: Contest) -> list[str]:
    """What the winner leaves unlearned, if that is more than a little."""
    if found.winner is None:
        return []
    least = {name: entrant.race.constant for name, entrant in found.entrants.items()}
    left = least[found.winner] / float(zero_loss(found.task))
    if left <= MENTIONED:
        return []
    whole = _whole(found)
    level = f"{least[found.winner]:.2g}, {percent(left)}"
    if whole is not None:
        level = f"a share of {left:.2g}"
    text = f"{found.winner} cannot learn the whole task: no weights bring its loss below {level} "
    text += "of the initial loss"
    best = min(least, key=least.__getitem__)
    if least[best] < least[found.winner] * (1 - MENTIONED):
        text += f"; {best} can get to {least[best] / (whole or 1.0):.2g}"
    return [f"{text}."]


def _order(found: Contest) -> list[str]:
    return sorted(found.times, key=found.times.__getitem__)


def _table(found: Contest, entrants: Mapping[str, Any], check: Check | None) -> Table:
    head = ["candidate", "time", *(["kept"] if check else []), "later by", "least loss"]
    head += ["strength", *(["implementable"] if check else []), "reduction", "method"]
    rows = []
    for name in sorted(entrants, key=lambda n: entrants[n].time):
        entrant = entrants[name]
        first = np.nan if found.winner is None else found.times[found.winner]
        margin = entrant.time / first - 1
        row: list[Any] = [
            name,
            finite(entrant.time),
            f"{100 * margin:.1f} %" if np.isfinite(margin) else None,
            float(entrant.race.constant),
            entrant.strength,
            "exact" if entrant.race.is_exact else f"residual {entrant.race.residual:.1e}",
            entrant.method,
        ]
        if check is not None:
            row.insert(2, finite(check.kept.get(name, np.nan)))
            row.insert(6, check.implementable.get(name))
        rows.append(row)
    levels = " / ".join(sorted({f"{e.criterion:.4g}" for e in entrants.values()}))
    caption = f"Time to a loss of {levels}; start: {found.start}. Least loss: that no weights get "
    caption += "below with these gates."
    return Table(head, rows, caption, file="contest.csv")


def _losses(entrants: Mapping[str, Any]) -> Curves:
    reached = [e.time for e in entrants.values() if np.isfinite(e.time)]
    times = np.linspace(0, LONGER * max(reached, default=1.0), 301)
    curves = [
        Curve(name, times, e.race.solve(times=times, start=e.start).loss, "theory")
        for name, e in entrants.items()
    ]
    caption = "Predicted losses"
    alt = f"Predicted losses over time of {', '.join(entrants)}."
    return Curves(curves, caption=caption, alt=alt, file="contest_losses.csv")


# ---- reduction ----------------------------------------------------------------------------------


def reduce(work: Work) -> Answer:
    """The equations of every gating."""
    races = work.reduced
    sentences = tuple(f"{name} {race_sentence(race)}" for name, race in races.items())

    def parts() -> list[Part]:
        head, rows = _blocks(races)
        sections = [Section(name, race_parts(race)) for name, race in races.items()]
        shown = [Table(head, rows, "Blocks of every gating", "reduce.csv"), *sections]
        if len(rows) <= BLOCKS:
            return shown
        title = f"{len(rows)} blocks of {numbered(len(races), 'gating')}, with their equations"
        return [Section(title, shown, folded=True)]

    numbers = {f"blocks_{name}": float(len(race.blocks)) for name, race in races.items()}
    numbers |= {f"residual_{name}": float(race.residual) for name, race in races.items()}
    asked = work.asks("predict", "certify") or (work.asks("contest") and work.contest.winner)
    followed = work.followed if asked else None
    short = sentences
    if followed in races:  # the gating that the other answers are about
        short = (f"{followed} {race_sentence(races[followed])}",)
    title = "What are the equations?"
    return Answer("reduce", title, sentences, parts, numbers, races, short=short)


def race_sentence(race: Race) -> str:
    """What a gating reduces to, and how exact that is.

    ```python
    >>> import neuralrace as nr
    >>> nr.study.race_sentence(nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor())))
    'reduces to 4 independent scalar modes, exactly: no coupling is dropped.'

    ```
    """
    check_kind("race", race, Race, "nr.reduce(arch, data)")
    scalar, count = sum(block.is_scalar for block in race.blocks), len(race.blocks)
    if not race.reduces:
        return "does not reduce: one block holds all, and is solved as it is."
    kind = "scalar modes" if scalar == count else f"blocks, {scalar} of them scalar"
    what = f"reduces to {count} independent {kind}"
    if count == 1:
        what = f"reduces to one {'scalar mode' if scalar else 'block'}"
    how = (
        "exactly: no coupling is dropped"
        if race.is_exact
        else f"approximately: couplings up to {race.residual:.1e} are dropped"
    )
    return f"{what}, {how}."


def race_parts(race: Race) -> list[Part]:
    """Equations to look at, the table of blocks as printed, and LaTeX to copy."""
    parts: list[Part] = list(equations_of(race))
    if sum(isinstance(part, Equation) for part in parts) > SYSTEMS:
        parts = [Section("Equations", parts, folded=True)]
    printed = Section("As the library prints it", [Code(str(race))], folded=True)
    return [*parts, printed, Section("LaTeX", [Code(race.latex())], folded=True)]


def _blocks(races: Mapping[str, Race]) -> tuple[list[str], list[list[Any]]]:
    head = ["gating", "block", "scalar", "strength"]
    rows: list[list[Any]] = [
        [name, block.name, bool(block.is_scalar), float(block.drive)]
        for name, race in races.items()
        for block in race.blocks
    ]
    return head, rows
