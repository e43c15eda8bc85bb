"""Rare neurons: the chance that a network lacks what the wide limit rests on."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest

import neuralrace as nr
from evidence.own.rare_neurons import BENT
from neuralrace.reln import Rest


def predicted(data, scale, *, steps, rate=0.1, width=100, neurons=2000, key=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return nr.reln.types(
            data, width=width, scale=scale, learning_rate=rate, steps=steps, types=1,
            neurons=neurons, key=key,
        )  # fmt: skip


def at_rest(data, width, scale, rate, steps, many, seed):
    """Neurons of the wide limit after some steps, by the equations written out."""
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    random = np.random.default_rng(seed)
    w, a = (scale * np.sqrt(width / many) * random.normal(size=(many, n)) for n in (x.shape[1], 1))
    for _ in range(steps):
        z = w @ x.T
        on = z > 0
        error = (y - (on * z).T @ a) / len(x)
        drive = on * (a @ error.T)
        w, a = w + rate * drive @ x, a + rate * (on * z) @ error
    return w @ x.T > 0


def test_the_share_is_that_of_neurons_in_other_patterns_than_the_one_that_leads():
    found = predicted(BENT, 1e-3, steps=2500)
    (rest,) = found.rests
    on = at_rest(BENT, 100, 1e-3, 0.1, round(rest.time / 0.1), 8000, seed=5)
    outside = on.any(axis=1) & ~on.all(axis=1)  # on for some samples, not for all
    own = binomtest(int(outside.sum()), len(on)).proportion_ci(0.9999, method="exact")
    theirs = binomtest(rest.count, rest.drawn).proportion_ci(0.9999, method="exact")
    assert own.low < theirs.high and theirs.low < own.high
    assert own.low > 0.015 and own.high < 0.05


def test_a_rare_neuron_is_told_in_the_first_sentence_with_both_ends():
    found = predicted(BENT, 1e-6, steps=5000)
    rest = found.rare
    assert rest is not None and rest in found.rests
    assert rest.drawn > 2000  # the first draw held too few to count
    assert rest.interval[0] < rest.chance < rest.interval[1]
    assert 0.9 < rest.chance < 0.98
    linear = np.linalg.lstsq(BENT.x["x"], BENT.y["y"], rcond=None)[1]
    best = float(linear[0] / np.sum(np.square(BENT.y["y"])))  # of the targets' square, linearly
    assert rest.without == pytest.approx(best, rel=1e-3)
    assert rest.left < 1e-3
    answer, rare, *_ = found.sentences()
    assert f"{100 * rest.chance:.0f} %" in answer.text and rare.text == str(rest)


def test_nothing_is_told_where_the_neurons_are_common():
    found = predicted(BENT, 1e-3, steps=2500, width=400, neurons=1000)
    assert found.rests and found.rare is None
    assert all(rest.chance < 0.05 and rest.without is None for rest in found.rests)
    assert "rare" not in {sentence.id for sentence in found.sentences()}


@pytest.mark.parametrize(("share", "images", "width"), [(0.02, 1, 50), (0.1, 4, 60), (0.3, 6, 30)])
def test_the_chance_is_that_of_drawing_none_in_some_image(share, images, width):
    rest = Rest(1.0, 0.5, round(1e6 * share), 10**6, width, images)
    random = np.random.default_rng(3)
    kinds = np.append(np.full(images, share / images), 1 - share)
    drawn = random.multinomial(width, kinds, size=20_000)[:, :images]
    found = binomtest(int((drawn == 0).any(axis=1).sum()), len(drawn))
    ends = found.proportion_ci(0.9999)
    # images are counted as independent, which is within the width of this interval and a tenth
    assert ends.low * 0.9 <= rest.chance <= ends.high * 1.1


@pytest.mark.parametrize(("count", "drawn"), [(0, 100), (1, 2000), (24, 40_000), (50, 50)])
def test_the_interval_is_that_of_the_share(count, drawn):
    rest = Rest(1.0, 0.5, count, drawn, width=10)
    ends = binomtest(count, drawn).proportion_ci(0.95, method="exact")
    expected = ((1 - ends.high) ** 10, (1 - ends.low) ** 10)
    np.testing.assert_allclose(rest.interval, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("error")
def test_targets_of_any_unit_are_learned_alike():
    """Squares of small targets are far below what float32 holds."""
    x, y = np.array([[-1.0, 1.0], [-0.2, 1.0], [0.3, 1.2]]), np.array([[1.0], [0.25], [1.2]])

    def losses(unit):
        data = nr.Dataset({"x": x}, {"y": unit * y})
        sizes = {"width": 100, "scale": 1e-3 * np.sqrt(unit), "neurons": 100, "types": 1}
        return nr.reln.types(data, learning_rate=0.1 / unit, steps=300, **sizes).wide.loss

    np.testing.assert_allclose(losses(1e-25) / 1e-50, losses(1.0), rtol=1e-6)
