"""Talk, "Depth introduces stage-like transitions": modes of full networks by depth."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "depths": Setting((1, 2, 3), "edges of the networks", "Talk: shallow and deep", quick=(1, 2)),
    "values": Setting((4.0, 2.0, 1.0), "singular values of the task", "ours"),
    "hidden": Setting(8, "neurons of every hidden layer", "ours"),
    "strength": Setting(0.05, "initial singular value of every edge, aligned", "ours"),
    "end": Setting(4.0, "last time, in units of the learning time of the slowest mode", "ours"),
    "times": Setting(801, "times shown", "ours", quick=401),
}


def compute(settings: Settings) -> Table:
    """Mode strengths in flows from small aligned weights, and in the chain of each mode."""
    import xarray

    s = settings
    values = np.array(s["values"])
    size = len(values)
    x = np.sqrt(size) * np.eye(size)
    data = nr.Dataset({"x": x}, {"y": x * values})
    simulated, exact, times = [], [], []
    for depth in s["depths"]:
        net = nr.GDLN(nr.Architecture.chain(size, *[s["hidden"]] * (depth - 1), size))
        slowest = nr.linear.chain_time(depth, s=float(values.min()), start=s["strength"])
        t = np.linspace(0, s["end"] * slowest, s["times"])
        weights = nr.linear.aligned_weights(net, data, s["strength"])
        run = nr.flow(net, weights, data, times=t, rtol=1e-10, record={"weights": True})
        simulated.append(nr.linear.mode_strengths(run, data))
        chain = nr.Architecture.chain(*[1] * (depth + 1))
        exact.append([strength(chain, v, s["strength"], t) / v for v in values])
        times.append(t)
    dims = ("depth", "time", "mode")
    return xarray.Dataset(
        {
            "simulated": (dims, np.array(simulated)),
            "exact": (dims, np.array(exact).swapaxes(1, 2)),
            "at": (("depth", "time"), np.array(times)),
        },
        {"depth": list(s["depths"]), "mode": values},
    )


def strength(chain: nr.Architecture, value: float, start: float, times: np.ndarray) -> np.ndarray:
    """The product of a chain of scalars over time, by its closed form."""
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[value]]})
    form = nr.reduce(chain, data).closed_form(start)
    assert form.is_complete
    return np.asarray(form.value(times)["mode1"])


def sharpness(table: Table) -> np.ndarray:
    """(depth, mode): half-time over the time from 10 to 90 %, which is large for stages."""
    found = []
    for depth in range(table.sizes["depth"]):
        t, curves = table["at"].to_numpy()[depth], table["simulated"].to_numpy()[depth].T
        low, half, high = (
            nr.trajectory.crossing_time(t, curves, f, rising=True) for f in (0.1, 0.5, 0.9)
        )
        found.append(half / (high - low))
    return np.array(found)


def measures(table: Table) -> tuple[Measure, ...]:
    """Chains against networks, and how transitions sharpen with depth."""
    gap = float(np.abs(table["simulated"] - table["exact"]).max())
    sharp = sharpness(table)[:, 0]
    text = ", ".join(
        f"D = {d}: {v:.2f}" for d, v in zip(settings_of(table)["depths"], sharp, strict=True)
    )
    return (
        stated(
            "chains",
            "full networks act like several chains: largest difference of a mode's strength",
            "≤ 1e-6",
            f"{gap:.1e}",
            gap,
            most=1e-6,
            rests=Basis.THEOREM,
        ),
        stated(
            "sharpness",
            "half-time over the time from 10 to 90 %, strongest mode",
            "grows with depth",
            text,
            np.min(np.diff(sharp)),
            least=0,
            rests=Basis.PAPER,
        ),
    )


def draw(table: Table) -> Picture:
    """One panel per depth."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves, letter_panels

    depths = table["depth"].to_numpy()
    figure, axes = plt.subplots(1, len(depths), figsize=(2.5 * len(depths), 2.6), squeeze=False)
    names = [f"s = {v:g}" for v in table["mode"].to_numpy()]
    for k, (depth, ax) in enumerate(zip(depths, axes[0], strict=True)):
        for kind, name in (("simulation", "simulated"), ("theory", "exact")):
            curves = dict(zip(names, table[name].to_numpy()[k].T, strict=True))
            draw_curves(table["at"].to_numpy()[k], curves, kind=kind, ylabel="strength", ax=ax)
        ax.set_title(f"D = {depth}")
        if k:
            ax.set_ylabel("")
            ax.get_legend().remove()
    letter_panels(figure)
    return figure


FIGURE = Figure(
    name="talk/stages",
    title="Stage-like transitions by depth",
    states=(
        "Full linear networks act like several one-dimensional chains, one for each mode. In "
        "shallow networks all modes learn at once; in deep ones each waits and then transitions."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
