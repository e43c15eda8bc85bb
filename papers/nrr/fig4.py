"""NRR Fig. 4: the routing task, its race, and the representation that all routes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Setting, Settings, Table, settings_of, stated
from papers.nrr.routing_panels import MODES, draw, stages

SCRIPTS = "the authors' scripts; NRR gives none"
"""The source of settings that are not in the paper."""

SETTINGS = {
    "M": Setting(7, "domains on either side", "NRR Fig. 4, caption"),
    "K": Setting(4, "output domains trained with each input domain", "NRR Fig. 4, caption"),
    "hidden": Setting(64, "N_h, width of both hidden layers", "NRR Fig. 4, caption"),
    "scale": Setting(0.2, "σ₀, scale of the initial weights", "NRR Fig. 4, caption"),
    "init": Setting(
        "orthogonal",
        "kind of the initial weights",
        "the authors' scripts; NRR §4 says Xavier (--set init=xavier)",
        choices=("orthogonal", "xavier", "gaussian"),
    ),
    "learning_rate": Setting(
        0.16, "1/τ, on the mean loss of NRR Eq. 1", "the authors' scripts, where λ = .02"
    ),
    "steps": Setting(500, "gradient steps", SCRIPTS),
    "every": Setting(5, "steps between recordings", "ours"),
    "decoupled_start": Setting(
        0.08,
        "start of the decoupled network, and of its theory",
        "the authors' scripts, which also start the theory for random weights there",
    ),
    "seeds": Setting(10, "repetitions from random weights", "NRR Fig. 4e, caption", quick=2),
    "key": Setting(0, "random key of the draw", "ours"),
}


def compute(settings: Settings) -> Table:
    """Networks from random and from decoupled weights, and the race of each."""
    import jax
    import xarray

    from papers.nrr.domains import domains_that_met

    s = settings
    trained, untrained = nr.tasks.routing(s["M"], s["K"])
    arch, data = nr.tasks.routing_pathways(trained, hidden=s["hidden"])
    net, race = nr.GDLN(arch), nr.reduce(arch, data)
    rest = None if untrained is None else nr.tasks.routing_pathways(untrained)[1]
    rate = s["learning_rate"]

    def simulated(weights: Mapping[str, Any]) -> nr.Trajectory:
        return nr.train(
            net,
            weights,
            data,
            learning_rate=rate,
            steps=s["steps"],
            record_every=s["every"],
            record={"weights": True},
        )

    times = rate * np.unique(np.append(np.arange(0, s["steps"], s["every"]), s["steps"]))
    by_hand = race.solve(times=times, start=s["decoupled_start"], learning_rate=rate)
    key = jax.random.key(s["key"])
    decoupled = simulated(race.weights(by_hand, 0.0, key))
    each, first = [], {}
    for seed in jax.random.split(key, s["seeds"]):
        weights = net.init(seed, s["scale"], s["init"])
        run = simulated(weights)
        theory = race.solve(times=run.time, start=race.start(weights), learning_rate=rate)
        each.append(_measured(net, run, theory, data, rest) | _course(race, run, theory))
        first = first or _first(net, run, s)
    over_seeds = {name: np.stack([found[name][1] for found in each]) for name in each[0]}
    return xarray.Dataset(
        {
            **{name: (("seed", *each[0][name][0]), v) for name, v in over_seeds.items()},
            **first,
            "decoupled": ("time", decoupled.loss),
            "by_hand": ("time", by_hand.loss),
            "targets": (("feature", "item"), trained.y["y1"][trained.labels["output"] == 1][:4].T),
            "routes": (("input", "output"), nr.tasks.circulant_routes(s["M"], s["K"])),
            "met": (("input", "input2"), domains_that_met(trained)),
            "paths": ("layer", [arch.path_count(v) for v in ("in1", "hidden", "out1")]),
            "trained_paths": ("layer", _trained_paths(trained)),
        },
        {
            "time": decoupled.time,
            "seed": np.arange(s["seeds"]),
            "layer": ["input", "hidden", "output"],
        },
    )


def _trained_paths(trained: nr.Dataset) -> list[int]:
    """Trained routes through the first input, through the hidden edge, and to the first output."""
    routes = {*zip(trained.labels["input"], trained.labels["output"], strict=True)}
    return [
        sum(bool(i == 1) for i, _ in routes),
        len(routes),
        sum(bool(j == 1) for _, j in routes),
    ]


def layers(weights: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Singular values (…, mode) of the hidden edge, and √(in · out) of the mean outer edges."""
    values = nr.analysis.singular_values(weights, modes=MODES)
    ends = {v: [x for e, x in values.items() if e.startswith(v)] for v in ("in", "out")}
    return {
        "hidden": values["hidden"],
        "ends": np.sqrt(np.mean(ends["in"], axis=0) * np.mean(ends["out"], axis=0)),
    }


def _measured(
    net: nr.GDLN, run: nr.Trajectory, theory: nr.Trajectory, data: nr.Dataset, rest: Any
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """The data kept for every seed, with their dimensions."""
    from papers.nrr.domains import domain_similarity
    from papers.nrr.route_errors import route_errors

    values = layers(run.final)
    errors = route_errors(net, run.final, data, rest)
    shown = nr.analysis.hidden(net, run.final, data, "h")
    alike = domain_similarity(shown, data.labels["input"], data.labels["item"])
    return {
        "loss": (("time",), run.loss),
        "loss_predicted": (("time",), theory.loss),
        "hidden_end": (("mode",), values["hidden"]),
        "ends_end": (("mode",), values["ends"]),
        "untrained_share": ((), errors.untrained_share),
        "shared": ((), alike.shared),
    }


def _course(
    race: nr.Race, run: nr.Trajectory, theory: nr.Trajectory
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Singular values over the whole course, simulated and predicted, with their dimensions."""
    values = layers(run.values["weights"])
    blocks = theory.values["variables"].values()
    strength = {
        edge: np.stack([np.linalg.norm(b[edge], ord=2, axis=(-2, -1)) for b in blocks], axis=-1)
        for edge in race.arch.edges
    }
    ends = {
        v: np.mean([x for e, x in strength.items() if e.startswith(v)], axis=0)
        for v in ("in", "out")
    }
    order = np.argsort(-strength["hidden"][-1])
    over_time = ("time", "mode")
    return {
        "hidden_values": (over_time, values["hidden"]),
        "ends_values": (over_time, values["ends"]),
        "hidden_predicted": (over_time, strength["hidden"][:, order]),
        "ends_predicted": (over_time, np.sqrt(ends["in"] * ends["out"])[:, order]),
    }


def _first(
    net: nr.GDLN, run: nr.Trajectory, settings: Settings
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """The data drawn for the first seed: similarity, all outputs."""
    M = settings["M"]
    every = nr.tasks.routing_pathways(nr.tasks.routing(M, M)[0])[1]
    label = every.labels
    said = net(run.final, every)
    outputs = np.zeros((M, 7, M, MODES))
    shown = np.zeros((M, MODES, settings["hidden"]))
    active = nr.analysis.hidden(net, run.final, every, "h")
    for n in range(every.n_samples):
        i, j, item = label["input"][n] - 1, label["output"][n] - 1, label["item"][n] - 1
        outputs[j, :, i, item] = said[f"y{j + 1}"][n]
        shown[i, item] = active[n]
    flat = shown.reshape(M * MODES, -1)
    return {
        "similarity": (("shown", "shown2"), nr.analysis.similarity(flat)),
        "outputs": (("output", "feature", "input", "item"), outputs),
    }


def plateaus(levels: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """The loss where it falls slowest, near each of the levels between 1 and 0.

    A level's range reaches half way to its neighbours. `loss` (T,) and `levels` are shares of
    the initial loss, levels with 1 first and 0 last.
    """
    fall = -np.gradient(loss)
    found = []
    for above, level, below in zip(levels[:-2], levels[1:-1], levels[2:], strict=True):
        near = np.flatnonzero((loss < (above + level) / 2) & (loss > (level + below) / 2))
        found.append(loss[near[np.argmin(fall[near])]] if len(near) else np.nan)
    return np.array(found)


def final_hidden(targets: np.ndarray, M: int, start: float) -> np.ndarray:
    """The fixed point of NRR Eq. 15: B₂ (B₂² + C) = M s, C = (M − 1) · start² for equal starts."""
    strengths = np.linalg.svd(targets, compute_uv=False)
    C = (M - 1) * start**2
    roots = [np.roots([1.0, 0.0, C, -M * s]) for s in strengths]
    return np.array([r[np.argmin(np.abs(r.imag))].real for r in roots])


def theory_gaps(table: Table) -> np.ndarray:
    """Mean |ΔL| / L(0) between the race from the actual weights and descent, seed by seed."""
    time = table["time"].to_numpy()
    pairs = zip(table["loss"].to_numpy(), table["loss_predicted"].to_numpy(), strict=True)
    return np.array(
        [nr.compare(nr.Trajectory(time, a), nr.Trajectory(time, b)).mean for a, b in pairs]
    )


def decoupled_gap(table: Table) -> float:
    """The largest |ΔL| / L(0) between descent from decoupled weights and theory."""
    decoupled = table["decoupled"].to_numpy()
    return float(np.abs(decoupled - table["by_hand"].to_numpy()).max() / decoupled[0])


def root_M_off(table: Table) -> np.ndarray:
    """The relative difference of hidden / √(in · out) from √M, worst mode, seed by seed."""
    ratio = table["hidden_end"].to_numpy() / table["ends_end"].to_numpy()
    return np.abs(ratio / np.sqrt(settings_of(table)["M"]) - 1).max(axis=1)


MEASURES = {
    "decoupled": Measure(
        "decoupled",
        "theory against simulation from decoupled weights, max |ΔL| / L(0)",
        decoupled_gap,
        most=1e-6,
        rests=Basis.THEOREM,
        words="exactly",
    ),
    "random": Measure(
        "random",
        "theory from the actual random weights against their simulation, mean |ΔL| / L(0)",
        theory_gaps,
        most=0.02,
        words="a good approximation",
    ),
    "root M": Measure(
        "root-m",
        "final hidden singular values over √(in · out) and √M: difference from 1, worst mode",
        root_M_off,
        most=0.04,
        words="by a factor √M",
    ),
    "untrained": Measure(
        "untrained",
        "error on untrained routes, relative to zero output",
        lambda t: t["untrained_share"].to_numpy(),
        most=1e-3,
        words="generalizes perfectly",
    ),
    "shared": Measure(
        "shared",
        "one representation for all input domains: Σ h_a·h_b / Σ ½(‖h_a‖² + ‖h_b‖²)",
        lambda t: t["shared"].to_numpy(),
        least=0.95,
        origin=1.0,
        words="the same representation",
    ),
}
"""Numbers of this figure with their bounds: for its agreement and for the ledger of claims."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Plateaus, singular values, untrained routes, theory against simulation."""
    settings = settings_of(table)
    M, start = settings["M"], settings["decoupled_start"]
    targets = table["targets"].to_numpy()
    loss = table["loss"].to_numpy()
    shares = loss / loss[:, :1]
    levels, total = stages(targets), (targets**2).sum()
    found = np.array([plateaus(levels, run) for run in shares])
    rows = [
        stated(
            f"plateau-{k + 1}",
            f"plateau {k + 1} of the loss, over the initial loss; mean of the seeds",
            f"{level * total:.0f}/{total:.0f} = {level:.4f}, each seed within 0.01",
            f"{found[:, k].mean():.4f}, worst {np.abs(found[:, k] - level).max():.4f} away",
            np.abs(found[:, k] - level).max(),
            most=0.01,
        )
        for k, level in enumerate(levels[1:-1])
    ]
    hidden, ends = table["hidden_end"].to_numpy(), table["ends_end"].to_numpy()
    wanted = final_hidden(targets, M, start)
    off = np.abs(hidden / wanted - 1).max()
    rows.append(
        stated(
            "hidden-values",
            "final singular values of the hidden matrix; mean over seeds",
            ", ".join(f"{v:.3f}" for v in wanted) + ", each seed within 0.5 %",
            ", ".join(f"{v:.3f}" for v in hidden.mean(axis=0)) + f", worst {_percent(off)} away",
            off,
            most=0.005,
        )
    )
    ratio = ", ".join(f"{v:.3f}" for v in (hidden / ends / np.sqrt(M)).mean(axis=0))
    worst = f"worst seed {_percent(root_M_off(table).max())}; all modes, mean of seeds: {ratio}"
    rows.append(replace(MEASURES["root M"], beside=worst))
    zero_shot = table["untrained_share"].to_numpy()
    if np.isfinite(zero_shot).all():
        worst = f"worst seed {_percent(zero_shot.max())}"
        rows.append(replace(MEASURES["untrained"], beside=worst))
    return (_paths(table, settings), *rows, *_theory(table, start), *_sharing(table))


def _paths(table: Table, settings: Settings) -> Measure:
    M, K = settings["M"], settings["K"]
    every, trained = (table[name].to_numpy().tolist() for name in ("paths", "trained_paths"))
    return stated(
        "paths",
        "(b) paths through an input, the hidden and an output edge: all, and trained",
        f"M, M², M = {M}, {M * M}, {M}; K, KM, K = {K}, {K * M}, {K}",
        "; ".join(", ".join(map(str, those)) for those in (every, trained)),
        float((every, trained) == ([M, M * M, M], [K, K * M, K])),
        least=1,
        rests=Basis.THEOREM,
    )


def _theory(table: Table, start: float) -> list[Measure]:
    time = table["time"].to_numpy()
    by_hand = table["by_hand"].to_numpy()
    runs = [nr.Trajectory(time, run) for run in table["loss"].to_numpy()]
    hand = [nr.compare(run, nr.Trajectory(time, by_hand)) for run in runs]
    course = {name: course_gap(table, name) for name in ("hidden", "ends")}
    largest, weakest = (max(gap[k] for gap in course.values()) for k in (0, -1))
    return [
        MEASURES["decoupled"],
        replace(MEASURES["random"], beside=f"worst seed {_percent(theory_gaps(table).max())}"),
        stated(
            "by-hand",
            f"for comparison, theory started at {start:g} by hand against the same simulations",
            "reported",
            f"{_percent(max(c.mean for c in hand))}, mean of the seeds "
            f"{_percent(np.mean([c.mean for c in hand]))}",
        ),
        stated(
            "course-strongest",
            "(f) singular values over the whole course, predicted against simulated: mean over "
            "time of the difference relative to the final value, strongest mode, mean of the seeds",
            "“match simulations well, particularly for larger singular values”: ≤ 5 %",
            f"{_percent(course['hidden'][0])} hidden, {_percent(course['ends'][0])} input and "
            "output",
            largest,
            most=0.05,
        ),
        stated(
            "course-others",
            "(f) the same for the other modes: hidden; input and output",
            "reported; “particularly for larger singular values”: the strongest is best",
            "; ".join(", ".join(map(_percent, gap[1:])) for gap in course.values()),
            largest,
            most=weakest,
            rests=Basis.PAPER,
        ),
    ]


def course_gap(table: Table, name: str) -> np.ndarray:
    """How far predicted singular values are from simulated ones over the whole course.

    For each mode, the mean over time of |Δ| relative to the final value, mean over seeds. `name` is
    `hidden`, or `ends` for input and output edges.
    """
    predicted, simulated = (table[f"{name}_{v}"].to_numpy() for v in ("predicted", "values"))
    time = table["time"].to_numpy()
    off = np.trapezoid(np.abs(predicted - simulated), time, axis=1) / (time[-1] - time[0])
    return (off / simulated[:, -1]).mean(axis=0)


def _sharing(table: Table) -> list[Measure]:
    shared, met = table["shared"].to_numpy(), table["met"].to_numpy().astype(bool)
    apart = int((~met).sum()) // 2
    worst = f"worst seed {shared.min():.4f} (1 is the same, 0 unrelated)"
    return [
        replace(MEASURES["shared"], beside=worst),
        stated(
            "never-met",
            "pairs of input domains without a common trained output",
            "the caption mentions such pairs; with circulant routes there are none if 2K > M",
            f"{apart} of {len(met) * (len(met) - 1) // 2}",
        ),
    ]


def _percent(share: Any) -> str:
    percent = 100 * float(share)
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


FIGURE = Figure(
    name="nrr/fig4",
    title="Routing: the race predicts the loss, and all routes share one representation",
    states=(
        "M² paths run through the hidden edge and M through each input and output edge. The "
        "theory (Eq. 15) matches decoupled simulations exactly and is a good approximation "
        "for small random weights; the singular values of the shared hidden matrix are √M times "
        "those of the input and output matrices; inputs of different domains are mapped to "
        "similar representations, and the network generalises perfectly to routes it was never "
        "trained on (Fig. 4, §4, App. C)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
