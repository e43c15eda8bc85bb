"""A picture of docs/reln.md: clusters of activity. `fidelity` makes the other picture."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write


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
        ax.set_ylabel("")
    figure.supylabel("pathway, share of activity", fontsize="medium")
    return figure


def main(folder: Path = FOLDER) -> None:
    """Write `reln_clusters.png` into the folder."""
    write("reln", (clusters,), folder, float64=False)
