"""Claims of the talk on relative scale in practice: early layers and grokking.

The slide states both in a few words. Which layer is the larger one is inferred: the smaller the
first layer, the more it changes relative to its start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neuralrace import NeuralRaceError
from neuralrace.papers.claims import Claim, Measure, Remark
from neuralrace.papers.talk import early_layers, grokking

SLIDE = "“Impact of relative scale initializations in practice”"
"""Where both claims are made."""


def stored(measure: Measure, figure: str) -> Measure:
    """The measure on stored cells; NaN where there are none, and no GPU or no images either."""

    def read(tables: Any) -> Any:
        try:
            return measure.read(tables(figure))
        except NeuralRaceError:
            return float("nan")

    return replace(measure, read=read)


CLAIMS = (
    Claim(
        "talk/early-layers",
        SLIDE,
        "A small first and a large last layer make the first filters of a convolutional network "
        "more structured than the usual scales do, at the same initial outputs.",
        "Two convolutions and a readout without biases on CIFAR-10, Adam, at seven ratios of the "
        "last layer's scale to the first one's: the share of a first filter's energy at low "
        "spatial frequencies, and in the one Gabor function that explains most; mean over filters.",
        (
            *(stored(early_layers.GAINS[name], "talk/early_layers") for name in ("low", "gabor")),
            *(
                stored(early_layers.IN_ORDER[name], "talk/early_layers")
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
        "sums are right.",
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
                "ratio, {:.2f} at the best. The decay of AdamW alone forgets initial scales within "
                "1/(rate × decay) = {:.0f} epochs; all networks fit within {:.0f}. A weaker decay "
                "was not tried.",
                (
                    lambda tables: grokking.later(tables("talk/grokking")),
                    lambda tables: grokking.sooner(tables("talk/grokking")),
                    lambda tables: grokking.soonest(tables("talk/grokking")),
                    lambda tables: grokking.memory(tables("talk/grokking")),
                    lambda tables: float(tables("talk/grokking")["fitted"].max()),
                ),
            ),
        ),
    ),
)
