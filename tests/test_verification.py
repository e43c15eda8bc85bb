"""A small seeded sample of every claim of `make verify`."""

import pytest

from verification import kept
from verification.__main__ import table
from verification.claim import Check, Measurement, all_claims

SMALL = [pytest.param(c, id=c.id) for c in all_claims() if not c.slow]


@pytest.mark.slow
@pytest.mark.parametrize("claim", SMALL)
def test_claim(claim: Check):
    found = claim.measure(False)
    assert claim.timing or found.met, f"{claim.id}: {found.text}, target {claim.target}"


def test_table_shows_a_miss_and_its_note():
    claim = Check("S", "a | b", "≤ 1", lambda full: Measurement("2", False))
    page = table([(claim, Measurement("2", False, "because"))])
    assert "| a \\| b | ≤ 1 | 2 | **missed** |" in page
    assert "- *a | b*: because" in page


def test_claims_about_kept_gates_can_fail(monkeypatch):
    """None of two tasks within 15 %; and nothing close to the networks is not a success."""
    row = {"gating": "aligned", "relu": 10.0, "time": 20.0, "share": 1.0, "loss": 0.5}
    never = row | {"task": "parity", "relu": None, "time": None, "expected": float("inf")}
    found = [row | {"task": task, "kept": False, "expected": 20.0} for task in "ab"]
    other = found[0] | {"gating": "other"}
    monkeypatch.setattr(kept, "rows", lambda full: (*found, never | {"kept": False}, other))
    assert kept.aligned_half_times(False).text.startswith("0 of 2")
    for claim in (
        kept.aligned_half_times, kept.kept_are_right, kept.right_are_kept, kept.sentences_are_right
    ):  # fmt: skip
        assert not claim(False).met
    right = [each | {"time": 10.0} for each in found]
    monkeypatch.setattr(kept, "rows", lambda full: (*right, never | {"kept": False}))
    assert kept.aligned_half_times(False).met
