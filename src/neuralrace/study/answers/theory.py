"""Answers that need no training: the contest, and the reduction of every gating."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuralrace.contests import Contest, Entrant, leads, moments
from neuralrace.errors import check_kind
from neuralrace.reduction import Race, Start
from neuralrace.report import (
    Code,
    Curve,
    Curves,
    Equation,
    File,
    Part,
    Section,
    Table,
    equations_of,
)
from neuralrace.study.answers.answer import Answer, printed
from neuralrace.study.answers.results import Contested, Reduced
from neuralrace.study.work import Work
from neuralrace.text import numbered

ALIGNED = "aligned"
"""The reference of a contest: the gates that small neurons align to by themselves."""

SHORT = ("first", "never", "kept", "expected", "limit", "lead")
"""Those that stand at the top of the report."""

BESIDE = ("first", "never", "kept")
"""Those that stand there below the answer about the ReLU network."""

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
    every = leads(losses.curves[0].x, curves) if curves else ()
    beside = work.asks("relu")  # which is about the network itself
    told = Contested(found, every, beside)

    def parts() -> list[Part]:
        _ = found.leads  # which the library prints too
        table = Table.of(told, told.caption, "contest.csv")
        return [table, losses, *([] if check is None else [printed(found)])]

    numbers = {f"time_{name}": _known_time(e) for name, e in found.entrants.items()}
    if check is not None:
        reference, shares = check.reference, check.kept
        numbers[f"time_{ALIGNED}"] = np.nan if reference is None else _known_time(reference)
        numbers |= {f"kept_{n}": float(shares.get(n, np.nan)) for n in (*found.times, ALIGNED)}
    title = "Which gating learns first?" if len(found.entrants) > 1 else "When is the task learned?"
    short = BESIDE if beside else SHORT
    return Answer("contest", title, told, parts, numbers, found, short=short)


def _known_time(entrant: Entrant) -> float:
    """When a gating reaches the criterion: infinite if never, NaN where that is not known."""
    return np.nan if entrant.is_unknown else float(entrant.time)


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
    best = "first" if len(found.tied) == 1 else "tie for first"
    return {name: best if name in found.tied else found.place(name) for name in found.entrants}


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
    said = found.sentences(leads=leads(times, losses))
    return [s.text for s in said if s.id in ("first", "lead", "limit")]


def _losses(entrants: Mapping[str, Any]) -> Curves:
    times = moments(entrants.values())
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
    asked_first = work.asks("contest")
    asked = work.asks("predict", "certify") or (asked_first and work.contest.winner)
    followed = work.followed if asked else None  # the gating that the other answers are about
    found, count = (
        Reduced(races, "gating", followed),
        sum(len(race.blocks) for race in races.values()),
    )

    def parts() -> list[Part]:
        starts = {n: e.start for n, e in work.contest.entrants.items()} if asked_first else {}
        sections = [
            Section(name, [*race_parts(race), *_page_of(race, name, starts.get(name))])
            for name, race in races.items()
        ]
        shown = [Table.of(found, "Blocks of every gating", "reduce.csv"), *sections]
        if count <= BLOCKS:
            return shown
        title = f"{count} blocks of {numbered(len(races), 'gating')}, with their equations"
        return [Section(title, shown, folded=True)]

    numbers = {f"blocks_{name}": float(len(race.blocks)) for name, race in races.items()}
    numbers |= {f"residual_{name}": float(race.residual) for name, race in races.items()}
    short = ("followed",) if followed in races else ("reduces",)
    return Answer("reduce", "What are the equations?", found, parts, numbers, races, short=short)


def _page_of(race: Race, name: str, start: Start | None) -> list[File]:
    """The race with sliders, as a file beside the page, where all of it can be written out."""
    if not race.is_written_out(start):
        return []
    page = race.to_html() if start is None else race.to_html(start=start)
    return [File(f"race_{name}.html", "the race with sliders, solved in the browser", page)]


def race_parts(race: Race) -> list[Part]:
    """Equations to look at, the table of blocks as printed, and LaTeX to copy."""
    parts: list[Part] = list(equations_of(race))
    if sum(isinstance(part, Equation) for part in parts) > SYSTEMS:
        parts = [Section("Equations", parts, folded=True)]
    return [*parts, printed(race), Section("LaTeX", [Code(race.latex())], folded=True)]
