"""Activity patterns of one neuron: counts, witnesses, degenerate inputs, sampling."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import neuralrace as nr
from neuralrace.errors import NeuralRaceError
from tests.test_errors import refuses, says


def realised(found: nr.reln.Patterns, x: Any) -> bool:
    return bool(((found.weights @ x.T > 0) == found.on).all())


def feasible(on: np.ndarray, x: np.ndarray, off_below: float) -> bool:
    """Whether w·x ≥ 1 where on and ≤ off_below where off has a solution."""
    sign = np.where(on, -1.0, 1.0)
    limit = np.where(on, -1.0, off_below)
    free = [(None, None)] * x.shape[1]
    done = linprog(np.zeros(x.shape[1]), A_ub=sign[:, None] * x, b_ub=limit, bounds=free)
    return done.status == 0


def brute_force(x: np.ndarray, off_below: float) -> set[tuple[bool, ...]]:
    every = product((False, True), repeat=len(x))
    return {on for on in every if feasible(np.array(on), x, off_below)}


@pytest.mark.parametrize(("n", "d"), [(1, 3), (5, 2), (7, 3), (9, 4)])
def test_general_position_has_covers_number(n, d):
    x = np.random.default_rng(n).normal(size=(n, d))
    found = nr.reln.patterns(x)
    assert len(found) == 2 * sum(math.comb(n - 1, k) for k in range(d))
    assert len(np.unique(found.on, axis=0)) == len(found)
    assert realised(found, x)


@pytest.mark.parametrize(("n", "c", "count"), [(2, 2, 14), (3, 2, 46), (3, 3, 230), (4, 3, 1066)])
def test_items_and_contexts(n, c, count):
    x = nr.tasks.contextual(c, n, structures=np.eye(n), common=np.eye(n), joined=True).x["x"]
    found = nr.reln.patterns(x)
    assert len(found) == count
    assert realised(found, x)
    assert nr.reln.pattern_count(x) == (count, True)
    table = found.on.reshape(-1, c, n).astype(int)  # no two-by-two minor is a permutation matrix
    minor = table[:, :, None, :, None] * table[:, None, :, None, :]
    cross = (1 - table)[:, None, :, :, None] * (1 - table)[:, :, None, None, :]
    assert not (minor * cross).any()


@given(
    st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_degenerate_inputs_agree_with_brute_force(rows, bias, closed):
    """Small integers: repeated, opposite, vanishing and dependent inputs."""
    x = np.array(rows, float)
    found = nr.reln.patterns(x, bias=bias, closed=closed)
    full = np.hstack([x, np.ones((len(x), 1))]) if bias else x
    silent = ~full.any(axis=1)  # never on, and on no side of any boundary
    wanted = brute_force(full[~silent], 0.0 if closed else -1.0)
    assert {tuple(on) for on in found.on[:, ~silent]} == wanted
    assert len(found) == len(wanted)
    assert not found.on[:, silent].any()
    z = found.weights @ full.T
    size = np.linalg.norm(found.weights, axis=1)[:, None] * np.linalg.norm(full, axis=1)
    np.testing.assert_array_equal(z > 1e-9 * size, found.on)
    for on in found.on[:3]:
        assert nr.reln.is_implementable(on, x, bias=bias, closed=closed)


def test_inputs_far_from_the_origin_and_of_very_different_scales():
    line = [[1e5], [1e5 + 1], [1e5 + 2]]
    found = nr.reln.patterns(line, bias=True)
    assert len(found) == 6
    assert realised(found, np.hstack([line, np.ones((3, 1))]))
    assert nr.reln.is_implementable([1, 0, 0], line, bias=True)
    assert not nr.reln.is_implementable([0, 1, 0], line, bias=True)
    assert len(nr.reln.patterns([[1e6, 0.0], [0.0, 1e-6]])) == 4
    assert nr.reln.pattern_count([[1e6, 0.0], [0.0, 1e-6]]) == (4, True)
    near = [[1.0, 1.0 + 1e-6 * k] for k in range(5)]  # five lines, almost one
    assert len(nr.reln.patterns(near)) == 10
    small = [[1.0, 0.0], [0.0, 1.0], [1e-12, -1e-12]]
    assert len(nr.reln.patterns(small)) == len(nr.reln.patterns([[1, 0], [0, 1], [1, -1]])) == 6
    assert len(nr.reln.sample_patterns([[1e6, 0.0], [0.0, 1e-6]], count=9, draws=1000)) == 4


exponents = st.integers(-6, 6)


@given(
    st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=1, max_size=6),
    st.tuples(exponents, exponents),
    st.lists(exponents, min_size=6, max_size=6),
    st.booleans(),
)
def test_scales_and_origins_change_no_pattern(rows, columns, heights, closed):
    """Against brute force on the small integers from which the inputs are made."""
    x = np.array(rows, float)
    live = x.any(axis=1)
    wanted = brute_force(x[live], 0.0 if closed else -1.0)
    tall = 10.0 ** np.array(heights[: len(x)])[:, None]
    scaled = x * 10.0 ** np.array(columns) * tall
    found = nr.reln.patterns(scaled, closed=closed)
    assert {tuple(on) for on in found.on[:, live]} == wanted
    assert len(found) == len(wanted)
    for on in list(product((False, True), repeat=len(x)))[:: max(1, 2 ** len(x) // 8)]:
        asked = nr.reln.is_implementable(on, scaled, closed=closed)
        assert asked == (not np.array(on)[~live].any() and tuple(np.array(on)[live]) in wanted)
    full = np.hstack([x, np.ones((len(x), 1))])
    wanted = brute_force(full, 0.0 if closed else -1.0)
    moved = x * 10.0 ** np.array(columns) + 1e5 * 10.0 ** np.array(columns)[::-1].max()
    if np.abs(moved).max() < 1e9 * min(10.0 ** np.array(columns)):  # the offset drowns no column
        found = nr.reln.patterns(moved, bias=True, closed=closed)
        assert {tuple(on) for on in found.on} == wanted


def test_implementable_is_being_among_the_patterns():
    x = np.random.default_rng(3).normal(size=(6, 2))
    listed = {tuple(on) for on in nr.reln.patterns(x, bias=True)}
    every = list(product((False, True), repeat=6))
    assert 0 < len(listed) < len(every)
    assert {on for on in every if nr.reln.is_implementable(on, x, bias=True)} == listed


def test_repeats_that_differ_and_opposites_that_agree_are_not_implementable():
    x = [[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]
    assert nr.reln.is_implementable([1, 1, 0, 0], x)
    assert not nr.reln.is_implementable([1, 0, 0, 0], x)
    assert not nr.reln.is_implementable([1, 1, 1, 0], x)
    assert not nr.reln.is_implementable([1, 1, 0, 1], x)
    assert not nr.reln.is_implementable([0, 0, 0, 0], x)
    assert nr.reln.is_implementable([0, 0, 0, 0], x, closed=True)


def test_a_sample_says_how_many_there_are():
    x = nr.tasks.contextual(5, 8, joined=True).x["x"]
    some = nr.reln.sample_patterns(x, count=50, key=1)
    assert (len(some), some.complete, some.is_exact) == (50, False, True)
    assert some.bound == 117_437_746
    assert len(np.unique(some.on, axis=0)) == 50
    assert realised(some, x)
    assert "a sample: there are 117,437,746" in str(some)
    with refuses("X"):
        nr.reln.patterns(x)
    cloud = np.random.default_rng(0).normal(size=(12, 4))
    assert "there are at most 464" in str(nr.reln.sample_patterns(cloud, count=10))
    square = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert nr.reln.sample_patterns(square, count=10, draws=1000).complete


def test_the_attempt_is_given_up_at_the_limit():
    with refuses("limit"):
        nr.reln.patterns(np.random.default_rng(0).normal(size=(12, 4)), limit=100)


def test_bad_inputs():
    with says("must be a matrix", got="shape (3,)", wanted="(N, d)"):
        nr.reln.patterns([1.0, 2.0, 3.0])
    with pytest.raises(NeuralRaceError, match="finite"):
        nr.reln.patterns([[np.nan]])
    with refuses("pattern"):
        nr.reln.is_implementable([1, 0, 1], [[1.0], [2.0]])
    with refuses("pattern"):
        nr.reln.is_implementable([0.5, 1], [[1.0], [2.0]])


def test_a_pattern_and_inputs_in_the_wrong_order():
    X = nr.tasks.xor().x["x"]
    with refuses("pattern"):
        nr.reln.is_implementable(X, [0, 1, 1, 0])
