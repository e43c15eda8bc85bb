"""Talk, "The neural race: edge sharing": the more pathways use an edge, the faster it learns."""

from __future__ import annotations

import numpy as np

from evidence import Basis, Measure
from papers.figure import Figure, Picture, Settings, Table, stated
from papers.nrr import fig5

SETTINGS = {
    name: fig5.SETTINGS[name]
    for name in (
        "M", "P", "hidden", "scale", "init", "learning_rate", "seeds", "key", "span"
    )
}  # fmt: skip


def compute(settings: Settings) -> Table:
    """The strength of the largest mode over time, for each number of routes through an edge."""
    import xarray

    return xarray.Dataset(fig5.speeds(settings), {"P": list(settings["P"])})


KINDS = {
    "theory": "race",
    "decoupled": "trained from decoupled weights",
    "random": "trained from random weights, median",
}
"""The three ways in which strengths are found, and their names."""


def worst_step(table: Table) -> np.ndarray:
    """For every seed, the largest factor of the half-time from one P to the next larger one."""
    time = table["time"].to_numpy()
    half = [[fig5.time_to(time, run) for run in runs] for runs in table["random"].to_numpy()]
    times = np.array(half)
    return (times[1:] / times[:-1]).max(axis=0)


FASTER = Measure(
    "faster",
    "time to half the final strength from random weights, P over the next smaller P: largest",
    worst_step, most=1.0, rests=Basis.PAPER, origin=1.0,
)  # fmt: skip
"""Faster, in the talk's word: less than 1 at every step."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Half-times fall as more routes share an edge; the race is exact."""
    gap = float(np.abs(table["theory"] - table["decoupled"]).max())
    half = {name: fig5.half_times(table, name) for name in KINDS}
    P = table["P"].to_numpy()
    return (
        stated(
            "race",
            "race against descent from decoupled weights, largest difference of the strength",
            "≤ 1e-6", f"{gap:.1e}", gap, most=1e-6, rests=Basis.THEOREM,
        ),
        *(
            stated(
                f"half-time-{name}", f"time to half the final strength, {label}",
                "“more pathways through edge generally faster”: falls with P",
                ", ".join(f"P = {p}: {t:.3g}" for p, t in zip(P, half[name], strict=True)),
                np.max(np.diff(half[name])), most=0, rests=Basis.PAPER,
            )
            for name, label in KINDS.items()
        ),
        FASTER,
    )  # fmt: skip


def draw(table: Table) -> Picture:
    """Strengths over time, and half-times against the number of routes."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FormatStrFormatter, LogLocator

    from neuralrace.plot import draw_curves, letter_panels

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    time = table["time"].to_numpy()[1:]
    names = [f"P = {P}" for P in table["P"].to_numpy()]
    for name, kind in (("decoupled", "simulation"), ("theory", "theory")):
        curves = dict(zip(names, table[name].to_numpy()[:, 1:], strict=True))
        draw_curves(time, curves, kind=kind, ax=left)
    left.set(xscale="log", xlabel="time", ylabel="strength of the first mode")
    left.set_xlim(max(0.5, time[0]), time[-1])
    left.set_title("P routes share a pathway")
    P = table["P"].to_numpy()
    for (name, label), colour, line, marker in zip(
        KINDS.items(), ("0.1", "#0072B2", "#D55E00"), ("--", "", "-"), ("", "o", "^"), strict=True
    ):
        half = fig5.half_times(table, name)
        right.plot(P, half, color=colour, linestyle=line, marker=marker, label=label)
    right.set(xscale="log", yscale="log", xlabel="routes through the edge, P")
    right.set_xticks(P, [str(p) for p in P])
    right.minorticks_off()
    right.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    right.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    right.set(ylabel="time to half the strength")
    right.set_title("sharing makes faster")
    right.legend(loc="best")
    letter_panels(figure)
    return figure


FIGURE = Figure(
    name="talk/edge_sharing",
    title="Edge sharing: the more routes use a pathway, the faster it learns",
    states=(
        "A pathway's learning speed depends on edge sharing: more pathways through an edge are "
        "generally faster (“The neural race reduction”, “The neural race: edge sharing”)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
