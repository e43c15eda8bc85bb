"""Claims that no figure measures: each measurement on a small version of the real thing."""

import numpy as np
import pytest
import xarray

from evidence import Basis, Found, Verdict, claims
from papers import find
from papers.mhs.claims import balance, depth, findings, layers, linear
from papers.nrr.claims import identities, theory
from papers.talk.claims import rates

pytestmark = pytest.mark.slow

NRR = {claim.name.split("/")[1]: claim for claim in theory.CLAIMS}
MHS = {c.name.split("/")[1]: c for module in (balance, layers, linear) for c in module.CLAIMS}
TALK = {claim.name.split("/")[1]: claim for claim in rates.CLAIMS}


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
    return [Found.of(measure.read(tables)).value for measure in claim.measures]


def held(claim, tables):
    return [m.met(v) for m, v in zip(claim.measures, numbers(claim, tables), strict=True)]


@pytest.mark.parametrize("claim", (NRR | MHS | TALK).values(), ids=lambda claim: claim.name)
def test_a_claim_quotes_its_paper_and_says_what_bounds_rest_on(claim):
    assert claim.quote and claim.where and claim.how
    exact = [m for m in claim.measures if m.rests is Basis.THEOREM and m.most is not None]
    assert all(abs(m.most) <= 0.01 for m in exact)  # an identity is tested to rounding
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
    (flow,) = numbers(NRR["conserved"], Small(problems=2))
    (remark,) = NRR["conserved"].remarks
    (steps,) = (read(Small(problems=2)) for read in remark.reads)
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


# ---- MHS: linear networks -----------------------------------------------------------------------


def test_input_correlations_decide_the_end_and_not_the_rate():
    found = linear.input_correlations(start=0.03)
    assert found["end"] < 1e-6 and found["course"] < 1e-9 and found["growth"] < 0.01
    wanted = [  # t = ln(s/(δ a₀) − 1) / 2s, the strongest mode of four items
        np.log(np.sqrt(7) / (size * 0.03**2) - 1) for size in linear.SIZES
    ]
    assert found["half"] >= np.ptp(wanted) / np.mean(wanted) - 1e-9


def test_as_many_neurons_as_the_rank_are_enough():
    found = linear.linear_widths(problems=1)
    assert found["wide"] < 1e-3 and found["narrow"] < 1e-3


def test_pathways_as_wide_as_their_rank():
    found = linear.pathway_widths(seeds=1, steps=2)
    assert found["most"] == 10  # 8 items and 3 contexts, one direction in common
    assert 0.9 < found["gated"][0] < 1.1  # after so few steps


def test_the_match_of_figure_7_is_read_from_its_table():
    figure = find("mhs/fig7")
    small = {"seeds": 2, "steps": 1000, "every": 20}
    table = figure.run(figure.resolve(changes=small))
    tables = lambda name: {"mhs/fig7": table}[name]
    assert held(MHS["linear-match"], tables) == [True, True, True]
    late = table.assign(
        simulated=table["simulated"].copy(data=np.roll(table["simulated"], 5, axis=1)),
        loss=table["loss"].copy(data=np.roll(table["loss"], 5, axis=1)),
    )
    assert held(MHS["linear-match"], lambda name: late) == [False, False, False]


# ---- MHS: pathways in balance, layers -----------------------------------------------------------


def test_a_broken_balance_is_told_from_a_pathway_that_does_nothing():
    y = np.array([[1.0, 0.0], [0.0, 1.0]])
    parts = np.array([[y + 0.5 * (1 - y), -0.5 * (1 - y)]])
    table = xarray.Dataset(
        {
            "outputs": (("seed", "pathway", "output", "sample"), parts),
            "y": (("output", "sample"), y),
        }
    )
    claim = MHS["balance"]
    assert held(claim, lambda name: table) == [True] * 4
    idle = np.array([[y, 0 * y]])
    nothing = table.assign(outputs=table["outputs"].copy(data=idle))
    lesion = claim.measures[1]
    assert not lesion.met(float(np.mean(lesion.read(lambda name: nothing))))


def figures(share, loss):
    """In place of `Tables`: made-up data of figures 5 and 6."""
    step = np.arange(loss.shape[1])
    deep = xarray.Dataset(
        {
            "share": (("seed", "layer", "number"), share),
            "relu": (("seed", "time"), loss),
            "always": (("seed", "layer"), np.ones(share.shape[:2])),
            "often": (("seed", "layer"), np.ones(share.shape[:2])),
        },
        {"step": ("time", step)},
    )
    single = xarray.DataArray(
        [[[0.1, 0.7, 0.2, 0.0]] * 2], dims=("contexts", "seed", "number"), coords={"contexts": [3]}
    )

    class Both:
        def __call__(self, name):
            return {"mhs/fig5": xarray.Dataset({"share": single})}[name]

        def at_hand(self, name, **_):
            return {"mhs/fig6": deep}[name]

    return Both()


def falling(drops, length=200):
    """Losses with a first drop at each of `drops`, and a second one 40 epochs later."""
    t = np.arange(length)
    fall = lambda at: 1 / (1 + np.exp((t - at) / 2))
    return np.stack([0.6 * fall(d) + 0.4 * fall(d + 40) for d in drops])


def test_reuse_is_counted_in_contexts_over_the_whole_network():
    more = np.tile([[0.0, 0.2, 0.8], [0.1, 0.3, 0.6]], (4, 1, 1))
    tables = figures(more, falling([40, 50, 60, 65]))
    assert numbers(MHS["depth-reuse"], tables) == pytest.approx([2.65 - 2.1, 2.5 - 2.1])
    less = figures(more[:, :, ::-1], falling([40, 50, 60, 65]))
    assert held(MHS["depth-reuse"], less) == [False, False]


def test_the_interval_of_reuse_has_the_spread_of_both_networks():
    rng = np.random.default_rng(0)
    deep, single = rng.normal(2.5, 0.2, 100), rng.normal(2.0, 0.1, 5)
    found = Found.of(layers.more_than_one(deep, single))
    assert found.value == pytest.approx(deep.mean() - single.mean()) and found.seeds == 5
    known = Found.of(layers.more_than_one(deep, np.full(5, single.mean())))
    assert found.high - found.low > known.high - known.low


def test_timing_explains_the_spread_of_runs():
    share = np.full((3, 2, 3), 1 / 3)
    early, late = [40, 50, 65], [100, 160, 130]
    loss = np.stack([stage(a, b) for a, b in zip(early, late, strict=True)])
    left, later = numbers(MHS["variance-timing"], figures(share, loss))
    assert left < 0.1
    assert later == pytest.approx(np.std(late) / np.std(early), rel=0.1)
    apart = np.stack([stage(40, 100, half) for half in (0.45, 0.5, 0.55)])
    assert layers.spread_at_equal_drops(figures(share, apart).at_hand("mhs/fig6")) > 0.5
    first = np.stack([stage(a, 120) for a in early])  # only the first drop is inconsistent
    assert held(MHS["variance-timing"], figures(share, first)) == [True, False]


def stage(first, second, half=0.5, length=200):
    """A loss with two drops, and a plateau at `half` in between."""
    fall = lambda at: 1 / (1 + np.exp((np.arange(length) - at) / 2))
    return (1 - half) * fall(first) + half * fall(second)


def test_numbers_over_many_runs_are_taken_in_groups():
    table = xarray.Dataset({"relu": ("seed", np.arange(100.0))})
    means = layers.by_group(lambda t: float(t["relu"].mean()), table)
    assert means == [9.5, 29.5, 49.5, 69.5, 89.5]
    assert layers.by_group(lambda t: t.sizes["seed"], table.isel(seed=slice(6))) == 6


def test_findings_have_the_measures_of_the_entries_they_name():
    assert [claim.name for claim in findings.CLAIMS] == [f"mhs/finding-{n}" for n in range(1, 6)]
    last = findings.CLAIMS[-1]
    (entry,) = (claim for claim in depth.CLAIMS if claim.name == "mhs/algorithm-1")
    assert [m.what for m in last.measures] == [f"algorithm-1: {m.what}" for m in entry.measures]
    assert [m.id for m in last.measures] == [f"algorithm-1/{m.id}" for m in entry.measures]
    fourth = {measure.id for measure in findings.CLAIMS[3].measures}
    assert "depth-follows/plateaus" in fourth
    assert not any("outputs" in id for id in fourth)  # of which the slide does not speak
    assert last.quote.startswith("Finding 5: ") and "`algorithm-1`" in last.how


def test_names_of_the_ledger_are_all_different():
    names = [claim.name for claim in claims()]
    assert len(names) == len(set(names))


# ---- the talk -----------------------------------------------------------------------------------


def test_times_by_strength():
    found = rates.times_by_strength(start=0.01)
    assert found["relative"] < 1e-9 and found["deep"] < 0.01
    slow, fast = (np.log(s / 0.01**2 - 1) for s in (0.5, 8.0))
    assert found["same"] == pytest.approx(fast / slow - 1, rel=1e-6)
    assert 0 < rates.times_trained(seeds=1)["off"][0] < 0.4


def test_depth_slows_and_imbalance_speeds_up():
    found = rates.random_chains(problems=8)
    assert found["larger"] == found["imbalanced"] == 1.0
    assert found["deeper"] >= 0.8


def test_the_reduction_is_exact_for_relu_networks_that_meet_its_assumptions():
    found = rates.relu_exact(steps=120)
    assert found["exact"] < 1e-9 and found["switched"] == 0
    assert found["unmatched"] > 0.01 and found["moved"] > 1e-3
