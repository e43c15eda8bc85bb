"""The picture of README.md: two studies in one overview."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

import neuralrace as nr
from docs.figures import FOLDER
from neuralrace.plot import COLOURS, draw_curves, letter_panels, look, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDIES = Path(__file__).parents[2] / "examples" / "studies"

SIZE = (7.2, 5.2)
"""Inches: two columns of a paper."""


ASKED = ["contest", "predict", "train", "discover"]
"""The questions whose answers are drawn."""


def main(folder: Path = FOLDER) -> None:
    """Run both studies and write their overview as `demo.png` into the folder."""
    import matplotlib.pyplot as plt

    jax.config.update("jax_enable_x64", True)
    xor = nr.Study.load(STUDIES / "xor_transition.toml").run()
    contexts = nr.Study.load(STUDIES / "demo.toml").changed({"questions": ASKED}).run()
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        figure = overview(xor, contexts)
    figure.savefig(folder / "demo.png", dpi=200, pil_kwargs={"optimize": True})
    plt.close(figure)


def overview(xor: nr.study.Result, contexts: nr.study.Result) -> Figure:
    """One row for each study: what is compared, the loss, and the gates found."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, 3, figsize=SIZE, width_ratios=(1.75, 1, 0.95), height_ratios=(1, 1.3)
    )
    phases(xor, axes[0, 0])
    axes[1, 0].set_title("three contexts: a gating")
    for row, name, result in zip(axes, ("XoR", "three contexts"), (xor, contexts), strict=True):
        losses(result, row[1])
        row[1].set_title(f"{name}: loss")
        label = "context" if "context" in result.problem.data.labels else None
        result["discover"].value.plot(label=label, ax=row[2])
        row[2].set_title(f"{name}: gates found")
    axes[0, 1].set_title("XoR, Δ = 0.4: loss")
    axes[1, 2].set_xticks(axes[1, 2].get_xticks(), ["1", "2", "3"])
    axes[1, 2].set_xlabel("samples of context")
    letter_panels(figure)
    arch, data = contexts.problem.candidates["all_but_one"]
    from cycler import cycler

    with look(rc={"axes.prop_cycle": cycler(color=[COLOURS["simulation"]])}):
        arch.draw(data, ax=axes[1, 0])  # last: it fits its text to the room there is
    return figure


def phases(result: nr.study.Result, ax: Axes) -> None:
    """The phase diagram, and the learning times of trained ReLU networks on it."""
    found, trained = result["phase_diagram"].value
    found.plot(trained=trained, ax=ax)
    ax.set_title("extended XoR: time to learn")


def losses(result: nr.study.Result, ax: Axes) -> None:
    """ReLU networks, gated networks, and the prediction."""
    relu, (gated, predicted) = result["train"].value, result["predict"].value
    draw_curves(relu.time, {"ReLU networks": relu.loss}, kind="relu", band=None, ax=ax)
    draw_curves(gated.time, {"gated networks": gated.loss}, band=None, ax=ax)
    curve = np.stack([each.loss for each in predicted])
    draw_curves(gated.time, {"predicted": curve}, kind="theory", band=None, ax=ax)
    ax.set_xlim(0, relu.time[-1])
    ax.set_ylim(0, 1.45 * relu.loss.max())  # room for the legend above curves that fall
    ax.get_legend().set_loc("upper right")
