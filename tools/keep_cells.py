"""Keep cells that `tools/route_images.py` measured as data of the package.

    PYTHONPATH=src python tools/keep_cells.py --device "NVIDIA H200" --commit 36630e8 cells.jsonl …

Numbers are rounded to what is measured (5 digits; float32 prints more), and each row says on which
device and with which commit it was measured. Rows that are kept already stay as they are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

KEPT = Path("src/neuralrace/papers/nrr/data/images.jsonl")
NAMES = ("plan", "method", "K", "M", "inputs", "routes", "scale", "time", "seeds", "hidden", "leak")
"""What tells one cell from another."""


def rounded(value: Any) -> Any:
    """Accuracies and losses with 5 digits; counts and other numbers as they are."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return round(value, 5) if isinstance(value, float) and abs(value) > 1e-4 else value


def main() -> None:
    """Add the rows of all files to those that are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--device", required=True)
    parser.add_argument("--commit", required=True)
    given = parser.parse_args()
    old = KEPT.read_text().splitlines() if KEPT.exists() else []
    rows = [json.loads(line) for line in old]
    origin = {"device": given.device, "commit": given.commit}
    for file in given.files:
        rows += [rounded(origin | json.loads(line)) for line in file.read_text().splitlines()]
    kept: dict[str, dict[str, Any]] = {}
    for row in rows:
        kept.setdefault(json.dumps([row[name] for name in NAMES]), row)
    KEPT.write_text("".join(json.dumps(row) + "\n" for row in kept.values()))


if __name__ == "__main__":
    main()
