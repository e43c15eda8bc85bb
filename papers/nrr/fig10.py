"""NRR Fig. 10: routing with images, from initial weights of several scales."""

from __future__ import annotations

import numpy as np

from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, stated
from papers.nrr.fig8 import LARGE, panel_id, panels
from papers.nrr.image_panels import (
    LOOKS,
    draw_accuracy,
    legend_below,
    listed,
    where_from,
)
from papers.nrr.image_routes import (
    METHODS,
    TABLES,
    Cell,
    common_settings,
    means,
    measure,
    rows_of,
    shared,
)

SETTINGS = common_settings(
    K=Setting(10, "output domains trained with each input", "NRR Fig. 10, caption", quick=5),
    scales=Setting(
        (10.0, 1.0, 0.1, 0.01, 0.001), "gains of the initial weights",
        f"{TABLES}; Table 1 also has .0001, ten times further from leaving the plateau",
    ),
    methods=Setting(
        METHODS, "squared loss by moments, race of class modes, cross-entropy", "ours; NRR: cross",
        quick=("race", "statistics"),
    ),
    more=Setting(
        True, "further panels by the race alone: M = 100 (i), rotated inputs (iii)",
        "NRR Fig. 10", quick=False,
    ),
    high=Setting(0.8, "trained routes are “reasonably good” from this accuracy on", "ours"),
)  # fmt: skip


def compute(settings: Settings) -> Table:
    """Accuracies at every scale."""
    s = settings
    cells = [
        Cell(m, s["K"], **shared(s, scale=g)) for m in s["methods"] for g in s["scales"]
    ]  # fmt: skip
    if s["more"]:
        for further in ({"M": LARGE}, {"inputs": "rotated"}):
            cells += [Cell("race", s["K"], **shared(s, scale=g, **further)) for g in s["scales"]]
    return measure(cells, s)


def draw(table: Table) -> Picture:
    """Accuracy against the gain."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    wanted = panels(table)
    ends = float(table["scale"].min()) / 1.6, float(table["scale"].max()) * 1.6
    figure, axes = plt.subplots(
        len(wanted), 1, figsize=(3.4, 0.6 + 2.4 * len(wanted)), squeeze=False
    )
    for ax, (title, own) in zip(axes.flat, wanted.items(), strict=True):
        draw_accuracy(table, "scale", ax, title, **own)
        ax.set(xscale="log", xlabel="gain of the initial weights", xlim=ends)
    letter_panels(figure)
    legend_below(figure)
    return figure


def measures(table: Table) -> tuple[Measure, ...]:
    """Accuracies, and whether trained routes are good at every scale."""
    from papers.figure import settings_of

    high = settings_of(table)["high"]
    rows = where_from(table)
    for title, wanted in panels(table).items():
        part = rows_of(table, **wanted)
        rows += listed(part, panel_id(**wanted), f"{title}, gain", "scale")
        for method, (_, _, label) in LOOKS.items():
            own = rows_of(part, method=method)
            if own.sizes["cell"]:
                good = own["scale"].to_numpy()[means(own, "trained") >= high]
                rows += (
                    stated(
                        f"{panel_id(**wanted)}-{method}-gains",
                        f"{title}, {label}: gains at which trained routes reach {high:g}",
                        "all: “reasonably good for all scales”",
                        ", ".join(f"{g:g}" for g in np.sort(good)) or "none",
                        float(len(good) == own.sizes["cell"]),
                        least=1,
                        rests=Basis.PAPER,
                    ),
                )
    return rows


FIGURE = Figure(
    name="nrr/fig10",
    title="Routing with images: small and large initial weights",
    states=(
        "Trained routes are reasonably good from all scales; untrained ones work from small ones "
        "only (Fig. 10)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
