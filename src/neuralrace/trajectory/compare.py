"""How far one trajectory is from another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from neuralrace.dataset import checked_weight
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.trajectory.names import flat
from neuralrace.trajectory.run import Trajectory


@final
@dataclass(frozen=True)
class Comparison:
    """How far one trajectory is from another; see `compare`.

    Fractions of the reference's initial loss, except `shift`, a time, and `outputs`, a fraction of
    its initial error √(2 L(0)), or `None` where not both recorded their outputs. `end` is the last
    time that both cover, and `whole` whether the reference goes no further.

    ```python
    >>> import neuralrace as nr
    >>> a = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    >>> str(nr.compare(a, nr.Trajectory([0, 1, 2], [1.0, 0.6, 0.0])))
    'mean 5.00 %, max 10.00 % of the initial loss'

    ```
    """

    mean: float
    max: float
    shift: float
    mean_after_shift: float
    outputs: float | None
    end: float
    whole: bool = True

    def __str__(self) -> str:
        text = f"mean {self.mean:.2%}, max {self.max:.2%} of the initial loss"
        text += "" if self.whole else f", up to t = {self.end:g} alone"
        if self.outputs is not None:
            text += f"; outputs {self.outputs:.2%}"
        return text.replace("%", " %")


def compare(reference: Any, other: Any, *, sample_weight: Any = None) -> Comparison:
    """How far `other` is from `reference`, over the time that both cover.

    `mean` is (1/T) ∫ |L_a − L_b| dt / L_a(0) by the trapezoid rule on the merged grid of times,
    a the reference; `max` the largest such difference. `shift` is the delay of `other` that makes
    the mean least (positive: `other` is late) and `mean_after_shift` what then remains, over the
    times that both still cover. `outputs`, where both recorded them on the same samples, is
    (1/T) ∫ √(⟨‖o_a − o_b‖²⟩ / 2 L_a(0)) dt: a root mean square over samples, as a part of the
    reference's initial root mean square error √(2 L_a(0)). A trajectory does not know the weights
    of its samples: on weighted data pass `sample_weight=data.sample_weight`, or all count alike.

    ```python
    >>> import neuralrace as nr
    >>> a = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    >>> nr.compare(a, a).mean
    0.0

    ```
    """
    for name, run in (("reference", reference), ("other", other)):
        check_kind(name, run, Trajectory, "compare what train, flow or race.solve returned")
        if run.axes:
            raise NeuralRaceError(
                "compare takes single runs",
                got=f"an ensemble over {listed(run.axes)}",
                wanted="two trajectories without axes",
                fix="pick a member with run.isel(seed=0)",
            )
    start = max(reference.time[0], other.time[0])
    end = min(reference.time[-1], other.time[-1])
    if end <= start:
        raise NeuralRaceError(
            "the two trajectories have no time in common",
            got=f"[{reference.time[0]:g}, {reference.time[-1]:g}] and "
            f"[{other.time[0]:g}, {other.time[-1]:g}]",
            wanted="times that overlap",
            fix="time is learning_rate · step in every trajectory; solve over the same span",
        )
    initial = float(reference.loss[0])
    if not initial > 0:
        raise NeuralRaceError(
            "the reference starts without loss",
            got=initial,
            wanted="a positive initial loss, the unit of every difference",
            fix="compare runs that have something to learn",
        )
    grid, gap = _loss_gap(reference, other, 0.0)
    mean = float(np.trapezoid(gap, grid) / (end - start)) / initial
    shift, after = _best_shift(reference, other)
    outputs = _output_gap(reference, other, grid, sample_weight)
    return Comparison(
        mean=mean,
        max=float(gap.max()) / initial,
        shift=shift,
        mean_after_shift=min(mean, after / initial),
        outputs=None if outputs is None else outputs / np.sqrt(2 * initial),
        end=float(end),
        whole=bool(end >= reference.time[-1] * (1 - 1e-9)),
    )


def _loss_gap(a: Trajectory, b: Trajectory, delay: float) -> tuple[np.ndarray, np.ndarray]:
    """|L_a(t) − L_b(t + delay)| on the merged grid of times that both cover."""
    b_time = b.time - delay
    start, end = max(a.time[0], b_time[0]), min(a.time[-1], b_time[-1])
    grid = np.unique(np.clip(np.concatenate([a.time, b_time]), start, end))
    return grid, np.abs(np.interp(grid, a.time, a.loss) - np.interp(grid, b_time, b.loss))


def _best_shift(a: Trajectory, b: Trajectory) -> tuple[float, float]:
    """The delay of b with the least mean difference, among those that keep half of the time."""
    from scipy.optimize import minimize_scalar

    span = min(a.time[-1], b.time[-1]) - max(a.time[0], b.time[0])

    def mean(delay: float) -> float:
        grid, gap = _loss_gap(a, b, float(delay))
        return float(np.trapezoid(gap, grid) / (grid[-1] - grid[0]))

    delays = np.linspace(-span / 2, span / 2, 201)
    best = int(np.argmin([mean(d) for d in delays]))
    low, high = delays[max(best - 1, 0)], delays[min(best + 1, 200)]
    found: Any = minimize_scalar(
        mean, bounds=(low, high), method="bounded", options={"xatol": 1e-9 * span}
    )
    candidates = [(mean(0.0), 0.0), (mean(delays[best]), delays[best]), (found.fun, found.x)]
    value, delay = min(candidates, key=lambda pair: pair[0])
    return float(delay), float(value)


def _output_gap(a: Trajectory, b: Trajectory, grid: np.ndarray, weight: Any) -> float | None:
    """The time average of the root mean square distance of the outputs, if both have them."""
    if "outputs" not in a.values or "outputs" not in b.values:
        return None
    ours, theirs = (flat(run.values["outputs"]) for run in (a, b))
    if {k: v.shape[1:] for k, v in ours.items()} != {k: v.shape[1:] for k, v in theirs.items()}:
        return None
    samples = next(iter(ours.values())).shape[1]
    weight = checked_weight(np.ones(samples) if weight is None else weight)
    if len(weight) != samples:
        raise NeuralRaceError(
            "the sample weights are not of these samples",
            got=f"{len(weight)} weights",
            wanted=f"one for each of the {samples} samples whose outputs were recorded",
            fix="pass data.sample_weight of the data that both runs were made on",
        )
    square = np.zeros(len(grid))
    for node in ours:
        on_grid = [_interpolated(grid, run.time, v[node]) for run, v in ((a, ours), (b, theirs))]
        square += ((on_grid[0] - on_grid[1]) ** 2).sum(-1) @ np.asarray(weight)
    return float(np.trapezoid(np.sqrt(square), grid) / (grid[-1] - grid[0]))


def _interpolated(grid: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of shape (T, …) linearly interpolated to the grid."""
    right = np.clip(np.searchsorted(time, grid), 1, len(time) - 1)
    share = (grid - time[right - 1]) / (time[right] - time[right - 1])
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return values[right - 1] * (1 - share) + values[right] * share
