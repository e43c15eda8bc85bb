"""Talk, "Error surface": two scalar edges have a saddle at zero."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "s": Setting(1.0, "correlation of input and output, of unit variance", "ours"),
    "reach": Setting(2.0, "largest weight shown, of either sign", "ours"),
    "points": Setting(161, "points of the surface each way", "ours", quick=41),
    "start": Setting((-0.6, 0.65), "initial weights of the descent path", "ours"),
    "learning_rate": Setting(0.02, "gradient step", "ours"),
    "steps": Setting(600, "gradient steps", "ours"),
}


def compute(settings: Settings) -> Table:
    """The loss ½(s − w₂w₁)², its downhill direction, and one descent that passes the saddle."""
    import xarray

    s = settings
    w = np.linspace(-s["reach"], s["reach"], s["points"])
    first, second = np.meshgrid(w, w)
    error = s["s"] - second * first
    net = nr.GDLN(nr.Architecture.chain(1, 1, 1))
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[s["s"]]]})
    start = {"W1": np.array([[s["start"][0]]]), "W2": np.array([[s["start"][1]]])}
    run = nr.train(
        net,
        start,
        data,
        learning_rate=s["learning_rate"],
        steps=s["steps"],
        record={"weights": True},
    )
    points = nr.linear.saddles(net, data)
    return xarray.Dataset(
        {
            "loss": (("w2", "w1"), error**2 / 2),
            "down1": (("w2", "w1"), second * error),
            "down2": (("w2", "w1"), first * error),
            "path": (
                ("step", "weight"),
                np.stack([run.values["weights"][e][:, 0, 0] for e in ("W1", "W2")], axis=1),
            ),
            "path_loss": ("step", run.loss),
            "curvature": points[()].escapes[0].curvature,
            "index": points[()].index,
        },
        {"w1": w, "w2": w, "step": run.time / s["learning_rate"]},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """The saddle, its curvature, and the end of the path."""
    s = settings_of(table)
    error = abs(float(table["curvature"]) + s["s"])
    path = table["path"].to_numpy()
    conserved = path[:, 1] ** 2 - path[:, 0] ** 2
    drift = float(np.abs(conserved - conserved[0]).max() / (path**2).sum(axis=1).max())
    near = float(np.linalg.norm(path, axis=1).min())
    end = float(table["path_loss"][-1] / table["path_loss"][0])
    return (
        stated(
            "escape",
            "the saddle at zero has one way out, of curvature −s",
            "1 direction, −s to 1e-9",
            f"{int(table['index'])} direction, {float(table['curvature']):.6f}",
            float(int(table["index"]) == 1 and error <= 1e-9),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "end",
            "the path ends in the valley, final / initial loss",
            "≤ 1e-6",
            f"{end:.1e}",
            end,
            most=1e-6,
            rests=Basis.THEOREM,
        ),
        stated(
            "conserved",
            "w₂² − w₁² along the path, drift relative to ‖w‖²",
            "≤ 5 % (finite steps)",
            f"{100 * drift:.2g} %",
            drift,
            most=0.05,
        ),
        stated(
            "nearest", "smallest distance of the path from the saddle", "reported", f"{near:.3f}"
        ),
    )


def draw(table: Table) -> Picture:
    """Contours, flow lines, the path and the saddle; and the loss along the path."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS, draw_curves

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.1), width_ratios=(1.1, 1))
    w1, w2 = table["w1"].to_numpy(), table["w2"].to_numpy()
    loss = table["loss"].to_numpy()
    levels = np.linspace(0, np.sqrt(loss.max()), 14) ** 2
    shown = left.contourf(w1, w2, loss, levels=levels, cmap="Blues")
    left.streamplot(
        w1,
        w2,
        table["down1"].to_numpy(),
        table["down2"].to_numpy(),
        color=COLOURS["neutral"],
        linewidth=0.5,
        arrowsize=0.6,
        start_points=_starts(w1[-1]),
        broken_streamlines=False,
    )
    valley = {"levels": [settings_of(table)["s"]], "colors": "black", "linewidths": 1.4}
    left.contour(w1, w2, np.multiply.outer(w2, w1), **valley)
    path = table["path"].to_numpy()
    left.plot(*path.T, color="#D55E00", linewidth=2, label="descent")
    left.plot(*path[0], "o", color="#D55E00", ms=5)
    left.plot(0, 0, "X", color="black", ms=8, label="saddle")
    left.plot([], [], color="black", linewidth=1.4, label="valley, loss 0")
    left.set(xlabel="$w_1$", ylabel="$w_2$", title="(a) error surface", aspect="equal")
    left.set(xlim=(w1[0], w1[-1]), ylim=(w2[0], w2[-1]))
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, columnspacing=1.2)
    figure.colorbar(shown, ax=left, shrink=0.8, label="loss", format="%.1f")
    draw_curves(table["step"].to_numpy(), {"descent": table["path_loss"].to_numpy()}, ax=right)
    right.set(xlabel="step", title="(b) along the path")
    right.get_legend().remove()
    return figure


def _starts(reach: float) -> np.ndarray:
    """One point (n, 2) on each of the flow lines that are drawn, w₂² − w₁² = constant."""
    far = reach * np.array([0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
    along, none = np.concatenate([far, -far]), np.zeros(2 * len(far))
    straight = reach * np.array([[0.25, 0.25], [-0.25, -0.25], [0.25, -0.25], [-0.25, 0.25]])
    return np.concatenate([np.stack([none, along], 1), np.stack([along, none], 1), straight])


FIGURE = Figure(
    name="talk/error_surface",
    title="The error surface of a chain of two edges",
    states=(
        "Depth introduces a saddle point: descent slows down near it before it reaches the valley."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
