"""Worlds: graphical models that define which items are alike, and the features they generate.

In the limit of many features, a linear network's learning of a world depends only on the covariance
of the items, whose eigenvectors follow from the symmetry of the graph (Saxe, McClelland & Ganguli
2019). Trees are branching diffusions of binary features; partitions, rings, chains and grids are
Gaussian fields in which neighbours are alike (Kemp & Tenenbaum 2008). `tasks.structures` has single
matrices of properties; a world is a distribution of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.tasks.structures import Structure, branches_of
from neuralrace.types import ArrayLike, Count, Key, Positive, Several, Within


@final
@dataclass(frozen=True, eq=False)
class World:
    """A distribution of features over P items, with the modes of their covariance.

    `values` (P,) are the eigenvalues of the covariance ⟨φφᵀ⟩, largest first, and the columns of
    `vectors` (P, P) its eigenvectors, both derived from the symmetry of the graph, not computed
    numerically. `levels` (P,) says what each mode distinguishes: the level of a tree (0 is the
    root, common to all), clusters (0) or items within a cluster (1), or the frequency on a ring,
    chain or grid.

    ```python
    >>> from neuralrace import tasks
    >>> world = tasks.tree_world(branching=2, depth=2, flip=0.1)
    >>> world.levels, world.values.round(4)
    (array([0, 1, 2, 2]), array([2.4592, 0.8208, 0.36  , 0.36  ]))

    ```
    """

    name: str
    values: Float[np.ndarray, " P"]
    vectors: Float[np.ndarray, "P P"]
    levels: Int[np.ndarray, " P"]
    _draw: Callable[[np.random.Generator, int], np.ndarray]

    @property
    def items(self) -> int:
        """P, the number of items."""
        return len(self.values)

    @property
    def covariance(self) -> Float[np.ndarray, "P P"]:
        """⟨φ_i φ_j⟩ over features φ: how similar items i and j are."""
        return (self.vectors * self.values) @ self.vectors.T

    @property
    def singular_values(self) -> Float[np.ndarray, " P"]:
        """The singular values of Σ^yx in `dataset()`: √values / P, for equally frequent items."""
        return np.sqrt(self.values) / self.items

    @door
    def features(self, number: Count, *, key: Key = 0) -> Structure:
        """Independent draws: shape (number, P), one row per feature, drawn by `key`.

        ```python
        >>> from neuralrace import tasks
        >>> tasks.tree_world(flip=0.1).features(2, key=3)
        array([[ 1.,  1.,  1.,  1.,  1.,  1.,  1., -1.],
               [-1., -1., -1., -1.,  1.,  1.,  1., -1.]])

        ```
        """
        return self._draw(generator(key), number)

    @door
    def dataset(self, features: int | None = None, *, key: Key = 0) -> Dataset:
        """One-hot items with their features: sampled, or in the limit of infinitely many.

        Targets are features divided by the square root of their number, so that the size of Σ^yx
        does not depend on it. In the limit (`features=None`) they are the P columns of √values ·
        vectorsᵀ, which have exactly the covariance of the world.

        **Returns:** `x["x"]` of shape (P, P), `y["y"]` (P, features or P); label `item` (1 … P).

        ```python
        >>> from neuralrace import tasks
        >>> world = tasks.ring_world(6)
        >>> world.dataset().y["y"].shape, world.dataset(features=500).y["y"].shape
        ((6, 6), (6, 500))

        ```
        """
        if features is None:
            y = self.vectors * np.sqrt(self.values)
        else:
            drawn = self.features(features, key=key)
            y = drawn.T / np.sqrt(len(drawn))
        x = np.eye(self.items)
        return Dataset({"x": x}, {"y": y}, labels={"item": np.arange(1, self.items + 1)})


@door
def tree_world(
    branching: Count | Sequence[Count] = 2, depth: Count | None = None, flip: ArrayLike = 0.1
) -> World:
    """Hierarchical items: a branching diffusion down a tree (Saxe, McClelland & Ganguli 2019).

    A feature is ±1 at the root with equal chance, and on every branch down it flips with
    probability ε = `flip`; items are the leaves. Let q_k = Π_{l>k} (1 − 2ε_l)² be the correlation
    of items whose branches separate below level k, Δ_k = q_k − q_{k−1} (q_{−1} = 0), and M_k the
    number of items below a node of level k. A mode that distinguishes the nodes of level l has the
    eigenvalue Σ_{k≥l} Δ_k M_k. It falls with every level, so learning proceeds from coarse to fine
    distinctions (progressive differentiation).

    **Arguments:** `branching` and `depth` as in `tasks.hierarchy`; `flip`, one number in [0, ½) or
    one for each level from the root down (the default is ours).

    ```python
    >>> from neuralrace import tasks
    >>> tasks.tree_world((2, 3)).levels
    array([0, 1, 2, 2, 2, 2])

    ```
    """
    branches = branches_of(branching, depth)
    depth = len(branches)
    fix = "0 makes all items equal; at 0.5 nothing would be passed on"
    wanted = f"one number in [0, 0.5), or {depth} of them, from the root down"
    given = real_array("flip", flip, wanted=wanted, fix=fix)
    require(
        given.shape in ((), (depth,)) and ((given >= 0) & (given < 0.5)).all(),
        "the probability of a flip on a branch is not valid",
        got=f"flip = {flip!r}",
        wanted=wanted,
        fix=fix,
    )
    flips = np.broadcast_to(given, depth).tolist()
    items = math.prod(branches)
    q = [math.prod((1 - 2 * e) ** 2 for e in flips[k:]) for k in range(depth + 1)]
    steps = np.diff([0.0, *q])
    below = [math.prod(branches[k:]) for k in range(depth + 1)]
    by_level = [float(steps[k:] @ below[k:]) for k in range(depth + 1)]
    vectors, levels = [np.full((items, 1), items**-0.5)], [0]
    for level, children in enumerate(branches, start=1):
        above = math.prod(branches[: level - 1])
        rest = np.full((below[level], 1), below[level] ** -0.5)
        found = np.kron(np.kron(np.eye(above), _contrasts(children)), rest)
        vectors.append(found)
        levels += [level] * found.shape[1]

    values = np.array([by_level[level] for level in levels])
    draw = partial(_diffused, tuple(branches), tuple(flips))
    return World("tree", values, np.concatenate(vectors, axis=1), np.array(levels), draw)


def _diffused(
    branches: tuple[int, ...], flips: tuple[float, ...], rng: np.random.Generator, number: int
) -> np.ndarray:
    """Draws of features that diffuse down a tree: one row per feature."""
    state = rng.choice([-1.0, 1.0], size=(number, 1))
    for children, chance in zip(branches, flips, strict=True):
        state = np.repeat(state, children, axis=1)
        state = state * np.where(rng.random(state.shape) < chance, -1.0, 1.0)
    return state


@door
def partition_world(
    groups: Sequence[Count] = (4, 4), coupling: Positive = 1.0, variance: Positive = 10.0
) -> World:
    """Disjoint clusters: every item is coupled to the hidden node of its cluster.

    It is a Gaussian field as in `ring_world`, with the hidden nodes integrated out. With τ =
    1/variance and m items in a cluster, the cluster's mean has the eigenvalue (m a + τ) / (τ (a + m
    a + τ)), and differences within the cluster have 1/(a + τ).

    **Arguments:** `groups`, the number of items of each cluster; `coupling` a > 0 and `variance`.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.partition_world((2, 3)).levels
    array([0, 0, 1, 1, 1])

    ```
    """
    require(
        len(groups),
        "a partition needs a group",
        got=groups,
        wanted="(size, size, …)",
        fix="try (4, 4)",
    )
    a, tau = coupling, 1 / variance
    values, vectors, levels = [], [], []
    first = 0
    for m in groups:
        inside = np.eye(sum(groups))[:, first : first + m]
        values += [(m * a + tau) / (tau * (a + m * a + tau)), *[1 / (a + tau)] * (m - 1)]
        vectors += [inside @ np.full((m, 1), m**-0.5), inside @ _contrasts(m)]
        levels += [0, *[1] * (m - 1)]
        first += m
    return _field("partition", np.array(values), np.concatenate(vectors, axis=1), np.array(levels))


@door
def ring_world(
    items: Annotated[int, Within(least=3)] = 8, coupling: Positive = 1.0, variance: Positive = 10.0
) -> World:
    """Items around a circle, each similar to its two neighbours.

    A feature φ is Gaussian with density ∝ exp(−½ a Σ (φ_i − φ_j)² − ½ Σ φ_i²/variance), where the
    first sum is over neighbours. Its modes are waves: the eigenvalue of frequency k (in turns) is 1
    / (2a (1 − cos 2πk/P) + 1/variance).

    **Arguments:** `items` P ≥ 3; `coupling` a > 0 (the inverse square of a length) and `variance`,
    that of a feature without neighbours. The defaults are ours.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.ring_world(5).levels
    array([0, 1, 1, 2, 2])

    ```
    """
    a, tau = coupling, 1 / variance
    place = np.arange(items)
    levels, vectors = [], []
    for k in range(items // 2 + 1):
        waves = [np.cos(2 * np.pi * k * place / items)]
        if 0 < k < items / 2:
            waves.append(np.sin(2 * np.pi * k * place / items))
        vectors += [wave / np.linalg.norm(wave) for wave in waves]
        levels += [k] * len(waves)
    values = 1 / (2 * a * (1 - np.cos(2 * np.pi * np.array(levels) / items)) + tau)
    return _field("ring", values, np.stack(vectors, axis=1), np.array(levels))


@door
def chain_world(items: Several = 8, coupling: Positive = 1.0, variance: Positive = 10.0) -> World:
    """Items on a line, each similar to its neighbours; like `ring_world` with open ends.

    The eigenvalue of frequency k (in half turns) is 1 / (2a (1 − cos πk/P) + 1/variance).

    ```python
    >>> from neuralrace import tasks
    >>> tasks.chain_world(3).vectors[:, 1].round(3)
    array([ 0.707,  0.   , -0.707])

    ```
    """
    a, tau = coupling, 1 / variance
    squares, vectors = _line(items)
    return _field("chain", 1 / (a * squares + tau), vectors, np.arange(items))


@door
def grid_world(
    rows: Several = 4, columns: Several = 4, coupling: Positive = 1.0, variance: Positive = 10.0
) -> World:
    """Items on a rectangle, row by row, each similar to its neighbours; `chain_world` both ways.

    The eigenvalue of frequencies k and l is
    1 / (2a (1 − cos πk/rows) + 2a (1 − cos πl/columns) + 1/variance), and the level k + l.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.grid_world(2, 3).levels
    array([0, 1, 1, 2, 2, 3])

    ```
    """
    sizes = rows, columns
    a, tau = coupling, 1 / variance
    (down, first), (across, second) = (_line(n) for n in sizes)
    squares = np.add.outer(down, across).ravel()
    levels = np.add.outer(*(np.arange(n) for n in sizes)).ravel()
    return _field("grid", 1 / (a * squares + tau), np.kron(first, second), levels)


def _line(P: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of the Laplacian of a path of P nodes: cosines."""
    k, place = np.arange(P), np.arange(P) + 0.5
    vectors = np.cos(np.pi * np.outer(place, k) / P)
    return 2 * (1 - np.cos(np.pi * k / P)), vectors / np.linalg.norm(vectors, axis=0)


def _contrasts(children: int) -> np.ndarray:
    """Orthonormal differences among this number of children: (children, children − 1)."""
    columns = []
    for k in range(1, children):
        column = np.concatenate([np.full(k, 1.0), [-float(k)], np.zeros(children - k - 1)])
        columns.append(column / np.sqrt(k * (k + 1)))
    return np.stack(columns, axis=1) if columns else np.zeros((children, 0))


def _field(
    name: str,
    values: Float[np.ndarray, " P"],
    vectors: Float[np.ndarray, "P P"],
    levels: Int[np.ndarray, " P"],
) -> World:
    """A Gaussian world with these modes, largest first."""
    order = np.lexsort((levels, -values.round(14)))
    values, vectors, levels = values[order], vectors[:, order], levels[order]
    return World(name, values, vectors, levels, partial(_gaussian, values, vectors))


def _gaussian(
    values: np.ndarray, vectors: np.ndarray, rng: np.random.Generator, number: int
) -> np.ndarray:
    """Draws of a Gaussian field: one row per feature."""
    return rng.normal(size=(number, len(values))) * np.sqrt(values) @ vectors.T
