"""Small decision tasks and the natural gatings of any task."""

import jax
import numpy as np
import pytest

from neuralrace import Dataset, tasks
from tests.test_errors import refuses


def test_a_context_decision_reports_the_stream_asked_for():
    data = tasks.context_decision(levels=4, cue=2.5)
    x, y = data.x["x"], data.y["y"][:, 0]
    assert x.shape == (32, 4)
    assert len(np.unique(x, axis=0)) == 32
    first = data.mask(context=1)
    assert (x[first, 2] == 2.5).all()
    assert (x[first, 3] == 0).all()
    assert (x[~first, 3] == 2.5).all()
    assert (y[first] == np.sign(x[first, 0])).all()
    assert (y[~first] == np.sign(x[~first, 1])).all()
    assert np.unique(tasks.context_decision(levels=(-3, 1)).x["x"][:, 0]).tolist() == [-3, 1]


def test_odd_parity_is_uncorrelated_with_every_neuron():
    data = tasks.parity(3)
    w = np.random.default_rng(0).normal(size=(50, 3))
    correlation = np.maximum(data.x["x"] @ w.T, 0).T @ data.y["y"]
    assert np.abs(correlation).max() < 1e-12
    even = tasks.parity(2)
    assert np.abs(np.maximum(even.x["x"] @ w[:, :2].T, 0).T @ even.y["y"]).max() > 0.1


def test_transitive_inference_shows_both_orders():
    data = tasks.transitive_inference(6)
    assert data.n_samples == 10
    assert (np.abs(data.labels["first"] - data.labels["second"]) == 1).all()
    assert (data.y["y"][::2] == -data.y["y"][1::2]).all()
    assert tasks.transitive_inference(6, pairs="all").n_samples == 30
    ranked = tasks.transitive_inference(5, pairs="all")
    rank = np.concatenate([np.arange(5, 0, -1), -np.arange(5, 0, -1)])
    assert (np.sign(ranked.x["x"] @ rank) == ranked.y["y"][:, 0]).all()


def test_ring_classes_are_sectors():
    data = tasks.ring_classification(24, classes=4)
    quadrant = np.argmax(data.y["y"], axis=1)
    x = data.x["x"]
    assert np.allclose((x**2).sum(axis=1), 1)
    assert ((x[:, 0] > 0) == np.isin(quadrant, (0, 3))).all()
    assert ((x[:, 1] > 0) == np.isin(quadrant, (0, 1))).all()


@pytest.mark.parametrize("task", [tasks.teacher, tasks.gaussian])
def test_drawn_tasks_follow_their_key(task):
    a, b, c = task(key=3), task(key=3), task(key=4)
    assert (a.x["x"] == b.x["x"]).all()
    assert (a.x["x"] != c.x["x"]).all()
    d, e = task(key=jax.random.key(3)), task(key=jax.random.key(3))
    assert (d.y["y"] == e.y["y"]).all()


def test_a_teacher_of_one_neuron_is_one_rectified_direction():
    data = tasks.teacher(samples=40, hidden=1, key=0)
    y = data.y["y"]
    on = np.abs(y).max(axis=1) > 0
    assert 0 < on.sum() < 40
    assert np.linalg.matrix_rank(y[on], tol=1e-10) == 1
    fit = np.linalg.lstsq(data.x["x"][on], y[on])[0]
    assert np.allclose(data.x["x"][on] @ fit, y[on])


def test_natural_gatings():
    data = tasks.context_decision()
    gatings = tasks.natural_gatings(data, width=64)
    assert list(gatings) == ["sample", "answer", "context", "common_answer"]
    arch, gated = gatings["answer"]
    assert (gated.gates["answer1"] == (data.y["y"][:, 0] > 0)).all()
    assert sum(arch.sizes[v] for v in arch.hidden) == 64
    assert len(gatings["sample"][0].hidden) == 32
    assert "common" not in gatings["common_answer"][1].gates
    assert list(tasks.natural_gatings(tasks.gaussian())) == [
        "sample", "answer", "side", "common_answer",
    ]  # fmt: skip
    one = Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [1.0]]})
    assert list(tasks.natural_gatings(one)) == ["sample"]


def test_answers():
    assert tasks.answers(tasks.ring_classification(6)).tolist() == [0, 0, 1, 1, 2, 2]
    grown = Dataset({"x": [[1.0]] * 3}, {"y": [[1.0], [5.0], [2.0]]})
    assert tasks.answers(grown).tolist() == [0, 1, 0]
    several = Dataset({"x": [[1.0]] * 2}, {"y": [[9.0, 1.0], [9.0, 0.0]]})
    assert tasks.answers(several).tolist() == [1, 0]


def test_what_is_not_possible_is_said():
    with refuses("bits"):
        tasks.parity(30)
    with refuses("levels"):
        tasks.context_decision(levels=3)
    with refuses("cue"):
        tasks.context_decision(cue=np.nan)
    with refuses("pairs"):
        tasks.transitive_inference(4, pairs="some")
    with refuses("classes"):
        tasks.ring_classification(10, classes=4)
    with refuses("key"):
        tasks.gaussian(key="seed")
    with refuses("samples"):
        tasks.teacher(samples=0)
