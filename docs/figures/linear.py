"""The pictures of docs/linear.md: λ, task sequences, saddles, depth, worlds of items."""

from __future__ import annotations

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace import linear, tasks
from neuralrace.plot import COLOURS, cycle_colour, draw_curves, draw_matrix, mark_line, shade
from papers.talk import regimes

LAMBDAS = (0.0, 0.3, 1.0, 5.0)
"""The values of λ that are shown."""


def lambdas() -> Figure:
    """One initial map and one task, four λ: loss and simulation, and the kernel's distance."""
    net, data = regimes.task((4, 4, 4), seed=1)
    times = np.linspace(0, 6, 121)
    losses, kernels, simulated = {}, {}, {}
    for lam in LAMBDAS:
        weights = linear.balanced_weights(net, lam, scale=0.05, key=4)
        run = nr.linear.lambda_balanced(net, weights, data, times=times)
        name = f"λ = {lam:g}"
        losses[name], kernels[name] = run.loss, run.values["kernel_distance"]
        simulated[name] = nr.flow(net, weights, data, times=times).loss
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    draw_curves(times, simulated, ax=left)
    draw_curves(times, losses, kind="theory", ax=left)
    left.set_title("the same map at the start")
    draw_curves(times, kernels, kind="theory", ylabel="distance of the kernel", ax=right)
    right.set_title("rich near λ = 0, lazy far from it")
    return figure


def sequence() -> Figure:
    """Three tasks, one after another: the loss on each of them."""
    net, _ = regimes.task((4, 4, 4), seed=0)
    some = [regimes.task((4, 4, 4), seed)[1] for seed in (1, 2, 3)]
    weights = linear.balanced_weights(net, 1.0, scale=0.05)
    times = np.linspace(0, 8, 161)
    run = linear.task_sequence(net, weights, some, times=times)
    parts: list[nr.Trajectory] = []
    for data in some:
        start = parts[-1].final if parts else weights
        parts.append(nr.flow(net, start, data, times=times, record={"weights": True}))
    recorded = nr.join(*parts).values["weights"]
    maps = recorded["W2"] @ recorded["W1"]
    names = [f"task {k + 1}" for k in range(3)]
    simulated = {}
    for name, data in zip(names, some, strict=True):
        x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
        simulated[name] = ((x @ maps.swapaxes(1, 2) - y) ** 2).sum(axis=2).mean(axis=1) / 2
    exact = {name: run.values["task_loss"][:, k] for k, name in enumerate(names)}
    figure, ax = plt.subplots(figsize=(6.0, 2.8))
    draw_curves(run.time, simulated, ax=ax)
    draw_curves(run.time, exact, kind="theory", ax=ax)
    for number, change in enumerate(run.settings["changes"], 2):
        mark_line(ax, f"task {number} begins", x=change)
    ax.set_ylim(None, 6.2)  # room for the marks
    ax.set_title("what is learned, and what of it is forgotten")
    return figure


def saddles() -> Figure:
    """Three seeds pass near the saddles of a task with four modes."""
    s = np.array([4.0, 2.0, 1.0, 0.5])
    x = np.sqrt(4) * np.eye(4)
    net, data = nr.GDLN(nr.Architecture.chain(4, 8, 4)), nr.Dataset({"x": x}, {"y": x * s})
    points = linear.saddles(net, data)
    times = np.linspace(0, 30, 901)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0))
    runs = []
    for seed in range(3):
        weights = net.init(jax.random.key(seed), scale=1e-4)
        runs.append(nr.flow(net, weights, data, times=times, record={"weights": True}))
    losses = {"mean of three seeds": np.stack([run.loss for run in runs])}
    draw_curves(times, losses, color=COLOURS["neutral"], log=True, ax=left)
    left.set_ylim(1e-3, 20)
    for k in range(4):
        mark_line(left, f"saddle {_modes(k)}", y=points[tuple(range(1, k + 1))].loss)
    left.get_legend().set_loc("lower left")
    left.set_title("plateaus lie at the losses of saddles")
    distances = points.distances(linear.maps_of(runs[0]))
    places = [points.points.index(points[tuple(range(1, k + 1))]) for k in range(5)]
    shown = {f"saddle {_modes(k)}": distances[:, place] for k, place in enumerate(places)}
    draw_curves(times, shown, ylabel="distance from the saddle", ax=right)
    for k, (name, curve) in enumerate(shown.items()):
        right.text(30.5, curve[-1], name, va="center", color=shade(cycle_colour(k), -0.3))
    right.get_legend().remove()
    right.set_title("seed 0 passes one saddle after another")
    return figure


def _modes(count: int) -> str:
    """The first modes as a set: those that are learned at a saddle."""
    return "{" + ", ".join(str(k + 1) for k in range(count)) + "}"


def depth() -> Figure:
    """Chains of several depths over time, and their learning times by depth and start."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    times = np.linspace(0, 50, 501)
    curves = {}
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    for edges in (1, 2, 3, 4):
        form = nr.reduce(nr.Architecture.chain(*[1] * (edges + 1)), data).closed_form(0.1)
        assert form is not None
        curves[f"D = {edges}"] = form.value(times)["mode1"]
    draw_curves(times, curves, kind="theory", ylabel="strength a(t)", ax=left)
    left.set_title("every edge starts at 0.1")
    depths = np.arange(2, 9)
    by_start = {
        f"b₀ = {start}": [linear.chain_time(int(D), s=1.0, start=start) for D in depths]
        for start in (0.1, 0.3, 0.6)
    }
    draw_curves(depths, by_start, kind="theory", ylabel="time to half", log=True, ax=right)
    leading = [linear.leading_time(int(D), s=1.0, start=0.1) for D in depths[1:]]
    right.plot(depths[1:], leading, "o", color=COLOURS["neutral"], label="leading order", ms=4)
    right.legend()
    right.set(xlabel="depth D", title="small starts: exponential in depth")
    return figure


def worlds() -> Figure:
    """The similarity of items in five worlds, and the strongest modes of each."""
    some = {
        "tree": tasks.tree_world(2, 4),
        "partition": tasks.partition_world((6, 5, 5)),
        "ring": tasks.ring_world(16),
        "chain": tasks.chain_world(16),
        "grid": tasks.grid_world(4, 4),
    }
    figure, axes = plt.subplots(2, 5, figsize=(8.4, 3.6))
    for column, (name, world) in enumerate(some.items()):
        covariance = world.covariance / world.covariance.max()
        draw_matrix(covariance, title=name, scale=False, ax=axes[0, column])
        draw_matrix(world.vectors.T[:8], scale=False, ax=axes[1, column])
        axes[0, column].images[0].set_clim(0, 1)
        axes[1, column].images[0].set_clim(-1, 1)
        axes[1, column].set_xlabel("item")
    axes[0, 0].set_ylabel("item")
    axes[1, 0].set_ylabel("mode, strongest first")
    names = ("covariance / largest", "entry of the mode")
    for row, name in zip(axes, names, strict=True):
        figure.colorbar(row[-1].images[0], ax=row, label=name, aspect=12)
    return figure


def differentiation() -> Figure:
    """A network learns a tree level by level: strengths over time, and items in two dimensions."""
    world = tasks.tree_world(2, 3, flip=0.05)
    data = world.dataset()
    net = nr.GDLN(nr.Architecture.chain(8, 16, 8))
    weights = net.init(jax.random.key(1), scale=1e-3)
    times = np.linspace(0, 300, 601)
    run = nr.flow(net, weights, data, times=times, record={"weights": True})
    exact = nr.linear.lambda_balanced(
        net, linear.grown_weights(net, weights, data), data, times=times
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0))
    for kind, one in (("simulation", run), ("theory", exact)):
        strengths = linear.mode_strengths(one, data, vectors=world.vectors)
        by_level = {f"level {k}": strengths[:, world.levels == k].mean(axis=1) for k in range(4)}
        draw_curves(times, by_level, kind=kind, ylabel="learned", ax=left)
    left.set(title="level after level", xlim=(0, 160))
    seen = nr.analysis.hidden(net, run.values["weights"], data, "h")
    places = nr.analysis.mds(seen, dimensions=3).positions
    view = places[-1, :, 1:].T @ world.vectors[:, world.levels == 2].sum(axis=1)
    turned = places[..., 1:] @ (view / np.linalg.norm(view))
    places = np.stack([places[..., 0], turned], axis=-1)
    for item in range(8):
        right.plot(*places[:, item].T, color=COLOURS["neutral"], linewidth=1.2)
        marker = "o" if item < 4 else "s"
        right.plot(*places[-1, item], marker, color=COLOURS["theory"], ms=5)
        if item % 2 == 0:  # the two leaves of a branch end in nearly the same place
            x, y = places[-1, item : item + 2].mean(axis=0)
            text = f"items {item + 1}, {item + 2}"
            side = {"ha": "left", "x": x + 0.02} if x < 0 else {"ha": "right", "x": x - 0.02}
            right.text(y=y, s=text, va="center", fontsize="small", **side)
    right.set(xlabel="first dimension", ylabel="second and third dimension")
    right.set_title("items come apart: ● one branch, ■ the other")
    return figure


PICTURES = (lambdas, sequence, saddles, depth, worlds, differentiation)


def main(folder: Path = FOLDER) -> None:
    """Write `linear_*.png` into the folder."""
    write("linear", PICTURES, folder)
