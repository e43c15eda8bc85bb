"""Combinations that were never seen: modules with given and learned gates, and dense networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Setting, Settings

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

OURS = "ours"

SETTINGS = {
    "items": Setting(6, "items", OURS),
    "contexts": Setting(3, "contexts, in which an item has other features", OURS),
    "roles": Setting(2, "roles, which say where in the output the features go", OURS),
    "features": Setting(4, "features of ±1", OURS),
    "held_out": Setting(0.25, "share of the combinations that is held out", OURS),
    "hidden": Setting(16, "neurons of each module; dense networks have as many in total", OURS),
    "scale": Setting(1e-3, "standard deviation of initial weights", OURS),
    "gate_scale": Setting(0.1, "the same of the weights of gating networks", OURS),
    "gate_rate": Setting(1.0, "rate of the gates; no penalties", OURS),
    "learning_rate": Setting(0.2, "learning rate", OURS),
    "steps": Setting(20_000, "steps", OURS, quick=4000),
    "seeds": Setting(10, "draws of features, of what is held out, and of the start", OURS, quick=2),
}

NETWORKS = {
    "given": "modules, gates given",
    "learned": "modules, gates learned",
    "linear": "dense, linear",
    "relu": "dense, ReLU",
}
"""The networks in the order of the data, with their names on the page."""

Problem = tuple["nr.Network", Mapping[str, Any], "nr.Dataset"]


def problems(settings: Settings, seed: int) -> dict[str, Problem]:
    """Every network with the scales of its start and the data it reads."""
    s = settings
    names = ("items", "contexts", "roles", "features", "held_out")
    data = nr.tasks.combinations(**{name: s[name] for name in names}, key=seed)
    arch, gated = nr.tasks.modular(data, hidden=s["hidden"])
    free, plain = nr.tasks.modular(data, hidden=s["hidden"], gated=False)
    modules = [node for node in free.hidden if node != "shared"]
    values = {n: np.unique(np.asarray(data.labels[n])).tolist() for n in ("context", "role")}
    gates = nr.LearnedGates(free, modules, labels=values, kind="sigmoid", rate=s["gate_rate"])
    inputs = {node: x.shape[1] for node, x in data.x.items()}
    outputs = {node: y.shape[1] for node, y in data.y.items()}
    dense = nr.Architecture.parallel(inputs, {"h": s["hidden"] * len(modules)}, outputs)
    nets = {
        "given": (nr.GDLN(arch), gated),
        "learned": (gates, plain),
        "linear": (nr.GDLN(dense), data),
        "relu": (nr.ReLUNetwork(dense), data),
    }
    own = dict.fromkeys(gates.gate_edges, s["gate_scale"])
    return {
        name: (net, dict.fromkeys(net.arch.matrices, s["scale"]) | (own if net is gates else {}), d)
        for name, (net, d) in nets.items()
    }


def compute(settings: Settings) -> xarray.Dataset:
    """How much every network knows of what it was shown and of what was held out."""
    import jax
    import xarray

    s = settings
    known = np.empty((len(NETWORKS), s["seeds"], 2))
    for seed in range(s["seeds"]):
        for k, (net, scale, data) in enumerate(problems(s, seed).values()):
            parts = nr.tasks.split_held_out(data)
            start = net.init(jax.random.key(seed), scale)
            run = nr.train(
                net, start, parts[0], learning_rate=s["learning_rate"], steps=s["steps"],
                record_every=s["steps"],
            )  # fmt: skip
            for j, part in enumerate(parts):
                known[k, seed, j] = 1 - net.loss(run.final, part) / nr.dataset.zero_loss(part)
    return xarray.Dataset(
        {"known": (("network", "seed", "part"), known)},
        {"network": list(NETWORKS), "part": ["trained", "held out"]},
    )


BOUNDS = {
    ("trained", "given"): (0.9, None),
    ("trained", "learned"): (0.9, None),
    ("trained", "relu"): (0.9, None),
    ("held out", "given"): (0.9, None),
    ("held out", "learned"): (0.9, None),
    ("held out", "linear"): (None, 0.5),
    ("held out", "relu"): (None, 0.5),
}
"""The least and the most of what each network is to know; set before anything was computed."""


def measures(table: xarray.Dataset | None = None) -> tuple[Measure, ...]:
    """What is known of both parts by every network."""
    found = []
    for part in ("trained", "held out"):
        for name, words in NETWORKS.items():
            least, most = BOUNDS.get((part, name), (None, None))
            found.append(
                Measure(
                    f"{part.split()[0]}-{name}",
                    f"{words}: 1 − L/½⟨‖y‖²⟩ on combinations {part}, mean",
                    lambda t, part=part, name=name: (
                        t["known"].sel(network=name, part=part).to_numpy()
                    ),
                    least=least,
                    most=most,
                )
            )
    return tuple(found)


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """What every network knows, a point for each seed, and means."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7.0, 2.6), layout="constrained", sharey=True)
    for ax, part, letter in zip(axes, ("trained", "held out"), "ab", strict=True):
        for k, name in enumerate(NETWORKS):
            here = table["known"].sel(network=name, part=part).to_numpy()
            ax.plot(np.full(len(here), k), here, "o", color="0.5", mfc="none", markersize=4)
            ax.plot(k, here.mean(), "_", color="black", markersize=22, markeredgewidth=2)
        ax.axhline(0, color="0.6", linewidth=0.8)
        words = [said.replace(", ", ",\n") for said in NETWORKS.values()]
        ax.set_xticks(range(len(NETWORKS)), words, fontsize="small")
        ax.set(title=f"({letter}) combinations {part}", xlim=(-0.5, len(NETWORKS) - 0.5))
    axes[0].set_ylabel("known: 1 − L/½⟨‖y‖²⟩")
    return figure


FIGURE = Figure(
    name="learned_gates/systematic",
    title="Combinations that were never seen",
    states=(
        "Items in contexts and roles, of which some combinations are held out: what four networks "
        "know of those after they were trained on the others."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
