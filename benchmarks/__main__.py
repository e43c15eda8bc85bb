"""Run every benchmark and print the ratios; writes benchmarks/results.json."""

from __future__ import annotations

import json
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from benchmarks import dynamics, equations, foundation  # noqa: E402

BENCHMARKS = {
    "ladder: one gradient, 40 layers over 20": foundation.ladder_ratio,
    "import neuralrace (every name) over import jax, equinox": foundation.import_ratio,
    "100 seeds of XoR: runs a second over a Python loop": dynamics.ensemble_ratio,
    "routing M = 7: training over solving the race": lambda: equations.routing_ratio(7, 4)[0],
    "routing M = 40: training over solving the race": lambda: equations.routing_ratio(40, 16)[0],
}


def main() -> None:
    path = Path(__file__).parent / "results.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    results = {}
    for name, measure in BENCHMARKS.items():
        results[name] = round(measure(), 3)
        print(f"{name:60s} {results[name]:10.3f}   (committed: {before.get(name, '-')})")
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
