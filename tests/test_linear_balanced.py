"""The λ-balanced solution, against integrated flow, the slides' formulas and its fixed points."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import neuralrace as nr
from tests.test_errors import refuses, says

SHAPES = [(4, 3, 5), (5, 3, 4), (4, 4, 4), (3, 3, 5), (5, 3, 3), (3, 6, 4), (6, 2, 6), (4, 9, 4)]
LAMBDAS = (-5.0, -1.0, -0.1, 0.0, 0.1, 1.0, 5.0)


def permitted(sizes, lam):
    inputs, hidden, outputs = sizes
    return hidden <= (outputs if lam > 0 else inputs if lam < 0 else hidden)


CASES = [(sizes, lam) for sizes in SHAPES for lam in LAMBDAS if permitted(sizes, lam)]


def make_case(sizes, lam, seed=0, variance=1.7):
    """A random task with white inputs of variance d, and unaligned balanced weights."""
    rng = np.random.default_rng(seed)
    inputs, _, outputs = sizes
    net = nr.GDLN(nr.Architecture.chain(*sizes))
    x = np.linalg.qr(rng.normal(size=(inputs, inputs)))[0] * np.sqrt(inputs * variance)
    data = nr.Dataset({"x": x}, {"y": 2 * rng.normal(size=(inputs, outputs))})
    scale = rng.uniform(0.05, 0.5, min(sizes))
    return net, nr.linear.balanced_weights(net, lam, scale=scale, key=seed), data


def correlations(data):
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    return y.T @ x / len(x), x.T @ x / len(x)


def integrated(weights, data, times, atol=1e-13):
    """The weights at the times, by an integrator on the gradient written out."""
    yx, xx = correlations(data)
    shapes = [weights["W1"].shape, weights["W2"].shape]
    cut = weights["W1"].size

    def velocity(t, flat):
        first, second = flat[:cut].reshape(shapes[0]), flat[cut:].reshape(shapes[1])
        error = yx - second @ first @ xx
        return np.concatenate([(second.T @ error).ravel(), (error @ first.T).ravel()])

    start = np.concatenate([weights["W1"].ravel(), weights["W2"].ravel()])
    span = (0, times[-1])
    found = solve_ivp(
        velocity, span, start, method="DOP853", t_eval=times, rtol=1e-12, atol=atol
    ).y.T
    return found[:, :cut].reshape(-1, *shapes[0]), found[:, cut:].reshape(-1, *shapes[1])


def slide(weights, data, lam, time):
    """QQᵀ by eqs 13–15 of the talk, the last term of eq. 15 corrected; inputs of unit variance."""
    yx, _ = correlations(data)
    outputs, inputs = yx.shape
    modes = min(inputs, outputs)
    U, s, Vt = np.linalg.svd(yx)
    V = Vt.T
    s_lam = np.sqrt(s**2 + lam**2 / 4)
    H = np.sign(lam) * np.sqrt((s_lam - s) / (s_lam + s))
    G = 1 / np.sqrt(1 + H**2)
    up, down = G + H * G, G - H * G
    first, second = weights["W1"], weights["W2"]
    Um, Vm, Uo, Vo = U[:, :modes], V[:, :modes], U[:, modes:], V[:, modes:]
    B = second.T @ (Um * up) + first @ (Vm * down)
    C = second.T @ (Um * down) - first @ (Vm * up)
    D = second.T @ Uo if outputs > inputs else first @ Vo
    rate = np.sign(outputs - inputs) * lam / 2
    grow, fall = np.exp(s_lam * time), np.exp(-s_lam * time)
    Z1 = (Vm * down * grow) @ B.T / 2 - (Vm * up * fall) @ C.T / 2
    Z2 = (Um * up * grow) @ B.T / 2 + (Um * down * fall) @ C.T / 2
    if outputs > inputs:
        Z2 = Z2 + Uo @ (np.exp(rate * time) * D.T)
    elif inputs > outputs:
        Z1 = Z1 + Vo @ (np.exp(rate * time) * D.T)
    last = time if rate == 0 else (np.exp(2 * rate * time) - 1) / (2 * rate)
    A = np.eye(len(first)) + (B * ((grow**2 - 1) / (4 * s_lam))) @ B.T
    A += -(C * ((fall**2 - 1) / (4 * s_lam))) @ C.T + last * D @ D.T
    Z = np.concatenate([Z1, Z2])
    return Z @ np.linalg.solve(A, Z.T)


def joint(run):
    """QQᵀ over time."""
    M = run.values["map"]
    top = np.concatenate([run.values["input_similarity"], M.swapaxes(1, 2)], axis=2)
    return np.concatenate([top, np.concatenate([M, run.values["output_similarity"]], axis=2)], 1)


# ---- against integration ------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "lam"), CASES, ids=str)
def test_against_an_integrator_and_the_mended_slide(sizes, lam):
    net, weights, data = make_case(sizes, lam)
    times = np.array([0.0, 0.4, 1.0, 2.5, 6.0])
    run = nr.linear.lambda_balanced(net, weights, data, times=times)
    first, second = integrated(weights, data, times)
    Q = np.concatenate([first.swapaxes(1, 2), second], axis=1)
    np.testing.assert_allclose(joint(run), Q @ Q.swapaxes(1, 2), atol=1e-8)
    losses = [float(net.loss({"W1": a, "W2": b}, data)) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(run.loss, losses, atol=1e-8)
    assert run.settings["lambda"] == pytest.approx(lam, abs=1e-12)

    net, weights, data = make_case(sizes, lam, variance=1.0)
    run = nr.linear.lambda_balanced(net, weights, data, times=times)
    for found, time in zip(joint(run)[:4], times[:4], strict=True):  # it loses digits later on
        np.testing.assert_allclose(found, slide(weights, data, lam, time), atol=1e-9)


def test_three_tasks_against_the_flow():
    net, weights, first = make_case((4, 3, 5), -0.4)
    tasks = [
        first,
        *(make_case((4, 3, 5), 0.0, seed=s, variance=v)[2] for s, v in ((1, 1), (2, 3))),
    ]
    times = np.linspace(0, 4, 9)
    run = nr.linear.task_sequence(net, weights, tasks, times=times)
    assert run.settings["changes"] == [4.0, 8.0]
    parts = []
    for data in tasks:
        start = parts[-1].final if parts else weights
        parts.append(
            nr.flow(net, start, data, times=times, rtol=1e-12, atol=1e-14, record={"weights": True})
        )
    whole = nr.join(*parts)
    assert np.abs(run.loss - whole.loss).max() <= 1e-8
    np.testing.assert_array_equal(run.time, whole.time)
    kept = whole.values["weights"]
    for k, data in enumerate(tasks):
        forgotten = [
            float(net.loss({e: kept[e][i] for e in kept}, data)) for i in range(len(run.time))
        ]
        assert np.abs(run.values["task_loss"][:, k] - forgotten).max() <= 1e-8
    assert run.values["task_loss"][-1, 0] > run.values["task_loss"][8, 0]


# ---- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "lam"), CASES, ids=str)
def test_the_fixed_point_at_a_late_time(sizes, lam):
    seed = next(s for s in range(20) if leads_to_the_minimum(*make_case(sizes, lam, s)[1:]))
    net, weights, data = make_case(sizes, lam, seed)
    run = nr.linear.lambda_balanced(net, weights, data, times=[1e4])
    yx, xx = correlations(data)
    U, s, Vt = np.linalg.svd(yx / xx[0, 0])
    best = (
        (U[:, : sizes[1]] * s[: sizes[1]]) @ Vt[: sizes[1]] if sizes[1] < len(s) else yx / xx[0, 0]
    )
    np.testing.assert_allclose(run.values["map"][0], best, atol=1e-9)


def leads_to_the_minimum(weights, data):
    """Whether no saddle lies on the way: Q₀ has all of the directions that grow the most."""
    yx, xx = correlations(data)
    d, (outputs, inputs), hidden = xx[0, 0], yx.shape, len(weights["W1"])
    lam = np.trace(weights["W2"].T @ weights["W2"] - weights["W1"] @ weights["W1"].T) / hidden
    half = d * lam / 2
    F = np.block([[-half * np.eye(inputs), yx.T], [yx, half * np.eye(outputs)]])
    top = np.linalg.eigh(F)[1][:, -min(hidden, inputs, outputs) :]
    Q = np.concatenate([weights["W1"].T, weights["W2"]])
    return np.linalg.svd(top.T @ Q, compute_uv=False)[-1] > 1e-6


@pytest.mark.parametrize("sizes", [(4, 3, 5), (4, 4, 4), (6, 2, 3)])
def test_continuous_through_zero(sizes):
    times = [0.0, 1.0, 3.0, 300.0]
    step = 1e-5
    runs = {}
    for lam in (-step, -1e-12, 0.0, 1e-12, step):
        net, weights, data = make_case(sizes, lam)
        runs[lam] = joint(nr.linear.lambda_balanced(net, weights, data, times=times))
    for near in (-1e-12, 1e-12):
        np.testing.assert_allclose(runs[near], runs[0.0], atol=1e-9)
    slopes = [(runs[step] - runs[0.0]) / step, (runs[0.0] - runs[-step]) / step]
    np.testing.assert_allclose(*slopes, atol=1e-2)


def test_a_zero_singular_value_decays_as_one_over_twice_the_time():
    net = nr.GDLN(nr.Architecture.chain(3, 3, 3))
    data = nr.Dataset({"x": np.sqrt(3) * np.eye(3)}, {"y": np.diag([3.0, 1.0, 0.0])})
    weights = nr.linear.balanced_weights(net, 0.0, scale=0.2, aligned_to=data)
    times = np.array([1.0, 10.0, 1e2, 1e4])
    left = nr.linear.lambda_balanced(net, weights, data, times=times).values["map"][:, 2, 2]
    np.testing.assert_allclose(np.abs(left), 0.2 / (1 + 2 * 0.2 * times), rtol=1e-9)
    assert abs(left[-1]) * 2e4 == pytest.approx(1, rel=1e-3)


def test_small_starts_follow_the_logistic_of_every_mode():
    s = np.array([3.0, 1.5])
    net = nr.GDLN(nr.Architecture.chain(2, 4, 2))
    data = nr.Dataset({"x": np.sqrt(2) * np.eye(2)}, {"y": np.sqrt(2) * np.diag(s)})
    weights = nr.linear.balanced_weights(net, 0.0, scale=1e-8, aligned_to=data)
    times = np.linspace(0.5, 12, 24)
    run = nr.linear.lambda_balanced(net, weights, data, times=times)
    wanted = s / (1 - (1 - s / 1e-8) * np.exp(-2 * s * times[:, None]))
    np.testing.assert_allclose(np.diagonal(run.values["map"], axis1=1, axis2=2), wanted, atol=1e-12)


def test_small_random_weights_through_the_balanced_ones_they_grow_into():
    net = nr.GDLN(nr.Architecture.chain(3, 8, 4))
    _, _, data = make_case((3, 8, 4), 0.0, seed=5)
    times = np.linspace(0, 20, 41)
    errors = []
    for scale in (1e-3, 1e-5):
        weights = {e: np.asarray(w) for e, w in net.init(jax.random.key(1), scale).items()}
        first, second = integrated(weights, data, times, atol=1e-12 * scale)
        grown = nr.linear.grown_weights(net, weights, data)
        assert nr.linear.balance(net, grown).deviation < 1e-8
        maps = nr.linear.lambda_balanced(net, grown, data, times=times).values["map"]
        errors.append(np.abs(maps - second @ first).max() / np.abs(maps).max())
    assert errors[1] < 0.02 * errors[0] and errors[0] < 1e-3  # in proportion to the weights


# ---- what is returned ---------------------------------------------------------------------------


@given(st.sampled_from(CASES), st.integers(0, 1000))
def test_the_flow_goes_on_from_where_it_was_left_and_keeps_its_balance(case, seed):
    net, weights, data = make_case(*case, seed)
    whole = nr.linear.lambda_balanced(net, weights, data, times=[1.0, 3.0, 50.0])
    half = nr.linear.lambda_balanced(net, weights, data, times=[1.0])
    rest = nr.linear.lambda_balanced(net, half.final, data, times=[2.0, 49.0])
    np.testing.assert_allclose(joint(rest)[0], joint(whole)[1], atol=1e-9)
    found = nr.linear.balance(net, whole.final)
    assert found.lam == pytest.approx(case[1], abs=1e-8) and found.deviation < 1e-8
    assert float(net.loss(whole.final, data)) == pytest.approx(whole.loss[-1], abs=1e-12)


def test_the_kernel_and_its_distance_by_derivatives_of_the_network():
    net, weights, data = make_case((3, 2, 4), 0.5)
    run = nr.linear.lambda_balanced(net, weights, data, times=[0.0, 0.5, 1.5])
    recorded = run.values["weights"]
    travelled = nr.analysis.kernel_travel(net, recorded, data)
    np.testing.assert_allclose(run.values["kernel_distance"], travelled, atol=1e-12)
    assert travelled[-1] > 0.05
    for edge, start in weights.items():
        np.testing.assert_allclose(recorded[edge][0], start, atol=1e-12)
        np.testing.assert_array_equal(recorded[edge][-1], run.final[edge])
    inputs = recorded["W1"].swapaxes(1, 2) @ recorded["W1"]
    np.testing.assert_allclose(inputs, run.values["input_similarity"], atol=1e-12)


@given(st.sampled_from(CASES), st.integers(0, 1000))
def test_balanced_weights_have_the_lambda_and_the_map_that_were_asked_for(case, seed):
    sizes, lam = case
    net, _, data = make_case(sizes, lam, seed)
    scale = np.sort(np.random.default_rng(seed).uniform(0, 1e-3, min(sizes)))[::-1]
    for aligned in (None, data):
        w = nr.linear.balanced_weights(net, lam, scale=scale, key=seed, aligned_to=aligned)
        conserved = w["W2"].T @ w["W2"] - w["W1"] @ w["W1"].T
        np.testing.assert_allclose(conserved, lam * np.eye(sizes[1]), atol=1e-12)
        start = w["W2"] @ w["W1"]
        np.testing.assert_allclose(
            np.linalg.svd(start, compute_uv=False)[: min(sizes)], scale, atol=1e-15
        )
    U, _, Vt = np.linalg.svd(correlations(data)[0])
    modes = min(sizes)
    wanted = (U[:, :modes] * scale) @ Vt[:modes]
    np.testing.assert_allclose(start, wanted, atol=1e-15)


def test_the_same_map_whatever_lambda():
    net = nr.GDLN(nr.Architecture.chain(3, 3, 3))
    maps = [w["W2"] @ w["W1"] for w in (nr.linear.balanced_weights(net, lam) for lam in (-2, 0, 2))]
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-15)
    np.testing.assert_allclose(maps[2], maps[1], atol=1e-15)


# ---- where it does not hold ---------------------------------------------------------------------


def test_sizes_that_do_not_permit_a_lambda():
    net = nr.GDLN(nr.Architecture.chain(6, 5, 4))
    with says(
        "do not permit λ = 0.5",
        got="6 inputs, 5 hidden, 4 outputs",
        wanted="hidden ≤ outputs for λ > 0",
        fix="4 hidden neurons or fewer, 5 outputs",
    ):
        nr.linear.balanced_weights(net, 0.5)
    net = nr.GDLN(nr.Architecture.chain(4, 5, 6))
    with says("do not permit λ = -1", got="5 hidden", wanted="hidden ≤ inputs", fix="or λ = 0"):
        nr.linear.balanced_weights(net, -1)
    for odd in (np.nan, np.inf, "big", [1.0], 1j):
        with refuses("lam"):
            nr.linear.balanced_weights(net, odd)
    for odd in (-1.0, np.nan, [1.0, 2.0], "a"):
        with refuses("scale"):
            nr.linear.balanced_weights(net, 0.0, scale=odd)
    with refuses("key"):
        nr.linear.balanced_weights(net, 0.0, key="a")


def test_weights_that_are_not_balanced_and_inputs_that_are_not_white():
    net, weights, data = make_case((4, 3, 5), 1.0)
    off = {"W1": weights["W1"] * [[1.0], [1.0], [1.1]], "W2": weights["W2"]}
    deviation = nr.linear.balance(net, off).deviation
    assert 1e-4 < deviation < 0.1
    with says(
        "not λ-balanced",
        got=f"deviation of {deviation:.3g}",
        wanted="up to 1e-06",
        fix="linear.grown_weights",
    ):
        nr.linear.lambda_balanced(net, off, data, times=[1.0])
    run = nr.linear.lambda_balanced(net, off, data, times=[1.0], tolerance=0.1)
    assert run.settings["balance_deviation"] == deviation
    stretched = np.asarray(data.x["x"]) @ np.diag([1.0, 1.0, 1.0, 1.1])
    coloured = nr.Dataset({"x": stretched}, data.y)
    d = np.array([1.0, 1.0, 1.0, 1.21])
    wanted = np.abs(d / d.mean() - 1).max()
    with says(
        "inputs are not white", got=f"deviation of {wanted:.3g}", wanted="d I", fix="nr.flow"
    ):
        nr.linear.lambda_balanced(net, weights, coloured, times=[1.0])
    run = nr.linear.lambda_balanced(net, weights, coloured, times=[1.0], tolerance=0.5)
    assert run.settings["whiteness_deviation"] == pytest.approx(wanted)
    assert run.loss[0] == pytest.approx(float(net.loss(run.final, coloured)), rel=1e-12)


def test_other_bad_input():
    net, weights, data = make_case((4, 3, 5), 1.0)
    for odd in ([-1.0, 1.0], [1.0, 1.0], [2.0, 1.0], [np.nan], []):
        with refuses("times"):
            nr.linear.lambda_balanced(net, weights, data, times=odd)
        with refuses("times"):
            nr.linear.task_sequence(net, weights, [data], times=odd)
    deep = nr.GDLN(nr.Architecture.chain(4, 3, 3, 5))
    with says("a chain of 2 edges", got="3 edges, 1 paths", wanted="of 2 edges", fix="chain("):
        nr.linear.lambda_balanced(deep, deep.init(jax.random.key(0)), data, times=[1.0])
    with refuses("net"):
        nr.linear.lambda_balanced(nr.ReLUNetwork((4, 3, 5)), weights, data, times=[1.0])
    with refuses("gates"):
        nr.linear.lambda_balanced(net, weights, data.gated({"h": [1, 1, 1, 0]}), times=[1.0])
    with refuses("weights"):
        bad = weights["W1"].copy()
        bad[0, 0] = np.nan
        nr.linear.lambda_balanced(net, {**weights, "W1": bad}, data, times=[1.0])


def test_sequences_that_make_no_sense():
    net, weights, data = make_case((4, 3, 5), 1.0)
    other = make_case((4, 3, 6), 1.0)[2]
    with refuses("tasks"):
        nr.linear.task_sequence(net, weights, [data, other], times=[0, 1])
    with refuses("tasks"):
        nr.linear.task_sequence(net, weights, [], times=[0, 1])
    with refuses("tasks"):
        nr.linear.task_sequence(net, weights, data, times=[0, 1])


@pytest.mark.parametrize("tolerance", [np.nan, -1.0, 0.0, np.inf])
def test_a_tolerance_that_is_no_positive_number_is_refused(tolerance):
    net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.eye(2)})
    weights = {"W1": np.diag([1.0, 2.0]), "W2": np.eye(2)}  # not balanced
    with refuses("tolerance"):
        nr.linear.lambda_balanced(net, weights, data, times=[0, 1], tolerance=tolerance)


@pytest.mark.parametrize(("sizes", "lam"), CASES[::3])
def test_one_long_step_is_many_short_ones(sizes, lam):
    """Out of a tiny start, over more than numbers can hold, to the end of learning."""
    net, _, data = make_case(sizes, lam, seed=3)
    weights = nr.linear.balanced_weights(net, lam, scale=1e-9, key=1)
    end = 400.0
    many = nr.linear.lambda_balanced(net, weights, data, times=np.linspace(0, end, 401))
    for times in ([end], [3.0, end], [250.0, end]):
        few = nr.linear.lambda_balanced(net, weights, data, times=times)
        for name in ("map", "input_similarity", "output_similarity"):
            a, b = few.values[name][-1], many.values[name][-1]
            np.testing.assert_allclose(a, b, atol=1e-9 * max(1.0, np.abs(b).max()))
    late = nr.linear.lambda_balanced(net, weights, data, times=[1e12])
    np.testing.assert_allclose(late.values["map"][-1], many.values["map"][-1], atol=1e-8)


def test_the_cost_does_not_grow_with_the_end(monkeypatch):
    from neuralrace.linear import exact

    net, weights, data = make_case((4, 3, 5), 0.1)
    calls = []
    step = exact.BalancedFlow._step
    monkeypatch.setattr(exact.BalancedFlow, "_step", lambda *a: calls.append(1) or step(*a))
    nr.linear.lambda_balanced(net, weights, data, times=[0.0, 1.0, 1e9])
    assert len(calls) == 2
