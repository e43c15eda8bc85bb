"""The pictures of docs/reln.md: clusters of activity, and fidelity against number of pathways."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace.plot import COLOURS

MEASURED = Path(__file__).with_name("reln_fidelity.json")
"""E(K) of every method. Kept, for trained gates take hours without an accelerator."""


def clusters() -> Figure:
    """What Algorithm 1 finds with 2, 3 and 4 clusters (MHS Fig. 8), one run, key 0."""
    data = nr.tasks.contextual(structures=("hierarchy", "ring", "crossed"), joined=True)
    relu = nr.ReLUNetwork((11, 700, 60))
    weights = relu.init(jax.random.key(0), scale=0.005 / 700, dtype=jnp.float32)
    run = nr.train(
        relu, weights, data, learning_rate=0.024, steps=8000, record_every=100,
        record={"weights": True},
    )  # fmt: skip
    figure, axes = plt.subplots(3, 1, figsize=(7.2, 4.6), height_ratios=(2, 3, 4))
    for count, ax in zip((2, 3, 4), axes, strict=True):
        found = nr.reln.discover(run, data, pathways=count)
        found.plot(label="context", ax=ax)
        ax.set_title(f"{count} clusters, discrepancy {found.discrepancy:.1%}".replace("%", " %"))
    return figure


LOOKS = {
    "Algorithm 1": ("o-", COLOURS["theory"]),
    "Algorithm 1, real-valued": ("o:", COLOURS["neutral"]),
    "two stages, started anew": ("^--", "#D55E00"),
    "implementable patterns, searched": ("s--", "#0072B2"),
    "gates trained": ("D-", COLOURS["contextual"]),
}


def fidelity() -> Figure:
    """Discrepancy against number of pathways, Algorithm 1 and what was tried beyond it."""
    measured = json.loads(MEASURED.read_text())
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    for name, (line, colour) in LOOKS.items():
        numbers = np.array([int(k) for k in measured[name]])
        ax.plot(numbers, list(measured[name].values()), line, color=colour, label=name)
    ax.axhline(measured["seed floor"], color=COLOURS["relu"], linewidth=4, zorder=1)
    ax.text(8, measured["seed floor"] * 1.1, "another seed of the ReLU network", ha="right")
    ax.set(xlabel="pathways K", ylabel="mean |ΔL| / L(0)", yscale="log", ylim=(1e-3, 0.2))
    ax.legend(loc="upper right", fontsize="small")
    return figure


def main(folder: Path = FOLDER) -> None:
    """Write `reln_*.png` into the folder."""
    write("reln", (clusters, fidelity), folder, float64=False)
