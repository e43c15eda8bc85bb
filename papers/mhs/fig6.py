"""MHS Fig. 6: two hidden layers, many runs of the ReLU network and of gated ones."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, noted, settings_of, stated
from papers.mhs import depth
from papers.mhs.contextual import SCRIPTS, final_activity, shares_by_number
from papers.mhs.depth import staged_runs, stereotype

SETTINGS = {
    "contexts": Setting(3, "contexts, the hierarchy in each", "MHS §6"),
    "hidden": Setting(420, "neurons of each hidden layer", f"{SCRIPTS}; MHS gives none"),
    "scale": Setting(
        6e-4,
        "standard deviation of the initial weights",
        f"{SCRIPTS}; MHS Table 1 says 1e-7",
    ),
    "step": Setting(0.001, "gradient step on the loss summed over samples", "MHS Table 1"),
    "steps": Setting(30000, "gradient steps", f"{SCRIPTS}; MHS Table 1 says 8000"),
    "every": Setting(100, "steps between recordings", "ours"),
    "seeds": Setting(100, "runs of each network", "MHS Fig. 6, caption", quick=3),
    "at_once": Setting(100, "runs computed side by side; fewer need less memory", "ours", quick=3),
    "rule": Setting(
        "sign",
        "how wide the pathways are; see papers.mhs.table",
        "ours, from the ReLU network's width alone",
        choices=("sign", "equal", "half", "authors"),
    ),
    "begins": Setting(
        500, "epoch at which the staged ReLN begins to learn", f"MHS §6; by hand in {SCRIPTS}"
    ),
    "opens": Setting(
        12000,
        "epoch at which the contextual pathways of the staged ReLN open",
        f"MHS §6; by hand in {SCRIPTS}",
    ),
    "key": Setting(0, "random key of the first draw", "ours"),
}

LEVELS = (0.9, 0.5, 0.2, 0.05)
"""Shares of the initial loss at which the runs are timed."""


def compute(settings: Settings) -> Table:
    """All ensembles in float32, each as one program that also runs on a GPU.

    The staged ReLN starts from the weights of the unstaged one.
    """
    import jax
    import jax.numpy as jnp
    import xarray

    from papers.mhs import table

    s = settings
    this = table.Case(
        "",
        {"contexts": s["contexts"]},
        (s["hidden"], s["hidden"]),
        s["scale"],
        steps=s["steps"],
        step=s["step"],
        seeds=s["seeds"],
    )
    of_relu, of_gated = jax.random.split(jax.random.key(s["key"]))
    how: dict[str, Any] = {
        "seeds": s["seeds"],
        "scale": this.scale,
        "learning_rate": this.learning_rate,
        "members_at_once": min(s["at_once"], s["seeds"]),
        "dtype": jnp.float32,
    }
    whole = {"steps": s["steps"], "record_every": s["every"], "record": {"outputs": True}}
    joined = table.narrowed(nr.tasks.contextual(joined=True, **this.task))
    ends = joined.x["x"].shape[1], joined.y["y"].shape[1]
    net = nr.ReLUNetwork((ends[0], *this.hidden, ends[1]))
    arch, data = table.gated_network(this, "gated", s["rule"])
    # at its default precision, a GPU rounds the factors of products
    with jax.default_matmul_precision("float32"):
        relu = nr.train_ensemble(net, joined, key=of_relu, **how, **whole)
        gated = nr.train_ensemble(nr.GDLN(arch), table.narrowed(data), key=of_gated, **how, **whole)
        steps = np.round(relu.time / this.learning_rate).astype(int)
        staged, staged_outputs = staged_runs(
            arch,
            table.narrowed(data),
            at=steps,
            begins=s["begins"],
            opens=s["opens"],
            key=of_gated,
            **how,
        )
    outputs = {
        name: np.asarray(run.values["outputs"]["y"], np.float32)
        for name, run in (("relu", relu), ("gated", gated))
    }
    typical = [stereotype(run.loss) for run in (relu, gated)]
    layers = list(net.arch.hidden)
    shares = [
        [shares_by_number(this, relu.isel(seed=i), node) for node in layers]
        for i in range(s["seeds"])
    ]
    on = np.array(
        [[activity_of(this, relu.isel(seed=i), node) for node in layers] for i in range(s["seeds"])]
    )
    over = ("seed", "time")
    return xarray.Dataset(
        {
            "relu": (over, relu.loss),
            "gated": (over, gated.loss),
            "staged": (over, staged),
            "typical": ("net", typical),
            "staged_typical": ((), stereotype(staged)),
            "staged_outputs": (
                ("time", "sample", "output"),
                staged_outputs[stereotype(staged)],
            ),
            "outputs": (
                ("net", "time", "sample", "output"),
                [out[k] for out, k in zip(outputs.values(), typical, strict=True)],
            ),
            "share": (("seed", "layer", "number"), shares),
            "always": (("seed", "layer"), on[..., 0]),
            "often": (("seed", "layer"), on[..., 1]),
            "device": ((), jax.devices()[0].device_kind),
        },
        {
            "time": relu.time,
            "step": ("time", steps),
            "seed": np.arange(s["seeds"]),
            "net": ["ReLU network", "ReLN"],
            "layer": layers,
            "number": np.arange(1, s["contexts"] + 1),
        },
    )


def activity_of(case: Any, run: nr.Trajectory, node: str) -> tuple[float, float]:
    """The share of a layer's final weight that is on for every sample, and a mean over neurons.

    The second number says for which share of all samples a neuron is on, on average.
    """
    _, found = final_activity(case, run)
    weight, on = found.counted(node)[-1], found.on[node][-1]
    return float(weight @ on.all(axis=0)), float(weight @ on.mean(axis=0))


def moments(loss: np.ndarray) -> list[int]:
    """The index at which a run first falls to each of `LEVELS` of its initial loss, or −1."""
    below = [loss <= level * loss[0] for level in LEVELS]
    return [int(those.argmax()) if those.any() else -1 for those in below]


def measures(table: Table) -> tuple[Measure, ...]:
    """Stereotypes, spread, timing, outputs, and the gates of each layer."""
    share, often = (table[name].mean("seed").to_numpy() for name in ("share", "often"))
    shares = [", ".join(f"{part:.0%}" for part in layer) for layer in share]
    beside = {
        "always": f"a neuron is on for {often[0]:.0%} of the samples on average ({often[1]:.0%} "
        f"in the second layer), and {shares[0]} of the weight is nearest to 1, …, C contexts",
        "one": f"shares nearest to 1, …, C contexts: {shares[1]}",
        **{f"loss, {name}": _shifted(table, name) for name in depth.RELNS},
    }
    return (*noted(depth.MEASURES, beside), *_timing(table))


def _shifted(table: Table, name: str) -> str:
    """How near a stereotypical ReLN comes after a shift in time, as text."""
    time = table["time"].to_numpy()
    near = nr.compare(*(nr.Trajectory(time, run) for run in depth.stereotypes(table, name)))
    return (
        f"at most {near.max:.0%}; shifted by {near.shift / _rate(table):.0f} epochs "
        f"{near.mean_after_shift:.1%}"
    )


def _timing(table: Table) -> list[Measure]:
    """When the runs fall to each of `LEVELS`."""
    step = table["step"].to_numpy()
    nets = [table[name].to_numpy() for name in ("relu", "gated", "staged")]
    when = {
        level: [nr.trajectory.crossing_time(step, run / run[:, :1], level) for run in nets]
        for level in LEVELS
    }
    return [
        stated(
            f"falls-to-{round(100 * level)}",
            f"epoch at which the loss falls to {level:.0%} of the initial one, mean ± standard "
            "deviation; ReLU network, ReLN, staged ReLN",
            "reported",
            ", ".join(f"{np.nanmean(t):.0f} ± {np.nanstd(t):.0f}" for t in when[level])
            if all(np.isfinite(t).any() for t in when[level])
            else "not reached by all",
        )
        for level in LEVELS
    ]


def _rate(table: Table) -> float:
    """The time of one epoch."""
    return float(table["time"][-1] / table["step"][-1])


def draw(table: Table) -> Picture:
    """The architecture, all losses with the stereotypes, outputs of all, and the spread."""
    import matplotlib.pyplot as plt

    from papers.mhs import table as tables

    s = settings_of(table)
    figure = plt.figure(figsize=(7.0, 5.6))
    rows: Any = figure.subfigures(2, 1, height_ratios=(1.05, 1))
    axes = rows[0].subplot_mosaic([["a", "b"]], width_ratios=(1.15, 1))
    axes |= rows[1].subplot_mosaic([["c", "d"]], width_ratios=(1.7, 1))
    this = tables.Case("", {"contexts": s["contexts"]}, (s["hidden"],) * 2, s["scale"])
    arch, data = tables.gated_network(this, "gated", s["rule"])
    _draw_runs(table, axes["b"])
    _draw_outputs(table, axes["c"])
    _draw_spread(table, axes["d"])
    arch.draw(data, ax=axes["a"])
    axes["a"].set_title("(a) the gated network")
    return figure


LINES: dict[str, dict[str, Any]] = {
    "relu": {"linewidth": 4.0},
    "gated": {"linewidth": 2.0},
    "staged": {"linewidth": 1.0, "marker": "^", "markevery": 0.12, "markersize": 3.5},
}
"""The line of each network: all are simulated, and grey prints tell them apart."""

NAMES = {"relu": "ReLU network", "gated": "ReLN", "staged": "ReLN, staged"}
"""The name of each network in legends."""

COLOUR = {"relu": "#F2C063", "gated": "#0072B2", "staged": "#00402E"}
"""The colour of each network."""


def _draw_runs(table: Table, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    step = table["step"].to_numpy()
    unit = float(table["relu"][:, 0].mean())
    typical = [*table["typical"].to_numpy(), int(table["staged_typical"])]
    for name, k in zip(LINES, typical, strict=True):
        colour, runs = COLOUR[name], table[name].to_numpy() / unit
        ax.plot(step, runs.T, color=colour, alpha=0.3, linewidth=0.6, zorder=1)
        ax.plot(step, runs[k], color=colour, label=NAMES[name], zorder=2, **LINES[name])
    s = settings_of(table)
    for epoch in (s["begins"], s["opens"]):
        ax.axvline(epoch, color=COLOURS["neutral"], linewidth=0.6, linestyle=":", zorder=0)
    ax.set(
        title=f"(b) {table.sizes['seed']} runs each; stereotypes thick",
        xlabel="epoch (dotted: where the stages begin)",
        ylabel="loss / initial loss",
        ylim=(0, 1.04),
    )
    ax.legend()


def _draw_outputs(table: Table, ax: Any) -> None:
    """Outputs of the stereotypes where each has fallen to the same loss."""
    typical = [*table["typical"].to_numpy(), int(table["staged_typical"])]
    outputs = [*table["outputs"].to_numpy(), table["staged_outputs"].to_numpy()]
    pictures = []
    for name, k, own in zip(LINES, typical, outputs, strict=True):
        at = moments(table[name].to_numpy()[k])  # the last time if never
        blank = np.full((own.shape[2], 2), np.nan)
        parts = [np.hstack([own[t].T, blank]) for t in at]
        pictures.append(np.hstack(parts)[:, :-2])
    rows, columns = outputs[0].shape[2], outputs[0].shape[1]
    gap = np.full((4, pictures[0].shape[1]), np.nan)
    stacked = [part for picture in pictures for part in (picture, gap)][:-1]
    top = np.nanmax(np.abs(pictures))
    image = ax.imshow(np.vstack(stacked), aspect="auto", cmap="RdBu_r", vmin=-top, vmax=top)
    ax.set_yticks([(rows + 4) * k + rows / 2 for k in range(3)], ["ReLU", "ReLN", "staged"])
    ax.set_xticks(
        [(columns + 2) * k + columns / 2 for k in range(len(LEVELS))],
        [f"loss {level:.0%}" for level in LEVELS],
    )
    ax.tick_params(length=0)
    bar = ax.figure.colorbar(image, ax=ax, aspect=18, label="output")
    bar.outline.set_linewidth(0.5)
    ax.set_title("(c) outputs (rows) on all samples, at equal losses")


def _draw_spread(table: Table, ax: Any) -> None:
    step, unit = table["step"].to_numpy(), float(table["relu"][:, 0].mean())
    for name, line in LINES.items():
        spread = table[name].std("seed") / unit
        ax.plot(step, spread, color=COLOUR[name], label=NAMES[name], **line)
    title = "(d) spread of the loss, lines as in (b)"
    ax.set(title=title, xlabel="epoch", ylabel="std / initial loss", ylim=(0, None))


FIGURE = Figure(
    name="mhs/fig6",
    title="Two hidden layers: in which contexts each is on, and how runs differ",
    states=(
        "With a second hidden layer the first is on for all samples and shared, and the second "
        "keeps a common pathway and contextual ones that are on in two of three contexts. Runs "
        "now differ; the stereotypical trajectories of ReLU network and ReLN agree closely, and "
        "both have the same variance; at plateaus their outputs agree exactly. The ReLN's "
        "pathways become active in stages: the common one around epoch 500, contextual ones at "
        "epoch 12000 (Fig. 6, §6)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
