"""Which pictures of the gallery are older than the code that makes them.

Hashes are those of Python 3.11: later versions write strings with fields in another way.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from neuralrace import papers
from neuralrace.papers.claims import Reader, source_hash

ROOT = Path(__file__).parents[1]

SAYS = {"compute": "computed", "draw": "drawn", "agreement": "judged", "script": "made"}
"""What the code of each part of a picture does to it; examples and studies have one part alone."""


def sources(figure: papers.Figure, commit: str = "") -> dict[str, str]:
    """Hashes of the code that draws and judges a figure here, and computed it at a commit.

    The code as it is here stands for a commit that is not known.
    """
    here = {part: source_hash(getattr(figure, part)) for part in ("compute", "draw", "agreement")}
    read = at_commit(commit)
    if read(figure.compute.__module__) is None:
        return here
    return here | {"compute": source_hash(figure.compute, read)}


@cache
def at_commit(commit: str) -> Reader:
    """Reads modules of the package as they were at a commit."""

    @cache
    def read(module: str) -> str | None:
        stem = "src/" + module.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            words = ["git", "-C", str(ROOT), "show", f"{commit}:{path}"]
            found = subprocess.run(words, capture_output=True, text=True)
            if found.returncode == 0:
                return found.stdout
        return None

    return read


def source_of_file(path: Path) -> dict[str, str]:
    """The hash of an example or a study."""
    return {"script": hashlib.sha256(path.read_bytes()).hexdigest()[:12]}


def older(fact: Mapping[str, Any], now: Mapping[str, str]) -> str:
    """What was done before the code for it changed, such as `computed and drawn`, or nothing."""
    told = [SAYS[part] for part in now if fact.get("source", {}).get(part) != now[part]]
    return " and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told)
