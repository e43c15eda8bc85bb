"""What neurons answer on samples that they do not learn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.losses import class_middles, share_right
from neuralrace.reln.explained.types.symmetries import Symmetries
from neuralrace.tolerances import DIGITS

PIECE = 1000
"""The number of symmetries whose maps are added up at once."""

MOST_NUMBERS = 4e7
"""The most numbers that are held at once: images times neurons, or times squared outputs."""


@final
class Elsewhere(eqx.Module):
    """Other samples of a task with symmetries, and how neurons that stand for their images answer.

    A neuron (w, a) stands for its images (P_π w, O_π a), each with the same part of its strength.
    With f(x) the sum over the neurons themselves, the network of all images answers on a sample x

        o(x) = ⟨O_π f(P_π⁻¹ x)⟩ ,

    the mean over all symmetries π of the samples that are learned from. It need not be a symmetry
    of x: the sample is asked about in all of its own images P_π⁻¹ x, which may be as many as there
    are symmetries. On samples that are learned from, this is the projection on the outputs that
    respect the symmetries (`Symmetries.basis`).

    `x` are the distinct images of all samples; row r of `maps` is the part of sample `sample[r]`
    that comes from the image `image[r]`: the mean of O_π over all π that lead there, times how many
    of them do.
    """

    x: Float[Array, "U d"]
    sample: Int[Array, " R"]
    image: Int[Array, " R"]
    maps: Float[Array, "R o o"]
    count: int = eqx.field(static=True)

    @staticmethod
    def of(symmetries: Symmetries, x: Float[np.ndarray, "n d"], neurons: int) -> Elsewhere:
        """Samples `x` in the coordinates of the task; call it where JAX computes in float64.

        `neurons` is how many will be asked, which bounds the number of images.
        """
        own, y, elements = symmetries.samples.x, symmetries.samples.y, symmetries.elements
        parts = x @ np.linalg.pinv(own, rcond=symmetries.tolerance)  # x = Σ_n parts_n x_n
        size = np.abs(x).max() or 1.0
        seen, samples, counts, maps = [], [], 0, []
        back = np.linalg.pinv(y, rcond=symmetries.tolerance).T
        for n, part in enumerate(parts):
            images = np.concatenate(
                [part[elements[i : i + PIECE]] @ own for i in range(0, len(elements), PIECE)]
            )
            rounded = np.round(images / size, DIGITS) + 0.0  # no negative zeros
            _, first, label = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
            counts += len(first)
            _check_images(counts * max(neurons, y.shape[1] ** 2), len(x), symmetries.order)
            went = np.zeros((len(first), *y.shape))
            for i in range(0, len(elements), PIECE):
                np.add.at(went, label.ravel()[i : i + PIECE], y[elements[i : i + PIECE]])
            seen.append(images[first])
            samples.append(np.full(len(first), n))
            maps.append(np.einsum("rno,nk->rok", went, back) / len(elements))
        every = np.concatenate(seen)
        rounded = np.round(every / size, DIGITS) + 0.0
        _, first, label = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        return Elsewhere(
            jnp.asarray(every[first]),
            jnp.asarray(np.concatenate(samples)),
            jnp.asarray(label.ravel()),
            jnp.asarray(np.concatenate(maps)),
            len(x),
        )

    def outputs(
        self, w: Float[Array, "M d"], a: Float[Array, "M o"], leak: float
    ) -> Float[Array, "n o"]:
        """The outputs of self-gated neurons on all samples, averaged over their images."""
        z = self.x @ w.T
        own = jnp.where(z > 0, z, leak * z) @ a
        each = jnp.einsum("rok,rk->ro", self.maps, own[self.image])
        return jax.ops.segment_sum(each, self.sample, self.count)

    def over(
        self, w: Float[np.ndarray, "T M d"], a: Float[np.ndarray, "T M o"], leak: float
    ) -> Float[np.ndarray, "T n o"]:
        """The outputs at every moment, from the weights of neurons then."""
        with jax.enable_x64(True):
            at = jax.jit(lambda w, a: self.outputs(w, a, leak))
            return np.stack([np.asarray(at(*both)) for both in zip(w, a, strict=True)])


def _check_images(numbers: float, samples: int, order: int) -> None:
    if numbers > MOST_NUMBERS:
        raise NeuralRaceError(
            "the samples to evaluate on have too many images under the symmetries of the task",
            got=f"{samples} samples and {order} symmetries",
            wanted=f"at most {MOST_NUMBERS:g} numbers: images times neurons, or squared outputs",
            fix="evaluate on fewer samples, or with fewer neurons: neurons=500",
        )


def evaluations(evaluate: Mapping[str, Dataset] | None, data: Dataset) -> dict[str, Dataset]:
    """Datasets to evaluate on, checked, with their nodes in the order of the task."""
    fix = "for example evaluate={'test': data}"
    found = {}
    for name, other in (evaluate or {}).items():
        if name == "outputs":
            raise NeuralRaceError(
                "this name is taken by something else of the prediction",
                got=repr(name),
                wanted="a name other than 'outputs'",
                fix=fix,
            )
        for field in ("x", "y"):
            mine, theirs = (_sizes(getattr(each, field)) for each in (data, other))
            if mine != theirs:
                raise NeuralRaceError(
                    f"the evaluation set {name!r} does not fit the task",
                    got=f"{field}: {_told(theirs)}",
                    wanted=f"{field}: {_told(mine)}, as in the data that is learned from",
                    fix="make one dataset, and take the samples of each: data.take(data.mask(…))",
                )
        x, y = {v: other.x[v] for v in data.x}, {v: other.y[v] for v in data.y}
        found[name] = Dataset(x, y, None, other.sample_weight, other.labels)
    return found


def _sizes(arrays: Mapping[str, Any]) -> dict[str, int]:
    return {name: np.shape(array)[1] for name, array in arrays.items()}


def _told(sizes: Mapping[str, int]) -> str:
    return listed(f"{name} of size {size}" for name, size in sizes.items())


def judged(
    outputs: Mapping[str, Float[np.ndarray, "T n size"]], other: Dataset, data: Dataset
) -> dict[str, Any]:
    """Loss and outputs at every moment, and the accuracy where targets are classes."""
    square: Any = 0.0
    for node, given in outputs.items():
        square = square + ((np.asarray(other.y[node], np.float64) - given) ** 2).sum(axis=2)
    found = {"loss": square @ np.asarray(other.probability, np.float64) / 2}
    middles = class_middles(data, other)
    if middles is not None:
        with jax.enable_x64(True):
            right = jax.vmap(lambda o: share_right(o, other, middles))
            found["accuracy"] = np.asarray(right({v: jnp.asarray(o) for v, o in outputs.items()}))
    return found | {"outputs": dict(outputs)}
