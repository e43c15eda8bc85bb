"""Hidden nodes with fewer neurons than blocks have directions: what says exact is right.

Networks are followed by SciPy, as `tests.systems.truth` writes them in NumPy.
"""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from tests.systems.rows import System
from tests.test_errors import refuses

END = 60.0


def followed(arch, weights, data, end):
    """The loss of the full network at the end of its gradient flow."""
    net = System(arch, data, ()).truth()
    names, shapes = list(weights), [np.shape(w) for w in weights.values()]
    cuts = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]

    def shaped(state):
        parts = np.split(state, cuts)
        return {n: p.reshape(s) for n, p, s in zip(names, parts, shapes, strict=True)}

    def velocity(_, state):
        moved = net.velocity(shaped(state))
        return np.concatenate([moved[n].ravel() for n in names])

    begin = np.concatenate([np.ravel(np.asarray(w, float)) for w in weights.values()])
    found = solve_ivp(velocity, (0, end), begin, rtol=1e-6, atol=1e-9, method="LSODA")
    return net.loss(shaped(found.y[:, -1]))


def zero(data):
    """The loss at zero weights."""
    return sum(float((np.asarray(y) ** 2).sum(1).mean()) for y in data.y.values()) / 2


def graphs(sizes):
    """A chain, a deep chain, a tree with two inputs and outputs, and three tied networks."""
    h, k = sizes
    yield nr.Architecture.chain(3, h, 3)
    yield nr.Architecture.chain(3, h, k, 3)
    edges = {"a": ("x1", "h"), "b": ("x2", "h"), "c": ("h", "y1"), "d": ("h", "y2")}
    yield nr.Architecture({"x1": 2, "x2": 2, "h": h, "y1": 2, "y2": 2}, edges)
    yield nr.Architecture.siamese(3, h, 2)
    yield nr.Architecture.recurrent(2, h, 2, steps=2)
    yield nr.Architecture.autoencoder(3, h)


def white(rng, arch):
    """Inputs that are a basis, each of one node, and targets with distinct singular values."""
    total = sum(arch.sizes[v] for v in arch.inputs)
    q = np.linalg.qr(rng.normal(size=(total, total)))[0] * np.sqrt(total)
    at = np.cumsum([arch.sizes[v] for v in arch.inputs])[:-1]
    x = dict(zip(arch.inputs, np.split(q, at, axis=1), strict=True))
    return nr.Dataset(x, {v: rng.normal(size=(total, arch.sizes[v])) for v in arch.outputs})


@pytest.mark.parametrize("sizes", [(1, 4), (2, 1), (6, 6)])
def test_what_says_exact_is_right(sizes):
    rng = np.random.default_rng(sum(sizes))
    said = set()
    for arch in graphs(sizes):
        data = white(rng, arch)
        race = nr.reduce(arch, data)
        said.add(race.is_exact)
        assert race.is_exact == (not race.exactness.narrow) == bool(race.exactness)
        solution = race.solve(times=[0.0, END], start=0.1)
        if race.is_exact:
            weights = race.weights(solution, 0.0, 1)
            wanted = followed(arch, weights, data, END)
            assert abs(solution.loss[-1] - wanted) < 1e-3 * zero(data)
        else:
            with refuses():
                race.weights(solution, 0.0, 1)
    assert (min(sizes) > 5) in said


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("same", [True, False])
def test_no_more_modes_are_learned_than_a_chain_has_hidden_neurons(width, same):
    size = 5
    rng = np.random.default_rng(width)
    s = np.ones(size) if same else np.array([1.0, 0.9, 0.75, 0.6, 0.5])
    turn = [np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2)]
    x = turn[0] * np.sqrt(size)
    data = nr.Dataset({"x": x}, {"y": x @ np.diag(s) @ turn[1]})
    arch = nr.Architecture.chain(size, width, size)
    best = float((s[width:] ** 2).sum()) / 2  # of this rank (Eckart and Young)
    race = nr.reduce(arch, data)
    assert race.is_exact == (width == size)
    assert dict(race.exactness.narrow) == ({} if width == size else {"h": size - width})
    with jax.enable_x64(True):
        weights = nr.GDLN(arch).init(jax.random.key(width), scale=0.01)
    for start in (weights, 0.01, race.modes(scale=0.01).start):
        loss = race.solve(times=[0.0, 100.0], start=start).loss[-1]
        assert loss == pytest.approx(best, abs=1e-3 * zero(data))
    if not same:
        wanted = followed(arch, weights, data, 100.0)
        assert wanted == pytest.approx(best, abs=1e-3 * zero(data))


@pytest.mark.parametrize("width", [2, 3])
def test_autoencoders_learn_as_many_modes_as_they_have_hidden_neurons(width):
    data = nr.Dataset({"x": np.eye(5)}, {"y": np.eye(5)})
    arch = nr.Architecture.autoencoder(5, width)
    race = nr.reduce(arch, data)
    assert sum(race.exactness.narrow.values()) == 5 - width
    with jax.enable_x64(True):
        weights = nr.GDLN(arch).init(jax.random.key(0), scale=0.01)
    wanted = followed(arch, {e: np.asarray(w) for e, w in weights.items()}, data, 150.0)
    assert wanted == pytest.approx((5 - width) / 10, abs=1e-3 * zero(data))
    for start in (weights, 0.01):
        loss = race.solve(times=[0.0, 150.0], start=start).loss[-1]
        assert loss == pytest.approx(wanted, abs=1e-3 * zero(data))


def test_deep_chains_learn_as_many_modes_as_their_narrowest_node_has_neurons():
    rng = np.random.default_rng(0)
    x = np.linalg.qr(rng.normal(size=(4, 4)))[0] * 2
    data = nr.Dataset({"x": x}, {"y": x @ np.diag([2.0, 1.5, 1.0, 0.8])})
    race = nr.reduce(nr.Architecture.chain(4, 3, 2, 4), data)
    assert dict(race.exactness.narrow) == {"h1": 1, "h2": 2} and not race.is_exact
    with jax.enable_x64(True):
        weights = nr.GDLN(race.arch).init(jax.random.key(0), scale=0.1)
    for start in (0.1, weights):
        loss = race.solve(times=[0.0, 300.0], start=start).loss[-1]
        assert loss == pytest.approx((1.0 + 0.64) / 2, abs=1e-3 * zero(data))


def test_contests_do_not_call_a_narrow_network_exact():
    data = nr.Dataset({"x": np.eye(3)}, {"y": np.diag([3.0, 2.0, 1.0])})
    wide, narrow = (nr.Architecture.chain(3, h, 3) for h in (3, 2))
    found = nr.contest({"wide": (wide, data), "narrow": (narrow, data)}, start=0.01)
    assert not found.entrants["narrow"].is_exact and found.entrants["wide"].is_exact
    assert found.frame()["exact"].sum() == 1


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_frozen_edge_may_be_written_first(first):
    edges = {"a": ("x", "h"), "b": ("h", "y")}
    edges = {e: edges[e] for e in (first, *(edges.keys() - {first}))}
    arch = nr.Architecture({"x": 3, "h": 3, "y": 2}, edges, frozen={"a": 1.0})
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(6, 3))}, {"y": rng.normal(size=(6, 2))})
    net = nr.GDLN(arch)
    with jax.enable_x64(True):
        weights = net.init(jax.random.key(0), scale=0.1)
        wanted = System(arch, data, ()).truth().loss({"b": np.asarray(weights["b"])})
        assert float(net.loss(weights, data)) == pytest.approx(wanted, abs=1e-9)
        flow = nr.flow(net, weights, data, times=[0.0, 5.0]).loss
        assert np.isfinite(nr.ReLUNetwork(arch).loss(weights, data))
        nr.train(net, weights, data, learning_rate=0.1, steps=2)
    assert flow[-1] == pytest.approx(followed(arch, {"b": weights["b"]}, data, 5.0), abs=1e-4)
    race = nr.reduce(arch, data)
    assert race.sentences() and race.is_exact
    assert all(size == 3 for b in race.blocks for v, size in b.arch.sizes.items() if v != "y")


def test_the_kept_share_of_shared_weights_is_refused_by_name():
    arch = nr.Architecture({"x": 2, "h": 2, "y": 2}, {"W1": ("x", "h"), "W2": ("h", "y")},
                           {"W": ("W1", "W2.T")})  # fmt: skip
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.eye(2)})
    with refuses("W"):
        nr.reln.consistency(arch, data, scale=0.1)


def test_hidden_nodes_that_are_parts_of_one_have_its_room():
    """One neuron and two others beside it are three neurons, unless they have other gates."""
    x = np.eye(3)
    edges = {f"{s}_{t}": (s, t) for h in ("a", "b") for s, t in (("x", h), (h, "y"))}
    arch = nr.Architecture({"x": 3, "a": 1, "b": 2, "y": 3}, edges)
    data = nr.Dataset({"x": x}, {"y": x * [3, 2, 1]})
    assert nr.reduce(arch, data).is_exact
    assert not nr.reduce(arch.with_sizes({**arch.sizes, "b": 1}), data).is_exact
    gated = nr.Dataset(data.x, data.y, {"a": np.array([1.0, 0.0, 1.0])})
    assert not nr.reduce(arch, gated).is_exact
