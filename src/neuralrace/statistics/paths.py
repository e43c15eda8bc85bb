"""Σ^yx(p) and Σ^x(j,p) of every path, made when asked for, and the gradient flow through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from typing import final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.architecture import Architecture, Path
from neuralrace.checks import check_known
from neuralrace.dataset import Dataset, check_targets
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.statistics.factor import ClassFactor, class_factor, reachable
from neuralrace.statistics.nodes import SplitNetwork, split_neurons
from neuralrace.types import Count, Matrix, WeightsLike
from neuralrace.weights import by_edge, by_matrix, checked_weights


@final
@dataclass(frozen=True)
class PathGroup:
    """Paths with equal ends and equal gates: learning sees one Σ^yx for all of them.

    `classes` are the gate classes on which these paths are on and `gates` their g_p there; a
    group that is never on has none.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [2.0]]})
    >>> arch, data = nr.pathways(data, {"a": [1, 0], "b": [1, 0], "c": None}, hidden=4)
    >>> [len(group.paths) for group in nr.path_statistics(arch, data).groups]
    [2, 1]

    ```
    """

    paths: tuple[Path, ...]
    source: str
    target: str
    classes: Int[np.ndarray, " k"]
    gates: Float[np.ndarray, " k"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class PathStatistics:
    """The statistics of every path, made when they are asked for; see `path_statistics`.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [3.0]]}, {"y": [[2.0], [4.0]]})
    >>> stats = nr.path_statistics(nr.Architecture.chain(1, 8, 1), data)
    >>> (path,) = stats.paths
    >>> stats.yx[path].round(6), stats.x[path, path].round(6)
    (array([[7.]]), array([[5.]]))
    >>> stats
    PathStatistics(paths: 1, in groups of equal ends and gates: 1, gate classes: 1)

    ```
    """

    whole: SplitNetwork
    factor: ClassFactor
    groups: tuple[PathGroup, ...]

    def __repr__(self) -> str:
        paths, groups = sum(len(group.paths) for group in self.groups), len(self.groups)
        return (
            f"PathStatistics(paths: {paths}, in groups of equal ends and gates: {groups}, "
            f"gate classes: {self.factor.count})"
        )

    @property
    def arch(self) -> Architecture:
        """The graph whose paths these are, nodes with gates per neuron split."""
        return self.whole.arch

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Every path, group by group."""
        return tuple(self._group_of)

    @cached_property
    def _group_of(self) -> dict[Path, int]:
        return {path: i for i, group in enumerate(self.groups) for path in group.paths}

    @cached_property
    def yx(self) -> LazyMatrices:
        """`yx[p]` is Σ^yx(p) = ⟨ g_p y_{t(p)} x_{s(p)}ᵀ ⟩, shape `(|t(p)|, |s(p)|)` (NRR Eq. 5)."""
        return LazyMatrices(self, 1)

    @cached_property
    def x(self) -> LazyMatrices:
        """`x[j, p]` is Σ^x(j,p) = ⟨ g_j x_{s(j)} x_{s(p)}ᵀ g_p ⟩, shape `(|s(j)|, |s(p)|)`.

        NRR Eq. 6. Zero, and never built, for two paths that are never on together.
        """
        return LazyMatrices(self, 2)

    def rows(self, group: PathGroup) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the factor on which a group is on, and its gate on each."""
        start = self.factor.start
        counts = start[group.classes + 1] - start[group.classes]
        rows = [np.arange(int(start[c]), int(start[c + 1])) for c in group.classes]
        return np.concatenate([np.zeros(0, int), *rows]), np.repeat(group.gates, counts)

    @door
    def velocity(self, weights: WeightsLike) -> dict[str, Matrix]:
        """−∂L/∂W_e of every edge, or of all edges of a tie, from the statistics (NRR Eqs. 3–4).

        `Σ_{p∋e} W_{t̄(p,e)}ᵀ E(p) W_{s̄(p,e)}ᵀ` with
        `E(p) = Σ^yx(p) − Σ_{j: t(j)=t(p)} W_j Σ^x(j,p)`. The inner sum is taken on the rows of the
        factor, Σ_j g_j W_j x_{s(j)} first, so that the cost follows groups and not pairs of paths.

        ```python
        >>> import jax, neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
        >>> arch, data = nr.pathways(data, {"a": [1, 0], "b": [0, 1]}, hidden=4)
        >>> net = nr.GDLN(arch)
        >>> weights = net.init(jax.random.key(0))
        >>> descent = jax.grad(net.loss)(weights, data)
        >>> flow = nr.path_statistics(arch, data).velocity(weights)
        >>> bool(abs(flow["x_a"] + descent["x_a"]).max() < 1e-6)
        True

        ```
        """
        parts = self._parts(weights)
        errors = self._errors(parts)
        velocity = {edge: np.zeros_like(w) for edge, w in parts.items()}
        for group, error in zip(self.groups, errors, strict=True):
            if len(group.classes) == 0:
                continue
            for path in group.paths:
                matrices = [parts[edge] for edge in path.edges]
                later = accumulate(reversed(matrices[1:]), lambda E, w: w.T @ E, initial=error)
                first = np.eye(error.shape[1])
                sooner = accumulate(matrices[:-1], lambda W, w: W @ w.T, initial=first)
                for edge, left, right in zip(path.edges, [*later][::-1], sooner, strict=True):
                    velocity[edge] += left @ right
        return self.whole.join(by_matrix(self.arch, velocity))

    @door
    def loss(self, weights: WeightsLike) -> float:
        """½⟨‖y − h‖²⟩ less what no maps along the paths could remove: 0 if all is learned.

        h is Σ_p g_p W_p x_{s(p)}, whatever the weights. So only the part of the error counts that
        lies in the span of the gated inputs g_p x_{s(p)} of the paths to an output; the rest, such
        as targets where every path is off, is the same for all weights. Hidden nodes with too few
        neurons, or paths that share edges, may keep a network above 0.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[1.0], [4.0]]}, {"h": [1.0, 0.0]})
        >>> stats = nr.path_statistics(nr.Architecture.chain(1, 1, 1), data)
        >>> [round(stats.loss({"W1": [[1.0]], "W2": [[w]]}), 12) for w in (0.0, 1.0)]
        [0.25, 0.0]

        ```
        """
        error, _ = self._row_errors(self._parts(weights))
        within = (self.reachable[node].T @ e for node, e in error.items())
        return sum(float((e**2).sum()) for e in within) / 2

    @cached_property
    def reachable(self) -> dict[str, Matrix]:
        """For every output, orthonormal columns that span what paths can give it on the rows.

        The rows are those of `factor`.

        ```python
        >>> import neuralrace as nr
        >>> data = nr.Dataset({"x": [[1.0, 0.0]]}, {"y": [[2.0]]})
        >>> nr.path_statistics(nr.Architecture.chain(2, 3, 1), data).reachable["y"].shape[1]
        1

        ```
        """
        return reachable(self.factor, self.arch)

    def _parts(self, weights: WeightsLike) -> dict[str, Matrix]:
        """The weights of the edges of the parts, cut out of checked ones."""
        given = checked_weights(self.whole.whole, weights)
        check_known("the weights", given)
        return by_edge(self.arch, self.whole.split(weights))

    def _errors(self, parts: Mapping[str, Matrix]) -> list[Matrix]:
        """E(p) of every group (NRR Eq. 4)."""
        factor = self.factor
        error, rows = self._row_errors(parts)
        return [
            (gate[:, None] * error[group.target][on]).T @ factor.x[group.source][on]
            for group, (on, gate) in zip(self.groups, rows, strict=True)
        ]

    def _row_errors(
        self, parts: Mapping[str, Matrix]
    ) -> tuple[dict[str, Matrix], list[tuple[np.ndarray, np.ndarray]]]:
        """y − h on every row of the factor, and the rows and gates of every group."""
        factor = self.factor
        rows = [self.rows(group) for group in self.groups]
        error = {v: y.copy() for v, y in factor.y.items()}
        for group, (on, gate) in zip(self.groups, rows, strict=True):
            if len(on):
                total = sum((_product(parts, p.edges) for p in group.paths), np.zeros(()))
                error[group.target][on] -= gate[:, None] * (factor.x[group.source][on] @ total.T)
        return error, rows


def _product(weights: Mapping[str, Matrix], edges: tuple[str, ...]) -> Matrix:
    """W_p, the ordered product of the matrices on a path."""
    return reduce(lambda product, edge: weights[edge] @ product, edges[1:], weights[edges[0]])


@final
class LazyMatrices:
    """Σ^yx by path, or Σ^x by pair of paths, computed once for a group when first asked for."""

    def __init__(self, statistics: PathStatistics, arity: int) -> None:
        self._statistics, self._arity = statistics, arity
        self._built: dict[tuple[int, ...], Matrix] = {}

    def __getitem__(self, paths: Path | tuple[Path, Path]) -> Matrix:
        key = (paths,) if isinstance(paths, Path) else tuple(paths)
        statistics = self._statistics
        require(
            len(key) == self._arity and not any(p not in statistics._group_of for p in key),
            "no statistics for these paths",
            got=", ".join(str(p) for p in key),
            wanted=f"{self._arity} of statistics.paths",
            fix="yx[p] takes one path and x[j, p] two; take them from statistics.paths, "
            "where nodes with gates per neuron are split",
        )
        indices = tuple(statistics._group_of[p] for p in key)
        if indices not in self._built:
            groups = [statistics.groups[i] for i in indices]
            if self._arity == 2 and not np.intersect1d(groups[0].classes, groups[1].classes).size:
                sizes = statistics.arch.sizes
                return np.zeros((sizes[groups[0].source], sizes[groups[1].source]))
            self._built[indices] = self._build(*groups)
        return self._built[indices]

    def _build(self, left: PathGroup, right: PathGroup | None = None) -> Matrix:
        factor = self._statistics.factor
        rows, gate = self._statistics.rows(left)
        if right is None:
            return (gate[:, None] * factor.y[left.target][rows]).T @ factor.x[left.source][rows]
        weight = np.zeros(factor.count)
        weight[right.classes] = right.gates
        gate = gate * weight[factor.row_class[rows]]
        return (gate[:, None] * factor.x[left.source][rows]).T @ factor.x[right.source][rows]

    def __len__(self) -> int:
        """How many different matrices have been built so far."""
        return len(self._built)


@door
def path_statistics(arch: Architecture, data: Dataset, limit: Count = 100_000) -> PathStatistics:
    """The input-output and input statistics of every path: all that learning sees of the data.

    Assumes full-batch gradient flow on the squared loss. Paths with equal ends and gates share
    one group and one computation, and matrices are made when first asked for. Raises where there
    are more than `limit` paths.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> x = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
    >>> base = nr.Dataset({"x": x}, {"y": x[:, :1] * x[:, 1:]})
    >>> arch, data = nr.pathways(base, base.one_per_sample(), hidden=32)
    >>> stats = nr.path_statistics(arch, data)
    >>> p, q, *_ = stats.paths
    >>> stats.yx[p], stats.x[p, p].tolist(), stats.x[p, q].any()
    (array([[0.25, 0.25]]), [[0.25, 0.25], [0.25, 0.25]], np.False_)

    ```
    """
    whole = split_neurons(arch, data)
    check_targets(arch, data)
    return factored_statistics(whole, class_factor(whole.data), limit)


def factored_statistics(
    whole: SplitNetwork, factor: ClassFactor, limit: int = 100_000
) -> PathStatistics:
    """The statistics of every path of a network whose data are factored already."""
    whole.arch.paths(limit)  # raises, naming the count, before any work
    found: dict[tuple[str, str, bytes, bytes], list[tuple[Path, np.ndarray, np.ndarray]]] = {}
    for path, classes, gates in _gated_paths(whole.arch, factor):
        key = (path.source, path.target, classes.tobytes(), gates.tobytes())
        found.setdefault(key, []).append((path, classes, gates))
    groups = tuple(
        PathGroup(tuple(path for path, _, _ in members), key[0], key[1], *members[0][1:])
        for key, members in found.items()
    )
    return PathStatistics(whole, factor, groups)


def _gated_paths(
    arch: Architecture, factor: ClassFactor
) -> Iterator[tuple[Path, Int[np.ndarray, " k"], Float[np.ndarray, " k"]]]:
    """Every path with the gate classes on which it is on and its gate g_p on each of them."""

    def through(name: str, classes: np.ndarray, gates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if name not in factor.gates:
            return classes, gates
        gates = gates * factor.gates[name][classes]
        return classes[gates != 0], gates[gates != 0]

    everywhere = np.arange(factor.count), np.ones(factor.count)
    waiting: list[tuple[str, tuple[str, ...], str, np.ndarray, np.ndarray]]
    waiting = [(node, (), node, *everywhere) for node in reversed(arch.inputs)]
    while waiting:
        node, edges, source, *on = waiting.pop()
        classes, gates = through(node, *on)
        if not arch.outgoing[node]:
            yield Path(edges, source, node), classes, gates
        for edge in reversed(arch.outgoing[node]):
            onward = through(edge, classes, gates)
            waiting.append((arch.edges[edge][1], (*edges, edge), source, *onward))
