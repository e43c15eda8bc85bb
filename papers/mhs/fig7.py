"""MHS Fig. 7: the example of App. A, a hierarchy of four items and a linear network's modes."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

ITEMS = ("Canary", "Salmon", "Oak", "Rose")
"""The four items."""

FEATURES = ("Grow", "Move", "Roots", "Fly", "Swim", "Leaves", "Petals")
"""Rows of the targets: one for all items, one each for animals and plants, one for each item."""

NONE = "ours: MHS gives none"
"""The source of settings that are not in the paper."""

SETTINGS = {
    "hidden": Setting(64, "hidden neurons", NONE),
    "scale": Setting(1e-3, "standard deviation of the initial weights", NONE),
    "learning_rate": Setting(0.05, "gradient step on the mean loss", NONE),
    "steps": Setting(1200, "gradient steps", "ours: until all modes are learned"),
    "every": Setting(4, "steps between recordings", "ours"),
    "seeds": Setting(10, "repetitions", NONE, quick=3),
    "key": Setting(0, "random key of the draw", "ours"),
}


def task() -> nr.Dataset:
    """One-hot items, and the features of each (MHS App. A.1)."""
    return nr.Dataset(
        {"x": np.eye(4)}, {"y": nr.tasks.hierarchy(depth=2).T}, labels={"item": np.arange(1, 5)}
    )


def compute(settings: Settings) -> Table:
    """Linear networks, the strengths of their modes, and the closed form from each start."""
    import jax
    import xarray

    s = settings
    data = task()
    arch = nr.Architecture.chain(4, s["hidden"], 7)
    net, race = nr.GDLN(arch), nr.reduce(arch, data)
    left, right = (np.hstack([b.basis[v] for b in race.blocks]) for v in ("y", "x"))
    simulated, predicted, runs, theory = [], [], [], []
    times = s["learning_rate"] * np.arange(0, s["steps"] + 1, s["every"])
    for key in jax.random.split(jax.random.key(s["key"]), s["seeds"]):
        weights = net.init(key, s["scale"])
        run = nr.train(
            net,
            weights,
            data,
            learning_rate=s["learning_rate"],
            steps=s["steps"],
            record_at=np.arange(0, s["steps"] + 1, s["every"]),
            record={"weights": True},
        )
        form = race.closed_form(race.start(weights))
        if not form.is_complete:
            raise AssertionError("modes of a linear network have a closed form")
        first, second = (np.asarray(w) for w in run.values["weights"].values())
        simulated.append(nr.analysis.projected(second @ first, left, right))
        predicted.append(np.stack([form.modes[b.name].value(times) for b in race.blocks], 1))
        runs.append(run.loss)
        theory.append(form.loss(times))
    y = data.y["y"].T
    u, size, vt = np.linalg.svd(y, full_matrices=False)
    sign = np.sign(vt[np.arange(4), np.abs(vt.round(9)).argmax(axis=1)])
    return xarray.Dataset(
        {
            "simulated": (("seed", "time", "mode"), np.stack(simulated)),
            "predicted": (("seed", "time", "mode"), np.stack(predicted)),
            "loss": (("seed", "time"), np.stack(runs)),
            "loss_predicted": (("seed", "time"), np.stack(theory)),
            "y": (("feature", "item"), y),
            "u": (("feature", "concept"), u * sign),
            "s": ("concept", size),
            "vt": (("concept", "item"), sign[:, None] * vt),
        },
        {"time": times, "feature": list(FEATURES), "item": list(ITEMS)},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """What the singular vectors separate, and how close the closed form is to the simulation."""
    size, vt = table["s"].to_numpy(), table["vt"].to_numpy()
    simulated, predicted = table["simulated"].to_numpy(), table["predicted"].to_numpy()
    top = size.max()
    apart = np.abs(simulated - predicted)
    ends = np.abs(simulated[:, -1] - np.sort(size)[::-1]).max() / top
    loss, theory = table["loss"].to_numpy(), table["loss_predicted"].to_numpy()
    time = table["time"].to_numpy()
    gap = [
        nr.compare(nr.Trajectory(time, a), nr.Trajectory(time, b))
        for a, b in zip(loss, theory, strict=True)
    ]
    signs = np.sign(vt[1].round(9))
    return (
        stated(
            "singular-values",
            "(a) singular values of the targets",
            "√7, √3, 1, 1: " + ", ".join(f"{v:.4f}" for v in (7**0.5, 3**0.5, 1, 1)),
            ", ".join(f"{v:.4f}" for v in size),
            float(np.allclose(size, [7**0.5, 3**0.5, 1, 1])),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "second-mode",
            "(a) the second row of Vᵀ, canary, salmon, oak, rose",
            "one sign for animals, the other for plants",
            ", ".join(f"{v:+.3f}" for v in vt[1]),
            float((signs == signs[0] * np.array([1, 1, -1, -1])).all()),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "strengths",
            "(c) strengths of the modes, closed form (MHS Eq. 7) from the actual weights against "
            "simulation, relative to the largest; mean and maximum over times, modes and seeds",
            "“near exact”: ≤ 1 % on average",
            f"{apart.mean() / top:.2%}, {apart.max() / top:.1%}",
            apart.mean() / top,
            most=0.01,
        ),
        stated(
            "loss",
            "(c) loss, closed form against simulation, mean |ΔL| / L(0), worst seed",
            "“near exact”: ≤ 1 %",
            f"{max(c.mean for c in gap):.2%}",
            max(c.mean for c in gap),
            most=0.01,
        ),
        stated(
            "final-strengths",
            "(c) final strengths against λ/δ, relative to the largest, worst mode and seed",
            "“have learned the dataset statistics”: ≤ 1 %",
            f"{ends:.1e}",
            ends,
            most=0.01,
        ),
    )


def draw(table: Table) -> Picture:
    """(a) the targets, (b) their decomposition, (c) the strengths of the modes over time."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import cycle_colour, draw_matrix, shade

    s = settings_of(table)
    figure, axes = plt.subplot_mosaic(
        [["y", "u", "s", "vt"], ["c", "c", "c", "c"]], figsize=(6.6, 4.2), height_ratios=(1, 1.3)
    )
    draw_matrix(table["y"], rows=FEATURES, columns=ITEMS, title="(a) Σ = targets", ax=axes["y"])
    concepts = [str(k + 1) for k in range(4)]
    draw_matrix(table["u"], columns=concepts, title="(b1) U", scale="entry", ax=axes["u"])
    values = np.diag(table["s"].to_numpy())
    draw_matrix(values, columns=concepts, title="(b2) S", scale="singular value", ax=axes["s"])
    draw_matrix(
        table["vt"], rows=concepts, columns=ITEMS, title="(b3) Vᵀ", scale="entry", ax=axes["vt"]
    )
    epoch = table["time"].to_numpy() / s["learning_rate"]
    ax = axes["c"]
    for k in range(4):
        light, dark = shade(cycle_colour(k), 0.35), shade(cycle_colour(k), -0.55)
        runs = table["simulated"].to_numpy()[:, :, k]
        ax.plot(epoch, runs[1:].T, color=light, linewidth=0.6, alpha=0.5)
        ax.plot(epoch, runs[0], color=light, linewidth=2.6, label="simulated" if not k else None)
        predicted = table["predicted"].to_numpy()[0, :, k]
        dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
        ax.plot(epoch, predicted, color=dark, label="closed form" if not k else None, **dashes)
    for end in np.unique(table["s"].to_numpy().round(6)):
        those = [str(k + 1) for k in np.flatnonzero(np.isclose(table["s"].to_numpy(), end))]
        name = f"mode{'s' if len(those) > 1 else ''} {', '.join(those)}"
        ax.text(epoch[-1], end + 0.05, name, ha="right", va="bottom", fontsize=7)
    ax.set(title="(c) strengths of the modes", xlabel="epoch", ylabel="strength π")
    ax.legend()
    return figure


FIGURE = Figure(
    name="mhs/fig7",
    title="Four items: the modes of a linear network, in closed form and trained",
    states=(
        "The singular vectors of a hierarchical dataset separate its levels, animals from plants "
        "and then the items; the strengths of the modes of a linear network grow from zero to the "
        "dataset's singular values, and the closed form agrees near exactly with training "
        "(Fig. 7, App. A.1, Eq. 7)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
