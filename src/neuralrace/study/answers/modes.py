"""The answer to `modes`: which distinctions are learned first, when, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuralrace.reduction import ModeTable, Race
from neuralrace.report import Curve, Curves, Part, Table
from neuralrace.study.answers.answer import Answer, printed
from neuralrace.study.answers.results import Ordered
from neuralrace.study.plan import learning_rate
from neuralrace.study.work import Work
from neuralrace.text import numbered
from neuralrace.tolerances import LONGER

SURE = ("tie", "sure", "alike", "unnamed")
"""The sentences of a table that say how sure its order is."""


def modes(work: Work) -> Answer:
    """Which distinctions every gating learns, in which order, and which neighbours are ties."""
    races, tables = work.reduced, work["modes"]
    found = Ordered(tables, "gating", learning_rate(work.settings.training))

    def parts() -> list[Part]:
        shown: list[Part] = []
        for name, table in tables.items():
            about = _about(table, f"Modes of {name}, the first to be learned first")
            shown += [Table.of(table, about, f"modes_{name}.csv")]
            shown += [_strengths(races[name], table, name)]
        return [*shown, printed(*tables.values())]

    title, short = "Which distinctions are learned first?", ("order", *SURE)
    return Answer("modes", title, found, parts, _numbers(tables), tables, short=short)


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
