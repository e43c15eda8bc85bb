"""Domains that share a representation, and errors on trained and untrained routes."""

import itertools

import numpy as np
import pytest
from hypothesis import given

import neuralrace as nr
from neuralrace import analysis, tasks
from papers.nrr.domains import domain_similarity, domains_that_met
from papers.nrr.route_errors import route_errors
from tests.test_analysis import SEEDS, routed  # noqa: F401
from tests.test_errors import refuses


def test_domain_similarity_is_the_mean_over_pairs():
    rng = np.random.default_rng(1)
    D, I, size = 3, 2, 4  # noqa: E741
    h = rng.normal(size=(2, D, I, size))
    domain, item = (v.ravel() for v in np.indices((D, I)))
    shuffled = rng.permutation(D * I)
    for kind in ("inner", "cosine"):
        found = domain_similarity(
            h.reshape(2, D * I, size)[:, shuffled], 10 - domain[shuffled], item[shuffled], kind
        )
        np.testing.assert_array_equal(found.domains, [8, 9, 10])
        for t in range(2):
            turned = h[t, ::-1]  # domains were numbered backwards
            like = lambda a, b, kind=kind: analysis.similarity([a, b], kind)[0, 1]
            for i, j in np.ndindex(I, I):
                within = [like(turned[a, i], turned[a, j]) for a in range(D)]
                across = [
                    like(turned[a, i], turned[b, j]) for a, b in itertools.permutations(range(D), 2)
                ]
                assert found.within[t, i, j] == pytest.approx(np.mean(within))
                assert found.across[t, i, j] == pytest.approx(np.mean(across))
            for a, b in np.ndindex(D, D):
                same = [like(turned[a, i], turned[b, i]) for i in range(I)]
                assert found.by_domain[t, a, b] == pytest.approx(np.mean(same))
    np.testing.assert_allclose(found.spread, 0, atol=1e-14)


def test_shared_is_one_for_one_representation_and_zero_for_unrelated_ones():
    items = np.random.default_rng(2).normal(size=(3, 5))
    domain, item = np.repeat([1, 2], 3), np.tile([1, 2, 3], 2)
    same = domain_similarity(np.tile(items, (2, 1)), domain, item)
    assert float(same.shared) == pytest.approx(1)
    np.testing.assert_allclose(same.across, same.within)
    apart = np.zeros((2, 3, 2, 5))
    apart[0, :, 0], apart[1, :, 1] = items, items  # other neurons in the other domain
    apart = domain_similarity(apart.reshape(6, 10), domain, item)
    assert float(apart.shared) == 0
    np.testing.assert_allclose(apart.within, same.within)
    scaled = domain_similarity(np.concatenate([items, 3 * items]), domain, item, "cosine")
    assert float(scaled.shared) == pytest.approx(3 / 5)  # 2ab / (a² + b²), whatever the kind
    np.testing.assert_allclose(scaled.across, scaled.within)


@given(SEEDS)
def test_shared_is_at_most_one(seed):
    rng = np.random.default_rng(seed)
    D, I = rng.integers(2, 5), rng.integers(1, 4)  # noqa: E741
    h = rng.normal(size=(D, I, 2)) + 10.0 ** rng.integers(-3, 3)
    where = [v.ravel() for v in np.indices((D, I))]
    assert abs(domain_similarity(h.reshape(-1, 2), *where).shared) <= 1 + 1e-12


def test_pairs_choose_the_domains_that_are_compared():
    h = np.array([[1.0, 0], [1, 0], [0, 1]])
    where = {"domain": [1, 2, 3], "item": [1, 1, 1]}
    only = np.zeros((3, 3), bool)
    only[0, 1] = True
    assert float(domain_similarity(h, **where, pairs=only).shared) == 1
    assert float(domain_similarity(h, **where, pairs=~only & ~only.T).shared) == 0
    assert float(domain_similarity(h, **where).shared) == pytest.approx(1 / 3)


def test_samples_of_the_same_item_are_averaged_and_their_spread_is_told():
    h = np.array([[1.0, 1.0], [1.0, -1.0], [2.0, 0.0]])
    found = domain_similarity(h, [1, 1, 2], [1, 1, 1])
    assert float(found.across[0, 0]) == 2
    assert float(found.spread) == pytest.approx(2 / 8)


def test_domains_that_met_have_a_common_output():
    for M, K in ((7, 4), (7, 2), (5, 1)):
        trained, _ = tasks.routing(M, K)
        routes = list(zip(trained.labels["input"], trained.labels["output"], strict=True))
        outputs = [{int(j) for i, j in routes if i == k} for k in range(1, M + 1)]
        wanted = [[bool(a & b) for b in outputs] for a in outputs]
        np.testing.assert_array_equal(domains_that_met(trained), wanted)


def test_messages_of_domains():
    h = np.eye(4)
    with refuses("domain"):
        domain_similarity(h, [1, 1, 2], [1, 2, 1, 2])
    with refuses("domain"):
        domain_similarity(h, [5, 5, 2, 2], [1, 1, 1, 7])
    with refuses("domain"):
        domain_similarity(h, [1, 1, 1, 1], [1, 2, 3, 4])
    where = {"domain": [1, 1, 2, 2], "item": [1, 2, 1, 2]}
    with refuses("pairs"):
        domain_similarity(h, **where, pairs=np.ones((3, 3), bool))
    with refuses("pairs"):
        domain_similarity(h, **where, pairs=np.eye(2, dtype=bool))
    with refuses("labels"):
        domains_that_met(nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))


# ---- routes -------------------------------------------------------------------------------------


def test_route_errors_are_those_of_the_product_of_the_weights(routed):  # noqa: F811
    net, runs, trained, untrained = routed
    found = route_errors(net, runs.values["weights"], trained, untrained)
    assert found.trained.shape == found.untrained.shape == (2, 3)
    np.testing.assert_allclose(found.trained, runs.loss, rtol=1e-12)
    base = tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0))  # targets; inputs are one-hot
    routes = tasks.circulant_routes(3, 2)
    for seed, t in np.ndindex(2, 3):
        w = {edge: value[seed, t] for edge, value in runs.values["weights"].items()}
        square = np.empty((3, 3))
        for i, j in np.ndindex(3, 3):
            whole = w[f"out{j + 1}"] @ w["hidden"] @ w[f"in{i + 1}"]
            square[i, j] = ((base - whole) ** 2).sum() / 4
        assert found.trained[seed, t] == pytest.approx(square[routes].mean() / 2)
        assert found.untrained[seed, t] == pytest.approx(square[~routes].mean() / 2)
    assert found.silent_trained == found.silent_untrained == pytest.approx(244 / 8)
    np.testing.assert_allclose(found.untrained_share, found.untrained / 30.5)
    np.testing.assert_allclose(found.trained_share, found.trained / 30.5)


def test_route_errors_without_untrained_routes(routed):  # noqa: F811
    net, runs, trained, _ = routed
    found = route_errors(net, runs.final, trained, None)
    np.testing.assert_allclose(found.trained, runs.loss[:, -1])
    assert np.isnan(found.untrained).all() and np.isnan(found.untrained_share).all()


def test_messages_of_routes(routed):  # noqa: F811
    net, runs, trained, untrained = routed
    with refuses("trained"):
        route_errors(net, runs.final, trained, untrained.gated({}))
    with refuses("trained"):
        route_errors(net, runs.final, (net.arch, trained), untrained)
    with refuses("untrained"):
        route_errors(net, runs.final, trained, (net.arch, untrained))
