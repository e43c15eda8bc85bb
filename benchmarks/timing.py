"""Comparative timing: several functions in turn, repeatedly, and the median of each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def medians(*functions: Callable[[], object], repeats: int) -> list[float]:
    """The median time of each function, run in turn so that changing load affects all alike."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, record in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]
