"""Worlds: covariances by brute force, draws, and what a network learns of them, in which order."""

import itertools
import pickle

import jax
import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace import tasks
from tests.test_errors import refuses

WORLDS = {
    "tree": tasks.tree_world((2, 3, 2), flip=(0.05, 0.1, 0.2)),
    "partition": tasks.partition_world((3, 1, 4)),
    "ring": tasks.ring_world(7),
    "even ring": tasks.ring_world(6, coupling=2.0, variance=3.0),
    "chain": tasks.chain_world(6),
    "grid": tasks.grid_world(3, 4, variance=2.0),
}


def field(graph, items, coupling=1.0, variance=10.0):
    """The covariance of the items of a Gaussian field, by inverting the whole precision matrix."""
    laplacian = networkx.laplacian_matrix(graph).toarray()
    precision = coupling * laplacian + np.eye(len(laplacian)) / variance
    return np.linalg.inv(precision)[:items, :items]


def diffusion(branches, flips):
    """⟨φ_i φ_j⟩ = Π (1 − 2ε) over the branches between two leaves, climbed one by one."""
    leaves = list(itertools.product(*(range(b) for b in branches)))
    covariance = np.ones((len(leaves), len(leaves)))
    for (i, a), (j, b) in itertools.product(enumerate(leaves), repeat=2):
        for level in range(len(branches)):
            if a[: level + 1] != b[: level + 1]:
                covariance[i, j] *= (1 - 2 * flips[level]) ** 2
    return covariance


def clusters(groups):
    graph = networkx.Graph()
    items = [(g, k) for g, size in enumerate(groups) for k in range(size)]
    graph.add_nodes_from([*items, *(("hidden", g) for g in range(len(groups)))])
    graph.add_edges_from(((g, k), ("hidden", g)) for g, k in items)
    return graph


GRAPHS = {
    "tree": lambda: diffusion((2, 3, 2), (0.05, 0.1, 0.2)),
    "partition": lambda: field(clusters((3, 1, 4)), 8),
    "ring": lambda: field(networkx.cycle_graph(7), 7),
    "even ring": lambda: field(networkx.cycle_graph(6), 6, 2.0, 3.0),
    "chain": lambda: field(networkx.path_graph(6), 6),
    "grid": lambda: field(networkx.grid_2d_graph(3, 4), 12, variance=2.0),
}


@pytest.mark.parametrize("name", WORLDS)
def test_modes_from_symmetry_diagonalise_the_covariance_of_the_graph(name):
    world = WORLDS[name]
    np.testing.assert_allclose(world.covariance, GRAPHS[name](), atol=1e-12)
    np.testing.assert_allclose(world.vectors.T @ world.vectors, np.eye(world.items), atol=1e-12)
    assert (np.diff(world.values) <= 1e-12).all()


@pytest.mark.parametrize("name", WORLDS)
def test_the_limit_of_many_features_has_the_singular_values(name):
    world = WORLDS[name]
    data = world.dataset()
    y = np.asarray(data.y["y"])
    np.testing.assert_allclose(y @ y.T, world.covariance, atol=1e-12)
    yx = y.T @ np.asarray(data.x["x"]) / world.items
    np.testing.assert_allclose(
        np.linalg.svd(yx, compute_uv=False), world.singular_values, atol=1e-12
    )


@pytest.mark.parametrize("name", WORLDS)
def test_samples_converge_as_the_root_of_their_number(name):
    world = WORLDS[name]

    def error(features):
        errors = []
        for seed in range(10):
            y = np.asarray(world.dataset(features, key=seed).y["y"])
            found = np.linalg.svd(y, compute_uv=False)
            size = min(len(found), world.items)
            errors.append(found[:size] ** 2 / world.values[:size] - 1)
        return np.sqrt(np.mean(np.square(errors)))

    ratio = error(500) / error(8000)
    assert ratio == pytest.approx(4, rel=0.35)
    assert error(8000) < 0.1


def test_draws_of_a_tree_are_signs_and_differ():
    world = WORLDS["tree"]
    drawn = world.features(50, key=1)
    assert drawn.shape == (50, 12) and set(np.unique(drawn)) == {-1.0, 1.0}
    assert (world.features(50, key=2) != drawn).any()
    np.testing.assert_array_equal(world.features(50, key=1), drawn)
    assert (
        tasks.tree_world(flip=0.0).features(20) == tasks.tree_world(flip=0.0).features(20)[:, :1]
    ).all()


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.floats(0.01, 0.45))
def test_deeper_levels_of_any_tree_are_weaker(branching, flip):
    world = tasks.tree_world(branching, flip=flip)
    assert world.values.sum() == pytest.approx(world.items)
    np.testing.assert_allclose(world.covariance, diffusion(branching, [flip] * 4), atol=1e-12)
    assert (np.diff(world.levels) >= 0).all() and (np.diff(world.values) <= 1e-12).all()


def test_levels_are_learned_in_order_at_the_predicted_times():
    world = tasks.tree_world(2, 3, flip=0.05)
    data = world.dataset()
    net = nr.GDLN(nr.Architecture.chain(8, 16, 8))
    weights = net.init(jax.random.key(0), scale=1e-4)
    run = nr.linear.lambda_balanced(
        net, nr.linear.grown_weights(net, weights, data), data, times=np.linspace(0, 800, 1601)
    )
    strengths = nr.linear.mode_strengths(run, data, vectors=world.vectors)
    by_level = np.stack([strengths[:, world.levels == k].mean(axis=1) for k in range(4)])
    found = nr.trajectory.crossing_time(run.time, by_level, 0.5, rising=True)
    assert (np.diff(found) > 0).all()
    first = [int(np.flatnonzero(world.levels == k)[0]) for k in range(4)]
    start = np.sqrt(16 * 1e-4**2 / 2)  # the expected squared length of c, N_h σ² / 2
    predicted = [
        nr.linear.chain_time(2, s=world.singular_values[k], d=1 / 8, start=start) for k in first
    ]
    np.testing.assert_allclose(found, predicted, rtol=0.05)


def test_structures_of_impossible_sizes():
    for name, call in (
        ("items", lambda: tasks.ring_world(2)),
        ("items", lambda: tasks.chain_world(1)),
        ("columns", lambda: tasks.grid_world(3, 1)),
        ("rows", lambda: tasks.grid_world(2.5, 3)),
        ("partition", lambda: tasks.partition_world(())),
        ("groups", lambda: tasks.partition_world((3, 0))),
        ("branching", lambda: tasks.tree_world(0)),
    ):
        with refuses(name):
            call()
    with refuses("branching", "depth"):
        tasks.tree_world((2, 2, 2), depth=2)
    for odd in (0.5, -0.1, (0.1, 0.2), "a", np.nan):
        with refuses("flip"):
            tasks.tree_world(flip=odd)
    for odd in (0.0, -1.0, np.inf, "a", [1.0]):
        with refuses("variance"):
            tasks.chain_world(variance=odd)
        with refuses("coupling"):
            tasks.ring_world(coupling=odd)
    with refuses("number"):
        tasks.ring_world().dataset(features=0)
    with refuses("key"):
        tasks.ring_world().features(3, key=-1)


@pytest.mark.parametrize(
    "world", [tasks.tree_world(), tasks.partition_world(), tasks.ring_world(), tasks.grid_world()]
)
def test_a_world_can_be_pickled(world):
    again = pickle.loads(pickle.dumps(world))
    np.testing.assert_array_equal(again.values, world.values)
    np.testing.assert_array_equal(again.features(5, key=1), world.features(5, key=1))
