"""Sliding gates and gates in stages, against counts of gates and the conditions they must meet."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.reln.explained.types.crowd import Crowd, descend
from neuralrace.reln.explained.types.sliding import SLIDING, _boundaries, filippov, filippov_between
from tests.test_errors import refuses, says

RATE = 0.05


def trained(data: nr.Dataset, steps: int, *, width: int = 40, scale: float = 1e-3):
    """A ReLU network with its weights recorded."""
    sizes = (data.x["x"].shape[1], width, data.y["y"].shape[1])
    net = nr.ReLUNetwork(sizes)
    return nr.train(
        net, net.init(0, scale=scale), data, learning_rate=RATE, steps=steps,
        record_every=max(1, steps // 300), record={"weights": True, "outputs": True},
    )  # fmt: skip


# ---- the condition ------------------------------------------------------------------------------


@pytest.mark.parametrize("leak", [0.0, 0.1])
def test_gates_meet_the_condition_of_filippov(leak):
    """Sliding samples rest; the others move to the side on which they are."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(8, 4)), random.normal(size=(8, 3))
    samples = Samples(x, y, np.full(8, 1 / 8))
    w, a = 1e-9 * random.normal(size=(200, 4)), random.normal(size=(200, 3))
    gates, states = filippov(samples, w, a, rate=1.0, leak=leak)  # all boundaries are in reach
    q = (a @ y.T) / 8
    speed = (gates * q) @ (x @ x.T)
    slides = states == SLIDING
    assert slides.any()
    assert np.abs(speed[slides]).max() < 1e-4 * np.abs(q).max()
    held = (q < 0) & ~slides & (np.abs(speed) > 1e-4)  # attracting, but pushed through
    assert (np.sign(speed[held]) == np.where(gates[held] == 1, 1, -1)).all()
    assert ((gates >= leak) & (gates <= 1)).all()


@pytest.mark.parametrize(("second", "sums"), [(-1.0, True), (-2.0, True), (1.0, False)])
def test_parallel_inputs_share_a_boundary(second, sums):
    """On for one of x and −x at a time, and for x and x together."""
    x = np.array([[1.0, 0.0], [second, 0.0], [0.3, 1.0]])
    y = np.array([[-1.0], [-2.0], [1.0]])
    samples = Samples(x, y, np.full(3, 1 / 3))
    gates, states = filippov(samples, np.array([[1e-9, 1.0]]), np.array([[1.0]]), rate=0.1)
    assert states[0, 0] == states[0, 1]
    if sums:
        assert gates[0, 0] + gates[0, 1] == pytest.approx(1.0)
    else:
        assert gates[0, 0] == pytest.approx(gates[0, 1])


def test_directions_that_nearly_agree_have_two_boundaries():
    """An angle of 2e-5 is far above rounding, although its cosine is 1 − 2e-10."""
    x = np.array([[1.0, 0.0], [1.0, 2e-5], [-1.0, 0.0], [0.0, 0.0]])
    boundary, side, length = _boundaries(x)
    assert boundary.tolist() == [0, 1, 0, 3]
    assert side[:3].tolist() == [1, 1, -1]
    assert length[3] == 0


def test_gates_away_from_every_boundary_are_the_networks_own():
    data = nr.tasks.extended_xor(1.2)
    net = nr.ReLUNetwork((3, 20, 1))
    weights = net.init(0, scale=0.3)
    found = nr.reln.sliding_gates(net, weights, data, learning_rate=1e-9)
    assert np.array_equal(found.gates["h"], net.activity(weights, data)["h"])
    assert found.share() == 0
    assert (found.states["h"] != SLIDING).all()


# ---- against counts -----------------------------------------------------------------------------


def test_fractions_are_the_shares_of_steps_on_which_a_neuron_is_on():
    data = nr.tasks.contextual(items=4, joined=True)
    samples = Samples.of(data)
    random = np.random.default_rng(0)
    _, d, o = samples.shape
    start = {"w": 1e-3 * random.normal(size=(60, d)), "a": 1e-3 * random.normal(size=(60, o))}
    with jax.enable_x64(True):
        crowd = Crowd.of(samples, None, 0.0)
    begin = 2000
    done = descend(
        crowd, start, 0.02, np.array([0, begin, begin + 100, begin + 200]), counting=True
    )
    on = done.values["on"]
    measured = (on[3] - on[1]) / 200
    w, a = done.values["w"][2], done.values["a"][2]  # in the middle of the window
    gates, states = filippov(samples, w, a, 0.02)
    weight = np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1)
    either = ((measured > 0.02) & (measured < 0.98)) | (states == SLIDING)
    either &= (weight > 0.01 * weight.max())[:, None]
    assert either.sum() > 10
    assert np.median(np.abs(gates - measured)[either]) < 0.03
    rounded = np.abs(np.round(gates) - measured)[either]
    assert np.median(rounded) > 0.1


def test_gates_between_two_moments_are_the_shares_of_steps_in_between():
    """Also while neurons arrive at boundaries and leave them, where one moment says too little."""
    data = nr.tasks.contextual(items=4, joined=True)
    samples = Samples.of(data)
    random = np.random.default_rng(0)
    _, d, o = samples.shape
    start = {"w": 1e-3 * random.normal(size=(60, d)), "a": 1e-3 * random.normal(size=(60, o))}
    with jax.enable_x64(True):
        crowd = Crowd.of(samples, None, 0.0)
    stops = np.array([0, *range(300, 700, 20)])
    done = descend(crowd, start, 0.02, stops, counting=True)
    w, a, on = (done.values[name] for name in ("w", "a", "on"))
    moments = [filippov(samples, w[i], a[i], 0.02) for i in range(len(stops))]
    errors = {"moment": 0.0, "between": 0.0}
    for i in range(1, len(stops) - 1):
        measured = (on[i + 1] - on[i]) / 20
        weight = (np.linalg.norm(w[i], axis=1) * np.linalg.norm(a[i], axis=1))[:, None]
        slides = (moments[i][1] == SLIDING) | (moments[i + 1][1] == SLIDING)
        ends = (w[i], a[i]), (w[i + 1], a[i + 1])
        between = filippov_between(samples, *ends, slides, 20 * 0.02)
        mean = (moments[i][0] + moments[i + 1][0]) / 2
        errors["moment"] += (weight * np.abs(mean - measured)).sum()
        errors["between"] += (weight * np.abs(between - measured)).sum()
        assert ((between >= 0) & (between <= 1)).all()
    assert errors["between"] < errors["moment"] / 2


def test_sliding_gates_are_gates_of_a_dataset():
    data = nr.tasks.contextual(items=4, joined=True)
    run = trained(data, 3000)
    found = nr.reln.sliding_gates(run.net, run.final, data, learning_rate=RATE)
    assert "slide" in str(found)
    gated = data.gated(found.gates)
    assert np.isfinite(float(nr.GDLN(run.net.arch).loss(run.final, gated)))


def test_one_hidden_layer_alone():
    data = nr.tasks.extended_xor(1.2)
    net = nr.ReLUNetwork((3, 4, 4, 1))
    with says("one hidden layer", got="2 hidden nodes", wanted="one hidden node"):
        nr.reln.sliding_gates(net, net.init(0), data, learning_rate=0.1)


# ---- stages -------------------------------------------------------------------------------------


def test_stages_with_fractions_beat_rounded_ones():
    data = nr.tasks.contextual(items=4, joined=True)
    run = trained(data, 3000)
    errors = {
        kind: nr.compare(run, nr.reln.staged(run, data, stages=40, gates=kind)).outputs
        for kind in ("sliding", "measured", "rounded")
    }
    assert errors["measured"] < errors["rounded"] / 2
    assert errors["sliding"] < errors["rounded"] / 5


def test_measured_gates_of_every_step_are_exact():
    data = nr.tasks.extended_xor(0.4)
    net = nr.ReLUNetwork((3, 16, 1))
    run = nr.train(
        net, net.init(0, scale=0.1), data, learning_rate=0.1, steps=60,
        record={"weights": True, "outputs": True},
    )  # fmt: skip
    every = nr.reln.staged(run, data, stages=10_000, gates="measured")
    assert every.time[0] < 1
    assert nr.compare(run, every).max < 1e-10


def test_stages_are_cut_in_log_time():
    from neuralrace.reln.explained.types.staged import log_cuts

    stops = np.arange(10, 1001, 10)
    assert stops[log_cuts(stops, 4)].tolist() == [10, 40, 100, 320, 1000]


def test_a_run_without_weights_cannot_be_staged():
    data = nr.tasks.extended_xor(0.4)
    net = nr.ReLUNetwork((3, 8, 1))
    run = nr.train(net, net.init(0, scale=0.1), data, learning_rate=0.1, steps=5)
    with refuses("run"):
        nr.reln.staged(run, data)
    with refuses("run"):
        nr.reln.sliding_over(run, data)


def test_a_run_that_has_not_begun_to_learn_cannot_be_staged():
    with refuses("run"):
        nr.reln.staged(trained(nr.tasks.extended_xor(0.4), 20), nr.tasks.extended_xor(0.4))


def test_unknown_gates_and_numbers_of_stages():
    data = nr.tasks.extended_xor(0.4)
    run = trained(data, 60, width=8)
    with refuses("gates"):
        nr.reln.staged(run, data, gates="averaged")
    with refuses("stages"):
        nr.reln.staged(run, data, stages=0)


# ---- fractions in place of gates that are on or off ---------------------------------------------


@pytest.fixture(scope="module")
def sliding_run():
    """Plain XoR: neurons are held at z = 0 from both sides, so that rounded gates cannot follow."""
    data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 32, 1))
    run = nr.train(relu, relu.init(0, scale=1e-3), data, learning_rate=0.1, steps=300,
                   record_every=10, record={"weights": True})  # fmt: skip
    return run, data


def test_fractions_follow_plain_xor_in_one_race(sliding_run):
    run, data = sliding_run
    gates = nr.reln.sliding_over(run, data)
    assert ((gates["h"] > 0.01) & (gates["h"] < 0.99)).any()
    own = nr.reln.sliding_gates(
        run.net, {e: w[7] for e, w in run.values["weights"].items()}, data, learning_rate=0.1
    )
    np.testing.assert_array_equal(gates["h"][7], own.gates["h"])
    assert nr.reln.horizons(run, data, gates=gates).stages().races == 1
    assert nr.reln.horizons(run, data, boundary=0.0).stages().races > 1


def test_copied_gates_take_those_that_are_given(sliding_run):
    run, data = sliding_run
    on = nr.reln.activity(run, data, boundary=0.0).on["h"].astype(float)
    same = nr.reln.copied_gates(run, data, gates={"h": on})
    np.testing.assert_allclose(same.loss, nr.reln.copied_gates(run, data).loss, atol=1e-12)
    fractions = nr.reln.copied_gates(run, data, gates=nr.reln.sliding_over(run, data))
    assert nr.compare(run, fractions).mean < nr.compare(run, same).mean
    with refuses("gates"):
        nr.reln.copied_gates(run, data, gates={"h": on[1:]})
    with refuses("gates"):
        nr.reln.horizons(run, data, gates={"g": on})
