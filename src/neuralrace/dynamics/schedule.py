"""Tasks one after another: sample weights that change at given times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, require
from neuralrace.tolerances import ROUNDING
from neuralrace.types import ArrayLike, Count, Key, Positive, Share

if TYPE_CHECKING:
    from neuralrace.trajectory import Trajectory

ORDERS = ("cycle", "random")
"""The orders of blocks that have a name."""


@final
@dataclass(frozen=True, init=False, eq=False)
class Schedule:
    """Phases of learning, each with its own weights of the samples.

    `nr.train`, `nr.flow` and ensembles of any network take it as `schedule=`. In phase k, from
    `starts[k]` to the next start or the end, the mean ⟨·⟩ over samples is Σ_n weights[k, n] · , so
    that a sample of weight 0 is absent. Loss and penalties that are recorded are those of the phase
    that begins or lasts at that moment; `evaluate={"all": data}` records another loss besides.

    **Arguments:** `starts`, increasing from 0, in the time of the run: for descent learning rate ·
    step (a phase begins at the first step that is not before its start), for Adam and the like
    steps. `weights` of shape (phases, N), non-negative; rows are normalised to sum to one. `names`
    says what the phases are.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [1.0]]})
    >>> easy_first = nr.dynamics.Schedule([0, 5], [[1, 0], [1, 1]])
    >>> net = nr.GDLN(nr.Architecture.chain(1, 1))
    >>> run = nr.flow(net, {"W1": [[0.0]]}, data, times=[0, 4, 5, 6], schedule=easy_first)
    >>> run.loss.round(2)  # that of both samples from t = 5 on
    array([0.5 , 0.  , 0.24, 0.05])

    ```
    """

    starts: Float[np.ndarray, " phases"]
    weights: Float[np.ndarray, "phases N"]
    names: tuple[Any, ...]

    @door
    def __init__(
        self, starts: ArrayLike, weights: ArrayLike, names: Sequence[Any] | None = None
    ) -> None:
        fix = "Schedule(starts=[0, 5], weights=[[1, 1, 0, 0], [1, 1, 1, 1]])"
        begins = np.atleast_1d(real_array("starts", starts, fix=fix))
        rows = np.asarray(real_array("weights", weights, fix=fix))
        require(
            begins.ndim == 1
            and begins[0] == 0
            and bool(np.isfinite(begins).all() and (np.diff(begins) > 0).all()),
            "starts of phases must increase from 0",
            got=np.array2string(begins, threshold=8),
            wanted="increasing finite numbers, the first 0",
            fix=fix,
        )
        require(
            rows.ndim == 2
            and len(rows) == len(begins)
            and bool((np.isfinite(rows) & (rows >= 0)).all() and (rows.sum(axis=1) > 0).all()),
            "weights must have one row per phase, in which some sample counts",
            got=f"an array of shape {rows.shape} for {len(begins)} phases",
            wanted=f"shape ({len(begins)}, N): finite, not negative, no row of zeros",
            fix=fix,
        )
        called = tuple(range(len(begins)) if names is None else names)
        require(
            len(called) == len(begins),
            "names must have one entry per phase",
            got=f"{len(called)} names for {len(begins)} phases",
            wanted="a name for each",
            fix="leave names out to number the phases",
        )
        fields = {"starts": begins, "weights": rows / rows.sum(axis=1, keepdims=True)}
        for name, value in (fields | {"names": called}).items():
            object.__setattr__(self, name, value)

    @classmethod
    @door
    def blocks(
        cls,
        data: Dataset,
        label: str,
        *,
        length: Positive,
        count: Count,
        order: str | Iterable[Any] = "cycle",
        rehearsal: Share = 0.0,
        key: Key = 0,
    ) -> Schedule:
        """The values of a label one after another, in `count` blocks of equal length.

        **Arguments:** `order`, `"cycle"` (the values in the order of their first sample, again and
        again), `"random"` (drawn by `key`, no value twice in a row), or the values themselves,
        which are repeated if there are fewer than `count`; `rehearsal`, the share of the weight
        that goes to all the data at any time. Within a block samples count by their weights in
        `data`.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0]] * 3}, {"y": [[1.0]] * 3}, labels={"task": [1, 1, 2]})
        >>> blocks = nr.dynamics.Schedule.blocks(data, "task", length=5, count=4, rehearsal=0.3)
        >>> blocks.names, blocks.starts, blocks.weights[1]
        ((1, 2, 1, 2), array([ 0.,  5., 10., 15.]), array([0.1, 0.1, 0.8]))

        ```
        """
        data.mask(**{label: np.asarray(data.labels.get(label, ())).tolist()})  # says what is wrong
        values = list(dict.fromkeys(np.asarray(data.labels[label]).tolist()))
        if isinstance(order, str):
            require(
                order in ORDERS,
                f"unknown order {order!r}",
                got=repr(order),
                wanted=f"one of {', '.join(map(repr, ORDERS))}, or values of the label",
                fix="order='cycle'",
            )
            if order == "random" and len(values) > 1:
                rng = generator(key, "drawing the order")
                of = [int(rng.integers(len(values)))]
                while len(of) < count:
                    of.append((of[-1] + int(rng.integers(1, len(values)))) % len(values))
                values = [values[i] for i in of]
        else:
            values = [v.item() if isinstance(v, np.generic) else v for v in order]
            require(
                values,
                "order names no values",
                got="an empty order",
                wanted=f"values of the label {label!r}",
                fix="order='cycle'",
            )
        names = tuple(values[i % len(values)] for i in range(count))
        base = np.asarray(data.probability, float)
        here = {v: data.mask(**{label: v}) * base for v in dict.fromkeys(names)}
        for value, row in here.items():
            require(
                row.sum() > 0,
                f"the samples of {value!r} all have weight 0",
                got=f"sample weights of {label} {value!r}",
                wanted="a sample that counts",
                fix="leave this value out of order",
            )
        rows = [(1 - rehearsal) * here[v] / here[v].sum() + rehearsal * base for v in names]
        return cls(length * np.arange(count), np.array(rows), names)

    @door
    def phase(self, times: ArrayLike) -> Int[np.ndarray, "*times"]:
        """The number of the phase at some times; a start belongs to the phase that begins there.

        ```python
        >>> import neuralrace as nr
        >>> nr.dynamics.Schedule([0, 5], [[1, 0], [0, 1]]).phase([0, 4.9, 5, 9])
        array([0, 0, 1, 1])

        ```
        """
        moments = np.asarray(times, float)
        return np.searchsorted(self.starts * (1 - ROUNDING), moments, side="right") - 1

    @door
    def time_to(self, run: Trajectory, level: Positive) -> Float[np.ndarray, "*members phases"]:
        """How long after the start of each phase the loss of a run first is at most `level`.

        Linear between recorded moments; NaN where the phase ends before. A run that was recorded
        at the start of a phase and begins it with less has 0.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0]] * 2}, {"y": [[1.0], [-1.0]]}, labels={"task": [1, 2]})
        >>> blocks = nr.dynamics.Schedule.blocks(data, "task", length=4, count=3)
        >>> net, times = nr.GDLN(nr.Architecture.chain(1, 1)), np.linspace(0, 12, 121)
        >>> run = nr.flow(net, {"W1": [[0.0]]}, data, times=times, schedule=blocks)
        >>> blocks.time_to(run, 0.05).round(2)  # log √10, then from the other target
        array([1.15, 1.84, 1.83])

        ```
        """
        number, loss = self.phase(run.time), np.asarray(run.loss)
        found = np.full((*loss.shape[:-1], len(self.starts)), np.nan)
        for k, start in enumerate(self.starts):
            here = np.flatnonzero(number == k)
            if not len(here):
                continue
            low = loss[..., here] <= level
            first = low.argmax(axis=-1)
            before = np.maximum(first - 1, 0)
            at = lambda i, of: np.take_along_axis(of, i[..., None], axis=-1)[..., 0]
            l1, l0 = at(first, loss[..., here]), at(before, loss[..., here])
            t1, t0 = run.time[here][first], run.time[here][before]
            share = np.where(first > 0, (l0 - level) / np.where(l0 > l1, l0 - l1, 1.0), 1.0)
            found[..., k] = np.where(low.any(axis=-1), t0 + share * (t1 - t0) - start, np.nan)
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """What a trajectory says about it."""
        return {"starts": self.starts.tolist(), "names": [str(name) for name in self.names]}


def checked_schedule(schedule: Schedule | None, data: Dataset) -> Schedule | None:
    """A schedule that fits the data, or an error."""
    if schedule is None:
        return None
    check_kind("schedule", schedule, Schedule, "nr.dynamics.Schedule.blocks(data, 'context', …)")
    if schedule.weights.shape[1] != data.n_samples:
        raise NeuralRaceError(
            "the schedule has weights for other samples",
            got=f"weights of shape {schedule.weights.shape} for {data.n_samples} samples",
            wanted=f"shape (phases, {data.n_samples})",
            fix="make it from the data that the network is trained on",
        )
    return schedule
