"""Closed forms against the flow they claim to solve, and what is not one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import neuralrace as nr
from neuralrace.reduction.merging import MonomialRace, recognised
from neuralrace.reduction.mode_form import mode_form
from neuralrace.reduction.polynomial import PolynomialSystem
from tests.test_errors import refuses, says


def tabled(parts, velocity, errors) -> PolynomialSystem:
    """One table of powers and coefficients for polynomials that are given term by term."""
    rows = (*velocity, *errors)
    monomials = sorted({m for terms in rows for m in terms})
    column = {m: i for i, m in enumerate(monomials)}
    table = np.zeros((len(rows), len(monomials)))
    for k, terms in enumerate(rows):
        for m, c in terms.items():
            table[k, column[m]] = c
    keep = np.abs(table).max(axis=0) > 0
    powers = np.array(monomials, int).reshape(-1, len(parts))[keep]
    return PolynomialSystem(parts, powers, table[: len(parts), keep], table[len(parts) :, keep])


def single_path(
    powers: tuple[int, ...], rates: tuple[float, ...], S: float, D: float
) -> PolynomialSystem:
    """The equations db_k/dt = γ_k (M/b_k)(S − D M), written out term by term."""
    parts = tuple({f"W{k}": np.ones((1, 1))} for k in range(len(powers)))
    velocity = []
    for k, rate in enumerate(rates):
        low = tuple(n - (i == k) for i, n in enumerate(powers))
        high = tuple(2 * n - (i == k) for i, n in enumerate(powers))
        velocity.append({low: rate * S, high: -rate * D})
    errors = [{(0,) * len(powers): S / np.sqrt(D), powers: -np.sqrt(D)}]
    return tabled(parts, velocity, errors)


def integrated(system: PolynomialSystem, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The variables by an independent integrator."""
    done = solve_ivp(
        lambda t, b: system.velocity_at(b),
        (0, times[-1]),
        start,
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
        method="DOP853",
    )
    return done.y.T


CASES = [
    ((1,), (1.0,), (0.2,)),  # one edge
    ((2,), (0.7,), (0.1,)),  # two equal edges
    ((1, 1), (1.0, 0.3), (0.1, 0.4)),  # unbalanced
    ((1, 1), (1.0, 1.0), (0.5, -0.1)),  # starts with a negative strength: not solved
    ((3,), (1.0,), (0.3,)),
    ((2, 1), (1 / 7, 1.0), (0.2, 0.2)),  # routing
    ((1, 1, 1), (1 / 7, 1.0, 1 / 7), (0.2, 0.1, 0.3)),
    ((5,), (1.0,), (0.4,)),
]


@pytest.mark.parametrize(("powers", "rates", "start"), CASES)
def test_form_solves_the_equations(powers, rates, start):
    system = single_path(powers, rates, S=1.3, D=0.9)
    names = tuple(f"B{k + 1}" for k in range(len(powers)))
    form = mode_form(system, np.array(start), names)
    strength = np.prod(np.array(start) ** np.array(powers))
    if strength <= 0:
        assert form is None
        return
    assert form is not None
    times = np.linspace(0, 30, 61)
    b = integrated(system, np.array(start), times)
    np.testing.assert_allclose(form.value(times), np.prod(b ** np.array(powers), 1), rtol=1e-8)
    found = form.variables(times)
    for k, name in enumerate(names):
        np.testing.assert_allclose(found[name], b[:, k], rtol=1e-8)
    np.testing.assert_allclose(form.loss(times), system.loss_at(b), atol=1e-9)


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_time_to_inverts_value(powers, seed):
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.2, 1, len(powers))
    system = single_path(tuple(powers), tuple((rates / rates.max()).tolist()), S=1.0, D=1.0)
    start = rng.uniform(0.05, 0.6, len(powers))
    form = mode_form(system, start, tuple(f"B{k}" for k in range(len(powers))))
    assert form is not None
    values = form.initial + (form.final - form.initial) * np.array([0.05, 0.3, 0.7, 0.99])
    np.testing.assert_allclose(form.value(form.time_to(values)), values, rtol=1e-8)


def test_times_beyond_the_fixed_point_and_behind_the_start():
    form = mode_form(single_path((2,), (1.0,), 1.0, 0.5), np.array([0.1]), ("B1",))
    assert form is not None
    assert form.time_to(2.0) == np.inf
    assert form.time_to(5.0) == np.inf
    assert np.isnan(form.time_to(0.001))
    assert form.time_to(form.initial) == 0


def test_recognised_reads_powers_rates_and_statistics():
    found = recognised(single_path((2, 1), (1 / 7, 1.0), 2.0, 0.5))
    assert found == MonomialRace((2, 1), (1 / 7, 1.0), 2.0, 0.5)
    assert found.depth == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v[0].update({(0, 0): 0.1}),  # a third term
        lambda v: v[0].update({(1, 2): -0.9}),  # another ratio of brake to drive
        lambda v: v[1].pop((1, 0)),  # no drive
        lambda v: v[1].update({(1, 0): -1.0}),  # opposite signs
    ],
)
def test_what_is_not_a_single_pathway_is_not_recognised(change):
    velocity = [{(0, 1): 1.0, (1, 2): -0.5}, {(1, 0): 1.0, (2, 1): -0.5}]
    parts = ({"W1": np.ones((1, 1))}, {"W2": np.ones((1, 1))})
    assert recognised(tabled(parts, velocity, [{(0, 0): 1.0}])) is not None
    change(velocity)
    assert recognised(tabled(parts, velocity, [{(0, 0): 1.0}])) is None


def test_coupled_pathways_have_no_closed_form():
    data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [1.0]]})
    arch, data = nr.pathways(data, {"common": None, "second": [0, 1]}, hidden=4)
    form = nr.reduce(arch, data).closed_form(0.1)
    assert (form.modes, form.without, form.is_complete) == ({}, ("mode1",), False)
    with refuses("loss"):
        form.loss(1.0)
    with says("not known in closed form", got="none of mode1", wanted="is_complete", fix="solve"):
        form.time_to_loss(0.1)


def test_modes_that_have_a_closed_form_are_given_beside_those_that_have_none():
    """A single pathway and two overlapping ones, between nodes of their own."""
    data = nr.Dataset(
        {"u": [[1.0], [2.0]], "v": [[1.0], [1.0]]}, {"a": [[1.0], [1.0]], "b": [[2.0], [2.0]]},
        {"second": [0.0, 1.0]},
    )  # fmt: skip
    arch = nr.Architecture(
        {"u": 1, "v": 1, "common": 2, "second": 2, "own": 2, "a": 1, "b": 1},
        {"uc": ("u", "common"), "us": ("u", "second"), "ca": ("common", "a"),
         "sa": ("second", "a"), "vo": ("v", "own"), "ob": ("own", "b")},
    )  # fmt: skip
    race = nr.reduce(arch, data)
    form = race.closed_form(0.1)
    assert len(form.modes) == len(form.without) == 1
    (name,) = form.modes
    times = np.linspace(0, 20, 21)
    path = race.solve(times=times, start=0.1).values["pathways"][name]["vo-ob"]
    np.testing.assert_allclose(form.value(times)[name], path, atol=1e-8)
    assert f"none known of {form.without[0]}" in repr(form)
    table = str(race).splitlines()
    assert sum("none known" in line for line in table) == 1
    assert sum("logistic" in line for line in table) == 1


def test_loss_of_a_race_and_time_to_loss():
    race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    form = race.closed_form(0.1)
    assert form.is_complete
    times = np.linspace(0, 30, 31)
    flow = race.solve(times=times, start=0.1)
    np.testing.assert_allclose(form.loss(times), flow.loss, atol=1e-8)
    assert abs(float(form.loss(form.time_to_loss(0.2))) - 0.2) < 1e-10
    assert form.time_to_loss(0.6) == 0
    assert form.time_to_loss(0.0) == np.inf
    a, s = form.value(times)["mode1"], np.sqrt(2) / 4
    logistic = (s / 0.5) / (1 - (1 - s / (0.5 * 0.01)) * np.exp(-2 * s * times))
    np.testing.assert_allclose(a, logistic, rtol=1e-10)  # NRR Eq. 21


def test_unbalanced_hidden_vectors_by_hand():
    """THEORY's solution of the two-edge chain in y = (b₁+b₂)², from unequal starts."""
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[0.8]]})
    race = nr.reduce(nr.Architecture.chain(1, 1, 1), data)
    form = race.closed_form(race.start({"W1": 0.1, "W2": 0.6}))
    assert form is not None
    assert form.modes["mode1"].kind == "unbalanced"
    t, s, d = np.linspace(0, 10, 21), 0.8, 1.0
    k2, y0 = (0.6**2 - 0.1**2) ** 2, 0.7**2
    w = np.sqrt(s**2 + d**2 * k2 / 4)
    high, low = 2 / d * (s + w), 2 / d * (s - w)
    q = (y0 - high) / (y0 - low) * np.exp(-2 * w * t)
    y = (high - low * q) / (1 - q)
    np.testing.assert_allclose(form.value(t)["mode1"], (y - k2 / y) / 4, rtol=1e-12)


def test_deep_limit_is_its_own_equation():
    t = np.linspace(0, 0.3, 2001)
    a = nr.linear.deep_limit(t, s=1.5, d=0.8, start=0.05, depth=100)
    rate = 100 * a**2 * (1.5 - 0.8 * a)  # D a^{2−2/D}(s − d a) for D → ∞
    early = slice(5, int(np.argmax(a > 0.999 * 1.5 / 0.8)))
    np.testing.assert_allclose(np.gradient(a, t)[early], rate[early], rtol=2e-3)
    assert abs(a[0] - 0.05) < 1e-12


def test_deep_limit_of_an_impossible_start():
    with refuses("start"):
        nr.linear.deep_limit(1.0, s=1.0, d=1.0, start=2.0, depth=10)


# ---- precision near the end of learning and from tiny starts -------------------------------------


@pytest.mark.parametrize("learning_rate", [None, 1e-2])
def test_losses_near_zero_keep_their_digits(learning_rate):
    """½ (s − d a)² / d with the exact distance of a logistic from its end, far below 1e-16."""
    x, y, start = 1.3, 0.7, 0.1
    s, d = x * y, x**2
    race = nr.reduce(nr.Architecture.chain(1, 1, 1), nr.Dataset({"x": [[x]]}, {"y": [[y]]}))
    times = np.array([8.0, 12.0, 16.0])
    solution = race.solve(times=times, start=start, learning_rate=learning_rate)
    if learning_rate is None:
        decay = (s / (d * start**2) - 1) * np.exp(-2 * s * times)
        gap = s * decay / (1 + decay)
        np.testing.assert_allclose(solution.loss, gap**2 / (2 * d), rtol=1e-2)
        np.testing.assert_allclose(race.closed_form(start).loss(times), solution.loss, rtol=1e-2)
    assert (solution.loss > 0).all() and (np.diff(solution.loss) < 0).all()
    assert solution.loss[-1] < 1e-20


@pytest.mark.parametrize("ratio", [1e-6, 0.3, 0.999999])
@pytest.mark.parametrize("size", [1e-18, 1e-9, 0.3, 50.0])
def test_unbalanced_two_edge_chains_from_any_start(size, ratio):
    """Against the same solution in 60 digits."""
    import mpmath

    b = (size, ratio * size)
    form = mode_form(single_path((1, 1), (1.0, 1.0), 2.0, 0.5), np.array(b), ("B1", "B2"))
    assert form is not None and form.kind == "unbalanced"
    times = [0.0, 1e-3, 1.0, 15.0, 25.0, 60.0]
    with mpmath.workdps(60):
        s, d = mpmath.mpf(2), mpmath.mpf(0.5)
        first, second = (mpmath.mpf(v) for v in b)
        k2, y0 = (second**2 - first**2) ** 2, (first + second) ** 2
        omega = mpmath.sqrt(s**2 + d**2 * k2 / 4)
        high, low = 2 / d * (s + omega), 2 / d * (s - omega)
        wanted = []
        for t in times:
            q = (y0 - high) / (y0 - low) * mpmath.exp(-2 * omega * t)
            y = (high - low * q) / (1 - q)
            wanted.append(float((y - k2 / y) / 4))
    np.testing.assert_allclose(form.value(times), wanted, rtol=1e-11)
    found = form.variables(np.array(times))
    np.testing.assert_allclose(found["B1"] * found["B2"], wanted, rtol=1e-10)
    away = [k for k in (1, 2, 3) if abs(wanted[k] / form.final - 1) > 0.1]
    reached = form.time_to(np.array([wanted[k] for k in away]))
    np.testing.assert_allclose(reached, [times[k] for k in away], rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_the_time_to_a_loss_in_any_unit_of_time(unit):
    """Inputs and targets divided by √unit: every time is multiplied by unit."""
    size = 1 / np.sqrt(unit)
    data = nr.Dataset({"x": size * np.eye(2)}, {"y": size * np.diag([2.0, 1.0])})
    form = nr.reduce(nr.Architecture.chain(2, 4, 2), data).closed_form(0.01)
    time = float(form.time_to_loss(0.5 * float(form.loss(0.0))))
    plain = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([2.0, 1.0])})
    same = nr.reduce(nr.Architecture.chain(2, 4, 2), plain).closed_form(0.01)
    assert time / unit == pytest.approx(float(same.time_to_loss(0.5 * float(same.loss(0.0)))))
