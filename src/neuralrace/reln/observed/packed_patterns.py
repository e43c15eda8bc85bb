"""Patterns over samples as bits: one bit per neuron and sample, unpacked when they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

import numpy as np
from jaxtyping import Bool, Int, Shaped, UInt8

BLOCK = 2**20
"""The most numbers that are computed or unpacked at once: 8 MB, which fit into a cache."""


def packed(on: Bool[np.ndarray, "... N size"]) -> UInt8[np.ndarray, "... size B"]:
    """Patterns of neurons over N samples in B = ⌈N/8⌉ bytes each; bits beyond N are 0."""
    return np.packbits(np.swapaxes(on, -1, -2), axis=-1)


def unpacked(bits: UInt8[np.ndarray, "... B"], samples: int) -> Bool[np.ndarray, "... N"]:
    """Patterns as booleans, one per sample."""
    return np.unpackbits(bits, axis=-1, count=samples).view(bool)


def on_for(bits: UInt8[np.ndarray, "... B"]) -> np.ndarray:
    """On how many samples a neuron is on."""
    return np.bitwise_count(bits).sum(axis=-1, dtype=np.int64)


def different(
    bits: Shaped[np.ndarray, "... B"],
) -> tuple[Int[np.ndarray, " U"], Int[np.ndarray, " M"]]:
    """Where each different pattern first occurs, in the order of bytes, and which one each is."""
    rows = np.ascontiguousarray(bits.reshape(-1, bits.shape[-1]))
    size = rows.shape[1] * rows.itemsize
    whole = rows.view(np.dtype((np.void, size)))[:, 0]  # compared byte by byte
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return first, which.ravel()


def blocks(rows: int, numbers: int, multiple: int = 1) -> Iterator[slice]:
    """Rows of so many numbers each, in pieces of at most `BLOCK` numbers, or one `multiple`."""
    step = max(1, BLOCK // max(numbers, 1) // multiple) * multiple
    for low in range(0, rows, step):
        yield slice(low, min(low + step, rows))


@final
class PackedPatterns(Mapping[str, np.ndarray]):
    """Which neurons are on, by node: kept as bits, and unpacked to `(T, N, size)` when asked for.

    ```python
    >>> import numpy as np
    >>> from neuralrace.reln.observed.packed_patterns import PackedPatterns, packed
    >>> on = np.random.default_rng(0).random((3, 100, 4)) > 0.5  # moments, samples, neurons
    >>> kept = PackedPatterns({"h": packed(on)}, samples=100)
    >>> kept.bits["h"].nbytes, bool((kept["h"] == on).all())
    (156, True)

    ```
    """

    def __init__(self, bits: Mapping[str, UInt8[np.ndarray, "T size B"]], samples: int) -> None:
        self.bits, self.samples = dict(bits), samples

    @staticmethod
    def of(on: Mapping[str, np.ndarray]) -> PackedPatterns:
        """Patterns given as booleans `(T, N, size)`, or packed already."""
        if isinstance(on, PackedPatterns):
            return on
        samples = next(iter(on.values())).shape[1]
        bits = {node: packed(np.asarray(each, bool)) for node, each in on.items()}
        return PackedPatterns(bits, samples)

    def moment(self, node: str, k: int) -> Bool[np.ndarray, "N size"]:
        """The patterns of one node at one recorded moment."""
        return unpacked(self.bits[node][k], self.samples).T

    def __getitem__(self, node: str) -> Bool[np.ndarray, "T N size"]:
        return np.swapaxes(unpacked(self.bits[node], self.samples), 1, 2)

    def __iter__(self) -> Iterator[str]:
        return iter(self.bits)

    def __len__(self) -> int:
        return len(self.bits)

    def __repr__(self) -> str:
        shapes = {n: (len(b), self.samples, b.shape[1]) for n, b in self.bits.items()}
        return f"PackedPatterns({shapes})"
