"""Muon with the exact polar factor: every direction of a matrix moves at the same speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.tolerances import NOISE
from neuralrace.types import BelowOne, NotNegative, Positive

if TYPE_CHECKING:
    from optax import GradientTransformation


@door
def muon(
    learning_rate: Positive | Callable, *, momentum: BelowOne = 0.0, cut: NotNegative = NOISE
) -> GradientTransformation:
    """Muon with exact orthogonalisation: W ← W − learning_rate · U Vᵀ, from G = U S Vᵀ.

    The rate is a number or a schedule of optax. G is the gradient of a matrix or, with `momentum`
    μ, the sum V ← μV + G. Its polar factor U Vᵀ has the same speed in every direction, whatever the
    singular value. Singular values up to `cut` times the largest are left out, and those that are
    rounding in the precision of the weights. Within that limit no direction depends on the others:
    therefore the rule keeps the blocks of a race
    (`nr.reduction.keeps_blocks`). The usual Muon (Jordan et al. 2024; `optax.contrib.muon`) has an
    approximate polar factor: a few Newton–Schulz steps after division by the norm of the whole
    matrix, which couples the blocks.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": [[4.0, 0.0], [0.0, 1.0]]})
    >>> race = nr.reduce(nr.Architecture.chain(2, 8, 2), data)
    >>> run = race.solve(times=[0, 500], start=1e-3, optimizer=nr.dynamics.muon(1e-3))
    >>> {mode: float(path["W1-W2"][-1].round(3)) for mode, path in run.values["pathways"].items()}
    {'mode1': 0.251, 'mode2': 0.251}

    ```
    """
    import optax

    def polar(matrix: jax.Array) -> jax.Array:
        require(
            matrix.ndim == 2,
            "Muon moves matrices",
            got=f"shape {matrix.shape}",
            wanted="an array with two axes for every edge",
            fix="optax.multi_transform gives other arrays a rule of their own",
        )
        u, s, vt = jnp.linalg.svd(matrix, full_matrices=False)
        rounding = max(matrix.shape) * jnp.finfo(matrix.dtype).eps
        return (u * (s > max(cut, rounding) * s[0])) @ vt

    orthogonal = optax.stateless(lambda updates, _: jax.tree.map(polar, updates))
    parts = [orthogonal, optax.scale_by_learning_rate(learning_rate)]
    return optax.chain(*([optax.trace(momentum)] if momentum else []), *parts)
