"""Second moments of inputs and targets, class by class of equal gates, and rows that have them.

Learning with the squared loss sees nothing else of the data, so that a population is a few rows
with exactly these moments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from neuralrace.checks import real_array
from neuralrace.dataset.checks import PIECE, check_moments, number_array
from neuralrace.errors import require
from neuralrace.tolerances import DEPENDENT, EQUAL
from neuralrace.types import ArrayLike, Matrix

if TYPE_CHECKING:
    from neuralrace.dataset.samples import Dataset

Pair: TypeAlias = tuple[str, str]
MomentsLike: TypeAlias = ArrayLike | Mapping[Any, ArrayLike]
"""A matrix for the nodes `x` and `y`, or matrices by pair of nodes, or by node on the diagonal."""


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """The second moments of a class of samples with equal gates: uncentred, ⟨a bᵀ⟩ over the class.

    `xx[u, v]` = ⟨x_u x_vᵀ⟩, `yx[u, v]` = ⟨y_u x_vᵀ⟩ and `yy[u, v]` = ⟨y_u y_vᵀ⟩; of `xx` and
    `yy`, one of each pair of nodes is kept. `gates[name]` is a number, or one for each neuron, and
    `probability` the weight of the class in the mean.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [3.0]]}, {"y": [[1.0], [2.0]]})
    >>> (moments,) = data.moments()
    >>> moments.xx["x", "x"], moments.yx["y", "x"], moments.probability
    (array([[5.]]), array([[3.5]]), 1.0)

    ```
    """

    probability: float
    gates: dict[str, np.ndarray]
    xx: dict[Pair, Matrix]
    yx: dict[Pair, Matrix]
    yy: dict[Pair, Matrix] | None = None

    @property
    def inputs(self) -> dict[str, int]:
        """The size of every input node."""
        return {u: len(m) for (u, v), m in self.xx.items() if u == v}

    @property
    def outputs(self) -> dict[str, int]:
        """The size of every output node."""
        return {u: len(m) for (u, _), m in self.yx.items()}


def moments_of(data: Dataset) -> tuple[Moments, ...]:
    """See `Dataset.moments`."""
    check_moments(data)
    classes = data.gate_classes()
    order = np.argsort(classes.index, kind="stable")
    bounds = np.searchsorted(classes.index[order], np.arange(len(classes) + 1))
    weight = np.asarray(data.probability, np.float64)
    sizes = [a.shape[1] for field in (data.x, data.y) for a in field.values()]
    step = max(1, PIECE // sum(sizes))
    cut = lambda low, high: [order[a : min(a + step, high)] for a in range(low, high, step)]
    return tuple(
        Moments(
            float(classes.weight[c]),
            {name: np.asarray(gate[c], np.float64) for name, gate in classes.gates.items()},
            *_summed(data, weight, cut(low, high)),
        )
        for c, (low, high) in enumerate(pairwise(bounds))
        if classes.weight[c] > 0
    )


def _summed(
    data: Dataset, weight: np.ndarray, pieces: list[np.ndarray]
) -> tuple[dict[Pair, Matrix], dict[Pair, Matrix], dict[Pair, Matrix]]:
    """The weighted means of all products over some rows."""
    found: list[dict[Pair, Matrix]] = [{}, {}, {}]
    total = sum(weight[rows].sum() for rows in pieces)
    for rows in pieces:
        x, y = (
            {v: np.asarray(a[rows], np.float64) for v, a in f.items()} for f in (data.x, data.y)
        )
        share = weight[rows][:, None] / total
        pairs = (
            (x, x, combinations_with_replacement(x, 2)),
            (y, x, ((u, v) for u in y for v in x)),
            (y, y, combinations_with_replacement(y, 2)),
        )
        for sums, (left, right, names) in zip(found, pairs, strict=True):
            for u, v in names:
                sums[u, v] = sums.get((u, v), 0.0) + (share * left[u]).T @ right[v]
    return found[0], found[1], found[2]


def summed(several: Iterable[Moments]) -> tuple[Moments, ...]:
    """The moments of all, class by class; weights are normalised to sum to one."""
    classes: dict[Hashable, list[Any]] = {}
    noted = set()
    for one in several:
        noted.add(one.yy is None)
        require(
            len(noted) == 1,
            "some of these moments have yy, and others do not",
            got="moments with ⟨y yᵀ⟩ and without",
            wanted="the same moments of every part",
            fix="leave out yy where targets are without noise, or give it everywhere",
        )
        key = tuple((name, gate.tobytes()) for name, gate in sorted(one.gates.items()))
        fields = (one.xx, one.yx, one.yy or {})
        held = classes.setdefault(key, [one, 0.0, {}, {}, {}])
        held[1] += one.probability
        for sums, field in zip(held[2:], fields, strict=True):
            for pair, matrix in field.items():
                known = sums.get(pair, np.zeros(matrix.shape))
                require(
                    known.shape == matrix.shape,
                    f"a chunk has another size of {' or '.join(pair)} than those before",
                    got=f"shape {matrix.shape}",
                    wanted=f"shape {known.shape}",
                    fix="all chunks have the same nodes",
                )
                sums[pair] = known + one.probability * matrix
    total = sum(held[1] for held in classes.values())
    require(
        total > 0,
        "there are no chunks",
        got="an empty iterator",
        wanted="at least one dataset",
        fix="an iterator can be gone through once: make a new one",
    )
    mean = lambda sums, weight: {pair: matrix / weight for pair, matrix in sums.items()}
    return tuple(
        Moments(
            weight / total,
            first.gates,
            mean(xx, weight),
            mean(yx, weight),
            None if True in noted else mean(yy, weight),
        )
        for first, weight, xx, yx, yy in classes.values()
        if weight > 0
    )


# ---- from arrays --------------------------------------------------------------------------------


def given_moments(
    xx: Any, yx: Any, yy: Any, gates: Mapping[str, ArrayLike] | None, probability: float = 1.0
) -> Moments:
    """The moments of one class, of matrices or mappings from pairs of nodes to matrices."""
    require(
        yx is not None,
        "yx is missing",
        got="xx alone",
        wanted="the moments ⟨y xᵀ⟩ of targets with inputs",
        fix="Dataset.from_moments(xx, yx)",
    )
    held = {
        name: real_array(f"gates[{name!r}]", gate, fix="a number, or one for each neuron")
        for name, gate in (gates or {}).items()
    }
    for name, gate in held.items():
        require(
            gate.ndim < 2 and np.isfinite(gate).all(),
            f"gates[{name!r}] must be the gate of the class",
            got=f"an array of shape {gate.shape}",
            wanted="a finite number, or one for each neuron of a node",
            fix="classes with other gates are other populations: Dataset.mixture({…})",
        )
    targets = None if yy is None else _pairs("yy", yy, "y", "y")
    found = Moments(
        probability, held, _pairs("xx", xx, "x", "x"), _pairs("yx", yx, "y", "x"), targets
    )
    for what, blocks, rows, columns in (
        ("xx", found.xx, found.inputs, found.inputs),
        ("yx", found.yx, found.outputs, found.inputs),
        ("yy", targets or {}, found.outputs, found.outputs),
    ):
        for (u, v), block in blocks.items():
            require(
                block.shape == (rows.get(u), columns.get(v)),
                f"{what}[{u!r}, {v!r}] does not fit its nodes",
                got=f"shape {block.shape}",
                wanted=f"rows for one of {rows}, columns for one of {columns}",
                fix="xx is ⟨x xᵀ⟩, yx is ⟨y xᵀ⟩ and yy is ⟨y yᵀ⟩",
            )
    return found


def _pairs(what: str, values: Any, first: str, second: str) -> dict[Pair, Matrix]:
    """Matrices by pair of nodes; a key that is one node stands for the node with itself."""
    found: dict[Pair, Matrix] = {}
    by_pair = values if isinstance(values, Mapping) else {(first, second): values}
    require(by_pair, f"{what} is empty", got="{}", wanted="matrices", fix=f"pass {what}={{…}}")
    for key, value in by_pair.items():
        pair = key if isinstance(key, tuple) else (key, key)
        require(
            len(pair) == 2 and all(isinstance(v, str) for v in pair),
            f"{what} has a key that is not a pair of nodes",
            got=repr(key),
            wanted="pairs of names, or one name for a node with itself",
            fix=f"for example {what}={{({first!r}, {second!r}): …}}",
        )
        matrix = np.asarray(number_array(value, f"{what}[{pair[0]!r}, {pair[1]!r}]"))
        require(
            matrix.ndim == 2 and matrix.size,
            f"{what} must hold matrices",
            got=f"shape {matrix.shape}",
            wanted="two axes, neither of them empty",
            fix="the second moment of a single feature is [[⟨x²⟩]]",
        )
        found[pair] = matrix
    return found


def _side_by_side(
    blocks: Mapping[Pair, Matrix], rows: Mapping[str, int], columns: Mapping[str, int]
) -> Matrix:
    """One matrix of all nodes; a pair that is missing is that the other way round, or zero."""
    mirrored = rows == columns

    def block(u: str, v: str) -> Matrix:
        if (u, v) not in blocks and mirrored and (v, u) in blocks:
            return blocks[v, u].T
        return blocks.get((u, v), np.zeros((rows[u], columns[v])))

    return np.block([[np.asarray(block(u, v), np.float64) for v in columns] for u in rows])


def rows_of(moments: Moments) -> tuple[dict[str, Matrix], dict[str, Matrix]]:
    """Inputs and targets of k rows whose means of products are these moments, by node.

    With Σ^x = RᵀR, R of orthogonal rows, they are x = √k R and y = √k (Σ^yx R⁺)ᵀ, and rows with
    x = 0 for the targets that are left, Σ^y − Σ^yx Σ^x⁺ Σ^xy.
    """
    inputs, outputs = moments.inputs, moments.outputs
    unit, size, turn = _decomposed("xx", _side_by_side(moments.xx, inputs, inputs))
    seen = size > DEPENDENT * size.max(initial=0.0)
    yx = _side_by_side(moments.yx, outputs, inputs) / unit @ turn
    x = np.sqrt(size[seen])[:, None] * turn[:, seen].T * unit
    y = (yx[:, seen] / np.sqrt(size[seen])).T
    rest = np.zeros((0, y.shape[1]))
    scale = np.linalg.norm(y, axis=0)
    if moments.yy is not None:
        yy = _side_by_side(moments.yy, outputs, outputs)
        _decomposed("yy", yy)
        scale = np.maximum(scale, np.sqrt(np.diagonal(yy)))
        each = np.where(scale > 0, scale, 1.0)
        left, way = np.linalg.eigh((yy - y.T @ y) / each[:, None] / each)
        _check_joint(-left.min(), "Σ^y − Σ^yx Σ^x⁺ Σ^xy has an eigenvalue of")
        kept = left > DEPENDENT
        rest = np.sqrt(left[kept])[:, None] * way[:, kept].T * each
    lost = np.linalg.norm(yx[:, ~seen], axis=1) / np.where(scale > 0, scale, 1.0)
    _check_joint(lost.max(), "along directions without variance yx has a part of")
    count = max(1, len(x) + len(rest))
    x, y = (
        np.sqrt(count) * np.concatenate([a, np.zeros((count - len(a), a.shape[1]))])
        for a in (x, np.concatenate([y, rest]))
    )
    return _cut(x, inputs), _cut(y, outputs)


def _check_joint(excess: float, where: str) -> None:
    require(
        excess <= EQUAL,
        "no joint distribution of inputs and targets has this yx",
        got=f"{where} {excess:.3g}, in units of the targets",
        wanted="Σ^y − Σ^yx Σ^x⁺ Σ^xy positive semidefinite, and yx zero where xx is",
        fix="check the units of yx, and that all moments are of one distribution",
    )


def _cut(rows: Matrix, sizes: Mapping[str, int]) -> dict[str, Matrix]:
    parts = np.split(rows, np.cumsum(list(sizes.values()))[:-1], axis=1)
    return dict(zip(sizes, parts, strict=True))


def _decomposed(what: str, whole: Matrix) -> tuple[np.ndarray, np.ndarray, Matrix]:
    """The units of the features, and eigenvalues and eigenvectors of the moments in these units."""
    variance = np.diagonal(whole)
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    correlation = whole / unit[:, None] / unit
    asymmetry = float(np.abs(correlation - correlation.T).max())
    require(
        asymmetry <= EQUAL,
        f"{what} is not symmetric",
        got=f"entries ⟨ab⟩ and ⟨ba⟩ that differ by {asymmetry:.3g} √(⟨a²⟩⟨b²⟩)",
        wanted="a symmetric matrix",
        fix=f"{what} = ({what} + {what}.T) / 2, if the difference is noise",
    )
    size, directions = np.linalg.eigh((correlation + correlation.T) / 2)
    require(
        size[0] >= -EQUAL,
        f"{what} is not positive semidefinite",
        got=f"an eigenvalue of {size[0]:.3g}, in units of the features",
        wanted="moments ⟨a aᵀ⟩, whose eigenvalues are at least 0",
        fix="check signs and units; of estimates, drop the negative eigenvalues",
    )
    return unit, size, directions
