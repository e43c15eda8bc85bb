"""Our own promises: a decorator registers the function that measures one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from evidence.claim import Claim
from evidence.measure import Found, Measure

PROMISES: list[Claim] = []
"""The promises of the modules of `evidence/own` that have been imported."""


@dataclass(frozen=True)
class Measurement:
    """The result as text, whether it meets the target, and an explanation of a miss."""

    text: str
    met: bool
    note: str = ""

    @property
    def number(self) -> Found:
        """The result as every measure has it: 1 if the target is met, else 0."""
        return Found(float(self.met), text=self.text, note=self.note)


Promise = Callable[[bool], Measurement]
"""Measures a promise at full size, or a small seeded sample of the same thing."""


def claim(
    id: str,
    section: str,
    title: str,
    target: str,
    *,
    most: float = nan,
    timing: bool = False,
    slow: bool = False,
) -> Callable[[Callable[[bool], Any]], Promise]:
    """Register the decorated function `measure(full)` as a promise.

    `measure(True)` measures at full size, `measure(False)` a small seeded sample of the same thing.
    With `most` it yields numbers that must not exceed it, otherwise it returns a `Measurement`.
    Numbers are stored by `id`, such as `reduction/planted-blocks`, which never changes: the
    sentence may be put in other words. `timing` marks a ratio of running times, which the tests
    measure but do not assert. `slow` marks a promise without a small version.
    """

    def register(measure: Callable[[bool], Any]) -> Promise:
        whole = measure if isnan(most) else lambda full: at_most(measure(full), most)
        read = lambda tables: whole(not tables.quick).number
        met = Measure("met", title, read, least=1.0, target=target)
        PROMISES.append(
            Claim(id, section, title, "", (met,), topic="own", timing=timing, slow=slow)
        )
        return whole

    return register


def at_most(values: float | Iterable[float], bound: float, note: str = "") -> Measurement:
    """A measurement of one or more numbers that must not exceed `bound`: the worst of them.

    A number that is NaN, or none at all, is not below any bound.

    ```python
    >>> from evidence.promise import at_most
    >>> at_most([1e-12, 3e-12], 1e-10), at_most([1e-12, float("nan")], 1e-10).met
    (Measurement(text='3e-12', met=True, note=''), False)

    ```
    """
    each = np.asarray([*values] if isinstance(values, Iterator) else values, float)
    value = each.max() if each.size else np.nan
    return Measurement(f"{value:.3g}", bool(value <= bound), note)


PEAK_MEMORY = """
def peak_memory():
    # in MB, of this process alone: ru_maxrss counts what it was forked from
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
"""
"""A function for scripts that run in their own process and measure its memory."""


def run_script(script: str, *arguments: object) -> list[float]:
    """The numbers that a script prints when it runs in its own process."""
    command = [sys.executable, "-W", "ignore", "-c", PEAK_MEMORY + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return [float(word) for word in done.stdout.split()]
