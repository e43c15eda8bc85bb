"""Talk, "Example: transition to nonlinearity": extended XoR from Δ = 0 to Δ = 5."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Picture, Setting, Table, settings_of, stated
from papers.mhs import fig2

MOSTLY = 0.5
"""A representation is nonlinear if more than this share of the weight has XoR gates."""

EARLY = 0.75
"""Up to this Δ, below √(2/3), the race of the XoR gating is the faster one."""

SETTINGS = fig2.SETTINGS | {
    "deltas": Setting(
        (0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0),
        "values of Δ",
        "Talk: from 0 to 5; steps ours",
        quick=(0.0, 0.2, 0.4, 0.6, 0.75, 0.9, 1.5, 3.0, 5.0),
    ),
    "shown": Setting((0.0, 5.0), "values of Δ whose task is drawn", "Talk"),
    "learning_rate": Setting(0.1, "1/τ", "ours: MHS Fig. 2 has 0.4, which diverges at Δ = 5"),
    "steps": Setting(600, "gradient steps", "ours: until all losses are constant"),
}  # fmt: skip


def emergence(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Δ, and the share of the final weight with XoR gates at each, mean over seeds."""
    share = table["share"].sel(gating="xor").mean("seed").to_numpy()
    return table["delta"].to_numpy(), share


def least_nonlinear(table: Table) -> np.ndarray:
    """For every seed, the least share of XoR gates over 0 < Δ ≤ `EARLY`."""
    early = (table["delta"] > 0) & (table["delta"] <= EARLY)
    return table["share"].sel(gating="xor").where(early).min("delta").to_numpy()


BEFORE = Measure(
    "before",
    f"share of the weight with XoR gates at 0 < Δ ≤ {EARLY}, where linear gates would do: least",
    least_nonlinear, least=MOSTLY,
    words="nonlinear representations emerge before they are strictly necessary",
)  # fmt: skip
"""Nonlinear although a linear solution exists."""

AFTER = Measure(
    "after", "share of the weight with linear gates at the largest Δ",
    lambda table: table["share"].sel(gating="linear").isel(delta=-1).to_numpy(),
    least=0.9, origin=1.0,
)  # fmt: skip
"""Linear where the third coordinate is strong."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Where the gates are nonlinear although a linear solution exists, and where they are not."""
    delta, xor = emergence(table)
    linear = table["share"].sel(gating="linear").mean("seed").to_numpy()
    early = (delta > 0) & (delta <= EARLY)
    boundary = fig2.boundary(delta, linear, xor)
    final = float((table["relu"].isel(time=-1) / table["relu"].isel(time=0)).max())
    return (
        stated(
            "learned",
            "the task is learned: final over initial loss of the ReLU networks, worst Δ and seed",
            "≤ 1 %", f"{final:.1e}", final, most=0.01,
        ),
        replace(
            BEFORE,
            beside=", ".join(
                f"{d:g}: {v:.0%}" for d, v in zip(delta[early], xor[early], strict=True)
            ),
        ),
        replace(AFTER, beside=f"Δ = {delta[-1]:g}"),
        stated(
            "crossing",
            "Δ at which linear gates have more weight than XoR gates", "reported; the races cross "
            f"at √(2/3) = {fig2.CROSSOVER:.3f}", f"{boundary:.3f}",
        ),
    )  # fmt: skip


def draw(table: Table) -> Picture:
    """The task at both ends; gates of trained networks and learning times over Δ."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    s = settings_of(table)
    figure = plt.figure(figsize=(6.6, 5.4))
    grid = figure.add_gridspec(2, 2, height_ratios=(1.0, 1.05))
    for place, delta in enumerate(s["shown"][:2]):
        ax: Any = figure.add_subplot(grid[0, place], projection="3d")
        _draw_task(ax, float(delta))
    _draw_gates(figure.add_subplot(grid[1, 0]), table)
    _draw_times(figure.add_subplot(grid[1, 1]), table, s["criterion"])
    letter_panels(figure)
    return figure


def _draw_task(ax: Any, delta: float) -> None:
    data = nr.tasks.extended_xor(delta)
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])[:, 0]
    for sign, fill, marker, name in ((1, "black", "o", "+1"), (-1, "white", "s", "−1")):
        look = {"facecolor": fill, "edgecolor": "black", "marker": marker, "depthshade": False}
        ax.scatter(*x[y == sign].T, s=36, label=f"y = {name}", **look)
    height = max(delta, 1.0)
    ax.set(
        title=f"Δ = {delta:g}", xticks=(-1, 1), yticks=(-1, 1), zlim=(-height, height),
        zticks=sorted({-delta, delta}), xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$",
    )  # fmt: skip
    ax.set_box_aspect(None, zoom=0.85)
    ax.legend(loc="upper left", fontsize=6)


def _axis(ax: Any) -> None:
    """Δ on an axis that is linear at 0 and becomes logarithmic without a kink; the crossing."""
    ax.set_xscale("asinh", linear_width=1.0)
    ticks = (0, 0.5, 1, 2, 5)
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.axvline(fig2.CROSSOVER, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_xlabel("Δ (scale: arsinh Δ)")


def _draw_gates(ax: Any, table: Table) -> None:
    delta = table["delta"].to_numpy()
    for gating, marker in (("linear", "s"), ("xor", "^")):
        share = table["share"].sel(gating=gating).to_numpy()
        look = {"color": fig2.COLOUR[gating], "marker": marker}
        ax.plot(delta, share.mean(axis=1), markersize=4, label=f"{gating} gates", **look)
        ax.plot(delta, share, markersize=2, linestyle="", alpha=0.35, **look)
    _axis(ax)
    ax.text(fig2.CROSSOVER + 0.03, 1.05, "√(2/3)", fontsize=7, va="bottom")
    ax.set(ylabel="share of the final weight", ylim=(-0.03, 1.15))
    ax.set_title("gates of ReLU networks (small: one seed)")
    ax.legend(loc="center right")


def _draw_times(ax: Any, table: Table, criterion: float) -> None:
    from neuralrace.plot import COLOURS

    time, delta = table["time"].to_numpy(), table["delta"].to_numpy()
    when = nr.trajectory.crossing_time(time, table["relu"].to_numpy(), criterion)
    each = nr.trajectory.crossing_time(time, table["predicted"].to_numpy(), criterion)
    ax.plot(
        delta, np.nanmean(when, axis=1), color=COLOURS["relu"], linewidth=4, label="ReLU networks"
    )
    for k, gating in enumerate(fig2.GATINGS):
        line = fig2.DASHED if gating == "linear" else fig2.DOTTED
        ax.plot(delta, each[:, k], color=fig2.COLOUR[gating], label=f"{gating}, predicted", **line)
    _axis(ax)
    ax.set(ylabel="time", ylim=(0, 2.2 * float(np.nanmax(when))))
    ax.set_title(f"time to a loss of {criterion:g}")
    ax.legend(loc="upper right")


FIGURE = Figure(
    name="talk/transition",
    title="Transition to nonlinearity: extended XoR from Δ = 0 to Δ = 5",
    states=(
        "XoR with a third coordinate ±Δ is linearly separable for any Δ > 0 and collapses to XoR "
        "at Δ = 0; nonlinear representations emerge before they are strictly necessary (“Example: "
        "transition to nonlinearity”)."
    ),
    settings=SETTINGS,
    compute=fig2.compute,
    draw=draw,
    measures=measures,
)
