"""NRR Fig. 8: routing with permuted and with rotated images, and with features of CIFAR-10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from evidence import Measure
from papers.figure import Figure, Picture, Setting, Settings, Table
from papers.nrr.image_panels import (
    draw_accuracy,
    enough_routes,
    legend_below,
    listed,
    where_from,
)
from papers.nrr.image_routes import (
    SHARES,
    TABLES,
    Cell,
    common_settings,
    measure,
    rows_of,
    shared,
)

SETTINGS = common_settings(
    shares=Setting(SHARES, "K/M, share of trained routes", TABLES, quick=(0.2, 0.4, 0.8)),
    methods=Setting(
        ("race", "statistics", "cross"),
        "race of class modes, squared loss by moments, cross-entropy", "ours; NRR: cross",
        quick=("race", "statistics"),
    ),
    scale=Setting(0.1, "gain of the initial weights", TABLES),
    more=Setting(
        True,
        "further panels: features of rotated CIFAR-10 (i), M = 100 by the race alone (ii)",
        "NRR Fig. 8; hidden width of CIFAR-10 as of MNIST (NRR Table 5: 1024)",
        quick=False,
    ),
    cifar_time=Setting(
        2000.0, "flow time of features of CIFAR-10 but for the race, whose inputs are white",
        "ours: their variance is several times that of pixels of MNIST",
    ),
)  # fmt: skip

LARGE = 100
"""Domains of panel (ii)."""


def inputs_of(settings: Settings) -> tuple[str, ...]:
    """What input domains do; features cannot be rotated."""
    return ("permuted",) if settings["features"] else ("permuted", "rotated")


def cells(settings: Settings, leak: float = 1.0) -> list[Cell]:
    """Permuted and rotated inputs, with every method at every share."""
    s = settings
    return [
        Cell(m, max(1, round(s["M"] * share)), **shared(s, inputs=inputs, leak=leak))
        for inputs in inputs_of(s) for m in s["methods"] for share in s["shares"]
    ]  # fmt: skip


def further(settings: Settings) -> list[Cell]:
    """Panels (i) and (ii)."""
    s = settings
    count = lambda M, share: max(1, round(M * share))
    time = lambda method: s["time"] if method == "race" else s["cifar_time"]
    cifar = lambda m: shared(s, images="cifar10", inputs="rotated", time=time(m))
    large = shared(s, M=LARGE)
    return [Cell(m, count(s["M"], x), **cifar(m)) for m in s["methods"] for x in s["shares"]] + [
        Cell("race", count(LARGE, x), **large) for x in s["shares"]
    ]


def compute(settings: Settings) -> Table:
    """Accuracies of all panels."""
    more = further(settings) if settings["more"] else []
    return measure(more + cells(settings), settings)


def panels(table: Table) -> dict[str, dict[str, Any]]:
    """The panels of a table: a title, and what its rows have in common."""
    columns = [table[name].to_numpy() for name in ("images", "M", "inputs")]
    found = dict.fromkeys((str(i), int(M), str(kind)) for i, M, kind in zip(*columns, strict=True))
    return {
        f"{NAMES.get(images, Path(images).stem)}, {inputs}, M = {M}": {
            "images": images, "M": M, "inputs": inputs,
        }
        for images, M, inputs in found
    }  # fmt: skip


def panel_id(images: str, M: int, inputs: str) -> str:
    """How the ids of the rows on a panel begin, such as `mnist-permuted-40`."""
    return f"{Path(images).stem}-{inputs}-{M}"


NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10 features"}
"""Names of images in titles."""


def draw(table: Table) -> Picture:
    """Accuracy against K/M, one panel per kind of images and inputs."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    wanted = panels(table)
    columns = 1 if len(wanted) < 3 else 2
    rows = -(-len(wanted) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.4 * columns, 2.4 * rows + 0.6), squeeze=False
    )
    for ax in axes.flat[len(wanted) :]:
        ax.set_visible(False)
    for ax, (title, own) in zip(axes.flat, wanted.items(), strict=False):
        draw_accuracy(table, "share", ax, title, **own)
        ax.set(xlabel="share of trained routes, K / M", xlim=(0, 1))
        shares = np.unique(rows_of(table, **own)["share"].to_numpy())
        if len(shares) == 1:
            told = f"only K / M = {shares[0]:.2g}\nhas been computed"
            ax.text(shares[0], 0.7, told, ha="center", va="top", fontsize=7)
    letter_panels(figure)
    legend_below(figure)
    return figure


def measures(table: Table, enough: float = 0.4) -> tuple[Measure, ...]:
    """Accuracies, and the share of routes that is enough."""
    rows = where_from(table)
    for title, own in panels(table).items():
        part = rows_of(table, **own)
        rows += listed(part, panel_id(**own), f"{title}, K/M", "share")
        rows += enough_routes(part, panel_id(**own), title, enough=enough)
    return rows


FIGURE = Figure(
    name="nrr/fig8",
    title="Routing with permuted and with rotated images",
    states=(
        "Untrained routes are as good as trained ones when about 40 % of the routes are trained, "
        "whether inputs are permuted or rotated, MNIST or features of CIFAR-10 (Fig. 8 i–iv)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
