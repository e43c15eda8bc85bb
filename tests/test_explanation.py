"""One table of all explanations: errors against plain comparisons, advice, bad input."""

from dataclasses import replace

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.explanation import Explanation, Row
from neuralrace.explanation.question import Question
from neuralrace.trajectory import Trajectory
from tests.test_errors import refuses, says

DATA = nr.tasks.extended_xor(0.4)
SETTING = {"learning_rate": 0.1, "steps": 300}


def curve(error):
    """A network that is this far away in loss and outputs, everywhere."""
    return nr.Trajectory([0, 1], [1.0, 0.5 + error])


def row(name, kind, error, variables):
    kept = 1.0 if kind == "gating" else None
    return Row(name, kind, curve(error), variables, error, error, kept)


def table(*rows, floor=(0.01, 0.01)):
    runs = (curve(0.0),)
    return Explanation(tuple(sorted(rows, key=lambda r: r.error)), floor, runs, "made by hand")


@pytest.fixture(scope="module")
def run():
    net = nr.ReLUNetwork((3, 24, 1))
    return nr.train(net, net.init(0, scale=1e-3), DATA, record_every=5, record={"weights": True},
                    **SETTING)  # fmt: skip


def test_a_run_is_compared_with_what_follows_it(run):
    found = nr.explain(run, data=DATA, seeds=2, rows=["discovered", "staged"], most=4, stages=16)
    named = {r.kind: r for r in found.rows}
    whole = nr.Trajectory.from_weights(run.net, run.values["weights"], DATA, run.time)
    by_hand = nr.compare(whole, nr.reln.staged(run, DATA, stages=16))
    assert named["staged"].loss == pytest.approx(by_hand.mean, rel=1e-6)
    assert named["staged"].outputs == pytest.approx(by_hand.outputs, rel=1e-6)
    gates = named["gating"].found
    assert named["gating"].loss == pytest.approx(gates.discrepancy, rel=1e-6)
    assert named["gating"].variables <= 8
    assert [r.error for r in found.rows] == sorted(r.error for r in found.rows)
    assert "1 more seed" in found.made
    assert found.floor is not None and min(found.floor) > 0
    assert found.times_floor(found.rows[0].name)[1] == found.rows[0].outputs / found.floor[1]
    assert len(found.plot().lines) == 3


def test_the_distance_of_seeds_is_the_mean_over_pairs():
    found = nr.explain(DATA, width=16, scale=1e-3, seeds=3, rows=["narrow"], types=2, **SETTING)
    a, b, c = found.runs
    pairs = [nr.compare(*pair) for pair in ((a, b), (a, c), (b, c))]
    assert found.floor[0] == pytest.approx(np.mean([pair.mean for pair in pairs]))
    assert found.floor[1] == pytest.approx(np.mean([pair.outputs for pair in pairs]))
    assert "3 ReLU networks" in found.made
    assert found.rows[0].variables == 2 * (3 + 1)


def test_predictions_only():
    gatings = {"mine": nr.tasks.xor_pathways(DATA)}
    rows = ["gatings", "discovered", "narrow"]
    found = nr.explain(DATA, gatings, width=16, scale=1e-3, train=False, rows=rows, seeds=1,
                       **SETTING)  # fmt: skip
    assert (found.runs, found.floor, [r.name for r in found.rows]) == ((), None, ["mine"])
    assert found["mine"].loss is None
    assert found["mine"].kept > 0.9
    assert "half time" in str(found) and "prediction" in found.advice


def test_what_cannot_be_made_is_left_out_with_the_reason():
    net = nr.ReLUNetwork((3, 6, 5, 1))
    deep = nr.train(net, net.init(0, scale=0.3), DATA, record_every=5, record={"weights": True},
                    **SETTING)  # fmt: skip
    found = nr.explain(deep, data=DATA, train=False, rows=["types", "discovered"], most=2)
    assert "one hidden layer" in found.left_out["types"]
    assert "types is left out" in str(found)
    assert found.floor is None and "not known" in found.advice


@pytest.fixture(scope="module")
def deep():
    """Two hidden layers on a task with two contexts, from PyTorch's spreads."""
    data, net = nr.tasks.context_decision(levels=2, cue=1.0), nr.ReLUNetwork((4, 16, 16, 1))
    run = nr.train(net, net.init(0, scale={"W1": 0.3, "W2": 0.15, "W3": 0.15}), data,
                   learning_rate=0.05, steps=300, record_every=10,
                   record={"weights": True, "outputs": True})  # fmt: skip
    return run, data


def test_gatings_of_another_depth_are_left_out(deep):
    run, data = deep
    masks = {f"context{c}": data.mask(context=c) for c in (1, 2)}
    gatings = {f"depth{d}": nr.pathways(data, masks, hidden=8, depth=d) for d in (1, 2, 3)}
    found = nr.explain(run, gatings, data=data, seeds=2, rows=["gatings", "aligned"])
    assert [r.name for r in found.rows] == ["depth2"]
    assert set(found.left_out) == {"depth1", "depth3", "aligned"}


def test_the_narrow_network_of_a_deep_one_is_as_strong(deep):
    """By NumPy: √(16/4) on every edge with a hidden end, at both layers."""
    run, data = deep
    found = nr.explain(run, data=data, seeds=2, rows=["narrow"], types=4)
    (made,) = found.rows
    spreads = {e: 2 * np.sqrt(np.mean(w[0] ** 2)) for e, w in run.values["weights"].items()}
    net = nr.ReLUNetwork((4, 4, 4, 1))
    many = nr.train_ensemble(net, data, key=0, seeds=2, scale=spreads, learning_rate=0.05,
                             steps=300, record_every=10)  # fmt: skip
    np.testing.assert_allclose(made.trajectory.loss, many.loss[0], 1e-6)
    assert made.variables == 4 * 4 + 4 * 4 + 4
    last = {e: w[-1] for e, w in made.trajectory.values["weights"].items()}
    h1 = np.maximum(np.asarray(data.x["x"]) @ last["W1"].T, 0)
    own = {tuple(row) for row in (h1 > 0).T.astype(float)}
    assert {tuple(row) for row in made.found.patterns["h1"]} == own


def test_explain_takes_as_many_pathways_as_discover(deep):
    run, data = deep
    alone = nr.reln.discover(run, data, "elbow", key=3)
    found = nr.explain(run, data=data, seeds=2, train=False, rows=["discovered"], key=3)
    (made,) = found.rows
    assert made.name == alone.name
    for node, patterns in alone.patterns.items():
        np.testing.assert_array_equal(made.found.patterns[node], patterns)


def test_the_table_has_the_times_of_the_network_and_of_every_row(run):
    found = nr.explain(run, data=DATA, seeds=2, rows=["narrow"], types=8)
    frame = found.frame().set_index("kind")
    by_hand = lambda each, part: np.interp(-part * each.loss[0], -each.loss, each.time)
    for kind, each in {"network": run, "narrow": found.rows[0].trajectory}.items():
        assert frame.loc[kind, "half_time"] == pytest.approx(by_hand(each, 0.5))
        assert frame.loc[kind, "time"] == pytest.approx(by_hand(each, 0.1))


def test_the_half_time_that_is_furthest_off_decides():
    from neuralrace.explanation.question import _pace

    time = np.linspace(0, 40, 401)
    at = lambda half: nr.Trajectory(time, np.exp(-np.log(2) * time / half))
    assert _pace([at(9.0), at(11.0)], [at(11.0), at(8.0), at(10.5)]) == pytest.approx(0.8, rel=1e-3)
    assert _pace([at(10.0)], [at(11.0), at(200.0)]) == np.inf
    assert _pace([at(200.0)], [at(11.0)]) is None and _pace([], [at(11.0)]) is None


def test_the_advice():
    gating, wide = row("mine", "gating", 0.015, 8), row("aligned", "gating", 0.012, 20)
    narrow, types = row("narrow network", "narrow", 0.012, 6), row("4 types", "types", 0.013, 16)
    staged = row("stages", "staged", 0.001, 500)
    assert table(gating, wide, staged).best is gating
    assert "Use mine" in table(gating, wide, staged).advice
    both = table(gating, narrow, types)
    assert both.best is narrow
    assert "Use the narrow network" in both.advice
    assert any("as good as 4 types" in s.text for s in both.sentences())
    assert any("as good as any gating" in s.text for s in both.sentences())
    few = replace(types, variables=4)  # fewer variables, but no better than the narrow network
    assert table(narrow, few).best is narrow
    assert table(replace(narrow, outputs=0.014), few).best is few
    far = table(row("mine", "gating", 0.05, 8))
    assert far.best is None
    assert "5.0 times" in far.advice
    assert "Nothing small" in table(staged, row("mine", "gating", 0.05, 8)).advice
    worse = table(gating, replace(narrow, outputs=0.5))
    assert not any("as good as" in s.text for s in worse.sentences())
    with refuses("other"):
        far["other"]


@pytest.mark.parametrize(
    "doubtful",
    [
        *({"kept": share} for share in (None, 0.03, 0.84)),
        *({"pace": pace} for pace in (1.2, 0.8, np.inf)),
        {"loss": 0.1},
    ],
)
def test_a_gating_that_the_network_does_not_have_is_not_advised(doubtful):
    mine = replace(row("mine", "gating", 0.015, 8), **doubtful)
    alone = table(mine)
    assert alone.near == (mine,) and alone.best is None and alone.doubt("mine")
    assert "Use" not in alone.advice and "None of the gatings" in alone.advice
    narrow = row("narrow network", "narrow", 0.018, 20)
    both = table(mine, narrow)
    assert both.best is narrow and "None of the gatings" in both.advice
    good = replace(row("good", "gating", 0.016, 12), kept=0.95, pace=1.1)
    every = table(mine, narrow, good)
    assert every.best is good and every.advice.startswith("Use good")
    assert sum("mine" in said.text for said in every.sentences()) == 1


@pytest.mark.parametrize("kind", ["staged", "types", "narrow"])
@pytest.mark.parametrize("doubtful", [{"loss": 0.1}, {"pace": 1.2}, {"pace": 0.8}])
def test_nothing_is_advised_whose_loss_or_half_time_is_off(kind, doubtful):
    mine = replace(row("mine", kind, 0.015, 8), **doubtful)
    alone = table(mine)
    assert alone.near == (mine,) and alone.best is None and alone.doubt("mine")
    assert "use" not in alone.advice.lower()
    good = row("good", "gating", 0.016, 12)
    assert table(mine, good).best is good


def test_a_gating_of_another_half_time_is_not_advised_from_a_large_start():
    """Two seeds differ so much there that even outputs of a gating that is late are near."""
    linear = nr.tasks.linear_pathways(DATA)
    found = nr.explain(
        DATA, {"linear": linear}, width=50, scale=0.2, learning_rate=0.02, steps=150, seeds=3,
        rows=["gatings"],
    )  # fmt: skip
    assert [r.name for r in found.near] == ["linear"]  # by its outputs alone it would be advised
    assert found.best is None and "Use" not in found.advice
    many = nr.train_ensemble(
        nr.GDLN(linear[0]), linear[1], key=1, seeds=20, scale=0.2, learning_rate=0.02, steps=600
    )
    halves = lambda runs: np.mean([r.time[np.argmax(r.loss <= r.loss[0] / 2)] for r in runs])
    slower = halves([many.isel(seed=i) for i in range(20)]) / halves(found.runs)
    assert slower > 1.15 and found["linear"].pace > 1.15


def test_bad_input(run):
    with refuses("width"):
        nr.explain(DATA, width=10)
    with refuses("data"):
        nr.explain(run)
    with refuses("data"):
        nr.explain(run, data=DATA, width=3)
    with refuses("rows"):
        nr.explain(run, data=DATA, rows=["tpyes"])
    with refuses("gatings"):
        nr.explain(run, {"types": nr.tasks.xor_pathways(DATA)}, data=DATA)
    other = nr.tasks.xor_pathways(nr.tasks.extended_xor(1.0))
    with refuses("data"):
        nr.explain(run, {"mine": other}, data=DATA, train=False)
    bare = nr.Trajectory(run.time, run.loss, net=run.net, settings=run.settings)
    with refuses("train"):
        nr.explain(bare, data=DATA)


def test_the_advice_says_no_more_than_was_compared():
    narrow, staged = row("narrow network", "narrow", 0.012, 6), row("stages", "staged", 0.001, 500)
    assert "gating" not in table(narrow).advice
    assert "no gating" in table(narrow, row("mine", "gating", 0.05, 2)).advice
    assert "Nothing small" not in table(staged).advice
    large = table(staged, row("mine", "gating", 0.012, 900))  # near too, with more variables
    assert large.best.kind == "staged" and "only" not in large.advice


def test_rows_that_diverged_come_last():
    """NaN is neither smaller nor larger than anything, so that sorting by it sorts nothing."""
    good, bad = row("good", "gating", 0.05, 8), row("bad", "gating", np.nan, 8)
    found = table(bad, good)
    assert [r.name for r in found.rows] == ["good", "bad"]
    assert "the closest, good" in found.advice


def test_losses_are_not_measured_by_the_distance_of_outputs():
    loss_only = Row("mine", "gating", curve(0.01), 8, 0.01, None)
    found = table(loss_only, floor=(0.01, 0.5))
    assert found.times_floor("mine") is None and found.near == ()
    assert "not known" in found.advice


def test_a_run_from_zero_has_no_scale(run):
    net = nr.ReLUNetwork((3, 4, 1))
    still = nr.train(net, {e: np.zeros_like(w) for e, w in net.init(0).items()}, DATA,
                     record={"weights": True}, **SETTING)  # fmt: skip
    with refuses("scale"):
        nr.explain(still, data=DATA, seeds=2, rows=["narrow"])


def test_one_network_is_told_in_the_singular():
    found = nr.explain(DATA, width=8, scale=1e-3, seeds=1, rows=["narrow"], types=2, **SETTING)
    assert found.made == "1 ReLU network of width 8 was trained on this data."


def test_what_just_misses_being_near_is_told_with_the_threshold():
    errors = {"a": 1.9, "b": 2.02, "c": 2.6}
    rows = tuple(Row(name, "gating", None, 2, e, e) for name, e in errors.items())
    assert Explanation(rows, (1.0, 1.0), (), "").just_missed == (
        "What is at most 2 times as far away as another seed counts as near; just not: "
        "b (2.02 times)."
    )
    assert Explanation(rows[:1], (1.0, 1.0), (), "").just_missed == ""
    assert Explanation(rows, None, (), "").just_missed == ""


SPREADS = {"W1": 1e-3, "W2": 1.0, "bias_h": 1e-3, "bias_y": 0.0}


@pytest.fixture(scope="module")
def uneven():
    """Runs of one network from weights drawn by NumPy, with another spread on every edge."""
    net, normal = nr.ReLUNetwork((3, 32, 1), bias=True), np.random.default_rng(0).normal
    starts = {edge: SPREADS[edge] * normal(size=(20, *shape)) for edge, shape in net.shapes.items()}
    runs = nr.train_ensemble(net, DATA, key=0, seeds=20, weights=starts, learning_rate=0.1,
                             steps=100, record_every=10,
                             record={"weights": True, "outputs": True})  # fmt: skip
    return [runs.isel(seed=i) for i in range(20)]


def test_other_seeds_have_the_spread_of_every_edge(uneven):
    """The distance of seeds against that of runs whose starts were drawn by hand.

    With one spread for all edges it would be 33 times as large in the loss, 4 times in outputs.
    """
    first, *others = uneven
    pairs = [nr.compare(first, other) for other in others]
    found = nr.explain(first, data=DATA, seeds=20, rows=["narrow"], types=2)
    assert found.floor[0] == pytest.approx(np.mean([pair.mean for pair in pairs]), rel=0.5)
    assert found.floor[1] == pytest.approx(np.mean([pair.outputs for pair in pairs]), rel=0.5)
    assert "spread of its first weights on every edge" in found.made


def test_biases_do_not_count_in_the_one_scale_of_a_start(uneven):
    asked = Question(uneven[0].net, DATA, SPREADS, 0.1, np.arange(2), (), (), "made by hand")
    assert asked.scale == pytest.approx(np.sqrt((1e-6 + 1) / 2), rel=1e-12)


@pytest.mark.slow
def test_gatings_and_the_narrow_network_have_the_spread_of_every_edge(uneven):
    first = uneven[0]
    of = {e: float(np.sqrt(np.mean(w[0] ** 2))) for e, w in first.values["weights"].items()}
    arch, gated = nr.tasks.xor_pathways(DATA)
    found = nr.explain(first, {"mine": (arch, gated)}, data=DATA, seeds=2, types=8,
                       rows=["gatings", "narrow"])  # fmt: skip
    options = {"key": 0, "seeds": 2, "learning_rate": 0.1, "steps": 100, "record_every": 10}
    scale = {edge: of["W1"] if s == "x" else of["W2"] for edge, (s, _) in arch.edges.items()}
    many = nr.train_ensemble(nr.GDLN(arch), gated, scale=scale, **options)
    np.testing.assert_allclose(found["mine"].trajectory.loss, many.loss[0], 1e-6)
    scale = {edge: s * (1 if edge == "bias_y" else 2) for edge, s in of.items()}  # as 32 neurons
    narrow = nr.ReLUNetwork((3, 8, 1), bias=True)
    many = nr.train_ensemble(narrow, DATA, scale=scale, **options)
    row = found["narrow network of 8 neurons"]
    np.testing.assert_allclose(row.trajectory.loss, many.loss[0], 1e-6)


def test_the_reason_is_the_output_bias_and_not_the_number_of_layers(uneven):
    gatings = {"mine": nr.tasks.xor_pathways(DATA)}
    found = nr.explain(uneven[0], gatings, data=DATA, train=False, seeds=1,
                       rows=["gatings", "staged", "narrow"])  # fmt: skip
    assert "output bias" in found.left_out["staged"]
    assert "one hidden layer" not in found.left_out["staged"]
    assert "The network has an output bias; not so mine." in str(found)
    net = uneven[0].net
    with says("output bias", got="'bias_y'", wanted="neurons alone", fix="bias=False"):
        nr.reln.sliding_gates(net, uneven[0].final, DATA, learning_rate=0.1)
    arch = nr.Architecture({"x": 3, "h": 4, "y": 1},
                           {"a": ("x", "h"), "b": ("h", "y"), "c": ("x", "y")})  # fmt: skip
    skip = nr.ReLUNetwork(arch)
    with says("reaches an output directly", got="'c'", wanted="neurons alone", fix="for example"):
        nr.reln.sliding_gates(skip, skip.init(0), DATA, learning_rate=0.1)


def test_the_picture_shows_the_best_rows_and_ends_where_they_rest():
    from neuralrace.explanation.table import DRAWN, Explanation, Row

    time = np.linspace(0, 300, 601)
    loss = lambda late: 0.5 / (1 + np.exp((time - late) / 2))
    rows = tuple(
        Row(f"row {i}", "gating", nr.Trajectory(time, loss(10 + 5 * i)), 2, 0.01, 0.01 * i)
        for i in range(12)
    )
    ax = Explanation(rows, (0.01, 0.01), (nr.Trajectory(time, loss(10)),), "made").plot()
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == ["network", *[f"row {i}" for i in range(DRAWN)]]
    assert ax.get_legend().get_title().get_text() == "grey: 5 further away"
    last = time[np.flatnonzero(loss(10 + 5 * (DRAWN - 1)) > 0.01 * 0.5)[-1] + 1]
    assert ax.get_xlim() == pytest.approx((0, 1.05 * last), rel=0.01)


def test_a_flat_curve_does_not_stretch_the_axis():
    time = np.linspace(0, 1000, 2001)
    rows = (
        Row("learns", "gating", Trajectory(time, 0.5 * np.exp(-time)), 4),
        Row("flat", "gating", Trajectory(time, np.full(2001, 0.5)), 4),
    )
    drawn = Explanation(rows, floor=None, runs=(), made="two rows").plot()
    assert drawn.get_xlim()[1] < 6  # e^-t is within 1 % of its start from t = 4.6 on
    alone = Explanation(rows[1:], floor=None, runs=(), made="one row").plot()
    assert alone.get_xlim()[1] == 1000


def test_half_of_a_loss_is_interpolated_and_not_seen_if_the_run_is_too_short():
    time = np.array([0.0, 1.0, 4.0])
    fast, slow = (
        Row("a", "gating", Trajectory(time, loss), 1) for loss in ([4, 3, 0], [4, 3, 2.5])
    )
    assert fast.half_time == 2.0 == float(nr.trajectory.half_time(time, [4, 3, 0]))
    assert np.isnan(slow.half_time) and np.isnan(Row("b", "gating", None, 1).half_time)
    found = Explanation((fast, slow), floor=None, runs=(), made="two rows")
    assert found.frame()["half_time"].isna().tolist() == [False, True]
    many = nr.trajectory.half_time(time, np.array([[[4, 3, 0], [4, 3, 2.5]]]))
    np.testing.assert_array_equal(many, [[2.0, np.nan]])
