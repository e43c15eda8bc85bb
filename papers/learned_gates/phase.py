"""When a learner without labels becomes flexible: speed of its gates and length of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Setting, Settings

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

OURS = "ours"

SETTINGS = {
    "inputs": Setting(8, "inputs, white", OURS),
    "outputs": Setting(4, "outputs", OURS),
    "rates": Setting((1.0, 2.0, 4.0, 8.0, 16.0), "τ_W/τ_c", OURS),
    "shortest": Setting(0.1, "shortest block, in units of τ_W", OURS),
    "longest": Setting(10.0, "longest block", OURS),
    "lengths": Setting(9, "block lengths, evenly in the logarithm", OURS, quick=3),
    "total": Setting(60.0, "time of a whole run", OURS),
    "budget": Setting(5.0, "strength of the penalty ½(Σc − 1)²", OURS),
    "decay": Setting(0.3, "strength of the penalty ½Σc²", OURS),
    "scale": Setting(1e-3, "standard deviation of initial weights; gates begin at ½", OURS),
    "key": Setting(0, "random key of teachers and start", OURS),
}

PREDICTED = {1.0: 3.3440, 2.0: 1.5438, 4.0: 0.7677, 8.0: 0.3859, 16.0: 0.1942}
"""Block length at the boundary by τ_W/τ_c, from `boundary`; written down before any simulation."""


def teachers(settings: Settings) -> np.ndarray:
    """Two random maps, with entries of variance 1/(4 · inputs)."""
    s, rng = settings, np.random.default_rng(settings["key"])
    return rng.normal(size=(2, s["outputs"], s["inputs"])) / (2 * np.sqrt(s["inputs"]))


def network(inputs: int, outputs: int, **options: Any) -> nr.LearnedGates:
    """ŷ = Σ_p c_p W_p x: two pathways of one learned edge, and one gate each for all samples."""
    sizes = {"x": inputs, "a": inputs, "b": inputs, "y": outputs}
    edges = {f"{s}_{t}": (s, t) for s, t in ("xa", "xb", "ay", "by")}
    arch = nr.Architecture(sizes, edges, frozen={"x_a": 1.0, "x_b": 1.0})
    return nr.LearnedGates(arch, **options)


def task(maps: np.ndarray) -> nr.Dataset:
    """A population of white inputs for every teacher; the label `part` says which."""
    moments = [nr.Dataset.from_moments(np.eye(m.shape[1]), m) for m in maps]
    return nr.Dataset.mixture({f"{k}": (1 / len(maps), each) for k, each in enumerate(moments)})


def start(settings: Settings) -> dict[str, np.ndarray]:
    """Small random weights, and gates of one half."""
    s, rng = settings, np.random.default_rng([settings["key"], 1])
    shape = (s["outputs"], s["inputs"])
    weights = {edge: s["scale"] * rng.normal(size=shape) for edge in ("a_y", "b_y")}
    return weights | {f"constant_gates_{p}": np.array([[0.5]]) for p in "ab"}


# ---- the prediction -----------------------------------------------------------------------------


def growth(maps: np.ndarray, rate: float, length: float, budget: float, decay: float) -> float:
    """At what rate equal pathways split, over blocks that alternate between two teachers.

    While both are equal, W_p = M and c_p = S/2, they forget: in a block with teacher T, with
    E = T − S M, dM/dt = S E/2 and dS/dt = 2 rate · (⟨E, M⟩ − budget (S − 1) − decay S/2), which
    settles on an orbit of two blocks. A small difference, D of the weights and ε of the gates,
    moves along it by dD/dt = ε E and dε/dt = rate · (⟨E, D⟩ − decay ε), a linear equation with
    periodic coefficients. Its growth is the logarithm of the largest multiplier of two blocks over
    their time. The derivation is ours.
    """
    basis = np.linalg.qr(maps.reshape(2, -1).T)[0]
    sides = maps.reshape(2, -1) @ basis

    def velocity(_: float, state: np.ndarray, side: np.ndarray) -> np.ndarray:
        m, total, apart = state[:2], state[2], state[3:].reshape(3, 3)
        error = side - total * m
        pull = error @ m - budget * (total - 1) - decay * total / 2
        moves = np.zeros((3, 3))
        moves[:2, 2], moves[2, :2], moves[2, 2] = error, rate * error, -rate * decay
        return np.concatenate([total / 2 * error, [2 * rate * pull], (moves @ apart).ravel()])

    state = np.concatenate([sides.mean(axis=0), [1.0], np.eye(3).ravel()])
    for _ in range(400):
        before = state[:3]
        state = np.concatenate([before, np.eye(3).ravel()])
        for side in sides:
            solved = solve_ivp(
                velocity, (0, length), state, "LSODA", args=(side,), rtol=1e-8, atol=1e-10
            )
            state = solved.y[:, -1]
        if np.abs(state[:3] - before).max() < 1e-7:
            break
    multipliers = np.linalg.eigvals(state[3:].reshape(3, 3))
    return float(np.log(np.abs(multipliers).max()) / (2 * length))


def boundary(settings: Settings, rate: float) -> float:
    """The block length from which on a run ends with pathways that differ by half of the teachers.

    Where the growth over the whole time leads from the difference of the initial weights along that
    of the teachers to a half of it; growth rises with the block length up to there.
    """
    s, maps, begin = settings, teachers(settings), start(settings)
    apart = maps[0] - maps[1]
    first = abs(float(np.sum((begin["a_y"] - begin["b_y"]) * apart)) / np.sum(apart**2))
    wanted = np.log(0.5 / first) / s["total"]
    lengths = np.geomspace(s["shortest"] / 2, s["longest"], 25)
    found = np.array([growth(maps, rate, t, s["budget"], s["decay"]) for t in lengths])
    over = np.flatnonzero(found >= wanted)
    if not len(over) or over[0] == 0:
        return float("nan")
    k = int(over[0])
    share = (wanted - found[k - 1]) / (found[k] - found[k - 1])
    return float(lengths[k - 1] * (lengths[k] / lengths[k - 1]) ** share)


# ---- the simulation -----------------------------------------------------------------------------


def compute(settings: Settings) -> xarray.Dataset:
    """How far apart the pathways are at the end, over rates and block lengths."""
    import xarray

    s, maps, begin = settings, teachers(settings), start(settings)
    data, net = task(maps), network(s["inputs"], s["outputs"], budget=s["budget"], decay=s["decay"])
    direction = (maps[0] - maps[1]) / np.sum((maps[0] - maps[1]) ** 2)
    lengths = np.geomspace(s["shortest"], s["longest"], s["lengths"])
    apart = np.empty((len(s["rates"]), len(lengths)))
    for j, length in enumerate(lengths):
        count = round(s["total"] / length)
        blocks = nr.dynamics.Schedule.blocks(data, "part", length=float(length), count=count)
        for i, rate in enumerate(s["rates"]):
            run = nr.flow(
                net, begin, data, times=[0.0, count * float(length)], schedule=blocks,
                rates={edge: float(rate) for edge in net.gate_edges}, rtol=1e-6, atol=1e-9,
            )  # fmt: skip
            apart[i, j] = np.abs(np.sum((run.final["a_y"] - run.final["b_y"]) * direction))
    return xarray.Dataset(
        {
            "apart": (("rate", "length"), apart),
            "boundary": ("rate", [crossing(lengths, row) for row in apart]),
            "predicted": ("rate", [PREDICTED.get(r, np.nan) for r in s["rates"]]),
        },
        {"rate": list(s["rates"]), "length": lengths},
    )


def crossing(lengths: np.ndarray, apart: np.ndarray) -> float:
    """The block length at which the difference of the pathways first is half of the teachers'."""
    over = np.flatnonzero(apart >= 0.5)
    if not len(over) or over[0] == 0:
        return float("nan")
    k = int(over[0])
    share = (0.5 - apart[k - 1]) / (apart[k] - apart[k - 1])
    return float(lengths[k - 1] * (lengths[k] / lengths[k - 1]) ** share)


def _errors(t: xarray.Dataset) -> np.ndarray:
    return np.log(t["boundary"].to_numpy() / t["predicted"].to_numpy())


def measures(table: xarray.Dataset | None = None) -> tuple[Measure, ...]:
    """How far the boundary is from the predicted one."""
    return (
        Measure(
            "boundary",
            "block length at the boundary, predicted before it was simulated, against the "
            "simulated one: root mean square of the natural logarithm of their ratio",
            lambda t: float(np.sqrt(np.mean(_errors(t) ** 2))),
            most=0.25,
            rests=Basis.OURS,
            origin=0.0,
        ),
        Measure(
            "found",
            "rates at which the simulated boundary lies within the block lengths, share",
            lambda t: float(np.isfinite(t["boundary"].to_numpy()).mean()),
            least=1.0,
        ),
    )


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """The difference of the pathways at the end, and the predicted boundary."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(4.2, 3.2), layout="constrained")
    apart = table["apart"].to_numpy()
    mesh = ax.pcolormesh(
        table["length"], table["rate"], apart, cmap="Greys", vmin=0, vmax=2, shading="nearest"
    )
    figure.colorbar(mesh, label="difference of pathways / of teachers")
    ax.plot(table["boundary"], table["rate"], "o-", color="tab:blue", label="simulated")
    ax.plot(table["predicted"], table["rate"], "s--", color="tab:orange", label="predicted")
    ax.set(xscale="log", yscale="log", xlabel="block length / τ$_W$", ylabel="τ$_W$/τ$_c$")
    ax.legend(loc="lower left")
    return figure


FIGURE = Figure(
    name="learned_gates/phase",
    title="Forgetful and flexible learners",
    states=(
        "A learner without labels splits its pathways where gates are fast and blocks long. The "
        "boundary follows from the growth of small differences along the orbit of forgetting."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
