"""MHS Fig. 2 (d, e): XoR that becomes linearly separable, and which gating is faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

CAPTION = "MHS Fig. 2, caption"
"""The source of settings in the caption."""

CROSSOVER = np.sqrt(2 / 3)
"""Where the two gatings grow equally fast (MHS Eq. 26)."""

SETTINGS = {
    "hidden": Setting(128, "N_h, hidden neurons of every network", CAPTION),
    "variance": Setting(4e-8, "N_h times the variance of the initial weights", CAPTION),
    "learning_rate": Setting(0.4, "1/τ", CAPTION),
    "criterion": Setting(0.2, "the loss at which learning counts as done", CAPTION),
    "deltas": Setting(
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8),
        "values of Δ in (d)",
        "ours: MHS gives none",
        quick=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6),
    ),
    "shown": Setting((0.0, 0.4, 0.8, 1.2), "values of Δ in (e)", "ours: MHS gives none"),
    "steps": Setting(150, "gradient steps", "ours: until all losses are constant; MHS gives none"),
    "seeds": Setting(10, "ReLU networks at every Δ", "ours: MHS gives none", quick=3),
    "key": Setting(0, "random key of the first draw", "ours"),
}

GATINGS = ("linear", "xor")
"""The names of the two gatings."""


def gatings(delta: float, hidden: int) -> dict[str, tuple[nr.Architecture, nr.Dataset]]:
    """The two gatings of MHS Fig. 2b and c, of equal total width."""
    data = nr.tasks.extended_xor(delta)
    return {
        "linear": nr.tasks.linear_pathways(data, total=hidden),
        "xor": nr.tasks.xor_pathways(data, total=hidden),
    }


def compute(settings: Settings) -> Table:
    """ReLU networks at every Δ, and both gatings from the average of equally small starts."""
    import jax
    import xarray

    s = settings
    deltas = sorted({*s["deltas"], *s["shown"]})
    scale = float(np.sqrt(s["variance"] / s["hidden"]))
    rate, times = s["learning_rate"], s["learning_rate"] * np.arange(s["steps"] + 1)
    net = nr.ReLUNetwork((3, s["hidden"], 1))
    datasets = [nr.tasks.extended_xor(delta) for delta in deltas]
    relu = nr.train_ensemble(
        net,
        datasets,
        key=jax.random.key(s["key"]),
        seeds=s["seeds"],
        scale=scale,
        learning_rate=rate,
        steps=s["steps"],
        axis=("delta", deltas),
    )
    contests = [nr.contest(gatings(delta, s["hidden"]), scale=scale) for delta in deltas]
    predicted = np.array(
        [
            [
                entrant.race.solve(times=times, start=entrant.start, learning_rate=rate).loss
                for entrant in (found.entrants[name] for name in GATINGS)
            ]
            for found in contests
        ]
    )
    starts: dict[str, dict[str, Any]] = {
        "width": {"scale": scale},
        "start": {"start": scale * np.sqrt(s["hidden"] / 2)},
    }
    crossing = {
        name: nr.phase_diagram(
            lambda delta: gatings(delta, s["hidden"]),
            "delta",
            (0.6, 1.0),
            criterion=s["criterion"],
            **start,
        )
        for name, start in starts.items()
    }
    shares = [
        [_shares(net, relu.isel(delta=d, seed=i), datasets[d]) for i in range(s["seeds"])]
        for d in range(len(deltas))
    ]
    return xarray.Dataset(
        {
            "relu": (("delta", "seed", "time"), relu.loss),
            "predicted": (("delta", "gating", "time"), predicted),
            "growth": (("delta", "gating"), [[c.strengths[g] for g in GATINGS] for c in contests]),
            "share": (("delta", "seed", "gating"), shares),
            "crossing": (
                "starts",
                [
                    found.crossovers[0].value if found.crossovers else np.nan
                    for found in crossing.values()
                ],
            ),
        },
        {"delta": deltas, "time": times, "gating": list(GATINGS), "starts": list(crossing)},
    )


def _shares(net: nr.ReLUNetwork, run: nr.Trajectory, data: nr.Dataset) -> list[float]:
    """The share of the final weight in neurons with exactly the patterns of each gating."""
    last = {e: np.asarray(w)[None] for e, w in run.final.items()}
    end = nr.Trajectory(run.time[-1:], run.loss[-1:], values={"weights": last}, net=net)
    positive = np.asarray(data.labels["positive"], bool)
    prototypes = {"positive": positive, "negative": ~positive, **data.one_per_sample()}
    exact = nr.reln.activity(end, data).shares(prototypes).exact
    linear = float(exact["positive"][-1] + exact["negative"][-1])
    return [linear, float(sum(exact[name][-1] for name in data.one_per_sample()))]


def boundary(deltas: np.ndarray, linear: np.ndarray, xor: np.ndarray) -> float:
    """The Δ at which the share of linear gates first exceeds that of XoR gates."""
    ahead = linear - xor
    k = int((ahead > 0).argmax())
    if k == 0:
        return float("nan")
    part = -ahead[k - 1] / (ahead[k] - ahead[k - 1])
    return float(deltas[k - 1] + part * (deltas[k] - deltas[k - 1]))


def measures(table: Table) -> tuple[Measure, ...]:
    """Times and losses against the faster and slower gating, and where these change places."""
    s = settings_of(table)
    time, delta = table["time"].to_numpy(), table["delta"].to_numpy()
    relu, predicted = table["relu"].to_numpy(), table["predicted"].to_numpy()
    when = np.nanmean(nr.trajectory.crossing_time(time, relu, s["criterion"]), axis=1)
    each = nr.trajectory.crossing_time(time, predicted, s["criterion"])
    each = np.where(np.isfinite(each), each, np.inf)
    fast = each.min(axis=1)
    off = np.abs(when / fast - 1)
    growth = table["growth"].to_numpy()
    formula = np.stack([delta / 2, np.sqrt(1 / 8 + delta**2 / 16)], axis=1)
    gaps = np.array(
        [
            [np.mean([_gap(time, run, gating) for run in relu[d]]) for gating in predicted[d]]
            for d in range(len(delta))
        ]
    )
    best = each.argmin(axis=1)
    faster, slower = gaps[np.arange(len(delta)), best], gaps[np.arange(len(delta)), 1 - best]
    share = table["share"].to_numpy().mean(axis=1)
    width, start = table["crossing"].to_numpy()
    return (
        stated(
            "time",
            "(d) learning time of the ReLU networks against the faster gating, all Δ",
            "“behaves like the faster of the two”: within 5 %",
            f"{off.mean():.1%} away on average, {off.max():.1%} at most "
            f"(Δ = {delta[off.argmax()]:g})",
            off.max(),
            most=0.05,
        ),
        stated(
            "nearer",
            "(d) the ReLU networks' loss is nearer to the faster gating than to the slower one",
            "at every Δ",
            f"at {int((faster <= slower).sum())} of {len(delta)}",
            np.max(faster - slower),
            most=0,
            rests=Basis.PAPER,
        ),
        stated(
            "crossing-width",
            "(d) Δ at which the predicted times are equal, for gatings of equal total width",
            f"√(2/3) = {CROSSOVER:.6f}",
            f"{width:.6f}",
            abs(width - CROSSOVER),
            most=1e-5,
            rests=Basis.THEOREM,
        ),
        stated(
            "crossing-start",
            "(d) the same if every pathway has the same start, whatever its width",
            "reported",
            f"{start:.4f}",
        ),
        stated(
            "rates",
            "rates of growth against Δ/2 and √(1/8 + Δ²/16) (MHS Eq. 24)",
            "equal",
            f"largest difference {np.abs(growth - formula).max():.1e}",
            np.abs(growth - formula).max(),
            most=1e-9,
            rests=Basis.THEOREM,
        ),
        stated(
            "loss",
            "(e) loss of the ReLU networks against the faster gating, mean |ΔL| / L(0), worst Δ",
            "“match”: ≤ 5 %",
            f"{faster.max():.1%} (Δ = {delta[faster.argmax()]:g}), {faster.mean():.1%} on average; "
            f"the slower gating is {slower.mean():.0%} away",
            faster.max(),
            most=0.05,
        ),
        stated(
            "gates-change",
            "Δ at which the ReLU networks change gates: the final weight in neurons with exactly "
            "the linear patterns exceeds the weight in those with exactly the XoR patterns",
            "“approximate point” √(2/3)",
            f"{boundary(delta, share[:, 0], share[:, 1]):.3f}; at Δ = {delta[0]:g} "
            f"{share[0, 1]:.0%} of the weight has XoR patterns, at {delta[-1]:g} "
            f"{share[-1, 0]:.0%} linear ones",
        ),
    )


def _gap(time: np.ndarray, run: np.ndarray, predicted: np.ndarray) -> float:
    return nr.compare(nr.Trajectory(time, run), nr.Trajectory(time, predicted)).mean


COLOUR = {"linear": "#0072B2", "xor": "#D55E00"}
"""The colour of each gating."""

DASHED = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
"""The line style of the linear gating."""

DOTTED = {"linestyle": (0, (1, 1)), "linewidth": 1.4}
"""The line style of the XoR gating."""


def draw(table: Table) -> Picture:
    """(d) learning times and gates of the networks over Δ; (e) losses."""
    import matplotlib.pyplot as plt

    s = settings_of(table)
    shown = [f"e{k}" for k in range(len(s["shown"]))]
    mosaic: Any = [["d", "share"], *(shown[k : k + 2] for k in range(0, len(shown) - 1, 2))]
    figure, axes = plt.subplot_mosaic(mosaic, figsize=(5.2, 2.2 + 1.9 * (len(shown) // 2)))
    _draw_times(table, s, axes["d"])
    _draw_share(table, axes["share"])
    steps = table["time"].to_numpy() / s["learning_rate"]
    for name, delta in zip(shown, s["shown"], strict=True):
        if name in axes:
            _draw_losses(table.sel(delta=delta), steps, axes[name])
            number = int(name[1:]) + 1
            axes[name].set_title(f"(e{number}) Δ = {delta:g}")
    last = [name for name in shown if name in axes][-1]
    axes[last].legend(loc="upper right")
    figure.supxlabel("lettered as in the paper: MHS Fig. 2d, e", fontsize=6.5)
    return figure


def _draw_times(table: Table, s: Mapping[str, Any], ax: Any) -> None:
    from neuralrace.plot import COLOURS

    time, delta = table["time"].to_numpy(), table["delta"].to_numpy()
    steps = 1 / s["learning_rate"]
    each = nr.trajectory.crossing_time(time, table["predicted"].to_numpy(), s["criterion"])
    when = nr.trajectory.crossing_time(time, table["relu"].to_numpy(), s["criterion"])
    ax.plot(
        delta,
        steps * np.nanmean(when, axis=1),
        color=COLOURS["relu"],
        marker="o",
        markersize=5,
        linewidth=4,
        label="ReLU networks",
    )
    for k, (gating, line) in enumerate((("linear", DASHED), ("xor", DOTTED))):
        ax.plot(
            delta, steps * each[:, k], color=COLOUR[gating], label=f"{gating}, predicted", **line
        )
    crossing = {"color": COLOURS["neutral"], "linewidth": 0.8, "linestyle": ":"}
    ax.axvline(CROSSOVER, ymax=0.6, **crossing)  # below the legend
    ax.text(CROSSOVER + 0.03, 3, "√(2/3)", fontsize=7)
    ax.set(
        title=f"(d1) learning time (loss = {s['criterion']:g})",
        xlabel="Δ",
        ylabel="epochs",
        ylim=(0, 2.2 * steps * np.nanmax(when)),
    )
    ax.legend()


def _draw_share(table: Table, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    delta, share = table["delta"].to_numpy(), table["share"].to_numpy().mean(axis=1)
    for k, (gating, marker) in enumerate((("linear", "s"), ("xor", "^"))):
        ax.plot(delta, share[:, k], color=COLOUR[gating], marker=marker, markersize=4, label=gating)
    ax.axvline(CROSSOVER, color=COLOURS["neutral"], linewidth=0.8, linestyle=":")
    ax.set(
        title="(d2) gates of the trained networks",
        xlabel="Δ",
        ylabel="share of the weight",
        ylim=(-0.03, 1.03),
    )
    ax.legend(loc="center left")


def _draw_losses(one: Table, steps: np.ndarray, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    relu, predicted = one["relu"].to_numpy(), one["predicted"].to_numpy()
    ax.plot(steps, relu.T, color=COLOURS["relu"], alpha=0.4, linewidth=0.8)
    ax.plot(steps, relu.mean(axis=0), color=COLOURS["relu"], linewidth=4, label="ReLU networks")
    for k, (gating, line) in enumerate((("linear", DASHED), ("xor", DOTTED))):
        ax.plot(steps, predicted[k], color=COLOUR[gating], label=f"{gating}, predicted", **line)
    ax.set(xlabel="epoch", ylabel="loss", ylim=(-0.02, 0.55))


FIGURE = Figure(
    name="mhs/fig2",
    title="Extended XoR: ReLU networks learn like the faster of two gated networks",
    states=(
        "On XoR with a third, linearly separable coordinate ±Δ, a ReLU network behaves like the "
        "faster of two gated networks, one that uses the linear and one that uses the XoR "
        "structure, over the whole trajectory and at every Δ; which one is faster changes at "
        "Δ = √(2/3), the approximate point at which the ReLU network changes its decision "
        "boundary (Fig. 2d, e; §3, App. C)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
