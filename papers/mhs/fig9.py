"""MHS Fig. 9: how many clusters are enough, judged by how closely the gated network follows."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated
from papers.mhs.fig8 import DISCOVERY, filled, trained

SETTINGS = {
    **DISCOVERY,
    "most": Setting(8, "the largest number of clusters tried", "ours", quick=6),
    "seeds": Setting(5, "trainings whose activity is stacked", "ours: MHS says several", quick=1),
}

EXPECTED = 4
"""The elbow of MHS Fig. 9."""


def compute(settings: Settings) -> Table:
    """The discrepancy of the discovered gated network from every run, for each K, and its gates.

    `implementable` says whether ReLU neurons can have all of its patterns.
    """
    import xarray

    s = settings
    data, runs = trained(s)
    numbers = list(range(1, s["most"] + 1))
    found = [
        nr.reln.discover(runs, data, k, weighted=s["weighted"], key=s["cluster_seed"])
        for k in numbers
    ]
    patterns = [each.patterns["h"] for each in found]
    possible = [all(nr.reln.is_implementable(p, data.x["x"]) for p in each) for each in patterns]
    return xarray.Dataset(
        {
            "discrepancy": (
                ("clusters", "seed"),
                [[c.mean for c in each.followed] for each in found],
            ),
            "pattern": (
                ("clusters", "cluster", "sample"),
                [filled(each, s["most"]) for each in patterns],
            ),
            "implementable": ("clusters", possible),
            "context": ("sample", data.labels["context"]),
        },
        {"clusters": numbers, "seed": np.arange(s["seeds"])},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """The position of the elbow, and the error for each K."""
    error = table["discrepancy"].mean("seed").to_numpy()
    numbers = table["clusters"].to_numpy()
    at = nr.reln.elbow(error.tolist())
    rows = [
        stated(
            "elbow",
            "the elbow of the discrepancy over the number of clusters (nr.reln.elbow)",
            f"K = {EXPECTED}",
            f"K = {at}",
            float(at == EXPECTED),
            least=1,
            rests=Basis.PAPER,
        ),
        stated(
            "errors",
            "mean |ΔL| / L(0) for K = " + ", ".join(map(str, numbers)),
            "reported",
            ", ".join(f"{100 * e:.2g} %" for e in error),
        ),
        stated(
            "implementable",
            "K for which ReLU neurons can have all patterns (nr.reln.is_implementable)",
            "reported",
            ", ".join(map(str, numbers[table["implementable"].to_numpy().astype(bool)])) or "none",
        ),
    ]
    if len(error) > EXPECTED:
        few, enough, rest = error[: EXPECTED - 1].min(), error[EXPECTED - 1], error[EXPECTED:].min()
        rows.append(
            stated(
                "four-over-three",
                f"K = {EXPECTED} against the best with fewer, and the best with more against K = "
                f"{EXPECTED}",
                "an elbow: the first ratio is smaller",
                f"{enough / few:.2f}, {rest / enough:.2f}",
                enough / few,
                most=rest / enough,
                rests=Basis.PAPER,
            )
        )
    return tuple(rows)


def draw(table: Table) -> Picture:
    """The discrepancy over the number of clusters."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS

    s = settings_of(table)
    figure, ax = plt.subplots(figsize=(3.6, 2.6))
    numbers, error = table["clusters"].to_numpy(), 100 * table["discrepancy"].to_numpy()
    thin, *_ = ax.plot(numbers, error, color=COLOURS["simulation"], linewidth=0.8, alpha=0.6)
    thin.set_label("one seed")
    mean = {"color": COLOURS["common"], "marker": "o", "linewidth": 1.8, "label": "mean"}
    ax.plot(numbers, error.mean(axis=1), **mean)
    at = nr.reln.elbow(error.mean(axis=1).tolist())
    dots = {"color": COLOURS["neutral"], "linestyle": ":", "linewidth": 0.8}
    ax.axvline(EXPECTED, label=f"MHS: {EXPECTED}", **dots)
    ax.annotate(
        f"elbow: K = {at}",
        (at, error.mean(axis=1)[at - 1]),
        xytext=(0.55, 0.5),
        textcoords="axes fraction",
        arrowprops={"arrowstyle": "->", "linewidth": 0.7},
        fontsize=8,
    )
    ax.set(
        xlabel="clusters K",
        ylabel="mean |ΔL| / L(0), %",
        xticks=numbers,
        title="neurons count " + ("by weight" if s["weighted"] else "alike"),
    )
    ax.set_ylim(0, None)
    ax.legend(loc="upper right")
    return figure


FIGURE = Figure(
    name="mhs/fig9",
    title="Algorithm 1: the elbow that gives the number of pathways",
    states=(
        "Over the number of clusters, the error of the gated network that is built from them has "
        "its elbow at 4: one common and three contextual pathways (Fig. 9, App. B)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
