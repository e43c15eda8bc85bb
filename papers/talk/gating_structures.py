"""Talk, "Which gating structures?" and "The neural race": several gatings of one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "deltas": Setting((0.4, 1.2), "Δ of the extended XoR", "ours: one on either side of √(2/3)"),
    "hidden": Setting(120, "hidden neurons of every network", "ours: divisible among pathways"),
    "scale": Setting(2e-5, "standard deviation of the initial weights", "ours; as MHS Fig. 2"),
    "learning_rate": Setting(0.4, "1/τ", "MHS Fig. 2, caption"),
    "criterion": Setting(0.2, "the loss at which learning counts as done", "MHS Fig. 2, caption"),
    "steps": Setting(150, "gradient steps", "ours: until the fastest has learned"),
    "seeds": Setting(10, "ReLU networks at every Δ", "ours", quick=3),
    "key": Setting(0, "random key of the first draw", "ours"),
}

NAMES = {
    "sample": "one pathway per sample",
    "answer": "one per answer",
    "side": "one per sign of $x_1$",
    "common_answer": "one per answer, one always on",
}
"""The gatings that come to mind first (`nr.tasks.natural_gatings`), in words."""


def gatings(delta: float, hidden: int) -> dict[str, tuple[nr.Architecture, nr.Dataset]]:
    """All gatings of the extended XoR, of about equal total width."""
    return nr.tasks.natural_gatings(nr.tasks.extended_xor(delta), hidden)


def compute(settings: Settings) -> Table:
    """Every gating's race, whether ReLU neurons would keep its gates, and ReLU networks."""
    import xarray

    s = settings
    deltas = list(s["deltas"])
    times = s["learning_rate"] * np.arange(s["steps"] + 1)
    relu = nr.train_ensemble(
        nr.ReLUNetwork((3, s["hidden"], 1)),
        [nr.tasks.extended_xor(delta) for delta in deltas],
        key=s["key"], seeds=s["seeds"], scale=s["scale"], learning_rate=s["learning_rate"],
        steps=s["steps"], axis=("delta", deltas),
    )  # fmt: skip
    found = [
        nr.contest(gatings(delta, s["hidden"]), scale=s["scale"], criterion=s["criterion"])
        for delta in deltas
    ]
    predicted = [
        [
            contest.entrants[name]
            .race.solve(
                times=times, start=contest.entrants[name].start, learning_rate=s["learning_rate"]
            )
            .loss
            for name in NAMES
        ]
        for contest in found
    ]
    by_gating = lambda values: [[values(contest)[name] for name in NAMES] for contest in found]
    possible = by_gating(lambda c: c.check().implementable)
    kept = [[contest.check().is_kept(name) for name in NAMES] for contest in found]
    return xarray.Dataset(
        {
            "relu": (("delta", "seed", "time"), relu.loss),
            "predicted": (("delta", "gating", "time"), np.array(predicted)),
            "strength": (("delta", "gating"), by_gating(lambda c: c.strengths)),
            "reached": (("delta", "gating"), by_gating(lambda c: c.times)),
            "possible": (("delta", "gating"), np.array(possible, int)),
            "kept": (("delta", "gating"), np.array(kept, int)),
        },
        {"delta": deltas, "time": times, "gating": list(NAMES)},
    )


def distances(table: Table) -> np.ndarray:
    """(Δ, gating): mean |ΔL| / L(0) between the ReLU networks' mean loss and every race."""
    time = table["time"].to_numpy()
    relu = table["relu"].mean("seed").to_numpy()
    return np.array(
        [
            [
                nr.compare(nr.Trajectory(time, mean), nr.Trajectory(time, race)).mean
                for race in races
            ]
            for mean, races in zip(relu, table["predicted"].to_numpy(), strict=True)
        ]
    )


def remark(table: Table, i: int, k: int) -> str:
    """What stands against a gating: neurons cannot have its gates, or lose them."""
    if not table["possible"].to_numpy()[i, k]:
        return "not possible"
    return "" if table["kept"].to_numpy()[i, k] else "not kept"


def fastest(table: Table, i: int, among: np.ndarray) -> str:
    """The gating of some that learns first, at the i-th Δ; an empty text if there is none."""
    times = np.where(among, table["reached"].to_numpy()[i], np.inf)
    return str(table["gating"].to_numpy()[times.argmin()]) if np.isfinite(times).any() else ""


def followed(table: Table, among: Callable[[int], np.ndarray]) -> np.ndarray:
    """For every seed, the share of Δ at which, of some gatings, the fastest is the nearest."""
    time, names = table["time"].to_numpy(), table["gating"].to_numpy()
    right = np.zeros((table.sizes["delta"], table.sizes["seed"]))
    for i, races in enumerate(table["predicted"].to_numpy()):
        wanted = fastest(table, i, among(i))
        for k, run in enumerate(table["relu"].to_numpy()[i]):
            mine = nr.Trajectory(time, run)
            gaps = [nr.compare(mine, nr.Trajectory(time, race)).mean for race in races]
            nearest = np.where(among(i), gaps, np.inf).argmin()
            right[i, k] = names[nearest] == wanted
    return right.mean(axis=0)


FASTEST = Measure(
    "fastest",
    "share of Δ at which ReLU networks are nearer to the faster of one pathway per sample and one "
    "per answer",
    lambda table: followed(
        table, lambda i: np.isin(table["gating"].to_numpy(), ["sample", "answer"])
    ),
    least=1.0, rests=Basis.PAPER, origin=1.0,
)  # fmt: skip
"""The two gatings that the talk compares."""

OF_ALL = Measure(
    "fastest-of-all", "the same, the fastest of all gatings that come to mind, kept or not",
    lambda table: followed(table, lambda i: np.ones(table.sizes["gating"], bool)),
    least=1.0, rests=Basis.PAPER, origin=1.0,
    otherwise="Being the fastest is not enough: of all gatings that come to mind, ReLU networks "
    "follow the fastest at {:.0%} of the Δ. They follow the fastest whose gates they would keep.",
)  # fmt: skip
"""All gatings of the figure."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Which gating is nearest to the ReLU networks, and whether it is the fastest."""
    gap, reached = distances(table), table["reached"].to_numpy()
    names = table["gating"].to_numpy()
    lines = []
    for i, delta in enumerate(table["delta"].to_numpy()):
        nearest = str(names[gap[i].argmin()])
        first = fastest(table, i, np.isin(names, ["sample", "answer"]))
        best = fastest(table, i, table["kept"].to_numpy()[i] == 1)
        said = ", ".join(
            f"{name}: time {reached[i, k]:.3g}, ReLU networks {gap[i, k]:.1%} away"
            + (f" ({note})" if (note := remark(table, i, k)) else "")
            for k, name in enumerate(names)
        )
        lines += [
            stated(
                f"nearest-{delta:g}",
                f"Δ = {delta:g}: the race nearest to the ReLU networks' loss",
                "“the one which learns fastest dominates”, of one per sample and one per answer: "
                + first,
                f"{nearest}; {said}",
                float(first == nearest),
                least=1,
                rests=Basis.PAPER,
            ),
            stated(
                f"nearest-kept-{delta:g}",
                f"Δ = {delta:g}: the same, of all gatings whose gates a ReLU network would keep",
                f"the fastest of them: {best or 'there is none'}",
                nearest,
                float(best == nearest),
                least=1,
                rests=Basis.PAPER,
            ),
            stated(
                f"fastest-{delta:g}",
                f"Δ = {delta:g}: the fastest of all gatings here, kept or not",
                "reported: being the fastest is not enough",
                fastest(table, i, np.ones(len(names), bool)),
            ),
        ]
    strength = table["strength"].to_numpy()
    plain = [k for k, name in enumerate(names) if name != "common_answer"]
    ordered = [
        bool((np.argsort(-strength[i, plain]) == np.argsort(reached[i, plain])).all())
        for i in range(len(strength))
    ]
    lines.append(
        stated(
            "order",
            "gatings of separate pathways: the order of times is that of input-output correlations",
            "“stronger input-output correlations” learn first: at every Δ",
            "; ".join(
                ", ".join(f"{names[k]} {strength[i, k]:.3f}" for k in plain)
                for i in range(len(strength))
            ),
            float(all(ordered)),
            least=1,
            rests=Basis.PAPER,
        )
    )
    return tuple(lines)


def draw(table: Table) -> Picture:
    """The gates of every gating; below, the losses of their races and of ReLU networks."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    s = settings_of(table)
    deltas = table["delta"].to_numpy()
    figure = plt.figure(figsize=(7.2, 4.8))
    grid = figure.add_gridspec(2, 12, height_ratios=(0.8, 1.3))
    for k, name in enumerate(NAMES):
        ax = figure.add_subplot(grid[0, 3 * k : 3 * k + 3])
        _draw_gates(ax, gatings(deltas[0], s["hidden"])[name][1], NAMES[name])
        notes = [f"Δ = {d:g}: {remark(table, i, k) or 'kept'}" for i, d in enumerate(deltas)]
        ax.set_xlabel("\n".join(["sample (dark: on)", *notes]), fontsize=7)
    width = 12 // len(deltas)
    for i, delta in enumerate(deltas):
        ax = figure.add_subplot(grid[1, width * i : width * (i + 1)])
        _draw_losses(ax, table.isel(delta=i), s["learning_rate"])
        ax.set_title(f"Δ = {delta:g}")
    handles, labels = figure.axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    letter_panels(figure)
    return figure


def _draw_gates(ax: Any, data: nr.Dataset, title: str) -> None:
    rows = np.stack([np.asarray(gate, float) for gate in data.gates.values()])
    if "always on" in title:
        rows = np.vstack([np.ones((1, rows.shape[1])), rows])
    ax.imshow(rows, cmap="Greys", vmin=0, vmax=1.3, aspect="equal")
    for edge in np.arange(-0.5, rows.shape[1]):
        ax.axvline(edge, color="white", linewidth=1.5)
    for edge in np.arange(-0.5, rows.shape[0]):
        ax.axhline(edge, color="white", linewidth=1.5)
    ax.set(xticks=range(4), xticklabels=range(1, 5), yticks=())
    ax.set_title(title.replace(", ", ",\n"), fontsize=7)
    ax.set_ylabel("pathway")


LOOKS = {
    "sample": ("#D55E00", (0, (1, 1))),
    "answer": ("#0072B2", (0, (3.2, 1.6))),
    "side": ("#009E73", (0, (5, 1, 1, 1))),
    "common_answer": ("0.35", (0, (7, 2))),
}
"""Colour and line style of each gating."""


def _draw_losses(ax: Any, one: Table, rate: float) -> None:
    from neuralrace.plot import COLOURS

    steps = one["time"].to_numpy() / rate
    relu = one["relu"].to_numpy()
    ax.plot(steps, relu.T, color=COLOURS["relu"], alpha=0.4, linewidth=0.8)
    ax.plot(steps, relu.mean(axis=0), color=COLOURS["relu"], linewidth=4, label="ReLU networks")
    for k, (name, (colour, line)) in enumerate(LOOKS.items()):
        ax.plot(
            steps, one["predicted"].to_numpy()[k], color=colour, linestyle=line, linewidth=1.3,
            label=f"{NAMES[name]}, predicted",
        )  # fmt: skip
    ax.set(xlabel="epoch", ylabel="loss", ylim=(-0.02, 0.55))


FIGURE = Figure(
    name="talk/gating_structures",
    title="Gating structures compared: each has its own race, and the fastest dominates",
    states=(
        "Each gating scheme yields a distinct effective dataset and deep linear network "
        "trajectory; the one which learns fastest dominates the solution (“Neural Race "
        "Reduction”). Added here: whether a ReLU network would keep the gates of each."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
