"""Pictures of architectures: nodes as boxes, edges as arrows, gates as strips over samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.plot.activity import Strips, gate_strips
from neuralrace.plot.layout import (
    GAP,
    LETTER,
    MARGIN,
    SMALLEST_TEXT,
    Box,
    Edges,
    along,
    around,
    branches,
    columns,
    place,
    routes,
    spot,
)
from neuralrace.plot.look import current_look
from neuralrace.plot.style import COLOURS, cycle_colour, shade, style

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

WIDTH = 3.4
"""Width of a drawing in inches: one column."""

HEIGHT_LIMIT = 4.6
"""Greatest height of a drawing in inches."""

SLOT = 0.56
"""Height in inches for one node without gates."""

GATED_SLOT = 0.66
"""Height in inches for one node in a graph with gates."""

LINE = 0.13
"""Height in inches of a line of small text."""

EDGE_TEXT = 6.0
"""Size of the names of edges, in points."""

NOTE_TEXT = 6.5
"""Size of notes, in points."""

FEW_EDGES = 6
"""Up to this number of edges, all are named."""

FEW_STRIPS = 16
"""Up to this number of gated edges, each carries a strip; more carry a diamond."""

EDGE_STRIP = (0.34, 0.09)
"""Width and height in inches of the strip of a gated edge; narrower where columns are close."""


@door
def draw_graph(
    sizes: Mapping[str, int],
    edges: Edges,
    *,
    gates: Mapping[str, ArrayLike] | None = None,
    labels: Mapping[str, str] | None = None,
    ax: matplotlib.axes.Axes | None = None,
) -> matplotlib.axes.Axes:
    """Draw a directed acyclic graph of layers, inputs on the left and outputs on the right.

    A node is a box with its name and its number of neurons. Every hidden branch has its own colour,
    and edges take the colour of the hidden node they touch; edges are named where they are few or
    parallel. In crowded columns text shrinks and then gives way to a count below the column.

    A gated node carries a strip with one cell per sample: black where its gate is on, white where
    it is off, grey between. A gated edge carries such a strip too, or a diamond where edges are
    many. All strips have the samples in one order, in which those with equal gates are neighbours.
    A note below says so.

    **Arguments:** `sizes` maps each node to its number of neurons, `edges` each edge to its
    (source, target). `gates` maps nodes or edges to (N,) values over samples, or to (N, size) with
    one column per neuron (many neurons are averaged). `labels` renames nodes and edges. Without
    `ax` a figure one column wide is made; with it the drawing fills the axes.

    **Returns** the axes. Artists carry the gid `node:h`, `edge:xh` or `gate:h`.

    ```python
    >>> ax = draw_graph({"x": 8, "h": 100, "y": 60}, {"xh": ("x", "h"), "hy": ("h", "y")},
    ...                 gates={"h": [1, 1, 0, 0]})
    >>> [image.get_array().tolist() for image in ax.images]
    [[[1.0, 1.0, 0.0, 0.0]]]

    ```
    """
    labels = labels or {}
    _check_graph(sizes, edges)
    strips = gate_strips(sizes, edges, gates or {})
    layers = columns(sizes, edges)
    with style():
        own = ax is None
        ax, width, height = _canvas(ax, layers, gated=bool(strips.pictures))
        hidden = [v for layer in layers[1:-1] for v in layer]
        lines = _lines(_note(strips, sizes, edges, hidden), width)
        height -= 0.0 if own else LINE * len(lines)
        letters = max(len(labels.get(v, v)) for v in sizes)
        boxes, paths = _placed(layers, edges, letters, strips.rows(sizes), width, height)
        hues = {v: cycle_colour(i) for v, i in branches(sizes, edges).items()}
        _draw_edges(ax, edges, paths, boxes, hues, labels, strips)
        for node, box in boxes.items():
            _draw_node(ax, node, box, sizes[node], labels.get(node, node), hues.get(node))
            if node in strips:
                strips.draw(ax, node, box.strip, hues.get(node))
        heights = [along(p, np.linspace(0, 1, 60))[:, 1] for p in paths.values()]
        top = max([height, *(y.max() + LINE + GAP for y in heights)])
        bottom = min(
            [0.0]
            + [y.min() - LINE for y in heights]
            + [_draw_count(ax, layer, boxes, sizes) for layer in layers]
        )
        for line in lines:
            grey = COLOURS["neutral"]
            size = NOTE_TEXT * current_look().text_scale
            ax.text(width / 2, bottom, line, fontsize=size, ha="center", va="top", color=grey)
            bottom -= LINE
        if own:
            _figure(ax).set_figheight((top - bottom) * current_look().text_scale)
        ax.set_xlim(0, width)
        ax.set_ylim(bottom, top)
    return ax


def _note(strips: Strips, sizes: Mapping[str, int], edges: Edges, hidden: list[str]) -> str:
    """What the strips and diamonds that are drawn mean."""
    gated = [e for e in edges if e in strips]
    few = len(gated) <= FEW_STRIPS
    drawn = [v for v in sizes if v in strips] + gated * few
    note = strips.note(drawn, others=any(v not in strips for v in hidden))
    return "; ".join(filter(None, [note, "" if few else "◇ = gated edge"]))


@final
@dataclass(frozen=True, eq=False)
class GraphLayout:
    """Where `draw_graph` puts a graph: in inches, from the bottom left.

    `boxes` are the nodes; `paths[edge]` are the four control points of a cubic Bézier curve;
    `branches` numbers the colour of every hidden node.

    ```python
    >>> from neuralrace.plot import graph_layout
    >>> found = graph_layout({"x": 2, "h": 8, "y": 1}, {"xh": ("x", "h"), "hy": ("h", "y")})
    >>> found.paths["xh"].shape, sorted(found.boxes)
    ((4, 2), ['h', 'x', 'y'])

    ```
    """

    width: float
    height: float
    boxes: Mapping[str, Box]
    paths: Mapping[str, NDArray[np.floating]]
    branches: Mapping[str, int]


@door
def graph_layout(sizes: Mapping[str, int], edges: Edges) -> GraphLayout:
    """Where `draw_graph` puts the nodes and edges of a graph, without gates.

    ```python
    >>> from neuralrace.plot import graph_layout
    >>> found = graph_layout({"x": 2, "h": 8, "y": 1}, {"xh": ("x", "h"), "hy": ("h", "y")})
    >>> found.width, found.boxes["x"].x < found.boxes["h"].x, found.branches
    (3.4, True, {'h': 0})

    ```
    """
    _check_graph(sizes, edges)
    layers = columns(sizes, edges)
    width, height = _size(layers, gated=False)
    boxes, paths = _placed(layers, edges, max(map(len, sizes)), {}, width, height)
    return GraphLayout(width, height, boxes, paths, branches(sizes, edges))


def _placed(
    layers: list[list[str]],
    edges: Edges,
    letters: int,
    rows: Mapping[str, int],
    width: float,
    height: float,
) -> tuple[dict[str, Box], dict[str, NDArray[np.floating]]]:
    boxes = place(layers, letters, rows, width, height)
    paths = routes(
        edges,
        start={v: (b.x + b.width / 2, b.y) for v, b in boxes.items()},
        end={v: (b.x - b.width / 2, b.y) for v, b in boxes.items()},
        obstacles={v: b.covers for v, b in boxes.items()},
    )
    return boxes, paths


def _check_graph(sizes: Mapping[str, int], edges: Edges) -> None:
    require(
        sizes,
        "the graph has no nodes",
        got=dict(sizes),
        wanted="at least one node with its size",
        fix="pass the architecture's sizes and edges",
    )
    for edge, ends in edges.items():
        require(
            not (unknown := [v for v in ends if v not in sizes]),
            f"edge {edge!r} names an unknown node",
            got=listed(unknown),
            wanted=f"two of the nodes {listed(sizes)}",
            fix="add the node to sizes, or correct the edge",
        )


def _canvas(
    ax: matplotlib.axes.Axes | None, layers: list[list[str]], *, gated: bool
) -> tuple[matplotlib.axes.Axes, float, float]:
    """The axes, and the room for the graph in inches: the units of everything drawn.

    With text that is larger than the style's, all is drawn as for smaller axes, and enlarged.
    """
    import matplotlib.pyplot as plt

    scale = current_look().text_scale

    if ax is None:
        width, height = _size(layers, gated)
        size = (scale * width, scale * height)
        ax = plt.figure(figsize=size, layout="none").add_axes((0.0, 0.0, 1.0, 1.0))
        ax.set_axis_off()
        return ax, width, height
    ax.set_axis_off()
    figure = _figure(ax)
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
    extent = ax.get_window_extent()
    return ax, extent.width / figure.dpi / scale, extent.height / figure.dpi / scale


def _size(layers: list[list[str]], gated: bool) -> tuple[float, float]:
    """Width and height in inches of a drawing of its own."""
    most = max(len(layer) for layer in layers)
    height = min(most * (GATED_SLOT if gated else SLOT) + 2 * MARGIN, HEIGHT_LIMIT)
    return max(WIDTH, 0.8 * len(layers)), height


def _figure(ax: matplotlib.axes.Axes) -> matplotlib.figure.Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None, "axes that were removed from their figure"
    return figure


def _lines(note: str, width: float) -> list[str]:
    """A note in lines of this width in inches, broken between its parts if possible."""
    letters = max(20, int(width * 72 / (0.88 * LETTER * NOTE_TEXT)))
    parts = [note] if len(note) <= letters else note.split("; ")
    return [line for part in parts for line in wrap(part, letters)]


def _draw_node(
    ax: matplotlib.axes.Axes, node: str, box: Box, size: int, name: str, hue: str | None
) -> None:
    from matplotlib.patches import FancyBboxPatch

    line = hue or COLOURS["neutral"]
    ax.add_patch(
        FancyBboxPatch(
            (box.x - box.width / 2, box.y - box.height / 2),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={min(0.07, 0.3 * box.height)}",
            facecolor=shade(line, 0.82 if hue else 0.88),
            edgecolor=line,
            linewidth=1.0 if box.height > 0.2 else 0.6,
            zorder=3,
            gid=f"node:{node}",
        )
    )
    scale = current_look().text_scale
    both, alone = (box.text_size(lines, SMALLEST_TEXT / scale) for lines in (2, 1))
    if both or alone:
        ax.text(
            box.x,
            box.y,
            f"{name}\n{size}" if both else name,
            fontsize=(both or alone) * scale,
            ha="center",
            va="center_baseline" if not both else "center",
            linespacing=1.05,
            color=shade(line, -0.55),
            zorder=4,
        )


def _draw_edges(
    ax: matplotlib.axes.Axes,
    edges: Edges,
    paths: Mapping[str, NDArray[np.floating]],
    boxes: Mapping[str, Box],
    hues: Mapping[str, str],
    labels: Mapping[str, str],
    strips: Strips,
) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    crowded = len(edges) > 30
    ends = list(edges.values())
    with_strips = sum(e in strips for e in edges) <= FEW_STRIPS
    wide = {e: LETTER * EDGE_TEXT / 72 * len(labels.get(e, e)) for e in edges}
    named = len(edges) <= FEW_EDGES and all(
        wide[e] < 0.5 * (p[3, 0] - p[0, 0]) for e, p in paths.items()
    )
    taken = [box.covers for box in boxes.values()]
    for edge, (source, target) in sorted(edges.items(), key=lambda item: item[0] in strips):
        hue = hues.get(source) or hues.get(target)
        colour = hue or COLOURS["neutral"]
        ax.add_patch(
            FancyArrowPatch(
                path=Path(paths[edge], [Path.MOVETO] + 3 * [Path.CURVE4]),
                arrowstyle="-|>,head_length=0.5,head_width=0.22",
                mutation_scale=5 if crowded else 8,
                linewidth=0.6 if crowded else 1.1,
                color=colour,
                joinstyle="miter",
                capstyle="butt",
                zorder=2,
                gid=f"edge:{edge}",
            )
        )
        fan = sum(s == source for s, _ in ends) - sum(t == target for _, t in ends)
        has_name = edge in labels or named or ends.count((source, target)) > 1
        name_x, name_y = along(paths[edge], 0.5 + 0.1 * np.sign(fan))
        if edge in strips and with_strips:
            strip = min(EDGE_STRIP[0], 0.6 * (paths[edge][3, 0] - paths[edge][0, 0]))
            lift = has_name * LINE / 2  # its name stands above it
            size = max(strip, has_name * wide[edge]) + 2 * GAP, EDGE_STRIP[1] + 2 * lift
            name_x, y = spot(paths[edge] + [0, lift], _wanted(paths[edge], fan), size, taken)
            strips.draw(ax, edge, around(name_x, y - lift, strip, EDGE_STRIP[1]), hue)
            name_y = y - lift + (EDGE_STRIP[1] + LINE) / 2
            taken.append(around(name_x, y, *size))
        elif edge in strips:
            x = _wanted(paths[edge], fan)
            y = np.interp(x, *along(paths[edge], np.linspace(0, 1, 200)).T)
            ax.plot(x, y, "D", ms=2.6, mfc="white", mec=colour, mew=0.7, zorder=5)
        if has_name:
            taken.append(around(name_x, name_y, wide[edge], LINE))
            ax.text(
                name_x,
                name_y,
                labels.get(edge, edge),
                ha="center",
                va="center",
                fontsize=EDGE_TEXT * current_look().text_scale,
                color=shade(colour, -0.45),
                bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
                zorder=4,
            )


def _wanted(path: NDArray[np.floating], fan: int) -> float:
    """Where along x an edge best shows its gate: the middle, or in a fan close to its own end."""
    level = path[0, 1] == path[1, 1]
    x = (path[0, 0] + path[3, 0]) / 2
    if level and fan < 0:
        return float(min(x, path[0, 0] + 0.14))
    return float(max(x, path[3, 0] - 0.2)) if level and fan > 0 else float(x)


def _draw_count(
    ax: matplotlib.axes.Axes, layer: list[str], boxes: Mapping[str, Box], sizes: Mapping[str, int]
) -> float:
    """Below a column too crowded for the sizes of its nodes: how many nodes of how many neurons.

    Returns the lowest height taken.
    """
    lowest = boxes[layer[-1]]
    if lowest.text_size(2, SMALLEST_TEXT / current_look().text_scale):
        return lowest.bottom - GAP
    least, largest = min(sizes[v] for v in layer), max(sizes[v] for v in layer)
    size = str(least) if least == largest else f"{least}–{largest}"
    text = f"{len(layer)} × {size}"
    below, grey = lowest.bottom - GAP, COLOURS["neutral"]
    letters = EDGE_TEXT * current_look().text_scale
    ax.text(lowest.x, below, text, fontsize=letters, ha="center", va="top", color=grey)
    return below - LINE
