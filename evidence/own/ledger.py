"""Claims about the page of the ledger: it is read as a reader reads it, and nothing is measured."""

from __future__ import annotations

import json
import re
from functools import cache
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any

from evidence.promise import Measurement, claim
from papers.claims import Basis, Ledger, Measure, Verdict, ledger

SECTION = "Ledger of claims"
DOCS = Path(__file__).parents[2] / "docs"
"""Where the page and the numbers behind it lie."""

FEWEST = 5
"""The fewest seeds that a verdict may rest on, unless it is a theorem's."""

VERDICTS = tuple(verdict.value for verdict in Verdict)
"""The verdicts as they are written."""


@cache
def page() -> str:
    return (DOCS / "claims.md").read_text()


@cache
def values() -> dict[str, Any]:
    """The numbers beside the page, as they are stored."""
    return json.loads((DOCS / "claims.json").read_text())


@cache
def numbers() -> Ledger:
    """What the numbers beside the page say about the claims as they stand."""
    return Ledger.restored(values(), ledger())


@cache
def entries() -> dict[str, str]:
    """The text of every entry of the page, by its title."""
    parts = re.split(r"^### ", page(), flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0]: part.split("\n## ", 1)[0] for part in parts}


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows(entry: str) -> list[list[str]]:
    """The rows of an entry: what, kind, bound, rests on, found, seeds, outcome."""
    lines = [cells(line) for line in entry.split("\n") if line.startswith("| ")]
    return [line for line in lines if len(line) == 7 and line[0] != "what"]


def verdict_of(entry: str) -> str:
    """The verdict that is written below the table of an entry."""
    said = re.findall(r"^\*\*(.+)\.\*\*$", entry, flags=re.MULTILINE)
    return said[0].lower() if said else ""


def outcome_of(measure: Measure, value: float, low: float, high: float, seeds: int | None) -> str:
    """Met, missed or unclear, by the rules that the page states; worked out here a second time."""
    least = -inf if measure.least is None else measure.least
    most = inf if measure.most is None else measure.most
    if isnan(value):
        return "unclear"
    plain = "met" if isfinite(value) and least <= value <= most else "missed"
    if measure.rests is Basis.THEOREM:
        return plain
    apart = high < least or low > most
    if (seeds or FEWEST) < FEWEST or not (apart or (least <= low and high <= most)):
        return "unclear"
    if measure.seen:
        return "unclear"
    if measure.otherwise:
        return plain
    narrowly = plain == "missed" and isfinite(value) and _twice_as_wide(measure, value)
    return "unclear" if measure.rests is Basis.OURS and narrowly else plain


def _twice_as_wide(measure: Measure, value: float) -> bool:
    """Whether a number meets bounds that are twice as far from `origin`, or half as far."""
    for bound, side in ((measure.least, -1), (measure.most, 1)):
        if bound is None or bound == measure.origin:
            continue  # a bound at `origin` has no distance
        away = bound - measure.origin
        laxer = measure.origin + max(side * away * 2, side * away / 2) * side
        if side * (value - laxer) > 0:
            return False
    return True


def verdict_from(outcomes: set[tuple[str, str]]) -> str:
    """The verdict that pairs of kind (measure or limit) and outcome lead to."""
    if ("measure", "missed") in outcomes:
        return "does not hold"
    if ("measure", "unclear") in outcomes:
        return "undecided"
    return "holds" + " with a qualification" * (("limit", "missed") in outcomes)


def none_of(what: list[str], count: int) -> Measurement:
    """A measurement that is met if nothing is listed, of `count` that were looked at."""
    text = f"{len(what)} of {count}" + (f": {', '.join(what[:5])}" if what else "")
    return Measurement(text, not what and count > 0)


@claim(
    "ledger/places",
    SECTION,
    "docs/claims.md: entries without the place of their sentence, or with neither its words nor "
    "the mark that it is ours",
    "none",
)
def places(full: bool) -> Measurement:
    del full
    wrong = []
    for name, entry in entries().items():
        placed = re.search(r"^> “.+” \(.+\)$", entry, flags=re.MULTILINE | re.DOTALL)
        inferred = "*Inferred:*" in entry and re.match(r".*\n\n.+ \(.+\)\n", entry)
        wrong += [] if placed or inferred else [name]
    return none_of(wrong, len(entries()))


@claim(
    "ledger/seeds",
    SECTION,
    f"docs/claims.md: numbers that decide something on fewer than {FEWEST} seeds and are no "
    "theorem's",
    "none",
)
def seeds(full: bool) -> Measurement:
    del full
    wrong, count = [], 0
    for name, entry in entries().items():
        for what, _, _, rests, _, number, outcome in rows(entry):
            few = number.isdigit() and int(number) < FEWEST and rests != "a theorem"
            wrong += [f"{name}: {what}"] if few and outcome != "*unclear*" else []
            count += 1
    return none_of(wrong, count)


@claim(
    "ledger/verdicts",
    SECTION,
    "docs/claims.md: entries whose verdict does not follow from the outcomes in their table",
    "none",
)
def verdicts(full: bool) -> Measurement:
    del full
    wrong = []
    for name, entry in entries().items():
        found = {(kind, outcome.strip("*")) for _, kind, *_, outcome in rows(entry)}
        wrong += [] if verdict_of(entry) == verdict_from(found) else [name]
    return none_of(wrong, len(entries()))


@claim(
    "ledger/numbers",
    SECTION,
    "docs/claims.json: claims whose outcomes or verdict on the page do not follow from their "
    "numbers and bounds, by the stated rules worked out a second time",
    "none",
)
def from_numbers(full: bool) -> Measurement:
    del full
    wrong, every = [], ledger()
    for each in every:
        entry = entries().get(each.name.split("/")[1], "")
        found = values()["claims"].get(each.name, {"found": {}})["found"]
        pairs = [
            ("limit" if m.otherwise else "measure", outcome_of(m, *found[m.id]))
            for m in each.measures
            if m.id in found
        ]
        shown = [(kind, outcome.strip("*")) for _, kind, *_, outcome in rows(entry)]
        whole = len(pairs) == len(each.measures)
        right = whole and pairs == shown and verdict_of(entry) == verdict_from(set(pairs))
        wrong += [] if right else [each.name]
    return none_of(wrong, len(every))


@claim(
    "ledger/changes",
    SECTION,
    "docs/claims.md: rows of the table of what changed without a reason, or with another verdict "
    "than the entry",
    "none",
)
def changes(full: bool) -> Measurement:
    del full
    listed = page().partition("\n## What changed\n")[2].split("\n")
    table = [cells(line) for line in listed if line.startswith(("| mhs/", "| nrr/", "| talk/"))]
    wrong = []
    for name, before, now, why in table:
        there = verdict_of(entries().get(name.split("/")[1], "")) or "–"
        known = before in (*VERDICTS, "–")
        wrong += [] if now.strip("*") == there and why and known else [name]
    return none_of(wrong, len(table))


@claim(
    "ledger/page",
    SECTION,
    "docs/claims.md against the page that the numbers in docs/claims.json give with the claims and "
    "bounds as they stand: lines that differ",
    "none",
)
def follows(full: bool) -> Measurement:
    del full
    here, there = page().split("\n"), numbers().page().split("\n")
    longest = max(len(here), len(there))
    here, there = (text + [""] * (longest - len(text)) for text in (here, there))
    wrong = [f"line {k + 1}" for k, (a, b) in enumerate(zip(here, there, strict=True)) if a != b]
    return none_of(wrong, longest)
