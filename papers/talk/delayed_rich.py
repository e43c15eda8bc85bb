"""Talk, "Delayed rich regime": lazy at first, but later the representation changes after all."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, stated

SETTINGS = {
    "sizes": Setting((4, 4, 8), "inputs, hidden, outputs: an inverted funnel", "ours"),
    "lambdas": Setting((-8.0, 0.0, 2.0, 8.0), "λ of the initial weights", "ours"),
    "scale": Setting(0.01, "singular values of the initial map", "ours"),
    "end": Setting(100.0, "last time", "ours"),
    "times": Setting(200, "times, equally spaced in their logarithm", "ours", quick=80),
    "seed": Setting(0, "random key of task and weights", "ours"),
}


def compute(settings: Settings) -> Table:
    """Exact losses and kernel distances over logarithmic time, and the simulated ones."""
    import xarray

    from papers.talk.regimes import task

    s = settings
    net, data = task(s["sizes"], s["seed"])
    times = np.geomspace(1e-3, s["end"], s["times"])
    found: dict[str, list[np.ndarray]] = {k: [] for k in ("loss", "kernel", "simulated", "travel")}
    for lam in s["lambdas"]:
        weights = nr.linear.balanced_weights(net, lam, scale=s["scale"], key=s["seed"])
        run = nr.linear.lambda_balanced(net, weights, data, times=times)
        flow = nr.flow(net, weights, data, times=times, rtol=1e-10, record={"weights": True})
        with_start = {
            e: np.concatenate([np.asarray(weights[e])[None], w])
            for e, w in flow.values["weights"].items()
        }
        found["loss"].append(run.loss)
        found["kernel"].append(run.values["kernel_distance"])
        found["simulated"].append(flow.loss)
        found["travel"].append(nr.analysis.kernel_travel(net, with_start, data)[1:])
    dims = ("lam", "time")
    return xarray.Dataset(
        {name: (dims, np.array(rows)) for name, rows in found.items()},
        {"lam": list(s["lambdas"]), "time": times},
    )


def half_times(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """(λ,) each: the half-times of the loss and of the kernel's movement."""
    time, loss, kernel = (table[k].to_numpy() for k in ("time", "loss", "kernel"))
    fallen = (loss[:, :1] - loss) / (loss[:, :1] - loss[:, -1:])
    return (
        nr.trajectory.crossing_time(time, fallen, 0.5, rising=True),
        nr.trajectory.crossing_time(time, kernel / kernel[:, -1:], 0.5, rising=True),
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """Exact against simulated; the kernel changes long after the loss has fallen."""
    gaps = [
        float(np.abs(table[a] - table[b]).max() / table[a].max())
        for a, b in (("loss", "simulated"), ("kernel", "travel"))
    ]
    lams = table["lam"].to_numpy()
    learned, turned = half_times(table)
    ratio = turned / learned
    end = table["kernel"].to_numpy()[:, -1]
    top, zero = int(lams.argmax()), int(np.abs(lams).argmin())
    return (
        stated(
            "flow",
            "exact loss and kernel distance against the flow",
            "≤ 1e-6",
            ", ".join(f"{g:.1e}" for g in gaps),
            max(gaps),
            most=1e-6,
            rests=Basis.THEOREM,
        ),
        stated(
            "delay",
            "half-time of the kernel's movement over half-time of the loss, by λ",
            "larger at the largest λ than at 0",
            ", ".join(f"λ = {lam:g}: {r:.2f}" for lam, r in zip(lams, ratio, strict=True)),
            ratio[top],
            least=ratio[zero],
            rests=Basis.PAPER,
        ),
        stated(
            "kernel-end",
            "kernel distance at the end, by λ",
            "at the largest λ > 0.05, at the smallest less than a fifth of it",
            ", ".join(f"λ = {lam:g}: {v:.3f}" for lam, v in zip(lams, end, strict=True)),
            float(end[top] > 0.05 and end[int(lams.argmin())] < end[top] / 5),
            least=1,
        ),
    )


def draw(table: Table) -> Picture:
    """Loss and kernel distance over the logarithm of time."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9))
    time = table["time"].to_numpy()
    names = [f"λ = {lam:g}".replace("-", "−") for lam in table["lam"].to_numpy()]
    for ax, pair, label in (
        (left, ("simulated", "loss"), "loss"),
        (right, ("travel", "kernel"), "distance of the kernel"),
    ):
        for name, kind in zip(pair, ("simulation", "theory"), strict=True):
            curves = dict(zip(names, table[name].to_numpy(), strict=True))
            draw_curves(time, curves, kind=kind, ylabel=label, ax=ax)
        ax.set(xscale="log")
    left.set_title("(a) loss")
    right.set_title("(b) tangent kernel")
    left.get_legend().remove()
    return figure


FIGURE = Figure(
    name="talk/delayed_rich",
    title="The delayed rich regime",
    states=(
        "If the larger layer does not reach every direction that the task needs, learning starts "
        "lazily, and the representation changes later."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
