"""The answer to `modes`: which distinctions are learned first, when, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.errors import check_kind
from neuralrace.reduction import ModeTable, Race
from neuralrace.report import Code, Curve, Curves, Part, Section, Table
from neuralrace.results import Sentence, framed
from neuralrace.study.answers.answer import Answer
from neuralrace.study.plan import learning_rate
from neuralrace.study.work import Work
from neuralrace.text import numbered, several

if TYPE_CHECKING:
    import pandas

SAID = 5
"""The most modes that the first sentence names."""


def modes(work: Work) -> Answer:
    """Which distinctions every gating learns, in which order, and which neighbours are ties."""
    races, found = work.reduced, work["modes"]
    front = lambda name: f"{name}: " if len(found) > 1 else ""
    first = [Sentence("order", f"{front(n)}{order_sentence(t)}") for n, t in found.items()]
    sure = [Sentence(s.id, front(n) + s.text) for n, t in found.items() for s in sure_sentences(t)]
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


def order_sentence(table: ModeTable) -> str:
    """The modes in their order, in the names of the table.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.Dataset({"x": np.eye(3)}, {"y": [[1, 1, 0], [1, 0.9, 0], [1, 0, 1]]},
    ...                   labels={"item": ["cup", "jug", "fork"]})
    >>> race = nr.reduce(nr.Architecture.chain(3, 16, 3), data)
    >>> nr.study.order_sentence(race.modes(scale=1e-3))
    'First what all share (t = 8.76), then fork against cup, jug (t = 16), then jug against cup \
(t = 305).'

    ```
    """
    check_kind("table", table, ModeTable, "pass what race.modes returned")
    timed = [name for name in table.names if np.isfinite(table.half_time[_place(table, name)])]
    if not timed:
        return "No mode has a half-time that is known in closed form."
    said = [
        f"{table.meaning(name)} (t = {table.half_time[_place(table, name)]:.3g})" for name in timed
    ]
    more = f", and {numbered(len(said) - SAID, 'more mode')} later" if len(said) > SAID else ""
    return f"First {', then '.join(said[:SAID])}{more}."


def sure_sentences(table: ModeTable) -> list[Sentence]:
    """Which neighbours are ties, which items are never told apart, what has no words."""
    said: list[Sentence] = []
    count = len(table.seed_times)
    for pair in table.ties:
        a, b = (table.meaning(name) for name in pair)
        text = f"Which of these two comes first is not sure: {a}; {b}."
        if count:
            (low, high), (least, most) = (table.ranges[_place(table, name)] for name in pair)
            text += (
                f" Over {numbered(count, 'random start')} their half-times are {low:.3g} to "
                f"{high:.3g} and {least:.3g} to {most:.3g}, and {table.swapped(*pair)} of "
                "them have the other order."
            )
        said.append(Sentence("tie", text))
    if count > 1 and len(table.names) > 1 and not table.ties:
        starts = numbered(count, "random start")
        text = f"The order that is predicted is the same from all of {starts}."
        said.append(Sentence("order", text))
    said += [
        Sentence("alike", f"{several(n)} are the same to this network: they are never told apart.")
        for n in table.alike
    ]
    gone = table.unnamed.items()
    return said + [Sentence("unnamed", f"{name} could not be named: {why}.") for name, why in gone]


def _place(table: ModeTable, name: str) -> int:
    return table.names.index(name)


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
    alt = f"{caption} over time: {order_sentence(table)}"
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
