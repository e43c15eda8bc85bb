"""NRR Fig. 5 (b, c): pathways that share more learn faster; from which K on routes generalise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.papers.figure import Agreement, Figure, Setting

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import xarray

CAPTION = "NRR Fig. 5, caption"

SETTINGS = {
    "M": Setting(10, "input and output domains", CAPTION),
    "P": Setting((1, 4, 25, 100), "routes that share a hidden pathway, of M²", "NRR Fig. 5a, b"),
    "K": Setting(
        (1, 2, 3, 4, 5, 6, 7, 8, 9),
        "output domains trained with each input",
        "NRR Fig. 5c",
        quick=(1, 2, 3, 4, 6),
    ),
    "hidden": Setting(64, "neurons of a hidden layer, N_h", CAPTION, quick=32),
    "scale": Setting(0.2, "σ₀, every singular value of the initial weights", CAPTION),
    "kind": Setting("orthogonal", "how initial weights are drawn", "NRR §4.3: matrices with σ₀"),
    "learning_rate": Setting(
        0.1,
        "step in the mean loss of NRR Eq. 1: 2Kλ, the conversion that gives 0.16 for Fig. 4",
        f"{CAPTION}: λ = .05/K",
    ),
    "seeds": Setting(10, "networks for each K, and for each P", "as in NRR Fig. 4e", quick=3),
    "seed": Setting(0, "the key all initial weights are drawn from", "free"),
    "span": Setting(240.0, "how long (b) lasts, τ = 1", "long enough for P = 1"),
    "steps": Setting(2000, "steps of (c), doubled until all seeds have converged", "free"),
    "most_steps": Setting(32000, "where doubling stops", "free", quick=4000),
    "tolerance": Setting(
        1e-5, "converged: largest error on trained routes, of a silent network's", "free"
    ),
    "drift": Setting(
        1e-3,
        "converged: largest change of the error on untrained routes over the last quarter",
        "free",
    ),
    "generalises": Setting(
        0.01, "a seed generalises below this error on untrained routes, of a silent one's", "free"
    ),
}


def compute(settings: Mapping[str, Any]) -> xarray.Dataset:
    """Panel b: the strength of the largest mode over time for each P. Panel c: errors for each K.

    `theory`, `decoupled` and `random` are the strength a = B₁B₂B₃ of the strongest mode as a
    fraction of what it ends at: by NRR Eqs. 16–17, by descent from decoupled and from random
    weights. `trained` and `untrained` are errors as fractions of a silent network's; `steps` and
    `drift` say how far each K was trained. `alike` is the mean cosine between input domains that
    are never trained with a common output.
    """
    import xarray

    speed = _speeds(settings)
    error = [_errors(settings, K) for K in settings["K"]]
    return xarray.Dataset(
        {
            **speed,
            **{
                name: (("K", "seed"), np.stack([e[name] for e in error]))
                for name in ("trained", "untrained", "drift", "alike")
            },
            "steps": ("K", [e["steps"] for e in error]),
        },
        coords={"P": list(settings["P"]), "K": list(settings["K"])},
        attrs={
            name: settings[name] for name in ("M", "scale", "tolerance", "generalises")
        }
        | {"allowed_drift": settings["drift"]},
    )


# ---- b: the speed of pathways that share --------------------------------------------------------


def _speeds(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Strengths of the largest mode over time.

    Hidden pathways share neither weights nor samples. So one of them is simulated, with its P of
    the M² routes: its part in the mean loss is P/M² of its own, which only slows its time.
    """
    import jax

    from neuralrace.dynamics import train, train_ensemble
    from neuralrace.papers.nrr.routes import make_routes
    from neuralrace.reduction import reduce

    rate, scale = settings["learning_rate"], settings["scale"]
    steps = np.unique(np.geomspace(1, settings["span"] / rate, 100).round().astype(int))
    steps = np.append(0, steps)
    key = jax.random.key(settings["seed"])
    found: dict[str, list[np.ndarray]] = {"theory": [], "decoupled": [], "random": []}
    for P in settings["P"]:
        side = round(P**0.5)
        share = P / settings["M"] ** 2
        routes = make_routes(side, side, settings["hidden"])
        race = reduce(routes.net.arch, routes.trained)
        solution = race.solve(times=rate * share * steps, start=scale)
        descent: dict[str, Any] = {
            "learning_rate": rate * share,
            "steps": int(steps[-1]),
            "record_at": steps,
            "record": {"strength": routes.strength},
        }
        decoupled = race.weights(solution, 0.0, key)
        one = train(routes.net, decoupled, routes.trained, **descent)
        many = train_ensemble(
            routes.net,
            routes.trained,
            key=key,
            seeds=settings["seeds"],
            scale=scale,
            kind=settings["kind"],
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


def time_to(time: np.ndarray, strength: np.ndarray, level: float = 0.5) -> float:
    """When a strength first reaches a level, interpolated; NaN if it does not."""
    above = strength >= level
    if not above.any():
        return float("nan")
    k = int(above.argmax())
    if k == 0:
        return float(time[0])
    low, high = strength[k - 1], strength[k]
    return float(time[k - 1] + (time[k] - time[k - 1]) * (level - low) / (high - low))


# ---- c: errors on trained and untrained routes --------------------------------------------------


def _errors(settings: Mapping[str, Any], K: int) -> dict[str, Any]:
    """Train every seed to convergence: the number of steps is doubled until all have converged.

    Converged is a network whose error on trained routes is below `tolerance`, and whose error on
    untrained routes changed by less than `drift` over the last quarter of the steps.
    """
    import jax

    from neuralrace.dynamics import train_ensemble
    from neuralrace.papers.nrr.routes import agreement_between, make_routes

    routes = make_routes(settings["M"], K, settings["hidden"])
    record = {"trained": routes.trained_error, "untrained": routes.untrained_error}
    steps = settings["steps"]
    while True:
        run = train_ensemble(
            routes.net,
            routes.trained,
            key=jax.random.key(settings["seed"]),
            seeds=settings["seeds"],
            scale=settings["scale"],
            kind=settings["kind"],
            learning_rate=settings["learning_rate"],
            steps=steps,
            record_at=[0, steps - steps // 4, steps],
            record=record,
        )
        trained, untrained = (run.values[name][:, -1] for name in record)
        drift = np.abs(untrained - run.values["untrained"][:, 1])
        done = (trained <= settings["tolerance"]).all() and (drift <= settings["drift"]).all()
        if done or 2 * steps > settings["most_steps"]:
            break
        steps *= 2
    finals = [{e: w[k] for e, w in run.final.items()} for k in range(settings["seeds"])]
    alike = [agreement_between(routes.first_hidden(w), ~routes.met()) for w in finals]
    return {
        "trained": trained,
        "untrained": untrained,
        "drift": drift,
        "alike": np.array(alike),
        "steps": steps,
    }


def converged(data: xarray.Dataset) -> np.ndarray:
    """Whether each seed of each K has converged, `(K, seed)`."""
    flat = data["drift"].values <= data.attrs["allowed_drift"]
    return (data["trained"].values <= data.attrs["tolerance"]) & flat


# ---- picture and numbers ------------------------------------------------------------------------


def draw(data: xarray.Dataset) -> matplotlib.figure.Figure:
    """Panels b and c of NRR Fig. 5."""
    from matplotlib import pyplot

    from neuralrace.plot import style

    with style():
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
        _draw_speeds(data, left)
        _draw_errors(data, right)
    return figure


def _draw_speeds(data: xarray.Dataset, ax: matplotlib.axes.Axes) -> None:
    from neuralrace.plot import draw_curves

    time = data["time"].values[1:]
    names = {f"P = {P}": k for k, P in enumerate(data["P"].values)}
    pick = lambda name: {n: data[name].values[k][..., 1:] for n, k in names.items()}  # noqa: E731
    draw_curves(time, pick("decoupled"), kind="simulation", ylabel="learned", ax=ax)
    colours = {line.get_label(): line.get_color() for line in ax.get_lines()}
    for name, seeds in pick("random").items():
        ax.plot(time, seeds.T, color=colours[name], linewidth=0.5, alpha=0.6)
    draw_curves(time, pick("theory"), kind="theory", ylabel="learned", ax=ax)
    ax.set_xscale("log")
    ax.set_xlim(0.5, time[-1])
    ax.set_xlabel("time (τ = 1)")
    ax.set_ylabel("strength of the first mode\n(fraction learned)")
    ax.set_title("b  the more routes share, the faster", loc="left", fontsize=9)


def _draw_errors(data: xarray.Dataset, ax: matplotlib.axes.Axes) -> None:
    share = data["K"].values / data.attrs["M"]
    floor = 1e-8
    for name, colour, marker in (("untrained", "#D55E00", "o"), ("trained", "#0072B2", "s")):
        values = np.maximum(data[name].values, floor)
        ax.plot(
            np.repeat(share, values.shape[1]),
            values.ravel(),
            marker,
            color=colour,
            markersize=3,
            alpha=0.35,
            markeredgewidth=0,
        )
        ax.plot(share, np.median(values, axis=1), f"{marker}-", color=colour, label=name)
    level = data.attrs["generalises"]
    ax.axhline(level, color="#5F5F5F", linestyle=":", linewidth=0.9)
    ax.axvline(0.4, color="#5F5F5F", linestyle="--", linewidth=0.9)
    for x, count in zip(share, (data["untrained"].values < level).sum(axis=1), strict=True):
        ax.text(x, 6, str(count), ha="center", va="bottom", fontsize=7)
    seeds = data.sizes["seed"]
    ax.text(1.0, 6, f"of {seeds}", ha="right", va="bottom", fontsize=7)
    ax.set_yscale("log")
    ax.set_ylim(floor / 2, 30)
    ax.set_xlim(0, 1.01)
    ax.set_xlabel("trained outputs an input, K / M")
    ax.set_ylabel("error, of a silent network's")
    ax.legend(loc="lower left")
    ax.set_title("c  median error; seeds that generalise", loc="left", fontsize=9)


def agreement(data: xarray.Dataset) -> tuple[Agreement, ...]:
    """Theory against simulation in (b); in (c) convergence, errors and seeds that generalise."""
    P, K = data["P"].values, data["K"].values
    gap = np.abs(data["theory"].values - data["decoupled"].values).max()
    half = {name: _half_times(data, name) for name in ("theory", "decoupled", "random")}
    order = [bool((np.diff(times) < 0).all()) for times in half.values()]
    lines = [
        Agreement(
            "b: largest |theory − descent from decoupled weights|, of the final strength",
            "≤ 0.05 (the step is finite)",
            f"{gap:.3g}",
            bool(gap <= 0.05),
        ),
        Agreement(
            "b: time to half the final strength falls with P",
            "in theory and in every kind of simulation",
            "; ".join(
                f"{name}: " + ", ".join(f"P = {p}: {t:.3g}" for p, t in zip(P, times, strict=True))
                for name, times in half.items()
            ),
            all(order),
        ),
        Agreement(
            "c: trained to convergence (error on trained routes, drift on untrained ones)",
            f"≤ {data.attrs['tolerance']:g} and ≤ {data.attrs['allowed_drift']:g} in every seed",
            "steps "
            + ", ".join(f"K = {k}: {n}" for k, n in zip(K, data["steps"].values, strict=True))
            + f"; {int(converged(data).sum())} of {converged(data).size} runs converged",
            bool(converged(data).all()),
        ),
    ]
    low = data["untrained"].values < data.attrs["generalises"]
    for k, errors, good in zip(K, data["untrained"].values, low, strict=True):
        lines.append(
            Agreement(
                f"c: K = {k}: median error on untrained routes; seeds below "
                f"{data.attrs['generalises']:g}",
                "reported",
                f"{np.median(errors):.2g}; {int(good.sum())} of {good.size}",
            )
        )
    return tuple(lines)


def _half_times(data: xarray.Dataset, name: str) -> np.ndarray:
    """Times to half the final strength for every P; the median of the seeds where there are any."""
    time, strength = data["time"].values, np.atleast_3d(data[name].values)
    if name == "random":
        each = [[time_to(time, seed) for seed in seeds] for seeds in data[name].values]
        return np.median(each, axis=1)
    return np.array([time_to(time, s) for s in strength[..., 0]])


FIGURE = Figure(
    name="nrr/fig5",
    title="Pathway race dynamics (NRR Fig. 5 b, c)",
    states="The more routes share a hidden pathway, the faster it learns; routes that were never "
    "trained work once each input is trained with about 40 % of the outputs.",
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    agreement=agreement,
)
