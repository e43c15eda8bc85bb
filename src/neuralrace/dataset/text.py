"""Labels that are text, as something that JAX can carry along: whole numbers and their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import equinox as eqx
import numpy as np
from jax.core import Tracer
from jaxtyping import Shaped
from numpy.typing import DTypeLike

from neuralrace.types import Array, ArrayLike


@final
class TextLabel(eqx.Module):
    """The text of every sample: `texts[codes[n]]` is that of sample n.

    NumPy reads it as an array of text, and one of its entries is a `str`. Only the
    codes are a leaf of the pytree, so that a dataset with text labels can be passed through
    `jax.jit` and `jax.vmap`.

    ```python
    >>> import numpy as np
    >>> from neuralrace.dataset.text import TextLabel
    >>> place = TextLabel.of(["work", "home", "home"])
    >>> np.asarray(place), np.asarray(place.codes)
    (array(['work', 'home', 'home'], dtype='<U4'), array([1, 0, 0]))
    >>> place[0], sorted(set(place))
    ('work', ['home', 'work'])

    ```
    """

    codes: Shaped[Array, " N"]
    texts: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, values: ArrayLike) -> TextLabel:
        """From one text per sample; the codes are in alphabetical order."""
        texts, codes = np.unique(np.asarray(values).astype(str), return_inverse=True)
        return cls(codes, tuple(texts.tolist()))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.texts)[np.asarray(self.codes).astype(int)].astype(dtype or str)

    def __getitem__(self, index: Any) -> TextLabel | str:
        codes = self.codes[index]
        if np.ndim(codes) == 0 and not isinstance(codes, Tracer):
            return self.texts[int(codes)]
        return TextLabel(codes, self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __len__(self) -> int:
        return self.shape[0]

    def __eq__(self, other: object) -> Any:
        return np.asarray(self) == other

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"TextLabel({', '.join(self.texts)})"

    @property
    def shape(self) -> tuple[int, ...]:
        """(N,), as of an array."""
        return self.codes.shape

    @property
    def ndim(self) -> int:
        """1, as of an array."""
        return len(self.shape)

    def tolist(self) -> list[str]:
        """The text of every sample as a list."""
        return np.asarray(self).tolist()
