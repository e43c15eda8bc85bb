"""Answers from trained networks: ReLU networks, gated ones against their prediction, both."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralrace.dataset import zero_loss
from neuralrace.plot import style
from neuralrace.report import Curve, Curves, Part, Picture, Section, Table
from neuralrace.results import Sentence
from neuralrace.study.answers.answer import Answer, picture_size, printed, time_range
from neuralrace.study.answers.results import Certified, Predicted, Trained, mean, outputs_mean
from neuralrace.study.answers.theory import race_parts, race_sentence
from neuralrace.study.plan import TRAINED, criterion
from neuralrace.study.work import Work, members
from neuralrace.text import numbered, percent
from neuralrace.trajectory import Trajectory, compare, crossing_time, half_time


def train(work: Work) -> Answer:
    """What ReLU networks do on the task."""
    runs, level = work.relu, criterion(work.settings, work.problem.data)
    share = level / float(zero_loss(work.problem.data))
    found = Trained(runs, level, share if work.settings.contest.relative else None)
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

    reached, loss = found.sentences()
    said = (reached, *_against_contest(work, found), loss)
    short, data = {each.id for each in said}, {"relu_networks.nc": kept_values(work, runs)}
    return Answer(
        "train", "What do ReLU networks do?", found, parts, numbers, runs, said, short, data
    )


def _against_contest(work: Work, found: Trained) -> tuple[Sentence, ...]:
    """The times of ReLU networks next to the time that was predicted for the winner."""
    if not work.asks("contest") or work.contest.winner is None or work.relu.clock != "flow":
        return ()
    name = work.contest.winner
    said = against_prediction(found.times, work.contest.times[name], name)
    if work.asks("predict", "certify") and work.followed == name:
        gated = crossing_time(work.gated.time, work.gated.loss, found.level)
        if np.isfinite(gated).all():
            who = numbered(len(gated), "gated network", "One")
            said += f" {who} with the gates of {name} reached it at {time_range(gated)}."
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

    gating = Sentence("gating", f"The gating {work.followed} {race_sentence(race)}")
    top = ("networks",) if found.is_check and relu else ("prediction", "networks")
    return Answer(
        "predict",
        "What will the loss do?",
        found,
        parts,
        numbers,
        (runs, solved),
        (*found.sentences(), gating),
        top,
        {"gated_networks.nc": kept_values(work, runs)},
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
