"""The ledger in short: plain words, in sentences that follow from verdicts and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from papers.claims.claim import Entry, Read, Remark, Verdict
from papers.claims.mhs.contextual import SCALED
from papers.claims.mhs.networks import explained, gates_over_time
from papers.claims.mhs.reads import (
    MIXED,
    OWN_LOSS,
    WIDTHS,
    by_rule,
    least_over_rules,
    measured,
    over,
)
from papers.claims.tables import Tables
from papers.measure import Outcome
from papers.mhs import fig5

STANDS = (Verdict.HOLDS, Verdict.QUALIFIED)
"""The verdicts of a claim that can be relied on."""

FALLS = (Verdict.FAILS,)
"""The verdict of a claim that is refuted."""

OPEN = (Verdict.UNDECIDED,)
"""The verdict of a claim that is not settled."""


def contexts_of_five(**changes: Any) -> Read:
    """Of 5 contexts, the number in which most of the contextual weight is on, by seed."""
    minus_five = fig5.only("span", 5).on("mhs/fig5", **changes)
    return lambda tables: 5 + np.asarray(minus_five.read(tables))


@final
@dataclass(frozen=True)
class Sentence:
    """A sentence that is said only if verdicts and single measures are as it says.

    Every claim named in `when` must have one of the verdicts there. `met` and `missed` name
    measures of a claim by their ids: all must be met, or missed.
    """

    text: str
    when: Mapping[str, Iterable[Verdict]] = field(default_factory=dict)
    reads: tuple[Read, ...] = ()
    met: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def said(self, entries: Mapping[str, Entry], tables: Tables) -> str:
        """The sentence with its numbers, or an empty text if it does not apply."""
        there = {*self.when, *self.met, *self.missed} <= set(entries)
        if not there or any(entries[n].verdict not in tuple(v) for n, v in self.when.items()):
            return ""
        for wanted, measures in ((Outcome.MET, self.met), (Outcome.MISSED, self.missed)):
            for name, ids in measures.items():
                if any(_outcome(entries[name], id) is not wanted for id in ids):
                    return ""
        return Remark(self.text, self.reads).said(tables)


def _outcome(entry: Entry, id: str) -> Outcome | None:
    """What a measure of the entry says; None if the entry has no such measure."""
    return next((m.outcome(found) for m, found in entry.pairs if m.id == id), None)


PARTS: Mapping[str, Sequence[Sentence]] = {
    "The reduction (NRR)": (
        Sentence(
            "From decoupled weights the neural race reduction is exact, and from small random "
            "weights it predicts learning with nothing fitted.",
            {"nrr/theory-exact": STANDS, "nrr/theory-random": STANDS},
        ),
        Sentence(
            "Pathways that carry more routes learn faster and win, so that networks generalise to "
            "routes that were never trained.",
            {"nrr/shared-wins": STANDS, "nrr/zero-shot": STANDS},
        ),
        Sentence(
            "That about 40 % of the routes are enough holds in the paper's setting; it is not a "
            "law for other numbers of domains.",
            {"nrr/forty-percent": (Verdict.QUALIFIED,)},
            missed={"nrr/forty-percent": ("m5-k2",)},
        ),
        Sentence(
            "Large initial weights lead to another solution, without a shared representation; the "
            "change from one to the other is gradual.",
            {"nrr/small-starts": (Verdict.QUALIFIED,), "nrr/two-regimes": STANDS},
            missed={"nrr/small-starts": ("width-of-change",)},
        ),
    ),
    "One hidden layer, two gatings (MHS §3)": (
        Sentence(
            "Any ReLU network is a gated linear network whose gates are its own activity.",
            {"mhs/always-a-reln": STANDS},
        ),
        Sentence(
            "On extended XoR, ReLU networks follow the faster of two gatings that are fixed in "
            "advance, at every Δ.",
            {"mhs/xor-faster-gating": STANDS},
        ),
        Sentence(
            "The faster one changes at Δ = √(2/3), and trained networks change about there.",
            {"mhs/xor-crossover": STANDS, "mhs/xor-boundary": STANDS},
        ),
    ),
    "Items in contexts (MHS §4, §5)": (
        Sentence(
            "With 3 contexts, a common pathway together with one for every pair of contexts comes "
            "near the loss of the ReLU network, to {:.1%} of the initial loss on average, and "
            "nearer than pathways for single contexts.",
            {"mhs/contextual-loss": STANDS},
            (by_rule("follows").read,),
            met={"mhs/contextual-loss": ("nearer-authors",)},
        ),
        Sentence(
            "With 4 and 5 contexts, a common pathway and those that are on in all contexts but one "
            "come as near; they were not compared with pathways for single contexts.",
            met={"mhs/more-contexts": ("follows-worst",)},
        ),
        Sentence(
            "With 5 contexts, most of the contextual weight is nearest to patterns that are on in "
            "{:.0f} of them with the context features of the authors' scripts, and in {:.0f} with "
            "one-hot features of size 1; the paper says 4. Which of the two counts is left open: "
            "both numbers were known when it was chosen.",
            {"mhs/more-contexts": OPEN},
            (contexts_of_five(**SCALED), contexts_of_five()),
            missed={"mhs/more-contexts": ("one-hot-span-5",)},
        ),
        Sentence(
            "Neurons are mixed-selective, as the paper says: {:.1%} of the weight is in neurons "
            "that are on in one context only.",
            {"mhs/context-pure": STANDS},
            (measured(gates_over_time, "specific"),),
        ),
        Sentence(
            "This gated network is an approximation, and not the ReLU network: by its loss it is "
            "{:.0f} times as far from it as another seed is with the widths of the paper's table, "
            "{:.0f} times if it is trained as in the authors' scripts, and {:.0f} times with the "
            "most favourable of four rules for the widths.",
            {"mhs/contextual-loss": (Verdict.QUALIFIED,)},
            (by_rule("loss over floor").read, OWN_LOSS, least_over_rules("loss over floor")),
            missed={
                "mhs/contextual-loss": ("loss-over-floor-authors", "own-loss-over-floor"),
            },
        ),
        Sentence(
            "Nor is it the nearest gated network: if a seventh of its contextual width goes to "
            "pathways that depend on the item, it is {:.2f} times as far away, and learns faster.",
            {"mhs/unique": FALLS, "mhs/fastest": FALLS},
            (MIXED,),
            missed={
                "mhs/unique": tuple(f"mixed-{rule}" for rule in WIDTHS),
                "mhs/fastest": ("mixed",),
            },
        ),
        Sentence(
            "A single neuron can gate by more than the context (Lemma 4.1). On the residual of the "
            "common pathway, patterns that depend on the item as well grow faster "
            "(Proposition 4.2).",
            missed={
                "mhs/implementable": ("admitted-2x2", "admitted-3x4"),
                "mhs/fastest": ("faster-patterns",),
            },
        ),
    ),
    "What the ReLU network does instead": (
        Sentence(
            "It first learns as a linear network, with all neurons on. Then its neurons turn, and "
            "turn off for *some items of some contexts*: at the end {:.0%} of the weight is on for "
            "part of a context, and {:.1%} depends on the context alone.",
            {"mhs/gates-learned": STANDS},
            (measured(gates_over_time, "part"), measured(gates_over_time, "exact")),
            missed={"mhs/implementable": ("admitted-trained",)},
        ),
        Sentence(
            "At epoch 3000 of 8000, neurons with {:.0%} of the weight are held at the boundary of "
            "some sample, where errors push them back from both sides. Their gates are fractions.",
            {"mhs/implementable": FALLS},
            (measured(explained, "sliding"),),
        ),
        Sentence(
            "A ReLU network with the weights of the four pathways would keep {:.0%} of their "
            "gates. If each neuron is allowed to make its own gates, a prediction from the task, "
            "the width and the initial scale alone is {:.1f} times as far from the network as "
            "another seed in loss, and {:.1f} times in outputs.",
            {"mhs/implementable": FALLS},
            (
                measured(explained, "kept"),
                over("wide", "floor"),
                over("wide_outputs", "floor_outputs"),
            ),
        ),
    ),
    "Two hidden layers (MHS §6)": (
        Sentence(
            "Runs differ, as the paper says; the later drops of the loss come at less consistent "
            "times than the first.",
            met={
                "mhs/depth-variance": ("spread",),
                "mhs/variance-timing": ("later-drops",),
            },
        ),
        Sentence(
            "The gated network, with stages that are set by hand, follows the loss of the typical "
            "run.",
            met={"mhs/depth-follows": ("loss-staged",)},
        ),
        Sentence(
            "Even with stages that are set by hand, the gated network does not follow the loss of "
            "the typical run.",
            missed={"mhs/depth-follows": ("loss-staged",)},
        ),
        Sentence(
            "That ReLU network and gated network vary in the same way is not what we find.",
            {"mhs/depth-variance": FALLS},
        ),
        Sentence(
            "The first layer does gate: it is not used as a linear layer.",
            missed={"mhs/depth-first-layer": ("always",)},
        ),
        Sentence(
            "Whether the second layer gates much as one layer does, and whether outputs agree at "
            "plateaus, is left open: the paper gives no numbers for either, and ours were known "
            "when bounds for them were set.",
            {"mhs/depth-second-layer": OPEN, "mhs/depth-follows": OPEN},
        ),
    ),
    "Deep linear networks (talk)": (
        Sentence(
            "The solutions for chains, for λ-balanced weights and for sequences of tasks are "
            "exact, apart from slips in printed formulas.",
            {
                "talk/trajectories-by-depth": STANDS,
                "talk/partitioned-solution": STANDS,
                "talk/continual-exact": STANDS,
            },
        ),
        Sentence(
            "Learning passes near saddles one after another, and the balance of layers, more than "
            "their scale, decides whether learning is rich or lazy.",
            {"talk/saddles-visited": STANDS, "talk/rich-and-lazy": (Verdict.QUALIFIED,)},
            missed={"talk/rich-and-lazy": ("large-scale",)},
        ),
    ),
}
"""The sentences by heading. What is not settled is not said."""


def paragraphs(entries: Sequence[Entry], tables: Tables) -> list[str]:
    """The lines of the summary: a paragraph for each heading that has something to say."""
    named = {entry.claim.name: entry for entry in entries}
    lines: list[str] = []
    for heading, sentences in PARTS.items():
        said = [text for text in (each.said(named, tables) for each in sentences) if text]
        if said:
            lines += [f"**{heading}.**", "", " ".join(said), ""]
    return lines[:-1]
