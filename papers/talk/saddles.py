"""Talk, "Depth introduces a hierarchy of saddle points": each run passes near some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTINGS = {
    "values": Setting((16.0, 8.0, 4.0, 2.0, 1.0), "singular values of the task", "ours"),
    "hidden": Setting(8, "hidden neurons", "ours"),
    "scale": Setting(1e-6, "standard deviation of the initial weights", "ours"),
    "seeds": Setting(5, "runs", "ours", quick=2),
    "key": Setting(0, "first random key", "ours"),
    "end": Setting(25.0, "last time", "ours"),
    "times": Setting(2501, "times seen", "ours", quick=1251),
    "least": Setting(0.2, "shortest plateau that counts", "ours"),
    "slope": Setting(1e-3, "largest fall on a plateau, relative to L(0), per unit of time", "ours"),
}


def compute(settings: Settings) -> Table:
    """Losses and distances from every stationary point of runs from several seeds."""
    import jax
    import xarray

    s = settings
    net, data = task(s)
    points = nr.linear.saddles(net, data)
    times = np.linspace(0, s["end"], s["times"])
    losses, distances = [], []
    for seed in range(s["seeds"]):
        weights = net.init(jax.random.key(s["key"] + seed), s["scale"])
        run = nr.flow(net, weights, data, times=times, record={"weights": True})
        losses.append(run.loss)
        distances.append(points.distances(nr.linear.maps_of(run)))
    names = ["{" + ", ".join(map(str, p.modes)) + "}" for p in points.points]
    return xarray.Dataset(
        {
            "loss": (("seed", "time"), np.array(losses)),
            "distance": (("seed", "time", "point"), np.array(distances)),
            "point_loss": ("point", [p.loss for p in points.points]),
            "index": ("point", [p.index for p in points.points]),
        },
        {"time": times, "point": names},
    )


def task(settings: Settings) -> tuple[nr.GDLN, nr.Dataset]:
    """White inputs, and a diagonal map with these singular values."""
    values = np.array(settings["values"])
    x = np.sqrt(len(values)) * np.eye(len(values))
    net = nr.GDLN(nr.Architecture.chain(len(values), settings["hidden"], len(values)))
    return net, nr.Dataset({"x": x}, {"y": x * values})


def stays(table: Table) -> list[list[tuple[int, float, float]]]:
    """The plateaus of every run, in order: nearest listed point, distance, relative error of loss.

    Plateaus are found from the loss alone. The error is the difference between the plateau's and
    the point's loss, relative to the latter (at least 1e-9 L(0)).
    """
    s = settings_of(table)
    time, levels = table["time"].to_numpy(), table["point_loss"].to_numpy()
    found = []
    for loss, distance in zip(table["loss"].to_numpy(), table["distance"].to_numpy(), strict=True):
        mine = []
        run = nr.Trajectory(time, loss)
        for plateau in nr.linear.plateaus(run, least=s["least"], slope=s["slope"]):
            at = int(np.searchsorted(time, plateau.at))
            point = int(distance[at].argmin())
            error = abs(plateau.loss - levels[point]) / max(levels[point], 1e-9 * loss[0])
            mine.append((point, float(distance[at, point]), float(error)))
        found.append(mine)
    return found


def matched(table: Table) -> list[bool]:
    """For every plateau of every run: whether it lies at a listed point, with loss within 1 %."""
    reach = 0.1 * min(settings_of(table)["values"])
    return [far <= reach and error <= 0.01 for run in stays(table) for _, far, error in run]


def measures(table: Table) -> tuple[Measure, ...]:
    """Plateaus, found from the loss alone, against the listed saddles."""
    s = settings_of(table)
    hits = matched(table)
    runs = stays(table)
    worst = max((error for run in runs for _, _, error in run), default=0.0)
    orders = {tuple(point for point, _, _ in run) for run in runs}
    origin = len(s["values"]) * s["hidden"]
    return (
        stated(
            "plateaus",
            f"plateaus of {s['least']:g} or longer that lie at one listed saddle, loss within 1 %",
            "all",
            f"{sum(hits)} of {len(hits)}, worst {worst:.1e}",
            float(bool(hits) and all(hits)),
            least=1,
            rests=Basis.PAPER,
        ),
        stated(
            "escapes",
            "directions of escape from the origin",
            "hidden neurons times modes",
            f"{int(table['index'][0])}",
            float(int(table["index"][0]) == origin),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "orders", "different sequences of saddles among the runs", "reported", str(len(orders))
        ),
    )


def draw(table: Table) -> Picture:
    """Losses with the levels of the saddles passed; distances of the first run from them."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0))
    time, losses = table["time"].to_numpy(), table["loss"].to_numpy()
    lowest = 1e-3 * losses.max()
    end = 1.1 * time[(losses > lowest).any(axis=0)].max()
    dark, grey = COLOURS["theory"], COLOURS["neutral"]
    first, *_ = left.plot(time, losses.T, color=grey, linewidth=1.0, alpha=0.7)
    first.set_label(f"{len(losses)} runs, simulated")
    left.plot([], [], color=dark, linewidth=0.7, linestyle=":", label="loss at a saddle")
    far = table["distance"].to_numpy()[0]
    near = np.unique(far.argmin(axis=1))
    names = [str(name) for name in table["point"].to_numpy()]
    for point in near:
        level = float(table["point_loss"][point])
        if level > lowest:
            left.axhline(level, color=dark, linewidth=0.7, linestyle=":", zorder=1)
            _beside(left, level, names[point])
        right.plot(time, far[:, point], label=names[point], linewidth=1.6)
        _beside(right, float(np.interp(end, time, far[:, point])), names[point])
    left.set(
        title="(a) plateaus are saddles, {learned modes}", yscale="log", xlabel="time",
        ylabel="loss", xlim=(0, end), ylim=(lowest, 2 * losses.max()),
    )  # fmt: skip
    left.legend(loc="lower left")
    right.set(
        title="(b) distances of one run from them, simulated", xlabel="time",
        ylabel="distance from the saddle", xlim=(0, end),
    )  # fmt: skip
    return figure


def _beside(ax: Axes, height: float, name: str) -> None:
    """The name of a line at the right end of a panel, outside of it."""
    place = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    ax.annotate(name, (1, height), xycoords=("axes fraction", "data"), fontsize=6.5, **place)


FIGURE = Figure(
    name="talk/saddles",
    title="The hierarchy of saddle points, and runs that pass near them",
    states=(
        "Depth introduces a hierarchy of saddle points; learning passes near them, systematically "
        "and yet differently from run to run."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
