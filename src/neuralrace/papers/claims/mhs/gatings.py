"""Claims of MHS §4 on which gatings there are and which one wins: Lemma 4.1, Proposition 4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralrace.papers.claims.claim import Claim, Measure, Read, Tables
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
    """The part of all implementable patterns that the lemma has, those by item among them."""

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

    That of the worst pathway (`samples_off`); one that is never on is left aside.
    """
    patterns = [each[np.nansum(each, axis=1) > 0] for each in table["pattern"].to_numpy()]
    return np.array([samples_off(each, table["context"].to_numpy()) for each in patterns])


def nearest_other(tables: Tables) -> dict[str, float]:
    """The nearest gating of Fig. 9 that is another, and that ReLU neurons can have.

    Its distance over that of common + all-but-one, in Fig. 4 or as Fig. 9 has it exactly, whichever
    is nearer; how far the two are apart in this, over the distance of two seeds of the ReLU
    network; and on how many samples they differ. Where there is no other, it is that one itself.
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
        "A ReLU neuron can gate by context alone (or by item alone, which is of no use), or for "
        "one sample; nothing else is implementable.",
        "Every pattern of one neuron on one-hot items and contexts, enumerated exactly, each with "
        "weights that have it; and the final weight of trained networks (§4, two seeds) in "
        "patterns that are exactly of those kinds.",
        (
            Measure(
                "2 × 2: item 1 in context 1 and item 2 in context 2 alone, which the proof denies",
                _census(2, 2, "crossed"),
                most=0,
                form=".0f",
            ),
            Measure(
                "2 × 2: part of the 14 patterns that the lemma has", _admitted(2, 2), least=1.0
            ),
            Measure("3 × 4: part of the 1066 patterns", _admitted(3, 4), least=1.0),
            Measure("trained networks: weight in such patterns", gates("admitted"), least=0.95),
        ),
    ),
    Claim(
        "mhs/interlacing",
        "Proposition 4.2, App. E",
        "Taking features away from inputs or outputs, or samples where nothing is negative, can "
        "only lower singular values of the correlation.",
        "2000 random matrices up to 11 × 11 with random rows and columns taken away: violations "
        "of σ_{j+p} ≤ σ_j(sub) ≤ σ_j over the largest singular value; then gated samples of 12, "
        "positive or of both signs.",
        (
            Measure("σ_j(sub) − σ_j, largest", _interlacing("above"), most=1e-12),
            Measure("σ_{j+p} − σ_j(sub), largest", _interlacing("below"), most=1e-12),
            Measure(
                "first singular value, samples gated off, nothing negative: largest gain",
                _interlacing("positive"),
                most=1e-12,
            ),
            Measure(
                "the same with both signs: part of the trials in which it grows",
                _interlacing("signed"),
                most=0.0,
                otherwise="Not so for samples where entries have both signs: gating them off makes "
                "the first singular value larger in {:.0%} of the trials. What a common pathway "
                "leaves has both signs.",
            ),
        ),
    ),
    Claim(
        "mhs/fastest",
        "§4, Proposition 4.2",
        "Common + all-but-one is the fastest of all gatings that a ReLU network can implement.",
        "Early growth of a pathway with each of the 354 106 implementable patterns, on the targets "
        "and on what a learned common pathway leaves; then, trained from as small weights and as "
        "wide (one seed), common + six pathways that are off on half the items of one context, "
        "which are implementable.",
        (
            Measure("all-on over the fastest, on the targets", _growth("first"), least=1 - 1e-9),
            Measure(
                "part of the patterns faster than all-but-one, on what is left",
                _growth("faster"),
                most=0.0,
            ),
            Measure("fastest over all-but-one, on what is left", _growth("ahead"), most=1 + 1e-9),
            Measure(
                "epoch at 5 % of the initial loss, item-dependent gating over all-but-one",
                _other("earlier"),
                least=1.0,
            ),
            Measure(
                "single contexts over all-but-one, growth on what is left",
                _growth("single"),
                most=0.99,
                otherwise="Early growth does not tell single contexts from all but one: their "
                "ratio is {:.3f}, since what is left has no correlation with the inputs over all "
                "samples.",
            ),
        ),
    ),
    Claim(
        "mhs/unique",
        "Proposition 4.2",
        "No other implementable gating has the ReLU network's loss trajectory.",
        "Mean |ΔL| / L(0) from the ReLU networks of gatings other than common + all-but-one, over "
        "that of the latter: common + single, common + item-dependent ones, and those that "
        "Algorithm 1 finds (Fig. 9) if ReLU neurons can have all of their patterns, each settled "
        "by a linear program; a pathway that is never on makes no other gating.",
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
                "how much nearer or further than common + all-but-one that is, over the distance "
                "of two seeds of the ReLU network",
                lambda tables: nearest_other(tables)["apart"],
                least=1.0,
                otherwise="It leads or trails by {:.2f} of what two seeds differ by, which may be "
                "chance.",
            ),
            Measure(
                "Algorithm 1, part of the gatings that are implementable",
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
                "common + all-but-one itself, over another seed of the ReLU network",
                over_floor(),
                most=2.0,
                otherwise="Nor has common + all-but-one that trajectory: it is {:.0f} times as far "
                "away as another seed.",
            ),
        ),
    ),
    Claim(
        "mhs/single-inactive",
        "App. E",
        "Where pathways for one, two and all contexts are trained together, those for one context "
        "remain inactive.",
        "All seven pathways in one gated network (§4, one seed), widths by the sign rule: the "
        "strongest pathway for one context over the strongest for two, by the norm of their maps.",
        (
            Measure("at the end", _all_compete("single"), most=0.05),
            Measure("largest once the loss falls", _all_compete("single_ever"), most=0.05),
        ),
    ),
)
