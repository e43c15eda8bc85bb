"""Labels that are text, as something that JAX can carry along; a dataset in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import equinox as eqx
import numpy as np
from jax.core import Tracer
from jaxtyping import Shaped
from numpy.typing import DTypeLike

from neuralrace.types import Array, ArrayLike

if TYPE_CHECKING:
    from neuralrace.dataset.samples import Dataset


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


NAMES = 8
"""The most nodes, gates or labels that are named; of more, the number is given."""


def described(data: Dataset) -> str:
    """The line that `repr` shows; it needs shapes alone, so that it works under `jit` too."""
    many = _size(next(iter(data.x.values())), 0)
    one = f"{many} sample" if data.part is None else f"population in {many} row"
    parts = [one + "s" * (many != "1")]
    parts += [f"{name}: {_listed(_sizes(getattr(data, name)))}" for name in ("x", "y")]
    if data.gates:
        parts.append(f"gates: {_listed(list(data.gates))}")
    if data.sample_weight is not None:
        parts.append("sample weights")
    if data.loss_weight:
        parts.append(f"loss weights: {_listed(list(data.loss_weight))}")
    if data.labels:
        shown = [f"{name}{_values(label)}" for name, label in data.labels.items()]
        parts.append(f"labels: {_listed(shown)}")
    return f"Dataset({'; '.join(parts)})"


def _listed(names: list[str]) -> str:
    more = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f", … and {more} more" if more > 0 else "")


def _sizes(arrays: Mapping[str, Any]) -> list[str]:
    return [f"{name} {_size(array, 1)}" for name, array in arrays.items()]


def _size(array: Any, axis: int) -> str:
    """A size of an array, or a question mark for what JAX may put in its place."""
    shape = getattr(array, "shape", ())
    return str(shape[axis]) if len(shape) > axis else "?"


def _values(label: Any) -> str:
    """The values of a label in brackets; nothing where they are not known, as under `jit`."""
    codes = label.codes if isinstance(label, TextLabel) else label
    if isinstance(codes, Tracer) or not hasattr(codes, "shape"):
        return ""
    found = np.unique(np.asarray(codes))
    if isinstance(label, TextLabel):
        names = [label.texts[int(code)] for code in found]
    else:
        names = [f"{value:g}" if found.dtype.kind == "f" else str(value) for value in found]
    listed = ", ".join(names)
    brief = len(names) <= 6 and len(listed) <= 60  # longer lists are counted
    return f" ({listed})" if brief else f" ({len(names)} values)"
