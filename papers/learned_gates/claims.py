"""Claims about gates that are learned. They are our own: there is no text to quote."""

from __future__ import annotations

from collections.abc import Callable

from evidence import Claim, Measure
from papers.learned_gates import learners, phase, systematic, winner

OURS = "ours"
"""Where all of these claims are made."""

TEACHERS = (
    "Two teachers take turns in blocks, 20 white inputs, 10 outputs, exact second moments; two "
    "pathways of one learned edge, one gate each for all samples. Fast gates: τ_W = 1.3, τ_c = "
    ".03, penalty ½(Σc − 1)²; slow ones: τ_c = τ_W, no penalty. Gates begin at ½ ± .1, "
    "weights at .1. "
)


def _of(figure: str, measures: Callable[[], tuple[Measure, ...]], *ids: str) -> tuple[Measure, ...]:
    each = {m.id: m.on(f"learned_gates/{figure}") for m in measures()}
    return tuple(each[id] for id in ids)


def _learners(*names: str) -> tuple[Measure, ...]:
    return _of("learners", learners.measures, *(f"fall-{name}" for name in names))


CLAIMS = (
    Claim(
        "learned_gates/flexible",
        OURS,
        "Learners with fast gates become flexible: in blocks of 1 to 5 the time to 10 % of a "
        "block's loss falls by more than 3 times from block 4 to block 19.",
        TEACHERS + "Ten seeds; a block in which 10 % is not reached counts with its length.",
        _learners("fast-1", "fast-2", "fast-5"),
        inferred=True,
    ),
    Claim(
        "learned_gates/long-blocks",
        OURS,
        "In blocks of 10 fast gates gain nothing between block 4 and block 19.",
        TEACHERS + "Ten seeds.",
        _learners("fast-10"),
        inferred=True,
    ),
    Claim(
        "learned_gates/forgetful",
        OURS,
        "With slow gates the time to 10 % does not fall by as much as 3 times from block 4 to "
        "block 19, at any block length from .5 to 10.",
        TEACHERS + "Ten seeds.",
        _learners("slow-05", "slow-1", "slow-2", "slow-5", "slow-10"),
        inferred=True,
    ),
    Claim(
        "learned_gates/boundary",
        OURS,
        "Where a learner without labels becomes flexible follows from the growth of small "
        "differences between its pathways: faster gates need shorter blocks.",
        "Two teachers in turns, 8 white inputs, 4 outputs, τ_W/τ_c from 1 to 16, budget 5, decay "
        ".3, weights of 1e-3, time 60 τ_W. The boundary was written down before it was simulated.",
        _of("phase", phase.measures, "boundary", "found"),
        inferred=True,
    ),
    Claim(
        "learned_gates/winner",
        OURS,
        "From small random gates, one per pathway and sample or context, learned gates usually "
        "find the gating that wins the contest.",
        "Four pathways of 32 neurons, weights of 1e-3, gates of .1, no penalties, 20 seeds, "
        "against two natural gatings each. Gates are like a gating if each pathway, by its "
        "strength, has the gates of one of its pathways (cosine).",
        _of("winner", winner.measures, *(f"found-{task}" for task in winner.TASKS)),
        inferred=True,
    ),
    Claim(
        "learned_gates/systematic",
        OURS,
        "Modules know combinations that were never seen, whether their gates are given or "
        "learned; dense networks, linear or ReLU, do not, although the ReLU network learns what "
        "it is shown.",
        "Six items in three contexts and two roles, four features, a quarter of the combinations "
        "held out. Gating network: a sigmoid of context and role for every module. Gradient "
        "descent, 20 000 steps of .2, weights of 1e-3, 10 seeds. Known is 1 − L/½⟨‖y‖²⟩; the "
        "bounds were set before anything was computed.",
        _of(
            "systematic",
            systematic.measures,
            *(f"{part.split()[0]}-{name}" for part, name in systematic.BOUNDS),
        ),
        inferred=True,
    ),
)
"""The claims in the order of the figures."""
