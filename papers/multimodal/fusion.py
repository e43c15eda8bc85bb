"""When two modalities are learned: late and early fusion, correlation, and depth."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table

OURS = "ours"

SETTINGS = {
    "sizes": Setting((2.0, 1.0), "standard deviations of modalities A and B; y = x_A + x_B", OURS),
    "correlation": Setting(0.5, "correlation of A and B, where they are correlated", OURS),
    "hidden": Setting(100, "hidden neurons of each pathway of late fusion", OURS),
    "early_hidden": Setting(50, "hidden neurons of early fusion", OURS),
    "scales": Setting((1e-2, 1e-3, 1e-5), "σ, standard deviation of initial weights", OURS),
    "scale": Setting(1e-3, "σ of the random starts and of early fusion", OURS),
    "seeds": Setting(200, "random starts of late fusion", OURS, quick=20),
    "early_seeds": Setting(10, "random starts of early fusion", OURS, quick=5),
    "aligned": Setting(0.01, "b₀ of every edge in networks of different depth", OURS),
    "key": Setting(0, "random key", OURS),
}

FUSIONS = (
    "2 edges, early",
    "2 edges, late",
    "3 edges, early",
    "3 edges, middle",
    "3 edges, late",
)
"""Where the two modalities meet: in the first hidden layer, the second one, or the output."""


def population(sizes: tuple[float, ...], correlation: float) -> nr.Dataset:
    """The second moments of A, B and y = x_A + x_B."""
    a, b = sizes
    cross = correlation * a * b
    return nr.Dataset.from_moments(
        {"A": [[a**2]], "B": [[b**2]], ("A", "B"): [[cross]]},
        {("y", "A"): [[a**2 + cross]], ("y", "B"): [[b**2 + cross]]},
        [[a**2 + b**2 + 2 * cross]],
    )


def network(depth: int, meet: int, hidden: int) -> nr.Architecture:
    """Modalities with nodes of their own up to layer `meet`, and joint ones from there on."""
    own = {v: [v, *(f"{v}{k}" for k in range(1, meet))] for v in "AB"}
    joint = [*(f"h{k}" for k in range(meet, depth)), "y"]
    edges = {
        f"{s}_{t}": (s, t) for v in "AB" for s, t in pairwise([*own[v], *joint])
    }  # joint edges occur twice, and are one
    nodes = [v for ends in edges.values() for v in ends]
    return nr.Architecture({v: 1 if v in ("A", "B", "y") else hidden for v in nodes}, edges)


def half_times(time: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """When each of some strengths `(k, T)` first reaches half of its last value."""
    found = []
    for curve in strengths:
        at = int(np.argmax(curve >= curve[-1] / 2))
        found.append(np.interp(curve[-1] / 2, curve[at - 1 : at + 1], time[at - 1 : at + 1]))
    return np.array(found)


def compute(settings: Settings) -> Table:
    """Times and courses of both modalities, for every start, correlation and kind of fusion."""
    import jax
    import xarray

    s = settings
    plain, mixed = (population(s["sizes"], c) for c in (0.0, s["correlation"]))
    late = network(2, 2, s["hidden"])
    race = nr.reduce(late, plain)
    table = race.modes(scale=s["scale"], seeds=s["seeds"], key=s["key"])
    coupled = nr.reduce(late, mixed)
    stages = [coupled.modes(scale=scale).stages for scale in s["scales"]]
    end = 1.5 * stages[1][-1].time
    time = np.linspace(0.0, end, 1501)
    begin = coupled.start(s["scale"] * np.sqrt(s["hidden"] / 2))
    strengths = coupled.solve(times=time, start=begin).values["pathways"]["mode1"]
    early = network(2, 1, s["early_hidden"])
    net = nr.GDLN(early)
    runs = []
    for key in jax.random.split(jax.random.key(s["key"]), s["early_seeds"]):
        flow = nr.flow(net, net.init(key, s["scale"]), plain, times=time, record={"weights": True})
        w = flow.values["weights"]
        runs.append([(w["h1_y"] @ w[f"{v}_h1"])[:, 0, 0] for v in "AB"])
    maps = np.array(runs)
    ratios = []
    for name in FUSIONS:
        depth, where = int(name[0]), name.split(", ")[1]
        arch = network(depth, {"early": 1, "middle": 2, "late": depth}[where], 1)
        reduced = nr.reduce(arch, plain)
        long = np.linspace(0.0, 3 * s["aligned"] ** (2 - depth) + 60.0, 20_001)
        found = reduced.solve(times=long, start=s["aligned"]).values["pathways"]
        paths = {p[0]: np.asarray(v) for each in found.values() for p, v in each.items()}
        a, b = half_times(long, np.stack([paths["A"], paths["B"]]))
        ratios.append(b / a)
    return xarray.Dataset(
        {
            "mean_ratio": table.half_time[1] / table.half_time[0],
            "random_ratio": ("seed", table.seed_times[:, 1] / table.seed_times[:, 0]),
            "leading": ("scale", [b.time / a.time for a, b in stages]),
            "solved": ("scale", [b.solved / a.solved for a, b in stages]),
            "limit": 1 + (stages[0][0].alone - stages[0][1].alone) / stages[0][1].rate,
            "late": (("modality", "time"), [strengths["A_A1-A1_y"], strengths["B_B1-B1_y"]]),
            "early": (("early_seed", "modality", "time"), maps),
            "early_ratio": ("early_seed", [b / a for a, b in (half_times(time, m) for m in maps)]),
            "fusion_ratio": ("fusion", ratios),
        },
        {
            "time": time,
            "scale": list(s["scales"]),
            "modality": ["A", "B"],
            "fusion": list(FUSIONS),
        },
    )


def _fusion(t: Table, name: str) -> float:
    return float(t["fusion_ratio"].sel(fusion=name))


def measures(table: Table | None = None) -> tuple[Measure, ...]:
    """The numbers of all panels, with their bounds."""
    expected = (4.72, 4.86, 4.93)
    return (
        Measure(
            "mean-start",
            "late fusion, no correlation: t_B/t_A from the mean start, off from 4",
            lambda t: abs(float(t["mean_ratio"]) - 4),
            most=1e-6,
            rests=Basis.THEOREM,
        ),
        Measure(
            "random-starts",
            "the same from random starts, σ = 1e-3, mean",
            lambda t: t["random_ratio"].to_numpy(),
            least=3.9,
            most=4.1,
        ),
        Measure(
            "leading",
            "correlation .5: t_B/t_A in the limit of a small start, off from 5",
            lambda t: abs(float(t["limit"]) - 5),
            most=1e-9,
            rests=Basis.THEOREM,
        ),
        Measure(
            "corrections",
            "correlation .5: t_B/t_A at σ = 1e-2, 1e-3, 1e-5, farthest from 4.72, 4.86, 4.93",
            lambda t: float(np.abs(t["solved"].to_numpy() - expected).max()),
            most=0.02,
        ),
        Measure(
            "leading-error",
            "correlation .5: ratio of times to leading order against the solution, largest error",
            lambda t: float(np.abs(t["leading"] / t["solved"] - 1).max()),
            most=0.01,
        ),
        Measure(
            "early",
            "early fusion, σ = 1e-3: t_B/t_A, mean",
            lambda t: t["early_ratio"].to_numpy(),
            least=1.26,
            most=1.46,
        ),
        Measure(
            "early-phase",
            "early fusion: strength of B when A is at half, part of its own final strength, mean",
            lambda t: _at_half(t),
            least=0.1,
        ),
        Measure(
            "later-is-longer",
            "three edges: t_B/t_A of late over middle fusion, and of middle over early, least",
            lambda t: min(
                _fusion(t, "3 edges, late") / _fusion(t, "3 edges, middle"),
                _fusion(t, "3 edges, middle") / _fusion(t, "3 edges, early"),
            ),
            least=1.0,
        ),
        Measure(
            "deep-late",
            "three edges, late fusion: t_B/t_A, off from the 4 of two edges, relative",
            lambda t: abs(_fusion(t, "3 edges, late") / 4 - 1),
            most=0.05,
        ),
    )


def _at_half(t: Table) -> np.ndarray:
    maps = t["early"].to_numpy()
    first = np.argmax(maps[:, 0] >= maps[:, 0, -1:] / 2, axis=1)
    return np.array([m[1, k] / m[1, -1] for m, k in zip(maps, first, strict=True)])


def draw(table: Table) -> Picture:
    """(a) late fusion, (b) early fusion, (c) the ratio against the start, (d) where they meet."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS

    figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.8), layout="constrained")
    time = table["time"].to_numpy()
    styles = {"A": "-", "B": "--"}
    for ax, curves, title in (
        (axes[0, 0], table["late"].to_numpy(), "(a) late fusion, correlation .5"),
        (axes[0, 1], table["early"].mean("early_seed").to_numpy(), "(b) early fusion"),
    ):
        for name, curve in zip("AB", curves, strict=True):
            ax.plot(
                time,
                curve,
                styles[name],
                color="black" if name == "A" else "tab:orange",
                label=f"modality {name}",
            )
        ax.set(title=title, xlabel="time", ylabel="strength of the map")
        ax.legend()
    axes[0, 1].set_xlim(0, time[-1] / 2)
    ax, scales = axes[1, 0], table["scale"].to_numpy()
    ax.axhline(float(table["limit"]), color=COLOURS["neutral"], linewidth=0.8, label="limit")
    ax.plot(scales, table["leading"], "s--", color="black", mfc="none", label="leading order")
    ax.plot(scales, table["solved"], "o-", color="tab:blue", label="solved race")
    ax.set(xscale="log", xlabel="σ of the initial weights", ylabel="$t_B/t_A$")
    ax.set_title("(c) correlation .5")
    ax.legend()
    ax = axes[1, 1]
    ax.barh(FUSIONS[::-1], table["fusion_ratio"].to_numpy()[::-1], color="tab:blue")
    ax.axvline(1.0, color=COLOURS["neutral"], linewidth=0.8)
    ax.set(xlabel="$t_B/t_A$", title="(d) where the modalities meet")
    return figure


FIGURE = Figure(
    name="multimodal/fusion",
    title="When two modalities are learned",
    states=(
        "Where modalities meet late, the weaker one waits: for a time the network is unimodal, "
        "longer if the modalities are correlated. Where they meet early, both are learned at once."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
