"""The pictures of docs/dynamics.md: descent and flow, an ensemble over Δ, gates in stages."""

from __future__ import annotations

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace import tasks
from neuralrace.plot import draw_curves, mark_line

KEY = jax.random.key(0)
"""The random key of all pictures."""

DELTAS = np.linspace(0, 1.6, 9)
"""The margins Δ of the extended XoR."""


def flow() -> Figure:
    """Descent with two learning rates against the flow, and the differences."""
    arch, data = tasks.xor_pathways(tasks.extended_xor(0.6), total=32)
    net = nr.GDLN(arch)
    weights = net.init(KEY, scale=0.05)
    runs = {
        rate: nr.train(net, weights, data, learning_rate=rate, steps=round(16 / rate))
        for rate in (0.4, 0.1)
    }
    limit = nr.flow(net, weights, data, times=np.linspace(0, 16, 321))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.7))
    names = {rate: f"descent, learning rate {rate}" for rate in runs}
    times = {names[rate]: run.time for rate, run in runs.items()}
    draw_curves(times, {names[rate]: run.loss for rate, run in runs.items()}, ax=left)
    draw_curves(limit.time, {"flow": limit.loss}, kind="theory", ax=left)
    left.set_title("extended XoR, four pathways")
    gaps = {
        names[rate]: np.abs(run.loss - np.interp(run.time, limit.time, limit.loss))
        for rate, run in runs.items()
    }
    draw_curves(times, gaps, ylabel="difference of loss", ax=right)
    right.set_title("distance to the flow")
    return figure


def ensemble() -> Figure:
    """Five seeds of a ReLU network at every Δ of the extended XoR; the losses at three of them."""
    many = nr.train_ensemble(
        nr.ReLUNetwork((3, 24, 1)),
        [tasks.extended_xor(float(delta)) for delta in DELTAS],
        axis=("delta", DELTAS),
        key=KEY,
        seeds=5,
        scale=0.01,
        learning_rate=0.05,
        steps=300,
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.7))
    shown = {f"Δ = {DELTAS[i]:.1f}": many.loss[i] for i in (0, 4, 8)}
    draw_curves(many.time, shown, ax=left)
    left.set_title("five seeds each, and their mean")
    half = many.time[np.argmax(many.loss < many.loss[..., :1] / 2, axis=-1)]
    draw_curves(DELTAS, {"time to half of the loss": half.T}, ylabel="time", ax=right)
    right.set(xlabel="Δ", ylim=(0, None), title="how fast, by Δ")
    return figure


def stages() -> Figure:
    """The common pathway alone, then all of them."""
    arch, data = tasks.common_and_all_but_one(tasks.contextual(contexts=3), hidden=30)
    net = nr.GDLN(arch)
    closed = data.gated({name: np.zeros(data.n_samples) for name in data.gates})
    options = {"learning_rate": 0.05, "steps": 1400, "record_every": 5}
    first = nr.train(net, net.init(KEY, scale=0.05), closed, **options)
    both = nr.join(first, nr.train(net, first.final, data, **options))
    figure, ax = plt.subplots(figsize=(4.6, 2.7))
    both.plot(ax=ax)
    mark_line(ax, "the others open", x=first.time[-1])
    ax.get_legend().remove()
    return figure


SIZES = (1, 4, 16, 64, 256)
"""The batch sizes."""

RATES = (0.0025, 0.01, 0.04)
"""The learning rates of the mini-batch runs."""


def batch_errors(seeds: int = 5, time: float = 16.0) -> np.ndarray:
    """Mean |ΔL|/L(0) between mini-batch runs and the flow, (rates, batch sizes, seeds).

    A linear chain 8–32–4 with a random teacher and noise in the targets, 256 samples. Without
    noise, all batches would have the same minimum, with zero loss.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 8))
    y = x @ rng.normal(size=(8, 4)) / np.sqrt(8) + 0.5 * rng.normal(size=(256, 4))
    data, net = nr.Dataset({"x": x}, {"y": y}), nr.GDLN(nr.Architecture.chain(8, 32, 4))
    weights = net.init(KEY, scale=0.03)
    limit = nr.flow(net, weights, data, times=np.linspace(0, time, 401))

    def error(rate: float, size: int, seed: int) -> float:
        steps = round(time / rate)
        run = nr.train(
            net,
            weights,
            data,
            learning_rate=rate,
            steps=steps,
            batch_size=size,
            key=seed,
            record_every=max(1, steps // 400),
        )
        return nr.compare(limit, run).mean

    return np.array(
        [[[error(rate, size, seed) for seed in range(seeds)] for size in SIZES] for rate in RATES]
    )


def batches() -> Figure:
    """How far mini-batch runs are from the flow, by batch size and learning rate."""
    errors = batch_errors()
    figure, ax = plt.subplots(figsize=(4.6, 2.9))
    shown = {f"learning rate {rate}": each.T for rate, each in zip(RATES, errors, strict=True)}
    draw_curves(np.array(SIZES), shown, ylabel="mean |ΔL| / L(0)", log=True, ax=ax)
    ax.set(xscale="log", xlabel="batch size (256: all samples)", xticks=SIZES)
    ax.set_xticklabels([str(size) for size in SIZES])
    ax.minorticks_off()
    return figure


PICTURES = (flow, ensemble, stages, batches)


def main(folder: Path = FOLDER) -> None:
    """Write `dynamics_*.png` into the folder."""
    write("dynamics", PICTURES, folder)
