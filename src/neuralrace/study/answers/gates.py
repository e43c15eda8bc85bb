"""Answers on the gates of ReLU networks: found, predicted as types, explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from neuralrace.explanation import Explanation
from neuralrace.plot import style
from neuralrace.reln import Discovery
from neuralrace.report import Curve, Curves, Part, Picture, Table
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.study.answers.answer import PICTURE, Answer, Beside, printed
from neuralrace.study.questions import TRAINED
from neuralrace.study.work import Work, members
from neuralrace.text import numbered, percent, several
from neuralrace.trajectory import compare

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


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
        which = f" of network 1 of {work.count}" if work.count > 1 else ""
        rows = Table.of(found, f"Explanations{which}, best first", "explain.csv")
        return [rows, drawn, printed(found)]

    title, short = "Which small model explains them?", ("advice", "missed", "both")
    return Answer("explain", title, told, parts, numbers, found, short=short)


KINDS: Mapping[str, Any] = {"types": "theory", "narrow": "relu"}
"""What the rows of an explanation are that are no gated networks, which are simulated."""


def gates_and_curves(matches: Sequence[Match], found: Explanation) -> str:
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


# ---- gatings against the patterns found ---------------------------------------------------------


@final
@dataclass(frozen=True)
class Match:
    """How a gating's patterns fit those found in ReLU networks.

    `common` of its `patterns` are among those `found`. `differ` is the part of the samples on which
    a pattern found differs from the nearest of the gating's, on average over the weight.
    """

    name: str
    patterns: int
    found: int
    common: int
    differ: float

    @property
    def is_exact(self) -> bool:
        """Whether the patterns found are those of the gating, no more and no less."""
        return self.common == self.patterns == self.found


def match_patterns(name: str, patterns: np.ndarray, found: np.ndarray, share: np.ndarray) -> Match:
    """Patterns found, (K, N) with their shares of the weight, against those of a gating, (P, N).

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.answers.gates import match_patterns
    >>> sides = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> found = np.array([[1, 1, 0, 0], [0, 1, 1, 1]])
    >>> fit = match_patterns("sides", sides, found, np.array([0.5, 0.5]))
    >>> fit.common, fit.differ
    (1, 0.125)

    ```
    """
    own, there = (np.asarray(p) > 0.5 for p in (patterns, found))
    away = (there[:, None, :] != own[None, :, :]).mean(axis=2)
    wanted, seen = ({tuple(p) for p in those} for those in (own, there))
    differ = float(share @ away.min(axis=1) / share.sum())
    return Match(name, len(wanted), len(seen), len(wanted & seen), differ)


@final
@dataclass(frozen=True)
class Matches(Result):
    """The gatings of a study against the patterns found, the nearest first."""

    matches: list[Match]

    CAPTION: ClassVar[str] = (
        "The gatings of the study against the patterns found: the part of the samples on which a "
        "pattern found differs from the nearest one of the gating, on average over the weight"
    )

    def frame(self) -> pandas.DataFrame:
        """One row per gating."""
        columns = ("gating", "patterns", "found", "differ")
        rows = ((m.name, m.patterns, m.common, m.differ) for m in self.matches)
        return framed(columns, (dict(zip(columns, row, strict=True)) for row in rows),
                      {"differ": SHARE})  # fmt: skip

    def sentences(self) -> tuple[Sentence, ...]:
        """Which gating the patterns found are nearest to, in one sentence; none without gatings."""
        return tuple(nearest_sentences(self.matches))

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """A bar for each gating."""
        return self.frame().plot.bar("gating", "differ", ax=ax)


def matched_gatings(work: Work, found: Discovery) -> Matches:
    """Every gating of the study against the patterns found."""
    matches: list[Match] = []
    clusters = next(iter(found.layers.values()))
    comparable = len(found.layers) == 1 and work.settings.network.in_a_row
    for name, (arch, data) in work.problem.candidates.items() if comparable else ():
        ones = np.ones(data.n_samples)
        own = np.stack([np.asarray(data.gates.get(v, ones)) for v in arch.hidden])
        matches.append(match_patterns(name, own, clusters.pattern, clusters.share))
    return Matches(sorted(matches, key=lambda m: (not m.is_exact, m.differ)))


def nearest_sentences(matches: list[Match]) -> list[Sentence]:
    """Which gating the patterns found are nearest to, in one sentence; none without gatings."""
    if not matches:
        return []
    best, *others = matches
    if best.is_exact:
        names = several([match.name for match in matches if match.is_exact])
        text = (
            f"These, each the majority of a group of neurons, are exactly the "
            f"{numbered(best.patterns, 'pattern')} of {names}; whether single neurons keep them "
            "while they learn is what the check of a contest says."
        )
        return [Sentence("nearest", text)]
    tied = [m.name for m in matches if m.differ == best.differ]
    near = f"{best.name} is the nearest of the gatings" if others else f"Beside {best.name}"
    if len(tied) > 1:
        near = f"{several(tied)} are equally near"
    text = (
        f"{near}: a pattern found differs from the nearest one of {best.name} on "
        f"{percent(best.differ)} of the samples on average, and {best.common} of its "
        f"{best.patterns} {'is' if best.common == 1 else 'are'} found"
    )
    rest = [f"{m.name}: {percent(m.differ)}, {m.common} of {m.patterns}" for m in others]
    return [Sentence("nearest", f"{text} ({'; '.join(rest)})." if rest else f"{text}.")]
