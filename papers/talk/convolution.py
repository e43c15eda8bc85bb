"""A small convolutional network, written as a network of one's own on the base `nr.Network`."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import neuralrace as nr
from neuralrace.types import Weights, WeightsLike

AT_ONCE = 500
"""Samples whose responses are computed at a time: responses to all images at once are too large."""


@final
@dataclass(frozen=True)
class Convolutional(nr.Network):
    """Convolutions that rectify, one after another, then means over positions and a readout.

    It has no biases, so that its output is homogeneous in every layer. `image` is (channels,
    height, width) of an image; each convolution has `channels`, a square kernel of width
    `kernels`, and moves by `strides`, without padding. Kernels are (channels of the target,
    channels of the source, height, width).

    ```python
    >>> import jax, numpy as np, neuralrace as nr
    >>> from papers.talk.convolution import Convolutional
    >>> net = Convolutional.of((3, 12, 12), 10, channels=(4, 6), kernels=(5, 3), strides=(1, 2))
    >>> net.shapes
    {'K1': (4, 3, 5, 5), 'K2': (6, 4, 3, 3), 'readout': (10, 6)}
    >>> data = nr.Dataset({"x": np.ones((2, 432))}, {"y": np.zeros((2, 10))})
    >>> {node: h.shape for node, h in net.responses(net.init(0, 0.1), data).items()}
    {'x': (2, 432), 'h1': (2, 256), 'h2': (2, 54), 'y': (2, 10)}

    ```
    """

    image: tuple[int, int, int]
    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(
        cls,
        image: tuple[int, int, int],
        classes: int,
        *,
        channels: tuple[int, ...],
        kernels: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> Convolutional:
        """The network with the graph that these sizes make."""
        _, height, width = image
        sizes = {"x": math.prod(image)}
        for i, (count, kernel, stride) in enumerate(zip(channels, kernels, strides, strict=True)):
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
            sizes[f"h{i + 1}"] = count * height * width
        sizes["y"] = classes
        names = [*(f"K{i + 1}" for i in range(len(channels))), "readout"]
        nodes = list(sizes)
        edges = dict(zip(names, itertools.pairwise(nodes), strict=True))
        return cls(nr.Architecture(sizes, edges), image, channels, kernels, strides)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        sources = (self.image[0], *self.channels[:-1])
        each = zip(self.channels, sources, self.kernels, strict=True)
        found: dict[str, tuple[int, ...]] = {
            f"K{i + 1}": (count, source, kernel, kernel)
            for i, (count, source, kernel) in enumerate(each)
        }
        return found | {"readout": (self.arch.sizes["y"], self.channels[-1])}

    def responses(self, weights: WeightsLike, data: nr.Dataset) -> dict[str, Array]:
        arrays, x, _ = self.prepared(weights, data)
        return self._forward(arrays, x["x"])

    def __call__(self, weights: WeightsLike, data: nr.Dataset) -> dict[str, Array]:
        """The outputs on every sample, computed `AT_ONCE` samples at a time."""
        arrays, x, _ = self.prepared(weights, data)
        rows = x["x"]
        if len(rows) <= AT_ONCE:
            return {"y": self._forward(arrays, rows)["y"]}
        filled = jnp.pad(rows, ((0, -len(rows) % AT_ONCE), (0, 0)))
        parts = filled.reshape(-1, AT_ONCE, rows.shape[1])
        found = jax.lax.map(lambda part: self._forward(arrays, part)["y"], parts)
        return {"y": found.reshape(-1, found.shape[-1])[: len(rows)]}

    def _forward(self, weights: Weights, rows: Float[Array, "N pixels"]) -> dict[str, Array]:
        """The response of every node; channels come last on the way, which suits the products."""
        activity = {"x": rows}
        h = jnp.moveaxis(rows.reshape(-1, *self.image), 1, -1)
        for i, (kernel, stride) in enumerate(zip(self.kernels, self.strides, strict=True)):
            matrix = jnp.moveaxis(weights[f"K{i + 1}"], 0, -1)  # source, height, width, target
            matrix = jnp.moveaxis(matrix, 0, -2).reshape(-1, matrix.shape[-1])
            h = jax.nn.relu(patches(h, kernel, stride) @ matrix)
            activity[f"h{i + 1}"] = jnp.moveaxis(h, -1, 1).reshape(len(rows), -1)
        return activity | {"y": h.mean(axis=(1, 2)) @ weights["readout"].T}


def patches(
    h: Float[Array, "N height width channels"], kernel: int, stride: int
) -> Float[Array, "N rows columns numbers"]:
    """What the kernel sees at every position, by row, column and channel.

    A convolution is then one matrix product, which stays one when many networks are trained in one
    program; the convolutions of JAX would be computed one by one.
    """
    count, *sides, channels = h.shape
    rows, columns = ((side - kernel) // stride + 1 for side in sides)
    cut = [
        h[:, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
        for i in range(kernel)
        for j in range(kernel)
    ]
    return jnp.stack(cut, axis=3).reshape(count, rows, columns, kernel * kernel * channels)
