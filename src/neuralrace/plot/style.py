"""Style, colours, marks on curves, and the letters of panels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.plot.look import current_look

if TYPE_CHECKING:
    import matplotlib.axes
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FILE = Path(__file__).with_name("neuralrace.mplstyle")

COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "simulation": "#56B4E9",
        "theory": "#1A1A1A",
        "relu": "#F2C063",
        "common": "#0072B2",
        "contextual": "#009E73",
        "neutral": "#5F5F5F",
    }
)
"""Colour-blind-safe (Okabe–Ito) colours of the roles that recur from figure to figure."""


@contextmanager
def style() -> Iterator[None]:
    """Apply the package's matplotlib style inside a ``with`` block, and restore what was before.

    What `look` says goes over it.

    ```python
    >>> import matplotlib
    >>> with style():
    ...     matplotlib.rcParams["axes.spines.top"]
    False

    ```
    """
    import matplotlib.style

    with matplotlib.style.context([_FILE, current_look().parameters]):
        yield


@door
def cycle_colour(index: int) -> str:
    """The ``index``-th colour of the style's cycle, which begins again after the last.

    ```python
    >>> cycle_colour(0)
    '#0072B2'

    ```
    """
    import matplotlib

    with style():
        colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    return "#" + colours[index % len(colours)].lstrip("#")


@door
def shade(colour: str, amount: float) -> tuple[float, float, float]:
    """Mix ``colour`` with white (``amount`` > 0) or with black (``amount`` < 0), |amount| ≤ 1.

    ```python
    >>> shade("black", 0.5)
    (0.5, 0.5, 0.5)

    ```
    """
    from matplotlib.colors import to_rgb

    end = 1.0 if amount > 0 else 0.0
    red, green, blue = (c + abs(amount) * (end - c) for c in to_rgb(colour))
    return red, green, blue


SHADES: Mapping[str, float] = MappingProxyType({"relu": 0.6, "simulation": 0.25, "theory": -0.55})
"""How far a colour of the cycle is mixed with white (above 0) or black, by kind of curve."""

DASHES = (
    (3.2, 1.6),
    (8.0, 1.6),
    (1.2, 1.4),
    (8.0, 1.6, 1.2, 1.6),
    (3.2, 4.0),
    (8.0, 1.6, 1.2, 1.6, 1.2, 1.6),
    (1.2, 4.0),
    (8.0, 1.6, 3.2, 1.6),
)
"""The dashes of theories without a simulation of the same name, so that grey tells them apart."""


LIKE_ROLES = {"relu": 1, "simulation": 4}
"""The places in the cycle, orange and light blue, that are like the colours of these roles."""


@door
def colour_places(curves: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The place in the cycle of colours of each curve, given by kind and name, in order.

    A name has one place in all kinds; a new name has the first place that is free in its kind.
    Beside a lone curve of its kind, which has the colour of its role, one like it is not free.

    ```python
    >>> from neuralrace.plot import colour_places
    >>> colour_places([("simulation", "a"), ("simulation", "b"), ("theory", "b")])
    {('simulation', 'a'): 0, ('simulation', 'b'): 1, ('theory', 'b'): 1}

    ```
    """
    found: dict[tuple[str, str], int] = {}
    lone = {kind for kind, _ in curves if len({name for k, name in curves if k == kind}) == 1}
    for kind, name in curves:
        elsewhere = [place for (_, other), place in found.items() if other == name]
        taken = {place for (other, _), place in found.items() if other == kind}
        taken |= {place for role, place in LIKE_ROLES.items() if role in lone - {kind}}
        free = next(i for i in range(len(taken) + 1) if i not in taken)
        found.setdefault((kind, name), elsewhere[0] if elsewhere else free)
    return found


@door
def is_lone(curve: tuple[str, str], curves: Sequence[tuple[str, str]]) -> bool:
    """Whether a curve is the only one of its kind, which then has the colour of its role.

    ```python
    >>> from neuralrace.plot import is_lone
    >>> curves = [("relu", "a"), ("theory", "b"), ("theory", "c")]
    >>> [is_lone(curve, curves) for curve in curves]
    [True, False, False]

    ```
    """
    return len({name for kind, name in curves if kind == curve[0]}) == 1


@door
def is_unpaired(curve: tuple[str, str], curves: Sequence[tuple[str, str]]) -> bool:
    """Whether a curve is one of several theories, and none of its name was simulated.

    It then has its colour as it is, and dashes of its own.

    ```python
    >>> from neuralrace.plot import is_unpaired
    >>> curves = [("simulation", "a"), ("theory", "a"), ("theory", "b")]
    >>> [is_unpaired(curve, curves) for curve in curves]
    [False, False, True]

    ```
    """
    paired = any(name == curve[1] and kind != "theory" for kind, name in curves)
    return curve[0] == "theory" and not paired and not is_lone(curve, curves)


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
    require(
        (x is None) != (y is None),
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


Side: TypeAlias = Literal["center", "left", "right"]


@door
def letter_panels(figure: Figure) -> None:
    """Put (a), (b), … before the titles of the panels, row by row; one panel has no letter.

    Colour bars, insets and hidden panels are no panels of their own. A title that begins with a
    letter keeps it, and no other panel has that letter.

    ```python
    >>> import matplotlib.pyplot as plt
    >>> from neuralrace.plot import letter_panels
    >>> figure, (left, right) = plt.subplots(1, 2)
    >>> _ = left.set_title("loss")
    >>> letter_panels(figure)
    >>> left.get_title(), right.get_title()
    ('(a) loss', '(b)')
    >>> plt.close(figure)

    ```
    """
    shown = [ax for ax in figure.axes if ax.get_label() != "<colorbar>" and ax.get_visible()]
    specs = {ax: ax.get_subplotspec() for ax in shown}
    places = {ax: (s.rowspan.start, s.colspan.start) for ax, s in specs.items() if s is not None}
    if len(places) > 1:
        in_order = sorted(places, key=places.__getitem__)
        lettered = {ax: re.match(r"\(([a-z]+)\d*\)", _title(ax)) for ax in in_order}
        used = {found[1] for found in lettered.values() if found}
        for letter, ax in zip(_letters(), in_order, strict=False):
            if not lettered[ax]:
                own = next(each for each in (letter, *_letters()) if each not in used)
                used.add(own)
                ax.set_title(f"({own}) {_title(ax)}".rstrip(), loc=_title_side(ax))


def _letters() -> Iterator[str]:
    """a, b, … z, aa, ab, …"""
    for count in (1, 2):
        yield from map("".join, product(ascii_lowercase, repeat=count))


def _title(ax: Axes) -> str:
    """The title of a panel, wherever it stands."""
    return ax.get_title(_title_side(ax))


def _title_side(ax: Axes) -> Side:
    """Where the title of a panel stands."""
    sides: tuple[Side, ...] = ("center", "left", "right")
    for side in sides:
        if ax.get_title(side):
            return side
    return "center"
