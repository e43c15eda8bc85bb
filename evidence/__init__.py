"""The one ledger: claims of the papers and our own promises, their numbers and verdicts.

A measure is a number with a bound, and what the bound rests on. A claim groups measures, and its
verdict follows from them by one set of rules. `python -m evidence` measures; pages and numbers are
in docs/evidence. Claims are found by name, in `papers/*/claims` and `evidence/own`.
"""

from evidence.claim import Claim, Entry, Read, Remark, Verdict, once
from evidence.measure import FEWEST_SEEDS, FLOOR, LEEWAY, Basis, Found, Measure, Outcome
from evidence.store import claims, entries, topics
from evidence.tables import Tables

__all__ = [
    "FEWEST_SEEDS",
    "FLOOR",
    "LEEWAY",
    "Basis",
    "Claim",
    "Entry",
    "Found",
    "Measure",
    "Outcome",
    "Read",
    "Remark",
    "Tables",
    "Verdict",
    "claims",
    "entries",
    "once",
    "topics",
]
