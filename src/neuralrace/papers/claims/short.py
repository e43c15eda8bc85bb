"""The ledger in short: plain words, in sentences that follow from verdicts and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.papers.claims.claim import Entry, Read, Remark, Verdict
from neuralrace.papers.claims.mhs.networks import explained, gates_over_time, own_network, rivals
from neuralrace.papers.claims.mhs.reads import best, measured, measurement
from neuralrace.papers.claims.tables import Tables

STANDS = (Verdict.HOLDS, Verdict.QUALIFIED)
"""The verdicts of a claim that can be relied on."""

FALLS = (Verdict.FAILS,)
"""The verdict of a claim that is refuted."""

OPEN = (Verdict.UNDECIDED,)
"""The verdict of a claim that is not settled."""


@final
@dataclass(frozen=True)
class Sentence:
    """A sentence that is said only if every claim named in `when` has one of these verdicts."""

    text: str
    when: Mapping[str, Iterable[Verdict]]
    reads: tuple[Read, ...] = ()

    def said(self, verdicts: Mapping[str, Verdict], tables: Tables) -> str:
        """The sentence with its numbers, or an empty text if it does not apply."""
        applies = all(verdicts.get(name) in tuple(some) for name, some in self.when.items())
        return Remark(self.text, self.reads).said(tables) if applies else ""


def _ratio(name: str, other: str) -> Read:
    def read(tables: Tables) -> float:
        found = measurement(tables, explained)
        return float(np.mean(found[name]) / np.mean(found[other]))

    return read


def _smallest(tables: Tables) -> float:
    found = measurement(tables, rivals)
    return min(float(np.mean(v)) for name, v in found.items() if "earlier" not in name)


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
        ),
        Sentence(
            "Large initial weights lead to another solution, without a shared representation; the "
            "change from one to the other is gradual.",
            {"nrr/small-starts": (Verdict.QUALIFIED,), "nrr/two-regimes": STANDS},
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
            "A common pathway together with one for every pair of contexts comes near the loss of "
            "the ReLU network, to {:.1%} of the initial loss on average, and nearer than pathways "
            "for single contexts. With 4 and 5 contexts the same is true of pathways that are on "
            "in all contexts but one.",
            {"mhs/contextual-loss": STANDS, "mhs/more-contexts": STANDS},
            (best("follows").read,),
        ),
        Sentence(
            "Neurons are mixed-selective, as the paper says: {:.1%} of the weight is in neurons "
            "that are on in one context only.",
            {"mhs/context-pure": STANDS},
            (measured(gates_over_time, "specific"),),
        ),
        Sentence(
            "This gated network is an approximation, and not the ReLU network: with the widths "
            "that fit best it is {:.0f} times as far from it as another seed is, and the network "
            "of the authors' scripts {:.0f} times.",
            {"mhs/contextual-loss": (Verdict.QUALIFIED,)},
            (best("loss over floor").read, measured(own_network, "loss_over_floor")),
        ),
        Sentence(
            "It is not shown to be the only one either: of four other gatings with the same "
            "widths and initial weights, the nearest is at {:.2f} times its distance.",
            {"mhs/unique": (*FALLS, *OPEN)},
            (_smallest,),
        ),
        Sentence(
            "What a single neuron can do is not limited to contexts (Lemma 4.1), and on what the "
            "common pathway leaves, patterns that depend on the item as well grow faster "
            "(Proposition 4.2).",
            {"mhs/implementable": FALLS, "mhs/fastest": FALLS},
        ),
    ),
    "What the ReLU network does instead": (
        Sentence(
            "It first learns as a linear network, with all neurons on. Then its neurons turn, and "
            "turn off for *some items of some contexts*: at the end {:.0%} of the weight is on for "
            "part of a context, and {:.1%} depends on the context alone.",
            {"mhs/implementable": FALLS},
            (measured(gates_over_time, "part"), measured(gates_over_time, "exact")),
        ),
        Sentence(
            "Late in learning, neurons with {:.0%} of the weight are held at the boundary of some "
            "sample, where errors push them back from both sides. Their gates are fractions.",
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
                _ratio("wide", "floor"),
                _ratio("wide_outputs", "floor_outputs"),
            ),
        ),
    ),
    "Two hidden layers (MHS §6)": (
        Sentence(
            "Runs differ, as the paper says, and the gated network with stages that are set by "
            "hand follows the typical run.",
            {"mhs/depth-follows": STANDS},
        ),
        Sentence(
            "Even with stages that are set by hand, the gated network does not follow the typical "
            "run closely.",
            {"mhs/depth-follows": FALLS},
        ),
        Sentence(
            "That ReLU network and gated network vary in the same way is not what we find.",
            {"mhs/depth-variance": FALLS},
        ),
        Sentence(
            "The first layer does gate: it is not used as a linear layer.",
            {"mhs/depth-first-layer": FALLS},
        ),
        Sentence(
            "The second layer prefers two contexts to one, as the paper says.",
            {"mhs/depth-second-layer": STANDS},
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
        ),
    ),
}
"""The sentences by heading. What is not settled is not said."""


def paragraphs(entries: Sequence[Entry], tables: Tables) -> list[str]:
    """The lines of the summary: a paragraph for each heading that has something to say."""
    verdicts = {entry.claim.name: entry.verdict for entry in entries}
    lines: list[str] = []
    for heading, sentences in PARTS.items():
        said = [text for text in (each.said(verdicts, tables) for each in sentences) if text]
        if said:
            lines += [f"**{heading}.**", "", " ".join(said), ""]
    return lines[:-1]
