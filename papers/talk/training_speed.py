"""Talk, "Training speed" and "Effect of initialization": learning time against depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

if TYPE_CHECKING:
    from neuralrace.types import WeightsLike

KINDS = ("small random", "pretrained-like", "orthogonal")
"""The kinds of initial weights."""

SETTINGS = {
    "depths": Setting((2, 3, 4, 5, 6), "edges of the networks", "ours", quick=(2, 3)),
    "size": Setting(8, "neurons of every layer; the task is the identity", "ours", quick=4),
    "random": Setting(0.5, "b₀ of random weights: standard deviation b₀/√size", "ours"),
    "pretrained": Setting(0.8, "b₀ of balanced aligned weights", "ours"),
    "seeds": Setting(5, "repetitions", "ours", quick=2),
    "key": Setting(0, "first random key", "ours"),
}


def compute(settings: Settings) -> Table:
    """The time at which the loss of the flow has halved, in units of τ/D, for each start."""
    import jax
    import xarray

    s = settings
    x = np.sqrt(s["size"]) * np.eye(s["size"])
    data = nr.Dataset({"x": x}, {"y": x})
    found = np.zeros((len(KINDS), len(s["depths"]), s["seeds"]))
    for j, depth in enumerate(s["depths"]):
        net = nr.GDLN(nr.Architecture.chain(*[s["size"]] * (depth + 1)))
        for k in range(s["seeds"]):
            key = jax.random.key(s["key"] + k)
            starts = (
                net.init(key, s["random"] / np.sqrt(s["size"])),
                nr.linear.aligned_weights(net, data, s["pretrained"], key=s["key"] + k),
                net.init(key, kind="orthogonal"),
            )
            for i, weights in enumerate(starts):
                found[i, j, k] = depth * half_time(net, weights, data)
    return xarray.Dataset(
        {"time": (("kind", "depth", "seed"), found)},
        {"kind": list(KINDS), "depth": list(s["depths"])},
    )


def half_time(net: nr.GDLN, weights: WeightsLike, data: nr.Dataset, span: float = 4.0) -> float:
    """The time at which the flow has halved its loss; the time span is doubled until it has."""
    while True:
        run = nr.flow(net, weights, data, times=np.linspace(0, span, 401))
        if run.loss[-1] <= run.loss[0] / 2:
            return float(nr.trajectory.crossing_time(run.time, run.loss, run.loss[0] / 2))
        span *= 4


def measures(table: Table) -> tuple[Measure, ...]:
    """The three scalings of the talk against the measured times."""
    s = settings_of(table)
    mean = table["time"].mean("seed").to_numpy()
    spread = table["time"].std("seed").to_numpy()

    def shown(i: int) -> str:
        return ", ".join(f"{m:.3g} ± {d:.2g}" for m, d in zip(mean[i], spread[i], strict=True))

    depths = np.array(s["depths"])
    growth = mean[0, 1:] / mean[0, :-1]
    rise, allowed = mean[1, -1] / mean[1, 0], depths[-1] / depths[0]
    flat = mean[2].max() / mean[2].min()
    exact = np.array([depth * pretrained_time(int(depth), s["pretrained"]) for depth in depths])
    off = float(np.abs(mean[1] / exact - 1).max())
    return (
        stated(
            "small-random",
            f"small random weights, D = {s['depths'][0]} … {s['depths'][-1]}: time (τ/D)",
            "O(1/b₀^D): each edge multiplies it by 1.3 or more",
            f"{shown(0)}; factors {', '.join(f'{g:.2f}' for g in growth)}",
            np.min(growth),
            least=1.3,
        ),
        stated(
            "pretrained",
            "pretrained-like weights: time (τ/D)",
            f"O(D/b₀²): grows by {allowed:.3g} at most, as D does",
            f"{shown(1)}; grows by {rise:.3g} (from a fixed b₀ < 1 it must grow as b₀^(2−D))",
            rise,
            most=allowed,
            rests=Basis.PAPER,
        ),
        stated(
            "closed-form",
            "pretrained-like weights against the closed form of a chain, worst depth",
            "≤ 0.1 %",
            f"{100 * off:.1e} %",
            off,
            most=1e-3,
        ),
        stated(
            "orthogonal",
            "orthogonal weights: time (τ/D)",
            "O(1): largest over smallest ≤ 1.5",
            f"{shown(2)}; {flat:.2f}",
            flat,
            most=1.5,
        ),
    )


def pretrained_time(depth: int, start: float) -> float:
    """The time at which (1 − a)² has halved, for a chain of this depth with s = d = 1."""
    half = 1 - (1 - start**depth) / np.sqrt(2)
    return nr.linear.chain_time(depth, s=1.0, start=start, fraction=float(half))


def draw(table: Table) -> Picture:
    """Time against depth: the mean, and every seed."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    figure, ax = plt.subplots(figsize=(4.4, 2.9))
    depths = table["depth"].to_numpy()
    curves = {kind: table["time"].sel(kind=kind).to_numpy().T for kind in KINDS}
    draw_curves(
        depths, curves, band="range", log=True, ylabel="time in which the loss halves (τ/D)", ax=ax
    )
    ax.set(xlabel="depth D", xticks=depths, title="training speed (bands: range of seeds)")
    return figure


FIGURE = Figure(
    name="talk/training_speed",
    title="Learning time against depth for three kinds of initial weights",
    states=(
        "The time to learn grows exponentially with depth from small random weights, linearly "
        "after pretraining, and not at all from orthogonal weights."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
