"""Discovery of pathways: planted ones, the elbow, start values, layers, errors."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reln.naming import where
from neuralrace.reln.observed.runs import check_trained_on
from tests.test_errors import refuses, says


def xor_run(delta: float, seed: int = 0, **options) -> tuple[nr.Trajectory, nr.Dataset]:
    data, relu = nr.tasks.extended_xor(delta), nr.ReLUNetwork((3, 48, 1), **options)
    weights = relu.init(jax.random.key(seed), scale=1e-4)
    run = nr.train(
        relu, weights, data, learning_rate=0.1, steps=600, record_every=20, record={"weights": True}
    )
    return run, data


@pytest.fixture(scope="module")
def easy() -> tuple[nr.Trajectory, nr.Dataset]:
    return xor_run(1.2)


def planted(count: int, seed: int = 0) -> tuple[nr.Trajectory, nr.Dataset, np.ndarray]:
    """A ReLU network whose large input weights hardly move, on patterns that were put in."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(10, 4))
    possible = nr.reln.patterns(x)
    pick = rng.permutation(np.flatnonzero(possible.on.any(axis=1)))[:count]
    member = np.arange(8 * count) % count
    relu = nr.ReLUNetwork((4, 8 * count, 2))
    weights = {
        "W1": jnp.asarray(100 * possible.weights[pick][member]),
        "W2": jnp.asarray(0.01 * rng.normal(size=(2, 8 * count))),
    }
    data = nr.Dataset({"x": x}, {"y": rng.normal(size=(10, 2))})
    run = nr.train(relu, weights, data, learning_rate=1e-6, steps=40, record={"weights": True})
    return run, data, possible.on[pick]


def test_planted_patterns_are_found_and_followed():
    count = 4
    run, data, on = planted(count)
    found = nr.reln.discover(run, data, pathways=count)
    assert {tuple(p) for p in found.patterns["h"]} == {tuple(p) for p in on.astype(float)}
    np.testing.assert_allclose(found.layers["h"].mismatch, 0)
    assert found.discrepancy < 1e-9  # same neurons, same gates: the same network
    assert len(nr.reln.discover(run, data, pathways="elbow", most=count + 2).patterns["h"]) == count


def test_pathways_hold_the_neurons_and_the_start_of_the_run(easy):
    run, data = easy
    found = nr.reln.discover(run, data, pathways=2)
    clusters = found.layers["h"]
    np.testing.assert_array_equal(found.patterns["h"], [[0, 1, 1, 0], [1, 0, 0, 1]])
    assert sum(found.arch.sizes[h] for h in found.arch.hidden) == 48
    assert found.share["h"].sum() == pytest.approx(1)
    assert found.arch.sizes["h_1"] == (clusters.member[0] == 0).sum()
    start = run.values["weights"]["W1"][0]
    first = found.arch.incoming["h_1"][0]
    np.testing.assert_array_equal(found.weights[first], start[clusters.member[0] == 0])
    np.testing.assert_array_equal(found.data.gates["h_1"], [0, 1, 1, 0])
    # the split network, trained by itself, is the one whose fidelity is reported
    apart = nr.train(
        nr.GDLN(found.arch), found.weights, found.data, learning_rate=0.1, steps=600,
        record_every=20,
    )  # fmt: skip
    np.testing.assert_allclose(apart.loss, found.train().loss, rtol=1e-9, atol=1e-12)
    assert nr.compare(run, apart).mean == pytest.approx(found.followed[0].mean)
    assert found.discrepancy < 0.01


def test_clusters_are_means_of_their_samples(easy):
    """Against a plain loop over neurons and moments."""
    run, data = easy
    for weighted in (False, True):
        clusters = nr.reln.discover(run, data, pathways=3, weighted=weighted).layers["h"]
        seen = nr.reln.activity(run, data)
        votes = seen.counted("h", 0.0) if weighted else np.ones(seen.weight["h"].shape)
        total, mean = np.zeros(len(clusters)), np.zeros((len(clusters), 4))
        for t in range(len(run.time)):
            for j in range(48):
                on = seen.on["h"][t, :, j].astype(float)
                k = int(((clusters.centroid - on) ** 2).sum(axis=1).argmin())
                total[k] += votes[t, j]
                mean[k] += votes[t, j] * on
        np.testing.assert_allclose(clusters.share, total / total.sum(), atol=1e-12)
        np.testing.assert_allclose(clusters.centroid, mean / total[:, None], atol=1e-12)


def test_real_valued_gates_are_the_centroids(easy):
    found = nr.reln.discover(*easy, pathways=3, rounded=False)
    np.testing.assert_array_equal(found.patterns["h"], found.layers["h"].centroid)
    assert ((found.patterns["h"] > 0) & (found.patterns["h"] < 1)).any()


def test_the_elbow():
    assert nr.reln.elbow([0.5]) == 1
    assert nr.reln.elbow([0.1, 0.2, 0.3]) == 1
    assert nr.reln.elbow([0.5, 0.1]) == 2
    assert nr.reln.elbow([0.5, 0.4, 0.3, 0.0, 0.0]) == 4
    assert nr.reln.elbow([0.87, 0.0034, 0.0026, 0.0019, 0.001, 0.0004]) == 2
    assert nr.reln.elbow([0.09, 0.06, 0.02, 0.01, 0.013, 0.015]) == 4
    run, data = xor_run(0.4, seed=1)
    found = nr.reln.discover(run, data, pathways="elbow", most=5)
    assert list(found.curve) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(found.patterns["h"], np.eye(4)[::-1])
    assert "5:" in str(found)
    assert found.discrepancy == found.curve[4]


def test_two_layers_a_bias_and_a_leak():
    data = nr.tasks.extended_xor(1.0)
    relu = nr.ReLUNetwork((3, 10, 8, 1), leak=0.1, bias=True)
    weights = relu.init(jax.random.key(0), scale=0.3)
    run = nr.train(
        relu, weights, data, learning_rate=0.05, steps=60, record_every=10, record={"weights": True}
    )
    first, second = relu.arch.hidden
    found = nr.reln.discover([run, run], data, pathways={first: 3, second: 2})
    assert (len(found.followed), len(found.runs)) == (2, 2)
    assert set(np.unique(found.patterns[first])) == {0.1, 1.0}
    assert {h.rsplit("_", 1)[0] for h in found.arch.hidden} == {first, second}
    assert len(found.arch.hidden) <= 5
    loss = nr.GDLN(found.arch).loss(found.weights, found.data)
    assert float(loss) == pytest.approx(found.train().loss[0])


def test_the_picture_and_the_sentence(easy):
    run, data = easy
    found = nr.reln.discover(run, data, pathways=2)
    ax = found.plot()
    shown = ax.get_images()[0].get_array()
    order = np.argsort(data.labels["positive"], kind="stable")
    np.testing.assert_array_equal(shown, found.layers["h"].centroid[:, order])
    assert [text.get_text()[:3] for text in ax.get_yticklabels()] == ["h_1", "h_2"]
    assert re.match(
        r"A gated network with 2 pathways in h .*\npathway +share +neurons +on for +differ +where\n"
        r"h_1 +\d+ % +\d+ +\d .+positive \w+\nh_2 ",
        str(found),
    )
    assert ax.get_ylabel() == "pathway,\nshare of activity"
    assert ax.get_images()[0].get_cmap().name == "Greys", "black is on, as in every strip"
    assert "follows 1 run with a mean discrepancy of 0." in str(found)
    assert len(found.plot(label="positive").lines) == 1, "between two groups"


def test_bad_arguments(easy):
    run, data = easy
    with refuses("pathways"):
        nr.reln.discover(run, data, pathways=0)
    with refuses("pathways"):
        nr.reln.discover(run, data, pathways={"g": 2})
    with says("did not record its weights", got="", wanted="weights"):
        nr.reln.discover(nr.Trajectory([0, 1], [1, 0.5], net=run.net), data)
    with refuses("runs"):
        nr.reln.discover([], data)
    with refuses("runs"):
        nr.reln.discover(
            nr.Trajectory([0, 1], [[1, 0.5]], net=run.net, axes={"delta": [0.1]}), data
        )
    other = nr.GDLN(run.net.arch)
    with refuses("gates"):
        nr.reln.discover(nr.Trajectory([0, 1], [1, 0.5], net=other), data)
    gated = data.gated({"h": np.ones((4, 48))})
    with says("did not record its weights", got="-", wanted="'weights'", fix="record="):
        nr.reln.discover(nr.Trajectory([0, 1], [1, 0.5], net=other), gated)


def test_data_is_what_the_runs_were_trained_on(easy):
    run, data = easy
    what, wanted = "data is not what the run was trained on", "the loss that the run recorded"
    for other in (
        nr.tasks.extended_xor(1.3),
        nr.Dataset(data.x, {"y": 2 * data.y["y"]}),
        nr.Dataset(data.x, data.y, sample_weight=[1, 1, 1, 2]),
        jax.tree.map(lambda a: a[:3], data),
    ):
        with says(what, got="at t = ", wanted=wanted, fix="the dataset of nr.train"):
            nr.reln.discover(run, other)
    for asked in (nr.reln.horizons, nr.reln.copied_gates):
        with says(what, got="at t = 60", wanted=wanted):
            asked(run, nr.tasks.extended_xor(1.3))
    short = nr.Trajectory(
        [0, 1], [1, 1], net=run.net, values={"outputs": {"y": np.ones((2, 6, 1))}}
    )
    with says(what, got="4 samples", wanted="6, as in the recorded outputs of 'y'"):
        check_trained_on(short, data)
    with refuses("x"):
        nr.reln.discover(run, nr.Dataset({"z": data.x["x"]}, data.y))
    turned = jax.tree.map(lambda a: a[::-1], data)  # the same samples in another order
    found = nr.reln.discover(run, turned, pathways=2)
    np.testing.assert_array_equal(found.patterns["h"], [[0, 1, 1, 0], [1, 0, 0, 1]])
    narrow = {e: w.astype(np.float32) for e, w in run.values["weights"].items()}
    again = nr.Trajectory(
        run.time, run.loss.astype(np.float32), values={"weights": narrow}, net=run.net,
        settings=run.settings,
    )  # fmt: skip
    check_trained_on(again, data)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_run_that_goes_on_from_another_in_low_precision(dtype):
    """Its loss is rounding alone, of targets far larger."""
    data = nr.Dataset({"x": [[1.0, 2.0], [-1.0, 0.5]]}, {"y": [[50.0], [-40.0]]})
    data = jax.tree.map(lambda a: jnp.asarray(a, dtype), data)
    net = nr.ReLUNetwork((2, 8, 1))
    weights = net.init(jax.random.key(0), scale=1.0, dtype=dtype)
    for _ in range(2):
        run = nr.train(net, weights, data, learning_rate=0.01, steps=300, record_every=100,
                       record={"weights": True})  # fmt: skip
        check_trained_on(run, data)
        weights = {e: jnp.asarray(w) for e, w in run.final.items()}
    with refuses("run"):
        check_trained_on(run, nr.Dataset(data.x, {"y": 2 * data.y["y"]}))


@pytest.mark.slow
def test_trained_gates_follow_better_on_a_run_they_have_not_seen():
    runs = [xor_run(0.4, seed)[0] for seed in (1, 2)]
    found = nr.reln.discover(runs, nr.tasks.extended_xor(0.4), pathways=3)
    better = nr.reln.refine(found, fit_to=(0,), iterations=12, rate=0.05)
    assert better.followed[1].mean < 0.8 * found.followed[1].mean
    np.testing.assert_array_equal(better.layers["h"].member, found.layers["h"].member)
    # the gradient against a difference of two trainings
    from neuralrace.reln.explained.refinement import _Objective

    objective = _Objective.of(found, [0])
    gates = {"h": jnp.asarray(found.patterns["h"]) * 0.9}
    _, slope = objective.loss_and_step(gates, -1.0)
    nudged = [objective.loss({"h": gates["h"].at[1, 2].add(e)}) for e in (1e-5, -1e-5)]
    assert float(slope["h"][1, 2]) == pytest.approx(float(nudged[0] - nudged[1]) / 2e-5, rel=1e-4)
    with refuses("fit_to"):
        nr.reln.refine(found, fit_to=(2,))


def test_samples_are_named_in_their_own_order(monkeypatch):
    """Labels 2, 2, 1: the first two columns are those of 2."""
    x = np.eye(3)
    data = nr.Dataset({"x": x}, {"y": x[:, :1]}, labels={"k": [2, 2, 1]})
    net = nr.ReLUNetwork((3, 6, 1))
    run = nr.train(
        net, net.init(jax.random.key(0), 0.1), data, learning_rate=0.1, steps=4,
        record={"weights": True},
    )  # fmt: skip
    found = nr.reln.discover(run, data, pathways=1)
    ax = found.plot(label="k")
    drawn = ax.get_images()[0].get_array()
    np.testing.assert_array_equal(drawn, found.layers["h"].centroid[:, [2, 0, 1]])
    (above,) = ax.child_axes
    assert [text.get_text() for text in above.get_xticklabels()] == ["k 1", "k 2"]
    with refuses("label"):
        found.plot(label="nothing")
    other = nr.train(
        net, net.init(jax.random.key(1), 0.1), data, learning_rate=0.1, steps=6,
        record={"weights": True},
    )  # fmt: skip
    with refuses("runs"):
        nr.reln.discover([run, other], data, pathways=1)


# ---- names, sample weights, sentences ------------------------------------------------------------


@pytest.mark.parametrize("change", ["real-valued", "refined", "lonely"])
def test_hidden_nodes_are_the_rows_of_the_patterns(easy, change):
    run, data = easy
    found = nr.reln.discover(run, data, pathways=3, rounded=change != "real-valued")
    if change == "refined":
        found = nr.reln.refine(found, iterations=3, rate=0.5)
    if change == "lonely":  # the first pathway wins no neuron of the run
        layer = found.layers["h"]
        member = np.where(layer.member == 0, 1, layer.member)
        found = replace(found, layers={"h": replace(layer, member=member)})
        assert "1 pathway without neurons" in str(found)
    clusters = found.layers["h"]
    for k, row in enumerate(clusters.pattern):
        mine = (clusters.member[0] == k).sum()
        assert found.arch.sizes.get(f"h_{k + 1}", 0) == mine
        if mine:
            np.testing.assert_array_equal(found.data.gates[f"h_{k + 1}"], row)
    loss = nr.GDLN(found.arch).loss(found.weights, found.data)
    assert float(loss) == pytest.approx(float(found.train().loss[0]))


def test_samples_without_weight_do_not_change_the_gates():
    data = nr.tasks.extended_xor(0.4)
    rng = np.random.default_rng(0)
    more = nr.Dataset(
        {"x": np.concatenate([data.x["x"], rng.normal(size=(12, 3))])},
        {"y": np.concatenate([data.y["y"], rng.normal(size=(12, 1))])},
        sample_weight=np.repeat([0.25, 0.0], [4, 12]),
    )
    relu = nr.ReLUNetwork((3, 48, 1))
    weights = relu.init(jax.random.key(2), scale=1e-3)
    options = {"learning_rate": 0.1, "steps": 300, "record_every": 20, "record": {"weights": True}}
    few, many = (nr.train(relu, weights, d, **options) for d in (data, more))
    for rounded in (True, False):
        plain = nr.reln.discover(few, data, pathways=3, rounded=rounded).patterns["h"]
        found = nr.reln.discover(many, more, pathways=3, rounded=rounded).patterns["h"]
        np.testing.assert_allclose(found[:, :4], plain, atol=1e-9)


def test_a_weight_of_two_is_two_samples():
    data = nr.tasks.extended_xor(0.8)
    twice = [0, 0, 0, 1, 2, 3]
    copied = nr.Dataset({"x": data.x["x"][twice]}, {"y": data.y["y"][twice]})
    heavy = nr.Dataset(data.x, data.y, sample_weight=np.array([3, 1, 1, 1]) / 6)
    relu = nr.ReLUNetwork((3, 24, 1))
    weights = relu.init(jax.random.key(2), scale=0.05)
    options = {"learning_rate": 0.1, "steps": 200, "record_every": 10, "record": {"weights": True}}
    one, other = (nr.train(relu, weights, d, **options) for d in (copied, heavy))
    found = nr.reln.discover(one, copied, pathways=2, rounded=False).patterns["h"]
    again = nr.reln.discover(other, heavy, pathways=2, rounded=False).patterns["h"]
    np.testing.assert_allclose(found[:, 2:], again, atol=1e-9)


def test_a_discovery_can_be_recorded_at_other_steps(easy):
    found = nr.reln.discover(*easy, pathways=2)
    run = easy[0]
    np.testing.assert_array_equal(found.train().time, run.time)
    np.testing.assert_allclose(found.train(record_every=200).time, [0, 20, 40, 60])
    assert found.train(steps=50).time[-1] == pytest.approx(5.0)


def test_sentences_count_samples_that_are_on():
    data, relu = nr.tasks.extended_xor(1.2), nr.ReLUNetwork((3, 24, 1), leak=0.45)
    run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-3), data, learning_rate=0.1,
                   steps=100, record_every=10, record={"weights": True})  # fmt: skip
    found = nr.reln.discover(run, data, pathways=2)
    counted = lambda found: found.frame()["on_for"].tolist()
    assert len(counted(found)) == 2 and set(counted(found)) <= set(range(5))
    layer = found.layers["h"]
    low = replace(found, layers={"h": replace(layer, pattern=layer.pattern - 2.0)})
    assert counted(low) == [0, 0]


def test_a_part_that_begins_with_the_task_learned_is_not_compared():
    """Its own first loss, of 1e-10 and less, would be the unit of rounding."""
    run, data = xor_run(1.2)
    late = run.isel(time=slice(24, None))
    assert late.loss[0] < 1e-6 * run.loss[0]
    found = nr.reln.discover(late, data, pathways=2)
    assert found.withheld.startswith("nothing is left to learn, with a loss of ")
    assert f"at t = {late.time[0]:g}, of 0.5 for answering zero" in found.withheld
    assert np.isnan(found.discrepancy) and not found.followed
    page = str(found)
    assert "initial loss" not in page and "between two records" not in page
    with refuses("pathways"):
        nr.reln.discover(late, data, pathways="elbow")


def test_a_part_is_measured_by_the_loss_of_answering_zero():
    run, data = xor_run(0.4)
    part = run.isel(time=slice(12, 24))
    found = nr.reln.discover(part, data, pathways=1)
    other = found.train()
    gap = np.trapezoid(np.abs(part.loss - other.loss), part.time) / np.ptp(part.time)
    assert part.loss[0] < 0.9 * np.mean(data.y["y"] ** 2) / 2  # a unit of its own would show
    assert found.discrepancy == pytest.approx(gap / (np.mean(data.y["y"] ** 2) / 2))
    whole = nr.reln.discover(run, data, pathways=1)
    assert whole.discrepancy == whole.followed[0].mean and "of the initial loss" in str(whole)


def test_the_end_alone_has_the_gates_of_the_end(easy):
    run, data = easy
    found = nr.reln.discover(run.isel(time=[-1]), data, pathways=2)
    weights = {e: w[-1] for e, w in run.values["weights"].items()}
    on = np.asarray(data.x["x"] @ weights["W1"].T > 0)
    size = np.linalg.norm(weights["W1"], axis=1) * np.linalg.norm(weights["W2"], axis=0)
    strong = on[:, size > 0.5 * size.max()].T
    assert {tuple(row) for row in strong.astype(float)} <= {tuple(p) for p in found.patterns["h"]}
    assert found.withheld == "a single recorded moment"


def test_pathways_are_in_words_by_labels_or_else_by_inputs():
    run, data = xor_run(1.2)
    words = lambda data: nr.reln.discover(run, data, pathways=2).words
    assert words(data) == {"h_1": "for positive True", "h_2": "for positive False"}
    bare = words(nr.Dataset(data.x, data.y))
    x = np.asarray(data.x["x"])
    for (name, said), pattern in zip(bare.items(), ([0, 1, 1, 0], [1, 0, 0, 1]), strict=True):
        column = int(said.removeprefix("for x[")[0])
        value = float(said.rpartition(" ")[2])
        np.testing.assert_array_equal(x[:, column] == value, pattern, err_msg=name)


@pytest.mark.parametrize("wrong", [0, 1, 2, 3])
def test_a_pattern_that_no_label_has_exactly_is_named_with_its_exceptions(wrong):
    """Against sets: the name, the exceptions and the overlap are all known by construction."""
    rule, item = np.repeat([1, 2, 3], 16), np.tile(np.arange(16), 3)
    data = nr.Dataset({"x": np.eye(48)}, {"y": np.ones((48, 1))},
                      labels={"rule": rule, "item": item})  # fmt: skip
    on = rule == 1
    off, extra = np.arange(wrong), np.array([40])
    on[off] = False
    on[extra] = wrong > 0
    said = where(np.flatnonzero(on), data)
    if not wrong:
        assert said == "for rule 1"
        return
    assert "rule 1" in said and f"{100 * (16 - wrong) / 17:.0f} %" in said
    assert all(re.search(rf"\b{number}\b", said) for number in (*item[off], item[extra[0]]))
    nothing = np.random.default_rng(0).permutation(48)[:24]
    assert re.findall(r"\d+", where(nothing, data)) == ["24"]


@pytest.mark.parametrize("names", [("a", "b", "rule_1", "rule_2", "rule_3"),
                                   ("rule_3", "rule_2", "b", "rule_1", "a")])  # fmt: skip
def test_labels_that_do_not_matter_are_left_out(names):
    """A code says by any two of its columns what one of them says alone."""
    a, b = np.tile([-1, -1, 1, 1], 3), np.tile([-1, 1, -1, 1], 3)
    codes = dict(zip(("rule_1", "rule_2", "rule_3"), np.repeat(np.eye(3, dtype=int), 4, 1)))  # noqa: B905
    columns = {"a": a, "b": b} | codes
    data = nr.Dataset({"x": np.eye(12)}, {"y": np.ones((12, 1))},
                      labels={name: columns[name] for name in names})  # fmt: skip
    said = lambda on: where(np.flatnonzero(on), data)
    for name in codes:
        assert said(codes[name] == 1) == f"for {name} 1"
        assert {*said((codes[name] == 1) & (a == 1)).split(" and ")} in (
            {f"for {name} 1", "a 1"}, {"for a 1", f"{name} 1"},
        )  # fmt: skip


def test_a_pattern_of_almost_all_samples_is_told_by_those_left_out():
    data = nr.tasks.contextual(contexts=3, items=4, joined=True)
    said = lambda on: where(np.flatnonzero(on), data)
    assert said(~data.mask(context=2, item=3)) == "for all but item 3 and context 2"
    assert said(data.mask(context=2)) == "for context 2"
    assert said(np.ones(12, bool)) == "for all samples"
    assert said(np.zeros(12, bool)) == "for no sample"


def test_samples_of_a_picture_are_grouped_and_named():
    from neuralrace.reln.naming import in_groups, name_columns, names_of

    data = nr.tasks.contextual(contexts=3, items=4, joined=True).take([3, 7, 0, 8, 4, 1])
    order, groups = in_groups(data)
    label = next(iter(groups)).split()[0]
    values = np.asarray(data.labels[label])[order]
    assert [f"{label} {v}" for v in dict.fromkeys(values.tolist())] == list(groups)
    assert list(groups.values()) == np.unique(values, return_counts=True)[1].tolist()
    names, told = names_of(data)
    assert len(set(names)) == 6 and all(label in told for label in data.labels)
    import matplotlib.pyplot as plt

    ax = plt.figure().add_subplot()
    name_columns(ax, data)
    assert ax.get_xlabel() == told
    assert [t.get_text() for t in ax.get_xticklabels()] == [names[n] for n in order]


def test_weights_that_are_all_zero_have_no_nan():
    data, relu = nr.tasks.extended_xor(1.2), nr.ReLUNetwork((3, 4, 1))
    zero = {"W1": np.zeros((4, 3)), "W2": np.zeros((1, 4))}
    run = nr.train(relu, zero, data, learning_rate=0.1, steps=4, record={"weights": True})
    found = nr.reln.discover(run, data, pathways=2)
    assert "nan" not in str(found)
    assert "nan" not in str(nr.reln.activity(run, data))


def test_few_records_are_said_to_be_blind(easy):
    run, data = easy
    few = nr.Trajectory(
        run.time[[0, -1]],
        run.loss[[0, -1]],
        values={"weights": {e: w[[0, -1]] for e, w in run.values["weights"].items()}},
        net=run.net,
        settings=run.settings,
        steps=run.steps[[0, -1]],
    )
    assert "between two records" in str(nr.reln.discover(few, data, pathways=2))
    fine = nr.train(run.net, {e: w[0] for e, w in run.values["weights"].items()}, data,
                    learning_rate=0.1, steps=600, record_every=2,
                    record={"weights": True})  # fmt: skip
    assert "between two records" not in str(nr.reln.discover(fine, data, pathways=2))


def test_a_run_that_diverged_is_not_called_other_data(easy):
    run, data = easy
    loss = np.array(run.loss)
    loss[-1] = np.nan
    bad = nr.Trajectory(run.time, loss, values=run.values, net=run.net, steps=run.steps,
                        settings={**run.settings, "data": None})  # fmt: skip
    with says("diverged", got="nan", wanted="finite", fix="learning rate"):
        nr.reln.discover(bad, data)


def test_a_curve_without_an_elbow_is_said_to_have_none():
    run, data, _ = planted(1)
    found = nr.reln.discover(run, data, pathways="elbow", most=3)
    assert found.has_elbow is False
    assert "no elbow" in [said.id for said in found.sentences()]
    curve = {1: 0.8, 2: 0.1, 3: 0.09}
    assert replace(found, curve=curve).has_elbow
    assert "no elbow" not in [said.id for said in replace(found, curve=curve).sentences()]
    flat = replace(found, curve={1: 0.02, 2: 0.014, 3: 0.015})
    assert flat.has_elbow is False
    assert "no elbow" in [said.id for said in flat.sentences()]
    assert replace(found, curve={}).has_elbow is None


# ---- many patterns, and fractions ---------------------------------------------------------------


def test_patterns_that_are_seen_in_parts_give_the_same_pathways(monkeypatch):
    """With weights on samples too, some of them zero."""
    from neuralrace.reln.explained import clusters
    from neuralrace.reln.observed import packed_patterns

    x = np.random.default_rng(0).normal(size=(20, 3))
    y = np.maximum(x @ np.random.default_rng(1).normal(size=(3, 3)), 0)
    data = nr.Dataset({"x": x}, {"y": y}, sample_weight=[1, 2] * 9 + [0, 0])
    net = nr.ReLUNetwork((3, 60, 3))
    run = nr.train(net, net.init(0, scale=1e-2), data, learning_rate=0.1, steps=400,
                   record_every=10, record={"weights": True})  # fmt: skip
    whole = nr.reln.discover(run, data, pathways=3)
    monkeypatch.setattr(clusters, "WHOLE", 20 * 100)
    monkeypatch.setattr(clusters, "FIRST", 20 * 100)
    monkeypatch.setattr(clusters, "ROUNDS", 50)
    monkeypatch.setattr(packed_patterns, "BLOCK", 20 * 7)
    layer = clusters.activity_of([run], data, 0.0)["h"]
    assert len(clusters.ActivitySamples.of(layer, data, True).first) > 100
    parts = nr.reln.discover(run, data, pathways=3)
    np.testing.assert_array_equal(parts.patterns["h"], whole.patterns["h"])
    np.testing.assert_allclose(parts.share["h"], whole.share["h"], atol=0.02)
    np.testing.assert_allclose(parts.layers["h"].centroid, whole.layers["h"].centroid, atol=0.05)


def test_fractions_are_discovered_in_place_of_patterns():
    """On plain XoR neurons slide on two samples; gates that are on or off cannot follow."""
    data, net = nr.tasks.xor(), nr.ReLUNetwork((2, 32, 1))
    run = nr.train(net, net.init(0, scale=1e-3), data, learning_rate=0.1, steps=300,
                   record_every=10, record={"weights": True})  # fmt: skip
    gates = nr.reln.sliding_over(run, data)
    found = nr.reln.discover(run, data, pathways=4, gates=gates, rounded=False)
    own = nr.reln.discover(run, data, pathways=4, rounded=False)
    assert ((found.patterns["h"] >= 0) & (found.patterns["h"] <= 1)).all()
    assert not np.allclose(found.patterns["h"], own.patterns["h"], atol=1e-3)
    assert found.discrepancy < own.discrepancy / 3
    same = {"h": nr.reln.activity(run, data, boundary=0.0).on["h"].astype(float)}
    again = nr.reln.discover(run, data, pathways=4, gates=[same], rounded=False)
    np.testing.assert_allclose(again.patterns["h"], own.patterns["h"], atol=1e-12)
    with refuses("gates"):
        nr.reln.discover(run, data, gates=[gates, gates])
    with refuses("gates"):
        nr.reln.discover(run, data, gates={"h": gates["h"][1:]})
