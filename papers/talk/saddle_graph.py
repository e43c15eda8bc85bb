"""Talk, "Dynamics pass near a hierarchy of saddle points": strategies as stationary points."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, noted, settings_of
from papers.talk.animals import MODEL, OURS, deep_of, task_of
from papers.talk.decisions import MARKS, colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTINGS = MODEL | {
    "seeds": Setting(100, "animals that learn on average", OURS, quick=20),
    "key": Setting(0, "random key", OURS),
    "scale": Setting(1e-3, "standard deviation of the initial weights", OURS),
    "end": Setting(400.0, "last time", OURS),
    "times": Setting(801, "times seen", OURS),
    "speed": Setting(1e-3, "values that move slower than this rest", OURS),
    "least": Setting(10.0, "shortest rest that counts", OURS),
    "within": Setting(0.05, "distance of values within which a rest is at a point", OURS),
}


def compute(settings: Settings) -> Table:
    """Stationary points, the routes between them, and the distances of animals from each."""
    import xarray

    s, task, agent = settings, task_of(settings), deep_of(settings)
    found = nr.behaviour.stationary_points(agent, task)
    chance = np.array([point.choices for point in found.points])
    run = nr.flow_ensemble(
        agent, task, key=s["key"], seeds=s["seeds"], scale=s["scale"],
        times=np.linspace(0, s["end"], s["times"]), record={"outputs": True},
    )  # fmt: skip
    rests = [
        (animal, rest.point, rest.start, rest.end, rest.distance)
        for animal, mine in enumerate(found.rests(run, speed=s["speed"], least=s["least"]))
        for rest in mine
    ]
    routes = [
        (route.source, -1 if route.target is None else route.target, route.rate)
        for route in found.routes
    ]
    uses = nr.behaviour.sensitivity(chance, task)
    signed = np.where(np.asarray(task.labels["side"]) == "left", -1, 1) * task.labels["contrast"]
    return xarray.Dataset(
        {
            "right": (("point", "stimulus"), chance[..., 1]),
            "accuracy": (
                "point",
                nr.behaviour.correct(chance, task) @ np.asarray(task.probability),
            ),
            "index": ("point", [point.index for point in found.points]),
            "separation": ("point", _separation(found)),
            "residual": ("point", [point.residual for point in found.points]),
            "strategy": ("point", nr.behaviour.strategies(chance, task).astype(object)),
            "left_use": ("point", uses["left"]),
            "right_use": ("point", uses["right"]),
            "route": (("routes", "of_route"), np.array(routes, float).reshape(-1, 3)),
            "rest": (("rests", "of_rest"), np.array(rests, float).reshape(-1, 5)),
            "distance": (("animal", "time", "point"), found.distances(run.values["outputs"])),
        },
        {
            "time": run.time,
            "stimulus": signed,
            "of_route": ["source", "target", "rate"],
            "of_rest": ["animal", "point", "start", "end", "distance"],
        },
    )


def _separation(found: nr.behaviour.StationaryPoints) -> np.ndarray:
    """The distance of every point from the nearest other."""
    far = np.array([found.distances(point.outputs) for point in found.points])
    return np.where(np.eye(len(far), dtype=bool), np.inf, far).min(axis=1)


def sequences(table: Table) -> list[tuple[int, ...]]:
    """The points that every animal passes, in order, each once.

    It passes a point where it is nearer than half the distance to the next listed point, so that
    no moment belongs to two points.
    """
    inside = table["distance"].to_numpy() < table["separation"].to_numpy() / 2
    found = []
    for mine in inside:
        order = sorted((int(np.argmax(mine[:, k])), k) for k in np.flatnonzero(mine.any(axis=0)))
        found.append(tuple(int(k) for _, k in order))
    return found


def matched(table: Table) -> np.ndarray:
    """Whether each rest is at its nearest listed point."""
    far = table["rest"].sel(of_rest="distance").to_numpy()
    return far <= settings_of(table)["within"]


def steps(table: Table) -> dict[int | None, int]:
    """How many steps from point to point follow one route, two after another, or neither (None)."""
    routes = {(int(a), int(b)) for a, b, _ in table["route"].to_numpy()}
    two = {(a, d) for a, b in routes for c, d in routes if b == c}
    taken = [pair for run in sequences(table) for pair in pairwise(run)]
    kinds = Counter(1 if pair in routes else 2 if pair in two else None for pair in taken)
    return {kind: kinds[kind] for kind in (1, 2, None)}


def on_routes(table: Table) -> float:
    """The share of steps from point to point along a single route."""
    count = steps(table)
    total = sum(count.values())
    return count[1] / total if total else float("nan")


def passing(table: Table) -> np.ndarray:
    """For every animal 1 if it passes two saddles or more, else 0."""
    index = table["index"].to_numpy()
    return np.array([float(sum(index[k] > 0 for k in run) >= 2) for run in sequences(table)])


def levels(table: Table) -> float:
    """How many different numbers of ways out the saddles have."""
    return float(len({int(ways) for ways in table["index"].to_numpy() if ways}))


MEASURES = {
    "levels": Measure(
        "levels",
        "levels of saddles, by their number of ways out",
        levels,
        least=2,
        rests=Basis.PAPER,
        words="a hierarchy of saddle points",
    ),
    "residual": Measure(
        "residual",
        "largest velocity at a listed point",
        lambda table: float(table["residual"].max()),
        most=1e-10,
        rests=Basis.THEOREM,
    ),
    "rests": Measure(
        "rests",
        "share of the animals' rests that lie at a listed point",
        lambda table: float(matched(table).mean()),
        least=1,
        rests=Basis.PAPER,
    ),
    "passing": Measure(
        "passing",
        "share of animals that pass two saddles or more",
        passing,
        least=0.5,
        origin=1.0,
        words="dynamics pass near …",
    ),
    "graph": Measure(
        "graph",
        "share of steps from point to point along a single route of the graph",
        on_routes,
        least=1,
        rests=Basis.PAPER,
        otherwise="Of the steps from point to point, {:.0%} are single routes of the graph; the "
        "others skip the point between two routes.",
    ),
}
"""What ledger and figure's agreement judge; the bound of `passing`, ours, came after trial runs."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Stationary points, rests and passages against the hierarchy that the talk names."""
    named, index = names(table), table["index"].to_numpy()
    rests = table["rest"].sel(of_rest="point").to_numpy().astype(int)
    far = float(table["rest"].sel(of_rest="distance").max())
    where = ", ".join(f"{int((rests == k).sum())} {named[k]}" for k in np.unique(rests))
    count = steps(table)
    beside = {
        "graph": f"{count[1]} along one, {count[2]} along two in a row, {count[None]} along none",
        "levels": ", ".join(f"{n} {i}" for n, i in zip(named, index, strict=True) if i),
        "rests": f"{where}; farthest {far:.2g}",
    }
    return tuple(noted(MEASURES, beside))


def draw(table: Table) -> Picture:
    """The graph, one animal's distances from its points, and the sequences of all animals."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.9), width_ratios=(1.25, 1.0, 0.9))
    _draw_graph(axes[0], table)
    _draw_distances(axes[1], table)
    _draw_sequences(axes[2], table)
    letter_panels(figure)
    return figure


def names(table: Table) -> list[str]:
    """The strategies of the points, numbered where several have one."""
    plain = [str(name) for name in table["strategy"].to_numpy()]
    return [
        name if plain.count(name) == 1 else f"{name} {plain[: k + 1].count(name)}"
        for k, name in enumerate(plain)
    ]


def _draw_graph(ax: Axes, table: Table) -> None:
    """Points by use of both sides; each drawn as its psychometric curve."""
    look = colours()
    x, y = (table[f"{side}_use"].to_numpy() for side in ("left", "right"))
    span = max(float(x.max()), float(y.max()))
    size = 0.3
    place = np.stack([x, y], axis=1) / span
    for source, target, rate in table["route"].to_numpy():
        if target < 0:
            continue
        a, b = place[int(source)], place[int(target)]
        gap = 0.26 * (b - a) / np.linalg.norm(b - a)
        arrow = {"arrowstyle": "-|>", "color": "0.3", "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", b - gap, a + gap, arrowprops=arrow)
        middle = ((a + b) / 2).tolist()
        ax.text(
            middle[0], middle[1], f"{rate:.3f}", fontsize="x-small", ha="center", va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    stimulus = table["stimulus"].to_numpy()
    order = np.argsort(stimulus)
    kinds = [str(name) for name in table["strategy"].to_numpy()]
    for k, (at, kind) in enumerate(zip(place, kinds, strict=True)):
        inset = ax.inset_axes(
            (at[0] - size / 2, at[1] - size / 2, size, size), transform=ax.transData
        )
        curve = table["right"].to_numpy()[k][order]
        inset.plot(stimulus[order], curve, color=look[kind], marker=MARKS[kind], markersize=2)
        inset.set(xticks=[], yticks=[], ylim=(-0.05, 1.05))
        ways = int(table["index"][k])
        out = f"{ways} way{'s' if ways > 1 else ''} out"
        title = f"{names(table)[k]}: {out if ways else 'stable'}"
        inset.set_title(title, fontsize="x-small", pad=2)
    ax.set(
        xlim=(-0.25, 1.25), ylim=(-0.25, 1.35), xticks=[], yticks=[],
        xlabel="use of left stimuli", ylabel="use of right stimuli", title="which leads to which",
    )  # fmt: skip
    note = "insets: probability of right\nby contrast; on arrows:\nrate of escape"
    ax.text(0.98, 0.98, note, transform=ax.transAxes, ha="right", va="top", fontsize="x-small")


def _draw_distances(ax: Axes, table: Table) -> None:
    look = colours()
    runs = sequences(table)
    shown = next((k for k, run in enumerate(runs) if len(run) >= 3), 0)
    far = table["distance"].to_numpy()[shown]
    for k, name in enumerate(names(table)):
        kind = str(table["strategy"].to_numpy()[k])
        mark = {"marker": MARKS[kind], "markevery": (0.05 + 0.03 * k, 0.2), "markersize": 4}
        ax.plot(table["time"], far[:, k], color=look[kind], label=name, **mark)
    ax.set(
        xlabel="time", ylabel="distance of values from the point",
        xlim=(0, 0.6 * float(table["time"][-1])), title=f"animal {shown + 1}, simulated",
    )  # fmt: skip
    settled = far[table["time"].to_numpy() >= 5]  # the constant values are learned by then
    ax.set_ylim(0, 1.5 * float(settled.max()))
    ax.legend(loc="upper right", fontsize="x-small", ncols=2)


def _draw_sequences(ax: Axes, table: Table) -> None:
    from neuralrace.plot import COLOURS

    label = names(table)
    counts = Counter(sequences(table)).most_common(6)
    for row, (run, n) in enumerate(counts):
        ax.barh(row, n, color=COLOURS["neutral"], height=0.35)
        ax.text(0.5, row - 0.24, " → ".join(label[k] for k in run), fontsize="x-small", va="bottom")
        ax.text(n + 0.5, row, str(n), va="center", fontsize="x-small")
    ax.set(
        yticks=[], xlabel="animals", title="points they pass",
        ylim=(max(len(counts), 3) - 0.4, -0.8), xlim=(0, 1.25 * counts[0][1]),
    )  # fmt: skip


FIGURE = Figure(
    name="talk/saddle_graph",
    title="Strategies as stationary points: which leads to which, and animals that pass them",
    states=(
        "The dynamics of the deep network pass near a hierarchy of saddle points; its fixed points "
        "explain why learning is diverse and systematic. Numbers are ours, nothing is fitted."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
