"""Ours: what a linear recurrent network learns first, from which start, and how stable it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTINGS = {
    "steps": Setting(6, "time steps, T", "ours"),
    "hidden": Setting(40, "hidden neurons", "ours"),
    "scale": Setting(1e-3, "standard deviation σ of the initial weights", "ours"),
    "decay": Setting(0.6, "what is asked for falls, or grows, by this per step (b)", "ours"),
    "sizes": Setting((1.5, 2.0, 3.0), "sizes of what is asked for (b)", "ours", quick=(2.0, 3.0)),
    "strengths": Setting((3.0, 1.5, 0.75), "strengths of the modes (c)", "ours"),
    "kept": Setting(0.8, "decay per step of the modes (c, e)", "ours"),
    "decays": Setting((0.5, 0.9, 1.1), "decays per step (d)", "ours"),
    "overlaps": Setting((1.0, 0.5, 0.2, 0.1, 0.05), "hidden overlaps (e)", "ours"),
    "start": Setting(1e-4, "size of the initial function (e)", "ours"),
    "seeds": Setting(5, "initial weights", "ours", quick=1),
}

PROFILES = ("late", "even", "early")
"""What is asked for of the input at step t: falling with its age, the same for all, or rising."""

Weights = Mapping[str, np.ndarray]


class _Both:
    """The race and the trained network from the same weights, on the same times."""

    def __init__(self, data: nr.Dataset, weights: Weights, times: np.ndarray) -> None:
        net = nr.GDLN(_network(data, len(weights["Wh"])))
        race = nr.reduce(net.arch, data)
        self.times = times
        start = race.start(weights)
        self.theory = race.solve(times=times, start=start, accuracy=None)  # mode by mode
        self.trained = nr.flow(net, weights, data, times=times, rtol=1e-8, record={"weights": True})
        self.modes = [
            {name: w[:, 0, 0] for name, w in mode.items()}
            for mode in self.theory.values["variables"].values()
        ]
        self.weights = {n: np.asarray(w) for n, w in self.trained.values["weights"].items()}

    def halves(self) -> np.ndarray:
        """(2,): when theory and trained network have half of the initial loss."""
        return np.array(
            [float(nr.trajectory.half_time(r.time, r.loss)) for r in (self.theory, self.trained)]
        )

    def shares(self, steps: int) -> np.ndarray:
        """(2, T, times): what the output takes of the input at each step, theory and trained."""
        (mode,), w = self.modes, self.weights
        lags = range(steps - 1, -1, -1)
        power = lambda k: np.linalg.matrix_power(w["Wh"], k)
        return np.array(
            [
                [mode["Wy"] * mode["Wh"] ** k * mode["Wx"] for k in lags],
                [(w["Wy"] @ power(k) @ w["Wx"])[:, 0, 0] for k in lags],
            ]
        )


def _network(data: nr.Dataset, hidden: int) -> nr.Architecture:
    inputs, outputs = data.x["x1"].shape[1], data.y["y"].shape[1]
    return nr.Architecture.recurrent(inputs, hidden, outputs, steps=len(data.x))


def _drawn(data: nr.Dataset, s: Settings, seed: int) -> Weights:
    """Gaussian weights of the size that is set."""
    net = nr.GDLN(_network(data, s["hidden"]))
    return {n: np.asarray(w) for n, w in net.init(seed, scale=s["scale"]).items()}


def _asked(steps: int, profile: str, size: float, decay: float) -> nr.Dataset:
    """White numbers, of which the target adds up parts; their squares add up to size²."""
    age = np.arange(steps - 1, -1, -1)
    part = {"late": decay**age, "even": np.ones(steps), "early": decay**-age}[profile]
    x = np.sqrt(steps) * np.eye(steps)[:, :, None]
    return nr.tasks.sequences(x, size * x[:, :, 0] @ part[:, None] / np.linalg.norm(part))


def participation(values: np.ndarray) -> np.ndarray | np.floating:
    """The effective rank of singular values (…, K): (Σ s²)² / Σ s⁴.

    ```python
    >>> from papers.rnn.order import participation
    >>> float(participation(np.array([2.0, 2.0, 0.0])))
    2.0

    ```
    """
    return (values**2).sum(-1) ** 2 / (values**4).sum(-1)


def overlapping(hidden: int, overlap: float, size: float) -> dict[str, np.ndarray]:
    """Weights of one function, `size` times the last input, whatever the overlap of their ends.

    `overlap` is the cosine between what the network writes into its hidden layer, W_x, and what it
    reads from there, W_y; W_h is 0, so that nothing is kept from step to step.
    """
    turn, length = np.arccos(overlap) / 2, np.sqrt(size / overlap)
    along, across = length * np.cos(turn) * np.eye(hidden)[0], length * np.sin(turn)
    aside = across * np.eye(hidden)[1]
    return {
        "Wx": (along + aside)[:, None],
        "Wh": np.zeros((hidden, hidden)),
        "Wy": (along - aside)[None],
    }


def compute(settings: Settings) -> Table:
    """Everything in the order of the panels, each for all seeds; first theory, then trained."""
    import xarray

    s, T = settings, settings["steps"]
    seeds = range(s["seeds"])
    a, c, d, e = (np.linspace(0, end, 301) for end in (8, 16, 24, 7))
    total = nr.tasks.integration(1, T)
    shares = [_Both(total, _drawn(total, s, k), a).shares(T) for k in seeds]
    halves: list[Any] = []
    for profile in PROFILES:
        for size in s["sizes"]:
            data = _asked(T, profile, size, s["decay"])
            times = np.linspace(0, 150 / size, 1001)
            halves.append([_Both(data, _drawn(data, s, k), times).halves() for k in seeds])
    modes = len(s["strengths"])
    several = nr.tasks.sequence_teacher(
        modes + 1, modes, T, strengths=s["strengths"], decays=(s["kept"],) * modes
    )
    rank, loss = [], []
    for k in seeds:
        both = _Both(several, _drawn(several, s, k), c)
        kept = np.stack([mode["Wh"] for mode in both.modes], axis=-1)
        spectrum = np.linalg.svd(both.weights["Wh"], compute_uv=False)
        rank.append([participation(kept), participation(spectrum)])
        loss.append([both.theory.loss, both.trained.loss])
    radius = []
    for decay in s["decays"]:
        data = nr.tasks.sequence_teacher(1, 1, T, strengths=(1.0,), decays=(decay,))
        runs = [_Both(data, _drawn(data, s, k), d) for k in seeds]
        largest = lambda w: np.abs(np.linalg.eigvals(w)).max(axis=-1)
        radius.append([[np.abs(r.modes[0]["Wh"]), largest(r.weights["Wh"])] for r in runs])
    one = nr.tasks.sequence_teacher(1, 1, T, strengths=(1.0,), decays=(s["kept"],))
    start = [
        _Both(one, overlapping(s["hidden"], cosine, s["start"]), e).halves()
        for cosine in s["overlaps"]
    ]
    return xarray.Dataset(
        {
            "shares": (("seed", "kind", "step", "a"), np.array(shares)),
            "halves": (
                ("profile", "size", "seed", "kind"),
                np.reshape(halves, (len(PROFILES), len(s["sizes"]), s["seeds"], 2)),
            ),
            "rank": (("seed", "kind", "c"), np.array(rank)),
            "loss": (("seed", "kind", "c"), np.array(loss)),
            "radius": (("decay", "seed", "kind", "d"), np.array(radius)),
            "start": (("overlap", "kind"), np.array(start)),
        },
        {
            "kind": ["theory", "trained"],
            "profile": list(PROFILES),
            "step": np.arange(1, T + 1),
            "size": list(s["sizes"]),
            "decay": list(s["decays"]),
            "overlap": list(s["overlaps"]),
            "a": a,
            "c": c,
            "d": d,
        },
    )


# ---- what is measured ----------------------------------------------------------------------------


def step_halves(table: Table) -> np.ndarray:
    """(seeds, 2, T): when each input's share of the output has half of what is asked for."""
    shares = table["shares"].to_numpy()
    return nr.trajectory.crossing_time(table["a"].to_numpy(), shares, 0.5, rising=True)


def sooner(table: Table, one: str, other: str) -> list[float]:
    """One per seed: half-time of the first profile over that of the second, largest over sizes."""
    times = table["halves"].sel(kind="trained")
    ratio = times.sel(profile=one) / times.sel(profile=other)
    return ratio.max("size").to_numpy().tolist()


def by_size(table: Table) -> list[float]:
    """One per seed: half-time of each size over that of the next smaller one, largest."""
    times = table["halves"].sel(kind="trained").sortby("size").transpose("profile", "seed", "size")
    each = times.to_numpy()
    return (each[..., 1:] / each[..., :-1]).max(axis=(0, 2)).tolist()


def missed_by(table: Table, name: str) -> float:
    """The largest difference of theory and trained network, relative to the larger of them."""
    of = step_halves(table) if name == "shares" else table[name].to_numpy()
    kind = 1 if name == "shares" else table[name].dims.index("kind")
    theory, trained = np.moveaxis(of, kind, 0)
    return float((np.abs(theory - trained) / np.maximum(theory, trained)).max())


def ranks(table: Table) -> np.ndarray:
    """(seeds, modes): the effective rank of W_h when k modes are learned, for k = 1, …, K.

    That is where the loss is nearest to what is left without the first k modes.
    """
    loss, rank = (table[n].sel(kind="trained").to_numpy() for n in ("loss", "rank"))
    size = np.sort(settings_of(table)["strengths"])[::-1]
    left = loss[:, :1] * (1 - np.cumsum(size**2) / (size**2).sum())
    at = np.abs(loss[:, None] - left[..., None]).argmin(axis=-1)
    return np.take_along_axis(rank, at, axis=1)


def off_rank(table: Table) -> float:
    """The largest distance of the effective rank of W_h from the number of modes learned."""
    each = ranks(table)
    return float(np.abs(each - np.arange(1, each.shape[1] + 1)).max())


def off_radius(table: Table) -> float:
    """The largest distance of |λ|max of the trained W_h from the decay of the task, at the end."""
    end = table["radius"].sel(kind="trained").isel(d=-1)
    return float(np.abs(end - end["decay"]).max())


def overlap_gain(table: Table) -> float:
    """Half-time at the largest overlap over that at the smallest, of networks of one function."""
    times = table["start"].sel(kind="trained").sortby("overlap").to_numpy()
    return float(times[-1] / times[0])


def in_order(table: Table) -> float:
    """The share of neighbouring steps of which the later one's input is learned first."""
    return float((np.diff(step_halves(table)[:, 1], axis=-1) < 0).mean())


IN_ORDER = Measure(
    "in-order",
    "share of neighbouring steps of which the later input reaches half of its part first",
    in_order,
    least=0.95,
    origin=1.0,
)
LATE = Measure(
    "late-over-early",
    "half-time where recent inputs count most over that where old ones do, largest over sizes",
    lambda table: sooner(table, "late", "early"),
    most=0.9,
    origin=1.0,
)
EVEN = Measure(
    "even-over-early",
    "half-time where all inputs count the same over that where old ones count most",
    lambda table: sooner(table, "even", "early"),
    most=0.9,
    origin=1.0,
)
LARGE = Measure(
    "large-over-small",
    "half-time of a size over that of the next smaller one, largest over sizes and profiles",
    by_size,
    most=0.9,
    origin=1.0,
)
RANK = Measure(
    "rank",
    "effective rank of W_h minus the number of modes learned, largest over plateaus",
    off_rank,
    most=0.2,
)
RADIUS = Measure(
    "radius",
    "largest eigenvalue of the learned W_h minus the decay that is asked for, largest",
    off_radius,
    most=0.01,
)
OVERLAP = Measure(
    "overlap",
    "half-time at overlap 1 over that at .05, networks of one function",
    overlap_gain,
    least=1.1,
    origin=1.0,
)
PREDICTED = {
    name: Measure(
        f"predicted-{name}",
        f"{what}, predicted from the initial weights, largest relative error",
        lambda table, name=name: missed_by(table, name),
        most=0.02,
    )
    for name, what in {
        "shares": "half-times of the inputs",
        "halves": "half-times of profiles and sizes",
        "start": "half-times of equal functions",
    }.items()
}


def measures(_: Table | None = None) -> Iterable[Measure]:
    """What the panels show, and how well the race predicts each."""
    return (IN_ORDER, LATE, EVEN, LARGE, RANK, RADIUS, OVERLAP, *PREDICTED.values())


# ---- the picture ---------------------------------------------------------------------------------


def draw(table: Table) -> Picture:
    """Trained networks solid or as points, theory dashed, on the first seed; points for all."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(7.2, 4.8), layout="constrained")
    (a, b, c), (d, e, key) = axes
    first = table.isel(seed=0)
    names = [f"step {t}" for t in table["step"].to_numpy()]
    _two(a, first, "shares", "a", names, "share of the output")
    a.set(title="(a) one input per step", xlim=(4.5, 6.5))
    sizes = table["size"].to_numpy()
    for i, profile in enumerate(table["profile"].to_numpy()):
        times = table["halves"].sel(profile=profile)
        b.plot(sizes, times.sel(kind="theory").isel(seed=0), "--", color=f"C{i}")
        each = times.sel(kind="trained").to_numpy()
        b.plot(sizes, each, "osD"[i], color=f"C{i}", alpha=0.6)
        b.annotate(str(profile), (sizes[0], each[0, 0]), (4, 3), textcoords="offset points",
                   color=f"C{i}")  # fmt: skip
    b.set(title="(b) what is asked for", xlabel="size", ylabel="half-time", yscale="log")
    b.set_yticks([3, 10, 30], ["3", "10", "30"])
    b.minorticks_off()
    _two(c, first.expand_dims("mode"), "rank", "c", ["all"], "effective rank of $W_h$")
    c.set(title="(c) modes, one by one", ylim=(0, 5))
    decays = [f"λ = {decay:g}" for decay in table["decay"].to_numpy()]
    _two(d, first, "radius", "d", decays, "largest |eigenvalue| of $W_h$")
    d.axhline(1.0, color="0.6", lw=0.8)
    d.set(title="(d) stable below 1", xlim=(0, 12))
    x = table["overlap"].to_numpy()
    e.plot(x, table["start"].sel(kind="theory"), "--", color="k")
    e.plot(x, table["start"].sel(kind="trained"), "o", color="C0", alpha=0.7)
    e.set(title="(e) one function, other starts", xscale="log", ylabel="half-time",
          xlabel="overlap of $W_x$ and $W_y$")  # fmt: skip
    key.axis("off")
    key.plot([], [], "-", color="0.5", lw=2.5, label="trained")
    key.plot([], [], "o", color="0.5", alpha=0.7, label="trained, one network each")
    key.plot([], [], "--", color="k", label="predicted from the initial weights")
    key.legend(loc="center", frameon=False)
    return figure


def _two(ax: Axes, table: Table, name: str, time: str, names: list[str], ylabel: str) -> None:
    """Trained and predicted curves of one seed, in the same colours."""
    from neuralrace.plot import draw_curves

    for kind, role in (("trained", "simulation"), ("theory", "theory")):
        values = table[name].sel(kind=kind).to_numpy().reshape(len(names), -1)
        curves = dict(zip(names, values, strict=True))
        draw_curves(table[time].to_numpy(), curves, kind=role, ylabel=ylabel, ax=ax)
    if len(names) == 1 and (legend := ax.get_legend()):
        legend.remove()


FIGURE = Figure(
    name="rnn/order",
    title="What a linear recurrent network learns first",
    states=(
        "Larger parts of the target are learned before smaller ones, and what depends on recent "
        "inputs before what depends on old ones; W_h gains rank one mode at a time and becomes as "
        "stable as the task asks; the overlap of hidden directions, which the function does not "
        "show, decides when."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
