"""Chains: what they see of a task, when they learn it, and where they linger."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float

from neuralrace.analysis import projected
from neuralrace.checks import check_known, real_array
from neuralrace.dataset import Dataset, check_moments, check_unweighed, matched
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import GDLN, Network
from neuralrace.tolerances import FLAT, NOISE
from neuralrace.trajectory import Trajectory, check_single
from neuralrace.types import ArrayLike, Count, Inside, NotNegative, Positive, WeightsLike
from neuralrace.weights import check_finite, check_untied, checked_weights


@final
@dataclass(frozen=True, eq=False)
class LinearTask:
    """A task as an ungated chain sees it: flow depends only on Σ^yx = ⟨y xᵀ⟩ and Σ^x = ⟨x xᵀ⟩.

    `best` is the linear map of least loss (of least norm if inputs are degenerate) and `floor` is
    its loss. Then L(M) = floor + ½ tr (M − best) Σ^x (M − best)ᵀ, which involves no cancellation.
    """

    yx: Float[np.ndarray, "outputs inputs"]
    x: Float[np.ndarray, "inputs inputs"]
    best: Float[np.ndarray, "outputs inputs"]
    floor: float

    @property
    def variance(self) -> float:
        """The mean variance d of an input; for white inputs Σ^x = d I."""
        return float(np.trace(self.x) / len(self.x))

    @property
    def whiteness(self) -> float:
        """How far Σ^x is from d I: the largest eigenvalue of their difference, relative to d."""
        if self.variance == 0:
            return np.inf
        return float(np.abs(np.linalg.eigvalsh(self.x) / self.variance - 1).max())

    def loss(self, maps: ArrayLike) -> np.ndarray | np.floating:
        """The loss of one map (outputs, inputs) or of a stack of them."""
        gap = np.asarray(maps, np.float64) - self.best
        return self.floor + np.einsum("...ij,jk,...ik->...", gap, self.x, gap) / 2


def linear_task(net: GDLN, data: Dataset, *, edges: int | None = None) -> LinearTask:
    """The correlations of a dataset; `net` must be an ungated chain (of `edges` edges)."""
    chain_edges(net, edges)
    full = matched(net.arch, data)
    check_moments(full)
    check_unweighed(data, "the theory of deep linear networks")
    gated = [name for name, gate in full.gates.items() if not np.all(np.asarray(gate) == 1)]
    require(
        not gated,
        "the solutions of linear networks hold without gates",
        got=f"gates on {listed(gated)}",
        wanted="a dataset without gates",
        fix="data.gated({}) removes them; nr.reduce takes gates",
    )
    x = np.asarray(full.x[net.arch.inputs[0]], np.float64)
    y = np.asarray(full.y[net.arch.outputs[0]], np.float64)
    root = np.sqrt(np.asarray(full.probability, np.float64))[:, None]
    best = np.linalg.lstsq(root * x, root * y, rcond=None)[0].T
    floor = float((root**2 * (y - x @ best.T) ** 2).sum() / 2)
    weighted = root**2 * x
    return LinearTask(y.T @ weighted, x.T @ weighted, best, floor)


def chain_edges(net: Network, edges: int | None = None) -> tuple[str, ...]:
    """The edges of a chain from input to output; raises if the graph is not a chain."""
    arch = net.arch
    check_untied(arch, "the theory of deep linear networks")
    chain = len(arch.inputs) == len(arch.outputs) == 1 and arch.path_count() == 1
    found = arch.paths()[0].edges if chain else ()
    require(
        not (not found or (edges is not None and len(found) != edges)),
        f"this holds for a chain of {edges} edges" if edges else "this holds for a chain",
        got=f"{len(arch.edges)} edges, {arch.path_count()} paths",
        wanted="one path from one input to one output" + (f", of {edges} edges" if edges else ""),
        fix="nr.Architecture.chain(inputs, hidden, outputs)",
    )
    return found


def chain_weights(net: GDLN, weights: WeightsLike) -> list[np.ndarray]:
    """The matrices of a chain from input to output, checked, in float64."""
    given = checked_weights(net.arch, weights)
    check_known("the weights", given)
    check_finite(given)
    return [np.asarray(weights[edge], np.float64) for edge in chain_edges(net)]


@final
@dataclass(frozen=True)
class Visit:
    """A stay near a stationary point: its `modes`, when it began and ended, how close it came.

    `distance` is the smallest distance; `loss` is the run's loss at the time `at` of that distance.

    ```python
    >>> from neuralrace.linear import Visit
    >>> Visit(modes=(1,), start=2.0, end=5.5, at=3.0, distance=0.01, loss=0.5).duration
    3.5

    ```
    """

    modes: tuple[int, ...]
    start: float
    end: float
    at: float
    distance: float
    loss: float

    @property
    def duration(self) -> float:
        """How long it stayed."""
        return self.end - self.start


@final
@dataclass(frozen=True)
class Plateau:
    """A time span in which the loss hardly falls; `loss` is the loss where it falls least.

    ```python
    >>> import neuralrace as nr
    >>> run = nr.Trajectory([0, 1, 2, 3], [1.0, 0.4, 0.4, 0.4])
    >>> nr.linear.plateaus(run, least=1.0)
    (Plateau(start=1.0, end=3.0, at=1.0, loss=0.4),)

    ```
    """

    start: float
    end: float
    at: float
    loss: float


@door
def plateaus(
    run: Trajectory, *, least: NotNegative, slope: NotNegative = FLAT
) -> tuple[Plateau, ...]:
    """Plateaus: at least `least` long, the loss falling by less than `slope` · L(0) per unit time.

    They are found from the slope of the loss between recorded times, without reference to saddles;
    `Saddles.visits` says which saddle a run is near.

    ```python
    >>> import neuralrace as nr
    >>> run = nr.Trajectory([0, 1, 2, 3, 4, 5], [1.0, 1.0, 1.0, 0.5, 0.5, 0.1])
    >>> [(p.start, p.end, p.loss) for p in nr.linear.plateaus(run, least=1.0)]
    [(0.0, 2.0, 1.0), (3.0, 4.0, 0.5)]

    ```
    """
    check_single("run", run)
    slopes = np.abs(np.diff(run.loss) / np.diff(run.time)) / run.loss[0]
    flat = np.concatenate([[False], slopes <= slope, [False]])
    starts = np.flatnonzero(flat[1:] & ~flat[:-1])
    ends = np.flatnonzero(~flat[1:] & flat[:-1])
    found = []
    for a, b in zip(starts, ends, strict=True):
        if run.time[b] - run.time[a] >= least:
            at = a + int(slopes[a:b].argmin())
            found.append(
                Plateau(*(float(v) for v in (run.time[a], run.time[b], run.time[at], run.loss[at])))
            )
    return tuple(found)


@door
def maps_of(run: Trajectory) -> Float[np.ndarray, "T outputs inputs"]:
    """The map W_D ⋯ W₁ of a chain over time, from a run that recorded its weights or its map.

    ```python
    >>> import neuralrace as nr
    >>> run = nr.Trajectory([0, 1], [0.5, 0.0], values={"map": [[[0.0]], [[1.0]]]})
    >>> nr.linear.maps_of(run).shape
    (2, 1, 1)

    ```
    """
    check_single("run", run)
    if "map" in run.values:
        return np.asarray(run.values["map"], np.float64)
    if "weights" not in run.values or run.net is None:
        raise NeuralRaceError(
            "the run has not recorded its weights",
            got=f"values {listed(run.values)}",
            wanted="'weights' or 'map'",
            fix="pass record={'weights': True} to nr.train or nr.flow",
        )
    edges = chain_edges(run.net)
    product = np.asarray(run.values["weights"][edges[0]], np.float64)
    for edge in edges[1:]:
        product = np.asarray(run.values["weights"][edge], np.float64) @ product
    return product


@door
def chain_time(
    depth: Count, *, s: Positive, start: Positive, d: Positive = 1.0, fraction: Inside = 0.5
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
    fix = "start smaller, or ask for a larger fraction"
    require(
        depth * math.log(start) < math.log(fraction * s) - math.log(d),
        "the chain does not grow to this fraction",
        got=f"s = {s:g}, d = {d:g}, start = {start:g}, fraction = {fraction:g}",
        wanted="start^depth below fraction · s/d",
        fix=fix,
    )
    require(
        not start < np.finfo(np.float64).tiny ** (1 / (depth + 1)),
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


@door
def leading_time(depth: Count, *, s: Positive, start: Positive) -> float:
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
    require(
        depth > 2,
        "depth is too small for this formula",
        got=f"depth = {depth}",
        wanted="at least 3 edges",
        fix="for one or two edges use linear.chain_time",
    )
    if (2 - depth) * math.log(start) - math.log(s) > math.log(np.finfo(np.float64).max):
        return math.inf
    return float(start ** (2 - depth) / ((depth - 2) * s))


@door
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
        require(
            not (directions.ndim != 2 or len(directions) != task.yx.shape[1]),
            "vectors do not fit the inputs",
            got=f"shape {directions.shape}",
            wanted=form,
            fix=fix,
        )
    reached = task.yx @ directions
    left = reached / np.linalg.norm(reached, axis=0)
    return projected(maps, left, directions) / projected(task.best, left, directions)


@door
def deep_limit(
    t: ArrayLike, *, s: Positive, d: Positive, start: Positive, depth: Positive
) -> np.ndarray | np.floating:
    """The strength of a balanced chain of many edges, D → ∞ with a₀ fixed, by Lambert's W.

    `a = (s/d) / (1 + W[(r₀ − 1) e^{r₀ − 1 − D (s²/d) t}])`, `r₀ = s/(d a₀)` (the talk's limit with
    its rate corrected). It is evaluated through Wright's ω, since e^{r₀} overflows. The limit is
    approached slowly: at D = 100, learning is still 4 % faster than this.

    ```python
    >>> import neuralrace as nr
    >>> nr.linear.deep_limit([0.0, 1.0], s=1.0, d=1.0, start=0.05, depth=100).round(3)
    array([0.05, 1.  ])

    ```
    """
    from scipy.special import wrightomega

    time = real_array("t", t, wanted="a time, or an array of them", fix="for example t=[0.0, 1.0]")
    require(
        start < s / d,
        "the limit of many edges needs a start between zero and the fixed point",
        got=f"s = {s:g}, d = {d:g}, start = {start:g}, depth = {depth:g}",
        wanted="start below s/d",
        fix="for other starts solve the chain of finite depth",
    )
    r0 = s / (d * start)
    argument = np.log(r0 - 1) + r0 - 1 - depth * s * (s / d) * time
    return (s / d) / (1 + np.real(wrightomega(argument)))
