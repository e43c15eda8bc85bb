"""The answer over a number of the task: where the winner changes, and ReLU networks beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralrace.contests import PhaseDiagram
from neuralrace.plot import style
from neuralrace.report import Code, Curve, Curves, Part, Picture, Section, Table
from neuralrace.study.answers.answer import PICTURE, Answer, finite
from neuralrace.study.work import Work
from neuralrace.text import numbered, percent


def phase_diagram(work: Work) -> Answer:
    """A contest at every value, the crossovers, and the learning times of ReLU networks."""
    options = work.settings.phase_diagram
    assert options is not None
    name = options.name or options.key.rpartition(".")[2]
    found = work["phases"]
    trained = None
    if options.networks:
        trained = np.array(work["networks_at"]), np.stack(work["learning_times"])
    sentences = phase_sentences(found, trained)

    def parts() -> list[Part]:
        shown = [_picture(found, trained), _curves(found, trained), _table(found, trained)]
        if not work.settings.contest.check:
            return shown
        return [*shown, Section("As the library prints it", [Code(str(found))], folded=True)]

    places = [c.value for c in found.crossovers] or [np.nan]
    numbers = {
        "crossovers": float(len(found.crossovers)),
        "first_crossover": places[0],
        "last_crossover": places[-1],
    }
    title = f"Where does the winner change with {name}?"
    value = (found, trained)
    return Answer("phase_diagram", title, sentences, parts, numbers, value, short=sentences)


def phase_sentences(
    found: PhaseDiagram, trained: tuple[np.ndarray, np.ndarray] | None
) -> tuple[str, ...]:
    """Where the winner changes, and how near trained networks are to the fastest gating."""
    name, first = found.parameter, found.sentences()[0].text
    if trained is None:
        return (first,)
    values, times = trained
    where = np.searchsorted(found.values, values)
    fast = np.min(list(found.times.values()), axis=0)[where]
    slow = np.max(list(found.times.values()), axis=0)[where]
    there = np.isfinite(times) & np.isfinite(fast)[:, None]
    if not there.any():
        return first, "None of the trained ReLU networks reaches the criterion."
    gap = np.where(there, np.abs(times / fast[:, None] - 1), np.nan)
    far = np.where(np.isfinite(slow)[:, None], np.abs(times / slow[:, None] - 1), np.inf)
    nearer = int((gap < far)[there].sum())
    worst = int(np.nanargmax(np.nanmax(np.where(there, gap, -1), axis=1)))
    text = f"Of {numbered(times.size, 'ReLU network')} trained at "
    text += f"{numbered(len(values), 'value')} of {name}, {there.sum()} "
    text += "reaches the criterion" if there.sum() == 1 else "reach the criterion"
    if len(found.times) > 1:
        verb = "is" if nearer == 1 else "are"
        text += f", and {nearer} {verb} nearer to the time of the fastest gating than to that of "
        text += "the slowest"
    return first, (
        f"{text}. Their times differ from that of the fastest gating by "
        f"{percent(float(np.nanmean(gap)))} on average, {percent(float(np.nanmax(gap)))} at most "
        f"({name} = {values[worst]:g})."
    )


def _picture(found: PhaseDiagram, trained: tuple[np.ndarray, np.ndarray] | None) -> Picture:
    import matplotlib.pyplot as plt

    with style():
        figure, ax = plt.subplots(figsize=PICTURE)
        found.plot(trained=trained, ax=ax)
    alt = f"Predicted learning times over {found.parameter}, the ground of the winner shaded."
    return Picture.of(figure, alt=alt, caption=f"Learning time over {found.parameter}")


def _curves(found: PhaseDiagram, trained: tuple[np.ndarray, np.ndarray] | None) -> Curves:
    curves = [
        Curve(name, found.values, np.where(np.isfinite(times), times, np.nan), "theory")
        for name, times in found.times.items()
    ]
    if trained is not None:
        curves.append(Curve("ReLU networks", trained[0], trained[1].T, "relu"))
    return Curves(
        curves,
        xlabel=found.parameter,
        ylabel="learning time",
        caption="The same, to hover and zoom",
        alt=f"Learning times over {found.parameter}.",
        file="phase_diagram.csv",
    )


def _table(found: PhaseDiagram, trained: tuple[np.ndarray, np.ndarray] | None) -> Table:
    times = {} if trained is None else dict(zip(trained[0].tolist(), trained[1], strict=True))
    head = [found.parameter, "first", *found.times, *(["ReLU networks"] if times else [])]
    rows: list[list[Any]] = []
    for k, value in enumerate(found.values.tolist()):
        row = [value, found.winners[k], *(finite(t[k]) for t in found.times.values())]
        if times:
            row.append(finite(float(np.mean(times[value]))) if value in times else None)
        rows.append(row)
    return Table(head, rows, "Learning times", "phases.csv")
