"""What a ReLU network will do, against networks and gradient descent written out in NumPy."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import beta, binom, ks_2samp

import neuralrace as nr
from evidence.own.rare_neurons import BENT
from neuralrace.checks import generator
from neuralrace.results import Result
from tests.test_errors import refuses

XOR = nr.tasks.extended_xor(0.4)
OPTIONS = {"width": 64, "scale": 1e-2, "learning_rate": 0.1, "steps": 300, "neurons": 300}


def descent(data, w, a, c, rate, steps, leak=0.0, bias=False):
    """The loss at every step of plain gradient descent, each neuron one row of w and a.

    Of many networks at once if the weights have one axis more, in front.
    """
    x, y = (np.concatenate(list(v.values()), axis=1) for v in (data.x, data.y))
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1) if bias else x
    p, losses = np.asarray(data.probability), []
    for _ in range(steps + 1):
        z = x @ w.mT
        slope = np.where(z > 0, 1.0, leak)
        error = y - (slope * z) @ a - c[..., None, :]
        losses.append(0.5 * (error**2).sum(axis=-1) @ p)
        drive = p[:, None] * error
        w, a = (
            w + rate * (slope * (drive @ a.mT)).mT @ x,
            a + rate * (slope * z).mT @ drive,
        )
        c = c + rate * drive.sum(axis=-2) * bias
    return np.stack(losses, axis=-1)


def several(draw, count):
    """The weights of many networks, each drawn by itself."""
    return [np.stack(each) for each in zip(*(draw() for _ in range(count)), strict=True)]


def drawn(random, many, width, spreads, d, o, bias, uniform=False):
    """Weights of a network of `width` with `many` neurons in place of its own."""
    unit = (lambda *n: random.uniform(-1, 1, n) * 3**0.5) if uniform else (
        lambda *n: random.normal(size=n)
    )  # fmt: skip
    w = unit(many, d + bias) * np.append(np.full(d, spreads["W1"]), [spreads["bias_h"]] * bias)
    a, c = unit(many, o) * spreads["W2"], unit(o) * spreads["bias_y"] * bias
    return (w * (width / many) ** 0.5, a * (width / many) ** 0.5, c * (many == width))


def random_task(seed):
    random = np.random.default_rng(seed)
    n, d, o = (
        int(k) for k in (random.integers(6, 20), random.integers(2, 5), random.integers(1, 3))
    )
    y = np.maximum(random.normal(size=(n, o)), -0.5)
    return nr.Dataset(
        {"x": random.normal(size=(n, d))}, {"y": y}, sample_weight=random.uniform(0.5, 2, n)
    )


def torch_spreads(d, width):
    first, second = (3 * d) ** -0.5, (3 * width) ** -0.5
    return {"W1": first, "W2": second, "bias_h": first, "bias_y": second}


@pytest.mark.parametrize(
    ("seed", "bias", "leak", "start"),
    [(1, True, 0.0, 1e-2), (3, False, 0.1, "torch"),
     (4, True, 0.2, {"W1": 0.3, "W2": 0.02, "bias_h": 0.0, "bias_y": 0.1})],
)  # fmt: skip
def test_the_wide_limit_is_many_neurons_in_place_of_the_network(seed, bias, leak, start):
    """As many neurons written out, drawn anew, differ by chance alone; so do the networks."""
    data, width, rate, steps = random_task(seed), 40, 0.05, 400
    d, o = data.x["x"].shape[1], data.y["y"].shape[1]
    torch = start == "torch"
    how = {"init": "torch"} if torch else {"scale": start}
    found = nr.predict(data, width=width, bias=bias, leak=leak, learning_rate=rate, steps=steps,
                       neurons=6000, **how)  # fmt: skip
    spreads = torch_spreads(d, width) if torch else (
        start if isinstance(start, dict) else dict.fromkeys(torch_spreads(d, width), start)
    )  # fmt: skip
    random = np.random.default_rng(seed + 50)
    draw = lambda many: drawn(random, many, width, spreads, d, o, bias, torch)
    wide = descent(data, *draw(6000), rate, steps, leak, bias)
    at = found.trajectory.steps
    limit = found.trajectory.loss
    draws = several(lambda: draw(width), 12)
    own = descent(data, *draws, rate, steps, leak, bias)[:, at]
    floor = np.mean([np.abs(a - b).mean() for a in own for b in own if a is not b])
    assert np.abs(wide[at] - limit).mean() < 0.3 * floor
    firsts = descent(data, *several(lambda: draw(width), 3000), rate, 0, leak, bias)[:, 0]
    error = firsts.std() / len(firsts) ** 0.5
    assert abs(firsts.mean() - found.initial) < 4 * error
    assert abs(found.networks[:, 0].mean() - found.initial) < 4 * firsts.std() / 19**0.5
    # both are draws of one distribution: the ranks of the band among all are uniform
    for i in (0, len(at) // 2, -1):
        assert ks_2samp(found.networks[:, i], own[:, i]).pvalue > 1e-3
    inside = ((own >= found.band.lower) & (own <= found.band.upper)).mean(axis=0)
    assert inside.mean() > beta.ppf(0.01, 18, 2)  # that of 19 at any one time is Beta(18, 2)


def test_a_network_of_m_neurons_is_the_limit_of_m():
    """√(H/M) is one where as many neurons are drawn as the network has: its own descent."""
    data = random_task(7)
    d, o, width = data.x["x"].shape[1], data.y["y"].shape[1], 30
    found = nr.predict(data, width=width, scale={"W1": 0.2, "W2": 0.1}, learning_rate=0.05,
                       steps=200, neurons=width, networks=0, key=4)  # fmt: skip
    unit = generator(4).normal(size=(width, d + o))
    own = descent(data, 0.2 * unit[:, :d], 0.1 * unit[:, d:], np.zeros(o), 0.05, 200)
    np.testing.assert_allclose(found.trajectory.loss, own[found.trajectory.steps], rtol=1e-8)


def test_bands_hold_as_many_networks_as_they_say():
    found = nr.predict(XOR, networks=19, **OPTIONS)
    spreads = dict.fromkeys(("W1", "W2", "bias_h", "bias_y"), 1e-2)
    random = np.random.default_rng(3)
    draws = several(lambda: drawn(random, 64, 64, spreads, 3, 1, False), 200)
    own = descent(XOR, *draws, 0.1, 300)
    low, high = found.time_to(0.1)[1:]
    times = np.array([np.flatnonzero(loss <= 0.1 * loss[0])[0] * 0.1 for loss in own])
    inside = int(((times >= low) & (times <= high + 0.1)).sum())
    assert found.band.chance == 0.9
    # the share that lies between the extremes of 19 is Beta(18, 2): above .74 with 99 % chance
    assert inside >= binom.ppf(0.01, 200, 0.74)


def test_the_chance_of_outcomes_is_that_of_drawing_no_rare_neuron():
    found = nr.predict(BENT, width=100, scale=1e-6, learning_rate=0.1, steps=5000, networks=6)
    stuck, free = found.courses
    assert stuck.rest.matters and free.rest is None
    assert stuck.chance == stuck.rest.chance and free.chance == pytest.approx(1 - stuck.chance)
    assert (stuck.low, stuck.high) == stuck.rest.interval
    linear = np.linalg.lstsq(BENT.x["x"], BENT.y["y"], rcond=None)[1]
    best = float(linear[0] / np.sum(np.square(BENT.y["y"])))  # no neuron bends
    assert stuck.left == pytest.approx(best, rel=1e-3) and free.left < 1e-3
    assert found.likely is stuck.trajectory and found.trajectory is free.trajectory
    frame = found.outcomes
    assert frame["networks"].sum() == 6 and frame["networks"][0] >= 4
    assert np.isinf(found.time_to(0.1).mean) and np.isfinite(found.time_to(0.3).mean)
    assert np.isfinite([each.trajectory.loss for each in found.courses]).all()
    assert "rare" in {sentence.id for sentence in found.sentences()}


def test_simulated_networks_that_end_elsewhere_are_an_outcome():
    """Narrow networks are late by chance, so that some are not there at the end."""
    found = nr.predict(XOR, width=12, scale=1e-3, learning_rate=0.1, steps=190, neurons=500)
    ends = found.networks[:, -1] / found.initial
    limit = found.trajectory.loss[-1] / found.initial
    away = np.abs(ends - limit) > 0.05
    assert 0 < away.sum() < 19
    own = sorted((each for each in found.courses if each.networks), key=lambda each: each.left)
    assert sum(each.networks for each in own) == away.sum()
    left, rows = np.sort(ends[away]), found.networks[away][np.argsort(ends[away])]
    for each in own:
        k, left_of, losses = each.networks, left[: each.networks], rows[: each.networks]
        left, rows = left[k:], rows[k:]
        assert np.ptp(left_of) <= 0.05 and each.chance == k / 19
        interval = beta.ppf(0.025, k, 20 - k), beta.ppf(0.975, k + 1, 19 - k)
        np.testing.assert_allclose((each.low, each.high), interval)
        np.testing.assert_allclose(each.trajectory.loss, losses.mean(axis=0))
    assert sum(each.chance for each in found.courses) == pytest.approx(1)
    assert found.outcomes["networks"].sum() == 19


def test_an_outcome_is_where_networks_end():
    """XOR with few neurons ends at a quarter, a half or nothing of the loss, never between."""
    x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    xor = nr.Dataset({"x": x}, {"y": [[-1.0], [1], [1], [-1]]})
    found = nr.predict(xor, width=5, scale=1e-2, learning_rate=0.1, steps=1500, neurons=300)
    ends = found.networks[:, -1] / found.initial
    assert len(found.courses) == 3
    for each in found.courses:
        assert np.abs(ends - each.left).min() < 0.02
        assert np.abs(np.array([0, 0.25, 0.5]) - each.left).min() < 0.02
    assert not any("later learning" in text for text in found.outcomes["decides"])


NOISY = nr.Dataset(
    {"x": np.repeat([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], 5, axis=0)},
    {"y": np.outer([1.0, -1, -1, 1], [1, 1, 1, 1, -1]).reshape(-1, 1)},
)
"""XoR of which one target in five is wrong: no function leaves less than .5 (1 − .6²) = .32."""


@pytest.mark.parametrize(
    ("data", "options", "left"),
    [(NOISY, {"width": 40, "bias": True, "learning_rate": 0.05, "steps": 4000,
              "scale": {"W1": 0.1, "W2": 0.1, "bias_h": 0.1, "bias_y": 3.0}}, 0.32),
     (XOR, {"width": 100, "scale": 0.5, "learning_rate": 0.01, "steps": 300}, 0.0)],
)  # fmt: skip
def test_networks_from_large_starts_are_compared_with_the_limit_on_one_scale(data, options, left):
    """Their random first function has a loss that the wide limit lacks, but they end as it does."""
    found = nr.predict(data, neurons=300, criterion=[0.5, 0.1], **options)
    np.testing.assert_allclose(found.networks[:, -1], left, atol=1e-2)
    (only,) = found.courses
    assert only.chance == 1 and only.networks == 0 and found.outcomes["networks"].tolist() == [19]
    assert only.left == pytest.approx(left / found.initial, abs=1e-3)
    assert found.is_large and (found.frame()["gap"] == found.gap).all()
    y = np.asarray(data.y["y"])
    zero = 0.5 * float(np.asarray(data.probability) @ y[:, 0] ** 2)
    assert found.gap == pytest.approx(1 - zero / found.initial)
    for share in found.criteria:
        mean, low, high = found.time_to(share)
        level = share * found.initial
        there = [found.trajectory.time[np.flatnonzero(one <= level)[0]] for one in found.networks]
        assert low <= mean <= high
        assert low <= min(there) and high <= max(there)


def test_small_starts_are_not_large():
    found = nr.predict(XOR, networks=0, **OPTIONS)
    assert not found.is_large and found.gap < 1e-4


@pytest.mark.parametrize("criterion", [np.float32(0.25), np.array(0.25), jnp.float32(0.25), 0.25])
def test_numbers_and_switches_of_numpy_and_jax_are_taken(criterion):
    options = OPTIONS | {"neurons": 20, "steps": 5, "networks": 0}
    found = nr.predict(XOR, criterion=criterion, bias=np.True_, **options)
    assert found.criteria == (0.25,) and found.start.bias
    assert not nr.predict(XOR, bias=np.False_, **options).start.bias


def test_several_input_nodes_are_one_layer_of_inputs_and_that_is_said():
    options = OPTIONS | {"neurons": 50, "steps": 50, "networks": 2}
    x = np.asarray(XOR.x["x"])
    nodes = {f"x{i}": x[:, [i]] for i in range(x.shape[1])}
    parts = nr.predict(nr.Dataset(nodes, XOR.y), **options)
    whole = nr.predict(XOR, **options)
    np.testing.assert_allclose(parts.trajectory.loss, whole.trajectory.loss)
    ids = [{sentence.id for sentence in found.sentences()} for found in (parts, whole)]
    assert "inputs" in ids[0] and "inputs" not in ids[1]


def test_the_first_sentence_says_the_time_and_its_interval():
    found = nr.predict(XOR, criterion=[0.5, 0.1], **OPTIONS)
    (time, low, high), first = found.time_to(0.5), found.sentences()[0]
    assert first.id == "answer"
    assert all(f"{number:.4g}" in first.text for number in (time, low, high))
    assert low < time < high
    assert found.frame()["share"].tolist() == [0.5, 0.1]
    assert found.networks[0, 0] != found.networks[1, 0]


def test_what_is_not_learned_in_time_is_said():
    found = nr.predict(XOR, **(OPTIONS | {"steps": 40}))
    assert np.isinf(found.time_to(0.1)).all()
    early = nr.predict(XOR, **(OPTIONS | {"steps": 2, "scale": 1e-5, "networks": 0}))
    assert early.no_types and early.band is None and np.isnan(early.time_to(0.1).low)


def test_networks_that_do_not_get_there_come_before_the_wide_limit():
    found = nr.predict(XOR, **OPTIONS)
    still = replace(found, networks=np.where(np.arange(19)[:, None] < 4, found.networks, 0.3))
    text, time = still.sentences()[0].text, f"t = {found.time_to(0.1).mean:.4g}"
    assert text.index("4 of 19") < text.index(time)
    most = replace(found, networks=np.where(np.arange(19)[:, None] < 12, found.networks, 0.3))
    text = most.sentences()[0].text
    assert text.index(time) < text.index("12 of 19")
    assert np.isinf(most.time_to(0.1).high) and np.isfinite(most.time_to(0.1).low)


@pytest.mark.parametrize(
    ("changed", "types"),
    [({"scale": 0.05}, False), ({"scale": 1e-4}, True), ({"scale": 1e-4, "bias": True}, False),
     ({"scale": {"W1": 1e-4, "W2": 1e-5}}, False), ({"scale": None, "init": "torch"}, False)],
)  # fmt: skip
def test_types_explain_where_neurons_align_and_a_reason_stands_where_not(changed, types):
    found = nr.predict(XOR, networks=0, **(OPTIONS | changed))
    assert (found.types is not None) == types == (found.no_types == "")
    if types:
        assert len(found.types) >= 1 and found.types.wide.loss[-1] == found.trajectory.loss[-1]
    assert [s.id for s in found.sentences()][-1] == "types"


def test_types_of_a_stored_prediction_are_those_of_the_first(tmp_path):
    found = nr.predict(XOR, networks=3, **(OPTIONS | {"scale": 1e-4}))
    again = Result.load(found.save(tmp_path / "prediction.npz"))
    assert str(again) == str(found) and again.time_to(0.3) == found.time_to(0.3)
    np.testing.assert_allclose(again.types.shares, found.types.shares, rtol=1e-9)
    np.testing.assert_array_equal(again.types.states, found.types.states)


def test_types_of_predict_are_those_of_reln():
    found = nr.predict(XOR, networks=0, **(OPTIONS | {"scale": 1e-4}))
    same = nr.reln.types(XOR, **(OPTIONS | {"scale": 1e-4}))
    np.testing.assert_array_equal(found.types.shares, same.shares)
    np.testing.assert_array_equal(found.trajectory.loss, same.wide.loss)


def test_the_mean_of_the_band_is_nearer_to_trained_networks_than_these_are_to_each_other():
    how = {"scale": 1e-3, "learning_rate": 0.1, "steps": 400}
    found = nr.predict(XOR, width=12, networks=24, neurons=300, **how)
    runs = nr.train_ensemble(nr.ReLUNetwork((3, 12, 1)), XOR, seeds=16, key=7, **how).loss
    assert found.band is not None
    np.testing.assert_allclose(found.band.mean, sum(found.band.networks) / 24, rtol=1e-12)
    every = np.stack([np.interp(found.band.time, 0.1 * np.arange(401), loss) for loss in runs])
    apart = np.mean([np.abs(a - b).mean() for a, b in itertools.combinations(every, 2)])
    near = np.mean([np.abs(loss - found.band.mean).mean() for loss in every])
    assert near < apart, (near, apart)


def test_the_picture_has_the_limit_and_the_networks():
    found = nr.predict(XOR, networks=3, **OPTIONS)
    ax = found.plot().axes[0]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["wide limit", "3 simulated networks"]
    plt.close("all")


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"width": 0}, "width"), ({"width": (100, 100)}, "width"), ({"scale": 0.0}, "scale"),
     ({"scale": None}, "scale"), ({"init": "torch"}, "init"), ({"scale": {"W1": 1.0}}, "scale"),
     ({"scale": {"W1": 1.0, "W2": 1.0, "bias_h": 0.0}}, "scale"), ({"steps": 0}, "steps"),
     ({"learning_rate": -1.0}, "learning_rate"), ({"criterion": 1.5}, "criterion"),
     ({"criterion": []}, "criterion"), ({"loss": "cross_entropy"}, "loss"),
     ({"networks": -1}, "networks"), ({"leak": 1.0}, "leak"), ({"scale": 30.0}, "learning_rate"),
     ({"scale": 30.0}, "scale"), ({"neurons": 0}, "neurons"), ({"key": "zero"}, "key"),
     ({"scale": None, "init": "flax"}, "init")],
)  # fmt: skip
def test_what_is_refused(changed, named):
    with refuses(named):
        nr.predict(XOR, **(OPTIONS | changed))


def test_tasks_without_samples_are_refused():
    with refuses("data"):
        nr.predict(object(), **OPTIONS)
    with refuses("data"):  # a population has no samples on which a neuron could be on
        nr.predict(nr.Dataset.from_moments(np.eye(3), np.ones((1, 3))), **OPTIONS)
