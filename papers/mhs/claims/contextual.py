"""Claims of MHS §4 and §5 on what ReLU networks do on the contextual tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evidence import FLOOR, Basis, Claim, Measure, Read, Remark, Tables
from papers.mhs import fig5
from papers.mhs.claims.measurements import closed_forms_trained
from papers.mhs.claims.networks import gates_over_time
from papers.mhs.claims.reads import (
    AS_PRINTED,
    ITEMS,
    KEPT,
    OWN_LOSS,
    OWN_OUTPUTS,
    SLIDING,
    TYPES,
    by_rule,
    measured,
    measurement,
    other_rules,
)

SCALED = {"contexts": (4, 5), "hidden": (500, 600), "context_scale": (1.1, 1.35)}
"""The size of the context features in the authors' scripts, with 4 and 5 contexts."""


def _scripts(measure: Measure, otherwise: str = "", *, seen: bool = False) -> Measure:
    """A measure of Fig. 5 with the context features of the authors' scripts."""

    def read(tables: Tables) -> Any:
        import xarray

        three, more = tables("mhs/fig5").sel(contexts=[3]), tables("mhs/fig5", **SCALED)
        both = xarray.concat([three, more], dim="contexts", combine_attrs="drop")
        return measure.read(both)

    return replace(measure, read=read, otherwise=otherwise, seen=seen)


def _one_hot(measure: Measure, otherwise: str) -> Measure:
    """A limit on Fig. 5 with context features of size 1 for every number of contexts."""
    return measure.on(
        "mhs/fig5",
        id=f"one-hot-{measure.id}",
        what=f"features of size 1: {measure.what}",
        otherwise=otherwise,
    )


def _alone(name: str) -> Read:
    """Pathways trained by themselves against closed forms, the number of contexts that is worst."""

    def read(tables: Tables) -> list[float]:
        sizes = {"seeds": 2, "steps": 800} if tables.quick else {"seeds": 5, "steps": 8000}
        found = tables.once(closed_forms_trained, **sizes)
        return max((found[f"{name} {C}"] for C in (3, 4, 5)), key=np.mean)

    return read


def _learned(tables: Tables) -> np.ndarray:
    """By how much the weight that is off for some sample grows from epoch 500 on, by seed."""
    found = measurement(tables, gates_over_time)
    return np.array(found["off_last"]) - found["off_first"]


CLAIMS = (
    Claim(
        "mhs/contextual-loss",
        "§4; Fig. 4a, caption",
        "A GDLN with a common pathway and one for every pair of contexts follows the loss of the "
        "ReLU network; one with pathways for single contexts does not.",
        "700 ReLU neurons, three contexts with different structures, equally small initial weights "
        f"in all networks. {AS_PRINTED} Beside it, the network of the authors' scripts, in which "
        "the contextual pathways learn what the common one leaves and send nothing back to it.",
        (
            by_rule("follows"),
            by_rule("predicted"),
            by_rule("nearer"),
            *other_rules("follows", "With [widths], the loss is {:.1%} away."),
            by_rule(
                "loss over floor",
                "It follows, but can be told from a ReLU network: it is {:.0f} times as far away "
                "as another seed.",
            ),
            Measure(
                "own-loss-over-floor",
                "the authors' own network: distance of its loss over that of another seed",
                OWN_LOSS,
                most=FLOOR,
                otherwise="The network of the authors' scripts is {:.0f} times as far away as "
                "another seed.",
                rests=Basis.SEEDS,
            ),
        ),
        quote="We see excellent agreement across all dynamics and outputs. […] a GDLN (here called "
        "“GDLN Single”) which has contextual pathways active for individual contexts is unable to "
        "imitate the loss trajectory of the ReLU network.",
        instead=(ITEMS, KEPT, SLIDING, TYPES),
    ),
    Claim(
        "mhs/contextual-outputs",
        "§4, Fig. 4a, caption",
        "Samples of the outputs of this ReLN agree with those of the ReLU network.",
        "Distance of the outputs at the epochs shown (500, 1000, 3000), relative to the initial "
        "error √(2 L(0)), mean over samples; 10 % of it is hard to see in a picture. Equal outputs "
        f"at all times (Definition 3.1) are measured in `same-at-all-times`. {AS_PRINTED}",
        (
            by_rule("outputs"),
            *other_rules("outputs", "With [widths], outputs are {:.0%} of the initial error away."),
            by_rule(
                "shown over floor",
                "The agreement is not exact: outputs differ {:.1f} times as much as those of "
                "another seed.",
            ),
            Measure(
                "own-outputs-over-floor",
                "the authors' own network: distance of its outputs over that of another seed, "
                "mean over time",
                OWN_OUTPUTS,
                most=FLOOR,
                otherwise="Those of the authors' own network differ {:.1f} times as much as "
                "another seed's, mean over time.",
                rests=Basis.SEEDS,
            ),
        ),
        quote="Example outputs from the ReLU network and ReLN are also shown and we see exact "
        "agreement between these output samples.",
        instead=(ITEMS, KEPT, SLIDING, TYPES),
    ),
    Claim(
        "mhs/contextual-representation",
        "§4, Fig. 4c",
        "The hidden layers of ReLN and ReLU network have the same relative positions at all times.",
        "Relative positions of the samples in the hidden layer (classical multidimensional "
        "scaling with all dimensions), compared up to rotation, reflection and size: the share of "
        "the shape that differs, mean over time. Then the first two dimensions, as in the figure, "
        f"and all inner products. {AS_PRINTED}",
        (
            by_rule("shape"),
            *other_rules("shape", "With [widths], {:.0%} of the shape differs."),
            by_rule(
                "shape over floor",
                "The positions differ {:.1f} times as much as those of another seed.",
            ),
            by_rule(
                "places",
                "In the first two dimensions alone, {:.0%} of the shape differs on average. Near "
                "epoch 4800, the second and third eigenvalues of the ReLU network's hidden "
                "similarity meet and cross, so that the two networks then show different axes.",
            ),
            by_rule(
                "similarity over floor",
                "The matrices of hidden similarity differ {:.0f} times as much as those of another "
                "seed.",
            ),
        ),
        quote="we see near exact correspondence between the relative positions of the latent "
        "representations of the dataset across both architectures.",
        instead=(ITEMS, KEPT, SLIDING, TYPES),
    ),
    Claim(
        "mhs/race-predicts",
        "§4, Fig. 4b",
        "The race reduction predicts the ReLN: its loss and the singular values of its pathways.",
        "The race from the actual initial weights, with nothing fitted, against training; mean "
        "|ΔL| / L(0), and mean difference of singular values relative to the largest. "
        f"{AS_PRINTED}",
        (
            by_rule("race"),
            by_rule("strengths"),
            *other_rules("race", "With [widths], its loss is {:.2%} away."),
        ),
        quote="Singular value dynamics for the ReLN architecture using the neural race reduction "
        "dynamics.",
    ),
    Claim(
        "mhs/gates-learned",
        "§4",
        "The ReLU network learns its gating; only the gating of the ReLN is constant.",
        "Activity patterns of the ReLU network's neurons, weighted by ‖w_in‖‖w_out‖ (neurons "
        "above 1 % of the largest): the share of the weight that is off for some sample, at the "
        "end minus at epoch 500, when the common pathway is learned; and on how many of the 24 "
        "samples a neuron's pattern changes in between.",
        (
            Measure(
                "gating-growth",
                "growth of the share that gates",
                _learned,
                least=0.0,
                rests=Basis.PAPER,
            ),
            Measure(
                "patterns-change",
                "samples of 24 on which a neuron's pattern changes",
                measured(gates_over_time, "changed"),
                least=1.0,
                rests=Basis.PAPER,
            ),
        ),
        quote="the gating of the ReLN’s hidden neurons is explicit, while the ReLU network learns "
        "the gating pattern using the nonlinearity. Remarkably, in this setting the gating of the "
        "ReLN is constant from the start.",
    ),
    Claim(
        "mhs/context-pure",
        "§4",
        "No neurons are specific to one context: all are active in several.",
        "Final weight of the ReLU networks by activity: neurons that are on in one context only, "
        "for some or all of its items. Then which context pattern (on or off in whole contexts) "
        "each neuron is nearest to.",
        (
            Measure(
                "one-context-only",
                "weight in neurons that are on in one context only",
                measured(gates_over_time, "specific"),
                most=0.05,
            ),
            Measure(
                "nearest-one-context",
                "weight whose nearest context pattern is one context",
                measured(gates_over_time, "one"),
                most=0.05,
                otherwise="Rounded to the nearest context pattern, {:.0%} of the weight is on in "
                "one context: mostly there, though not only there.",
            ),
            Measure(
                "context-exactly",
                "weight that depends exactly on the context",
                measured(gates_over_time, "exact"),
                least=0.95,
                origin=1.0,
                otherwise="Neurons are mixed-selective in the item as well: {:.1%} of the weight "
                "has patterns that depend on the context alone.",
            ),
            Measure(
                "from-context-pattern",
                "samples of 24 on which a pattern differs from the nearest context pattern",
                measured(gates_over_time, "distance"),
                most=1.0,
                otherwise="Patterns differ from context patterns on {:.1f} of 24 samples.",
            ),
        ),
        quote="there are no neurons in the ReLU network which are context specific. Instead, the "
        "ReLU network employs a strategy of mixed selectivity where neurons are active across "
        "multiple contexts.",
        instead=(ITEMS,),
        remarks=(
            Remark(
                "Of the final weight, {:.0%}, {:.0%} and {:.0%} is nearest to patterns that are on "
                "in one, two and all contexts.",
                tuple(measured(gates_over_time, name) for name in ("one", "two", "all")),
            ),
        ),
    ),
    Claim(
        "mhs/more-contexts",
        "§5, Fig. 5",
        "With 3, 4 and 5 contexts the ReLN has a common pathway and C pathways on in C − 1 "
        "contexts: with more contexts, pathways are reused more.",
        "Same structure in each context. Context features are of size 1, 1.1 and 1.35 for 3, 4 "
        "and 5 contexts, as in the authors' scripts; limits have one-hot features of size 1 for "
        "all, as the text says. The ReLU networks have 700, 500 and 600 neurons, and pathways "
        "share them by the sign rule (`papers.mhs.table`). Mean |ΔL| / L(0); number of "
        "contexts in which most of the ReLU networks' contextual weight is on (nearest context "
        "pattern), minus C. With 5 contexts, the scripts' setting was chosen when its number was "
        "known: that number decides nothing. The ReLN was not compared with pathways for single "
        "contexts.",
        (
            _scripts(fig5.worst("follows")),
            _scripts(fig5.worst("predicted")),
            _scripts(fig5.GROWS),
            *(_scripts(fig5.only("span", C), seen=C == 5) for C in (3, 4, 5)),
            _scripts(
                fig5.worst("over floor"),
                "The losses differ {:.1f} times as much as between two seeds.",
            ),
            _one_hot(
                fig5.worst("follows"), "With context features of size 1, the loss is {:.1%} away."
            ),
            _one_hot(
                fig5.only("span", 4),
                "With 4 contexts and features of size 1, most of the weight is nearest to patterns "
                "that are on in C {:+.0f} contexts.",
            ),
            _one_hot(
                fig5.only("span", 5),
                "With 5 contexts and features of size 1, most of the weight is nearest to patterns "
                "that are on in C {:+.0f} contexts.",
            ),
        ),
        quote="The ReLN then has C context specific pathways which are active for C − 1 contexts. "
        "Thus, as the number of contexts increases, so too does the bias towards node reuse and "
        "mixed selectivity.",
        instead=(ITEMS, KEPT),
    ),
    Claim(
        "mhs/closed-forms",
        "§5, Fig. 5, App. F, G",
        "The closed forms of the pathways' singular values match simulations exactly.",
        "The equations with their slips corrected, from the average start for the width; mean "
        "difference of singular values relative to the largest, worst C. They are compared with "
        "training as App. F and G assume: a common pathway by itself, and contextual ones on the "
        "residual of a learned common one. Limits compare them with all pathways trained together, "
        "as in a ReLU network.",
        (
            Measure(
                "common-alone",
                "closed form against a trained common pathway by itself; worst C",
                _alone("common"),
                most=0.02,
            ),
            Measure(
                "others-alone",
                "closed form against trained contextual pathways, on the residual of a learned "
                "common one; worst C",
                _alone("others"),
                most=0.02,
            ),
            fig5.worst("common, together").on(
                "mhs/fig5",
                otherwise="If all pathways are trained together, as in a ReLU network, the common "
                "one is up to {:.1%} away from its closed form.",
            ),
            fig5.worst("together").on(
                "mhs/fig5",
                otherwise="Trained together, the contextual ones are {:.0%} away: all learn "
                "at once.",
            ),
        ),
        quote="The singular value trajectories for the common pathway (second row) and mean "
        "trajectories for the contextual pathways (bottom row) match simulations exactly.",
        remarks=(
            Remark(
                "The race, which has no closed form, predicts pathways that are trained together: "
                "singular values of the common one to {:.2%}, of the contextual ones to {:.2%}. "
                "Without training, closed form and race of contextual pathways alone differ by "
                "{:.2%}: theory against theory.",
                tuple(
                    fig5.worst(name).on("mhs/fig5").read for name in ("common", "others", "waiting")
                ),
            ),
        ),
    ),
)
