"""NRR Fig. 6: small initial weights lead to a shared representation, large ones do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated
from papers.nrr.routes import make_routes, map_of_all_routes
from papers.nrr.routing_panels import FLOOR, draw_errors

SCRIPTS = "the authors' scripts; NRR gives none"
"""The source of settings that are not in the paper."""

SETTINGS = {
    "M": Setting(7, "domains on either side", SCRIPTS),
    "K": Setting(4, "output domains trained with each input domain", SCRIPTS),
    "hidden": Setting(64, "N_h, width of both hidden layers", "NRR Fig. 4, caption"),
    "scales": Setting(
        (0.2, 0.66, 1.12, 1.58, 2.04, 2.5), "σ₀, scales of the initial weights", SCRIPTS
    ),
    "init": Setting(
        "orthogonal",
        "kind of the initial weights",
        "NRR §4.3: random matrices with singular value σ₀",
        choices=("orthogonal", "xavier", "gaussian"),
    ),
    "learning_rate": Setting(
        0.16, "1/τ at σ₀ = 0.2, on the mean loss of NRR Eq. 1", "as in Fig. 4"
    ),
    "power": Setting(-1 / 3, "the rate is proportional to σ₀ to this power", SCRIPTS),
    "steps": Setting(700, "gradient steps", SCRIPTS),
    "every": Setting(7, "steps between recordings of the loss", "ours"),
    "seeds": Setting(10, "repetitions for each scale", "as in NRR Fig. 4e", quick=3),
    "key": Setting(0, "random key of the draw", "ours"),
    "generalises": Setting(
        0.01,
        (
            "a seed generalises if its error on untrained routes, relative to zero output, is "
            "below this"
        ),
        "ours",
    ),
}

REFERENCE = 0.2
"""The scale to which `learning_rate` refers, from NRR Fig. 4."""


def compute(settings: Settings) -> Table:
    """Losses over time, errors on trained and untrained routes, and what three networks learned.

    Errors are relative to zero output. `shared` is 1 if all input domains have the same
    representation, 0 if their representations are unrelated (`domain_similarity`).
    `similarity` and `outputs` are those of the first seed at the smallest, the middle and the
    largest scale.
    """
    import jax
    import xarray

    s = settings
    routes = make_routes(s["M"], s["K"], s["hidden"])
    scales = np.sort(np.asarray(s["scales"], float))
    # One compiled program serves all scales: only their rates and weights differ.
    runs = [
        nr.train_ensemble(
            routes.net,
            routes.trained,
            key=jax.random.key(s["key"]),
            seeds=s["seeds"],
            scale=float(scale),
            kind=s["init"],
            learning_rate=float(s["learning_rate"] * (scale / REFERENCE) ** s["power"]),
            steps=s["steps"],
            record_every=s["every"],
        )
        for scale in scales
    ]
    errors = [routes.errors(run.final) for run in runs]
    shown = sorted({0, len(scales) // 2, len(scales) - 1})
    first = [{edge: w[0] for edge, w in runs[k].final.items()} for k in shown]
    step = np.unique(np.append(np.arange(0, s["steps"], s["every"]), s["steps"]))
    per_seed = ("scale", "seed")
    return xarray.Dataset(
        {
            "loss": ((*per_seed, "step"), np.stack([r.loss for r in runs]) / _silent(routes)),
            "trained": (per_seed, np.stack([e.trained_share for e in errors])),
            "untrained": (per_seed, np.stack([e.untrained_share for e in errors])),
            "shared": (per_seed, np.stack([routes.shared(run.final) for run in runs])),
            "similarity": (("shown", "input", "input2"), np.stack([_similarity(w) for w in first])),
            "outputs": (
                ("shown", "output", "input"),
                np.stack([map_of_all_routes(w) for w in first]),
            ),
            "routes": (("from", "to"), nr.tasks.circulant_routes(s["M"], s["K"])),
        },
        {"scale": scales, "shown": scales[shown], "step": step, "seed": np.arange(s["seeds"])},
    )


def _silent(routes: Any) -> float:
    from neuralrace.dataset import zero_loss

    return zero_loss(routes.trained)


def _similarity(weights: Mapping[str, Any]) -> np.ndarray:
    """Inner products of the first hidden layer's responses to every item in every input domain."""
    shown = np.concatenate([np.asarray(w).T for e, w in weights.items() if e.startswith("in")])
    return nr.analysis.similarity(shown)


def crossing(table: Table, level: float) -> float:
    """The scale at which the median error on untrained routes passes a level for the first time.

    It is interpolated between scales in the logarithm of the error; NaN if the level is not passed.
    """
    scale = table["scale"].to_numpy()
    height = np.log(np.median(table["untrained"].to_numpy(), axis=1)) - np.log(level)
    return float(nr.trajectory.crossing_time(scale, height, 0.0, rising=True))


def resting(loss: np.ndarray) -> float:
    """The share of the time that a loss spends on a plateau before the task is learned.

    On a plateau, the loss falls by less than 5 % of itself over 5 % of the time, and is above 1 %
    of its initial value. An exponential decay that falls below 1 % within the time has no plateau.
    """
    window = max(1, len(loss) // 20)
    still = loss[window:] > 0.95 * loss[:-window]
    return float((still & (loss[:-window] > 0.01 * loss[0])).mean())


def _at(name: str, which: int) -> Callable[[Table], np.ndarray]:
    """A number at the smallest (0) or largest (−1) scale, seed by seed."""
    return lambda table: table[name].to_numpy()[which]


def _resting_at(which: int) -> Callable[[Table], np.ndarray]:
    return lambda table: np.array([resting(run) for run in table["loss"].to_numpy()[which]])


MEASURES = {
    "trained": Measure(
        "trained",
        "error on trained routes, relative to zero output, worst seed and scale",
        lambda t: float(t["trained"].max()),
        most=1e-3,
        words="excellent for all scales",
    ),
    "untrained, smallest": Measure(
        "untrained-smallest",
        "error on untrained routes, relative to zero output, smallest scale",
        _at("untrained", 0),
        most=0.01,
        words="only small initializations are capable of zero-shot generalization",
    ),
    "untrained, largest": Measure(
        "untrained-largest",
        "error on untrained routes, relative to zero output, largest scale",
        _at("untrained", -1),
        least=0.5,
    ),
    "shared, smallest": Measure(
        "shared-smallest",
        "whether input domains share one representation (1) or have unrelated ones (0), smallest "
        "scale",
        _at("shared", 0),
        least=0.95,
        origin=1.0,
        words="one common shared representation",
    ),
    "shared, largest": Measure(
        "shared-largest",
        "whether input domains share one representation, largest scale",
        _at("shared", -1),
        most=0.2,
    ),
    "rest, smallest": Measure(
        "rest-smallest",
        "share of the time that the loss spends on a plateau, smallest scale",
        _resting_at(0),
        least=0.2,
        words="stage-like drops",
    ),
    "rest, largest": Measure(
        "rest-largest",
        "share of the time that the loss spends on a plateau, largest scale",
        _resting_at(-1),
        most=0.02,
        words="exponential learning curves",
    ),
}
"""Numbers of this figure with their bounds: for its agreement and for the ledger of claims."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Errors and sharing against the scale, where they change, and the shape of the losses."""
    low = settings_of(table)["generalises"]
    scale, untrained = table["scale"].to_numpy(), table["untrained"].to_numpy()
    good = (untrained < low).mean(axis=1)
    rest = [np.median([resting(run) for run in runs]) for runs in table["loss"].to_numpy()]
    falling = np.median(table["shared"].to_numpy(), axis=1)
    return (
        *MEASURES.values(),
        stated(
            "untrained",
            "error on untrained routes, relative to zero output, median over seeds",
            "reported",
            _by(scale, [f"{v:.2g}" for v in np.median(untrained, axis=1)]),
        ),
        stated(
            "generalising",
            f"seeds that generalise (error below {low:g})",
            "all at the smallest scale, none at the largest",
            _by(scale, [f"{v:.0%}" for v in good]),
            float(good[0] == 1 and good[-1] == 0),
            least=1,
            rests=Basis.PAPER,
        ),
        stated(
            "passing",
            "scales at which the median error on untrained routes passes 1 %, 10 %, 50 %",
            "reported",
            ", ".join(f"σ₀ = {crossing(table, level):.2f}" for level in (0.01, 0.1, 0.5)),
        ),
        stated(
            "shared",
            "whether input domains share one representation, median over seeds",
            "falls with the scale",
            _by(scale, [f"{v:.2f}" for v in falling]),
            np.max(np.diff(falling)),
            most=0,
            rests=Basis.PAPER,
        ),
        stated(
            "rest",
            "share of the time that the loss spends on a plateau, median over seeds",
            "reported",
            _by(scale, [f"{v:.2f}" for v in rest]),
        ),
    )


def _by(scales: Any, values: Any) -> str:
    return "σ₀ = " + ", ".join(f"{s:.2f}: {v}" for s, v in zip(scales, values, strict=True))


def draw(table: Table) -> Picture:
    """(a) losses, (b) errors by scale, (c) similarities and (d) outputs at three scales."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(3.4, 6.2))
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.5))
    top, bottom = parts
    left, right = top.subplots(1, 2)
    _draw_losses(table, left)
    draw_errors(table, table["scale"].to_numpy(), right)
    right.set(title="(b) errors, median", xlabel="scale σ₀", ylim=(FLOOR / 1e5, 10))
    right.set_ylabel("error / error of zero output")
    shown = table["shown"].to_numpy()
    above, below = bottom.subplots(2, len(shown), squeeze=False)
    for k, scale in enumerate(shown):
        _draw_map(above[k], table["similarity"].to_numpy()[k], f"(c{k + 1}) σ₀ = {scale:g}")
        image = _draw_map(below[k], table["outputs"].to_numpy()[k], f"(d{k + 1})")
        if k == len(shown) - 1:
            label = "entry / 99 % quantile of its map; framed in (d): not trained"
            bar = bottom.colorbar(image, ax=[*above, *below], location="bottom", aspect=50)
            bar.set_label(label, fontsize=7)
        _frame_untrained(below[k], table["routes"].to_numpy().astype(bool))
        below[k].set_xlabel("input domain")
    above[0].set_ylabel("similarity\ninput domain")
    below[0].set_ylabel("outputs\noutput domain")
    return figure


DASHES = ("-", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (7, 1.5)), (0, (2, 2)))
"""The line styles of the scales, so that grey prints can be read; all curves are simulated."""


def _draw_losses(table: Table, ax: Any) -> None:
    import matplotlib

    scales, loss = table["scale"].to_numpy(), table["loss"].to_numpy()
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.8, len(scales)))
    for k, (scale, runs) in enumerate(zip(scales, loss, strict=True)):
        ax.plot(
            table["step"],
            np.median(runs, axis=0),
            color=colours[k],
            label=f"σ₀ = {scale:.3g}",
            linestyle=DASHES[k % len(DASHES)],
            linewidth=1.2,
        )
    ax.set(title="(a) simulated, median", xlabel="epoch", ylabel="loss / loss of zero output")
    step = table["step"].to_numpy()
    learned = step[(np.median(loss, axis=1) > 0.005).any(axis=0)].max(initial=step[1])
    ax.set(xlim=(-0.03 * learned, 1.1 * learned), ylim=(0, None))
    ax.legend()


def _draw_map(ax: Any, matrix: np.ndarray, title: str) -> Any:
    """Draw a matrix of domains by domains, on its own colour scale without the largest 1 %."""
    top = np.quantile(np.abs(matrix), 0.99)
    image = ax.imshow(matrix / top, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    ax.set(title=title, xticks=(), yticks=())
    ax.spines[:].set_visible(True)
    return image


def _frame_untrained(ax: Any, routes: np.ndarray) -> None:
    from matplotlib.patches import Rectangle

    height, width = (n / len(routes) for n in ax.get_images()[0].get_array().shape)
    for i, j in np.argwhere(~routes):
        corner = (i * width - 0.3, j * height - 0.3)
        frame = Rectangle(corner, width - 0.4, height - 0.4, fill=False, edgecolor="black")
        frame.set_linewidth(0.5)
        ax.add_patch(frame)


FIGURE = Figure(
    name="nrr/fig6",
    title="Initial scale: small weights lead to a shared representation, large ones do not",
    states=(
        "Networks with small initial weights learn in stages, share one representation among all "
        "input domains and generalise to untrained routes; with large ones, learning is "
        "exponential, domains keep their own random representations, and untrained routes fail, "
        "although trained ones are learned at every scale (Fig. 6 a–d)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
