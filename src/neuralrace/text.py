"""Results as plain text: tables with aligned columns, shares as per cent, lists, counts, JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["dotted", "ends", "numbered", "percent", "plain", "several", "table_lines"]


def table_lines(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()
) -> list[str]:
    """The lines of a table: cells below their headings, without columns that are empty.

    `right` names the columns that are aligned at their right end, such as numbers.

    ```python
    >>> from neuralrace.text import table_lines
    >>> print(*table_lines(["mode", "time", "note"], [["a", "8.5", ""], ["b", "13.46", ""]],
    ...                    right=["time"]), sep="\\n")
    mode   time
    a       8.5
    b     13.46

    ```
    """
    used = [i for i in range(len(headings)) if not rows or any(row[i] for row in rows)]
    cells = [[row[i] for i in used] for row in (headings, *rows)]
    wide = [max(len(row[i]) for row in cells) for i in range(len(used))]
    put = [str.rjust if headings[i] in right else str.ljust for i in used]
    return [
        "  ".join(p(c, w) for p, c, w in zip(put, row, wide, strict=True)).rstrip() for row in cells
    ]


def percent(value: float) -> str:
    """Two digits; what is below a ten-thousandth of a per cent is written as such.

    ```python
    >>> from neuralrace.text import percent
    >>> percent(0.1234), percent(0.00071), percent(1e-9), percent(0)
    ('12 %', '0.071 %', 'less than 0.0001 %', '0 %')

    ```
    """
    if 0 < value < 1e-6:
        return "less than 0.0001 %"
    digits = f"{100 * value:.0f}" if value >= 0.0995 else f"{100 * value:.2g}"
    return f"{digits} %"


def several(names: Sequence[str], word: str = "and") -> str:
    """Names one after the other: a, b and c."""
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


LISTED = 4
"""Up to this many names are listed; of more, only the first and the last."""


def ends(names: Sequence[str]) -> str:
    """All names if there are few, otherwise the first and the last.

    ```python
    >>> from neuralrace.text import ends
    >>> ends(["B1", "B2"]), ends([f"B{k}" for k in range(1, 8)])
    ('B1, B2', 'B1, …, B7')

    ```
    """
    return ", ".join(names) if len(names) <= LISTED else f"{names[0]}, …, {names[-1]}"


def numbered(count: int, what: str, one: str = "one") -> str:
    """`one network`, `2 networks`; with `one="1"` as labels and tables say it."""
    return f"{count} {what}s" if count != 1 else f"{one} {what}"


def dotted(
    content: Mapping[str, Any], before: str = "", leaves: Collection[str] = ()
) -> Iterator[tuple[str, Any]]:
    """Every value that is no table, with its dotted key; a table with a key in `leaves` is one.

    ```python
    >>> from neuralrace.text import dotted
    >>> dict(dotted({"task": {"builtin": "xor"}, "title": "XoR"}))
    {'task.builtin': 'xor', 'title': 'XoR'}

    ```
    """
    for name, value in content.items():
        key = f"{before}.{name}" if before else str(name)
        if isinstance(value, Mapping) and value and not {*value} & {*leaves}:
            yield from dotted(value, key, leaves)
        else:
            yield key, value


def plain(value: Any) -> Any:
    """Any value for JSON: arrays as lists, numbers that are not finite as None, paths as text.

    ```python
    >>> import numpy as np
    >>> from neuralrace.text import plain
    >>> plain({"loss": np.array([0.5, np.inf]), "steps": (1, 2)})
    {'loss': [0.5, None], 'steps': [1, 2]}

    ```
    """
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if hasattr(value, "__fspath__") else value
