"""NRR Fig. 7: routing with images; accuracy against the share of trained routes, and which ones."""

from __future__ import annotations

import numpy as np

from evidence import Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, stated
from papers.nrr.image_panels import (
    DRAWN,
    LOOKS,
    draw_accuracy,
    enough_routes,
    listed,
    where_from,
)
from papers.nrr.image_routes import (
    METHODS,
    SHARES,
    TABLES,
    Cell,
    common_settings,
    means,
    measure,
    rows_of,
    shared,
)

SETTINGS = common_settings(
    shares=Setting(SHARES, "K/M, share of trained routes", TABLES, quick=(0.2, 0.4, 0.8)),
    few=Setting(
        (2, 3, 4, 6, 8), "K of circulant and random routes", "ours: both at equal K", quick=(2, 3)
    ),
    methods=Setting(
        METHODS,
        "squared loss by moments, race of class modes, cross-entropy",
        "ours; NRR: cross",
        quick=("statistics", "race"),
    ),
    scale=Setting(0.1, "gain of the initial weights", TABLES),
)


def compute(settings: Settings) -> Table:
    """Circulant routes at every share with every method; circulant and random ones at few K."""
    s = settings
    same = shared(s)
    counts = [max(1, round(s["M"] * share)) for share in s["shares"]]
    cells = [Cell(m, K, **same) for m in s["methods"] for K in counts]
    cells += [
        Cell(m, K, routes=routes, **same)
        for m in s["methods"] if m != "race" for routes in ("circulant", "random") for K in s["few"]
    ]  # fmt: skip
    return measure(cells, s)


def transfer(table: Table) -> np.ndarray:
    """Accuracy of untrained routes of every row: 0 at chance, 1 where it is the trained one."""
    from papers.nrr.transition import transferred

    return transferred(means(table, "trained"), means(table, "untrained"))


def draw(table: Table) -> Picture:
    """Accuracy against K/M; the transfer to untrained routes against its prediction."""
    import matplotlib.pyplot as plt

    figure, (above, middle, below) = plt.subplots(3, 1, figsize=(3.4, 7.2))
    draw_accuracy(table, "share", above, "(a) circulant routes", routes="circulant")
    above.set(xlabel="share of trained routes, K / M", xlim=(0, 1))
    _draw_transfer(table, middle, "share")
    middle.set(
        title="(b) which routes are trained", xlim=(0, 1),
        xlabel="share of trained routes, K / M", ylabel="transfer to untrained routes",
    )  # fmt: skip
    _draw_transfer(table, below, "predicted")
    dots = {"color": "0.6", "linestyle": ":", "linewidth": 0.8}
    below.legend(handles=below.plot([0, 1], [0, 1], label="as predicted", **dots))
    below.set(
        title="(c) against the prediction; marks as in (b)", xlim=(0, 1.03),
        xlabel="predicted chance of the shared mode", ylabel="transfer to untrained routes",
    )  # fmt: skip
    return figure


def _draw_transfer(table: Table, ax, x: str) -> None:
    for method, (colour, marker, _) in LOOKS.items():
        label, line = DRAWN[method]
        for routes in ("circulant", "random"):
            rows = rows_of(table, method=method, routes=routes).sortby(x)
            if rows.sizes["cell"]:
                ax.plot(
                    rows[x].to_numpy(), transfer(rows), color=colour, marker=marker, markersize=4,
                    linestyle="" if x == "predicted" else line, linewidth=0.8,
                    markerfacecolor=colour if routes == "circulant" else "white",
                    label=label if routes == "circulant" else None,
                )  # fmt: skip
    for name, fill in (("circulant", "0.3"), ("random", "white")):
        ax.plot(
            [], [], color="0.3", marker="o", markersize=4, markerfacecolor=fill, linestyle="",
            label=f"{name} routes",
        )  # fmt: skip
    ax.set(ylim=(-0.03, 1.05))
    ax.legend(loc="lower right")


def measures(table: Table) -> tuple[Measure, ...]:
    """Accuracies, the 40 %, pairs of methods, and the prediction."""
    gap = transfer(table) - table["predicted"].to_numpy()
    worst = int(np.abs(gap).argmax())
    which = ", ".join(str(table[n].to_numpy()[worst]) for n in ("method", "routes", "K"))
    return (
        *where_from(table),
        *listed(table, "circulant", "circulant, K/M", "share", routes="circulant"),
        *listed(table, "random", "random, K", "K", routes="random"),
        *enough_routes(table, "circulant", "circulant", routes="circulant"),
        stated(
            "predicted",
            "transfer to untrained routes − predicted chance of the shared mode, over all cells",
            "reported; nothing is fitted",
            f"root mean square {np.sqrt(np.mean(gap**2)):.3f}, worst {gap[worst]:+.3f} ({which})",
        ),
    )


FIGURE = Figure(
    name="nrr/fig7",
    title="Routing with images: untrained routes against the share of trained ones",
    states=(
        "Accuracy on trained routes is always high, and untrained ones are as good when about 40 % "
        "of the routes are trained (Fig. 7c, with M = 40 in place of 100)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
