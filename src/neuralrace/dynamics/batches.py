"""Which samples each step sees: drawn without replacement in every epoch."""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from neuralrace.dynamics.systems import Batch
from neuralrace.errors import NeuralRaceError, whole_number


@final
class Batches(eqx.Module):
    """Batches of `size` out of `samples`; the last of an epoch has the rest.

    Epoch e sees the samples in the order `jax.random.permutation(fold_in(key, e), samples)`: any
    step can be taken up again from its number alone.
    """

    key: Array
    size: int = eqx.field(static=True)
    samples: int = eqx.field(static=True)

    @property
    def per_epoch(self) -> int:
        """How many steps an epoch has."""
        return -(-self.samples // self.size)

    def order(self, step: int | Array) -> Int[Array, " padded"]:
        """The samples of the epoch that a step belongs to, filled up to whole batches."""
        key = jax.random.fold_in(self.key, step // self.per_epoch)
        order = jax.random.permutation(key, self.samples)
        return jnp.pad(order, (0, self.per_epoch * self.size - self.samples))

    def batch(self, order: Int[Array, " padded"], step: int | Array, dtype: np.dtype) -> Batch:
        """The batch of a step, given the order of its epoch."""
        first = (step % self.per_epoch) * self.size
        index = jax.lax.dynamic_slice(order, (first,), (self.size,))
        present = (first + jnp.arange(self.size)) < self.samples
        return Batch(index, present.astype(dtype))


def checked_batch_size(batch_size: int, samples: int) -> int:
    """A batch size that fits the data, or an error."""
    size = whole_number("batch_size", batch_size, fix="leave it out to use all samples each step")
    if size > samples:
        raise NeuralRaceError(
            "batch_size is larger than the dataset",
            got=f"batch_size={size} for {samples} samples",
            wanted=f"a whole number from 1 to {samples}",
            fix="leave it out to use all samples in every step",
        )
    return size
