"""The pictures of docs/types.md: the timeline of types, and explanations side by side."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write


def timeline() -> Figure:
    """Types of neurons on three contexts with four items, key 0."""
    data = nr.tasks.contextual(contexts=3, items=4, joined=True)
    found = nr.reln.types(
        data, width=200, scale=1e-5, learning_rate=0.02, steps=3000, types=2, neurons=300
    )
    return found.plot()


def explanations() -> Figure:
    """Extended XoR: the loss of a network and of what explains it, key 0."""
    xor = nr.tasks.extended_xor(0.4)
    gatings = {
        "one per sample": nr.tasks.xor_pathways(xor),
        "linear": nr.tasks.linear_pathways(xor),
    }
    found = nr.explain(
        xor, gatings, width=64, scale=1e-4, learning_rate=0.1, steps=500, seeds=3,
        rows=["gatings", "discovered", "types", "narrow"], types=4, neurons=500,
    )  # fmt: skip
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    found.plot(ax=ax)
    return figure


def main(folder: Path = FOLDER) -> None:
    """Write `types_timeline.png` and `types_explanations.png` into the folder."""
    write("types", (timeline, explanations), folder)
