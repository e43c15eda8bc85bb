"""Talk, "Exact continual learning dynamics": one task after another, and forgetting."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "sizes": Setting((4, 4, 4), "inputs, hidden, outputs", "ours"),
    "tasks": Setting(3, "tasks, one after another", "ours"),
    "lam": Setting(1.0, "λ of the initial weights", "ours"),
    "scale": Setting(0.05, "singular values of the initial map", "ours"),
    "span": Setting(8.0, "time of each task", "ours"),
    "times": Setting(161, "times shown of each task", "ours", quick=41),
    "seed": Setting(1, "random key of the first task; the others follow", "ours"),
}


def compute(settings: Settings) -> Table:
    """The loss on every task over time, exact and simulated."""
    import xarray

    from papers.talk.regimes import task

    s = settings
    pairs = [task(s["sizes"], s["seed"] + k) for k in range(s["tasks"])]
    net, some = pairs[0][0], [data for _, data in pairs]
    weights = nr.linear.balanced_weights(net, s["lam"], scale=s["scale"], key=s["seed"])
    times = np.linspace(0, s["span"], s["times"])
    run = nr.linear.task_sequence(net, weights, some, times=times)
    parts: list[nr.Trajectory] = []
    for data in some:
        start = parts[-1].final if parts else weights
        parts.append(nr.flow(net, start, data, times=times, rtol=1e-11, record={"weights": True}))
    maps = nr.linear.maps_of(nr.join(*parts))
    simulated = []
    for data in some:
        x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
        simulated.append(((x @ maps.swapaxes(1, 2) - y) ** 2).sum(axis=2).mean(axis=1) / 2)
    return xarray.Dataset(
        {
            "exact": (("task", "time"), run.values["task_loss"].T),
            "simulated": (("task", "time"), np.array(simulated)),
            "changes": ("change", run.settings["changes"]),
        },
        {"time": run.time, "task": np.arange(1, s["tasks"] + 1)},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """Exact against simulated, and how much of the first task is lost."""
    gap = float(np.abs(table["exact"] - table["simulated"]).max())
    first = table["exact"].to_numpy()[0]
    after = int(np.searchsorted(table["time"].to_numpy(), float(table["changes"][0])))
    return (
        stated(
            "flow",
            "losses on all tasks against the flow",
            "≤ 1e-8",
            f"{gap:.1e}",
            gap,
            most=1e-8,
            rests=Basis.THEOREM,
        ),
        stated(
            "first-task",
            "loss on the first task: at the start, when learned, at the end",
            "reported",
            f"{first[0]:.3f}, {first[after]:.1e}, {first[-1]:.3f}",
        ),
    )


def draw(table: Table) -> Picture:
    """The loss on every task over time."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS, draw_curves

    figure, ax = plt.subplots(figsize=(5.6, 2.8))
    time = table["time"].to_numpy()
    names = [f"task {k}" for k in table["task"].to_numpy()]
    for name, kind in (("simulated", "simulation"), ("exact", "theory")):
        draw_curves(time, dict(zip(names, table[name].to_numpy(), strict=True)), kind=kind, ax=ax)
    for change in table["changes"].to_numpy():
        ax.axvline(change, color=COLOURS["neutral"], linewidth=0.8, linestyle=":")
        place = {"transform": ax.get_xaxis_transform(), "ha": "right", "va": "center"}
        ax.text(change, 0.55, "next task", rotation=90, fontsize=7, **place)
    ax.set_title(f"continual learning, λ = {settings_of(table)['lam']:g}")
    return figure


FIGURE = Figure(
    name="talk/continual",
    title="Exact continual learning dynamics",
    states="A sequence of tasks is solved exactly, task after task, including forgetting.",
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
