"""Systems, steppers and solvers of one's own, against hand-written loops and SciPy."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from neuralrace.dynamics import (
    Batch,
    Descent,
    Flow,
    Members,
    Optimized,
    Stepper,
    System,
    Until,
    solve_flow,
    take_steps,
    unrolled_steps,
)
from tests.test_errors import refuses


class Product(System):
    """L = ½ ‖M − b a‖² for matrices a and b."""

    target: jax.Array

    def loss(self, state):
        return 0.5 * jnp.sum((self.target - state["b"] @ state["a"]) ** 2)

    def observe(self, state):
        return {"product": state["b"] @ state["a"]}


class HeavyBall(Stepper):
    rate: float
    momentum: float

    def begin(self, state):
        return jax.tree.map(jnp.zeros_like, state)

    def step(self, system, state, memory, batch=None):
        loss, change = system.loss_and_step(state, self.rate, batch)
        memory = jax.tree.map(lambda m, c: self.momentum * m + c, memory, change)
        return loss, jax.tree.map(jnp.add, state, memory), memory


RNG = np.random.default_rng(0)
TARGET = RNG.normal(size=(3, 4))
START = {"a": 0.3 * RNG.normal(size=(2, 4)), "b": 0.3 * RNG.normal(size=(3, 2))}
SYSTEM = Product(jnp.asarray(TARGET))


def slopes(a, b):
    error = TARGET - b @ a
    return b.T @ error, error @ a.T


def by_hand(rate, momentum, steps):
    (a, b), losses = START.values(), []
    va, vb = 0 * a, 0 * b
    for _ in range(steps + 1):
        losses.append(0.5 * ((TARGET - b @ a) ** 2).sum())
        da, db = slopes(a, b)
        va, vb = momentum * va + rate * da, momentum * vb + rate * db
        a, b = a + va, b + vb
    return np.array(losses)


@pytest.mark.parametrize("stops", [np.arange(301), np.arange(0, 301, 20), [0, 1, 7, 300]])
def test_steppers_against_a_loop(stops):
    stops = np.asarray(stops)
    for method, momentum in ((Descent(0.05), 0.0), (HeavyBall(0.05, 0.8), 0.8)):
        done = take_steps(SYSTEM, START, method, stops)
        np.testing.assert_allclose(done.loss, by_hand(0.05, momentum, 300)[stops], rtol=1e-9)
        assert done.values["product"].shape == (len(stops), 3, 4) and done.why == "end"
    product = unrolled_steps(SYSTEM, jax.tree.map(jnp.asarray, START), Descent(0.05), 300)
    np.testing.assert_allclose(SYSTEM.loss(product), by_hand(0.05, 0, 300)[-1], rtol=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 127, 128, 129, 1000])
@pytest.mark.parametrize("every", [1, 3])
def test_a_run_ends_where_it_should_however_it_is_stretched(steps, every):
    stops = np.unique(np.append(np.arange(0, steps + 1, every), steps))
    done = take_steps(SYSTEM, START, Descent(0.05), stops)
    assert done.stops.tolist() == stops.tolist()
    np.testing.assert_allclose(done.final["b"] @ done.final["a"], done.values["product"][-1])
    losses = by_hand(0.05, 0, steps)
    limit = losses[steps // 2]
    early = take_steps(SYSTEM, START, Descent(0.05), stops, until=Until(loss=limit * (1 + 1e-9)))
    assert early.stops[-1] == stops[np.argmax(losses[stops] <= limit * (1 + 1e-9))]
    assert early.why == "until"
    np.testing.assert_allclose(SYSTEM.loss(early.final), early.loss[-1], rtol=1e-12)


@pytest.mark.parametrize("every", [1, 4])
def test_members_of_an_ensemble_may_differ_in_system_and_method(every):
    targets = jnp.asarray(RNG.normal(size=(3, 3, 4)))
    rates = jnp.array([0.01, 0.05, 1e3])  # the last diverges
    starts = {name: np.repeat(value[None], 3, 0) for name, value in START.items()}
    stops = np.arange(0, 201, every)
    many = take_steps(Product(targets), starts, Descent(rates), stops, members=Members(3, 0, 0))
    for i in range(2):
        one = take_steps(Product(targets[i]), START, Descent(rates[i]), stops)
        np.testing.assert_allclose(many.loss[i], one.loss, rtol=1e-10)
    assert not np.isfinite(many.loss[2, -1]) and many.why == "end"
    one = take_steps(Product(targets[2]), START, Descent(1e3), stops)
    assert one.why == "diverged" and np.isfinite(one.loss).all()
    np.testing.assert_allclose(one.loss, many.loss[2, : len(one.loss)])


def test_a_stepper_of_ones_own_trains_networks():
    net, data = nr.ReLUNetwork((2, 6, 1)), nr.tasks.xor()
    start = net.init(jax.random.key(0), 0.5)
    options = {"steps": 60, "record_every": 6}
    own = nr.train(net, start, data, optimizer=HeavyBall(0.05, 0.5), **options)

    known = nr.train(net, start, data, optimizer=optax.sgd(0.05, momentum=0.5), **options)
    np.testing.assert_allclose(own.loss, known.loss, rtol=1e-10)
    assert own.clock == "steps" and own.settings["optimizer"] == "HeavyBall"
    batched = {"batch_size": 3, "key": 0} | options
    own = nr.train(net, start, data, optimizer=HeavyBall(0.05, 0.5), **batched)
    known = nr.train(net, start, data, optimizer=optax.sgd(0.05, momentum=0.5), **batched)
    np.testing.assert_allclose(own.loss, known.loss, rtol=1e-10)
    many = nr.train_ensemble(net, data, key=1, seeds=2, optimizer=HeavyBall(0.05, 0.5), **options)
    first = net.init(jax.random.split(jax.random.key(1), 2)[0])
    one = nr.train(net, first, data, optimizer=HeavyBall(0.05, 0.5), **options)
    np.testing.assert_allclose(many.loss[0], one.loss, rtol=1e-10)


def test_a_system_without_samples_takes_no_batches():
    with pytest.raises(nr.NeuralRaceError, match="batch"):
        SYSTEM.loss_and_step(START, 0.1, Batch(jnp.zeros(1, int), jnp.ones(1)))


SOLVERS = {
    "usual": {},
    "Tsit5": {"solver": diffrax.Tsit5()},
    "implicit": {"solver": diffrax.Kvaerno5()},
    "controller": {"controller": diffrax.PIDController(rtol=1e-8, atol=1e-10)},
    "fixed": {"controller": diffrax.StepTo(ts=np.linspace(0, 8, 401))},
}


@pytest.mark.parametrize("name", SOLVERS)
def test_the_flow_of_a_system_against_scipy(name):
    times = np.linspace(0, 8, 5)
    done = solve_flow(SYSTEM, START, Flow(1e-8, 1e-10, **SOLVERS[name]), times)

    def velocity(_, flat):
        da, db = slopes(flat[:8].reshape(2, 4), flat[8:].reshape(3, 2))
        return np.concatenate([da.ravel(), db.ravel()])

    flat = np.concatenate([START["a"].ravel(), START["b"].ravel()])
    exact = solve_ivp(velocity, (0, 8), flat, t_eval=times, rtol=1e-11, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(done.final["a"].ravel(), exact[:8], atol=1e-6)
    assert done.why == "end" and done.times.tolist() == times.tolist()


NET, DATA = nr.GDLN(nr.Architecture.chain(2, 3, 1)), nr.tasks.xor()
WEIGHTS = NET.init(jax.random.key(0), 0.5)


def test_flow_takes_objects_of_diffrax():
    usual = nr.flow(NET, WEIGHTS, DATA, times=[0.0, 2.0, 5.0])
    tools = {"solver": diffrax.Kvaerno5(), "stepsize_controller": diffrax.PIDController(1e-8, 1e-9)}
    other = nr.flow(NET, WEIGHTS, DATA, times=[0.0, 2.0, 5.0], **tools)
    np.testing.assert_allclose(other.loss, usual.loss, rtol=1e-6)
    assert other.settings["solver"] == "Kvaerno5" and "rtol" not in other.settings
    assert nr.compare(usual, other).mean < 1e-6


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"solver": "Tsit5"}, "solver"),
        ({"solver": diffrax.Tsit5}, "solver"),
        ({"stepsize_controller": 1e-8}, "stepsize_controller"),
        ({"stepsize_controller": diffrax.ConstantStepSize()}, "stepsize_controller"),
        ({"stepsize_controller": diffrax.PIDController(1e-8, 1e-9), "rtol": 1e-8}, "rtol"),
    ],
)
def test_what_is_no_object_of_diffrax_is_refused(options, named):
    with pytest.raises(nr.NeuralRaceError, match=named):
        nr.flow(NET, WEIGHTS, DATA, times=[1.0], **options)


class Drift(System):
    """A system that changes on the way: L = ½ (state − target)², the target given by stop."""

    target: jax.Array

    def loss(self, state):
        return 0.5 * (state - self.target) ** 2

    def during(self, moment):
        return eqx.tree_at(lambda s: s.target, self, moment)


class Line(System):
    def loss(self, state):
        return 0.5 * jnp.sum(state**2)


ANSWERS = {
    "steps": lambda state: take_steps(Line(), state, Descent(0.5), np.array([0, 1])).final,
    "flow": lambda state: solve_flow(Line(), state, Flow(1e-6, 1e-9), np.array([0.0, 1.0])).final,
    "unrolled": lambda state: unrolled_steps(Line(), state, Descent(0.5), 1),
}


@pytest.mark.parametrize("way", ANSWERS)
def test_a_state_is_arrays(way):
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    for wrong in ([[1.0], [1.0, 2.0]], data, [], [None], jnp.array([1]), "text"):
        with refuses("state"):
            ANSWERS[way](wrong)
    pair = [1.0, 2.0]
    np.testing.assert_array_equal(ANSWERS[way](pair), ANSWERS[way](jnp.array(pair)))


@pytest.mark.parametrize("gap", [1, 3])
def test_a_system_that_changes_on_the_way(gap):
    targets, x, losses = RNG.normal(size=200), 0.0, []
    for target in targets:
        losses.append(0.5 * (x - target) ** 2)
        for _ in range(gap):
            x += 0.2 * (target - x)
    stops = gap * np.arange(200)
    done = take_steps(Drift(jnp.zeros(())), 0.0, Descent(0.2), stops, moments=jnp.asarray(targets))
    np.testing.assert_allclose(done.loss, losses, rtol=1e-10)


# ---- programs of an accelerator ------------------------------------------------------------------


def runs_of_every_kind():
    """Losses, final states and ends of runs that go through every kind of program."""
    until = Until(loss=0.5 * float(SYSTEM.loss(START)))
    cases = [
        (np.arange(31), {}),
        (np.arange(31), {"until": until}),
        (np.arange(0, 31, 5), {}),
        (np.arange(0, 31, 5), {"until": until}),
        (np.array([0, 1, 2, 9, 30]), {}),
        (np.array([0, 1, 2, 9, 30]), {"first": 2}),
        (np.array([0, 7, 14, 21, 30]), {"until": until}),
    ]
    for stops, options in cases:
        for method in (Descent(0.05), Optimized(optax.adam(0.05)), Descent(1e3)):
            yield take_steps(SYSTEM, START, method, stops, **options)


def test_programs_of_known_length_give_the_same_runs(monkeypatch):
    """With memory for a whole run on the device, and for a few recordings."""
    usual = list(runs_of_every_kind())
    monkeypatch.setattr("neuralrace.dynamics.loop.on_accelerator", lambda: True)
    for memory in (1e9, 400):
        monkeypatch.setattr("neuralrace.dynamics.loop.device_memory", lambda m=memory: m)
        for here, there in zip(runs_of_every_kind(), usual, strict=True):
            assert (here.why, here.stopped) == (there.why, there.stopped)
            assert here.stops.tolist() == there.stops.tolist()
            np.testing.assert_allclose(here.loss, there.loss, rtol=1e-9)
            for name, array in there.final.items():
                np.testing.assert_allclose(here.final[name], array, rtol=1e-9)
