"""The pictures of the report: the library's own drawings, side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.contests import PhaseDiagram
from neuralrace.demo.arc import Arc
from neuralrace.plot import COLOURS, draw_curves, draw_shares, style
from neuralrace.reln import elbow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2
"""Inches: two columns of a paper, or the text of the page."""


def phases(found: PhaseDiagram, deltas: np.ndarray, times: np.ndarray, *, ax: Axes) -> Axes:
    """The phase diagram, and the learning times `(V, seeds)` of trained ReLU networks on it."""
    found.plot(ax=ax)
    ax.plot(
        np.repeat(deltas, times.shape[1]),
        times.ravel(),
        "o",
        color=COLOURS["relu"],
        markeredgecolor=COLOURS["theory"],
        markeredgewidth=0.4,
        markersize=4,
        clip_on=False,
        label="ReLU networks",
    )
    ax.legend(loc="lower left")
    return ax


def contests(
    found: PhaseDiagram, deltas: np.ndarray, times: np.ndarray, arcs: Sequence[Arc]
) -> Figure:
    """Who is first over the parameter, and the contests at some of its values."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(
            1, 1 + len(arcs), figsize=(WIDTH, 2.5), width_ratios=(1.3, *[1] * len(arcs))
        )
        phases(found, deltas, times, ax=axes[0]).set_title(f"time to learn, by {found.parameter}")
        for ax, each in zip(axes[1:], arcs, strict=True):
            each.contest.plot(ax=ax)
            ax.set_title(f"{each.task}: {each.winner} is first")
            _legend_on_top(ax, each.relu.loss.max())
    return figure


def contest(found: Arc) -> Figure:
    """The predicted losses of all candidates, and the targets they are to learn."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_matrix

    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.6))
        targets = np.hstack([np.asarray(y) for y in found.base.y.values()]).T
        blocks: Any = {"columns": _groups(found)} if "context" in found.base.labels else None
        draw_matrix(targets, rows="property", columns="sample", blocks=blocks, ax=left)
        left.set_title("what is to be learned")
        found.contest.plot(ax=right)
        right.set_title(f"predicted losses: {found.winner} is first")
    return figure


def losses(found: Arc, *, ax: Axes) -> Axes:
    """ReLU networks, the gated network and its prediction, and the runner-up's prediction."""
    time = found.relu.time
    draw_curves(time, {"ReLU networks": found.relu.loss}, kind="relu", ax=ax)
    draw_curves(time, {"gated networks": found.gated.loss}, ax=ax)
    curve = np.stack([each.loss for each in found.predicted])
    draw_curves(time, {"predicted": curve}, kind="theory", ax=ax)
    ax.plot(
        time, found.behind.loss, ":", color=COLOURS["neutral"], linewidth=1.0, label="runner-up"
    )
    ax.set_xlim(0, time[-1])
    return _legend_on_top(ax, found.relu.loss.max())


def network(found: Arc, *, ax: Axes) -> Axes:
    """The winning network with its gates."""
    arch, data = found.contest.candidates[found.winner]
    return arch.draw(data, ax=ax)


def prediction(arcs: Sequence[Arc]) -> Figure:
    """For each arc the winning network with its gates and equation, and all losses."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(
            len(arcs),
            2,
            figsize=(WIDTH, 2.7 * len(arcs)),
            width_ratios=(1, 1.15),
            squeeze=False,
        )
        for (left, right), found in zip(axes, arcs, strict=True):
            network(found, ax=left).set_title(_equation(found.equations) or found.winner)
            losses(found, ax=right).set_title(f"{found.task}: loss")
    return figure


def gates(arcs: Sequence[Arc]) -> Figure:
    """For each arc the patterns found, how many it takes, and how neurons come to follow them."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(
            len(arcs),
            3,
            figsize=(WIDTH, 2.3 * len(arcs)),
            width_ratios=(1.15, 0.85, 1),
            squeeze=False,
        )
        for (left, middle, right), found in zip(axes, arcs, strict=True):
            patterns(found, ax=left)
            tried = np.array(list(found.found.curve))
            gap = 100 * np.array(list(found.found.curve.values()))
            draw_curves(tried, {"gap": gap}, log=True, ylabel="gap to the ReLU loss (%)", ax=middle)
            chosen = elbow(list(found.found.curve.values()))
            middle.plot(tried, gap, "o", color=COLOURS["simulation"], markersize=4)
            middle.plot(
                chosen, found.found.curve[chosen] * 100, "o", color=COLOURS["theory"], markersize=7
            )
            middle.get_legend().remove()
            middle.set(xlabel="pathways", xticks=tried, title=f"the elbow: {chosen}")
            shares = found.activity.shares(found.prototypes)
            exact = 1 - shares.exact["other"]
            draw_shares(found.activity.time, shares.rounded, exact, ax=right)
    return figure


def patterns(found: Arc, *, ax: Axes) -> Axes:
    """How often the members of each pathway found are on, for each sample."""
    by = "context" if "context" in found.base.labels else None
    found.found.plot(label=by, ax=ax)
    ax.set_title(f"{found.task}: pathways found")
    return ax


def certificates(arcs: Sequence[Arc]) -> Figure:
    """For each arc how far the outputs are from the ReLU network's, next to another seed's."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, len(arcs), figsize=(WIDTH, 2.4), squeeze=False)
        for ax, found in zip(axes[0], arcs, strict=True):
            found.certificates[0].plot(ax=ax)
            ax.set_title(f"{found.task}: {found.winner}")
            ax.set(xlim=(0, None), ylim=(0, None))
    return figure


def overview(
    found: PhaseDiagram, deltas: np.ndarray, times: np.ndarray, xor: Arc, contextual: Arc
) -> Figure:
    """The whole arc in one picture: who is first, the losses, the gates found, on both tasks."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 3, figsize=(WIDTH, 4.5), width_ratios=(1, 1.25, 1))
        phases(found, deltas, times, ax=axes[0, 0]).set_title("extended XoR: time to learn")
        network(contextual, ax=axes[1, 0]).set_title(f"{contextual.winner} gating")
        for row, each in zip(axes, (xor, contextual), strict=True):
            losses(each, ax=row[1]).set_title(f"{each.task}: loss")
            patterns(each, ax=row[2]).set_title("gates found in ReLU networks")
    return figure


def _legend_on_top(ax: Axes, top: float) -> Axes:
    """Make room above curves that fall from `top`, and put the legend there."""
    ax.set_ylim(0, 1.4 * top)
    ax.legend(loc="upper right", ncols=2, columnspacing=0.8, handlelength=1.3, handletextpad=0.5)
    return ax


def _groups(found: Arc) -> dict[str, int]:
    values, counts = np.unique(np.asarray(found.base.labels["context"]), return_counts=True)
    return {f"context {v}": int(c) for v, c in zip(values, counts, strict=True)}


def _equation(latex: str) -> str | None:
    """A race of one equation as matplotlib can write it, or None."""
    system = latex.partition("\n\n")[0]  # what follows explains it
    match = re.fullmatch(r"\\begin\{aligned\}\n(.*)\n\\end\{aligned\}\n\\qquad .*: (.*)", system)
    if match is None:
        return None
    equation, constants = match.groups()
    equation = equation.replace("&=", "=").replace(r"\frac{d}{d t} B", r"\frac{d}{dt} B")
    return f"${equation},$ ${constants}$"
