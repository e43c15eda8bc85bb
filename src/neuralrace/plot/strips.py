"""Gates over samples as strips: black where a gate is on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.plot.layout import Rectangle
from neuralrace.plot.style import COLOURS
from neuralrace.text import numbered

if TYPE_CHECKING:
    import matplotlib.axes

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
        if name not in sizes and name not in edges:
            raise NeuralRaceError(
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
        if gate.shape not in {(samples,), (samples, neurons)}:
            raise NeuralRaceError(
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
