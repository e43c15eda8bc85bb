"""The pictures of docs/kept.md: one task, kept shares against ReLU networks, one check."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace.plot import COLOURS, mark_line

NUMBERS = Path(__file__).with_name("kept.json")
"""The rows that `evidence/own/kept.py` measures at full size."""

CUES = Path(__file__).with_name("kept_cues.json")
"""Half-times of five ReLU networks at some cues, by `relu_networks` of `evidence/own/kept.py`."""


def cue() -> Figure:
    """Half-times over the size of the cue: natural gatings, aligned gates, ReLU networks."""
    measured = json.loads(CUES.read_text())
    cues = [row["cue"] for row in measured]

    def gatings(cue: float) -> dict:
        natural = nr.tasks.natural_gatings(nr.tasks.context_decision(cue=cue), width=200)
        return {"answer": natural["answer"], "context": natural["context"]}

    phases = nr.phase_diagram(gatings, "cue", cues, scale=1e-3, criterion=0.5, relative=True)
    references = [phases.contest_at(float(value)).check().reference for value in cues]
    aligned = [reference.time for reference in references if reference is not None]
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    phases.plot(ax=ax)
    relu = [row["relu"] for row in measured]
    ax.plot(cues, aligned, "--", color="black", label="aligned gates")
    means = {"color": COLOURS["relu"], "markeredgecolor": COLOURS["theory"], "markersize": 5}
    ax.plot(cues, relu, "o-", label="ReLU networks, mean of 5 seeds", clip_on=False, **means)
    ax.set(xlabel="size of the cue", ylabel="time to half the loss", ylim=(0, 30))
    ax.legend(loc="upper right", fontsize=7, frameon=True, framealpha=1, edgecolor="white")
    return figure


def scatter() -> Figure:
    """Each gating's half-time relative to ReLU networks, against its kept share."""
    rows = [row for row in json.loads(NUMBERS.read_text()) if row["relu"]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0), sharey=True)
    for ax, aligned, title in (
        (left, False, "natural and random gatings"),
        (right, True, "aligned gates"),
    ):
        mine = [row for row in rows if (row["gating"] == "aligned") == aligned]
        ratio = np.array([row["time"] / row["relu"] if row["time"] else 8 for row in mine])
        share = np.array([row["share"] for row in mine])
        ax.axhspan(0.85, 1.15, color="0.9", zorder=0, label="within 15 % of ReLU networks")
        mark_line(ax, "kept", x=0.9)
        shown = np.clip(ratio, 0.125, 8)
        ax.plot(share, shown, "o", markersize=4, alpha=0.7, color=COLOURS["theory"])
        ax.set(yscale="log", xlim=(-0.05, 1.05), ylim=(0.11, 9), xlabel="kept share")
        ax.set_yticks([0.125, 0.25, 0.5, 1, 2, 4, 8], ["⅛", "¼", "½", "1", "2", "4", "≥ 8"])
        ax.minorticks_off()
        ax.set_title(title)
    right.legend(loc="lower left")
    left.set_ylabel("half-time / that of ReLU networks")
    return figure


def check() -> Figure:
    """Where the gating by answer loses its gates, on the context decision."""
    gating = nr.tasks.natural_gatings(nr.tasks.context_decision())["answer"]
    return nr.reln.consistency(*gating, scale=1e-3).plot()


PICTURES = (cue, scatter, check)


def main(folder: Path = FOLDER) -> None:
    """Write `kept_*.png` into the folder."""
    write("kept", PICTURES, folder)
