"""The answer over a number of the task: where the winner changes, and ReLU networks beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from neuralrace.contests import PhaseDiagram
from neuralrace.plot import style
from neuralrace.report import Curve, Curves, Part, Picture, Table
from neuralrace.results import TIME, Result, Sentence
from neuralrace.study.answers.answer import PICTURE, Answer, printed
from neuralrace.study.work import Work
from neuralrace.text import numbered, percent

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


def phase_diagram(work: Work) -> Answer:
    """A contest at every value, the crossovers, and the learning times of ReLU networks."""
    options = work.settings.phase_diagram
    assert options is not None
    found = work["phases"]
    trained = None
    if options.networks:
        trained = np.array(work["networks_at"]), np.stack(work["learning_times"])
    table = Phases(found, trained)

    def parts() -> list[Part]:
        rows = Table.of(table, "Learning times", "phases.csv")
        shown = [_picture(found, trained), _curves(found, trained), rows]
        return [*shown, printed(found)] if work.settings.contest.check else shown

    places = [c.value for c in found.crossovers] or [np.nan]
    numbers = {
        "crossovers": float(len(found.crossovers)),
        "first_crossover": places[0],
        "last_crossover": places[-1],
    }
    title, short = f"Where does the winner change with {options.called}?", ("first", "networks")
    value = (found, trained)
    return Answer("phase_diagram", title, table, parts, numbers, value, short=short)


@final
@dataclass(frozen=True, eq=False)
class Phases(Result):
    """A phase diagram with networks that were trained at some values: these, and their times."""

    found: PhaseDiagram
    trained: tuple[np.ndarray, np.ndarray] | None = None

    def frame(self) -> pandas.DataFrame:
        """A row for each value: who is first, and the times of all gatings and of networks."""
        found = self.found
        table = found.frame().pivot(index="value", columns="candidate", values="time")
        table = table[list(found.times)]
        table.columns = list(found.times)
        table.insert(0, "first", found.winners)
        if self.trained is not None:
            import pandas

            values, times = self.trained
            table["ReLU networks"] = pandas.Series(times.mean(axis=1), values)
        table = table.rename_axis(found.parameter).reset_index()
        table.attrs["units"] = dict.fromkeys(found.times, TIME)
        return table

    def sentences(self) -> tuple[Sentence, ...]:
        """Where the winner changes, and how near trained networks are to the fastest gating."""
        return phase_sentences(self.found, self.trained)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The diagram."""
        return self.found.plot(trained=self.trained, ax=ax)


def phase_sentences(
    found: PhaseDiagram, trained: tuple[np.ndarray, np.ndarray] | None
) -> tuple[Sentence, ...]:
    """Where the winner changes, and how near trained networks are to the fastest gating."""
    name, first = found.parameter, found.sentences()[: 2 if found.large else 1]
    if trained is None:
        return first
    values, times = trained
    where = np.searchsorted(found.values, values)
    fast = np.min(list(found.times.values()), axis=0)[where]
    slow = np.max(list(found.times.values()), axis=0)[where]
    there = np.isfinite(times) & np.isfinite(fast)[:, None]
    if not there.any():
        return *first, Sentence("networks", "None of the ReLU networks reaches the criterion.")
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
    return *first, Sentence("networks", text)


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
