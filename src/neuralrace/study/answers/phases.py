"""The answer over a number of the task: where the winner changes, and ReLU networks beside it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.contests import PhaseDiagram
from neuralrace.plot import style
from neuralrace.report import Code, Curve, Curves, Part, Picture, Section, Table
from neuralrace.results import Sentence
from neuralrace.study.answers.answer import PICTURE, Answer
from neuralrace.study.work import Work
from neuralrace.text import numbered, percent

if TYPE_CHECKING:
    import pandas


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
    frame = partial(_frame, found, trained)

    def parts() -> list[Part]:
        table = Table.of(frame(), "Learning times", "phases.csv")
        shown = [_picture(found, trained), _curves(found, trained), table]
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
    short = {said.id for said in sentences}
    return Answer("phase_diagram", title, sentences, parts, frame, numbers, value, short=short)


def phase_sentences(
    found: PhaseDiagram, trained: tuple[np.ndarray, np.ndarray] | None
) -> tuple[Sentence, ...]:
    """Where the winner changes, and how near trained networks are to the fastest gating."""
    name, first = found.parameter, found.sentences()[0]
    if trained is None:
        return (first,)
    values, times = trained
    where = np.searchsorted(found.values, values)
    fast = np.min(list(found.times.values()), axis=0)[where]
    slow = np.max(list(found.times.values()), axis=0)[where]
    there = np.isfinite(times) & np.isfinite(fast)[:, None]
    if not there.any():
        return first, Sentence("networks", "None of the ReLU networks reaches the criterion.")
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
    text = (
        f"{text}. Their times differ from that of the fastest gating by "
        f"{percent(float(np.nanmean(gap)))} on average, {percent(float(np.nanmax(gap)))} at most "
        f"({name} = {values[worst]:g})."
    )
    return first, Sentence("networks", text)


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


def _frame(found: PhaseDiagram, trained: tuple[np.ndarray, np.ndarray] | None) -> pandas.DataFrame:
    """The frame of the diagram with a row for each value, and the times of ReLU networks."""
    table = found.frame().pivot(index="value", columns="candidate", values="time")
    table = table[list(found.times)]
    table.columns = list(found.times)
    table.insert(0, "first", found.winners)
    if trained is not None:
        values, times = trained
        import pandas

        table["ReLU networks"] = pandas.Series(times.mean(axis=1), values)
    return table.rename_axis(found.parameter).reset_index()
