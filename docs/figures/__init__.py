"""The documentation's pictures, a module a page, and what they share of their look."""

from __future__ import annotations

from matplotlib.axes import Axes

from neuralrace.plot.style import cycle_colour


def lighten(ax: Axes) -> None:
    """Give theory that stands alone the plain colours: the dark ones are for lying on others."""
    for index, line in enumerate(ax.get_lines()):
        line.set(color=cycle_colour(index), linewidth=1.8)
    ax.legend()
