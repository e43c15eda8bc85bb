"""The pictures of docs/concepts: a gated network, the race, gates of a neuron, start values."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace import tasks
from neuralrace.plot import COLOURS, cycle_colour, draw_curves, draw_graph


def gdln() -> Figure:
    """A network with two pathways, and what remains of it on one sample of each."""
    sizes = {"x": 2, "same": 4, "unlike": 4, "y": 1}
    edges = {f"x_{p}": ("x", p) for p in ("same", "unlike")}
    edges |= {f"{p}_y": (p, "y") for p in ("same", "unlike")}
    gates = {"same": np.array([1, 1, 0, 0]), "unlike": np.array([0, 0, 1, 1])}
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.3))
    titles = ("the network and its gates", "on sample 1, (1, 1)", "on sample 3, (1, −1)")
    for ax, title, sample in zip(axes, titles, (None, 0, 2), strict=True):
        draw_graph(sizes, edges, gates=gates if sample is None else None, ax=ax)
        ax.set_title(title)
        if sample is not None:
            _fade(ax, above=not gates["same"][sample])
    return figure


def _fade(ax: Axes, *, above: bool) -> None:
    """Make what lies in the upper or lower half of a drawing faint."""
    ax.figure.canvas.draw()
    boxes = {artist: artist.get_window_extent() for artist in (*ax.patches, *ax.texts)}
    middle = np.median([box.y0 + box.y1 for box in boxes.values()]) / 2
    for artist, box in boxes.items():
        centre = (box.y0 + box.y1) / 2
        if abs(centre - middle) > 2 and (centre > middle) == above:
            artist.set_alpha(0.35)


def race() -> Figure:
    """Singular values of a trained network on a hierarchy, and the closed form of each mode."""
    data = nr.Dataset({"x": np.eye(8)}, {"y": tasks.hierarchy(depth=3).T})
    net = nr.GDLN(nr.Architecture.chain(8, 64, 15))
    weights = net.init(0, scale=1e-4)
    run = nr.train(
        net, weights, data, learning_rate=0.05, steps=2000, record_every=8, record={"weights": True}
    )
    maps = np.einsum("tyh,thi->tyi", run.values["weights"]["W2"], run.values["weights"]["W1"])
    found = nr.reduce(net.arch, data)
    form = found.closed_form(found.start(weights))
    trained, theory = {}, {}
    for drive in sorted({round(block.drive, 6) for block in found.blocks}, reverse=True):
        block, *others = [block for block in found.blocks if abs(block.drive - drive) < 1e-5]
        count = f", {len(others) + 1} modes" if others else ""
        u, v = block.basis["y"][:, 0], block.basis["x"][:, 0]
        trained[f"s = {drive:.2f}{count}"] = np.abs(np.einsum("y,tyi,i->t", u, maps, v))
        theory[f"s = {drive:.2f}{count}"] = form.modes[block.name].value(run.time)
    figure, ax = plt.subplots(figsize=(6.0, 2.8))
    draw_curves(run.time, trained, ylabel="strength of a mode", ax=ax)
    draw_curves(run.time, theory, kind="theory", ylabel="strength of a mode", ax=ax)
    ax.set(ylim=(0, None))
    ax.get_legend().set(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def relu() -> Figure:
    """A ReLU as a gate times a line, and the samples on each side of a neuron's boundary."""
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 2.9))
    z = np.linspace(-2, 2, 201)
    axes[0].plot(z, z, color=cycle_colour(1), linestyle=":", label="linear, z")
    gate = {"linestyle": "--", "drawstyle": "steps-post", "label": "gate, 1 if z > 0"}
    axes[0].plot([-2, 0, 2], [0, 1, 1], color=cycle_colour(2), **gate)
    axes[0].plot(z, np.maximum(z, 0), color=cycle_colour(0), linewidth=2.2, label="ReLU: gate × z")
    axes[0].set(xlabel="input z of the neuron", ylabel="response")
    axes[0].set_title("one neuron")
    axes[0].legend(loc="upper left")
    points = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]])
    w = np.array([1.0, -0.45])
    on = points @ w > 0
    along = np.array([-w[1], w[0]]) / np.linalg.norm(w)
    ends = np.stack([-1.9 * along, 1.9 * along])
    axes[1].plot(*ends.T, color=COLOURS["theory"], linewidth=1, label="boundary, w·x = 0")
    axes[1].plot(*points[on].T, "o", color=cycle_colour(0), markersize=8, label="on")
    axes[1].plot(
        *points[~on].T,
        "o",
        color=cycle_colour(0),
        markersize=8,
        markerfacecolor="none",
        label="off",
    )
    axes[1].annotate(
        "", xy=0.8 * w, xytext=(0, 0), arrowprops={"arrowstyle": "->", "color": cycle_colour(0)}
    )
    axes[1].text(*(0.85 * w + [0.05, -0.1]), "w", color=cycle_colour(0))
    axes[1].set(xlabel="$x_1$", ylabel="$x_2$", xlim=(-1.9, 1.9), ylim=(-1.9, 1.9), aspect="equal")
    axes[1].set_title("its pattern on four samples")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.8)
    return figure


def starts() -> Figure:
    """Losses from three scales of initial weights, and races started from the same weights."""
    arch, data = tasks.xor_pathways(tasks.xor(), total=64)
    net, found = nr.GDLN(arch), nr.reduce(arch, data)
    figure, ax = plt.subplots(figsize=(5.6, 2.7))
    times, runs, races = np.linspace(0, 30, 601), {}, {}
    for scale in (1e-2, 1e-3, 1e-4):
        weights = net.init(0, scale=scale)
        runs[f"σ = {scale:g}"] = nr.train(net, weights, data, learning_rate=0.05, steps=600).loss
        solution = found.solve(times=times, start=found.start(weights), learning_rate=0.05)
        races[f"σ = {scale:g}"] = solution.loss
    draw_curves(times, runs, ax=ax)
    draw_curves(times, races, kind="theory", ax=ax)
    ax.set(ylim=(0, None))
    return figure


def main(folder: Path = FOLDER) -> None:
    """Write `concepts_*.png` into the folder."""
    write("concepts", (gdln, race, relu, starts), folder)


if __name__ == "__main__":
    main()
