"""The ledger: every claim by name, and the numbers that are stored of them in docs/evidence."""

from __future__ import annotations

import fcntl
import json
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

from evidence.claim import Claim, Entry
from evidence.measure import Found
from evidence.tables import ORIGIN, figures
from neuralrace.errors import NeuralRaceError, nearest_name

ROOT = Path(__file__).parents[1]
STORE = ROOT / "docs/evidence"
"""The folder with the numbers, one file for each topic, and the pages that are made from them."""

OWN = "own"
"""The topic of our own promises; the others are the folders of the papers."""


@cache
def topics() -> tuple[str, ...]:
    """The papers, in their order, and our own promises."""
    return (*figures().TITLES, OWN)


@cache
def of_topic(topic: str) -> tuple[Claim, ...]:
    """The claims of a topic; importing a module of `evidence/own` registers its promises."""
    if topic != OWN:
        return import_module(f"papers.{topic}.claims").CLAIMS
    from evidence.promise import PROMISES

    for module in sorted(m.name for m in pkgutil.iter_modules([str(ROOT / "evidence/own")])):
        import_module(f"evidence.own.{module}")
    return tuple(sorted(PROMISES, key=lambda promise: promise.name))


def claims(*names: str) -> tuple[Claim, ...]:
    """The claims of these topics, single claims such as `mhs/unique`, or all; nothing is measured.

    ```python
    >>> from evidence import claims
    >>> claims("nrr")[0].name, len(claims("mhs/unique"))
    ('nrr/xor-dynamics', 1)

    ```
    """
    if unknown := [n for n in names if "/" not in n and n not in topics()]:
        raise _unknown(unknown[0], topics())
    several = names and set(names) <= set(topics())
    every = [c for t in topics() if not several or t in names for c in of_topic(t)]
    of = {claim.name: claim for claim in every}
    if unknown := [n for n in names if "/" in n and n not in of]:
        raise _unknown(unknown[0], tuple(of))
    return tuple(c for c in every if not names or c.name in names or topic_of(c) in names)


def _unknown(name: str, there: tuple[str, ...]) -> NeuralRaceError:
    close = nearest_name(name, there)
    return NeuralRaceError(
        f"there is no claim or topic {name!r} in the evidence",
        got=repr(name),
        wanted=f"one of {', '.join(topics())}, or the id of a claim",
        fix=f"did you mean {close!r}?" if close else "`python -m evidence --list` has all ids",
    )


def topic_of(claim: Claim) -> str:
    """The topic whose page has the claim: that of its paper, or our own promises."""
    return claim.topic or claim.name.split("/")[0]


# ---- numbers -------------------------------------------------------------------------------------


def read(folder: Path = STORE) -> dict[str, dict[str, Any]]:
    """What is stored of every claim, by its id."""
    files = [folder / f"{topic}.json" for topic in topics()]
    return {
        k: v for file in files if file.exists() for k, v in json.loads(file.read_text()).items()
    }


def write(entry: Entry, folder: Path = STORE) -> None:
    """Store an entry in place of an earlier one; other processes may be storing too."""
    merge(topic_of(entry.claim), {entry.claim.name: plain(entry)}, folder)


def duration(kept: Mapping[str, Any]) -> float:
    """The seconds that a stored claim took with the tables it reads; infinite if not known."""
    return sum(made.get("seconds", inf) for made in kept.get("tables", {}).values() or [kept])


def take(source: Path, folder: Path = STORE) -> list[str]:
    """Store what was measured elsewhere later than what is here; returns the ids."""
    here, there = read(folder), read(source)
    old = lambda name: here.get(name, {}).get("date", "")
    newer = {name for name, kept in there.items() if kept.get("date", "") > old(name)}
    for claim in claims():
        if claim.name in newer:
            merge(topic_of(claim), {claim.name: there[claim.name]}, folder)
    return sorted(newer)


def merge(topic: str, new: Mapping[str, Any], folder: Path) -> None:
    """Put entries into the file of their topic."""
    path = folder / f"{topic}.json"
    folder.mkdir(parents=True, exist_ok=True)
    (ROOT / "out").mkdir(exist_ok=True)
    with (ROOT / "out/evidence.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = json.loads(path.read_text()) if path.exists() else {}
        part = path.with_suffix(".part")
        text = json.dumps(there | dict(new), indent=1, ensure_ascii=False, sort_keys=True)
        part.write_text(text + "\n")
        part.replace(path)


def plain(entry: Entry) -> dict[str, Any]:
    """An entry as JSON has it: numbers by the ids of their measures, and where they come from."""
    (_, first), *_ = entry.pairs
    if first.text:
        return {"text": first.text, "met": entry.stands, "note": first.note, **entry.made}
    return {
        "found": {m.id: [f.value, f.low, f.high, f.seeds] for m, f in entry.pairs},
        "instead": list(entry.instead),
        "remarks": list(entry.remarks),
        "tables": dict(entry.tables),
        **entry.made,
    }


def restored(claim: Claim, kept: Mapping[str, Any] | None) -> Entry | None:
    """The entry of a claim from what is stored of it; None if a number is missing.

    ```python
    >>> from evidence import claims, store
    >>> (claim,) = claims("mhs/interlacing")
    >>> entry = claim.judged([0.0, 0.0, 0.0])
    >>> store.restored(claim, store.plain(entry)) == entry
    True

    ```
    """
    if kept is None:
        return None
    origin = {k: v for k, v in kept.items() if k in ORIGIN}
    if "text" in kept:
        number = Found(float(kept["met"]), text=kept["text"], note=kept["note"])
        return replace(claim.judged([number]), made=origin)
    if any(measure.id not in kept["found"] for measure in claim.measures):
        return None
    entry = claim.judged([Found(*kept["found"][measure.id]) for measure in claim.measures])
    texts = {name: tuple(kept[name]) for name in ("instead", "remarks")}
    return replace(entry, **texts, tables=kept["tables"], made=origin)


def entries(of: Iterable[Claim], folder: Path = STORE) -> dict[str, Entry]:
    """The stored entries of these claims by their ids; those without numbers are left out."""
    kept = read(folder)
    each = {claim.name: restored(claim, kept.get(claim.name)) for claim in of}
    return {name: entry for name, entry in each.items() if entry is not None}
