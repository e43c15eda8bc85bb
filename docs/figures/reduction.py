"""The pictures of docs/reduction.md: races against simulations, closed forms, approximations."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from docs.figures import FOLDER, write
from neuralrace import tasks
from neuralrace.plot import COLOURS, draw_curves, mark_line

KEY = jax.random.key(0)
"""The random key of all pictures."""


def loss() -> Figure:
    """The race from actual random weights against training: XoR, and contexts trained jointly."""
    cases = {
        "XoR, four pathways": (tasks.xor_pathways(tasks.xor()), 0.01, 0.1, 180),
        "common and all-but-one, C = 3": (
            tasks.common_and_all_but_one(tasks.contextual(contexts=3)),
            7e-6,
            0.1,
            2000,
        ),
    }
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.7))
    for ax, (title, ((arch, data), scale, rate, steps)) in zip(axes, cases.items(), strict=True):
        net, race = nr.GDLN(arch), nr.reduce(arch, data)
        weights = net.init(KEY, scale=scale)
        run = nr.train(net, weights, data, learning_rate=rate, steps=steps)
        times = run.time[:: max(1, steps // 400)]
        solution = race.solve(times=times, start=race.start(weights), learning_rate=rate)
        draw_curves(run.time, {"trained network": run.loss}, ax=ax)
        draw_curves(solution.time, {"race, nothing fitted": solution.loss}, kind="theory", ax=ax)
        ax.set(title=title, ylim=(0, None))
    axes[1].set_ylabel("")
    return figure


def routing() -> Figure:
    """The two variables of every mode against singular values of the trained network."""
    arch, data = tasks.routing_pathways(tasks.routing(M=7, K=4)[0], hidden=16)
    race, rate = nr.reduce(arch, data), 0.05
    solution = race.solve(times=np.linspace(0, 100, 201), start=0.08, learning_rate=rate)
    weights = race.weights(solution, 0.0, KEY)

    def singular_values(w: dict) -> jax.Array:
        values = [jnp.linalg.svd(w[edge], compute_uv=False)[:4] for edge in ("in1", "hidden")]
        return jnp.stack(values)

    run = nr.train(
        nr.GDLN(arch),
        weights,
        data,
        learning_rate=rate,
        steps=2000,
        record_every=10,
        record={"sv": singular_values},
    )
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.7), sharey=True)
    names = ("mode 1", "mode 2", "modes 3, 4")
    titles = ("$B_1$: the 14 edges at the ends", "$B_2$: the edge all routes share")
    for ax, edge, title, k in zip(axes, ("in1", "hidden"), titles, (0, 1), strict=True):
        measured = {name: run.values["sv"][:, k, i] for i, name in enumerate(names)}
        predicted = {
            name: solution.values["variables"][f"mode{i + 1}"][edge][:, 0, 0]
            for i, name in enumerate(names)
        }
        draw_curves(run.time, measured, ylabel="singular value", ax=ax)
        draw_curves(solution.time, predicted, kind="theory", ax=ax)
        ax.set_title(title)
    axes[1].set_ylabel("")
    axes[1].get_legend().remove()
    return figure


def contexts() -> Figure:
    """Closed forms of the contextual pathways for three, four and five contexts."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.7))
    times = np.linspace(0, 240, 241)
    losses, forms, strengths = {}, {}, {}
    for C in (3, 4, 5):
        arch, data = tasks.all_but_one(tasks.contextual(contexts=C), hidden=20)
        race = nr.reduce(arch, data)
        form = race.closed_form(0.05)
        assert form is not None
        weights = race.weights(race.solve(times=times, start=0.05), 0.0, KEY)
        name = f"C = {C}"
        run = nr.train(nr.GDLN(arch), weights, data, learning_rate=0.2, steps=1200, record_every=5)
        losses[name], forms[name] = run.loss, form.loss(times)
        first = next(iter(form.modes.values()))
        strengths[name] = np.asarray(first.value(times)) / first.final
    draw_curves(times, losses, ax=left)
    draw_curves(times, forms, kind="theory", ax=left)
    left.set(title="loss: trained, and closed form", ylim=(0, None))
    draw_curves(times, strengths, kind="theory", ylabel="strength / final strength", ax=right)
    right.set(title="the first item mode")
    return figure


def dropped() -> Figure:
    """How the loss error grows with the couplings that an approximate reduction drops."""
    base = tasks.contextual(structures=("hierarchy", "ring", "crossed"))
    arch, data = tasks.common_and_all_but_one(base)
    net, rate = nr.GDLN(arch), 0.1
    weights = net.init(KEY, scale=7e-6)
    run = nr.train(net, weights, data, learning_rate=rate, steps=2000, record_every=5)
    rows = []
    for tolerance in (1e-8, 1e-3, 3e-2, 5e-2, 8e-2, 0.12):
        race = nr.reduce(arch, data, tolerance=tolerance)
        solution = race.solve(times=run.time, start=race.start(weights), learning_rate=rate)
        sizes = [(sum(b.dims.values()) - b.dims["y"], b.dims["y"]) for b in race.blocks]
        largest = "{} → {}".format(*max(sizes, key=np.prod))
        rows.append((race.residual, 100 * nr.compare(run, solution).mean, largest))
    exact, approximate = rows[0], rows[1:]
    figure, ax = plt.subplots(figsize=(4.8, 3.0))
    residual, error, _ = (np.array(column) for column in zip(*approximate, strict=True))
    mark_line(ax, f"exact reduction: {exact[2]}", y=exact[1], before=True)
    ax.loglog(residual, error, "o-", color=COLOURS["common"], markersize=4, linewidth=1.2)
    for x, y, largest in approximate:
        ax.annotate(largest, (x, y), (-6, 3), textcoords="offset points", ha="right", fontsize=7)
    ax.set(xlabel="largest coupling dropped", ylabel="mean loss error (% of L(0))")
    ax.set(title="three contexts, different structures", xlim=(4e-5, 0.15), ylim=(2e-3, 10))
    return figure


PICTURES = (loss, routing, contexts, dropped)


def main(folder: Path = FOLDER) -> None:
    """Write `reduction_*.png` into the folder."""
    write("reduction", PICTURES, folder)
