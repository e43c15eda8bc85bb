"""The panels of NRR Fig. 4, the networks of Fig. 4 and 5, and errors as Fig. 5 and 6 draw them."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuralrace as nr
from papers.figure import Picture, Table, settings_of
from papers.formalism import restyle


def draw(table: Table) -> Picture:
    """(a, b) network, (c, d) task, (e) loss, (f) singular values, (g) similarity, (h) outputs."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_matrix

    settings = settings_of(table)
    figure = plt.figure(figsize=(3.4, 9.6))
    rows: Any = figure.subfigures(5, 1, height_ratios=(1.35, 1, 1.05, 1.15, 1.3))
    places = (("a", "b"), ("c", "d"), ("e", "e2"), ("f",), ("g", "h"))
    axes: dict[str, Any] = {}
    for row, names in zip(rows, places, strict=True):
        axes |= row.subplot_mosaic([list(names)])
    epoch = table["time"].to_numpy() / settings["learning_rate"]
    draw_matrix(
        table["targets"],
        rows="feature",
        columns="item",
        title="(c) targets",
        scale="target",
        ax=axes["c"],
    )
    draw_matrix(
        table["routes"].to_numpy().astype(float).T,
        rows="output domain",
        columns="input domain",
        title="(d) trained routes",
        ax=axes["d"],
    )
    axes["d"].set_aspect("equal")
    _draw_losses(table, epoch, axes["e"], "loss", "(e1) random weights")
    _draw_losses(table, epoch, axes["e2"], "decoupled", "(e2) decoupled weights")
    axes["e2"].set(ylabel="", yticklabels=())
    _draw_values(table, epoch, axes["f"])
    _draw_sharing(table, axes["g"], axes["h"])
    draw_gated(axes["a"], settings["M"], settings["K"], settings["hidden"])
    axes["a"].set_title("(a) network and gates")
    draw_counts(axes["b"], settings["M"], settings["hidden"])
    axes["b"].set_title("(b) one path, and paths\nthrough its edges", fontsize=7)
    return figure


LIGHT = {"linewidth": 2.4}
"""The line style of simulations."""

DARK = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
"""The line style of theory."""


def _draw_losses(table: Table, epoch: np.ndarray, ax: Any, name: str, title: str) -> None:
    from neuralrace.plot import COLOURS

    theory = {"loss": "loss_predicted", "decoupled": "by_hand"}[name]
    simulated, predicted = (np.atleast_2d(table[v].to_numpy()) for v in (name, theory))
    unit, light = simulated[0, 0], COLOURS["simulation"]
    dots = {"color": COLOURS["neutral"], "linewidth": 0.6, "linestyle": ":"}
    for k, level in enumerate(stages(table["targets"].to_numpy())[1:-1]):
        ax.axhline(level, label=None if k else "stages", **dots)
        ax.text(epoch[-1], level + 0.015, f"{level:.3f}", ha="right", fontsize=6)
    ax.plot(epoch, simulated[1:].T / unit, color=light, linewidth=0.7, alpha=0.6)
    ax.plot(epoch, simulated[0] / unit, color=light, label="simulated", **LIGHT)
    ax.plot(epoch, predicted[0] / unit, color=COLOURS["theory"], label="predicted", **DARK)
    ax.set(title=title, xlabel="epoch", ylabel="loss / initial loss", ylim=(0, 1.05))
    ax.legend()


def _draw_values(table: Table, epoch: np.ndarray, ax: Any) -> None:
    for name, light, dark, label in (
        ("hidden", "#7FB8DA", "#00314D", "hidden"),
        ("ends", "#F5C870", "#6B4900", "√(in · out)"),
    ):
        simulated = ax.plot(epoch, table[f"{name}_values"][0], color=light, **LIGHT)
        predicted = ax.plot(epoch, table[f"{name}_predicted"][0], color=dark, **DARK)
        simulated[0].set_label(f"{label}, simulated")
        predicted[0].set_label("predicted")
    top = 1.35 * float(table["hidden_values"].max())
    ax.set(title="(f) singular values, one seed", xlabel="epoch", ylabel="singular value")
    ax.set_ylim(0, top)
    ax.legend(loc="upper left", ncols=2, columnspacing=1.2)


def _draw_sharing(table: Table, left: Any, right: Any) -> None:
    from matplotlib.patches import Rectangle

    from neuralrace.plot import draw_matrix

    outputs = table["outputs"].to_numpy()
    M, features = outputs.shape[:2]
    items: dict[str, int] = {str(i + 1): MODES for i in range(M)}
    rows: dict[str, int] = dict.fromkeys(items, int(features))
    draw_matrix(
        table["similarity"],
        blocks={"rows": items, "columns": items},
        title="(g) similarity",
        scale="inner product",
        ax=left,
    )
    left.set(xlabel="input domain", ylabel="input domain")
    draw_matrix(
        outputs.reshape(M * features, -1).round(1) + 0.0,  # do not colour rounding errors
        blocks={"rows": rows, "columns": items},
        title="(h) outputs",
        scale="output; framed: not trained",
        ax=right,
    )
    for i, j in np.argwhere(~table["routes"].to_numpy().astype(bool)):
        corner = (i * MODES - 0.1, j * features - 0.1)
        frame = Rectangle(corner, MODES - 0.8, features - 0.8, fill=False, edgecolor="#D55E00")
        frame.set_linewidth(1.0)
        right.add_patch(frame)
    right.set(xlabel="input domain", ylabel="output domain")
    for ax in (left, right):
        ax.tick_params(labelsize=6)


FLOOR = 1e-8
"""Errors below this are drawn at it, where a line marks it."""


def draw_errors(table: Table, x: np.ndarray, ax: Any) -> None:
    """Errors of every seed and their median over `x`, with the level of generalisation."""
    from neuralrace.plot import COLOURS

    for name, colour, marker, fill in (
        ("untrained", "#D55E00", "o", "#D55E00"),
        ("trained", "#0072B2", "s", "white"),
    ):
        values = np.maximum(table[name].to_numpy(), FLOOR)
        look = {"color": colour, "marker": marker}
        ax.plot(x, values, linestyle="", markersize=2.2, markeredgewidth=0, alpha=0.45, **look)
        middle = np.median(values, axis=1)
        ax.plot(x, middle, markersize=4, markerfacecolor=fill, label=name, **look)
    level, grey = settings_of(table)["generalises"], COLOURS["neutral"]
    ax.axhline(level, color=grey, linestyle=":", linewidth=0.8, label="generalises below")
    dashes = (0, (6, 1.5, 1, 1.5))
    ax.axhline(FLOOR, color=grey, linestyle=dashes, linewidth=0.8, label="smaller drawn here")
    ax.set_yscale("log")
    ax.legend(loc="lower left", fontsize=6, handlelength=2.2)


MODES = 4
"""The number of modes: one per item."""


def stages(targets: np.ndarray) -> np.ndarray:
    """The shares of the initial loss between the learning of one mode and of the next.

    They are ‖Y‖² minus the squares of the singular values learned, over ‖Y‖²; equal ones are
    learned together. For NRR Fig. 4c: 244, 59, 18, 0, over 244.
    """
    s = np.linalg.svd(targets, compute_uv=False)
    left = np.concatenate([[1.0], 1 - np.cumsum(s**2) / (s**2).sum()])
    apart = np.concatenate([[True], np.abs(np.diff(s)) > 1e-9 * s[0], [True]])
    return np.abs(left[apart])


ROUTE = "#D55E00"
"""The colour of a route that is picked out."""


def draw_gated(ax: Any, M: int, K: int, hidden: int) -> None:
    """The network of NRR Fig. 4a with the gates of its inputs and outputs on every sample."""
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], hidden=hidden)
    arch.draw(data, ax=ax)


def draw_counts(ax: Any, M: int, hidden: int, route: tuple[int, int] = (2, 4)) -> None:
    """The network of NRR Fig. 4b with one route picked out, and the paths through its edges."""
    from neuralrace.plot import draw_graph

    arch = nr.Architecture.routing(M, hidden=hidden)
    source, target = (min(k, M) for k in route)
    picked = (f"in{source}", "hidden", f"out{target}")
    labels = {e: str(arch.path_count(e)) for e in picked}
    draw_graph(arch.sizes, arch.edges, labels=labels, ax=ax)
    restyle(ax, {e: {"color": ROUTE, "linewidth": 2.0} for e in picked})
    for text in list(ax.texts):
        if text.get_text() in labels.values():  # a count goes above its edge, which is short
            look = {"ha": "center", "va": "center", "fontsize": text.get_fontsize()}
            ax.annotate(
                text.get_text(), text.get_position(), (0, 7), textcoords="offset points", **look
            )
            text.remove()


def draw_scheme(ax: Any, M: int, P: int) -> None:
    """A gating scheme of NRR Fig. 5a: P routes share a hidden pathway; one route picked out."""
    from neuralrace.plot import draw_graph

    arch = nr.Architecture.routing(M, P=P)
    pathways = [v for v in arch.hidden if v.startswith("h")]
    names = {v: str(n + 1) for n, v in enumerate(pathways)} if len(pathways) > 1 else {}
    short = {end + v[1:]: end + number for v, number in names.items() for end in "hk"}
    draw_graph(arch.sizes, arch.edges, labels=short, ax=ax)
    first = next(p for p in arch.paths() if (p.source, p.target) == ("x1", "y1"))
    faint = {"color": "#8A8A8A", "linewidth": 0.5}
    restyle(
        ax,
        {
            **dict.fromkeys(arch.edges, faint),
            **{e: {"color": ROUTE, "linewidth": 1.6} for e in first.edges},
        },
    )
