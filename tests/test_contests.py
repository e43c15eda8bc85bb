"""Contests: learning times, winners, phase diagrams, joint training, ranking of patterns."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.contests import Kept, phases, times, verdicts
from neuralrace.contests.joint import side_by_side
from neuralrace.contests.patterns import MOST
from neuralrace.contests.times import learning_time
from neuralrace.plot import COLOURS
from neuralrace.trajectory import crossing_time
from papers.mhs import table
from tests.test_errors import refuses, says

CROSSING = np.sqrt(2 / 3)


def gatings(delta: float, total: int = 16) -> dict:
    data = nr.tasks.extended_xor(delta)
    return {
        "linear": nr.tasks.linear_pathways(data, total),
        "xor": nr.tasks.xor_pathways(data, total),
    }


def by_hand(gating: str, delta: float, a0: float, criterion: float) -> float:
    """The learning time from MHS App. C with its slip corrected: equal logistic pathways."""
    s, d = {
        "linear": (delta / 2, delta**2 / 2),
        "xor": (np.sqrt(1 / 8 + delta**2 / 16), (2 + delta**2) / 4),
    }[gating]
    end = s / d
    a = end * (1 - np.sqrt(2 * criterion))  # the loss is ½ (1 − a d/s)²
    return float(np.log((end / a0 - 1) / (end / a - 1)) / (2 * s))


# ---- times --------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.3, 1.4])
def test_times_are_those_of_the_logistic_curves(delta):
    aligned = nr.contest(gatings(delta), start=0.01)
    random = nr.contest(gatings(delta), scale=1e-3, criterion=0.3, relative=True)
    for name, units in (("linear", 8), ("xor", 4)):
        assert aligned.times[name] == pytest.approx(by_hand(name, delta, 1e-4, 0.2), rel=1e-9)
        wide = by_hand(name, delta, units * 1e-6 / 2, 0.15)
        assert random.times[name] == pytest.approx(wide, rel=1e-9)
    assert aligned.winner == ("xor" if delta < CROSSING else "linear")
    other = {"xor": "linear", "linear": "xor"}[aligned.winner]
    ratio = aligned.times[other] / aligned.times[aligned.winner]
    assert aligned.margins == {aligned.winner: 0.0, other: pytest.approx(ratio - 1)}
    assert max(aligned.residuals.values()) < 1e-8


def test_a_solved_race_finds_the_time_of_the_closed_form(monkeypatch):
    entrant = nr.contest(gatings(0.5), start=0.01).entrants["xor"]
    monkeypatch.setattr(nr.Race, "complete_form", lambda *_, **__: None)
    found = learning_time(entrant.race, entrant.start, 0.2, 1e5)
    assert found.method == "solved race"
    assert found.time == pytest.approx(entrant.time, rel=1e-7)
    strength = entrant.strength
    early = learning_time(entrant.race, entrant.start, 0.2, 2.0 * strength)
    assert early.time == np.inf and early.unknown == "not before t = 2"
    late = learning_time(entrant.race, entrant.start, 0.2, 1.01 * entrant.time * strength)
    assert late.time == pytest.approx(entrant.time, rel=1e-6)  # also where growth passes longest


def test_a_candidate_may_be_reduced_already(monkeypatch):
    pairs = gatings(0.5)
    wanted = nr.contest(pairs, start=0.01, criterion=0.3)
    races = {name: nr.reduce(*pair) for name, pair in pairs.items()}

    def refuse(*_, **__):
        raise AssertionError("a race was reduced again")

    monkeypatch.setattr(times, "reduce", refuse)
    found = nr.contest(races, start=0.01, criterion=0.3)
    assert found.times == wanted.times
    assert all(found.entrants[name].race is race for name, race in races.items())
    assert {n: p[0] for n, p in found.candidates.items()} == {n: p[0] for n, p in pairs.items()}
    other = nr.reduce(*gatings(0.6)["xor"])
    with refuses("candidates"):
        nr.contest({**races, "other": other}, start=0.01)


def test_a_larger_tolerance_finds_nearly_the_same_time():
    pair = nr.tasks.common_and_single(nr.tasks.contextual(contexts=2, items=2), hidden=6)
    found = [
        nr.contest({"mine": pair}, scale=1e-4, criterion=0.1, relative=True, rtol=rtol)
        for rtol in (None, 1e-8)
    ]
    exact, rough = (each.times["mine"] for each in found)
    assert found[1].entrants["mine"].method == "solved race"
    assert rough != exact and rough == pytest.approx(exact, rel=1e-6)
    with refuses("rtol"):
        nr.contest({"mine": pair}, rtol=0.0)


def test_who_cannot_learn_never_wins():
    found = nr.contest(gatings(0.0), start=0.01)
    assert found.times["linear"] == np.inf and found.winner == "xor"
    assert "never" in str(found)
    no_one = nr.contest({"linear": gatings(0.0)["linear"]}, start=0.01)
    assert no_one.winner is None and np.isnan(no_one.margins["linear"])
    assert no_one.frame()["time"].tolist() == [np.inf]
    with refuses("times"):
        no_one.joint()


def test_what_is_drawn():
    found = nr.contest(gatings(0.4), start=0.01)
    plain = [text.get_text() for text in found.plot().get_legend().get_texts()]
    assert plain == ["linear", "xor"] and found.checked is None  # drawing makes no check
    kept = {"linear": " (outrun)", "xor": ""}
    assert [found.check().verdict(name) for name in kept] == [Kept.OUTRUN, Kept.KEPT]
    ax = found.plot()
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert names == [*(name + mark for name, mark in kept.items()), "aligned (reference)"]
    assert [text.get_text() for text in ax.texts] == ["criterion, reached at ●"]
    assert len({line.get_color() for line in ax.get_lines()[:3]} - {COLOURS["relu"]}) == 3
    points = [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    assert found.check().reference is not None
    wanted = [*found.times.values(), found.check().reference.time]
    assert sorted(points) == pytest.approx(sorted(wanted))


# ---- over a parameter ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_crossover_of_the_xor_gatings_and_its_picture():
    phases = nr.phase_diagram(gatings, "delta", [0.0, 0.5, 1.1, 2.0], scale=1e-3)
    (crossover,) = phases.crossovers
    assert crossover.value == pytest.approx(CROSSING, abs=1e-9)
    assert (crossover.below, crossover.above) == ("xor", "linear")
    assert phases.winners == ("xor", "xor", "linear", "linear")
    assert phases.winner_at(0.81) == "xor" and phases.winner_at(0.82) == "linear"
    ax = phases.plot()
    assert ax.get_xlabel() == "delta" and ax.get_ylim()[1] < np.inf
    words = [text.get_text() for text in ax.texts]
    assert words == ["xor first", "linear first", "equal at delta = 0.8165"]
    assert phases.checked is None and phases.kept == (True,) * 4
    assert "not kept" not in " ".join(text.get_text() for text in ax.get_legend().get_texts())
    with refuses("value"):
        phases.winner_at(3)


def test_a_phase_diagram_enters_every_candidate_once_and_checks_winners_alone(monkeypatch):
    calls = []
    phases = nr.phase_diagram(
        lambda v: calls.append(v) or gatings(v), "delta", [0.3, 0.4], scale=1e-3
    )
    measured, share = [], verdicts.kept_share
    monkeypatch.setattr(
        verdicts, "kept_share", lambda race, *a, **k: measured.append(race) or share(race, *a, **k)
    )
    kept = phases.kept
    assert calls == [0.3, 0.4]
    found = [phases.contest_at(v) for v in (0.3, 0.4)]
    assert measured == [each.entrants["xor"].race for each in found]
    assert kept == tuple(each.check().keeps("xor") for each in found)
    assert found[0].keeps("linear") is found[0].check().keeps("linear") is False
    with refuses("name"):
        found[0].keeps("other")


def test_a_phase_diagram_says_that_hidden_nodes_are_too_narrow():
    def tasks(strength):
        data = nr.Dataset({"x": np.eye(3)}, {"y": np.diag([strength, 2.0, 1.0])})
        return {n: (nr.Architecture.chain(3, w, 3), data) for n, w in (("two", 2), ("ten", 10))}

    phases = nr.phase_diagram(tasks, "strength", [3.0, 4.0], start=1e-3, criterion=1.5)
    inexact = [sentence.text for sentence in phases.sentences() if sentence.id == "inexact"]
    assert len(inexact) == 1 and "two" in inexact[0]


def test_trained_networks_on_a_phase_diagram():
    phases = nr.phase_diagram(gatings, "delta", [0.0, 2.0], scale=1e-3)
    ax = phases.plot(trained=([0.0, 2.0], [[1.0, 2.0, 3.0], [4.0, 5.0, np.inf]]))
    points = ax.lines[-1]
    assert points.get_label() == "ReLU networks" and points.get_linestyle() == "None"
    assert points.get_xdata().tolist() == [0, 0, 0, 2, 2, 2]
    assert points.get_ydata().tolist() == [1, 2, 3, 4, 5, np.inf]
    with refuses("trained"):
        phases.plot(trained=([0.0, 2.0], [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]))
    with refuses("trained"):
        phases.plot(trained=[0.0])  # type: ignore


def test_a_third_winner_between_two_values_is_found():
    # single modes s = 1 − v, v, and a constant that is first only in the middle
    def three(value):
        rates = {"falling": 1.2 - value, "rising": 0.2 + value, "steady": 0.75}
        one, task = nr.Architecture.chain(1, 1, 1), nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
        return {name: (one, task.gated({"h": [rate]})) for name, rate in rates.items()}

    phases = nr.phase_diagram(three, "v", [0.0, 1.0], start=0.01, criterion=0.3, relative=True)
    assert [c.below for c in phases.crossovers] == ["falling", "steady"]
    assert [c.value for c in phases.crossovers] == pytest.approx([0.45, 0.55], abs=1e-6)
    assert phases.winner_at(0.5) == "steady"


# ---- together -----------------------------------------------------------------------------------


def test_candidates_side_by_side_add_up():
    rng = np.random.default_rng(0)
    data = nr.tasks.extended_xor(0.7)
    pairs = {"a": nr.tasks.linear_pathways(data, 4), "b": nr.tasks.xor_pathways(data, 4)}
    arch, gated = pairs["b"]
    pairs["b"] = (arch, gated.gated({**gated.gates, "x": [1, 0.5, 2, 1], "y": [1, 1, 0, 1]}))
    whole, joined = side_by_side(pairs)
    weights = {
        e: rng.normal(size=(whole.sizes[t], whole.sizes[s])) for e, (s, t) in whole.edges.items()
    }
    parts = [
        nr.GDLN(a)({e: weights[f"{name}__{e}"] for e in a.edges}, d)["y"]
        for name, (a, d) in pairs.items()
    ]
    np.testing.assert_allclose(nr.GDLN(whole)(weights, joined)["y"], sum(parts), atol=1e-12)


@pytest.mark.slow
def test_the_faster_gating_supplies_the_targets_when_trained_together():
    found = nr.contest(gatings(0.3, 128), scale=1e-3)
    together = found.joint(seeds=2, times=np.linspace(0, 60, 201))
    assert together.winner == found.winner == "xor" and together.winners == ("xor", "xor")
    total = sum(together.carried.values())
    np.testing.assert_allclose(total[:, -1], 1, atol=1e-3)
    np.testing.assert_allclose(total[:, 0], 0, atol=1e-3)
    assert together.runs[0].loss[-1] < 1e-3
    assert "xor supplies most" in str(together)
    assert together.plot().get_ylabel() == "part of the targets supplied"


def test_a_contest_is_about_one_task():
    arch, data = gatings(0.3)["xor"]

    def against(other: nr.Dataset) -> nr.Contest:
        return nr.contest({"a": (arch, data), "b": (arch, other)}, start=0.01)

    both = "candidates 'a' and 'b' do not learn the same task"
    with says(both, got="inputs 'x' that differ on 4 of 4", wanted="only gates", fix="one dataset"):
        against(gatings(0.4)["xor"][1])
    with says(both, got="targets 'y' that differ on 4 of 4 samples", wanted="equal samples"):
        against(nr.Dataset(data.x, {"y": 2 * data.y["y"]}, data.gates))
    tiny = nr.Dataset(data.x, {"y": 1e-9 * data.y["y"]}, data.gates)
    with says(both, got="targets 'y' that differ on 4 of 4 samples", wanted="equal samples"):
        nr.contest({"a": (arch, tiny), "b": (arch, nr.Dataset(data.x, {"y": -tiny.y["y"]},
                    data.gates))}, start=1e-6, criterion=0.5, relative=True)  # fmt: skip
    with says(both, got="different sample weights", wanted="equal samples"):
        against(nr.Dataset(data.x, data.y, data.gates, [1, 1, 1, 2]))
    with says(both, got="4 and 8 samples", wanted="equal samples"):
        against(jax.tree.map(lambda a: np.concatenate([a, a]), data))
    with refuses("candidates"):
        nr.phase_diagram(
            lambda d: {"a": (arch, data), "b": gatings(d)["xor"]}, "d", [1, 2], scale=1
        )
    other_gates = data.gated({h: 1 - np.asarray(g) for h, g in data.gates.items()})
    assert set(against(other_gates).times) == {"a", "b"}


def test_candidates_of_one_task_may_read_different_inputs():
    base = nr.tasks.contextual(contexts=2, items=4)
    pairs = {
        "items": nr.pathways(base, {"h": None}, hidden=4, inputs={"h": ("item",)}),
        "all": nr.pathways(base, {"h": None}, hidden=4),
    }
    assert set(pairs["items"][1].x) < set(pairs["all"][1].x)
    found = nr.contest(pairs, start=0.01, criterion=0.9, relative=True, check=True)
    assert found.winner in pairs
    assert "reads all of them, side by side: context, item." in str(found)
    alone = nr.contest({"all": pairs["all"]}, start=0.01, criterion=0.9, relative=True)
    assert found.times["all"] == alone.times["all"]
    assert "different inputs" not in str(alone)
    for few in (np.asarray(base.x["item"])[:, :2], 2 * np.asarray(base.x["item"])):
        other = nr.Dataset({"item": few}, base.y)
        pair = nr.pathways(other, {"h": None}, hidden=4)
        with refuses("candidates"):
            nr.contest({**pairs, "few": pair}, start=0.01, criterion=0.9, relative=True)
        renamed = nr.pathways(nr.Dataset({"few": few}, base.y), {"h": None}, hidden=4)
        together = nr.contest({**pairs, "few": renamed}, start=0.01, criterion=0.9, relative=True)
        assert set(together.times) == {*pairs, "few"}


# ---- patterns -----------------------------------------------------------------------------------


def test_patterns_are_ranked_by_the_largest_singular_value():
    rng = np.random.default_rng(1)
    data = nr.Dataset(
        {"a": rng.normal(size=(7, 2)), "b": rng.normal(size=(7, 3))},
        {"y": rng.normal(size=(7, 9))},
        sample_weight=rng.uniform(size=7),
    )
    patterns = rng.normal(size=(20, 7))
    ranking = nr.rank_patterns(data, patterns)
    x, p = np.hstack([data.x["a"], data.x["b"]]), data.sample_weight
    wanted = [np.linalg.norm((data.y["y"] * (p * g)[:, None]).T @ x, 2) for g in patterns]
    np.testing.assert_allclose(ranking.growth, sorted(wanted, reverse=True), rtol=1e-12)
    np.testing.assert_array_equal(ranking.patterns, patterns[ranking.index])
    assert not ranking.is_sampled and "sample of" not in str(ranking)
    rates, marks = ranking.plot(most=5).axes[1].lines
    assert rates.get_ydata().tolist() == ranking.growth.tolist()
    assert marks.get_ydata().tolist() == ranking.growth[:5].tolist()
    left, right = ranking.plot(most=5, samples={"early": 3, "late": 4}).axes[:2]
    assert [text.get_text() for text in left.get_xticklabels()] == ["early", "late"]
    assert left.get_title() == "(a) the 5 fastest: on where dark"
    assert right.get_title() == "(b) all 20 patterns"
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["the 5 shown"]


def test_many_patterns_are_sampled_and_it_is_said():
    patterns = np.random.default_rng(0).random((MOST + 50, 4)) < 0.5
    ranking = nr.rank_patterns(nr.tasks.extended_xor(0.5), patterns)
    assert ranking.is_sampled and len(ranking.growth) == MOST
    assert f"a random sample of the {MOST + 50} given" in str(ranking)
    assert len(np.unique(ranking.index)) == MOST


# ---- what is wrong ------------------------------------------------------------------------------


def test_errors():
    both = gatings(0.5)
    assert nr.contest(both).times == nr.contest(both, scale=1e-3).times
    with refuses("candidates"):
        nr.contest({"aligned": both["xor"]})
    with refuses("start"):
        nr.contest(both, start=0.01, scale=1e-3)
    with refuses("candidates"):
        nr.contest({}, start=0.01)
    with refuses("candidates"):
        nr.contest([1], start=0.01)
    with refuses("xor"):
        nr.contest({"xor": 1}, start=0.01)
    with refuses("criterion"):
        nr.contest(both, start=0.01, criterion=1.5, relative=True)
    with refuses("scale"):
        nr.contest(both, scale=-1.0)
    with refuses("start"):
        nr.contest(both, start={"linear": 0.01})
    chain = nr.Architecture.chain(3, 4, 4, 1)
    with refuses("start"):
        nr.contest({"deep": (chain, nr.tasks.extended_xor(1.0))}, scale=1e-3)
    with refuses("xor"):
        nr.contest({"xor": (1, 2, 3)}, start=0.01)
    with refuses("candidates"):
        nr.contest({1: both["xor"]}, start=0.01)
    with refuses("start"):
        nr.contest(gatings(1.0), start=0.9)
    with refuses("candidates"):
        nr.contest({"a b": both["xor"], "a_b": both["xor"]}, scale=1e-3).joint()
    one, other = (nr.Architecture({"x": 3, h: 4, "y": 1}, {"i": ("x", h), "o": (h, "y")})
                  for h in ("b__h", "h"))  # fmt: skip
    with refuses("candidates"):
        plain = nr.tasks.extended_xor(1.0)
        nr.contest({"a": (one, plain), "a__b": (other, plain)}, scale=1e-3).joint()
    with says("finite numbers", got="NaN", wanted="0 and 1"):
        nr.rank_patterns(nr.tasks.xor(), [[1, np.nan, 0, 0]])
    with refuses("precision"):
        nr.phase_diagram(gatings, "delta", [0, 1], start=0.01, precision=0)
    with refuses("candidates"):
        some = lambda v: gatings(v) if v < 2 else {"xor": both["xor"]}
        nr.phase_diagram(some, "delta", [1, 2], start=0.01)
    with refuses("patterns"):
        nr.rank_patterns(nr.tasks.xor(), np.ones((2, 3)))
    with refuses("build"):
        nr.phase_diagram(both, "delta", [0, 1], start=0.01)
    with refuses("parameter"):
        nr.phase_diagram(gatings, "delta", [1, 0], start=0.01)


# ---- the table ----------------------------------------------------------------------------------


def test_the_settings_of_the_table():
    relu_width = {name: s.hidden[0] for name, s in table.CASES.items()}
    assert relu_width["different"] == 700 and relu_width["C4"] == 500 and relu_width["C5"] == 600
    assert table.CASES["C4"].learning_rate == pytest.approx(0.032)
    arch, _ = table.gated_network(table.CASES["C3"], "gated", "sign")
    assert arch.sizes["common"] == 350 and arch.sizes["not1"] == 116
    deep, data = table.gated_network(table.CASES["depth"], "gated", "equal")
    assert deep.sizes["shared"] == 420 and deep.sizes["not2"] == 105
    assert nr.GDLN(deep).loss(nr.GDLN(deep).init(jax.random.key(0), 0.0), data) > 0
    with refuses("rule"):
        table.gated_network(table.CASES["C3"], "gated", "nonsense")


def test_a_small_column_of_the_table():
    setting = table.Case("small", {"contexts": 2, "items": 2}, (160,), 1e-3, seeds=2, step=0.02)
    rows = table.column(setting, rows=[("gated", "sign"), ("predicted", "sign")], steps=200)
    assert [r[0] for r in rows] == ["floor", "gated", "predicted"]
    # the race follows the network it predicts
    trained, predicted = rows["gated", "sign"], rows["predicted", "sign"]
    np.testing.assert_allclose(trained.means, predicted.means, atol=2e-3)
    assert 0 < rows["floor", ""].mean < 1
    page = table.markdown({"C3": rows})
    assert "authors: prediction, fitted | .0108 (.046) |" in page
    assert jnp.zeros(()).dtype == jnp.float64  # precision is left as it was


def test_a_crossover_to_no_one_is_where_learning_ends():
    """Targets 1 ± v of one input leave a loss of v²/2, which passes .2 at v = √.4."""

    def make(v):
        data = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[1.0 + v], [1.0 - v]]})
        return {"chain": (nr.Architecture.chain(1, 4, 1), data)}

    diagram = nr.phase_diagram(
        make, "v", [0.0, 1.0], start=0.1, criterion=0.2, precision=1e-4, longest=100.0
    )
    (crossover,) = diagram.crossovers
    assert crossover.value == pytest.approx(np.sqrt(0.4), abs=1e-2)


def test_patterns_are_ranked_on_ungated_data():
    _, gated = nr.tasks.xor_pathways(nr.tasks.extended_xor(0.5), total=8)
    with refuses("patterns"):
        nr.rank_patterns(gated, np.ones((1, 4)))


def test_a_criterion_above_the_initial_loss_is_refused():
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[0.5]]})  # an initial loss of .125
    candidates = {"chain": (nr.Architecture.chain(1, 4, 1), data)}
    with refuses("criterion"):
        nr.contest(candidates, start=0.01, criterion=0.2)
    assert nr.contest(candidates, start=0.01, criterion=0.4, relative=True).margins == {"chain": 0}


def test_there_is_no_crossover_where_no_one_learns():
    """A learns below v = 1 and B above v = 2; in between the best loss is above the criterion."""
    one = nr.Architecture.chain(1, 1, 1)

    def make(v):
        reach = {"A": 1.0 if v < 1 else 0.0, "B": 1.0 if v > 2 else 0.0}
        task = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[1.0], [1.0]]})
        return {name: (one, task.gated({"h": [on, on]})) for name, on in reach.items()}

    phases = nr.phase_diagram(make, "v", [0.5, 2.5], start=0.1, criterion=0.2, precision=1e-6)
    assert [(c.below, c.above) for c in phases.crossovers] == [("A", None), (None, "B")]
    assert [c.value for c in phases.crossovers] == pytest.approx([1.0, 2.0], abs=1e-5)
    assert phases.winner_at(1.5) is None


def test_candidates_that_start_at_one_number_can_be_trained_together():
    """Blocks of matrices included, whose largest entry is smaller than their singular value."""
    rng = np.random.default_rng(8)
    base = nr.Dataset({"x": rng.normal(size=(8, 3))}, {"y": rng.normal(size=(8, 3))})
    pairs = {"one": nr.pathways(base, {"a": rng.integers(2, size=8), "b": None}, hidden=6)}
    found = nr.contest(pairs, start=0.05, criterion=0.9, relative=True)
    largest = [np.abs(w).max() for w in found.entrants["one"].start.weights[0].values()]
    assert max(largest) < 0.99 * 0.05  # no entry of a matrix is its singular value
    together = found.joint(times=[0.0, 1e-9])
    weights = np.concatenate([np.ravel(w) for w in together.runs[0].final.values()])
    assert np.std(weights) == pytest.approx(0.05 * np.sqrt(2 / 6), rel=0.3)


# ---- would a ReLU network keep the gates --------------------------------------------------------


def test_a_kept_winner_and_one_that_is_outrun():
    found = nr.contest(gatings(0.4), scale=1e-3, criterion=0.5, relative=True)
    assert found.verdicts == {"xor": Kept.KEPT, "linear": Kept.OUTRUN}
    assert found.check().describe("linear").startswith("kept, but outrun by the aligned gates (1.9")
    assert found.kept == pytest.approx({"linear": 1, "xor": 1, "aligned": 1}, abs=0.02)
    assert found.check().implementable == {"linear": True, "xor": True}
    assert found.check().reference.time == pytest.approx(found.times["xor"], rel=0.1)
    page = str(found)
    assert "; a ReLU network would keep the gates of xor." in page
    assert found.check().expected("xor") == found.times["xor"]
    for other in ("first half", "Expect", "No constant gating", "too large", "% of the loss"):
        assert other not in page
    below = nr.contest(gatings(0.4), scale=1e-3, criterion=0.2, relative=True, check=True)
    assert "The check covers the first half of learning only" in str(below)


def test_a_winner_that_is_not_kept():
    data = nr.tasks.extended_xor(0.4)
    side = nr.tasks.natural_gatings(data, 128)["side"]
    found = nr.contest({"side": side}, scale=1e-3, criterion=0.5, relative=True)
    assert found.winner == "side"
    assert not found.check().is_kept("side")
    assert "would not keep the gates of side" in str(found)
    assert f"about t = {found.check().reference.time:.4g}" in str(found)
    assert found.verdicts["side"] is Kept.NOT_KEPT
    assert found.check().describe("side") == "not kept"  # no second time beside the reference
    assert "s/s*" not in str(found)
    assert "never starts" not in str(found)
    assert found.check().expected("side") == found.check().reference.time
    below = nr.contest({"side": side}, scale=1e-3, criterion=0.4, relative=True)
    assert below.check().expected("side") is None
    assert "Expect" not in str(below)
    assert f"would take t = {below.check().reference.time:.4g}" in str(below)


def test_without_a_reference_the_time_is_estimated_from_growth_rates():
    data = nr.tasks.extended_xor(0.4)
    side = nr.tasks.natural_gatings(data, 128)["side"]
    found = nr.contest({"side": side}, scale=1e-3, criterion=0.5, relative=True)
    rate = np.linalg.svd((data.x["x"][:, 0] > 0) * data.y["y"].T @ data.x["x"] / 4)[1][0]
    alone = replace(found.check(), reference=None, kept={"side": found.kept["side"]}, reason="why")
    expected = found.times["side"] * rate / found.check().fastest
    assert alone.describe("side") == f"not kept; expect about t·s/s* = {expected:.4g}"
    assert alone.keeps("side") is False
    assert ("no reference", "There is no reference: why.") in alone.sentences("side")
    slow = replace(alone, fastest=2.1 * rate)  # s < ½ s*
    assert slow.describe("side") == "not kept"
    late = replace(found.entrants["side"], criterion=0.4 * found.check().reference.race.constant)
    assert replace(alone, entrants={"side": late}).describe("side") == "not kept"


def test_starts_that_other_gates_cannot_have_are_not_compared():
    candidates = gatings(1.2)
    starts = {name: nr.reduce(*pair).start(0.01) for name, pair in candidates.items()}
    found = nr.contest(candidates, start=starts, criterion=0.5, relative=True)
    assert found.check().reference is None
    assert found.verdicts["linear"] is Kept.UNKNOWN
    words = "kept share 1.00, not compared with the aligned gates"
    assert found.check().describe("linear") == words
    assert not found.check().is_kept("linear")
    assert found.check().keeps("linear") is None
    assert found.check().expected("linear") is None
    assert "There is no reference: the candidates start in a way" in str(found)
    assert "would keep" not in str(found)


def test_deeper_candidates_are_checked_layer_by_layer_only():
    x = np.array([[1.0, 0.2], [0.3, 1.0], [1.0, 1.0]])
    data = nr.Dataset({"x": x}, {"y": x @ [[1.0], [1.0]]})
    deep = (nr.Architecture.chain(2, 6, 6, 1), data)
    found = nr.contest({"deep": deep}, start=0.1, criterion=0.5, relative=True)
    assert found.check().reference is None
    assert np.isnan(found.check().fastest)
    assert found.check().implementable == {"deep": None}
    assert "layer by layer only; how long a deeper network takes is not known" in str(found)
    assert not found.check().is_kept("deep")
    assert found.check().keeps("deep") is None
    assert found.check().expected("deep") is None


def test_why_a_candidate_is_not_checked():
    data = nr.tasks.extended_xor(1.2)
    arch, gated = nr.tasks.linear_pathways(data, 8)
    node = arch.hidden[0]
    edge = arch.incoming[node][0]
    moved = gated.gated({**gated.gates, edge: gated.gates[node]})
    found = nr.contest({"edge": (arch, moved)}, start=0.01, criterion=0.5, relative=True)
    assert found.verdicts["edge"] is Kept.UNKNOWN
    why = "not checked: a ReLU network gates its hidden neurons only"
    assert found.check().describe("edge") == why


def test_nothing_is_expected_where_the_aligned_gates_are_not_reliable():
    data = nr.tasks.gaussian(samples=6, inputs=3, outputs=2, key=2)
    found = nr.contest(data)
    assert "width: 200 neurons" in str(found) and "width: 60" in str(nr.contest(data, width=60))
    assert found.kept["aligned"] < 0.85
    assert "No constant gating is reliable here: gates change" in str(found)
    assert found.check().expected("aligned") is None
    reliable = replace(found.check(), kept={"aligned": 0.85})
    assert not any(said.id == "unreliable" for said in reliable.sentences("aligned"))


def test_a_criterion_at_the_end_of_what_the_aligned_gates_can_learn():
    """They leave 47 % of the loss; networks, which change their gates, are at half in t = 24."""
    data = nr.tasks.gaussian(key=0)
    at_half = nr.contest(data)
    assert at_half.times["aligned"] == pytest.approx(38.3, rel=0.01)
    assert at_half.check().expected("aligned") is None
    assert "near the least loss that they can reach, 47 % of the initial loss" in str(at_half)
    before = nr.contest(data, criterion=0.6, relative=True)
    assert not any("least loss" in said.text for said in before.check().sentences("aligned"))
    assert before.check().expected("aligned") is None  # their share is .848, below what is reliable


def test_a_start_too_large_to_align():
    data = nr.tasks.extended_xor(0.4)
    large = nr.contest(data, scale=0.06)
    assert large.check().ratio > 1
    assert "too large for neurons to align" in str(large)
    assert large.check().expected("aligned") is None
    one_number = {"linear": gatings(0.4)["linear"]}  # its reference has met the criterion already
    found = nr.contest(one_number, start=0.6, criterion=0.5, relative=True, width=200, check=True)
    assert "There is no reference: candidate 'aligned' meets the criterion" in str(found)
    scale = 0.6 * np.sqrt(2 / 200)  # b² = N σ²/2
    assert found.check().ratio == nr.reln.aligned_patterns(data, key=0).ratio(200, scale)


def test_a_task_alone_is_asked_for_the_aligned_gates():
    data = nr.tasks.extended_xor(1.2)
    found = nr.contest(data, scale=1e-3, criterion=0.5, relative=True, width=64)
    assert found.winner == "aligned"
    assert sum(found.candidates["aligned"][0].sizes.values()) == pytest.approx(68, abs=3)
    assert found.frame()["candidate"].tolist() == ["aligned"]
    never = nr.contest(nr.tasks.parity(3), scale=1e-3)
    assert never.winner is None
    assert never.times == {}
    assert never.check().expected(None) == np.inf
    assert "never starts to learn this task (s* = 0)" in str(never)
    by_sample = {"sample": nr.tasks.natural_gatings(nr.tasks.parity(3))["sample"]}
    asked = nr.contest(by_sample, scale=1e-3, criterion=0.5, relative=True)
    assert asked.verdicts["sample"] is Kept.NOT_KEPT
    assert "never starts to learn" in asked.check().describe("sample")


@pytest.mark.parametrize("how", ["numbers", "weights"])
def test_the_reference_starts_as_the_candidates_do(how):
    candidates = gatings(1.2)
    if how == "weights":
        start = {n: nr.GDLN(a).init(jax.random.key(0), 1e-3) for n, (a, _) in candidates.items()}
    else:
        start = {"linear": 0.01, "xor": 0.01}
    reference = nr.contest(candidates, start=start).check().reference
    same = {"scale": 1e-3} if how == "weights" else {"start": 0.01}
    wanted = nr.contest(candidates, **same).check().reference
    assert reference.time == pytest.approx(wanted.time, rel=0.02)


def test_a_phase_diagram_marks_winners_that_are_not_kept():
    def sides(delta):
        data = nr.tasks.extended_xor(delta)
        natural = nr.tasks.natural_gatings(data, 16)
        return {"side": natural["side"], "answer": natural["answer"]}

    phases = nr.phase_diagram(sides, "delta", [0.4, 0.6], scale=1e-3, criterion=0.5, relative=True)
    assert phases.winners == ("side", "side")
    assert phases.kept == (False, False)
    assert phases.frame()["kept"].tolist() == [False, None] * 2
    assert "0 of 2 values" in str(phases)
    assert phases.contest_at(0.5).winner == "side"
    labels = [text.get_text() for text in phases.plot().get_legend().get_texts()]
    assert "winner not kept by ReLU networks" in labels


def test_equal_candidates_are_tied_and_have_no_crossover():
    """The same gating under two names; rounding of its times must not decide who is first."""

    def gatings(delta):
        data = nr.tasks.extended_xor(delta)
        xor = lambda: nr.tasks.xor_pathways(data)
        return {"b": xor(), "linear": nr.tasks.linear_pathways(data), "a": xor()}

    phases = nr.phase_diagram(gatings, "delta", np.linspace(0.1, 1.6, 7), scale=1e-3)
    assert [(c.below, c.above) for c in phases.crossovers] == [("b", "linear")]
    assert phases.crossovers[0].value == pytest.approx(np.sqrt(2 / 3), abs=1e-6)
    assert phases.tied[0] == ("b", "a") and phases.tied[-1] == ("linear",)
    assert phases.winners == tuple(each[0] for each in phases.tied)
    first = phases.frame().query("first").groupby("value")["candidate"].apply(tuple)
    assert first.tolist() == list(phases.tied)
    assert phases.equals(0.1, 0.8) == ["a"] and phases.equals(0.9, 1.6) == []
    found = nr.contest(gatings(0.2), scale=1e-3)
    assert found.tied == ("b", "a") and found.winner == "b"
    assert found.frame()["margin"][:2].tolist() == pytest.approx([0, 0])
    assert str(found).startswith("b and a are")
    assert found.plot().get_title() == "first: b, a"


@pytest.mark.parametrize(
    ("middle", "wide", "wins"), [(1.1, 0.2, True), (1.0, 0.1, True), (1.1, 0, False)]
)
def test_a_winner_between_two_values_of_another_is_looked_for(middle, wide, wins):
    """Times written by hand: the rival is ahead within `wide` of the middle, and else behind."""
    rival = lambda value: 10 * (1 + 0.1 * ((value - middle) ** 2 - wide**2))
    line = phases._Line(lambda value: {"usual": 1 / 10, "rival": 1 / rival(value)})
    ends = [c for low, high in [(0.6, 1.0), (1.0, 1.4)] for c in line.between(low, high, 1e-9)]
    at = [middle - wide, middle + wide] if wins else []
    np.testing.assert_allclose([value for value, _, _ in ends], at, atol=1e-8)


def test_a_start_of_deep_networks_from_weights_is_said_to_be_approximate():
    data = nr.Dataset({"x": np.eye(4)}, {"y": nr.tasks.hierarchy(depth=2).T})
    deep, shallow = nr.Architecture.chain(4, 8, 8, 7), nr.Architecture.chain(4, 16, 7)
    weights = {n: nr.GDLN(a).init(0, scale=0.1) for n, a in {"deep": deep, "flat": shallow}.items()}
    options = {"criterion": 0.5, "relative": True}
    found = nr.contest({"deep": (deep, data), "flat": (shallow, data)}, start=weights, **options)
    assert [e.starts_roughly for e in found.entrants.values()] == [True, False]
    assert "deep: started from weights that are not decoupled" in str(found)
    race = nr.reduce(deep, data)
    exact = race.weights(race.solve(times=[0.0, 1.0], start=0.1), 0.0, key=0)
    again = nr.contest({"deep": (deep, data)}, start={"deep": exact}, **options)
    assert not again.entrants["deep"].starts_roughly and "approximate start" not in str(again)
    with refuses("scale"):
        again.joint()
    assert again.joint(scale=0.1, times=[0.0, 20.0]).winner == "deep"


def test_leads_are_who_reaches_each_loss_first():
    """Against the first crossing of every loss by itself, on curves that cross twice."""
    t = np.linspace(0, 12, 4001)
    curves = {
        "early": 0.5 + 0.5 * np.exp(-2 * t),
        "middle": 0.2 + 0.8 / (1 + np.exp(4 * (t - 2))),
        "late": 1 / (1 + np.exp(3 * (t - 5))),
    }
    found = nr.contests.leads(t, curves)
    assert [lead.name for lead in found] == ["early", "middle", "late"]
    assert [lead.low for lead in found[:-1]] == [lead.high for lead in found[1:]]
    for level in np.linspace(0.02, 0.98, 49):
        times = {n: t[c <= level][0] if (c <= level).any() else np.inf for n, c in curves.items()}
        (leader,) = (lead.name for lead in found if lead.low <= level < lead.high)
        assert times[leader] <= min(times.values()) + t[1]


def test_equal_losses_have_one_leader_and_losses_need_their_times():
    t = np.linspace(0, 5, 50)
    noise = 1e-9 * np.sin(40 * t)
    (lead,) = nr.contests.leads(t, {"a": np.exp(-t), "b": np.exp(-t) + noise})
    assert lead.name == nr.contests.leads(t, {"a": np.exp(-t) + noise, "b": np.exp(-t)})[0].name
    assert (lead.low, lead.high) == pytest.approx((0.01, 0.99), abs=0.01)
    assert nr.contests.leads([0, 1], {"a": [1.0, 1.0]}) == ()
    with refuses("times"):
        nr.contests.leads([0, 1], {"a": [1.0, 0.5, 0.2]})


def test_a_race_whose_sums_through_every_node_cancel_is_timed():
    """One path per sample, targets of alternating sign: no node is driven by all its paths."""
    edges = {"xa1": ("x", "a1"), "xa2": ("x", "a2"), "b1y": ("b1", "y"), "b2y": ("b2", "y")}
    pairs = [(i, j) for i in (1, 2) for j in (1, 2)]
    edges |= {f"a{i}b{j}": (f"a{i}", f"b{j}") for i, j in pairs}
    arch = nr.Architecture({"x": 1, "a1": 1, "a2": 1, "b1": 1, "b2": 1, "y": 1}, edges)
    gates = {f"a{i}b{j}": np.eye(4)[k] for k, (i, j) in enumerate(pairs)}
    target = np.array([[2.0 * (-1) ** (i + j)] for i, j in pairs])
    data = nr.Dataset({"x": np.ones((4, 1))}, {"y": target}, gates)
    race = nr.reduce(arch, data)
    assert max(block.drive for block in race.blocks) < 1e-9
    rng = np.random.default_rng(0)
    weights = {e: rng.normal(size=(1, 1)) for e in edges}
    found = nr.contest({"paths": race}, start={"paths": weights}, criterion=0.5, relative=True)
    run = nr.flow(nr.GDLN(arch), weights, data, times=np.linspace(0, 20, 4001))
    wanted = crossing_time(run.time, run.loss, 0.5 * float((target**2).mean() / 2))
    assert found.times["paths"] == pytest.approx(float(wanted), rel=1e-3)


def test_a_pathway_that_must_change_sign_is_not_said_never_to_learn():
    """The pathway of the last two samples starts to raise what it must lower in the end."""
    edges = {"a": ("x", "h"), "b": ("h", "y"), "c": ("x", "k"), "d": ("k", "y")}
    arch = nr.Architecture({"x": 1, "h": 40, "k": 40, "y": 1}, edges)
    gates = {"h": np.ones(4), "k": np.array([0.0, 0.0, 1.0, 1.0])}
    data = nr.Dataset({"x": np.ones((4, 1))}, {"y": [[3.0], [3.0], [0.5], [0.5]]}, gates)
    found = nr.contest({"overlap": (arch, data)}, scale=1e-3, criterion=0.3)
    assert found.entrants["overlap"].is_unknown
    assert found.frame()["time"].isna().all() and "overlap: when it learns is not known" in str(
        found
    )
    net = nr.GDLN(arch)
    run = nr.flow(net, net.init(0, scale=1e-3), data, times=np.linspace(0, 60, 601))
    assert run.loss[-1] < 0.3  # it does learn
    own = nr.contest({"overlap": (arch, data)}, start={"overlap": net.init(0, scale=1e-3)})
    assert not own.entrants["overlap"].is_unknown


def test_what_is_unknown_is_said_in_a_diagram_and_in_words():
    """An overlapping pathway, beside one pathway for each half, which learns both."""
    edges = {"a": ("x", "h"), "b": ("h", "y"), "c": ("x", "k"), "d": ("k", "y")}
    arch = nr.Architecture({"x": 1, "h": 40, "k": 40, "y": 1}, edges)
    late = np.array([0.0, 0.0, 1.0, 1.0])

    def gatings(first):
        task = {"x": np.ones((4, 1))}, {"y": [[first], [first], [0.5], [0.5]]}
        overlap = nr.Dataset(*task, {"h": np.ones(4), "k": late})
        return {
            "overlap": (arch, overlap),
            "halves": (arch, nr.Dataset(*task, {"h": 1 - late, "k": late})),
        }

    diagram = nr.phase_diagram(gatings, "first", [2.0, 3.0], scale=1e-3, criterion=0.1)
    assert diagram.unknown == {"overlap": (2.0, 3.0)}
    assert "overlap at 2 of 2 values: when it learns is not known" in str(diagram)
    found = nr.contest(gatings(3.0), scale=1e-3, criterion=0.1)
    assert {n: found.place(n) for n in found.entrants} == {"overlap": "unknown", "halves": "first"}
    assert found.check().keeps("overlap") is not True
    one = nr.Dataset({"x": np.ones((4, 1))}, {"y": [[3.0], [3.0], [0.5], [0.5]]})
    alone = nr.contest({"one": (nr.Architecture.chain(1, 8, 1), one)}, criterion=0.1)
    assert alone.entrants["one"].lateness == "never"  # no weights bring it that far


@pytest.mark.parametrize("scale", [1e308, 1e-320])
def test_a_scale_whose_square_is_no_number(scale):
    data = nr.tasks.xor()
    for asked in (
        lambda: nr.contest(data, scale=scale),
        lambda: nr.reln.types(data, width=8, scale=scale, learning_rate=0.1, steps=10),
    ):
        with refuses("scale"):
            asked()


def test_a_winner_that_cannot_learn_all_is_named():
    """A constant input learns what all samples share, quickly; their own inputs learn all."""
    y = np.concatenate([3 * np.ones((4, 1)), np.diag([1.0, 1.1, 1.2, 1.3])], axis=1)
    base = nr.Dataset({"x": np.eye(4), "one": 3 * np.ones((4, 1))}, {"y": y})
    pairs = {
        "shared": nr.pathways(base, {"p": None}, hidden=20, inputs={"p": ("one",)}),
        "all": nr.pathways(base, {"p": None}, hidden=20, inputs={"p": ("x",)}),
    }
    learns = 1 - ((y - y.mean(axis=0)) ** 2).sum() / (y**2).sum()
    found = nr.contest(pairs, start=0.001, criterion=0.5, relative=True)
    assert found.winner == "shared"
    assert found.entrants["shared"].learns == pytest.approx(learns)
    assert found.entrants["all"].learns == pytest.approx(1)
    text = str(found)
    assert "  learns  " in text.splitlines()[1] and "  100 %  " in text
    assert found.frame()["learns"].tolist() == pytest.approx([learns, 1])
    assert "limit" in [said.id for said in found.sentences()]
    low = nr.contest(pairs, start=0.001, criterion=0.02, relative=True)
    assert low.winner == "all" and low.times["shared"] == np.inf
    assert "limit" not in [said.id for said in low.sentences()]
    whole = nr.contest({"all": pairs["all"]}, start=0.001)
    assert "learns" not in str(whole).splitlines()[1]


def test_leads_at_other_criteria_are_told():
    """The early one is first down to where it stops, and the other one below that."""
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    early = nr.Dataset({"x": x, "z": 4 * x}, {"y": np.array([[2.0, 0.0], [0.0, 1.0]])})
    pairs = {
        "early": nr.pathways(early, {"p": early.x["z"][:, 0] > 0}, hidden=10, inputs={"p": ("z",)}),
        "late": nr.pathways(early, {"p": None}, hidden=10, inputs={"p": ("x",)}),
    }
    found = nr.contest(pairs, start=0.01, criterion=0.5, relative=True)
    assert found.winner == "early"
    assert [lead.name for lead in found.leads] == ["early", "late"]
    late, zero = found.leads[1], 0.5 * np.mean(np.sum(early.y["y"] ** 2, axis=1))
    low, high = late.low / zero, late.high / zero
    page = str(found)
    assert f"between {low:.2g} and {high:.2g} late leads." in page
    assert f"Criterion: 0.5 of ½⟨‖y‖²⟩, loss {0.5 * zero:.4g}" in page
    below = nr.contest(pairs, start=0.01, criterion=0.9 * late.high)
    assert below.winner == "late"
    first = found.leads[0]
    between = f"At losses between {first.low:.2g} and {first.high:.2g} early leads."
    assert ("lead", between) in below.sentences()


def test_a_candidate_without_hidden_neurons_has_no_gates_to_keep():
    data = nr.Dataset({"x": np.eye(3)}, {"y": np.eye(3)})
    arch = nr.Architecture({"x": 3, "y": 3}, {"xy": ("x", "y")})
    found = nr.contest({"direct": (arch, data)}, start=0.01)
    assert np.isnan(found.kept["direct"]) and found.check().implementable["direct"] is None
    assert found.verdicts["direct"] is Kept.UNKNOWN
    assert found.check().describe("direct") == "not checked: it has no hidden neurons"


def test_more_candidates_than_colours_are_told_apart():
    data = nr.tasks.extended_xor(0.4)
    pairs = {f"c{k}": nr.tasks.xor_pathways(data, total=8 * (k + 2)) for k in range(10)}
    ax = nr.contest(pairs, scale=1e-3).plot()
    looks = {(line.get_color(), line._unscaled_dash_pattern) for line in ax.lines[:10]}
    assert len({repr(look) for look in looks}) == 10
