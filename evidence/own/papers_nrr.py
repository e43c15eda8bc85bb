"""Claims about NRR Fig. 5c and 6."""

from __future__ import annotations

import numpy as np

from evidence.promise import Measurement, claim
from papers import find
from papers.nrr import fig5, fig6

SECTION = "Figures"

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
