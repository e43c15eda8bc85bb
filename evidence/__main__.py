"""Measure claims: `python -m evidence [--only ID|TOPIC]… [--timing] [--older DATE] [--full]`.

Without `--full`, small samples are measured and nothing is stored. With it, the numbers go into
docs/evidence, with commit, date, versions and device, and the pages there are written again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from evidence import pages, store  # noqa: E402
from evidence.claim import Claim, Entry  # noqa: E402
from evidence.measure import Found  # noqa: E402
from evidence.tables import Tables, made  # noqa: E402


def chosen(words: Sequence[str], *, timing: bool = False, older: str = "") -> tuple[Claim, ...]:
    """The claims of these ids and topics, and those whose section or sentence contains a word.

    With `timing`, only those that are ratios of running times; with `older`, only those whose
    stored number is older than this date, or missing.
    """
    kept = store.read() if older else {}
    every = store.claims()
    names = {*store.topics(), *(claim.name for claim in every)}
    said = lambda c: f"{c.name} ({c.where}: {c.says})"
    near = lambda word, c: word not in names and word in said(c)
    return tuple(
        claim
        for claim in every
        if claim.timing >= timing
        if not words
        or any(word in (claim.name, store.topic_of(claim)) or near(word, claim) for word in words)
        if not older or kept.get(claim.name, {}).get("date", "") < older
    )


ONE_THREAD = {
    "NPROC": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
"""The environment of one of several processes side by side: one thread (`NPROC` is XLA's)."""


def side_by_side(wanted: Sequence[Claim], jobs: int, folder: Path, into: Path) -> int:
    """Measure claims at full size, each in a process of its own, those that take longest first.

    Ratios of running times are left out. Each number is stored as soon as it is there, and each
    table that is computed, so that nothing is lost if this ends early.
    """
    command = [sys.executable, "-m", "evidence", "--full", "--from", folder, "--into", into]
    environment, kept = os.environ | ONE_THREAD, store.read()
    run = lambda claim: (
        subprocess.run([*command, "--only", claim.name], check=False, env=environment).returncode
    )
    alone = sorted(
        (c for c in wanted if not c.timing), key=lambda c: -store.duration(kept.get(c.name, {}))
    )
    with ThreadPoolExecutor(jobs) as pool:
        return max(pool.map(run, alone), default=0)


def measured(claim: Claim, tables: Tables) -> Entry:
    """The claim measured now; a promise whose measurement fails is missed, and says why."""
    begin = time.perf_counter()
    try:
        entry = claim.measure(tables)
    except Exception as error:
        if claim.topic != store.OWN:
            raise
        why = f"failed: {type(error).__name__}: {error}".splitlines()[0]
        entry = claim.judged([Found(0.0, text=why)])
    return replace(entry, made=made(time.perf_counter() - begin))


def say(entry: Entry) -> None:
    """The verdict, and below it every number with its bound."""
    claim, seconds = entry.claim, entry.made["seconds"]
    print(f"{pages.word(entry)}: {claim.name} ({seconds:.0f} s): {claim.says}")
    for measure, found in entry.pairs:
        outcome = measure.outcome(found).value
        what = "" if measure.what == claim.says else f"{measure.what}: "
        print(f"  {outcome}: {what}{pages.shown(measure, found)} ({measure.threshold})")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; returns 0 unless a claim of a paper could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="ID|TOPIC")
    parser.add_argument("--full", action="store_true", help="at full size, stored with its commit")
    parser.add_argument("--timing", action="store_true", help="only ratios of running times")
    parser.add_argument("--list", action="store_true", help="name the claims and measure nothing")
    parser.add_argument("--pages", action="store_true", help="write the pages and measure nothing")
    parser.add_argument("--older", default="", metavar="DATE", help="only numbers from before")
    parser.add_argument("--jobs", type=int, metavar="N", help="with --full: N at a time, no timing")
    parser.add_argument("--take", type=Path, metavar="FOLDER", help="store later numbers from it")
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        default=store.ROOT / "out/figures",
        help="where data of figures are read from and kept",
    )
    parser.add_argument(
        "--into",
        type=Path,
        metavar="FOLDER",
        help="where numbers are stored instead of docs/evidence; no pages are written",
    )
    given = parser.parse_args(arguments)
    into = given.into or store.STORE
    wanted, failed = chosen(given.only, timing=given.timing, older=given.older), 0
    if given.take:
        print("\n".join(store.take(given.take)))
        pages.write()
        return 0
    if given.list:
        print("\n".join(claim.name for claim in wanted))
        return 0
    if given.full:
        given.folder.mkdir(parents=True, exist_ok=True)
    if given.full and given.jobs:
        failed, wanted = side_by_side(wanted, given.jobs, given.folder, into), ()
    tables = Tables(not given.full, given.folder if given.full else None, print, whole=given.full)
    for claim in () if given.pages else wanted:
        try:
            entry = measured(claim, tables)
        except Exception as error:
            print(f"not measured: {claim.name}: {type(error).__name__}: {error}")
            failed = 1
            continue
        say(entry)
        if given.full:
            store.write(entry, into)
    if (given.full or given.pages) and not given.into:
        pages.write()
    return failed


if __name__ == "__main__":
    sys.exit(main())
