"""Where the nodes of a directed acyclic graph go, and how its edges get around them.

Pure geometry: names and numbers in, names and numbers out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralrace.errors import NeuralRaceError

Edges = Mapping[str, tuple[str, str]]
Rectangle = tuple[float, float, float, float]
"""Left, bottom, right, top."""

# Lengths in inches, text in points.
BOX_HEIGHT, STRIP_HEIGHT, GAP, MARGIN = 0.36, 0.075, 0.035, 0.08
TEXT, SMALLEST_TEXT, LETTER = 7.0, 4.2, 0.62


def columns(nodes: Iterable[str], edges: Edges) -> list[list[str]]:
    """The nodes in columns, left to right by the longest path from an input; each top to bottom.

    Nodes without incoming edges stand in the first column and nodes without outgoing edges in the
    last, both in the order given; between them nodes are ordered by the barycentre of their
    neighbours, with few crossings.

    ```python
    >>> columns(["y", "h", "x"], {"xh": ("x", "h"), "hy": ("h", "y"), "skip": ("x", "y")})
    [['x'], ['h'], ['y']]

    ```
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges.values())
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [source for source, _ in nx.find_cycle(graph)]
        raise NeuralRaceError(
            "the edges form a cycle",
            got=" -> ".join([*cycle, cycle[0]]),
            wanted="a directed acyclic graph",
            fix="remove or turn round one edge of the cycle",
        )
    depth = {v: d for d, layer in enumerate(nx.topological_generations(graph)) for v in layer}
    last = max(depth.values(), default=0)
    outputs = {v for v in graph if not graph.out_degree(v) and graph.in_degree(v)}
    layers: list[list[str]] = [[] for _ in range(last + 1)]
    for node in graph:
        layers[last if node in outputs else depth[node]].append(node)
    return _untangle(layers, graph)


def _heights(layers: Sequence[Sequence[str]]) -> dict[str, float]:
    return {v: (i + 0.5) / len(layer) for layer in layers for i, v in enumerate(layer)}


def _crossings(layers: Sequence[Sequence[str]], graph: Any) -> int:
    height = _heights(layers)
    column = {v: i for i, layer in enumerate(layers) for v in layer}
    return sum(
        (height[a] - height[c]) * (height[b] - height[d]) < 0
        for (a, b), (c, d) in combinations(graph.edges, 2)
        if column[a] == column[c] and column[b] == column[d]
    )


def _untangle(layers: list[list[str]], graph: Any, sweeps: int = 6) -> list[list[str]]:
    """Order the inner layers by barycentre, sweeping to and fro; keep the fewest crossings."""
    inner = range(1, len(layers) - 1)
    best, fewest = layers, _crossings(layers, graph)
    for sweep in range(sweeps):
        forward = sweep % 2 == 0
        neighbours = graph.predecessors if forward else graph.successors
        layers = list(layers)
        for i in inner if forward else reversed(inner):
            height = _heights(layers)
            layers[i] = sorted(
                layers[i], key=lambda v, h=height: np.mean([h[u] for u in neighbours(v)])
            )
        if (crossings := _crossings(layers, graph)) < fewest:
            best, fewest = layers, crossings
    return best


def branches(nodes: Iterable[str], edges: Edges) -> dict[str, int]:
    """Number the branch of every hidden node: hidden nodes in an unforked chain share one.

    ```python
    >>> edges = {"a": ("x", "h1"), "b": ("h1", "h2"), "c": ("h2", "y"), "d": ("x", "k"),
    ...          "e": ("k", "y")}
    >>> branches(["x", "h1", "h2", "k", "y"], edges)
    {'h1': 0, 'h2': 0, 'k': 1}

    ```
    """
    inner = {s for s, _ in edges.values()} & {t for _, t in edges.values()}
    before = {v: {s for s, t in edges.values() if t == v and s in inner} for v in inner}
    after = {v: {t for s, t in edges.values() if s == v and t in inner} for v in inner}

    def first(node: str) -> str:
        while len(before[node]) == 1 and len(after[(previous := min(before[node]))]) == 1:
            node = previous
        return node

    numbers: dict[str, int] = {}
    return {v: numbers.setdefault(first(v), len(numbers)) for v in nodes if v in inner}


@dataclass(frozen=True)
class Box:
    """Centre and extent of a node, and the height of the strip below it (0: none)."""

    x: float
    y: float
    width: float
    height: float
    strip_height: float
    letters: int

    @property
    def bottom(self) -> float:
        below = self.strip_height + min(GAP, 0.25 * self.height) if self.strip_height else 0.0
        return self.y - self.height / 2 - below

    @property
    def strip(self) -> Rectangle:
        half = self.width / 2
        return self.x - half, self.bottom, self.x + half, self.bottom + self.strip_height

    @property
    def covers(self) -> Rectangle:
        half, room = self.width / 2 + GAP, 2 * GAP
        top = self.y + self.height / 2 + room
        return self.x - half, self.bottom - room, self.x + half, top

    def text_size(self, lines: int, smallest: float = SMALLEST_TEXT) -> float:
        """The largest text that lets this many lines into the box; 0 when none is legible."""
        tall = self.height * 72 / ((1.3 if lines == 1 else 1.5) * lines)
        wide = self.width * 72 / (LETTER * (self.letters + 1))
        size = min(TEXT, tall, wide)
        return size if size >= smallest else 0.0


def place(
    layers: Sequence[Sequence[str]],
    letters: int,
    rows: Mapping[str, int],
    width: float,
    height: float,
) -> dict[str, Box]:
    """A box for every node: columns evenly across, nodes evenly down each column.

    `letters` is the length of the longest name, `rows` how many rows the strip of a node has.
    """
    box_width = min(max(0.4, LETTER * TEXT / 72 * (letters + 2)), 0.58 * width / len(layers))
    edge = MARGIN + box_width / 2
    across = np.linspace(edge, width - edge, len(layers)) if len(layers) > 1 else [width / 2]
    slots = [(height - 2 * MARGIN) / len(layer) for layer in layers]
    strips = [
        _strip_height(max(rows.get(v, 0) for v in layer), slot)
        for layer, slot in zip(layers, slots, strict=True)
    ]
    lift = (max(strips) + GAP) / 2 if rows else 0.0
    boxes = {}
    for x, layer, slot, strip in zip(across, layers, slots, strips, strict=True):
        box_height = min(BOX_HEIGHT, (0.56 if strip else 0.72) * slot)
        for i, node in enumerate(layer):
            y = height - MARGIN - (i + 0.5) * slot + lift
            below = strip if node in rows else 0.0
            boxes[node] = Box(float(x), y, box_width, box_height, below, letters)
    return boxes


def _strip_height(rows: int, slot: float) -> float:
    if rows > 1:
        return min(2.4 * STRIP_HEIGHT, 0.3 * slot - GAP)
    return min(STRIP_HEIGHT, 0.2 * slot) if rows else 0.0


def curve(
    start: tuple[float, float], end: tuple[float, float], bend: float
) -> NDArray[np.floating]:
    """Control points (4, 2) of the cubic Bézier curve that leaves and arrives level, lifted by
    ``bend`` in the middle."""
    (x0, y0), (x1, y1) = start, end
    reach = (0.5 if bend == 0 else 0.25) * (x1 - x0)
    lift = bend / 0.75
    return np.array([start, (x0 + reach, y0 + lift), (x1 - reach, y1 + lift), end])


def along(control: NDArray[np.floating], t: float | NDArray[np.floating]) -> NDArray[np.floating]:
    """Points (..., 2) of a cubic Bézier curve, or of several (k, 4, 2), at ``t`` in [0, 1].

    ```python
    >>> along(curve((0.0, 0.0), (4.0, 0.0), 1.0), 0.5).tolist()
    [2.0, 1.0]

    ```
    """
    t = np.asarray(t)[..., None]
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return np.concatenate(weights, axis=-1) @ control


def around(x: float, y: float, width: float, height: float) -> Rectangle:
    """The rectangle of this size whose centre is (x, y)."""
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def spot(
    control: NDArray[np.floating],
    wanted: float,
    size: tuple[float, float],
    taken: Sequence[Rectangle],
) -> tuple[float, float]:
    """A point of a Bézier curve around which a rectangle of this size has room.

    It covers as little as possible of what is ``taken``; of several such points, it is the one
    whose x is nearest to ``wanted``.

    ```python
    >>> level = curve((0.0, 0.0), (2.0, 0.0), 0.0)
    >>> x, y = spot(level, 0.1, (0.4, 0.1), [(-1.0, -1.0, 0.0, 1.0)])
    >>> round(x, 1), y
    (0.2, 0.0)

    ```
    """
    points = along(control, np.linspace(0, 1, 200))
    blocks = np.reshape(taken, (-1, 2, 2))
    half = np.array(size) / 2
    low = np.maximum((points - half)[:, None], blocks[:, 0])
    high = np.minimum((points + half)[:, None], blocks[:, 1])
    covered = np.clip(high - low, 0, None).prod(axis=2).sum(axis=1)
    best = np.lexsort((np.abs(points[:, 0] - wanted), covered.round(6)))[0]
    x, y = points[best]
    return float(x), float(y)


def routes(
    edges: Edges,
    start: Mapping[str, tuple[float, float]],
    end: Mapping[str, tuple[float, float]],
    obstacles: Mapping[str, Rectangle],
    *,
    spread: float = 0.26,
    step: float = 0.05,
) -> dict[str, NDArray[np.floating]]:
    """One curve for every edge: parallel edges ``spread`` apart, and none through a node.

    ``start`` and ``end`` give where edges leave and reach a node, ``obstacles`` what a node covers.
    An edge that would hit a node it does not join is bent around it, as little as will do, and
    rather to the other side than the one before.
    """
    together: dict[tuple[str, str], list[str]] = {}
    for edge, ends in edges.items():
        together.setdefault(ends, []).append(edge)
    found: dict[str, NDArray[np.floating]] = {}
    side = 1
    steps = sorted(range(-60, 60), key=lambda k: abs(k) + 4 * (k < 0))
    for (source, target), bunch in together.items():
        others = [r for v, r in obstacles.items() if v not in (source, target)]
        blocks = np.reshape(others, (-1, 4))
        for i, edge in enumerate(bunch):
            first = ((len(bunch) - 1) / 2 - i) * spread
            outward = float(np.sign(first)) or side
            bends = [first + outward * k * step for k in steps]
            candidates = np.array([curve(start[source], end[target], bend) for bend in bends])
            chosen = int(np.argmin(_hits(candidates, blocks)))  # the first if none is clear
            found[edge] = candidates[chosen]
            if chosen:
                side = -side
    return {edge: found[edge] for edge in edges}


def _hits(controls: NDArray[np.floating], blocks: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which of the curves (k, 4, 2) run through one of the rectangles (n, 4)."""
    points = along(controls, np.linspace(0, 1, 60))[..., None]
    x, y = points[..., 0, :], points[..., 1, :]
    left, bottom, right, top = blocks.T
    inside = (x > left) & (x < right) & (y > bottom) & (y < top)
    return inside.any(axis=(1, 2))
