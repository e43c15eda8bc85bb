"""Results as plain text: tables with aligned columns, shares as per cent, lists and counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["numbered", "percent", "several", "table_lines"]


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


def numbered(count: int, what: str, one: str = "one") -> str:
    """`one network`, `2 networks`; with `one="1"` as labels and tables say it."""
    return f"{count} {what}s" if count != 1 else f"{one} {what}"
