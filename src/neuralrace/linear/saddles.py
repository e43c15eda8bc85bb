"""The stationary points of deep linear networks: one for every set of learned modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any, final

import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.gdln import GDLN
from neuralrace.linear.chain import LinearTask, Visit, chain_edges, linear_task, maps_of
from neuralrace.tolerances import EQUAL, NOISE, TINY
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, NotNegative

MOST = 10_000
"""The most stationary points that are listed."""


@final
@dataclass(frozen=True)
class Escape:
    """A way out of a saddle: learn `mode`, replacing the learned mode `instead_of` if given.

    The loss falls with the `order`-th power of the distance. There are `count` orthogonal
    directions of this kind. `curvature` is the second derivative of the loss along one of them (see
    `Saddles.direction`): negative if `order` is 2, zero if it is larger.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 4, 2))
    >>> data = nr.Dataset({"x": np.sqrt(2) * np.eye(2)}, {"y": np.sqrt(2) * np.diag([3.0, 1.0])})
    >>> (way,) = nr.linear.saddles(net, data)[(1,)].escapes
    >>> way.mode, way.instead_of, way.order, way.count, round(way.curvature, 9)
    (2, None, 2, 3, -1.0)

    ```
    """

    mode: int
    instead_of: int | None
    order: int
    count: int
    curvature: float


@final
@dataclass(frozen=True, eq=False)
class Saddle:
    """A stationary point: the learned `modes` (counted from 1), its `map`, `loss` and `escapes`.

    `index` is the number of directions of negative curvature at the balanced weights of this map;
    `is_minimum` says whether the loss can fall no further.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 4, 2))
    >>> data = nr.Dataset({"x": np.sqrt(2) * np.eye(2)}, {"y": np.sqrt(2) * np.diag([3.0, 1.0])})
    >>> [(p.modes, round(p.loss, 6), p.index) for p in nr.linear.saddles(net, data).points]
    [((), 5.0, 8), ((2,), 4.5, 4), ((1,), 0.5, 3), ((1, 2), 0.0, 0)]

    ```
    """

    modes: tuple[int, ...]
    map: Float[np.ndarray, "outputs inputs"]
    loss: float
    escapes: tuple[Escape, ...]

    @property
    def index(self) -> int:
        """The number of directions in which the loss has negative curvature."""
        return sum(escape.count for escape in self.escapes if escape.order == 2)

    @property
    def is_minimum(self) -> bool:
        """Whether there is no way down."""
        return not self.escapes


@door
def saddles(net: GDLN, data: Dataset, *, modes: Count | None = None) -> Saddles:
    """The stationary points of an ungated chain: any set of modes, learned fully (Talk).

    With Σ^yx (Σ^x)^{−1/2} = Σ_k s_k u_k v_kᵀ, every stationary map of a chain of D ≥ 2 edges is M_S
    = Σ_{k∈S} s_k u_k v_kᵀ (Σ^x)^{−1/2} for a set S of modes, no larger than the narrowest layer;
    its loss is the floor plus ½ Σ_{k∉S} s_k² (Baldi & Hornik 1989). If singular values are equal,
    the points listed represent continuous families (see `isolated`).

    **Arguments:** `net`, a chain of at least two edges; `data` without gates; `modes`, how many of
    the largest modes to consider, all by default; escapes, `index` and `is_minimum` refer to these
    modes only.

    **Returns:** `Saddles`, the points from the largest loss down.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(3, 8, 3))
    >>> data = nr.Dataset({"x": np.eye(3)}, {"y": np.diag([3.0, 2.0, 1.0])})
    >>> len(nr.linear.saddles(net, data).points)
    8

    ```
    """
    task = linear_task(net, data)
    edges = chain_edges(net)
    require(
        not len(edges) < 2,
        "a network of one edge has no saddles",
        got="1 edge",
        wanted="at least two edges",
        fix="nr.Architecture.chain(inputs, hidden, outputs)",
    )
    values, left, right = _whitened_modes(task)
    if modes is not None:
        few = modes
        values, left, right = values[:few], left[:, :few], right[:, :few]
    narrow = min(net.arch.sizes[node] for node in net.arch.hidden)
    largest = min(narrow, len(values))
    number = sum(math.comb(len(values), r) for r in range(largest + 1))
    require(
        not number > MOST,
        "there are too many stationary points to list",
        got=f"{number} sets of {len(values)} modes",
        wanted=f"at most {MOST}",
        fix="modes=10 considers only the ten largest modes",
    )
    sets = chain.from_iterable(combinations(range(len(values)), r) for r in range(largest + 1))
    found = Saddles(net, task, values, left, right, ())
    points = sorted((found._point(learned) for learned in sets), key=lambda p: (-p.loss, p.modes))
    return Saddles(net, task, values, left, right, tuple(points))


@final
@dataclass(frozen=True, eq=False)
class Saddles:
    """The stationary points of a chain on a task; see `saddles`.

    `values` are the singular values s of the modes, largest first; `points` the stationary points
    from the largest loss down; `found[(1, 3)]` is the one with these learned modes.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(3, 8, 3))
    >>> data = nr.Dataset({"x": np.eye(3)}, {"y": np.diag([3.0, 2.0, 1.0])})
    >>> found = nr.linear.saddles(net, data)
    >>> found.isolated, round(found[(1,)].loss, 6)
    (True, 0.833333)

    ```
    """

    net: GDLN
    task: LinearTask
    values: Float[np.ndarray, " modes"]
    left: Float[np.ndarray, "outputs modes"]
    right: Float[np.ndarray, "inputs modes"]
    points: tuple[Saddle, ...]

    def __getitem__(self, modes: Any) -> Saddle:
        several = isinstance(modes, Sequence) and all(
            isinstance(k, int | np.integer) for k in modes
        )
        wanted = tuple(sorted(modes)) if several else None
        if wanted is None or wanted not in self._by_modes:
            raise NeuralRaceError(
                "no stationary point has learned these modes",
                got=modes,
                wanted=f"a tuple of different numbers from 1 to {len(self.values)}, at most "
                f"{max(len(p.modes) for p in self.points)} of them",
                fix="modes are counted from 1, largest singular value first; () is the origin",
            )
        return self._by_modes[wanted]

    @cached_property
    def _by_modes(self) -> dict[tuple[int, ...], Saddle]:
        return {point.modes: point for point in self.points}

    @property
    def isolated(self) -> bool:
        """Whether maps are isolated: all singular values differ by over 1e-6 of the largest."""
        return bool((-np.diff(self.values) > EQUAL * self.values[0]).all())

    # ---- the geometry of one point -------------------------------------------------------------

    @cached_property
    def _rows(self) -> Float[np.ndarray, "modes inputs"]:
        """c_k: the map of a learned mode is u_k c_kᵀ."""
        return (self.values[:, None] * self.right.T) @ _inverse_root(self.task.x)

    def _point(self, learned: tuple[int, ...]) -> Saddle:
        s = self.values
        M = self.left[:, learned] @ self._rows[list(learned)]
        missing = [k for k in range(len(s)) if k not in learned]
        loss = self._floor + float((s[missing] ** 2).sum() / 2)
        return Saddle(tuple(k + 1 for k in learned), M, loss, self._escapes(learned, missing))

    @cached_property
    def _floor(self) -> float:
        """The loss when all modes that are considered are learned."""
        return float(self.task.loss(self.left @ self._rows))

    def _escapes(self, learned: tuple[int, ...], missing: list[int]) -> tuple[Escape, ...]:
        hidden = [self.net.arch.sizes[node] for node in self.net.arch.hidden]
        depth, free = len(hidden) + 1, min(hidden) - len(learned)
        found = []
        for j in missing:
            if free:
                curvature = -self._push(j) if depth == 2 else 0.0
                found.append(Escape(j + 1, None, depth, free, curvature))
            smaller = [i for i in learned if self.values[j] > self.values[i]]
            found += [Escape(j + 1, i + 1, 2, 1, self._swap(i, j)[0]) for i in smaller]
        return tuple(found)

    def _push(self, j: int) -> float:
        """The drive that the error exerts on mode j; s_j of Σ^yx for white inputs."""
        return float(self.values[j] ** 2 / np.linalg.norm(self._rows[j]))

    def _swap(self, i: int, j: int) -> tuple[float, np.ndarray]:
        """The curvature of rotating mode i into mode j, and the (last, first) edges' parts."""
        depth = len(self.net.arch.edges)
        sizes = np.linalg.norm(self._rows, axis=1)
        b = sizes[i] ** (1 / depth)
        stiff = (b ** (depth - 1) * self.values[[i, j]] / sizes[[i, j]]) ** 2
        pull = b ** (depth - 2) * self._push(j)
        curvature, parts = np.linalg.eigh([[stiff[0], -pull], [-pull, stiff[1]]])
        return float(curvature[0]), parts[:, 0]

    @door
    def weights(self, modes: Sequence[int]) -> dict[str, np.ndarray]:
        """Balanced weights at the point with these learned modes, one hidden neuron per mode.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
        >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([4.0, 1.0])})
        >>> nr.linear.saddles(net, data).weights((1,))["W1"].round(6) + 0.0
        array([[2., 0.],
               [0., 0.]])

        ```
        """
        learned = [k - 1 for k in self[modes].modes]
        sizes = np.linalg.norm(self._rows[learned], axis=1)
        b = sizes ** (1 / len(self.net.arch.edges))
        rows = self._rows[learned] / sizes[:, None]
        return self._assembled([b] * len(self.net.arch.edges), self.left[:, learned], rows)

    def _assembled(
        self, strengths: list[np.ndarray], left: np.ndarray, rows: np.ndarray, first: int = 0
    ) -> dict[str, np.ndarray]:
        """Σ_k b_k (unit vectors of mode k on every layer), on hidden neurons from `first` on."""
        nodes = [self.net.arch.sizes[node] for node in self.net.arch.order]
        found = {}
        for layer, edge in enumerate(chain_edges(self.net)):
            into, out = nodes[layer], nodes[layer + 1]
            source = rows if layer == 0 else np.eye(into)[first : first + len(rows)]
            target = (
                left if layer == len(strengths) - 1 else np.eye(out)[:, first : first + len(rows)]
            )
            found[edge] = (target * strengths[layer]) @ source
        return found

    @door
    def direction(self, modes: Sequence[int], escape: Escape) -> dict[str, np.ndarray]:
        """A unit direction of weights that leaves `weights(modes)` by this escape.

        To leading order, the loss at `weights + ε · direction` is lower by ½ |curvature| ε² (by a
        multiple of ε^D for a new mode in a chain of D ≥ 3 edges).

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
        >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([4.0, 1.0])})
        >>> found = nr.linear.saddles(net, data)
        >>> way = found.direction((1,), found[(1,)].escapes[0])
        >>> sorted(way), np.abs(way["W1"]).round(3)
        (['W1', 'W2'], array([[0.   , 0.   ],
               [0.   , 0.707]]))

        ```
        """
        point = self[modes]
        require(
            escape in point.escapes,
            "the point has no such escape",
            got=escape,
            wanted=f"one of {len(point.escapes)} escapes of {point.modes}",
            fix="take one of found[modes].escapes",
        )
        depth = len(self.net.arch.edges)
        j = escape.mode - 1
        row = self._rows[[j]] / np.linalg.norm(self._rows[j])
        if escape.instead_of is None:
            ones = [np.full(1, depth**-0.5)] * depth
            return self._assembled(ones, self.left[:, [j]], row, first=len(point.modes))
        place = point.modes.index(escape.instead_of)
        last, first = self._swap(escape.instead_of - 1, j)[1]
        parts = [np.array([first]), *[np.zeros(1)] * (depth - 2), np.array([last])]
        return self._assembled(parts, self.left[:, [j]], row, first=place)

    # ---- where a run is ------------------------------------------------------------------------

    @door
    def distances(self, maps: ArrayLike) -> Float[np.ndarray, "T points"]:
        """The distance of maps (T, outputs, inputs) from every point, in the order of `points`.

        √⟨‖(M − M_S) x‖²⟩, the root mean square difference of the outputs.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
        >>> data = nr.Dataset({"x": np.sqrt(2) * np.eye(2)}, {"y": np.diag([3.0, 1.0])})
        >>> nr.linear.saddles(net, data).distances(np.zeros((1, 2, 2))).round(3)
        array([[0.   , 0.707, 2.121, 2.236]])

        ```
        """
        size = self.task.yx.shape
        form, fix = f"shape (T, {size[0]}, {size[1]})", "maps[None] makes one map a list of one"
        given = real_array("maps", maps, wanted=form, fix=fix)
        require(
            not (given.ndim != 3 or given.shape[1:] != size),
            "the maps do not fit the task",
            got=f"shape {given.shape}",
            wanted=form,
            fix=fix,
        )
        seen = given @ _root(self.task.x)
        strength = np.einsum("ok,toi,ik->tk", self.left, seen, self.right)
        rest = seen - np.einsum("ok,tk,ik->toi", self.left, strength, self.right)
        learned = np.zeros((len(self.points), len(self.values)))
        for p, point in enumerate(self.points):
            learned[p, [k - 1 for k in point.modes]] = 1
        gaps = strength[:, None, :] - learned * self.values
        return np.sqrt((rest**2).sum(axis=(1, 2))[:, None] + (gaps**2).sum(axis=2))

    @door
    def visits(self, run: Trajectory, *, within: NotNegative = 0.1) -> tuple[Visit, ...]:
        """The points that a run comes near, in order of time, and how long it stays.

        **Arguments:** `run`, a single `Trajectory` with the recorded `weights` (or with the `map`,
        as `lambda_balanced` has it), at times fine enough to see every stay; `within`, the distance
        that counts as near, as a fraction of the smallest singular value considered. If it is below
        one half, no time belongs to two points.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
        >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 1.0])})
        >>> weights = nr.linear.balanced_weights(net, 0.0, scale=1e-6, aligned_to=data)
        >>> run = nr.linear.lambda_balanced(net, weights, data, times=np.linspace(0, 40, 401))
        >>> [visit.modes for visit in nr.linear.saddles(net, data).visits(run)]
        [(), (1,), (1, 2)]

        ```
        """
        distance = self.distances(maps_of(run))
        nearest = distance.argmin(axis=1)
        near = distance.min(axis=1) <= within * self.values[-1]
        where = np.where(near, nearest, -1)
        cuts = np.flatnonzero(np.diff(where)) + 1
        found = []
        for stay in np.split(np.arange(len(where)), cuts):
            p = where[stay[0]]
            if p >= 0:
                best = stay[distance[stay, p].argmin()]
                found.append(
                    Visit(
                        self.points[p].modes,
                        float(run.time[stay[0]]),
                        float(run.time[stay[-1]]),
                        float(run.time[best]),
                        float(distance[best, p]),
                        float(run.loss[best]),
                    )
                )
        return tuple(found)


def _whitened_modes(task: LinearTask) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular values and vectors of Σ^yx (Σ^x)^{−1/2}, without those that are zero."""
    left, values, right = np.linalg.svd(task.yx @ _inverse_root(task.x), full_matrices=False)
    keep = values > NOISE * max(values[0], TINY)
    require(
        keep.any(),
        "there is nothing to learn",
        got="⟨y xᵀ⟩ = 0",
        wanted="targets that the inputs predict",
        fix="check the targets",
    )
    return values[keep], left[:, keep], right[keep].T


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def _inverse_root(matrix: np.ndarray) -> np.ndarray:
    """The pseudo-inverse of the square root, zero in directions without inputs."""
    values, vectors = np.linalg.eigh(matrix)
    keep = values > NOISE * values[-1]
    return (vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T
