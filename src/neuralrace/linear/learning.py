"""When things are learned: chains against depth, and the modes and levels of a task."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from neuralrace.analysis import projected
from neuralrace.checks import real_array, real_number
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.linear.chain import linear_task
from neuralrace.linear.visits import maps_of
from neuralrace.tolerances import NOISE
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike


def chain_time(
    depth: int, *, s: float, start: float, d: float = 1.0, fraction: float = 0.5
) -> float:
    """The time at which a balanced chain of `depth` edges has learned a `fraction` of s/d.

    Every edge starts at b₀ = `start`. With τ = 1, t = ∫ db / (b^{D−1} (s − d b^D)), evaluated by
    Gauss's ₂F₁ for D ≥ 3 (Talk, "Analytic learning trajectory", inverted). `race.closed_form` gives
    the whole curve; for small starts, `leading_time` approximates the time.

    ```python
    >>> import neuralrace as nr
    >>> [round(nr.linear.chain_time(depth, s=1.0, start=0.1), 2) for depth in (1, 2, 3, 4)]
    [0.59, 2.3, 9.14, 49.73]

    ```
    """
    depth = whole_number(
        "the depth", depth, fix="the number of edges; nr.linear.deep_limit has D → ∞"
    )
    fix = "start smaller, or ask for a larger fraction"
    s, d, start, fraction = (
        real_number(name, value, fix="for example s=1.0, start=0.1")
        for name, value in (("s", s), ("d", d), ("start", start), ("fraction", fraction))
    )
    positive = min(s, d, start) > 0 and 0 < fraction < 1
    below = positive and depth * math.log(start) < math.log(fraction * s) - math.log(d)
    if not below:
        raise NeuralRaceError(
            "the chain does not grow to this fraction",
            got=f"s = {s:g}, d = {d:g}, start = {start:g}, fraction = {fraction:g}",
            wanted="positive s and d, fraction in (0, 1), start^depth below fraction · s/d",
            fix=fix,
        )
    if start < np.finfo(np.float64).tiny ** (1 / (depth + 1)):
        raise NeuralRaceError(
            "the start is so small that its powers underflow",
            got=f"start = {start:g} with {depth} edges",
            wanted=f"at least {np.finfo(np.float64).tiny ** (1 / (depth + 1)):.3g}",
            fix="for small starts use linear.leading_time",
        )
    final, a0 = s / d, start**depth
    if depth == 1:
        return float(np.log((final - a0) / (final - fraction * final)) / d)
    if depth == 2:
        return float(np.log((final / a0 - 1) / (1 / fraction - 1)) / (2 * s))
    from scipy.special import hyp2f1

    def elapsed(b: float) -> float:
        """∫ db / (b^{D−1} (s − d b^D)), up to a constant."""
        shape = hyp2f1(1, (2 - depth) / depth, 2 / depth, b**depth / final)
        return b ** (2 - depth) / ((2 - depth) * s) * shape

    return float(elapsed((fraction * final) ** (1 / depth)) - elapsed(start))


def leading_time(depth: int, *, s: float, start: float) -> float:
    """The learning time of D ≥ 3 balanced edges from a small b₀ = `start`: b₀^{2−D} / ((D − 2) s).

    This time is spent near the start, and depends neither on d nor on how much is to be learned.
    Each further edge multiplies it by (D − 3)/((D − 2) b₀), with D the new depth: small random
    weights make the learning time exponential in depth (a precise version of Talk, "Training
    speed").

    ```python
    >>> import neuralrace as nr
    >>> nr.linear.leading_time(4, s=1.0, start=0.1)
    49.99999999999999

    ```
    """
    depth = whole_number(
        "the depth", depth, least=3, fix="for one or two edges use linear.chain_time"
    )
    fix = "the formula is for small positive starts of a mode with s > 0"
    s, start = (real_number(n, v, above=0, fix=fix) for n, v in (("s", s), ("start", start)))
    if (2 - depth) * math.log(start) - math.log(s) > math.log(np.finfo(np.float64).max):
        return math.inf
    return float(start ** (2 - depth) / ((depth - 2) * s))


def mode_strengths(
    run: Trajectory, data: Dataset, *, vectors: ArrayLike | None = None
) -> Float[np.ndarray, "T K"]:
    """How much of every mode a run has learned: u_kᵀ M(t) v_k over its value in the best map.

    **Arguments:** `run`, with recorded `weights` or `map`; `data`, the task that it learned;
    `vectors` (inputs, K), input directions v_k to use in place of the singular vectors of Σ^yx,
    such as `world.vectors` of a `tasks.World`. u_k is then the direction of Σ^yx v_k.

    **Returns:** shape (T, K), 1 where a mode is learned; modes with the largest singular value
    first, without those whose singular value is zero.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 1.0])})
    >>> weights = nr.linear.balanced_weights(net, 0.0, scale=1e-4, aligned_to=data)
    >>> run = nr.linear.lambda_balanced(net, weights, data, times=[0, 5, 20])
    >>> nr.linear.mode_strengths(run, data).round(3)
    array([[0.   , 0.   ],
           [0.991, 0.015],
           [1.   , 1.   ]])

    ```
    """
    maps = maps_of(run)
    net: Any = run.net  # linear_task says what it must be
    task = linear_task(net, data)
    if vectors is None:
        _, values, right = np.linalg.svd(task.yx, full_matrices=False)
        directions = right[values > NOISE * values[0]].T
    else:
        form, fix = f"shape ({task.yx.shape[1]}, K)", "directions are columns: transpose the rows"
        directions = real_array("vectors", vectors, wanted=form, fix=fix)
        if directions.ndim != 2 or len(directions) != task.yx.shape[1]:
            raise NeuralRaceError(
                "vectors do not fit the inputs",
                got=f"shape {directions.shape}",
                wanted=form,
                fix=fix,
            )
    reached = task.yx @ directions
    left = reached / np.linalg.norm(reached, axis=0)
    return projected(maps, left, directions) / projected(task.best, left, directions)
