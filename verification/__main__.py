"""Measure every claim at full size and write docs/verified.md."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    lines = [
        "# Verified",
        "",
        f"Written by `make verify` at commit {commit or 'unknown'} on {os.cpu_count()} cores: "
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


def main() -> None:
    wanted = sys.argv[1:]
    claims = [c for c in all_claims() if not wanted or any(w in c.id for w in wanted)]
    results = []
    for claim in claims:
        start = time.perf_counter()
        found = measured(claim)
        results.append((claim, found))
        verdict = "met   " if found.met else "MISSED"
        seconds = time.perf_counter() - start
        print(f"{verdict} {claim.id}: {found.text} (target {claim.target}; {seconds:.0f} s)")
        sys.stdout.flush()
    if not wanted:
        (ROOT / "docs" / "verified.md").write_text(table(results))


if __name__ == "__main__":
    main()
