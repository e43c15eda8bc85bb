"""Inputs, targets, gates, weights and labels of samples, or of rows that stand for a population."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from neuralrace.checks import check_known, plain_array, real_number
from neuralrace.dataset.checks import (
    AnyArray,
    GateClasses,
    Table,
    arrays_by_name,
    check_moments,
    checked_loss_weight,
    checked_weight,
    is_concrete,
    label,
    number_array,
    numbers,
    pieces,
    sorted_by_gates,
)
from neuralrace.dataset.moments import Moments, given_moments, moments_of, rows_of, summed
from neuralrace.dataset.text import TextLabel, described
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require, spelled
from neuralrace.tolerances import ROUNDING
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

    A *population* (`from_moments`, `mixture`) is a small dataset whose rows have the second moments
    of a distribution. Rows of one `part` have a meaning together only: they share their gates, and
    what needs single samples, such as a ReLU network, refuses them.

    **Arguments:** `x[input node]` and `y[output node]` of shape `(N, size)`; `gates[name]` of
    shape `(N,)` for a node or an edge, `(N, size)` for the neurons of a node; `sample_weight` of
    shape `(N,)`, non-negative, normalised here to sum to one; `labels[name]` of shape `(N,)`:
    numbers, booleans or text that say what a sample is; `part[n]` is, in a population, the part
    that row n belongs to. `loss_weight[output node]` is how much the node counts in the squared
    loss, ½⟨Σ_v w_v ‖y_v − h_v‖²⟩: a number, such as for the steps of a sequence, or one per sample,
    0 where there is no target; a node that is missing counts as 1.

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
    part: AnyArray | None
    loss_weight: dict[str, AnyArray]

    @door
    def __init__(
        self,
        x: Mapping[str, ArrayLike],
        y: Mapping[str, ArrayLike],
        gates: Mapping[str, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike | TextLabel] | None = None,
        part: ArrayLike | None = None,
        loss_weight: Mapping[str, ArrayLike] | None = None,
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
        self.part = None if part is None else number_array(part, "part", as_float=False)
        self.loss_weight = checked_loss_weight(loss_weight or {}, self.y, n)
        everything: dict[str, AnyArray | TextLabel] = {
            f"{field}[{name!r}]": value
            for field in ("x", "y", "gates", "labels", "loss_weight")
            for name, value in getattr(self, field).items()
        }
        if self.sample_weight is not None:
            everything["sample_weight"] = self.sample_weight
        if self.part is not None:
            everything["part"] = self.part
        for name, value in everything.items():
            require(
                value.shape[0] == n,
                f"{name} has another number of samples than x[{first!r}]",
                got=f"{name} of shape {value.shape}",
                wanted=f"{n} samples along the first axis",
                fix="a gate, a label or a weight has one value per sample"
                if value.ndim == 1
                else "give every sample a row; transpose data with one column per sample",
            )
        self._check_parts()

    def _check_parts(self) -> None:
        """Raise where rows that have a meaning together only have different gates."""
        if self.part is None or not is_concrete(self.part):
            return
        _, first, index = np.unique(np.asarray(self.part), return_index=True, return_inverse=True)
        for name, gate in (*self.gates.items(), *self.loss_weight.items()):
            require(
                not is_concrete(gate)
                or not (np.asarray(gate) != np.asarray(gate)[first][index]).any(),
                f"gates or loss weights of {name!r} differ among the rows of a population",
                got=f"{self.n_samples} rows in {len(first)} parts, with gates within a part",
                wanted="equal gates for all rows of a part: its rows are no samples",
                fix="one population for each gate, nr.Dataset.mixture({'on': (0.5, first), …}), "
                "and data.mask(part='on')",
            )

    @property
    def is_population(self) -> bool:
        """Whether rows stand for second moments, so that none of them is a sample.

        ```python
        >>> import neuralrace as nr
        >>> nr.Dataset.from_moments([[1.0]], [[0.5]]).is_population
        True

        ```
        """
        return self.part is not None

    @classmethod
    @door
    def from_moments(
        cls,
        xx: ArrayLike | Mapping[Any, ArrayLike] | Iterator[Any] | Sequence[Any],
        yx: ArrayLike | Mapping[Any, ArrayLike] | None = None,
        yy: ArrayLike | Mapping[Any, ArrayLike] | None = None,
        gates: Mapping[str, ArrayLike] | None = None,
    ) -> Dataset:
        """A population: few rows with exactly these second moments, which need not be centred.

        Learning with the squared loss sees the moments ⟨x xᵀ⟩ and ⟨y xᵀ⟩ of every class of equal
        gates, and the loss ⟨y yᵀ⟩ besides (NRR Eqs. 2–6). Statistics, reductions, their
        solutions, contests of given gatings, `train` and `flow` of gated linear networks are those
        of the distribution. What needs single samples refuses a population.

        **Arguments:** `xx` = ⟨x xᵀ⟩, `yx` = ⟨y xᵀ⟩ and `yy` = ⟨y yᵀ⟩ are matrices, for the nodes
        `x` and `y`, or mappings from pairs of nodes to matrices: `{("a", "a"): …, ("a", "b"): …}`.
        One node stands for the pair with itself; pairs that are missing are uncorrelated. Without
        `yy`, targets are the best linear function of the inputs, without noise. `gates[name]` is
        the gate of a node or edge, or one for each neuron; see `mixture` for more classes. In
        place of the matrices, `xx` may be an iterator over datasets, the chunks of a larger one,
        which count by their number of samples, or what `moments` returned.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> data = nr.Dataset.from_moments(np.diag([4.0, 1.0]), [[2.0, 1.0]], [[3.0]])
        >>> data
        Dataset(population in 3 rows; x: x 2; y: y 1)
        >>> nr.reduce(nr.Architecture.chain(2, 10, 1), data).is_exact
        True
        >>> chunks = (nr.Dataset({"x": [[i]]}, {"y": [[2.0 * i]]}) for i in range(3))
        >>> nr.Dataset.from_moments(chunks).moments()[0].xx["x", "x"].round(6)
        array([[1.666667]])

        ```
        """
        several = isinstance(xx, Iterator) or (
            isinstance(xx, list | tuple) and any(isinstance(v, Dataset | Moments) for v in xx)
        )
        if several:
            require(
                yx is None and yy is None and gates is None,
                "yx, yy and gates come with the chunks",
                got="chunks of data, and moments besides",
                wanted="one or the other",
                fix="Dataset.from_moments(chunks)",
            )
            classes = summed(_chunks(xx))  # type: ignore[arg-type]
        else:
            classes = (given_moments(xx, yx, yy, gates),)
        parts = []
        for moments in classes:
            x, y = rows_of(moments)
            count = len(next(iter(x.values())))
            on = {name: np.repeat(gate[None], count, 0) for name, gate in moments.gates.items()}
            parts.append((moments.probability, cls(x, y, on, part=np.zeros(count, int))))
        return parts[0][1] if len(parts) == 1 else _mixed(parts)

    @classmethod
    @door
    def mixture(cls, parts: Mapping[str, Sequence[Any]]) -> Dataset:
        """Several distributions, each with its probability: `{name: (probability, data)}`.

        Exact: every part keeps its samples or moments and its gates (always on where it has none).
        The label `part` names them, so that `data.mask(part=name)` can be a gate. It is a
        population if one of its parts is.

        ```python
        >>> import neuralrace as nr
        >>> left, right = (nr.Dataset.from_moments([[v]], [[1.0]]) for v in (1.0, 2.0))
        >>> data = nr.Dataset.mixture({"left": (0.25, left), "right": (0.75, right)})
        >>> arch, data = nr.pathways(data, {"all": None, "left": data.mask(part="left")}, hidden=8)
        >>> [(m.probability, float(m.gates["left"])) for m in data.moments()]
        [(0.75, 0.0), (0.25, 1.0)]

        ```
        """
        pairs: dict[str, tuple[float, Dataset]] = {}
        for name, pair in parts.items():
            fine = len(pair) == 2 and isinstance(pair[1], Dataset)
            require(
                fine,
                f"parts[{name!r}] must be a probability and a dataset",
                got=f"{pair!r:.80}",
                wanted="(probability, data)",
                fix="for example {'a': (0.3, data_a), 'b': (0.7, data_b)}",
            )
            chance = real_number(
                f"the probability of {name!r}", pair[0], least=0, wanted="at least 0", fix="0.5"
            )
            pairs[name] = (chance, pair[1])
        total = sum(chance for chance, _ in pairs.values())
        require(
            abs(total - 1) <= ROUNDING,
            "the probabilities of parts must sum to 1",
            got=f"{total:.12g}",
            wanted="1",
            fix="divide them by their sum",
        )
        names = np.repeat(list(pairs), [data.n_samples for _, data in pairs.values()])
        return replace(_mixed(list(pairs.values())), labels={"part": TextLabel.of(names)})

    def moments(self) -> tuple[Moments, ...]:
        """⟨x xᵀ⟩, ⟨y xᵀ⟩ and ⟨y yᵀ⟩ of every class of equal gates, with the weight of the class.

        `Dataset.from_moments(data.moments())` is a population that learning cannot tell from
        `data`. Samples are read once, piece by piece.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [0.0]]}, gates={"h": [0, 1]})
        >>> [(m.probability, m.gates, m.xx["x", "x"].tolist()) for m in data.moments()]
        [(0.5, {'h': array(0.)}, [[1.0]]), (0.5, {'h': array(1.)}, [[4.0]])]

        ```
        """
        return moments_of(weighed(self))

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
        """A fingerprint of inputs, targets, gates and weights, as 32 hexadecimal digits.

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
        fields = {"x": self.x, "y": self.y, "sample_weight": weight}
        more = {} if self.part is None else {"part": {"": self.part}}
        more |= {"loss_weight": self.loss_weight} if self.loss_weight else {}
        samples = _digest(fields | more)
        half = len(samples) // 2
        return samples[:half] + _digest({"gates": self.gates})[:half] if self.gates else samples

    def _check_known(self) -> None:
        for field in ("x", "y", "gates", "loss_weight"):
            check_known(f"the {field} of the data", getattr(self, field))
        check_known("the data", {"sample_weight": self.sample_weight, "part": self.part})

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
        return replace(self, gates=gates)

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
            seen = root * np.sqrt(np.asarray(self.loss_weight.get(node, 1.0))).reshape(-1, 1)
            y[node] = wanted - x @ np.linalg.lstsq(seen * x, seen * wanted)[0]
        return replace(self, y=y)

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
        kept = ("x", "y", "gates", "labels", "loss_weight")
        fields = {field: rows(getattr(self, field)) for field in kept}
        weight = None if self.sample_weight is None else self.sample_weight[index]
        part = None if self.part is None else self._whole_parts(index)
        return Dataset(**fields, sample_weight=weight, part=part)

    def _whole_parts(self, index: np.ndarray | slice) -> np.ndarray:
        """The parts of some rows of a population, or an error where a part is not taken whole."""
        part = np.asarray(self.part)
        taken = np.bincount(np.arange(len(part))[index], minlength=len(part))
        low, high = (np.full(part.max() + 1, start) for start in (len(part), 0))
        np.minimum.at(low, part, taken)
        np.maximum.at(high, part, taken)
        if (low != high)[part].any():
            require_samples(self, "data")
        return part[index]

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
        require_samples(self, "data")
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


if TYPE_CHECKING:
    Sampled: TypeAlias = Dataset
else:

    class _OfSamples(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, Dataset) and not value.is_population

    Sampled = _OfSamples("Dataset of samples", (), {})
    """A dataset that is no population, as the type of an argument."""


def weighed(data: Dataset) -> Dataset:
    """The same task for a gated network, with the weights of the loss in targets and gates.

    w ‖y − h‖² is the squared distance of √w y from √w h, which is what an output node of gate √w
    gives.
    """
    y, gates = dict(data.y), dict(data.gates)
    for node, weight in data.loss_weight.items():
        root = np.sqrt(weight)
        gate = gates.get(node, 1.0)
        y[node] = y[node] * root[:, None]
        gates[node] = gate * (root[:, None] if np.ndim(gate) == 2 else root)
    return replace(data, y=y, gates=gates, loss_weight=None) if data.loss_weight else data


def weighed_by(data: Dataset, values: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs or targets by node, each times the root of its weight in the squared loss."""
    root = {node: jnp.sqrt(jnp.asarray(w)) for node, w in data.loss_weight.items()}
    return {
        node: value * root[node].astype(value.dtype)[:, None] if node in root else value
        for node, value in values.items()
    }


def check_unweighed(data: Dataset, what: str) -> None:
    """Raise where output nodes count differently in the loss, which `what` does not know."""
    require(
        not data.loss_weight,
        f"loss_weight is not known to {what}",
        got=f"loss_weight of {listed(data.loss_weight)}",
        wanted="outputs that count alike",
        fix="replace(data, loss_weight=None) of dataclasses leaves it out",
    )


def require_samples(data: Dataset, what: str) -> None:
    """Raise where data have no single samples, which is asked for under some conditions alone."""
    require(
        isinstance(data, Sampled),
        f"{what} must have single samples",
        got=data,
        wanted="a Dataset of samples",
        fix="a population has second moments alone: draw samples from the distribution",
    )


def _chunks(several: Iterable[Any]) -> Iterator[Moments]:
    """The moments of chunks, each counting by its samples."""
    for chunk in several:
        if isinstance(chunk, Moments):
            yield chunk
            continue
        require(
            isinstance(chunk, Dataset),
            "chunks must be datasets",
            got=f"{chunk!r:.80}",
            wanted="an iterator over nr.Dataset",
            fix="(nr.Dataset({'x': x}, {'y': y}) for x, y in chunks)",
        )
        require_samples(chunk, "a chunk")
        for moments in chunk.moments():
            yield replace(moments, probability=moments.probability * chunk.n_samples)


def _mixed(parts: Sequence[tuple[float, Dataset]]) -> Dataset:
    """Datasets of the same nodes one below the other, each with its share of the weight."""
    several = [data for _, data in parts]
    sizes = [
        {f"{f}[{v!r}]": a.shape[1] for f in ("x", "y") for v, a in getattr(data, f).items()}
        for data in several
    ]
    require(
        all(each == sizes[0] for each in sizes),
        "the parts of a mixture must have the same inputs and targets",
        got=sizes,
        wanted="the same nodes and sizes",
        fix="pad what a part lacks with zeros",
    )
    stacked = lambda field: {
        v: np.concatenate([np.asarray(getattr(data, field)[v]) for data in several])
        for v in getattr(several[0], field)
    }
    gates = {}
    for name in dict.fromkeys(name for data in several for name in data.gates):
        each = [np.asarray(data.gates.get(name, np.ones(data.n_samples))) for data in several]
        wide = max(each, key=np.ndim).shape[1:]
        require(
            all(g.shape[1:] in ((), wide) for g in each),
            f"the parts of a mixture have gates {name!r} of different widths",
            got=", ".join(str(g.shape[1:]) for g in each),
            wanted="one gate per sample, or the same number of neurons in each part",
            fix="give each part a gate for every neuron of the node",
        )
        gates[name] = np.concatenate(
            [g if g.ndim > len(wide) else np.repeat(g[:, None], wide[0], 1) for g in each]
        )
    counts = {
        node: np.concatenate(
            [np.asarray(data.loss_weight.get(node, np.ones(data.n_samples))) for data in several]
        )
        for node in dict.fromkeys(name for data in several for name in data.loss_weight)
    }
    weight = np.concatenate([p * np.asarray(data.probability) for p, data in parts])
    part, used = [], 0
    for data in several:
        own = np.arange(data.n_samples) if data.part is None else np.asarray(data.part)
        part.append(own + used)
        used += int(own.max()) + 1
    parts_of_all = None if all(data.part is None for data in several) else np.concatenate(part)
    return Dataset(stacked("x"), stacked("y"), gates, weight, part=parts_of_all, loss_weight=counts)


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
