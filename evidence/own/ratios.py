"""Promises about cost: ratios of running times, each pair side by side in one process."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from benchmarks import alignment, comparison, compression, dynamics, equations, reduction, solving
from evidence.promise import Measurement, claim

SECTION = "Cost"

RATIOS: dict[str, tuple[str, float, float, Callable[[], float]]] = {
    "relu-loop": (
        "ReLU 11-700-60, 8001 epochs, the loss read at each: the usual loop in Python over train",
        1.0, inf, lambda: dynamics.relu_ratio()[0],
    ),
    "relu-peak": (
        "the same: share of the operations per second of a 1024 × 1024 matrix product",
        0.2, inf, lambda: dynamics.relu_ratio()[1],
    ),
    "compress-factor": (
        "compress 10⁶ samples: sorted and factorised class by class, over nr.compress",
        1.0, inf, compression.factor_ratio,
    ),
    "compress-classes": (
        "compress samples that all differ in gates: time for each of 10⁵ over that of 10⁴",
        0.0, 2.0, compression.classes_ratio,
    ),
    "compare-shift": (
        "nr.compare, 50 000 points: with the shift in time over without it",
        1.0, inf, comparison.ratio,
    ),
    "reduce-features": (
        "nr.reduce: 1000 features over 500, by products of matrices",
        0.0, 10.0, lambda: reduction.ratio("features"),
    ),
    "reduce-pathways": (
        "nr.reduce: 784 pathways over 400", 0.0, 4.0, lambda: reduction.ratio("pathways"),
    ),
    "reduce-gate-classes": (
        "nr.reduce: 8000 gate classes over 4000", 0.0, 3.0,
        lambda: reduction.ratio("gate classes"),
    ),
    "routing-large": (
        "routing M = 40, K = 16: training over solving the race",
        10.0, inf, lambda: equations.routing_ratio(40, 16)[0],
    ),
    "first-xor": (
        "first solution of XoR in a fresh process: compiled code over race.solve",
        1.0, inf, lambda: solving.first_solution("xor")[0],
    ),
    "first-routing": (
        "the same for routing", 1.0, inf, lambda: solving.first_solution("routing")[0],
    ),
    "first-contexts": (
        "the same for three contexts", 1.0, inf, lambda: solving.first_solution("contexts")[0],
    ),
    "first-descent": (
        "first descent of XoR in steps: compiled code over race.solve",
        1.0, inf, lambda: solving.first_solution("xor", 0.1)[0],
    ),
    "balanced-end": (
        "nr.linear.lambda_balanced up to t = 1e9 over t = 1", 0.0, 1.5, solving.end_time_ratio,
    ),
    "aligned-samples": (
        "aligned patterns: 64 samples over 16", 0.0, 8.0, alignment.samples_ratio,
    ),
    "aligned-inputs": (
        "aligned patterns: 64 inputs over 4", 0.0, 16.0, alignment.inputs_ratio,
    ),
    "aligned-consistency": (
        "the kept share of aligned gates over the aligned patterns",
        0.0, 10.0, alignment.consistency_ratio,
    ),
}  # fmt: skip
"""For each ratio its sentence, its bounds, and the function that measures it."""


def register(name: str, says: str, least: float, most: float, ratio: Callable[[], float]) -> None:
    """Register a ratio as a promise."""
    target = f"≥ {least:g}" if most == inf else f"≤ {most:g}"

    @claim(f"cost/{name}", SECTION, says, target, timing=True, slow=True)
    def measured(full: bool) -> Measurement:
        del full
        value = float(ratio())
        return Measurement(f"{value:.3g}", least <= value <= most)


for name, (says, least, most, ratio) in RATIOS.items():
    register(name, says, least, most, ratio)
