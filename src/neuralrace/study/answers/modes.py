"""The answer to `modes`: which distinctions are learned first, when, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.reduction import ModeTable, Race
from neuralrace.report import Code, Curve, Curves, Part, Section, Table
from neuralrace.results import Sentence, framed
from neuralrace.study.answers.answer import Answer
from neuralrace.study.plan import learning_rate
from neuralrace.study.work import Work
from neuralrace.text import numbered

if TYPE_CHECKING:
    import pandas

SURE = ("tie", "sure", "alike", "unnamed")
"""The sentences of a table that say how sure its order is."""


def modes(work: Work) -> Answer:
    """Which distinctions every gating learns, in which order, and which neighbours are ties."""
    races, found = work.reduced, work["modes"]
    front = lambda name: f"{name}: " if len(found) > 1 else ""
    each = {name: table.sentences() for name, table in found.items()}
    first = [Sentence("order", front(name) + sentences[0].text) for name, sentences in each.items()]
    sure = [
        Sentence(s.id, front(name) + s.text)
        for name, sentences in each.items()
        for s in sentences
        if s.id in SURE
    ]
    steps = 1 / learning_rate(work.settings.training)
    clock = f"One unit of t is {steps:.4g} steps of gradient descent at this learning rate."
    said = (*first, *sure, Sentence("clock", clock))

    def parts() -> list[Part]:
        shown: list[Part] = []
        for name, table in found.items():
            file = f"modes_{name}.csv"
            about = _about(table, f"Modes of {name}, the first to be learned first")
            shown += [Table.of(_frame({name: table}).drop(columns="gating"), about, file)]
            shown += [_strengths(races[name], table, name)]
        printed = [Code(str(table)) for table in found.values()]
        return [*shown, Section("As the library prints it", printed, folded=True)]

    return Answer(
        "modes",
        "Which distinctions are learned first?",
        said,
        parts,
        partial(_frame, found),
        _numbers(found),
        found,
        short={s.id for s in (*first, *sure)},
    )


def _frame(found: Mapping[str, ModeTable]) -> pandas.DataFrame:
    """One row per mode of every gating, the first to be learned first."""
    columns = ("gating", "mode", "s", "final", "half-time", "least", "largest", "items", "outputs")
    rows = []
    for gating, table in found.items():
        for i, name in enumerate(table.names):
            numbers = (table.drive[i], table.final[i], table.half_time[i], *table.ranges[i])
            outputs = "" if name in table.unnamed else ", ".join(table.strongest(name))
            row = (gating, name, *map(float, numbers), table.meaning(name), outputs)
            rows.append(dict(zip(columns, row, strict=True)))
    return framed(columns, rows, dict.fromkeys(columns[4:7], "time"))


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
    times = np.linspace(0, 1.3 * last, 301)
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
