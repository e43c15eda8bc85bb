"""MHS Fig. 4 (a–c): the contextual task learned by a ReLU network, its ReLN, and another gating."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.figure import Agreement, Figure, Setting, Settings, settings_of
from neuralrace.papers.measure import FLOOR, Basis, Measure
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
    maps = [predicted_maps(arch, run) for run in predicted]
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
            **_shown_gaps("gated", proofs, at),
            **_position_gaps(relu, gated),
            "simulated_strength": (
                ("seed", "pathway", "time", "mode"),
                [[strengths([run.values["maps"][v]], MODES) for v in arch.hidden] for run in gated],
            ),
            "predicted_strength": (
                ("seed", "pathway", "time", "mode"),
                [[strengths(m, MODES) for m in each.values()] for each in maps],
            ),
            "outputs": (
                ("net", "epoch", "sample", "output"),
                [run.values["outputs"]["y"][at] for run in (relu[0], gated[0])],
            ),
            "places": (("net", "time", "sample", "axis"), places),
            "spectrum": (("net", "time", "eigenvalue"), _spectrum(relu[0], gated[0])),
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


def _shown_gaps(
    name: str, proofs: Sequence[nr.reln.Certificate], at: Sequence[int]
) -> dict[str, Any]:
    """Distances of outputs at the epochs that are shown, each with that of another seed."""
    pick = lambda proof: proof.outputs_over_time[list(at)]
    return {
        f"{name}_shown": (("seed", "epoch"), [pick(proof) for proof in proofs]),
        "floor_shown": (("seed", "epoch"), [pick(proof.floor) for proof in proofs]),
    }


def _position_gaps(relu: Sequence[nr.Trajectory], gated: Sequence[nr.Trajectory]) -> dict[str, Any]:
    """How far positions by multidimensional scaling differ, mean over time, for each seed.

    Two networks are compared up to rotation, reflection and size: 0 if the samples have the same
    relative positions, 1 if they have nothing in common (the disparity of Procrustes analysis).
    `shape` is over all dimensions; `places` is over the first two, which are not the same two for
    both networks once eigenvalues cross. The first moment, where nothing is learned, is left out.
    """
    kernel = lambda run: np.asarray(run.values["similarity"]["layer1"], float)
    picture = lambda run: nr.analysis.mds(distances=distances(kernel(run))).positions
    found: dict[str, Any] = {}
    for name, place in (("places", picture), ("shape", lambda run: positions(kernel(run)))):
        ours, theirs = ([place(run)[1:] for run in runs] for runs in (relu, gated))
        mean = lambda a, b: float(np.mean([disparity(*each) for each in zip(a, b, strict=True)]))
        found[f"gated_{name}"] = ("seed", [mean(a, b) for a, b in zip(ours, theirs, strict=True)])
        others = [*ours[1:], ours[0]]
        found[f"floor_{name}"] = ("seed", [mean(a, b) for a, b in zip(ours, others, strict=True)])
    return found


def positions(kernel: np.ndarray) -> np.ndarray:
    """The positions (…, N, N) of N samples in all dimensions, from their inner products."""
    centred = kernel - kernel.mean(axis=-1, keepdims=True)
    centred = centred - centred.mean(axis=-2, keepdims=True)
    value, vector = np.linalg.eigh(centred)
    return vector * np.sqrt(np.maximum(value, 0.0))[..., None, :]


def disparity(first: np.ndarray, second: np.ndarray) -> float:
    """1 − (Σσ)² of the centred positions (N, d) of unit size, σ the singular values of AᵀB."""
    units = []
    for places in (first, second):
        centred = places - places.mean(axis=0)
        units.append(centred / max(np.linalg.norm(centred), 1e-300))
    return float(1 - np.linalg.svd(units[0].T @ units[1], compute_uv=False).sum() ** 2)


def _spectrum(*runs: nr.Trajectory) -> np.ndarray:
    """(runs, T, 4): the largest eigenvalues of the centred inner products, as shares of all."""
    kernels = np.stack([run.values["similarity"]["layer1"] for run in runs]).astype(float)
    value = (positions(kernels) ** 2).sum(axis=-2)[..., ::-1]
    return value[..., :4] / np.maximum(value.sum(axis=-1, keepdims=True), 1e-300)


def _places(relu: nr.Trajectory, gated: nr.Trajectory) -> np.ndarray:
    """(2, T, N, 2): both hidden layers by multidimensional scaling, in the same axes."""
    ours, theirs = (distances(run.values["similarity"]["layer1"]) for run in (relu, gated))
    first = nr.analysis.mds(distances=ours).positions
    return np.stack([first, nr.analysis.mds(distances=theirs, reference=first[-1]).positions])


def losses_apart(reference: str, other: str) -> Callable[[xarray.Dataset], np.ndarray]:
    """Mean |ΔL|/L(0) between two losses of the figure, seed by seed."""
    return lambda table: np.array([c.mean for c in gaps(table, reference, other)])


def over_floor(kind: str, name: str = "gated") -> Callable[[xarray.Dataset], np.ndarray]:
    """A distance from the ReLU network relative to that of another seed, seed by seed.

    `kind` is `loss`, `outputs`, `shown` (outputs at the epochs shown), `similarity` or `shape`.
    """

    def read(table: xarray.Dataset) -> np.ndarray:
        if kind == "loss":
            return losses_apart("relu", name)(table) / mean(floor(table, "relu"))
        return _by_seed(table[f"{name}_{kind}"]) / float(table[f"floor_{kind}"].mean())

    return read


def _by_seed(values: xarray.DataArray) -> np.ndarray:
    """The mean over everything but seeds."""
    return values.mean([d for d in values.dims if d != "seed"]).to_numpy()


def _strengths_apart(table: xarray.Dataset) -> np.ndarray:
    """Mean difference of the pathways' singular values, relative to the largest, by seed."""
    a, b = (table[f"{n}_strength"].to_numpy() for n in ("simulated", "predicted"))
    apart = np.abs(a - b).reshape(len(a), -1).mean(axis=1)
    return apart / a.reshape(len(a), -1).max(axis=1)


MEASURES = {
    "follows": Measure(
        "(a) ReLU networks against the trained ReLN, mean |ΔL| / L(0)",
        losses_apart("relu", "gated"),
        most=0.02,
    ),
    "predicted": Measure(
        "(a) ReLU networks against the race of the ReLN, nothing fitted, mean |ΔL| / L(0)",
        losses_apart("relu", "predicted"),
        most=0.02,
    ),
    "nearer": Measure(
        "(a) distance of the ReLN's loss over that of common + single contexts (“GDLN Single”)",
        lambda t: losses_apart("relu", "gated")(t) / losses_apart("relu", "single")(t),
        most=1.0,
        rests=Basis.PAPER,
    ),
    "race": Measure(
        "(a) trained ReLN against its race from the actual weights, mean |ΔL| / L(0)",
        losses_apart("gated", "predicted"),
        most=1e-3,
    ),
    "outputs": Measure(
        "(a) outputs at the epochs shown, distance relative to the initial error √(2 L(0))",
        lambda t: _by_seed(t["gated_shown"]),
        most=0.1,
    ),
    "strengths": Measure(
        "(b) singular values of the pathways, race against the trained ReLN, relative to the "
        "largest",
        _strengths_apart,
        most=0.01,
    ),
    "shape": Measure(
        "(c) relative positions in all dimensions, ReLN against ReLU network: share of the shape "
        "that differs, mean over time",
        lambda t: _by_seed(t["gated_shape"]) if "gated_shape" in t else np.nan,
        most=0.1,
    ),
    "places": Measure(
        "(c) the same in the first two dimensions, as in the figure",
        lambda t: _by_seed(t["gated_places"]),
        most=0.1,
    ),
    "loss over floor": Measure(
        "(a) distance of the ReLN's loss over that of another seed of the ReLU network",
        over_floor("loss"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "outputs over floor": Measure(
        "(a) distance of the outputs over that of another seed, mean over time",
        over_floor("outputs"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "shown over floor": Measure(
        "(a) distance of the outputs at the epochs shown over that of another seed",
        over_floor("shown"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "similarity over floor": Measure(
        "(c) distance of all hidden similarities over that of another seed",
        over_floor("similarity"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "shape over floor": Measure(
        "(c) difference of the relative positions in all dimensions over that of another seed",
        lambda t: over_floor("shape")(t) if "gated_shape" in t else np.nan,
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
}
"""The numbers of this figure with their bounds: for its agreement and for the ledger of claims."""

WORDS = {
    "follows": "excellent agreement",
    "predicted": "excellent agreement",
    "nearer": "unable to imitate",
    "outputs": "exact agreement between these output samples",
    "shape": "near exact correspondence between the relative positions",
}
"""The paper's words for what is measured."""


def agreement(table: xarray.Dataset) -> tuple[Agreement, ...]:
    """Losses, outputs, positions and singular values, each with another seed's distance."""
    share = table["share"].to_numpy().mean(axis=0)
    fastest = float((table["gated"] < table["single"]).mean())
    beside = {
        "follows": f"another seed of the ReLU network: {mean_and_max(floor(table, 'relu'))}",
        "outputs": f"another seed: {float(table['floor_shown'].mean()):.3g}",
        "places": f"another seed: {float(table['floor_places'].mean()):.3g}",
    }
    rows = [
        Agreement.of(measure, table, WORDS.get(name, ""), beside.get(name, ""))
        for name, measure in MEASURES.items()
    ]
    rows += [
        Agreement(
            "(a) share of the epochs at which the ReLN's loss is below that of common + single",
            "reported; Proposition 4.2 has “fastest”",
            f"{fastest:.0%}",
        ),
        Agreement(
            "share of the ReLU networks' final weight whose nearest context pattern is on in one, "
            "two, all contexts",
            "reported",
            ", ".join(f"{part:.0%}" for part in share),
        ),
    ]
    return (*rows, *_script_losses(table, settings_of(table)))


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
    """(a) losses, (b) singular values of the pathways, (c) hidden layers, (d) outputs."""
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
        net = table["net"].to_numpy()[k]
        axes[name].set_title(f"(c{k + 1}) hidden layer of the {net}")
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
        image = ax.imshow(picture, aspect="auto", cmap="RdBu_r", vmin=-top, vmax=top)
        ax.set(xticks=(), yticks=())
        ax.spines[:].set_visible(True)
        if not net:
            ax.set_title(f"(d{moment + 1}) epoch {epochs[moment]}", fontsize=7)
        if not moment:
            ax.set_ylabel(f"{table['net'].to_numpy()[net]}\noutputs", fontsize=7)
        if net:
            ax.set_xlabel("samples", fontsize=7)
        if k == len(axes) - 1:
            ax.figure.colorbar(image, ax=list(axes), label="output", aspect=30)


def _draw_strengths(table: xarray.Dataset, common: Any, contextual: Any) -> None:
    from neuralrace.plot import cycle_colour, shade

    step, names = table["step"].to_numpy(), table["pathway"].to_numpy().tolist()
    dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1}
    one = table.isel(seed=0)
    for k, name in enumerate(names):
        ax = contextual if k else common
        light, dark = shade(cycle_colour(k), 0.35), shade(cycle_colour(k), -0.55)
        solid = ax.plot(step, one["simulated_strength"][k], color=light, linewidth=2.2)
        dashed = ax.plot(step, one["predicted_strength"][k], color=dark, **dashes)
        solid[0].set_label(f"{name}, trained")
        if k in (0, len(names) - 1):
            dashed[0].set_label("predicted")
    common.set(title="(b1) common pathway", xlabel="epoch", ylabel="singular value")
    contextual.set(title="(b2) contextual pathways", xlabel="epoch", ylabel="singular value")
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
    ax.set(xlabel="MDS axis 1", ylabel="MDS axis 2", xticks=(), yticks=())
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
