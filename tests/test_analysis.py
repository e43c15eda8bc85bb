"""What was learned: similarity, scaling, modes, alignment, tangent kernels."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace import analysis, tasks
from tests.test_errors import refuses, says

SEEDS = st.integers(0, 2**32 - 1)


def orthogonal(rng, n, k=None):
    return np.linalg.qr(rng.normal(size=(n, k or n)))[0]


@pytest.fixture(scope="module")
def routed():
    """A routing network, an ensemble of runs of it, and both datasets, gated."""
    trained, untrained = (
        tasks.routing_pathways(data, hidden=6) for data in tasks.routing(M=3, K=2) if data
    )
    net = nr.GDLN(trained[0])
    runs = nr.train_ensemble(
        net,
        trained[1],
        key=jax.random.key(0),
        seeds=2,
        scale=0.3,
        learning_rate=0.05,
        steps=40,
        record_every=20,
        record={"weights": True},
    )
    return net, runs, trained[1], untrained[1]


# ---- activity and similarity --------------------------------------------------------------------


def test_hidden_is_that_of_the_network_at_each_time(routed):
    net, runs, trained, _ = routed
    weights = runs.values["weights"]
    for node in ("h", "y1"):
        found = analysis.hidden(net, weights, trained, node)
        assert found.dtype == np.float64
        for seed, t in np.ndindex(found.shape[:2]):
            one = {edge: w[seed, t] for edge, w in weights.items()}
            np.testing.assert_allclose(
                found[seed, t], net.responses(one, trained)[node], atol=1e-13
            )
    final = analysis.hidden(net, runs.final, trained, "y1")
    np.testing.assert_allclose(final, found[:, -1], atol=1e-13)


def test_similarity_is_that_of_any_two_samples():
    h = np.random.default_rng(0).normal(size=(2, 3, 5, 4))
    pair = {
        "inner": lambda a, b: sum(x * y for x, y in zip(a, b, strict=True)),
        "cosine": lambda a, b: a @ b / np.sqrt((a @ a) * (b @ b)),
        "correlation": lambda a, b: np.corrcoef(a, b)[0, 1],
        "distance": lambda a, b: np.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True))),
    }
    for kind, function in pair.items():
        found = analysis.similarity(h, kind)
        assert found.shape == (2, 3, 5, 5)
        for s, t, n, m in np.ndindex(found.shape):
            assert found[s, t, n, m] == pytest.approx(function(h[s, t, n], h[s, t, m]), abs=1e-12)


def test_similarity_with_nothing_to_compare_is_nan():
    h = [[0.0, 0.0], [2.0, 2.0], [1.0, 3.0]]
    assert np.isnan(analysis.similarity(h, "cosine")[0]).all()
    assert np.isfinite(analysis.similarity(h, "cosine")[1:, 1:]).all()
    assert np.isnan(analysis.similarity(h, "correlation")).sum() == 8


def test_messages_of_activity_and_similarity(routed):
    net, runs, trained, _ = routed
    weights = runs.values["weights"]
    with refuses("node"):
        analysis.hidden(net, weights, trained, "h9")
    with refuses("net"):
        analysis.hidden(weights, net, trained, "y1")
    with refuses("data"):
        analysis.hidden(net, weights, (trained, None), "y1")
    edge, other = list(net.arch.edges)[:2]
    with says(f"lack edge {edge!r}", got=repr(other), wanted=repr(edge)):
        analysis.hidden(net, {e: w for e, w in weights.items() if e != edge}, trained, "y1")
    with refuses("weights"):
        analysis.hidden(net, [1.0], trained, "y1")
    with refuses("weights"):
        analysis.hidden(net, weights | {other: weights[other][:, 0]}, trained, "y1")
    with refuses("weights"):
        turned = np.swapaxes(weights["in1"], -1, -2)
        analysis.hidden(net, weights | {"in1": turned}, trained, "y1")
    broken = {e: w.copy() for e, w in weights.items()}
    broken[edge][0, 0, 0, 0] = np.nan
    with says(f"edge {edge!r} holds NaN", got="1 such", wanted="finite", fix="diverged"):
        analysis.hidden(net, broken, trained, "y1")
    with refuses("kind"):
        analysis.similarity(np.eye(2), "dot")
    with refuses("hidden"):
        analysis.similarity([1.0, 2.0])
    with refuses("hidden"):
        analysis.similarity({"h": np.eye(2)})


# ---- domains ------------------------------------------------------------------------------------


# ---- scaling ------------------------------------------------------------------------------------


@given(SEEDS)
def test_mds_keeps_the_distances_of_planar_points(seed):
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(6, 2))
    points = flat @ orthogonal(rng, 5, 2).T + rng.normal(size=5)
    distances = analysis.similarity(points, "distance")
    for found in (analysis.mds(points), analysis.mds(distances=distances)):
        assert found.positions.shape == (6, 2)
        np.testing.assert_allclose(
            analysis.similarity(found.positions, "distance"), distances, atol=1e-7
        )
        assert float(found.share) == pytest.approx(1)


def test_mds_moves_continuously_where_principal_axes_do_not():
    rng = np.random.default_rng(3)
    time = np.linspace(0, 1, 101)[:, None, None]
    a, b = rng.normal(size=(8, 2)) * [1.0, 0.4], rng.normal(size=(8, 2)) * [0.4, 1.0]
    points = ((1 - time) * a + time * b) @ orthogonal(rng, 6, 2).T  # the axes change places
    found = analysis.mds(np.stack([points, points[::-1]])).positions
    assert found.shape == (2, 101, 8, 2)
    speed = np.linalg.norm(np.diff(points, axis=0), axis=-1).max()
    step = np.linalg.norm(np.diff(found, axis=1), axis=-1)
    assert step.max() < 3 * speed
    alone = np.stack([analysis.mds(frame).positions for frame in points])
    assert np.linalg.norm(np.diff(alone, axis=0), axis=-1).max() > 10 * step.max()


def test_mds_tells_what_it_loses():
    points = np.diag([3.0, 2.0, 1.0])
    s = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    assert float(analysis.mds(points, dimensions=1).share) == pytest.approx(
        s[0] ** 2 / (s**2).sum()
    )
    impossible = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])  # no triangle
    assert float(analysis.mds(distances=impossible, dimensions=3).share) < 0.95
    wide = analysis.mds(points[:2], dimensions=3).positions
    assert wide.shape == (2, 3) and (wide[:, 2] == 0).all()


def test_mds_is_turned_towards_a_reference():
    rng = np.random.default_rng(4)
    reference = rng.normal(size=(5, 2))
    points = reference @ orthogonal(rng, 7, 2).T * np.array([0.5, 1.0])[:, None, None]
    found = analysis.mds(points, reference=reference).positions
    np.testing.assert_allclose(found[-1], reference - reference.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found[0], found[-1] / 2, atol=1e-12)


def test_messages_of_mds():
    with refuses("points"):
        analysis.mds()
    with refuses("distances"):
        analysis.mds(np.eye(2), distances=np.eye(2))
    with refuses("dimensions"):
        analysis.mds(np.eye(2), dimensions=0)
    for wrong in (-np.ones((2, 2)), np.ones((2, 3)), np.array([[0.0, 1.0], [2.0, 0.0]])):
        with says("not distances", got=f"shape {wrong.shape}", wanted="symmetric"):
            analysis.mds(distances=wrong)
    with refuses("reference"):
        analysis.mds(np.eye(2), reference=np.zeros((3, 2)))


# ---- modes --------------------------------------------------------------------------------------


def planted(rng, strengths, m=6, n=5, turn=0.0):
    """Σ_k s_k(t) u_k(t) v_k(t)ᵀ, vectors turning by `turn` over the run."""
    T, k = strengths.shape
    spin = rng.normal(size=(m, m))
    u, v = orthogonal(rng, m), orthogonal(rng, n)
    from scipy.linalg import expm

    left = [expm(turn * t / T * (spin - spin.T)) @ u for t in range(T)]
    return np.stack([x[:, :k] * s @ v[:, :k].T for x, s in zip(left, strengths, strict=True)])


@pytest.mark.parametrize("points", [40, 41])  # 41: the crossing falls on a recorded time
def test_singular_values_are_followed_through_crossings(points):
    t = np.linspace(0, 1, points)
    strengths = np.stack([1 + 2 * t, 3 - 2 * t, 0.5 + 0 * t, 0.2 + 0.6 * t], axis=1)
    rng = np.random.default_rng(5)
    weights = np.stack([planted(rng, strengths, turn=turn) for turn in (0.0, 0.1)])
    found = analysis.singular_values({"W1": weights}, modes=4)["W1"]
    wanted = strengths[:, np.argsort(-strengths[-1])]
    for run in found:
        np.testing.assert_allclose(run, wanted, atol=1e-12)
    by_order = np.linalg.svd(weights[0], compute_uv=False)[:, :4]
    assert np.abs(by_order - wanted).max() > 0.5  # sorting would have swapped them


def test_singular_values_are_followed_from_a_start_where_all_are_equal():
    t = np.linspace(0, 1, 30)[:, None]
    strengths = 0.2 + t * np.array([0.1, 3.0, 1.0, 1.0])
    weights = planted(np.random.default_rng(6), strengths, m=4, n=4)
    found = analysis.follow_modes(weights)
    np.testing.assert_allclose(found.values, strengths[:, [1, 2, 3, 0]], atol=1e-12)
    np.testing.assert_allclose(found.overlap, 1, atol=1e-9)


@given(SEEDS)
def test_followed_modes_make_up_the_matrices(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 6, size=2)
    weights = rng.normal(size=(2, 1, m, n)) + np.cumsum(0.1 * rng.normal(size=(2, 7, m, n)), axis=1)
    found = analysis.follow_modes(weights)
    again = (found.left * found.values[..., None, :]) @ np.swapaxes(found.right, -1, -2)
    np.testing.assert_allclose(again, weights, atol=1e-9)
    np.testing.assert_allclose(
        -np.sort(-found.values, axis=-1), np.linalg.svd(weights, compute_uv=False), atol=1e-9
    )


def test_a_mode_that_jumps_has_a_small_overlap():
    rng = np.random.default_rng(7)
    left, right = orthogonal(rng, 2), orthogonal(rng, 4)
    jump = [left @ np.diag([2.0, 1.0]) @ right[:, half].T for half in ([0, 1], [2, 3])]
    found = analysis.follow_modes(jump, modes=1)
    assert abs(found.overlap[0, 0]) < 1e-12 and found.overlap[1, 0] == 1
    single = analysis.singular_values(np.diag([1.0, 3.0]))
    np.testing.assert_allclose(single, [3, 1])


def test_projected_is_the_strength_of_given_modes():
    rng = np.random.default_rng(8)
    strengths = rng.uniform(1, 2, size=(3, 4))
    u, v = orthogonal(rng, 6)[:, :4], orthogonal(rng, 5)[:, :4]
    weights = np.einsum("mk,tk,nk->tmn", u, strengths, v)
    for bases in ((u, v), (u, None), (None, v)):
        np.testing.assert_allclose(analysis.projected(weights, *bases), strengths)


def test_messages_of_modes():
    with refuses("modes"):
        analysis.singular_values(np.ones((3, 2, 4)), modes=3)
    with refuses("weights"):
        analysis.singular_values([1.0, 2.0])
    with refuses("left"):
        analysis.projected(np.eye(2))
    with refuses("right"):
        analysis.projected(np.eye(2), right=np.ones((3, 2)))
    with refuses("right"):
        analysis.projected(np.eye(2), left=np.eye(2), right=np.ones((2, 1)))


# ---- alignment ----------------------------------------------------------------------------------


def test_decoupled_weights_are_aligned_and_random_ones_are_not(routed):
    net, _, trained, _ = routed
    race = nr.reduce(net.arch, trained)
    bases = {
        v: np.hstack([block.basis[v] for block in race.blocks])
        for v in (*net.arch.inputs, *net.arch.outputs)
    }
    start = race.solve(times=[0.0, 1.0], start=race.start(0.1))
    weights = race.weights(start, 0.0, jax.random.key(1))
    for share in analysis.alignment(net, weights, bases).values():
        assert float(share) == pytest.approx(1, abs=1e-9)
    rng = np.random.default_rng(9)
    noise = {e: np.stack([w, w + rng.normal(size=w.shape)]) for e, w in weights.items()}
    for share in analysis.alignment(net, noise, bases).values():
        assert share.shape == (2,)
        assert share[0] == pytest.approx(1, abs=1e-9) and share[1] < 0.8


def test_alignment_is_the_share_on_the_diagonal():
    rng = np.random.default_rng(10)
    u, v, r = orthogonal(rng, 4)[:, :2], orthogonal(rng, 5)[:, :2], orthogonal(rng, 6)[:, :2]
    net = nr.GDLN(nr.Architecture.chain(5, 6, 4))
    first = r @ np.diag([2.0, 1.0]) @ v.T
    second = u @ np.array([[3.0, 1.0], [0.0, 2.0]]) @ r.T
    outside = orthogonal(rng, 4)
    outside -= u @ (u.T @ outside)
    second = second + outside[:, :1] @ r[:, :1].T
    weights = {"W1": first, "W2": second}
    found = analysis.alignment(net, weights, {"x": v, "y": u})
    assert float(found["W1"]) == pytest.approx(1)
    assert float(found["W2"]) == pytest.approx((9 + 4) / (second**2).sum())
    blocks = analysis.alignment(net, weights, {"x": v, "y": u}, groups=[0, 0])
    assert float(blocks["W2"]) == pytest.approx((9 + 4 + 1) / (second**2).sum())
    assert float(analysis.diagonal_share(second, u, r)) == pytest.approx(float(found["W2"]))


def test_edges_of_opposite_sign_do_not_hide_a_direction():
    arch = nr.Architecture.parallel({"a": 2, "b": 2}, {"h": 3}, {"y": 2})
    w = np.eye(3, 2)
    weights = {"a_h": w, "b_h": -w, "h_y": w.T}
    found = analysis.alignment(nr.GDLN(arch), weights, dict.fromkeys("aby", np.eye(2)))
    for share in found.values():
        assert float(share) == pytest.approx(1)


def test_a_missing_basis_is_the_best_one():
    rng = np.random.default_rng(11)
    u, v = orthogonal(rng, 5)[:, :3], orthogonal(rng, 3)
    w = u @ np.diag([3.0, 2.0, 1.0]) @ v.T
    assert float(analysis.diagonal_share(w, right=v)) == pytest.approx(1)
    assert float(analysis.diagonal_share(w, left=u)) == pytest.approx(1)
    assert float(analysis.diagonal_share(w, right=orthogonal(rng, 3))) < 0.99
    assert np.isnan(analysis.diagonal_share(0 * w, right=v))


def test_messages_of_alignment():
    net = nr.GDLN(nr.Architecture.chain(2, 3, 2))
    weights = {"W1": np.ones((3, 2)), "W2": np.ones((2, 3))}
    good = {"x": np.eye(2), "y": np.eye(2)}
    with refuses("bases"):
        analysis.alignment(net, weights, {"x": np.eye(2)})
    with refuses("bases"):
        analysis.alignment(net, weights, np.eye(2))
    with refuses("x"):
        analysis.alignment(net, weights, good | {"x": np.eye(3)})
    with refuses("y"):
        analysis.alignment(net, weights, good | {"y": np.ones((2, 2))})
    with refuses("bases"):
        analysis.alignment(net, weights, good | {"y": np.eye(2)[:, :1]})
    with refuses("groups"):
        analysis.alignment(net, weights, good, groups=[0, 0, 1])
    with refuses("matrix"):
        analysis.diagonal_share(np.eye(2))
    with refuses("left"):
        analysis.diagonal_share(np.eye(2), np.eye(2)[:, :1], np.eye(2))


# ---- tangent kernels ----------------------------------------------------------------------------


def by_finite_differences(net, weights, data, step=1e-5):
    """J Jᵀ from central differences of the outputs, weight by weight."""

    def outputs(w):
        found = net(w, data)
        return np.concatenate([np.asarray(found[v]) for v in net.arch.outputs], axis=1).ravel()

    columns = []
    for edge, w in weights.items():
        for place in np.ndindex(w.shape):
            moved = [weights | {edge: w.copy()} for _ in range(2)]
            moved[0][edge][place] += step
            moved[1][edge][place] -= step
            columns.append((outputs(moved[0]) - outputs(moved[1])) / (2 * step))
    return np.stack(columns).T @ np.stack(columns)


def kernel_cases():
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    base = nr.Dataset({"x": x}, {"y": y, "z": y[:, :1]}, sample_weight=[1, 2, 3, 4])
    arch, gated = nr.pathways(base, {"a": None, "b": [1, 0, 1, 0.5]}, hidden=2)
    relu = nr.ReLUNetwork(nr.Architecture.parallel({"x": 3}, {"h": 4}, {"y": 2, "z": 1}), bias=True)
    return [(nr.GDLN(arch), gated), (relu, base)]


@pytest.mark.parametrize("case", [0, 1])
def test_tangent_kernel_agrees_with_finite_differences(case):
    net, data = kernel_cases()[case]
    draws = [net.init(jax.random.key(seed), scale=0.7) for seed in range(2)]
    draws = [{edge: np.asarray(w) for edge, w in draw.items()} for draw in draws]
    both = {edge: np.stack([draw[edge] for draw in draws]) for edge in draws[0]}
    found = analysis.tangent_kernel(net, both, data)
    assert found.shape == (2, 12, 12)
    for kernel, draw in zip(found, draws, strict=True):
        np.testing.assert_allclose(kernel, by_finite_differences(net, draw, data), atol=1e-7)


def test_tangent_kernel_drives_the_outputs():
    """d/dt of the outputs under gradient flow is K times what is lacking, weighted by sample."""
    net, data = kernel_cases()[0]
    weights = net.init(jax.random.key(3))
    _, moved = jax.jvp(lambda w: net(w, data), (weights,), (net.velocity(weights, data),))
    out = net(weights, data)
    flat = lambda by_node: np.concatenate([by_node[v] for v in net.arch.outputs], axis=1)
    lacking = flat({v: data.y[v] - out[v] for v in out}) * data.probability[:, None]
    kernel = analysis.tangent_kernel(net, weights, data)
    np.testing.assert_allclose(kernel @ lacking.ravel(), flat(moved).ravel(), atol=1e-12)


def test_kernel_distance():
    rng = np.random.default_rng(13)
    roots = rng.normal(size=(3, 4, 4))
    K = roots @ np.swapaxes(roots, -1, -2)
    found = analysis.kernel_distance(K[0], K * np.array([5.0, 1.0, 1e-6])[:, None, None])
    for k, distance in zip(K, found, strict=True):
        cosine = np.trace(K[0] @ k) / np.sqrt(np.trace(K[0] @ K[0]) * np.trace(k @ k))
        assert distance == pytest.approx(1 - cosine, abs=1e-14)
    assert found[0] == pytest.approx(0, abs=1e-14) and (found >= 0).all()
    apart = analysis.kernel_distance(np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))
    assert float(apart) == 1
    assert np.isnan(analysis.kernel_distance(np.eye(2), np.zeros((2, 2))))


def test_kernel_travel_is_the_distance_from_the_start(routed):
    net, runs, trained, _ = routed
    weights = runs.values["weights"]
    found = analysis.kernel_travel(net, weights, trained)
    K = analysis.tangent_kernel(net, weights, trained)
    np.testing.assert_allclose(found, analysis.kernel_distance(K[:, :1], K), atol=1e-12)
    assert (found[:, 0] == 0).all() or found[:, 0].max() < 1e-12
    assert found[:, -1].min() > 0.01


def test_messages_of_kernels(routed):
    net, runs, trained, _ = routed
    with says("different size", got="(2, 2) and (3, 3)", wanted="(…, n, n)"):
        analysis.kernel_distance(np.eye(2), np.eye(3))
    one = {edge: w[0] for edge, w in runs.final.items()}
    with refuses("weights"):
        analysis.kernel_travel(net, one, trained)
    with refuses("net"):
        analysis.tangent_kernel(one, net, trained)


def test_a_tangent_kernel_is_in_the_order_of_its_own_outputs():
    """Two graphs that differ in the order of their nodes are two graphs."""
    data = nr.Dataset({"x": [[1.0]]}, {"a": [[0.0]], "b": [[0.0]]})
    edges = {"xa": ("x", "a"), "xb": ("x", "b"), "xb2": ("x", "b")}
    weights = {edge: np.ones((1, 1)) for edge in edges}
    for first, second, diagonal in (("a", "b", [1, 2]), ("b", "a", [2, 1])):
        net = nr.GDLN(nr.Architecture({"x": 1, first: 1, second: 1}, edges))
        assert net.arch.outputs == (first, second)
        kernel = nr.analysis.tangent_kernel(net, weights, data)
        np.testing.assert_array_equal(np.diag(kernel), diagonal)
