"""Claims of the talk's third part that it shows in its own way; the others are those of NRR."""

from __future__ import annotations

from evidence import Claim
from papers.talk import edge_sharing, gating_structures, transition

CLAIMS = (
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
