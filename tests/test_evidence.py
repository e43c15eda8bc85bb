"""The evidence: verdicts follow from numbers, pages from what is stored."""

import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import xarray

import neuralrace as nr
from evidence import (
    Basis,
    Claim,
    Entry,
    Found,
    Measure,
    Outcome,
    Remark,
    Tables,
    Verdict,
    claims,
    entries,
    pages,
    store,
    topics,
)
from evidence import __main__ as command
from evidence.pages import shown
from evidence.promise import Measurement
from neuralrace.trajectory import save_table
from papers import find, pack, unpack
from papers.figure import Setting
from papers.nrr.claims.reuse import shared_against_dedicated
from papers.nrr.claims.xor import activity_types
from tests.test_errors import refuses, says

ROOT = Path(__file__).parent.parent
PAPERS = claims("nrr", "mhs", "talk", "rnn")

# ---- verdicts -----------------------------------------------------------------------------------


def page_of(entry: Entry) -> str:
    """A claim as it is told on the page of its paper."""
    return "\n".join(pages.told(entry))


def inside(measure: Measure) -> float:
    bounds = [bound for bound in (measure.least, measure.most) if bound is not None]
    return sum(bounds) / len(bounds)


def outside(measure: Measure) -> float:
    """A number that no bound twice as wide would pass either."""
    return -1e3 if measure.most is None else measure.most + 1e3


def test_one_wrong_measurement_flips_the_verdict():
    for claim in PAPERS:
        right = [inside(measure) for measure in claim.measures]
        unsettled = any(measure.seen and not measure.otherwise for measure in claim.measures)
        usual = Verdict.UNDECIDED if unsettled else Verdict.HOLDS
        assert claim.judged(right).verdict is usual, claim.name
        for k, measure in enumerate(claim.measures):
            for bad in (outside(measure), float("inf")):
                wrong = claim.judged([*right[:k], bad, *right[k + 1 :]])
                limited = usual if unsettled or measure.seen else Verdict.QUALIFIED
                refuted = Verdict.UNDECIDED if measure.seen else Verdict.FAILS
                assert wrong.verdict is (limited if measure.otherwise else refuted), claim.name
                assert bool(wrong.qualifications) == bool(measure.otherwise and not measure.seen)
            nothing = claim.judged([*right[:k], float("nan"), *right[k + 1 :]])
            assert nothing.verdict is (usual if measure.otherwise else Verdict.UNDECIDED)


def test_what_was_set_when_the_number_was_known_decides_nothing():
    known = Measure("gap", "gap", lambda _: 0, most=1.0, seen=True)
    for value in (0.1, 50.0):
        assert known.outcome(Found(value)) is Outcome.UNCLEAR
        assert "when the number was known" in known.doubt(Found(value))
    limit = replace(known, what="limit", otherwise="Not so.")
    holds = Measure("m", "m", lambda _: 0, most=1.0)
    entry = Claim("nrr/x", "§0", "So.", "By eye.", (holds, limit)).judged([0.0, 50.0])
    assert entry.verdict is Verdict.HOLDS and entry.qualifications == ()
    assert "limit, limit: the bound" in entry.doubts[0]


def test_a_bound_of_ours_without_width_is_refused():
    """No finite number could miss it."""
    for bounds in ({"most": 1.0}, {"least": 1.0}, {"least": 1.0, "most": 1.0}):
        with says("no finite number", got="origin, 1", wanted="cannot fail", fix="otherwise"):
            Measure("ratio", "ratio", lambda _: 0, origin=1.0, **bounds)
        Measure("ratio", "ratio", lambda _: 0, origin=1.0, otherwise="Not so.", **bounds)
    paper = Measure("ratio", "ratio", lambda _: 0, most=1.0, origin=1.0, rests=Basis.PAPER)
    assert paper.outcome(Found(5.0)) is Outcome.MISSED
    between = Measure("ratio", "ratio", lambda _: 0, least=0.0, most=1.0)
    assert between.outcome(Found(5.0)) is Outcome.MISSED  # the other bound has a width
    assert between.outcome(Found(-5.0)) is Outcome.UNCLEAR


def test_no_claim_is_settled_on_few_seeds_unless_by_a_theorem():
    for claim in PAPERS:
        few = claim.judged([Found(inside(measure), seeds=4) for measure in claim.measures])
        by_theorem = all(m.rests is Basis.THEOREM for m in claim.measures if not m.otherwise)
        assert few.verdict is (Verdict.HOLDS if by_theorem else Verdict.UNDECIDED), claim.name


def test_a_claim_can_fail_and_says_what_it_is_about():
    for claim in PAPERS:
        assert any(not measure.otherwise for measure in claim.measures), claim.name
        assert all((claim.where, claim.says, claim.how)), claim.name
        assert claim.name.split("/")[0] in topics()


def bounded(**bounds):
    return Measure("gap", "gap", lambda tables: 0.0, **bounds)


def outcomes(measure, *found):
    return [measure.outcome(f).value for f in found]


def test_a_bound_inside_the_interval_of_the_seeds_settles_nothing():
    strict = bounded(most=1.0, rests=Basis.SEEDS)
    found = [Found.of([level - 0.1, level, level + 0.1] * 3) for level in (0.5, 0.98, 1.02, 1.5)]
    assert outcomes(strict, *found) == ["met", "unclear", "unclear", "missed"]
    assert strict.doubt(found[1]) == "within what seeds differ by"
    equal = bounded(least=-1, most=-1, rests=Basis.PAPER)  # an interval with the bound inside
    each = ([-1.0] * 5, [-1.0, -1.0, -1.0, -1.0, -2.0], [-2.0] * 5)
    assert outcomes(equal, *map(Found.of, each)) == ["met", "unclear", "missed"]


def test_the_interval_of_the_mean_is_that_of_student():
    from scipy import stats

    each = np.random.default_rng(0).normal(size=7)
    found = Found.of(each)
    wanted = stats.t.interval(0.95, 6, each.mean(), stats.sem(each))
    assert (found.low, found.high) == pytest.approx(wanted)
    assert Found.of(each, seeds=3).seeds == 3


def test_a_skewed_ratio_is_judged_by_its_logarithm():
    draws = [8.8, 13.0, 111.0, 252.0, 345.0]
    plain = Measure("ratio", "ratio", lambda _: draws, least=2.0)
    skewed = replace(plain, scale="log")
    found = [Tables().found(measure) for measure in (plain, skewed)]
    assert plain.outcome(found[0]) is Outcome.UNCLEAR and found[0].low < 0
    assert skewed.outcome(found[1]) is Outcome.MET
    assert found[1].value == pytest.approx(np.prod(draws) ** 0.2)
    assert "… " in shown(skewed, found[1]) and "±" in shown(plain, found[0])


def test_an_unclear_limit_is_named_and_changes_nothing():
    limit = Measure("limit", "limit", lambda _: 0, most=1, otherwise="Not so.")
    claim = Claim("nrr/x", "§0", "So.", "By eye.", (Measure("m", "m", lambda _: 0, most=1), limit))
    entry = claim.judged([0.0, Found(float("nan"))])
    assert entry.verdict is Verdict.HOLDS
    assert entry.doubts == ("limit, limit: not in the data at hand",)
    assert shown(limit, entry.found[1]) == "–"


def test_remarks_are_said_whatever_the_verdict():
    remark = Remark("It drifts by {:.0%}.", (lambda _: 0.03,))
    for value, verdict in ((0.0, Verdict.HOLDS), (9.0, Verdict.FAILS)):
        measure = Measure("m", "m", lambda _, v=value: v, most=1)
        claim = Claim("nrr/x", "§0", "So.", "By eye.", (measure,), remarks=(remark,))
        entry = claim.measure(Tables())
        assert entry.verdict is verdict and entry.remarks == ("It drifts by 3 %.",)
        assert "*Beside it:* It drifts by 3 %." in page_of(entry)


def test_a_bound_of_ours_refutes_only_what_is_twice_as_far():
    distance = bounded(most=0.1)
    assert outcomes(distance, *map(Found, (0.05, 0.15, 0.25))) == ["met", "unclear", "missed"]
    share = bounded(least=0.9, origin=1.0)
    assert outcomes(share, *map(Found, (0.95, 0.85, 0.75))) == ["met", "unclear", "missed"]
    effect = bounded(least=0.4)
    assert outcomes(effect, *map(Found, (0.5, 0.3, 0.1))) == ["met", "unclear", "missed"]
    factor = bounded(least=0.5, most=2.0, origin=1.0)
    assert outcomes(factor, *map(Found, (1.9, 2.5, 3.5, 0.1))) == [
        "met", "unclear", "missed", "unclear"
    ]  # fmt: skip
    paper = bounded(most=0.1, rests=Basis.PAPER)
    assert outcomes(paper, Found(0.15)) == ["missed"]
    limit = bounded(most=0.1, otherwise="only to {}")
    assert outcomes(limit, Found(0.15)) == ["missed"]


def test_seeds_are_counted_from_what_is_read():
    made = lambda seeds, size=0: {"gap": [size] * seeds}
    read = lambda tables: (
        tables.once(made, seeds=9)["gap"][0] + tables.once(made, seeds=6)["gap"][0]
    )
    tables = Tables()
    assert tables.found(Measure("gap", "gap", read, most=1)).seeds == 6
    assert (
        tables.found(Measure("gap", "gap", lambda t: t.once(made, seeds=9)["gap"], most=1)).seeds
        == 9
    )
    assert tables.found(Measure("sum", "sum", lambda t: 1.0, most=1)).seeds is None


def test_a_figure_with_one_random_draw_counts_as_one_seed():
    figure = replace(find("talk/continual"), compute=lambda _: xarray.Dataset({"x": 2.0}))
    figure = replace(figure, measures=lambda table: ())
    drawn = {("talk/continual", (("seed", k),)): figure.run(figure.resolve()) for k in range(5)}
    tables = Tables(_kept=drawn)
    one = lambda tables: float(tables("talk/continual", seed=0)["x"])
    several = lambda tables: [float(tables("talk/continual", seed=k)["x"]) for k in range(5)]
    assert tables.found(Measure("x", "x", one, most=3)).seeds == 1
    assert tables.found(Measure("x", "x", several, most=3)).seeds == 5


def test_what_happens_instead_is_said_where_a_claim_does_not_hold():
    remark = Remark("It is {:.1f} and {:.0%}.", (lambda t: [1.0, 3.0], lambda t: 0.5))
    for value, said in ((0.0, ()), (9.0, ("It is 2.0 and 50 %.",))):
        claim = Claim(
            "nrr/x", "§1", "says", "how",
            (Measure("core", "core", lambda t, v=value: v, most=1),),
            quote="it is so", instead=(remark,),
        )  # fmt: skip
        entry = claim.measure(Tables())
        assert entry.instead == said
        assert ("What happens instead:* It is 2.0" in page_of(entry)) == bool(said)
        assert "> “it is so”" in page_of(entry)


def test_a_missed_measure_outweighs_a_missed_limit():
    claim = Claim(
        "nrr/x",
        "§1",
        "says",
        "how",
        (
            Measure("core", "core", lambda t: t.quick, least=1),
            Measure("limit", "limit", lambda t: 3.0, most=2, otherwise="only to {:.1f}"),
        ),
    )
    entry = claim.measure(Tables(quick=True))
    assert [found.value for found in entry.found] == [1.0, 3.0]
    assert (entry.verdict, entry.qualifications) == (Verdict.QUALIFIED, ("only to 3.0",))
    assert replace(entry, found=(Found(0.0), Found(3.0))).verdict is Verdict.FAILS
    page = page_of(entry)
    assert "| limit: limit | ≤ 2, our choice | 3 | **missed** |" in page
    assert "**Holds with a qualification.**\n- only to 3.0" in page


def test_a_measure_without_a_bound_is_refused():
    loose = Measure("anything", "anything", lambda tables: 0.0)
    assert loose.outcome(Found(1.0)) is Outcome.REPORTED
    with refuses("measure"):
        Claim("nrr/x", "§0", "So.", "By eye.", (loose,))


def test_bounds_are_written_out():
    assert Measure("a", "a", lambda t: 0.0, least=0, rests=Basis.PAPER).threshold == "≥ 0"
    assert Measure("a", "a", lambda t: 0.0, least=0.2, most=2.5).threshold == "0.2 … 2.5"


# ---- how the numbers are read -------------------------------------------------------------------


def ended_at(settings):
    """A stand-in for the figure of App. A.2, with pathways that end where the settings say."""
    ends = {"single": np.full((1, 1, 1, 2), 0.5)}
    ends["two"] = np.array([[[[1.0, settings["off"]]], [[0.0, 1.0]]]])
    return xarray.Dataset(
        {f"{k}_total": (("seed", f"{k}_pathway", "time", "input"), v) for k, v in ends.items()}
    )


def test_a_claim_is_measured_on_data_that_are_computed_once_or_stored(tmp_path, monkeypatch):
    off = Setting(0.002, "how far off an entry is", "here", quick=0.003)
    figure = replace(find("nrr/appendix_a2"), settings={"off": off}, compute=ended_at)
    figure = replace(figure, measures=lambda table: ())
    monkeypatch.setattr("papers.find", lambda name: figure)
    (claim,) = (c for c in claims("nrr") if c.name == "nrr/contexts")
    told = []
    tables = Tables(tell=told.append)
    entry = claim.measure(tables)
    assert [found.value for found in entry.found] == [0.0, pytest.approx(0.002)]
    assert entry.verdict is Verdict.HOLDS
    assert told == ["nrr/appendix_a2: computing …"]
    assert float(tables("nrr/appendix_a2", off=0.5)["two_total"].max()) == 1
    assert told[1:] == ["nrr/appendix_a2 (off = 0.5): computing …"]
    # what was stored is used, if its settings are those wanted
    stored = tmp_path / "nrr" / "appendix_a2.nc"
    stored.parent.mkdir()
    save_table(figure.run({"off": 0.2}), stored)
    told.clear()
    reading = Tables(folder=tmp_path, tell=told.append)
    assert float(reading("nrr/appendix_a2", off=0.2)["two_total"][0, 0, 0, 1]) == 0.2
    # a figure that is long to compute: in full if it is stored, else smaller
    assert float(reading.at_hand("nrr/appendix_a2", off=0.2)["two_total"][0, 0, 0, 1]) == 0.2
    save_table(figure.run({"off": 0.002}), tmp_path / "full.nc")
    reading = Tables(folder=tmp_path, tell=told.append)
    for _ in range(2):
        full = reading.at_hand("nrr/appendix_a2", off=0.2)
        assert float(full["two_total"][0, 0, 0, 1]) == 0.002
    assert told == [f"nrr/appendix_a2: read from {p}" for p in (stored, tmp_path / "full.nc")]
    again = Tables(quick=True, folder=tmp_path)
    assert claim.measure(again).found[1].value == pytest.approx(0.003)
    # what was computed is kept beside it, so that an interrupted run continues
    kept = tmp_path / "cells.jsonl"
    told.clear()
    third = Tables(quick=True, folder=tmp_path, tell=told.append)
    assert third("nrr/appendix_a2").identical(again("nrr/appendix_a2"))
    assert [line.split(", of")[0] for line in told] == [f"nrr/appendix_a2: read from {kept}"]
    (origin,) = third.origins.values()
    assert set(origin) == {"commit", "date", "versions", "device", "seconds"}


def test_a_measurement_is_made_once():
    made = []
    tables = Tables(tell=made.append)
    two_of = lambda sizes: made.append(sizes) or 2 * sizes
    assert [tables.once(two_of, sizes=n) for n in (1, 3, 1)] == [2, 6, 2]
    assert made[1::2] == [1, 3]


def test_packed_data_are_read_back_as_they_were():
    words = np.array(["ReLU network", "Δ"], dtype=object)
    table = xarray.Dataset(
        {"x": (("net", "time"), np.arange(6.0).reshape(2, 3)), "device": ((), "a chip")},
        {"net": words, "step": ("time", [0, 2, 4])},
        {"format": "any", "record": "{}"},
    )
    assert unpack(pack(table)).identical(table)


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with refuses("folder"):
        Tables(folder=tmp_path / "figurs")


def test_a_measurement_is_kept_in_the_folder(tmp_path):
    made = []
    halved = lambda seeds: made.append(seeds) or {"gap": [0.5] * seeds}
    for _ in range(2):
        tables = Tables(folder=tmp_path)
        assert tables.once(halved, seeds=2) == {"gap": [0.5, 0.5]}
    assert made == [2]


def test_types_of_activity_are_weighted_by_strength():
    x = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    reads = np.array([[[1.0, 1.0], [2.0, 0.0]]])  # on for the last; on for two
    table = xarray.Dataset(
        {
            "reads": (("seed", "neuron", "input"), reads),
            "writes": (("seed", "neuron"), np.array([[3.0, -0.5]])),
            "x": (("sample", "input"), x),
        }
    )
    one, two = 3 * np.sqrt(2), 1.0
    found = activity_types(table)
    assert found[False, False, False, True] == pytest.approx(one / (one + two))
    assert found[False, True, False, True] == pytest.approx(two / (one + two))


def test_the_shared_pathway_against_dedicated_ones():
    """Against Euler steps of the three equations of NRR Eq. 10 for both kinds of pathway."""
    M, start = 2, 0.3

    def euler(s: float) -> float:
        ends = shared = own = start
        for _ in range(40_000):
            error = s - ends**2 * shared - own**3
            ends, shared, own = (
                ends + 1e-3 * ends * shared * error / (4 * M),
                shared + 1e-3 * ends**2 * error / 4,
                own + 1e-3 * own**2 * error / (4 * M**2),
            )
        return ends**2 * shared / s

    s = np.linalg.svd(nr.tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0)))[1]
    assert shared_against_dedicated(M, start) == pytest.approx(min(map(euler, s)), abs=2e-3)


# ---- docs/equations.md --------------------------------------------------------------------------


def named_in(*pages: str) -> list[str]:
    """Everything of the package that these pages of the documentation name."""
    text = "".join((ROOT / "docs" / page).read_text() for page in pages)
    return sorted(set(re.findall(r"`(neuralrace\.[\w.]+)`", text)))


def test_the_tests_that_the_errata_point_to_exist():
    page = (ROOT / "docs" / "errata.md").read_text()
    found = re.findall(r"`(tests/\w+\.py)::(\w+)`", page)
    assert len(found) >= 7
    for file, test in found:
        assert f"def {test}(" in (ROOT / file).read_text()


def equations(section: str) -> list[tuple[str, list[str]]]:
    """Every row of a section's table: the equation, and what implements it."""
    page = (
        (ROOT / "docs" / "equations.md").read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    )
    rows = re.findall(r"^\| ([^|]+) \| .*? \| (.*) \|$", page, re.MULTILINE)[1:]
    return [(equation, re.findall(r"`([^`]+)`", where)) for equation, where in rows]


NRR, MHS, TALK = (
    equations(title) for title in ("The Neural Race Reduction", "Make Haste Slowly", "The talk")
)


@pytest.mark.parametrize(("rows", "last"), [(NRR, 56), (MHS, 26)])
def test_every_numbered_equation_is_there_once(rows, last):
    numbers = [re.fullmatch(r"(\d+)(?:–(\d+))?", equation) for equation, _ in rows]
    ranges = [(int(n[1]), int(n[2] or n[1])) for n in numbers if n]
    assert [k for low, high in ranges for k in range(low, high + 1)] == list(range(1, last + 1))


def test_the_numbered_equations_of_the_talk_are_there_once():
    numbered = [re.findall(r", (\d+)", equation) for equation, _ in TALK]
    assert [k for found in numbered for k in found] == ["13", "14", "15"]


def test_every_slip_is_marked_and_mended():
    page = (ROOT / "docs" / "equations.md").read_text().split("## The talk\n")[1]
    slips = page.split("The slips:")[1].split("\n- ")[1:]
    assert sum("✗" in equation for equation, _ in TALK) == len(slips) == 4


@pytest.mark.parametrize("name", named_in("equations.md", "errata.md"))
def test_what_implements_an_equation_exists(name):
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            thing = getattr(thing, part)
        assert thing.__doc__
        return
    pytest.fail(f"{name} does not exist")


def test_an_equation_has_an_implementation():
    assert all(names for _, names in NRR + MHS + TALK)


# ---- numbers that are stored, and pages ----------------------------------------------------------


def test_every_claim_of_a_paper_has_its_numbers():
    assert set(entries(PAPERS)) == {claim.name for claim in PAPERS}


def test_pages_follow_from_the_stored_numbers():
    """If this fails, `python -m evidence --pages` writes them."""
    for name, text in pages.pages().items():
        assert (store.STORE / f"{name}.md").read_text() == text, name


def test_pages_can_be_read_and_tables_that_list_verdicts_have_short_lines():
    for name, text in pages.pages().items():
        assert len(text.encode()) < 66_000, name
        tables = re.findall(r"^\| claim \|.*\n\|-.*\n((?:\|.*\n)+)", text, re.M)
        assert tables or name in ("index", "own")
        rows = [row for table in tables for row in table.split("\n") if row]
        assert all(len(re.sub(r"\(#[^)]*\)", "", row)) < 130 for row in rows)


def test_the_summary_counts_every_claim_and_names_what_fails():
    page = pages.pages()["index"]
    each = entries(claims())
    for name, entry in each.items():
        assert (f"[{name}](" in page) == (entry.verdict is Verdict.FAILS), name
    count = sum(entry.verdict is Verdict.HOLDS for entry in each.values())
    rows = [row.strip("| ").split(" | ") for row in page.split("\n") if row.startswith("| [")]
    number = lambda text: 0 if text == "–" else int(text)
    assert sum(number(row[2]) for row in rows) == count
    assert all(int(row[1]) == sum(map(number, row[2:])) for row in rows)
    assert sum(int(row[1]) for row in rows) == len(claims())
    left = [claim.name for claim in claims() if claim.name not in each]
    assert sum(number(row[-1]) for row in rows) == len(left)
    assert all(name in page for name in left)
    (found,) = (f for m, f in each["talk/grokking"].pairs if m.id == "sooner")
    assert f"{found.value:.2f} times as long" in page


def test_every_verdict_on_a_promise_has_a_word_of_its_own():
    assert len({pages.WORD[verdict] for verdict in Verdict}) == len(Verdict)


def test_what_is_said_to_have_changed_is_so():
    assert entries(claims("talk/grokking"))["talk/grokking"].verdict is Verdict.UNDECIDED
    assert set(pages.RETIRED).isdisjoint(claim.name for claim in claims())
    named = re.findall(r"`(\w+/[\w-]+)`, measure `([\w-]+)`", " ".join(pages.RETIRED.values()))
    for name, id in named:
        assert id in [measure.id for measure in claims(name)[0].measures]


def test_a_line_of_a_figure_that_a_claim_reads_has_the_verdict_of_the_claim():
    lines = {m.line for claim in PAPERS for m in claim.measures if m.line[0]}
    facts = json.loads((ROOT / "docs/gallery/facts.json").read_text())
    shown = [(f, id) for f, fact in facts.items() for id in fact.get("agreement", ())]
    assert len(lines & set(shown)) > 30


@pytest.mark.parametrize("met", [True, False])
def test_a_promise_is_judged_by_the_rules_of_all_claims(met, tmp_path):
    read = lambda tables: Measurement("2 of 3", met, "because").number
    measure = Measure("met", "a | b", read, least=1.0, target="all")
    promise = Claim("x/a", "Topic", "a | b", "", (measure,), topic="own")
    entry = command.measured(promise, Tables())
    assert pages.word(entry) == ("met" if met else "missed")
    assert set(entry.made) == {"commit", "date", "versions", "device", "seconds"}
    store.write(entry, tmp_path)
    kept = store.read(tmp_path)["x/a"]
    assert (kept["text"], kept["met"], kept["note"]) == ("2 of 3", met, "because")
    assert store.restored(promise, kept) == replace(entry, tables={})


def test_a_measurement_that_fails_is_missed_and_says_why():
    def read(tables):
        raise ValueError("no such thing")

    measure = Measure("met", "a", read, least=1.0, target="all")
    entry = command.measured(Claim("x/a", "T", "a", "", (measure,), topic="own"), Tables())
    assert entry.verdict is Verdict.FAILS and "ValueError" in entry.found[0].text


def test_claims_are_chosen_by_topic_id_and_words(capsys):
    assert command.chosen(["mhs/unique"]) == claims("mhs/unique")
    assert command.chosen(["nrr"]) == claims("nrr")
    assert command.main(["--only", "mhs/unique", "--list"]) == 0
    assert capsys.readouterr().out == "mhs/unique\n"
    for name in ("nr", "mhs/uniqe"):
        with refuses(name):
            claims(name)


READMES = [ROOT / f"papers/{paper}/README.md" for paper in ("nrr", "mhs", "talk", "rnn")]


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_verdicts_and_numbers_in_prose_are_those_of_the_evidence(page):
    """A verdict in words links to its claim; a number names its measure in the link's title."""
    each = {e.claim.name: e for e in entries(PAPERS).values()}
    named = {f"{name.split('/')[0]}.md#{pages.anchor(name)}": e for name, e in each.items()}
    text, verdicts = page.read_text(), {verdict.value for verdict in Verdict}
    links = re.findall(r'\[([^]]+)\]\(\S*evidence/(\w+\.md#[\w-]+)(?:\s+"([\w-]+)")?\)', text)
    assert len(links) > 10
    for said, link, id in links:
        entry = named[link]
        if not id:
            assert said in verdicts and said == entry.verdict.value, (said, link)
            continue
        (value,) = (found.value for measure, found in entry.pairs if measure.id == id)
        digits = said.removesuffix(" %")
        value *= 100 if said.endswith("%") else 1
        places = len(digits.partition(".")[2])
        assert f"{value:.{places}f}" == digits, (said, link, id, value)


def test_a_readme_counts_the_claims_of_its_paper_and_names_its_figures():
    from papers import names

    for page in READMES:
        text, paper = page.read_text(), page.parent.name
        assert f"all {len(claims(paper))} claims" in text
        listed = {int(n) for n in re.findall(rf"`{paper}/fig(\d+)`", text)}
        whole = {f"{paper}/fig{n}" for n in range(min(listed or {0}), max(listed or {0}) + 1)}
        others = set(re.findall(rf"`({paper}/\w+)`", text)) | whole
        assert set(names()) & {n for n in names() if n.startswith(f"{paper}/")} <= others


def test_later_numbers_from_elsewhere_are_taken_and_others_kept(tmp_path):
    (claim,) = claims("mhs/interlacing")
    here, there = tmp_path / "here", tmp_path / "there"
    entry = lambda value, date: replace(claim.judged([value, 0.0, 0.0]), made={"date": date})
    store.write(entry(1.0, "2026-01-02"), here)
    store.write(entry(2.0, "2026-01-01"), there)
    assert store.take(there, here) == []
    store.write(entry(3.0, "2026-01-03"), there)
    assert store.take(there, here) == ["mhs/interlacing"]
    restored = store.restored(claim, store.read(here)["mhs/interlacing"])
    assert restored is not None and restored.found[0].value == 3.0


def test_old_numbers_are_chosen_by_date():
    every = {claim.name for claim in command.chosen([])}
    kept = store.read()
    dates = {name: kept.get(name, {}).get("date", "") for name in every}
    day = sorted(dates.values())[-1]
    assert {c.name for c in command.chosen([], older=day)} == {n for n in every if dates[n] < day}
