"""NRR Fig. 3: XoR learned by ReLU networks, and by the gated linear network that models them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "hidden": Setting(128, "N_h, hidden neurons in all", "NRR Fig. 3, caption"),
    "scale": Setting(2e-4, "σ₀, standard deviation of the initial weights", "NRR Fig. 3, caption"),
    "learning_rate": Setting(0.4, "1/τ with τ = 5/2", "NRR Fig. 3, caption"),
    "steps": Setting(120, "gradient steps", "ours: until the loss has vanished; NRR gives none"),
    "seeds": Setting(10, "repetitions, for each network", "NRR Fig. 3, caption", quick=3),
    "key": Setting(0, "random key of the first draw", "ours"),
    "within": Setting(
        20.0,
        "a neuron is of the type of a corner within this many degrees",
        "ours; the types are 90 apart",
    ),
}


def compute(settings: Settings) -> Table:
    """ReLU networks, four-pathway GDLNs from equally small weights, and their race."""
    import jax
    import xarray

    s = settings
    data = nr.tasks.xor()
    arch, gated = nr.tasks.xor_pathways(data, total=s["hidden"])
    net, race = nr.GDLN(arch), nr.reduce(arch, gated)
    of_relu, of_gated = jax.random.split(jax.random.key(s["key"]))
    how = {name: s[name] for name in ("seeds", "scale", "learning_rate", "steps")}
    relu = nr.train_ensemble(nr.ReLUNetwork((2, s["hidden"], 1)), data, key=of_relu, **how)
    simulated = nr.train_ensemble(net, gated, key=of_gated, **how)
    predicted = [
        race.solve(
            times=simulated.time,
            start=race.start(net.init(key, s["scale"])),
            learning_rate=s["learning_rate"],
        ).loss
        for key in jax.random.split(of_gated, s["seeds"])
    ]
    over_time = ("seed", "time")
    return xarray.Dataset(
        {
            "relu": (over_time, relu.loss),
            "simulated": (over_time, simulated.loss),
            "predicted": (over_time, np.stack(predicted)),
            "reads": (("seed", "neuron", "input"), relu.final["W1"]),
            "writes": (("seed", "neuron"), relu.final["W2"][:, 0]),
            "x": (("sample", "input"), data.x["x"]),
            "y": ("sample", data.y["y"][:, 0]),
        },
        {"time": simulated.time, "seed": np.arange(s["seeds"])},
    )


def cell_types(table: Table, within: float) -> np.ndarray:
    """(4,): the share of the ReLU networks' strength in neurons that point to each sample.

    A neuron's strength is ‖w_in‖ |w_out|. It points to a sample if that is at most `within` degrees
    away from w_in. If the shares sum to less than 1, the remaining neurons point to none.
    """
    reads, x = table["reads"].to_numpy(), table["x"].to_numpy()
    size = np.linalg.norm(reads, axis=-1)
    strength = size * np.abs(table["writes"].to_numpy())
    cosine = np.einsum("sni,ki->snk", reads, x) / (size[..., None] * np.linalg.norm(x, axis=-1))
    near = cosine >= np.cos(np.deg2rad(within))
    return (strength[..., None] * near).sum(axis=(0, 1)) / strength.sum()


def tracks(table: Table) -> list[nr.trajectory.Comparison]:
    """The ReLU networks against the mean of the predicted races, seed by seed."""
    time = table["time"].to_numpy()
    mean = nr.Trajectory(time, table["predicted"].to_numpy().mean(axis=0))
    return [nr.compare(mean, nr.Trajectory(time, run)) for run in table["relu"].to_numpy()]


def _types(table: Table) -> np.ndarray:
    return cell_types(table, settings_of(table)["within"])


MEASURES = {
    "tracks": Measure(
        "tracks",
        "ReLU networks against the predicted race, mean |ΔL| / L(0)",
        lambda t: np.array([c.mean for c in tracks(t)]),
        most=0.05,
        words="closely track",
    ),
    "types": Measure(
        "types",
        "functional cell types: share of the ReLU networks' strength near a sample",
        lambda t: float(_types(t).sum()),
        least=0.95,
        origin=1.0,
        words="four functional cell types",
    ),
    "weakest": Measure(
        "weakest",
        "strength of the weakest of the four types",
        lambda t: float(_types(t).min()),
        least=0.05,
        words="four functional cell types",
    ),
}
"""Numbers of this figure with their bounds: for its agreement and for the ledger of claims."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Theory against the GDLN, ReLU networks against theory, and the cell types."""
    time = table["time"].to_numpy()

    def runs(name: str) -> list[nr.Trajectory]:
        return [nr.Trajectory(time, loss) for loss in table[name].to_numpy()]

    simulated, predicted = runs("simulated"), runs("predicted")
    exact = [nr.compare(a, b).mean for a, b in zip(simulated, predicted, strict=True)]
    near, shares = tracks(table), _types(table)
    ends = table["relu"].to_numpy()[:, -1] / table["relu"].to_numpy()[:, 0]
    return (
        stated(
            "race",
            "race from the actual weights against the simulated GDLN, mean |ΔL| / L(0), worst seed",
            "≤ 1 %",
            f"{100 * max(exact):.2g} %",
            max(exact),
            most=0.01,
        ),
        MEASURES["tracks"],
        stated(
            "shifted",
            "the same, with each network shifted in time",
            "reported",
            f"{100 * np.mean([c.mean_after_shift for c in near]):.2g} %, shifts of time "
            f"{min(c.shift for c in near):.1f} … {max(c.shift for c in near):.1f}",
        ),
        replace(
            MEASURES["types"],
            beside=f"within {settings_of(table)['within']:g}°: "
            + ", ".join(f"{share:.0%}" for share in shares),
        ),
        MEASURES["weakest"],
        stated(
            "learned",
            "XoR is learned: final over initial loss of the ReLU networks, worst seed",
            "≤ 1 %",
            f"{ends.max():.1e}",
            ends.max(),
            most=0.01,
        ),
    )


def draw(table: Table) -> Picture:
    """(a) the task and the ReLU networks' input weights, (b) the GDLN, (c) losses."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves, draw_graph

    settings = settings_of(table)
    figure, axes = plt.subplot_mosaic(
        [["a", "b"], ["c", "c"]], figsize=(3.4, 4.8), height_ratios=(1.25, 1.05)
    )
    _draw_task(table, axes["a"])
    arch, gated = nr.tasks.xor_pathways(nr.tasks.xor(), total=settings["hidden"])
    names = {name: str(k + 1) for k, name in enumerate(arch.hidden)}
    draw_graph(arch.sizes, arch.edges, gates=gated.gates, labels=names, ax=axes["b"])
    axes["b"].set_title("(b) GDLN, a pathway\nfor each sample of (a)")
    for name, label, kind in (
        ("relu", "ReLU networks", "relu"),
        ("simulated", "GDLN, simulated", "simulation"),
        ("predicted", "GDLN, predicted", "theory"),
    ):
        draw_curves(
            table["time"] / settings["learning_rate"], {label: table[name]}, kind=kind, ax=axes["c"]
        )
    axes["c"].set(title="(c) loss", xlabel="epoch", ylabel="loss", ylim=(0, None))
    return figure


def _draw_task(table: Table, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    reads = table["reads"].to_numpy()[0]
    for k, end in enumerate(1.3 * reads / np.abs(reads).max()):
        name = None if k else "weights"
        ax.plot(*zip((0, 0), end, strict=True), color=COLOURS["neutral"], linewidth=0.6, label=name)
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    for sign, fill, marker, name in ((1, "black", "o", "+1"), (-1, "white", "s", "−1")):
        look = {"facecolor": fill, "edgecolor": "black", "marker": marker, "linewidth": 0.8}
        ax.scatter(*x[y == sign].T, s=40, label=f"y = {name}", zorder=3, **look)
    for k, at in enumerate(x):
        beside = {"xytext": (7 * np.sign(at[0]), 0), "textcoords": "offset points"}
        ax.annotate(str(k + 1), at, ha="center", va="center", fontsize=7, **beside)
    ax.set(
        xlim=(-1.8, 1.8),
        ylim=(-1.6, 3.0),
        aspect="equal",
        title="(a) ReLU weights $W_1$",
        xticks=(-1, 1),
        yticks=(-1, 1),
        xlabel="$x_1$",
        ylabel="$x_2$",
    )
    ax.legend(loc="upper center", ncols=2, handletextpad=0.3, columnspacing=0.8, handlelength=1)


FIGURE = Figure(
    name="nrr/fig3",
    title="XoR: a four-pathway GDLN and the ReLU networks that it models",
    states=(
        "Trained on XoR from small weights, the neurons of a ReLU network fall into four "
        "functional types, one for each sample; a GDLN with one pathway per sample has the "
        "same loss over time, and its analytical solution is closely tracked by the ReLU "
        "networks (Fig. 3, App. A.1)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
