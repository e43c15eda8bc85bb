"""The picture of README.md: two studies in one overview."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

import neuralrace as nr
from docs.figures import FOLDER
from neuralrace.plot import draw_curves, letter_panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STUDIES = Path(__file__).parents[2] / "examples" / "studies"
WIDTH = 7.2
"""Inches: two columns of a paper."""


def main(folder: Path = FOLDER) -> None:
    """Run both studies and write their overview as `demo.png` into the folder."""
    import matplotlib.pyplot as plt

    jax.config.update("jax_enable_x64", True)
    xor = nr.Study.load(STUDIES / "xor_transition.toml").run()
    contexts = nr.Study.load(STUDIES / "demo.toml").run()
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        figure, axes = plt.subplots(2, 3, figsize=(WIDTH, 4.5), width_ratios=(1, 1.25, 1))
        phases(xor, axes[0, 0])
        axes[1, 0].set_title("all_but_one gating")
        rows = {"Δ = 0.4": xor, "three contexts": contexts}
        for row, (name, result) in zip(axes, rows.items(), strict=True):
            losses(result, row[1])
            row[1].set_title(f"{name}: loss")
            label = "context" if "context" in result.problem.data.labels else None
            result["discover"].value.plot(label=label, ax=row[2])
            row[2].set_title("gates found in ReLU networks")
        letter_panels(figure)
        arch, data = contexts.problem.candidates["all_but_one"]
        arch.draw(data, ax=axes[1, 0])  # last: it fits its text to the room there is
    figure.savefig(folder / "demo.png", dpi=200, pil_kwargs={"optimize": True})
    plt.close(figure)


def phases(result: nr.study.Result, ax: Axes) -> None:
    """The phase diagram, and the learning times of trained ReLU networks on it."""
    found, trained = result["phase_diagram"].value
    found.plot(trained=trained, ax=ax)
    ax.legend(loc="upper right", bbox_to_anchor=(1.0, 0.9), fontsize=5.5, handlelength=1.6)
    ax.set_title("extended XoR: time to learn")


def losses(result: nr.study.Result, ax: Axes) -> None:
    """ReLU networks, gated networks, and the prediction."""
    relu, (gated, predicted) = result["train"].value, result["predict"].value
    draw_curves(relu.time, {"ReLU networks": relu.loss}, kind="relu", ax=ax)
    draw_curves(gated.time, {"gated networks": gated.loss}, ax=ax)
    curve = np.stack([each.loss for each in predicted])
    draw_curves(gated.time, {"predicted": curve}, kind="theory", ax=ax)
    ax.set_xlim(0, relu.time[-1])
    ax.set_ylim(0, 1.4 * relu.loss.max())  # room for the legend above curves that fall
    ax.legend(loc="upper right", ncols=2, columnspacing=0.8, handlelength=1.3, handletextpad=0.5)
