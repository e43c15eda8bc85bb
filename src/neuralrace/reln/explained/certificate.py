"""How closely a gated network follows a ReLU network: MHS Definition 3.1, measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.reln.observed.evidence import SIMILARITY
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.text import percent
from neuralrace.tolerances import EXACT
from neuralrace.trajectory import Comparison, Trajectory, compare
from neuralrace.trajectory.compare import (
    ERROR,
    common_times,
    interpolated,
    output_size,
    output_unit,
)
from neuralrace.types import NotNegative

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

COLUMNS = ("quantity", "node", "mean", "max", "seed_mean", "seed_max", "per_seed")
"""The columns of `Certificate.frame`."""


@final
@dataclass(frozen=True)
class Certificate(Result):
    """How far a gated network is from a ReLU network, on every sample at every time; see `certify`.

    On T moments and N samples: `outputs` `(T, N)` is
    ‖o_ReLU − o_GDLN‖ / √(2 L(0)), with L(0) the first recorded loss of the ReLU network;
    `similarity[layer]` `(T,)` the distance of the two matrices of hidden similarity, empty where
    not both recorded them; `loss` the `Comparison` of the losses. `floor` is the certificate of
    another seed of the ReLU network, or `None`.

    √(2 L(0)) = √⟨‖y − o_ReLU(0)‖²⟩ is the root mean square of the initial errors, by the sample
    weights of the training: that of the targets where the network starts from nearly nothing.
    Where the run was trained on another loss than the squared one, the unit is how far its outputs
    moved instead, √⟨‖o_ReLU(T) − o_ReLU(0)‖²⟩; `unit` says which.
    Means over samples use the `sample_weight` of the run; where it is None, all count the same.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> run = nr.Trajectory([0, 1], [0.5, 0.0], values={"outputs": {"y": np.zeros((2, 4, 1))}})
    >>> found = nr.reln.certify(run, run)
    >>> found.holds(), found.outputs.shape
    (True, (2, 4))

    ```
    """

    time: Float[np.ndarray, " T"]
    outputs: Float[np.ndarray, "T N"]
    similarity: dict[str, np.ndarray]
    loss: Comparison
    floor: Certificate | None = None
    sample_weight: np.ndarray | None = None
    unit: str = ERROR

    @property
    def outputs_over_time(self) -> Float[np.ndarray, " T"]:
        """The root mean square of `outputs` over samples, by their weights."""
        return np.sqrt(np.average(self.outputs**2, axis=1, weights=self.sample_weight))

    @property
    def outputs_mean(self) -> float:
        """The mean over time of `outputs_over_time`: the `outputs` of `nr.compare`."""
        return self._mean(self.outputs_over_time)

    @property
    def outputs_max(self) -> float:
        """The largest discrepancy of all samples and times."""
        return float(self.outputs.max())

    @property
    def worst(self) -> tuple[int, float]:
        """The sample (counted from 0) and the time of the largest discrepancy."""
        k, n = np.unravel_index(self.outputs.argmax(), self.outputs.shape)
        return int(n), float(self.time[k])

    @property
    def similarity_mean(self) -> dict[str, float]:
        """The mean over time of the distance in similarity, by layer."""
        return {layer: self._mean(gap) for layer, gap in self.similarity.items()}

    @property
    def times_floor(self) -> float | None:
        """How many times further than another seed the gated network is, by the mean loss gap."""
        if self.floor is None or self.floor.loss.mean == 0:
            return None
        return self.loss.mean / self.floor.loss.mean

    @property
    def times_floor_outputs(self) -> float | None:
        """How many times further than another seed the gated network is, by the mean outputs."""
        if self.floor is None or self.floor.outputs_mean == 0:
            return None
        return self.outputs_mean / self.floor.outputs_mean

    @door
    def holds(self, tolerance: NotNegative = EXACT) -> bool:
        """Whether Definition 3.1 holds to this tolerance: no output on any sample at any time is
        further away, as a part of the initial error √(2 L(0))."""
        return self.loss.whole and self.outputs_max <= tolerance

    @door
    def plot(self, *, log: bool = False, ax: Axes | None = None) -> Axes:
        """Draw the discrepancy of the outputs over time, next to that of another seed."""
        from neuralrace.plot import draw_curves

        curves = {"gated network": self.outputs_over_time}
        times = {"gated network": self.time}
        if self.floor is not None:
            curves["another seed"] = self.floor.outputs_over_time
            times["another seed"] = self.floor.time
        kind = {"gated network": "theory", "another seed": "relu"}
        ylabel = "distance of the outputs / " + ("√(2 L(0))" if self.unit == ERROR else "moved")
        return draw_curves(times, curves, kind=kind, log=log, ylabel=ylabel, ax=ax)

    def frame(self) -> pandas.DataFrame:
        """One row per quantity that was compared.

        `quantity`, `"outputs"`, `"loss"` or `"similarity"`; `node`, the hidden node of a
        similarity; `mean` over time and `max`, the largest at any time, of outputs on any sample;
        `seed_mean` and `seed_max`, the same for another seed; `per_seed`, the ratio of the means.
        NaN where not known.
        """
        mine, seed = self._rows(), {} if self.floor is None else self.floor._rows()
        rows = []
        for what, (mean, largest) in mine.items():
            other, most = seed.get(what, (np.nan, np.nan))
            ratio = mean / other if other else np.nan
            values = (*what, mean, largest, other, most, ratio)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        return framed(COLUMNS, rows, dict.fromkeys(COLUMNS[2:-1], SHARE))

    def _rows(self) -> dict[tuple[str, str], tuple[float, float]]:
        """The mean and the largest distance of every quantity, by quantity and node."""
        similar = {
            ("similarity", layer): (self._mean(gap), float(gap.max()))
            for layer, gap in self.similarity.items()
        }
        return {
            ("outputs", ""): (self.outputs_mean, self.outputs_max),
            ("loss", ""): (self.loss.mean, self.loss.max),
            **similar,
        }

    def sentences(self) -> tuple[Sentence, ...]:
        """How far the outputs are apart and how far those of another seed; what was compared."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        sample, time = self.worst
        seeds = (self.times_floor_outputs, self.times_floor)
        outputs, loss = (
            "" if ratio is None else f" ({ratio:.3g} times as far as another seed)"
            for ratio in seeds
        )
        until = "" if self.loss.whole else f" up to t = {self.loss.end:g}, where one of them ends"
        alone = "; no other seed was given to compare with" if self.floor is None else ""
        yield Sentence(
            "outputs",
            f"The gated network differs from the ReLU network by {percent(self.outputs_mean)} in "
            f"the outputs{outputs} and {percent(self.loss.mean)} in the loss{loss}, on average "
            f"over time{until}{alone}.",
        )
        text = f"The outputs are furthest apart, by {percent(self.outputs_max)}, on sample "
        yield Sentence("worst", f"{text}{sample + 1} at t = {time:.4g}.")
        yield Sentence("units", f"Outputs: of {self.unit}; loss: of the initial loss.")
        if not self.similarity:
            yield Sentence("similarity", "The hidden similarity was not compared.")

    def _mean(self, values: np.ndarray) -> float:
        return float(np.trapezoid(values, self.time) / (self.time[-1] - self.time[0]))


@door
def certify(
    run: Trajectory, found_run: Trajectory, *, floor: Trajectory | None = None
) -> Certificate:
    """How nearly a gated network is the ReLN of a ReLU network (MHS Definition 3.1).

    A ReLN gives the outputs of the ReLU network on all samples at all times. How near a candidate
    comes is measured at the moments of the one that recorded fewer, the other interpolated:

    - outputs: ‖o_ReLU(x_n, t) − o_GDLN(x_n, t)‖ / √(2 L(0)), for every sample n and time t, in
      units of the initial root mean square error of `run`, or, for other losses than the squared
      one, of how far its outputs moved;
    - loss: as `nr.compare` has it, `run` the reference;
    - hidden similarity, by layer: ‖K/‖K‖ − K'/‖K'‖‖ / √2 with K = H Hᵀ, H the hidden values on
      all samples: 0 for equal structure, 1 for none in common. It does not depend on the width
      or on the scale.

    A second seed of the ReLU network is as far away as nothing but the random start makes it: the
    floor below which no candidate with weights of its own can be told from the network itself.

    **Arguments:** `run` of the ReLU network, `found_run` of the gated one, `floor` of the ReLU
    network from another seed, all on the same samples, recorded with
    `record=nr.reln.evidence(net, data)`; `record={"outputs": True}` leaves out the similarity.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(1.2), nr.ReLUNetwork((3, 64, 1))
    >>> arch, gated = nr.tasks.linear_pathways(data, total=64)
    >>> def trained(net, data, seed):
    ...     weights = net.init(jax.random.key(seed), scale=1e-3)
    ...     return nr.train(net, weights, data, learning_rate=0.1, steps=400, record_every=5,
    ...                     record=nr.reln.evidence(net, data))
    >>> found = nr.reln.certify(trained(relu, data, 0), trained(nr.GDLN(arch), gated, 1))
    >>> found.holds(), found.loss.mean < 0.05  # with floor=trained(relu, data, 2), both figures
    (False, True)

    ```
    """
    certificate = _against(run, found_run, "found_run")
    if floor is None:
        return certificate
    return replace(certificate, floor=_against(run, floor, "floor"))


def _against(run: Trajectory, other: Trajectory, name: str) -> Certificate:
    """The discrepancies between two runs, without a floor."""
    loss = compare(run, other)  # checks that both are single runs with times in common
    mine, theirs = _outputs(run, "run"), _outputs(other, name)
    if {v: o.shape[1:] for v, o in mine.items()} != {v: o.shape[1:] for v, o in theirs.items()}:
        raise NeuralRaceError(
            f"run and {name} do not have the same outputs on the same samples",
            got=", ".join(f"{v}: {o.shape[1:]}" for v, o in theirs.items()),
            wanted=", ".join(f"{v}: {o.shape[1:]}" for v, o in mine.items()),
            fix="train both on one task, the same samples in the same order, uncompressed",
        )
    grid = common_times(run.time, other.time)
    square = sum(
        (
            (interpolated(grid, run.time, mine[v]) - interpolated(grid, other.time, theirs[v])) ** 2
        ).sum(axis=-1)
        for v in mine
    )
    ours, others = run.values.get(SIMILARITY, {}), other.values.get(SIMILARITY, {})
    similarity = {}
    if ours.keys() == others.keys():
        for layer, kernel in ours.items():
            a, b = (
                interpolated(grid, run.time, kernel),
                interpolated(grid, other.time, others[layer]),
            )
            similarity[layer] = np.linalg.norm(_unit(a) - _unit(b), axis=(1, 2)) / np.sqrt(2)
    return Certificate(
        grid,
        np.sqrt(square) / _size_of(run),
        similarity,
        loss,
        sample_weight=run.sample_weight,
        unit=output_unit(run),
    )


def _size_of(run: Trajectory) -> float:
    """The unit of distances between outputs."""
    size = output_size(run, run.sample_weight)
    if not size > 0:
        raise NeuralRaceError(
            "the outputs of run did not move",
            got=f"the same outputs at t = {run.time[0]:g} and t = {run.time[-1]:g}",
            wanted="a run that learned something, the unit of every distance",
            fix="certify a run from its start to its end",
        )
    return size


def _outputs(run: Trajectory, name: str) -> dict[str, np.ndarray]:
    outputs = run.outputs
    if outputs is None:
        raise NeuralRaceError(
            f"{name} did not record its outputs",
            got=f"records of {listed(run.values)}",
            wanted="'outputs', and 'similarity' for the hidden structure",
            fix="train with record=nr.reln.evidence(net, data), or record={'outputs': True}",
        )
    return outputs


def _unit(kernels: np.ndarray) -> np.ndarray:
    """Matrices `(T, N, N)` divided by their norms; a matrix of zeros stays one."""
    norm = np.linalg.norm(kernels, axis=(1, 2), keepdims=True)
    return np.divide(kernels, norm, out=np.zeros_like(kernels), where=norm > 0)
