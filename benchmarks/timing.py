"""Comparative timing: functions in turn, repeatedly, and the median or the shortest of each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


def shortest(*functions: Callable[[], object], repeats: int) -> list[float]:
    """The shortest time of each function, run in turn; the least that a shared machine allows."""
    return [min(record) for record in every(functions, repeats)]


def medians(*functions: Callable[[], object], repeats: int) -> list[float]:
    """The median time of each function, run in turn so that changing load affects all alike."""
    return [statistics.median(record) for record in every(functions, repeats)]


def every(functions: Sequence[Callable[[], object]], repeats: int) -> list[list[float]]:
    """All times of each function, run in turn, the first of which may include compilation."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, record in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return times
