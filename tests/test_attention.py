"""Linear attention as a gated network, and in-context regression."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from tests.test_errors import refuses

TURN = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
COVARIANCE = TURN @ np.diag([0.5, 0.3, 0.2]) @ TURN.T


def attention_layer(weights, heads, tokens):
    """Σ_i V_i Z Zᵀ K_iᵀ Q_i z_q / N on tokens (x_n, y_n), the last of them the query (x_q, 0)."""
    dim = len(tokens) - 1
    total = np.zeros(dim + 1)
    for i in range(1, heads + 1):
        key = np.hstack([weights[f"k{i}"], np.zeros((len(weights[f"k{i}"]), 1))])
        query = np.stack([np.asarray(weights[f"q{i}_{d}"])[0] for d in range(1, dim + 1)], 1)
        query = np.hstack([query, np.zeros((len(query), 1))])
        value = np.zeros((dim + 1, dim + 1))
        value[dim, dim] = weights[f"v{i}"][0, 0]
        scores = (key @ tokens).T @ (query @ tokens[:, -1])
        total += value @ tokens @ scores / (tokens.shape[1] - 1)
    return total[dim]


@pytest.mark.parametrize(("heads", "rank"), [(1, 1), (3, 1), (2, 2)])
def test_the_graph_is_an_attention_layer(heads, rank):
    rng = np.random.default_rng(heads + rank)
    net = nr.GDLN(nr.Architecture.linear_attention(3, heads, rank))
    weights = {e: rng.normal(size=shape) for e, shape in net.shapes.items()}
    contexts, maps, queries = (rng.normal(size=s) for s in ((6, 7, 3), (6, 3), (6, 3)))
    y = np.einsum("snd,sd->sn", contexts, maps)
    beta = np.einsum("sn,snd->sd", y, contexts) / 7
    gates = {f"q{i}_{d}": queries[:, d - 1] for i in range(1, heads + 1) for d in (1, 2, 3)}
    data = nr.Dataset({"beta": beta}, {"y": np.zeros((6, 1))}, gates)
    for s in range(6):
        tokens = np.vstack([contexts[s].T, y[s]])
        tokens = np.hstack([tokens, np.append(queries[s], 0.0)[:, None]])
        expected = attention_layer(weights, heads, tokens)
        assert float(net(weights, data)["y"][s, 0]) == pytest.approx(expected, abs=1e-12)


def test_the_population_is_that_of_many_sequences():
    """Losses of random weights; the difference is a few standard errors of the samples."""
    count, heads = 20_000, 2
    arch = nr.Architecture.linear_attention(3, heads)
    net, weights = nr.GDLN(arch), nr.GDLN(arch).init(0, scale=0.8)
    population = nr.tasks.in_context_regression(COVARIANCE, 5, heads=heads)
    drawn = nr.tasks.in_context_regression(COVARIANCE, 5, heads=heads, samples=count, key=1)
    assert population.is_population and not drawn.is_population
    outputs, targets = np.asarray(net(weights, drawn)["y"]), drawn.y["y"]
    each = ((outputs - targets) ** 2).sum(axis=1) / 2
    apart = each.mean() - float(net.loss(weights, population))
    assert abs(apart) < 5 * each.std() / np.sqrt(count)
    zero = jax.tree.map(np.zeros_like, weights)
    assert float(net.loss(zero, population)) == pytest.approx(np.trace(COVARIANCE) / 2)


def test_merged_heads_are_a_network_of_two_layers():
    """On the features β x_qᵀ; the weights move alike."""
    heads, dim = 3, 3
    arch = nr.Architecture.linear_attention(dim, heads, merged=True)
    data = nr.tasks.in_context_regression(COVARIANCE, 4, heads=heads, samples=300, key=0)
    net = nr.GDLN(arch)
    weights = net.init(3, scale=0.1)
    features = [data.x["beta"] * data.gates[f"q1_{d}"][:, None] for d in range(1, dim + 1)]
    plain = nr.Dataset({"x": np.concatenate(features, axis=1)}, data.y)
    two = nr.GDLN(nr.Architecture.chain(dim**2, heads, 1))
    rows = [
        np.concatenate([weights[f"q{i}_{d}"] for d in range(1, dim + 1)], axis=1)
        for i in range(1, heads + 1)
    ]
    values = np.concatenate([weights[f"v{i}"] for i in range(1, heads + 1)], axis=1)
    start = {"W1": np.concatenate(rows), "W2": values}
    merged = nr.train(net, weights, data, learning_rate=0.2, steps=500, record_every=10)
    layers = nr.train(two, start, plain, learning_rate=0.2, steps=500, record_every=10)
    assert np.abs(merged.loss - layers.loss).max() < 1e-10 * merged.loss[0]
    assert merged.loss[-1] < 0.8 * merged.loss[0]


def test_a_balanced_head_follows_its_equation_to_its_plateau():
    lam, length = np.array([0.4, 0.3, 0.2, 0.1]), 31
    data = nr.tasks.in_context_regression(np.diag(lam), length, heads=1)
    net = nr.GDLN(nr.Architecture.linear_attention(4, 1))
    weights = {e: np.zeros(shape) for e, shape in net.shapes.items()}
    weights["k1"][0, 1] = weights["q1_2"][0, 0] = weights["v1"][0, 0] = 0.05
    run = nr.flow(net, weights, data, times=np.linspace(0, 800, 9), record={"weights": True})
    v = run.values["weights"]["v1"][:, 0, 0]
    s, d = 0.3**2, 0.3**3 * (1 + (1 + lam.sum() / 0.3) / length)
    from scipy.integrate import solve_ivp

    exact = solve_ivp(
        lambda t, v: s * v**2 - d * v**5, (0, 800), [0.05], t_eval=run.time, rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(v, exact.y[0], rtol=1e-6)
    assert 2 * run.loss[-1] == pytest.approx(1 - 0.3 / (1 + (1 + 1 / 0.3) / length), abs=1e-6)


def test_bad_arguments():
    for name in ("dim", "heads", "rank"):
        with refuses(name):
            nr.Architecture.linear_attention(**{"dim": 2, "heads": 1, "rank": 1} | {name: 0})
    for covariance in ([[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.1], [0.2, 1.0]], [[0.0]], [[1.0, 0.0]]):
        with refuses("covariance"):
            nr.tasks.in_context_regression(covariance, 3)
    for name in ("length", "heads", "samples"):
        with refuses(name):
            nr.tasks.in_context_regression(np.eye(2), **{"length": 3} | {name: 0})
    with refuses("q2_1"):
        data = nr.tasks.in_context_regression(np.eye(2), 3, heads=2)
        nr.reduce(nr.Architecture.linear_attention(2, heads=1), data)


def test_sequences_are_learned_from_their_moments_as_by_the_network():
    data = nr.tasks.in_context_regression(np.diag([0.6, 0.4]), 5, heads=2, samples=50, key=0)
    net = nr.GDLN(nr.Architecture.linear_attention(2, 2))
    weights, times = net.init(1, scale=0.3), np.linspace(0, 200, 21)
    from papers.attention import plateaus

    found = plateaus.on_sequences(data, weights, times)
    np.testing.assert_allclose(found, nr.flow(net, weights, data, times=times).loss, atol=1e-8)
