"""What comparing long trajectories costs, against computing everything at once as 0.1.0 did."""

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
    """Seconds of `compare` for the mean and maximum, and of one that also seeks the shift."""
    first, second = _runs(points)
    lazy, eager = medians(
        lambda: nr.compare(first, second).mean,
        lambda: nr.compare(first, second).mean_after_shift,
        repeats=3,
    )
    return lazy, eager


def ratio(points: int = 50_000) -> float:
    """Seeking the shift every time, as 0.1.0 did, over `compare` without it."""
    lazy, eager = seconds(points)
    return eager / lazy
