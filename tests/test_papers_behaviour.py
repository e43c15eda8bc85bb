"""Figures and claims on animals that learn: what is read from tables that are made by hand."""

import numpy as np
import pytest
import xarray

from evidence import Verdict, claims
from neuralrace.behaviour import decision_task, deep_agent, shallow_agent
from papers.talk import decisions, deep_and_shallow, saddle_graph

NAIVE, LEFT, RIGHT, BALANCED, EXPERT = range(5)


def animals(*strategies):
    """A table with the strategies over time of deep animals; the shallow ones have the same."""
    named = np.array([strategies, strategies])
    return xarray.Dataset(
        {"strategy": (("network", "animal", "time"), named)},
        {"network": ["deep", "shallow"]},
    )


def test_the_first_strategy_is_the_first_after_naive():
    table = animals(
        [NAIVE, NAIVE, LEFT, EXPERT],
        [NAIVE, RIGHT, LEFT, BALANCED],
        [NAIVE, NAIVE, NAIVE, NAIVE],
        [NAIVE, BALANCED, EXPERT, RIGHT],
    )
    assert decisions.first_used(table, "left").tolist() == [1, 0, 0, 0]
    assert decisions.first_used(table, "right").tolist() == [0, 1, 0, 0]
    assert decisions.both_used(table).tolist() == [1, 1, 0, 0]
    shares = decisions.shares(table, "deep")
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    assert shares[NAIVE].tolist() == [1, 0.5, 0.25, 0.25]


def test_early_and_late_are_shares_of_the_mean_improvement():
    accuracy = np.array([[0.5, 0.5, 0.7, 0.9], [0.5, 0.6, 0.7, 0.9]])
    assert decisions.reached(accuracy, 0.25) == 2
    assert decisions.reached(accuracy, 0.1) == 1
    assert decisions.reached(accuracy, 0.75) == 3


def test_correlations_are_told_with_their_times_and_lags():
    """The correlation with the end is judged by the lower end of its interval."""
    part = np.array([[[0.5, 0.6, 0.7], [-0.2, 0.0, 0.1]], [[0.1, 0.2, 0.3], [0.0, 0.1, 0.2]]])
    table = xarray.Dataset(
        {
            "fading": (("network", "lag", "part"), part),
            "moment": (("network", "when"), np.array([[40.0, 66.0], [20.0, 36.0]])),
        },
        {
            "network": ["deep", "shallow"],
            "lag": ["10", "end"],
            "part": ["low", "value", "high"],
            "time": [0.0, 400.0],
        },
    )
    assert decisions.faded(table, "deep") == (
        "lag 10 0.60 (0.50 to 0.70), at the end 0.00 (−0.20 to 0.10)"
    )
    assert decisions.when(table, "shallow") == "20 and 36 of 400"
    assert decisions.MEASURES["end"].read(table) == -0.2


def graph(distance, routes=((0, 1, 0.1), (0, 2, 0.1), (1, 3, 0.05), (2, 3, 0.05))):
    """A table of four points, a distance of 1 apart, and animals at these distances from them."""
    return xarray.Dataset(
        {
            "distance": (("animal", "time", "point"), np.array(distance, float)),
            "separation": ("point", np.ones(4)),
            "index": ("point", [2, 1, 1, 0]),
            "route": (("routes", "of_route"), np.array(routes, float)),
        }
    )


def test_animals_pass_points_within_half_their_distance():
    through_left = [[0, 1, 1, 2], [0.9, 0.4, 1, 1], [2, 1, 1, 0.1]]
    straight = [[0, 1, 1, 2], [0.6, 0.6, 0.6, 0.6], [2, 1, 1, 0.1]]
    table = graph([through_left, straight])
    assert saddle_graph.sequences(table) == [(0, 1, 3), (0, 3)]
    assert saddle_graph.passing(table).tolist() == [1, 0]
    assert saddle_graph.steps(table) == {1: 2, 2: 1, None: 0}
    assert saddle_graph.on_routes(table) == pytest.approx(2 / 3)
    assert saddle_graph.levels(table) == 2
    back = graph([through_left[::-1]])
    assert saddle_graph.steps(back) == {1: 0, 2: 0, None: 2}
    assert saddle_graph.on_routes(back) == 0
    assert saddle_graph.on_routes(graph([through_left], [(0, 2, 0.1), (2, 3, 0.1)])) == 0


def test_what_a_side_adds_and_how_cortex_responds():
    task = decision_task((0.5, 1.0))
    agent = deep_agent()
    weights = agent.init(0)
    values = np.asarray(agent(weights, task)["q_stim"])
    u = {side: float(weights[f"see_{side}"][0, 0]) for side in ("left", "right")}
    wanted = [
        u["left"] * float(weights["from_left"][0, 0]),
        u["right"] * float(weights["from_right"][1, 0]),
    ]
    np.testing.assert_allclose(deep_and_shallow.stimulus_values(values, task), wanted)
    found = deep_and_shallow.responses(weights)
    np.testing.assert_allclose(np.abs(found), np.abs(list(u.values())))
    np.testing.assert_array_equal(np.sign(found), np.sign(wanted))
    shallow = shallow_agent().init(0)
    np.testing.assert_allclose(
        deep_and_shallow.responses(shallow),
        [shallow["from_left"][0, 0], shallow["from_right"][1, 0]],
    )
    sides = deep_and_shallow.on_each_side(np.array([0.2, 0.4, 0.6, 1.0]), task)
    np.testing.assert_allclose(sides, [0.3, 0.8])


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([0.4, 0.1, 0.1], Verdict.HOLDS),
        ([0.4, -0.1, 0.1], Verdict.QUALIFIED),
        ([0.4, 0.1, -0.2], Verdict.QUALIFIED),
        ([-0.1, 0.1, 0.1], Verdict.FAILS),
    ],
)
def test_a_null_result_is_a_verdict(found, verdict):
    (claim,) = (c for c in claims("talk") if c.name == "talk/decisions-systematic")
    assert claim.inferred
    assert claim.judged(found).verdict is verdict


def test_every_claim_on_animals_is_marked_inferred():
    mine = [c for c in claims("talk") if c.name.startswith("talk/decisions")]
    assert len(mine) == 4
    assert all(claim.inferred for claim in mine)
