"""Measure every claim at full size and write docs/verified.md."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from verification.claim import Claim, Measurement, all_claims  # noqa: E402

ROOT = Path(__file__).parent.parent


def measured(claim: Claim) -> Measurement:
    try:
        return claim.measure(True)
    except Exception as error:
        return Measurement(f"failed: {type(error).__name__}: {error}".splitlines()[0], False)


def table(results: list[tuple[Claim, Measurement]]) -> str:
    lines = [
        "# Verified",
        "",
        f"Written by `make verify` at commit {commit()} on {os.cpu_count()} cores: "
        "every claim at full size. A target that is missed stays here with its explanation.",
    ]
    for section in dict.fromkeys(claim.section for claim, _ in results):
        lines += ["", f"## {section}", "", "| claim | target | measured | |", "|---|---|---|---|"]
        for claim, found in results:
            if claim.section == section:
                verdict = "met" if found.met else "**missed**"
                cells = (claim.title, claim.target, found.text, verdict)
                lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        notes = [f"- *{c.title}*: {m.note}" for c, m in results if c.section == section and m.note]
        lines += ["", *notes] if notes else []
    return "\n".join(lines) + "\n"


def commit() -> str:
    """The commit that is measured, marked if something was changed since."""
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return found or "unknown"


def sources() -> str:
    """What a measurement depends on: the content of everything that runs, not the commit's name."""
    folders = ["src", "verification", "benchmarks", "constraints.txt"]
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True).stdout  # noqa: E731
    trees = b"".join(git("rev-parse", f"HEAD:{folder}") for folder in folders)
    changed = git("diff", "HEAD", "--", *folders)
    return hashlib.sha256(trees + changed).hexdigest()[:12]


def store(claim: Claim, found: Measurement) -> None:
    """Keep a measurement of these sources beside those made before, also by another process."""
    STORE.parent.mkdir(exist_ok=True)
    with (STORE.parent / "verified.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        STORE.write_text(
            json.dumps(stored() | {claim.id: asdict(found) | {"met": bool(found.met)}})
        )


def stored() -> dict[str, dict]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


STORE = ROOT / "out" / f"verified-{sources()}.json"


def main() -> None:
    """Measure all claims, or those whose name holds one of the arguments.

    Measurements are kept by the sources they were made with; the page is written once there is
    one of every claim.
    """
    wanted = sys.argv[1:]
    for claim in all_claims():
        if wanted and not any(w in claim.id for w in wanted):
            continue
        start = time.perf_counter()
        found = measured(claim)
        store(claim, found)
        verdict = "met   " if found.met else "MISSED"
        seconds = time.perf_counter() - start
        print(f"{verdict} {claim.id}: {found.text} (target {claim.target}; {seconds:.0f} s)")
        sys.stdout.flush()
    kept = stored()
    if all(claim.id in kept for claim in all_claims()):
        results = [(claim, Measurement(**kept[claim.id])) for claim in all_claims()]
        (ROOT / "docs" / "verified.md").write_text(table(results))


if __name__ == "__main__":
    main()
