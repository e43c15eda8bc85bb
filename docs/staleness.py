"""Which pictures of the gallery are older than the code that makes them.

What counts is the code of a figure in `papers`, the file of an example or a study, how studies are
drawn, and the style of all pictures; the rest of the library, which has tests of its own, does not.
Hashes are those of Python 3.11: later versions write strings with fields in another way.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import papers
from papers.claims import Reader, source_hash

ROOT = Path(__file__).parents[1]
STYLE = ROOT / "src/neuralrace/plot/neuralrace.mplstyle"

SAYS = {"compute": "computed", "script": "made", "draw": "drawn", "agreement": "judged"}
"""What the code of each part of a picture does to it; examples and studies have no others."""


def sources(figure: papers.Figure, commit: str = "") -> dict[str, str]:
    """Hashes of the code that draws and judges a figure here, and computed it at a commit.

    The code as it is here stands for a commit that is not known.
    """
    here = {part: source_hash(getattr(figure, part)) for part in ("compute", "draw", "agreement")}
    here["draw"] = styled(here["draw"])
    read = at_commit(commit)
    if read(figure.compute.__module__) is None:
        return here
    return here | {"compute": source_hash(figure.compute, read)}


@cache
def at_commit(commit: str) -> Reader:
    """Reads modules of `papers` as they were at a commit, also where it was part of the package."""

    @cache
    def read(module: str) -> str | None:
        stem = module.replace(".", "/")
        files = (f"{stem}.py", f"{stem}/__init__.py")
        for path in (*files, *(f"src/neuralrace/{file}" for file in files)):
            words = ["git", "-C", str(ROOT), "show", f"{commit}:{path}"]
            found = subprocess.run(words, capture_output=True, text=True)
            if found.returncode == 0:
                return found.stdout
        return None

    return read


def source_of_file(path: Path, *drawn_by: Callable[..., Any]) -> dict[str, str]:
    """Hashes of an example or a study, and of the functions of these pages that draw it."""
    code = [source_hash(function, of_pages) for function in drawn_by]
    return {"script": _hash(path.read_bytes()), "draw": styled(*code)}


@cache
def of_pages(module: str) -> str | None:
    """Reads modules that make the pages, such as `docs.store`."""
    path = (ROOT / module.replace(".", "/")).with_suffix(".py")
    return path.read_text() if path.exists() else None


def styled(*hashes: str) -> str:
    """The hash of the code that draws a picture, with the style of all pictures."""
    return _hash("".join(hashes).encode() + STYLE.read_bytes())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def older(fact: Mapping[str, Any], now: Mapping[str, str]) -> str:
    """What was done before the code for it changed, such as `computed and drawn`, or nothing."""
    told = [SAYS[part] for part in now if fact.get("source", {}).get(part) != now[part]]
    return " and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told)
