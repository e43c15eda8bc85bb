"""Where numbers come from: version, commit, date, devices and packages."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Sequence
from pathlib import Path

from neuralrace import __version__
from neuralrace.report import Provenance
from neuralrace.trajectory import versions


def provenance(seeds: Sequence[int], command: str, seconds: float) -> Provenance:
    """What is known of this process, now."""
    import jax

    return Provenance(
        version=__version__,
        commit=commit(),
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        seeds=seeds,
        devices=[str(device) for device in jax.devices()],
        packages=versions(),
        command=command,
        seconds=round(seconds, 1),
    )


def commit() -> str:
    """The commit of the package's source, with a plus where it was changed; nothing elsewhere."""
    folder = Path(__file__).parent
    git = ["git", "-C", str(folder)]
    try:
        ours = subprocess.run(
            [*git, "ls-files", "--error-unmatch", __file__], capture_output=True, timeout=10
        )
        if ours.returncode:
            return ""
        head = subprocess.run(
            [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, timeout=10
        )
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no", str(folder.parent)],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
