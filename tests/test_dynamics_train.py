"""Gradient descent: its numbers, what it records, what it compiles, and bad input."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.dynamics import setup
from tests.test_errors import refuses, says

RELU = nr.ReLUNetwork((2, 6, 1), leak=0.1)
XOR = nr.tasks.xor()
KEY = jax.random.key(0)
COMPILED: list[str] = []


@jax.monitoring.register_event_duration_secs_listener
def _listen(event: str, duration: float, **more) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        COMPILED.append(event)


def compilations(call) -> int:
    """How many programs JAX compiles during a call, the smallest included."""
    before = len(COMPILED)
    call()
    return len(COMPILED) - before


def relu_weights(scale: float = 0.5) -> dict:
    return RELU.init(KEY, scale)


def train(net=RELU, weights=None, data=XOR, **more) -> nr.Trajectory:
    """`nr.train` with everything that a test does not care about filled in."""
    weights = relu_weights() if weights is None else weights
    return nr.train(net, weights, data, **{"learning_rate": 0.1, "steps": 20} | more)


# ---- the numbers --------------------------------------------------------------------------------


def numpy_descent(x, y, gate, weight, W1, W2, rate, steps, leak=None):
    """Two layers by hand: gates a neuron, or a leaky ReLU where `leak` is given."""
    losses, weights = [], []
    for _ in range(steps + 1):
        z = x @ W1.T
        slope = gate if leak is None else np.where(z > 0, 1.0, leak)
        error = (slope * z) @ W2.T - y
        losses.append(0.5 * (weight * (error**2).sum(1)).sum())
        weights.append((W1, W2))
        error = weight[:, None] * error
        W1, W2 = (
            W1 - rate * (slope * (error @ W2)).T @ x,
            W2 - rate * error.T @ (slope * z),
        )
    return np.array(losses), weights


@pytest.mark.parametrize("kind", ["gdln", "relu"])
def test_equals_a_loop_in_numpy(kind):
    rng = np.random.default_rng(0)
    x, y, gate = rng.normal(size=(5, 3)), rng.normal(size=(5, 2)), rng.normal(size=(5, 4))
    weight = rng.uniform(size=5)
    weight /= weight.sum()
    start = {"W1": rng.normal(size=(4, 3)), "W2": rng.normal(size=(2, 4))}
    net = (
        nr.GDLN(nr.Architecture.chain(3, 4, 2))
        if kind == "gdln"
        else nr.ReLUNetwork((3, 4, 2), leak=0.2)
    )
    data = nr.Dataset({"x": x}, {"y": y}, gates={"h": gate}, sample_weight=weight)
    run = train(net, start, data, learning_rate=0.05, steps=50, record={"weights": True})
    losses, weights = numpy_descent(
        x, y, gate, weight, start["W1"], start["W2"], 0.05, 50, None if kind == "gdln" else 0.2
    )
    np.testing.assert_allclose(run.loss, losses, rtol=1e-12, atol=1e-14)
    for i, edge in enumerate(("W1", "W2")):
        wanted = [w[i] for w in weights]
        np.testing.assert_allclose(run.values["weights"][edge], wanted, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(run.final[edge], run.values["weights"][edge][-1])
    np.testing.assert_allclose(run.time, 0.05 * np.arange(51), rtol=1e-15)


def test_the_settings_say_how_it_was_made():
    run = train(learning_rate=0.25, steps=7)
    wanted = {"method": "gradient descent", "learning_rate": 0.25, "steps": 7, "dtype": "float64"}
    assert wanted.items() <= run.settings.items()
    assert run.net == RELU
    assert run.axes == {}


def test_float32_stays_float32():
    data = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), XOR)
    weights = {e: w.astype(jnp.float32) for e, w in relu_weights().items()}
    run = train(weights=weights, data=data, record={"weights": True})
    assert run.loss.dtype == np.float32
    assert {w.dtype for w in jax.tree.leaves((run.final, run.values))} == {np.dtype("float32")}
    assert run.time.dtype == np.float64
    assert run.settings["dtype"] == "float32"
    np.testing.assert_allclose(run.loss, train().loss, rtol=1e-4)


# ---- recording ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, range(21)),
        ({"record_every": 5}, [0, 5, 10, 15, 20]),
        ({"record_every": 8}, [0, 8, 16, 20]),
        ({"record_every": 100}, [0, 20]),
        ({"record_at": [3, 4, 11]}, [0, 3, 4, 11, 20]),
        ({"record_at": np.array([0, 20])}, [0, 20]),
        ({"record_at": 7}, [0, 7, 20]),
        ({"record_at": [1.0, 2.0]}, [0, 1, 2, 20]),
    ],
)
def test_sparse_records_are_those_of_every_step(options, steps):
    record = {"outputs": True}
    every = train(record=record)
    sparse = train(record=record, **options)
    kept = list(steps)
    np.testing.assert_allclose(sparse.time, 0.1 * np.array(kept), rtol=1e-14)
    np.testing.assert_allclose(sparse.loss, every.loss[kept], rtol=1e-13)
    outputs = sparse.values["outputs"]["y"]
    np.testing.assert_allclose(outputs, every.values["outputs"]["y"][kept], rtol=1e-12, atol=1e-14)
    for edge, w in every.final.items():
        np.testing.assert_allclose(sparse.final[edge], w, rtol=1e-13)


@pytest.mark.parametrize("steps", [1, 31, 32, 33, 65])
def test_the_cutting_into_calls_is_not_seen(steps):
    whole = train(steps=70)
    run = train(steps=steps)
    np.testing.assert_allclose(run.loss, whole.loss[: steps + 1], rtol=1e-13)


def test_what_is_recorded_belongs_to_the_recorded_weights():
    record = {
        "outputs": True,
        "weights": True,
        "activity": True,
        "sv": lambda w: jnp.linalg.svd(w["W1"])[1],
        "both": lambda w: {"norms": {e: jnp.sum(m**2) for e, m in w.items()}, "one": 1.0},
    }
    run = train(record=record, record_every=6)
    assert set(run.values) == set(record)
    for i in range(len(run.time)):
        weights = {e: w[i] for e, w in run.values["weights"].items()}
        assert float(run.loss[i]) == pytest.approx(float(RELU.loss(weights, XOR)), rel=1e-13)
        np.testing.assert_allclose(run.values["outputs"]["y"][i], RELU(weights, XOR)["y"])
        np.testing.assert_array_equal(
            run.values["activity"]["h"][i], RELU.activity(weights, XOR)["h"]
        )
        np.testing.assert_allclose(
            run.values["sv"][i], np.linalg.svd(np.asarray(weights["W1"]))[1], rtol=1e-10
        )
        norm = float((np.asarray(weights["W2"]) ** 2).sum())
        assert run.values["both"]["norms"]["W2"][i] == pytest.approx(norm, rel=1e-12)
    assert run.values["both"]["one"].tolist() == [1.0] * len(run.time)


def test_false_records_nothing():
    assert train(record={"outputs": False, "weights": False}).values == {}
    assert train(record={}).values == {}


# ---- compilation --------------------------------------------------------------------------------


def norm(w):
    return jnp.sum(w["W1"] ** 2)


def test_the_counter_counts():
    assert compilations(lambda: jax.jit(lambda v: v * 3 + 1)(jnp.ones(17))) > 0


@pytest.mark.parametrize("options", [{}, {"record_every": 4}], ids=["every step", "sparse"])
def test_a_second_call_compiles_nothing(options):
    def call(seed: float, rate: float, net=RELU):
        data = nr.Dataset({"x": seed * XOR.x["x"]}, XOR.y, labels=XOR.labels)
        weights = net.init(jax.random.key(int(seed)), 0.1)
        record = {"outputs": True, "norm": norm}
        nr.train(net, weights, data, learning_rate=rate, steps=30, record=record, **options)

    call(1, 0.1)
    assert compilations(lambda: call(1, 0.1)) == 0
    assert compilations(lambda: call(2, 0.03)) == 0, "other data, weights and rate"
    assert compilations(lambda: call(1, 0.1, nr.ReLUNetwork((2, 6, 1), leak=0.1))) == 0
    assert compilations(lambda: call(1, 0.1, nr.ReLUNetwork((2, 5, 1)))) > 0


@pytest.mark.parametrize("method", ["train", "flow", "train_ensemble"])
def test_functions_written_inline_compile_once(method):
    def call(power: int):
        options = {
            "record": {"norm": lambda w: jnp.sum(w["W1"] ** power)},
            "loss": lambda outputs, targets: (
                jnp.sum((outputs["y"] - targets["y"]) ** 2, -1) / power
            ),
        }
        weights = RELU.init(jax.random.key(0), 0.1)
        if method == "flow":
            return nr.flow(RELU, weights, XOR, times=[0.5, 1.0], **options)
        options |= {"steps": 12, "learning_rate": 0.1, "record_every": 3}
        options |= {"until": lambda w: jnp.sum(w["W1"] ** power) > 1e6}
        if method == "train_ensemble":
            return nr.train_ensemble(RELU, XOR, key=0, **options)
        return nr.train(RELU, weights, XOR, **options)

    first = call(2)
    assert compilations(lambda: call(2)) == 0
    np.testing.assert_array_equal(call(2).values["norm"], first.values["norm"])
    assert compilations(lambda: call(4)) > 0
    assert call(4).values["norm"][..., 0] != pytest.approx(first.values["norm"][..., 0], rel=1e-3)


def test_more_steps_than_can_be_counted_are_refused():
    with (
        jax.enable_x64(False),
        refuses("steps"),
    ):
        setup.recording_steps(2**31, 2**30, None)
    with jax.enable_x64(True):
        assert setup.recording_steps(2**31, 2**30, None)[-1] == 2**31


# ---- runs that stop -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "last"), [({}, None), ({"record_every": 2}, None), ({"record_at": [50]}, 0)]
)
def test_a_loss_that_explodes_stops_the_run(options, last):
    net = nr.GDLN(nr.Architecture.chain(1, 4, 1))
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    weights = {"W1": np.ones((4, 1)), "W2": np.ones((1, 4))}
    with np.errstate(all="ignore"):
        losses, steps = numpy_descent(
            data.x["x"], data.y["y"], 1.0, np.ones(1), weights["W1"], weights["W2"], 50.0, 60
        )
    bad = int(np.flatnonzero(~np.isfinite(losses))[0])
    assert 2 < bad < 10
    record = {"weights": True}
    with pytest.raises(nr.StoppedError, match=rf"finite at step {bad}\.") as caught:
        nr.train(net, weights, data, learning_rate=50.0, steps=60, record=record, **options)
    error, run = caught.value, caught.value.trajectory
    assert "a learning rate below 50" in error.fix
    assert np.isfinite(run.loss).all()
    kept = np.rint(run.time / 50).astype(int)
    every = options.get("record_every", 1)
    assert kept.tolist() == ([0] if last == 0 else list(range(0, bad, every)))
    np.testing.assert_allclose(run.loss, losses[kept], rtol=1e-9)
    assert f"{run.loss[-1]:.3g} at step {kept[-1]}" in error.got
    assert run.values["weights"]["W1"].shape == (len(kept), 4, 1)
    for edge, w in zip(("W1", "W2"), steps[kept[-1]], strict=True):
        np.testing.assert_allclose(run.values["weights"][edge][-1], w, rtol=1e-9)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    np.testing.assert_array_equal(again.trajectory.loss, run.loss)
    assert again.trajectory.net == net


def test_a_loss_that_is_infinite_at_once():
    weights = {e: 1e200 * w for e, w in relu_weights().items()}
    with pytest.raises(nr.StoppedError, match="at step 0") as caught:
        train(weights=weights)
    assert caught.value.got == "a loss that is not finite to begin with"
    assert caught.value.trajectory.loss.shape == (0,)


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -3, 2.5, 10.0, True, "10", None])
def test_steps_are_positive_whole_numbers(value):
    with refuses("steps"):
        train(steps=value)
    with refuses("record_every"):
        train(record_every=value)


@pytest.mark.parametrize(
    "steps", [[3, 2], [2, 2], [-1, 4], [5, 21], [1.5, 2], [[1, 2]], [], [np.nan]]
)
def test_steps_to_record_increase(steps):
    with refuses("steps"):
        train(record_at=steps)


@pytest.mark.parametrize("rate", [0.0, -0.1, np.nan, np.inf])
def test_learning_rates_are_positive(rate):
    with refuses("learning_rate"):
        train(learning_rate=rate)


@pytest.mark.parametrize("rate", [None, "fast", [0.1, 0.2], {"W1": 0.1}, 10**400])
def test_learning_rates_are_numbers(rate):
    with refuses("learning_rate"):
        train(learning_rate=rate)
    numbers = (0.5, jnp.asarray(0.5), np.float32(0.5))
    assert len({tuple(train(learning_rate=number, steps=2).time) for number in numbers}) == 1


def test_a_learning_rate_must_be_known():
    """One that JAX is tracing is named, not an error from the inside of JAX."""
    with refuses("learning_rate", "tracing"):
        jax.jit(lambda rate: train(learning_rate=rate).loss)(0.1)


def test_weights_must_be_finite():
    weights = relu_weights()
    weights["W2"] = weights["W2"].at[0, 1].set(jnp.nan)
    with refuses("weights"):
        train(weights=weights)


def test_unknown_things_cannot_be_recorded():
    with refuses("record"):
        train(record={"output": True})
    net = nr.GDLN(nr.Architecture.chain(2, 6, 1))
    with refuses("record"):
        train(net, record={"activity": True})


@pytest.mark.parametrize("name", ["outputs", "loss", "time", "final", "a.b"])
def test_names_of_recording_functions(name):
    with says(f"cannot be called {name!r}", got=repr(name), wanted="a name without dots"):
        train(record={name: norm})


def fails(w):
    raise KeyError("nothing here")


def fails_silently(w):
    raise RuntimeError


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda w: w["W1"][w["W1"] > 0], "NonConcreteBooleanIndexError"),
        (lambda w: np.linalg.svd(w["W1"])[1], "TracerArrayConversionError"),
        (lambda w: float(w["W1"][0, 0]), "ConcretizationTypeError"),
        (lambda w: w["W1"] if w["W1"].sum() > 0 else 0, "TracerBoolConversionError"),
        (lambda w: w["W1"] @ w["W1"], "TypeError"),
        (lambda w: None, "neither an array nor a dictionary"),
        (lambda w: (w["W1"], w["W2"]), "neither an array nor a dictionary"),
        (lambda w: {"a.b": w["W1"]}, "neither an array nor a dictionary"),
        (fails, "KeyError: 'nothing here'"),
        (fails_silently, "RuntimeError"),
    ],
)
def test_recording_functions_that_cannot_be_compiled(function, got):
    with says("functions 'fine', 'odd' cannot be compiled", got=got, wanted="fixed shapes"):
        train(record={"odd": function, "fine": norm})


def test_the_cause_of_a_failing_function_is_kept():
    with pytest.raises(nr.NeuralRaceError) as caught:
        train(record={"odd": fails})
    assert isinstance(caught.value.__cause__, KeyError)


def test_shapes_that_vary_from_call_to_call():
    seen = []

    def growing(w):
        seen.append(0)
        return jnp.zeros(len(seen))

    for _ in range(2):
        with refuses("weights"):
            train(record={"grow": growing})


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda w: {"end": True}, "a dict"),
        (lambda w: w["W1"], "shape"),
        (lambda w: jnp.sum(w["W1"]), "float"),
        (lambda w: w["W9"], "KeyError"),
    ],
)
def test_until_must_return_a_truth_value(function, got):
    net = nr.GDLN(nr.Architecture.chain(1, 2, 1))
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    with says("until must return", got=got, wanted="True or False", fix="until=0.01"):
        nr.train(net, net.init(0), data, learning_rate=0.1, steps=3, until=function)


def test_arguments_in_another_order():
    net = nr.GDLN(nr.Architecture.chain(1, 2, 1))
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    weights = net.init(0)
    for call in (
        lambda: nr.train(net, data, weights, learning_rate=0.1, steps=1),
        lambda: nr.flow(net, data, weights, times=[1.0]),
        lambda: net.loss(data, weights),
        lambda: nr.Trajectory.from_weights(net, data, weights, [0.0]),
    ):
        with refuses("weights"):
            call()
