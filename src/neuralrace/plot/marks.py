"""Dotted lines that mark a value, with their meaning written beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.plot.style import COLOURS, style

if TYPE_CHECKING:
    import matplotlib.axes


@door
def mark_line(
    ax: matplotlib.axes.Axes,
    text: str,
    *,
    x: float | None = None,
    y: float | None = None,
    at: float = 1.0,
    before: bool = False,
) -> None:
    """Draw a dotted grey line across axes, upright at `x` or level at `y`, and write what it marks.

    **Arguments:** `text` stands `at` a share of the line's length, right of an upright line and
    above a level one; with `before`, left of it or below it.

    ```python
    >>> import matplotlib.pyplot as plt
    >>> from neuralrace.plot import mark_line
    >>> figure, ax = plt.subplots()
    >>> mark_line(ax, "criterion", y=0.2)
    >>> [text.get_text() for text in ax.texts]
    ['criterion']
    >>> plt.close(figure)

    ```
    """
    if (x is None) == (y is None):
        raise NeuralRaceError(
            "a line is marked at one value",
            got="neither x nor y" if x is None else "both x and y",
            wanted="x for an upright line, or y for a level one",
            fix='mark_line(ax, "criterion", y=0.2)',
        )
    grey = COLOURS["neutral"]
    away = -3 if before else 3
    where: dict[str, Any] = {}
    with style():
        line = {"color": grey, "linewidth": 0.8, "linestyle": ":", "zorder": 1}
        if x is not None:
            ax.axvline(x, **line)
            where = {"xy": (x, at), "xycoords": ("data", "axes fraction"), "xytext": (away, -1)}
            where |= {"ha": "right" if before else "left", "va": "top" if at > 0.5 else "bottom"}
        elif y is not None:
            ax.axhline(y, **line)
            where = {"xy": (at, y), "xycoords": ("axes fraction", "data"), "xytext": (0, away)}
            where |= {"va": "top" if before else "bottom", "ha": "right" if at > 0.5 else "left"}
        box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.6}
        small = {"color": grey, "fontsize": "small", "bbox": box}
        ax.annotate(text, textcoords="offset points", **small, **where)
