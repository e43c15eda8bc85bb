"""Results as plain text: tables with aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["table_lines"]


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
