"""Named arrays for the results of a sweep, written in parts: in memory, or in a Zarr store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from neuralrace.sweeps.definition import Definition, labels_of

SECONDS = ".seconds"
"""The file in which a store keeps how long all calls computed."""


@runtime_checkable
class Arrays(Protocol):
    """Named arrays that can be written in parts: NumPy's in memory, Zarr's in a store."""

    def make(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype | str, dims: Sequence[str]
    ) -> Any: ...

    def names(self) -> list[str]: ...

    def get(self, name: str) -> Any: ...

    @property
    def seconds(self) -> float: ...

    @seconds.setter
    def seconds(self, value: float) -> None: ...


class InMemory:
    """Arrays of NumPy, by name."""

    def __init__(self, definition: Definition) -> None:
        self.kept: dict[str, np.ndarray] = {}
        self.seconds = 0.0
        furnish(self, definition)

    def make(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype | str, dims: Sequence[str]
    ) -> np.ndarray:
        """A new array, filled with what stands for nothing."""
        if dtype == "text":
            self.kept[name] = np.full(shape, "", object)
        else:
            self.kept[name] = np.full(shape, nothing(np.dtype(dtype)), dtype)
        return self.kept[name]

    def names(self) -> list[str]:
        """All arrays, the oldest first."""
        return list(self.kept)

    def get(self, name: str) -> np.ndarray:
        """The array of that name."""
        return self.kept[name]


class InStore:
    """Arrays of a Zarr group in a folder."""

    def __init__(self, path: Path, definition: Definition, group: Any) -> None:
        self.path, self.definition, self.group = path, definition, group

    @property
    def seconds(self) -> float:
        """How long all calls computed."""
        try:
            return float((self.path / "status" / SECONDS).read_text())
        except (OSError, ValueError):  # nothing is written yet
            return 0.0

    @seconds.setter
    def seconds(self, value: float) -> None:
        draft = self.path / "status" / f"{SECONDS}.partial"
        draft.write_text(repr(float(value)))
        draft.replace(self.path / "status" / SECONDS)

    def make(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype | str, dims: Sequence[str]
    ) -> Any:
        """A new array with one chunk per batch; one that was begun before is replaced."""
        lead = len(self.definition.shape)
        along = self.definition.batch if tuple(dims[:lead]) == tuple(self.definition.axes) else ()
        chunks = (*along, *shape[len(along) :])
        return self.group.create_array(
            name,
            shape=shape,
            chunks=tuple(max(1, c) for c in chunks),
            dtype=str if dtype == "text" else dtype,
            fill_value="" if dtype == "text" else nothing(np.dtype(dtype)),
            dimension_names=tuple(dims),
            overwrite=True,
        )

    def names(self) -> list[str]:
        """All arrays."""
        return sorted(self.group.array_keys())

    def get(self, name: str) -> Any:
        """The array of that name."""
        return self.group[name]


def furnish(arrays: Arrays, definition: Definition) -> None:
    """The coordinates, and the places for errors and done-marks."""
    axes = tuple(definition.axes)
    for name, values in {**definition.axes, **definition.coords}.items():
        labels = labels_of(values)
        kind = "text" if labels.dtype.kind == "U" else labels.dtype
        arrays.make(name, labels.shape, kind, (name,))[:] = (
            labels.astype(object) if kind == "text" else labels
        )
    arrays.make("error", definition.shape, "text", axes)
    arrays.make("status", definition.shape, "uint8", axes)


def nothing(dtype: np.dtype) -> Any:
    return np.nan if dtype.kind in "fc" else np.zeros((), dtype)[()]


def is_text(array: Any) -> bool:
    """Whether it holds text: NumPy's own kinds, and the one of Zarr."""
    return np.dtype(array.dtype).kind in "UOT"


def kind(array: Any) -> str:
    return "text" if is_text(array) else str(array.dtype)
