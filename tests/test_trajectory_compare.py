"""Trajectories side by side."""

from importlib import import_module

import numpy as np
import optax
import pytest

import neuralrace as nr
from neuralrace.errors import NeuralRaceError
from neuralrace.trajectory import momentum_error
from tests.test_errors import refuses, says
from tests.trajectories import Doubling, ensemble

comparing = import_module("neuralrace.trajectory.compare")


def test_compare_by_hand_on_different_grids():
    a = nr.Trajectory([0, 1, 2], [2.0, 1.0, 0.0])
    b = nr.Trajectory([0, 2], [2.0, 0.4])  # not known at t = 1: the gaps are 0 and 0.4
    found = nr.compare(a, b)
    assert found.mean == pytest.approx(0.2 / 2, rel=1e-14)
    assert found.max == pytest.approx(0.4 / 2, rel=1e-14)
    assert found.outputs is None
    assert found.end == 2
    assert nr.compare(a, a).mean == nr.compare(a, a).max == nr.compare(a, a).shift == 0
    assert nr.compare(a, a).mean_after_shift == 0
    # the reference gives the unit, and only the time that both cover counts
    later = nr.Trajectory([0.5, 1, 1.5, 5], [1.0, 1.0, 1.0, 1.0])
    found = nr.compare(a, later)  # gaps 0.5, 0, 1 at t = 0.5, 1, 2
    assert found.mean == pytest.approx((0.125 + 0.5) / 1.5 / 2, rel=1e-14)
    assert found.max == pytest.approx(0.5, rel=1e-14)
    assert nr.compare(later, a).mean == pytest.approx((0.125 + 0.5) / 1.5, rel=1e-14)
    same = nr.compare(a, a)
    assert (same.mean, same.max, same.start, same.end) == (0, 0, 0, 2)


@pytest.mark.parametrize("every", [5, 20, 200])
def test_sparse_records_are_no_difference(every):
    """The same curves, one of them at fewer moments: the gap at these moments, not between them."""
    time = np.linspace(0, 30, 601)
    loss = lambda t, delay: 1 / (1 + np.exp(t - 15 - delay))
    fine = nr.Trajectory(time, loss(time, 0.3))
    sparse = nr.Trajectory(time[::every], loss(time[::every], 0.0))
    for found in (nr.compare(sparse, fine), nr.compare(fine, sparse)):
        gap = np.abs(loss(time[::every], 0.3) - sparse.loss) / found.reference.loss[0]
        assert found.max == pytest.approx(gap.max(), rel=1e-12)
        assert found.mean == pytest.approx(np.trapezoid(gap, time[::every]) / 30, rel=1e-12)
        assert any("between two records" in note for note in found.notes) == (every == 200)


@pytest.mark.parametrize("delay", [1.3, -2.7])
def test_compare_finds_a_delay(delay):
    sigmoid = lambda t: 1 / (1 + np.exp(t - 15))
    t, other_t = np.linspace(0, 30, 601), np.linspace(0, 30, 431)
    found = nr.compare(
        nr.Trajectory(t, sigmoid(t)), nr.Trajectory(other_t, sigmoid(other_t - delay))
    )
    assert found.shift == pytest.approx(delay, abs=2e-3)
    assert found.mean == pytest.approx(abs(delay) / 30, rel=1e-3)  # the area between the two
    assert found.mean_after_shift < found.mean / 300


def test_compare_of_outputs_by_hand():
    def run(times, y, z):
        y, z = (np.asarray(v, float)[:, None, None] for v in (y, z))
        outputs = {"y": y * np.ones((1, 3, 2)), "z": z * np.ones((1, 3, 1))}
        return nr.Trajectory(times, np.full(len(times), 8.0), values={"outputs": outputs})

    a, b = run([0, 1, 2], [0, 0, 0], [1, 1, 1]), run([0, 2], [0, 4], [1, 1])
    # ‖o_a − o_b‖ = √2 · 2t on every sample, and √(2 L(0)) = 4
    found = nr.compare(a, b)
    assert found.outputs == pytest.approx(np.sqrt(2) * 2 / 4, rel=1e-14)
    c = run([0, 2], [0, 0], [3, 3])
    assert nr.compare(a, c).outputs == pytest.approx(2 / 4, rel=1e-14)
    fewer = nr.Trajectory([0, 1], [1.0, 0.5], values={"outputs": {"y": np.zeros((2, 2, 2))}})
    assert nr.compare(a, fewer).outputs is None, "outputs on other samples cannot be compared"


def test_compare_of_outputs_with_sample_weights():
    """Weights count samples: twice the weight is the sample shown twice."""
    data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [0.0]]}, sample_weight=[1, 2])
    twice = nr.Dataset({"x": [[1.0], [2.0], [2.0]]}, {"y": [[1.0], [0.0], [0.0]]})
    net = nr.GDLN(nr.Architecture.chain(1, 1))

    def gap(data):
        starts = ({"W1": np.array([[w]])} for w in (0.1, 0.7))
        runs = [
            nr.train(net, w, data, learning_rate=0.1, steps=20, record={"outputs": True})
            for w in starts
        ]
        return nr.compare(*runs, sample_weight=data.sample_weight).outputs, runs

    (found, runs), (wanted, _) = gap(data), gap(twice)
    assert found == pytest.approx(wanted, rel=1e-12)
    assert nr.compare(*runs).outputs == pytest.approx(wanted, rel=1e-12), "runs know their weights"
    equal = nr.compare(*runs, sample_weight=[1, 1]).outputs
    assert equal != pytest.approx(wanted, rel=1e-3)
    with refuses("sample_weight"):
        nr.compare(*runs, sample_weight=[1, 1, 1])


def test_compare_reads_the_sample_weights_of_the_runs():
    def run(y, weight):
        outputs = {"y": np.asarray(y, float)[None, :, None] * np.ones((2, 1, 1))}
        return nr.Trajectory([0, 1], [0.5, 0.5], values={"outputs": outputs}, sample_weight=weight)

    weight = [0.25, 0.75]
    near, far = run([0, 0], weight), run([0, 2], weight)
    wanted = np.sqrt(0.75 * 4)  # √(2 L(0)) = 1
    assert nr.compare(near, far).outputs == pytest.approx(wanted, rel=1e-14)
    assert nr.compare(near, run([0, 2], None)).outputs == pytest.approx(wanted, rel=1e-14)
    assert nr.compare(run([0, 0], None), far).outputs == pytest.approx(wanted, rel=1e-14)
    equal = nr.compare(near, far, sample_weight=[1, 1])
    assert equal.outputs == pytest.approx(np.sqrt(0.5 * 4), rel=1e-14)


def test_compare_uses_the_outputs_of_a_theory():
    run = nr.Trajectory([0, 2], [2.0, 2.0], values={"outputs": {"y": np.zeros((2, 3, 1))}})
    theory = nr.Trajectory([0, 1, 2], [2.0, 2.0, 2.0], source=Doubling())
    assert nr.compare(run, theory).outputs == pytest.approx(2 / 2, rel=1e-14)  # mean of 2t over 2


@pytest.mark.parametrize(
    ("rate", "momentum", "s"), [(0.01, 0.9, 1.0), (0.1, 0.5, 0.3), (0.05, 0.95, 2.0), (0.2, 0.0, 1)]
)
def test_the_error_of_momentum_is_that_of_its_steps(rate, momentum, s):
    """A small weight under heavy-ball momentum, step by step, against e^{st}."""
    weight, step, logs = 1.0, 0.0, []
    for _ in range(3000):
        step = momentum * step + rate * s * weight
        weight += step
        logs.append(np.log(weight / (size := abs(weight))) + np.log(size))
        if weight > 1e100:
            break
    later = len(logs) // 2
    each = (logs[-1] - logs[later]) / (len(logs) - 1 - later)
    wanted = each * (1 - momentum) / (rate * s) - 1
    assert momentum_error(rate, momentum, s) == pytest.approx(wanted, rel=1e-6)


def test_the_note_on_momentum_has_its_size():
    net = nr.GDLN(nr.Architecture.chain(2, 3, 2))
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([2.0, 1.0])})
    weights = net.init(0, scale=1e-4)
    heavy = nr.train(net, weights, data, optimizer=optax.sgd(0.05, momentum=0.9), steps=60)
    flow = nr.flow(net, weights, data, times=heavy.time)
    off = momentum_error(0.05, 0.9, growth_rate=1.0)
    (note,) = nr.compare(flow, heavy, growth_rate=1.0).notes
    assert f"{-100 * off:.2g} %" in note
    (note,) = nr.compare(flow, heavy).notes
    assert "growth_rate" in note
    with pytest.raises(nr.NeuralRaceError, match="growth_rate"):
        nr.compare(flow, heavy, growth_rate=-1.0)


def test_a_run_with_weight_decay_is_compared_with_a_note():
    net = nr.GDLN(nr.Architecture.chain(2, 3, 2))
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.eye(2)})
    weights = net.init(0, scale=0.1)
    decayed = optax.chain(optax.add_decayed_weights(1e-3), optax.sgd(0.1))
    run = nr.train(net, weights, data, optimizer=decayed, steps=5)
    assert len(nr.compare(nr.flow(net, weights, data, times=[0.0, 1.0]), run).notes) == 1
    same = nr.flow(net, weights, data, times=[0.0, 1.0], weight_decay=1e-3)
    assert nr.compare(same, run).notes == ()


def test_compare_refuses_other_clocks_and_losses():
    def run(**settings):
        return nr.Trajectory([0, 1], [1.0, 0.5], settings=settings)

    with refuses("reference"):
        nr.compare(run(), run(clock="steps"))
    with refuses("reference"):
        nr.compare(run(clock="steps"), run(clock="approximate flow"))
    assert nr.compare(run(clock="steps"), run(clock="steps")).mean == 0
    about = nr.compare(run(), run(clock="approximate flow"))
    assert (about.max, about.mean, about.end) == (0, 0, 1) and about.notes
    with refuses("loss"):
        nr.compare(run(), run(loss="cross_entropy"))
    assert nr.compare(run(loss="squared"), run()).mean == 0


def test_compare_says_where_the_data_differ():
    def run(digest, samples=3):
        values = {"outputs": {"y": np.zeros((2, samples, 1))}}
        return nr.Trajectory([0, 1], [1.0, 0.5], values=values, settings={"data": digest})

    assert nr.compare(run("a"), run("a")).notes == ()
    assert str(nr.compare(run("a"), run("b"))).endswith("; trained on different data")
    assert nr.compare(run("a"), nr.Trajectory([0, 1], [1.0, 0.5])).notes == ()
    with says("different numbers of samples", got="3 and 4", wanted="same samples"):
        nr.compare(run("a"), run("b", 4))


def test_compare_tells_other_gates_from_other_data():
    data, arch = nr.tasks.xor(), nr.Architecture.chain(2, 4, 1)
    gates = [{"h": np.eye(4)[k]} for k in range(2)]
    weights = nr.GDLN(arch).init(0)
    first, second = (
        nr.train(nr.GDLN(arch), weights, data.gated(g), learning_rate=0.01, steps=2) for g in gates
    )
    assert nr.compare(first, first).notes == ()
    assert nr.compare(first, second).notes == ("with different gates",)
    relu = nr.train(nr.ReLUNetwork(arch), weights, data, learning_rate=0.01, steps=2)
    assert nr.compare(relu, first).notes == ()  # a ReLU network has its own gates
    half = data.take([0, 1, 1, 0]).gated(gates[0])
    other = nr.train(nr.GDLN(arch), weights, half, learning_rate=0.1, steps=2)
    assert nr.compare(first, other).notes == ("trained on different data",)
    digest = data.gated(gates[0]).digest()
    assert len(digest) == 32 and digest[:16] == data.digest()[:16] != digest[16:]


def test_outputs_of_other_losses_are_compared_in_units_of_how_far_they_moved():
    o = np.array([[[0.0, 0.0], [0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]])  # 2 moments, 2 samples

    def run(outputs, loss):
        values = {"outputs": {"y": outputs}}
        return nr.Trajectory([0, 1], [0.7, 0.5], values=values, settings={"loss": loss})

    found = nr.compare(run(o, "cross_entropy"), run(o + 2.0, "cross_entropy"))
    assert found.outputs == pytest.approx(np.sqrt(8) / np.sqrt((25 + 1) / 2))
    assert "moved" in found.unit
    plain = nr.compare(run(o, "squared"), run(o + 2.0, "squared"))
    assert plain.outputs == pytest.approx(np.sqrt(8) / np.sqrt(1.4)) and "error" in plain.unit
    still = run(0 * o, "cross_entropy")
    assert nr.compare(still, run(o, "cross_entropy")).outputs is None


def test_the_shift_is_looked_for_only_when_asked_for(monkeypatch):
    def refuse(*_):
        raise AssertionError("the shift was computed")

    a, b = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0]), nr.Trajectory([0, 1, 2], [1.0, 0.6, 0.1])
    found = nr.compare(a, b)
    monkeypatch.setattr(comparing, "_best_shift", refuse)
    assert nr.compare(a, b) == found and str(found) and repr(found)
    with pytest.raises(AssertionError):
        _ = found.shift


def test_outputs_are_compared_in_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    runs = [
        nr.Trajectory(np.linspace(0, 1, n), np.ones(n), values={"outputs": {"y": v}})
        for n in (7, 11)
        for v in [rng.normal(size=(n, 3, 2))]
    ]
    whole = nr.compare(*runs).outputs
    monkeypatch.setattr(comparing, "GRID_PIECE", 20)
    assert nr.compare(*runs).outputs == pytest.approx(whole, rel=1e-14)


def test_compare_needs_single_overlapping_runs_with_a_loss():
    a = nr.Trajectory([0, 1], [1.0, 0.5])
    with refuses("other"):
        nr.compare(a, ensemble())
    with refuses("reference"):
        nr.compare(ensemble(), a)
    with refuses("time"):
        nr.compare(a, nr.Trajectory([1, 2], [1.0, 0.5]))
    with refuses("reference"):
        nr.compare(nr.Trajectory([0, 1], [0.0, 0.5]), a)


def test_a_comparison_says_where_it_ends_early():
    a = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    short = nr.compare(a, nr.Trajectory([0, 1], [1.0, 0.5]))
    assert not short.whole and str(short).endswith(" over t = 0 to 1, where the other ends")
    assert nr.compare(nr.Trajectory([0, 1], [1.0, 0.5]), a).whole


def test_outputs_are_compared_where_a_schedule_starts_at_zero():
    """A rate of 0 at first: two recorded moments at one time."""
    run = nr.Trajectory([0, 0, 1], [1.0, 1.0, 0.5], values={"outputs": {"y": np.zeros((3, 2, 1))}})
    other = nr.Trajectory([0, 1], [1.0, 0.5], values={"outputs": {"y": np.ones((2, 2, 1))}})
    assert nr.compare(run, other).outputs == pytest.approx(1 / np.sqrt(2))


@pytest.mark.parametrize("unit", [1e-16, 1e-10, 1e-7])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.99])
def test_the_error_of_momentum_at_small_rates(momentum, unit):
    """To first order it is −η(1 + μ)s/(2(1 − μ)²), in any units of the targets."""
    first_order = -unit * (1 + momentum) / (2 * (1 - momentum) ** 2)
    assert momentum_error(unit, momentum, 1.0) == pytest.approx(first_order, rel=0.1, abs=1e-15)


@pytest.mark.parametrize("rate", [-1.0, np.nan, "fast"])
def test_a_growth_rate_is_checked_also_where_no_run_has_momentum(rate):
    run = nr.Trajectory([0, 1], [1.0, 0.5])
    with pytest.raises(NeuralRaceError, match="growth_rate"):
        nr.compare(run, run, growth_rate=rate)
