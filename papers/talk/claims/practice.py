"""Claims of the talk on relative scale in practice (early layers, grokking), and on gated races.

The slide states both in a few words. Which layer is the larger one is inferred: the smaller the
first layer, the more it changes relative to its start.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from evidence import Claim, Measure, Remark
from neuralrace import NeuralRaceError
from papers import find
from papers.figure import Table
from papers.talk import early_layers, edge_sharing, gating_structures, grokking, transition

SLIDE = "“Impact of relative scale initializations in practice”"
"""Where the claims on early layers and grokking are made."""


def stored(measure: Measure, figure: str) -> Measure:
    """The measure on stored cells; NaN where there are none, and no GPU or no images either."""

    def read(tables: Any) -> Any:
        try:
            return measure.read(tables(figure))
        except NeuralRaceError:
            return float("nan")

    return replace(measure, read=read)


WEAKER = {"decay": 0.2, "epochs": 60_000, "seeds": 3}
"""Settings of further stored cells: a decay that forgets the initial scales more slowly."""


@functools.cache
def weaker_decay() -> Table:
    """The stored cells of grokking with a weaker weight decay."""
    figure = find("talk/grokking")
    return figure.run(figure.resolve(changes=WEAKER))


CLAIMS = (
    Claim(
        "talk/early-layers",
        SLIDE,
        "A small first and a large last layer make the first filters of a convolutional network "
        "more structured than the usual scales do, at the same initial outputs.",
        "Two convolutions and a readout without biases on CIFAR-10, Adam, at seven ratios of the "
        "last layer's scale to the first one's: the share of a first filter's energy at low "
        "spatial frequencies, and in the one Gabor function that explains most; mean over filters. "
        "White noise of the same size has shares of its own; the comparison with it was added when "
        "the numbers were known.",
        (
            *(
                stored(measures[name], "talk/early_layers")
                for measures in (
                    early_layers.GAINS,
                    early_layers.OVER_NOISE,
                    early_layers.IN_ORDER,
                )
                for name in ("low", "gabor")
            ),
            stored(early_layers.AS_GOOD, "talk/early_layers"),
        ),
        quote="Promotes interpretability of early layers in CNNs",
        inferred=True,
    ),
    Claim(
        "talk/grokking",
        SLIDE,
        "A small embedding and a large readout shorten the time until modular addition "
        "generalises, at the same initial outputs.",
        "A network of one hidden layer on half of all sums modulo 97, full batches, AdamW, at "
        "seven ratios of the readout's scale to the embedding's: epochs until 95 % of the other "
        "sums are right. The slide does not say which layer is to be larger, by how much, or than "
        "what: direction, ratio and comparison are ours, so that only twice the time would refute "
        "it.",
        (
            stored(grokking.FITS, "talk/grokking"),
            stored(grokking.SOONER, "talk/grokking"),
            stored(grokking.IN_ORDER, "talk/grokking"),
        ),
        quote="Decreases the time to grokking in modular arithmetic",
        inferred=True,
        instead=(
            Remark(
                "A large embedding makes it slower: {:.2f} times as long at the smallest ratio as "
                "at 1. A small one does not make it sooner: {:.2f} times as long at the largest "
                "ratio, {:.2f} at the best. With a fifth of the weight decay, three seeds, it is "
                "the same: {:.2f} times as long at the smallest ratio, {:.2f} at the largest.",
                (
                    lambda tables: grokking.later(tables("talk/grokking")),
                    lambda tables: grokking.sooner(tables("talk/grokking")),
                    lambda tables: grokking.soonest(tables("talk/grokking")),
                    lambda tables: grokking.later(weaker_decay()),
                    lambda tables: grokking.sooner(weaker_decay()),
                ),
            ),
        ),
    ),
    Claim(
        "talk/fastest-dominates",
        "“Neural Race Reduction”",
        "Each gating has its own course of learning, and ReLU networks follow the fastest.",
        "Extended XoR with Δ on either side of √(2/3): the loss of ReLU networks against the races "
        "of four gatings.",
        (
            gating_structures.FASTEST.on("talk/gating_structures"),
            gating_structures.OF_ALL.on("talk/gating_structures"),
        ),
        quote="The one which learns fastest dominates the solution",
    ),
    Claim(
        "talk/edge-sharing",
        "“The neural race reduction”, “The neural race: edge sharing”",
        "The more pathways use an edge, the faster they learn.",
        "Routing, M = 10: half-times of pathways that P routes share, from random weights.",
        (edge_sharing.FASTER.on("talk/edge_sharing"),),
        quote="Edge sharing (more pathways through edge generally faster)",
    ),
    Claim(
        "talk/nonlinear-early",
        "“Example: transition to nonlinearity”",
        "Networks learn nonlinear representations where linear ones would do.",
        "Extended XoR from Δ = 0 to 5: the share of the final weight in neurons with exactly the "
        "XoR and exactly the linear patterns.",
        (
            transition.BEFORE.on("talk/transition"),
            transition.AFTER.on("talk/transition"),
        ),
        quote="Nonlinear representations emerge before they are strictly necessary",
    ),
)
