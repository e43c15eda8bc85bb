"""In-context regression in linear attention: drops and plateaus, predicted from second moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of

OURS = "ours"

SETTINGS = {
    "eigenvalues": Setting((0.4, 0.3, 0.2, 0.1), "eigenvalues of Λ; D is their number", OURS),
    "length": Setting(31, "N, examples in a context", OURS),
    "heads": Setting(5, "heads with separate key and query", OURS),
    "few": Setting(3, "heads of the network that has too few", OURS),
    "scale": Setting(0.01, "standard deviation of initial weights", OURS),
    "seeds": Setting(5, "random starts", OURS, quick=2),
    "sequences": Setting(
        80_000, "sequences of the network that is trained on them", OURS, quick=4000
    ),
    "end": Setting(1e5, "last time of the flow", OURS),
    "moments": Setting(1200, "recorded moments, even in log time", OURS, quick=600),
    "key": Setting(0, "random key of the first start and of the sequences", OURS),
}

FIRST = 10.0
"""The first moment after the start: nothing has been learned by then."""


def plateaus(eigenvalues: tuple[float, ...], length: int) -> np.ndarray:
    """tr Λ − Σ_{d≤m} λ_d / (1 + (1 + tr Λ/λ_d)/N) for m = 0, …, D, the largest first."""
    lam = np.sort(np.asarray(eigenvalues))[::-1]
    learned = lam / (1 + (1 + lam.sum() / lam) / length)
    return lam.sum() - np.concatenate([[0.0], np.cumsum(learned)])


def rests(time: np.ndarray, loss: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The loss where it falls most slowly in log time, between the middles of each two levels.

    NaN for a level that the run passes without a moment there, or never reaches.
    """
    speed = -np.gradient(loss, np.log(time))
    middles = (levels[:-1] + levels[1:]) / 2
    found = np.full(len(levels) - 1, np.nan)
    for m in range(1, len(levels)):
        low = middles[m] if m < len(middles) else -np.inf
        on = np.flatnonzero((loss < middles[m - 1]) & (loss > low))
        if len(on):
            found[m - 1] = loss[on[np.argmin(np.abs(speed[on]))]]
    return found


def drops(time: np.ndarray, loss: np.ndarray) -> int:
    """How often the loss falls fastest in log time, at a tenth of its whole fall or more."""
    speed = -np.gradient(loss, np.log(time)) / (loss[0] - loss[-1])
    peaks = (speed[1:-1] > speed[:-2]) & (speed[1:-1] >= speed[2:]) & (speed[1:-1] > 0.1)
    return int(peaks.sum())


def on_sequences(data: nr.Dataset, weights: Mapping[str, Any], times: np.ndarray) -> np.ndarray:
    """The loss of heads of rank one that learn from sequences, which each have gates of their own.

    The output is Σ_i v_i (q_iᵀx_q)(k_iᵀβ), so that all that the flow sees of the sequences are the
    second moments of the features x_q βᵀ and of y: the same flow at a small part of the cost.
    """
    import jax
    import jax.numpy as jnp

    from neuralrace.dynamics import Flow, System, solve_flow

    class Heads(System):
        xx: jax.Array
        yx: jax.Array
        yy: jax.Array

        def loss(self, state: dict[str, jax.Array]) -> jax.Array:
            u = jnp.einsum("i,id,ie->de", state["v"], state["q"], state["k"]).ravel()
            return (self.yy - 2 * self.yx @ u + u @ self.xx @ u) / 2

    beta, dim = data.x["beta"], data.x["beta"].shape[1]
    query = np.stack([data.gates[f"q1_{d}"] for d in range(1, dim + 1)], axis=1)
    features = (query[:, :, None] * beta[:, None, :]).reshape(len(beta), -1)
    y, count = data.y["y"][:, 0], len(beta)
    moments = (features.T @ features / count, y @ features / count, y @ y / count)
    heads = range(1, 1 + sum(name.startswith("v") for name in weights))
    start = {
        "v": jnp.stack([weights[f"v{i}"][0, 0] for i in heads]),
        "k": jnp.stack([weights[f"k{i}"][0] for i in heads]),
        "q": jnp.stack(
            [jnp.stack([weights[f"q{i}_{d}"][0, 0] for d in range(1, dim + 1)]) for i in heads]
        ),
    }
    system = Heads(*map(jnp.asarray, moments))
    return solve_flow(system, start, Flow(1e-9, 1e-12), times).loss


def compute(settings: Settings) -> Table:
    """Losses ⟨(y − ŷ)²⟩ over time, from moments and from sequences, and the race's."""
    import jax
    import xarray

    s = settings
    covariance, dim = np.diag(s["eigenvalues"]), len(s["eigenvalues"])
    times = np.concatenate([[0.0], np.geomspace(FIRST, s["end"], s["moments"])])
    keys = jax.random.split(jax.random.key(s["key"]), s["seeds"])

    def task(heads: int, **options: int) -> nr.Dataset:
        return nr.tasks.in_context_regression(covariance, s["length"], heads=heads, **options)

    def follow(heads: int, key: jax.Array, data: nr.Dataset, **options: bool) -> nr.Trajectory:
        net = nr.GDLN(nr.Architecture.linear_attention(dim, heads, **options))
        return nr.flow(net, net.init(key, s["scale"]), data, times=times)

    heads = s["heads"]
    runs = [follow(heads, key, task(heads)) for key in keys]
    net = nr.GDLN(nr.Architecture.linear_attention(dim, heads))
    race = nr.reduce(net.arch, task(heads))
    solved = race.solve(times=times, start=net.init(keys[0], s["scale"]))
    drawn = task(heads, samples=s["sequences"], key=s["key"])
    trained = on_sequences(drawn, net.init(keys[0], s["scale"]), times)
    levels = plateaus(s["eigenvalues"], s["length"])
    y = drawn.y["y"][:, 0]
    return xarray.Dataset(
        {
            "separate": (("seed", "time"), 2 * np.stack([run.loss for run in runs])),
            "race": ("time", 2 * solved.loss),
            "few": ("time", 2 * follow(s["few"], keys[0], task(s["few"])).loss),
            "merged": ("time", 2 * follow(heads, keys[0], task(heads), merged=True).loss),
            "trained": ("time", 2 * trained),
            "level": ("learned", levels),
            "sampling": float((y**2).std() / np.sqrt(len(y))),
        },
        {"time": times, "learned": np.arange(dim + 1)},
    )


def _rests(t: Table, name: str) -> np.ndarray:
    """The plateaus of the runs of a name, `(runs, D)`."""
    time, levels = t["time"].to_numpy()[1:], t["level"].to_numpy()
    return np.array([rests(time, loss[1:], levels) for loss in np.atleast_2d(t[name].to_numpy())])


def _few_off(t: Table) -> float:
    return abs(float(t["few"][-1]) - float(t["level"][int(settings_of(t)["few"])]))


def _at_race(t: Table) -> float:
    apart = np.abs(t["race"] - t["separate"][0])
    return float(apart.max() / t["separate"][0, 0])


def measures(table: Table | None = None) -> tuple[Measure, ...]:
    """Plateaus against theory, the race against the flow, and what merging does."""
    return (
        Measure(
            "values",
            "theory: plateaus for λ = .4 .3 .2 .1, N = 31, off from .6406 .3774 .2098 .1360",
            lambda t: float(
                np.abs(t["level"].to_numpy()[1:] - [0.6406, 0.3774, 0.2098, 0.1360]).max()
            ),
            most=1e-4,
            rests=Basis.THEOREM,
        ),
        Measure(
            "plateaus",
            "five heads from .01: plateaus of the first start, farthest from theory",
            lambda t: float(np.abs(_rests(t, "separate")[0] - t["level"].to_numpy()[1:]).max()),
            most=1e-3,
        ),
        Measure(
            "ends",
            "the last plateau, all starts, farthest from theory",
            lambda t: float(np.abs(t["separate"][:, -1] - t["level"][-1]).max()),
            most=1e-3,
        ),
        Measure(
            "race",
            "the race from the initial weights against the flow, largest difference, part of L(0)",
            _at_race,
            most=1e-3,
        ),
        Measure(
            "sequences",
            "trained on sequences: plateaus off from theory, in standard errors of ⟨y²⟩ there",
            lambda t: float(
                np.nanmax(np.abs(_rests(t, "trained")[0] - t["level"].to_numpy()[1:]))
                / float(t["sampling"])
            ),
            most=3.0,
        ),
        Measure(
            "few",
            "three heads: the last loss, off from .2098",
            _few_off,
            most=1e-3,
        ),
        Measure(
            "drops",
            "separate key and query: drops of the loss, first start",
            lambda t: drops(t["time"].to_numpy()[1:], t["separate"].to_numpy()[0, 1:]),
            least=4,
            most=4,
        ),
        Measure(
            "merged-drops",
            "merged key and query: drops of the loss",
            lambda t: drops(t["time"].to_numpy()[1:], t["merged"].to_numpy()[1:]),
            least=1,
            most=1,
        ),
    )


def draw(table: Table) -> Picture:
    """(a) plateaus of separate key and query, (b) random starts, few heads and merged ones."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS

    figure, axes = plt.subplots(1, 2, figsize=(7.0, 2.9), layout="constrained", sharey=True)
    time = table["time"].to_numpy()[1:]
    for ax in axes:
        for level in table["level"].to_numpy():
            ax.axhline(level, color=COLOURS["neutral"], linewidth=0.6)
        ax.set(xscale="log", xlabel="time")
    ax = axes[0]
    ax.plot(time, table["separate"][0, 1:], color="tab:blue", label="flow, moments")
    ax.plot(time, table["trained"][1:], color="tab:orange", label="flow, sequences")
    ax.plot(time, table["race"][1:], "--", color="black", label="race")
    ax.set(title="(a) separate key and query", ylabel="⟨(y − ŷ)²⟩", ylim=(0, None))
    ax.legend(title="lines: plateaus of theory")
    ax = axes[1]
    for k, loss in enumerate(table["separate"].to_numpy()[1:, 1:]):
        ax.plot(time, loss, color="tab:blue", alpha=0.5, label=None if k else "other starts")
    ax.plot(time, table["few"][1:], "-.", color="tab:red", label="three heads")
    ax.plot(time, table["merged"][1:], ":", color="black", label="merged key and query")
    ax.set(title="(b) other starts, few heads, merged heads")
    ax.legend()
    return figure


FIGURE = Figure(
    name="attention/plateaus",
    title="In-context regression in linear attention",
    states=(
        "With separate key and query, linear attention learns the principal components of its "
        "inputs one by one, in stages that second moments predict; with merged ones, all at once."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
