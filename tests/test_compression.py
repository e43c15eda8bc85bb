"""Compressed networks learn as the full ones do, and the way back is exact."""

import sys
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neuralrace as nr
from evidence.own.cases import Case, brute_force_outputs, random_case, wide_case
from neuralrace.dynamics import setup
from tests.test_errors import refuses

KEY = jax.random.key(0)


def chain(*sizes, samples=50, seed=0, rank=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(samples, sizes[0]))
    if rank is not None:
        x = x[:, :rank] @ rng.normal(size=(rank, sizes[0]))
    data = nr.Dataset({"x": x}, {"y": rng.normal(size=(samples, sizes[-1]))})
    return nr.GDLN(nr.Architecture.chain(*sizes)), data


def loss(arch, data, weights):
    """½⟨‖y − h‖²⟩, summed over all paths by brute force."""
    outputs = brute_force_outputs(Case(arch, data, weights))
    squares = sum(((np.asarray(data.y[v]) - h) ** 2).sum(axis=1) for v, h in outputs.items())
    return float(np.asarray(data.probability) @ squares) / 2


def assert_same_gradient(net, weights, data, **switches):
    """Losses and weights over a few steps of the full network and of the small, in NumPy."""
    small = nr.compress(net, weights, data, **switches)
    full, part = (
        {e: np.asarray(w) for e, w in given.items()} for given in (weights, small.weights)
    )
    wide = nr.path_statistics(net.arch, data)
    narrow = nr.path_statistics(small.net.arch, small.data)
    for _ in range(3):
        wanted = loss(net.arch, data, full)
        assert loss(small.net.arch, small.data, part) == pytest.approx(wanted, rel=1e-10)
        for edge, w in small.lift(part).items():
            np.testing.assert_allclose(w, full[edge], atol=1e-10 * (1 + np.abs(w).max()))
        full = {e: full[e] + 0.01 * v for e, v in wide.velocity(full).items()}
        part = {e: part[e] + 0.01 * v for e, v in narrow.velocity(part).items()}
    return small


def leaves(run: nr.Trajectory) -> list:
    return jax.tree.leaves((run.time, run.loss, run.values, run.final))


@pytest.mark.slow
@given(st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_random_graphs_gates_and_samples(seed):
    rng = np.random.default_rng(seed)
    case = wide_case(rng, samples=30) if seed % 2 else random_case(rng)
    assert_same_gradient(nr.GDLN(case.arch), case.weights, case.data)


def test_one_hidden_layer_keeps_inputs_and_outputs():
    net, data = chain(4, 200, 3)
    small = assert_same_gradient(net, net.init(KEY, 0.1), data)
    assert dict(small.net.arch.sizes) == {"x": 4, "h": 7, "y": 3}
    assert small.data.n_samples == 5  # four rows of the factor, and one for what is left
    assert small.summary == "50 → 5 samples, 204 → 11 neurons"


def test_inputs_of_low_rank_keep_their_rank():
    net, data = chain(6, 40, 2, rank=2)
    small = assert_same_gradient(net, net.init(KEY, 0.1), data)
    assert dict(small.net.arch.sizes) == {"x": 2, "h": 4, "y": 2}
    assert small.data.n_samples == 3


def test_either_compression_can_be_switched_off():
    net, data = chain(6, 40, 2, rank=2)
    weights = net.init(KEY, 0.1)
    narrow = assert_same_gradient(net, weights, data, samples=False)
    assert narrow.summary == "50 → 50 samples, 46 → 6 neurons"
    few = assert_same_gradient(net, weights, data, width=False)
    assert few.summary == "50 → 7 samples, 46 → 46 neurons"
    for edge, w in few.weights.items():  # the very same weights: a rotation would spoil Adam
        np.testing.assert_array_equal(w, weights[edge])
    neither = assert_same_gradient(net, weights, data, samples=False, width=False)
    assert neither.net is net and neither.data is data and neither.work == 1


@pytest.mark.slow
@given(st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_switches_on_random_graphs(seed):
    rng = np.random.default_rng(seed)
    case = wide_case(rng, samples=30) if seed % 2 else random_case(rng)
    for switch in ({"samples": False}, {"width": False}):
        assert_same_gradient(nr.GDLN(case.arch), case.weights, case.data, **switch)


def test_orthogonal_layers_shrink_and_gaussian_ones_do_not():
    net, data = chain(2, 40, 40, 3)
    orthogonal = assert_same_gradient(net, net.init(KEY, 0.5, "orthogonal"), data)
    assert orthogonal.net.arch.sizes["h1"] == orthogonal.net.arch.sizes["h2"] == 5
    gaussian = assert_same_gradient(net, net.init(KEY, 0.1), data)
    assert gaussian.net.arch.sizes["h1"] == 40


def test_a_trained_network_keeps_weak_directions_that_may_still_grow():
    net, data = chain(3, 20, 3)
    weights = net.init(KEY, 0.1)
    faint = {e: jnp.asarray(w).at[:, 0].mul(1e-9) for e, w in weights.items()}
    assert assert_same_gradient(net, faint, data).net.arch.sizes["h"] == 6


def test_a_float32_run_that_goes_on_still_learns_its_weak_modes(monkeypatch):
    monkeypatch.setattr(setup, "WORTHWHILE", 0.0)
    net = nr.GDLN(nr.Architecture.chain(2, 500, 2))
    x = np.repeat(np.eye(2, dtype=np.float32), 100, axis=0)
    data = nr.Dataset({"x": x}, {"y": x @ np.diag([20.0, 1.0]).astype(np.float32)})
    start = net.init(KEY, 1e-9, dtype=jnp.float32)
    first = nr.train(net, start, data, learning_rate=0.02, steps=250, record_every=250)
    ends = [
        nr.train(
            net, first.final, data, learning_rate=0.02, steps=5000, record_every=1000, compress=c
        )
        for c in (True, False)
    ]
    assert ends[0].settings["compression"] != "none"
    np.testing.assert_allclose(ends[0].loss, ends[1].loss, atol=1e-3)
    assert ends[0].loss[-1] < 1e-3


def test_low_rank_layers_shrink_to_their_rank():
    net, data = chain(3, 30, 30, 30, 2)
    rng = np.random.default_rng(0)
    weights = {
        e: rng.normal(size=(net.arch.sizes[t], 2)) @ rng.normal(size=(2, net.arch.sizes[s])) / 9
        for e, (s, t) in net.arch.edges.items()
    }
    small = assert_same_gradient(net, weights, data)
    assert [small.net.arch.sizes[h] for h in ("h1", "h2", "h3")] == [4, 4, 4]


@pytest.mark.parametrize("targets", [0.0, 1.0])
def test_inputs_that_are_all_zero(targets):
    net, _ = chain(3, 8, 2)
    data = nr.Dataset({"x": np.zeros((5, 3))}, {"y": np.full((5, 2), targets)})
    assert_same_gradient(net, net.init(KEY, 0.1), data)


def test_a_task_that_can_be_learned_leaves_no_loss():
    net, data = chain(3, 8, 2)
    x = np.asarray(data.x["x"])
    small = nr.compress(net, net.init(KEY), nr.Dataset({"x": x}, {"y": x[:, :2]}))
    assert small.data.n_samples == 3


def test_zero_weights_stay_where_they_are():
    net, data = chain(3, 20, 3)
    small = assert_same_gradient(net, net.init(KEY, 0.0), data)
    assert small.net.arch.sizes["h"] == 1


def test_precision_follows_the_weights():
    net, data = chain(4, 50, 3)
    narrow = nr.Dataset(
        {"x": np.asarray(data.x["x"], np.float32)}, {"y": np.asarray(data.y["y"], np.float32)}
    )
    small = nr.compress(net, net.init(KEY, 0.1, dtype=jnp.float32), narrow)
    assert {w.dtype for w in small.weights.values()} == {jnp.dtype("float32")}
    assert small.net.arch.sizes["h"] == 7


# ---- in train and flow --------------------------------------------------------------------------


@pytest.fixture
def worthwhile(monkeypatch):
    """Compress runs of any length, as only long ones are."""
    monkeypatch.setattr(setup, "WORTHWHILE", 0.0)
    net, data = chain(4, 60, 40, 3, samples=400)
    return net, net.init(KEY, 0.3, "orthogonal"), data


def test_train_records_full_width_weights_and_all_outputs(worthwhile):
    net, weights, data = worthwhile
    record = {"weights": True, "outputs": True, "norm": lambda w: jnp.sum(w["W2"] ** 2)}
    runs = [
        nr.train(
            net, weights, data, learning_rate=0.1, steps=40, record_every=20, record=record,
            compress=compress,
        )
        for compress in (True, False)
    ]  # fmt: skip
    assert runs[0].settings["compression"] == "400 → 5 samples, 104 → 22 neurons"
    assert runs[1].settings["compression"] == "none"
    for got, wanted in zip(*map(leaves, runs), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-11)


def test_flow_records_full_width_weights_and_stops_alike(worthwhile):
    net, weights, data = worthwhile
    ends = [
        nr.flow(
            net, weights, data, times=[0, 5, 400], record={"weights": True},
            until=nr.dynamics.Until(stationary=1e-4), compress=compress,
        )
        for compress in (True, False)
    ]  # fmt: skip
    assert [end.settings["stopped"] for end in ends] == ["stationary", "stationary"]
    np.testing.assert_allclose(ends[0].loss[:2], ends[1].loss[:2], atol=1e-8)
    np.testing.assert_allclose(
        ends[0].values["weights"]["W2"][1], ends[1].values["weights"]["W2"][1], atol=1e-6
    )
    assert ends[0].time[-1] == pytest.approx(ends[1].time[-1], rel=0.2)


def test_short_runs_and_relu_networks_are_left_alone(worthwhile, monkeypatch):
    _, weights, data = worthwhile
    relu = nr.ReLUNetwork((4, 60, 40, 3))
    run = nr.train(relu, weights, data, learning_rate=0.01, steps=5)
    assert run.settings["compression"] == "none"
    monkeypatch.undo()
    net, data = chain(2, 8, 1)
    run = nr.train(net, net.init(KEY), data, learning_rate=0.01, steps=5)
    assert run.settings["compression"] == "none"


def test_gates_of_every_neuron_are_not_split_apart(worthwhile):
    net, weights, data = worthwhile
    gates = np.random.default_rng(0).integers(0, 2, (400, 60)).astype(float)
    run = nr.train(net, weights, data.gated({"h1": gates}), learning_rate=0.01, steps=2)
    assert run.settings["compression"] == "none"


def test_gates_of_groups_of_neurons_are(worthwhile):
    net, weights, data = worthwhile
    gates = np.repeat(np.arange(400)[:, None] % 2 == [0, 1], 30, axis=1).astype(float)
    gated = data.gated({"h1": gates})
    runs = [
        nr.train(net, weights, gated, learning_rate=0.1, steps=30, record_every=30, compress=c)
        for c in (True, False)
    ]
    assert runs[0].settings["compression"] != "none"
    for got, wanted in zip(*map(leaves, runs), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-11)


# ---- errors -------------------------------------------------------------------------------------


def test_a_relu_network_cannot_be_compressed():
    net = nr.ReLUNetwork((2, 8, 1))
    data = nr.Dataset({"x": [[1.0, 1.0]]}, {"y": [[1.0]]})
    with refuses("net"):
        nr.compress(net, net.init(KEY), data)


def test_weights_that_are_not_finite_are_refused():
    net, data = chain(2, 8, 1)
    with refuses("W1"):
        nr.compress(net, {"W1": np.full((8, 2), np.nan), "W2": np.ones((1, 8))}, data)


def test_samples_that_all_differ_in_gates_cost_no_more_than_their_number():
    """In calls of functions and in memory, which no other process changes."""

    def cost(samples):
        rng, calls = np.random.default_rng(0), 0
        x = rng.normal(size=(samples, 3))
        data = nr.Dataset({"x": x}, {"y": x[:, :1]}, gates={"h": rng.uniform(size=samples)})
        net = nr.GDLN(nr.Architecture.chain(3, 5, 1))
        weights = net.init(KEY)

        def count(*_):
            nonlocal calls
            calls += 1

        tracemalloc.start()
        sys.setprofile(count)
        assert nr.compress(net, weights, data).data.n_samples == samples
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return np.array([calls, peak])

    cost(500)  # compiles
    assert (cost(4000) < 16 * cost(500)).all()  # squared it would be 64
