"""The panels of MHS Fig. 4: losses and outputs, singular values, hidden layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from papers.figure import Picture, Table


def draw(table: Table) -> Picture:
    """(a) losses and outputs, (b) singular values of the pathways, (c) hidden layers."""
    import matplotlib.pyplot as plt

    epochs = table["epoch"].to_numpy().tolist()
    names = [f"{n}{k}" for n in ("r", "g") for k in range(len(epochs))]
    half = len(epochs)
    mosaic: Any = [
        ["a"] * half + names[:half],
        ["a"] * half + names[half:],
        ["b"] * half + ["b2"] * half,
        ["c"] * half + ["c2"] * half,
    ]
    figure, axes = plt.subplot_mosaic(mosaic, figsize=(7.0, 8.2), height_ratios=(1, 1, 1.5, 1.7))
    _draw_losses(table, axes["a"])
    _draw_outputs(table, [axes[n] for n in names], epochs)
    _draw_strengths(table, axes["b"], axes["b2"])
    for k, name in enumerate(("c", "c2")):
        _draw_places(table.isel(net=k), axes[name])
        net = table["net"].to_numpy()[k]
        axes[name].set_title(f"(c{k + 1}) hidden layer of the {net}")
    low = min(min(axes[n].get_xlim()[0], axes[n].get_ylim()[0]) for n in ("c", "c2"))
    high = max(max(axes[n].get_xlim()[1], axes[n].get_ylim()[1]) for n in ("c", "c2"))
    for name in ("c", "c2"):
        axes[name].set(xlim=(low, high), ylim=(low, high), aspect="equal")
    return figure


def _draw_losses(table: Table, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    step = table["step"].to_numpy()
    unit = table["relu"].to_numpy()[:, :1].mean()
    relu, gated, single, predicted = (
        table[n].to_numpy() / unit for n in ("relu", "gated", "single", "predicted")
    )
    ax.plot(step, relu.mean(axis=0), color=COLOURS["relu"], linewidth=4.5, label="ReLU network")
    ax.plot(step, gated.mean(axis=0), color=COLOURS["simulation"], linewidth=2.2, label="ReLN")
    dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
    ax.plot(step, predicted.mean(axis=0), color=COLOURS["theory"], label="predicted", **dashes)
    ax.plot(step, single.mean(axis=0), color="#D55E00", linewidth=1.2, label="GDLN single")
    ax.set(title="(a1) loss / initial loss", xlabel="epoch", ylim=(0, 1.04))
    ax.legend()


def _draw_outputs(table: Table, axes: Sequence[Any], epochs: Sequence[int]) -> None:
    outputs = table["outputs"].to_numpy()
    top = np.abs(outputs).max()
    for k, ax in enumerate(axes):
        net, moment = divmod(k, len(epochs))
        picture = outputs[net, moment].T
        image = ax.imshow(picture, aspect="auto", cmap="RdBu_r", vmin=-top, vmax=top)
        ax.set(xticks=(), yticks=())
        ax.spines[:].set_visible(True)
        ax.set_title(f"(a{k + 2}) epoch {epochs[moment]}", fontsize=7)
        if not moment:
            ax.set_ylabel(f"{table['net'].to_numpy()[net]}\noutputs", fontsize=7)
        if net:
            ax.set_xlabel("samples", fontsize=7)
        if k == len(axes) - 1:
            ax.figure.colorbar(image, ax=list(axes), label="output", aspect=30)


def _draw_strengths(table: Table, common: Any, contextual: Any) -> None:
    from neuralrace.plot import cycle_colour, shade

    step, names = table["step"].to_numpy(), table["pathway"].to_numpy().tolist()
    dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
    one = table.isel(seed=0)
    for k, name in enumerate(names):
        ax = contextual if k else common
        light, dark = shade(cycle_colour(k), 0.35), shade(cycle_colour(k), -0.55)
        solid = ax.plot(step, one["simulated_strength"][k], color=light, linewidth=2.2)
        dashed = ax.plot(step, one["predicted_strength"][k], color=dark, **dashes)
        solid[0].set_label(f"{name}, trained")
        if k in (0, len(names) - 1):
            dashed[0].set_label("predicted")
    common.set(title="(b1) common pathway", xlabel="epoch", ylabel="singular value")
    contextual.set(title="(b2) contextual pathways", xlabel="epoch", ylabel="singular value")
    for ax in (common, contextual):
        ax.legend(loc="upper right", fontsize=6)
        ax.set_ylim(0, 1.5 * ax.get_ylim()[1])


def _draw_places(one: Table, ax: Any) -> None:
    from neuralrace.plot import cycle_colour

    context, places = one["context"].to_numpy(), one["places"].to_numpy()
    for k, (c, marker) in enumerate(zip(np.unique(context), "os^DvP", strict=False)):
        those = places[:, context == c]
        ax.plot(those[..., 0], those[..., 1], color=cycle_colour(k), linewidth=0.6, alpha=0.6)
        ax.scatter(
            *those[-1].T,
            facecolor="none",  # contexts lie on each other in some places
            edgecolor=cycle_colour(k),
            marker=marker,
            s=24,
            linewidth=1.0,
            zorder=3,
            label=f"context {c}",
        )
    ax.set(xlabel="MDS axis 1", ylabel="MDS axis 2", xticks=(), yticks=())
    ax.legend(loc="best", fontsize=6)
