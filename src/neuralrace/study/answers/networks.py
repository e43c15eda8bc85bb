"""Answers from trained networks: ReLU networks, gated ones against their prediction, both."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralrace.dataset import zero_loss
from neuralrace.plot import style
from neuralrace.report import Curve, Curves, Part, Picture, Section, Table
from neuralrace.study.answers.answer import Answer, picture_size, printed
from neuralrace.study.answers.results import Certified, Predicted, Trained, mean, outputs_mean
from neuralrace.study.answers.theory import race_parts
from neuralrace.study.plan import criterion
from neuralrace.study.questions import TRAINED
from neuralrace.study.work import Work, members
from neuralrace.text import numbered
from neuralrace.trajectory import Trajectory, compare, crossing_time, half_time


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
