"""Samples sorted into classes of equal gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.types import Array


@final
@dataclass(frozen=True, eq=False)
class GateClasses:
    """Classes of samples with equal gates; see `Dataset.gate_classes`.

    `index[n]` is the class of sample n, `weight[c]` the weight of class c in the mean, and
    `gates[name][c]` the gate (a number, or a row for the neurons of a node) that it stands for.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0]] * 3}, {"y": [[1.0]] * 3}, gates={"h": [1, 0, 1]})
    >>> len(data.gate_classes())
    2

    ```
    """

    index: Int[np.ndarray, " N"]
    weight: Float[np.ndarray, " C"]
    gates: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.weight)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GateClasses):
            return NotImplemented
        return (
            np.array_equal(self.index, other.index)
            and np.array_equal(self.weight, other.weight)
            and self.gates.keys() == other.gates.keys()
            and all(np.array_equal(gate, other.gates[name]) for name, gate in self.gates.items())
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def sorted_by_gates(
    gates: Mapping[str, Array], probability: Float[np.ndarray, " N"]
) -> GateClasses:
    """See `Dataset.gate_classes`."""
    values = {name: np.asarray(g) for name, g in sorted(gates.items())}
    columns = [np.reshape(g, (len(probability), -1)) for g in values.values()]
    columns = [np.zeros((len(probability), 1)), *columns]
    on = [column != 0 for column in columns]
    if all((g == bits).all() for g, bits in zip(columns, on, strict=True)):
        rows = np.packbits(np.concatenate(on, axis=1), axis=1)  # zeros and ones: bits sort alike
    else:
        rows = np.concatenate(columns, axis=1, dtype=np.float64) + 0.0  # -0 → 0
    width = rows.dtype.itemsize * rows.shape[1]
    as_bytes = rows.view(np.uint8 if width == 1 else np.dtype((np.void, width)))[:, 0]
    _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    weight = np.bincount(inverse, weights=probability, minlength=len(first))
    return GateClasses(inverse, weight, {name: g[first] for name, g in values.items()})
