"""Stationary points of average learning, their routes, and runs that rest near them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.behaviour import (
    Agent,
    EpsilonGreedy,
    Softmax,
    decision_task,
    deep_agent,
    shallow_agent,
    stationary_points,
    strategies,
)
from neuralrace.behaviour.points import unstable
from neuralrace.behaviour.vectors import flat, jacobian, symmetries, velocity
from tests.test_errors import refuses, says

CONTRASTS = (0.25, 1.0)


@functools.cache
def points(kind="deep", **options):
    agent = shallow_agent(**options) if kind == "shallow" else deep_agent(**options)
    return stationary_points(agent, decision_task(CONTRASTS), starts=16)


@pytest.mark.parametrize("make", [deep_agent, shallow_agent])
def test_the_jacobian_is_the_slope_of_the_velocity(make):
    """By central differences at random weights: with β > 0 the choices change with the weights."""
    agent, data = make(policy=Softmax(10.0), decay=0.01), decision_task(CONTRASTS)
    with jax.enable_x64(True):
        size = len(flat(agent, agent.init(0, scale=1.0)))
        for seed in range(3):
            row = 0.5 * np.random.default_rng(seed).normal(size=size)
            steps = 1e-5 * np.eye(size)
            up, down = (
                np.array([velocity(agent, data, jnp.asarray(row + sign * h)) for h in steps])
                for sign in (1, -1)
            )
            found = np.asarray(jacobian(agent, data, jnp.asarray(row)))
            np.testing.assert_allclose(found, (up - down).T / 2e-5, atol=1e-8)


def test_deep_learning_has_a_saddle_for_every_set_of_sides():
    found = points(decay=0.01)
    assert [(len(p.learned), p.index) for p in found.points] == [(0, 2), (1, 1), (1, 1), (2, 0)]
    for point in found.points:
        moved = found.agent.velocity(point.weights, found.data)
        assert max(float(np.abs(v).max()) for v in moved.values()) <= 1e-10
    named = strategies(np.array([p.choices for p in found.points]), found.data)
    assert named[:3].tolist() == ["naive", "left", "right"]
    assert named[3] in ("balanced", "expert")


def test_where_nothing_is_learned_the_constant_predicts_half_a_reward():
    """By hand: Q^const = R̄ / (1 + d/π) with R̄ = π = ½, decay d; growth √(K G) − d."""
    d = 0.01
    naive = points(decay=d).points[0]
    half = 0.25 / (0.5 + d)
    np.testing.assert_allclose(naive.weights["from_constant"].ravel(), half, atol=1e-12)
    seen = 0.5 * np.mean(CONTRASTS) / 2
    np.testing.assert_allclose(naive.choices, 0.5, atol=1e-12)
    growth = np.sqrt(seen * seen * (1 - half)) - d
    np.testing.assert_allclose(naive.eigenvalues.real[:2], growth, atol=1e-10)


@pytest.mark.slow
def test_routes_lead_from_side_to_side():
    found = points(decay=0.01)
    routes = {(r.source, r.target): r.node for r in found.routes}
    assert routes == {
        (0, 1): "cortex_left",
        (0, 2): "cortex_right",
        (1, 3): "cortex_right",
        (2, 3): "cortex_left",
    }
    for route in found.routes:
        assert abs(route.rate - found.points[route.source].eigenvalues.real[0]) < 1e-9
    assert set(found.to_networkx().edges) == set(routes)


@pytest.mark.slow
def test_two_modes_of_one_node_that_grow_alike_both_have_a_route():
    """Two stimuli through one neuron, which can learn either; both grow at the same rate."""
    edges = {"see": ("x", "h"), "from": ("h", "q")}
    arch = nr.Architecture({"x": 2, "h": 1, "q": 2}, edges)
    agent = Agent(arch, {"t": ["q"]}, dict.fromkeys(edges, "t"), Softmax(1.0))
    data = nr.Dataset({"x": np.eye(2)}, {"q": np.eye(2)})
    found = stationary_points(agent, data, starts=64)
    assert (found.points[0].learned, found.points[0].index) == ((), 2)
    ways = [r for r in found.routes if r.source == 0]
    ends = [found.points[r.target].weights["see"].ravel().round(6) for r in ways]
    assert len(ways) == 2
    assert {tuple(np.flatnonzero(end)) for end in ends} == {(0,), (1,)}
    np.testing.assert_allclose([r.rate for r in ways], 0.25, atol=1e-9)  # ⟨π R x⟩ = ½ · ½


def directions(block, floor=1e-7):
    return [(round(rate, 9), np.round(way, 9).tolist()) for rate, way in unstable(block, floor)]


def test_equal_rates_have_one_direction_for_each_mode():
    """The eigenvectors of a repeated eigenvalue are turned at random: modes still stay apart."""
    block = np.diag([2.0, 0.5, 0.5, -1.0, 1e-9])
    found = directions(block)
    assert [rate for rate, _ in found] == [2.0, 0.5, 0.5]
    assert sorted(np.flatnonzero(way).tolist() for _, way in found) == [[0], [1], [2]]
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    rates, ways = zip(*unstable(turned @ block @ turned.T, 1e-7), strict=True)
    np.testing.assert_allclose(rates, [2.0, 0.5, 0.5], rtol=1e-9)
    assert np.linalg.matrix_rank(np.array(ways), tol=1e-6) == 3
    for rate, way in zip(rates, ways, strict=True):
        np.testing.assert_allclose(turned @ block @ turned.T @ way, rate * way, atol=1e-9)


def test_a_complex_pair_leaves_in_a_plane():
    found = list(unstable(np.array([[0.1, -1.0, 0], [1.0, 0.1, 0], [0, 0, -1.0]]), 1e-7))
    assert [round(rate, 12) for rate, _ in found] == [0.1, 0.1]
    plane = np.array([way for _, way in found])
    assert np.linalg.matrix_rank(plane, tol=1e-6) == 2
    np.testing.assert_allclose(plane[:, 2], 0, atol=1e-12)


def test_a_rate_without_a_full_set_of_eigenvectors_has_those_it_has():
    ((rate, way),) = unstable(np.array([[1.0, 1.0], [0.0, 1.0]]), 1e-7)
    assert abs(rate - 1) < 1e-7
    np.testing.assert_allclose(np.abs(way), [1, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("make", "options", "indices"),
    [
        pytest.param(
            deep_agent,
            {"decay": 0.01},
            [0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2],
            marks=pytest.mark.slow,
        ),
        (shallow_agent, {"decay": 0.01}, [0, 0, 0, 1, 1]),
        pytest.param(
            deep_agent, {"signals": "one", "beta": 10.0}, [0, 1, 1, 2], marks=pytest.mark.slow
        ),
    ],
)
def test_the_list_is_complete_where_the_policy_makes_points_of_its_own(make, options, indices):
    """Counts from searches with four times as many starts; mirror images come in pairs."""
    beta = options.get("beta", 20.0)
    rest = {name: value for name, value in options.items() if name != "beta"}
    agent = make(policy=Softmax(beta), **rest)
    found = stationary_points(agent, decision_task())
    assert sorted(p.index for p in found.points) == indices
    for point in found.points:  # exchange left and right: stimuli and choices
        mirrored = {v: np.roll(q, 4, axis=0)[:, ::-1] for v, q in point.outputs.items()}
        assert found.distances(mirrored).min() < 1e-6


def test_a_task_with_unequal_sides_has_no_symmetry():
    agent = deep_agent(decay=0.01)
    with jax.enable_x64(True):
        (mirror,) = symmetries(agent, decision_task(CONTRASTS))
        assert symmetries(agent, decision_task(CONTRASTS, left=0.6)) == []
    row = flat(
        agent,
        {
            "see_left": 1,
            "see_right": 2,
            "from_left": [3, 4],
            "from_right": [5, 6],
            "from_constant": [7, 8],
        },
    )
    assert row[mirror].tolist() == [2, 1, 6, 5, 4, 3, 8, 7]
    uneven = deep_agent(rates={"see_left": 2.0})
    with jax.enable_x64(True):
        assert symmetries(uneven, decision_task(CONTRASTS)) == []


def test_the_shallow_network_has_one_point_and_no_saddle():
    found = points("shallow")
    assert [p.index for p in found.points] == [0]
    assert found.routes == ()


@pytest.mark.slow
def test_without_decay_three_signals_rest_only_where_nothing_is_learned():
    assert [p.learned for p in points().points] == [()]
    agent, data = deep_agent(), decision_task(CONTRASTS)
    times = [0, 100.0, 300.0, 900.0]
    run = nr.flow(
        agent, agent.init(0, scale=0.1), data, times=times, record={"weights": True, "p": agent}
    )
    weights = run.values["weights"]
    seen, onward = (np.abs(weights[e]).max(axis=(1, 2)) for e in ("see_left", "from_left"))
    assert (np.diff(seen[1:]) < 0).all()
    assert (np.diff(onward[1:]) > 0).all()
    np.testing.assert_allclose(onward[3] / onward[2], np.sqrt(3), rtol=0.1)
    late = run.values["p"]["q_stim"]
    assert np.abs(late[-1] - late[-2]).max() < 0.02 < np.abs(late[1] - late[0]).max()


def test_families_have_one_balanced_representative():
    """One signal, no decay: rescaling a cortical node changes nothing that is learned."""
    found = points(signals="one", policy=Softmax(2.0))
    assert [len(p.learned) for p in found.points] == [0, 1, 1, 2]
    both = found.points[3]
    assert both.index == 0
    assert both.neutral == 2
    assert both.is_family
    assert both.is_stable is True
    for side in ("left", "right"):
        into, out = (both.weights[f"{e}_{side}"] for e in ("see", "from"))
        np.testing.assert_allclose(np.linalg.norm(into), np.linalg.norm(out), rtol=1e-6)
        assert into[0, 0] > 0
    moved = dict(both.weights) | {
        "see_left": 3 * both.weights["see_left"],
        "from_left": both.weights["from_left"] / 3,
    }
    still = found.agent.velocity(moved, found.data)
    assert max(float(np.abs(v).max()) for v in still.values()) < 1e-9


def test_stability_is_undecided_at_degenerate_points():
    """A chain of three layers moves by products of two weights near zero: no first order at all."""
    edges = {"a": ("x", "h1"), "b": ("h1", "h2"), "c": ("h2", "q")}
    arch = nr.Architecture({"x": 1, "h1": 1, "h2": 1, "q": 2}, edges)
    agent = Agent(arch, {"t": ["q"]}, dict.fromkeys(edges, "t"), Softmax(1.0))
    data = nr.Dataset({"x": [[1.0]]}, {"q": [[1.0, 0.0]]})
    zero = next(p for p in stationary_points(agent, data, starts=16).points if not p.learned)
    assert (zero.index, zero.neutral, zero.is_family) == (0, 4, False)
    assert zero.is_stable is None


def test_imaginary_eigenvalues_are_not_neutral_and_decide_nothing():
    point = points("shallow").points[0]
    turning = dataclasses.replace(point, eigenvalues=np.array([1j, -1j, -1.0]))
    assert (turning.index, turning.neutral, turning.is_stable) == (0, 0, None)


def test_a_choice_that_is_never_taken_is_no_stationary_point():
    """Where a value is very low, learning is slow, but does not stand still."""
    found = points("shallow", policy=Softmax(20.0))
    assert len(found.points) >= 1
    for point in found.points:
        assert point.neutral == 0
        assert (found.data.probability @ point.choices).min() > 1e-6


def test_distances_are_root_mean_squares_of_values():
    found = points(decay=0.01)
    one, other = found.points[0], found.points[3]
    share = np.asarray(found.data.probability)
    wanted = np.sqrt(
        sum(share @ ((one.outputs[v] - other.outputs[v]) ** 2).sum(axis=1) for v in one.outputs)
    )
    far = found.distances(other.outputs)
    np.testing.assert_allclose(far[[0, 3]], [wanted, 0], atol=1e-12)


@pytest.mark.slow
def test_runs_rest_at_listed_points():
    found = points(decay=0.01)
    times = np.linspace(0, 600, 601)
    run = nr.flow_ensemble(
        found.agent, found.data, key=1, seeds=3, scale=1e-3, times=times, record={"outputs": True}
    )
    rests = found.rests(run, speed=1e-3, least=10.0)
    assert all(len(mine) >= 2 for mine in rests)
    for mine in rests:
        assert mine[0].point == 0
        assert mine[-1].point == 3
        assert all(rest.distance < 0.05 for rest in mine)
        assert all(rest.start <= rest.at <= rest.end for rest in mine)


@pytest.mark.slow
def test_several_cortical_neurons_have_the_same_values():
    one, two = points(decay=0.01), points(decay=0.01, neurons=2)
    assert len(one.points) == len(two.points)
    for a, b in zip(one.points, two.points, strict=True):
        for node in a.outputs:
            np.testing.assert_allclose(a.outputs[node], b.outputs[node], atol=1e-8)


# ---- errors -------------------------------------------------------------------------------------


def test_errors_of_the_search():
    task = decision_task(CONTRASTS)
    with refuses("policy"):
        stationary_points(deep_agent(policy=EpsilonGreedy()), task)
    with refuses("starts"):
        stationary_points(deep_agent(), task, starts=0)
    with refuses("agent"):
        stationary_points("deep", task)
    sizes = {"x": 1, "q": 2} | {f"h{k}": 1 for k in range(13)}
    edges = {f"a{k}": ("x", f"h{k}") for k in range(13)} | {
        f"b{k}": (f"h{k}", "q") for k in range(13)
    }
    wide = Agent(nr.Architecture(sizes, edges), {"t": ["q"]}, dict.fromkeys(edges, "t"))
    with says("too many sets", got="13 hidden nodes", wanted="at most 12"):
        stationary_points(wide, nr.Dataset({"x": [[1.0]]}, {"q": [[1.0, 0.0]]}))


@pytest.mark.parametrize("shape", [(3, 2), (4, 3), (4,)])
def test_errors_of_distances(shape):
    found = points(decay=0.01)
    with says("do not fit the task", got=str(shape), wanted="(…, 4, 2)"):
        found.distances({"q_stim": np.zeros(shape), "q_const": np.zeros(shape)})


def test_errors_of_rests():
    found = points(decay=0.01)
    with refuses("outputs"):
        found.distances({"q_stim": np.zeros((4, 2))})
    with refuses("run"):
        found.rests(nr.Trajectory([0, 1], [1, 0.5]), speed=1.0, least=1.0)
