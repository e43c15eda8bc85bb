"""A race as one thing that learns, in JAX: differentiate it, batch it, compile it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuralrace.door import door
from neuralrace.dynamics.systems import NetworkSystem, State, System
from neuralrace.gdln import GDLN
from neuralrace.reduction.block import Block
from neuralrace.reduction.mixtures import as_wide_as
from neuralrace.types import Matrix


@final
class RaceSystem(System):
    """The blocks of a race as a `dynamics.System`; `Race.system` makes it.

    A state is a dictionary {block: {edge: weights}}, and `b0` the one at which the race starts.
    `loss(b)` is that of the whole race; `velocity(b)` is −∂L/∂b, block by block. All coefficients
    are leaves of this pytree: `drive[block]` is the s of a block, with which its targets scale, so
    that a derivative with respect to it is one with respect to a singular value; `blocks[block]`
    holds the inputs, targets and gates of the block in its own directions, from which Σ^yx and Σ^x
    follow; `outside` is the loss outside all blocks. So `jax.grad`, `jax.vmap` and `jax.jit` work
    on functions of the state and of the system itself. Numbers have the precision that JAX has
    when the system is made: turn `jax_enable_x64` on for float64.

    ```python
    >>> import jax, jax.numpy as jnp, numpy as np, neuralrace as nr
    >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    >>> system = race.system(0.01)
    >>> step = nr.dynamics.Descent(0.1)
    >>> def final(scale):
    ...     b = jax.tree.map(lambda w: scale * w, system.b0)
    ...     return system.loss(nr.dynamics.unrolled_steps(system, b, step, 100))
    >>> bool(jax.grad(final)(1.0) < 0), jax.vmap(final)(jnp.array([1.0, 2.0])).shape
    (True, (2,))

    ```
    """

    blocks: dict[str, NetworkSystem]
    drive: dict[str, Float[Array, ""]]
    b0: dict[str, dict[str, Array]]
    outside: Float[Array, ""]

    @door
    def losses(self, state: State) -> dict[str, Float[Array, ""]]:
        """The loss of every block.

        Blocks of equal shape are computed side by side, so that a program of many compiles as
        quickly as one of a few.
        """
        found: dict[str, Array] = {}
        alike: dict[object, list[str]] = {}
        for name, block in self.blocks.items():
            shapes = tuple((e, jnp.shape(w)) for e, w in state[name].items())
            rows = tuple(jnp.shape(leaf) for leaf in jax.tree.leaves(block.data))
            alike.setdefault((block.net, shapes, rows), []).append(name)
        for names in alike.values():
            data = [
                eqx.tree_at(
                    lambda d: d.y,
                    self.blocks[n].data,
                    {v: self.drive[n] * y for v, y in self.blocks[n].data.y.items()},
                )
                for n in names
            ]
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *data)
            weights = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(state[n] for n in names))
            each = jax.vmap(self.blocks[names[0]].net.loss)(weights, stacked)
            found |= {n: each[i] for i, n in enumerate(names)}
        return {name: found[name] for name in self.blocks}

    @door
    def loss(self, state: State) -> Float[Array, ""]:
        return self.outside + sum(self.losses(state).values(), jnp.zeros(()))

    def norm(self, errors: State) -> Float[Array, ""]:
        """The worst of the blocks, which are independent."""
        parts = (jax.tree.leaves(errors[name]) for name in self.blocks)
        flat = (jnp.concatenate([jnp.ravel(leaf) for leaf in leaves]) for leaves in parts)
        return jnp.max(jnp.stack([jnp.sqrt(jnp.mean(each**2)) for each in flat]))


def system_of(
    blocks: Sequence[Block], weights: Sequence[Mapping[str, Matrix]], outside: float
) -> RaceSystem:
    """The blocks of a race from these weights."""
    number = lambda value: jnp.asarray(value, jnp.result_type(float))
    systems, drive, start = {}, {}, {}
    for block, begin in zip(blocks, weights, strict=True):
        scale = block.drive or 1.0
        y = {v: np.asarray(a) / scale for v, a in block.data.y.items()}
        data = jax.tree.map(number, eqx.tree_at(lambda d: d.y, block.data, y))
        arch = as_wide_as(block.arch, begin)
        systems[block.name] = NetworkSystem(GDLN(arch), data)
        drive[block.name] = number(scale)
        start[block.name] = {e: number(w) for e, w in begin.items()}
    return RaceSystem(systems, drive, start, number(outside))
