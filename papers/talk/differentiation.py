"""Talk, "Progressive differentiation": a network learns a tree level by level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTINGS = {
    "branching": Setting((2, 2, 2), "children of a node, level by level", "ours"),
    "flip": Setting(0.05, "probability of a flip on a branch", "ours"),
    "features": Setting(2000, "features drawn", "ours", quick=500),
    "hidden": Setting(16, "hidden neurons", "ours"),
    "scale": Setting(1e-3, "standard deviation of the initial weights", "ours"),
    "end": Setting(250.0, "last time", "ours: until all is learned"),
    "times": Setting(401, "times shown", "ours", quick=201),
    "key": Setting(0, "random key of weights and features", "ours"),
}


def compute(settings: Settings) -> Table:
    """Strength of every level over time, simulated and predicted, and the items in a plane."""
    import jax
    import xarray

    s = settings
    world = nr.tasks.tree_world(s["branching"], flip=s["flip"])
    data = world.dataset(s["features"], key=s["key"])
    net = nr.GDLN(nr.Architecture.chain(world.items, s["hidden"], s["features"]))
    weights = net.init(jax.random.key(s["key"]), s["scale"])
    times = np.linspace(0, s["end"], s["times"])
    # only the Gram matrix of the outputs matters: P features that have the same one learn alike
    left, values, right = np.linalg.svd(np.asarray(data.y["y"]).T, full_matrices=False)
    small = nr.GDLN(nr.Architecture.chain(world.items, s["hidden"], world.items))
    few = nr.Dataset(data.x, {"y": (values[:, None] * right).T})
    start = {"W1": np.asarray(weights["W1"]), "W2": left.T @ np.asarray(weights["W2"])}
    run = nr.flow(small, start, few, times=times, record={"weights": True})
    grown = nr.linear.grown_weights(small, start, few)
    exact = nr.linear.lambda_balanced(small, grown, few, times=times)
    limit = world.dataset()
    ideal = nr.linear.aligned_weights(small, limit, float(s["scale"] * np.sqrt(s["hidden"] / 2)))
    ideal_run = nr.linear.lambda_balanced(small, ideal, limit, times=times)

    def by_level(one: nr.Trajectory, shown: nr.Dataset) -> np.ndarray:
        strengths = nr.linear.mode_strengths(one, shown, vectors=world.vectors)
        return np.stack(
            [strengths[:, world.levels == k].mean(axis=1) for k in range(len(s["branching"]) + 1)]
        )

    hidden = nr.analysis.hidden(small, run.values["weights"], few, "h")
    return xarray.Dataset(
        {
            "simulated": (("level", "time"), by_level(run, few)),
            "predicted": (("level", "time"), by_level(exact, few)),
            "limit": (("level", "time"), by_level(ideal_run, limit)),
            "places": (("time", "item", "axis"), seen_at_an_angle(hidden, world)),
        },
        {"time": times},
    )


def seen_at_an_angle(hidden: np.ndarray, world: nr.tasks.World) -> np.ndarray:
    """(T, N, 2): items by multidimensional scaling, with all later dimensions projected onto one.

    Two levels of branches need more dimensions than a page has (three for 2 × 2). The first is
    kept. The others are projected onto one axis, the same at all times, chosen so that all branches
    of level 2 are visibly separated at the end.
    """
    dimensions = max(int((world.levels <= 2).sum()) - 1, 2)
    places = nr.analysis.mds(hidden, dimensions=dimensions).positions
    parting = world.vectors[:, world.levels == 2].sum(axis=1)
    view = places[-1, :, 1:].T @ parting
    return np.stack([places[..., 0], places[..., 1:] @ (view / np.linalg.norm(view))], axis=-1)


def measures(table: Table) -> tuple[Measure, ...]:
    """Levels in order, at the predicted times."""
    time = table["time"].to_numpy()
    found, predicted, limit = (
        nr.trajectory.crossing_time(time, table[name].to_numpy(), 0.5, rising=True)
        for name in ("simulated", "predicted", "limit")
    )
    off = np.abs(found / predicted - 1).max()
    far = np.abs(found / limit - 1).max()
    return (
        stated(
            "order",
            "levels are learned from the root down: half-times",
            "increasing",
            ", ".join(f"{t:.1f}" for t in found),
            np.min(np.diff(found)),
            least=0,
            rests=Basis.PAPER,
        ),
        stated(
            "predicted",
            "predicted from the actual weights and features, worst level",
            "within 5 %",
            f"{100 * off:.2g} %",
            off,
            most=0.05,
        ),
        stated(
            "limit",
            "predicted from width, scale and the limit of many features, worst level",
            "reported",
            f"{100 * far:.2g} %",
        ),
    )


def draw(table: Table) -> Picture:
    """Levels over time, and the items of the hidden layer in a plane."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0))
    time = table["time"].to_numpy()
    for name, kind in (("simulated", "simulation"), ("predicted", "theory")):
        curves = {f"level {k}": row for k, row in enumerate(table[name].to_numpy())}
        draw_curves(time, curves, kind=kind, ylabel="learned", ax=left)
    learned = (table["simulated"].to_numpy() > 0.99).all(axis=0)
    left.set(title="(a) level after level", xlim=(0, time[learned][0] if learned.any() else None))
    _draw_items(right, table["places"].to_numpy(), settings_of(table)["branching"])
    return figure


def _draw_items(ax: Axes, places: np.ndarray, branching: Sequence[int]) -> None:
    """The items from the middle outwards, each branch of level 2 with the names of its items."""
    items = places.shape[1]
    large, small = items // branching[0], max(1, items // int(np.prod(branching[:2])))
    for item in range(items):
        branch = item // large
        colour, marker = ("black", "0.55")[branch % 2], "os^DvP"[branch % 6]
        ax.plot(*places[:, item].T, color=colour, linewidth=1.2)
        ax.plot(*places[-1, item], marker, color=colour, ms=5)
    reach = np.abs(places[..., 0]).max()
    for first in range(0, items, small):
        x, y = places[-1, first : first + small].mean(axis=0)
        last = first + small
        name = f"item {last}" if small == 1 else f"items {first + 1}–{last}"
        side = (
            {"ha": "left", "x": x + 0.08 * reach}
            if x < 0
            else {"ha": "right", "x": x - 0.08 * reach}
        )
        ax.text(y=y, s=name, va="center", fontsize=7, **side)
    others = int(np.prod(branching[:2])) - 1
    label = "second and third dimension" if others == 3 else f"dimensions 2 to {max(others, 2)}"
    ax.set(xlabel="first dimension", ylabel=label, title="(b) items come apart (MDS), simulated")


FIGURE = Figure(
    name="talk/differentiation",
    title="Progressive differentiation of a hierarchy",
    states=(
        "Singular vectors mirror the hierarchy and singular values decay with its depth, so these "
        "networks must exhibit progressive differentiation."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
