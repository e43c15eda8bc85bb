"""Ids: all different, and every stored number is that of an id that is still there."""

import re

import pytest

from docs import store
from evidence import claims
from evidence.store import read
from papers.record import stored

STORED = read()
FACTS = store.stored()

NAME = r"[a-z0-9]+(?:[-.][a-z0-9]+)*"
"""Lower case, with hyphens between words; a point in a number, such as `nearest-0.4`."""

ROWS = [claim.name for claim in claims("own")]
MEASURES = {
    claim.name: [measure.id for measure in claim.measures]
    for claim in claims("nrr", "mhs", "talk", "rnn", "attention", "multimodal", "learned_gates")
}
LINES = {name: fact["agreement"] for name, fact in FACTS.items() if "agreement" in fact}


def in_order(ids):
    """Whether ids are all different, short, and nouns with hyphens; `/` follows a topic."""
    plain = all(re.fullmatch(rf"(?:{NAME}/)?{NAME}", id) and len(id) <= 50 for id in ids)
    return plain and len(set(ids)) == len(ids)


def test_ids_are_short_and_all_different():
    assert in_order(ROWS) and all("/" in id for id in ROWS)
    assert set(ROWS).isdisjoint(MEASURES)
    for owner, ids in {**MEASURES, **LINES}.items():
        assert in_order(list(ids)), owner


@pytest.mark.parametrize("ids", [["a", "a"], ["A sentence"], ["a/b/c"], ["a" * 51], [""]])
def test_other_ids_are_told(ids):
    assert not in_order(ids)


WAITING: set[str] = set()
"""Rows that have not been measured at full size yet."""


def test_every_promise_has_its_stored_measurement_and_no_other_is_kept():
    assert set(ROWS) - WAITING <= set(STORED) - set(MEASURES) <= set(ROWS)
    for id in set(ROWS) - WAITING:
        assert {"text", "met", "note", "commit"} <= set(STORED[id]), id


def test_every_measure_of_a_claim_has_its_stored_number():
    for name, ids in MEASURES.items():
        if name in WAITING:
            continue
        assert set(STORED[name]["found"]) == set(ids)
        assert all(len(numbers) == 4 for numbers in STORED[name]["found"].values())


def test_stored_tables_have_the_ids_of_the_gallery():
    found = stored(store.STORE)
    assert found
    for path, record in found.items():
        assert [row["id"] for row in record.agreement] == list(LINES[record.name]), path.name


def test_an_id_that_stands_twice_in_a_figure_is_an_error():
    rest = {"what": "the gap", "target": "≤ 1", "measured": "0.5", "holds": True}
    row = {"id": "gap", **rest}
    assert store.by_id([row]) == {"gap": rest}
    with pytest.raises(ValueError, match="gap"):
        store.by_id([row, row])
