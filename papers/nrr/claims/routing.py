"""Claims of NRR §4 and §4.1 on the routing network: the theory, and what is shared."""

from __future__ import annotations

import numpy as np

from evidence import Basis, Claim, Measure, Read, Tables
from papers.nrr import fig4


def _decoupled_strengths(tables: Tables) -> float:
    table = tables("nrr/fig5")
    return float(np.abs(table["theory"].to_numpy() - table["decoupled"].to_numpy()).max())


def _worst_root_M(init: str | None = None) -> Read:
    """The relative difference of hidden / √(in · out) from √M, worst mode and seed."""
    changes = {} if init is None else {"init": init}
    return lambda tables: float(fig4.root_M_off(tables("nrr/fig4", **changes)).max())


def _never_met(tables: Tables) -> float:
    """The number of pairs of input domains of Fig. 4 without a common trained output."""
    met = tables("nrr/fig4")["met"].to_numpy().astype(bool)
    return float((~met).sum() // 2)


def _apart(tables: Tables) -> np.ndarray | float:
    """Sharing between domains that never met, at the largest K with such domains, by seed."""
    apart = tables("nrr/fig5")["apart"].to_numpy()
    there = np.flatnonzero(np.isfinite(apart).all(axis=1))
    return apart[there[-1]] if len(there) else float("nan")


CLAIMS = (
    Claim(
        "nrr/theory-exact",
        "Fig. 4e, Fig. 5b, Eqs. 10, 15–17",
        "From decoupled initial weights the race equals the simulated network.",
        "Descent of the full network from decoupled weights against the race with the same step: "
        "loss of Fig. 4, and strengths for every P of Fig. 5.",
        (
            fig4.MEASURES["decoupled"].on(
                "nrr/fig4", id="loss", what="largest |ΔL| / L(0), Fig. 4"
            ),
            Measure(
                "strengths",
                "largest difference of a strength, Fig. 5",
                _decoupled_strengths,
                most=1e-6,
                rests=Basis.THEOREM,
            ),
        ),
        quote="The theory matches the decoupled simulations exactly, and is a good approximation "
        "for small random weights.",
    ),
    Claim(
        "nrr/theory-random",
        "§4, Fig. 4e",
        "From small random weights the reduction is a good approximation.",
        "The race from the actual initial weights, with nothing fitted, against gradient descent "
        "from them; mean |ΔL| / L(0), for orthogonal starts (the authors' scripts) "
        "and Xavier starts (the text).",
        (
            fig4.MEASURES["random"].on(
                "nrr/fig4", id="random-orthogonal", what="orthogonal start × 0.2"
            ),
            fig4.MEASURES["random"].on(
                "nrr/fig4",
                id="random-xavier",
                what="Xavier start × 0.2",
                otherwise="From the Xavier start of the paper's text, it is {:.1%} of the initial "
                "loss away on average.",
                init="xavier",
            ),
        ),
        quote="verifying that our reduction is a good description of dynamics starting from small "
        "random weights.",
    ),
    Claim(
        "nrr/root-M",
        "Fig. 4f, Eq. 51",
        "The singular values of the shared layer end √M times as large as those of the other "
        "layers.",
        "Final hidden singular values divided by √(in · out) and by √M: the difference from 1 for "
        "the worst mode.",
        (
            fig4.MEASURES["root M"].on(
                "nrr/fig4", id="root-m-orthogonal", what="orthogonal start × 0.2"
            ),
            Measure(
                "root-m-orthogonal-worst",
                "orthogonal start × 0.2, worst seed",
                _worst_root_M(),
                most=0.04,
                otherwise="In the worst seed, the worst mode is {:.1%} away: √M is the limit of "
                "vanishing initial weights, and weak modes are furthest from it.",
            ),
            Measure(
                "root-m-xavier-worst",
                "Xavier start × 0.2, worst seed",
                _worst_root_M("xavier"),
                most=0.04,
                otherwise="From Xavier starts, the worst mode of the worst seed is {:.1%} away.",
            ),
        ),
        quote="The singular values of the hidden weight matrix (blue) are larger than those in "
        "input or output matrices by a factor √M.",
    ),
    Claim(
        "nrr/shared-representation",
        "§4.1, Fig. 4g",
        "All input domains come to share one representation, even those never trained with a "
        "common output.",
        "Σ h_a·h_b / Σ ½(‖h_a‖² + ‖h_b‖²) of the first hidden layer, summed over items and pairs "
        "of domains: 1 if all are equal. All pairs in Fig. 4; pairs that never met in Fig. 5c, at "
        "the largest K with such pairs.",
        (
            fig4.MEASURES["shared"].on(
                "nrr/fig4", id="shared-orthogonal", what="all pairs, M = 7, K = 4"
            ),
            Measure("never-met", "pairs that never met, Fig. 5c", _apart, least=0.9, origin=1.0),
            fig4.MEASURES["shared"].on(
                "nrr/fig4",
                id="shared-xavier",
                what="all pairs, M = 7, K = 4, Xavier start",
                otherwise="From Xavier starts, the sharing is {:.2f}: a trace of the domain "
                "remains in the activity.",
                init="xavier",
            ),
            Measure(
                "never-met-fig4",
                "pairs that never met in Fig. 4",
                _never_met,
                least=1,
                rests=Basis.THEOREM,
                otherwise="In the setting of Fig. 4 itself there are {:.0f} such pairs: with "
                "circulant routes, any two inputs have a common output if 2K > M. Where such "
                "pairs exist, the measure on Fig. 5c says whether it is true.",
            ),
        ),
        quote="Inputs from different domains are mapped to similar internal representations, "
        "revealing a shared representation even for input domains that are never trained with a "
        "common output.",
    ),
    Claim(
        "nrr/zero-shot",
        "§4.1, Fig. 4h",
        "The network generalises perfectly to routes that were never trained.",
        "Error on untrained routes relative to zero output, M = 7, K = 4.",
        (
            fig4.MEASURES["untrained"].on(
                "nrr/fig4", id="untrained-orthogonal", what="orthogonal start × 0.2"
            ),
            fig4.MEASURES["untrained"].on(
                "nrr/fig4",
                id="untrained-xavier",
                what="Xavier start × 0.2",
                otherwise="After the same number of steps from Xavier starts, the error is {:.2%} "
                "of that of zero output.",
                init="xavier",
            ),
        ),
        quote="The network generalizes perfectly to input-output routes that were never seen "
        "during training.",
    ),
)
