"""Talk, "Analytic learning trajectory": a chain of scalars of D = 1, 2, 10 and ∞ edges."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "depths": Setting((1, 2, 10), "edges; their limit is added", "Talk", quick=(1, 2)),
    "s": Setting(1.0, "correlation of input and output", "ours: the talk gives no numbers"),
    "d": Setting(1.0, "variance of the input (the talk's λ)", "ours: the talk gives no numbers"),
    "start": Setting(0.05, "a₀, the initial product of the chain", "ours"),
    "end": Setting(40.0, "last time, in units of τ/D", "ours"),
    "times": Setting(401, "times shown", "ours", quick=201),
}


def compute(settings: Settings) -> Table:
    """Closed forms and flows of the chains, each in its own unit of time τ/D, and the limit."""
    import xarray

    s = settings
    units = np.linspace(0, s["end"], s["times"])
    data = nr.Dataset({"x": [[np.sqrt(s["d"])]]}, {"y": [[s["s"] / np.sqrt(s["d"])]]})
    exact, simulated = [], []
    for depth in s["depths"]:
        arch = nr.Architecture.chain(*[1] * (depth + 1))
        b0 = s["start"] ** (1 / depth)
        form = nr.reduce(arch, data).closed_form(b0)
        assert form.is_complete
        exact.append(form.value(units / depth)["mode1"])
        weights = {edge: np.full((1, 1), b0) for edge in arch.edges}
        run = nr.flow(
            nr.GDLN(arch), weights, data, times=units / depth, rtol=1e-10, record={"weights": True}
        )
        simulated.append(np.prod([w[:, 0, 0] for w in run.values["weights"].values()], axis=0))
    limit = nr.linear.deep_limit(units, s=s["s"], d=s["d"], start=s["start"], depth=1)
    return xarray.Dataset(
        {
            "exact": (("depth", "time"), np.array(exact)),
            "simulated": (("depth", "time"), np.array(simulated)),
            "limit": ("time", limit),
        },
        {"depth": list(s["depths"]), "time": units},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """Closed forms against the flow, and how far the deepest chain is from the limit."""
    s = settings_of(table)
    final = s["s"] / s["d"]
    gap = float(np.abs(table["exact"] - table["simulated"]).max()) / final
    time = table["time"].to_numpy()
    curves = np.stack([*table["exact"].to_numpy(), table["limit"].to_numpy()]) / final
    half = nr.trajectory.crossing_time(time, curves, 0.5, rising=True)
    return (
        stated(
            "closed-forms",
            "closed forms against simulated chains, largest difference relative to s/λ",
            "≤ 1e-6",
            f"{gap:.1e}",
            gap,
            most=1e-6,
            rests=Basis.THEOREM,
        ),
        stated(
            "limit",
            f"half-time of D = {s['depths'][-1]} over that of the limit, in units of τ/D",
            "reported: the limit is approached slowly (.65, .96, .996 at D = 10, 100, 1000 for a₀ "
            "= .05)",
            f"{half[-2] / half[-1]:.3f}",
        ),
    )


def draw(table: Table) -> Picture:
    """Strength over time for every depth."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    figure, ax = plt.subplots(figsize=(4.6, 2.9))
    names = [f"D = {d}" for d in table["depth"].to_numpy()]
    time = table["time"].to_numpy()
    draw_curves(time, dict(zip(names, table["simulated"].to_numpy(), strict=True)), ax=ax)
    exact = dict(zip(names, table["exact"].to_numpy(), strict=True))
    draw_curves(time, exact | {"D → ∞": table["limit"].to_numpy()}, kind="theory", ax=ax)
    ax.set(xlabel="time (τ/D)", ylabel="strength a(t)", title="shallow, deep, very deep")
    return figure


FIGURE = Figure(
    name="talk/depth",
    title="Learning trajectories of a linear chain by its depth",
    states=(
        "A shallow chain learns exponentially, a deep one along a sigmoid, and a very deep one "
        "waits long and then learns suddenly; each trajectory is known in closed form (with the "
        "rates corrected: e^{−λt/τ} for D = 1, and (s²/λ)t/τ in the limit of many edges)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
