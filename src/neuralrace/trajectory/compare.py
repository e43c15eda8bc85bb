"""How far one trajectory is from another."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.dataset import checked_weight
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.gdln import GDLN
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.text import percent
from neuralrace.tolerances import COARSE, ROUNDING
from neuralrace.trajectory.metadata import flat
from neuralrace.trajectory.run import Trajectory, check_single
from neuralrace.types import ArrayLike, BelowOne, Positive

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

HALF = 16
"""The digits of a digest of data that tell its samples; the others tell its gates."""

ABOUT = "approximate flow"
"""The clock of a run with momentum."""

ERROR = "the initial error √(2 L(0))"
"""The unit of distances between outputs, for the squared loss."""

MOVED = "how far the outputs moved in all"
"""The same for other losses: √⟨‖o(T) − o(0)‖²⟩, o the outputs of the reference."""


@final
@dataclass(frozen=True)
class Comparison(Result):
    """How far one trajectory is from another; see `compare`.

    Fractions of the reference's initial loss, except `shift`, a time, and `outputs`, a fraction of
    its initial error √(2 L(0)), or, for other losses than the squared one, of how far its outputs
    moved (`unit` says which); None where not both are known, on the same samples. `start` and
    `end` are the first and the last time that both cover; `whole` says whether the reference goes
    no further. `notes` say what to keep in mind: an approximate clock, or different data. `shift`
    and `mean_after_shift` are computed when they are first asked for.

    ```python
    >>> import neuralrace as nr
    >>> a = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    >>> print(nr.compare(a, nr.Trajectory([0, 1, 2], [1.0, 0.6, 0.1])))
    max 10 %, mean 7.5 % of the initial loss over t = 0 to 2

    ```
    """

    mean: float
    max: float
    start: float
    end: float
    reference: Trajectory = field(repr=False, compare=False)
    other: Trajectory = field(repr=False, compare=False)
    whole: bool = True
    notes: tuple[str, ...] = ()
    outputs: float | None = None

    @property
    def shift(self) -> float:
        """The delay of the other that makes the mean least; positive: the other is late."""
        return self._shifted[0]

    @property
    def mean_after_shift(self) -> float:
        """The mean difference that remains after the shift."""
        return self._shifted[1]

    @cached_property
    def _shifted(self) -> tuple[float, float]:
        shift, after = _best_shift(self.reference, self.other)
        return shift, min(self.mean, after / float(self.reference.loss[0]))

    @property
    def unit(self) -> str:
        """What `outputs` is a fraction of, in words."""
        return output_unit(self.reference)

    def frame(self) -> pandas.DataFrame:
        """One row.

        `mean` and `max`, the mean and the largest difference of the losses; `outputs`, that of the
        outputs, NaN where not known; `start` and `end`, the times that both cover; `whole`, whether
        the reference goes no further; `shift`, the delay of the other that makes the mean least;
        `mean_after_shift`, what then remains.
        """
        names = ("mean", "max", "outputs", "start", "end", "whole", "shift", "mean_after_shift")
        row = {name: getattr(self, name) for name in names}
        row["outputs"] = np.nan if self.outputs is None else self.outputs
        return framed(names, [row], dict.fromkeys((*names[:3], names[-1]), SHARE))

    def sentences(self) -> tuple[Sentence, ...]:
        """The differences, over which time, and what to keep in mind."""
        text = f"max {percent(self.max)}, mean {percent(self.mean)} of the initial loss"
        text += f" over t = {self.start:.4g} to {self.end:.4g}"
        text += "" if self.whole else ", where the other ends"
        if self.outputs is not None:
            text += f"; outputs {percent(self.outputs)}"
            text += " of how far they moved" if self.unit == MOVED else ""
        return (Sentence("apart", "; ".join([text, *self.notes])),)

    def _printed(self) -> None:
        """Nothing of the table: the sentence has its numbers."""

    @door
    def plot(self, *, log: bool = False, ax: Axes | None = None) -> Axes:
        """Draw both losses: the reference solid, the other dashed."""
        from neuralrace.plot import draw_curves

        runs = {"reference": self.reference, "other": self.other}
        return draw_curves(
            {name: run.time for name, run in runs.items()},
            {name: run.loss for name, run in runs.items()},
            kind={"reference": "simulation", "other": "theory"},
            log=log,
            ax=ax,
        )


@door
def momentum_error(learning_rate: Positive, momentum: BelowOne, growth_rate: Positive) -> float:
    """How far off time is under momentum: the rate of small weights over s, less one.

    The time of heavy-ball momentum μ is η · step/(1 − μ). Small weights that flow would grow as
    e^{st} grow by a factor z in every step, the larger root of

        z² − (1 + μ + ηs) z + μ = 0 ,

    which is the rate (1 − μ) log z/η in that time. It is below s, by about η(1 + μ)s/(2(1 − μ)²) of
    it where that is small. This is heavy-ball momentum; Nesterov's is off by somewhat less.

    **Arguments:** `learning_rate` η, `momentum` μ from 0 to below 1, and `growth_rate` s.

    ```python
    >>> from neuralrace.trajectory import momentum_error
    >>> round(momentum_error(0.01, 0.9, growth_rate=1.0), 3)
    -0.373

    ```
    """
    growth = learning_rate * growth_rate
    lost = 1 - momentum - growth
    root = np.sqrt(lost**2 + 4 * growth)
    # z − 1 solves (z − 1)² + lost (z − 1) − growth = 0; neither form subtracts like from like
    above_one = 2 * growth / (lost + root) if lost > 0 else (root - lost) / 2
    return float((1 - momentum) * np.log1p(above_one) / growth - 1)


@door
def compare(
    reference: Trajectory,
    other: Trajectory,
    *,
    sample_weight: ArrayLike | None = None,
    growth_rate: Positive | None = None,
) -> Comparison:
    """How far `other` is from `reference`, over the time that both cover.

    `mean` is (1/T) ∫ |L_a − L_b| dt / L_a(0) by the trapezoid rule, a the reference; `max` the
    largest such difference. The two are compared at the moments of the one that has fewer of them,
    and the other is interpolated, so that sparse records do not count as a difference; `notes` say
    where they are too sparse to judge by. A mean is over all of the time: the longer both rest
    after learning, the smaller it is, and `max` does not change; `print` shows both, and the span.
    `shift` is the delay of `other`
    that makes the mean least (positive: `other` is late) and `mean_after_shift` what then remains,
    over the times that both still cover. `outputs`, where both are known on the same samples, is
    (1/T) ∫ √(⟨‖o_a − o_b‖²⟩ / 2 L_a(0)) dt: a root mean square over samples, as a part of the
    reference's initial root mean square error √(2 L_a(0)). Other losses than the squared one are no
    distances: the unit is then √⟨‖o_a(T) − o_a(0)‖²⟩, how far the reference's outputs moved, and
    `outputs` is None where they did not. The mean ⟨·⟩ uses the sample weights of
    the reference, or of `other` where the reference has none, unless `sample_weight` is given.

    Runs whose times are not the same kind of time (see `Trajectory.clock`), or that were trained
    on different losses, cannot be compared. The time of a run with momentum is approximate:
    `growth_rate`, that of small weights in the flow, lets the notes say by how much.

    ```python
    >>> import neuralrace as nr
    >>> a = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    >>> nr.compare(a, a).mean
    0.0

    ```
    """
    for name, run in (("reference", reference), ("other", other)):
        check_single(name, run)
    notes = _checked_making(reference, other, growth_rate)
    weight = _checked_samples(reference, other, sample_weight)
    start = max(reference.time[0], other.time[0])
    end = min(reference.time[-1], other.time[-1])
    require(
        end > start,
        "the two trajectories have no time in common",
        got=f"[{reference.time[0]:g}, {reference.time[-1]:g}] and "
        f"[{other.time[0]:g}, {other.time[-1]:g}]",
        wanted="times that overlap",
        fix="time is learning_rate · step in every trajectory; solve over the same span",
    )
    initial = float(reference.loss[0])
    require(
        initial > 0,
        "the reference starts without loss",
        got=initial,
        wanted="a positive initial loss, the unit of every difference",
        fix="compare runs that have something to learn",
    )
    grid, gap = _loss_gap(reference, other, 0.0)
    fall = max(largest_fall(np.interp(grid, run.time, run.loss)) for run in (reference, other))
    if fall > COARSE:
        notes += (
            f"the loss falls by {percent(fall)} between two records: differences there are not "
            "seen",
        )
    return Comparison(
        mean=float(np.trapezoid(gap, grid) / (end - start)) / initial,
        max=float(gap.max()) / initial,
        start=float(start),
        end=float(end),
        whole=bool(end >= reference.time[-1] * (1 - ROUNDING)),
        notes=notes,
        outputs=_outputs_apart(reference, other, weight),
        reference=reference,
        other=other,
    )


def _outputs_apart(a: Trajectory, b: Trajectory, weight: np.ndarray | None) -> float | None:
    """How far the outputs are apart, or None where not both are known, on the same samples."""
    gap = _output_gap(a, b, weight)
    size = None if gap is None else output_size(a, weight)
    return gap / size if gap is not None and size else None


def output_unit(run: Trajectory) -> str:
    """What distances between outputs are measured in, in words."""
    return ERROR if run.settings.get("loss", "squared") == "squared" else MOVED


def output_size(run: Trajectory, weight: np.ndarray | None) -> float:
    """The unit of distances from the outputs of a run, which must be known unless it is ERROR."""
    if output_unit(run) == ERROR:
        return float(np.sqrt(2 * run.loss[0]))
    outputs = run.outputs
    assert outputs is not None
    moved = sum(((o[-1] - o[0]) ** 2).sum(axis=-1) for o in flat(outputs).values())
    return float(np.sqrt(np.average(moved, weights=weight)))


def _checked_making(
    reference: Trajectory, other: Trajectory, growth_rate: float | None
) -> tuple[str, ...]:
    """What to say of how the two were made; an error where they cannot be compared."""
    clocks = (reference.clock, other.clock)
    if ("steps" in clocks) and clocks[0] != clocks[1]:
        raise NeuralRaceError(
            "the two trajectories have different clocks",
            got=f"the reference's time is {clocks[0]!r}, the other's {clocks[1]!r}",
            wanted="times of one kind",
            fix=_without_flow(reference if clocks[0] == "steps" else other),
        )
    losses = [run.settings.get("loss", "squared") for run in (reference, other)]
    require(
        losses[0] == losses[1],
        "the two trajectories have different losses",
        got=f"{losses[0]!r} and {losses[1]!r}",
        wanted="runs trained on one loss",
        fix="train both on the same loss, or compare their outputs yourself",
    )
    gated = isinstance(reference.net, GDLN) and isinstance(other.net, GDLN)
    about = [_about(run, growth_rate) for run in (reference, other) if run.clock == ABOUT]
    notes = (
        dict.fromkeys(about, True)
        | {
            "trained on different data": _different_data(reference, other),
            "with different gates": gated and _different_gates(reference, other),
        }
        | {
            f"with different {name.replace('_', ' ')}": _differ(name, reference, other)
            for name in ("weight_decay", "rates")
        }
    )
    return tuple(note for note, applies in notes.items() if applies)


def _differ(setting: str, a: Trajectory, b: Trajectory) -> bool:
    """Whether two runs differ in what moves the weights besides the loss."""
    return (a.settings.get(setting) or 0) != (b.settings.get(setting) or 0)


def _without_flow(run: Trajectory) -> str:
    """What to do where the time of a run is only its number of steps."""
    made = run.settings.get("transformation")
    what = f"this optimizer ({made})" if made else "an optimizer other than descent and momentum"
    return (
        f"{what} does not follow the gradient flow of the loss: Adam scales every entry by itself. "
        "To compare with theory, train with learning_rate=… or optax.sgd (with weight_decay=… for "
        "both), or solve the race with the same optimizer; of an ensemble over rates pick one, "
        "run.sel(learning_rate=…)"
    )


def _about(run: Trajectory, growth_rate: float | None) -> str:
    """By how much the time of a run with momentum is off."""
    said = "time is approximate"
    rate, mu = (run.settings.get(name) for name in ("learning_rate", "momentum"))
    if not isinstance(rate, float) or not isinstance(mu, float) or not 0 <= mu < 1 or rate <= 0:
        return said
    if growth_rate is None:
        unit = rate * (1 + mu) / (2 * (1 - mu) ** 2)
        return (
            f"{said}: with momentum {mu:g} at rate {rate:g}, small weights that should grow at "
            f"rate s grow by about {100 * unit:.4g} · s % more slowly, where that is small "
            "(growth_rate=s says how much)"
        )
    slower = -momentum_error(rate, mu, growth_rate)
    return (
        f"{said}: with momentum {mu:g} at rate {rate:g}, small weights that should grow at rate "
        f"{growth_rate:g} grow {100 * slower:.2g} % more slowly"
    )


def _checked_samples(a: Trajectory, b: Trajectory, given: Any) -> np.ndarray | None:
    """The weights of the samples on which outputs are compared, None if all count equally."""
    counts = [count for run in (a, b) if (count := _samples(run)) is not None]
    require(
        len(set(counts)) <= 1 or not _different_data(a, b),
        "the two trajectories were made on different numbers of samples",
        got=" and ".join(map(str, counts)),
        wanted="runs on the same samples",
        fix="train both on the same data",
    )
    weights = [w for w in (given, a.sample_weight, b.sample_weight) if w is not None]
    if not weights:
        return None
    weight = np.asarray(checked_weight(weights[0]))
    if given is not None and len(counts) == 2 and {len(weight)} != set(counts):
        raise NeuralRaceError(
            "the sample weights are not of these samples",
            got=f"{len(weight)} weights",
            wanted=f"one for each of the {counts[0]} samples whose outputs were recorded",
            fix="pass data.sample_weight of the data that both runs were made on",
        )
    return weight


def _samples(run: Trajectory) -> int | None:
    """The number of samples, where the trajectory knows it."""
    recorded = flat(run.values.get("outputs", {}))
    if recorded:
        return next(iter(recorded.values())).shape[1]
    return None if run.sample_weight is None else len(run.sample_weight)


def _different_data(a: Trajectory, b: Trajectory) -> bool:
    """Whether both know the digest of their data, and the samples differ.

    The first half of a digest tells the samples, the second the gates if there are any.
    """
    digests = [run.settings.get("data") for run in (a, b)]
    halves = [d[:HALF] if isinstance(d, str) else d for d in digests]
    return None not in halves and halves[0] != halves[1]


def _different_gates(a: Trajectory, b: Trajectory) -> bool:
    """Whether two runs on the same samples had different gates."""
    digests = [run.settings.get("data") for run in (a, b)]
    return None not in digests and digests[0] != digests[1] and not _different_data(a, b)


def _loss_gap(a: Trajectory, b: Trajectory, delay: float) -> tuple[np.ndarray, np.ndarray]:
    """|L_a(t) − L_b(t + delay)| at the moments of `common_times`."""
    b_time = b.time - delay
    grid = common_times(a.time, b_time)
    return grid, np.abs(np.interp(grid, a.time, a.loss) - np.interp(grid, b_time, b.loss))


def common_times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The span that both cover, at the moments of the one that has fewer of them in it.

    Between records that lie far apart a curve is not known, and interpolating it would count as a
    difference from a curve that is.
    """
    start, end = max(a[0], b[0]), min(a[-1], b[-1])
    inside = [time[(time >= start) & (time <= end)] for time in (a, b)]
    return np.unique(np.concatenate([[start], min(inside, key=len), [end]]))


def largest_fall(loss: np.ndarray) -> float:
    """The largest fall of a loss from one record to the next, as a part of the initial loss."""
    return float(-np.diff(loss).min(initial=0.0) / loss[0]) if loss[0] > 0 else 0.0


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
        mean, bounds=(low, high), method="bounded", options={"xatol": ROUNDING * span}
    )
    candidates = [(mean(0.0), 0.0), (mean(delays[best]), delays[best]), (found.fun, found.x)]
    value, delay = min(candidates, key=lambda pair: pair[0])
    return float(delay), float(value)


GRID_PIECE = 2**22
"""Numbers of outputs that are held at once, to bound the memory."""


def _output_gap(a: Trajectory, b: Trajectory, weight: np.ndarray | None) -> float | None:
    """The time average of the root mean square distance of the outputs, if both are known."""
    mine, others = a.outputs, b.outputs
    if mine is None or others is None:
        return None
    ours, theirs = flat(mine), flat(others)
    if {k: v.shape[1:] for k, v in ours.items()} != {k: v.shape[1:] for k, v in theirs.items()}:
        return None
    samples = next(iter(ours.values())).shape[1]
    weight = np.full(samples, 1 / samples) if weight is None else weight
    if len(weight) != samples:
        return None
    grid, _ = _loss_gap(a, b, 0.0)
    square = np.zeros(len(grid))
    rows = max(1, GRID_PIECE // sum(v[0].size for v in ours.values()))
    for low in range(0, len(grid), rows):
        part = slice(low, low + rows)
        for node in ours:
            gap = interpolated(grid[part], a.time, ours[node])
            gap = gap - interpolated(grid[part], b.time, theirs[node])
            square[part] += (gap**2).sum(-1) @ weight
    return float(np.trapezoid(np.sqrt(square), grid) / (grid[-1] - grid[0]))


def interpolated(grid: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of shape (T, …) linearly interpolated to the grid; of equal times the last counts."""
    values = np.asarray(values, np.float64)
    right = np.clip(np.searchsorted(time, grid, side="right"), 1, len(time) - 1)
    span = time[right] - time[right - 1]
    share = np.where(span > 0, (grid - time[right - 1]) / np.where(span > 0, span, 1.0), 1.0)
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return values[right - 1] * (1 - share) + values[right] * share
