"""The gated network: forward pass, loss, gradient, initial weights, bad weights."""

import typing
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neuralrace as nr
from evidence.own.cases import Case, brute_force_outputs, random_case
from neuralrace import gdln
from neuralrace import weights as weights_room
from tests.test_errors import refuses, says

seeds = st.integers(0, 2**32 - 1)
CHAIN = nr.GDLN(nr.Architecture.chain(2, 3, 1))


def chain_data(n: int = 4, **more) -> nr.Dataset:
    rng = np.random.default_rng(n)
    return nr.Dataset({"x": rng.normal(size=(n, 2))}, {"y": rng.normal(size=(n, 1))}, **more)


def numpy_loss(case: Case) -> float:
    """Half the weighted mean of the squared distance, by loops."""
    outputs, data = brute_force_outputs(case), case.data
    weight = data.sample_weight if data.sample_weight is not None else np.ones(data.n_samples)
    total = 0.0
    for node, h in outputs.items():
        for n in range(data.n_samples):
            total += weight[n] * sum((data.y[node][n, i] - h[n, i]) ** 2 for i in range(h.shape[1]))
    return total / (2 * weight.sum())


# ---- forward and loss ---------------------------------------------------------------------------


@given(seeds)
def test_forward_and_loss_equal_brute_force_over_paths(seed):
    case = random_case(np.random.default_rng(seed))
    net = nr.GDLN(case.arch)
    found, wanted = net(case.weights, case.data), brute_force_outputs(case)
    assert set(found) == set(case.arch.outputs)
    for node, value in wanted.items():
        np.testing.assert_allclose(found[node], value, rtol=1e-10, atol=1e-10)
    assert float(net.loss(case.weights, case.data)) == pytest.approx(numpy_loss(case), rel=1e-10)


def test_hidden_shows_every_node_after_its_gate():
    data = chain_data(3, gates={"x": [1, 2, 0], "h": [[1, 0, 3]] * 3, "W2": [5, 1, 1]})
    weights = CHAIN.init(jax.random.key(0))
    activity = CHAIN.responses(weights, data)
    x = data.x["x"] * np.array([[1], [2], [0]])
    h = x @ np.asarray(weights["W1"]).T * np.array([1, 0, 3])
    np.testing.assert_allclose(activity["x"], x, rtol=1e-14)
    np.testing.assert_allclose(activity["h"], h, rtol=1e-14)
    y = h @ np.asarray(weights["W2"]).T * np.array([[5], [1], [1]])
    np.testing.assert_allclose(activity["y"], y, rtol=1e-14)


@pytest.mark.parametrize("name", ["x", "h", "y", "W1", "W2"])
def test_a_gate_anywhere_on_the_only_path_scales_the_output(name):
    weights = CHAIN.init(jax.random.key(0))
    gate = np.array([0.0, 1.0, -2.5, 3.0])
    plain = CHAIN(weights, chain_data())["y"]
    gated = CHAIN(weights, chain_data(gates={name: gate}))["y"]
    np.testing.assert_allclose(gated, gate[:, None] * plain, rtol=1e-13)
    assert float(gated[0, 0]) == 0.0


@pytest.mark.parametrize("name", ["x", "y"])
def test_gates_per_neuron_of_inputs_and_outputs(name):
    net = nr.GDLN(nr.Architecture.chain(3, 4, 2))
    rng = np.random.default_rng(0)
    x, size = rng.normal(size=(5, 3)), net.arch.sizes[name]
    gate = rng.normal(size=(5, size))
    data = nr.Dataset({"x": x}, {"y": np.zeros((5, 2))}, gates={name: gate})
    weights = net.init(jax.random.key(0))
    product = np.asarray(weights["W2"]) @ np.asarray(weights["W1"])
    wanted = (x * gate) @ product.T if name == "x" else (x @ product.T) * gate
    np.testing.assert_allclose(net(weights, data)["y"], wanted, rtol=1e-12)


def test_an_output_that_no_active_path_reaches_is_exactly_zero():
    arch = nr.Architecture.layered({"a": 2, "b": 2}, {"h": 3, "k": 3}, {"y": 2, "z": 2})
    net = nr.GDLN(arch)
    rng = np.random.default_rng(0)
    data = nr.Dataset(
        {v: rng.normal(size=(3, 2)) for v in "ab"},
        {v: np.ones((3, 2)) for v in "yz"},
        gates={"h": [0, 1, 0], "k_y": [0, 0, 0]},
    )
    weights = net.init(jax.random.key(0))
    outputs = net(weights, data)
    assert (np.asarray(outputs["y"][jnp.array([0, 2])]) == 0).all()
    assert (np.asarray(outputs["y"][1]) != 0).all()
    assert (np.asarray(outputs["z"]) != 0).all()
    gradient = jax.grad(net.loss)(weights, data)
    assert (np.asarray(gradient["k_y"]) == 0).all()
    assert np.abs(gradient["h_y"]).min() > 0


def test_all_gates_off_leaves_half_the_mean_square():
    data = chain_data(3, gates={"h": [0, 0, 0]}, sample_weight=[1, 2, 1])
    weights = CHAIN.init(jax.random.key(0))
    wanted = (np.array([0.25, 0.5, 0.25]) * data.y["y"][:, 0] ** 2).sum() / 2
    loss, gradient = jax.value_and_grad(CHAIN.loss)(weights, data)
    assert float(loss) == pytest.approx(wanted, rel=1e-14)
    assert all((np.asarray(g) == 0).all() for g in gradient.values())


def test_parallel_edges_add():
    arch = nr.Architecture({"x": 2, "y": 1}, {"a": ("x", "y"), "b": ("x", "y")})
    data = nr.Dataset({"x": [[1.0, 2.0]]}, {"y": [[0.0]]}, gates={"b": [10]})
    weights = {"a": np.array([[1.0, 0.0]]), "b": np.array([[0.0, 3.0]])}
    assert float(nr.GDLN(arch)(weights, data)["y"][0, 0]) == 61


def test_data_with_other_gates_and_other_samples_run_through_one_network():
    weights = CHAIN.init(jax.random.key(0))
    one, two = chain_data(3, gates={"h": [1, 0, 1]}), chain_data(8, gates={"W1": np.ones(8)})
    assert CHAIN(weights, one)["y"].shape == (3, 1)
    assert CHAIN(weights, two)["y"].shape == (8, 1)


# ---- transformations ----------------------------------------------------------------------------


@settings(max_examples=5)
@given(seeds)
def test_gradient_against_central_differences(seed):
    case = random_case(np.random.default_rng(seed))
    net = nr.GDLN(case.arch)
    weights = {e: 0.5 * w for e, w in case.weights.items()}
    gradient = jax.jit(jax.grad(net.loss))(weights, case.data)
    step = 1e-5
    rng = np.random.default_rng(seed)
    for edge, w in weights.items():
        spot = tuple(rng.integers(0, w.shape))
        sides = []
        for sign in (1, -1):
            moved = w.copy()
            moved[spot] += sign * step
            sides.append(numpy_loss(Case(case.arch, case.data, {**weights, edge: moved})))
        scale = max(1.0, abs(sides[0]))
        wanted = (sides[0] - sides[1]) / (2 * step)
        assert float(gradient[edge][spot]) == pytest.approx(wanted, rel=1e-6, abs=1e-8 * scale)


def test_vmap_over_weights_and_jit():
    case = random_case(np.random.default_rng(5))
    net = nr.GDLN(case.arch)
    keys = jax.random.split(jax.random.key(0), 2)
    several = jax.vmap(lambda key: net.init(key, scale=0.3))(keys)
    losses = jax.jit(jax.vmap(net.loss, in_axes=(0, None)))(several, case.data)
    outputs = jax.jit(jax.vmap(net, in_axes=(0, None)))(several, case.data)
    for i, key in enumerate(keys):
        weights = net.init(key, scale=0.3)
        for edge, w in weights.items():
            np.testing.assert_array_equal(several[edge][i], w)
        assert float(losses[i]) == pytest.approx(float(net.loss(weights, case.data)), rel=1e-12)
        for node, value in net(weights, case.data).items():
            np.testing.assert_allclose(outputs[node][i], value, rtol=1e-10, atol=1e-12)


# ---- precision ----------------------------------------------------------------------------------


@pytest.fixture
def fresh_warning():
    weights_room._warn_narrowed.cache_clear()
    yield
    weights_room._warn_narrowed.cache_clear()


@pytest.mark.parametrize("given_in", [np.float32, np.float64])
def test_the_precision_of_the_weights_is_followed(given_in, fresh_warning):
    two = nr.GDLN(nr.Architecture.layered({"x": 2}, {"h": 3}, {"y": 1, "z": 1}))
    data = nr.Dataset(
        {"x": np.ones((3, 2), given_in)},
        {v: np.ones((3, 1), given_in) for v in "yz"},
        gates={"h": np.ones(3)},
        sample_weight=[1, 2, 3],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in (jnp.float32, jnp.float64):
            weights = two.init(jax.random.key(0), dtype=dtype)
            assert all(w.dtype == dtype for w in weights.values())
            assert all(h.dtype == dtype for h in two.responses(weights, data).values())
            loss, gradient = jax.value_and_grad(two.loss)(weights, data)
            assert loss.dtype == dtype
            assert all(g.dtype == dtype for g in gradient.values())


def test_both_precisions_agree(fresh_warning):
    case = random_case(np.random.default_rng(3))
    net = nr.GDLN(case.arch)
    narrow = {e: np.float32(w) for e, w in case.weights.items()}
    with pytest.warns(UserWarning, match="float64 data"):
        loss = net.loss(narrow, case.data)
    assert float(loss) == pytest.approx(float(net.loss(case.weights, case.data)), rel=1e-4)
    assert float(loss) != float(net.loss(case.weights, case.data))


def test_narrowing_warns_once(fresh_warning):
    data, weights = chain_data(), CHAIN.init(jax.random.key(0), dtype=jnp.float32)
    with pytest.warns(UserWarning, match="float64 data is used in float32.*jax_enable_x64") as told:
        CHAIN.loss(weights, data)
    assert told[0].filename == __file__, "the line of the caller"
    CHAIN.loss(weights, data)  # a second warning would be an error here
    nr.ReLUNetwork((2, 3, 1)).loss(weights, data)


def test_the_warning_of_a_run_names_the_line_that_started_it(fresh_warning):
    data, weights = chain_data(), CHAIN.init(jax.random.key(0), dtype=jnp.float32)
    with pytest.warns(UserWarning, match="float64 data") as told:
        nr.train(CHAIN, weights, data, learning_rate=0.1, steps=1)
    assert told[0].filename == __file__


@pytest.mark.parametrize("bias", [False, True])
def test_no_warning_where_nothing_given_is_narrowed(bias, fresh_warning):
    relu = nr.ReLUNetwork((2, 3, 1), bias=bias)
    narrow = nr.Dataset({"x": np.ones((3, 2), np.float32)}, {"y": np.ones((3, 1), np.float32)})
    relu.loss(relu.init(jax.random.key(0), dtype=jnp.float32), narrow)
    relu.loss(relu.init(jax.random.key(0), dtype=jnp.float64), chain_data())
    assert weights_room._warn_narrowed.cache_info().currsize == 0


def test_integer_weights_do_not_round_the_data():
    weights = {"W1": np.ones((3, 2), int), "W2": np.ones((1, 3), int)}
    data = nr.Dataset({"x": [[0.25, 0.5]]}, {"y": [[0.0]]})
    assert float(CHAIN(weights, data)["y"][0, 0]) == 2.25


# ---- initial weights ----------------------------------------------------------------------------

WIDE = nr.GDLN(nr.Architecture.chain(300, 500, 200))


def test_gaussian_has_the_standard_deviation_asked_for():
    weights = WIDE.init(jax.random.key(0), scale=0.01)
    assert {e: w.shape for e, w in weights.items()} == {"W1": (500, 300), "W2": (200, 500)}
    for w in weights.values():
        assert float(w.std()) == pytest.approx(0.01, rel=0.01)
        assert abs(float(w.mean())) < 1e-4
        assert float((w**4).mean() / (w**2).mean() ** 2) == pytest.approx(3, rel=0.03)


def test_xavier_has_its_variance():
    weights = WIDE.init(jax.random.key(0), scale=0.5, kind="xavier")
    assert float(weights["W1"].var()) == pytest.approx(0.25 * 2 / 800, rel=0.02)
    assert float(weights["W2"].var()) == pytest.approx(0.25 * 2 / 700, rel=0.02)


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4), (1, 6)])
def test_orthogonal_has_equal_singular_values(sizes):
    net = nr.GDLN(nr.Architecture.chain(*sizes))
    w = net.init(jax.random.key(1), scale=0.7, kind="orthogonal")["W1"]
    values = np.linalg.svd(np.asarray(w), compute_uv=False)
    np.testing.assert_allclose(values, np.full(min(sizes), 0.7), rtol=1e-12)


def test_the_start_of_pytorch_is_uniform_with_the_bound_of_what_a_node_reads():
    relu = nr.ReLUNetwork((4, 500, 2), bias=True)
    weights = relu.init(0, scale=1.0, kind="torch")
    reads = {"h": 4, "y": 500}
    for edge, (_, target) in relu.arch.edges.items():
        values, bound = np.asarray(weights[edge]), 1 / np.sqrt(reads[target])
        assert np.abs(values).max() <= bound
        if values.size > 400:
            assert values.std() == pytest.approx(bound / np.sqrt(3), rel=0.1)


def test_orthogonal_has_no_preferred_sign():
    net = nr.GDLN(nr.Architecture.chain(2, 2))
    keys = jax.random.split(jax.random.key(0), 4000)
    draws = np.asarray(jax.vmap(lambda k: net.init(k, kind="orthogonal")["W1"])(keys))
    assert np.abs(draws.mean(axis=0)).max() < 0.05
    assert np.linalg.det(draws).mean() == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("kind", typing.get_args(gdln.InitKind))
def test_scales_by_edge(kind):
    key = jax.random.key(3)
    unit = CHAIN.init(key, kind=kind)
    each = CHAIN.init(key, scale={"W1": 0.25, "W2": 4.0}, kind=kind)
    np.testing.assert_allclose(each["W1"], 0.25 * unit["W1"], rtol=1e-15)
    np.testing.assert_allclose(each["W2"], 4.0 * unit["W2"], rtol=1e-15)
    assert all((np.asarray(w) == 0).all() for w in CHAIN.init(key, scale=0.0, kind=kind).values())


def test_weights_depend_on_the_key_and_not_on_the_order_of_the_edges():
    sizes = {"x": 2, "h": 3, "k": 3, "y": 1}
    edges = {"xh": ("x", "h"), "xk": ("x", "k"), "hy": ("h", "y"), "ky": ("k", "y")}
    backward = {e: edges[e] for e in reversed(edges)}
    one, two = nr.GDLN(nr.Architecture(sizes, edges)), nr.GDLN(nr.Architecture(sizes, backward))
    first, second = one.init(jax.random.key(0)), two.init(jax.random.key(0))
    assert tuple(first) == tuple(edges)
    assert tuple(second) == tuple(backward)
    for edge in edges:
        np.testing.assert_array_equal(first[edge], second[edge])
    assert not np.array_equal(first["xh"], first["xk"])
    assert not np.array_equal(first["xh"], one.init(jax.random.key(1))["xh"])


# ---- networks as values -------------------------------------------------------------------------


def test_networks_are_hashable_and_equal_by_content():
    arch = nr.Architecture.chain(2, 3, 1)
    assert nr.GDLN(arch) == CHAIN
    assert hash(nr.GDLN(arch)) == hash(CHAIN)
    assert nr.GDLN(arch) != nr.ReLUNetwork(arch)
    assert jax.tree.leaves(CHAIN) == []


def test_network_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        nr.Network(nr.Architecture.chain(2, 1))  # type: ignore[abstract]


# ---- bad input ----------------------------------------------------------------------------------


def test_weights_that_do_not_fit_the_graph():
    weights, data = CHAIN.init(jax.random.key(0)), chain_data()
    for ask in (CHAIN, CHAIN.loss, CHAIN.responses, jax.jit(CHAIN.loss)):
        with refuses("key"):
            ask({"W1": weights["W1"]}, data)
        with refuses("key"):
            ask({**weights, "W3": weights["W1"]}, data)
        with refuses("W1"):
            ask({**weights, "W1": weights["W1"].T}, data)


def test_weights_that_are_not_finite():
    weights = CHAIN.init(jax.random.key(0))
    weights_room.check_finite(weights)
    with refuses("weights"):
        weights_room.check_finite({**weights, "W2": weights["W2"].at[0, 1].set(jnp.nan)})
    with refuses("weights"):
        weights_room.check_finite({**weights, "W1": np.full((3, 2), np.inf)})
    jax.jit(weights_room.check_finite)(weights)


def test_bad_kinds_and_scales():
    key = jax.random.key(0)
    with refuses("kind"):
        CHAIN.init(key, kind="he")
    with refuses("scale"):
        CHAIN.init(key, scale={"W1": 1.0})
    with refuses("scale"):
        CHAIN.init(key, scale={"W1": 1.0, "W2": 1.0, "W3": 1.0})


def test_the_network_checks_the_data_it_meets():
    weights = CHAIN.init(jax.random.key(0))
    with refuses("gates"):
        CHAIN.loss(weights, chain_data(gates={"hh": np.ones(4)}))
    with refuses("x"):
        CHAIN(weights, nr.Dataset({"x": np.ones((4, 5))}, {"y": np.ones((4, 1))}))
    with refuses("gates"):
        jax.jit(CHAIN.loss)(weights, chain_data(gates={"W1": np.ones((4, 3))}))


class Forgetful(nr.Network):
    """A network that does not say what its outputs are."""

    def responses(self, weights, data):
        return {"h": jnp.zeros((data.n_samples, 1))}


def test_responses_without_an_output_node():
    net = Forgetful(CHAIN.arch)
    wanted = f"{CHAIN.arch.outputs[0]!r}"
    with says("lack output node", got="'h'", wanted=wanted, fix="every node"):
        net({}, chain_data())


class Short(nr.Network):
    """A network that forgot the shape of an edge."""

    @property
    def shapes(self):
        return {"W1": (3, 2)}

    def responses(self, weights, data):
        return nr.GDLN(self.arch).responses(weights, data)


def test_shapes_of_too_few_edges_are_refused_by_name():
    net = Short(CHAIN.arch)
    for use in (lambda: net.init(0), lambda: net.velocity(CHAIN.init(0), chain_data())):
        with pytest.raises(nr.NeuralRaceError, match="shapes"):
            use()
