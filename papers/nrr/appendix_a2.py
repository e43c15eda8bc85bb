"""NRR App. A.2: a task with two contexts, learned by one pathway and by two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated

SETTINGS = {
    "hidden": Setting(100, "neurons of each pathway", "ours: NRR gives none"),
    "scale": Setting(1e-3, "standard deviation of the initial weights", "ours: NRR gives none"),
    "learning_rate": Setting(0.5, "gradient step on the mean loss", "ours: NRR gives none"),
    "steps": Setting(160, "gradient steps, until both losses are constant", "ours: NRR gives none"),
    "seeds": Setting(10, "repetitions", "ours: NRR gives none", quick=3),
    "key": Setting(0, "random key of the draw", "ours"),
}


def compute(settings: Settings) -> Table:
    """Total weights of every pathway and losses over time, simulated and predicted."""
    import jax
    import xarray

    s = settings
    base = nr.tasks.contextual_classification()
    gatings = {
        "single": nr.tasks.single_pathway(base, hidden=s["hidden"]),
        "two": nr.tasks.pathway_per_context(base, hidden=s["hidden"]),
    }
    variables: dict[str, Any] = {}
    time = np.zeros(0)
    for name, (arch, data) in gatings.items():
        net, race = nr.GDLN(arch), nr.reduce(arch, data)

        def total(w: Mapping[str, Any], arch: nr.Architecture = arch) -> dict[str, Any]:
            return {v: (w[arch.outgoing[v][0]] @ w[arch.incoming[v][0]])[0] for v in arch.hidden}

        key = jax.random.key(s["key"])
        run = nr.train_ensemble(
            net,
            data,
            key=key,
            seeds=s["seeds"],
            scale=s["scale"],
            learning_rate=s["learning_rate"],
            steps=s["steps"],
            record={"total": total},
        )
        time, losses, weights = run.time, [], []
        for seed in jax.random.split(key, s["seeds"]):
            solution = race.solve(
                times=time,
                start=race.start(net.init(seed, s["scale"])),
                learning_rate=s["learning_rate"],
            )
            losses.append(solution.loss)
            weights.append(_predicted_total(race, solution, arch.hidden))
        variables[f"{name}_loss"] = (("seed", "time"), run.loss)
        variables[f"{name}_loss_predicted"] = (("seed", "time"), np.stack(losses))
        dims = ("seed", f"{name}_pathway", "time", "input")
        simulated = np.stack([run.values["total"][v] for v in arch.hidden], axis=1)
        variables[f"{name}_total"] = (dims, simulated)
        variables[f"{name}_total_predicted"] = (dims, np.stack(weights))
    return xarray.Dataset(variables, {"time": time, "seed": np.arange(s["seeds"])})


def _predicted_total(race: nr.Race, solution: nr.Trajectory, nodes: tuple[str, ...]) -> np.ndarray:
    """(pathway, time, input): W^tot of each pathway, from the weights of the blocks."""
    found = np.zeros((len(nodes), len(solution.time), 2))
    for name, block in zip(solution.values["variables"], race.blocks, strict=True):
        small = solution.values["variables"][name]
        for i, node in enumerate(nodes):
            if node not in block.arch.hidden:
                continue
            into, out = block.arch.incoming[node][0], block.arch.outgoing[node][0]
            product = np.asarray(small[out]) @ np.asarray(small[into])
            found[i] += (block.basis["y"] @ product @ block.basis["x"].T)[:, 0]
    return found


def measures(table: Table) -> tuple[Measure, ...]:
    """The final total weights and losses, and theory against simulation."""
    rows = []
    wanted = {"single": [[0.5, 0.5]], "two": [[1.0, 0.0], [0.0, 1.0]]}
    says = {"single": "one pathway ends at W^tot = [½ ½]", "two": "two pathways at [1 0] and [0 1]"}
    for name, end in wanted.items():
        totals = table[f"{name}_total"].to_numpy()[:, :, -1]
        far = float(np.abs(totals - np.array(end)).max())
        middle = "; ".join("[" + " ".join(f"{v:.4f}" for v in row) + "]" for row in totals.mean(0))
        rows.append(
            stated(
                f"{name}-end",
                says[name],
                "each entry within 0.005, in every seed",
                f"{middle}, worst entry {far:.1e} away",
                far,
                most=0.005,
            )
        )
    loss = {name: table[f"{name}_loss"].to_numpy() for name in wanted}
    left = {name: float((v[:, -1] / v[:, 0]).max()) for name, v in loss.items()}
    rows.append(
        stated(
            "single-loss",
            "final over initial loss with one pathway (least squares: ½)",
            "within 1 %",
            f"{left['single']:.4f}",
            abs(left["single"] - 0.5),
            most=0.005,
        )
    )
    rows.append(
        stated(
            "two-loss",
            "final over initial loss with two pathways, worst seed",
            "≤ 0.1 %",
            f"{left['two']:.1e}",
            left["two"],
            most=1e-3,
        )
    )
    time = table["time"].to_numpy()
    for name, label in (("single", "one pathway"), ("two", "two pathways")):
        pairs = zip(loss[name], table[f"{name}_loss_predicted"].to_numpy(), strict=True)
        worst = max(
            nr.compare(nr.Trajectory(time, a), nr.Trajectory(time, b)).mean for a, b in pairs
        )
        rows.append(
            stated(
                f"{name}-race",
                f"race against simulation, {label}, mean |ΔL| / L(0), worst seed",
                "≤ 1 %",
                f"{100 * worst:.2g} %",
                worst,
                most=0.01,
            )
        )
    return tuple(rows)


def draw(table: Table) -> Picture:
    """Losses of both gatings, and the total weights of each pathway, all over time."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS, draw_curves

    epoch = table["time"] / settings_of(table)["learning_rate"]
    figure, axes = plt.subplot_mosaic(
        [["loss"] * 3, ["one", "1", "2"]], figsize=(3.4, 4.0), height_ratios=(1.15, 1)
    )
    names = {"single": "one pathway", "two": "a pathway per context"}
    single, two = "single_total", "two_total"
    panels = {"one": (single, 0), "1": (two, 0), "2": (two, 1)}
    for kind, end in (("simulation", ""), ("theory", "_predicted")):
        losses = {label: table[f"{name}_loss{end}"] for name, label in names.items()}
        draw_curves(epoch, losses, kind=kind, ax=axes["loss"])
        for place, (name, pathway) in panels.items():
            total = table[name + end].to_numpy()[:, pathway]
            weights = {f"of $x_{i + 1}$": total[:, :, i] for i in (0, 1)}
            grey = {"simulation": "0.7", "theory": COLOURS["theory"]}[kind]  # names at the ends
            draw_curves(epoch, weights, kind=kind, color=grey, ylabel="", ax=axes[place])
            axes[place].legend().remove()
    top = 1.3 * float(table["single_loss"].max())
    axes["loss"].set(title="(a) loss", xlabel="epoch", ylim=(0, top))
    if (legend := axes["loss"].get_legend()) is not None:
        legend.set_loc("upper right")
    titles = {"one": "(b) one pathway", "1": "(c) in context 1", "2": "(d) in context 2"}
    for place, title in titles.items():
        axes[place].set(title=title, xlabel="epoch", ylim=(-0.1, 1.1), yticks=(0, 0.5, 1))
        if place != "one":
            axes[place].set_yticklabels(())
    axes["one"].set_ylabel("total weight $W^{tot}$")
    _label_ends(table, axes)
    return figure


def _label_ends(table: Table, axes: Mapping[str, Any]) -> None:
    """Label each curve with its input, at its end."""
    ends = {"one": ("single_total", 0), "1": ("two_total", 0), "2": ("two_total", 1)}
    for place, (name, pathway) in ends.items():
        first, second = table[name].to_numpy()[:, pathway, -1].mean(axis=0)
        right = axes[place].get_xlim()[1]
        how: dict[str, Any] = {"ha": "right", "va": "bottom"}
        if abs(first - second) < 0.05:
            axes[place].text(right, first + 0.04, "$x_1$, $x_2$", **how)
        else:
            for i, value in enumerate((first, second)):
                axes[place].text(right, value + 0.02, f"$x_{i + 1}$", **how)


FIGURE = Figure(
    name="nrr/appendix_a2",
    title="Contextual classification: one pathway averages, two solve it",
    states=(
        "With one pathway that is always on, the total weights converge to the linear least "
        "squares solution [½ ½]; with one pathway per context they converge to [1 0] and [0 1], "
        "which solves the nonlinear task (App. A.2, Eqs. 24–29; the paper has no picture of it)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
