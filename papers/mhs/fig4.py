"""MHS Fig. 4 (a–c): the contextual task learned by a ReLU network, its ReLN, and another gating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import neuralrace as nr
from papers.figure import Figure, Setting, Settings, Table
from papers.mhs.contextual import (
    COMMON,
    STRUCTURES,
    case,
    disparity,
    distances,
    gated_runs,
    positions,
    predicted_maps,
    relu_runs,
    shares_by_number,
    strengths,
)
from papers.mhs.fig4_measures import measures
from papers.mhs.fig4_panels import draw

MODES = 7
"""The number of singular values that are shown."""

SETTINGS = {
    "structures": Setting(STRUCTURES, "the structure of each context", "MHS Fig. 3"),
    "hidden": Setting(700, "hidden neurons of the ReLU network", "MHS Table 1"),
    **COMMON,
    "seeds": Setting(5, "repetitions of each network", "ours: MHS shows one", quick=2),
    "shown": Setting((500, 1000, 3000), "epochs at which outputs are shown", "ours"),
}


def compute(settings: Settings) -> Table:
    """ReLU networks, both gatings, and the race of the first from its actual weights."""
    import jax
    import xarray

    from papers.mhs import table

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
    measures=measures,
)
