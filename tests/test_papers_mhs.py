"""The figures of Make Haste Slowly: small versions, their measures, and the paper's slips."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray

import neuralrace as nr
import papers
from neuralrace.trajectory import save_table
from papers import load_figure
from papers.mhs import contextual, fig2, fig5, fig6, fig8, fig9
from papers.mhs.contextual import case
from tests.panels import panels
from tests.test_papers_fig5_fig6 import with_settings

SAME = ("hierarchy",) * 3  # falls into small blocks
DESCENT = {"hidden": 48, "init": 0.05, "steps": 300, "every": 100, "seeds": 2}
SMALL = {
    "mhs/fig2": {"deltas": (0.4, 1.2), "shown": (0.4, 1.2), "seeds": 2},
    "mhs/fig3": {"structures": SAME, "hidden": 240, "init": 0.05},
    "mhs/fig5": DESCENT | {"contexts": (3,), "hidden": (48,), "context_scale": (1.0,)},
    "mhs/fig7": {"seeds": 2},
}
HOLDS = {  # what must hold however small the network and short the training
    "mhs/fig2": ["time", "nearer", "crossing-width", "rates"],
    "mhs/fig3": ["samples", "contexts-on", "final-loss"],
    "mhs/fig5": [],
    "mhs/fig7": ["singular-values", "second-mode", "strengths", "loss", "final-strengths"],
}


LONG = {"mhs/fig2", "mhs/fig3", "mhs/fig5"}
"""Figures of which even the small version takes more than five seconds."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in SMALL],
)
def test_a_small_version_is_made_stored_and_drawn(name, tmp_path):
    figure = papers.find(name)
    table = figure.run(figure.resolve(quick=True, changes=SMALL[name]), quick=True)
    stored = load_figure(save_table(table, tmp_path / "data.nc"))
    assert figure.publish(stored, tmp_path).png.stat().st_size > 10_000
    within = figure.within(stored)
    assert [id for id in HOLDS[name] if not within[id]] == []
    if name == "mhs/fig5":
        one = table.isel(contexts=0)
        one = one.assign_coords(time=one["rate"] * one["step"])
        assert np.mean([c.mean for c in contextual.gaps(one, "gated", "predicted")]) < 1e-3


def judged(name, arrays, coordinates, tmp_path=None, **changes):
    """Whether a figure's numbers on invented data lie within their bounds, and the numbers."""
    figure = papers.find(name)
    figure = replace(figure, compute=lambda _: xarray.Dataset(arrays, coordinates))
    table = figure.run(figure.resolve(quick=True, changes=changes), quick=True)
    if tmp_path is not None:
        assert figure.publish(table, tmp_path).png.stat().st_size > 10_000
    return figure.within(table), {m.id: found.value for m, found in figure.lines(table)}


def picture(name, arrays, coordinates, **changes):
    """A figure drawn from invented data."""
    return papers.find(name).draw(with_settings(name, arrays, coordinates, **changes))


def falling(runs, moments, late=0.0):
    """Losses (runs, T) that fall from 1 to 0, each run a little later."""
    t, shift = np.arange(moments), late + np.arange(runs)[:, None]
    return 1 / (1 + np.exp((t - moments / 2 - shift) / 2))


def test_figure_4_tells_the_imitator_from_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr("evidence.measure.FEWEST_SEEDS", 1)
    T, seeds, rng = 41, 2, np.random.default_rng(0)
    over, strength = ("seed", "time"), rng.random((seeds, 4, T, 7))
    arrays = {
        "relu": (over, falling(seeds, T)),
        "gated": (over, falling(seeds, T, 0.2)),
        "predicted": (over, falling(seeds, T, 0.2)),
        "single": (over, falling(seeds, T, 4.0)),
        **{
            f"{net}_{kind}": ("seed", [gap] * seeds)
            for net, gap in (("gated", 0.02), ("single", 0.2), ("floor", 0.015))
            for kind in ("outputs", "similarity", "places", "shape")
        },
        "gated_shown": (("seed", "epoch"), [[0.02] * 3] * seeds),
        "floor_shown": (("seed", "epoch"), [[0.015] * 3] * seeds),
        "simulated_strength": (("seed", "pathway", "time", "mode"), strength),
        "predicted_strength": (("seed", "pathway", "time", "mode"), strength),
        "outputs": (("net", "epoch", "sample", "output"), rng.normal(size=(2, 3, 24, 60))),
        "places": (("net", "time", "sample", "axis"), rng.normal(size=(2, T, 24, 2))),
        "share": (("seed", "contexts"), [[0.01, 0.9, 0.09]] * seeds),
        "context": ("sample", np.repeat([1, 2, 3], 8)),
    }
    coordinates = {
        "time": np.arange(T) * 1.0,
        "step": ("time", np.arange(T)),
        "pathway": ["common", "not1", "not2", "not3"],
        "net": ["ReLU network", "ReLN"],
        "epoch": [1, 2, 3],
    }
    within, _ = judged("mhs/fig4", arrays, coordinates, tmp_path, hidden=48)
    assert all(within.values())
    each = list(panels(picture("mhs/fig4", arrays, coordinates, hidden=48)).items())
    order = ["(a1)", "(a2)", "(a3)", "(a4)", "(a5)", "(a6)", "(a7)", "(b1)", "(b2)", "(c1)", "(c2)"]
    assert [title.split()[0] for _, title in each] == order  # outputs are (a) of the paper too
    assert all(len(mark.get_facecolor()) == 0 for mark in each[-1][0].collections)  # hollow
    arrays["gated"], arrays["single"] = arrays["single"], arrays["gated"]
    within, _ = judged("mhs/fig4", arrays, coordinates, hidden=48)
    assert [id for id, held in within.items() if not held] == [
        "follows",
        "nearer",
        "race",
        "loss-over-floor",
    ]


def test_figure_6_compares_stereotypes_and_spread(tmp_path):
    T, seeds = 61, 3
    relu = 0.4 * falling(seeds, T, -15.0) + 0.6 * falling(seeds, T, 15.0)  # with a plateau
    y = np.random.default_rng(0).normal(size=(24, 60))
    outputs = (1 - np.sqrt(relu[[1, 1]]))[:, :, None, None] * y
    gates = [[0.0, 0.01, 0.99], [0.01, 0.7, 0.29]]
    arrays = {
        "relu": (("seed", "time"), relu * (y**2).sum() / 48),
        "gated": (("seed", "time"), relu[::-1] * (y**2).sum() / 48),
        "staged": (("seed", "time"), relu * (y**2).sum() / 48),
        "typical": ("net", [1, 1]),
        "staged_typical": ((), 1),
        "outputs": (("net", "time", "sample", "output"), outputs),
        "staged_outputs": (("time", "sample", "output"), outputs[1]),
        "share": (("seed", "layer", "number"), np.tile(gates, (seeds, 1, 1))),
        "always": (("seed", "layer"), np.tile([0.99, 0.2], (seeds, 1))),
        "often": (("seed", "layer"), np.tile([1.0, 0.7], (seeds, 1))),
    }
    coordinates = {"time": np.arange(T) * 2.4, "step": ("time", 100 * np.arange(T))}
    within, found = judged("mhs/fig6", arrays, coordinates, tmp_path)
    losses = picture("mhs/fig6", arrays, coordinates).axes[1]
    shown = [line for line in losses.lines if not line.get_label().startswith("_")]
    assert [line.get_linestyle() for line in shown] == ["-"] * 3  # all are simulated
    assert len({(line.get_color(), line.get_linewidth()) for line in shown}) == 3
    assert all(within.values())
    np.testing.assert_allclose([found["profiles-staged"], found["profiles-gated"]], 1, atol=5e-3)
    arrays["outputs"] = (arrays["outputs"][0], outputs * np.array([1, -1])[:, None, None, None])
    within, _ = judged("mhs/fig6", arrays, coordinates)
    near = [within[f"outputs-{name}"] for name in ("staged", "gated", "half")]
    assert near == [True, False, True]  # the staged ReLN is judged by its own outputs
    arrays["staged"] = (("seed", "time"), falling(seeds, T, 20.0) * (y**2).sum() / 48)
    within, _ = judged("mhs/fig6", arrays, coordinates)
    assert not within["loss-staged"] and within["loss-gated"]


def test_figure_8_looks_for_the_gates_of_section_4(tmp_path):
    context = np.repeat([1, 2, 3], 8)
    gates = np.array([context != 1, context != 2, context != 3, context > 0], float)
    sharp, dull = 0.1 + 0.8 * gates, 0.3 + 0.4 * gates
    arrays = {
        "centroid": (("clusters", "cluster", "sample"), [dull, sharp]),
        "share": (("clusters", "cluster"), np.full((2, 4), 0.25)),
        "discrepancy": ("clusters", [0.05, 0.01]),
        "context": ("sample", context),
    }
    arrays["centroid"][1][0][:2] = np.nan
    within, _ = judged("mhs/fig8", arrays, {"clusters": [2, 4]}, tmp_path)
    assert within == {"gates-4": True, "common-found": True, "inconsistency": True}


# ---- measures -----------------------------------------------------------------------------------


def test_the_boundary_is_where_linear_gates_overtake():
    deltas = np.array([0.0, 0.5, 1.0])
    linear, xor = np.array([0.0, 0.1, 0.9]), np.array([1.0, 0.7, 0.1])
    assert fig2.boundary(deltas, linear, xor) == pytest.approx(0.5 + 0.5 * 0.6 / 1.4)
    assert np.isnan(fig2.boundary(deltas, xor, linear))


def test_the_stereotype_is_the_run_next_to_the_mean():
    loss = np.array([[1.0, 0.0], [1.0, 0.4], [1.0, 1.0]])
    assert fig6.stereotype(loss) == 1
    assert fig6.moments(loss[1]) == [1, 1, -1, -1]


def test_patterns_are_told_by_context():
    context = np.array([1, 1, 2, 2])
    patterns = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]], bool)
    assert fig8.by_context(patterns, context) == [(1,), (1, 2), (), ()]


@pytest.mark.parametrize(("errors", "elbow"), [((0.2, 0.1, 0.05, 0.01, 0.009, 0.009), 4)])
def test_the_elbow_is_judged(errors, elbow):
    table = xarray.Dataset(
        {
            "discrepancy": (("clusters", "seed"), np.array(errors)[:, None]),
            "implementable": ("clusters", [True, False] * 3),
        },
        {"clusters": np.arange(1, 7)},
    )
    said = {measure.id: measure.read(table).text for measure in fig9.measures(table)}
    assert said["elbow"] == f"K = {elbow}" and said["implementable"] == "1, 3, 5"
    assert all(m.met(m.read(table).value) for m in fig9.measures(table) if m.judges)


def test_gates_are_asked_whether_neurons_can_have_them():
    few = fig9.FIGURE.resolve(changes={"hidden": 8, "steps": 100, "most": 2, "seeds": 1})
    table = fig9.compute(few)
    assert table["pattern"].shape == (2, 2, 24)
    inputs = nr.tasks.contextual(joined=True, structures=few["structures"]).x["x"]
    for pattern, possible in zip(table["pattern"], table["implementable"], strict=True):
        own = pattern.dropna("cluster").to_numpy()
        assert bool(possible) == all(nr.reln.is_implementable(p, inputs) for p in own)


def test_distances_and_strengths():
    h = np.random.default_rng(0).normal(size=(5, 3))
    wanted = np.linalg.norm(h[:, None] - h[None], axis=-1)
    np.testing.assert_allclose(contextual.distances(h @ h.T), wanted, atol=1e-7)
    blocks = [np.diag([3.0, 1.0])[None], np.array([[[2.0]]])]
    np.testing.assert_allclose(contextual.strengths(blocks, 4), [[3, 2, 1, 0]], atol=1e-12)


def test_maps_of_a_race_are_those_of_the_network():
    arch, data = nr.tasks.common_and_all_but_one(nr.tasks.contextual(contexts=3, items=4), 12)
    race = nr.reduce(arch, data)
    solved = race.solve(times=[0.0, 20.0], start=0.1, learning_rate=0.1)
    full = race.weights(solved, 20.0, jax.random.key(0))
    wanted = contextual.pathway_maps(arch)(full)
    for node, parts in contextual.predicted_maps(arch, solved).items():
        values = np.linalg.svd(wanted[node], compute_uv=False)
        found = contextual.strengths(parts, len(values))[-1]
        np.testing.assert_allclose(found, values, atol=1e-8)


# ---- MHS App. F and G, and other slips (docs/errata.md) -----------------------------------------


def effective(C):
    """Σ^yx of each contextual pathway on the residual, and how two of them share inputs."""
    base = nr.tasks.contextual(contexts=C)
    item, context = base.x["item"], base.labels["context"]
    x = np.hstack([item, base.x["context"]])
    rest = base.y["y"] - x @ np.linalg.lstsq(x, base.y["y"], rcond=None)[0]
    gates = [context != c for c in range(1, C + 1)]
    yx = [rest[g].T @ item[g] / len(x) for g in gates]
    shared = item[gates[0] & gates[1]].T @ item[gates[0] & gates[1]]
    return yx, shared, item[gates[0]].T @ item[gates[0]]


@pytest.mark.parametrize("C", [3, 4, 5])
def test_overlaps_of_contextual_pathways(C):
    (one, two, *_), shared, own = effective(C)
    np.testing.assert_allclose(shared, (C - 2) / (C - 1) * own)
    u, _, vt = np.linalg.svd(one, full_matrices=False)
    strength = np.einsum("ik,ij,kj->k", u, two, vt) / np.einsum("ik,ij,kj->k", u, one, vt)
    np.testing.assert_allclose(strength[:7], -1 / (C - 1), atol=1e-9)
    left = 1 + (C - 1) * (C - 2) / (C - 1) * (-1 / (C - 1))
    assert left == pytest.approx(1 / (C - 1))  # the factor that MHS arrives at


@pytest.mark.parametrize("C", [3, 4])
def test_closed_forms_of_appendices_f_and_g(C):
    this = case(DESCENT | {"step": 0.001, "rule": "sign"}, {"contexts": C}, 48)
    times = np.linspace(0, 400, 41)
    loss, _, contextual_modes = fig5.closed_forms(this, 24, 8, times)
    s = np.linalg.svd(effective(C)[0][0], compute_uv=False)[:7]
    d, start = 1 / 8 * (C - 1) / C, 8 * this.scale**2 / 2
    end = (C - 1) * s / d
    wanted = end / (1 - (1 - end / start) * np.exp(-2 * s * times[:, None]))
    np.testing.assert_allclose(contextual_modes, wanted, rtol=1e-6, atol=1e-9)
    assert loss[0] == pytest.approx((this.data.y["y"] ** 2).sum(axis=1).mean() / 2, rel=1e-3)
    assert loss[-1] < 1e-3 * loss[0]


def test_the_printed_variance_of_xor_pathways_has_a_negative_loss():
    def end(s, d):  # MHS Eq. 23 at a = s/d
        return 0.5 - 4 * s * (s / d) + 2 * d * (s / d) ** 2

    for delta in (0.0, 0.5, 1.0):
        s = np.sqrt(1 / 8 + delta**2 / 16)
        assert end(s, 1 / 8 + delta**2 / 16) < 0
        assert end(s, (2 + delta**2) / 4) == pytest.approx(0)


def test_without_a_shared_basis_the_order_of_the_factors_matters():
    rng = np.random.default_rng(1)
    data = nr.Dataset({"x": rng.normal(size=(9, 3))}, {"y": rng.normal(size=(9, 3))})
    net = nr.GDLN(nr.Architecture.chain(3, 3, 3))
    weights = {e: np.asarray(w) for e, w in net.init(jax.random.key(0)).items()}
    (first, w1), (second, w2) = weights.items()
    x, y = data.x["x"], data.y["y"]
    yx, xx = y.T @ x / 9, x.T @ x / 9
    u, s, vt = np.linalg.svd(yx)
    d, v = np.linalg.eigh(xx)
    a, b = w1 @ v, u.T @ w2  # W¹ = R W̄¹ Vᵀ, W² = U W̄² Rᵀ with R = 1
    error = np.diag(s) @ vt @ v - b @ a @ np.diag(d)
    flow = {e: -np.asarray(g) for e, g in jax.grad(net.loss)(weights, data).items()}
    np.testing.assert_allclose(flow[first] @ v, b.T @ error, atol=1e-12)
    np.testing.assert_allclose(u.T @ flow[second], error @ a.T, atol=1e-12)
    assert np.abs(u.T @ flow[second] - a @ error).max() > 0.1  # as printed in MHS App. A.1
