"""Tables of the ledger: which code computed them, and intervals by drawing their seeds again."""

import ast
from dataclasses import replace

import numpy as np
import pytest
import xarray

import neuralrace as nr
from papers import find
from papers.claims import Basis, Found, Measure, Outcome, Tables, ledger, markdown
from papers.claims.sources import (
    Origin,
    _definition,
    hash_of,
    read_origins,
    source_hash,
)
from papers.mhs.contextual import apart, floor, seed_floor

# ---- seeds drawn again --------------------------------------------------------------------------

EACH = [1.0, 1.3, 0.8, 1.1, 0.9]


def measured(seeds):
    return {"distance": EACH, "floor": [0.2, 0.9, 0.3, 1.0, 0.6], "constant": 3.0}


def of(name, **bounds):
    return Measure(name, name, lambda t: float(np.mean(t.once(measured, seeds=5)[name])), **bounds)


def test_the_interval_of_a_pooled_mean_is_students():
    found, wanted = Tables().found(of("distance", most=2, pooled=True)), Found.of(EACH)
    assert found.value == wanted.value and found.seeds == 5
    assert found.high - found.low == pytest.approx(wanted.high - wanted.low, rel=0.15)
    assert Tables().found(of("distance", most=2)).low == found.value


def test_draws_are_the_same_every_time_and_alike_for_figures_and_measurements():
    one, two = (Tables().redrawn(3).once(measured, seeds=5) for _ in range(2))
    assert one == two and one["constant"] == 3.0
    pairs = dict(zip(measured(5)["distance"], measured(5)["floor"], strict=True))
    assert [pairs[d] for d in one["distance"]] == one["floor"]
    figure = replace(find("nrr/appendix_a2"), agreement=lambda _: ())
    table = xarray.Dataset({"distance": ("seed", EACH)})
    tables = Tables()
    tables._made = lambda *_: replace(figure, compute=lambda _: table).run(figure.resolve())
    drawn = tables.redrawn(3)("nrr/appendix_a2")
    assert drawn["distance"].to_numpy().tolist() == one["distance"]


def test_the_spread_of_the_seed_floor_counts():
    over = lambda t: np.array(t["distance"]) / np.mean(t["floor"])
    read = lambda tables: over(tables.once(measured, seeds=5))
    measure = Measure("over-floor", "over floor", read, most=1.2, rests=Basis.SEEDS)
    known = Found.of(over(measured(5)))
    found = Tables().found(measure)
    assert measure.outcome(known) is Outcome.MISSED  # as if the floor were known
    assert measure.outcome(found) is Outcome.UNCLEAR
    assert found.value == known.value and found.low < known.low < known.high < found.high


def test_a_seed_that_is_drawn_twice_is_no_pair():
    time, rng = np.linspace(0, 1, 9), np.random.default_rng(0)
    loss = 1 + rng.random((4, 9))
    table = xarray.Dataset({"relu": (("seed", "time"), loss)}, {"time": time})
    wanted = np.mean([c.mean for c in floor(table, "relu")])
    assert seed_floor(table, "relu") == pytest.approx(wanted)
    twice = seed_floor(table.isel(seed=[0, 0, 2]), "relu")
    runs = [nr.Trajectory(time, loss[k]) for k in (2, 0)]
    assert twice == pytest.approx(nr.compare(*runs).mean)
    assert np.isnan(seed_floor(table.isel(seed=[1, 1]), "relu"))
    assert apart(time, loss[2], loss[0]) == pytest.approx(nr.compare(*runs).mean)


# ---- which code computed a table ----------------------------------------------------------------

ROOM = "papers"
MAIN = '''
from papers.other import helper
from papers import third
SIZE = 3
LOOSE = 4
def compute(n: int) -> float:
    """A sentence."""
    mean = n  # a remark
    return helper(SIZE) + third.last(mean)
'''
OTHER = """
def helper(n):
    return inner(n)
def inner(n):
    return n
def mean(n):
    return 1
"""
THIRD = "def last(n):\n    from papers.other import inner\n    return inner(n)\n"


def hashed(main=MAIN, other=OTHER, third=THIRD):
    sources = {f"{ROOM}.main": main, f"{ROOM}.other": other, f"{ROOM}.third": third}
    return hash_of(f"{ROOM}.main", "compute", sources.get)


@pytest.mark.parametrize(
    "changed",
    [
        {"main": MAIN.replace("A sentence", "Another one")},
        {"main": MAIN.replace("# a remark", "")},
        {"main": MAIN.replace(": int", "")},
        {"main": MAIN.replace("LOOSE = 4", "LOOSE = 5")},
        {"other": OTHER.replace("return 1", "return 2")},  # `mean` is a variable in `compute`
        {"main": MAIN.replace("SIZE = 3\n", "").replace("helper\n", "helper, SIZE\n"),
         "other": OTHER + "SIZE = 3\n"},
    ],
)  # fmt: skip
def test_words_and_places_of_code_do_not_count(changed):
    assert hashed(**changed) == hashed()


@pytest.mark.parametrize(
    "changed",
    [
        {"main": MAIN.replace("SIZE = 3", "SIZE = 4")},
        {"main": MAIN.replace("mean = n", "mean = n + 1")},
        {"other": OTHER.replace("return n\n", "return 2 * n\n")},
        {"third": THIRD.replace("inner(n)", "-inner(n)")},
    ],
)
def test_code_that_is_gone_through_counts(changed):
    assert hashed(**changed) != hashed()


def test_how_a_version_of_python_quotes_text_does_not_count(monkeypatch):
    named = OTHER.replace("return n\n", "return f'{n}'\n")
    before, unparse = hashed(other=named), ast.unparse
    monkeypatch.setattr(ast, "unparse", lambda node: unparse(node).replace("'", '"'))
    _definition.cache_clear()
    assert hashed(other=named) == before


def test_every_figure_and_measurement_has_code_to_hash():
    nothing = hash_of(f"{ROOM}.absent", "compute")
    assert source_hash(find("mhs/fig4").compute) != nothing
    assert source_hash(find("mhs/fig4").compute) != source_hash(find("mhs/fig5").compute)


def test_a_table_whose_code_changed_is_named(tmp_path, monkeypatch):
    told = []
    Tables(folder=tmp_path).once(measured, seeds=5)
    (path,) = (tmp_path / "ledger").glob("measured-*.json")
    assert set(read_origins(path.parent)) == {path.name}
    fresh = Tables(folder=tmp_path, tell=told.append)
    fresh.once(measured, seeds=5)
    assert not fresh.origins[path.name].stale and told == [f"measured: read from {path}"]
    monkeypatch.setattr("papers.claims.tables.source_hash", lambda _: "another")
    late = Tables(folder=tmp_path, tell=told.append)
    late.once(measured, seeds=5)
    assert late.origins[path.name].stale and "before its code changed" in told[-1]


def test_the_page_names_commits_and_stale_tables():
    (claim,) = ledger("mhs/interlacing")
    entry = claim.judged([0.0, 0.0, 0.0])
    origins = {"a.json": Origin("abc1234", "x"), "b.npz": Origin("", "", stale=True)}
    page = markdown([entry], origins=origins)
    assert "1 at abc1234, 1 at unknown" in page
    assert "Computed before their code in `papers` changed: `b.npz` (commit unknown)." in page
    assert "does not cover the library below" in page
    fresh = markdown([entry], origins={"a.json": Origin("abc1234", "x")})
    assert "unchanged since" in fresh and "before their code" not in fresh
    assert "Tables by the commit" not in markdown([entry])
