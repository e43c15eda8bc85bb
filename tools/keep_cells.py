"""Keep cells that `tools/route_images.py` measured as data of the figures on images.

    PYTHONPATH=src python tools/keep_cells.py cells.jsonl …

Numbers are rounded to what is measured (5 digits; float32 prints more), and each row says on which
device and with which commit it was measured. Rows that are kept already stay as they are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

KEPT = Path("papers/nrr/data/images.jsonl")
NAMES = ("plan", "method", "K", "M", "inputs", "routes", "scale", "time", "seeds", "hidden", "leak")
"""What tells one cell from another, together with its images."""


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
    given = parser.parse_args()
    old = KEPT.read_text().splitlines() if KEPT.exists() else []
    rows = [json.loads(line) for line in old]
    for file in given.files:
        rows += [rounded(json.loads(line)) for line in file.read_text().splitlines()]
    kept: dict[str, dict[str, Any]] = {}
    for row in rows:
        if not row.get("device") or not row.get("commit"):
            raise SystemExit(f"a row does not say where it was measured: {json.dumps(row)[:200]}")
        which = [*(row[name] for name in NAMES), row.get("images", "mnist")]
        kept.setdefault(json.dumps(which), row)
    KEPT.write_text("".join(json.dumps(row) + "\n" for row in kept.values()))


if __name__ == "__main__":
    main()
