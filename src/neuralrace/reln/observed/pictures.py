"""Pictures of the activity of a ReLU network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.plot import draw_raster, draw_shares, style
from neuralrace.reln.naming import in_groups
from neuralrace.reln.observed.activity import Activity
from neuralrace.reln.observed.shares import OTHER
from neuralrace.tolerances import LEAST
from neuralrace.types import ArrayLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@door
def draw_activity(
    found: Activity,
    prototypes: Mapping[str, ArrayLike],
    node: str | None = None,
    *,
    at: Sequence[float] | None = None,
    samples: Mapping[str, int] | None = None,
    least: float = LEAST,
) -> Figure:
    """Draw the patterns of a layer at a few moments, and the shares of the prototypes over time.

    Above, rasters: each row is a neuron, as tall as its share of the weight, sorted by its nearest
    prototype at that moment. Below, the shares of the prototypes over time as bands, and dashed
    the part whose patterns are exactly one of them.

    **Arguments:** `prototypes`, `node` and `least` as in `Activity.shares`; `at`, times of the
    rasters (by default when a quarter and half of all that shares change has happened, and the
    end); `samples` names groups of neighbouring samples, name to how many, in place of those by a
    label of the data.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 32, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=0.01), data, learning_rate=0.1,
    ...                steps=200, record_every=20, record={"weights": True})
    >>> figure = nr.reln.draw_activity(nr.reln.activity(run, data), data.one_per_sample())
    >>> len(figure.axes)
    4

    ```
    """
    import matplotlib.pyplot as plt

    shares = found.shares(prototypes, node, least=least)
    times = _telling(found.time, np.stack(list(shares.rounded.values()))) if at is None else at
    times = np.ravel(times).tolist()
    if not times:
        raise NeuralRaceError("no times to draw", got=at, wanted="at least one", fix="leave out at")
    if samples is not None:
        total = found.packed.samples

        fix = "give each group of samples its number, in order"
        counts = [
            whole_number("a number of samples", n, least=0, fix=fix) for n in samples.values()
        ]
        whole_number("the samples of all groups", total - sum(counts), least=0, fix=fix)
    columns = np.arange(found.packed.samples)
    if samples is None and found.data is not None:
        columns, samples = in_groups(found.data)
    moments = [found.index(t) for t in times]
    weight = found.counted(shares.node, least)
    names = list(shares.rounded)
    with style():
        figure = plt.figure(figsize=(1.5 + 1.35 * len(moments), 4.0))
        grid = figure.add_gridspec(2, len(moments), height_ratios=(1.5, 1))
        for column, k in enumerate(moments):
            ax = figure.add_subplot(grid[0, column])
            order = np.lexsort((-weight[k], shares.nearest_index[k]))
            order = order[weight[k][order] > 0]
            count = np.bincount(shares.nearest_index[k][order], minlength=len(names))
            groups = dict(zip(names, count.tolist(), strict=True))
            title = f"t = {found.time[k]:.3g}"
            on = found.packed.moment(shares.node, k).T[np.ix_(order, columns)]
            draw_raster(on, weight[k][order], groups, samples=samples, title=title, ax=ax)
        draw_shares(
            found.time,
            shares.rounded,
            1 - shares.exact[OTHER],
            marks=found.time[moments],
            ax=figure.add_subplot(grid[1, :]),
        )
    return figure


def _telling(time: np.ndarray, shares: np.ndarray) -> list[float]:
    """When a quarter and half of all changes of shares (prototypes, T) have happened; the end."""
    passed = np.append(0.0, np.abs(np.diff(shares, axis=1)).sum(axis=0).cumsum())
    if not passed[-1] > 0:  # nothing changes: along the way
        passed = time - time[0]
    places = [int(np.searchsorted(passed, part * passed[-1])) for part in (0.25, 0.5)]
    return [float(time[k]) for k in dict.fromkeys([*places, len(time) - 1])]
