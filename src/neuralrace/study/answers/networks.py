"""Answers from trained networks: ReLU networks, and gated ones against their prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.dataset import Dataset, zero_loss
from neuralrace.plot import style
from neuralrace.report import Curve, Curves, Part, Picture, Section, Table
from neuralrace.results import Sentence, framed
from neuralrace.study.answers.answer import Answer, picture_size, time_range, to_spread
from neuralrace.study.answers.theory import race_parts, race_sentence
from neuralrace.study.plan import CRITERION, TRAINED
from neuralrace.study.work import Work, members
from neuralrace.text import numbered, percent
from neuralrace.tolerances import EQUAL
from neuralrace.trajectory import Comparison, Trajectory, compare, crossing_time, half_time

if TYPE_CHECKING:
    from neuralrace.study.model import Settings


def train(work: Work) -> Answer:
    """What ReLU networks do on the task."""
    runs, level = work.relu, criterion(work.settings, work.problem.data)
    times, half = crossing_time(runs.time, runs.loss, level), half_time(runs.time, runs.loss)
    first, last = runs.loss[:, 0], runs.loss[:, -1]
    there = np.isfinite(times)
    who = numbered(len(last), "ReLU network").capitalize().replace("relu", "ReLU")
    text = f"{who} {'starts' if len(last) == 1 else 'start'} at a loss of {to_spread(first)} and "
    text += f"{'ends' if len(last) == 1 else 'end'} at {to_spread(last)}"
    share = f" (a share of {level / float(zero_loss(work.problem.data)):.4g})"
    named = f"loss of {level:.4g}{share if work.settings.contest.relative else ''}"
    reached = f"{'It never' if len(last) == 1 else 'None'} reaches a {named}"
    if there.any():
        reached = f"A {named} is reached at {time_range(times[there])}"
        reached += "" if there.all() else f", by {there.sum()} of {len(times)}"
    columns = ("seed", "initial loss", "final loss", "time to half", f"time to {level:.4g}")
    rows = zip(range(1, len(last) + 1), first, last, half, times, strict=True)
    table = framed(columns, (dict(zip(columns, row, strict=True)) for row in rows))

    def parts() -> list[Part]:
        curves = Curves(
            [Curve("ReLU networks", runs.time, runs.loss, "relu"), *_evaluated(work, runs)],
            xlabel="step" if runs.clock == "steps" else "time",
            caption=f"Loss of {numbered(len(last), 'ReLU network')}",
            alt="The loss of the ReLU networks over time.",
            file="train_losses.csv",
        )
        return [curves, Table.of(table, "Every network", "train.csv")]

    numbers = {
        "initial_loss": float(first.mean()),
        "final_loss": float(last.mean()),
        "half_time": float(half.mean()),
        "learning_time": float(times.mean()),
    }
    data = {"relu_networks.nc": kept_values(work, runs)}
    title = "What do ReLU networks do?"
    said = (Sentence("loss", f"{text}."), Sentence("reached", f"{reached}."))
    said += _against_contest(work, times)
    short = {each.id for each in said}
    return Answer("train", title, said, parts, lambda: table, numbers, runs, data, short)


def _against_contest(work: Work, times: np.ndarray) -> tuple[Sentence, ...]:
    """The times of ReLU networks, (S,), next to the time that was predicted for the winner."""
    if not work.asks("contest") or work.contest.winner is None or work.relu.clock != "flow":
        return ()
    name = work.contest.winner
    said = against_prediction(times, work.contest.times[name], name)
    if work.asks("predict", "certify") and work.followed == name:
        level = criterion(work.settings, work.problem.data)
        gated = crossing_time(work.gated.time, work.gated.loss, level)
        if np.isfinite(gated).all():
            who = numbered(len(gated), "gated network")
            said += f" {who[:1].upper()}{who[1:]} with the gates of {name} reached it at "
            said += f"{time_range(gated)}."
    return (Sentence("predicted", said),)


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


def _evaluated(work: Work, runs: Trajectory) -> list[Curve]:
    found = []
    for name in work.problem.evaluated:
        values: Any = runs.values[name]
        loss = values["loss"] if isinstance(values, dict) else values
        found.append(Curve(f"on {name}", runs.time, np.asarray(loss)))
    return found


def criterion(settings: Settings, data: Dataset) -> float:
    """The loss that counts as learned on this task."""
    options = settings.contest
    level = CRITERION if options.criterion is None else options.criterion
    if not options.relative:
        return level
    return level * float(zero_loss(data))


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
    theory = [compare(run, own) for run, own in zip(members(runs), solved, strict=True)]
    is_check = race.is_exact and not race.is_decoupled and mean(theory) < EQUAL
    off = (
        f"the loss of the gated network is off by {percent(mean(theory))} of the initial loss on "
        f"average, and by {percent(max(c.max for c in theory))} at most"
    )
    said = f"Predicted from the initial weights, with nothing fitted, {off}."
    if is_check:
        said = f"The reduction is exact, so this is a check of the computation: {off}."
    sentences = {
        "gating": f"The gating {work.followed} {race_sentence(race)}",
        "prediction": said,
    }
    if mean(theory) > 1e-3:
        batch = work.settings.training.batch_size
        sentences["remaining"] = remaining_error(bool(race.is_exact), batch)
    curves = [
        Curve(f"gated networks ({work.followed})", runs.time, runs.loss),
        Curve("predicted", runs.time, np.stack([own.loss for own in solved]), "theory"),
    ]
    numbers = {
        "prediction_error": mean(theory),
        "prediction_error_max": max(c.max for c in theory),
        "gated_final_loss": float(runs.loss[:, -1].mean()),
    }
    rows: list[dict[str, Any]] = [
        {"seed": i + 1, "mean error": c.mean, "largest error": c.max, "shift in time": c.shift}
        for i, c in enumerate(theory)
    ]
    if work.asks(*TRAINED):
        follows = [compare(run, own) for run, own in zip(members(work.relu), solved, strict=True)]
        sentences["networks"] = _relu_sentence(work, follows)
        curves.insert(0, Curve("ReLU networks", work.relu.time, work.relu.loss, "relu"))
        numbers["relu_distance"] = mean(follows)
        numbers["relu_distance_after_shift"] = float(np.mean([c.mean_after_shift for c in follows]))
        for row, c in zip(rows, follows, strict=True):
            row |= {"ReLU network: mean": c.mean, "after a shift": c.mean_after_shift}
    frame = framed(tuple(rows[0]), rows)

    def parts() -> list[Part]:
        losses = Curves(
            curves,
            caption="Simulated and predicted loss",
            alt="The losses of simulated networks over time, and the predicted loss.",
            file="predict_losses.csv",
        )
        caption = "Distances of losses, as shares of the initial loss"
        table = Table.of(frame, caption, "predict.csv")
        return [losses, table, *_drawn(work), *race_parts(race)]

    data = {"gated_networks.nc": kept_values(work, runs)}
    title = "What will the loss do?"
    top = ("networks",) if is_check and "networks" in sentences else ("prediction", "networks")
    found, all_said = (runs, solved), tuple(Sentence(*pair) for pair in sentences.items())
    return Answer("predict", title, all_said, parts, lambda: frame, numbers, found, data, top)


def remaining_error(exact: bool, batch_size: int | None) -> str:
    """What a prediction leaves out, as far as it is known without fitting anything."""
    causes = ["random weights are not quite aligned with the modes"]
    causes += [] if exact else ["couplings between blocks were dropped"]
    causes += [] if batch_size is None else ["training in batches is random"]
    return f"The remaining error is there because {', and because '.join(causes)}."


def _relu_sentence(work: Work, follows: list[Comparison]) -> str:
    runs = members(work.relu)
    who = f"{len(runs)} ReLU networks of the same scale are"
    if len(runs) == 1:
        who = "One ReLU network of the same scale is"
    shifted = float(np.mean([c.mean_after_shift for c in follows]))
    text = f"{who} {percent(mean(follows))} from the prediction ({percent(shifted)} once shifted "
    text += "in time)"
    if len(runs) > 1:
        pairs = [(a, b) for i, a in enumerate(runs) for b in runs[i + 1 :]]
        apart = mean([compare(a, b) for a, b in pairs])
        text += f", and {percent(apart)} from each other"
    return f"{text}."


def _drawn(work: Work) -> list[Part]:
    """The gated network, where it is small enough to draw."""
    arch, data = work.gated_network
    if len(arch.sizes) > 30:  # nodes beyond this cannot be told apart
        return []
    import matplotlib.pyplot as plt

    with style():
        figure, ax = plt.subplots(figsize=picture_size())
        arch.draw(data, ax=ax)
    alt = f"The graph of the gating {work.followed}: hidden nodes {', '.join(arch.hidden)}."
    picture = Picture.of(figure, alt=alt, caption=f"The gated network: {work.followed}")
    return [Section("The gated network", [picture], folded=len(arch.hidden) > 6)]


def mean(compared: list[Comparison]) -> float:
    """The mean over networks of the mean distance over time."""
    return float(np.mean([c.mean for c in compared]))
