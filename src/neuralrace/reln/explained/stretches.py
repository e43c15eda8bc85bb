"""Solving until something happens, where it is not known in advance how long that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from neuralrace.trajectory import Trajectory

LONGEST = 1e5
"""How long to wait for the loss to fall, in units of one over the largest growth rate."""

S = TypeVar("S")


def stretches(
    solve: Callable[[S, float], Trajectory],
    follow: Callable[[S, Trajectory], S],
    start: S,
    first: float,
    longest: float,
    *,
    growth: float = 1.0,
) -> Iterator[tuple[float, S, Trajectory]]:
    """The solution piece by piece: when each piece begins, where it starts, and the piece.

    The first one lasts `first`, each other one `growth` times as long as all before it, and the
    last one ends at `longest`. Whoever goes through them stops when enough is known.

    **Arguments:** `solve(start, lasts)` solves one piece, and `follow(start, piece)` is the start
    of the next one.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.reln.explained.stretches import stretches
    >>> halved = lambda start, lasts: nr.Trajectory([0, lasts], [start, start / 2])
    >>> last = lambda start, piece: piece.loss[-1]
    >>> for begin, loss, piece in stretches(halved, last, 8.0, first=1.0, longest=7.0):
    ...     print(begin, loss, piece.time[-1])
    0.0 8.0 1.0
    1.0 4.0 1.0
    2.0 2.0 2.0
    4.0 1.0 3.0

    ```
    """
    begin, end = 0.0, first
    while begin < longest:
        end = min(end, longest)
        piece = solve(start, end - begin)
        yield begin, start, piece
        start = follow(start, piece)
        begin, end = end, (1 + growth) * end
