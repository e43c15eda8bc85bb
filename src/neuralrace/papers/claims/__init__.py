"""The ledger: every claim of a paper, measured, with the verdict that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module

from neuralrace.papers.claims.claim import Claim, Entry, Measure, Tables, Verdict
from neuralrace.papers.figure import unknown
from neuralrace.papers.record import table_lines

__all__ = [
    "QUICK",
    "Claim",
    "Entry",
    "Measure",
    "Tables",
    "Verdict",
    "ledger",
    "markdown",
    "papers",
]

_PAPERS = {
    "nrr": "Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)",
    "mhs": "Jarvis, Klein, Rosman and Saxe, *Make Haste Slowly* (ICLR 2025)",
    "talk": "Saxe, *Models of representation learning dynamics* (talk, first two parts)",
}
"""The papers that have a module here with its `CLAIMS`."""

QUICK = "quick settings, which settle nothing"
"""The note on a page that was measured with `--quick`."""


def papers() -> tuple[str, ...]:
    """The short names of the papers whose claims are in the ledger."""
    return tuple(_PAPERS)


def ledger(*names: str) -> tuple[Claim, ...]:
    """The claims of these papers, or of all; nothing is measured.

    ```python
    >>> from neuralrace.papers.claims import ledger
    >>> ledger("nrr")[0].name
    'nrr/xor-dynamics'

    ```
    """
    for name in names:
        if name not in _PAPERS:
            raise unknown("paper", name, _PAPERS, "in the ledger of claims")
    return tuple(
        claim
        for name in names or _PAPERS
        for claim in import_module(f"neuralrace.papers.claims.{name}").CLAIMS
    )


def markdown(entries: Sequence[Entry], *, quick: bool = False, page: str = "") -> str:
    """The ledger as a page: a table of verdicts, then every claim with its measurements.

    Sections of an earlier `page` on papers that have no entry here are kept.
    """
    from neuralrace import __version__

    size = QUICK if quick else "the papers' settings unless a claim says otherwise"
    lines = [
        "# The papers' claims, measured",
        "",
        f"Written by `neuralrace claims{' --quick' * quick} --out docs/claims.md`, version "
        f"{__version__}, with {size}. A verdict is computed from the numbers below it: a missed "
        "measure refutes a claim, a missed limit qualifies it.",
    ]
    for paper, title in _PAPERS.items():
        mine = [entry for entry in entries if entry.claim.name.startswith(f"{paper}/")]
        if mine:
            lines += ["", f"## {title}", "", *_summary(mine)]
            lines += [line for entry in mine for line in _entry(entry)]
        else:
            lines += _section(page, title)
    return "\n".join(lines) + "\n"


def _section(page: str, title: str) -> list[str]:
    """The lines of a page on one paper, after an empty line; no lines if the page has none."""
    for part in page.split("\n## ")[1:]:
        if part.startswith(title + "\n"):
            return ["", *f"## {part}".rstrip("\n").split("\n")]
    return []


def _summary(entries: Iterable[Entry]) -> list[str]:
    rows = [(_link(e), e.claim.where, e.claim.says, f"**{e.verdict.value}**") for e in entries]
    return table_lines(("claim", "where", "says", "verdict"), rows)


def _link(entry: Entry) -> str:
    short = entry.claim.name.split("/")[1]
    return f"[{short}](#{short.lower()})"


def _entry(entry: Entry) -> list[str]:
    rows = [
        (
            measure.what,
            "limit" if measure.otherwise else "measure",
            measure.threshold,
            f"{value:{measure.form}}",
            "met" if measure.met(value) else "**missed**",
        )
        for measure, value in entry.pairs
    ]
    lines = ["", f"### {entry.claim.name.split('/')[1]}", ""]
    lines += [f"{entry.claim.says} ({entry.claim.where})", ""]
    lines += [f"*How:* {entry.claim.how}", ""]
    lines += table_lines(("what", "kind", "threshold", "found", ""), rows)
    lines += ["", f"**{entry.verdict.value.capitalize()}.**"]
    return lines + [f"- {text}" for text in ("", *entry.qualifications) if text]
