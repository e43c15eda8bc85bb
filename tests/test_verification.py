"""A small seeded sample of every claim of `make verify`."""

import pytest

from verification.__main__ import table
from verification.claim import Claim, Measurement, all_claims

SMALL = [claim for claim in all_claims() if not claim.slow]


@pytest.mark.parametrize("claim", SMALL, ids=lambda claim: claim.id)
def test_claim(claim: Claim):
    found = claim.measure(False)
    assert claim.timing or found.met, f"{claim.id}: {found.text}, target {claim.target}"


def test_table_shows_a_miss_and_its_note():
    claim = Claim("S", "a | b", "≤ 1", lambda full: Measurement("2", False))
    page = table([(claim, Measurement("2", False, "because"))])
    assert "| a \\| b | ≤ 1 | 2 | **missed** |" in page
    assert "- *a | b*: because" in page
