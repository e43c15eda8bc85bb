"""Stationary points, against gradients, Hessians and brute force; plateaus and visits of runs."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from tests.test_errors import refuses, says

VALUES = np.array([3.0, 2.0, 1.0])


def make_case(*hidden, white=True, seed=0, variance=1.5):
    rng = np.random.default_rng(seed)
    net = nr.GDLN(nr.Architecture.chain(3, *hidden, 4))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    x = np.sqrt(3 * variance) * turn if white else rng.normal(size=(5, 3))
    left = np.linalg.qr(rng.normal(size=(4, 3)))[0]
    y = x @ (left * VALUES / variance).T + (0 if white else rng.normal(size=(5, 4)))
    return net, nr.Dataset({"x": x}, {"y": y})


@functools.cache
def derivatives(net):
    """The gradient and the Hessian of the loss in one vector of weights."""
    shapes = {e: (net.arch.sizes[t], net.arch.sizes[s]) for e, (s, t) in net.arch.edges.items()}

    def loss(flat, data):
        weights, at = {}, 0
        for edge, shape in shapes.items():
            weights[edge] = flat[at : at + shape[0] * shape[1]].reshape(shape)
            at += shape[0] * shape[1]
        return net.loss(weights, data)

    return jax.jit(jax.grad(loss)), jax.jit(jax.hessian(loss))


def flat(weights):
    return jnp.concatenate([jnp.asarray(w).ravel() for w in weights.values()])


@pytest.mark.parametrize("white", [True, False])
@pytest.mark.parametrize("hidden", [(4,), (2,), (3, 4)], ids=str)
def test_points_are_stationary_with_their_loss_and_their_number_of_ways_out(hidden, white):
    net, data = make_case(*hidden, white=white)
    found = nr.linear.saddles(net, data)
    gradient, hessian = derivatives(net)
    assert len(found.points) == (7 if hidden == (2,) else 8)
    for point in found.points:
        weights = found.weights(point.modes)
        product = functools.reduce(lambda M, w: w @ M, weights.values())
        np.testing.assert_allclose(product, point.map, atol=1e-12)
        assert float(net.loss(weights, data)) == pytest.approx(point.loss, abs=1e-12)
        assert np.abs(gradient(flat(weights), data)).max() < 1e-12
        curvatures = np.linalg.eigvalsh(hessian(flat(weights), data))
        negative = int((curvatures < -1e-7).sum())
        learned = [k - 1 for k in point.modes]
        swaps = sum(
            found.values[j] > found.values[i] for i in learned for j in range(3) if j not in learned
        )
        fresh = (hidden[0] - len(learned)) * (3 - len(learned)) if len(hidden) == 1 else 0
        assert point.index == negative == fresh + swaps
        assert point.is_minimum == (point.modes == tuple(range(1, min(*hidden, 3) + 1)))
        if white and point.escapes:
            least = min(escape.curvature for escape in point.escapes)
            assert least == pytest.approx(min(curvatures[0], 0), abs=1e-10)


@pytest.mark.parametrize("white", [True, False])
@pytest.mark.parametrize("hidden", [(4,), (3, 4)], ids=str)
def test_the_loss_falls_along_every_way_out(hidden, white):
    net, data = make_case(*hidden, white=white)
    found = nr.linear.saddles(net, data)
    _, hessian = derivatives(net)
    for point in found.points:
        weights = found.weights(point.modes)
        H = np.asarray(hessian(flat(weights), data))
        for escape in point.escapes:
            way = found.direction(point.modes, escape)
            along = np.asarray(flat(way))
            assert np.linalg.norm(along) == pytest.approx(1)
            assert along @ H @ along == pytest.approx(escape.curvature, abs=1e-10)
            drops = [
                point.loss
                - float(net.loss({e: w + step * way[e] for e, w in weights.items()}, data))
                for step in (1e-2, 2e-2)
            ]
            assert drops[0] > 0
            assert drops[1] / drops[0] == pytest.approx(2**escape.order, rel=0.05)


def test_distances_by_brute_force():
    net, data = make_case(4, white=False)
    found = nr.linear.saddles(net, data)
    maps = np.random.default_rng(1).normal(size=(6, 4, 3))
    x = np.asarray(data.x["x"])
    wanted = [
        [np.sqrt((((M - point.map) @ x.T) ** 2).sum(axis=0).mean()) for point in found.points]
        for M in maps
    ]
    np.testing.assert_allclose(found.distances(maps), wanted, rtol=1e-12)


def five_modes():
    values = np.array([16.0, 8.0, 4.0, 2.0, 1.0])
    x = np.sqrt(5) * np.eye(5)
    return nr.GDLN(nr.Architecture.chain(5, 8, 5)), nr.Dataset({"x": x}, {"y": x * values})


def test_plateaus_of_five_modes_lie_on_saddles():
    net, data = five_modes()
    found = nr.linear.saddles(net, data)
    assert len(found.points) == 32 and found.isolated
    times = np.linspace(0, 30, 1501)
    for seed in range(2):
        weights = net.init(jax.random.key(seed), scale=1e-6)
        start = nr.linear.grown_weights(net, weights, data)
        run = nr.linear.lambda_balanced(net, start, data, times=times)
        flats = nr.linear.plateaus(run, least=0.2, slope=1e-3)
        visits = found.visits(run)
        assert [visit.modes for visit in visits] == [tuple(range(1, k + 1)) for k in range(6)]
        assert visits[-1].end == 30 and found[visits[-1].modes].is_minimum
        for visit, following in itertools.pairwise(visits):
            assert visit.start <= visit.at <= visit.end < following.start
        assert len(flats) >= 4
        for flat_part in flats:
            (visit,) = (v for v in visits if v.start <= flat_part.at <= v.end)
            assert flat_part.loss == pytest.approx(found[visit.modes].loss, rel=0.01, abs=1e-9)


def test_equal_singular_values_are_not_isolated():
    net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.eye(2)})
    assert not nr.linear.saddles(net, data).isolated


def test_only_some_modes():
    net, data = five_modes()
    some = nr.linear.saddles(net, data, modes=2)
    assert [p.modes for p in some.points] == [(), (2,), (1,), (1, 2)]
    whole = nr.linear.saddles(net, data)
    for point in some.points:
        assert point.loss == pytest.approx(whole[point.modes].loss)


def test_bad_input():
    net, data = make_case(4)
    found = nr.linear.saddles(net, data)
    with says("no stationary point", got="(4,)", wanted="from 1 to 3", fix="counted from 1"):
        found[(4,)]
    with says("no stationary point", got="1", wanted="at most 3"):
        found[1]
    with refuses("escape"):
        found.direction((1, 2, 3), found[()].escapes[0])
    shallow = nr.GDLN(nr.Architecture.chain(3, 4))
    with refuses("network"):
        nr.linear.saddles(shallow, data)
    nothing = nr.Dataset(data.x, {"y": np.zeros((3, 4))})
    with says("nothing to learn", got="0", wanted="targets"):
        nr.linear.saddles(net, nothing)
    with refuses("modes"):
        nr.linear.saddles(net, data, modes=0)
    wide = nr.GDLN(nr.Architecture.chain(20, 20, 20))
    with refuses("modes"):
        nr.linear.saddles(wide, nr.Dataset({"x": np.eye(20)}, {"y": np.diag(np.arange(1.0, 21))}))
    run = nr.Trajectory([0, 1], [1.0, 0.5])
    with refuses("run"):
        found.visits(run)
    with refuses("run"):
        nr.linear.plateaus(nr.Trajectory([0, 1], [[1.0, 0.5]], axes={"seed": [0]}), least=1.0)
