"""The types that public signatures share.

Arguments are taken in any form that reads as what is wanted (lists, NumPy and JAX arrays); results
are NumPy or JAX arrays.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
from jaxtyping import Float

from neuralrace.tolerances import FINEST, SMALLEST_SCALE

if TYPE_CHECKING:
    from jax import Array as JaxArray
    from numpy.typing import ArrayLike as ArrayLike
else:

    class _OfJax(type):
        def __instancecheck__(cls, value: object) -> bool:
            jax = sys.modules.get("jax")
            return jax is not None and isinstance(value, jax.Array)

    class JaxArray(metaclass=_OfJax):
        """An array of JAX, which need not have been imported."""

    class _Readable(type):
        def __instancecheck__(cls, value: object) -> bool:
            kinds = (list, tuple, range, int, float, complex, np.generic)
            return (
                hasattr(value, "__array__") or hasattr(value, "dtype") or isinstance(value, kinds)
            )

    class ArrayLike(metaclass=_Readable):
        """What reads as an array: arrays, numbers, and lists of them.

        ```python
        >>> from neuralrace.types import ArrayLike
        >>> isinstance([[1, 2], [3, 4]], ArrayLike), isinstance("text", ArrayLike)
        (True, False)

        ```
        """


__all__ = [
    "Array",
    "ArrayLike",
    "BelowOne",
    "Count",
    "Finite",
    "Inside",
    "Key",
    "NotNegative",
    "Positive",
    "PositiveShare",
    "Scale",
    "Several",
    "Share",
    "Tolerance",
    "Weights",
    "WeightsLike",
    "Whole",
]

Array: TypeAlias = np.ndarray | JaxArray
"""An array as the package returns it."""


@dataclass(frozen=True)
class Within:
    """The range of a number: what is at least, above, at most and below it."""

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float = math.inf

    def holds(self, number: float) -> bool:
        """Whether a finite number is in the range."""
        try:
            number = float(number)
        except OverflowError:  # an integer that no float can hold
            return False
        inside = self.least <= number <= self.most and self.above < number < self.below
        return inside and math.isfinite(number)

    def __str__(self) -> str:
        limits = {"of at least": "least", "above": "above", "at most": "most", "below": "below"}
        named = ((word, getattr(self, name)) for word, name in limits.items())
        return " and ".join(f"{word} {value:g}" for word, value in named if math.isfinite(value))


Whole: TypeAlias = Annotated[int, Within(least=0)]
"""An integer of at least 0."""

Count: TypeAlias = Annotated[int, Within(least=1)]
"""How many there are of something: an integer of at least 1."""

Several: TypeAlias = Annotated[int, Within(least=2)]
"""How many there are of something of which one does not do: an integer of at least 2."""

Finite: TypeAlias = Annotated[float, Within()]
"""A finite number."""

Positive: TypeAlias = Annotated[float, Within(above=0)]
"""A finite number above zero."""

Share: TypeAlias = Annotated[float, Within(least=0, most=1)]
"""A part of a whole, from 0 to 1."""

NotNegative: TypeAlias = Annotated[float, Within(least=0)]
"""A finite number of at least zero."""

BelowOne: TypeAlias = Annotated[float, Within(least=0, below=1)]
"""A part of a whole that is not everything, such as a momentum or a leak."""

Scale: TypeAlias = Annotated[float, Within(least=SMALLEST_SCALE, most=1 / SMALLEST_SCALE)]
"""A standard deviation of initial weights, whose square a number can hold."""

Tolerance: TypeAlias = Annotated[float, Within(least=FINEST, below=1)]
"""A relative tolerance of the steps of a solver."""

PositiveShare: TypeAlias = Annotated[float, Within(above=0, most=1)]
"""A part of a whole that is not nothing."""

Inside: TypeAlias = Annotated[float, Within(above=0, below=1)]
"""A part of a whole that is neither nothing nor everything."""

Key: TypeAlias = int | JaxArray
"""What every function that draws takes as `key`: a key of `jax.random`, or an integer for one."""

Weights: TypeAlias = dict[str, JaxArray]
"""The matrix of every edge: `weights[e]` has shape `(|t(e)|, |s(e)|)`."""

WeightsLike: TypeAlias = Mapping[str, ArrayLike]
"""The matrix of every edge, in any form that reads as an array."""

Matrix: TypeAlias = Float[np.ndarray, "_ _"]
"""A matrix in float64, as theory computes with it."""
