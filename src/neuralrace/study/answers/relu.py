"""What a ReLU network will do: predicted, trained, and how near gatings come; one picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, final

import numpy as np

from neuralrace.explanation import Prediction
from neuralrace.reln import NeuronTypes
from neuralrace.report import Curve, Curves, Part, Picture, Table
from neuralrace.results import SHARE, TIME, Result, Sentence, framed
from neuralrace.study.answers.answer import Answer, printed, time_range
from neuralrace.study.places import StudyError
from neuralrace.study.questions import TRAINED
from neuralrace.study.work import Work, members
from neuralrace.text import numbered, percent
from neuralrace.tolerances import SMALL
from neuralrace.trajectory import Trajectory, compare, crossing_time

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

A = TypeVar("A")

COLUMNS = ("what", "time", "late", "distance", "low", "high")
"""The columns of `Foreseen.frame`."""

WIDE, TYPES, NETWORKS = "wide limit", "types of neurons", "trained networks"
"""Its rows that are no gatings."""


STRONGEST = 4
"""Types whose gates are told in words; the picture has all."""


@final
class Theory(NamedTuple):
    """A prediction that needs no training: its loss, and when that is down to the criterion."""

    run: Trajectory
    time: float


@final
@dataclass(frozen=True, eq=False)
class Foreseen(Result):
    """A ReLU network as it is predicted and as it is trained, and how near gatings come to it.

    `runs` are the trained networks, None where there are none. `theories` are types of neurons,
    where these form, and every gating. `types` are those types; where there are none, `no_types`
    says why.
    """

    prediction: Prediction
    runs: Trajectory | None = None
    theories: Mapping[str, Theory] = field(default_factory=dict)
    types: NeuronTypes | None = None
    no_types: str = ""

    @property
    def share(self) -> float:
        """The share of the initial loss that counts as learned."""
        return self.prediction.criteria[0]

    @property
    def times(self) -> np.ndarray:
        """When each trained network learned, (S,); NaN for one that does not."""
        if self.runs is None:
            return np.zeros(0)
        return crossing_time(self.runs.time, self.runs.loss, self.share * self.prediction.initial)

    def distance(self, theory: Trajectory) -> float:
        """How far a predicted loss is from the trained networks, or else from the wide limit."""
        runs = [self.prediction.likely] if self.runs is None else members(self.runs)
        return float(np.mean([compare(run, theory).mean for run in runs]))

    def frame(self) -> pandas.DataFrame:
        """One row per curve: `late`, by which part of the time of networks it is later.

        `time` to the criterion, from `low` to `high`; `distance`, the mean distance of its loss
        from that of the trained networks, as a share of the initial loss. Where there are no
        trained networks, the wide limit is in their place.
        """
        time, low, high = self.prediction.time_to(self.share)
        rows: list[tuple[Any, ...]] = []
        true, there = time, np.isfinite(self.times)
        if self.runs is not None:
            known = self.times[there] if there.any() else np.array([np.inf])
            true = float(known.mean()) if there.all() else np.inf
            rows.append((NETWORKS, true, 0.0, 0.0, known.min(), known.max()))
        late = lambda when: when / true - 1 if np.isfinite([when, true]).all() else np.nan
        rows.append((WIDE, time, late(time), self.distance(self.prediction.likely), low, high))
        for name, each in self.theories.items():
            far = self.distance(each.run)
            rows.append((name, each.time, late(each.time), far, np.nan, np.nan))
        units = dict.fromkeys(("time", "low", "high"), TIME) | {"late": SHARE, "distance": SHARE}
        return framed(COLUMNS, (dict(zip(COLUMNS, row, strict=True)) for row in rows), units)

    def sentences(self) -> tuple[Sentence, ...]:
        """What the network will do and what trained ones do, how near gatings come, and limits."""
        first, *rest = self.prediction.sentences()
        said = [Sentence(first.id, first.text.removesuffix(".") + f"{self._trained}.")]
        if self.theories:
            said.append(Sentence("near", self._near))
        said[1:1] = [each for each in rest if each.id == "large"]
        said += [each for each in rest if each.id not in ("large", "types")]
        if self.types is not None:
            more = [s for s in self.types.sentences() if s.id in ("error", "symmetries")]
            return *said, *more, Sentence("gates", self._gates(self.types))
        why = f": {self.no_types}" if self.no_types else ", since the study asks for none"
        return *said, Sentence("types", f"It is not explained by types of neurons{why}.")

    @property
    def _trained(self) -> str:
        if self.runs is None:
            return ""
        there = self.times[np.isfinite(self.times)]
        who = f"{numbered(len(self.times), 'trained network', 'one')}"
        if not len(there):
            return f"; {who} did not get there"
        few = "" if len(there) == len(self.times) else f"{len(there)} of "
        return f"; {few}{who} got there at {time_range(there)}"

    @property
    def _near(self) -> str:
        table = self.frame().set_index("what").loc[[*self.theories]]

        def one(name: str, late: float, far: float) -> str:
            when = f"{percent(abs(late))} {'later' if late > 0 else 'earlier'}"
            when = "does not get there" if np.isnan(late) else when
            return f"{name}: {when}, loss {percent(far)} off"

        rows = zip(table.index, table["late"], table["distance"], strict=True)
        whom = WIDE if self.runs is None else NETWORKS
        return f"How near others come to the {whom}: {'; '.join(one(*row) for row in rows)}."

    def _gates(self, types: NeuronTypes) -> str:
        """Where the strongest types are on at the end."""
        shares, words = types.shares[-1], types.words
        strongest = [k for k in np.argsort(-shares, kind="stable") if shares[k] >= SMALL]
        on = [f"type {k + 1} ({percent(shares[k])}) {words[k]}" for k in strongest[:STRONGEST]]
        return f"At the end, its strongest types are on as follows: {'; '.join(on)}."

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """All losses."""
        return self.curves().plot(ax=ax)

    def curves(self) -> Curves:
        """All losses in one picture."""
        wide, band = self.prediction.likely, self.prediction.band
        runs = (
            [] if self.runs is None else [Curve(NETWORKS, self.runs.time, self.runs.loss, "relu")]
        )
        drawn = [] if band is None else [Curve("simulated networks", band.time, band.networks)]
        others = [
            Curve(n, each.run.time, each.run.loss, "theory") for n, each in self.theories.items()
        ]
        return Curves(
            [*runs, *drawn, Curve(WIDE, wide.time, wide.loss, "theory"), *others],
            caption="Loss of the ReLU network, predicted and trained, and that of gatings",
            alt="The predicted loss of the ReLU network over time, beside trained networks.",
            file="relu_losses.csv",
        )


def relu(work: Work) -> Answer:
    """What the ReLU network will do, from task, width and start; what trained ones do."""
    prediction = work["relu_prediction"]
    runs = _or_none(lambda: work.relu) if work.asks(*TRAINED) else None
    theories: dict[str, Theory] = {}
    no_types, types = prediction.no_types, None
    if work.settings.relu.types and not no_types:
        try:
            with work.problem.place.blamed():
                types = prediction.types
        except StudyError as error:
            no_types = error.reason
    if types is not None:
        level = prediction.criteria[0] * prediction.initial
        time = float(crossing_time(types.trajectory.time, types.trajectory.loss, level))
        theories[TYPES] = Theory(types.trajectory, np.inf if np.isnan(time) else time)
    contest = _or_none(lambda: work.contest) if work.asks("contest") else None
    for name, each in () if contest is None else contest.entrants.items():
        run = each.race.solve(times=prediction.trajectory.time, start=each.start)
        theories[name] = Theory(run, np.nan if each.is_unknown else float(each.time))
    found = Foreseen(prediction, runs, theories, types, no_types)
    time = lambda name: theories[name].time if name in theories else np.nan
    numbers = {
        "time_wide": prediction.time_to(found.share).mean,
        "time_types": time(TYPES),
        "likely_chance": prediction.courses[0].chance,
    }
    if work.asks(*TRAINED):
        none = runs is None
        numbers["time_trained"] = np.nan if none else float(found.times.mean())
        numbers["wide_distance"] = np.nan if none else found.distance(prediction.likely)

    def parts() -> list[Part]:
        shown: list[Part] = [found.curves(), Table.of(found, CAPTION, "relu.csv")]
        if len(prediction.courses) > 1:
            shown.append(_outcomes(prediction))
        if types is not None:
            alt = "A timeline: the loss, the share of every type, and its gates on every sample."
            shown.append(Picture.of(types.plot(), alt=alt, caption="Types of neurons over time"))
        return [*shown, printed(prediction, *([] if types is None else [types]))]

    short = ("answer", "large", "near", "rare", "band", "types")
    return Answer("relu", TITLE, found, parts, numbers, prediction, short=short)


TITLE = "What will a ReLU network do?"
CAPTION = (
    "Time to the criterion, how much later that is than for networks, and the mean distance of the "
    "loss, as a share of the initial loss"
)


def _outcomes(prediction: Prediction) -> Table:
    table = prediction.outcomes
    return Table([*table.columns], table.values.tolist(), "Ways to end", "outcomes.csv")


def _or_none(make: Callable[[], A]) -> A | None:
    """What another question needs too; where it cannot be had, that one says why."""
    try:
        return make()
    except StudyError:
        return None
