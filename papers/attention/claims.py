"""Claims about in-context regression. They are our own: there is no text to quote."""

from __future__ import annotations

from evidence import Claim
from papers.attention import plateaus

OURS = "ours"
"""Where all of these claims are made."""

TASK = (
    "x ~ N(0, Λ), Λ with eigenvalues .4 .3 .2 .1, y = wᵀx, w ~ N(0, I), 31 examples in a context; "
    "heads of rank one from Gaussian weights of standard deviation .01, gradient flow on exact "
    "second moments. "
)


def _of(*ids: str) -> tuple:
    each = {m.id: m.on("attention/plateaus") for m in plateaus.measures()}
    return tuple(each[id] for id in ids)


CLAIMS = (
    Claim(
        "attention/plateaus",
        OURS,
        "With separate key and query, the loss rests at tr Λ − Σ_{d≤m} λ_d/(1 + (1 + tr Λ/λ_d)/N): "
        "heads learn the principal components of the inputs one by one, the largest first.",
        TASK + "Five heads. A plateau is where the loss falls most slowly in log time.",
        _of("values", "plateaus", "ends", "drops"),
        inferred=True,
    ),
    Claim(
        "attention/race",
        OURS,
        "The race of the gated network predicts plateaus and times from the initial weights.",
        TASK + "The reduction has one block, solved from the weights of the first start.",
        _of("race"),
        inferred=True,
    ),
    Claim(
        "attention/sequences",
        OURS,
        "A network that is trained on sequences rests at the plateaus of the population.",
        TASK + "The same start on 80 000 sequences that are drawn once. A sampling error is the "
        "standard deviation of y² over the root of their number.",
        _of("sequences"),
        inferred=True,
    ),
    Claim(
        "attention/few-heads",
        OURS,
        "A network with fewer heads than components ends at the plateau of as many.",
        TASK + "Three heads.",
        _of("few"),
        inferred=True,
    ),
    Claim(
        "attention/merged",
        OURS,
        "With merged key and query the loss falls in one drop.",
        TASK + "Five merged heads. A drop is a peak of −dL/d ln t at a tenth of the fall or more.",
        _of("merged-drops"),
        inferred=True,
    ),
)
"""The claims in the order of the panels."""
