"""A dataset in one line: how many samples, which nodes of which size, gates and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.core import Tracer

from neuralrace.dataset.text import TextLabel

if TYPE_CHECKING:
    from neuralrace.dataset.samples import Dataset

NAMES = 8
"""The most nodes, gates or labels that are named; of more, the number is given."""


def described(data: Dataset) -> str:
    """The line that `repr` shows; it needs shapes alone, so that it works under `jit` too."""
    many = _size(next(iter(data.x.values())), 0)
    parts = [f"{many} sample{'s' * (many != '1')}"]
    parts += [f"{name}: {_listed(_sizes(getattr(data, name)))}" for name in ("x", "y")]
    if data.gates:
        parts.append(f"gates: {_listed(list(data.gates))}")
    if data.sample_weight is not None:
        parts.append("sample weights")
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
