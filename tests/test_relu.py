"""ReLU networks, and the gated networks they are at every moment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neuralrace as nr
from evidence.own.cases import random_architecture
from tests.test_errors import refuses, says

seeds = st.integers(0, 2**32 - 1)


def random_relu(seed: int, leak: float, bias: bool):
    """A ReLU network on a random graph with its weights and data."""
    rng = np.random.default_rng(seed)
    arch = random_architecture(rng)
    relu = nr.ReLUNetwork(arch, leak=leak, bias=bias)
    data = nr.Dataset(
        {v: rng.normal(size=(6, arch.sizes[v])) for v in arch.inputs},
        {v: rng.normal(size=(6, arch.sizes[v])) for v in arch.outputs},
        sample_weight=rng.uniform(0.1, 1, 6),
    )
    weights = {
        e: rng.normal(size=(relu.arch.sizes[t], relu.arch.sizes[s]))
        for e, (s, t) in relu.arch.edges.items()
    }
    return relu, weights, data


def by_recursion(relu: nr.ReLUNetwork, weights: dict, data: nr.Dataset) -> dict[str, np.ndarray]:
    """Every node's activity by following the edges backwards, a sample at a time."""

    def node(v: str, n: int) -> np.ndarray:
        if v in relu.arch.inputs:
            return np.asarray(data.x[v][n]) if v in data.x else np.ones(1)
        feeding = [(e, s) for e, (s, t) in relu.arch.edges.items() if t == v]
        z = np.sum([weights[e] @ node(s, n) for e, s in feeding], axis=0)
        return z if v in relu.arch.outputs else np.maximum(z, 0) + relu.leak * np.minimum(z, 0)

    return {v: np.stack([node(v, n) for n in range(data.n_samples)]) for v in relu.arch.sizes}


@given(seed=seeds, leak=st.sampled_from([0.0, 0.1, -1.0]), bias=st.booleans())
def test_forward_and_activity_equal_recursion(seed, leak, bias):
    relu, weights, data = random_relu(seed, leak, bias)
    wanted = by_recursion(relu, weights, data)
    for v, h in relu.responses(weights, data).items():
        np.testing.assert_allclose(h, wanted[v], rtol=1e-10, atol=1e-10)
    assert set(relu(weights, data)) == set(relu.arch.outputs)
    activity = relu.activity(weights, data)
    assert set(activity) == set(relu.arch.hidden)
    assert all(set(np.unique(slope)) <= {leak, 1.0} for slope in activity.values())


@settings(max_examples=8)
@given(seed=seeds, leak=st.sampled_from([0.0, 0.2]), bias=st.booleans())
def test_loss_and_gradient_are_those_of_the_gated_network(seed, leak, bias):
    relu, weights, data = random_relu(seed, leak, bias)
    net, frozen = nr.GDLN(relu.arch), data.gated(relu.activity(weights, data))
    loss, gradient = jax.jit(jax.value_and_grad(relu.loss))(weights, data)
    wanted_loss, wanted = jax.jit(jax.value_and_grad(net.loss))(weights, frozen)
    assert float(loss) == pytest.approx(float(wanted_loss), rel=1e-12)
    assert set(gradient) == set(wanted) == set(relu.arch.edges)
    for edge, g in wanted.items():
        np.testing.assert_allclose(gradient[edge], g, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("leak", [0.0, 0.25])
def test_slopes_by_hand_with_a_preactivation_of_exactly_zero(leak):
    relu = nr.ReLUNetwork((2, 3, 1), leak=leak)
    data = nr.Dataset({"x": [[1.0, 1.0], [2.0, -1.0]]}, {"y": [[0.0], [0.0]]})
    weights = {
        "W1": np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 0.0]]),
        "W2": np.array([[1.0, 10.0, 100.0]]),
    }
    activity = relu.activity(weights, data)["h"]
    np.testing.assert_array_equal(activity, [[leak, 1, leak], [1, 1, leak]])
    np.testing.assert_array_equal(
        relu(weights, data)["y"], [[20 - 100 * leak], [3 + 10 - 200 * leak]]
    )
    # a neuron at zero has the slope of one that is off, in the gradient too
    gradient = jax.grad(lambda w: relu(w, data)["y"][0, 0])(weights)
    np.testing.assert_array_equal(gradient["W1"][0], [leak, leak])


def test_activity_follows_the_precision_of_the_weights():
    relu = nr.ReLUNetwork((2, 3, 1), leak=0.1)
    data = nr.Dataset({"x": np.ones((2, 2), np.float32)}, {"y": np.ones((2, 1), np.float32)})
    for dtype in (jnp.float32, jnp.float64):
        weights = relu.init(jax.random.key(0), dtype=dtype)
        assert relu.activity(weights, data)["h"].dtype == dtype
        assert relu.loss(weights, data).dtype == dtype


def test_gates_of_the_data_are_ignored():
    relu, weights, data = random_relu(7, 0.0, True)
    gates = {name: np.zeros(6) for name in (*relu.arch.inputs[:1], *relu.arch.outputs, "elsewhere")}
    for v, h in relu(weights, data).items():
        np.testing.assert_array_equal(relu(weights, data.gated(gates))[v], h)
    loss, gradient = jax.value_and_grad(relu.loss)(weights, data.gated(gates))
    assert float(loss) == pytest.approx(float(relu.loss(weights, data)), rel=1e-14)
    assert any((np.asarray(g) != 0).any() for g in gradient.values())


def test_input_and_output_nodes_are_linear():
    relu = nr.ReLUNetwork(nr.Architecture.chain(2, 2))
    data = nr.Dataset({"x": [[-1.0, -2.0]]}, {"y": [[0.0, 0.0]]})
    np.testing.assert_array_equal(relu({"W1": np.eye(2)}, data)["y"], [[-1, -2]])
    assert relu.activity({"W1": np.eye(2)}, data) == {}


def test_a_leak_of_one_is_the_linear_network():
    relu, weights, data = random_relu(11, 1.0, False)
    for v, h in nr.GDLN(relu.arch)(weights, data).items():
        np.testing.assert_allclose(relu(weights, data)[v], h, rtol=1e-12, atol=1e-12)


def test_bias_is_an_input_clamped_to_one():
    relu = nr.ReLUNetwork((1, 2, 1), bias=True)
    assert relu == nr.ReLUNetwork(nr.Architecture.chain(1, 2, 1).with_bias())
    data = nr.Dataset({"x": [[1.0], [-1.0]]}, {"y": [[0.0], [0.0]]})
    weights = {
        "W1": np.array([[1.0], [-1.0]]),
        "W2": np.array([[1.0, 1.0]]),
        "bias_h": np.array([[0.5], [-3.0]]),
        "bias_y": np.array([[7.0]]),
    }
    np.testing.assert_array_equal(relu(weights, data)["y"], [[8.5], [7.0]])
    own = nr.Dataset({**data.x, "bias": [[0.0], [1.0]]}, data.y)
    np.testing.assert_array_equal(relu(weights, own)["y"], [[1.0], [7.0]])


def test_vmap_over_weights():
    relu = nr.ReLUNetwork((3, 5, 4, 2), leak=0.1, bias=True)
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(7, 3))}, {"y": rng.normal(size=(7, 2))})
    keys = jax.random.split(jax.random.key(0), 3)
    several = jax.vmap(relu.init)(keys)
    losses = jax.jit(jax.vmap(relu.loss, in_axes=(0, None)))(several, data)
    alone = [float(relu.loss(relu.init(key), data)) for key in keys]
    np.testing.assert_allclose(losses, alone, rtol=1e-12)


def test_sizes_or_architecture_and_content():
    arch = nr.Architecture.chain(2, 5, 1)
    assert nr.ReLUNetwork((2, 5, 1)) == nr.ReLUNetwork(arch)
    assert hash(nr.ReLUNetwork((2, 5, 1))) == hash(nr.ReLUNetwork(arch))
    assert nr.ReLUNetwork(arch) != nr.ReLUNetwork(arch, leak=0.1)
    assert nr.ReLUNetwork(arch) != nr.ReLUNetwork(arch, bias=True)
    assert jax.tree.leaves(nr.ReLUNetwork(arch)) == []


def test_the_leak_is_part_of_what_jit_compiles_for():
    loss = jax.jit(lambda net, w, d: net.loss(w, d))
    data = nr.Dataset({"x": [[1.0, -1.0]]}, {"y": [[3.0]]})
    weights = {"W1": np.array([[-1.0, 1.0]]), "W2": np.array([[1.0]])}
    assert float(loss(nr.ReLUNetwork((2, 1, 1)), weights, data)) == 4.5
    assert float(loss(nr.ReLUNetwork((2, 1, 1), leak=0.5), weights, data)) == 8.0


def test_bad_input():
    with refuses("leak"):
        nr.ReLUNetwork((2, 3, 1), leak=float("nan"))
    with says("a chain needs", got="(2,)", wanted="two or more sizes"):
        nr.ReLUNetwork((2,))
    with refuses("bias"):
        nr.ReLUNetwork(nr.Architecture.chain(2, 3, 1).with_bias(), bias=True)
    relu = nr.ReLUNetwork((2, 3, 1), bias=True)
    weights = relu.init(jax.random.key(0))
    data = nr.Dataset({"x": np.ones((4, 2))}, {"y": np.ones((4, 1))})
    with refuses("weights"):
        relu.activity({e: w for e, w in weights.items() if e != "bias_h"}, data)
    with refuses("weights"):
        relu.loss({**weights, "bias_h": weights["bias_h"][:, 0]}, data)
    with refuses("x"):
        relu(weights, nr.Dataset({"x": np.ones((4, 3))}, {"y": np.ones((4, 1))}))
