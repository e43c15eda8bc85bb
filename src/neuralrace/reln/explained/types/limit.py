"""The wide limit of a ReLU network with one hidden layer, from its task, width and start alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import jax
import numpy as np
from jaxtyping import Float

from neuralrace.dataset import Dataset
from neuralrace.reln.explained.fixed_points import Samples, side_by_side
from neuralrace.reln.explained.types.crowd import Crowd, Neurons
from neuralrace.reln.explained.types.evaluation import Elsewhere
from neuralrace.reln.explained.types.grouping import Wide, wide_limit
from neuralrace.reln.explained.types.symmetries import (
    Symmetries,
    row_space,
    symmetries_of,
    tolerance_of,
)


@final
@dataclass(frozen=True, eq=False)
class Start:
    """How the weights of a network of this width start: their standard deviations.

    `w` are those of a neuron's input weights, the last of them of its bias where `bias` is true,
    `a` those of its output weights, and `c` those of the biases of outputs, None without. Weights
    are Gaussian, or `uniform` between ±√3 standard deviations.
    """

    width: int
    w: Float[np.ndarray, " d"]
    a: Float[np.ndarray, " o"]
    c: Float[np.ndarray, " o"] | None = None
    uniform: bool = False

    @staticmethod
    def equal(data: Dataset, width: int, scale: float) -> Start:
        """All weights Gaussian, with one standard deviation, and no biases."""
        d, o = (sum(np.shape(v)[1] for v in nodes.values()) for nodes in (data.x, data.y))
        return Start(width, np.full(d, scale), np.full(o, scale))

    @property
    def bias(self) -> bool:
        return self.c is not None

    @property
    def is_isotropic(self) -> bool:
        """Whether the start is as symmetric as any task."""
        w = self.w[:-1] if self.bias else self.w
        return not self.uniform and all(len(np.unique(each)) == 1 for each in (w, self.a))

    def networks(self, random: np.random.Generator, many: int) -> Neurons:
        """The weights of several networks, one axis more than those of one."""
        spreads = {"w": self.w, "a": self.a} | ({} if self.c is None else {"c": self.c})
        return {
            name: self._drawn(random, (many, self.width) if name != "c" else (many,), spread)
            for name, spread in spreads.items()
        }

    def crowd(self, random: np.random.Generator, many: int) -> Neurons:
        """Many neurons with the total strength of the network: M stand for H times √(H/M).

        The biases of outputs are at their mean, zero: they are not neurons, and there is one of
        each whatever the width.
        """
        both = self._drawn(random, (many,), np.concatenate([self.w, self.a]))
        both = both * np.sqrt(self.width / many)
        d = len(self.w)
        biases = {} if self.c is None else {"c": np.zeros(len(self.c))}
        return {"w": both[:, :d], "a": both[:, d:]} | biases

    def _drawn(
        self, random: np.random.Generator, shape: tuple[int, ...], spread: np.ndarray
    ) -> np.ndarray:
        shape = (*shape, len(spread))
        unit = (
            random.uniform(-1, 1, shape) * np.sqrt(3) if self.uniform else random.normal(size=shape)
        )
        return unit * spread


@final
@dataclass(frozen=True, eq=False)
class Limit:
    """Many neurons in place of a network, what they learned, and what they learned it from.

    `samples` is the task, `symmetries` its symmetries where the start has them too. `crowd` and
    `wide` are in the coordinates of `inputs` and `outputs`, orthonormal bases of what the samples
    span: what lies outside is not learned, and stays zero on average.
    """

    start: Start
    rate: float
    samples: Samples
    inputs: Float[np.ndarray, "d r"]
    outputs: Float[np.ndarray, "o s"]
    symmetries: Symmetries
    crowd: Crowd
    places: dict[str, Elsewhere]
    first: Neurons
    wide: Wide

    @staticmethod
    def of(
        data: Dataset,
        start: Start,
        rate: float,
        steps: int,
        leak: float,
        neurons: int,
        random: np.random.Generator,
        others: Mapping[str, Dataset] | None = None,
    ) -> Limit:
        """Let the neurons learn; `others` are observed on the way."""
        samples, tolerance = samples_of(data, start.bias), tolerance_of(data)
        inputs, outputs = row_space(samples.x, tolerance), row_space(samples.y, tolerance)
        small = Samples(samples.x @ inputs, samples.y @ outputs, samples.p)
        if start.is_isotropic:
            found = symmetries_of(small, tolerance)
        else:
            found = Symmetries(np.arange(len(small.x))[None], small, False, False, tolerance)
        with jax.enable_x64(True):
            crowd = Crowd.of(small, found, leak)
            places = {
                name: Elsewhere.of(found, side_by_side(other.x) @ inputs, neurons)
                for name, other in (others or {}).items()
            }
        first = _projected(start.crowd(random, neurons), inputs, outputs)
        wide = wide_limit(crowd.observing(places), first, rate, steps)
        return Limit(start, rate, samples, inputs, outputs, found, crowd, places, first, wide)

    def drawn(self, random: np.random.Generator, many: int) -> Neurons:
        """Other neurons from the same start, in the coordinates of the crowd."""
        return _projected(self.start.crowd(random, many), self.inputs, self.outputs)


def samples_of(data: Dataset, bias: bool) -> Samples:
    """The task as matrices, with an input that is one where neurons have a bias."""
    samples = Samples.of(data)
    if not bias:
        return samples
    ones = np.ones((len(samples.x), 1))
    return Samples(np.concatenate([samples.x, ones], axis=1), samples.y, samples.p)


def _projected(neurons: Neurons, inputs: np.ndarray, outputs: np.ndarray) -> Neurons:
    bases = {"w": inputs, "a": outputs, "c": outputs}
    return {name: values @ bases[name] for name, values in neurons.items()}
