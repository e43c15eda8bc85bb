"""MHS Fig. 4 (a–c): the contextual task learned by a ReLU network, its ReLN, and another gating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.figure import Agreement, Figure, Setting, Settings, settings_of
from neuralrace.papers.mhs.contextual import (
    COMMON,
    case,
    distances,
    floor,
    gaps,
    gated_runs,
    mean,
    mean_and_max,
    predicted_maps,
    relu_runs,
    shares_by_number,
    strengths,
)

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

MODES = 7
"""The number of singular values that are shown."""

SETTINGS = {
    "structures": Setting(
        ("hierarchy", "ring", "crossed"), "the structure of each context", "MHS Fig. 3"
    ),
    "hidden": Setting(700, "hidden neurons of the ReLU network", "MHS Table 1"),
    **COMMON,
    "seeds": Setting(5, "repetitions of each network", "ours: MHS shows one", quick=2),
    "shown": Setting((500, 1000, 3000), "epochs at which outputs are shown", "ours"),
}

SCRIPT_LOSS = {0: 105.6, 250: 105.4, 500: 70.7, 1000: 46.9, 2000: 22.9, 4000: 4.3, 8000: 0.016}
"""The ReLU network's loss by epoch, summed over samples, in the authors' script."""


def compute(settings: Settings) -> xarray.Dataset:
    """ReLU networks, both gatings, and the race of the first from its actual weights."""
    import jax
    import xarray

    from neuralrace.papers.mhs import table

    s = settings
    this = case(s, {"structures": tuple(s["structures"])}, s["hidden"])
    of_relu, of_gated = jax.random.split(jax.random.key(s["key"]))
    many = relu_runs(this, of_relu, s["every"])
    relu = [many.isel(seed=i) for i in range(s["seeds"])]
    arch, data = table.gated_network(this, "gated", s["rule"])
    gated = gated_runs(arch, data, this, of_gated, s["every"])
    single = gated_runs(*table.gated_network(this, "single", s["rule"]), this, of_gated, s["every"])
    predicted = table.predictions(arch, data, this, of_gated, s["seeds"], many.time)
    proofs = [_certified(relu, gated[i], i) for i in range(s["seeds"])]
    singles = [_certified(relu, single[i], i) for i in range(s["seeds"])]
    steps = np.round(many.time / this.learning_rate).astype(int)
    at = [int(np.abs(steps - epoch).argmin()) for epoch in s["shown"]]
    places = _places(relu[0], gated[0])
    ends = [shares_by_number(this, run) for run in relu]
    over = ("seed", "time")
    return xarray.Dataset(
        {
            "relu": (over, many.loss),
            "gated": (over, np.stack([run.loss for run in gated])),
            "single": (over, np.stack([run.loss for run in single])),
            "predicted": (over, np.stack([run.loss for run in predicted])),
            **_gaps_of("gated", proofs),
            **_gaps_of("single", singles),
            "simulated_strength": (
                ("pathway", "time", "mode"),
                [strengths([gated[0].values["maps"][v]], MODES) for v in arch.hidden],
            ),
            "predicted_strength": (
                ("pathway", "time", "mode"),
                [strengths(m, MODES) for m in predicted_maps(arch, predicted[0]).values()],
            ),
            "outputs": (
                ("net", "epoch", "sample", "output"),
                [run.values["outputs"]["y"][at] for run in (relu[0], gated[0])],
            ),
            "places": (("net", "time", "sample", "axis"), places),
            "share": (("seed", "contexts"), np.array(ends)),
            "context": ("sample", data.labels["context"]),
        },
        {
            "time": many.time,
            "step": ("time", steps),
            "seed": np.arange(s["seeds"]),
            "pathway": list(arch.hidden),
            "net": ["ReLU network", "ReLN"],
            "epoch": steps[at],
        },
    )


def _certified(relu: Sequence[nr.Trajectory], other: nr.Trajectory, i: int) -> nr.reln.Certificate:
    """The distance of a gated run from the ReLU run of its seed, and the floor: the next seed."""
    return nr.reln.certify(relu[i], other, floor=relu[(i + 1) % len(relu)])


def _gaps_of(name: str, proofs: Sequence[nr.reln.Certificate]) -> dict[str, Any]:
    """Mean distances of outputs and similarity over time, each with that of another seed."""
    found = {}
    for kind, of in (
        ("outputs", lambda c: c.outputs_mean),
        ("similarity", lambda c: c.similarity_mean["layer1"]),
    ):
        found[f"{name}_{kind}"] = ("seed", [of(c) for c in proofs])
        found[f"floor_{kind}"] = ("seed", [of(c.floor) for c in proofs])
    return found


def _places(relu: nr.Trajectory, gated: nr.Trajectory) -> np.ndarray:
    """(2, T, N, 2): both hidden layers by multidimensional scaling, in the same axes."""
    ours, theirs = (distances(run.values["similarity"]["layer1"]) for run in (relu, gated))
    first = nr.analysis.mds(distances=ours).positions
    return np.stack([first, nr.analysis.mds(distances=theirs, reference=first[-1]).positions])


def agreement(table: xarray.Dataset) -> tuple[Agreement, ...]:
    """Losses, outputs, similarity and singular values, each with another seed's distance."""
    s = settings_of(table)
    imitates, fits = gaps(table, "relu", "gated"), gaps(table, "relu", "predicted")
    alone, theory = gaps(table, "relu", "single"), gaps(table, "gated", "predicted")
    two_seeds = floor(table, "relu")
    outputs, similarity = (
        {n: float(table[f"{n}_{kind}"].mean()) for n in ("gated", "single", "floor")}
        for kind in ("outputs", "similarity")
    )
    simulated, predicted = (table[f"{n}_strength"].to_numpy() for n in ("simulated", "predicted"))
    apart = np.abs(simulated - predicted) / simulated.max()
    share = table["share"].to_numpy().mean(axis=0)
    fastest = float((table["gated"] < table["single"]).mean())
    rows = [
        Agreement(
            "(a) ReLU networks against the trained ReLN, mean |ΔL| / L(0)",
            "“excellent agreement”: ≤ 2 %",
            f"{mean_and_max(imitates)}; another seed of the ReLU network: "
            f"{mean_and_max(two_seeds)}",
            mean(imitates) <= 0.02,
        ),
        Agreement(
            "(a) ReLU networks against the predicted ReLN, nothing fitted",
            "“excellent agreement”: ≤ 2 %",
            mean_and_max(fits),
            mean(fits) <= 0.02,
        ),
        Agreement(
            "(a) ReLU networks against common + single contexts (“GDLN Single”)",
            "“unable to imitate”: further away than the ReLN",
            mean_and_max(alone),
            mean(alone) > mean(imitates),
        ),
        Agreement(
            "(a) trained ReLN against its race from the actual weights",
            "exact reduction: ≤ 0.1 %",
            mean_and_max(theory),
            mean(theory) <= 1e-3,
        ),
        Agreement(
            "(a) share of the epochs at which the ReLN's loss is below that of common + single",
            "Proposition 4.2: “fastest”, at all epochs after the start",
            f"{fastest:.0%}",
            fastest >= 0.9,
        ),
        Agreement(
            "(a) outputs of the ReLN against the ReLU network's, relative to the initial error "
            "√(2 L(0)), mean over time",
            "“exact agreement”: as near as another seed",
            f"{outputs['gated']:.1%}; another seed {outputs['floor']:.1%}, common + single "
            f"{outputs['single']:.1%}",
            outputs["gated"] <= 1.5 * outputs["floor"],
        ),
        Agreement(
            "(b) singular values of the pathways, race against the trained ReLN, relative to the "
            "largest",
            "≤ 1 % on average",
            f"{apart.mean():.2%} (at most {apart.max():.1%})",
            bool(apart.mean() <= 0.01),
        ),
        Agreement(
            "(c) hidden similarity of the ReLN against the ReLU network's (0 equal, 1 unrelated), "
            "mean over time",
            "“equivalent latent representation”: as near as another seed",
            f"{similarity['gated']:.1%}; another seed {similarity['floor']:.1%}, common + single "
            f"{similarity['single']:.1%}",
            similarity["gated"] <= 1.5 * similarity["floor"],
        ),
        Agreement(
            "share of the ReLU networks' final weight whose nearest context pattern is on in one, "
            "two, all contexts",
            "“no neurons … which are context specific”: one ≤ 5 %",
            ", ".join(f"{part:.0%}" for part in share),
            bool(share[0] <= 0.05),
        ),
    ]
    return (*rows, *_script_losses(table, s))


def _script_losses(table: xarray.Dataset, s: Mapping[str, Any]) -> list[Agreement]:
    """The ReLU network's loss against that of the authors' script, at the epochs both have."""
    if tuple(s["structures"]) != ("hierarchy", "ring", "crossed") or s["hidden"] != 700:
        return []
    step, loss = table["step"].to_numpy(), table["relu"].to_numpy().mean(axis=0)
    samples = table.sizes["sample"]
    known = {k: v for k, v in SCRIPT_LOSS.items() if k <= step[-1]}
    found = np.interp(list(known), step, samples * loss)
    first = SCRIPT_LOSS[0]
    off = np.abs(found - list(known.values())).max() / first
    return [
        Agreement(
            "loss of the ReLU networks, summed over samples, at epochs "
            + ", ".join(map(str, known)),
            ", ".join(f"{v:g}" for v in known.values()) + " (authors' script): within 2 % of L(0)",
            ", ".join(f"{v:.3g}" for v in found),
            bool(off <= 0.02),
        )
    ]


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """(a) losses and outputs, (b) singular values of the pathways, (c) hidden layers."""
    import matplotlib.pyplot as plt

    epochs = table["epoch"].to_numpy().tolist()
    names = [f"{n}{k}" for n in ("r", "g") for k in range(len(epochs))]
    half = len(epochs)
    mosaic: Any = [
        ["a"] * half + names[:half],
        ["a"] * half + names[half:],
        ["b"] * half + ["b2"] * half,
        ["c"] * half + ["c2"] * half,
    ]
    figure, axes = plt.subplot_mosaic(mosaic, figsize=(7.0, 8.2), height_ratios=(1, 1, 1.5, 1.7))
    _draw_losses(table, axes["a"])
    _draw_outputs(table, [axes[n] for n in names], epochs)
    _draw_strengths(table, axes["b"], axes["b2"])
    for k, name in enumerate(("c", "c2")):
        _draw_places(table.isel(net=k), axes[name])
    low = min(min(axes[n].get_xlim()[0], axes[n].get_ylim()[0]) for n in ("c", "c2"))
    high = max(max(axes[n].get_xlim()[1], axes[n].get_ylim()[1]) for n in ("c", "c2"))
    for name in ("c", "c2"):
        axes[name].set(xlim=(low, high), ylim=(low, high), aspect="equal")
    return figure


def _draw_losses(table: xarray.Dataset, ax: Any) -> None:
    from neuralrace.plot import COLOURS

    step = table["step"].to_numpy()
    unit = table["relu"].to_numpy()[:, :1].mean()
    relu, gated, single, predicted = (
        table[n].to_numpy() / unit for n in ("relu", "gated", "single", "predicted")
    )
    ax.plot(step, relu.mean(axis=0), color=COLOURS["relu"], linewidth=4.5, label="ReLU network")
    ax.plot(step, gated.mean(axis=0), color=COLOURS["simulation"], linewidth=2.2, label="ReLN")
    dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
    ax.plot(step, predicted.mean(axis=0), color=COLOURS["theory"], label="predicted", **dashes)
    ax.plot(step, single.mean(axis=0), color="#D55E00", linewidth=1.2, label="GDLN single")
    ax.set(title="(a) loss / initial loss", xlabel="epoch", ylim=(0, 1.04))
    ax.legend()


def _draw_outputs(table: xarray.Dataset, axes: Sequence[Any], epochs: Sequence[int]) -> None:
    outputs = table["outputs"].to_numpy()
    top = np.abs(outputs).max()
    for k, ax in enumerate(axes):
        net, moment = divmod(k, len(epochs))
        picture = outputs[net, moment].T
        ax.imshow(picture, aspect="auto", cmap="RdBu_r", vmin=-top, vmax=top)
        ax.set(xticks=(), yticks=())
        ax.spines[:].set_visible(True)
        if not net:
            ax.set_title(f"epoch {epochs[moment]}", fontsize=7)
        if not moment:
            ax.set_ylabel(f"{table['net'].to_numpy()[net]}\noutputs", fontsize=7)
        if net:
            ax.set_xlabel("samples", fontsize=7)


def _draw_strengths(table: xarray.Dataset, common: Any, contextual: Any) -> None:
    from neuralrace.plot import cycle_colour, shade

    step, names = table["step"].to_numpy(), table["pathway"].to_numpy().tolist()
    dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
    for k, name in enumerate(names):
        ax = contextual if k else common
        light, dark = shade(cycle_colour(k), 0.35), shade(cycle_colour(k), -0.55)
        solid = ax.plot(step, table["simulated_strength"][k], color=light, linewidth=2.2)
        dashed = ax.plot(step, table["predicted_strength"][k], color=dark, **dashes)
        solid[0].set_label(f"{name}, trained")
        if k in (0, len(names) - 1):
            dashed[0].set_label("predicted")
    common.set(title="(b) singular values, common pathway", xlabel="epoch")
    contextual.set(title="(b) contextual pathways", xlabel="epoch")
    for ax in (common, contextual):
        ax.legend(loc="upper right", fontsize=6)
        ax.set_ylim(0, 1.35 * ax.get_ylim()[1])


def _draw_places(one: xarray.Dataset, ax: Any) -> None:
    from neuralrace.plot import cycle_colour

    context, places = one["context"].to_numpy(), one["places"].to_numpy()
    for k, (c, marker) in enumerate(zip(np.unique(context), "os^DvP", strict=False)):
        those = places[:, context == c]
        ax.plot(those[..., 0], those[..., 1], color=cycle_colour(k), linewidth=0.6, alpha=0.6)
        ax.scatter(
            *those[-1].T,
            color=cycle_colour(k),
            marker=marker,
            s=22,
            edgecolor="white",
            linewidth=0.5,
            zorder=3,
            label=f"context {c}",
        )
    ax.set(title=f"(c) hidden layer of the {one['net'].item()}", xticks=(), yticks=())
    ax.set(xlabel="MDS axis 1", ylabel="MDS axis 2")
    ax.legend(loc="best", fontsize=6)


FIGURE = Figure(
    name="mhs/fig4",
    title=(
        "Contextual task: a ReLU network, the gated network that imitates it, and one that does not"
    ),
    states=(
        "A gated network with a common pathway and one for every pair of contexts has the loss, "
        "the outputs and the hidden representation of the ReLU network at all times; its dynamics "
        "are predicted by the race; pathways for single contexts cannot imitate the ReLU network. "
        "No neurons of the ReLU network are context specific (Fig. 4a–c, §4)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    agreement=agreement,
)
