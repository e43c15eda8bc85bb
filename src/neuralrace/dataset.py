"""What every sample shows, wants and gates; gate classes; pathways over a base dataset."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from neuralrace.architecture import BIAS, Architecture, check_ends
from neuralrace.errors import NeuralRaceError, listed

AnyArray = Array | np.ndarray


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
    shape `(N,)`, non-negative, normalised here to sum to one; `labels[name]` of shape `(N,)`,
    numbers or booleans that say what a sample is.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> x = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    >>> data = nr.Dataset(x={"x": x}, y={"y": x[:, :1] * x[:, 1:]}, gates={"h": [1, 0, 0, 1]})
    >>> data.n_samples, data.gates["h"]
    (4, array([1., 0., 0., 1.]))

    ```
    """

    x: dict[str, AnyArray]
    y: dict[str, AnyArray]
    gates: dict[str, AnyArray]
    sample_weight: AnyArray | None
    labels: dict[str, AnyArray]

    def __init__(
        self,
        x: Mapping[str, Any],
        y: Mapping[str, Any],
        gates: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        self.x = _arrays(x, "x", (2,), "(N, size)")
        self.y = _arrays(y, "y", (2,), "(N, size)")
        self.gates = _arrays({} if gates is None else gates, "gates", (1, 2), "(N,) or (N, size)")
        labels = {} if labels is None else labels
        self.labels = _arrays(labels, "labels", (1,), "(N,)", as_float=False)
        if not self.x or not self.y:
            raise NeuralRaceError(
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
                fix="samples are the first axis: transpose data with a sample a column",
            )
        self.sample_weight = None if sample_weight is None else checked_weight(sample_weight)
        everything: dict[str, AnyArray] = {
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
                    fix="a gate, a label or a weight has one value a sample"
                    if value.ndim == 1
                    else "give every sample a row; transpose data with a sample a column",
                )

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
        found = hashlib.blake2b(digest_size=16)
        weight = {} if self.sample_weight is None else {"": self.sample_weight}
        fields = {"x": self.x, "y": self.y, "gates": self.gates, "sample_weight": weight}
        for field, arrays in fields.items():
            for name, array in sorted(arrays.items()):
                found.update(repr((field, name, array.shape, array.dtype.name)).encode())
                for part in pieces(array):
                    part = part.astype(part.dtype.newbyteorder("<"), copy=False)
                    found.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        return found.hexdigest()

    def gated(self, gates: Mapping[str, Any]) -> Dataset:
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
        """The same samples with what the best linear map of all inputs leaves of the targets.

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
        x = np.concatenate([np.asarray(a, np.float64) for a in self.x.values()], axis=1)
        root = np.sqrt(np.asarray(self.probability, np.float64))[:, None]
        y = {}
        for node, target in self.y.items():
            wanted = np.asarray(target, np.float64)
            y[node] = wanted - x @ np.linalg.lstsq(root * x, root * wanted)[0]
        return Dataset(self.x, y, self.gates, self.sample_weight, self.labels)

    def mask(self, **where: Any) -> Bool[np.ndarray, " N"]:
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
            if name not in self.labels:
                raise NeuralRaceError(
                    f"unknown label {name!r}",
                    got=repr(name),
                    wanted=f"one of {listed(self.labels)}",
                    fix="pass labels={…} to the Dataset, or check the spelling",
                )
            among = np.atleast_1d(np.asarray(list(values) if np.iterable(values) else values))
            where_it_is = np.isin(np.asarray(self.labels[name]), among)
            if not where_it_is.any():
                raise NeuralRaceError(
                    f"no sample has this label {name!r}",
                    got=among.tolist(),
                    wanted=f"some of {np.unique(np.asarray(self.labels[name])).tolist()}",
                    fix="check the values; a mask that is nowhere on would be a dead pathway",
                )
            mask &= where_it_is
        return mask

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
        values = {name: np.asarray(g) for name, g in sorted(self.gates.items())}
        columns = [np.reshape(g, (self.n_samples, -1)) for g in values.values()]
        table = np.concatenate([np.zeros((self.n_samples, 1)), *columns], axis=1) + 0.0  # -0 → 0
        rows = np.ascontiguousarray(table, dtype=np.float64)
        as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
        _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
        weight = np.bincount(inverse, weights=np.asarray(self.probability), minlength=len(first))
        return GateClasses(inverse, weight, {name: g[first] for name, g in values.items()})


@final
@dataclass(frozen=True)
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


def matched(arch: Architecture, data: Dataset) -> Dataset:
    """`data` as `arch` needs it, with the bias filled in, or an error that says what is amiss.

    Every network and every theory calls this first, so that names and sizes are checked in one
    place; it works under `jit`, where it sees shapes alone.
    """
    x = dict(data.x)
    if BIAS in arch.inputs and BIAS not in x:
        x[BIAS] = np.ones((data.n_samples, arch.sizes[BIAS]))
    for field, values, nodes, kind in (
        ("x", x, arch.inputs, "input"),
        ("y", data.y, arch.outputs, "output"),
    ):
        for node in sorted(set(nodes) ^ set(values), key=str):
            missing = node in nodes
            raise NeuralRaceError(
                f"{kind} node {node!r} has no {field}"
                if missing
                else f"unknown name {node!r} in {field}",
                got=f"{field} for {listed(values)}",
                wanted=f"{field} for {listed(nodes)}, the {kind} nodes",
                fix=f"pass {field}={{{node!r}: …}}"
                if missing
                else f"rename or leave out {node!r}; hidden nodes are neither shown nor wanted",
            )
        for node, value in values.items():
            _check_size(f"{field}[{node!r}]", value.shape, arch.sizes[node], node)
    for name, gate in data.gates.items():
        if name not in arch.sizes and name not in arch.edges:
            raise NeuralRaceError(
                f"gates for an unknown name {name!r}",
                got=repr(name),
                wanted=f"a node ({listed(arch.sizes)}) or an edge ({listed(arch.edges)})",
                fix="check the spelling, or use the architecture the gates were made for",
            )
        if gate.ndim == 2 and name in arch.edges:
            raise NeuralRaceError(
                f"edge {name!r} has one gate a sample",
                got=f"gates of shape {gate.shape}",
                wanted="shape (N,)",
                fix="gate the neurons of the edge's source or target node instead",
            )
        if gate.ndim == 2:
            _check_size(f"gates[{name!r}]", gate.shape, arch.sizes[name], name)
    return data if len(x) == len(data.x) else eqx.tree_at(lambda d: d.x, data, x)


def pathways(
    base: Dataset,
    masks: Any,
    hidden: int | Mapping[str, int],
    inputs: Mapping[str, Sequence[str]] | None = None,
    outputs: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Architecture, Dataset]:
    """Parallel gated pathways over a base dataset: the common way to write down a gating.

    **Arguments:** `masks` says for each pathway where it is on: `None` for always, or an array of
    shape `(N,)` of booleans or real gates. `hidden` is the width of all pathways or of each.
    `inputs` and `outputs` restrict a pathway to some nodes; a pathway they leave out has all.

    **Returns:** the architecture (one hidden node a pathway, edges named `source_target`) and the
    base dataset with these gates. Inputs that no pathway reads are left out.

    ```python
    >>> import neuralrace as nr
    >>> base = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [0.0]]}, labels={"context": [1, 2]})
    >>> arch, data = nr.pathways(base, {"common": None, "first": base.mask(context=1)}, hidden=10)
    >>> arch.hidden, data.gates
    (('common', 'first'), {'first': array([1., 0.])})

    ```
    """
    if not isinstance(masks, Mapping) or not masks:
        raise NeuralRaceError(
            "pathways are given by name" if masks else "there are no pathways",
            got=f"{type(masks).__name__} {masks!r:.80}",
            wanted="{name: mask or None}",
            fix="name at least one pathway, for example {'common': None}",
        )
    widths = dict(hidden) if isinstance(hidden, Mapping) else dict.fromkeys(masks, hidden)
    if set(widths) != set(masks):
        raise NeuralRaceError(
            "hidden must give a width to every pathway and to nothing else",
            got=f"widths for {listed(widths)}",
            wanted=f"widths for {listed(masks)}",
            fix="pass one number for all, or {name: width} with the names of the pathways",
        )
    taken = sorted(set(masks) & ({*base.x, *base.y}))
    if taken:
        raise NeuralRaceError(
            f"pathway {taken[0]!r} has the name of an input or output",
            got=listed(masks),
            wanted=f"names other than {listed({*base.x, *base.y})}",
            fix="rename the pathway",
        )
    check_ends(inputs or {}, masks, base.x, "input")
    reads = {name: (inputs or {}).get(name, tuple(base.x)) for name in masks}
    read = {v for ends in reads.values() for v in ends}
    arch = Architecture.parallel(
        {v: x.shape[1] for v, x in base.x.items() if v in read},
        {name: widths[name] for name in masks},
        {v: y.shape[1] for v, y in base.y.items()},
        reads=reads,
        writes=outputs,
    )
    dropped = (set(base.x) - read) | set(masks)
    gates = {name: gate for name, gate in base.gates.items() if name not in dropped}
    gates |= {name: mask for name, mask in masks.items() if mask is not None}
    x = {v: x for v, x in base.x.items() if v in read}
    data = Dataset(x, base.y, gates, base.sample_weight, base.labels)
    return arch, matched(arch, data)


def is_concrete(value: Any) -> bool:
    """Whether an array's values can be looked at, which they cannot under `jit`."""
    return not isinstance(value, Tracer)


PIECE = 2**22
"""Entries of an array that are looked at together, to bound the memory."""


def pieces(array: AnyArray) -> Iterator[np.ndarray]:
    """The array as NumPy arrays of some of its rows, in order."""
    rows = max(1, PIECE // max(1, math.prod(array.shape[1:])))
    for low in range(0, len(array), rows):
        yield np.asarray(array[low : low + rows])


def _arrays(
    values: Any, field: str, ndims: tuple[int, ...], form: str, as_float: bool = True
) -> dict[str, AnyArray]:
    if not isinstance(values, Mapping):
        raise NeuralRaceError(
            f"{field} must be a mapping from names to arrays",
            got=type(values).__name__,
            wanted=f"{{name: array of shape {form}}}",
            fix=f"for example {field}={{'{'h' if field == 'gates' else field}': …}}",
        )
    arrays = {}
    for name, value in values.items():
        array = arrays[name] = _number_array(value, f"{field}[{name!r}]", as_float)
        if array.ndim not in ndims:
            raise NeuralRaceError(
                f"{field}[{name!r}] has the wrong number of axes",
                got=f"shape {array.shape}",
                wanted=f"shape {form}",
                fix="samples are the first axis; reshape a single feature to (N, 1)",
            )
    return arrays


def _number_array(value: Any, what: str, as_float: bool = True) -> AnyArray:
    """`value` as a real array in the precision it came in, finite where that can be seen."""
    try:
        array = value if isinstance(value, jax.Array) else np.asarray(value)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "fiub" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise NeuralRaceError(
            f"{what} must hold real numbers",
            got=f"{type(value).__name__} of dtype {array.dtype}",
            wanted="an array of floats, integers or booleans",
            fix="encode names as numbers: np.unique(names, return_inverse=True)[1]",
        )
    if as_float and array.dtype.kind in "iub":
        array = array.astype(float)
    if is_concrete(array) and not np.isfinite(np.asarray(array)).all():
        bad = np.argwhere(~np.isfinite(np.asarray(array)))
        raise NeuralRaceError(
            f"{what} holds NaN or infinity",
            got=f"{len(bad)} such values, the first at index {tuple(map(int, bad[0]))}",
            wanted="finite numbers",
            fix="drop or repair these samples before building the dataset",
        )
    return array


def checked_weight(value: Any) -> AnyArray:
    """Sample weights, normalised to sum to one, or an error."""
    weight = _number_array(value, "sample_weight")
    if weight.ndim != 1:
        raise NeuralRaceError(
            "sample_weight has the wrong number of axes",
            got=f"shape {weight.shape}",
            wanted="shape (N,)",
            fix="give one weight a sample",
        )
    if is_concrete(weight):
        held = np.asarray(weight)
        low, total = float(np.min(held, initial=0.0)), float(np.sum(held))
        if low < 0 or total <= 0:
            raise NeuralRaceError(
                "sample weights must be non-negative and not all zero",
                got=f"minimum {low:g}, sum {total:g}",
                wanted="weights of at least 0 with a positive sum",
                fix="drop the samples that should not count, or pass None for equal weights",
            )
    return weight / weight.sum()


def _check_size(what: str, shape: tuple[int, ...], size: int, node: str) -> None:
    if shape[1] != size:
        raise NeuralRaceError(
            f"{what} does not fit node {node!r}",
            got=f"shape {shape}",
            wanted=f"shape (N, {size}), since node {node!r} has {size} neurons",
            fix="change the node's size or the array; samples are the first axis",
        )
