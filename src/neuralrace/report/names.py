"""Names of files beside a page, and of places on it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import quote

from neuralrace.errors import NeuralRaceError

PAGE = "index.html"
"""The name of the page itself."""


def file_name(name: object) -> str:
    """The name of a file in the folder of a page, or below it."""
    text = name if isinstance(name, str) else ""
    path = PurePosixPath(text)
    outside = path.is_absolute() or ".." in path.parts
    if not path.name or outside or text == PAGE or re.search(r"[\x00-\x1f\\:]", text):
        raise NeuralRaceError(
            "this cannot be the name of a file beside the page",
            got=f"{name!r:.80}",
            wanted=f"a path below the page's folder, with slashes, other than {PAGE!r}",
            fix="for example 'losses.csv' or 'data/run.nc'",
        )
    return text


def address(name: str) -> str:
    """A file's name as a link to it."""
    return quote(name)


def place(title: str, taken: set[str]) -> str:
    """A name for a place on the page, made of a title; it is added to those taken.

    ```python
    >>> from neuralrace.report.names import place
    >>> taken = set()
    >>> place("Who wins?", taken), place("Who wins!", taken)
    ('who-wins', 'who-wins-2')

    ```
    """
    word = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"
    name = word if word not in taken else ""
    number = 2
    while not name or name in taken:
        name, number = f"{word}-{number}", number + 1
    taken.add(name)
    return name
