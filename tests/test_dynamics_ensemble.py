"""Ensembles: their axes, the numbers of single runs, chunks, runs that diverge, bad input."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from tests.test_dynamics_train import compilations
from tests.test_errors import refuses, says

NET = nr.ReLUNetwork((3, 5, 1))
KEY = jax.random.key(3)
DELTAS = (0.2, 1.1)
TASKS = [nr.tasks.extended_xor(delta) for delta in DELTAS]


def first_row(w):
    return w["W1"][0]


def ensemble(data=TASKS[0], net=NET, **more) -> nr.Trajectory:
    """`nr.train_ensemble` with everything that a test does not care about filled in."""
    usual = {"key": KEY, "seeds": 2, "scale": 0.3, "learning_rate": 0.1, "steps": 12}
    return nr.train_ensemble(net, data, **usual | more)


def assert_member(many: nr.Trajectory, index: tuple, one: nr.Trajectory) -> None:
    np.testing.assert_allclose(many.loss[index], one.loss, rtol=1e-11)
    for found, wanted in ((many.values, one.values), (many.final, one.final)):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a[index], b, rtol=1e-10, atol=1e-13),
            found,
            wanted,
        )


# ---- the numbers --------------------------------------------------------------------------------


def test_an_ensemble_goes_on_from_given_weights():
    """Stages of gates: each seed goes on from where it was, and chunks do not matter."""
    first = ensemble(seeds=3)
    second = ensemble(TASKS[1], seeds=3, weights=first.final, steps=8, members_at_once=2)
    for i in range(3):
        start = {e: w[i] for e, w in first.final.items()}
        one = nr.train(NET, start, TASKS[1], learning_rate=0.1, steps=8)
        assert_member(second, (i,), one)
    assert second.settings["weights"] == "given"
    both = nr.join(first, second)
    assert both.steps.tolist() == list(range(21))
    np.testing.assert_array_equal(both.loss[:, 13:], second.loss[:, 1:])


def test_given_weights_are_one_start_for_every_seed():
    final = ensemble(seeds=3).final
    with refuses("weights"):
        ensemble(seeds=2, weights=final)
    with refuses("weights"):
        ensemble(seeds=3, weights=final, scale=[0.1, 0.2])
    with refuses("weights"):
        ensemble(seeds=3, weights={**final, "W1": np.zeros((3, 5, 4))})


def test_every_combination_equals_its_single_run():
    scales, rates = [0.1, 0.5], [0.02, 0.1, 0.2]
    record = {"outputs": True, "row": first_row}
    many = ensemble(
        TASKS,
        scale=scales,
        learning_rate=rates,
        axis=("delta", np.array(DELTAS)),
        record=record,
        record_every=4,
    )
    assert list(many.axes) == ["delta", "scale", "learning_rate", "seed"]
    assert many.axes["delta"].tolist() == list(DELTAS)
    assert many.axes["scale"].tolist() == scales
    assert many.axes["learning_rate"].tolist() == rates
    assert many.axes["seed"].tolist() == [0, 1]
    assert many.loss.shape == (2, 2, 3, 2, 4)
    assert many.values["outputs"]["y"].shape == (2, 2, 3, 2, 4, 4, 1)
    assert many.final["W1"].shape == (2, 2, 3, 2, 5, 3)
    assert many.time.tolist() == [0, 4, 8, 12], "with several rates, time counts steps"
    assert many.clock == "steps"
    for i, j, k, seed in np.ndindex(2, 2, 3, 2):
        one = nr.train(
            NET,
            NET.init(jax.random.split(KEY, 2)[seed], scales[j]),
            TASKS[i],
            learning_rate=rates[k],
            steps=12,
            record=record,
            record_every=4,
        )
        assert_member(many, (i, j, k, seed), one)
        picked = many.isel(delta=i, scale=j, learning_rate=k, seed=seed)
        np.testing.assert_array_equal(picked.loss, many.loss[i, j, k, seed])


def test_one_dataset_has_no_axis_and_one_rate_gives_time():
    many = ensemble(seeds=3, learning_rate=0.05)
    assert list(many.axes) == ["seed"]
    assert many.loss.shape == (3, 13)
    np.testing.assert_allclose(many.time, 0.05 * np.arange(13), rtol=1e-15)
    assert many.clock == "flow"
    assert len(np.unique(many.loss[:, 0])) == 3, "every seed starts elsewhere"


def test_sequences_of_one_keep_their_axes():
    many = ensemble([TASKS[0]], scale=[0.3], learning_rate=[0.1], seeds=1)
    assert list(many.axes) == ["data", "scale", "learning_rate", "seed"]
    assert many.loss.shape == (1, 1, 1, 1, 13)
    np.testing.assert_allclose(many.loss[0, 0, 0, 0], ensemble(seeds=1).loss[0], rtol=1e-12)


def test_gates_and_weights_of_each_dataset_count():
    arch, on = nr.tasks.linear_pathways(nr.tasks.xor(), total=4)
    rng = np.random.default_rng(0)
    other = nr.Dataset(
        on.x,
        on.y,
        {name: rng.uniform(size=4) for name in on.gates},
        sample_weight=[1, 2, 3, 4],
        labels=on.labels,
    )
    net = nr.GDLN(arch)
    many = ensemble([on, other], net, seeds=1)
    for i, data in enumerate((on, other)):
        weights = net.init(jax.random.split(KEY, 1)[0], 0.3)
        one = nr.train(net, weights, data, learning_rate=0.1, steps=12)
        assert_member(many, (i, 0), one)


@pytest.mark.parametrize("kind", ["xavier", "orthogonal"])
def test_scales_by_edge_and_kinds_of_start(kind):
    scale = {"W1": 0.5, "W2": 0.01}
    many = ensemble(scale=scale, kind=kind, seeds=2)
    for seed in range(2):
        weights = NET.init(jax.random.split(KEY, 2)[seed], scale, kind)
        assert_member(many, (seed,), nr.train(NET, weights, TASKS[0], learning_rate=0.1, steps=12))
    assert many.settings["scale"] == scale
    assert many.settings["kind"] == kind


def test_float32():
    data = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), TASKS[0])
    many = ensemble(data, dtype=jnp.float32)
    assert many.loss.dtype == many.final["W1"].dtype == np.float32
    weights = NET.init(jax.random.split(KEY, 2)[1], 0.3, dtype=jnp.float32)
    one = nr.train(NET, weights, data, learning_rate=0.1, steps=12)
    np.testing.assert_allclose(many.loss[1], one.loss, rtol=1e-4)


# ---- chunks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_chunks_give_the_same_numbers(at_once):
    options = {"seeds": 5, "record": {"outputs": True}, "axis": ("delta", DELTAS)}
    whole = ensemble(TASKS, **options)
    chunked = ensemble(TASKS, members_at_once=at_once, **options)
    assert chunked.loss.shape == (2, 5, 13)
    for index in np.ndindex(2, 5):
        assert_member(chunked, index, whole.isel(delta=index[0], seed=index[1]))


def test_memory_decides_how_many_run_at_once(monkeypatch):
    from neuralrace.dynamics import ensemble as module

    sizes = []
    take_steps = module.take_steps

    def spy(system, weights, *more, **options):
        sizes.append(len(weights["W1"]))
        return take_steps(system, weights, *more, **options)

    monkeypatch.setattr(module, "take_steps", spy)
    whole = ensemble(seeds=6)
    assert sizes == [6]
    one = 13 * 8 + 8 * (15 + 5) * 8  # the losses of a run, and its weights several times over
    monkeypatch.setattr("neuralrace.dynamics.grid.MEMORY", 2.5 * one)
    np.testing.assert_allclose(ensemble(seeds=6).loss, whole.loss, rtol=1e-12)
    assert sizes == [6, 2, 2, 2]
    monkeypatch.setattr("neuralrace.dynamics.grid.MEMORY", 1)
    ensemble(seeds=2)
    assert sizes[4:] == [1, 1]


def test_a_second_call_compiles_nothing():
    def call(seed: int, rate: float, scale: float, deltas: tuple) -> None:
        data = [nr.tasks.extended_xor(delta) for delta in deltas]
        key = jax.random.key(seed)
        ensemble(data, key=key, seeds=3, learning_rate=rate, scale=scale, members_at_once=4)

    call(0, 0.1, 0.1, (0.1, 0.2))
    assert compilations(lambda: call(0, 0.1, 0.1, (0.1, 0.2))) == 0
    assert compilations(lambda: call(1, 0.2, 0.3, (0.5, 0.9))) == 0


# ---- runs that diverge --------------------------------------------------------------------------


def test_a_run_that_diverges_leaves_the_others_right():
    rates = [0.1, 1e4]
    with pytest.warns(UserWarning, match="2 of 4 runs .* smaller learning rate"):
        many = ensemble(learning_rate=rates, steps=40, record_every=10)
    assert not np.isfinite(many.loss[1, :, -1]).any()
    assert np.isfinite(many.loss[0]).all()
    alone = ensemble(learning_rate=[0.1], steps=40, record_every=10)
    np.testing.assert_allclose(many.loss[0], alone.loss[0], rtol=1e-12)
    for edge, w in alone.final.items():
        np.testing.assert_allclose(many.final[edge][0], w[0], rtol=1e-11)


# ---- settings -----------------------------------------------------------------------------------


def test_the_settings_hold_all_that_is_needed_to_do_it_again(tmp_path):
    many = ensemble(scale=[0.1, 0.2], learning_rate=0.05, seeds=2, steps=9)
    settings = nr.load(many.save(tmp_path / "many.nc")).settings
    assert settings["seeds"] == 2
    assert settings["scale"] == [0.1, 0.2]
    assert settings["learning_rate"] == 0.05
    assert settings["steps"] == 9
    assert settings["dtype"] == "float64"
    key = jax.random.wrap_key_data(jnp.asarray(settings["key"], jnp.uint32))
    again = ensemble(key=key, scale=[0.1, 0.2], learning_rate=0.05, seeds=2, steps=9)
    np.testing.assert_array_equal(again.loss, many.loss)


# ---- bad input ----------------------------------------------------------------------------------


def test_axes_that_do_not_fit():
    with refuses("axis"):
        ensemble(TASKS, axis=("delta", [0.1, 0.2, 0.3]))
    with refuses("data"):
        ensemble([])
    with refuses("axis"):
        ensemble(TASKS[0], axis=("delta", [0.2]))


@pytest.mark.parametrize("name", ["time", "loss", "a/b", ""])
def test_axes_have_names_that_a_file_can_hold(name):
    with says(repr(name), got=repr(name), wanted=""):
        ensemble(TASKS, axis=(name, DELTAS))


@pytest.mark.parametrize("name", ["seed", "scale", "row"])
def test_axes_and_values_of_one_name(name):
    with refuses(name):
        ensemble(TASKS, axis=(name, DELTAS), scale=[0.1, 0.2], record={"row": first_row})


def test_a_value_cannot_have_the_name_of_an_axis():
    with refuses("seed"):
        ensemble(record={"seed": first_row})


def test_datasets_of_unequal_shapes():
    fewer = nr.Dataset({"x": np.ones((3, 3))}, {"y": np.ones((3, 1))})
    with says("dataset 1 of the ensemble has another shape", got="(3, 3)", wanted="x: (4, 3)"):
        ensemble([TASKS[0], fewer])
    gated = TASKS[1].gated({"h": np.ones(4)})
    with says("dataset 1 of the ensemble", got="gates h: (4,)", wanted="gates none"):
        ensemble([TASKS[0], gated], net=nr.GDLN(NET.arch))
    assert ensemble([TASKS[0], gated]).loss.shape[0] == 2  # a ReLU network ignores gates


@pytest.mark.parametrize("value", [[], np.ones((2, 2))])
def test_scales_and_rates_are_numbers_or_sequences(value):
    with refuses("scale"):
        ensemble(scale=value)


def test_several_scales_by_edge():
    by_edge = [{"W1": 0.1, "W2": 0.2}, {"W1": 0.2, "W2": 0.1}]
    many = ensemble(scale=by_edge)
    assert list(many.axes) == ["scale", "seed"] and list(many.axes["scale"]) == [0, 1]
    ones = [ensemble(scale=each).loss for each in by_edge]
    np.testing.assert_allclose(many.loss, ones, rtol=1e-12)
    assert many.settings["scale"] == by_edge
    assert not np.allclose(*ones, rtol=1e-3)
    with refuses("scale"):
        ensemble(scale={"W1": 0.1})
    with refuses("scale"):
        ensemble(scale=[by_edge[0], {"W1": 0.1}])


@pytest.mark.parametrize("rate", [[], [0.1, -0.1], np.ones((2, 2)), 0.0])
def test_rates_are_positive(rate):
    with refuses("learning_rate"):
        ensemble(learning_rate=rate)


@pytest.mark.parametrize("value", [0, -1])
def test_counts_are_positive(value):
    with refuses("seeds"):
        ensemble(seeds=value)
    with refuses("members_at_once"):
        ensemble(members_at_once=value)


# ---- several devices ----------------------------------------------------------------------------

SPREAD = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, numpy as np, neuralrace as nr
assert len(jax.devices()) == 2
net, data = nr.ReLUNetwork((2, 8, 1)), nr.tasks.xor()
data = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), data)
many = nr.train_ensemble(net, data, key=0, seeds=3, scale=0.3, learning_rate=0.1, steps=5)
keys = jax.random.split(jax.random.key(0), 3)
ones = [nr.train(net, net.init(k, 0.3), data, learning_rate=0.1, steps=5).loss for k in keys]
np.testing.assert_allclose(many.loss, ones, rtol=1e-5)
from neuralrace.dynamics.grid import spread
print(len(spread(np.zeros(4)).sharding.device_set), many.loss.shape)
"""


@pytest.mark.slow
def test_members_are_spread_over_devices():
    command = [sys.executable, "-c", SPREAD]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "2 (3, 6)"


def test_members_know_their_data_and_its_weights():
    base = TASKS[0]
    weighted = nr.Dataset(base.x, base.y, sample_weight=[1, 2, 3, 4], labels=base.labels)
    many = ensemble([base, weighted], axis=("weighted", [0, 1]))
    assert many.isel(weighted=1).settings["data"] == weighted.digest()
    np.testing.assert_allclose(many.isel(weighted=1, seed=0).sample_weight, [0.1, 0.2, 0.3, 0.4])
    assert many.sample_weight.shape == (2, 2, 4)
    assert ensemble(TASKS).sample_weight is None


# ---- which seeds --------------------------------------------------------------------------------


def test_a_seed_of_a_list_starts_alike_whatever_others_there_are():
    net = nr.ReLUNetwork((3, 6, 1))
    data = nr.tasks.extended_xor(0.5)
    how = {"key": 0, "scale": 0.3, "learning_rate": 0.1, "steps": 20}
    some = nr.train_ensemble(net, data, seeds=[7, 2, 5], **how)
    np.testing.assert_array_equal(some.axes["seed"], [7, 2, 5])
    for i, seed in enumerate([7, 2, 5]):
        start = net.init(jax.random.fold_in(jax.random.key(0), seed), 0.3)
        alone = nr.train(net, start, data, learning_rate=0.1, steps=20)
        np.testing.assert_allclose(some.loss[i], alone.loss, rtol=1e-12)


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], [0.5], [2**32], "12"])
def test_seeds_that_are_none_are_refused(seeds):
    with pytest.raises(nr.NeuralRaceError, match="seed"):
        nr.train_ensemble(
            nr.ReLUNetwork((3, 6, 1)), nr.tasks.extended_xor(0.5), key=0, seeds=seeds,
            learning_rate=0.1, steps=2,
        )  # fmt: skip


# ---- other rules --------------------------------------------------------------------------------


def test_decay_momentum_and_rates_are_those_of_single_runs():
    how = {"weight_decay": 0.1, "rates": {"W1": 0.5}}
    many = ensemble(TASKS, momentum=0.5, **how)
    flows = nr.flow_ensemble(NET, TASKS, key=KEY, seeds=2, scale=0.3, times=[0.0, 1.0], **how)
    start = NET.init(jax.random.split(KEY, 2)[1], 0.3)
    for i, task in enumerate(TASKS):
        one = nr.train(NET, start, task, learning_rate=0.1, steps=12, momentum=0.5, **how)
        np.testing.assert_allclose(many.loss[i, 1], one.loss, rtol=1e-12)
        np.testing.assert_allclose(many.time, one.time)
        same = nr.flow(NET, start, task, times=[0.0, 1.0], **how)
        np.testing.assert_allclose(flows.loss[i, 1], same.loss, rtol=1e-6)
    assert many.settings["momentum"] == 0.5 and many.settings["weight_decay"] == 0.1
    with refuses("momentum"):
        ensemble(learning_rate=[0.1, 0.2], momentum=0.5)
    with refuses("weight_decay"):
        ensemble(weight_decay=-1.0)
