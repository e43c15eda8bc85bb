"""The pictures of docs/tasks.md: the inputs and targets of every task."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace import tasks
from neuralrace.plot import draw_curves, draw_matrix

CLASSES = {True: ("black", "o", "target +1"), False: ("0.6", "s", "target −1")}
"""The colours, markers and names of positive and negative targets; pathways have other colours."""


def xor() -> Figure:
    """XoR in the plane, its extension in space, and the two gatings (MHS Fig. 2a–c)."""
    data = tasks.extended_xor(0.6)
    x, positive = data.x["x"], data.labels["positive"]
    figure = plt.figure(figsize=(7.2, 4.2))
    grid = figure.add_gridspec(2, 4, height_ratios=(1.25, 1))
    plane = figure.add_subplot(grid[0, :2])
    space = figure.add_subplot(grid[0, 2:], projection="3d", computed_zorder=False)
    for sign in (True, False):
        points = x[positive == sign]
        colour, marker, name = CLASSES[sign]
        plane.scatter(*points[:, :2].T, s=90, color=colour, marker=marker, label=name)
        space.scatter(*points.T, s=60, color=colour, marker=marker, depthshade=False)
        for a, b, c in points:
            space.plot([a, a], [b, b], [0, c], color=colour, linewidth=0.8)
    plane.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal", xticks=[-1, 1], yticks=[-1, 1])
    plane.set(xlabel="$x_1$", ylabel="$x_2$", title="xor()")
    plane.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=1.0)
    corner = np.array([[-1.3, 1.3], [-1.3, 1.3]])
    space.plot_surface(corner, corner.T, 0 * corner, color="0.7", alpha=0.25, zorder=-1)
    space.set(xticks=[-1, 1], yticks=[-1, 1], zticks=[-0.6, 0, 0.6], zticklabels=["−Δ", "0", "Δ"])
    space.set(xlabel="$x_1$", ylabel="$x_2$", title="extended_xor(delta)")
    space.view_init(elev=18, azim=-62)
    for place, gating in ((grid[1, :2], tasks.xor_pathways), (grid[1, 2:], tasks.linear_pathways)):
        arch, gated = gating(data)
        ax = figure.add_subplot(place)
        ax.set_title(f"{gating.__name__}(data)")
        arch.draw(gated, ax=ax)
    return figure


def structures() -> Figure:
    """The matrices that the contextual tasks are made of."""
    shown = {
        "hierarchy": tasks.hierarchy(),
        "ring": tasks.ring(),
        "crossed_hierarchy": tasks.crossed_hierarchy(),
        "random_tree": tasks.random_tree(8),
        "partition": tasks.partition((4, 3, 1)),
    }
    figure, axes = plt.subplots(1, 5, figsize=(7.2, 2.4))
    for ax, (title, matrix) in zip(axes, shown.items(), strict=True):
        draw_matrix(matrix, columns="item", title=title, scale=False, ax=ax)
    axes[0].set_ylabel("property")
    figure.colorbar(axes[1].images[0], ax=axes, label="value of the property", aspect=18)
    return figure


def contextual() -> Figure:
    """Inputs and targets of the contextual tasks, one column per sample (MHS Fig. 3, left)."""
    figure, axes = plt.subplots(
        2, 2, figsize=(7.2, 5.4), height_ratios=(1, 3.4), width_ratios=(24, 32)
    )
    columns = (
        tasks.contextual(structures=("hierarchy", "ring", "crossed")),
        tasks.contextual(contexts=4),
    )
    titles = ("different structures", "the same structure, four contexts")
    for (above, below), data, title in zip(axes.T, columns, titles, strict=True):
        contexts = data.x["context"].shape[1]
        samples = {f"context {c}": 8 for c in range(1, contexts + 1)}
        inputs = np.hstack([data.x["item"], data.x["context"]]).T
        features = {"item": 8, "context": contexts}
        draw_matrix(inputs, title=title, blocks={"rows": features, "columns": samples}, ax=above)
        above.set_xticks([])
        wanted = {"common": 15} | {f"of context {c}": 15 for c in range(1, contexts + 1)}
        targets = data.y["y"].T
        draw_matrix(targets, blocks={"rows": wanted, "columns": samples}, scale=False, ax=below)
    figure.colorbar(axes[1, 0].images[0], ax=axes, label="input or target", shrink=0.6, aspect=25)
    for ax, name in zip(axes[:, 0], ("inputs", "targets"), strict=True):
        ax.set_ylabel(name, fontweight="bold")
    figure.align_ylabels(axes[:, 0])
    return figure


def contextual_gatings() -> Figure:
    """Pathways by context (MHS Fig. 3, right)."""
    data = tasks.contextual(contexts=3)
    gatings = (tasks.common_and_all_but_one, tasks.common_and_single, tasks.all_subsets)
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 3.2))
    for ax, gating in zip(axes, gatings, strict=True):
        arch, gated = gating(data)
        ax.set_title(f"{gating.__name__}(data)")
        arch.draw(gated, ax=ax)
    return figure


def routing() -> Figure:
    """The base data, the trained routes and the shared network (NRR Fig. 4a, c, d)."""
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 4.4), width_ratios=(0.6, 0.8, 2))
    draw_matrix(
        tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0)),
        rows="property wanted",
        columns="item shown",
        title="data of a route",
        scale="target",
        ax=axes[0],
    )
    domains = [str(i) for i in range(1, 8)]
    routes = tasks.circulant_routes(7, 4)
    draw_matrix(routes, rows=domains, columns=domains, title="trained routes", ax=axes[1])
    axes[1].set(xlabel="output domain", ylabel="input domain", aspect="equal")
    axes[1].tick_params("x", rotation=0)
    arch, gated = tasks.routing_pathways(tasks.routing(7, 4)[0])
    axes[2].set_title("routing_pathways(trained)")
    arch.draw(gated, ax=axes[2])
    return figure


def routing_sharing() -> Figure:
    """Dedicated pathways, groups, and one shared pathway (NRR Fig. 5a)."""
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.7))
    data, _ = tasks.routing(M=4, K=2)
    for ax, P in zip(axes, (1, 4, 16), strict=True):
        arch, _ = tasks.routing_pathways(data, P=P)
        ax.set_title(f"routing_pathways(data, P={P})")
        arch.draw(ax=ax)
    return figure


def classification() -> Figure:
    """The target in each context, and the four points that represent the square."""
    figure, axes = plt.subplots(1, 2, figsize=(5.2, 2.3), sharey=True)
    exact = tasks.contextual_classification()
    many = tasks.contextual_classification(samples=1600, key=0)
    look = {"cmap": "cividis", "vmin": -1, "vmax": 1}
    points = None
    for context, ax in enumerate(axes, start=1):
        here, there = many.mask(context=context), exact.mask(context=context)
        points = ax.scatter(*many.x["x"][here].T, c=many.y["y"][here, 0], s=5, **look)
        x, y = exact.x["x"][there], exact.y["y"][there, 0]
        for sign, marker in ((1, "o"), (-1, "s")):
            of = np.sign(y) == sign
            edge = {"s": 70, "linewidths": 1.2, "edgecolors": "black"}
            name = f"target {y[of][0]:+.2f}".replace("-", "−")
            ax.scatter(*x[of].T, c=y[of], marker=marker, label=name, **edge, **look)
        ax.set(title=f"context {context}", xlabel="$x_1$", aspect="equal")
        ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    axes[0].set_ylabel("$x_2$")
    assert points is not None
    figure.colorbar(points, ax=axes, label="target", shrink=0.8, ticks=[-1, 0, 1])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def own() -> Figure:
    """Stroop's task: the network, and how well each word is read and each ink named."""
    word, ink, read = (i.ravel() for i in np.indices((3, 3, 2)))
    data = nr.Dataset(
        x={"word": np.eye(3)[word], "ink": np.eye(3)[ink]},
        y={"answer": np.eye(3)[np.where(read, word, ink)]},
        gates={"see": read, "look": 1 - read},
        sample_weight=np.array([3, 2, 1])[word] * np.where(read, 2, 1),
    )
    arch = nr.Architecture(
        sizes={"word": 3, "ink": 3, "hidden": 60, "answer": 3},
        edges={"see": ("word", "hidden"), "look": ("ink", "hidden"), "say": ("hidden", "answer")},
    )
    net, race, ways = nr.GDLN(arch), nr.reduce(arch, data), {"reading": "see", "naming": "look"}

    def right(w: dict) -> jax.Array:
        return jnp.stack([jnp.diag(w["say"] @ w[edge]) for edge in ways.values()])

    weights = net.init(jax.random.key(0), scale=1e-3)
    run = nr.train(
        net, weights, data, learning_rate=0.1, steps=800, record_every=2, record={"right": right}
    )
    solution = race.solve(times=run.time, start=race.start(weights), learning_rate=0.1)
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.3), width_ratios=(1.7, 1, 1))
    axes[0].set_title("network")
    for row, (ax, (title, edge)) in enumerate(zip(axes[1:], ways.items(), strict=True)):
        names = ("common", "less common", "rare word")
        measured = {name: run.values["right"][:, row, i] for i, name in enumerate(names)}
        predicted = {}
        for i, name in enumerate(names):
            strength = solution.values["variables"][f"mode{i + 1}"]
            predicted[name] = (strength["say"] @ strength[edge])[:, 0, 0]
        draw_curves(run.time, measured, ylabel="strength of the right answer", ax=ax)
        draw_curves(solution.time, predicted, kind="theory", ax=ax)
        ax.set(title=title, ylim=(0, 1.1))
    axes[2].set_ylabel("")
    axes[1].get_legend().remove()
    axes[2].get_legend().set(loc="center left", bbox_to_anchor=(1.0, 0.5))
    arch.draw(data, ax=axes[0])  # last: it fits its text to the room there is
    return figure


PICTURES = (
    xor,
    structures,
    contextual,
    contextual_gatings,
    routing,
    routing_sharing,
    classification,
    own,
)


def main(folder: Path = FOLDER) -> None:
    """Write `task_*.png` into the folder."""
    write("task", PICTURES, folder)
