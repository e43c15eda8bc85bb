"""NRR Fig. 1: a multi-modal network of shared modules, and how fast each of them learns."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

OURS = "ours: NRR shows a sketch without numbers"
"""The source of settings that are not in the paper."""

SETTINGS = {
    "hidden": Setting(16, "neurons of every hidden node", OURS),
    "start": Setting(0.2, "start of every edge of every mode", OURS),
    "duration": Setting(8.0, "time that is shown", "ours: until the first mode is learned"),
    "key": Setting(0, "random key of the full-size weights", "ours"),
}

MODALITIES, TASKS = ("photo", "video", "speech", "text"), ("label", "caption", "action")
"""Input and output nodes."""

EDGES = {
    "look": ("photo", "seen"),
    "watch": ("video", "seen"),
    "hear": ("speech", "words"),
    "read": ("text", "words"),
    "see": ("seen", "meaning"),
    "parse": ("words", "meaning"),
    "name": ("meaning", "label"),
    "say": ("meaning", "caption"),
    "do": ("meaning", "action"),
}
"""Modules of the network: some for one modality or task, some shared by two modalities."""

SHARED = {"look": "one modality", "see": "two modalities, all tasks", "name": "one task"}
"""What uses a module, for the first module of each kind."""


def network(hidden: int) -> tuple[nr.Architecture, nr.Dataset]:
    """Every modality with every task, one at a time; each route learns the map of NRR Fig. 4c."""
    x, y = np.eye(4), nr.tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0)).T
    source, target = np.array([(i, j) for i in MODALITIES for j in TASKS]).T
    sizes = {
        **dict.fromkeys(MODALITIES, x.shape[1]),
        **dict.fromkeys(("seen", "words", "meaning"), hidden),
        **dict.fromkeys(TASKS, y.shape[1]),
    }
    data = nr.Dataset(
        {v: np.concatenate([x * (i == v) for i in source]) for v in MODALITIES},
        {v: np.concatenate([y * (j == v) for j in target]) for v in TASKS},
        gates={
            **{v: np.repeat(source == v, len(x)) for v in MODALITIES},
            **{v: np.repeat(target == v, len(x)) for v in TASKS},
        },
    )
    return nr.Architecture(sizes, EDGES), data


def compute(settings: Settings) -> Table:
    """Paths through each module, its first step from equal starts, and its growth."""
    import jax
    import xarray

    s = settings
    arch, data = network(s["hidden"])
    race = nr.reduce(arch, data)
    times = np.linspace(0.0, s["duration"], 181)
    solution = race.solve(times=times, start=s["start"])
    mode = race.blocks[0].name
    weights = race.weights(solution, 0.0, jax.random.key(s["key"]))
    descent = jax.grad(nr.GDLN(arch).loss)(weights, data)
    return xarray.Dataset(
        {
            "paths": ("module", [arch.path_count(e) for e in arch.edges]),
            "speed": (
                "module",
                [np.linalg.norm(np.asarray(descent[e]), 2) for e in arch.edges],
            ),
            "strength": (
                ("module", "time"),
                [np.abs(solution.values["variables"][mode][e][:, 0, 0]) for e in arch.edges],
            ),
            "count": ((), arch.path_count()),
        },
        {"time": times, "module": list(arch.edges)},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """Paths through each module, and how fast it learns."""
    paths, speed = table["paths"].to_numpy(), table["speed"].to_numpy()
    per_path = speed / paths
    strength = table["strength"].to_numpy()
    half = [int((run >= 0.5 * run[-1]).argmax()) for run in strength]
    order = np.argsort(-paths, kind="stable")
    rises = np.diff(strength[order, half[order[0]]])
    return (
        stated(
            "paths",
            "paths through each module, of all paths",
            "4 modalities × 3 tasks: 3 for each modality, 6 for what two modalities share, 4 for "
            "each task, of 12",
            ", ".join(
                f"{m}: {n}" for m, n in zip(table["module"].to_numpy(), paths.tolist(), strict=True)
            )
            + f", of {int(table['count'])}",
            float(paths.tolist() == [3, 3, 3, 3, 6, 6, 4, 4, 4]),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "first-step",
            "first step of gradient descent from equal starts, per path: largest over smallest "
            "over all modules",
            "“an edge that participates in many paths … will learn faster” (§3.1): 1",
            f"{per_path.max() / per_path.min():.6f}",
            abs(per_path.max() / per_path.min() - 1),
            most=1e-6,
            rests=Basis.THEOREM,
        ),
        stated(
            "strength",
            "strength of the first mode when the most shared module has half its final strength",
            "falls from the most shared module to the least",
            ", ".join(f"{v:.2f}" for v in strength[order, half[order[0]]]),
            np.max(rises),
            most=1e-9,
            rests=Basis.PAPER,
        ),
    )


LOOKS = (("#1A1A1A", 2.8), ("#0072B2", 1.9), ("#E69F00", 1.2))
"""Colour and width of the lines of modules, those on most paths first, in both panels."""


def draw(table: Table) -> Picture:
    """(a) the network; (b) the first mode in modules through which 6, 4 and 3 paths run."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS, draw_graph, shade

    arch, _ = network(settings_of(table)["hidden"])
    figure, (above, below) = plt.subplots(2, 1, figsize=(3.4, 4.2), height_ratios=(1.35, 1))
    paths = table["paths"].to_numpy().tolist()
    order = sorted(set(paths), reverse=True)
    looks = {n: LOOKS[min(k, len(LOOKS) - 1)] for k, n in enumerate(order)}
    _draw_growth(table, below, looks)
    counts = dict(zip(arch.edges, paths, strict=True))
    labels = {e: str(n) for e, n in counts.items()}
    draw_graph(arch.sizes, arch.edges, labels=labels, ax=above)
    for patch in above.patches:
        kind, _, name = (patch.get_gid() or "").partition(":")
        if kind == "edge":
            colour, width = looks[counts[name]]
            patch.set(color=colour, linewidth=width)
        elif kind == "node":
            grey = COLOURS["neutral"]
            patch.set(facecolor=shade(grey, 0.88), edgecolor=grey)
    for text in above.texts:
        text.set_color(COLOURS["theory"])
    above.set_title("(a) modules; on edges: paths through them", loc="left")
    return figure


def _draw_growth(table: Table, ax: Any, looks: dict[int, tuple[str, float]]) -> None:
    time, paths = table["time"].to_numpy(), table["paths"].to_numpy()
    for n, (colour, width) in looks.items():
        those = [
            m for m, number in zip(table["module"].to_numpy(), paths, strict=True) if number == n
        ]
        mean = table["strength"].sel(module=those).mean("module").to_numpy()
        label = f"{n} paths: {SHARED[those[0]]}"
        ax.plot(time, mean, color=colour, linestyle=(0, (3.2, 1.6)), linewidth=width, label=label)
        low = n == min(looks)
        place = {"ha": "right", "va": "top" if low else "bottom"}
        ax.text(time[-1], mean[-1] + (-0.09 if low else 0.06), label, fontsize=7, **place)
    top = 1.25 * float(table["strength"].max())
    ax.set(title="(b) strength of the first mode, predicted", xlabel="time", ylabel="strength")
    ax.set_ylim(0, top)


FIGURE = Figure(
    name="nrr/fig1",
    title="A multi-modal network: modules that more paths share learn faster",
    states=(
        "A multi-modal network is composed of simple modules that are shared across modalities "
        "and tasks. How do shared modules and pathways affect learning (Fig. 1)? An edge on many "
        "paths learns faster (§3.1)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
