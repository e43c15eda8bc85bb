"""The one look of every figure: a style file, colours by role, line styles by kind of curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from neuralrace.door import door
from neuralrace.plot.look import current_look

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
