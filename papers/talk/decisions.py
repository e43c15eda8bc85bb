"""Talk, "Mice exhibit diverse learning trajectories": strategies of simulated animals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, noted, stated
from papers.talk.animals import MODEL, OURS, deep_of, shallow_of, task_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTINGS = MODEL | {
    "seeds": Setting(200, "animals of each network", OURS, quick=40),
    "key": Setting(0, "random key", OURS),
    "scale": Setting(0.01, "standard deviation of the initial weights", OURS),
    "rate": Setting(0.05, "learning rate: time per trial", OURS),
    "trials": Setting(8000, "trials of each animal", OURS),
    "every": Setting(20, "trials between records", OURS, quick=40),
    "early": Setting(0.25, "share of the mean improvement at which behaviour is early", OURS),
    "late": Setting(0.75, "share of the mean improvement at which behaviour is late", OURS),
}

LAGS = (10.0, 20.0, 40.0, 100.0)
"""Times after the early moment at which behaviour is compared with it, and then at the end.

They were added after the numbers of early and late were known: those lie closer together in the
shallow network than in the deep one.
"""

NETWORKS = ("deep", "shallow")
"""The two networks that are compared."""


def compute(settings: Settings) -> Table:
    """Animals of both networks trial by trial, and the stationary points of the deep one."""
    import xarray

    s, task = settings, task_of(settings)
    agents = {"deep": deep_of(s), "shallow": shallow_of(s)}
    curves: dict[str, list] = {name: [] for name in ("accuracy", "left", "right", "strategy")}
    moments, correlations, pairs, fading = [], [], [], []
    time = np.array([])
    for agent in agents.values():
        run = nr.behaviour.train_by_trials(
            agent, task, key=s["key"], learning_rate=s["rate"], trials=s["trials"],
            animals=s["seeds"], scale=s["scale"], record_every=s["every"],
        )  # fmt: skip
        time, choices = run.time, run.values["choices"]
        sides = nr.behaviour.sensitivity(choices, task)
        accuracy = nr.behaviour.correct(choices, task) @ np.asarray(task.probability)
        named = nr.behaviour.strategies(choices, task)
        curves["accuracy"].append(accuracy)
        curves["left"].append(sides["left"])
        curves["right"].append(sides["right"])
        curves["strategy"].append(
            sum(k * (named == name) for k, name in enumerate(nr.behaviour.STRATEGIES))
        )
        moment = [reached(accuracy, s[when]) for when in ("early", "late")]
        early, late = (sides["right"][:, k] - sides["left"][:, k] for k in moment)
        found = nr.behaviour.rank_correlation(early, late, key=s["key"])
        moments.append(time[moment])
        pairs.append([early, late])
        correlations.append([found.low, found.value, found.high])
        apart = sides["right"] - sides["left"]
        later = [int(np.argmin(np.abs(time - time[moment[0]] - lag))) for lag in LAGS]
        each = [
            nr.behaviour.rank_correlation(early, apart[:, k], key=s["key"]) for k in (*later, -1)
        ]
        fading.append([[one.low, one.value, one.high] for one in each])
    points = nr.behaviour.stationary_points(agents["deep"], task).points
    chance = np.array([point.choices for point in points])
    dims = ("network", "animal", "time")
    signed = np.where(np.asarray(task.labels["side"]) == "left", -1, 1) * task.labels["contrast"]
    return xarray.Dataset(
        {name: (dims, np.array(value)) for name, value in curves.items()}
        | {
            "moment": (("network", "when"), np.array(moments)),
            "asymmetry": (("network", "when", "animal"), np.array(pairs)),
            "correlation": (("network", "part"), np.array(correlations)),
            "fading": (("network", "lag", "part"), np.array(fading)),
            "point_right": (("point", "stimulus"), chance[..., 1]),
            "point_strategy": ("point", nr.behaviour.strategies(chance, task).astype(object)),
            "point_left_use": ("point", nr.behaviour.sensitivity(chance, task)["left"]),
            "point_right_use": ("point", nr.behaviour.sensitivity(chance, task)["right"]),
        },
        {
            "network": list(NETWORKS),
            "time": time,
            "when": ["early", "late"],
            "part": ["low", "value", "high"],
            "lag": [*(f"{lag:g}" for lag in LAGS), "end"],
            "stimulus": signed,
        },
    )


def reached(accuracy: np.ndarray, share: float) -> int:
    """The first moment at which the mean over animals has made this share of its improvement."""
    mean = accuracy.mean(axis=0)
    return int(np.argmax(mean >= mean[0] + share * (mean[-1] - mean[0])))


def shares(table: Table, network: str) -> np.ndarray:
    """(strategies, T): the share of animals with each strategy."""
    named = table["strategy"].sel(network=network).to_numpy()
    return np.array([(named == k).mean(axis=0) for k in range(len(nr.behaviour.STRATEGIES))])


def first_used(table: Table, strategy: str) -> np.ndarray:
    """For every deep animal 1 if its first strategy after naive is this one, else 0."""
    named = table["strategy"].sel(network="deep").to_numpy()
    first = named[np.arange(len(named)), np.argmax(named > 0, axis=1)]
    return (first == nr.behaviour.STRATEGIES.index(strategy)).astype(float)


def both_used(table: Table) -> np.ndarray:
    """For every deep animal 1 if it uses both sides at the end, else 0."""
    last = table["strategy"].sel(network="deep").to_numpy()[:, -1]
    return (last >= nr.behaviour.STRATEGIES.index("balanced")).astype(float)


def part(table: Table, network: str, end: str) -> float:
    """The rank correlation of early and late asymmetry, or an end of its interval."""
    return float(table["correlation"].sel(network=network, part=end))


MEASURES = {
    "left": Measure(
        "left",
        "share of animals that first use the left side only",
        lambda table: first_used(table, "left"),
        least=0.1,
        origin=0.5,
        words="individually diverse",
    ),
    "right": Measure(
        "right",
        "share of animals that first use the right side only",
        lambda table: first_used(table, "right"),
        least=0.1,
        origin=0.5,
        words="individually diverse",
    ),
    "both": Measure(
        "both", "share of animals that use both sides at the end", both_used, least=0.9, origin=1.0
    ),
    "deep": Measure(
        "deep",
        "rank correlation of early and late asymmetry, deep: lower end of its 95 % interval",
        lambda table: part(table, "deep", "low"),
        least=0.0,
        rests=Basis.PAPER,
        words="systematic",
    ),
    "deeper": Measure(
        "deeper",
        "the same, minus the upper end of the shallow network's interval",
        lambda table: part(table, "deep", "low") - part(table, "shallow", "high"),
        least=0.0,
        otherwise="The intervals of the deep and the shallow network overlap, by {:.2g}: depth is "
        "not shown to be needed for it.",
    ),
    "end": Measure(
        "end",
        "rank correlation of early asymmetry with that at the end, deep: lower end of its 95 % "
        "interval",
        lambda table: float(table["fading"].sel(network="deep", lag="end", part="low")),
        least=0.0,
        otherwise="Early strategy predicts that of a while later, not the one at the end: the "
        "lower end of the interval is {:.2g} there.",
    ),
}
"""What the ledger and the figure's agreement judge. Bounds were set after small trial runs.

"end" came later; its bound is that of "deep".

Asymmetry is the use of right stimuli minus that of left ones.
"""


def told(table: Table, network: str, lag: str | None = None) -> str:
    """The rank correlation of early and late, or after a lag, with its interval, as text."""
    if lag is None:
        interval = table["correlation"].sel(network=network)
    else:
        interval = table["fading"].sel(network=network, lag=lag)
    low, value, high = interval.to_numpy()
    return f"{value:.2f} ({low:.2f} to {high:.2f})".replace("-", "−")


def when(table: Table, network: str) -> str:
    """The times of early and late behaviour, and the last one."""
    early, late = table["moment"].sel(network=network).to_numpy()
    return f"{early:g} and {late:g} of {float(table['time'][-1]):g}"


def faded(table: Table, network: str) -> str:
    """The rank correlation with the early moment by lag, and at the end."""
    return ", ".join(
        f"{'at the end' if lag == 'end' else f'lag {lag}'} {told(table, network, lag)}"
        for lag in map(str, table["lag"].to_numpy())
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """What the talk says of mice, measured on simulated animals."""
    beside = {"deep": told(table, "deep"), "end": told(table, "deep", "end")}
    rows = noted({k: m for k, m in MEASURES.items() if k != "deeper"}, beside)
    what = "the same rank correlation in the shallow network, which the talk does not mention"
    rows.append(stated("shallow", what, "reported", told(table, "shallow")))
    for network in NETWORKS:
        rows += [
            stated(
                f"times-{network}",
                f"times of early and late, {network}",
                "reported",
                when(table, network),
            ),
            stated(
                f"fading-{network}",
                f"its decay with the lag, {network}",
                "reported",
                faded(table, network),
            ),
        ]
    last = " and ".join(
        f"{float(table['accuracy'].sel(network=network)[:, -1].mean()):.2f}" for network in NETWORKS
    )
    return (
        *rows,
        stated("accuracy", "mean accuracy at the end, deep and shallow", "reported", last),
    )


def draw(table: Table) -> Picture:
    """Task, strategies, and how different animals learn."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    figure, axes = plt.subplots(2, 3, figsize=(7.2, 4.6))
    _draw_task(axes[0, 0], table)
    _draw_strategies(axes[0, 1], table)
    _draw_accuracy(axes[0, 2], table)
    _draw_shares(axes[1, 0], table)
    _draw_paths(axes[1, 1], table)
    _draw_early_late(axes[1, 2], table)
    letter_panels(figure)
    return figure


def colours() -> dict[str, str]:
    """One colour per strategy."""
    from neuralrace.plot import COLOURS, cycle_colour

    return {"naive": COLOURS["neutral"]} | {
        name: cycle_colour(k) for k, name in enumerate(nr.behaviour.STRATEGIES[1:])
    }


MARKS = {"naive": "o", "left": "<", "right": ">", "balanced": "D", "expert": "*"}
"""The mark of each strategy, so that grey prints can be read."""


GREYS = {"deep": ("0.1", "o"), "shallow": ("0.6", "x")}
"""Grey and mark of each network; colours belong to strategies."""


def _draw_task(ax: Axes, table: Table) -> None:
    from matplotlib.patches import Rectangle

    levels = [c for c in table["stimulus"].to_numpy() if c > 0]
    for row, level in enumerate(sorted(levels)):
        for side, x in (("left", 0.0), ("right", 1.3)):
            grey = 0.5 - 0.5 * level
            ax.add_patch(Rectangle((x, row), 1.0, 0.7, facecolor="0.5", edgecolor="0.3"))
            at = x + (0.12 if side == "left" else 0.66)
            ax.add_patch(Rectangle((at, row + 0.15), 0.22, 0.4, facecolor=f"{grey:.2f}"))
        ax.text(2.4, row + 0.35, f"{level:g}", va="center")
    ax.text(0.5, -0.15, "rewarded:\nleft", ha="center", va="top")
    ax.text(1.8, -0.15, "rewarded:\nright", ha="center", va="top")
    ax.text(2.4, len(levels) + 0.05, "contrast", va="bottom")
    ax.set(xlim=(-0.1, 3.3), ylim=(-1.2, len(levels) + 0.4), title="task")
    ax.axis("off")


def _draw_strategies(ax: Axes, table: Table) -> None:
    x, look = table["stimulus"].to_numpy(), colours()
    order = np.argsort(x)
    for name, p in zip(table["point_strategy"], table["point_right"].to_numpy(), strict=True):
        kind = str(name.item())
        ax.plot(x[order], p[order], color=look[kind], marker=MARKS[kind], label=kind, markersize=4)
    ax.set(
        xlabel="contrast (left negative)", ylabel="probability of right", ylim=(-0.03, 1.03),
        title="stationary strategies",
    )  # fmt: skip
    ax.legend(loc="upper left", fontsize="x-small")


def _draw_accuracy(ax: Axes, table: Table) -> None:
    time = table["time"].to_numpy()
    for network in NETWORKS:
        each, (grey, _) = table["accuracy"].sel(network=network).to_numpy(), GREYS[network]
        ax.plot(time, each[:8].T, color=grey, linewidth=0.4, alpha=0.5)
        ax.plot(time, each.mean(axis=0), color=grey, linewidth=2, label=f"{network}, mean")
    ax.set(xlabel="time", ylabel="probability correct", title="animals learn (thin: one each)")
    ax.set_xlim(0, 0.5 * time[-1])
    ax.legend(loc="lower right", fontsize="x-small")


def _draw_shares(ax: Axes, table: Table) -> None:
    time, look = table["time"].to_numpy(), colours()
    hatches = ("", "\\\\\\", "///", "...", "")
    names = nr.behaviour.STRATEGIES
    stack = ax.stackplot(
        time, shares(table, "deep"), colors=[look[n] for n in names], labels=names, alpha=0.8
    )
    for layer, hatch in zip(stack, hatches, strict=True):
        layer.set_hatch(hatch)
        layer.set_edgecolor("white")
        layer.set_linewidth(0)
    ax.set(
        xlabel="time", ylabel="share of animals", ylim=(0, 1), title="strategies, deep",
        xlim=(0, 0.5 * time[-1]),
    )  # fmt: skip
    ax.legend(loc="center right", fontsize="x-small", frameon=True, facecolor="white", framealpha=1)


def _draw_paths(ax: Axes, table: Table) -> None:
    from neuralrace.plot import COLOURS

    look = colours()
    shown = min(16, table.sizes["animal"])
    for k in range(shown):
        one = table.sel(network="deep").isel(animal=k)
        left, right = (smooth(one[side].to_numpy()) for side in ("left", "right"))
        ax.plot(left, right, color=COLOURS["neutral"], linewidth=0.6, alpha=0.7)
    uses = (table[f"point_{side}_use"].to_numpy() for side in ("left", "right"))
    for name, x, y in zip(table["point_strategy"], *uses, strict=True):
        kind = str(name.item())
        ax.plot(x, y, MARKS[kind], color=look[kind], markersize=9, markeredgecolor="black")
    ax.set(xlabel="use of left stimuli", ylabel="use of right stimuli")
    ax.set_title(f"{shown} deep animals, points as in (b)")


def smooth(curve: np.ndarray, width: int = 10) -> np.ndarray:
    """A running mean, for the eye: single trials move the weights a lot."""
    kernel = np.ones(width) / width
    return np.convolve(np.pad(curve, (width // 2, width - 1 - width // 2), "edge"), kernel, "valid")


def _draw_early_late(ax: Axes, table: Table) -> None:
    for network in NETWORKS:
        early, late = table["asymmetry"].sel(network=network).to_numpy()
        label, (grey, mark) = f"{network}: {told(table, network)}", GREYS[network]
        ax.plot(early, late, mark, color=grey, markersize=3, label=label)
    ax.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    ax.axvline(0, color="0.7", linewidth=0.6, zorder=0)
    ax.set(xlabel="early: right minus left use", ylabel="late: right minus left use")
    ax.set_title("early and late")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.5 * (high - low))
    small = {"fontsize": "x-small", "title_fontsize": "x-small"}
    ax.legend(loc="upper center", title="rank correlation (95 % interval)", **small)


FIGURE = Figure(
    name="talk/decisions",
    title="Learning to make perceptual decisions: simulated animals, their strategies, diversity",
    states=(
        "Mice learn from naïve to expert along trajectories that are individually diverse but "
        "systematic: early strategies determine later ones. Simulated here, trial by trial, with "
        "numbers of our own; nothing is fitted to animals, of which there are no data here."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
