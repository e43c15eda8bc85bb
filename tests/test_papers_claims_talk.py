"""The talk's claims: what is read from tables that are made by hand, and verdicts that flip."""

from dataclasses import replace

import numpy as np
import pytest
import xarray

import neuralrace as nr
import papers
from evidence import Tables, Verdict, claims
from papers import find
from papers.talk.claims import balance, depth, reads, saddles, speed
from papers.talk.regimes import task


def run(name, compute, **changes):
    """The figure with another way to its data."""
    figure = replace(find(name), compute=compute, measures=lambda table: ())
    return figure.run(figure.resolve(changes=changes))


def test_names_are_those_of_one_claim():
    short = [claim.name.split("/")[1] for claim in claims("nrr", "mhs", "talk")]
    assert len(set(short)) == len(short)


def test_every_figure_of_the_talk_is_read(monkeypatch):
    read = set()

    def noted(self, name, **changes):
        read.add(name)
        raise LookupError

    def refused(self, measurement, **settings):
        raise LookupError

    monkeypatch.setattr(Tables, "__call__", noted)
    monkeypatch.setattr(Tables, "once", refused)
    tables = Tables(quick=True)
    for claim in claims("talk"):
        for measure in claim.measures:
            try:
                measure.read(tables)
            except LookupError:
                continue
    assert read >= {name for name in papers.names() if name.startswith("talk/")}


def test_a_wrong_number_of_a_figure_flips_the_verdict():
    (claim,) = (c for c in claims("talk") if c.name == "talk/structures-known")
    figure = find("talk/structures")
    table = figure.run(figure.resolve(changes={"seeds": 5, "features": (100, 25600)}))
    of = lambda table: Tables(_kept={("talk/structures", ()): table})
    assert claim.measure(of(table)).verdict is Verdict.HOLDS
    wrong = table.assign(values=table["values"] * 1.001)
    assert claim.measure(of(wrong)).verdict is Verdict.FAILS
    slow = table.assign(error=table["error"] ** 0.5)
    assert claim.measure(of(slow)).verdict is Verdict.FAILS


# ---- the slips ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "matters"), [((5, 4, 4), True), ((4, 4, 4), False)])
def test_equation_15_as_printed_fails_for_unequal_sizes_only(sizes, matters):
    def solved(s):
        net, data = task(s["sizes"], s["seed"])
        times = np.linspace(0, 2, 9)
        losses = [
            nr.linear.lambda_balanced(
                net,
                nr.linear.balanced_weights(net, lam, scale=s["scale"], key=s["seed"]),
                data,
                times=times,
            ).loss
            for lam in s["lambdas"]
        ]
        return xarray.Dataset({"simulated": (("lam", "time"), losses)}, {"time": times})

    table = run("talk/lambda_trajectories", solved, sizes=sizes, lambdas=(-5.0, 0.0))
    assert balance.slide_loss(table, corrected=True) < 1e-9
    assert (balance.slide_loss(table, corrected=False) > 0.01) is matters
    balanced = run("talk/lambda_trajectories", solved, sizes=sizes, lambdas=(0.0,))
    assert balance.slide_loss(balanced, corrected=False) < 1e-9


@pytest.mark.parametrize(("variance", "right"), [(1.0, True), (2.0, False)])
def test_rates_as_printed_are_right_for_inputs_of_unit_variance(variance, right):
    def solved(s):
        time = np.linspace(0, 30, 601)
        left = np.exp(-s["d"] * time)
        exact = s["s"] / s["d"] * (1 - left) + s["start"] * left
        limit = nr.linear.deep_limit(time, s=s["s"], d=s["d"], start=s["start"], depth=1)
        return xarray.Dataset(
            {"exact": (("depth", "time"), exact[None]), "limit": ("time", limit)}, {"time": time}
        )

    table = run("talk/depth", solved, d=variance)
    for which in ("shallow", "limit"):
        off = depth.as_printed(table, which)
        assert off < 1e-12 if right else off > 0.1


def test_the_exponent_of_the_time_is_two_less_than_the_depth():
    assert speed.exponent(5) == pytest.approx(3, abs=0.01)


# ---- shapes and saddles -------------------------------------------------------------------------


def test_exponentials_and_sigmoids_are_told_apart():
    time = np.linspace(0, 40, 4001)
    curves = np.stack([1 - np.exp(-time), 1 / (1 + np.exp(10 - time))])
    first = reads.first_over_steepest(curves)
    assert first == pytest.approx([1, 4 * np.exp(-10)], rel=0.02)
    waits = depth.wait_over_rise(time, curves)
    assert waits == pytest.approx([np.log(2) / np.log(9), 10 / (2 * np.log(9))], rel=1e-3)


def stairs(orders):
    """Runs that rest for 5 at each of the points named, in order; two modes of loss 1 each."""
    levels = {"{}": 2.0, "{1}": 1.0, "{2}": 1.0, "{1, 2}": 0.0}
    names = list(levels)

    def made(s):
        time = np.arange(0, 15, 0.1)
        loss, distance = [], []
        for order in orders:
            at = [names.index(order[int(t // 5)]) for t in time]
            loss.append([levels[names[k]] for k in at])
            distance.append(1.0 - np.eye(4)[at])
        return xarray.Dataset(
            {
                "loss": (("seed", "time"), loss),
                "distance": (("seed", "time", "point"), distance),
                "point_loss": ("point", list(levels.values())),
                "index": ("point", [4, 2, 2, 0]),
            },
            {"time": time, "point": names},
        )

    return run("talk/saddles", made)


def test_saddles_that_runs_rest_at():
    one, other = ("{}", "{1}", "{1, 2}"), ("{}", "{2}", "{1, 2}")
    same, two = stairs([one, one]), stairs([one, other])
    assert (saddles.ways(same), saddles.ways(two)) == (1, 2)
    for table in (same, two):
        assert saddles.share_at_saddles(table) == saddles.downward(table) == 1
        assert saddles.fewest_saddles(table) == 2
    assert saddles.downward(stairs([("{1}", "{}", "{}")])) == 0
    assert saddles.share_at_saddles(two.assign(point_loss=two["point_loss"] * 1.02)) == 2 / 6
    assert saddles.between_runs(two) == 0
    assert saddles.between_runs(stairs([one, ("{}", "{}", "{1}")])) == 0.5
