"""MHS Fig. 6: two hidden layers, many runs of the ReLU network and of a gated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.figure import Agreement, Figure, Setting, Settings, settings_of
from neuralrace.papers.mhs.contextual import SCRIPTS, final_activity, shares_by_number

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

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
        "how wide the pathways are; see neuralrace.papers.mhs.table",
        "ours, from the ReLU network's width alone",
        choices=("sign", "equal", "half", "authors"),
    ),
    "key": Setting(0, "random key of the first draw", "ours"),
}

LEVELS = (0.9, 0.5, 0.2, 0.05)
"""Shares of the initial loss at which the runs are timed."""


def compute(settings: Settings) -> xarray.Dataset:
    """Both ensembles in float32, each as one program that also runs on a GPU."""
    import jax
    import jax.numpy as jnp
    import xarray

    from neuralrace.papers.mhs import table

    s = settings
    this = table.Setting(
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
        "steps": s["steps"],
        "record_every": s["every"],
        "record": {"outputs": True},
        "members_at_once": min(s["at_once"], s["seeds"]),
        "dtype": jnp.float32,
    }
    joined = table.narrowed(nr.tasks.contextual(joined=True, **this.task))
    ends = joined.x["x"].shape[1], joined.y["y"].shape[1]
    net = nr.ReLUNetwork((ends[0], *this.hidden, ends[1]))
    arch, data = table.gated_network(this, "gated", s["rule"])
    # at its default precision, a GPU rounds the factors of products
    with jax.default_matmul_precision("float32"):
        relu = nr.train_ensemble(net, joined, key=of_relu, **how)
        gated = nr.train_ensemble(nr.GDLN(arch), table.narrowed(data), key=of_gated, **how)
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
            "typical": ("net", typical),
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
            "step": ("time", np.round(relu.time / this.learning_rate).astype(int)),
            "seed": np.arange(s["seeds"]),
            "net": ["ReLU network", "ReLN"],
            "layer": layers,
            "number": np.arange(1, s["contexts"] + 1),
        },
    )


def stereotype(loss: np.ndarray) -> int:
    """The index of the run `(runs, T)` nearest to the mean over runs, by squared distance."""
    return int(((loss - loss.mean(axis=0)) ** 2).sum(axis=1).argmin())


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


def agreement(table: xarray.Dataset) -> tuple[Agreement, ...]:
    """Stereotypes, spread, timing, outputs, and the gates of each layer."""
    time, step = table["time"].to_numpy(), table["step"].to_numpy()
    relu, gated = table["relu"].to_numpy(), table["gated"].to_numpy()
    first, second = (int(k) for k in table["typical"].to_numpy())
    typical = nr.Trajectory(time, relu[first])
    near = nr.compare(typical, nr.Trajectory(time, gated[second]))
    others = (run for i, run in enumerate(relu) if i != first)
    seeds = [nr.compare(typical, nr.Trajectory(time, run)) for run in others]
    spread = [run.std(axis=0).mean() / run[:, 0].mean() for run in (relu, gated)]
    profile = np.corrcoef(relu.std(axis=0), gated.std(axis=0))[0, 1] if len(relu) > 1 else np.nan
    when = {
        level: [nr.trajectory.crossing_time(step, run / run[:, :1], level) for run in (relu, gated)]
        for level in LEVELS
    }
    outputs = table["outputs"].to_numpy()
    size = np.sqrt(2 * relu[0, 0] * outputs.shape[2])  # ‖Y‖, since L = ‖Y − O‖² / 2N
    places = [moments(run) for run in (relu[first], gated[second])]
    at_loss = {
        level: np.linalg.norm(outputs[0, i] - outputs[1, j]) / size
        for level, i, j in zip(LEVELS, *places, strict=True)
        if min(i, j) >= 0
    }
    share, always, often = (
        table[name].mean("seed").to_numpy() for name in ("share", "always", "often")
    )
    number = "one run each" if len(relu) == 1 else f"{len(relu)} runs each"
    return (
        Agreement(
            "stereotypical ReLU network against the stereotypical ReLN, pathways open from the "
            "start, mean |ΔL| / L(0)",
            "“close agreement”: ≤ 5 %",
            f"{near.mean:.1%} (at most {near.max:.0%}); shifted by {near.shift / _rate(table):.0f} "
            f"epochs {near.mean_after_shift:.1%}",
            near.mean <= 0.05,
        ),
        Agreement(
            "stereotypical ReLU network against the other runs of the ReLU network",
            "reported: the floor",
            f"{np.mean([c.mean for c in seeds]):.1%}, at worst {max(c.mean for c in seeds):.1%}"
            if seeds
            else "only one run",
        ),
        Agreement(
            f"spread between runs ({number}): standard deviation of the loss / L(0), mean over "
            "time; ReLU network, ReLN",
            "“the same variance profiles”: within a factor of 2",
            f"{spread[0]:.2%}, {spread[1]:.2%}; correlation of the two profiles over time "
            f"{profile:.2f}",
            bool(0.5 <= spread[1] / spread[0] <= 2) if min(spread) > 0 else None,
        ),
        *(
            Agreement(
                f"epoch at which the loss falls to {level:.0%} of the initial one, mean ± standard "
                "deviation; ReLU network, ReLN",
                "reported",
                ", ".join(f"{np.nanmean(t):.0f} ± {np.nanstd(t):.0f}" for t in when[level])
                if all(np.isfinite(t).any() for t in when[level])
                else "not reached by all",
            )
            for level in LEVELS
        ),
        Agreement(
            "outputs of the two stereotypes where both have fallen to "
            + ", ".join(f"{level:.0%}" for level in at_loss)
            + " of the initial loss, relative to the size of the targets",
            "“exact agreement between the outputs” at plateaus: ≤ 10 %",
            ", ".join(f"{gap:.1%}" for gap in at_loss.values()) or "not reached by both",
            bool(max(at_loss.values()) <= 0.1) if at_loss else None,
        ),
        Agreement(
            "share of the first layer's final weight in neurons that are on for every sample",
            "“all neurons are active for all datapoints”: ≥ 95 %",
            f"{always[0]:.1%}; a neuron is on for {often[0]:.0%} of the samples on average "
            f"({often[1]:.0%} in the second layer), and of the weight "
            f"{', '.join(f'{part:.0%}' for part in share[0])} is nearest to patterns on in "
            "1, …, C contexts",
            bool(always[0] >= 0.95),
        ),
        Agreement(
            "second layer: final weight nearest to patterns on in 1, …, C contexts",
            "“active in two out of three contexts” and common: single ≤ 5 %",
            ", ".join(f"{part:.0%}" for part in share[1]),
            bool(share[1, 0] <= 0.05),
        ),
    )


def _rate(table: xarray.Dataset) -> float:
    """The time of one epoch."""
    return float(table["time"][-1] / table["step"][-1])


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """The architecture, all losses with the stereotypes, the spread, and outputs of both."""
    import matplotlib.pyplot as plt

    from neuralrace.papers.mhs import table as tables

    s = settings_of(table)
    figure, axes = plt.subplot_mosaic(
        [["a", "b", "b"], ["c", "c", "d"]], figsize=(7.0, 5.6), height_ratios=(1.1, 1)
    )
    this = tables.Setting("", {"contexts": s["contexts"]}, (s["hidden"],) * 2, s["scale"])
    arch, data = tables.gated_network(this, "gated", s["rule"])
    arch.draw(data, ax=axes["a"])
    axes["a"].set_title("(a) the gated network")
    _draw_runs(table, axes["b"])
    _draw_outputs(table, axes["c"])
    _draw_spread(table, axes["d"])
    return figure


def _draw_runs(table: xarray.Dataset, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    step = table["step"].to_numpy()
    unit = float(table["relu"][:, 0].mean())
    typical = table["typical"].to_numpy()
    dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.6}
    for name, label, colour, line, k in (
        ("relu", "ReLU network", COLOURS["relu"], {"linewidth": 3.4}, typical[0]),
        ("gated", "ReLN", COLOURS["common"], dashes, typical[1]),
    ):
        runs = table[name].to_numpy() / unit
        ax.plot(step, runs.T, color=colour, alpha=0.3, linewidth=0.6, zorder=1)
        ax.plot(step, runs[k], color=colour, label=label, zorder=2, **line)
    ax.set(
        title=f"(b) losses of {table.sizes['seed']} runs each; stereotypes thick",
        xlabel="epoch",
        ylabel="loss / initial loss",
        ylim=(0, 1.04),
    )
    ax.legend()


def _draw_outputs(table: xarray.Dataset, ax: Any) -> None:
    """Outputs of the stereotypes where each has fallen to the same loss."""
    outputs, typical = table["outputs"].to_numpy(), table["typical"].to_numpy()
    pictures = []
    for net, name in enumerate(("relu", "gated")):
        at = moments(table[name].to_numpy()[typical[net]])  # the last time if never
        blank = np.full((outputs.shape[3], 2), np.nan)
        parts = [np.hstack([outputs[net, k].T, blank]) for k in at]
        pictures.append(np.hstack(parts)[:, :-2])
    gap = np.full((4, pictures[0].shape[1]), np.nan)
    top = np.nanmax(np.abs(pictures))
    picture = np.vstack([pictures[0], gap, pictures[1]])
    ax.imshow(picture, aspect="auto", cmap="RdBu_r", vmin=-top, vmax=top)
    rows, columns = outputs.shape[3], outputs.shape[2]
    ax.set_yticks([rows / 2, 1.5 * rows + 4], ["ReLU", "ReLN"])
    ax.set_xticks(
        [(columns + 2) * k + columns / 2 for k in range(len(LEVELS))],
        [f"loss {level:.0%}" for level in LEVELS],
    )
    ax.tick_params(length=0)
    ax.set_title("outputs (rows) on all samples, at equal losses")


def _draw_spread(table: xarray.Dataset, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    step, unit = table["step"].to_numpy(), float(table["relu"][:, 0].mean())
    ax.plot(
        step, table["relu"].std("seed") / unit, color=COLOURS["relu"], linewidth=3, label="ReLU"
    )
    ax.plot(
        step,
        table["gated"].std("seed") / unit,
        color=COLOURS["common"],
        linestyle=(0, (3.2, 1.6)),
        label="ReLN",
    )
    ax.set(title="spread of the loss", xlabel="epoch", ylabel="std / initial loss")
    ax.set_ylim(0, None)
    ax.legend()


FIGURE = Figure(
    name="mhs/fig6",
    title="Two hidden layers: the first is shared and linear, and runs differ",
    states=(
        "With a second hidden layer the first is on for all samples and shared, and the second "
        "keeps a common pathway and contextual ones that are on in two of three contexts. Runs "
        "now differ; the stereotypical trajectories of ReLU network and ReLN agree closely, and "
        "both have the same variance; at plateaus their outputs agree exactly (Fig. 6, §6)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    agreement=agreement,
)
