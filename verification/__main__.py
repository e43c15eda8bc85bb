"""Measure every claim at full size and write docs/verified.md."""

from __future__ import annotations

import configparser
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from verification.claim import Check, Measurement, all_claims  # noqa: E402

ROOT = Path(__file__).parent.parent
BENCHMARKS = tuple((ROOT / "benchmarks").glob("*.py"))
"""The benchmarks, on which measurements of running times depend."""


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
        f"Written by `make verify` on {os.cpu_count()} cores: every claim at full size, with the "
        "commit it was measured at. `make verify` measures again what depends on sources that have "
        "changed since. A target that is missed stays here with its explanation.",
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
"""What a measurement writes, and so does not depend on."""

EXCEPT_OUTPUT = [f":(exclude){path}" for path in OUTPUT]


def commit(claim: Check) -> str:
    """The commit that is measured, marked if a source was changed since."""
    where = ["src", "papers", "verification", "benchmarks", *paths(claim), *EXCEPT_OUTPUT]
    changed = _git("status", "--porcelain", "--", *where)
    name = _git("rev-parse", "--short", "HEAD").strip()
    return (name or "unknown") + ("-dirty" if changed else "")


def paths(claim: Check) -> list[str]:
    """The files and folders that a measurement depends on.

    These are the claim's module, the benchmarks, the pinned versions, what the module names in
    `ALSO`, and the rooms of the package at or below the highest one that it uses (`TOP`); the
    import order, which the tests enforce, excludes all others. Pictures and progress bars do not
    count. A claim that uses "everything" depends on the whole package.
    """
    module = claim.measure.__module__
    found = [*rooms(claim.top), module.replace(".", "/") + ".py", "constraints.txt"]
    found += sorted(f"benchmarks/{path.name}" for path in BENCHMARKS)
    found += [f"verification/{name}.py" for name in ("cases", "claim", "foundation")]
    found += getattr(sys.modules[module], "ALSO", ())
    return [path for path in found if (ROOT / path).exists()]


def rooms(top: str) -> list[str]:
    """Where the code of the rooms at or below one of them is; `papers` is above the package."""
    if top in ("everything", "papers"):
        return ["src", "papers"] if top == "papers" else ["src"]
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    layers = config["importlinter:contract:house"]["layers"].split("\n")
    every = [room for layer in layers for room in re.findall(r"\w+", layer)]
    below = [room for room in every[every.index(top) :] if room not in ("plot", "progress")]
    return [f"src/neuralrace/{room}{end}" for room in below for end in ("", ".py")]


def sources(claim: Check) -> str:
    """A digest of everything that a measurement depends on (`paths`), its own output aside."""
    where = paths(claim)
    listed = _git("ls-tree", "-r", "HEAD", *where).splitlines(keepends=True)
    content = "".join(line for line in listed if not line.rstrip().endswith(OUTPUT))
    content += _git("diff", "HEAD", "--", *where, *EXCEPT_OUTPUT)
    content += _git("ls-files", "--others", "--exclude-standard", "--", *where, *EXCEPT_OUTPUT)
    return hashlib.sha256((content + claim.target).encode()).hexdigest()[:16]


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
        entry = asdict(found) | {"met": bool(found.met)}
        entry |= {"sources": sources(claim), "commit": commit(claim)}
        beside = STORE.with_suffix(".part")
        text = json.dumps(
            stored() | {claim.id: entry}, indent=1, ensure_ascii=False, sort_keys=True
        )
        beside.write_text(text + "\n")
        beside.replace(STORE)


def stored() -> dict[str, dict]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def standing() -> set[str]:
    """The claims that were measured with the sources as they are now."""
    kept = stored()
    return {c.id for c in all_claims() if kept.get(c.id, {}).get("sources") == sources(c)}


def last(claim: Check) -> Measurement:
    """The last measurement of a claim, whatever its sources were."""
    entry = stored().get(claim.id)
    if entry is None:
        return Measurement(NOT_YET, False)
    return Measurement(entry["text"], entry["met"], entry["note"])


def named(claim: Check) -> str:
    """A claim as it is told: its id, its section and its sentence."""
    return f"{claim.id} ({claim.section}: {claim.title})"


def main() -> None:
    """Measure all claims, or those whose id, section or sentence contains one of the arguments.

    Claims that were measured with the same sources are not measured again, unless with `--again`.
    `--page` writes the page and measures nothing.
    """
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    known = set() if "--again" in sys.argv else standing()
    page = "--page" in sys.argv
    for claim in () if page else all_claims():
        if claim.id in known or (wanted and not any(w in named(claim) for w in wanted)):
            continue
        start = time.perf_counter()
        before = sources(claim)
        found = measured(claim)
        seconds = time.perf_counter() - start
        verdict = "met   " if found.met else "MISSED"
        if sources(claim) == before:
            store(claim, found)
        else:
            verdict = "not kept, its sources changed:"
        print(f"{verdict} {named(claim)}: {found.text} (target {claim.target}; {seconds:.0f} s)")
        sys.stdout.flush()
    known = standing()
    missing = [named(claim) for claim in all_claims() if claim.id not in known]
    if missing:
        print(f"{len(missing)} claims were not measured with these sources", *missing, sep="\n  ")
    results = [(claim, last(claim)) for claim in all_claims()]
    (ROOT / "docs" / "verified.md").write_text(table(results))


if __name__ == "__main__":
    main()
