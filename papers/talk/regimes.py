"""Talk, "Rich and lazy learning" and "Architecture and learning regime": maps over λ and scale."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "lambdas": Setting(
        (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0),
        "λ of the initial weights",
        "ours",
        quick=(-4.0, 0.0, 4.0),
    ),
    "scales": Setting(
        (0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        "singular values of the initial map",
        "ours",
        quick=(0.01, 1.0),
    ),
    "funnel": Setting((8, 4, 4), "inputs, hidden, outputs", "Talk: funnel; sizes ours"),
    "square": Setting((4, 4, 4), "inputs, hidden, outputs", "Talk: square; sizes ours"),
    "inverted": Setting((4, 4, 8), "inputs, hidden, outputs", "Talk: inverted funnel; sizes ours"),
    "seeds": Setting(10, "tasks and weights, averaged", "ours", quick=3),
    "late": Setting(200.0, "the time at which learning counts as finished", "ours"),
}
SHAPES = ("funnel", "square", "inverted")
"""The names of the three architectures."""


def compute(settings: Settings) -> Table:
    """Final kernel distance and sharpness of the transition, by shape, λ and scale."""
    import xarray

    s = settings
    times = np.concatenate([[0.0], np.geomspace(1e-3, s["late"], 120)])
    shape = (len(SHAPES), len(s["lambdas"]), len(s["scales"]), s["seeds"])
    distance, sharpness = np.full(shape, np.nan), np.full(shape, np.nan)
    for i, name in enumerate(SHAPES):
        for seed in range(s["seeds"]):
            net, data = task(s[name], seed)
            for j, lam in enumerate(s["lambdas"]):
                for k, scale in enumerate(s["scales"]):
                    weights = nr.linear.balanced_weights(net, lam, scale=scale, key=seed)
                    run = nr.linear.lambda_balanced(net, weights, data, times=times)
                    distance[i, j, k, seed] = run.values["kernel_distance"][-1]
                    left = run.loss / run.loss[0]
                    early, late = (nr.trajectory.crossing_time(times, left, f) for f in (0.9, 0.5))
                    sharpness[i, j, k, seed] = early / late
    dims = ("shape", "lam", "scale", "seed")
    return xarray.Dataset(
        {"distance": (dims, distance), "sharpness": (dims, sharpness)},
        {"shape": list(SHAPES), "lam": list(s["lambdas"]), "scale": list(s["scales"])},
    )


def task(sizes: Any, seed: int) -> tuple[nr.GDLN, nr.Dataset]:
    """White inputs and random targets, of unit variance for every pair of neurons."""
    rng = np.random.default_rng(seed)
    x = np.sqrt(sizes[0]) * np.eye(sizes[0])
    data = nr.Dataset({"x": x}, {"y": rng.normal(size=(sizes[0], sizes[2]))})
    return nr.GDLN(nr.Architecture.chain(*sizes)), data


def measures(table: Table) -> tuple[Measure, ...]:
    """Rich at λ = 0 and small scales, lazy far from λ = 0 where the architecture permits."""
    mean = table["distance"].mean("seed").sortby("lam")
    small = mean.isel(scale=0)
    rich = small.sel(lam=0.0, method="nearest").to_numpy()
    low, high = small.isel(lam=0).to_numpy(), small.isel(lam=-1).to_numpy()
    lazy = {"square": max(low[1], high[1]), "funnel, λ > 0": high[0], "inverted, λ < 0": low[2]}
    late = {"funnel, λ < 0": low[0], "inverted, λ > 0": high[2]}
    large = mean.isel(scale=-1).sel(lam=0.0, method="nearest").to_numpy() / rich
    shown = lambda values: ", ".join(f"{k}: {v:.3f}" for k, v in values.items())
    return (
        stated(
            "rich",
            "kernel distance at λ = 0 and the smallest scale: funnel, square, inverted",
            "rich: > 0.05 each",
            ", ".join(f"{v:.3f}" for v in rich),
            np.min(rich),
            least=0.05,
        ),
        stated(
            "lazy",
            "the same at the largest |λ|, where the larger layer reaches every direction",
            "lazy: < 0.2 of that at λ = 0",
            shown(lazy),
            max(lazy.values()),
            most=0.2 * rich.min(),
        ),
        stated(
            "delayed",
            "the same, where the larger layer itself must change",
            "rich after all (delayed): > 0.05",
            shown(late),
            min(late.values()),
            least=0.05,
        ),
        stated(
            "large-scale",
            "the same at λ = 0, from the largest scale over from the smallest",
            "reported; the talk: large weights are lazy, which would be < 0.2",
            ", ".join(f"{v:.2f}" for v in large)
            + (": lazy" if (large < 0.2).all() else ": scale alone does not make them lazy"),
        ),
    )


def draw(table: Table) -> Picture:
    """Heat maps of kernel distance (above) and sharpness (below), one column per shape."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    settings = settings_of(table)
    figure, axes = plt.subplots(2, 3, figsize=(7.6, 4.4), sharex=True, sharey=True)
    titles = {"funnel": "funnel", "square": "square", "inverted": "inverted funnel"}
    for row, (name, short, label) in enumerate(
        (
            ("distance", "kernel", "distance of the kernel"),
            ("sharpness", "wait", "wait: $t_{10\\%} / t_{50\\%}$"),
        )
    ):
        values = table[name].mean("seed").to_numpy()
        image: Any = None
        for column, shape in enumerate(SHAPES):
            ax = axes[row, column]
            image = ax.imshow(
                values[column].T, origin="lower", aspect="auto", cmap="viridis", vmin=0,
                vmax=np.nanmax(values),
            )  # fmt: skip
            lams, scales = table["lam"].to_numpy(), table["scale"].to_numpy()
            told = [f"{v:g}".replace("-", "−") for v in lams]
            ax.set_xticks(range(len(lams)), told, fontsize=6, rotation=90)
            ax.set_yticks(range(len(scales)), [f"{v:g}" for v in scales])
            sizes = "–".join(map(str, settings[shape]))
            ax.set_title(f"{short}, {titles[shape]} ({sizes})")
            if row:
                ax.set_xlabel("λ")
            if column == 0:
                ax.set_ylabel("initial scale")
        figure.colorbar(image, ax=axes[row], label=label, shrink=0.9)
    letter_panels(figure)
    return figure


FIGURE = Figure(
    name="talk/regimes",
    title="Learning regimes over λ, initial scale and architecture",
    states=(
        "Small and balanced weights learn richly; unbalanced ones, and large ones, learn lazily "
        "(for large ones, see the last line of the agreement). Which sign of λ is lazy depends on "
        "whether the network is a funnel, square or an inverted funnel."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
