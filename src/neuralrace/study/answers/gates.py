"""Answers on the gates of ReLU networks: found, predicted as types, explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuralrace.plot import style
from neuralrace.reln import Discovery
from neuralrace.report import Curve, Curves, Part, Picture, Table
from neuralrace.results import Sentence
from neuralrace.study.answers.answer import PICTURE, Answer, Beside, printed
from neuralrace.study.answers.matches import Matches, matched_gatings
from neuralrace.study.answers.results import gates_and_curves
from neuralrace.study.questions import TRAINED
from neuralrace.study.work import Work, members
from neuralrace.text import numbered, percent
from neuralrace.trajectory import compare


def discover(work: Work) -> Answer:
    """The gates in the activity of the ReLU networks."""
    found, matches = work.discovered, matched_gatings(work, work.discovered)
    words = Sentence("words", f"{'; '.join(found.in_words)}.")
    there = sum(len(patterns) for patterns in found.patterns.values())
    numbers = {"pathways_found": float(there), "discovery_gap": float(found.discrepancy)}
    told = Beside(found, [words, *matches.sentences()])

    def parts() -> list[Part]:
        table = Table.of(found, "Pathways found", "gates.csv")
        shown: list[Part] = [_patterns(work, found), *_elbow(found), table]
        if matches.matches:
            shown.append(Table.of(matches, Matches.CAPTION, "gates_and_gatings.csv"))
        return [*shown, printed(found)]

    title = "Which gates do ReLU networks use?"
    short = (told.sentences()[0].id, "words", "nearest")
    return Answer("discover", title, told, parts, numbers, found, short=short)


def _elbow(found: Discovery) -> list[Part]:
    if len(found.curve) < 2:
        return []
    curve = Curve("gap", list(found.curve), list(found.curve.values()), "simulation")
    return [
        Curves(
            [curve],
            xlabel="pathways",
            ylabel="gap to the ReLU loss / L(0)",
            ylog=True,
            caption="How many pathways it takes",
            alt="The gap between gated and ReLU networks over the number of pathways.",
            file="elbow.csv",
        )
    ]


def _patterns(work: Work, found: Discovery) -> Picture:
    import matplotlib.pyplot as plt

    by = "context" if in_order(work.problem.data.labels.get("context")) else None
    with style():
        figure, ax = plt.subplots(figsize=PICTURE)
        found.plot(label=by, ax=ax)
    alt = "How often the members of each pathway found are on, for each sample."
    return Picture.of(figure, alt=alt, caption="Pathways found, and the samples they are on for")


def in_order(label: Any) -> bool:
    """Whether samples with the same value of a label follow each other."""
    if label is None:
        return False
    values = np.asarray(label)
    return len(np.unique(values)) == 1 + int((values[1:] != values[:-1]).sum())


# ---- types and explanations ---------------------------------------------------------------------


def types(work: Work) -> Answer:
    """The ReLU network from task, width and scale alone, as a few types of neurons."""
    found = work["types"]
    numbers = {"types_gap": compare(found.wide, found.trajectory).mean}
    relu = work.relu if work.asks(*TRAINED) else None
    runs = [] if relu is None else members(relu)
    said: list[Sentence] = []
    if runs:
        away = float(np.mean([compare(run, found.trajectory).mean for run in runs]))
        numbers["types_distance"] = away
        who = numbered(len(runs), "trained ReLU network", "one")
        said = [Sentence("networks", f"The loss of {who} is {percent(away)} from it on average.")]
    told = Beside(found, said)

    def parts() -> list[Part]:
        losses = Curves(
            [
                *([] if relu is None else [Curve("ReLU networks", relu.time, relu.loss, "relu")]),
                Curve(
                    f"{len(found)} types", found.trajectory.time, found.trajectory.loss, "theory"
                ),
                Curve("wide limit", found.wide.time, found.wide.loss, "theory"),
            ],
            caption="Loss by types of neurons",
            alt="The loss predicted by types of neurons over time.",
            file="types_losses.csv",
        )
        picture = Picture.of(
            found.plot(),
            alt="A timeline: the loss, the share of every type, and its gates on every sample.",
            caption="Types of neurons over time",
        )
        return [losses, picture, printed(found)]

    title, short = "Which types of neurons form?", (told.sentences()[0].id, "networks")
    return Answer("types", title, told, parts, numbers, found, short=short)


def rows_asked(work: Work) -> list[str]:
    """The rows of the table of explanations that the study asks for."""
    asked = work.settings.explain.rows
    gatings = [*work.problem.candidates] if "gatings" in asked else []
    return [*gatings, *(row for row in asked if row != "gatings")]


def explain(work: Work) -> Answer:
    """All small models of the ReLU networks in one table."""
    _, found = work.relu, work["explanation"]
    numbers = dict.fromkeys((f"error_{n}" for n in rows_asked(work)), np.nan)
    for row in found.rows:
        own = "discovered" if isinstance(row.found, Discovery) else row.name
        name = own if row.kind == "gating" else row.kind
        numbers[f"error_{name}"] = float(row.error)
    matches = matched_gatings(work, work.discovered).matches if work.asks("discover") else []
    both = {"missed": found.just_missed, "both": gates_and_curves(matches, found)}
    told = Beside(found, [Sentence(name, text) for name, text in both.items() if text])

    def parts() -> list[Part]:
        curves = [Curve("ReLU networks", work.relu.time, work.relu.loss, "relu")]
        curves += [
            Curve(row.name, run.time, run.loss, KINDS.get(row.kind, "simulation"))
            for row in found.rows
            if (run := row.trajectory) is not None
        ]
        drawn = Curves(
            curves,
            caption="Loss of every explanation; but for types of neurons all are trained networks",
            alt="The loss of the ReLU networks and of every explanation over time.",
            file="explain_losses.csv",
        )
        return [Table.of(found, "Explanations, best first", "explain.csv"), drawn, printed(found)]

    title, short = "Which small model explains them?", ("advice", "missed", "both")
    return Answer("explain", title, told, parts, numbers, found, short=short)


KINDS: Mapping[str, Any] = {"types": "theory", "narrow": "relu"}
"""What the rows of an explanation are that are no gated networks, which are simulated."""
