"""Tables of the ledger: where they come from, and intervals by drawing their seeds again."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray

import neuralrace as nr
from evidence import Basis, Claim, Found, Measure, Outcome, Tables, tables
from neuralrace.sweeps import CellFile
from papers import find
from papers.mhs.contextual import apart, floor, seed_floor
from tests.test_errors import refuses

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
    figure = replace(find("nrr/appendix_a2"), measures=lambda _: ())
    table = xarray.Dataset({"distance": ("seed", EACH)})
    whole = Tables()
    whole._made = lambda *_: replace(figure, compute=lambda _: table).run(figure.resolve())
    drawn = whole.redrawn(3)("nrr/appendix_a2")
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


# ---- where tables come from ---------------------------------------------------------------------


def test_a_table_that_is_read_keeps_its_commit(tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(tables, "made", lambda _: {"commit": "abc1234"})
    Tables(folder=tmp_path).once(measured, seeds=5)
    monkeypatch.setattr(tables, "made", lambda _: {"commit": "def5678"})
    again = Tables(folder=tmp_path, tell=lines.append)
    again.once(measured, seeds=5)
    assert list(again.origins.values()) == [{"commit": "abc1234"}]
    assert len(lines) == 1 and "abc1234" in lines[0] and str(tmp_path / "cells.jsonl") in lines[0]


ASKS = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'a'), 6, 1, int(sys.argv[2]))"
"""Locks one byte of a file exclusively, or fails at once (6 is LOCK_EX | LOCK_NB)."""


def test_a_table_is_computed_by_one_process_at_a_time(tmp_path):
    def byte(of):
        return str(int(tables.table_name(tables._name(measured), of)[-8:], 16))

    free = lambda of: subprocess.run([sys.executable, "-c", ASKS, tables.LOCK, byte(of)]).returncode

    def measured(number):
        return {"others": [free({"number": number}), free({"number": number + 1})]}

    first, other = Tables(folder=tmp_path).once(measured, number=1)["others"]
    assert first != 0 and other == 0
    assert free({"number": 1}) == 0


def test_measurements_of_one_name_are_kept_apart_and_earlier_rows_are_found(tmp_path):
    def named(module, number):
        def measured(seeds):
            return {"gap": number}

        measured.__module__ = module
        return measured

    for _ in range(2):
        again = Tables(folder=tmp_path)
        assert [again.once(named(m, x), seeds=5)["gap"] for m, x in (("a", 1.0), ("b", 2.0))] == [
            *(1.0, 2.0)
        ]
        assert len(again.origins) == 2
    earlier = {"table": "measured", "settings": {"seeds": 7}}
    CellFile(tmp_path / "cells.jsonl").add(earlier, {"result": {"gap": 3.0}}, commit="abc1234")
    again = Tables(folder=tmp_path)
    assert again.once(named("a", 1.0), seeds=7) == {"gap": 3.0}
    assert list(again.origins.values()) == [{"commit": "abc1234"}]


def test_an_entry_names_the_tables_it_was_read_from():
    measure = lambda read: Measure("gap", "gap", read, most=0.1)
    both = Claim("nrr/x", "§", "So.", "By eye.", (measure(lambda t: of("floor", most=1).read(t)),))
    whole = Tables()
    for claim in (both, replace(both, name="nrr/again")):  # the second reads what is remembered
        entry = claim.measure(whole)
        assert [name.partition("-")[0] for name in entry.tables] == [f"{__name__}.measured"]
        assert all("commit" in made for made in entry.tables.values())
    none = replace(both, measures=(measure(lambda t: 0.0),))
    assert none.measure(whole).tables == {}


def test_a_figure_that_is_not_stored_is_not_replaced_by_a_smaller_one(tmp_path):
    with refuses("nrr/appendix_a2"):
        Tables(folder=tmp_path, whole=True).at_hand("nrr/appendix_a2", key=7)
