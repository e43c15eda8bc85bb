"""What a picture shows, as rows of a table: its curves, points, bars and maps."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

HEAD = ("panel", "kind", "number", "name", "x", "y", "value")
"""The columns; `panel` is a letter, or a title without one, `number` counts within a panel, and
`value` is for maps, which have rows at `y`."""

STEPS = (1, 2, 5, 10, 20, 50)
"""Of long curves every point is kept, or every second, fifth and so on, until the file is small."""

Row: TypeAlias = tuple[str, str, int, str, str, str, str]


def panels(figure: Figure) -> dict[Axes, str]:
    """Every panel of a picture with its title, colour bars aside; its place where it has none."""
    found = {}
    for place, ax in enumerate(ax for ax in figure.axes if ax.get_label() != "<colorbar>"):
        titles = (ax.get_title("left"), ax.get_title(), ax.get_title("right"))
        found[ax] = " ".join(" ".join(titles).split()) or f"panel {place + 1}"
    return found


@dataclass(frozen=True)
class Table:
    """What is drawn, as CSV: one of `every` points of each curve, and whether `maps` are there."""

    text: str
    every: int
    maps: bool


def table(figure: Figure, most: int) -> Table | None:
    """What a picture shows, as CSV of at most that many bytes; None if that is too small.

    Points of curves are left out first, then maps.
    """
    for maps, every in product((True, False), STEPS):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(row for row in rows(figure, every) if maps or row[1] != "map")
        if len(text.getvalue().encode()) <= most:
            return Table(text.getvalue(), every, maps)
    return None


def rows(figure: Figure, step: int = 1) -> Iterator[Row]:
    """One row per point, bar and entry of a map; lines across a whole panel are left out."""
    for ax, title in panels(figure).items():
        if ax.name == "3d":
            continue
        letter = re.match(r"\((\w+)\)", title)
        panel = letter[1] if letter else title
        for number, (kind, name, points) in enumerate(_parts(ax), 1):
            thin = step if kind == "curve" else 1
            for point in points[::thin]:
                x, y, *value = (f"{v:.6g}" for v in point)
                yield panel, kind, number, name, x, y, value[0] if value else ""


def _parts(ax: Axes) -> Iterator[tuple[str, str, np.ndarray]]:
    """Kind, name and points of everything that is drawn in the units of a panel."""
    for line in ax.get_lines():
        points = np.column_stack([line.get_xdata(), line.get_ydata()]).astype(float)
        if line.get_transform() == ax.transData and len(points):
            yield "curve", _named(line.get_label(), line.get_gid()), points
    for some in ax.collections:
        offsets = np.ma.filled(np.ma.asarray(some.get_offsets(), float), np.nan)
        if isinstance(some, PathCollection) and len(offsets):
            yield "points", _named(some.get_label()), offsets
    for bars in ax.containers:
        if isinstance(bars, BarContainer):
            boxes: Sequence[Any] = bars.patches
            ends = [(b.get_x() + b.get_width() / 2, b.get_y() + b.get_height()) for b in boxes]
            yield "bars", _named(bars.get_label()), np.array(ends)
    for image in ax.get_images():
        values = np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)
        if values.ndim == 2:
            y, x = np.indices(values.shape)
            flat = (x.ravel(), y.ravel(), values.ravel())
            yield "map", _named(image.get_label(), image.get_gid()), np.column_stack(flat)


def _named(label: object, gid: object = None) -> str:
    """The label; or what the curve or gate is called, or nothing, if matplotlib made it up."""
    text = str(label)
    if text.startswith("_") or not text:
        text = str(gid or "").split(":")[-1]
    return " ".join(text.split())
