"""Progress on long work: a bar with rate and remaining time, silent outside a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = [
    "progress",
]

PATIENCE = 1.0
"""Seconds of work before a bar is shown: quick work needs none."""


@contextmanager
def progress(total: float, what: str, unit: str = "steps") -> Iterator[Callable[[float], None]]:
    """Yield `advance(amount)`, which moves a bar of length `total` on the standard error.

    Nothing is shown outside a terminal, or for work that is done within a second.

    ```python
    >>> from neuralrace.progress import progress
    >>> with progress(10, "training") as advance:
    ...     for _ in range(10):
    ...         advance(1)

    ```
    """
    if not sys.stderr.isatty():
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=total, rate="")
    start, done = time.monotonic(), 0.0

    def advance(amount: float) -> None:
        nonlocal done
        done += amount
        elapsed = time.monotonic() - start
        if elapsed > PATIENCE:
            bar.start()
            bar.update(task, completed=done, rate=f"{done / elapsed:.3g} {unit}/s")

    try:
        yield advance
    finally:
        bar.stop()
