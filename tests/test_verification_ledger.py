"""The rows of the evidence on the ledger's page: each is missed where the page is wrong."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from evidence.own import ledger as rows
from papers.claims import Basis, Found, Measure, Outcome, Tables
from papers.record import load_figure

ROWS = (
    *(rows.places, rows.seeds, rows.verdicts, rows.from_numbers),
    *(rows.changes, rows.follows),
)


@pytest.fixture
def shown(monkeypatch):
    """Put another page in place of the real one."""
    page = rows.page()

    def put(old, new):
        assert old in page
        monkeypatch.setattr(rows, "page", lambda: page.replace(old, new, 1))
        rows.entries.cache_clear()

    yield put
    rows.entries.cache_clear()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_the_page_as_it_is_meets_every_row(row):
    assert row(False).met


@pytest.mark.parametrize(
    ("row", "old", "new"),
    [
        (rows.places, "> “We see excellent", "“We see excellent"),
        (rows.places, "*Inferred:* the sentence is ours.", ""),
        (rows.seeds, " | 5 | met |", " | 4 | met |"),
        (rows.verdicts, "**Does not hold.**", "**Undecided.**"),
        (rows.changes, "| mhs/unique | does not hold |", "| mhs/uniqe | does not hold |"),
        (rows.changes, "\n## What changed\n", "\n## What else\n"),
        (rows.follows, " ± 0.", " ± 1."),
        (rows.from_numbers, "**Does not hold.**", "**Undecided.**"),
        (rows.from_numbers, " | met |", " | **missed** |"),
    ],
)  # fmt: skip
def test_a_wrong_page_is_told(row, old, new, shown):
    shown(old, new)
    assert not row(False).met


def test_a_page_whose_verdict_does_not_follow_from_its_numbers_is_told(monkeypatch):
    """Also if the ledger's own rule is wrong, and so the page that it writes."""
    kept = deepcopy(rows.values())
    (name, found), *_ = kept["claims"]["nrr/zero-shot"]["found"].items()
    kept["claims"]["nrr/zero-shot"]["found"][name] = [0.5, 0.4, 0.6, 10]
    monkeypatch.setattr(rows, "values", lambda: kept)
    assert rows.from_numbers(False).text == "1 of 86: nrr/zero-shot" and found[0] < 0.001
    del kept["claims"]["nrr/zero-shot"]["found"][name]
    assert not rows.from_numbers(False).met
    monkeypatch.undo()
    monkeypatch.setattr(Measure, "outcome", lambda *_: Outcome.MET)
    monkeypatch.setattr(rows, "page", rows.numbers().page)
    rows.entries.cache_clear()
    assert not rows.from_numbers(False).met
    rows.entries.cache_clear()


def test_entries_that_do_not_stand_say_what_the_networks_do():
    for entry in rows.numbers().entries:
        if not entry.stands:
            assert len(entry.instead) == len(entry.claim.instead) > 0, entry.claim.name


def test_the_clusters_that_the_page_speaks_of_are_those_of_the_gallery():
    table = load_figure(rows.DOCS / "gallery" / "mhs" / "fig8.nc")
    (entry,) = (e for e in rows.numbers().entries if e.claim.name == "mhs/algorithm-1")
    tables = Tables(_kept={("mhs/fig8", ()): table})
    assert [remark.said(tables) for remark in entry.claim.instead] == [*entry.instead]


BOUNDS = (
    {"most": 1.0}, {"least": 1.0}, {"least": 0.5, "most": 2.0, "origin": 1.0},
    {"least": 0.9, "origin": 1.0}, {"least": 0.0, "most": 1.0}, {"most": -0.5},
    {"most": 1.0, "otherwise": "Not so."}, {"most": 1.0, "seen": True},
    {"most": 1.0, "otherwise": "Not so.", "seen": True},
)  # fmt: skip


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("rests", Basis)
def test_both_ways_to_judge_a_number_agree(bounds, rests):
    measure = Measure("gap", "gap", lambda _: 0.0, rests=rests, **bounds)
    rng = np.random.default_rng(0)
    for value, off, seeds in zip(
        rng.uniform(-2, 4, 400).tolist(), rng.choice([0.0, 0.05, 0.6], 400).tolist(),
        rng.choice([0, 3, 5, 9], 400).tolist(), strict=True,
    ):  # fmt: skip
        found = Found(value, value - off, value + off, int(seeds) or None)
        again = rows.outcome_of(measure, found.value, found.low, found.high, found.seeds)
        assert again == measure.outcome(found).value
    for value in (float("inf"), float("nan")):
        assert rows.outcome_of(measure, *[value] * 3, 9) == measure.outcome(Found(value)).value


def test_other_numbers_or_bounds_make_another_page(monkeypatch):
    whole = rows.numbers()
    first = whole.entries[0]
    changed = replace(first, found=(Found(0.5, seeds=10), *first.found[1:]))
    other = replace(whole, entries=(changed, *whole.entries[1:]))
    monkeypatch.setattr(rows, "numbers", lambda: other)
    assert not rows.follows(False).met
    fewer = replace(whole, entries=whole.entries[1:])
    monkeypatch.setattr(rows, "numbers", lambda: fewer)
    assert not rows.follows(False).met
