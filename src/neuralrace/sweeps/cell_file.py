"""Results of cells in one file, which needs no further package: one line of JSON per cell."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from neuralrace.checks import shown
from neuralrace.door import door
from neuralrace.errors import require

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ARRAY = "__array__"
"""The key that marks an array: its type, its shape, and its compressed bytes."""


@final
@door
class CellFile:
    """Cells and their results, kept one by one in one file, or in memory if there is no path.

    A row is a line of JSON with the values that name the cell, its results (numbers, texts, lists,
    arrays), and what else is known of them, such as the commit and the device. Several processes
    may add rows to the same file. A line that cannot be read, as after a crash, is skipped, and its
    cell counts as not computed. A file that is made anew is read anew.
    `nr.sweep(store=…)` takes grids in batches; this takes cells one at a time.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> from neuralrace.sweeps import CellFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cells.jsonl"
    ...     CellFile(path).add({"delta": 0.5, "seed": 0}, {"loss": [1.0, 0.25]}, device="a CPU")
    ...     row = CellFile(path).find({"delta": 0.5, "seed": 0})
    ...     row["loss"], row["device"], CellFile(path).find({"delta": 0.5, "seed": 1})
    ([1.0, 0.25], 'a CPU', None)

    ```
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._forget()

    def _forget(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._read, self._last, self._inode = 0, b"", 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """All rows, in the order in which they were added."""
        self._update()
        return iter(tuple(self._rows))

    @door
    def find(self, cell: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The last row that has all these values; None if there is none.

        A list equals a tuple of the same values.
        """
        wanted = _named(cell)
        same = lambda a, b: _tells_apart(a) and a == b
        has = lambda row: all(k in row and same(row[k], value) for k, value in wanted.items())
        return next((row for row in reversed(tuple(self)) if has(row)), None)

    @door
    def add(self, cell: Mapping[str, Any], result: Mapping[str, Any], **made: Any) -> None:
        """Add the result of a cell, and what is known of how it was `made`."""
        names = [*cell, *result, *made]
        twice = sorted({name for name in names if names.count(name) > 1})
        require(
            not twice,
            "a name stands twice in a row of cells",
            got=", ".join(twice),
            wanted="different names for what tells cells apart, results, and how they were made",
            fix="rename the result",
        )
        line = json.dumps({**_named(cell), **result, **made}, default=_plain, ensure_ascii=False)
        if self.path is None:
            self._rows.append(json.loads(line, object_hook=_array))
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            broken = end > 0 and file.read(1) != b"\n"
            file.write(b"\n" * broken + line.encode() + b"\n")

    def _update(self) -> None:
        """Read the lines that were added since the last time, or all if the file is another."""
        if self.path is None:
            return
        if not self.path.exists():
            self._forget()
            return
        with self.path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            file.seek(self._read - len(self._last))
            if inode != self._inode or file.read(len(self._last)) != self._last:
                self._forget()
                self._inode = inode
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read, self._last = self._read + len(line), line
                try:
                    row = json.loads(line, object_hook=_array)
                except (ValueError, TypeError, ArithmeticError, zlib.error):
                    continue
                if isinstance(row, dict):
                    self._rows.append(row)


def _named(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The values that name a cell, as they are in the file."""
    for name, value in cell.items():
        found = json.loads(json.dumps(value, default=_plain), object_hook=_array)
        require(
            _tells_apart(found),
            f"{name} cannot tell cells apart",
            got=shown(value),
            wanted="numbers that equal themselves, text, and lists and mappings of them",
            fix="name the cell by the numbers or the text that the value was made of",
        )
    return json.loads(json.dumps(dict(cell), default=_plain))


def _tells_apart(value: Any) -> bool:
    """Whether a value of a row is found again: arrays and NaN are not."""
    if isinstance(value, dict | list):
        return all(map(_tells_apart, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, np.ndarray) and bool(value == value)


def _plain(value: Any) -> Any:
    """What JSON does not know: arrays and numbers of NumPy."""
    array = np.asarray(value)
    require(
        array.dtype.kind in "biufcUM",
        "a value of cell or result cannot be kept in a file",
        got=shown(value),
        wanted="numbers, text, arrays, and lists and mappings of them",
        fix="keep the numbers that it is made of",
    )
    if not array.ndim and isinstance(number := array.item(), bool | int | float | str):
        return number
    packed = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes()))
    return {ARRAY: [array.dtype.str, list(array.shape), packed.decode()]}


def _array(value: dict[str, Any]) -> Any:
    if set(value) != {ARRAY}:
        return value
    kind, shape, packed = value[ARRAY]
    array = np.frombuffer(zlib.decompress(base64.b64decode(packed)), kind).reshape(shape)
    return array.copy()[()]  # a number, if it was one
