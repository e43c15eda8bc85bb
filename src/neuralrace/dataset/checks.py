"""Arrays as a dataset holds them, of lists, files and tables, and their classes of equal gates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float, Int

from neuralrace.checks import by_name, check_known, kind_of
from neuralrace.dataset.text import TextLabel
from neuralrace.errors import NeuralRaceError, listed, require, spelled
from neuralrace.tolerances import LARGEST
from neuralrace.types import Array, ArrayLike

AnyArray = Array | np.ndarray


def is_concrete(value: object) -> bool:
    """Whether an array's values can be looked at, which they cannot under `jit`."""
    return not isinstance(value, Tracer)


PIECE = 2**22
"""Entries of an array that are looked at together, to bound the memory."""


def pieces(array: AnyArray) -> Iterator[np.ndarray]:
    """The array as NumPy arrays of some of its rows, in order.

    One of JAX becomes one of NumPy first: under `jit`, its slices would be traced.
    """
    array = np.asarray(array) if isinstance(array, jax.Array) else array
    rows = max(1, PIECE // max(1, math.prod(array.shape[1:])))
    for low in range(0, len(array), rows):
        yield np.asarray(array[low : low + rows])


def arrays_by_name(
    values: Any, field: str, ndims: tuple[int, ...], form: str, as_float: bool = True
) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    by_name(field, values, f"for example {field}={{'{'h' if field == 'gates' else field}': …}}")
    for name, value in values.items():
        if field == "labels" and _is_text(value):
            value = value if isinstance(value, TextLabel) else TextLabel.of(value)
            array = arrays[name] = value
        else:
            array = arrays[name] = number_array(value, f"{field}[{name!r}]", as_float)
        require(
            array.ndim in ndims,
            f"{field}[{name!r}] has the wrong number of axes",
            got=f"shape {array.shape}",
            wanted=f"shape {form}",
            fix="samples are the first axis; reshape a single feature to (N, 1)",
        )
    return arrays


def _is_text(value: Any) -> bool:
    """Whether this is one text per sample."""
    if isinstance(value, TextLabel):
        return True
    texts = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
    return len(value) > 0 if texts else kind_of(value) == "U"


def number_array(value: ArrayLike, what: str, as_float: bool = True) -> AnyArray:
    """`value` as a real array in the precision it came in, finite where that can be seen.

    A memory-mapped file stays one: it is looked at piece by piece, and not copied.
    """
    array = _plain(value, what)
    if kind_of(array) not in ("f", "i", "u", "b") and not jnp.issubdtype(array.dtype, jnp.floating):
        raise NeuralRaceError(
            f"{what} must hold real numbers",
            got=f"{type(value).__name__} of dtype {array.dtype}",
            wanted="an array of floats, integers or booleans",
            fix="take the real part, or pass both parts as features"
            if kind_of(array) == "c"
            else "encode names as numbers: np.unique(names, return_inverse=True)[1]",
        )
    if as_float and array.dtype.kind in "iub":
        require(
            not isinstance(value, np.memmap),
            f"{what} is a memory-mapped file of integers",
            got=f"numpy.memmap of dtype {array.dtype}",
            wanted="a file of floats, which needs no copy",
            fix="write the file as float32, or load it: np.asarray(file, np.float32)",
        )
        array = array.astype(float)
    if is_concrete(array):
        _check_finite(array, what)
    return array


def _plain(value: Any, what: str) -> AnyArray:
    """A NumPy or JAX array; masked entries would lose their mask."""
    if np.ma.is_masked(value):
        raise NeuralRaceError(
            f"{what} has masked entries",
            got=f"{np.ma.count_masked(value)} masked entries",
            wanted="a value for every sample",
            fix="drop these samples, or fill them in: array.filled(…)",
        )
    try:
        return value if isinstance(value, jax.Array) else np.asarray(value)
    except (TypeError, ValueError):  # ragged, or no array at all
        return np.empty(0, object)


def _check_finite(array: AnyArray, what: str) -> None:
    if array.dtype.kind in "iub":
        return
    below, bad, first = 0, 0, ()
    for part in pieces(array) if array.ndim else (np.asarray(array)[None],):
        wrong = ~np.isfinite(part)
        if wrong.any():
            if not bad:
                row, *rest = map(int, np.argwhere(wrong)[0])
                first = (below + row, *rest)
            bad += int(wrong.sum())
        below += len(part)
    require(
        not bad,
        f"{what} holds NaN or infinity",
        got=f"{bad} such values, the first at index {first}",
        wanted="finite numbers",
        fix="drop or repair these samples before building the dataset",
    )


class Fields(Protocol):
    """What second moments are computed of: a `Dataset`."""

    x: dict[str, AnyArray]
    y: dict[str, AnyArray]
    gates: dict[str, AnyArray]
    sample_weight: AnyArray | None


def check_moments(data: Fields) -> None:
    """Raise where second moments of a dataset cannot be computed: traced data, or too large."""
    for field in ("x", "y", "gates"):
        arrays = getattr(data, field)
        check_known(f"the {field} of the data", arrays)
        for name, array in arrays.items():
            largest = max(
                (float(np.abs(part).max(initial=0.0)) for part in pieces(array)), default=0
            )
            require(
                largest <= LARGEST,
                f"{field}[{name!r}] is so large that its squares would overflow",
                got=f"numbers up to {largest:.3g}",
                wanted=f"numbers up to {LARGEST:.0e}",
                fix="divide inputs and targets by a constant: other units, the same task",
            )
    check_known("the weights of the samples", {"sample_weight": data.sample_weight})


def checked_weight(value: ArrayLike) -> AnyArray:
    """Sample weights, normalised to sum to one, or an error."""
    weight = number_array(value, "sample_weight")
    require(
        weight.ndim == 1,
        "sample_weight has the wrong number of axes",
        got=f"shape {weight.shape}",
        wanted="shape (N,)",
        fix="give one weight per sample",
    )
    if is_concrete(weight):
        held = np.asarray(weight)
        low, total = float(np.min(held, initial=0.0)), float(np.sum(held))
        require(
            low >= 0 and total > 0,
            "sample weights must be non-negative and not all zero",
            got=f"minimum {low:g}, sum {total:g}",
            wanted="weights of at least 0 with a positive sum",
            fix="drop the samples that should not count, or pass None for equal weights",
        )
    return weight / weight.sum()


def checked_loss_weight(
    values: Mapping[str, ArrayLike], targets: Mapping[str, AnyArray], samples: int
) -> dict[str, AnyArray]:
    """How much every output node counts on every sample, (N,), or an error."""
    fix = "loss_weight={'y1': 0.5}, or one number per sample"
    by_name("loss_weight", values, fix)
    found: dict[str, AnyArray] = {}
    for node, value in values.items():
        require(
            node in targets,
            f"loss_weight names {node!r}, which has no targets",
            got=repr(node),
            wanted=f"some of {listed(targets)}",
            fix=spelled(node, targets, fix),
        )
        weight = number_array(value, f"loss_weight[{node!r}]")
        if weight.ndim == 0:
            weight = np.full(samples, weight) if is_concrete(weight) else weight * jnp.ones(samples)
        if is_concrete(weight):
            low = float(np.min(np.asarray(weight), initial=0.0))
            require(
                weight.ndim == 1 and low >= 0,
                f"loss_weight[{node!r}] must hold weights of at least 0",
                got=f"shape {weight.shape}, least {low:g}",
                wanted="a number, or shape (N,)",
                fix=fix,
            )
        found[node] = weight
    return found


@runtime_checkable
class Table(Protocol):
    """As much of a pandas DataFrame as is read here."""

    @property
    def columns(self) -> Iterable[str]:
        """The names of the columns."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, name: str) -> Any: ...


def numbers(frame: Table, names: Sequence[str]) -> np.ndarray:
    """Columns of numbers, shape (N, number of columns)."""
    found = []
    for name in names:
        column = _column(frame, name)
        try:
            found.append(np.asarray(column, dtype=float))
        except (TypeError, ValueError) as error:
            raise NeuralRaceError(
                f"column {name!r} does not hold numbers",
                got=f"dtype {column.dtype}: {error}",
                wanted="numbers, none missing",
                fix="encode names as numbers, one-hot with pandas.get_dummies(frame), and drop "
                "rows with missing values: frame.dropna()",
            ) from error
        wrong = np.flatnonzero(~np.isfinite(found[-1]))
        if wrong.size:
            raise NeuralRaceError(
                f"column {name!r} holds NaN or infinity",
                got=f"{wrong.size} such values, the first in row {wrong[0]}",
                wanted="finite numbers, none missing",
                fix="drop these rows, frame.dropna(), or fill them, frame.fillna(…)",
            )
    return np.stack(found, axis=1) if found else np.empty((len(frame), 0))


def label(frame: Table, name: str) -> np.ndarray | TextLabel:
    """A column of labels: numbers as they are, everything else as text."""
    column = _column(frame, name)
    categories = getattr(getattr(column, "cat", None), "codes", None)
    values = np.asarray(column)
    if categories is None and values.dtype.kind in "iufb":
        return values
    isna = getattr(column, "isna", None)
    require(
        not (any(value is None for value in values) if isna is None else isna().any()),
        f"label {name!r} has missing values",
        got=f"column {name!r} of dtype {column.dtype}",
        wanted="a label for every sample",
        fix="drop these rows, frame.dropna(), or name them, frame.fillna('unknown')",
    )
    if categories is not None:
        return TextLabel(np.asarray(categories, int), tuple(map(str, column.cat.categories)))
    return TextLabel.of(values)


def _column(frame: Any, name: str) -> Any:
    if not isinstance(name, str) or name not in list(frame.columns):
        raise NeuralRaceError(
            f"the table has no column {name!r}",
            got=repr(name),
            wanted=f"one of {listed(frame.columns)}",
            fix=spelled(name, frame.columns, "check the spelling"),
        )
    return frame[name]


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
