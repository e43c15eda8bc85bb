"""Ours: which recurrent pathways win when a cue says what to add up, and what ReLU networks do."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of

SETTINGS = {
    "steps": Setting((2, 4, 8), "time steps, T", "ours", quick=(2, 3)),
    "cues": Setting((0.5, 1.0, 2.0), "strengths of the cue", "ours", quick=(0.5, 1.0)),
    "shown": Setting(1.0, "the cue's strength in the curves, which have the largest T", "ours"),
    "hidden": Setting(40, "hidden neurons of a network, or of a pathway", "ours"),
    "scale": Setting(1e-3, "standard deviation σ of the initial weights", "ours"),
    "samples": Setting(500, "sequences for each cue that ReLU networks see", "ours", quick=100),
    "criterion": Setting(0.6, "share of L(0): a common pathway can reach 0.5", "ours"),
    "learning_rate": Setting(0.01, "learning rate", "ours", quick=0.02),
    "end": Setting(40.0, "last time", "ours"),
    "seeds": Setting(5, "initial weights", "ours", quick=1),
}

GATINGS = {"common": "common_pathway", "per cue": "pathway_per_cue"}
"""One pathway that is always on, and one for each cue: functions of `nr.tasks`."""


def _race(T: int, cue: float, gating: str, s: Settings, seed: int) -> nr.Trajectory:
    """The loss that is predicted from the initial weights of one network."""
    build = getattr(nr.tasks, GATINGS[gating])
    arch, data = build(nr.tasks.cued_accumulation(2, T, cue=cue), s["hidden"])
    race, weights = nr.reduce(arch, data), _weights(nr.GDLN(arch), s)
    start = race.start({name: w[seed] for name, w in weights.items()})
    return race.solve(times=_times(s), start=start, rtol=1e-8)


def _times(s: Settings) -> np.ndarray:
    """Times of the curves: every tenth step."""
    return s["learning_rate"] * 10 * np.arange(1 + round(s["end"] / s["learning_rate"] / 10))


def _weights(net: nr.GDLN | nr.ReLUNetwork, s: Settings) -> dict[str, np.ndarray]:
    """Initial weights of all seeds: (seeds, target, source)."""
    each = [net.init(seed, scale=s["scale"]) for seed in range(s["seeds"])]
    return {name: np.stack([np.asarray(w[name]) for w in each]) for name in each[0]}


def _trained(net: nr.GDLN | nr.ReLUNetwork, data: list[nr.Dataset], s: Settings) -> np.ndarray:
    """Losses of networks trained on each dataset, (datasets, seeds, times)."""
    run = nr.train_ensemble(
        net, data, seeds=s["seeds"], weights=_weights(net, s), learning_rate=s["learning_rate"],
        steps=round(s["end"] / s["learning_rate"]), record_every=10,
    )  # fmt: skip
    return np.asarray(run.loss)


def phase_diagram(s: Settings) -> nr.PhaseDiagram:
    """Which gating is first over cue strength and T, from what random weights are on average."""

    def gatings(cue: float, steps: float) -> dict[str, tuple[nr.Architecture, nr.Dataset]]:
        data = nr.tasks.cued_accumulation(2, round(steps), cue=cue)
        return {name: getattr(nr.tasks, g)(data, s["hidden"]) for name, g in GATINGS.items()}

    over = {"cue": s["cues"], "steps": s["steps"]}
    return nr.phase_diagram(
        gatings, over, scale=s["scale"], criterion=s["criterion"], relative=True
    )


def compute(settings: Settings) -> Table:
    """Predicted and trained losses at the largest T, and times over cue strength and T."""
    import xarray

    s, t = settings, _times(settings)
    relative = lambda loss: np.asarray(loss) / np.asarray(loss)[..., :1]
    time = lambda loss: nr.trajectory.crossing_time(t, relative(loss), s["criterion"])
    phases = phase_diagram(s)
    raced = np.array([phases.times[gating] for gating in GATINGS])
    relu = []
    for T in s["steps"]:
        net = nr.ReLUNetwork(nr.Architecture.recurrent(4, s["hidden"], 1, steps=T))
        data = [
            nr.tasks.cued_accumulation(2, T, cue=cue, samples=s["samples"], key=0)
            for cue in s["cues"]
        ]
        relu.append(_trained(net, data, s))
    T = max(s["steps"])
    predicted, linear = [], []
    for gating, name in GATINGS.items():
        build = getattr(nr.tasks, name)
        arch, data = build(nr.tasks.cued_accumulation(2, T, cue=s["shown"]), s["hidden"])
        seeds = range(s["seeds"])
        predicted.append([relative(_race(T, s["shown"], gating, s, k).loss) for k in seeds])
        linear.append(relative(_trained(nr.GDLN(arch), [data], s)[0]))
    losses = relative(relu)  # (T, cue, seed, time)
    return xarray.Dataset(
        {
            "raced": (("gating", "cue", "steps"), raced),
            "relu_time": (("steps", "cue", "seed"), time(relu)),
            "relu_rest": (("steps", "cue", "seed"), rest(t, losses)),
            "predicted": (("gating", "seed", "time"), np.array(predicted)),
            "linear": (("gating", "seed", "time"), np.array(linear)),
            "relu": (
                ("seed", "time"),
                losses[s["steps"].index(T), s["cues"].index(s["shown"])],
            ),
        },
        {"gating": list(GATINGS), "cue": list(s["cues"]), "steps": list(s["steps"]), "time": t},
    )


def rest(time: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """The time that losses spend between .55 and .45, over the time they take to reach .55."""
    high, low = (nr.trajectory.crossing_time(time, losses, level) for level in (0.55, 0.45))
    return (low - high) / high


# ---- what is measured ----------------------------------------------------------------------------


def race_ratio(table: Table) -> float:
    """Time of the common pathway over that of one pathway per cue, largest over cues and T."""
    common, own = table["raced"].to_numpy()
    return float((common / own).max())


def cue_matters(table: Table) -> float:
    """How far predicted times differ between strengths of the cue, relative to the first."""
    times = table["raced"].to_numpy()
    return float(np.abs(times / times[:, :1] - 1).max())


def linear_gap(table: Table) -> list[float]:
    """One per seed: mean |ΔL| / L(0) of the prediction and the trained gated linear network."""
    gap = abs(table["predicted"] - table["linear"]).mean("time").max("gating")
    return gap.to_numpy().tolist()


def relu_ratio(table: Table, *, every: bool = False) -> list[float]:
    """One per seed: time of the ReLU network over that of the common pathway, as in the curves.

    With `every`, of the cell of all cues and T where it is farthest from 1.
    """
    ratio = table["relu_time"] / table["raced"].sel(gating="common")
    if every:
        means = ratio.mean("seed").to_numpy().ravel()
        return [float(means[np.abs(np.log(means)).argmax()])]
    s = settings_of(table)
    return ratio.sel(steps=max(s["steps"]), cue=s["shown"]).to_numpy().tolist()


def relu_rest(table: Table) -> list[float]:
    """One per seed: how long ReLU networks rest at half of the loss, as in the curves."""
    s = settings_of(table)
    return table["relu_rest"].sel(steps=max(s["steps"]), cue=s["shown"]).to_numpy().tolist()


WINNER = Measure(
    "common-over-own",
    "predicted time to .6 of L(0): common pathway over one per cue, largest over cues and T",
    race_ratio,
    most=0.95,
    origin=1.0,
)
NO_CUE = Measure(
    "cue-strength",
    "relative difference of the predicted times between strengths of the cue, largest",
    cue_matters,
    most=1e-3,
    rests=Basis.THEOREM,
)
LINEAR = Measure(
    "linear",
    "predicted and trained linear gated networks, mean |ΔL| / L(0), the worse gating",
    linear_gap,
    most=0.01,
)
FOLLOWS = Measure(
    "relu-over-common",
    "time to .6 of L(0): ReLU network over the common pathway, at the largest T",
    relu_ratio,
    least=1 / 1.15,
    most=1.15,
    origin=1.0,
)
RESTS = Measure(
    "relu-rest",
    "time of a ReLU network between .55 and .45 of L(0), over its time to .55, at the largest T",
    relu_rest,
    least=0.1,
)
LEARNS = Measure(
    "relu-end",
    "loss of ReLU networks at the end, relative to L(0), at the largest T",
    lambda table: table["relu"].isel(time=-1).to_numpy().tolist(),
    most=0.05,
)


def measures(_: Table | None = None) -> Iterable[Measure]:
    """Who wins, how well linear networks are predicted, and how near ReLU networks are."""
    return (WINNER, NO_CUE, LINEAR, FOLLOWS, RESTS, LEARNS)


# ---- the picture ---------------------------------------------------------------------------------


def draw(table: Table) -> Picture:
    """Losses; times over T; and ReLU networks' times over cue strength and T."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    figure, (a, b, c) = plt.subplots(1, 3, figsize=(7.2, 2.9), layout="constrained")
    time, names = table["time"].to_numpy(), [str(g) for g in table["gating"].to_numpy()]
    color = {"common": "C0", "per cue": "C1", "ReLU": "C3"}
    curves = lambda name: dict(zip(names, table[name].to_numpy(), strict=True))
    draw_curves(time, curves("linear"), color=color, band=None, ax=a)
    means = {name: each.mean(axis=0) for name, each in curves("predicted").items()}
    draw_curves(time, means, kind="theory", color=dict.fromkeys(names, "k"), ax=a)
    draw_curves(time, {"ReLU": table["relu"].to_numpy()}, kind="relu", color=color, ax=a)
    steps, last = table["steps"].to_numpy(), int(table["steps"].max())
    seen = table["relu"].min("seed").to_numpy() > 0.02
    a.set(title=f"(a) T = {last}", ylabel="loss / L(0)", xlim=(0, 1.2 * time[seen.sum() - 1]))
    for name in names:
        b.plot(steps, table["raced"].sel(gating=name).isel(cue=0), "--", color=color[name])
    for i, cue in enumerate(table["cue"].to_numpy()):
        each = table["relu_time"].sel(cue=cue).transpose("steps", "seed").mean("seed")
        b.plot(steps, each, "osD^"[i % 4], color=color["ReLU"], ms=4, label=f"cue {cue:g}")
    b.legend(title="ReLU", loc="lower right")
    b.set(title="(b) time to criterion", xlabel="T", ylabel="time", ylim=(0, None))
    ratio = (table["relu_time"] / table["raced"].sel(gating="common")).mean("seed")
    ratio = ratio.transpose("cue", "steps").to_numpy()
    shown = c.imshow(ratio, origin="lower", aspect="auto", cmap="viridis", vmin=1)
    for (i, j), value in np.ndenumerate(ratio):
        dark = value < (1 + ratio.max()) / 2
        c.text(j, i, f"{value:.2f}", ha="center", va="center", color="w" if dark else "k")
    c.set_xticks(range(len(steps)), [str(T) for T in steps])
    c.set_yticks(range(table.sizes["cue"]), [f"{cue:g}" for cue in table["cue"].to_numpy()])
    c.set(title="(c) ReLU / common", xlabel="T", ylabel="strength of the cue")
    figure.colorbar(shown, ax=c, label="ratio of times")
    return figure


FIGURE = Figure(
    name="rnn/cued",
    title="Cued accumulation: recurrent pathways and ReLU networks",
    states=(
        "A common recurrent pathway is first to learn the half that it can; one pathway per cue is "
        "later and learns all. The strength of the cue does not enter the race of the gatings. "
        "ReLU networks rest at the same half, and leave it later."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
