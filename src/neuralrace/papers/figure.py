"""A figure: its settings with their sources, and the functions that compute, draw and judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray


@final
@dataclass(frozen=True)
class Setting:
    """A number of a figure: the paper's value, a small one for `--quick`, and where it stands."""

    value: Any
    about: str
    source: str
    quick: Any = None


@final
@dataclass(frozen=True)
class Agreement:
    """One line on how well a figure's data agree with what the paper says, or theory with data."""

    what: str
    target: str
    measured: str
    holds: bool | None = None


@final
@dataclass(frozen=True)
class Figure:
    """A figure of a paper, from settings to picture.

    `compute` takes every setting by name and returns all that `draw` and `agreement` need, so
    that a stored result can be drawn again without computing.
    """

    name: str
    title: str
    states: str
    settings: Mapping[str, Setting]
    compute: Callable[[Mapping[str, Any]], xarray.Dataset]
    draw: Callable[[xarray.Dataset], matplotlib.figure.Figure]
    agreement: Callable[[xarray.Dataset], tuple[Agreement, ...]]
