"""Claims about gates that ReLU networks keep: aligned gates, kept shares, contest verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, claim
from neuralrace import tasks

SECTION = "Kept gates"
WIDTH = 200
"""The hidden neurons of every ReLU network."""

SEEDS = 5
"""The number of ReLU networks per task."""

SCALE = 1e-3
"""The standard deviation of initial weights, except for contexts."""

CUES = (0.5, 1, 3)
"""The sizes of the cue in the decision task."""

DIFFERENT = ("hierarchy", "ring", "crossed")
"""The structures of the three contexts of MHS §4."""

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
"""The tasks and the standard deviation of initial weights, for contexts from the paper."""


def gatings(data: nr.Dataset) -> dict[str, Any]:
    """The natural gatings, and one of four random patterns that neurons can have."""
    found: dict[str, Any] = dict(tasks.natural_gatings(data, WIDTH))
    drawn = nr.reln.sample_patterns(data.x["x"], count=50, key=0)
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
    """The time at which each seed has half its initial loss; infinite if it never has."""
    return np.nan_to_num(nr.trajectory.half_time(run.time, run.loss), nan=np.inf)


def task_rows(name: str) -> list[dict[str, Any]]:
    """One row per gating of a task: times, kept share, and the error of its loss."""
    make, scale = LIST[name]
    data = make()
    patterns = nr.reln.aligned_patterns(data, key=0)
    if not patterns.fastest:
        run = relu_networks(data, scale, 200.0, 0.02)
        return [{"task": name, "gating": "aligned", "time": None, "share": 0.0, "strength": 0.0,
                 "relu": None if np.isinf(half_times(run)).all() else float(half_times(run).mean()),
                 "loss": 0.0, "fastest": 0.0, "expected": np.inf, "kept": False}]  # fmt: skip
    rate = 0.02 / patterns.fastest
    found = nr.contest(gatings(data), scale=scale, criterion=0.5, relative=True, width=WIDTH)
    assert found.check().reference is not None  # some neuron learns
    entrants = {"aligned": found.check().reference} | dict(found.entrants)
    longest = 40 / patterns.fastest
    run = relu_networks(data, scale, longest, rate)
    while np.isinf(half_times(run)).any() and longest < 1000 / patterns.fastest:
        longest *= 3
        run = relu_networks(data, scale, longest, rate)
    relu = float(half_times(run).mean())
    window = run.time <= 2 * relu
    mean_loss = run.loss.mean(axis=0)[window] / run.loss[0, 0]
    rows = []
    for gating, entrant in entrants.items():
        sol = entrant.race.solve(times=run.time[window], start=entrant.start)
        apart = np.trapezoid(np.abs(sol.loss / sol.loss[0] - mean_loss), run.time[window])
        rows.append({
            "task": name, "gating": gating, "share": np.nan_to_num(found.kept[gating]),
            "strength": entrant.strength,
            "time": entrant.time if np.isfinite(entrant.time) else None, "relu": relu,
            "loss": float(apart / run.time[window][-1]), "fastest": patterns.fastest,
            "expected": found.check().expected(found.winner),
            "kept": gating != "aligned" and found.check().is_kept(gating),
        })  # fmt: skip
    return rows


@cache
def rows(full: bool) -> tuple[dict[str, Any], ...]:
    """The rows of the whole list, or of a few quick tasks."""
    names = list(LIST) if full else ["XoR Δ = 0.4", "XoR Δ = 1.2", "parity"]
    return tuple(row for name in names for row in task_rows(name))


def judged(full: bool) -> list[dict[str, Any]]:
    """The rows except the aligned ones, with their errors; `kept` is the contest's verdict."""
    return [
        row | {"off": abs(row["time"] / row["relu"] - 1) if row["time"] else np.inf}
        for row in rows(full)
        if row["gating"] != "aligned"
    ]


@claim(
    "kept/half-times",
    SECTION,
    "half-time of the aligned gates against five ReLU networks of width 200, on 18 tasks",
    "within 15 % on at least 15 of the 17 that learn; parity never learns",
)
def aligned_half_times(full: bool) -> Measurement:
    found = [row for row in rows(full) if row["gating"] == "aligned"]
    learn = [row for row in found if row["relu"] is not None]
    right = [row for row in learn if row["time"] and abs(row["time"] / row["relu"] - 1) <= 0.15]
    never = [row for row in found if row["relu"] is None]
    misses = 2 if full else 0
    fine = learn and len(right) >= len(learn) - misses and all(row["time"] is None for row in never)
    wrong = ", ".join(
        f"{row['task']} {(row['time'] or np.inf) / row['relu']:.2f}"
        for row in learn
        if row not in right
    )
    text = f"{len(right)} of {len(learn)}" + f" (misses, as ratios: {wrong})" * bool(wrong)
    return Measurement(text, bool(fine and never))


@claim(
    "kept/precision",
    SECTION,
    "gatings said to be kept (share ≥ .9, at most 1.15 times the aligned time)",
    "at most 1 in 20 of them more than 15 % off at the half-time",
)
def kept_are_right(full: bool) -> Measurement:
    said = [row for row in judged(full) if row["kept"]]
    wrong = [row for row in said if row["off"] > 0.15]
    return Measurement(
        f"{len(wrong)} of {len(said)} off", bool(said and len(wrong) * 20 <= len(said))
    )


@claim(
    "kept/recall",
    SECTION,
    "gatings within 5 % of the ReLU networks in time and .03 in mean |ΔL|/L(0) up to 2 t50",
    "at least 80 % of them said to be kept",
    slow=True,
)
def right_are_kept(full: bool) -> Measurement:
    close = [row for row in judged(full) if row["off"] <= 0.05 and row["loss"] <= 0.03]
    missed = [row for row in close if not row["kept"]]
    names = "; ".join(f"{row['task']}, {row['gating']}" for row in missed)
    return Measurement(
        f"{len(close) - len(missed)} of {len(close)}",
        bool(close and len(missed) * 5 <= len(close)),
        f"not said to be kept: {names}" if missed else "",
    )


@claim(
    "kept/sentences",
    SECTION,
    "what the contest of natural and random gatings says about the ReLU networks' half-time",
    "right within 15 % on every task, or said to be unknown on at most 1 in 5",
)
def sentences_are_right(full: bool) -> Measurement:
    found = {row["task"]: row for row in rows(full)}.values()  # one per task: all say the same
    withheld = [row for row in found if row["expected"] is None]
    wrong = [row for row in found if row not in withheld and not _as_said(row)]
    names = ", ".join(row["task"] for row in withheld)
    text = f"{len(found) - len(withheld) - len(wrong)} of {len(found)} right, {len(wrong)} wrong"
    text += f"; nothing reliable known: {names}" * bool(withheld)
    return Measurement(text, bool(found and not wrong and 5 * len(withheld) <= len(found)))


def _as_said(row: dict[str, Any]) -> bool:
    """Whether the ReLU networks' half-time is within 15 % of the expected one, or both never."""
    if row["relu"] is None:
        return bool(np.isinf(row["expected"]))
    return bool(abs(row["expected"] / row["relu"] - 1) <= 0.15)


@claim(
    "kept/brute-force",
    SECTION,
    "end points of the alignment flow inside cells on tiny random tasks, against all 2^N patterns",
    "the same patterns on all 20",
)
def brute_force(full: bool) -> Measurement:
    right, count = 0, 20 if full else 3
    for seed in range(count):
        data = tasks.gaussian(samples=8, inputs=2 + seed % 3, outputs=1 + seed % 2, key=seed)
        found = nr.reln.aligned_patterns(data, limit=1)  # from random neurons alone
        inner = found.gates[~found.sliding.any(axis=1)]
        x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
        right += {tuple(g.astype(int)) for g in inner} == stable(x, y)
    return Measurement(f"{right} of {count}", right == count)


def stable(x: np.ndarray, y: np.ndarray) -> set[tuple[int, ...]]:
    """The patterns, of all 2^N, that the leading singular vector of their own ⟨g y xᵀ⟩ produces."""
    found = set()
    for bits in range(1, 2 ** len(x)):
        g = np.array([bits >> n & 1 for n in range(len(x))])
        v = np.linalg.svd((g[:, None] * y).T @ x)[2][0]
        found |= {tuple(g) for z in (x @ v, -x @ v) if ((z > 0) == g).all()}
    return found


@claim(
    "kept/cost",
    SECTION,
    "aligned patterns of 2000 neurons on 32 samples with 4 inputs",
    "≤ 3 s",
    timing=True,
)
def cost(full: bool) -> Measurement:
    data = tasks.context_decision()
    began = time.perf_counter()
    nr.reln.aligned_patterns(data)
    took = time.perf_counter() - began
    return Measurement(f"{took:.2f} s", took <= 3)
