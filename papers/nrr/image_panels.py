"""Pictures and lines of agreement that NRR Figs 7–10 share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evidence import Measure
from papers import cells
from papers.figure import Picture, Table, stated
from papers.nrr.image_routes import means, rows_of

if TYPE_CHECKING:
    import matplotlib.axes

LOOKS = {
    "statistics": ("#0072B2", "o", "squared loss"),
    "race": ("#009E73", "^", "race"),
    "cross": ("#D55E00", "s", "cross-entropy"),
}
"""Colour, marker and name of each method."""

DRAWN = {
    "statistics": ("squared loss, simulated", "-"),
    "race": ("race of class modes, predicted", (0, (3.2, 1.6))),
    "cross": ("cross-entropy, simulated", "-"),
}
"""The name of each method in legends, and its line: networks are solid, theory is dashed."""

NEAR = 0.01
"""Untrained routes work if their accuracy is that of trained ones but for this."""

ENOUGH = 0.4
"""K/M from which on untrained routes work (NRR Figs 7, 8)."""


def draw_accuracy(
    table: Table, x: str, ax: matplotlib.axes.Axes, title: str, **wanted: Any
) -> None:
    """Accuracy of trained (hollow marks) and untrained routes against a column of the table."""
    for method, (colour, marker, _) in LOOKS.items():
        rows = rows_of(table, method=method, **wanted).sortby(x)
        if not rows.sizes["cell"]:
            continue
        place = rows[x].to_numpy()
        label, line = DRAWN[method]
        for name in ("untrained", "trained"):
            shown = means(rows, name)
            spread = rows[name].std("seed").to_numpy()
            ax.errorbar(
                place, shown, spread, color=colour, linestyle=line, marker=marker, markersize=3,
                linewidth=1.2 if name == "untrained" else 0.8, capsize=1.5, elinewidth=0.7,
                markerfacecolor=colour if name == "untrained" else "white",
                label=label if name == "untrained" else None,
            )  # fmt: skip
    ax.axhline(0.1, color="0.6", linestyle=":", linewidth=0.8, label="chance")
    for name, fill in (("untrained", "0.3"), ("trained", "white")):
        look = {"color": "0.3", "marker": "o", "markersize": 3, "markerfacecolor": fill}
        ax.plot([], [], linestyle="", label=f"{name} routes", **look)
    ax.set(title=title, ylim=(0, 1), ylabel="accuracy ± std over seeds")
    ax.legend(loc="center right")


def legend_below(figure: Picture) -> None:
    """One legend of all panels, below them."""
    named = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
    columns = 2 if figure.get_figwidth() < 5 else 3
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns)


def where_from(table: Table) -> tuple[Measure, ...]:
    """Where the numbers come from, which cells are missing, and which are not whole."""
    rows = cells.where_from(table)
    fewer = table["seeds"].to_numpy() < table.sizes["seed"]
    early = table["elapsed"].to_numpy() < 0.999
    for id, what, which in (
        ("fewer-seeds", f"cells with fewer than {table.sizes['seed']} seeds", fewer),
        (
            "ended-early",
            "cells that ended before their flow time, at their largest number of steps",
            early,
        ),
    ):
        if which.any():
            rows += (stated(id, what, "reported", named(table.isel(cell=np.flatnonzero(which)))),)
    return rows


def named(table: Table) -> str:
    """Which cells these are, with their seeds and how far they came."""
    names = ("images", "method", "inputs", "M", "K", "scale", "leak", "seeds", "elapsed")
    columns = [table[name].to_numpy() for name in names]
    return "; ".join(
        f"{images} {method} {inputs}, M = {M}, K = {K}, gain {scale:g}, slope {leak:g} "
        f"({seeds} seeds, {elapsed:.2g} of the time)"
        for images, method, inputs, M, K, scale, leak, seeds, elapsed in zip(*columns, strict=True)
    )


def enough_routes(
    table: Table, id: str, name: str, *, enough: float = ENOUGH, **wanted: Any
) -> tuple[Measure, ...]:
    """Whether untrained routes work from K/M = `enough` on, for each method.

    Ids begin with `id`, which the method follows.
    """
    found = []
    for method, (_, _, label) in LOOKS.items():
        rows = rows_of(table, method=method, **wanted)
        rows = rows.isel(cell=np.flatnonzero(rows["share"].to_numpy() >= enough - 1e-9))
        if not rows.sizes["cell"]:
            continue
        gap = means(rows, "trained") - means(rows, "untrained")
        text = ", ".join(
            f"K/M = {x:.2g}: {g:.4f}" for x, g in zip(rows["share"].to_numpy(), gap, strict=True)
        )
        found.append(
            stated(
                f"{id}-{method}-enough",
                f"{name}, {label}: trained − untrained accuracy from K/M = {enough} on",
                f"≤ {NEAR}: “as good as the training performance when ≈ {100 * enough:.0f} % … are "
                "trained”",
                text,
                np.max(gap),
                most=NEAR,
            )
        )
    return tuple(found)


def listed(table: Table, id: str, name: str, x: str, **wanted: Any) -> tuple[Measure, ...]:
    """Trained and untrained accuracy of every row, only reported."""
    found = []
    for method, (_, _, label) in LOOKS.items():
        rows = rows_of(table, method=method, **wanted).sortby(x)
        if rows.sizes["cell"]:
            each = zip(
                rows[x].to_numpy(), means(rows, "trained"), means(rows, "untrained"),
                rows["untrained"].std("seed").to_numpy(), strict=True,
            )  # fmt: skip
            text = ", ".join(f"{v:g}: {t:.3f} / {u:.3f} ± {s:.3f}" for v, t, u, s in each)
            found.append(
                stated(f"{id}-{method}", f"{name}, {label}: trained / untrained", "reported", text)
            )
    return tuple(found)
