"""Gradient flow against closed forms, where it stops, its tolerances, and bad input."""

import importlib
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.dynamics import Until
from tests.test_dynamics_train import compilations
from tests.test_errors import refuses

room = importlib.import_module("neuralrace.dynamics.flow")
RNG = np.random.default_rng(2)
X = RNG.normal(size=(6, 1))
Y = 1.5 * X + 0.3 * RNG.normal(size=(6, 1))
DATA = nr.Dataset({"x": X}, {"y": Y})
S, D, REST = float((X * Y).mean()), float((X * X).mean()), float((Y * Y).mean())
ONE, TWO = (nr.GDLN(nr.Architecture.chain(*sizes)) for sizes in ((1, 1), (1, 1, 1)))
LINEAR, LOG = np.linspace(0, 12, 25), np.geomspace(1e-3, 12, 25)


def chain(*values: float) -> dict:
    return {f"W{i}": jnp.full((1, 1), value) for i, value in enumerate(values, start=1)}


def loss_of(a: np.ndarray) -> np.ndarray:
    """½⟨(y − a x)²⟩."""
    return REST / 2 - S * a + D * a**2 / 2


def logistic(t, a0: float, s: float = S, d: float = D) -> np.ndarray:
    """W2 W1 of a balanced chain of two edges: da/dt = 2a (s − d a)."""
    return (s / d) / (1 - (1 - s / (d * a0)) * np.exp(-2 * s * np.asarray(t)))


def flow_two(start: float = 0.1, times=LINEAR, **more) -> nr.Trajectory:
    return nr.flow(TWO, chain(start, start), DATA, times=times, **more)


# ---- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [LINEAR, LOG], ids=["linear", "log"])
def test_two_balanced_edges(times):
    run = flow_two(0.1, times)
    np.testing.assert_allclose(run.loss, loss_of(logistic(times, 0.01)), rtol=1e-6, atol=1e-9)
    end = float(run.final["W2"][0, 0] * run.final["W1"][0, 0])
    assert end == pytest.approx(logistic(times[-1], 0.01), rel=1e-6)


def product(w):
    return w["W2"][0, 0] * w["W1"][0, 0]


def test_what_is_recorded_belongs_to_the_recorded_weights():
    run = flow_two(record={"weights": True, "outputs": True, "a": product})
    for i in range(len(run.time)):
        weights = {e: w[i] for e, w in run.values["weights"].items()}
        assert float(run.loss[i]) == pytest.approx(float(TWO.loss(weights, DATA)), rel=1e-12)
        np.testing.assert_allclose(run.values["outputs"]["y"][i], TWO(weights, DATA)["y"])
        assert run.values["a"][i] == pytest.approx(float(product(weights)), rel=1e-12)
    for edge, w in run.final.items():
        np.testing.assert_allclose(w, run.values["weights"][edge][-1], rtol=1e-12)


# ---- small starts -------------------------------------------------------------------------------


def test_the_usual_absolute_tolerance_mistimes_the_escape():
    start = 1e-12
    times = np.log(S / D / start**2) / (2 * S) * np.linspace(0.8, 1.2, 25)  # around a = s/2d
    wanted = loss_of(logistic(times, start**2))
    default, usual = (flow_two(start, times, **more) for more in ({}, {"atol": 1e-8}))
    assert default.settings["atol"] == pytest.approx(1e-8 * start, rel=1e-6)
    assert usual.settings["atol"] == 1e-8
    initial = wanted[0]
    assert np.abs(default.loss - wanted).max() < 1e-6 * initial
    assert np.abs(usual.loss - wanted).max() > 1e-2 * initial


def test_the_default_follows_the_smallest_edge_that_is_not_zero():
    from neuralrace.dynamics.flow import smallest_rms

    weights = {"a": np.array([[3.0, 4.0]]), "b": np.array([[1e-3, 1e-3]]), "c": np.zeros((2, 2))}
    assert smallest_rms(weights.values()) == pytest.approx(1e-3)
    assert smallest_rms([np.array([[3.0, 4.0]])]) == pytest.approx(np.sqrt(12.5))
    assert smallest_rms([np.zeros((2, 2))]) == 1.0


def test_a_start_at_exactly_zero_stays_there():
    run = flow_two(0.0)
    np.testing.assert_allclose(run.loss, REST / 2, rtol=1e-14)
    assert not any(w.any() for w in run.final.values())


def test_float32():
    data = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), DATA)
    weights = {e: w.astype(jnp.float32) for e, w in chain(0.1, 0.1).items()}
    times = np.linspace(0, 3, 31)  # 0.1, 0.2, … are not exact in either precision
    run = nr.flow(TWO, weights, data, times=times)
    np.testing.assert_array_equal(run.time, times)
    assert run.loss.dtype == run.final["W1"].dtype == np.float32
    assert run.settings["rtol"] == 1e-4
    np.testing.assert_allclose(run.loss, loss_of(logistic(times, 0.01)), atol=1e-3)


# ---- stopping -----------------------------------------------------------------------------------


def test_until_loss():
    least = REST / 2 - S**2 / D / 2
    limit = least + 0.1
    run = flow_two(until=limit)
    assert run.settings["stopped"] == "loss"
    assert run.loss[-1] <= limit < run.loss[-2]
    assert run.time[-1] < LINEAR[-1]
    crossing = np.linspace(0, 12, 100_001)
    crossing = crossing[np.argmax(loss_of(logistic(crossing, 0.01)) <= limit)]
    assert crossing <= run.time[-1] + 1e-4
    np.testing.assert_allclose(run.loss, loss_of(logistic(run.time, 0.01)), rtol=1e-6, atol=1e-9)
    assert float(TWO.loss(run.final, DATA)) == pytest.approx(float(run.loss[-1]), rel=1e-12)
    never = flow_two(until=least / 2)
    assert never.settings["stopped"] == "end"
    assert never.time.tolist() == LINEAR.tolist()


def test_until_stationary():
    times = np.linspace(0, 1000, 25)
    run = flow_two(times=times, until=Until(stationary=1e-4))
    assert run.settings["stopped"] == "stationary"
    assert len(run.time) < len(times)
    velocity = jax.grad(TWO.loss)(run.final, DATA)
    size = lambda tree: np.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(tree)))
    assert size(velocity) <= 1e-4 * size(run.final)
    a = float(product(run.final))
    assert a == pytest.approx(S / D, rel=1e-3)
    assert run.loss[-1] == pytest.approx(float(loss_of(a)), rel=1e-10)


def test_until_a_function_of_the_weights():
    level = float(S / D) / 2
    run = flow_two(until=lambda w: (w["W2"] @ w["W1"])[0, 0] > level)
    assert run.settings["stopped"] == "function"
    assert float(product(run.final)) > level
    before = logistic(run.time[-2], 0.01)
    assert before <= level
    assert flow_two(until=lambda w: False).settings["stopped"] == "end"


def test_both_at_once_say_which_came_first():
    least = REST / 2 - S**2 / D / 2
    times = np.linspace(0, 1000, 25)
    run = flow_two(times=times, until=Until(loss=least + 0.1, stationary=1e-4))
    assert run.settings["stopped"] == "loss"
    run = flow_two(times=times, until=Until(loss=least / 2, stationary=1e-4))
    assert run.settings["stopped"] == "stationary"


def test_too_few_steps_keep_what_was_reached():
    with pytest.raises(nr.StoppedError, match="could not reach t = 12") as caught:
        flow_two(max_steps=4, record={"a": product})
    error, run = caught.value, caught.value.trajectory
    assert "after 4 steps" in error.got
    assert "max_steps = 4" in error.wanted
    assert 0 < run.time[-1] < 12
    assert f"t = {run.time[-1]:.6g}" in error.got
    wanted = logistic(run.time, 0.01)
    np.testing.assert_allclose(run.loss, loss_of(wanted), rtol=1e-6)
    np.testing.assert_allclose(run.values["a"], wanted, rtol=1e-6)
    assert float(product(run.final)) == pytest.approx(wanted[-1], rel=1e-6)
    assert run.settings["stopped"] == "failed"


# ---- compilation --------------------------------------------------------------------------------


def test_a_second_call_compiles_nothing():
    def call(start: float, factor: float) -> None:
        data = nr.Dataset({"x": factor * X}, {"y": Y})
        nr.flow(TWO, chain(start, start), data, times=factor * LINEAR)

    call(0.1, 1.0)
    assert compilations(lambda: call(0.1, 1.0)) == 0
    assert compilations(lambda: call(0.2, 1.5)) == 0, "other weights, data, times and tolerances"


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "times",
    [[0, 2, 1], [0, 1, 1], [-1, 1], [0, np.nan], [0, np.inf], [], [0], [[0, 1], [2, 3]]],
)
def test_times_increase(times):
    with refuses("times"):
        flow_two(times=times)


def test_one_time_is_enough():
    run = flow_two(times=2.0)
    assert run.time.tolist() == [2.0]
    assert run.loss[0] == pytest.approx(loss_of(logistic(2.0, 0.01)), rel=1e-6)


def test_weights_and_records_are_checked():
    with refuses("W2"):
        nr.flow(TWO, chain(0.1, np.nan), DATA, times=LINEAR)
    with refuses("activity"):
        flow_two(record={"activity": True})
    with refuses("odd"):
        flow_two(record={"odd": lambda w: w["W1"][w["W1"] > 0]})


# ---- progress ----------------------------------------------------------------------------------


def test_each_run_tells_its_own_listener(monkeypatch):
    told = {1: [], 2: []}
    monkeypatch.setattr(room, "_LISTENERS", {run: told[run].append for run in told})
    room._tell(jnp.asarray(2), jnp.asarray(0.5))
    room._tell(jnp.asarray(7), jnp.asarray(0.5))  # has ended
    assert told == {1: [], 2: [0.5]}


def test_progress_of_a_flow_reaches_who_watches_it(monkeypatch):
    told = []

    @contextmanager
    def watched(*_):
        yield told.append

    monkeypatch.setattr(room, "progress", watched)
    monkeypatch.setattr(room.sys.stderr, "isatty", lambda: True, raising=False)
    flow_two()
    assert 0.9 < sum(told) <= 1.0 + 1e-6
    first = len(told)
    assert compilations(lambda: flow_two(0.2)) == 0
    assert len(told) > first
