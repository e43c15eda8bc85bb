"""Where a table comes from: the commit that computed it, the function, and the device."""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

MADE = "made.json"
"""The file in a folder of tables that says at which commit each of them was computed."""


@final
@dataclass(frozen=True)
class Origin:
    """Where a table comes from: the commit, the function, and the device that computed it.

    `code` names the function, as `module:name`; `device` is there for figures that record one.
    Texts are empty if nothing is known.
    """

    commit: str = ""
    code: str = ""
    device: str = ""


def read_origins(folder: Path) -> dict[str, Origin]:
    """Where the tables of a folder come from, by the names of their files."""
    path = folder / MADE
    commits = json.loads(path.read_text()) if path.exists() else {}
    return {name: Origin(each["commit"]) for name, each in commits.items()}


def write_origins(folder: Path, made: Mapping[str, Origin]) -> None:
    """Add to what a folder says of its tables; other processes may be writing too."""
    with (folder / "made.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = {**read_origins(folder), **made}
        text = {name: {"commit": made.commit} for name, made in sorted(whole.items())}
        part = folder / "made.part"
        part.write_text(json.dumps(text, indent=1) + "\n")
        part.replace(folder / MADE)


def place_of(function: Callable[..., Any]) -> str:
    """Where a function is defined, as `module:name`."""
    return f"{function.__module__}:{function.__qualname__.split('.')[0]}"


def checked_out() -> str:
    """The commit that is checked out where this package lies, marked if `papers` was changed.

    Empty where there is no repository.
    """
    here = Path(__file__).parent
    git = lambda *words: subprocess.run(
        ["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--", str(here.parent))
        return git("rev-parse", "--short", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""
