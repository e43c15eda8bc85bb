"""Run every benchmark and print the ratios; writes benchmarks/results.json."""

from __future__ import annotations

import json
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from benchmarks import (  # noqa: E402
    alignment,
    comparison,
    compression,
    dynamics,
    equations,
    foundation,
    reduction,
    solving,
    sweeps,
)

BENCHMARKS = {
    "ladder: one gradient, 40 layers over 20": foundation.ladder_ratio,
    "import neuralrace (every name) over import jax, equinox": foundation.import_ratio,
    "ReLU 11-700-60, 8001 epochs: Python loop over train": dynamics.relu_ratio,
    "100 seeds of XoR: runs a second over a Python loop": dynamics.ensemble_ratio,
    "100 seeds of XoR: plain vmap of a scan over train_ensemble": dynamics.vmap_ratio,
    "flow once compressed: 10^6 samples over 10^3": lambda: compression.samples(10**3, 10**6).flow,
    "flow once compressed: width 20000 over 200": lambda: (
        compression.widths((200,), (20_000,)).flow
    ),
    "flow once compressed: two orthogonal layers, 2000 over 200": lambda: (
        compression.widths((200, 200), (2000, 2000)).flow
    ),
    "compress 10^6 samples: sorted, class by class, over nr.compress": compression.factor_ratio,
    "compress samples that all differ in gates: 10^5 over 10^4, each": compression.classes_ratio,
    "compare, 50 000 points: with the shift over without": comparison.ratio,
    "reduce: 1000 features over 500": lambda: reduction.ratio("features"),
    "reduce: 784 pathways over 400": lambda: reduction.ratio("pathways"),
    "reduce: 8000 gate classes over 4000": lambda: reduction.ratio("gate classes"),
    "routing M = 7: training over solving the race": lambda: equations.routing_ratio(7, 4)[0],
    "routing M = 40: training over solving the race": lambda: equations.routing_ratio(40, 16)[0],
    "first solution of XoR: compiled code over race.solve": lambda: solving.first_solution("xor")[
        0
    ],
    "first solution of routing: compiled code over race.solve": lambda: solving.first_solution(
        "routing"
    )[0],
    "first solution of three contexts: compiled code over race.solve": lambda: (
        solving.first_solution("contexts")[0]
    ),
    "first descent of XoR: compiled code over race.solve": lambda: solving.first_solution(
        "xor", 0.1
    )[0],
    "lambda_balanced up to t = 1e9 over t = 1": solving.end_time_ratio,
    "aligned patterns: 64 samples over 16": alignment.samples_ratio,
    "aligned patterns: 64 inputs over 4": alignment.inputs_ratio,
    "kept share of aligned gates over aligned patterns": alignment.consistency_ratio,
    "sweep: milliseconds per batch in the process": lambda: sweeps.overhead(0),
    "sweep: milliseconds per batch on two workers": lambda: sweeps.overhead(2),
    "sweep: batches of 1 s, two workers over one": sweeps.second_worker,
    "sweep: seconds for 10 000 XoR cells on two workers": sweeps.xor_sweep,
}
"""The ratios by name, each with the function that measures it."""

RELU = "ReLU 11-700-60, 8001 epochs: Python loop over train"
"""The name of the ratio that is measured together with `PEAK`."""

PEAK = "ReLU 11-700-60, 8001 epochs: share of the matrix-product peak"
"""The name of the share of the peak, which `relu_ratio` also returns."""


def main() -> None:
    path = Path(__file__).parent / "results.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    results: dict[str, float] = {}
    print(f"{'benchmark':62s} {'now':>10s} {'committed':>10s} {'change':>8s}")
    for name, measure in BENCHMARKS.items():
        found = measure()
        named = {RELU: found[0], PEAK: found[1]} if isinstance(found, tuple) else {name: found}
        for key, value in named.items():
            results[key] = round(value, 3)
            print(line(key, results[key], before.get(key)), flush=True)
        path.write_text(json.dumps(before | results, indent=2) + "\n")


def line(name: str, now: float, committed: float | None) -> str:
    """A row of the table; the change is relative to the committed result, if there is one."""
    if committed is None:
        return f"{name:62s} {now:10.3f} {'-':>10s} {'new':>8s}"
    return f"{name:62s} {now:10.3f} {committed:10.3f} {now / committed - 1:+8.0%}"


if __name__ == "__main__":
    main()
