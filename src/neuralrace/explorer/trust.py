"""What the states of a page may name beside builtin tasks."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, final

from neuralrace.errors import NeuralRaceError


@final
@dataclass(frozen=True)
class Trust:
    """What states may name beside builtin tasks: that which the given study names.

    `content` is the study of the command line, `folder` the folder of its file, and `study` the
    file. `code` says whether its Python functions may be called. `tables` is a folder of our own
    for dropped tables.
    """

    tables: Path
    content: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    code: bool = False
    study: Path | None = None

    @property
    def files(self) -> frozenset[str]:
        """The files that the given study reads."""
        return frozenset(value for key, value in _named(self.content) if key == "file")

    @property
    def functions(self) -> frozenset[str]:
        """The Python functions that the given study names."""
        return frozenset(value for key, value in _named(self.content) if key == "python")

    def now(self) -> Trust:
        """The same with the study as its file has it now; as it was where there is no file."""
        held = None if self.study is None else content_digest(self.study)
        return self if held is None else replace(self, content=_content(str(self.study), held))

    def digest(self) -> str:
        """What the study and the files that it reads hold now, as a short text; "" for none."""
        if not self.content:
            return ""
        try:
            files = self.now().files
        except NeuralRaceError:  # whoever reads the study says what is wrong
            files = frozenset()
        own = () if self.study is None else (self.study,)
        paths = (*own, *(self.folder / name for name in sorted(files)))
        return "-".join(content_digest(path) or "none" for path in paths)


def trust_of(study: str | Path | None, tables: Path, code: bool = False) -> Trust:
    """What states may name: what the study of the command line names."""
    if study is None:
        return Trust(tables)
    from neuralrace.study import Study, draft

    if Path(study).suffix == ".csv":
        content, _ = draft(study)
        return Trust(tables, content, Path(study).resolve().parent, code)
    document = Study.load(study).document
    return Trust(tables, document.content, document.folder.resolve(), code, Path(study).resolve())


def content_digest(path: Path) -> str | None:
    """The digest of what a file holds, or None where there is none.

    It is read again only if the system says that it was written to, replaced or touched.

    ```python
    >>> from pathlib import Path
    >>> from neuralrace.explorer.trust import content_digest
    >>> content_digest(Path("missing.csv")) is None
    True

    ```
    """
    try:
        seen = os.stat(path)
        if not stat.S_ISREG(seen.st_mode):
            return None
        signs = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        return _digest(str(path), signs)
    except OSError:
        return None


@lru_cache(maxsize=64)
def _digest(path: str, signs: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _content(study: str, digest: str) -> Mapping[str, Any]:
    """The content of a study's file, which has this digest."""
    from neuralrace.study import Study

    return Study.load(study).document.content


def _named(content: Any) -> Iterator[tuple[str, str]]:
    """Every text that stands under `file`, `python` or `checkpoint`, however deep."""
    for key, value in content.items() if isinstance(content, Mapping) else ():
        if isinstance(value, str) and key in ("file", "python", "checkpoint"):
            yield key, value
        elif isinstance(value, Mapping):
            yield from _named(value)
