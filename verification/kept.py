"""Claims about gates that ReLU networks keep: aligned gates, kept shares, and what contests say."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import neuralrace as nr
from neuralrace import tasks

SECTION = "Kept gates"
TOP = "contests"
WIDTH = 200
SEEDS = 5
SCALE = 1e-3
STORED = Path(__file__).parent.parent / "docs" / "figures" / "kept.json"

CUES = (0.5, 1, 3)
DIFFERENT = ("hierarchy", "ring", "crossed")
LIST: dict[str, tuple[Callable[[], nr.Dataset], float]] = {
    **{f"XoR Δ = {d}": (lambda d=d: tasks.extended_xor(d), SCALE) for d in (0.0, 0.4, 0.8, 1.2)},
    "different": (lambda: tasks.contextual(structures=DIFFERENT, joined=True), 0.005 / 700),
    "C = 3": (lambda: tasks.contextual(contexts=3, joined=True), 0.005 / 700),
    "C = 4": (lambda: tasks.contextual(contexts=4, context_scale=1.1, joined=True), 0.005 / 500),
    **{f"decision, cue {c}": (lambda c=c: tasks.context_decision(cue=c), SCALE) for c in CUES},
    "transitive": (lambda: tasks.transitive_inference(6), SCALE),
    "ring": (lambda: tasks.ring_classification(24), SCALE),
    "teacher": (lambda: tasks.teacher(key=1), SCALE),
    **{f"Gaussian {k}": (lambda k=k: tasks.gaussian(key=k), SCALE) for k in range(4)},
    "parity": (lambda: tasks.parity(3), SCALE),
}  # fmt: skip
"""The tasks and the standard deviation of initial weights: the paper's for contexts."""


def gatings(data: nr.Dataset) -> dict[str, Any]:
    """The natural gatings, and one of four random patterns that neurons can have."""
    found: dict[str, Any] = dict(tasks.natural_gatings(data, WIDTH))
    drawn = nr.reln.sample_patterns(data.x["x"], count=50, seed=0)
    some = [row for row in drawn.on if row.any()][:4]
    masks = {f"random{i + 1}": row for i, row in enumerate(some)}
    return found | {"random": nr.pathways(data, masks, hidden=WIDTH // len(masks))}


def relu_networks(data: nr.Dataset, scale: float, longest: float, rate: float) -> nr.Trajectory:
    """Trained ReLU networks of the same width and scale, five seeds."""
    net = nr.ReLUNetwork((data.x["x"].shape[1], WIDTH, data.y["y"].shape[1]))
    steps = int(np.ceil(longest / rate))
    return nr.train_ensemble(
        net, data, key=1, seeds=SEEDS, scale=scale, learning_rate=rate, steps=steps,
        record_every=max(1, steps // 1500),
    )  # fmt: skip


def half_times(run: nr.Trajectory) -> np.ndarray:
    """When each seed has half its initial loss; infinite where it never has."""
    down = run.loss <= 0.5 * run.loss[:, :1]
    return np.where(down.any(axis=1), run.time[np.argmax(down, axis=1)], np.inf)


def task_rows(name: str) -> list[dict[str, Any]]:
    """One row per gating of a task: times, kept share, and how far its loss is off."""
    make, scale = LIST[name]
    data = make()
    patterns = nr.reln.aligned_patterns(data, key=0)
    if not patterns.fastest:
        run = relu_networks(data, scale, 200.0, 0.02)
        return [{"task": name, "gating": "aligned", "time": None, "share": 0.0, "strength": 0.0,
                 "relu": None if np.isinf(half_times(run)).all() else float(half_times(run).mean()),
                 "loss": 0.0, "fastest": 0.0}]  # fmt: skip
    rate = 0.02 / patterns.fastest
    candidates = {"aligned": nr.reln.aligned(data, width=WIDTH, key=0)} | gatings(data)
    longest = 40 / patterns.fastest
    run = relu_networks(data, scale, longest, rate)
    while np.isinf(half_times(run)).any() and longest < 1000 / patterns.fastest:
        longest *= 3
        run = relu_networks(data, scale, longest, rate)
    relu = float(half_times(run).mean())
    window = run.time <= 2 * relu
    mean_loss = run.loss.mean(axis=0)[window] / run.loss[0, 0]
    rows = []
    for gating, (arch, gated) in candidates.items():
        began = time.perf_counter()
        found = nr.contest({gating: (arch, gated)}, scale=scale, criterion=0.5, relative=True)
        entrant = found.entrants[gating]
        sol = entrant.race.solve(times=run.time[window], start=entrant.start)
        apart = np.trapezoid(np.abs(sol.loss / sol.loss[0] - mean_loss), run.time[window])
        share = 0.0
        if entrant.strength:
            share = nr.reln.consistency(arch, gated, start=entrant.start).share
        rows.append({
            "task": name, "gating": gating, "share": share, "strength": entrant.strength,
            "time": entrant.time if np.isfinite(entrant.time) else None, "relu": relu,
            "loss": float(apart / run.time[window][-1]), "fastest": patterns.fastest,
        })  # fmt: skip
        print(f"{name} {gating} {time.perf_counter() - began:.1f} s", rows[-1], file=sys.stderr)
    return rows


@cache
def rows(full: bool) -> tuple[dict[str, Any], ...]:
    """The rows of the whole list, or of a few quick tasks."""
    names = list(LIST) if full else ["XoR Δ = 0.4", "XoR Δ = 1.2", "parity"]
    return tuple(row for name in names for row in task_rows(name))
