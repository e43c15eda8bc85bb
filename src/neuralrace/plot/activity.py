"""Patterns of neurons, their shares over time, and how far stages of frozen gates reach."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.plot.curves import axes_or_new
from neuralrace.plot.layout import Rectangle
from neuralrace.plot.style import COLOURS, cycle_colour, shade, style
from neuralrace.text import numbered

if TYPE_CHECKING:
    import matplotlib.axes


@door
def draw_raster(
    patterns: ArrayLike,
    weight: ArrayLike,
    groups: Mapping[str, int],
    *,
    samples: Mapping[str, int] | None = None,
    title: str | None = None,
    ax: matplotlib.axes.Axes | None = None,
) -> matplotlib.axes.Axes:
    """Draw which neurons are on for which samples: one row per neuron, as tall as its weight.

    **Arguments:** `patterns` is (R, N) of 0 and 1, `weight` (R,). `groups` maps a name to how
    many neighbouring rows belong to it, from the top; each has a colour and its name beside it if
    it is tall enough. `samples` likewise names groups of neighbouring columns.

    **Returns** the axes.

    ```python
    >>> ax = draw_raster([[1, 1, 0], [0, 1, 1]], [2.0, 1.0], {"first": 1, "second": 1})
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['first', 'second']

    ```
    """
    on, height = np.asarray(patterns, float), np.asarray(weight, float)
    require(
        on.ndim == 2 and height.shape == on.shape[:1] and sum(groups.values()) == len(on),
        "patterns, weights and groups do not fit",
        got=f"patterns {on.shape}, weight {height.shape}, groups of {sum(groups.values())}",
        wanted="patterns (R, N), weight (R,), groups of R rows",
        fix="give every row one weight and one group",
    )
    total = height.sum() or 1.0
    edges = np.concatenate([[0.0], np.cumsum(height)]) / total
    with style():
        from matplotlib.colors import ListedColormap

        ax = axes_or_new(ax)
        row, ticks = 0, {}
        for place, (name, count) in enumerate(groups.items()):
            if not count:
                continue
            colours = ListedColormap(["white", _colour(place)])
            part = edges[row : row + count + 1]
            columns = np.arange(on.shape[1] + 1)
            ax.pcolormesh(columns, part, on[row : row + count], cmap=colours, vmin=0, vmax=1)
            if part[-1] - part[0] > 0.04:
                ticks[name] = (part[0] + part[-1]) / 2
            row += count
            ax.axhline(edges[row], color=COLOURS["theory"], linewidth=0.6)
        ax.set_yticks(list(ticks.values()), list(ticks))
        ax.set_ylim(1, 0)
        ax.set_xlim(0, on.shape[1])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(True)
        if samples:
            ends = np.cumsum(list(samples.values()))
            for end in ends[:-1]:
                ax.axvline(end, color=COLOURS["theory"], linewidth=0.6)
            ax.set_xticks(ends - np.array(list(samples.values())) / 2, list(samples))
        else:
            ends = sorted({1, on.shape[1]})
            ax.set_xticks(np.array(ends) - 0.5, [str(n) for n in ends])
        ax.set_xlabel("samples" if samples else "sample, by number")
        if title is not None:
            ax.set_title(title)
    return ax


@door
def draw_shares(
    time: ArrayLike,
    rounded: Mapping[str, ArrayLike],
    exact: ArrayLike | None = None,
    *,
    marks: ArrayLike = (),
    ax: matplotlib.axes.Axes | None = None,
) -> matplotlib.axes.Axes:
    """Draw shares that sum to one as bands over time, the first on top, each with its name.

    **Arguments:** `time` is (T,), `rounded` maps names to (T,). `exact` (T,) is the part, drawn
    as a dashed line from the bottom, that is not rounded at all. `marks` are times to point out.

    **Returns** the axes.

    ```python
    >>> ax = draw_shares([0, 1], {"a": [1.0, 0.4], "b": [0.0, 0.6]}, exact=[0.5, 0.2])
    >>> ax.get_ylabel()
    'part of the weight'

    ```
    """
    t = np.asarray(time, float)
    bands = np.stack([np.asarray(share, float) for share in rounded.values()])
    tops = 1 - np.concatenate([np.zeros((1, len(t))), np.cumsum(bands, axis=0)])
    with style():
        ax = axes_or_new(ax)
        written: list[tuple[float, float]] = []
        for place, name in enumerate(rounded):
            colour = _colour(place, 0.25)
            ax.fill_between(
                t, tops[place + 1], tops[place], color=colour, linewidth=0.6, edgecolor="white"
            )
            middle = (tops[place] + tops[place + 1]) / 2
            inner = _inside(t, name)
            free = _clear(t, middle, written) > 1
            widest = int(np.where(inner & free, bands[place], -1.0).argmax())
            if bands[place][widest] > 0.08 and (inner & free)[widest]:
                _written(ax, name, t[widest], middle[widest])
                written.append((t[widest], middle[widest]))
        if exact is not None:
            line = np.asarray(exact, float)
            ax.plot(t, line, color="black", linestyle=(0, (3.2, 1.6)), linewidth=1.3)
            beside = np.clip(line + 0.07, 0.07, 0.93)
            inner = _inside(t, "exact")
            k = int(np.where(inner, _clear(t, beside, written), -1.0).argmax())
            _written(ax, "exact", t[k], beside[k])
        for mark in np.atleast_1d(np.asarray(marks, float)):
            ax.plot([mark], [1.0], marker="v", color="black", markersize=4, clip_on=False)
        ax.set_xlim(t[0], t[-1])
        ax.set_ylim(0, 1)
        ax.set_xlabel("time")
        ax.set_ylabel("part of the weight")
    return ax


@door
def draw_reach(
    time: ArrayLike,
    reach: ArrayLike,
    stops: ArrayLike,
    *,
    ax: matplotlib.axes.Axes | None = None,
) -> matplotlib.axes.Axes:
    """Draw until when frozen gates stay valid over when they were frozen, and a cover by stages.

    **Arguments:** `time` (T,) and `reach` (T,): gates of `time[i]` hold until `reach[i]`. `stops`
    (S + 1,) are where the S stages begin and the last ends.

    **Returns** the axes.

    ```python
    >>> ax = draw_reach([0, 1, 2, 3], [1, 3, 3, 3], [0, 1, 3])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('gates of time', 'hold until')

    ```
    """
    t, until, at = (np.asarray(a, float) for a in (time, reach, stops))
    with style():
        ax = axes_or_new(ax)
        grey = COLOURS["neutral"]
        ax.fill_between(t, t, until, step="post", color=COLOURS["simulation"], alpha=0.45, lw=0)
        ax.step(t, until, where="post", color=COLOURS["common"], linewidth=1.5)
        ax.plot(t[[0, -1]], t[[0, -1]], color=grey, linewidth=0.7)
        x = np.repeat(at[:-1], 2)
        y = np.stack([at[:-1], at[1:]], axis=1).ravel()
        ax.plot(x, y, color=COLOURS["theory"], linestyle=(0, (3.2, 1.6)), linewidth=1.1)
        ax.set_xlim(t[0], t[-1])
        ax.set_ylim(t[0], t[-1])
        ax.set_xlabel("gates of time")
        ax.set_ylabel("hold until")
        stages = numbered(len(at) - 1, "stage", "1")
        ax.text(0.97, 0.05, stages, transform=ax.transAxes, ha="right", fontsize=7)
    return ax


def _colour(place: int, lighter: float = 0.0) -> tuple[float, float, float]:
    """The colours of the cycle, then the same darker, then lighter: no two of 24 are the same."""
    amount = (0.0, -0.45, 0.4)[place // 8 % 3]  # the colours of a cycle
    return shade(cycle_colour(place), amount + lighter)


def _inside(t: np.ndarray, word: str) -> np.ndarray:
    """Where a word does not leave the axes, on axes of the usual width."""
    edge = min(0.012 * len(word), 0.45) * np.ptp(t)
    return (t >= t[0] + edge) & (t <= t[-1] - edge)


def _clear(t: np.ndarray, y: np.ndarray, written: list[tuple[float, float]]) -> np.ndarray:
    """How far places are from words that are written already: below one they would overlap."""
    apart = [
        np.maximum(np.abs(t - x) / (0.2 * (np.ptp(t) or 1.0)), np.abs(y - height) / 0.12)
        for x, height in written
    ]
    return np.min(apart, axis=0) if apart else np.full(len(t), 2.0)


def _written(ax: matplotlib.axes.Axes, text: str, x: float, y: float) -> None:
    """A word that can be read on any colour."""
    box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8}
    ax.text(x, y, text, ha="center", va="center", fontsize=7, bbox=box)


FEW_NEURONS = 12
"""Up to this number of gated neurons, each has its own row in a strip; more are averaged."""


@dataclass(frozen=True, eq=False)
class Strips:
    """The gates of nodes and edges as pictures (rows, N), all with the samples in one order.

    Samples with equal gates stand side by side; `is_sorted` tells whether any had to move.
    """

    pictures: Mapping[str, NDArray[np.floating]]
    is_sorted: bool

    def __contains__(self, name: str) -> bool:
        return name in self.pictures

    def rows(self, names: Iterable[str]) -> dict[str, int]:
        """How many rows the strips of these nodes have."""
        return {v: len(self.pictures[v]) for v in names if v in self.pictures}

    @property
    def levels(self) -> tuple[float, float]:
        """The values that are drawn white and black: 0 and 1, if all gates lie between them."""
        every = list(self.pictures.values())
        return (
            min(0.0, *(float(strip.min()) for strip in every)),
            max(1.0, *(float(strip.max()) for strip in every)),
        )

    def note(self, names: Collection[str], *, others: bool) -> str:
        """What the strips of these nodes and edges mean; `others`: some nodes have none."""
        if not names:
            return ""
        every = [self.pictures[name] for name in names]
        white, black = self.levels
        partly = any(((strip > white) & (strip < black)).any() for strip in every)
        count = every[0].shape[1]
        samples = numbered(count, "sample", "1") + ", sorted by gate" * self.is_sorted
        told = "black = on" + ", grey = partly" * partly
        if (white, black) != (0.0, 1.0):
            told = f"white = {white:g}, black = {black:g}"
        return f"gates: {told} ({samples})" + "; no strip = not gated" * others

    def draw(
        self, ax: matplotlib.axes.Axes, name: str, where: Rectangle, hue: str | None = None
    ) -> None:
        """Draw one strip, framed in the colour of its pathway."""
        from matplotlib.patches import Rectangle as Frame

        left, bottom, right, top = where
        white, black = self.levels
        ax.imshow(
            self.pictures[name],
            cmap="gray_r",
            vmin=white,
            vmax=black,
            extent=(left, right, bottom, top),
            aspect="auto",
            interpolation="auto",
            zorder=5,
            gid=f"gate:{name}",
        )
        line = hue or COLOURS["neutral"]
        size = right - left, top - bottom
        ax.add_patch(Frame((left, bottom), *size, fill=False, ec=line, lw=0.6, zorder=6))


def gate_strips(
    sizes: Mapping[str, int], edges: Iterable[str], gates: Mapping[str, ArrayLike]
) -> Strips:
    """Each gate as a picture: one row, or a row for each of a few neurons."""
    edges, found = list(edges), {}
    samples = None
    for name, values in gates.items():
        gate = np.asarray(values, dtype=float)
        neurons = sizes.get(name)
        require(
            name in sizes or name in edges,
            f"gates name {name!r}, which is neither a node nor an edge",
            got=repr(name),
            wanted=f"one of {listed([*sizes, *edges])}",
            fix="correct the name of the gate",
        )
        samples = len(np.atleast_1d(gate)) if samples is None else samples
        require(
            samples != 0,
            f"the gate of {name!r} has no samples",
            got=gate.shape,
            wanted="one value per sample, for at least one sample",
            fix="draw the graph without gates",
        )
        require(
            gate.shape in {(samples,), (samples, neurons)},
            f"the gate of {name!r} has the wrong shape",
            got=gate.shape,
            wanted=f"({samples},)" + (f" or ({samples}, {neurons})" if neurons else ""),
            fix="give every gate one value per sample, or one per sample and neuron",
        )
        found[name] = np.atleast_2d(gate.T)
    if not found:
        return Strips({}, is_sorted=False)
    order = side_by_side(np.concatenate(list(found.values())).T)
    few = {
        name: rows if len(rows) <= FEW_NEURONS else rows.mean(axis=0, keepdims=True)
        for name, rows in found.items()
    }
    moved = bool((np.diff(order) < 0).any())
    return Strips({name: rows[:, order] for name, rows in few.items()}, is_sorted=moved)


def side_by_side(rows: NDArray[np.floating]) -> NDArray[np.integer]:
    """An order in which equal rows are neighbours, each kind in the place of its first.

    ```python
    >>> side_by_side(np.array([[1.0], [0.0], [1.0], [0.0]])).tolist()
    [0, 2, 1, 3]

    ```
    """
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.argsort(first[kind.ravel()], kind="stable")
