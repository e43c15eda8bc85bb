"""Fast and slow gates without labels: do later blocks of a task take less time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Setting, Settings
from papers.learned_gates.phase import network, task

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

OURS = "ours"

SETTINGS = {
    "inputs": Setting(20, "inputs, white", OURS),
    "outputs": Setting(10, "outputs", OURS),
    "lengths": Setting((0.5, 1.0, 2.0, 5.0, 10.0), "block lengths", OURS, quick=(1.0,)),
    "blocks": Setting(20, "blocks, which alternate between two teachers", OURS),
    "tau_w": Setting(1.3, "τ_W", OURS),
    "tau_c": Setting(0.03, "τ_c of fast gates; slow ones have τ_W", OURS),
    "budget": Setting(1.0, "fast gates: strength of the penalty ½(Σc − 1)²; slow: none", OURS),
    "scale": Setting(0.1, "standard deviation of initial weights", OURS),
    "gate_scale": Setting(0.1, "standard deviation of initial gates around ½", OURS),
    "level": Setting(0.1, "share of ½⟨‖y‖²⟩ that counts as learned within a block", OURS),
    "moments": Setting(100, "recorded moments of each block", OURS),
    "seeds": Setting(10, "draws of teachers and start", OURS, quick=2),
}

FIRST, LAST = 4, 19
"""The blocks that are compared, counted from 0."""

KINDS = ("fast", "slow")


def maps_of(settings: Settings) -> np.ndarray:
    """Two teachers per seed, with entries of variance 1/inputs."""
    s = settings
    draws = [
        np.random.default_rng([seed, 7]).normal(size=(2, s["outputs"], s["inputs"]))
        for seed in range(s["seeds"])
    ]
    return np.array(draws) / np.sqrt(s["inputs"])


def compute(settings: Settings) -> xarray.Dataset:
    """Times within blocks, and the cosines of the pathways with the teachers, of both kinds."""
    import jax
    import xarray

    s, maps = settings, maps_of(settings)
    shape = (len(KINDS), len(s["lengths"]), s["seeds"])
    times, cosines = np.empty((*shape, s["blocks"])), np.empty(shape)
    for k, kind in enumerate(KINDS):
        rate = s["tau_w"] / s["tau_c"] if kind == "fast" else 1.0
        options = {"budget": s["budget"]} if kind == "fast" else {}
        net = network(s["inputs"], s["outputs"], rate=rate, **options)
        scale = {e: s["gate_scale" if e in net.gate_edges else "scale"] for e in net.arch.matrices}
        for j, length in enumerate(s["lengths"]):
            span = length / s["tau_w"]  # time in units of τ_W
            within = span * np.linspace(0, 1, s["moments"], endpoint=False) ** 2  # early ones dense
            grid = np.append(
                (span * np.arange(s["blocks"])[:, None] + within).ravel(), s["blocks"] * span
            )
            for seed in range(s["seeds"]):
                data = task(maps[seed])
                blocks = nr.dynamics.Schedule.blocks(data, "part", length=span, count=s["blocks"])
                start = net.init(jax.random.key(seed), scale)
                start |= {e: np.maximum(start[e], 0.0) for e in net.gate_edges}
                run = nr.flow(net, start, data, times=grid, schedule=blocks, rtol=1e-5, atol=1e-7)
                size = 0.5 * np.sum(maps[seed] ** 2, axis=(1, 2))  # ½⟨‖y‖²⟩ of each teacher
                each = [blocks.time_to(run, float(s["level"] * v)) for v in size]
                found = np.where(np.arange(s["blocks"]) % 2 == 0, each[0], each[1])
                times[k, j, seed] = found * s["tau_w"]
                cosines[k, j, seed] = cosine(run.final, maps[seed])
    return xarray.Dataset(
        {
            "time": (("kind", "length", "seed", "block"), times),
            "cosine": (("kind", "length", "seed"), cosines),
        },
        {"kind": list(KINDS), "length": list(s["lengths"])},
    )


def cosine(weights: dict[str, np.ndarray], maps: np.ndarray) -> float:
    """Mean cosine of the pathways with the teachers, each with its own, the better way round."""
    paths = np.array([np.ravel(weights[e]) for e in ("a_y", "b_y")])
    flat = maps.reshape(2, -1)
    each = (paths @ flat.T) / np.outer(np.linalg.norm(paths, axis=1), np.linalg.norm(flat, axis=1))
    return float(max(np.trace(each), each[0, 1] + each[1, 0]) / 2)


def falls(t: xarray.Dataset, kind: str, length: float) -> np.ndarray:
    """By how much the time within a block falls from the first block compared to the last.

    A block in which the level is not reached counts with the block's length, at least.
    """
    here = t["time"].sel(kind=kind, length=length).to_numpy()
    filled = np.where(np.isnan(here), length, here)
    return filled[:, FIRST] / np.maximum(filled[:, LAST], 1e-6)


def measures(table: xarray.Dataset | None = None) -> tuple[Measure, ...]:
    """Where later blocks take less time, and how like the teachers the pathways become."""
    lengths = (0.5, 1.0, 2.0, 5.0, 10.0) if table is None else table["length"].to_numpy().tolist()
    found = []
    for kind in KINDS:
        for length in lengths:
            name = f"{kind}-{length:g}".replace(".", "")
            words = f"{kind} gates, blocks of {length:g}"
            read = lambda t, kind=kind, length=length: falls(t, kind, length)
            found.append(
                Measure(
                    f"fall-{name}",
                    f"{words}: time to 10 % in block {FIRST} over that in block {LAST}, "
                    "geometric mean",
                    read,
                    least=3.0 if kind == "fast" and length in (1.0, 2.0, 5.0) else None,
                    most=3.0 if kind == "slow" or length == 10.0 else None,
                    origin=1.0,
                    scale="log",
                )
            )
            found.append(
                Measure(
                    f"cosine-{name}",
                    f"{words}: cosine of pathways and teachers, mean",
                    lambda t, kind=kind, length=length: (
                        t["cosine"].sel(kind=kind, length=length).to_numpy()
                    ),
                )
            )
    return tuple(found)


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """(a), (b) the time to 10 % over blocks, (c) cosines over the block length."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(8.6, 2.8), layout="constrained")
    lengths = table["length"].to_numpy()
    styles = ["-", "--", ":", "-.", (0, (5, 1))]
    for ax, kind, letter in zip(axes, KINDS, "ab", strict=False):
        for length, style in zip(lengths, styles, strict=False):
            here = table["time"].sel(kind=kind, length=length).to_numpy() / length
            reached = np.flatnonzero(np.isfinite(here).any(axis=0))
            middle = np.nanmedian(here[:, reached], axis=0) if len(reached) else []
            ax.plot(reached, middle, linestyle=style, label=f"{length:g}")
        ax.set(xlabel="block", ylabel="time to 10 % / block length", ylim=(0, 1))
        ax.set_title(f"({letter}) {kind} gates")
        ax.legend(title="block length", fontsize="x-small")
    for kind, style in zip(KINDS, ("o-", "s--"), strict=True):
        axes[2].plot(lengths, table["cosine"].sel(kind=kind).mean("seed"), style, label=kind)
    axes[2].set(xscale="log", xlabel="block length", ylabel="cosine with the teachers")
    axes[2].set_title("(c) pathways and teachers")
    axes[2].legend()
    return figure


FIGURE = Figure(
    name="learned_gates/learners",
    title="Fast and slow gates without labels",
    states=(
        "Two teachers come in turns, and nothing says which. Where later blocks take less time, "
        "pathways hold a teacher each, and gates switch between them."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
