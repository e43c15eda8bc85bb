"""Claims about linear recurrent networks. They are our own: there is no text to quote."""

from __future__ import annotations

from evidence import Claim, Remark
from papers.rnn import cued, order

OURS = "ours"
"""Where all of these claims are made."""

SMALL = (
    "From Gaussian weights of standard deviation 1e-3, 40 hidden neurons, T = 6, white inputs, "
    "gradient flow, five seeds. "
)


def _ordered(*measures: str) -> tuple:
    each = {m.id: m.on("rnn/order") for m in order.measures()}
    return tuple(each[id] for id in measures)


def _cued(*measures: str) -> tuple:
    each = {m.id: m.on("rnn/cued") for m in cued.measures()}
    return tuple(each[id] for id in measures)


CLAIMS = (
    Claim(
        "rnn/later-first",
        OURS,
        "Of inputs that count the same, a linear recurrent network learns the later ones first.",
        SMALL + "The target is the sum of one number per step: when does the output take half of "
        "each? The race predicts these times from the initial weights.",
        _ordered("in-order", "predicted-shares"),
        inferred=True,
    ),
    Claim(
        "rnn/larger-and-later-first",
        OURS,
        "What is larger and depends on later inputs is learned before what is smaller and depends "
        "on earlier ones.",
        SMALL + "The target adds one number per step with weights that fall by .6 per step of age "
        "(late), are equal (even), or grow by as much (early), at one norm, the size: 1.5, 2 and "
        "3. Half-times of the loss are compared.",
        _ordered("late-over-early", "even-over-early", "large-over-small", "predicted-halves"),
        inferred=True,
    ),
    Claim(
        "rnn/effective-rank",
        OURS,
        "W_h gains rank one mode at a time: between two drops of the loss, its effective rank is "
        "the number of modes that are learned.",
        SMALL + "Three modes of strengths 3, 1.5 and .75 that fade alike. The effective rank is "
        "(Σ s²)² / Σ s⁴ of the singular values of W_h, where the loss is nearest to what is left "
        "without the first k modes. Before the first drop W_h is random, and of a high rank.",
        _ordered("rank"),
        inferred=True,
    ),
    Claim(
        "rnn/stability",
        OURS,
        "A recurrent network becomes as stable as its task: its largest eigenvalue goes to the "
        "factor by which the target weighs an input less per step, and above 1 if it weighs it "
        "more.",
        SMALL + "One mode that fades by .5, .9 or 1.1 per step.",
        _ordered("radius"),
        inferred=True,
    ),
    Claim(
        "rnn/hidden-overlap",
        OURS,
        "Networks of the same function learn at different times if their hidden overlaps differ.",
        "T = 6, one mode that fades by .8 per step. W_h = 0 and W_y W_x = 1e-4, so that all "
        "networks compute the same; the cosine between W_x and W_yᵀ goes from 1 to .05. What "
        "counts is the mean of both, which is larger where they overlap less. Nothing is random.",
        _ordered("overlap", "predicted-start"),
        inferred=True,
    ),
    Claim(
        "rnn/cued-race",
        OURS,
        "In cued accumulation a common recurrent pathway is first to learn its half of the task, "
        "at every strength of the cue: the cue's strength does not enter the race of the gatings.",
        "Two channels, T = 2, 4 and 8, cues of .5, 1 and 2 at every step, pathways of 40 neurons, "
        "σ = 1e-3: predicted times to .6 of L(0). At T = 8 five gated linear networks of each "
        "gating are trained beside it.",
        _cued("common-over-own", "cue-strength", "linear"),
        inferred=True,
    ),
    Claim(
        "rnn/cued-relu",
        OURS,
        "ReLU networks follow the winner of cued accumulation: they reach the criterion when it "
        "does, rest where it ends, and then go on to learn the whole task.",
        "As above: ReLU recurrent networks of 40 neurons on 500 Gaussian sequences for each cue, "
        "five seeds. *When it does* is within a factor of 1.15, as for gates that are kept.",
        _cued("relu-over-common", "relu-rest", "relu-end"),
        inferred=True,
        instead=(
            Remark(
                "At T = 8 and a cue of 1 they need {:.2f} times as long as the common pathway; "
                "over all cues and T it is {:.2f} in the farthest case. They rest near half of the "
                "loss for {:.2f} of the time it took to get there.",
                (
                    lambda tables: cued.relu_ratio(tables("rnn/cued")),
                    lambda tables: cued.relu_ratio(tables("rnn/cued"), every=True),
                    lambda tables: cued.relu_rest(tables("rnn/cued")),
                ),
            ),
        ),
    ),
)
"""The claims in the order of the panels."""
