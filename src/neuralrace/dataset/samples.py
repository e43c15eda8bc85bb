"""Inputs, targets, gates, weights and labels of samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, final

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float

from neuralrace.checks import check_known, plain_array
from neuralrace.dataset.checks import (
    AnyArray,
    GateClasses,
    Table,
    arrays_by_name,
    check_moments,
    checked_weight,
    label,
    numbers,
    pieces,
    sorted_by_gates,
)
from neuralrace.dataset.text import TextLabel, described
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require, spelled
from neuralrace.types import ArrayLike

Label: TypeAlias = int | float | str
"""What a label of a sample may be."""


@final
class Dataset(eqx.Module):
    """Samples with their inputs, targets, gates and weights: all that a network is trained on.

    Gates are part of the data (NRR §2): `gates[name]` is the gate of that node or edge on every
    sample. A name that is missing is always on. Values are usually 0 and 1; any real number is
    legal. Arrays keep the precision they come in (integers and booleans become floats), so that
    theory can use all of it. A `Dataset` is a pytree: it may be passed through `jax.jit` and
    `jax.vmap`, labels included. Names are matched with an architecture only when the two meet.

    **Arguments:** `x[input node]` and `y[output node]` of shape `(N, size)`; `gates[name]` of
    shape `(N,)` for a node or an edge, `(N, size)` for the neurons of a node; `sample_weight` of
    shape `(N,)`, non-negative, normalised here to sum to one; `labels[name]` of shape `(N,)`:
    numbers, booleans or text that say what a sample is.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> x = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    >>> data = nr.Dataset(x={"x": x}, y={"y": x[:, :1] * x[:, 1:]}, gates={"h": [1, 0, 0, 1]})
    >>> data.n_samples, data.gates["h"]
    (4, array([1., 0., 0., 1.]))
    >>> data
    Dataset(4 samples; x: x 2; y: y 1; gates: h)

    ```
    """

    x: dict[str, AnyArray]
    y: dict[str, AnyArray]
    gates: dict[str, AnyArray]
    sample_weight: AnyArray | None
    labels: dict[str, Any]  # arrays of numbers, and TextLabel

    @door
    def __init__(
        self,
        x: Mapping[str, ArrayLike],
        y: Mapping[str, ArrayLike],
        gates: Mapping[str, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike | TextLabel] | None = None,
    ) -> None:
        self.x = arrays_by_name(x, "x", (2,), "(N, size)")
        self.y = arrays_by_name(y, "y", (2,), "(N, size)")
        self.gates = arrays_by_name(
            {} if gates is None else gates, "gates", (1, 2), "(N,) or (N, size)"
        )
        labels = {} if labels is None else labels
        self.labels = arrays_by_name(labels, "labels", (1,), "(N,)", as_float=False)
        require(
            self.x and self.y,
            "a dataset needs inputs and targets",
            got=f"x for {listed(self.x)}, y for {listed(self.y)}",
            wanted="x for every input node, y for every output node",
            fix="pass x={'x': …} and y={'y': …}",
        )
        first = next(iter(self.x))
        n = self.x[first].shape[0]
        if n == 0:
            raise NeuralRaceError(
                "the dataset has no samples",
                got=f"x[{first!r}] of shape {self.x[first].shape}",
                wanted="at least one sample",
                fix="samples are the first axis: transpose data with one column per sample",
            )
        self.sample_weight = None if sample_weight is None else checked_weight(sample_weight)
        everything: dict[str, AnyArray | TextLabel] = {
            f"{field}[{name!r}]": value
            for field in ("x", "y", "gates", "labels")
            for name, value in getattr(self, field).items()
        }
        if self.sample_weight is not None:
            everything["sample_weight"] = self.sample_weight
        for name, value in everything.items():
            if value.shape[0] != n:
                raise NeuralRaceError(
                    f"{name} has another number of samples than x[{first!r}]",
                    got=f"{name} of shape {value.shape}",
                    wanted=f"{n} samples along the first axis",
                    fix="a gate, a label or a weight has one value per sample"
                    if value.ndim == 1
                    else "give every sample a row; transpose data with one column per sample",
                )

    @classmethod
    @door
    def from_frame(
        cls,
        frame: Table,
        x: Sequence[str] | Mapping[str, Sequence[str]],
        y: Sequence[str] | Mapping[str, Sequence[str]],
        labels: Sequence[str] = (),
        sample_weight: str | None = None,
    ) -> Dataset:
        """From a table of pandas, one row per sample.

        **Arguments:** `x` and `y` are columns of numbers: `["size", "weight"]` for one node, called
        `x` or `y`, or `{node: columns}`. `labels` are columns that say what a sample is, and
        `sample_weight` is the column of weights. Labels may be numbers, text or categories;
        `sorted_by` sorts text alphabetically and categories in their own order.

        ```python
        >>> import neuralrace as nr, pandas
        >>> frame = pandas.DataFrame({"size": [1.0, 2.0], "cost": [3, 5], "kind": ["pear", "fig"]})
        >>> data = nr.Dataset.from_frame(frame, x=["size"], y={"cost": ["cost"]}, labels=["kind"])
        >>> data.y["cost"][:, 0], data.mask(kind="fig")
        (array([3., 5.]), array([False,  True]))

        ```
        """
        columns = {"x": x, "y": y}
        nodes = {k: c if isinstance(c, Mapping) else {k: c} for k, c in columns.items()}
        shown, wanted = (
            {node: numbers(frame, names) for node, names in nodes[field].items()}
            for field in ("x", "y")
        )
        weight = None if sample_weight is None else numbers(frame, [sample_weight])[:, 0]
        return cls(shown, wanted, None, weight, {n: label(frame, n) for n in labels})

    def __repr__(self) -> str:
        return described(self)

    @property
    def n_samples(self) -> int:
        """N, the number of samples."""
        return next(iter(self.x.values())).shape[0]

    @property
    def probability(self) -> Float[np.ndarray, " N"] | Float[Array, " N"]:
        """The weight of every sample in the mean ⟨·⟩, shape `(N,)`, summing to one."""
        if self.sample_weight is None:
            return np.full(self.n_samples, 1 / self.n_samples)
        return self.sample_weight

    def digest(self) -> str:
        """A fingerprint of inputs, targets, gates and sample weights, as 32 hexadecimal digits.

        Where there are gates, the first half tells the samples, as in the digest without gates, and
        the second half the gates.
        Equal content in equal precision has an equal digest, in NumPy or JAX arrays and in any
        order of the names; labels do not count. Arrays are read piece by piece, so that a
        memory-mapped file larger than the memory is no problem.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [2.0]]})
        >>> data.digest()
        'd2293413c6c06a53d68d657465c1fde7'
        >>> data.gated({"h": [1, 0]}).digest() == data.digest()
        False

        ```
        """
        self._check_known()
        weight = {} if self.sample_weight is None else {"": self.sample_weight}
        samples = _digest({"x": self.x, "y": self.y, "sample_weight": weight})
        half = len(samples) // 2
        return samples[:half] + _digest({"gates": self.gates})[:half] if self.gates else samples

    def _check_known(self) -> None:
        for field in ("x", "y", "gates"):
            check_known(f"the {field} of the data", getattr(self, field))
        check_known("the data", {"sample_weight": self.sample_weight})

    @door
    def gated(self, gates: Mapping[str, ArrayLike]) -> Dataset:
        """The same samples with all gates replaced; `gated({})` removes them.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [2.0]]}, gates={"h": [1, 0]})
        >>> data.gated({"k": [0, 1]}).gates
        {'k': array([0., 1.])}

        ```
        """
        return Dataset(self.x, self.y, gates, self.sample_weight, self.labels)

    def residual(self) -> Dataset:
        """The same samples, with targets replaced by the residual of the best linear fit.

        What pathways that learn late are left with when one that is always on has learned
        (MHS App. F). Gates are kept; computed in float64.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[1.0], [3.0]]})
        >>> data.residual().y["y"].round(6)
        array([[-1.],
               [ 1.]])

        ```
        """
        check_moments(self)
        x = np.concatenate([np.asarray(a, np.float64) for a in self.x.values()], axis=1)
        root = np.sqrt(np.asarray(self.probability, np.float64))[:, None]
        y = {}
        for node, target in self.y.items():
            wanted = np.asarray(target, np.float64)
            y[node] = wanted - x @ np.linalg.lstsq(root * x, root * wanted)[0]
        return Dataset(self.x, y, self.gates, self.sample_weight, self.labels)

    @door
    def mask(self, **where: Label | Iterable[Label]) -> Bool[np.ndarray, " N"]:
        """The samples whose labels are among the given values: a mask of shape `(N,)`.

        Several labels must all match. A mask can be a gate, or a pathway's in `nr.pathways`.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0]] * 3}, {"y": [[1.0]] * 3}, labels={"context": [1, 2, 3]})
        >>> data.mask(context=(1, 3))
        array([ True, False,  True])

        ```
        """
        mask = np.ones(self.n_samples, bool)
        for name, values in where.items():
            label = np.asarray(self._label(name))
            several = np.iterable(values) and not isinstance(values, str | bytes)
            among = np.atleast_1d(
                plain_array(
                    f"the values of label {name!r}",
                    list(values) if several else values,  # type: ignore[arg-type]
                    wanted="one value, or a list of them",
                    fix="for example data.mask(context=(1, 3))",
                )
            )
            where_it_is = np.isin(label, among)
            if not where_it_is.any():
                raise NeuralRaceError(
                    f"no sample has this label {name!r}",
                    got=among.tolist(),
                    wanted=f"some of {np.unique(label).tolist()}",
                    fix="check the values; an all-False mask gives a pathway that never opens",
                )
            mask &= where_it_is
        return mask

    @door
    def take(self, samples: ArrayLike | slice) -> Dataset:
        """Some of the samples, in the order given: indices, a slice, or a mask of shape `(N,)`.

        Gates and labels come along; sample weights are normalised anew.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0], [2.0], [3.0]]}, {"y": [[1.0]] * 3})
        >>> data.take([2, 0]).x["x"][:, 0], data.take(data.x["x"][:, 0] > 1).n_samples
        (array([3., 1.]), 2)

        ```
        """
        index = samples if isinstance(samples, slice) else _indices(samples)
        if isinstance(index, np.ndarray):
            n, is_mask = self.n_samples, index.dtype == bool
            fits = index.shape == (n,) if is_mask else index.ndim == 1 and index.dtype.kind in "iu"
            if not fits or (not is_mask and ((index < -n) | (index >= n)).any()):
                raise NeuralRaceError(
                    "there are no such samples",
                    got=f"{index.dtype} of shape {index.shape}"
                    + (f" from {index.min()} to {index.max()}" if fits else ""),
                    wanted=f"indices from 0 to {n - 1}, or a mask of shape ({n},)",
                    fix="data.mask(label=value) makes a mask",
                )
        rows = lambda arrays: {name: array[index] for name, array in arrays.items()}
        weight = None if self.sample_weight is None else self.sample_weight[index]
        return Dataset(rows(self.x), rows(self.y), rows(self.gates), weight, rows(self.labels))

    @door
    def sorted_by(self, *labels: str) -> Dataset:
        """The samples sorted by a label, those that are equal by the next, and so on.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0], [2.0], [3.0]]}, {"y": [[1.0]] * 3},
        ...                   labels={"context": [2, 1, 2], "item": [2, 1, 1]})
        >>> data.sorted_by("context", "item").x["x"][:, 0]
        array([2., 3., 1.])

        ```
        """
        if not labels:
            return self
        found = [self._label(name) for name in reversed(labels)]
        keys = [np.asarray(v.codes if isinstance(v, TextLabel) else v) for v in found]
        return self.take(np.lexsort(keys))

    def _label(self, name: str) -> Any:
        if not isinstance(name, str) or name not in self.labels:
            raise NeuralRaceError(
                f"unknown label {name!r}",
                got=repr(name),
                wanted=f"one of {listed(self.labels)}",
                fix=spelled(
                    name, self.labels, "pass labels={…} to the Dataset, or check the spelling"
                ),
            )
        return self.labels[name]

    @door
    def one_per_sample(self, name: str = "sample") -> dict[str, Bool[np.ndarray, " N"]]:
        """A mask for every sample, on for it alone: `sample1`, `sample2`, ….

        ```python
        >>> import neuralrace as nr
        >>> nr.Dataset({"x": [[1.0]] * 2}, {"y": [[1.0]] * 2}).one_per_sample()
        {'sample1': array([ True, False]), 'sample2': array([False,  True])}

        ```
        """
        return {f"{name}{i + 1}": row for i, row in enumerate(np.eye(self.n_samples, dtype=bool))}

    def gate_classes(self) -> GateClasses:
        """The samples sorted into classes of equal gates, real values included.

        Found on the host: not for use under `jit`.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0]] * 3}, {"y": [[1.0]] * 3}, gates={"h": [1, 0, 1]})
        >>> data.gate_classes().index, data.gate_classes().weight
        (array([1, 0, 1]), array([0.33333333, 0.66666667]))

        ```
        """
        self._check_known()
        return sorted_by_gates(self.gates, np.asarray(self.probability))


def _indices(samples: Any) -> np.ndarray:
    fix = "data.mask(label=value) makes a mask"
    return plain_array("samples", samples, wanted="indices or a mask", fix=fix)


def _digest(fields: Mapping[str, Mapping[str, Any]]) -> str:
    """A fingerprint of arrays by field and name, as 32 hexadecimal digits."""
    found = hashlib.blake2b(digest_size=16)
    for field, arrays in fields.items():
        for name, array in sorted(arrays.items()):
            found.update(repr((field, name, array.shape, array.dtype.name)).encode())
            for part in pieces(array):
                part = part.astype(part.dtype.newbyteorder("<"), copy=False)
                found.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return found.hexdigest()
