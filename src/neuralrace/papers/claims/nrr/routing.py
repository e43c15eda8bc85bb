"""Claims of NRR §4 and §4.1 on the routing network: the theory, and what is shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.claims import Claim, Measure, Read, Tables
from neuralrace.papers.figure import settings_of


def _theory_gap(init: str | None = None) -> Read:
    """Mean |ΔL| / L(0), worst seed, between the race from the actual weights and descent."""

    def read(tables: Tables) -> float:
        table = tables("nrr/fig4") if init is None else tables("nrr/fig4", init=init)
        time = table["time"].to_numpy()
        pairs = zip(table["loss"].to_numpy(), table["loss_predicted"].to_numpy(), strict=True)
        return max(
            nr.compare(nr.Trajectory(time, run), nr.Trajectory(time, theory)).mean
            for run, theory in pairs
        )

    return read


def _decoupled_gap(tables: Tables) -> float:
    table = tables("nrr/fig4")
    decoupled = table["decoupled"].to_numpy()
    return float(np.abs(decoupled - table["by_hand"].to_numpy()).max() / decoupled[0])


def _decoupled_strengths(tables: Tables) -> float:
    table = tables("nrr/fig5")
    return float(np.abs(table["theory"].to_numpy() - table["decoupled"].to_numpy()).max())


def _root_M(of_seeds: Callable[..., Any], init: str | None = None) -> Read:
    """The relative difference of hidden / √(in · out) from √M, for the worst mode."""

    def read(tables: Tables) -> float:
        table = tables("nrr/fig4") if init is None else tables("nrr/fig4", init=init)
        ratio = table["hidden_end"].to_numpy() / table["ends_end"].to_numpy()
        off = np.abs(ratio / np.sqrt(settings_of(table)["M"]) - 1)
        return float(of_seeds(off, axis=0).max())

    return read


def _never_met(tables: Tables) -> float:
    """The number of pairs of input domains of Fig. 4 without a common trained output."""
    met = tables("nrr/fig4")["met"].to_numpy().astype(bool)
    return float((~met).sum() // 2)


def _apart(tables: Tables) -> float:
    """Sharing between domains that never met, at the largest K with such domains, median seed."""
    apart = tables("nrr/fig5")["apart"].to_numpy()
    there = np.flatnonzero(np.isfinite(apart).all(axis=1))
    return float(np.median(apart[there[-1]])) if len(there) else float("nan")


CLAIMS = (
    Claim(
        "nrr/theory-exact",
        "Fig. 4e, Fig. 5b, Eqs. 10, 15–17",
        "From decoupled initial weights the race equals the simulated network.",
        "Descent of the full network from decoupled weights against the race with the same step: "
        "loss of Fig. 4, and strengths for every P of Fig. 5.",
        (
            Measure("largest |ΔL| / L(0), Fig. 4", _decoupled_gap, most=1e-6),
            Measure("largest difference of a strength, Fig. 5", _decoupled_strengths, most=1e-6),
        ),
    ),
    Claim(
        "nrr/theory-random",
        "§4, Fig. 4e",
        "From small random weights the reduction is a good approximation.",
        "The race from the actual initial weights, with nothing fitted, against gradient descent "
        "from them; mean |ΔL| / L(0), worst seed, for orthogonal starts (the authors' scripts) "
        "and Xavier starts (the text).",
        (
            Measure("orthogonal start × 0.2", _theory_gap(), most=0.02),
            Measure(
                "Xavier start × 0.2",
                _theory_gap("xavier"),
                most=0.02,
                otherwise="From the Xavier start of the paper's text, the worst seed is {:.1%} of "
                "the initial loss away on average.",
            ),
        ),
    ),
    Claim(
        "nrr/root-M",
        "Fig. 4f, Eq. 51",
        "The singular values of the shared layer end √M times as large as those of the other "
        "layers.",
        "Final hidden singular values divided by √(in · out) and by √M: the difference from 1 for "
        "the worst mode.",
        (
            Measure("orthogonal start × 0.2, median seed", _root_M(np.median), most=0.04),
            Measure(
                "orthogonal start × 0.2, worst seed",
                _root_M(np.max),
                most=0.04,
                otherwise="In the worst seed, the worst mode is {:.1%} away: √M is the limit of "
                "vanishing initial weights, and weak modes are furthest from it.",
            ),
            Measure(
                "Xavier start × 0.2, worst seed",
                _root_M(np.max, "xavier"),
                most=0.04,
                otherwise="From Xavier starts, the worst mode of the worst seed is {:.1%} away.",
            ),
        ),
    ),
    Claim(
        "nrr/shared-representation",
        "§4.1, Fig. 4g",
        "All input domains come to share one representation, even those never trained with a "
        "common output.",
        "Σ h_a·h_b / Σ ½(‖h_a‖² + ‖h_b‖²) of the first hidden layer, summed over items and pairs "
        "of domains: 1 if all are equal. All pairs in Fig. 4 (worst seed); pairs that never met "
        "in Fig. 5c, at the largest K with such pairs (median seed).",
        (
            Measure(
                "all pairs, M = 7, K = 4",
                lambda tables: float(tables("nrr/fig4")["shared"].min()),
                least=0.95,
            ),
            Measure("pairs that never met, Fig. 5c", _apart, least=0.9),
            Measure(
                "all pairs, M = 7, K = 4, Xavier start",
                lambda tables: float(tables("nrr/fig4", init="xavier")["shared"].min()),
                least=0.95,
                otherwise="From Xavier starts, the sharing is {:.2f} in the worst seed: a trace "
                "of the domain remains in the activity.",
            ),
            Measure(
                "pairs that never met in Fig. 4",
                _never_met,
                least=1,
                otherwise="In the setting of Fig. 4 itself there are {:.0f} such pairs: with "
                "circulant routes, any two inputs have a common output if 2K > M. Where such "
                "pairs exist, the claim is true, as the measure on Fig. 5c shows.",
            ),
        ),
    ),
    Claim(
        "nrr/zero-shot",
        "§4.1, Fig. 4h",
        "The network generalises perfectly to routes that were never trained.",
        "Error on untrained routes relative to zero output, M = 7, K = 4, worst seed.",
        (
            Measure(
                "orthogonal start × 0.2",
                lambda tables: float(tables("nrr/fig4")["untrained_share"].max()),
                most=1e-3,
            ),
            Measure(
                "Xavier start × 0.2",
                lambda tables: float(tables("nrr/fig4", init="xavier")["untrained_share"].max()),
                most=1e-3,
                otherwise="After the same number of steps from Xavier starts, the error in the "
                "worst seed is {:.2%} of that of zero output.",
            ),
        ),
    ),
)
