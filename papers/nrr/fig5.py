"""NRR Fig. 5: pathways that share more learn faster; the K at which routes generalise."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated
from papers.nrr.routes import make_routes
from papers.nrr.routing_panels import FLOOR, draw_errors, draw_scheme

CAPTION = "NRR Fig. 5, caption"
"""The source of settings in the caption."""

SETTINGS = {
    "M": Setting(10, "domains on either side", CAPTION, quick=6),
    "P": Setting(
        (1, 4, 25, 100),
        "routes through each hidden pathway, squares of divisors of M",
        "NRR Fig. 5b: up to M²",
        quick=(1, 4, 9, 36),
    ),
    "K": Setting(
        (1, 2, 3, 4, 5, 6, 7, 8, 9),
        "output domains trained with each input",
        "NRR Fig. 5c",
        quick=(1, 2, 3, 4),
    ),
    "hidden": Setting(64, "N_h, width of both hidden layers", CAPTION, quick=32),
    "scale": Setting(0.2, "σ₀, scale of the initial weights", CAPTION),
    "init": Setting(
        "orthogonal",
        "kind of the initial weights",
        "NRR §4.3: matrices with singular value σ₀; §4 says Xavier",
        choices=("orthogonal", "xavier", "gaussian"),
    ),
    "learning_rate": Setting(
        0.1,
        "1/τ, on the mean loss of NRR Eq. 1",
        f"{CAPTION}: λ = .05/K, and 2Kλ, which for Fig. 4 gives the rate of the authors' scripts",
    ),
    "seeds": Setting(10, "repetitions, for each K and P", "as in NRR Fig. 4e", quick=3),
    "key": Setting(0, "random key of the draw", "ours"),
    "span": Setting(240.0, "duration of (b)", "ours: until P = 1 has learned", quick=90.0),
    "steps": Setting(
        2000, "gradient steps of (c), doubled until every seed has converged", "ours", quick=1000
    ),
    "most_steps": Setting(32000, "where the doubling stops", "ours", quick=4000),
    "tolerance": Setting(
        1e-5, "converged: error on trained routes, relative to zero output, at most this", "ours"
    ),
    "drift": Setting(
        1e-3,
        ("converged: the error on untrained routes changes by less than this in the last quarter"),
        "ours",
    ),
    "generalises": Setting(
        0.01,
        (
            "a seed generalises if its error on untrained routes, relative to zero output, is "
            "below this"
        ),
        "ours",
    ),
}


def compute(settings: Settings) -> Table:
    """Panel b: the strength of the largest mode over time for each P. Panel c: errors for each K.

    `theory`, `decoupled` and `random` are strengths, 1 at the end: from the race (NRR Eqs. 16–17,
    with the same step), and from descent with decoupled and with random initial weights. `trained`
    and `untrained` are errors relative to zero output; `steps` and `drift` say how far each K was
    trained; `apart` says how far input domains that never met share a representation.
    """
    import xarray

    _check(settings)
    error = [_errors(settings, K) for K in settings["K"]]
    per_seed = ("trained", "untrained", "drift", "shared", "apart")
    return xarray.Dataset(
        {
            **speeds(settings),
            **{name: (("K", "seed"), np.stack([e[name] for e in error])) for name in per_seed},
            "steps": ("K", [e["steps"] for e in error]),
            "paths": (("P", "layer"), [_paths(settings["M"], P) for P in settings["P"]]),
        },
        {"P": list(settings["P"]), "K": list(settings["K"])},
    )


def _paths(M: int, P: int) -> list[int]:
    """The most paths through any hidden edge, and through any edge from an input (Fig. 5a)."""
    arch = nr.Architecture.routing(M, P=P)
    return [
        max(arch.path_count(e) for e in arch.edges if e.startswith(v)) for v in ("hidden", "in")
    ]


def _check(settings: Settings) -> None:
    M = settings["M"]
    squares = [side**2 for side in range(1, M + 1) if M % side == 0]
    for name, allowed, why in (
        ("P", squares, "the M² routes are divided into equal squares, one for each hidden pathway"),
        ("K", range(1, M), "some routes must remain untrained"),
    ):
        wrong = [value for value in settings[name] if value not in allowed]
        if wrong:
            raise nr.NeuralRaceError(
                f"{name} does not fit M = {M}: {why}",
                got=", ".join(map(str, wrong)),
                wanted="of " + ", ".join(map(str, allowed)),
                fix=f"--set {name}=… with some of these, or another M",
            )


# ---- b: the speed of shared pathways ------------------------------------------------------------


def speeds(settings: Settings) -> dict[str, Any]:
    """Strengths of the largest mode over time, for each P.

    Hidden pathways share neither weights nor samples, so only one is simulated, with its P of the
    M² routes. Its part of the mean loss is P/M² of its own loss, which only slows time down.
    """
    import jax

    rate, scale = settings["learning_rate"], settings["scale"]
    steps = np.unique(np.geomspace(1, settings["span"] / rate, 100).round().astype(int))
    steps = np.append(0, steps)
    key = jax.random.key(settings["key"])
    found: dict[str, list[np.ndarray]] = {"theory": [], "decoupled": [], "random": []}
    for P in settings["P"]:
        side = round(P**0.5)
        slower = rate * P / settings["M"] ** 2
        routes = make_routes(side, side, settings["hidden"])
        race = nr.reduce(routes.net.arch, routes.trained)
        solution = race.solve(times=slower * steps, start=scale, learning_rate=slower)
        descent: dict[str, Any] = {
            "learning_rate": slower,
            "steps": int(steps[-1]),
            "record_at": steps,
            "record": {"strength": routes.strength},
        }
        decoupled = race.weights(solution, 0.0, key)
        one = nr.train(routes.net, decoupled, routes.trained, **descent)
        many = nr.train_ensemble(
            routes.net,
            routes.trained,
            key=key,
            seeds=settings["seeds"],
            scale=scale,
            kind=settings["init"],
            **descent,
        )
        mode = solution.values["variables"][race.blocks[0].name]
        product = np.abs(mode["in1"] * mode["hidden"] * mode["out1"])[..., 0, 0]
        found["theory"].append(product / np.linalg.norm(routes.target, 2))
        found["decoupled"].append(one.values["strength"])
        found["random"].append(many.values["strength"])
    return {
        "theory": (("P", "time"), np.stack(found["theory"])),
        "decoupled": (("P", "time"), np.stack(found["decoupled"])),
        "random": (("P", "seed", "time"), np.stack(found["random"])),
        "time": ("time", rate * steps),
    }


def half_times(table: Table, name: str) -> np.ndarray:
    """Times to half the final strength, for every P; the median over seeds if there are any."""
    time, strength = table["time"].to_numpy(), table[name].to_numpy()
    if strength.ndim == 2:
        return np.array([time_to(time, run) for run in strength])
    return np.median([[time_to(time, run) for run in runs] for runs in strength], axis=1)


def time_to(time: np.ndarray, strength: np.ndarray, level: float = 0.5) -> float:
    """The time at which a strength first reaches a level, interpolated; NaN if it does not."""
    above = strength >= level
    if not above.any():
        return float("nan")
    k = int(above.argmax())
    if k == 0:
        return float(time[0])
    low, high = strength[k - 1], strength[k]
    return float(time[k - 1] + (time[k] - time[k - 1]) * (level - low) / (high - low))


# ---- c: errors on trained and untrained routes --------------------------------------------------


def _errors(settings: Settings, K: int) -> dict[str, Any]:
    """Train every seed to convergence: the number of steps is doubled until all have converged.

    A network has converged if its error on trained routes is below `tolerance`, and its error on
    untrained routes changed by less than `drift` over the last quarter of the steps.
    """
    import jax

    routes = make_routes(settings["M"], K, settings["hidden"])
    steps = settings["steps"]
    while True:
        run = nr.train_ensemble(
            routes.net,
            routes.trained,
            key=jax.random.key(settings["key"]),
            seeds=settings["seeds"],
            scale=settings["scale"],
            kind=settings["init"],
            learning_rate=settings["learning_rate"],
            steps=steps,
            record_at=[0, steps - steps // 4, steps],
            record={"weights": True},
        )
        errors = routes.errors(run.values["weights"])
        trained, untrained = errors.trained_share[:, -1], errors.untrained_share[:, -1]
        drift = np.abs(untrained - errors.untrained_share[:, 1])
        done = (trained <= settings["tolerance"]).all() and (drift <= settings["drift"]).all()
        if done or 2 * steps > settings["most_steps"]:
            break
        steps *= 2
    return {
        "trained": trained,
        "untrained": untrained,
        "drift": drift,
        "shared": routes.shared(run.final),
        "apart": routes.shared(run.final, apart=True),
        "steps": steps,
    }


def converged(table: Table) -> np.ndarray:
    """Whether each seed of each K has converged, `(K, seed)`."""
    settings = settings_of(table)
    still = table["drift"].to_numpy() <= settings["drift"]
    return still & (table["trained"].to_numpy() <= settings["tolerance"])


def generalising(table: Table) -> np.ndarray:
    """The share of seeds that generalise, for every K."""
    return (table["untrained"].to_numpy() < settings_of(table)["generalises"]).mean(axis=1)


# ---- picture and numbers ------------------------------------------------------------------------

TOP = 100.0
"""The height at which the shares of seeds are written."""

SKETCH = 4
"""The number of domains in the drawings of (a), few enough to show every pathway."""

SKETCHED = (1, 4, 16)
"""The gating schemes of (a): dedicated pathways, groups of two by two domains, one for all."""


def draw(table: Table) -> Picture:
    """(a) gating schemes, (b) strengths over time, (c) errors against K/M."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(3.4, 7.6))
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.6))
    schemes: Any = [["a0", "a1"], ["a0", "a2"]]
    axes = parts[0].subplot_mosaic(schemes) | parts[1].subplot_mosaic([["b"], ["c"]])
    _draw_speeds(table, axes["b"])
    _draw_errors(table, axes["c"])
    for k, P in enumerate(SKETCHED):
        draw_scheme(axes[f"a{k}"], SKETCH, P)
        title = f"(a{k + 1}) " + ("" if k else f"M = {SKETCH}, ") + f"P = {P}"
        axes[f"a{k}"].set_title(title if k else f"{title}\nthick: the route x1 → y1")
    return figure


def _draw_speeds(table: Table, ax: Any) -> None:
    from neuralrace.plot import draw_curves

    time = table["time"].to_numpy()[1:]
    names = [f"P = {P}" for P in table["P"].to_numpy()]
    strength = {
        name: dict(zip(names, table[name].to_numpy()[..., 1:], strict=True))
        for name in ("theory", "decoupled", "random")
    }
    draw_curves(time, strength["decoupled"], ax=ax)
    for line in ax.get_lines():
        seeds = strength["random"][line.get_label()]
        ax.plot(time, seeds.T, color=line.get_color(), linewidth=0.6)
    draw_curves(time, strength["theory"], kind="theory", ax=ax)
    ax.set(
        title="(b) P routes share a pathway; thin: random weights",
        xscale="log",
        xlim=(max(0.5, time[0]), time[-1]),
        xlabel="time",
        ylabel="strength of the first mode",
    )


def _draw_errors(table: Table, ax: Any) -> None:
    share = table["K"].to_numpy() / settings_of(table)["M"]
    draw_errors(table, share, ax)
    for x, good in zip(share, generalising(table), strict=True):
        ax.text(x, TOP, f"{good:.0%}", ha="center", va="top", fontsize=6)
    ax.set(
        title="(c) errors, median; above: seeds that generalise",
        ylim=(FLOOR / 1e6, 2 * TOP),
        xlim=(0, 1),
        xlabel="share of outputs trained with each input, K / M",
        ylabel="error / error of zero output",
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """Theory against simulation in (b); in (c) convergence, errors and seeds that generalise."""
    settings = settings_of(table)
    P, K = table["P"].to_numpy(), table["K"].to_numpy()
    gap = float(np.abs(table["theory"].to_numpy() - table["decoupled"].to_numpy()).max())
    half = {name: half_times(table, name) for name in ("theory", "decoupled", "random")}
    done = converged(table)
    good = generalising(table)
    median = np.median(table["untrained"].to_numpy(), axis=1)
    few, enough = good[K / settings["M"] < 0.3], good[K / settings["M"] >= 0.4]
    paths = table["paths"].to_numpy()
    return (
        stated(
            "paths",
            "(a) paths through a hidden edge, and through an input's edge to it",
            "P and √P",
            _by("P", P, [f"{n} and {m}" for n, m in paths.tolist()]),
            float((paths == np.stack([P, np.sqrt(P)], axis=1)).all()),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "race",
            "(b) race against descent from decoupled weights, largest difference of the strength",
            "≤ 1e-6",
            f"{gap:.1e}",
            gap,
            most=1e-6,
            rests=Basis.THEOREM,
        ),
        *(
            stated(
                f"half-time-{name}",
                f"(b) time to half the final strength: {label}",
                "falls as P grows",
                _by("P", P, [f"{t:.3g}" for t in half[name]]),
                np.max(np.diff(half[name])),
                most=0,
                rests=Basis.PAPER,
            )
            for name, label in (("theory", "race"), ("random", "from random weights, median"))
            if len(P) > 1
        ),
        stated(
            "converged",
            "(c) steps to convergence",
            f"every seed: error on trained routes ≤ {settings['tolerance']:g}, error on untrained "
            f"routes changes by ≤ {settings['drift']:g} in the last quarter",
            _by("K", K, table["steps"].to_numpy())
            + f"; {int(done.sum())} of {done.size} runs converged",
            float(done.all()),
            least=1,
        ),
        stated(
            "untrained",
            "(c) median error on untrained routes, relative to zero output",
            "reported",
            _by("K", K, [f"{v:.2g}" for v in median]),
        ),
        stated(
            "generalising",
            f"(c) seeds that generalise (error below {settings['generalises']:g})",
            "“~40 %”: all seeds at K/M = 0.4 and above, not all below 0.3",
            _by("K", K, [f"{v:.0%}" for v in good]),
            rests=Basis.PAPER,
            **(
                {"value": (enough == 1).all() and (few < 1).all(), "least": 1}
                if few.size and enough.size
                else {}
            ),
        ),
    )


def _by(name: str, keys: Any, values: Any) -> str:
    return f"{name} = " + ", ".join(f"{k}: {v}" for k, v in zip(keys, values, strict=True))


FIGURE = Figure(
    name="nrr/fig5",
    title=(
        "Pathway race: pathways that share more learn faster, and the K at which routes generalise"
    ),
    states=(
        "The same task can be solved with dedicated pathways, with groups that share one, or with "
        "one for all. The more routes flow through a hidden pathway, the faster its singular "
        "values grow; the error on untrained routes is large if few outputs are trained with each "
        "input, and shared structure dominates reliably from about 40 % on (Fig. 5, Eqs. 16–17)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
