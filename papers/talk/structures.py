"""Talk, "Learning diverse structures": worlds of items, their modes, and sampled features."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, stated

SETTINGS = {
    "items": Setting(16, "items of every world", "ours", choices=(16,)),
    "flip": Setting(0.1, "probability of a flip on a branch of the tree", "ours"),
    "variance": Setting(10.0, "variance of a Gaussian feature without neighbours", "ours"),
    "features": Setting((100, 1600, 25600), "numbers of features drawn", "ours", quick=(100, 1600)),
    "seeds": Setting(10, "repetitions for each number", "ours", quick=4),
    "shown": Setting(8, "modes shown", "ours"),
}


def worlds(settings: Settings) -> dict[str, nr.tasks.World]:
    """The five worlds of sixteen items."""
    variance = settings["variance"]
    return {
        "tree": nr.tasks.tree_world(2, 4, flip=settings["flip"]),
        "partition": nr.tasks.partition_world((6, 5, 5), variance=variance),
        "ring": nr.tasks.ring_world(16, variance=variance),
        "chain": nr.tasks.chain_world(16, variance=variance),
        "grid": nr.tasks.grid_world(4, 4, variance=variance),
    }


def compute(settings: Settings) -> Table:
    """Covariances and modes from symmetry; eigenvalues of sampled features against them."""
    import xarray

    s = settings
    found = worlds(s)
    errors = np.zeros((len(found), len(s["features"]), s["seeds"]))
    for i, world in enumerate(found.values()):
        for j, number in enumerate(s["features"]):
            for seed in range(s["seeds"]):
                y = np.asarray(world.dataset(number, key=seed).y["y"])
                values = np.linalg.eigvalsh(y @ y.T)[::-1]
                errors[i, j, seed] = np.sqrt(np.mean((values / world.values - 1) ** 2))
    return xarray.Dataset(
        {
            "covariance": (("world", "item", "other"), [w.covariance for w in found.values()]),
            "modes": (
                ("world", "shown", "item"),
                [w.vectors.T[: s["shown"]] for w in found.values()],
            ),
            "values": (("world", "mode"), [w.values for w in found.values()]),
            "error": (("world", "features", "seed"), errors),
        },
        {"world": list(found), "features": list(s["features"])},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """Modes from symmetry against the covariance; the rate at which samples converge."""
    worst = 0.0
    for covariance, values in zip(
        table["covariance"].to_numpy(), table["values"].to_numpy(), strict=True
    ):
        worst = max(worst, float(np.abs(np.linalg.eigvalsh(covariance)[::-1] - values).max()))
    error = np.sqrt((table["error"] ** 2).mean("seed").to_numpy())
    number = table["features"].to_numpy()
    slope = np.log(error[:, -1] / error[:, 0]) / np.log(number[-1] / number[0])
    return (
        stated(
            "symmetry",
            "modes from symmetry against the covariance, eigenvalues",
            "≤ 1e-10",
            f"{worst:.1e}",
            worst,
            most=1e-10,
            rests=Basis.THEOREM,
        ),
        stated(
            "sample-rate",
            "error of sampled eigenvalues ∝ features^p: p for every world",
            "−0.5 within 0.1",
            ", ".join(f"{v:.2f}" for v in slope),
            np.max(np.abs(slope + 0.5)),
            most=0.1,
        ),
    )


def draw(table: Table) -> Picture:
    """One column per world: covariance, strongest modes, and errors of samples."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    names = [str(name) for name in table["world"].to_numpy()]
    size = {"figsize": (7.6, 5.2), "height_ratios": (1, 1, 0.9)}
    figure, axes = plt.subplots(3, len(names), squeeze=False, **size)
    for k, name in enumerate(names):
        top, middle, bottom = axes[:, k]
        covariance, modes = (table[n].to_numpy()[k] for n in ("covariance", "modes"))
        top.imshow(covariance / covariance.max(), cmap="Blues", vmin=0, vmax=1)
        # from dark to light, so that grey also tells the signs apart
        middle.imshow(modes / np.abs(modes).max(), cmap="cividis", vmin=-1, vmax=1, aspect="auto")
        for ax in (top, middle):
            ax.set(xticks=[], yticks=[], xlabel="item")
            ax.spines[:].set_visible(True)
        errors = table["error"].to_numpy()[k].T
        features = table["features"].to_numpy()
        draw_curves(features, {"sampled": errors}, log=True, ylabel="", ax=bottom)
        bottom.set(xscale="log", xlabel="features", ylim=(0.003, 1.0))
        bottom.legend().remove()
        if k:
            bottom.set_yticklabels([])
        for ax, title in ((top, f"(a{k + 1}) {name}"), (middle, f"(b{k + 1})")):
            ax.set_title(title)
        bottom.set_title(f"(c{k + 1})")
    rows = ("item", "mode, strongest first", "error of eigenvalues\n(thin: one seed)")
    for ax, label in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(label)
    for row, label in zip(axes, ("covariance / largest", "entry of mode / largest"), strict=False):
        figure.colorbar(row[-1].images[0], ax=row, label=label, aspect=12)
    return figure


FIGURE = Figure(
    name="talk/structures",
    title="Diverse structures: graphical models, their modes and features drawn from them",
    states=(
        "In the limit of many features, only the singular value decomposition of the items' "
        "correlations matters, which is known for partitions, trees, rings and grids."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
