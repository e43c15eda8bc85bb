"""What the states of a page may name beside builtin tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final


@final
@dataclass(frozen=True)
class Trust:
    """What states may name beside builtin tasks: that which the given study names.

    `content` is the study of the command line, `folder` the folder of its file. `code` says whether
    its Python functions may be called. `tables` is a folder of our own for dropped tables.
    """

    tables: Path
    content: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    code: bool = False

    @property
    def files(self) -> frozenset[str]:
        """The files that the given study reads."""
        return frozenset(value for key, value in _named(self.content) if key == "file")

    @property
    def functions(self) -> frozenset[str]:
        """The Python functions that the given study names."""
        return frozenset(value for key, value in _named(self.content) if key == "python")


def _named(content: Any) -> Iterator[tuple[str, str]]:
    """Every text that stands under `file`, `python` or `checkpoint`, however deep."""
    for key, value in content.items() if isinstance(content, Mapping) else ():
        if isinstance(value, str) and key in ("file", "python", "checkpoint"):
            yield key, value
        elif isinstance(value, Mapping):
            yield from _named(value)
