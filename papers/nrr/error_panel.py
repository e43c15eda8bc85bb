"""The errors on trained and untrained routes, as NRR Fig. 5 and Fig. 6 draw them."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.figure import Table, settings_of

FLOOR = 1e-8
"""Errors below this are drawn at it, where a line marks it."""


def draw_errors(table: Table, x: np.ndarray, ax: Any) -> None:
    """Errors of every seed and their median over `x`, with the level of generalisation."""
    from neuralrace.plot import COLOURS

    for name, colour, marker, fill in (
        ("untrained", "#D55E00", "o", "#D55E00"),
        ("trained", "#0072B2", "s", "white"),
    ):
        values = np.maximum(table[name].to_numpy(), FLOOR)
        look = {"color": colour, "marker": marker}
        ax.plot(x, values, linestyle="", markersize=2.2, markeredgewidth=0, alpha=0.45, **look)
        middle = np.median(values, axis=1)
        ax.plot(x, middle, markersize=4, markerfacecolor=fill, label=name, **look)
    level, grey = settings_of(table)["generalises"], COLOURS["neutral"]
    ax.axhline(level, color=grey, linestyle=":", linewidth=0.8, label="generalises below")
    dashes = (0, (6, 1.5, 1, 1.5))
    ax.axhline(FLOOR, color=grey, linestyle=dashes, linewidth=0.8, label="smaller drawn here")
    ax.set_yscale("log")
    ax.legend(loc="lower left", fontsize=6, handlelength=2.2)
