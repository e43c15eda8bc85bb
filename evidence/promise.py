"""A check: its id, its sentence, its target, and the function that measures it."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

CLAIMS: list[Check] = []


@dataclass(frozen=True)
class Measurement:
    """The result as text, whether it meets the target, and an explanation of a miss."""

    text: str
    met: bool
    note: str = ""


@dataclass(frozen=True)
class Check:
    """`measure(full)` at full size, or on a small seeded sample of the same thing.

    Measurements are stored by `id`, such as `reduction/planted-blocks`, which never changes: the
    sentence may be put in other words.

    `timing` marks a ratio of running times, which the tests measure but do not assert. `slow` marks
    a claim without a small version.
    """

    id: str
    section: str
    title: str
    target: str
    measure: Callable[[bool], Measurement]
    timing: bool = False
    slow: bool = False


def claim(
    id: str,
    section: str,
    title: str,
    target: str,
    *,
    timing: bool = False,
    slow: bool = False,
) -> Callable[[Callable[[bool], Measurement]], Callable[[bool], Measurement]]:
    """Register the decorated function `measure(full)` as a claim."""

    def register(measure: Callable[[bool], Measurement]) -> Callable[[bool], Measurement]:
        CLAIMS.append(Check(id, section, title, target, measure, timing, slow))
        return measure

    return register


def at_most(value: float, bound: float, note: str = "") -> Measurement:
    """A measurement that must not exceed `bound`."""
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


def all_claims() -> list[Check]:
    """Every registered claim; importing a module of `evidence/own` registers its claims."""
    import evidence.own

    for module in sorted(module.name for module in pkgutil.iter_modules(evidence.own.__path__)):
        importlib.import_module(f"evidence.own.{module}")
    return CLAIMS
