"""A claim: what is said, what would make it true, and the function that measures it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CLAIMS: list[Claim] = []


@dataclass(frozen=True)
class Measurement:
    """What was found, as text, whether it meets the target, and what explains a miss."""

    text: str
    met: bool
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """`measure(full)` at full size, or on a small seeded sample of the same thing.

    `timing` marks a ratio of running times: measured in the tests too, but asserted nowhere.
    `slow` marks what has no small version.
    """

    section: str
    title: str
    target: str
    measure: Callable[[bool], Measurement]
    timing: bool = False
    slow: bool = False

    @property
    def id(self) -> str:
        return f"{self.section}: {self.title}"


def claim(
    section: str, title: str, target: str, *, timing: bool = False, slow: bool = False
) -> Callable[[Callable[[bool], Measurement]], Callable[[bool], Measurement]]:
    """Register the decorated function `measure(full)` as a claim."""

    def register(measure: Callable[[bool], Measurement]) -> Callable[[bool], Measurement]:
        CLAIMS.append(Claim(section, title, target, measure, timing, slow))
        return measure

    return register


def at_most(value: float, bound: float, note: str = "") -> Measurement:
    """A measurement that must not exceed `bound`."""
    return Measurement(f"{value:.3g}", bool(value <= bound), note)


def all_claims() -> list[Claim]:
    """Every registered claim, in the order of the sections."""
    from verification import foundation  # noqa: F401  (importing registers)

    return CLAIMS
