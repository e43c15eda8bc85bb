"""The cost of comparing long trajectories, against computing everything as 0.1.0 did."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from benchmarks.timing import medians


def _runs(points: int) -> tuple[nr.Trajectory, nr.Trajectory]:
    times = np.linspace(0, 30, points), np.linspace(0, 30, points + 1)
    first, second = (
        nr.Trajectory(t, 1 / (1 + np.exp(t - 15 - delay)))
        for t, delay in zip(times, (0.0, 0.3), strict=True)
    )
    return first, second


def seconds(points: int = 50_000) -> tuple[float, float]:
    """Seconds of `compare` for the mean and maximum only, and with the shift."""
    first, second = _runs(points)
    lazy, eager = medians(
        lambda: nr.compare(first, second).mean,
        lambda: nr.compare(first, second).mean_after_shift,
        repeats=3,
    )
    return lazy, eager


def ratio(points: int = 50_000) -> float:
    """The time of `compare` with the shift, as 0.1.0 did every time, over without it."""
    lazy, eager = seconds(points)
    return eager / lazy
