"""Claims about two modalities. They are our own: there is no text to quote."""

from __future__ import annotations

from evidence import Claim
from papers.multimodal import fusion

OURS = "ours"
"""Where all of these claims are made."""

TASK = "y = x_A + x_B, standard deviations 2 and 1; gradient flow, exact second moments. "


def _of(*ids: str) -> tuple:
    each = {m.id: m.on("multimodal/fusion") for m in fusion.measures()}
    return tuple(each[id] for id in ids)


CLAIMS = (
    Claim(
        "multimodal/unimodal-phase",
        OURS,
        "With late fusion the stronger modality is learned first, and the weaker one 1 + "
        "(s_A − s_B)/s_B times as late: for a time the network is unimodal.",
        TASK + "Two edges, 100 hidden neurons per modality; times to half of each strength.",
        _of("mean-start", "random-starts"),
        inferred=True,
    ),
    Claim(
        "multimodal/correlation",
        OURS,
        "Correlation of the modalities prolongs the unimodal phase: t_B/t_A tends to 1 + (s_A − "
        "s_B)/|Σ_yB − Σ_yA Σ_AB/Σ_A| as the start becomes small.",
        TASK + "Correlation .5, mean starts. t_A is the time to half of what A reaches alone, t_B "
        "that to half of B's final strength.",
        _of("leading", "corrections", "leading-error"),
        inferred=True,
    ),
    Claim(
        "multimodal/early-fusion",
        OURS,
        "With early fusion there is no unimodal phase: both modalities are learned at once.",
        TASK + "One hidden layer of 50 neurons that reads both, σ = 1e-3, ten random starts.",
        _of("early", "early-phase"),
        inferred=True,
    ),
    Claim(
        "multimodal/where",
        OURS,
        "The later the modalities meet, the longer the weaker one waits, at depth three too.",
        TASK + "Aligned starts, b₀ = .01 at every edge, chains of two and three edges that meet in "
        "the first hidden layer, the second one, or the output.",
        _of("later-is-longer", "deep-late"),
        inferred=True,
    ),
)
"""The claims in the order of the panels."""
