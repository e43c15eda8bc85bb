"""Answers that need no training: the contest, and the reduction of every gating."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuralrace.contests import Contest, Entrant
from neuralrace.reduction import ModeTable, Race, Start
from neuralrace.report import (
    Code,
    Curve,
    Curves,
    Equation,
    File,
    Part,
    Section,
    Table,
    curves_of,
    equations_of,
)
from neuralrace.study.answers.answer import Answer, Several, printed
from neuralrace.study.plan import learning_rate
from neuralrace.study.work import Work
from neuralrace.text import numbered
from neuralrace.tolerances import LONGER

ALIGNED = "aligned"
"""The reference of a contest: the gates that small neurons align to by themselves."""

SHORT = ("first", "never", "kept", "expected", "limit", "lead")
"""Those that stand at the top of the report."""

BESIDE = ("first", "never", "kept")
"""Those that stand there below the answer about the ReLU network."""

PRINTED = ("legend", "more", "variables")
"""Sentences of a race about the table that it prints."""

BLOCKS = 12
"""More blocks than this, of all gatings together, are folded away with their equations."""

SYSTEMS = 6
"""More systems of equations than this are folded away."""


def contest(work: Work) -> Answer:
    """Which gating learns first, by how much, and whether a ReLU network would keep its gates."""
    found = work.contest
    check = found.check() if work.settings.contest.check else None

    def parts() -> list[Part]:
        _ = found.leads  # which its sentences have from then on
        table = Table.of(found, "Learning times", "contest.csv")
        return [table, *_losses(found), *([] if check is None else [printed(found)])]

    numbers = {f"time_{name}": _known_time(e) for name, e in found.entrants.items()}
    if check is not None:
        reference, shares = check.reference, check.kept
        numbers[f"time_{ALIGNED}"] = np.nan if reference is None else _known_time(reference)
        numbers |= {f"kept_{n}": float(shares.get(n, np.nan)) for n in (*found.times, ALIGNED)}
    title = "Which gating learns first?" if len(found.entrants) > 1 else "When is the task learned?"
    short = BESIDE if work.asks("relu") else SHORT  # which is about the network itself
    without = ("unchecked",)  # as the study asks for it
    return Answer("contest", title, found, parts, numbers, found, short=short, without=without)


def _losses(found: Contest) -> list[Part]:
    """The predicted losses of all candidates, and of the reference where there is one."""
    runs = dict(found.curves)
    if found.checked is not None and found.checked.curve is not None:
        runs.setdefault(ALIGNED, found.checked.curve)
    alt = f"Predicted losses over time of {', '.join(runs)}."
    caption, file = "Predicted losses", "contest_losses.csv"
    return [curves_of(runs, caption=caption, alt=alt, file=file)] if runs else []


def _known_time(entrant: Entrant) -> float:
    """When a gating reaches the criterion: infinite if never, NaN where that is not known."""
    return np.nan if entrant.is_unknown else float(entrant.time)


# ---- reduction ----------------------------------------------------------------------------------


def reduce(work: Work) -> Answer:
    """The equations of every gating."""
    races = work.reduced
    asked_first = work.asks("contest")
    asked = work.asks("predict", "certify") or (asked_first and work.contest.winner)
    followed = work.followed if asked else None  # the gating that the other answers are about
    first = sorted(races, key=lambda name: name != followed)
    found = Several({name: races[name] for name in first}, "gating")
    count = sum(len(race.blocks) for race in races.values())

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
    short = () if followed in races else ("blocks",)
    return Answer(
        "reduce",
        "What are the equations?",
        found,
        parts,
        numbers,
        races,
        short=short,
        without=PRINTED,
    )


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


# ---- modes --------------------------------------------------------------------------------------


SURE = ("tie", "sure", "alike", "unnamed")
"""The sentences of a table that say how sure its order is."""


def modes(work: Work) -> Answer:
    """Which distinctions every gating learns, in which order, and which neighbours are ties."""
    races, tables = work.reduced, work["modes"]
    unit = f"a unit of time is {1 / learning_rate(work.settings.training):.4g} steps"

    def parts() -> list[Part]:
        shown: list[Part] = []
        for name, table in tables.items():
            about = f"{_about(table, f'Modes of {name}, the first to be learned first')}; {unit}"
            shown += [Table.of(table, about, f"modes_{name}.csv")]
            shown += [_strengths(races[name], table, name)]
        return [*shown, printed(*tables.values())]

    title, short = "Which distinctions are learned first?", ("order", *SURE)
    found, numbers = Several(tables, "gating"), _numbers(tables)
    return Answer("modes", title, found, parts, numbers, tables, short=short)


def _about(table: ModeTable, caption: str) -> str:
    about = f"{caption}. s is the drive; half-time, the time to half of the final strength"
    if len(table.seed_times):
        starts = numbered(len(table.seed_times), "random start")
        about += f"; least and largest, its range over {starts}"
    return about


def _strengths(race: Race, table: ModeTable, name: str) -> Curves:
    """The strength of every mode that has a closed form."""
    form = race.closed_form(table.start)
    last = np.nanmax(table.half_time, initial=0.0) or 1.0
    times = np.linspace(0, LONGER * last, 301)
    curves = [
        Curve(mode, times, form.modes[mode].value(times), "theory")
        for mode in table.names
        if mode in form.modes
    ]
    caption = f"Strength of the modes of {name}"
    alt = f"{caption} over time: {table.sentences()[0].text}"
    return Curves(curves, ylabel="strength", caption=caption, alt=alt, file=f"modes_{name}_t.csv")


def _numbers(found: Mapping[str, ModeTable]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, table in found.items():
        known = table.half_time[np.isfinite(table.half_time)]
        numbers |= {
            f"modes_{name}": float(len(table.names)),
            f"first_mode_{name}": float(known.min()) if known.size else np.nan,
            f"last_mode_{name}": float(known.max()) if known.size else np.nan,
            f"ties_{name}": float(len(table.ties)),
        }
    return numbers
