"""NRR Fig. 8: routing with permuted and with rotated images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralrace.papers.figure import Agreement, Figure, Setting, Settings
from neuralrace.papers.nrr.image_panels import draw_accuracy, enough_routes, listed, where_from
from neuralrace.papers.nrr.image_routes import SHARES, TABLES, Cell, common_settings, measure

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

INPUTS = ("permuted", "rotated")
"""What input domains do to images."""

SETTINGS = common_settings(
    shares=Setting(SHARES, "K/M, share of trained routes", TABLES, quick=(0.2, 0.4, 0.8)),
    methods=Setting(
        ("statistics", "cross"), "squared loss by moments, cross-entropy", "ours; NRR: cross",
        quick=("statistics",),
    ),
    scale=Setting(0.1, "gain of the initial weights", TABLES, quick=0.3),
)  # fmt: skip


def cells(settings: Settings, leak: float = 1.0) -> list[Cell]:
    """Permuted and rotated inputs, with every method at every share."""
    s = settings
    same = {k: s[k] for k in ("M", "scale", "time", "hidden", "seeds")}
    return [
        Cell(m, max(1, round(s["M"] * share)), inputs=inputs, leak=leak, **same)
        for inputs in INPUTS for m in s["methods"] for share in s["shares"]
    ]  # fmt: skip


def compute(settings: Settings) -> xarray.Dataset:
    """Accuracies for permuted and for rotated inputs."""
    return measure(cells(settings), settings)


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """Accuracy against K/M, one panel per kind of inputs."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, figsize=(3.4, 4.8))
    for ax, inputs in zip(axes, INPUTS, strict=True):
        draw_accuracy(table, "share", ax, f"{inputs} inputs; dashed: trained", inputs=inputs)
        ax.set(xlabel="share of trained routes, K / M", xlim=(0, 1))
    return figure


def agreement(table: xarray.Dataset) -> tuple[Agreement, ...]:
    """Accuracies, and the 40 %."""
    rows = where_from(table)
    for inputs in INPUTS:
        rows += listed(table, f"{inputs}, K/M", "share", inputs=inputs)
        rows += enough_routes(table, inputs, inputs=inputs)
    return rows


FIGURE = Figure(
    name="nrr/fig8",
    title="Routing with permuted and with rotated images",
    states=(
        "Untrained routes are as good as trained ones when about 40 % of the routes are trained, "
        "whether inputs are permuted or rotated (Fig. 8 iii, iv)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    agreement=agreement,
)
