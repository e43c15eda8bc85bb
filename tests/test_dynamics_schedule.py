"""Sample weights that change on the way: against runs in stages, each on its own data."""

import dataclasses

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.dynamics import Schedule
from tests.test_errors import refuses


def task(seed: int = 0, gates: bool = False) -> nr.Dataset:
    rng = np.random.default_rng(seed)
    context = np.array(["a", "b", "a", "c", "b", "c", "a"])
    on = {"h": rng.normal(size=7)} if gates else {}
    x, y = {"x": rng.normal(size=(7, 3))}, {"y": rng.normal(size=(7, 2))}
    return nr.Dataset(x, y, on, rng.uniform(0.5, 2, 7), labels={"context": context})


def staged(net, weights, data, schedule, ends, run):
    """Each phase as a run of its own, on data with the weights of that phase."""
    runs = []
    for k, (low, high) in enumerate(zip(schedule.starts, ends, strict=True)):
        here = dataclasses.replace(data, sample_weight=schedule.weights[k])
        runs.append(run(net, weights if not runs else runs[-1].final, here, high - low))
    return runs


NETS = {
    "gdln": (nr.GDLN(nr.Architecture.chain(3, 5, 2)), True),
    "relu": (nr.ReLUNetwork((3, 5, 2)), False),
    "learned": (
        nr.LearnedGates(
            nr.Architecture.parallel({"x": 3}, {"p": 4, "q": 4}, {"y": 2}),
            labels={"context": ("a", "b", "c")},
            budget=1.0,
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("every", [1, 4])
def test_descent_in_phases(name, every):
    net, gates = NETS[name]
    data, rate = task(gates=gates), 0.1
    schedule = Schedule([0, 0.7, 1.5], np.random.default_rng(1).uniform(size=(3, 7)))
    start = net.init(0, scale=0.5)
    run = nr.train(
        net, start, data, learning_rate=rate, steps=21, record_every=every, schedule=schedule
    )
    train = lambda net, w, d, time: nr.train(
        net, w, d, learning_rate=rate, steps=round(time / rate)
    )
    runs = staged(net, start, data, schedule, [0.7, 1.5, 2.1], train)
    losses = np.concatenate([r.loss[:-1] for r in runs[:-1]] + [runs[-1].loss])
    assert {7, 15} <= set(run.steps)  # where phases begin
    np.testing.assert_allclose(run.loss, losses[run.steps], rtol=1e-11)
    for edge, w in runs[-1].final.items():
        np.testing.assert_allclose(run.final[edge], w, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["gdln", "learned"])  # gates of ReLU flows slide
def test_flow_in_phases(name):
    net, gates = NETS[name]
    data, start = task(gates=gates), net.init(0, scale=0.5)
    schedule = Schedule([0, 0.7, 1.5], np.random.default_rng(2).uniform(size=(3, 7)))
    times = np.array([0, 0.3, 0.7, 1.0, 1.5, 2.1])
    run = nr.flow(net, start, data, times=times, schedule=schedule)
    flow = lambda net, w, d, time: nr.flow(net, w, d, times=[0, time])
    runs = staged(net, start, data, schedule, [0.7, 1.5, 2.1], flow)
    np.testing.assert_allclose(
        run.loss[[0, 2, 4]], [r.loss[0] for r in runs], rtol=1e-6
    )  # of the phase that begins
    assert run.loss[-1] == pytest.approx(runs[-1].loss[-1], rel=1e-6)
    for edge, w in runs[-1].final.items():
        np.testing.assert_allclose(run.final[edge], w, atol=1e-6, rtol=0)


def test_ensembles_and_optimizers_follow_it():
    import optax

    net, several = nr.GDLN(nr.Architecture.chain(3, 4, 2)), [task(3), task(4)]
    schedule = Schedule.blocks(several[0], "context", length=5, count=3)
    method = {"optimizer": optax.adam(0.01), "steps": 14, "schedule": schedule}
    many = nr.train_ensemble(net, several, seeds=2, scale=0.3, **method)
    start = net.init(jax.random.split(jax.random.key(0), 2)[1], 0.3)
    one = nr.train(net, start, several[1], **method)
    np.testing.assert_allclose(many.loss[1, 1], one.loss, rtol=1e-10)
    flows = nr.flow_ensemble(
        net, several, seeds=2, scale=0.3, times=[0, 4, 5, 9], schedule=schedule
    )
    one = nr.flow(net, start, several[1], times=[0, 4, 5, 9], schedule=schedule)
    np.testing.assert_allclose(flows.loss[1, 1], one.loss, rtol=1e-5)


def test_checkpoints_and_files_know_it(tmp_path):
    net, data = nr.ReLUNetwork((3, 4, 2)), task(5)
    schedule = Schedule.blocks(data, "context", length=0.8, count=4)
    call = {"learning_rate": 0.1, "steps": 30, "record_every": 9, "schedule": schedule}
    start = net.init(0, scale=0.4)
    plain = nr.train(net, start, data, **call)
    kept = nr.train(net, start, data, checkpoint=tmp_path / "run", checkpoint_every=4, **call)
    assert (plain.loss == kept.loss).all()
    other = Schedule(schedule.starts, schedule.weights[::-1])
    with refuses("schedule"):
        nr.train(
            net, start, data, checkpoint=tmp_path / "run", checkpoint_every=4,
            **call | {"schedule": other},
        )  # fmt: skip
    again = nr.load(plain.save(tmp_path / "run.nc"))
    assert again.settings["schedule"]["names"] == ["a", "b", "c", "a"]


def test_blocks():
    data = task(6)
    base, context = np.asarray(data.probability), np.asarray(data.labels["context"])
    plan = Schedule.blocks(data, "context", length=2, count=5, order=["c", "a"], rehearsal=0.25)
    assert plan.names == ("c", "a", "c", "a", "c")
    for row, name in zip(plan.weights, plan.names, strict=True):
        own = base * (context == name)
        np.testing.assert_allclose(row, 0.75 * own / own.sum() + 0.25 * base, rtol=1e-12)
    drawn = Schedule.blocks(data, "context", length=2, count=60, order="random", key=3)
    assert all(a != b for a, b in zip(drawn.names[:-1], drawn.names[1:], strict=True))
    assert set(drawn.names) == {"a", "b", "c"}


def test_time_within_a_phase():
    """One weight: L = ½ (w − s)², so that it takes log(|w₀ − s|/√(2 level)) to a level."""
    data = nr.Dataset({"x": [[1.0]] * 2}, {"y": [[1.0], [-1.0]]}, labels={"task": [1, 2]})
    plan = Schedule.blocks(data, "task", length=3.0, count=4)
    net = nr.GDLN(nr.Architecture.chain(1, 1))
    times = np.linspace(0, 12, 1601)
    run = nr.flow(net, {"W1": [[0.0]]}, data, times=times, schedule=plan)
    w, level, wanted = 0.0, 0.03, []
    for k in range(4):
        s = 1.0 - 2 * (k % 2)
        wanted.append(np.log(abs(w - s) / np.sqrt(2 * level)))
        w = s + (w - s) * np.exp(-3)
    np.testing.assert_allclose(plan.time_to(run, level), wanted, atol=1e-4)
    never = plan.time_to(run, 1e-9)
    assert np.isnan(never).all() and never.shape == (4,)
    pair = dataclasses.replace(run, loss=np.stack([run.loss, run.loss * 0]), axes={"seed": [0, 1]})
    np.testing.assert_allclose(plan.time_to(pair, level)[0], wanted, atol=1e-4)
    assert (plan.time_to(pair, level)[1] == 0).all()


def test_bad_input():
    data, net = task(), nr.GDLN(nr.Architecture.chain(3, 4, 2))
    rows = np.ones((2, 7))
    for starts, weights, names in (
        ([1, 2], rows, None),
        ([0, 0], rows, None),
        ([0, np.inf], rows, None),
        ([0, 1], rows[:1], None),
        ([0, 1], -rows, None),
        ([0, 1], 0 * rows, None),
        ([0, 1], rows, ["one"]),
    ):
        with (
            refuses("phases")
            if names is None and starts != [0, 1]
            else refuses("weights" if names is None else "names")
        ):
            Schedule(starts, weights, names)
    with refuses("place"):
        Schedule.blocks(data, "place", length=1, count=2)
    with refuses("order"):
        Schedule.blocks(data, "context", length=1, count=2, order="sorted")
    with refuses("context"):
        Schedule.blocks(data, "context", length=1, count=2, order=["d"])
    with refuses("length"):
        Schedule.blocks(data, "context", length=0, count=2)
    with refuses("rehearsal"):
        Schedule.blocks(data, "context", length=1, count=2, rehearsal=1.5)
    plan = Schedule([0, 1], rows)
    call = {"learning_rate": 0.1, "steps": 5}
    with refuses("schedule"):
        nr.train(net, net.init(0), data, schedule=Schedule([0, 1], np.ones((2, 3))), **call)
    with refuses("schedule"):
        nr.train(net, net.init(0), data, schedule="blocks", **call)
    with refuses("batch_size", "schedule"):
        nr.train(net, net.init(0), data, schedule=plan, batch_size=2, **call)
    with refuses("compress"):
        nr.train(net, net.init(0), data, schedule=plan, compress=True, **call)
    import diffrax

    with refuses("stepsize_controller"):
        nr.flow(
            net, net.init(0), data, times=[0, 1], schedule=plan,
            stepsize_controller=diffrax.StepTo(np.array([0.0, 1.0])),
        )  # fmt: skip
    with refuses("schedule"):
        nr.train_ensemble(net, data, schedule=plan, learning_rate=[0.1, 0.2], steps=3)
