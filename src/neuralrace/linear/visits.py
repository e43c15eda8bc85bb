"""Where a run lingers: the map over time, plateaus of the loss, stays near stationary points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_number
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.linear.chain import chain_edges
from neuralrace.trajectory import Trajectory, check_single


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


def plateaus(run: Trajectory, *, least: float, slope: float = 1e-3) -> tuple[Plateau, ...]:
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
    _check_run(run)
    least = real_number("least", least, least=0, fix="the shortest time that counts as a plateau")
    slope = real_number("slope", slope, least=0, fix="slope=1e-3 of the initial loss per time")
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


def maps_of(run: Trajectory) -> Float[np.ndarray, "T outputs inputs"]:
    """The map W_D ⋯ W₁ of a chain over time, from a run that recorded its weights or its map.

    ```python
    >>> import neuralrace as nr
    >>> run = nr.Trajectory([0, 1], [0.5, 0.0], values={"map": [[[0.0]], [[1.0]]]})
    >>> nr.linear.maps_of(run).shape
    (2, 1, 1)

    ```
    """
    _check_run(run)
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


def _check_run(run: Trajectory) -> None:
    made_by = "what nr.train, nr.flow or nr.linear.lambda_balanced returned"
    check_kind("run", run, Trajectory, made_by)
    check_single("run", run)
