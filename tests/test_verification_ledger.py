"""The rows of verification on the ledger's page: each is missed where the page is wrong."""

from dataclasses import replace

import pytest

from neuralrace.papers.claims import Found
from verification import ledger as rows

ROWS = (rows.places, rows.seeds, rows.verdicts, rows.changes, rows.follows, rows.code)


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
    ],
)  # fmt: skip
def test_a_wrong_page_is_told(row, old, new, shown):
    shown(old, new)
    assert not row(False).met


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


def test_code_that_changed_after_the_page_is_told(monkeypatch):
    whole = rows.numbers()
    name, made = next(iter(whole.origins.items()))
    other = replace(whole, origins={**whole.origins, name: replace(made, source="older")})
    monkeypatch.setattr(rows, "numbers", lambda: other)
    found = rows.code(False)
    assert not found.met and name in found.text
