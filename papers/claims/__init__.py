"""The ledger: every claim of a paper, measured, with the verdict that follows."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from papers.claims.claim import Claim, Entry, Read, Remark, Verdict, once
from papers.claims.keeping import Ledger
from papers.claims.page import PAPERS, QUICK, markdown, tally
from papers.claims.tables import Tables, table_file
from papers.figure import unknown
from papers.measure import Basis, Found, Measure, Outcome

__all__ = [
    "QUICK",
    "Basis",
    "Claim",
    "Entry",
    "Found",
    "Ledger",
    "Measure",
    "Outcome",
    "Read",
    "Remark",
    "Tables",
    "Verdict",
    "in_short",
    "ledger",
    "markdown",
    "once",
    "papers",
    "table_file",
    "tally",
]


def papers() -> tuple[str, ...]:
    """The short names of the papers whose claims are in the ledger."""
    return tuple(PAPERS)


def in_short(entries: Sequence[Entry], tables: Tables) -> list[str]:
    """The lines of a summary in plain words: sentences that the verdicts of these entries allow.

    ```python
    >>> from papers.claims import Tables, in_short, ledger
    >>> (claim,) = ledger("mhs/always-a-reln")
    >>> in_short([claim.judged([0.0, 1.0, 1.0])], Tables())[2]
    'Any ReLU network is a gated linear network whose gates are its own activity.'

    ```
    """
    from papers.claims.short import paragraphs

    return paragraphs(entries, tables)


def ledger(*names: str) -> tuple[Claim, ...]:
    """The claims of these papers, single claims such as `mhs/unique`, or all; nothing is measured.

    ```python
    >>> from papers.claims import ledger
    >>> ledger("nrr")[0].name, len(ledger("mhs/unique"))
    ('nrr/xor-dynamics', 1)

    ```
    """
    for name in names:
        if name.split("/")[0] not in PAPERS:
            raise unknown("paper", name, PAPERS, "in the ledger of claims")
    every = [claim for paper in PAPERS for claim in import_module(f"papers.claims.{paper}").CLAIMS]
    for name in names:
        if "/" in name and name not in (there := [claim.name for claim in every]):
            raise unknown("claim", name, there, "in the ledger")
    wanted = names or tuple(PAPERS)
    return tuple(c for c in every if c.name in wanted or c.name.split("/")[0] in wanted)
