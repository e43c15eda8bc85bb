"""How far a sweep is: what is done, what runs, what failed, and how long it will take."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import final

from neuralrace.checks import file_path
from neuralrace.door import door
from neuralrace.sweeps.engine import need_packages
from neuralrace.sweeps.results import DONE, FAILED
from neuralrace.sweeps.store import read_store, told


@final
@dataclass(frozen=True)
class Status:
    """How far a sweep is, in cells; see `status`.

    `running` counts the cells that are being computed; `active` says whether a process works on
    the sweep; `seconds_left` is None where that is not known.

    ```python
    >>> from neuralrace.sweeps import Status
    >>> found = Status(cells=10, done=6, failed=1, running=2, active=True, seconds_left=90.0)
    >>> found.missing, found.is_complete
    (1, False)

    ```
    """

    cells: int
    done: int
    failed: int
    running: int
    active: bool
    seconds_left: float | None

    @property
    def missing(self) -> int:
        """Cells that are neither done nor failed, and that are not being computed."""
        return self.cells - self.done - self.failed - self.running

    @property
    def is_complete(self) -> bool:
        """Whether every cell is done or failed."""
        return self.done + self.failed == self.cells

    def __str__(self) -> str:
        counts = f"{self.done} done, {self.running} running, {self.failed} failed"
        line = f"{self.cells} cells: {counts}, {self.missing} missing"
        if self.is_complete:
            return f"{line}; complete"
        if not self.active:
            return f"{line}; stopped; the same call continues it"
        if self.seconds_left is None:
            return f"{line}; just begun"
        return f"{line}; {_span(self.seconds_left)} left"


@door
def status(store: str | os.PathLike[str]) -> Status:
    """How far the sweep in a store is. The time left assumes that the rate stays as it was.

    ```python
    >>> import tempfile, neuralrace as nr
    >>> def squares(cells):
    ...     return [{"square": cell["x"] ** 2} for cell in cells]
    >>> store = tempfile.mkdtemp()
    >>> first = nr.sweep(squares, {"x": [1, 2, 3]}, store=store)
    >>> print(nr.sweeps.status(store))
    3 cells: 3 done, 0 running, 0 failed, 0 missing; complete

    ```
    """
    need_packages("zarr")
    path = file_path(store, "status('runs/xor.zarr')")
    results = read_store(path)
    done, failed = (int((results.status == mark).sum()) for mark in (DONE, FAILED))
    now = told(path)
    if now is None:
        return Status(results.definition.cells, done, failed, 0, False, None)
    missing = results.definition.cells - done - failed
    since = done + failed - now.get("before", done + failed)
    seconds = (now["now"] - now["since"]) * missing / since if since > 0 else None
    running = min(now.get("running", 0), missing)
    return Status(results.definition.cells, done, failed, running, True, seconds)


def _span(seconds: float) -> str:
    """A time in words, to two figures."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.2g} {unit}"
    return f"about {max(seconds, 1):.0f} s"
