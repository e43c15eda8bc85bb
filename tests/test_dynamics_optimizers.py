"""Optimizers, mini-batches, losses, evaluation, early ends, and what time means for each."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import neuralrace as nr
from evidence.own import learning
from neuralrace.dynamics import setup
from neuralrace.dynamics.methods import clock_of
from tests.test_dynamics_train import compilations
from tests.test_errors import refuses, says

NET = nr.ReLUNetwork((2, 6, 2), leak=0.1)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(11, 2))
CLASSES = RNG.integers(0, 2, 11)
DATA = nr.Dataset({"x": X}, {"y": np.eye(2)[CLASSES]})
WEIGHTS = NET.init(jax.random.key(0), 0.5)


def train(data=DATA, net=NET, weights=WEIGHTS, **options) -> nr.Trajectory:
    usual = {"steps": 20} | ({} if "optimizer" in options else {"learning_rate": 0.1})
    return nr.train(net, weights, data, **usual | options)


# ---- time ----------------------------------------------------------------------------------------


def halves(step):
    return 0.5**step


def ema(decay):
    return optax.chain(optax.ema(decay, debias=False), optax.sgd(0.1))


@pytest.mark.parametrize(
    ("optimizer", "kind", "time"),
    [
        (optax.sgd(0.1), "flow", 0.1 * 20),
        (optax.sgd(np.float64(0.1)), "flow", 0.1 * 20),
        (optax.sgd(0.1, momentum=0.9), "approximate flow", 1.0 * 20),
        (optax.sgd(0.2, momentum=0.5, nesterov=True), "approximate flow", 0.4 * 20),
        (optax.sgd(optax.linear_schedule(1.0, 0.0, 10)), "flow", 5.5),
        (optax.sgd(halves, momentum=0.5), "approximate flow", 4 * (1 - 0.5**20)),
        (optax.sgd(optax.warmup_constant_schedule(0.0, 0.1, 10)), "flow", 1.45),
        (optax.adam(0.1), "steps", 20),
        (optax.adamw(0.1), "steps", 20),
        (ema(0.9), "steps", 20),
        (optax.chain(optax.clip(1.0), optax.sgd(0.1)), "steps", 20),
        (optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.1)), "flow", 2.0),
        (optax.rmsprop(0.1), "steps", 20),
        (optax.noisy_sgd(0.1, key=0), "steps", 20),
        (optax.set_to_zero(), "steps", 20),
    ],
)
def test_time_is_the_sum_of_rates_of_plain_descent_and_sgd(optimizer, kind, time):
    clock = clock_of(optimizer, 20)
    assert clock.kind == kind
    assert clock.time(np.array([0, 20])) == pytest.approx([0, time])


def test_a_schedule_is_the_rate_of_every_step():
    schedule = optax.exponential_decay(0.1, 40, 0.5)
    clock = clock_of(optax.sgd(schedule), 300)
    np.testing.assert_allclose(clock.rates, 0.1 * 0.5 ** (np.arange(300) / 40), rtol=1e-12)
    steps = np.array([0, 1, 300])
    wanted = [sum(0.1 * 0.5 ** (n / 40) for n in range(step)) for step in steps]
    np.testing.assert_allclose(clock.time(steps), wanted, rtol=1e-12)


def test_rates_that_differ_by_edge_have_no_common_time():
    labels = {"W1": "slow", "W2": "fast"}
    optimizer = optax.multi_transform({"slow": optax.sgd(0.1), "fast": optax.sgd(1.0)}, labels)
    assert clock_of(optimizer, 5).kind == "steps"


def test_a_second_run_with_an_equal_optimizer_compiles_nothing():
    def call():
        train(optimizer=optax.adam(0.01), batch_size=4, key=0)

    call()
    assert compilations(call) == 0


def test_a_run_says_what_its_time_means():
    plain = train(optimizer=optax.sgd(0.1))
    assert plain.settings["method"] == "gradient descent"
    assert (plain.settings["learning_rate"], plain.settings["clock"]) == (0.1, "flow")
    np.testing.assert_allclose(plain.loss, train().loss, rtol=1e-12)
    momentum = train(optimizer=optax.sgd(0.1, momentum=0.5))
    assert momentum.settings["momentum"] == pytest.approx(0.5)
    assert momentum.settings["clock"] == "approximate flow"
    np.testing.assert_allclose(momentum.time, 0.2 * np.arange(21))
    adam = train(optimizer=optax.adam(0.1))
    assert (adam.settings["method"], adam.settings["optimizer"]) == ("optimizer", "other")
    assert adam.time.tolist() == list(range(21)) == adam.steps.tolist()


def test_momentum_follows_the_flow_at_its_time():
    net = nr.GDLN(nr.Architecture.chain(2, 6, 2))
    half = lambda rate: optax.sgd(rate, momentum=0.5)
    runs = [
        train(DATA, net, WEIGHTS, optimizer=half(rate), steps=round(4 / rate))
        for rate in (0.04, 0.02)
    ]
    flow = nr.flow(net, WEIGHTS, DATA, times=np.linspace(0, 8, 81))
    gaps = [nr.compare(flow, run).mean for run in runs]
    assert gaps[0] < 0.01
    assert gaps[1] < 0.7 * gaps[0]


# ---- mini-batches --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "loss"),
    list(zip(learning.METHODS, itertools.cycle(["squared", "cross_entropy"]), strict=False)),
)
def test_batches_against_numpy(method, loss):
    assert learning.against_numpy(method, loss, 60) < 1e-12


def test_every_epoch_sees_every_sample_once():
    """Rate 1 on a linear map of one-hot inputs: a column is right once its sample was seen."""
    n = 7
    net = nr.GDLN(nr.Architecture.chain(n, 1))
    data = nr.Dataset({"x": np.eye(n)}, {"y": np.arange(1.0, n + 1)[:, None]})
    zero = {"W1": np.zeros((1, n))}
    run = nr.train(
        net, zero, data, learning_rate=1.0, steps=n, batch_size=1, key=3, record={"weights": True}
    )
    seen = [int(np.flatnonzero(d)[0]) for d in np.diff(run.values["weights"]["W1"][:, 0], axis=0)]
    assert sorted(seen) == list(range(n))
    assert seen == list(map(int, next_orders(3, n)))


def next_orders(key, n):
    return jax.random.permutation(jax.random.fold_in(jax.random.key(key), 0), n)


def test_sample_weights_count_within_a_batch():
    weighted = nr.Dataset(DATA.x, DATA.y, sample_weight=np.arange(11.0))
    run = train(weighted, batch_size=11, key=0)
    np.testing.assert_allclose(run.loss, train(weighted).loss, rtol=1e-12)
    alone = train(weighted, batch_size=1, key=0, steps=50)
    assert np.isfinite(alone.loss).all(), "a batch whose only sample has no weight changes nothing"


def test_data_that_are_not_in_memory_are_refused_by_name(tmp_path, monkeypatch):
    np.save(tmp_path / "y.npy", np.asarray(DATA.y["y"]))
    mapped = nr.Dataset({"x": X}, {"y": np.load(tmp_path / "y.npy", mmap_mode="r")[::1]})
    ways = (
        lambda data: train(data),
        lambda data: train(data, batch_size=4, key=0),
        lambda data: train(evaluate={"test": data}),
        lambda data: nr.flow(NET, WEIGHTS, data, times=[1.0]),
        lambda data: nr.train_ensemble(NET, data, key=0, learning_rate=0.1, steps=5),
    )
    for way in ways:
        with pytest.raises(nr.NeuralRaceError, match=r"y\['y'\].* memory-mapped"):
            way(mapped)
    small = 8 * (X.size + DATA.y["y"].size) - 1
    monkeypatch.setattr(setup, "device_memory", lambda: small)
    with pytest.raises(nr.NeuralRaceError, match=r"largest array is x\['x'\]"):
        train()
    monkeypatch.setattr(setup, "device_memory", lambda: small + 1)
    train()


# ---- losses and evaluation -----------------------------------------------------------------------


def test_class_indices_are_one_hot_rows():
    indices = nr.Dataset({"x": X}, {"y": CLASSES[:, None]})
    run = train(indices, loss="cross_entropy")
    np.testing.assert_array_equal(run.loss, train(loss="cross_entropy").loss)
    assert run.settings["loss"] == "cross_entropy"


def absolute(outputs, targets):
    return jnp.sum(jnp.abs(outputs["y"] - targets["y"]), axis=1)


def test_a_loss_of_ones_own():
    run = train(loss=absolute)
    wanted = np.abs(np.asarray(NET(WEIGHTS, DATA)["y"]) - DATA.y["y"]).sum(axis=1).mean()
    assert float(run.loss[0]) == pytest.approx(wanted, rel=1e-12)
    assert run.settings["loss"] == "function absolute"
    with refuses("loss"):
        train(loss=lambda o, t: jnp.mean((o["y"] - t["y"]) ** 2))


def test_loss_and_accuracy_on_other_data():
    other = DATA.gated({})
    test = nr.Dataset({"x": X[:5]}, {"y": np.eye(2)[CLASSES[:5]]})
    run = train(loss="cross_entropy", evaluate={"train": other, "test": test}, steps=200)
    np.testing.assert_allclose(run.values["train"]["loss"], run.loss, rtol=1e-12)
    right = np.argmax(np.asarray(NET(run.final, test)["y"]), axis=1) == CLASSES[:5]
    assert run.values["test"]["accuracy"][-1] == pytest.approx(right.mean())
    assert run.values["train"]["accuracy"][-1] > run.values["train"]["accuracy"][0]


def test_accuracy_of_one_output_is_that_of_the_nearer_target():
    xor, net = nr.tasks.xor(), nr.ReLUNetwork((2, 16, 1))
    run = nr.train(
        net, net.init(jax.random.key(0), 0.3), xor, learning_rate=0.2, steps=300,
        record_every=300, evaluate={"same": xor},
    )  # fmt: skip
    assert run.values["same"]["accuracy"].tolist()[-1] == 1.0
    one = {"high": xor.take(np.flatnonzero(xor.y["y"][:, 0] > 0)), "all": xor}
    early = nr.train(
        net, net.init(jax.random.key(1), 0.3), xor, learning_rate=0.05, steps=4, evaluate=one
    )
    outputs = np.asarray(net(early.final, one["high"])["y"])[:, 0]
    right = np.mean(outputs > xor.y["y"].mean())  # the midpoint of both classes, of one in the set
    assert early.values["high"]["accuracy"][-1] == pytest.approx(right) and right < 1
    assert "accuracy" in early.values["all"]
    numbers = nr.Dataset(xor.x, {"y": [[1.0], [2.0], [3.0], [4.0]]})
    plain = nr.train(net, run.final, numbers, learning_rate=0.1, steps=1, evaluate={"all": numbers})
    assert set(plain.values["all"]) == {"loss"}


# ---- when it ends --------------------------------------------------------------------------------


def test_a_run_ends_at_a_loss():
    whole = train(steps=100)
    limit = float(whole.loss[37])
    run = train(steps=100, until=limit)
    assert run.steps[-1] == 37
    assert run.settings["stopped"] == "until"
    np.testing.assert_allclose(run.loss, whole.loss[:38], rtol=1e-12)
    sparse = train(steps=100, until=limit, record_every=10)
    assert sparse.steps[-1] == 40
    np.testing.assert_allclose(NET.loss(sparse.final, DATA), whole.loss[40], rtol=1e-12)


def test_a_run_ends_where_a_function_says(tmp_path):
    whole = train(steps=100, record={"weights": True})
    size = (whole.values["weights"]["W1"] ** 2).sum(axis=(1, 2))
    limit = (size[0] + size[-1]) / 2
    first = int(np.argmax(np.sign(size - limit) != np.sign(size[0] - limit)))
    grows = bool(size[-1] > size[0])

    def passed(w):
        return (jnp.sum(w["W1"] ** 2) > limit) == grows

    assert 0 < first < 100
    assert train(steps=100, until=passed).steps[-1] == first
    options = {"steps": 100, "until": passed, "checkpoint": tmp_path, "checkpoint_every": 7}
    assert train(**options).steps[-1] == train(**options).steps[-1] == first


def test_a_callback_sees_progress(monkeypatch):
    monkeypatch.setattr("neuralrace.dynamics.loop.TRIAL", 1.0)
    monkeypatch.setattr("neuralrace.dynamics.loop.SECONDS", 1e-6)
    seen = []
    run = train(steps=50, callback=lambda step, loss: seen.append((step, loss)))
    assert len(seen) > 3
    assert seen[-1] == (50, pytest.approx(float(run.loss[-1])))


def test_the_last_weights_of_a_run_that_stopped_are_finite():
    for options in ({}, {"record_every": 3}):
        with pytest.raises(nr.StoppedError) as caught:
            train(learning_rate=1e3, steps=60, record={"weights": True}, **options)
        run = caught.value.trajectory
        for edge, w in run.final.items():
            np.testing.assert_array_equal(w, run.values["weights"][edge][-1])


# ---- ensembles, checkpoints ----------------------------------------------------------------------


def test_members_of_an_ensemble_are_single_runs():
    options = {"optimizer": optax.adam(0.01), "batch_size": 4, "steps": 15, "record_every": 5}
    options |= {"loss": "cross_entropy", "evaluate": {"test": DATA}}
    many = nr.train_ensemble(NET, DATA, key=5, seeds=3, scale=0.5, **options)
    for i, key in enumerate(jax.random.split(jax.random.key(5), 3)):
        one = nr.train(NET, NET.init(key, 0.5), DATA, key=jax.random.fold_in(key, 1), **options)
        np.testing.assert_allclose(many.loss[i], one.loss, rtol=1e-10)
        found = many.values["test"]["accuracy"][i]
        np.testing.assert_allclose(found, one.values["test"]["accuracy"])


def test_an_ensemble_goes_on_until_all_may_end():
    whole = nr.train_ensemble(NET, DATA, key=5, seeds=3, scale=0.5, learning_rate=0.1, steps=60)
    limit = float(whole.loss[:, 30:32].max(axis=0).mean())  # between two steps
    some = nr.train_ensemble(
        NET, DATA, key=5, seeds=3, scale=0.5, learning_rate=0.1, steps=60, until=limit
    )
    assert len(some.steps) == int(np.argmax((whole.loss <= limit).all(axis=0))) + 1
    assert some.settings["stopped"] == "until"
    one_by_one = nr.train_ensemble(
        NET, DATA, key=5, seeds=3, scale=0.5, learning_rate=0.1, steps=60, until=limit,
        members_at_once=1,
    )  # fmt: skip
    np.testing.assert_allclose(one_by_one.loss, some.loss, rtol=1e-10)
    np.testing.assert_allclose(one_by_one.final["W1"], some.final["W1"], rtol=1e-10)


def test_an_ensemble_goes_on_from_its_checkpoints(tmp_path):
    options = {"optimizer": optax.adam(0.01), "batch_size": 4, "steps": 30, "scale": 0.5, "key": 2}
    whole = nr.train_ensemble(NET, DATA, seeds=5, members_at_once=2, **options)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 7, "members_at_once": 2, "seeds": 5}
    first = nr.train_ensemble(NET, DATA, **options, **kept)
    for path in sorted((tmp_path / "members-000002").glob("state-*"))[1:]:
        path.unlink()
    again = nr.train_ensemble(NET, DATA, **options, **kept)
    np.testing.assert_array_equal(first.loss, whole.loss)
    np.testing.assert_array_equal(again.loss, whole.loss)


def test_flows_from_many_starts():
    times = np.linspace(0, 5, 6)
    tasks = [nr.tasks.extended_xor(d) for d in (0.2, 1.0)]
    net = nr.GDLN(nr.Architecture.chain(3, 5, 1))
    many = nr.flow_ensemble(
        net, tasks, axis=("delta", (0.2, 1.0)), key=0, seeds=3, scale=0.3, times=times
    )
    assert many.loss.shape == (2, 3, 6)
    for i, j in np.ndindex(2, 3):
        start = net.init(jax.random.split(jax.random.key(0), 3)[j], 0.3)
        np.testing.assert_allclose(
            many.loss[i, j], nr.flow(net, start, tasks[i], times=times).loss, rtol=1e-6
        )


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 12, 2.5])
def test_batch_sizes(size):
    with refuses("batch_size"):
        train(batch_size=size, key=0)


def test_batches_are_drawn_by_the_key():
    first, same, other = train(batch_size=3), train(batch_size=3, key=0), train(batch_size=3, key=1)
    np.testing.assert_array_equal(first.loss, same.loss)
    assert (first.loss != other.loss).any()
    with refuses("key"):
        train(batch_size=3, key="a")


def test_cross_entropy_needs_classes():
    wrong = nr.Dataset({"x": X}, {"y": X})
    with refuses("loss"):
        train(wrong, loss="cross_entropy")
    high = nr.Dataset({"x": X}, {"y": 2.0 * CLASSES[:, None]})
    with refuses("loss"):
        train(high, loss="cross_entropy")


def test_optimizers_are_those_of_optax():
    with refuses("optimizer"):
        train(optimizer="adam")
    for options, got in (
        ({"learning_rate": 0.1, "optimizer": optax.adam(0.1)}, "both"),
        ({"learning_rate": None}, "neither"),
    ):
        with says("either a learning rate or an optimizer", got=got, wanted="one of"):
            train(**options)
    with refuses("optimizer"):
        train(learning_rate=optax.adam(0.1))
    with refuses("optimizer"):
        nr.train_ensemble(
            NET, DATA, key=0, seeds=2, scale=0.1, learning_rate=optax.adam(0.1), steps=1
        )


def test_unknown_losses():
    with refuses("loss"):
        train(loss="hinge")


def test_evaluation_sets_must_fit():
    other = nr.Dataset({"z": X}, DATA.y)
    with refuses("test"):
        train(evaluate={"test": other})
    with refuses("loss"):
        train(evaluate={"loss": DATA})
    with refuses("evaluate"):
        train(evaluate=DATA)


def test_what_cannot_be_compressed_says_why():
    net = nr.GDLN(nr.Architecture.chain(2, 6, 2))
    weights = net.init(jax.random.key(0), 0.1)
    for options, reason in (
        ({"batch_size": 2, "key": 0}, "mini-batches"),
        ({"loss": "cross_entropy"}, "cross_entropy"),
    ):
        with says("cannot be compressed exactly", got=reason, wanted="full batches"):
            train(net=net, weights=weights, compress=True, **options)
    with refuses("run"):
        train(compress=True)


@pytest.mark.parametrize("optimizer", [optax.adam(0.01), optax.sgd(0.05, momentum=0.9)])
def test_samples_compress_for_every_optimizer_neurons_for_momentum_alone(optimizer):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 3))
    data = nr.Dataset({"x": x}, {"y": x @ rng.normal(size=(3, 2))})
    net = nr.GDLN(nr.Architecture.chain(3, 40, 2))
    weights = net.init(jax.random.key(0), 0.1)
    options = {"optimizer": optimizer, "steps": 100}
    small = train(data, net, weights, compress=True, **options)
    whole = train(data, net, weights, compress=False, **options)
    np.testing.assert_allclose(small.loss, whole.loss, rtol=1e-8)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), small.final, whole.final)
    neurons = small.settings["compression"].split(", ")[1]
    assert (neurons == "43 → 43 neurons") == (small.settings["clock"] == "steps")


@pytest.mark.parametrize("until", [np.nan, "soon", [1, 2]])
def test_until_is_a_loss_or_a_function(until):
    with refuses("until"):
        train(until=until)


def test_descent_does_not_end_where_weights_rest():
    with refuses("until.stationary", "nr.flow"):
        train(until=nr.dynamics.Until(stationary=1e-6))
