"""Answers from trained networks: ReLU networks, gated ones against their prediction, both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.dataset import zero_loss
from neuralrace.plot import style
from neuralrace.reduction import Race
from neuralrace.reln import Certificate
from neuralrace.report import Curve, Curves, Part, Picture, Section, Table, curves_of
from neuralrace.results import SHARE, TIME, Result, Sentence, framed
from neuralrace.study.answers.answer import (
    Answer,
    Several,
    picture_size,
    printed,
    time_range,
    to_spread,
)
from neuralrace.study.answers.theory import race_parts
from neuralrace.study.plan import criterion
from neuralrace.study.questions import TRAINED
from neuralrace.study.work import Work, members
from neuralrace.text import numbered, percent
from neuralrace.tolerances import CONFIRMS, EQUAL, REMAINS
from neuralrace.trajectory import Comparison, Trajectory, compare, crossing_time, half_time

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


def train(work: Work) -> Answer:
    """What ReLU networks do on the task."""
    runs, level = work.relu, criterion(work.settings, work.problem.data)
    share = level / float(zero_loss(work.problem.data))
    share = share if work.settings.contest.relative else None
    found = Trained(runs, level, share, *_predicted(work, level))
    numbers = {
        "initial_loss": float(runs.loss[:, 0].mean()),
        "final_loss": float(runs.loss[:, -1].mean()),
        "half_time": float(half_time(runs.time, runs.loss).mean()),
        "learning_time": float(found.times.mean()),
    }

    def parts() -> list[Part]:
        curves = Curves(
            [Curve("ReLU networks", runs.time, runs.loss, "relu"), *_evaluated(work, runs)],
            xlabel="step" if runs.clock == "steps" else "time",
            caption=f"Loss of {numbered(len(runs.loss), 'ReLU network')}",
            alt="The loss of the ReLU networks over time.",
            file="train_losses.csv",
        )
        return [
            curves,
            Table.of(found, f"Every network; time: to a loss of {level:.4g}", "train.csv"),
        ]

    short, data = ("reached", "predicted", "loss"), {"relu_networks.nc": kept_values(work, runs)}
    title = "What do ReLU networks do?"
    return Answer("train", title, found, parts, numbers, runs, short=short, data=data)


def _predicted(work: Work, level: float) -> tuple[Any, ...]:
    """The winner with the time that was predicted for it, and the times of its gated networks."""
    if not work.asks("contest") or work.contest.winner is None or work.relu.clock != "flow":
        return ()
    name, gated = work.contest.winner, np.array([])
    if work.asks("predict", "certify") and work.followed == name:
        gated = crossing_time(work.gated.time, work.gated.loss, level)
    return (name, work.contest.times[name]), gated[: len(gated) * np.isfinite(gated).all()]


def _evaluated(work: Work, runs: Trajectory) -> list[Curve]:
    found = []
    for name in work.problem.evaluated:
        values: Any = runs.values[name]
        loss = values["loss"] if isinstance(values, dict) else values
        found.append(Curve(f"on {name}", runs.time, np.asarray(loss)))
    return found


def kept_values(work: Work, runs: Trajectory) -> Any:
    """The runs as a table, with what the study asks to record and without what is only passing."""
    table = runs.to_xarray()
    wanted = {"loss", *work.settings.training.record, *work.problem.evaluated}
    extra = [v for v in table.data_vars if str(v).split(".")[0].split("/")[0] not in wanted]
    return table.drop_vars([v for v in extra if v != "loss"])


# ---- prediction ---------------------------------------------------------------------------------


def predict(work: Work) -> Answer:
    """The loss of gated networks from their initial weights, with nothing fitted."""
    runs, solved, race = work.gated, work.predicted, work.race
    relu = members(work.relu) if work.asks(*TRAINED) else []
    each = lambda those: [compare(run, own) for run, own in zip(those, solved, strict=True)]
    theory, follows = each(members(runs)), each(relu) if relu else []
    pairs = [compare(a, b) for i, a in enumerate(relu) for b in relu[i + 1 :]]
    found = Predicted(
        work.followed,
        race,
        theory,
        follows,
        mean(pairs) if pairs else None,
        work.settings.training.batch_size,
    )
    numbers = {
        "prediction_error": mean(theory),
        "prediction_error_max": max(c.max for c in theory),
        "gated_final_loss": float(runs.loss[:, -1].mean()),
    }
    if relu:
        numbers["relu_distance"] = mean(follows)
        numbers["relu_distance_after_shift"] = float(np.mean([c.mean_after_shift for c in follows]))

    def parts() -> list[Part]:
        losses = Curves(
            [
                *([Curve("ReLU networks", work.relu.time, work.relu.loss, "relu")] if relu else []),
                Curve(f"gated networks ({work.followed})", runs.time, runs.loss),
                Curve("predicted", runs.time, np.stack([own.loss for own in solved]), "theory"),
            ],
            caption="Simulated and predicted loss",
            alt="The losses of simulated networks over time, and the predicted loss.",
            file="predict_losses.csv",
        )
        caption = "Distances of losses, as shares of the initial loss"
        table = Table.of(found, caption, "predict.csv")
        return [losses, table, *_drawn(work), *race_parts(race)]

    top = ("networks",) if found.is_check and relu else ("prediction", "networks")
    return Answer(
        "predict",
        "What will the loss do?",
        found,
        parts,
        numbers,
        (runs, solved),
        short=top,
        data={"gated_networks.nc": kept_values(work, runs)},
    )


def _drawn(work: Work) -> list[Part]:
    """The gated network, where it is small enough to draw."""
    arch, data = work.gated_network
    if len(arch.sizes) > 30:  # nodes beyond this cannot be told apart
        return []
    import matplotlib.pyplot as plt

    with style():
        width, height = picture_size()
        rows = max(map(len, (arch.inputs, arch.hidden, arch.outputs)))
        figure, ax = plt.subplots(figsize=(width, height * min(1.0, 0.25 * (rows + 1))))
        arch.draw(data, ax=ax)
    alt = f"The graph of the gating {work.followed}: hidden nodes {', '.join(arch.hidden)}."
    picture = Picture.of(figure, alt=alt, caption=f"The gated network: {work.followed}")
    return [Section("The gated network", [picture], folded=len(arch.hidden) > 6)]


# ---- certificate --------------------------------------------------------------------------------


def certify(work: Work) -> Answer:
    """How nearly the gated network is the ReLU network (MHS Definition 3.1)."""
    _, _, name = work.relu, work.gated, work.followed
    found = Certified(name, work["certificates"])

    def parts() -> list[Part]:
        apart = lambda those: (those[0].time, np.stack([c.outputs_over_time for c in those]))
        curves = [Curve(f"gated network ({name})", *apart(found.certificates))]
        curves += [Curve("another seed", *apart(found.floors), "relu")] if found.floors else []
        distances = Curves(
            curves,
            ylabel="distance of outputs / √(2 L(0))",
            caption="Distance of the outputs from those of the ReLU network",
            alt="The distance of outputs over time, next to that of another seed.",
            file="certify_outputs.csv",
        )
        table = Table.of(found, "One certificate per seed", "certify.csv")
        return [distances, table, printed(found.certificates[0])]

    numbers = {
        "outputs_distance": outputs_mean(found.certificates),
        "outputs_distance_max": max(c.outputs_max for c in found.certificates),
    }
    numbers |= {"outputs_floor": outputs_mean(found.floors)} if found.floors else {}
    value = tuple(found.certificates)
    return Answer(
        "certify", "Is it the same function?", found, parts, numbers, value, short=("same",)
    )


# ---- what they say beyond the library's results ------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Trained(Result):
    """ReLU networks that were trained: `runs`, and the loss that counts as learned, `level`.

    `share` is that loss as a share of the loss of answering zero, if that is how it was asked for.
    `winner` is the gating that was predicted to learn first, with its time, and `gated` are the
    times of networks with its gates, where these are known.
    """

    runs: Trajectory
    level: float
    share: float | None = None
    winner: tuple[str, float] | None = None
    gated: Sequence[float] = ()

    @cached_property
    def times(self) -> np.ndarray:
        """When each network learned, (S,); NaN for one that does not."""
        return crossing_time(self.runs.time, self.runs.loss, self.level)

    def frame(self) -> pandas.DataFrame:
        """One row per network: its losses, its time to half of the first, and to the criterion."""
        runs, columns = self.runs, ("seed", "initial_loss", "final_loss", "half_time", "time")
        first, last = runs.loss[:, 0], runs.loss[:, -1]
        seeds = np.arange(len(last)) + 1
        rows = zip(seeds, first, last, half_time(runs.time, runs.loss), self.times, strict=True)
        units = dict.fromkeys(columns[3:], TIME)
        return framed(columns, (dict(zip(columns, row, strict=True)) for row in rows), units)

    def sentences(self) -> tuple[Sentence, ...]:
        """When the networks learned, when that was predicted, and from which loss to which."""
        first, last, there = self.runs.loss[:, 0], self.runs.loss[:, -1], np.isfinite(self.times)
        lone = len(last) == 1
        who = numbered(len(last), "ReLU network", "One")
        named = f"loss of {self.level:.4g}"
        named += "" if self.share is None else f" (a share of {self.share:.4g})"
        reached = f"{who} does not reach" if lone else f"None of {who} reaches"
        reached += f" a {named} by t = {self.runs.time[-1]:.4g}"
        if there.any():
            few = "" if there.all() else f"{there.sum()} of "
            reached = f"{few}{who} {'reaches' if lone else 'reach'} a {named} at "
            reached += time_range(self.times[there])
        text = f"{'It starts' if lone else 'They start'} at a loss of {to_spread(first)} and "
        text += f"{'ends' if lone else 'end'} at {to_spread(last)}"
        loss = Sentence("loss", f"{text}.")
        return Sentence("reached", f"{reached}."), *self._against_contest(), loss

    def _against_contest(self) -> tuple[Sentence, ...]:
        if self.winner is None:
            return ()
        name, predicted = self.winner
        said = against_prediction(self.times, predicted, name)
        if len(self.gated):
            who = numbered(len(self.gated), "gated network", "One")
            said += f" {who} with the gates of {name} reached it at "
            said += f"{time_range(np.array(self.gated))}."
        return (Sentence("predicted", said),)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The losses."""
        return curves_of({"ReLU networks": self.runs}).plot(ax=ax)


def against_prediction(times: np.ndarray, predicted: float, name: str) -> str:
    """How much earlier or later than predicted networks learned, and whether seeds differ as much.

    `times` are those of trained networks, (S,), NaN for one that does not learn. `predicted` is the
    time of the gating `name`.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.answers.networks import against_prediction
    >>> against_prediction(np.array([20.1, 20.6, 20.8]), 27.55, "one")
    'This is 26 % earlier than predicted for one (t = 27.55), which is outside the spread of seeds.'
    >>> against_prediction(np.array([9.0, 12.0]), 10.0, "one")
    'This is 5 % later than predicted for one (t = 10), which is within the spread of seeds.'

    ```
    """
    there = times[np.isfinite(times)]
    if not len(there):
        return f"For {name}, t = {predicted:.4g} was predicted."
    away = float(there.mean()) / predicted - 1
    text = f"This is {percent(abs(away))} {'earlier' if away < 0 else 'later'} than predicted for "
    text += f"{name} (t = {predicted:.4g})"
    if len(there) == 1:
        return f"{text}; one network does not tell how far seeds differ."
    within = there.min() <= predicted <= there.max()
    return f"{text}, which is {'within' if within else 'outside'} the spread of seeds."


@final
@dataclass(frozen=True, eq=False)
class Predicted(Result):
    """The loss of gated networks from their initial weights: how far it is off, for each of them.

    `theory` compares each with its prediction, by the `race` of the gating `name`; `follows` each
    ReLU network, if there are some; `apart` is how far these are from each other. `batch_size` is
    that of the training.
    """

    name: str
    race: Race
    theory: Sequence[Comparison]
    follows: Sequence[Comparison] = ()
    apart: float | None = None
    batch_size: int | None = None

    @property
    def is_check(self) -> bool:
        """Whether the prediction is the network's own recursion, which checks the computation."""
        race = self.race
        return race.is_exact and not race.is_decoupled and mean(self.theory) < EQUAL

    def frame(self) -> pandas.DataFrame:
        """One row per gated network: its comparison, and that of the ReLU network of its seed."""
        table = Several({i + 1: each for i, each in enumerate(self.theory)}, "seed").frame()
        if self.follows:
            table["relu_mean"] = [each.mean for each in self.follows]
            table["relu_after_shift"] = [each.mean_after_shift for each in self.follows]
            table.attrs["units"] |= {"relu_mean": SHARE, "relu_after_shift": SHARE}
        return table

    def _printed(self) -> pandas.DataFrame:
        return self.frame().drop(columns=["start", "end", "whole"])

    def sentences(self) -> tuple[Sentence, ...]:
        """How near ReLU networks come, how near the gated ones, and what remains."""
        off = f"the loss of the gated network is off by {percent(mean(self.theory))} of the "
        off += f"initial loss on average, and by {percent(max(c.max for c in self.theory))} at most"
        said = f"Predicted from the initial weights, with nothing fitted, {off}."
        if self.is_check:
            said = f"The reduction is exact, so this is a check of the computation: {off}."
        found = [Sentence("prediction", said)]
        if mean(self.theory) > REMAINS:
            text = remaining_error(bool(self.race.is_exact), self.batch_size)
            found.append(Sentence("remaining", text))
        return *self._networks(), *found

    def _networks(self) -> list[Sentence]:
        if not self.follows:
            return []
        shifted = percent(float(np.mean([c.mean_after_shift for c in self.follows])))
        who = numbered(len(self.follows), "ReLU network", "One")
        text = f"{who} of the same scale {'is' if len(self.follows) == 1 else 'are'} "
        text += f"{percent(mean(self.follows))} from the loss predicted for {self.name} "
        text += f"({shifted} once shifted in time)"
        text += "" if self.apart is None else f", and {percent(self.apart)} from each other"
        short = f" The runs are too short to tell: {percent(self.fell)} of the loss has fallen."
        return [Sentence("networks", f"{text}.{short if self.fell < CONFIRMS else ''}")]

    @property
    def fell(self) -> float:
        """The part of the initial loss that has fallen where the ReLU networks end, on average."""
        runs = [each.reference for each in self.follows or self.theory]
        return float(np.mean([1 - run.loss[-1] / run.loss[0] for run in runs]))

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The first network and its prediction."""
        return self.theory[0].plot(ax=ax)


def mean(compared: Sequence[Comparison]) -> float:
    """The mean over networks of the mean distance over time."""
    return float(np.mean([c.mean for c in compared]))


def remaining_error(exact: bool, batch_size: int | None) -> str:
    """What a prediction leaves out, as far as it is known without fitting anything."""
    causes = ["random weights are not quite aligned with the modes"]
    causes += [] if exact else ["couplings between blocks were dropped"]
    causes += [] if batch_size is None else ["training in batches is random"]
    return f"The remaining error is there because {', and because '.join(causes)}."


@final
@dataclass(frozen=True, eq=False)
class Certified(Result):
    """The certificates of the gating `name`, one per seed."""

    name: str
    certificates: Sequence[Certificate]

    @property
    def floors(self) -> list[Certificate]:
        """Those of other seeds of the ReLU network, which is how far seeds differ."""
        return [c.floor for c in self.certificates if c.floor is not None]

    def frame(self) -> pandas.DataFrame:
        """The rows of all certificates."""
        return self._by_seed.frame()

    @property
    def _by_seed(self) -> Several[Certificate]:
        return Several({i + 1: c for i, c in enumerate(self.certificates)}, "seed")

    def sentences(self) -> tuple[Sentence, ...]:
        """Whether it is the same function, and what every certificate says."""
        off, other = (outputs_mean(those) for those in (self.certificates, self.floors))
        same = f"is not the same function (MHS Definition 3.1): its outputs are {percent(off)} off"
        same += " on average"
        if all(c.holds() for c in self.certificates):
            same = "is the same function (MHS Definition 3.1)"
        elif self.floors:
            ratio = off / other if other else np.inf
            times = f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2g}"
            same += f", {times} times as far as those of another seed of the ReLU network"
        return Sentence("same", f"The gated network {same}."), *self._by_seed.sentences()

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The first certificate."""
        return self.certificates[0].plot(ax=ax)


def outputs_mean(those: Sequence[Certificate]) -> float:
    """The mean distance of outputs; NaN of none."""
    return float(np.mean([c.outputs_mean for c in those])) if those else np.nan
