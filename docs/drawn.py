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
from matplotlib.collections import (
    FillBetweenPolyCollection,
    LineCollection,
    PathCollection,
    QuadMesh,
)
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure

HEAD = ("panel", "kind", "number", "name", "x", "y", "value")
"""The columns; `panel` is a letter, or a title without one, and `number` counts within a panel.

`value` is the entry of a map at `x`, `y`, or where an area or error bar ends that begins at `y`;
an error bar along x goes from `x` to `value`.
"""

LONGEST = (10_000, 1000, 700, 500, 300, 200, 150, 100, 70, 50, 30, 20)
"""Of longer curves this many points are kept, at equal steps: the first number with which the file
is small enough."""

Row: TypeAlias = tuple[str, str, int, str, str, str, str]


def panels(figure: Figure) -> dict[Axes, str]:
    """Every panel of a picture with its title, or its place where it has none.

    Colour bars are no panels, nor are axes that hold words alone.
    """
    shown = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    found = {}
    for place, ax in enumerate(ax for ax in shown if ax.axison or ax.has_data()):
        titles = (ax.get_title("left"), ax.get_title(), ax.get_title("right"))
        found[ax] = " ".join(" ".join(titles).split()) or f"panel {place + 1}"
    return found


@dataclass(frozen=True)
class Table:
    """What is drawn, as CSV: at most `points` of each curve, and whether `maps` are there.

    `points` is None if every curve is complete.
    """

    text: str
    points: int | None
    maps: bool


def table(figure: Figure, most: int) -> Table | None:
    """What a picture shows, as CSV of at most that many bytes; None if that is too small.

    Points of curves are left out first, then maps.
    """
    long = [p for ax in panels(figure) for kind, _, p in _parts(ax) if kind in LONG]
    longest = max(map(len, long), default=0)
    for maps, most_points in product((True, False), LONGEST):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(row for row in rows(figure, most_points) if maps or row[1] != "map")
        if len(text.getvalue().encode()) <= most:
            return Table(text.getvalue(), most_points if longest > most_points else None, maps)
    return None


def rows(figure: Figure, most: int = LONGEST[0]) -> Iterator[Row]:
    """One row per point, bar and entry of a map, with at most so many points of each curve.

    Lines across a whole panel, contours, graphs and panels in three dimensions are left out.
    """
    for ax, title in panels(figure).items():
        letter = re.match(r"\((\w+)\)", title)
        panel = letter[1] if letter else title
        for number, (kind, name, points) in enumerate(_parts(ax), 1):
            for point in points[_kept(len(points), most)] if kind in LONG else points:
                x, y, *value = (f"{v:.6g}" for v in point)
                yield panel, kind, number, name, x, y, value[0] if value else ""


LONG = ("curve", "area")
"""What is thinned where it is long."""


def _kept(count: int, most: int) -> np.ndarray:
    """Places at equal steps, at most so many, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _parts(ax: Axes) -> Iterator[tuple[str, str, np.ndarray]]:
    """Kind, name and points of everything that is drawn in the units of a panel and its insets."""
    if ax.name == "3d":
        return
    bars = [each for each in ax.containers if isinstance(each, ErrorbarContainer)]
    of_bars = {line: _named(each.get_label()) for each in bars if (line := each.lines[0])}
    ends = {cap for each in bars for cap in each.lines[1]}
    for line in ax.get_lines():
        points = np.column_stack([line.get_xdata(), line.get_ydata()]).astype(float)
        if line.get_transform() == ax.transData and len(points) and line not in ends:
            yield "curve", of_bars.get(line) or _named(line.get_label(), line.get_gid()), points
    for each in bars:
        for some in each.lines[2]:
            yield _error_bars(some, _named(each.get_label()))
    for some in ax.collections:
        name = _named(some.get_label(), some.get_gid())
        offsets = np.ma.filled(np.ma.asarray(some.get_offsets(), float), np.nan)
        if isinstance(some, PathCollection) and len(offsets):
            yield "points", name, offsets
        elif isinstance(some, FillBetweenPolyCollection):
            yield from (("area", name, _between(path.vertices)) for path in some.get_paths())
        elif isinstance(some, QuadMesh):
            yield "map", name, _mesh(some)
    for boxes in ax.containers:
        if isinstance(boxes, BarContainer):
            yield "bars", _named(boxes.get_label()), _bars(boxes)
    for image in ax.get_images():
        values = np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)
        if values.ndim == 2:
            y, x = np.indices(values.shape)
            flat = (x.ravel(), y.ravel(), values.ravel())
            yield "map", _named(image.get_label(), image.get_gid()), np.column_stack(flat)
    inset: Any
    for inset in ax.child_axes:
        for kind, name, points in _parts(inset):
            yield kind, name or " ".join(inset.get_title().split()), points


def _bars(boxes: BarContainer) -> np.ndarray:
    """The middle of the end of every bar."""
    flat = boxes.orientation == "horizontal"
    along, across = (1.0, 0.5) if flat else (0.5, 1.0)
    each: Sequence[Any] = boxes.patches
    ends = [(b.get_x() + along * b.get_width(), b.get_y() + across * b.get_height()) for b in each]
    return np.array(ends)


def _error_bars(lines: LineCollection, name: str) -> tuple[str, str, np.ndarray]:
    """Error bars of one direction, from end to end."""
    (x, y), (x_end, y_end) = np.moveaxis(np.array(lines.get_segments()), 0, 2)
    if np.array_equal(x, x_end):
        return "error bars", name, np.column_stack([x, y, y_end])
    return "error bars along x", name, np.column_stack([x, y, x_end])


def _between(polygon: Any) -> np.ndarray:
    """An area between two curves: x and both values, from matplotlib's polygon around it.

    It begins at the second curve, follows the first, and comes back along the second.
    """
    count = (len(polygon) - 3) // 2
    first, second = polygon[1 : count + 1], polygon[count + 2 : 2 * count + 2][::-1]
    return np.column_stack([first, second[:, 1]])


def _mesh(mesh: QuadMesh) -> np.ndarray:
    """The middle and the value of every cell, or the points that shading goes through."""
    at = np.asarray(mesh.get_coordinates(), float)
    values = np.ma.filled(np.ma.asarray(mesh.get_array(), float), np.nan).ravel()
    if len(values) != at.shape[0] * at.shape[1]:
        at = (at[:-1, :-1] + at[1:, :-1] + at[:-1, 1:] + at[1:, 1:]) / 4
    return np.column_stack([at.reshape(-1, 2), values])


def _named(label: object, gid: object = None) -> str:
    """The label; or what the curve or gate is called, or nothing, if matplotlib made it up."""
    text = str(label)
    if text.startswith("_") or not text:
        text = str(gid or "").split(":")[-1]
    return " ".join(text.split())
