"""The talk's third part: transition to nonlinearity, gating structures, edge sharing, the tour."""

import numpy as np
import pytest

import papers
from evidence import Found, Tables, Verdict, claims
from papers.talk import edge_sharing, gating_structures, transition
from tests.test_papers_relative_scale import held

pytestmark = pytest.mark.slow


def of(name):
    (found,) = (claim for claim in claims("talk") if claim.name == name)
    return found


def verdict(claim, figure, table):
    return claim.measure(Tables(_kept={(figure, ()): table})).verdict


@pytest.fixture(scope="module")
def crossing():
    figure = papers.find("talk/transition")
    changes = {"deltas": (0.0, 0.4, 5.0), "hidden": 32, "seeds": 5, "shown": (0.0, 5.0)}
    return figure.run(figure.resolve(changes=changes))


def test_networks_are_nonlinear_before_they_must_be(crossing):
    figure, claim = papers.find("talk/transition"), of("talk/nonlinear-early")
    assert all(figure.within(crossing).values())
    assert verdict(claim, "talk/transition", crossing) is Verdict.HOLDS
    other = crossing.assign(share=1 - crossing["share"])
    assert verdict(claim, "talk/transition", other) is Verdict.FAILS
    assert transition.least_nonlinear(crossing).shape == (5,)
    delta, share = transition.emergence(crossing)
    assert share[list(delta).index(0.4)] > 0.9 > share[-1]
    assert len(figure.draw(crossing).axes) == 4


@pytest.fixture(scope="module")
def shared():
    figure = papers.find("talk/edge_sharing")
    changes = {"M": 2, "P": (1, 4), "hidden": 16, "seeds": 5, "span": 40.0}
    return figure.run(figure.resolve(changes=changes))


def test_shared_edges_are_faster(shared):
    figure, claim = papers.find("talk/edge_sharing"), of("talk/edge-sharing")
    assert all(figure.within(shared).values())
    assert verdict(claim, "talk/edge_sharing", shared) is Verdict.HOLDS
    slower = shared.isel(P=[1, 0]).assign_coords(P=shared["P"].to_numpy())
    assert verdict(claim, "talk/edge_sharing", slower) is Verdict.FAILS
    assert (edge_sharing.worst_step(slower) > 1).all()
    assert len(figure.draw(shared).axes) == 2


@pytest.fixture(scope="module")
def compared():
    figure = papers.find("talk/gating_structures")
    return figure.run(figure.resolve(changes={"hidden": 60, "seeds": 5, "deltas": (0.4,)}))


def test_the_fastest_dominates_if_it_is_kept(compared):
    figure, claim = papers.find("talk/gating_structures"), of("talk/fastest-dominates")
    assert all(figure.within(compared).values())
    assert held(figure, compared, "order")
    entry = claim.measure(Tables(_kept={("talk/gating_structures", ()): compared}))
    assert entry.verdict is Verdict.QUALIFIED and "not enough" in entry.qualifications[0]
    assert gating_structures.fastest(compared, 0, np.ones(4, bool)) == "side"
    assert gating_structures.remark(compared, 0, 2) == "not kept"
    other = compared.assign(reached=compared["reached"] * [10.0, 0.1, 1.0, 1.0])
    assert verdict(claim, "talk/gating_structures", other) is Verdict.FAILS
    assert len(figure.draw(compared).axes) == 5


def test_relative_scale_is_undecided_without_cells_and_judged_by_them():
    def tables(name, **changes):
        raise papers.TooSlow("too much", got="days", wanted="a GPU", fix="--quick")

    for name in ("talk/grokking", "talk/early-layers"):
        claim = of(name)
        assert claim.inferred and claim.quote
        found = [Found.of(measure.read(tables)) for measure in claim.measures]
        assert claim.judged(found).verdict is Verdict.UNDECIDED
    claim = of("talk/grokking")
    sooner = Found.of([0.5, 0.6, 0.5, 0.6, 0.5])
    assert claim.judged([1.0, sooner, -0.9]).verdict is Verdict.HOLDS
    assert claim.judged([1.0, sooner, -0.1]).verdict is Verdict.QUALIFIED
    unclear = Found.of([0.5, 1.4, 0.6, 1.3, 0.9])
    assert claim.judged([1.0, unclear, -0.9]).verdict is Verdict.UNDECIDED
    later = Found.of([1.5, 1.4, 1.6, 1.3, 1.4])  # which scales are compared is our choice
    assert claim.judged([1.0, later, -0.9]).verdict is Verdict.UNDECIDED


def test_the_tour_has_the_three_parts_in_order():
    tour = papers.find_tour("talk/tour")
    talk = [name for name in tour.figures if name.startswith("talk/")]
    assert talk == list(papers.chosen(["talk"]))
    assert {"mhs/fig4", "nrr/fig6"} <= set(tour.figures)
