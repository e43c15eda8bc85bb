"""Claims about the papers' figures, measured on the data of `python -m papers reproduce`."""

from __future__ import annotations

import functools

import numpy as np
import xarray

import papers
from evidence.promise import Measurement, at_most, claim
from papers import find
from papers.nrr import fig4, fig5, fig6

SECTION = "Figures"
SMALL = {"M": 3, "K": 2, "hidden": 24, "seeds": 1, "steps": 400, "learning_rate": 0.1}
"""The settings of the small version of NRR Fig. 4."""

ROOT_M = fig4.MEASURES["root M"].most or 0.0
"""How far ratios may be from √M; the bound is defined beside the figure, as the others here."""


@functools.cache
def routing(full: bool) -> xarray.Dataset:
    """NRR Fig. 4 with the paper's settings and 10 seeds, or three domains and one seed."""
    figure = papers.find("nrr/fig4")
    return figure.run(figure.resolve(changes={} if full else SMALL))


@claim(
    "nrr/fig4-plateaus",
    SECTION,
    "NRR Fig. 4e: the loss rests at 59/244 and 18/244 of its initial value, every seed",
    "each within 0.01 of the initial loss",
)
def plateaus(full: bool) -> Measurement:
    table = routing(full)
    loss = table["loss"].to_numpy()
    levels = np.array([244, 59, 18, 0]) / 244
    found = np.array([fig4.plateaus(levels, run / run[0]) for run in loss])
    off = float(np.abs(found - levels[1:-1]).max())
    text = " and ".join(f"{v * 244:.2f}/244" for v in found.mean(axis=0))
    return Measurement(f"{text}; worst {off:.4f} away", off <= 0.01)


@claim(
    "nrr/fig4-hidden-values",
    SECTION,
    "NRR Fig. 4f: singular values of the hidden matrix end at 4.563, 3.549, 2.754, 2.754 "
    "(M = 7), every seed",
    "each within 0.5 %",
)
def hidden_values(full: bool) -> Measurement:
    table = routing(full)
    found = table["hidden_end"].to_numpy()
    if full:
        wanted = np.array([4.563, 3.549, 2.754, 2.754])
    else:
        wanted = fig4.final_hidden(table["targets"].to_numpy(), SMALL["M"], 0.08)
    off = float(np.abs(found / wanted - 1).max())
    text = ", ".join(f"{v:.3f}" for v in found.mean(axis=0))
    return Measurement(f"{text}; worst {off:.2%} away", off <= 0.005)


@claim(
    "nrr/fig4-root-m",
    SECTION,
    "NRR Fig. 4f, Eq. 51: their ratio to √(in · out) is √M, every mode and seed",
    "within 4 %",
)
def ratio(full: bool) -> Measurement:
    table = routing(full)
    M = table.sizes["input"]
    found = (table["hidden_end"] / table["ends_end"]).to_numpy() / np.sqrt(M)
    text = ", ".join(f"{v:.3f}" for v in found.mean(axis=0))
    off = np.abs(found - 1)
    return Measurement(
        f"{text} of √{M}; {int((off <= ROOT_M).sum())} of {off.size} within, worst {off.max():.1%}",
        bool(off.max() <= ROOT_M),
        "The means over seeds are within 3.3 %; one mode of one seed in ten is not. The deviation "
        "from √M is a trace of the initial weights, and falls with their square: the worst is 13 "
        "% at σ₀ = 0.4, 4.4 % at the paper's 0.2 and 1.3 % at 0.1.",
    )


@claim(
    "nrr/fig4-untrained",
    SECTION,
    "NRR Fig. 4h: error on untrained routes relative to zero output, worst seed",
    "< 0.1 %",
)
def untrained(full: bool) -> Measurement:
    worst = float(routing(full)["untrained_share"].max())
    return Measurement(f"{worst:.2g}", fig4.MEASURES["untrained"].met(worst))


@claim(
    "nrr/fig4-decoupled",
    SECTION,
    "NRR Fig. 4e: theory against simulation from decoupled weights, max |ΔL| / L(0)",
    "≤ 1e-6",
)
def decoupled(full: bool) -> Measurement:
    table = routing(full)
    gap = np.abs(table["decoupled"] - table["by_hand"]).max() / table["decoupled"][0]
    return at_most(float(gap), fig4.MEASURES["decoupled"].most or 0.0)


@claim(
    "nrr/fig4-random",
    SECTION,
    "NRR Fig. 4e: the race from the actual random weights, nothing fitted, against their "
    "simulation, mean |ΔL| / L(0), worst seed",
    "≤ 2 %",
)
def random_weights(full: bool) -> Measurement:
    table = routing(full)
    gap = np.abs(table["loss"] - table["loss_predicted"]).to_numpy()
    time = table["time"].to_numpy()
    mean = np.trapezoid(gap, time) / (time[-1] - time[0]) / table["loss"].to_numpy()[:, 0]
    return Measurement(
        f"{mean.max():.2%}, mean of the seeds {mean.mean():.2%}",
        fig4.MEASURES["random"].met(float(mean.max())),
    )


SMALL_5 = {"M": 2, "P": (1,), "K": (1,), "hidden": 8, "seeds": 2, "span": 2.0, "steps": 500}
"""The settings of the small version of NRR Fig. 5."""

SMALL_6 = {"M": 3, "K": 2, "hidden": 24, "scales": (0.2, 1.0, 2.5), "seeds": 1, "steps": 300}
"""The settings of the small version of NRR Fig. 6."""


@claim(
    "nrr/fig5-untrained",
    SECTION,
    "NRR Fig. 5c: M = 10, 10 seeds: median error on untrained routes (relative to zero output) "
    "and seeds that generalise (error below 1 %), for each K",
    "every seed run to convergence: error on trained routes ≤ 1e-5 of that of zero output, error "
    "on untrained ones changed by ≤ 1e-3 over the last quarter of the steps",
)
def untrained_routes_against_K(full: bool) -> Measurement:
    figure = find("nrr/fig5")
    table = figure.run(figure.resolve(changes={} if full else SMALL_5))
    median = np.median(table["untrained"].to_numpy(), axis=1)
    good = fig5.generalising(table)
    text = ", ".join(
        f"K = {k}: {m:.2g} ({g:.0%} of seeds, {n} steps)"
        for k, m, g, n in zip(
            table["K"].to_numpy(), median, good, table["steps"].to_numpy(), strict=True
        )
    )
    return Measurement(text, bool(fig5.converged(table).all()))


@claim(
    "nrr/fig6-errors",
    SECTION,
    "NRR Fig. 6: 10 seeds: error on trained and untrained routes (relative to zero output) "
    "against σ₀, and similarity matrices for three scales",
    "trained ≤ 1e-3 in every seed of every scale; untrained, median: < 1 % at the smallest, > 50 % "
    "at the largest",
)
def errors_against_scale(full: bool) -> Measurement:
    figure = find("nrr/fig6")
    table = figure.run(figure.resolve(changes={} if full else SMALL_6))
    trained, untrained = (table[name].to_numpy() for name in ("trained", "untrained"))
    median = np.median(untrained, axis=1)
    text = ", ".join(
        f"σ₀ = {s:.2f}: {t:.1e} / {u:.2g}"
        for s, t, u in zip(
            table["scale"].to_numpy(), np.median(trained, axis=1), median, strict=True
        )
    )
    text += f"; 1 % is passed at σ₀ = {fig6.crossing(table, 0.01):.2f}"
    found = {"trained": trained.max(), "untrained, smallest": median[0]}
    found["untrained, largest"] = median[-1]
    fine = all(fig6.MEASURES[name].met(float(value)) for name, value in found.items())
    return Measurement(text, fine and table["similarity"].shape[0] == 3)
