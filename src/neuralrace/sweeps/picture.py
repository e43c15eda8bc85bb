"""The picture of a sweep: curves over one axis, a map over two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuralrace.checks import one_of
from neuralrace.errors import listed, require
from neuralrace.plot import draw_curves, style

if TYPE_CHECKING:
    import matplotlib.axes

    from neuralrace.sweeps.sweep import Sweep

SEED = "seed"
"""The axis that pictures average over."""


def draw_sweep(
    found: Sweep, name: str | None, over: str | None, ax: matplotlib.axes.Axes | None
) -> matplotlib.axes.Axes:
    """See `Sweep.plot`."""
    if name is None:
        numbers = (n for n, each in found.data.data_vars.items() if each.dtype.kind in "biuf")
        name = str(next(numbers, ""))
    one_of("result", name, map(str, found.data.data_vars), "one of the results of the sweep")
    value = found.data[name]
    axes = [axis for axis in found.definition.axes if axis != SEED] or [SEED]
    over = axes[0] if over is None else one_of("axis", over, found.definition.axes, "an axis")
    others = [axis for axis in axes if axis != over]
    inner = [str(d) for d in value.dims if d not in found.definition.axes]
    arrays = (value, *(found.data[axis] for axis in (over, *others[:1])))
    numbers = [array.dtype.kind in "biuf" for array in arrays]
    require(
        not inner and len(others) <= 1 and all(numbers),
        f"{name!r} has no picture over {over!r} alone",
        got=f"dimensions {listed(value.dims)}",
        wanted="one number per cell, over one or two axes of numbers, and seeds",
        fix="select from sweep.data, and draw that",
    )
    if others:
        return _map(value, over, others[0], name, ax)
    seeds = SEED in value.dims and over != SEED
    drawn = value.transpose(SEED, over) if seeds else value
    return draw_curves(
        found.data[over].values, {name: drawn.values}, ylabel=name, xlabel=over, ax=ax
    )


def _map(value: Any, over: str, other: str, name: str, ax: Any) -> matplotlib.axes.Axes:
    import matplotlib.pyplot as plt

    mean = value.mean(SEED) if SEED in value.dims else value
    with style():
        ax = plt.subplots()[1] if ax is None else ax
        mesh = ax.pcolormesh(
            value[over].values, value[other].values, mean.transpose(other, over).values
        )
        ax.figure.colorbar(mesh, ax=ax, label=name)
        ax.set(xlabel=over, ylabel=other)
    return ax
