"""The pictures of docs/contest.md: winners over parameters, joint training, pattern growth."""

from __future__ import annotations

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace import tasks
from neuralrace.plot import mark_line

KEY = jax.random.key(0)
"""The random key of all pictures."""

SCALE = 1e-3
"""The standard deviation of initial weights."""


def gatings(delta: float) -> dict:
    """The two gatings of the extended XoR, 128 units each."""
    data = tasks.extended_xor(delta)
    return {"linear": tasks.linear_pathways(data), "xor": tasks.xor_pathways(data)}


def phases() -> Figure:
    """Learning times of both gatings and of ReLU networks over Δ (MHS Fig. 2d), and one contest."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9))
    deltas = np.linspace(0, 2, 11)
    many = nr.train_ensemble(
        nr.ReLUNetwork((3, 128, 1)),
        [tasks.extended_xor(float(delta)) for delta in deltas],
        axis=("delta", deltas),
        key=KEY,
        seeds=3,
        scale=SCALE,
        learning_rate=0.05,
        steps=800,
    )
    reached = many.time[np.argmax(many.loss < 0.2, axis=-1)]
    phases = nr.phase_diagram(gatings, "Δ", np.linspace(0, 2, 41), scale=SCALE)
    phases.plot(trained=(deltas, reached), ax=left)
    left.set_title("time to a loss of 0.2")
    nr.contest(gatings(1.0), scale=SCALE).plot(ax=right)
    right.set_title("Δ = 1: linear is first")
    return figure


def joint() -> Figure:
    """Both gatings in one network: how much of the targets each supplies."""
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.5))
    for ax, delta in zip(axes, (0.6, 1.0), strict=False):
        nr.contest(gatings(delta), scale=SCALE).joint(seeds=3).plot(ax=ax)
        ax.set_title(f"Δ = {delta}")
    axes[1].set_ylabel("")
    axes[1].get_legend().remove()
    deltas, parts = np.linspace(0.1, 1.5, 15), {}
    for scale in (1e-3, 1e-6):
        ends = []
        for delta in deltas:
            found = nr.contest(gatings(float(delta)), scale=scale)
            times = np.linspace(0, 4 * found.times["xor"], 201)
            ends.append(found.joint(times=times).carried["linear"][0, -1])
        parts[f"σ = {scale:g}"] = np.array(ends)
    for (name, part), colour in zip(parts.items(), ("0.6", "black"), strict=True):
        axes[2].plot(deltas, part, color=colour, label=name)
    axes[2].set_ylabel("part of the linear gating")
    axes[2].legend(loc="upper left")
    mark_line(axes[2], "equally fast", x=np.sqrt(2 / 3), at=0.0)
    axes[2].set(xlabel="Δ", title="in the end")
    return figure


def patterns() -> Figure:
    """The fastest of all patterns that random neurons have on the contextual task."""
    data = tasks.contextual(contexts=3, joined=True)
    left_to_learn = data.residual()
    rng = np.random.default_rng(0)
    on = np.unique(rng.normal(size=(50_000, 11)) @ data.x["x"].T > 0, axis=0)
    found = nr.rank_patterns(left_to_learn, on)
    figure = found.plot(samples={f"context {c}": 8 for c in (1, 2, 3)})
    but_one = nr.rank_patterns(left_to_learn, [data.mask(context=[1, 2])]).growth[0]
    mark_line(figure.axes[1], "all-but-one patterns", y=but_one, before=True, at=0.0)
    return figure


def three_pathways(share: float, other: float) -> tuple[nr.Architecture, nr.Dataset]:
    """Two nested pathways, and one that is on for a share; 2x there, 2·other·x elsewhere."""
    edges = {"a": ("x", "h1"), "b": ("h1", "y"), "c": ("h1", "h2"), "d": ("h2", "y")}
    edges |= {"e": ("x", "g"), "f": ("g", "y")}
    arch = nr.Architecture({"x": 1, "h1": 4, "h2": 4, "g": 4, "y": 1}, edges)
    x, y = {"x": [[1.0], [1.0]]}, {"y": [[2.0], [2 * other]]}
    return arch, nr.Dataset(x, y, {"g": [1.0, 0.0]}, [share, 1 - share])


def paths() -> Figure:
    """Which path of one network leads when half is learned, over start and share."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharey=True)
    for ax, other in zip(axes, (1.0, -0.5), strict=True):
        nr.phase_diagram(
            lambda share, other=other: three_pathways(share, other),
            {"start": np.geomspace(0.01, 0.4, 11), "share": np.linspace(0.05, 0.95, 13)},
            race="paths",
            criterion=0.5,
            relative=True,
        ).plot(ax=ax)
        ax.set_title(f"κ = {other:g}")
    return figure


PICTURES = (phases, joint, patterns, paths)


def main(folder: Path = FOLDER) -> None:
    """Write `contest_*.png` into the folder."""
    write("contest", PICTURES, folder)
