"""The routing task of NRR §4 and its pathway networks."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace import tasks


def paths_on(arch, data):
    """g_p of every path: (paths, N)."""
    gates = data.gates
    rows = []
    for path in arch.paths():
        nodes = [path.source, *(arch.edges[e][1] for e in path.edges)]
        rows.append(np.prod([gates.get(name, np.ones(data.n_samples)) for name in nodes], axis=0))
    return np.stack(rows)


@given(st.data())
def test_circulant_routes_have_k_in_every_row_and_column(data):
    M = data.draw(st.integers(1, 20))
    K = data.draw(st.integers(1, M))
    routes = tasks.circulant_routes(M, K)
    assert (routes.sum(axis=0) == K).all() and (routes.sum(axis=1) == K).all()
    for i in range(1, M + 1):  # input i with outputs i − 1 … i + K − 2, counted from 1
        wanted = {(j - 1) % M for j in range(i - 1, i + K - 1)}
        assert set(np.flatnonzero(routes[i - 1]).tolist()) == wanted


def test_trained_and_untrained_routes_are_all_routes():
    trained, untrained = tasks.routing(M=7, K=4)
    assert trained.n_samples == 7 * 4 * 4 and untrained.n_samples == 7 * 3 * 4
    routes = [
        set(zip(d.labels["input"].tolist(), d.labels["output"].tolist(), strict=True))
        for d in (trained, untrained)
    ]
    assert not routes[0] & routes[1]
    assert routes[0] | routes[1] == {(i, j) for i in range(1, 8) for j in range(1, 8)}


def test_each_sample_shows_and_wants_its_route_alone():
    trained, _ = tasks.routing()
    y = tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0))
    for n in range(trained.n_samples):
        i, j, item = (int(trained.labels[name][n]) for name in ("input", "output", "item"))
        for domain in range(1, 8):
            shown = np.eye(4)[item - 1] if domain == i else np.zeros(4)
            np.testing.assert_array_equal(trained.x[f"x{domain}"][n], shown)
            wanted = y[:, item - 1] if domain == j else np.zeros(7)
            np.testing.assert_array_equal(trained.y[f"y{domain}"][n], wanted)


def test_pathway_correlations_are_those_of_nrr_equations_11_and_12():
    M, K = 5, 2
    arch, data = tasks.routing_pathways(tasks.routing(M, K)[0])
    base = tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0))
    routes = tasks.circulant_routes(M, K)
    for i in range(M):
        for j in range(M):
            gate = data.gates[f"x{i + 1}"] * data.gates[f"y{j + 1}"] / data.n_samples
            x, y = data.x[f"x{i + 1}"], data.y[f"y{j + 1}"]
            trained = routes[i, j] / (K * M)
            np.testing.assert_allclose((y * gate[:, None]).T @ x, trained * base / 4)
            np.testing.assert_allclose((x * gate[:, None]).T @ x, trained * np.eye(4) / 4)
    np.testing.assert_array_equal(paths_on(arch, data).sum(axis=0), 1)


def test_all_routes_trained_leave_none():
    trained, untrained = tasks.routing(M=3, K=3)
    assert untrained is None and trained.n_samples == 36


def test_given_routes():
    pairs = [(1, 2), (3, 1)]
    matrix = np.zeros((3, 3), bool)
    matrix[0, 1] = matrix[2, 0] = True
    for routes in (pairs, matrix):
        trained, untrained = tasks.routing(M=3, routes=routes)
        assert trained.labels["input"].tolist() == [1] * 4 + [3] * 4
        assert trained.labels["output"].tolist() == [2] * 4 + [1] * 4
        assert untrained.n_samples == 7 * 4


def test_given_base():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    trained, _ = tasks.routing(M=2, K=1, base=(x, y))
    assert trained.x["x2"].shape == (10, 3) and trained.y["y1"].shape == (10, 2)
    np.testing.assert_array_equal(trained.x["x1"][:5], x)
    arch, _ = tasks.routing_pathways(trained, hidden=6)
    assert (arch.sizes["x1"], arch.sizes["h"], arch.sizes["y2"]) == (3, 6, 2)


def test_gates_hide_distractors():
    plain, _ = tasks.routing(M=4, K=2)
    busy, _ = tasks.routing(M=4, K=2, distractors=True, key=0)
    assert all((busy.x[f"x{i}"].sum(axis=1) == 1).all() for i in range(1, 5))
    arch, plain = tasks.routing_pathways(plain, hidden=5)
    _, busy = tasks.routing_pathways(busy, hidden=5)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), scale=0.5)
    outputs = net(weights, plain), net(weights, busy)
    for j in range(1, 5):
        np.testing.assert_allclose(outputs[0][f"y{j}"], outputs[1][f"y{j}"], atol=1e-12)


@pytest.mark.parametrize("P", [None, 9, 4, 1, 36])
def test_every_sharing_has_just_the_samples_route_on(P):
    for data in tasks.routing(M=6, K=2):
        arch, gated = tasks.routing_pathways(data, P=P, hidden=3)
        on = paths_on(arch, gated)
        assert (on.sum(axis=0) == 1).all()
        paths = arch.paths()
        for n, p in enumerate(on.argmax(axis=0)):
            assert paths[p].source == f"x{data.labels['input'][n]}"
            assert paths[p].target == f"y{data.labels['output'][n]}"
        net = nr.GDLN(arch)
        loss = net.loss(net.init(jax.random.key(0), scale=0.0), gated)
        assert float(loss) == pytest.approx(244 / 4 / 2)


def test_a_hundred_domains_have_all_their_routes():
    trained, untrained = tasks.routing(M=100, K=40)
    arch, data = tasks.routing_pathways(trained)
    assert (trained.n_samples, untrained.n_samples) == (16_000, 24_000)
    assert arch.path_count() == 10_000 and len(data.gates) == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"M": 0}, "M"),
        ({"K": 0}, "K"),
        ({"M": 3, "K": 4}, "(?s)K = 4, M = 3.*1 ≤ K ≤ M.*K=3 trains every route"),
        ({"routes": np.ones((3, 3), bool)}, r"(?s)shape \(3, 3\) of dtype bool.*shape \(7, 7\)"),
        ({"routes": np.zeros((7, 7), bool)}, "(?s)these are not routes.*no route"),
        ({"routes": [(0, 1)]}, "(?s)pairs of 0 … 1.*in 1 … 7"),
        ({"routes": [(1, 8)]}, "(?s)pairs of 1 … 8"),
        ({"base": (np.eye(4), np.ones((7, 4)))}, r"(?s)same items.*\(4, 4\) and \(7, 4\)"),
    ],
)
def test_what_is_impossible_says_so(options, message):
    with pytest.raises(nr.NeuralRaceError, match=message):
        tasks.routing(**options)


def test_routing_pathways_need_a_routing_task():
    with pytest.raises(nr.NeuralRaceError, match="needs the label 'input'"):
        tasks.routing_pathways(tasks.xor())
    lost = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}, labels={"input": [1], "output": [1]})
    with pytest.raises(nr.NeuralRaceError, match="this is not a routing task"):
        tasks.routing_pathways(lost)
    with pytest.raises(nr.NeuralRaceError, match="routes cannot be shared this way"):
        tasks.routing_pathways(tasks.routing()[0], P=4)
