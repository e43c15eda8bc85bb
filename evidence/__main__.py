"""Measure every claim at full size and write docs/verified.md."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from evidence.promise import Check, Measurement, all_claims  # noqa: E402

ROOT = Path(__file__).parent.parent


def measured(claim: Check) -> Measurement:
    try:
        return claim.measure(True)
    except Exception as error:
        return Measurement(f"failed: {type(error).__name__}: {error}".splitlines()[0], False)


NOT_YET = "not measured yet"
"""The text of a claim without a measurement."""


def table(results: list[tuple[Check, Measurement]]) -> str:
    """The page; measurements are listed with the commit they were made at."""
    at = {id: entry["commit"] for id, entry in stored().items()}
    lines = [
        "# Verified",
        "",
        f"Written by `make evidence` on {os.cpu_count()} cores: every claim at full size, with the "
        "commit it was measured at. A target that is missed stays here with its explanation.",
    ]
    for section in dict.fromkeys(claim.section for claim, _ in results):
        lines += ["", f"## {section}", "", "| claim | target | measured | | at |"]
        lines += ["|---|---|---|---|---|"]
        for claim, found in results:
            if claim.section == section:
                verdict = "met" if found.met else "**missed**"
                verdict = "–" if found.text == NOT_YET else verdict
                cells = (claim.title, claim.target, found.text, verdict, at.get(claim.id, "–"))
                lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        notes = [f"- *{c.title}*: {m.note}" for c, m in results if c.section == section and m.note]
        lines += ["", *notes] if notes else []
    return "\n".join(lines) + "\n"


OUTPUT = ("docs/verified.json", "docs/verified.md")
"""What measurements write: it does not count as a change."""


def commit() -> str:
    """The commit that is checked out, marked if a tracked file differs from it."""
    changed = _git("status", "--porcelain", "-uno", "--", *[f":(exclude){path}" for path in OUTPUT])
    name = _git("rev-parse", "--short", "HEAD").strip()
    return (name or "unknown") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    """The output of a git command; empty if there is no repository."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


STORE = ROOT / "docs" / "verified.json"
"""The file with all measurements."""


def store(claim: Check, found: Measurement) -> None:
    """Add a measurement to the stored ones, which another process may also be writing."""
    lock_file = ROOT / "out" / "verified.lock"
    lock_file.parent.mkdir(exist_ok=True)
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entry = asdict(found) | {"met": bool(found.met), "commit": commit()}
        beside = STORE.with_suffix(".part")
        text = json.dumps(
            stored() | {claim.id: entry}, indent=1, ensure_ascii=False, sort_keys=True
        )
        beside.write_text(text + "\n")
        beside.replace(STORE)


def stored() -> dict[str, dict]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def last(claim: Check) -> Measurement:
    """The last measurement of a claim."""
    entry = stored().get(claim.id)
    if entry is None:
        return Measurement(NOT_YET, False)
    return Measurement(entry["text"], entry["met"], entry["note"])


def named(claim: Check) -> str:
    """A claim as it is told: its id, its section and its sentence."""
    return f"{claim.id} ({claim.section}: {claim.title})"


def main() -> None:
    """Measure all claims, or those whose id, section or sentence contains one of the arguments.

    `--page` writes the page and measures nothing.
    """
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    chosen = [c for c in all_claims() if not wanted or any(w in named(c) for w in wanted)]
    for claim in () if "--page" in sys.argv else chosen:
        start = time.perf_counter()
        result = measured(claim)
        seconds = time.perf_counter() - start
        store(claim, result)
        verdict = "met   " if result.met else "MISSED"
        print(f"{verdict} {named(claim)}: {result.text} (target {claim.target}; {seconds:.0f} s)")
        sys.stdout.flush()
    results = [(claim, last(claim)) for claim in all_claims()]
    (ROOT / "docs" / "verified.md").write_text(table(results))


if __name__ == "__main__":
    main()
