"""Sweeps: what a batch costs beside its cells, what a second worker gains, 10 000 XoR cells."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import neuralrace as nr

XOR = {
    "task": "extended_xor",
    "hidden": 128,
    "scale": 2e-4 / 128**0.5,
    "learning_rate": 0.4,
    "steps": 150,
}
"""The ReLU networks of MHS Fig. 2: N_h · variance = 4e-8, learning rate 0.4."""


def nothing(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """As little work as there can be."""
    return [{"a": 0.0, "b": 1.0} for _ in cells]


def busy(cells: Sequence[Mapping[str, Any]], seconds: float) -> list[dict[str, float]]:
    """Work that keeps one core busy for that many seconds of its own time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(10_000))
    return [{"a": 0.0} for _ in cells]


def _seconds(function: str, axes: Mapping[str, Any], **how: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        nr.sweep(function, axes, store=f"{folder}/sweep.zarr", **how)
        return time.perf_counter() - begun


def overhead(workers: int, batches: int = 500) -> float:
    """Milliseconds per batch with a store, the start of the workers aside."""
    few, many = (
        _seconds("benchmarks.sweeps:nothing", {"x": range(n)}, batch=1, workers=workers)
        for n in (10, 10 + batches)
    )
    return 1000 * (many - few) / batches


def second_worker(batches: int = 12, seconds: float = 1.0) -> float:
    """Throughput with two workers over that with one, the start of the workers aside."""
    took = []
    for workers in (1, 2):
        how = {"batch": 1, "workers": workers, "settings": {"seconds": seconds}}
        few, many = (
            _seconds("benchmarks.sweeps:busy", {"x": range(n)}, **how) for n in (2, 2 + batches)
        )
        took.append(many - few)
    return took[0] / took[1]


def xor_sweep(deltas: int = 100, seeds: int = 100, workers: int = 2) -> float:
    """Seconds for ReLU networks on the extended XoR, Δ × seeds, all included."""
    axes = {"delta": np.linspace(0, 2, deltas), "seed": range(seeds)}
    return _seconds("neuralrace.sweeps:train_relu", axes, settings=XOR, batch=1000, workers=workers)
