"""The letters of the panels of a picture."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def letter_panels(figure: Figure) -> None:
    """Put (a), (b), … before the titles of the panels, row by row; one panel has no letter.

    Colour bars, insets and hidden panels are no panels of their own.

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
        for letter, ax in zip(ascii_lowercase, in_order, strict=False):
            ax.set_title(f"({letter}) {ax.get_title()}".rstrip())
