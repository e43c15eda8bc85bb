"""The pictures of docs/kept.md: kept shares against ReLU networks, and one check in detail."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace.plot import COLOURS

NUMBERS = Path(__file__).with_name("kept.json")
"""The rows that `verification/kept.py` measures at full size."""


def scatter() -> Figure:
    """How far each gating's half-time is from that of ReLU networks, over its kept share."""
    rows = [row for row in json.loads(NUMBERS.read_text()) if row["relu"]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0), sharey=True)
    for ax, aligned, title in (
        (left, False, "a  natural and random gatings"),
        (right, True, "b  aligned gates"),
    ):
        mine = [row for row in rows if (row["gating"] == "aligned") == aligned]
        ratio = np.array([row["time"] / row["relu"] if row["time"] else 8 for row in mine])
        share = np.array([row["share"] for row in mine])
        ax.axhspan(0.85, 1.15, color="0.9", zorder=0)
        ax.axvline(0.9, color=COLOURS["neutral"], linewidth=0.8, linestyle=":")
        shown = np.clip(ratio, 0.125, 8)
        ax.plot(share, shown, "o", markersize=4, alpha=0.7, color=COLOURS["theory"])
        ax.set(yscale="log", xlim=(-0.05, 1.05), ylim=(0.11, 9), xlabel="kept share")
        ax.set_yticks([0.125, 0.25, 0.5, 1, 2, 4, 8], ["⅛", "¼", "½", "1", "2", "4", "≥ 8"])
        ax.minorticks_off()
        ax.set_title(title, loc="left")
    left.set_ylabel("half-time / that of ReLU networks")
    return figure


def check() -> Figure:
    """Where the gating by answer loses its gates, on the context decision."""
    gating = nr.tasks.natural_gatings(nr.tasks.context_decision())["answer"]
    return nr.reln.consistency(*gating, scale=1e-3).plot()


PICTURES = (scatter, check)


def main(folder: Path = FOLDER) -> None:
    """Write `kept_*.png` into the folder."""
    write("kept", PICTURES, folder)
