"""The letters of the panels of a picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Literal, TypeAlias

from neuralrace.door import door

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
