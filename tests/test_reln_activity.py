"""Patterns, weights, shares and switches, against loops written out here."""

import tracemalloc

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace.plot.activity import draw_raster, draw_reach, draw_shares
from neuralrace.reln.observed.pictures import _telling
from tests.test_errors import refuses


def a_run(net, weights):
    """A run that recorded these weights (T, …), without any training."""
    time = np.arange(len(next(iter(weights.values()))), dtype=float)
    return nr.Trajectory(time, np.ones(len(time)), values={"weights": weights}, net=net)


def found(on, weight=None):
    """An `Activity` of one node 'h' with these patterns (T, N, size)."""
    on = np.asarray(on, bool)
    weight = np.ones((len(on), on.shape[2])) if weight is None else np.asarray(weight, float)
    time = np.arange(len(on), dtype=float)
    return nr.reln.Activity(time, {"h": on}, {"h": weight}, {"h": np.zeros(len(on))}, 1e-3, 0.0)


# ---- patterns and weights -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def branching():
    """Two inputs, two hidden layers, a skip, two outputs, a bias and a leak; random weights."""
    arch = nr.Architecture(
        sizes={"a": 3, "b": 2, "h": 5, "k": 4, "y": 2, "z": 1},
        edges={"ah": ("a", "h"), "bh": ("b", "h"), "hk": ("h", "k"), "bk": ("b", "k"),
               "hy": ("h", "y"), "ky": ("k", "y"), "kz": ("k", "z")},
    )  # fmt: skip
    net = nr.ReLUNetwork(arch, leak=0.1, bias=True)
    rng = np.random.default_rng(0)
    weights = {
        e: rng.normal(size=(6, net.arch.sizes[t], net.arch.sizes[s]))
        for e, (s, t) in net.arch.edges.items()
    }
    x = {"a": rng.normal(size=(7, 3)), "b": rng.normal(size=(7, 2))}
    data = nr.Dataset(x, {"y": rng.normal(size=(7, 2)), "z": rng.normal(size=(7, 1))})
    return net, weights, data


def test_patterns_are_the_networks_own_without_a_boundary(branching):
    net, weights, data = branching
    seen = nr.reln.activity(a_run(net, weights), data, boundary=0.0)
    for k in range(6):
        slopes = net.activity({e: w[k] for e, w in weights.items()}, data)
        for node in ("h", "k"):
            np.testing.assert_array_equal(seen.on[node][k], np.asarray(slopes[node]) == 1)
            np.testing.assert_array_equal(seen.gates(float(k))[node], slopes[node])


def test_weight_joins_all_edges_of_a_neuron(branching):
    net, weights, data = branching
    weight = nr.reln.activity(a_run(net, weights), data).weight
    bias = {t: e for e, (s, t) in net.arch.edges.items() if s == "bias"}
    for t, i in [(0, 2), (5, 0)]:
        into = np.concatenate([weights[e][t][i] for e in ("ah", "bh", bias["h"])])
        out = np.concatenate([weights[e][t][:, i] for e in ("hk", "hy")])
        expected = np.sqrt(sum(v**2 for v in into)) * np.sqrt(sum(v**2 for v in out))
        assert weight["h"][t, i] == pytest.approx(expected, rel=1e-12)


def test_boundary_is_relative_to_weights_and_inputs():
    relu = nr.ReLUNetwork((2, 4, 1))
    ratio = np.array([5e-4, 2e-3, -5e-4, -2e-3])
    rows = 1e-6 * np.stack([ratio, np.sqrt(1 - ratio**2)], axis=1)
    data = nr.Dataset({"x": [[300.0, 0.0]]}, {"y": [[0.0]]})
    run = a_run(relu, {"W1": rows[None], "W2": np.full((1, 1, 4), 2.0)})
    seen = nr.reln.activity(run, data)
    assert seen.on["h"][0, 0].tolist() == [False, True, False, False]
    assert seen.undecided["h"][0] == pytest.approx(0.5)
    assert nr.reln.activity(run, data, boundary=0).on["h"][0, 0].tolist() == [True, True, 0, 0]
    assert nr.reln.activity(run, data, boundary=0.1).undecided["h"][0] == pytest.approx(1.0)
    assert "is on the boundary" in str(seen)


# ---- shares -------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 4))
def test_shares_against_loops(seed, samples, count):
    rng = np.random.default_rng(seed)
    on = rng.integers(0, 2, (2, samples, 8)).astype(bool)
    weight = rng.exponential(size=(2, 8)) ** 3
    every = [np.array([(p >> n) & 1 for n in range(samples)], bool) for p in range(2**samples)]
    chosen = rng.permutation(len(every))[:count]
    prototypes = {f"p{i}": every[i] for i in chosen}
    shares = found(on, weight).shares(prototypes, least=0.05)
    for t in range(2):
        exact, rounded = dict.fromkeys([*prototypes, "other"], 0.0), dict.fromkeys(prototypes, 0.0)
        distance, total = 0.0, 0.0
        for i in range(8):
            if weight[t, i] < 0.05 * weight[t].max():
                continue
            total += weight[t, i]
            apart = {name: int((on[t, :, i] ^ p).sum()) for name, p in prototypes.items()}
            least = min(apart.values())
            nearest = [name for name, d in apart.items() if d == least]
            exact[nearest[0] if least == 0 else "other"] += weight[t, i]
            for name in nearest:
                rounded[name] += weight[t, i] / len(nearest)
            distance += weight[t, i] * least
        for mine, theirs in ((shares.exact, exact), (shares.rounded, rounded)):
            assert {n: v[t] for n, v in mine.items()} == pytest.approx(
                {n: v / total for n, v in theirs.items()}, abs=1e-12
            )
        assert shares.distance[t] == pytest.approx(distance / total)


def test_shares_add_up_in_groups():
    data = nr.tasks.contextual(contexts=3, items=2)
    on = np.stack([data.mask(context=(1, 2)), data.mask(context=3), [True] * 6], axis=1)[None]
    shares = found(on, [[1.0, 2.0, 1.0]]).shares(nr.reln.subsets(data))
    grouped = shares.together(
        {"all": ("all",), "two": ("1_2", "1_3", "2_3"), "one": ("1", "2", "3")}
    )
    assert {n: v[0] for n, v in grouped.exact.items()} == {
        "all": 0.25, "two": 0.25, "one": 0.5, "other": 0.0
    }  # fmt: skip
    assert grouped.nearest_index.tolist() == [[1, 2, 0]]
    assert str(grouped).startswith("h at t = 0: exactly one 50 %, two 25 %, all 25 %")
    with refuses("all"):
        shares.together({"all": ("all",)})
    with refuses("other"):
        shares.together({"other": list(shares.rounded)})


def test_no_weight_at_all_has_no_shares():
    shares = found(np.ones((1, 3, 2)), np.zeros((1, 2))).shares({"all": np.ones(3)})
    assert shares.exact["all"][0] == shares.rounded["all"][0] == 0


# ---- switches -----------------------------------------------------------------------------------


def test_switches_by_hand():
    on = np.zeros((4, 2, 3), bool)  # neuron 0 never switches
    on[1:, 0, 1] = True  # neuron 1 once, at t = 1
    on[1, :, 2], on[2, 1, 2] = True, True  # neuron 2: two flips at t = 1, one at 2, one at 3
    seen = found(on, np.tile([1.0, 1.0, 2.0], (4, 1)))
    switches = seen.switches()
    assert switches.count.tolist() == [0, 1, 4]
    np.testing.assert_array_equal(switches.first, [np.nan, 1, 1])
    np.testing.assert_array_equal(switches.last, [np.nan, 1, 3])
    assert switches.rate.tolist() == [(1 + 2 * 2) / 4, 2 / 4, 2 / 4]
    assert switches.mean() == (1 + 2 * 4) / 4
    assert repr(switches) == (
        "Switches(h: 2 of 3 neurons switched between t = 0 and 3, seen at 4 moments; "
        "on average 2.2 times, the last at t = 3)"
    )
    assert seen.changed(0.0) == 0.25
    assert seen.changed(0.0, 1.0) == 1.25
    assert "they switched 2.2 times, the last time at t = 3" in str(seen)
    still = found(on[:1])
    assert still.switches().count.tolist() == [0, 0, 0]
    assert np.isnan(still.switches().last).all()


# ---- what a trained network does ----------------------------------------------------------------


def test_gates_of_xor_are_those_of_the_paper():
    """MHS Fig. 2: one sample a neuron for small Δ, one class a neuron for large Δ."""
    relu = nr.ReLUNetwork((3, 64, 1))
    for delta, linear in ((0.4, 0.0), (1.2, 1.0)):
        data = nr.tasks.extended_xor(delta)
        weights = relu.init(jax.random.key(0), scale=1e-4)
        run = nr.train(relu, weights, data, learning_rate=0.1, steps=500, record_every=50,
                       record={"weights": True})  # fmt: skip
        positive = data.labels["positive"]
        prototypes = data.one_per_sample() | {"positive": positive, "negative": ~positive}
        exact = nr.reln.activity(run, data).shares(prototypes).exact
        assert exact["positive"][-1] + exact["negative"][-1] == pytest.approx(linear, abs=0.05)
        assert exact["other"][-1] < 0.05


# ---- pictures -----------------------------------------------------------------------------------


def test_picture_shows_rasters_and_shares():
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(1)
    seen = found(rng.integers(0, 2, (5, 4, 6)))
    prototypes = {f"p{i}": np.arange(4) == i for i in range(4)}
    figure = seen.plot(prototypes, at=(0.0, 4.0), samples={"left": 2, "right": 2})
    first, second, below = figure.axes
    assert [ax.get_title() for ax in (first, second)] == ["t = 0", "t = 4"]
    assert [text.get_text() for text in first.get_xticklabels()] == ["left", "right"]
    assert below.get_ylabel() == "part of the weight"
    drawn = np.concatenate([mesh.get_array().reshape(-1, 4) for mesh in second.collections])
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, seen.on["h"][4].T.astype(float)))
    ax = draw_shares([0, 1, 2], {"a": [1, 1, 1]}, exact=[0.5, 0.5, 0.5])
    assert ax.lines[0].get_ydata()[0] == 0.5
    assert "2 stages" in [t.get_text() for t in draw_reach([0, 1, 2], [1, 2, 2], [0, 1, 2]).texts]
    with refuses("patterns"):
        draw_raster(np.zeros((3, 4)), np.ones(2), {"a": 3})
    plt.close("all")


# ---- errors -------------------------------------------------------------------------------------


def test_errors_say_what_is_missing(branching):
    net, weights, data = branching
    bare = nr.Trajectory([0, 1], [1.0, 1.0], net=net)
    with refuses("weights"):
        nr.reln.activity(bare, data)
    with refuses("run"):
        nr.reln.activity(a_run(nr.GDLN(net.arch), weights), data)
    many = nr.Trajectory([0, 1], np.ones((2, 2)), net=net, axes={"seed": [0, 1]})
    with refuses("run"):
        nr.reln.activity(many, data)
    with refuses("boundary"):
        nr.reln.activity(a_run(net, weights), data, boundary=-1.0)
    seen = nr.reln.activity(a_run(net, weights), data)
    with refuses("node"):
        seen.shares({"all": np.ones(7)})
    with refuses("node"):
        seen.switches("q")
    for wrong in ([1, 0], {"other": np.ones(7)}):
        with refuses("prototypes"):
            seen.shares(wrong, "h")
    with refuses("p"):
        seen.shares({"p": np.ones(3)}, "h")
    with refuses("prototypes"):
        seen.shares({"a": np.ones(7), "b": np.ones(7)}, "h")
    with refuses("label"):
        nr.reln.subsets(data)


def test_activity_is_kept_in_bits_and_computed_moment_by_moment():
    """The peak is a few matrices of one moment, not several of all moments in float64."""
    rng = np.random.default_rng(0)
    moments, samples, neurons = 40, 200, 300
    relu = nr.ReLUNetwork((3, neurons, 1))
    path = {
        "W1": rng.normal(size=(moments, neurons, 3)),
        "W2": rng.normal(size=(moments, 1, neurons)),
    }
    run = nr.Trajectory(np.arange(moments), np.ones(moments), values={"weights": path}, net=relu)
    data = nr.Dataset({"x": rng.normal(size=(samples, 3))}, {"y": np.zeros((samples, 1))})
    tracemalloc.start()
    seen = nr.reln.activity(run, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    z = np.einsum("nd,tsd->tns", data.x["x"], path["W1"])
    assert (seen.on["h"] == (z > 1e-3 * np.linalg.norm(path["W1"], axis=2)[:, None]
                             * np.linalg.norm(data.x["x"], axis=1)[:, None])).all()  # fmt: skip
    assert peak < 3 * moments * samples * neurons


def test_activity_takes_fractions():
    data, net = nr.tasks.xor(), nr.ReLUNetwork((2, 32, 1), leak=0.1)
    run = nr.train(net, net.init(0, scale=1e-3), data, learning_rate=0.1, steps=300,
                   record_every=10, record={"weights": True})  # fmt: skip
    gates = nr.reln.sliding_over(run, data)
    found = nr.reln.activity(run, data, gates=gates)
    np.testing.assert_array_equal(found.gates()["h"], gates["h"][-1])
    np.testing.assert_array_equal(found.on["h"], gates["h"] > 0.55)
    assert found.undecided["h"][-1] > 0.1  # it slides
    assert "on the boundary" in str(found)
    plain = nr.reln.activity(run, data, boundary=0.0)
    same = nr.reln.activity(run, data, gates={"h": np.where(plain.on["h"], 1.0, 0.1)})
    np.testing.assert_array_equal(same.on["h"], plain.on["h"])
    assert not same.undecided["h"].any()
    with refuses("gates"):
        nr.reln.activity(run, data, gates={"h": gates["h"][1:]})


def test_neurons_of_a_network_without_a_kink_are_on_everywhere():
    """With leak = 1 a gate is 1 on both sides of the boundary."""
    data, net = nr.tasks.xor(), nr.ReLUNetwork((2, 4, 1), leak=1.0)
    w = np.random.default_rng(0).normal(size=(2, 4, 2))
    run = a_run(net, {"W1": w, "W2": np.ones((2, 1, 4))})
    seen = nr.reln.activity(run, data, gates={"h": np.ones((2, 4, 4))})
    assert seen.on["h"].all() and (seen.undecided["h"] == 0).all()
    assert "on for 4.0 of 4 samples" in str(seen)
    trained = nr.train(net, {"W1": w[0], "W2": np.ones((1, 4))}, data, learning_rate=0.01, steps=5,
                       record_every=1, record={"weights": True})  # fmt: skip
    (pathway,) = nr.reln.discover(trained, data, pathways=1).frame().to_dict("records")
    assert (pathway["share"], pathway["neurons"], pathway["on_for"]) == (1.0, 4, 4)


def test_weights_that_are_not_finite_are_said():
    weight = np.ones((2, 3))
    weight[1, 0] = np.nan
    text = str(found(np.ones((2, 4, 3)), weight))
    assert "not finite" in text and "neurons count" not in text


def test_rasters_stand_where_shares_change():
    """By default, when a quarter and half of the changes have happened, and at the end."""
    time = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0, 100.0])
    rising = np.array([0.0, 0.0, 0.3, 0.6, 1.0, 1.0, 1.0])
    assert _telling(time, np.stack([rising, 1 - rising])) == [2.0, 3.0, 100.0]
    assert _telling(time, np.zeros((2, 7))) == [50.0, 100.0]


def test_subsets_of_many_values_are_refused():
    with pytest.raises(nr.NeuralRaceError, match="context"):
        nr.reln.subsets(nr.tasks.contextual(contexts=13))
    with pytest.raises(nr.NeuralRaceError, match="context"):
        nr.tasks.all_subsets(nr.tasks.contextual(contexts=13))
    assert len(nr.reln.subsets(nr.tasks.contextual(contexts=5))) == 31
