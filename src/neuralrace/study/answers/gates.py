"""Answers on the gates of ReLU networks: found, certified, predicted as types, explained."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.explanation import Explanation
from neuralrace.plot import style
from neuralrace.reln import Certificate, Discovery
from neuralrace.report import Code, Curve, Curves, Part, Picture, Section, Table
from neuralrace.results import Sentence, framed
from neuralrace.study.answers.answer import PICTURE, Answer
from neuralrace.study.answers.matches import (
    Match,
    match_table,
    matched_gatings,
    nearest_sentences,
)
from neuralrace.study.plan import TRAINED
from neuralrace.study.work import Work, members
from neuralrace.text import numbered, percent
from neuralrace.trajectory import compare

if TYPE_CHECKING:
    import pandas


def discover(work: Work) -> Answer:
    """The gates in the activity of the ReLU networks."""
    found = work.discovered
    there = sum(len(patterns) for patterns in found.patterns.values())
    numbers = {"pathways_found": float(there), "discovery_gap": float(found.discrepancy)}
    matches = matched_gatings(work, found)
    first, *rest = _discovery_sentences(found)
    said = (first, *nearest_sentences(matches), *rest)
    title, short = "Which gates do ReLU networks use?", ("pathways", "nearest")
    parts = partial(_discovery_parts, work, found, matches)
    frame = partial(_pathways, found)
    return Answer("discover", title, said, parts, frame, numbers, found, short=short)


def _pathways(found: Discovery) -> pandas.DataFrame:
    """One row per pathway found."""
    columns = ("layer", "pathway", "share of the weight", "samples on", "which, counted from 1")
    rows = []
    for node, clusters in found.layers.items():
        for i, share in enumerate(clusters.share):
            on = np.flatnonzero(clusters.pattern[i] > 0.5) + 1
            row = (node, i + 1, float(share), len(on), _listed(on))
            rows.append(dict(zip(columns, row, strict=True)))
    return framed(columns, rows)


def _discovery_parts(work: Work, found: Discovery, matches: list[Match]) -> list[Part]:
    table = Table.of(_pathways(found), "Pathways found", "gates.csv")
    parts: list[Part] = [_patterns(work, found), table]
    if matches:
        parts.append(match_table(matches))
    if len(found.curve) > 1:
        curve = Curve("gap", list(found.curve), list(found.curve.values()), "simulation")
        parts.insert(
            1,
            Curves(
                [curve],
                xlabel="pathways",
                ylabel="gap to the ReLU loss / L(0)",
                ylog=True,
                caption="How many pathways it takes",
                alt="The gap between gated and ReLU networks over the number of pathways.",
                file="elbow.csv",
            ),
        )
    return [*parts, Section("As the library prints it", [Code(str(found))], folded=True)]


def _listed(samples: np.ndarray) -> str:
    shown = ", ".join(map(str, samples[:12].tolist()))
    return f"{shown} …" if len(samples) > 12 else shown


def _discovery_sentences(found: Discovery) -> tuple[Sentence, ...]:
    patterns = {tuple(p > 0.5) for those in found.patterns.values() for p in those}
    tried = f" (of {min(found.curve)} to {max(found.curve)} tried)" if found.curve else ""
    text = (
        f"MHS Algorithm 1, shown nothing but the activity of "
        f"{numbered(len(found.runs), 'ReLU network')}, settles on "
        f"{numbered(len(patterns), 'pathway')}{tried}"
    )
    follow = (
        "A gated network with these gates and the ReLU network's own initial weights is "
        f"{percent(found.discrepancy)} from it."
    )
    if found.withheld is not None:
        follow = f"No gated network was trained to follow: {found.withheld}."
    clusters = next(iter(found.layers.values()))
    off = float(clusters.share @ clusters.mismatch)
    rounded = (
        f"What is rounded away: over training a neuron differs from its pathway on {off:.1f} of "
        f"{clusters.pattern.shape[1]} samples."
    )
    said = {"pathways": f"{text}.", "follow": follow, "rounded": rounded}
    return tuple(Sentence(*pair) for pair in said.items())


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


# ---- certificate --------------------------------------------------------------------------------


def certify(work: Work) -> Answer:
    """How nearly the gated network is the ReLU network (MHS Definition 3.1)."""
    _, _, name = work.relu, work.gated, work.followed
    found = work["certificates"]
    away = np.stack([c.outputs_over_time for c in found])
    curves = [Curve(f"gated network ({name})", found[0].time, away)]
    floors = [c.floor for c in found if c.floor is not None]
    if floors:
        floor = np.stack([c.outputs_over_time for c in floors])
        curves.append(Curve("another seed", floors[0].time, floor, "relu"))
    frame = partial(_certificates, found)

    def parts() -> list[Part]:
        distances = Curves(
            curves,
            ylabel="distance of outputs / √(2 L(0))",
            caption="Distance of the outputs from those of the ReLU network",
            alt="The distance of outputs over time, next to that of another seed.",
            file="certify_outputs.csv",
        )
        printed = Section("As the library prints it", [Code(str(found[0]))], folded=True)
        return [distances, Table.of(frame(), "One certificate per seed", "certify.csv"), printed]

    numbers = {
        "outputs_distance": float(np.mean([c.outputs_mean for c in found])),
        "outputs_distance_max": max(c.outputs_max for c in found),
    }
    if floors:
        numbers["outputs_floor"] = float(np.mean([c.outputs_mean for c in floors]))
    sentences = _certificate_sentences(name, found, floors)
    title, value = "Is it the same function?", tuple(found)
    return Answer("certify", title, sentences, parts, frame, numbers, value, short=("same",))


def _certificates(found: list[Certificate]) -> pandas.DataFrame:
    """One row per seed."""
    columns = ("seed", "outputs, mean", "outputs, largest", "loss, mean", "times another seed")
    rows = [
        (i + 1, c.outputs_mean, c.outputs_max, c.loss.mean, c.times_floor_outputs)
        for i, c in enumerate(found)
    ]
    return framed(columns, (dict(zip(columns, row, strict=True)) for row in rows))


def _certificate_sentences(
    name: str, found: list[Certificate], floors: list[Certificate]
) -> tuple[Sentence, ...]:
    average = float(np.mean([c.outputs_mean for c in found]))
    text = (
        f"On every sample at every moment, the outputs of the gating {name} are "
        f"{percent(average)} from those of the ReLU network on average and "
        f"{percent(max(c.outputs_max for c in found))} at most, as parts of its initial root mean "
        "square error √(2 L(0))"
    )
    off = f"its outputs are {percent(average)} off on average"
    same = f"the gated network is not the same function (MHS Definition 3.1): {off}"
    if all(c.holds() for c in found):
        same = "the gated network is the same function (MHS Definition 3.1)"
    if not floors:
        return Sentence("outputs", f"{text}."), Sentence("same", f"So {same}.")
    other = float(np.mean([c.outputs_mean for c in floors]))
    apart = (
        f"Two seeds of the ReLU network are {percent(other)} and "
        f"{percent(max(c.outputs_max for c in floors))} apart."
    )
    ratio = average / other if other else np.inf
    times = f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2g}"
    joined = f"So {same}, {times} times as far as those of another seed of the ReLU network."
    if all(c.holds() for c in found):
        joined = f"So {same}."
    said = {"outputs": f"{text}.", "floor": apart, "same": joined}
    return tuple(Sentence(*pair) for pair in said.items())


# ---- types and explanations ---------------------------------------------------------------------


def types(work: Work) -> Answer:
    """The ReLU network from task, width and scale alone, as a few types of neurons."""
    found = work["types"]
    curves = [
        Curve(f"{len(found)} types", found.trajectory.time, found.trajectory.loss, "theory"),
        Curve("wide limit", found.wide.time, found.wide.loss, "theory"),
    ]
    gap = compare(found.wide, found.trajectory).mean
    rare = [] if found.rare is None else [Sentence("rare", str(found.rare))]
    text = (
        f"{numbered(len(found), 'type')} of neurons, predicted from task, width and scale, "
        f"{'follows' if len(found) == 1 else 'follow'} the wide limit within {percent(gap)} of "
        "the initial loss on average."
    )
    said = [*rare, Sentence("limit", text)]
    numbers = {"types_gap": gap}
    if work.asks(*TRAINED):
        away = [compare(run, found.trajectory).mean for run in members(work.relu)]
        who = numbered(len(away), "trained ReLU network")
        verb = "is" if len(away) == 1 else "are"
        text = f"{who[:1].upper()}{who[1:]} {verb} {percent(float(np.mean(away)))} from them."
        said.append(Sentence("networks", text))
        curves.insert(0, Curve("ReLU networks", work.relu.time, work.relu.loss, "relu"))
        numbers["types_distance"] = float(np.mean(away))

    def parts() -> list[Part]:
        losses = Curves(
            curves,
            caption="Loss by types of neurons",
            alt="The loss predicted by types of neurons over time.",
            file="types_losses.csv",
        )
        picture = Picture.of(
            found.plot(),
            alt="A timeline: the loss, the share of every type, and its gates on every sample.",
            caption="Types of neurons over time",
        )
        return [losses, picture, Section("The types over time", [Code(str(found))], folded=True)]

    title, frame = "Which types of neurons form?", partial(_types, found)
    return Answer("types", title, tuple(said), parts, frame, numbers, found)


def _types(found: Any) -> pandas.DataFrame:
    """One row per type: its share of the neurons at the beginning and at the end."""
    rows = [
        {"type": k + 1, "share at first": float(shares[0]), "share at last": float(shares[-1])}
        for k, shares in enumerate(np.asarray(found.shares, float).T)
    ]
    return framed(("type", "share at first", "share at last"), rows)


def rows_asked(work: Work) -> list[str]:
    """The rows of the table of explanations that the study asks for."""
    rows = [row for row in work.settings.explain.rows if row != "gatings"]
    return [
        *(work.problem.candidates if len(rows) < len(work.settings.explain.rows) else ()),
        *rows,
    ]


def explain(work: Work) -> Answer:
    """All small models of the ReLU networks in one table."""
    _, found = work.relu, work["explanation"]
    numbers = dict.fromkeys((f"error_{n}" for n in rows_asked(work)), np.nan)
    for row in found.rows:
        own = "discovered" if isinstance(row.found, Discovery) else row.name
        name = own if row.kind == "gating" else row.kind
        numbers[f"error_{name}"] = float(row.error)
    title = "Which small model explains them?"
    parts = partial(_explanation_parts, work, found)
    advice, *more = [each for each in found.sentences() if each.id != "made"]
    which = f" (network 1 of {work.count})" if work.count > 1 else ""
    matches = matched_gatings(work, work.discovered) if work.asks("discover") else []
    both = {"missed": found.just_missed, "both": gates_and_curves(matches, found)}
    said = (
        Sentence("advice", f"{advice.text.removesuffix('.')}{which}."),
        *(Sentence(name, text) for name, text in both.items() if text),
        *more,
    )
    short = ("advice", *both)
    return Answer("explain", title, said, parts, found.frame, numbers, found, short=short)


def gates_and_curves(matches: list[Match], found: Explanation) -> str:
    """How the gates found can be those of a gating that does not follow the network; or empty."""
    name = next((match.name for match in matches if match.is_exact), None)
    row = next((row for row in found.rows if row.name == name), None)
    if row is None or found.floor is None or not found.floor[1] or row in found.near:
        return ""
    times = row.error / found.floor[1]
    return (
        f"The gates found are those of {name}, and yet it is {times:.3g} times as far away as "
        "another seed. Both are true: gates found are rounded to what each neuron "
        "does most of the time, and the curve also shows the moments when neurons do otherwise."
    )


KINDS: Mapping[str, Any] = {"types": "theory", "narrow": "relu"}
"""What the rows of an explanation are that are no gated networks, which are simulated."""


def _explanation_parts(work: Work, found: Explanation) -> list[Part]:
    curves = [Curve("ReLU networks", work.relu.time, work.relu.loss, "relu")]
    curves += [
        Curve(row.name, row.trajectory.time, row.trajectory.loss, KINDS.get(row.kind, "simulation"))
        for row in found.rows
        if row.trajectory is not None
    ]
    return [
        Table.of(found.frame(), "Explanations, best first", "explain.csv"),
        Curves(
            curves,
            caption="Loss of every explanation; but for types of neurons all are trained networks",
            alt="The loss of the ReLU networks and of every explanation over time.",
            file="explain_losses.csv",
        ),
        Section("As the library prints it", [Code(str(found))], folded=True),
    ]
