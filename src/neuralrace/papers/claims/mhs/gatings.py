"""Claims of MHS §4 on which gatings there are and which one wins: Lemma 4.1, Proposition 4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralrace.papers.claims import Claim, Measure, Read, Tables
from neuralrace.papers.claims.mhs.contextual import distance, gates, over_floor
from neuralrace.papers.claims.mhs.depth import samples_off
from neuralrace.papers.claims.mhs.measurements import (
    census,
    competition,
    growth_on_residual,
    interlacing,
    other_gating,
)
from neuralrace.papers.mhs.contextual import floor, mean

if TYPE_CHECKING:
    import xarray


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


def _other(what: str) -> Read:
    return lambda tables: tables.once(other_gating, seeds=1, steps=800 if tables.quick else 8000)[
        what
    ]


def _all_compete(what: str) -> Read:
    return lambda tables: tables.once(competition, seeds=1, steps=800 if tables.quick else 8000)[
        what
    ]


def off_own(table: xarray.Dataset) -> np.ndarray:
    """On how many samples each gating of Fig. 9 differs from common + all-but-one.

    This is the number for the worst pathway (`samples_off`); a pathway that is never on is ignored.
    """
    patterns = [each[np.nansum(each, axis=1) > 0] for each in table["pattern"].to_numpy()]
    return np.array([samples_off(each, table["context"].to_numpy()) for each in patterns])


def nearest_other(tables: Tables) -> dict[str, float]:
    """The nearest gating of Fig. 9 that differs from common + all-but-one and is implementable.

    Returns three numbers: its distance divided by the distance of common + all-but-one, taken from
    Fig. 4 or from Fig. 9 if that has it exactly, whichever is nearer; the difference of the two
    distances, divided by the distance of two seeds of the ReLU network; and on how many samples the
    gatings differ. If there is no other gating, common + all-but-one is compared with itself.
    """
    table = tables("mhs/fig9")
    error, off = table["discrepancy"].mean("seed").to_numpy(), off_own(table)
    others = np.flatnonzero(table["implementable"].to_numpy().astype(bool) & (off > 0))
    if not len(others):
        return {"ratio": 1.0, "apart": 0.0, "samples": 0}
    nearest = others[error[others].argmin()]
    own = min([distance("gated")(tables), *error[off == 0]])
    seeds = mean(floor(tables("mhs/fig4"), "relu"))
    return {
        "ratio": float(error[nearest] / own),
        "apart": float(abs(own - error[nearest]) / seeds),
        "samples": int(off[nearest]),
    }


CLAIMS = (
    Claim(
        "mhs/implementable",
        "Lemma 4.1, App. D",
        "A ReLU neuron can gate by context only (or by item only, which is of no use), or for one "
        "sample; nothing else is implementable.",
        "Every pattern of one neuron on one-hot items and contexts, enumerated exactly, each with "
        "weights that produce it; and the final weight of trained networks (§4, two seeds) in "
        "patterns that are exactly of these kinds.",
        (
            Measure(
                "2 × 2: on only for item 1 in context 1 and item 2 in context 2, which the proof "
                "excludes",
                _census(2, 2, "crossed"),
                most=0,
                form=".0f",
            ),
            Measure(
                "2 × 2: share of the 14 patterns that the lemma allows", _admitted(2, 2), least=1.0
            ),
            Measure("3 × 4: share of the 1066 patterns that it allows", _admitted(3, 4), least=1.0),
            Measure("trained networks: weight in such patterns", gates("admitted"), least=0.95),
        ),
    ),
    Claim(
        "mhs/interlacing",
        "Proposition 4.2, App. E",
        "Removing features of inputs or outputs, or samples without negative entries, can only "
        "lower the singular values of the correlation.",
        "2000 random matrices up to 11 × 11 with random rows and columns removed: violations of "
        "σ_{j+p} ≤ σ_j(sub) ≤ σ_j relative to the largest singular value; then some of 12 samples "
        "gated off, with entries that are positive or of both signs.",
        (
            Measure("σ_j(sub) − σ_j, largest", _interlacing("above"), most=1e-12),
            Measure("σ_{j+p} − σ_j(sub), largest", _interlacing("below"), most=1e-12),
            Measure(
                "first singular value, samples gated off, nothing negative: largest gain",
                _interlacing("positive"),
                most=1e-12,
            ),
            Measure(
                "the same with both signs: share of the trials in which it grows",
                _interlacing("signed"),
                most=0.0,
                otherwise="This fails for samples with entries of both signs: gating them off "
                "makes the first singular value larger in {:.0%} of the trials. The residual of a "
                "common pathway has both signs.",
            ),
        ),
    ),
    Claim(
        "mhs/fastest",
        "§4, Proposition 4.2",
        "Common + all-but-one is the fastest of all gatings that a ReLU network can implement.",
        "Early growth of a pathway with each of the 354 106 implementable patterns, on the "
        "targets and on the residual of a learned common pathway; then training (one seed) of "
        "common + six pathways that are off on half the items of one context, which are "
        "implementable, with the same total width and initial scale.",
        (
            Measure("all-on over the fastest, on the targets", _growth("first"), least=1 - 1e-9),
            Measure(
                "share of the patterns faster than all-but-one, on the residual",
                _growth("faster"),
                most=0.0,
            ),
            Measure("fastest over all-but-one, on the residual", _growth("ahead"), most=1 + 1e-9),
            Measure(
                "epoch at 5 % of the initial loss, item-dependent gating over all-but-one",
                _other("earlier"),
                least=1.0,
            ),
            Measure(
                "single contexts over all-but-one, growth on the residual",
                _growth("single"),
                most=0.99,
                otherwise="Early growth does not distinguish single contexts from all but one: "
                "their ratio is {:.3f}, since the residual has no correlation with the inputs "
                "over all samples.",
            ),
        ),
    ),
    Claim(
        "mhs/unique",
        "Proposition 4.2",
        "No other implementable gating has the ReLU network's loss trajectory.",
        "Mean |ΔL| / L(0) between the ReLU networks and other gatings, relative to that of common "
        "+ all-but-one. The others are common + single, common + item-dependent pathways, and the "
        "gatings that Algorithm 1 finds (Fig. 9) if ReLU neurons can have all of their patterns, "
        "which a linear program decides. A pathway that is never on does not make a gating "
        "different.",
        (
            Measure(
                "common + single contexts",
                lambda t: distance("single")(t) / distance("gated")(t),
                least=1.0,
            ),
            Measure(
                "common + off on half the items of one context",
                lambda t: _other("gap")(t) / _other("gap_reln")(t),
                least=1.0,
            ),
            Measure(
                "Algorithm 1, the nearest implementable one",
                lambda tables: nearest_other(tables)["ratio"],
                least=1.0,
            ),
            Measure(
                "the difference between its distance and that of common + all-but-one, relative "
                "to two seeds of the ReLU network",
                lambda tables: nearest_other(tables)["apart"],
                least=1.0,
                otherwise="The two differ by {:.2f} of the distance between two seeds, which may "
                "be chance.",
            ),
            Measure(
                "Algorithm 1, share of the gatings that are implementable",
                lambda tables: float(tables("mhs/fig9")["implementable"].mean()),
                least=1.0,
                otherwise="Only {:.0%} of the gatings that Algorithm 1 finds are implementable; "
                "the others do not count.",
            ),
            Measure(
                "samples of 24 on which the nearest differs from common + all-but-one",
                lambda tables: nearest_other(tables)["samples"],
                least=3,
                form=".0f",
                otherwise="It is nearly the same gating: it differs on {:.0f} of 24 samples.",
            ),
            Measure(
                "common + all-but-one itself, relative to another seed of the ReLU network",
                over_floor(),
                most=2.0,
                otherwise="Common + all-but-one does not have that trajectory either: it is "
                "{:.0f} times as far away as another seed.",
            ),
        ),
    ),
    Claim(
        "mhs/single-inactive",
        "App. E",
        "When pathways for one, two and all contexts are trained together, those for one context "
        "remain inactive.",
        "All seven pathways in one gated network (§4, one seed), widths by the sign rule: the "
        "strongest pathway for one context over the strongest for two, by the norm of their maps.",
        (
            Measure("at the end", _all_compete("single"), most=0.05),
            Measure(
                ("largest ratio after the loss has begun to fall"),
                _all_compete("single_ever"),
                most=0.05,
            ),
        ),
    ),
)
