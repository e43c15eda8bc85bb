"""A race in JAX: gradients, batches and compiled programs."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest

import neuralrace as nr
from evidence.own.rules import modes_of
from evidence.own.system import gradient_gap, random_system
from tests.test_errors import refuses


def unrolled(system, b0, count=60, rate=0.05):
    return nr.dynamics.unrolled_steps(system, b0, nr.dynamics.Descent(rate), count)


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_finite_differences(seed):
    assert gradient_gap(seed) < 1e-6


def test_loss_and_velocity_are_those_of_the_network():
    race, system = random_system(3)
    weights = race.weights(race.solve(times=[0, 1e-3], start=0.3), 0)
    net = nr.GDLN(race.arch)
    assert float(system.loss(system.b0)) == pytest.approx(float(net.loss(weights, race.data)))
    speed = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(system.velocity(system.b0)))
    slope = jax.grad(net.loss)({e: jnp.asarray(w) for e, w in weights.items()}, race.data)
    assert speed == pytest.approx(sum(float((g**2).sum()) for g in slope.values()))


def test_flows_of_the_system_are_solutions_of_the_race():
    race = modes_of((3.0, 1.0), hidden=4)
    system, times = race.system(0.01), np.linspace(0, 6, 7)
    flow = nr.dynamics.Flow(1e-9, 1e-11)
    found = nr.dynamics.solve_flow(system, system.b0, flow, times)
    np.testing.assert_allclose(found.loss, race.solve(times=times, start=0.01).loss, atol=1e-8)


def test_a_singular_value_is_a_leaf():
    races = [modes_of((3.0, s), hidden=4) for s in (1.0, 1.3)]
    one, other = (race.system(0.1) for race in races)
    moved = eqx.tree_at(lambda s: s.drive["mode2"], one, jnp.asarray(1.3))
    np.testing.assert_allclose(moved.loss(unrolled(one, one.b0)), other.loss(unrolled(one, one.b0)))
    ends = (unrolled(moved, one.b0), unrolled(other, one.b0))
    for name in one.b0:
        np.testing.assert_allclose(*(jnp.abs(end[name]["W1"]) for end in ends))


def test_the_gradient_of_a_learning_time_through_diffrax():
    s, b0 = 2.0, 0.05
    system = modes_of((s,), hidden=2).system(b0)

    def time(drive, scale):
        moved = eqx.tree_at(lambda each: each.drive["mode1"], system, drive)
        start = jax.tree.map(lambda w: scale * w, system.b0)
        half = lambda t, y, args, **_: moved.loss(y) - 0.25 * 0.5 * drive**2  # M = s/2
        event = diffrax.Event(half, optimistix.Newton(1e-10, 1e-10))
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: moved.velocity(y)), diffrax.Tsit5(),
            0.0, 100.0, 0.01, start, event=event,
            stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-12),
        ).ts[-1]  # fmt: skip

    exact = lambda s, k: jnp.log(s / (k * b0) ** 2 - 1) / (2 * s)
    found, slopes = jax.jit(jax.value_and_grad(time, (0, 1)))(s, 1.0)
    assert float(found) == pytest.approx(float(exact(s, 1.0)), rel=1e-7)
    np.testing.assert_allclose(slopes, jax.grad(exact, (0, 1))(s, 1.0), rtol=1e-5)


def test_a_thousand_starts_in_one_call():
    system = modes_of((3.0, 1.0), hidden=4).system(0.1)
    scales = jnp.linspace(0.1, 2.0, 1000)
    learn = jax.jit(
        jax.vmap(lambda k: system.loss(unrolled(system, jax.tree.map(lambda w: k * w, system.b0))))
    )
    losses = learn(scales)
    assert losses.shape == (1000,)
    for i in (0, 500, 999):
        b = jax.tree.map(lambda w, k=scales[i]: k * w, system.b0)
        assert float(losses[i]) == pytest.approx(float(system.loss(unrolled(system, b))))


def test_a_traced_start_is_refused_by_name():
    race = modes_of((2.0,), hidden=2)
    with refuses("start", "race.system"):
        jax.grad(lambda b: race.solve(times=[0, 1], start=b).loss[-1])(0.1)
    with refuses("start", "race.system"):
        jax.grad(lambda b: race.system(b).loss(race.system(0.1).b0))(0.1)


def test_many_starts_are_an_axis():
    race = modes_of((3.0, 1.0), hidden=5)
    times = np.linspace(0, 3, 4)
    many = race.solve(times=times, start=[0.01, 0.1])
    assert many.axes["start"].tolist() == [0.01, 0.1]
    for i, b in enumerate((0.01, 0.1)):
        np.testing.assert_allclose(many.loss[i], race.solve(times=times, start=b).loss)
    drawn = [nr.GDLN(race.arch).init(seed, scale=0.1) for seed in range(3)]
    stacked = {e: np.stack([np.asarray(w[e]) for w in drawn]) for e in race.arch.edges}
    decayed = race.solve(times=times, start=stacked, weight_decay=0.1)
    assert decayed.loss.shape == (3, 4)
    one = race.solve(times=times, start=drawn[1], weight_decay=0.1)
    np.testing.assert_allclose(decayed.loss[1], one.loss)


def test_batches_that_are_none_are_refused():
    race = modes_of((3.0, 1.0), hidden=5)
    with refuses("start"):
        race.solve(times=[0, 1], start=[])
    with refuses("start"):
        race.solve(times=[0, 1], start={"W1": np.ones((2, 5, 2)), "W2": np.ones((2, 5))})
