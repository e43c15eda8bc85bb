"""Which gating do learned gates find, and is it the winner of the contest?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from evidence import Found, Measure
from papers.figure import Figure, Setting, Settings

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

OURS = "ours"

SETTINGS = {
    "deltas": Setting((0.4, 1.2), "Δ of the extended XoR", OURS),
    "contexts": Setting(
        3, "contexts of eight items each, which share a part of their targets", OURS
    ),
    "pathways": Setting(4, "pathways with learned gates", OURS),
    "hidden": Setting(32, "neurons of each pathway, in the contest and in the network", OURS),
    "scale": Setting(1e-3, "standard deviation of initial weights", OURS),
    "gate_scale": Setting(
        0.1, "initial gates are the size of a normal draw of this deviation", OURS
    ),
    "gate_rate": Setting(1.0, "rate of the gates; no penalties", OURS),
    "learning_rate": Setting(0.05, "learning rate", OURS),
    "steps": Setting(12_000, "steps", OURS, quick=6000),
    "seeds": Setting(20, "random starts", OURS, quick=4),
}

Candidates = Mapping[str, "tuple[nr.Architecture, nr.Dataset]"]


def problems(settings: Settings) -> dict[str, tuple[nr.Dataset, str, Candidates]]:
    """Every task with the label that gates belong to, and its natural gatings."""
    s = settings
    total = s["pathways"] * s["hidden"]
    found: dict[str, tuple[nr.Dataset, str, Candidates]] = {}
    for delta in s["deltas"]:
        data = nr.tasks.extended_xor(float(delta))
        found[f"XoR, Δ = {delta:g}"] = (
            data,
            "sample",
            {
                "xor": nr.tasks.xor_pathways(data, total=total),
                "linear": nr.tasks.linear_pathways(data, total=total),
            },
        )
    items = nr.tasks.contextual(contexts=s["contexts"])
    found["items in contexts"] = (
        items,
        "context",
        {
            "all but one": nr.tasks.common_and_all_but_one(items, hidden=s["hidden"]),
            "single": nr.tasks.common_and_single(items, hidden=s["hidden"]),
        },
    )
    return found


def likeness(
    gates: Mapping[str, np.ndarray],
    strength: Mapping[str, float],
    arch: nr.Architecture,
    data: nr.Dataset,
) -> float:
    """How like a gating the learned gates are: 1 if every pathway has the gates of one of its own.

    Mean over pathways of the largest cosine of its gates on all samples with those of a pathway of
    the candidate; a pathway counts by its strength times the root mean square of its gates.
    """
    masks = [np.asarray(data.gates.get(p, np.ones(data.n_samples)), float) for p in arch.hidden]
    total = weight = 0.0
    for node, gate in gates.items():
        size = np.linalg.norm(gate)
        if size == 0:
            continue
        best = max(float(gate @ m / (size * np.linalg.norm(m))) for m in masks)
        total, weight = total + best * strength[node] * size, weight + strength[node] * size
    return float(total / weight) if weight else 0.0


def compute(settings: Settings) -> xarray.Dataset:
    """The winner of every contest, and how like each candidate the gates of every seed end."""
    import jax
    import xarray

    s = settings
    names, winners, likes, losses = [], [], [], []
    for name, (data, label, candidates) in problems(s).items():
        found = nr.contest(candidates, scale=s["scale"], criterion=0.5, relative=True, leads=False)
        times = found.frame().set_index("candidate")["time"]
        order = [str(times.astype(float).idxmin()), *candidates]
        values = np.unique(np.asarray(data.labels[label])).tolist()
        if label in data.x:  # one input node of items and contexts
            data = nr.tasks.contextual(contexts=s["contexts"], joined=True)
        paths = {f"p{k + 1}": s["hidden"] for k in range(s["pathways"])}
        inputs = {v: x.shape[1] for v, x in data.x.items()}
        outputs = {v: y.shape[1] for v, y in data.y.items()}
        arch = nr.Architecture.parallel(inputs, paths, outputs)
        net = nr.LearnedGates(arch, labels={label: values}, rate=s["gate_rate"])
        keys = jax.random.split(jax.random.key(0), s["seeds"])
        draws = [net.init(key, s["scale"]) for key in keys]
        start = {e: np.stack([np.asarray(d[e]) for d in draws]) for e in net.arch.matrices}
        factor = s["gate_scale"] / s["scale"]
        for e in net.gate_edges:
            start[e] = factor * np.abs(start[e] - 1 / s["pathways"])
        run = nr.train_ensemble(
            net, data, seeds=s["seeds"], weights=start, learning_rate=s["learning_rate"],
            steps=s["steps"], record_every=s["steps"],
        )  # fmt: skip
        rows = []
        for seed in range(s["seeds"]):
            final = {e: w[seed] for e, w in run.final.items()}
            gates = {n: np.asarray(g) for n, g in net.activity(final, data).items()}
            size = {n: strength(net.graph, final, n) for n in net.nodes}
            rows.append([likeness(gates, size, *candidates[c]) for c in candidates])
        like = np.array(rows)
        names.append(name)
        winners.append(list(candidates).index(order[0]))
        likes.append(like)
        losses.append(run.loss[:, -1] / run.loss[:, 0])
    return xarray.Dataset(
        {
            "winner": ("task", winners),
            "like": (("task", "seed", "candidate"), likes),
            "loss": (("task", "seed"), losses),
        },
        {"task": names},
    )


def strength(arch: nr.Architecture, weights: Mapping[str, np.ndarray], node: str) -> float:
    """The norm of the map of a pathway, all its inputs side by side."""
    into = np.hstack([weights[e] for e in arch.incoming[node]])
    return float(np.linalg.norm(np.vstack([weights[e] for e in arch.outgoing[node]]) @ into))


def share(t: xarray.Dataset, task: int) -> Found:
    """On how many seeds the gates are most like the winner, with a 95 % interval."""
    from scipy.stats import binomtest

    like = t["like"].to_numpy()[task]
    hits = int((like.argmax(axis=1) == int(t["winner"][task])).sum())
    ends = binomtest(hits, len(like)).proportion_ci(0.95, method="wilson")
    return Found(hits / len(like), float(ends.low), float(ends.high), len(like))


TASKS = ("xor-small", "xor-large", "contexts")
"""The tasks, in the order of the data."""


def measures(table: xarray.Dataset | None = None) -> tuple[Measure, ...]:
    """How often the winner is found, and how like it the gates are."""
    words = ("XoR, Δ = .4", "XoR, Δ = 1.2", "items in contexts")
    found = []
    for k, (name, said) in enumerate(zip(TASKS, words, strict=True)):
        found.append(
            Measure(
                f"found-{name}",
                f"{said}: share of seeds on which learned gates are most like the contest's winner",
                lambda t, k=k: share(t, k),
                least=0.5,
            )
        )
        found.append(
            Measure(
                f"like-{name}",
                f"{said}: likeness of the gates and the winner's (1: the same), mean",
                lambda t, k=k: t["like"].to_numpy()[k][:, int(t["winner"][k])],
            )
        )
    return tuple(found)


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """How like each candidate the gates of every seed are."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(8.0, 2.6), layout="constrained")
    for ax, k, letter in zip(axes, range(3), "abc", strict=True):
        like, winner = table["like"].to_numpy()[k], int(table["winner"][k])
        ax.plot(like[:, winner], like[:, 1 - winner], "o", color="black", mfc="none")
        ax.axline((0.8, 0.8), slope=1, color="0.6", linewidth=0.8)
        ax.set(xlim=(0.4, 1.02), ylim=(0.4, 1.02), xlabel="likeness to the winner")
        ax.set(ylabel="to the other", title=f"({letter}) {table['task'].to_numpy()[k]}")
    return figure


FIGURE = Figure(
    name="learned_gates/winner",
    title="Do learned gates find the winner?",
    states=(
        "Gates that are learned from small random ones, compared with the gatings that enter a "
        "contest: on how many seeds are they most like the one that is predicted to learn first?"
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
