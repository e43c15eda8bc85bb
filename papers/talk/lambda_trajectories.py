"""Talk, "From exponential to sigmoidal dynamics": one initial map, split between layers by λ."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "lambdas": Setting((-5.0, -1.0, 0.0, 5.0), "λ of the initial weights", "ours"),
    "sizes": Setting((5, 4, 4), "inputs, hidden and output neurons", "ours"),
    "scale": Setting(0.05, "singular values of the initial map", "ours"),
    "end": Setting(8.0, "last time", "ours"),
    "times": Setting(161, "times shown", "ours", quick=41),
    "seed": Setting(3, "random key of task and weights", "ours"),
}


def compute(settings: Settings) -> Table:
    """Losses, exact and simulated, and the distance of the tangent kernel."""
    import xarray

    from papers.talk.regimes import task

    s = settings
    net, data = task(s["sizes"], s["seed"])
    times = np.linspace(0, s["end"], s["times"])
    exact, simulated, kernel = [], [], []
    for lam in s["lambdas"]:
        weights = nr.linear.balanced_weights(net, lam, scale=s["scale"], key=s["seed"])
        run = nr.linear.lambda_balanced(net, weights, data, times=times)
        exact.append(run.loss)
        kernel.append(run.values["kernel_distance"])
        simulated.append(nr.flow(net, weights, data, times=times, rtol=1e-10).loss)
    dims = ("lam", "time")
    return xarray.Dataset(
        {"exact": (dims, exact), "simulated": (dims, simulated), "kernel": (dims, kernel)},
        {"lam": list(s["lambdas"]), "time": times},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """The exact solution against flows; sigmoids near λ = 0, exponentials far from it."""
    gap = float(np.abs(table["exact"] - table["simulated"]).max() / table["exact"].max())
    lams = np.abs(table["lam"].to_numpy())
    loss = table["exact"].to_numpy()
    first = (loss[:, 0] - loss[:, 1]) / (loss[:, :-1] - loss[:, 1:]).max(axis=1)
    small, large = first[lams.argmin()], first[lams.argmax()]
    return (
        stated(
            "flow",
            "lambda_balanced against the flow, largest difference of loss relative to L(0)",
            "≤ 1e-8",
            f"{gap:.1e}",
            gap,
            most=1e-8,
            rests=Basis.THEOREM,
        ),
        stated(
            "slope",
            "initial slope of the loss over the steepest: 1 for an exponential, less for a sigmoid",
            "1 for the largest |λ|, less for the smallest",
            ", ".join(f"{v:.2f}" for v in first),
            float(large > 0.99 and small < 0.9),
            least=1,
            rests=Basis.PAPER,
        ),
    )


def draw(table: Table) -> Picture:
    """Losses and kernel distances by λ."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9))
    time = table["time"].to_numpy()
    names = [f"λ = {lam:g}".replace("-", "−") for lam in table["lam"].to_numpy()]
    for name, kind in (("simulated", "simulation"), ("exact", "theory")):
        draw_curves(time, dict(zip(names, table[name].to_numpy(), strict=True)), kind=kind, ax=left)
    left.set_title("(a) from exponential to sigmoidal")
    kernels = dict(zip(names, table["kernel"].to_numpy(), strict=True))
    draw_curves(time, kernels, kind="theory", ylabel="distance of the kernel", ax=right)
    sizes = " – ".join(map(str, settings_of(table)["sizes"]))
    right.set_title(f"(b) tangent kernel ({sizes})")
    return figure


FIGURE = Figure(
    name="talk/lambda_trajectories",
    title="From exponential to sigmoidal dynamics",
    states=(
        "The relative scale of the layers, λ, takes learning from exponential (lazy) to sigmoidal "
        "(rich) dynamics, and the solution is exact for any sizes."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
