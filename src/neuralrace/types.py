"""The types that public signatures share.

Arguments are taken in any form that reads as what is wanted (lists, NumPy and JAX arrays); results
are NumPy or JAX arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike as ArrayLike

__all__ = [
    "Array",
    "ArrayLike",
    "Key",
    "Weights",
    "WeightsLike",
]

Array: TypeAlias = np.ndarray | jax.Array
"""An array as the package returns it."""

Key: TypeAlias = int | jax.Array
"""What every function that draws takes as `key`: a key of `jax.random`, or an integer for one."""

Weights: TypeAlias = dict[str, jax.Array]
"""The matrix of every edge: `weights[e]` has shape `(|t(e)|, |s(e)|)`."""

WeightsLike: TypeAlias = Mapping[str, ArrayLike]
"""The matrix of every edge, in any form that reads as an array."""

Matrix: TypeAlias = Float[np.ndarray, "_ _"]
"""A matrix in float64, as theory computes with it."""
