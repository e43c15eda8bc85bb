"""Learning times of chains against quadrature and their scaling, and of the modes of a run."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import neuralrace as nr
from tests.test_errors import refuses


@given(st.integers(1, 12), st.floats(0.3, 3), st.floats(0.3, 3), st.floats(0.1, 0.4))
def test_the_time_of_a_chain_by_quadrature(depth, s, d, start):
    end = (0.5 * s / d) ** (1 / depth)
    start = min(start, 0.9 * end)
    wanted, _ = quad(
        lambda b: 1 / (b ** (depth - 1) * (s - d * b**depth)), start, end, epsrel=1e-10
    )
    assert nr.linear.chain_time(depth, s=s, d=d, start=start) == pytest.approx(wanted, rel=1e-7)


def test_very_deep_chains_approach_their_limit():
    limit = 18 + np.log(19)  # of D t, where the limit for a₀ = 0.05 and s = d = 1 is one half
    half = nr.linear.deep_limit(limit, s=1.0, d=1.0, start=0.05, depth=1)
    assert half == pytest.approx(0.5)
    ratios = [
        D * nr.linear.chain_time(D, s=1.0, start=0.05 ** (1 / D)) / limit for D in (10, 100, 1000)
    ]
    np.testing.assert_allclose(ratios, [0.65, 0.96, 0.996], atol=5e-3)


def test_the_time_of_a_chain_is_that_of_the_closed_form():
    arch = nr.Architecture.chain(1, 1, 1, 1, 1)
    form = nr.reduce(arch, nr.Dataset({"x": [[1.0]]}, {"y": [[2.0]]})).closed_form(0.2)
    wanted = form.modes["mode1"].time_to(1.5)
    assert nr.linear.chain_time(4, s=2.0, start=0.2, fraction=0.75) == pytest.approx(wanted)


def test_each_further_edge_costs_what_the_leading_order_says():
    start = 1e-3
    times = {D: nr.linear.chain_time(D, s=2.0, start=start) for D in (3, 4, 5, 6)}
    for D, time in times.items():
        assert time == pytest.approx(nr.linear.leading_time(D, s=2.0, start=start), rel=0.01)
    for D in (4, 5, 6):
        ratio = times[D] / times[D - 1]
        assert ratio == pytest.approx((D - 3) / ((D - 2) * start), rel=0.01)


@pytest.mark.parametrize("sizes", [(3, 5, 4), (4, 3, 6, 5, 4), (2, 2)], ids=str)
def test_aligned_weights_are_balanced_and_aligned(sizes):
    rng = np.random.default_rng(0)
    net = nr.GDLN(nr.Architecture.chain(*sizes))
    data = nr.Dataset({"x": np.eye(sizes[0])}, {"y": rng.normal(size=(sizes[0], sizes[-1]))})
    strength = np.linspace(0.9, 0.5, min(sizes))
    weights = list(nr.linear.aligned_weights(net, data, strength, key=3).values())
    for before, after in itertools.pairwise(weights):
        np.testing.assert_allclose(after.T @ after, before @ before.T, atol=1e-12)
    product = np.linalg.multi_dot(weights[::-1]) if len(weights) > 1 else weights[0]
    U, _, Vt = np.linalg.svd(np.asarray(data.y["y"]).T)
    k = min(sizes)
    wanted = (U[:, :k] * strength ** len(weights)) @ Vt[:k]
    np.testing.assert_allclose(product, wanted, atol=1e-12)


def test_modes_of_an_aligned_run_cross_where_their_chains_do():
    s = np.array([3.0, 1.5, 0.7])
    x = np.sqrt(3) * np.eye(3)
    net, data = nr.GDLN(nr.Architecture.chain(3, 5, 3)), nr.Dataset({"x": x}, {"y": x * s})
    weights = nr.linear.aligned_weights(net, data, 0.01)
    run = nr.linear.lambda_balanced(net, weights, data, times=np.linspace(0, 20, 4001))
    half = lambda curves: nr.trajectory.crossing_time(run.time, curves.T, 0.5, rising=True)
    found = half(nr.linear.mode_strengths(run, data))
    wanted = [nr.linear.chain_time(2, s=value, start=0.01) for value in s]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    turned = nr.linear.mode_strengths(run, data, vectors=np.eye(3)[:, ::-1])
    np.testing.assert_allclose(half(turned), found[::-1])


def test_bad_input():
    with refuses("depth"):
        nr.linear.chain_time(0, s=1.0, start=0.1)
    with refuses("depth"):
        nr.linear.leading_time(2, s=1.0, start=0.1)
    for odd in ({"s": -1.0}, {"start": 0.9}, {"fraction": 1.0}, {"d": 0.0}):
        with refuses(*odd):
            nr.linear.chain_time(2, **({"s": 1.0, "start": 0.1} | odd))


def test_the_leading_time_is_for_positive_starts():
    with refuses("s"):
        nr.linear.leading_time(4, s=0.0, start=0.1)
    with refuses("start"):
        nr.linear.leading_time(4, s=1.0, start=-0.1)


def test_every_public_function_is_listed():
    assert {"chain_time", "deep_limit", "leading_time"} <= set(nr.linear.__all__)
