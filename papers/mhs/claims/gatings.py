"""Claims of MHS §4 on which gatings there are and which one wins: Lemma 4.1, Proposition 4.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evidence import FLOOR, Basis, Claim, Measure, Read, Remark, Tables
from papers.mhs.claims.measurements import census, growth_on_residual, interlacing
from papers.mhs.claims.networks import (
    RIVALS,
    competition,
    gates_over_time,
    mixed_gating,
    other_gating,
    own_network,
    rivals,
)
from papers.mhs.claims.reads import (
    AS_PRINTED,
    ITEMS,
    JUDGED,
    KEPT,
    MIXED,
    MIXTURE,
    SLIDING,
    TYPES,
    WIDTHS,
    by_rule,
    measured,
    measurement,
    other_rules,
)

TITLES = {
    "single": "on in one context",
    "halves": "off on the first half of the items of one context",
    "one more": "off in one context, except on its first item",
    "one less": "off in one context and on the first item of the next",
}
"""What the contextual pathways of each other gating are, in words."""


def _census(contexts: int, items: int, of: str) -> Read:
    return lambda tables: tables.once(census, contexts=contexts, items=items)[of]


def _admitted(contexts: int, items: int) -> Read:
    """The share of all implementable patterns that the lemma allows, including those by item."""

    def read(tables: Tables) -> float:
        found = tables.once(census, contexts=contexts, items=items)
        return (found["admitted"] + found["by_item"]) / found["all"]

    return read


def _interlacing(what: str) -> Read:
    return lambda tables: tables.once(interlacing, trials=200 if tables.quick else 2000)[what]


def _growth(what: str) -> Read:
    return lambda tables: tables.once(growth_on_residual, items=4 if tables.quick else 8)[what]


def _squared(function: Callable[..., Any]) -> Read:
    """The ratio of the strongest pathways for one and for two contexts, squared, by seed."""
    return lambda tables: np.square(measurement(tables, function)["single"])


def _rival(kind: str) -> Measure:
    return Measure(
        f"rival-{kind.replace(' ', '-')}",
        f"common + pathways {TITLES[kind]}: distance of its loss over that of common + all-but-one",
        measured(rivals, kind),
        least=1.0,
        rests=Basis.PAPER,
    )


def _mixed(rule: str) -> Measure:
    return Measure(
        f"mixed-{rule}",
        f"common + {MIXTURE}: distance of its loss over that of common + all-but-one with "
        f"{WIDTHS[rule]}",
        measured(mixed_gating, rule),
        least=1.0,
        rests=Basis.PAPER,
    )


CLAIMS = (
    Claim(
        "mhs/implementable",
        "Lemma 4.1, App. D",
        "A ReLU neuron can gate by context only (or by item only, which is of no use), or for one "
        "sample; nothing else is implementable.",
        "Every pattern of one neuron on one-hot items and contexts, enumerated exactly, each with "
        "weights that produce it; and the final weight of trained networks (§4) in patterns that "
        "are exactly of these kinds.",
        (
            Measure(
                "crossed",
                "2 × 2: on only for item 1 in context 1 and item 2 in context 2, which the proof "
                "excludes",
                _census(2, 2, "crossed"),
                most=0,
                form=".0f",
                rests=Basis.THEOREM,
            ),
            Measure(
                "admitted-2x2",
                "2 × 2: share of the 14 patterns that the lemma allows",
                _admitted(2, 2),
                least=1.0,
                rests=Basis.THEOREM,
            ),
            Measure(
                "admitted-3x4",
                "3 × 4: share of the 1066 patterns that it allows",
                _admitted(3, 4),
                least=1.0,
                rests=Basis.THEOREM,
            ),
            Measure(
                "admitted-trained",
                "trained networks: weight in such patterns",
                measured(gates_over_time, "admitted"),
                least=0.95,
                origin=1.0,
            ),
        ),
        quote="Any gating strategy employed by a trained ReLU network with a single hidden layer "
        "on the input X (as defined in Section 4) can be implemented by a GDLN with linear modules "
        "that gate based on the context features in isolation or are only active for a single "
        "datapoint.",
        instead=(
            Remark(
                "The proof excludes the pattern that is on for one item in one context and another "
                "item in another, and its mirror image, and it is right about these two. Other "
                "patterns depend on both: with weights a for items and b for contexts, a neuron is "
                "on where a_i + b_c > 0, so that each context has its own threshold on the items."
            ),
            ITEMS,
            KEPT,
            SLIDING,
            TYPES,
        ),
    ),
    Claim(
        "mhs/interlacing",
        "Proposition 4.2, App. E",
        "Removing features of inputs or outputs, or samples without negative entries, can only "
        "lower the singular values of the correlation.",
        "2000 random matrices up to 11 × 11 with random rows and columns removed: violations of "
        "σ_{j+p} ≤ σ_j(sub) ≤ σ_j relative to the largest singular value; then some of 12 samples "
        "gated off, with positive entries. Entries of both signs are in `fastest`.",
        (
            Measure(
                "above",
                "σ_j(sub) − σ_j, largest",
                _interlacing("above"),
                most=1e-12,
                rests=Basis.THEOREM,
            ),
            Measure(
                "below",
                "σ_{j+p} − σ_j(sub), largest",
                _interlacing("below"),
                most=1e-12,
                rests=Basis.THEOREM,
            ),
            Measure(
                "gain",
                "first singular value, samples gated off, nothing negative: largest gain",
                _interlacing("positive"),
                most=1e-12,
                rests=Basis.THEOREM,
            ),
        ),
        quote="if an output label or input feature is removed from the dataset, the first singular "
        "value of the input-output correlation matrix (Σ^yx) can only decrease. […] removing a "
        "datapoint with only positive terms can only decrease the correlation calculation.",
    ),
    Claim(
        "mhs/shared-faster",
        "Proposition 4.2, proof sketch; App. E",
        "Pathways that are on in two contexts learn faster than pathways for single contexts.",
        "Common + three pathways that are on in two contexts, or in one, from the same initial "
        "weights and with the same widths: the epoch at which the loss has fallen to 5 %, single "
        "over double.",
        (
            Measure(
                "single-over-double",
                "epoch at 5 % of the initial loss, single over double",
                measured(rivals, "single: earlier"),
                least=1.0,
                rests=Basis.PAPER,
            ),
        ),
        quote="Clearly the architecture with pathways active in two contexts learns faster and "
        "matches the loss trajectory of the ReLU network.",
    ),
    Claim(
        "mhs/fastest",
        "§4, Proposition 4.2",
        "Common + all-but-one is the fastest of all gatings that a ReLU network can implement.",
        "Early growth of a pathway with each of the 354 106 implementable patterns, on the "
        "targets and on the residual of a learned common pathway; then training of common + six "
        "pathways that are off on half the items of one context, which are implementable, with "
        "the same total width and initial scale; and of the other gatings in `unique`.",
        (
            Measure(
                "all-on",
                "all-on over the fastest, on the targets",
                _growth("first"),
                least=1 - 1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "faster-patterns",
                "share of the patterns faster than all-but-one, on the residual",
                _growth("faster"),
                most=0.0,
                rests=Basis.THEOREM,
            ),
            Measure(
                "fastest-pattern",
                "fastest over all-but-one, on the residual",
                _growth("ahead"),
                most=1 + 1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "item-gating",
                "epoch at 5 % of the initial loss, item-dependent gating over all-but-one",
                measured(other_gating, "earlier"),
                least=1.0,
                rests=Basis.PAPER,
            ),
            *(
                Measure(
                    f"rival-{kind.replace(' ', '-')}",
                    f"the same, common + three pathways {TITLES[kind]}",
                    measured(rivals, f"{kind}: earlier"),
                    least=1.0,
                    rests=Basis.PAPER,
                )
                for kind in RIVALS
            ),
            Measure(
                "mixed",
                f"the same, common + {MIXTURE}",
                measured(mixed_gating, f"{JUDGED}: earlier"),
                least=1.0,
                rests=Basis.PAPER,
            ),
            Measure(
                "single-growth",
                "single contexts over all-but-one, growth on the residual",
                _growth("single"),
                most=0.99,
                otherwise="Early growth does not distinguish single contexts from all but one: "
                "their ratio is {:.3f}, since the residual has no correlation with the inputs "
                "over all samples.",
            ),
        ),
        quote="the ReLN which emerges is the fastest learner of all GDLN architectures "
        "implementable by a ReLU network, winning the “neural race”.",
        instead=(
            Remark(
                "The first race is as the paper says: a pathway that is on for all samples is the "
                "fastest. On what it leaves, the fastest patterns depend on the item, and grow "
                "{:.2f} times as fast as all-but-one. What it leaves has both signs, and then "
                "fewer samples can have a larger first singular value: in {:.0%} of random trials.",
                (_growth("ahead"), _interlacing("signed")),
            ),
            ITEMS,
            KEPT,
            SLIDING,
            TYPES,
        ),
    ),
    Claim(
        "mhs/unique",
        "§4, Proposition 4.2",
        "No other implementable gating imitates the loss of the ReLU network as well as common + "
        "all-but-one.",
        "Mean |ΔL| / L(0) of other gatings from the ReLU networks, over that of common + "
        "all-but-one with the same seed; ReLU neurons can have all their patterns. One nearer "
        "gating refutes the claim; others that are further away cannot prove it. Compared were: a "
        "mixed gating, with the common pathway and the total width of common + all-but-one by each "
        "of four rules (by the sign rule 350, three of 100 and six of 8 neurons, found in a search "
        "for a rival; the others have the same shares); four gatings of a common and three "
        "contextual pathways with the widths and initial weights of common + all-but-one by the "
        "sign rule; and the faster gating of `fastest`, with its total width. Not compared: "
        "other widths, other numbers of pathways, and most of the 354 106 patterns that a neuron "
        "can have. No gating here equals the ReLU network (`same-at-all-times`): the claim is "
        "judged by which is nearest.",
        (
            *(_mixed(rule) for rule in WIDTHS),
            *(_rival(kind) for kind in RIVALS),
            Measure(
                "item-gating",
                "common + six pathways off on half the items of one context: distance of its loss "
                "over that of common + all-but-one",
                measured(other_gating, "gap"),
                least=1.0,
                rests=Basis.PAPER,
            ),
        ),
        quote="There is a unique G*(X) (up to symmetries such as permutations) such that "
        "L_GDLN(W(t), G*(X)) = L_ReLU(W̃(t)) ∀t ∈ ℝ⁺",
        instead=(
            Remark(
                "With {}, giving a seventh of the contextual width to pathways that depend on the "
                "item brings the network to {:.2f} times the distance, and to 5 % of its loss in "
                "{:.2f} times the epochs.",
                (
                    lambda _: WIDTHS[JUDGED],
                    MIXED,
                    measured(mixed_gating, f"{JUDGED}: earlier"),
                ),
            ),
            ITEMS,
            KEPT,
            SLIDING,
            TYPES,
        ),
    ),
    Claim(
        "mhs/same-at-all-times",
        "§4, Informal Proposition 4.2; Fig. 4, caption",
        "Common + all-but-one has the same loss and the same outputs as the ReLU network at all "
        "times.",
        "An equality has no number of its own: two networks count as equal if they differ at most "
        f"{FLOOR:g} times as much as two seeds of the ReLU network. Mean |ΔL| / L(0) and mean "
        "distance of outputs over all epochs. How near the ReLN comes on the scale of the loss is "
        f"in `contextual-loss`. {AS_PRINTED}",
        (
            by_rule("loss over floor"),
            by_rule("outputs over floor"),
            *other_rules(
                "loss over floor",
                "With [widths], the loss is {:.1f} times as far away as another seed.",
            ),
            *other_rules(
                "outputs over floor",
                "With [widths], outputs are {:.1f} times as far away as those of another seed.",
            ),
        ),
        quote="The ReLU network in this section: 1) has a unique corresponding ReLN which imitates "
        "the loss dynamics and output at all times",
        instead=(
            Remark(
                "Common + all-but-one is an approximation: its loss is {:.1%} of the initial loss "
                "away on average.",
                (by_rule("follows").read,),
            ),
            ITEMS,
            KEPT,
            SLIDING,
            TYPES,
        ),
    ),
    Claim(
        "mhs/single-inactive",
        "App. E",
        "When pathways for one and for two contexts are trained together, those for one context "
        "remain inactive.",
        "In the network of the authors' scripts, in which all six learn the residual of the common "
        "pathway: by how much the loss rises at the end when the pathways for one context are "
        "silenced; 1 % of the initial loss counts as nothing in this ledger. Limits have the "
        "strongest pathway for one context over the strongest for two, by the Frobenius norm of "
        "their maps and by its square (their share of the outputs' energy), in this network and "
        "with all seven pathways trained jointly, widths by the sign rule.",
        (
            Measure(
                "own-rise",
                "the authors' own network: rise of the loss without single contexts, relative to "
                "the initial loss",
                measured(own_network, "rise"),
                most=0.01,
            ),
            Measure(
                "own-norm",
                "the authors' own network: one context over two, norm",
                measured(own_network, "single"),
                most=0.05,
                otherwise="They contribute little and are not silent: by norm, the strongest "
                "reaches {:.0%} of the strongest for two contexts.",
            ),
            Measure(
                "own-squared-norm",
                "the authors' own network: one context over two, squared norm",
                _squared(own_network),
                most=0.05,
                otherwise="By squared norm, it reaches {:.1%}.",
            ),
            Measure(
                "joint-norm",
                "all trained jointly: one context over two, norm",
                measured(competition, "single"),
                most=0.05,
                otherwise="Trained jointly with the common pathway, those for one context reach "
                "{:.0%} of the norm of those for two.",
            ),
            Measure(
                "joint-squared-norm",
                "all trained jointly: one context over two, squared norm",
                _squared(competition),
                most=0.05,
                otherwise="Trained jointly, they reach {:.1%} of its square.",
            ),
        ),
        quote="even if all six possible modules are trained simultaneously, the pathways active "
        "for a single context remain inactive.",
        instead=(
            Remark(
                "On the residual of a learned common pathway, both kinds grow equally fast at "
                "first (ratio {:.3f}); from equally small weights, both learn.",
                (_growth("single"),),
            ),
            ITEMS,
            KEPT,
            SLIDING,
            TYPES,
        ),
    ),
)
