"""The talk's figures on relative scale at full size, seed by seed, for a given number of minutes.

    PYTHONPATH=src python tools/relative_scale.py grokking --out FOLDER --commit HASH --minutes 3

All ratios of a seed are trained in one program, which the next seeds use again. Their rows are
appended to `grokking.jsonl` (or `early_layers.jsonl`) in the folder as soon as a seed is done, with
the device and the commit; a second call goes on from there. The file is then stored as it is in
`papers/talk/data/`. Needs nothing but JAX, equinox, optax, SciPy and scikit-learn.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax

from papers import find
from papers.talk import early_layers, grokking

FIGURES = {"grokking": grokking, "early_layers": early_layers}


def main() -> None:
    """Train one seed after the other until all are done or the minutes are over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", choices=list(FIGURES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="of the code that runs")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--quick", action="store_true", help="the quick settings")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    begin = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    module = FIGURES[given.figure]
    path = given.out / module.CELLS.file
    changes = dict(pair.split("=", 1) for pair in given.set)
    settings = find(f"talk/{given.figure}").resolve(quick=given.quick, changes=changes)
    settings |= {"cells": str(path), "stored": False, "slow": True}
    device = jax.devices()[0].device_kind
    origin = {"device": device, "commit": given.commit}
    say(f"{device}, JAX {jax.__version__}; {path}")
    last = 0.0
    for seed in range(settings["seeds"]):
        if time.monotonic() - begin + last > 60 * given.minutes:
            say("the minutes are over; the same call goes on from here")
            break
        start = time.monotonic()
        rows = module.CELLS.rows(settings | {"seeds": seed + 1}, origin)
        last = time.monotonic() - start
        say(f"seed {seed}: {last:.1f} s")
        for (ratio, at), row in sorted(rows.items()):
            if at == seed:
                told = (
                    f"{k} {v}" for k, v in row.items()
                    if not isinstance(v, list) and k not in (*settings, *origin, "ratio", "seed")
                )  # fmt: skip
                say(f"  ratio {ratio:<9g} " + ", ".join(told))


def say(line: str) -> None:
    """A line that is seen at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
