"""How the numbers of this process come about: version, commit, date, devices, packages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from neuralrace import __version__
from neuralrace.report.page import Provenance


def provenance(
    *,
    seeds: Sequence[int] | str = (),
    command: str = "",
    seconds: float | None = None,
    date: str | None = None,
) -> Provenance:
    """What is known of this process: version, commit, date, devices and packages.

    **Arguments:** `seeds` are numbers or words. `date` is any text; without one it is now. A page
    is the same to the byte only with the same date.

    ```python
    >>> from neuralrace import report
    >>> made = report.provenance(seeds=(0, 1), date="2026-01-31")
    >>> made.date, made.seeds, "jax" in made.packages
    ('2026-01-31', (0, 1), True)

    ```
    """
    import jax

    from neuralrace.trajectory import versions

    kinds = [f"{device.device_kind} ({device.platform})" for device in jax.devices()]
    counted = {kind: kinds.count(kind) for kind in kinds}
    return Provenance(
        version=__version__,
        commit=commit(Path(__file__).parents[1]),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC") if date is None else date,
        seeds=seeds if isinstance(seeds, str) else tuple(seeds),
        devices=tuple(k if n == 1 else f"{n} × {k}" for k, n in counted.items()),
        packages={name: v for name, v in versions().items() if name != "neuralrace"},
        command=command,
        seconds=seconds,
    )


def commit(folder: Path) -> str:
    """The commit of a package's source, with a plus where it has changed since; else nothing.

    A package that is only installed inside somebody's repository is not tracked there: no commit.
    """
    source = folder / "__init__.py"
    if _git(folder, "ls-files", "--error-unmatch", str(source)) is None:
        return ""
    head = _git(folder, "rev-parse", "--short", "HEAD")
    if not head:
        return ""
    return head + ("+" if _git(folder, "status", "--porcelain", "--", str(folder)) else "")


def _git(folder: Path, *words: str) -> str | None:
    """What git prints, or None where it fails or is not there."""
    try:
        run = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None
