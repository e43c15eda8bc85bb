"""Nonlinear contextual classification: NRR Eqs. 24–29."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks


def correlations(data, *gates):
    weight = data.probability * np.prod([np.ones(data.n_samples), *gates], axis=0)
    x, y = data.x["x"], data.y["y"]
    return (y * weight[:, None]).T @ x, (x * weight[:, None]).T @ x


@pytest.mark.parametrize("order", [2, 3, 6])
def test_statistics_are_those_of_nrr(order):
    data = tasks.contextual_classification(order=order)
    yx, x = correlations(data)
    np.testing.assert_allclose(yx, [[1 / 6, 1 / 6]], atol=1e-14)
    np.testing.assert_allclose(x, np.eye(2) / 3, atol=1e-14)
    _, data = tasks.pathway_per_context(data)
    first, second = data.gates["only1"], data.gates["only2"]
    np.testing.assert_allclose(correlations(data, first)[0], [[1 / 6, 0]], atol=1e-14)
    np.testing.assert_allclose(correlations(data, second)[0], [[0, 1 / 6]], atol=1e-14)
    np.testing.assert_allclose(correlations(data, first)[1], np.eye(2) / 6, atol=1e-14)
    np.testing.assert_allclose(correlations(data, first, second)[1], np.zeros((2, 2)))


def test_higher_moments_are_exact_up_to_the_order():
    for order in (2, 4):
        data = tasks.contextual_classification(order=order)
        for degree in range(2 * order):
            moment = data.probability @ data.x["x"][:, 0] ** degree
            assert moment == pytest.approx((degree % 2 == 0) / (degree + 1), abs=1e-14)


def test_two_nodes_need_no_weights():
    data = tasks.contextual_classification()
    assert data.sample_weight is None and data.n_samples == 8
    np.testing.assert_allclose(np.abs(data.x["x"]), 3**-0.5)
    assert tasks.contextual_classification(order=3).sample_weight is not None


def test_samples_tend_to_the_same_statistics():
    data = tasks.contextual_classification(samples=200_000, key=1)
    yx, x = correlations(data)
    np.testing.assert_allclose(yx, [[1 / 6, 1 / 6]], atol=5e-3)
    np.testing.assert_allclose(x, np.eye(2) / 3, atol=5e-3)
    assert np.bincount(data.labels["context"]).tolist() == [0, 100_000, 100_000]
    again = tasks.contextual_classification(samples=200_000, key=1)
    np.testing.assert_array_equal(data.x["x"], again.x["x"])


@pytest.mark.parametrize("samples", [None, 30])
def test_the_target_is_the_component_of_the_context(samples):
    data = tasks.contextual_classification(contexts=3, bound=2.0, samples=samples)
    for c in (1, 2, 3):
        here = data.mask(context=c)
        np.testing.assert_array_equal(data.y["y"][here, 0], data.x["x"][here, c - 1])
    assert 1 < np.abs(data.x["x"]).max() <= 2


@pytest.mark.parametrize(
    ("gating", "least"), [(tasks.single_pathway, 1 / 24 * 2), (tasks.pathway_per_context, 0.0)]
)
def test_gatings_run_and_are_as_expressive_as_nrr_says(gating, least):
    """The best one pathway can do is W = [½ ½]; one for each context solves the task."""
    arch, data = gating(tasks.contextual_classification(), hidden=2)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), scale=0.0)
    assert float(net.loss(weights, data)) == pytest.approx(1 / 6)
    best = {"common": [0.5, 0.5], "only1": [1.0, 0.0], "only2": [0.0, 1.0]}
    for name in arch.hidden:
        weights[f"x_{name}"] = np.eye(2)
        weights[f"{name}_y"] = np.array([best[name]])
    assert float(net.loss(weights, data)) == pytest.approx(least, abs=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contexts": 0}, "contexts"),
        ({"order": 1}, "order"),
        ({"bound": 0.0}, "bound"),
        ({"samples": 1}, "(?s)the number of samples.*at least 2"),
    ],
)
def test_what_is_impossible_says_so(options, message):
    with pytest.raises(nr.NeuralRaceError, match=message):
        tasks.contextual_classification(**options)


def test_pathways_need_contexts():
    with pytest.raises(nr.NeuralRaceError, match="needs the label 'context'"):
        tasks.pathway_per_context(tasks.xor())
