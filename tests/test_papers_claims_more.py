"""Claims that no figure measures: each measurement on a small version of the real thing."""

import numpy as np
import pytest

from neuralrace.papers.claims import Basis, Verdict
from neuralrace.papers.claims.nrr import identities, theory

NRR = {claim.name.split("/")[1]: claim for claim in theory.CLAIMS}


class Small:
    """In place of `Tables`: every measurement with small sizes, each once."""

    def __init__(self, **sizes):
        self.sizes, self.kept = sizes, {}

    def once(self, measurement, **settings):
        smaller = {k: min(v, self.sizes.get(k, v)) for k, v in settings.items()}
        key = (measurement, tuple(smaller.items()))
        if key not in self.kept:
            self.kept[key] = measurement(**smaller)
        return self.kept[key]


def numbers(claim, tables):
    """The number of each measure, a mean if there is one for every seed."""
    return [float(np.mean(measure.read(tables))) for measure in claim.measures]


def held(claim, tables):
    return [m.met(v) for m, v in zip(claim.measures, numbers(claim, tables), strict=True)]


@pytest.mark.parametrize("claim", NRR.values(), ids=lambda claim: claim.name)
def test_a_claim_quotes_its_paper_and_says_what_bounds_rest_on(claim):
    assert claim.quote and claim.where and claim.how
    assert all(isinstance(measure.rests, Basis) for measure in claim.measures)
    wrong = [(m.least - 1 if m.least is not None else m.most + 1) for m in claim.measures]
    assert claim.judged(wrong).verdict is Verdict.FAILS


def test_only_path_statistics_matter():
    assert held(NRR["path-statistics"], Small(problems=1)) == [True] * 3


def test_rotations_keep_sums_over_each_group():
    rng = np.random.default_rng(0)
    values = {"x": rng.normal(size=(6, 2)), "y": rng.normal(size=(6, 1))}
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    found = identities.mixed(values, [turn, np.eye(3)])
    for rows in (slice(0, 3), slice(3, 6)):
        wanted = values["x"][rows].T @ values["y"][rows]
        np.testing.assert_allclose(found["x"][rows].T @ found["y"][rows], wanted)
    np.testing.assert_array_equal(found["x"][3:], values["x"][3:])
    assert np.abs(found["x"][:3] - values["x"][:3]).max() > 0.1


def test_the_conserved_quantity_of_routing():
    flow, steps = numbers(NRR["conserved"], Small(problems=2))
    assert flow <= 1e-6 < steps < 0.05


def test_ratios_by_K_and_by_P():
    found = identities.ratios_in_theory(M=2, start=0.02)
    assert found["root_M"] < 1e-3 and found["by_K"] < 1e-6 and found["by_P"] < 1e-3


def test_ratios_of_trained_networks():
    found = identities.ratios_trained(M=3, seeds=2, steps=300)
    assert set(found) == {"1", "2", "3"} and all(len(v) == 2 for v in found.values())
    assert np.abs(np.array(found["3"]) - 1).max() < 0.05


def test_weights_become_decoupled_before_they_learn():
    found = identities.decoupling(seeds=1, steps=200, scale=0.2)
    assert found["first"][0] < 0.2 < 0.6 < found["half"][0]
    assert found["reached"][0] >= 0.5


def test_distractors_are_ignored_with_gates_alone():
    assert held(NRR["distractors"], Small(seeds=2, steps=20)) == [True, True]
