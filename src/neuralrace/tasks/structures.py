"""Structures among items, each a matrix with one row per property and one column per item."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from neuralrace.checks import generator, real_array
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.types import Count, Finite, Key

Structure = Float[np.ndarray, "properties items"]

RING_PROFILE = (0.0, 0.33, 0.66, 1.0, 1.0, 0.66, 0.33, 0.0)
"""One property of the ring of MHS Fig. 3: its value on each of the eight items."""


@door
def partition(groups: Sequence[Count]) -> Structure:
    """Disjoint groups of neighbouring items: one row per group, 1 on its items and 0 elsewhere.

    **Arguments:** `groups`, the number of items of each group.

    **Returns:** shape `(len(groups), sum(groups))`.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.partition((2, 1))
    array([[1., 1., 0.],
           [0., 0., 1.]])

    ```
    """
    require(
        len(groups),
        "a partition needs a group",
        got=groups,
        wanted="(size, size, …)",
        fix="try (4, 4)",
    )
    return np.repeat(np.eye(len(groups)), groups, axis=1)


@door
def hierarchy(
    branching: Count | Sequence[Count] = 2,
    depth: Count | None = None,
    amplitudes: Sequence[Finite] | None = None,
) -> Structure:
    """A tree over the items: one row per node, nonzero on the items below it (MHS Fig. 3).

    The default is MHS's 15 × 8: a row of ones, two rows of halves, four of quarters, eight of
    single items. `hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0))` is the 7 × 4 of NRR Fig. 4c.

    **Arguments:** `branching`, the number of children of a node, for all levels or for each level
    from the root down; `depth`, the number of levels below the root, 3 by default; `amplitudes`,
    the value in the rows of each level (`depth + 1` numbers), 1 by default.

    **Returns:** shape `(nodes, leaves)`, rows from the root down.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0))
    array([[6., 6., 6., 6.],
           [4., 4., 0., 0.],
           [0., 0., 4., 4.],
           [3., 0., 0., 0.],
           [0., 3., 0., 0.],
           [0., 0., 3., 0.],
           [0., 0., 0., 3.]])

    ```
    """
    return _stacked(_levels(branches_of(branching, depth)), amplitudes)


@door
def crossed_hierarchy(
    branching: Count | Sequence[Count] = 2,
    depth: Count | None = None,
    amplitudes: Sequence[Finite] | None = None,
) -> Structure:
    """A hierarchy whose smallest groups cut across the tree (context 3 of MHS Fig. 3).

    Like `hierarchy`, but the level above the single items groups the first children of neighbouring
    nodes, then the second children, and so on. Eight items are grouped as {1, 3}, {2, 4}, {5, 7},
    {6, 8} instead of {1, 2}, {3, 4}, {5, 6}, {7, 8}. It needs a depth of at least 2.

    **Returns:** shape `(rows, leaves)`; 15 × 8 by default.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.crossed_hierarchy()[3:5]
    array([[1., 0., 1., 0., 0., 0., 0., 0.],
           [0., 1., 0., 1., 0., 0., 0., 0.]])

    ```
    """
    branches = branches_of(branching, depth)
    require(
        len(branches) >= 2,
        "a crossed hierarchy has at least two levels below its root",
        got=f"depth {len(branches)}",
        wanted="a depth of at least 2",
        fix="use hierarchy() for a flat one",
    )
    levels = _levels(branches)
    *above, parents, children = branches
    levels[-2] = np.kron(np.eye(math.prod(above)), np.tile(np.eye(children), (1, parents)))
    return _stacked(levels, amplitudes)


@door
def ring(profile: Sequence[Finite] = RING_PROFILE, rows: Count | None = None) -> Structure:
    """Items around a circle: one profile, shifted by one item per row (context 2 of MHS Fig. 3).

    **Arguments:** `profile`, a property's value on each item; `rows`, the number of properties, by
    default `2 · items − 1` as in a hierarchy. The first property is 1 everywhere; the k-th after it
    (k = 0, 1, …) is the profile rolled left by k. After a full turn it starts again.

    **Returns:** shape `(rows, len(profile))`; 15 × 8 by default.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.ring()[:3]
    array([[1.  , 1.  , 1.  , 1.  , 1.  , 1.  , 1.  , 1.  ],
           [0.  , 0.33, 0.66, 1.  , 1.  , 0.66, 0.33, 0.  ],
           [0.33, 0.66, 1.  , 1.  , 0.66, 0.33, 0.  , 0.  ]])

    ```
    """
    fix = "try (0.0, 0.5, 1.0, 0.5)"
    values = real_array("the profile", profile, wanted="one number per item", fix=fix)
    require(
        values.ndim == 1 and values.size and np.isfinite(values).all(),
        "the profile of a ring must be a row of finite numbers",
        got=profile,
        wanted="one number per item",
        fix=fix,
    )
    rows = 2 * len(values) - 1 if rows is None else rows
    return np.stack([np.ones_like(values), *(np.roll(values, -k) for k in range(rows - 1))])


@door
def random_tree(items: Count = 8, *, key: Key = 0) -> Structure:
    """A random binary tree over the items: one row per node, 1 on the items below it.

    Starting from single items, two groups drawn at random are joined until only one remains. Like
    MHS's hierarchy, it has 2 · items − 1 rows (MHS App. F: Y of 2N − 1 rows).

    **Arguments:** `items`, the number of leaves; `key` (a JAX key or an integer) draws the groups.

    **Returns:** shape `(2 · items − 1, items)`, large groups first.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.random_tree(3, key=1)
    array([[1., 1., 1.],
           [1., 1., 0.],
           [1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])

    ```
    """
    rng = generator(key)
    rows = list(np.eye(items))
    roots = list(range(items))
    while len(roots) > 1:
        pair = sorted(rng.choice(len(roots), size=2, replace=False), reverse=True)
        rows.append(rows[roots.pop(pair[0])] + rows[roots.pop(pair[1])])
        roots.append(len(rows) - 1)
    tree = np.stack(rows)
    return tree[np.lexsort((*-tree.T[::-1], -tree.sum(axis=1)))]


@door
def structure(name: str, items: Count = 8) -> Structure:
    """A structure of MHS Fig. 3 by name: `"hierarchy"`, `"ring"` or `"crossed"`.

    All have 2 · items − 1 rows. Hierarchies need a power of two, the ring MHS's eight items.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.structure("hierarchy", items=4).shape
    (7, 4)

    ```
    """
    if not isinstance(name, str) or name not in _NAMED:
        raise NeuralRaceError(
            f"unknown structure {name!r}",
            got=repr(name),
            wanted=f"one of {listed(_NAMED)}, or a matrix of shape (properties, items)",
            fix="check the spelling; for others pass tasks.partition(…), tasks.random_tree(…), …",
        )
    return _NAMED[name](items)


def _binary_depth(items: int) -> int:
    depth = items.bit_length() - 1
    require(
        items == 2**depth and depth != 0,
        "a named hierarchy is binary",
        got=f"{items} items",
        wanted="2, 4, 8, 16, … items",
        fix="pass a matrix instead, for example tasks.hierarchy((3, 4)) for 12 items",
    )
    return depth


def _named_ring(items: int) -> Structure:
    require(
        items == len(RING_PROFILE),
        "the ring of MHS has eight items",
        got=f"{items} items",
        wanted=f"{len(RING_PROFILE)} items",
        fix="pass tasks.ring(profile) with a profile of your own in place of 'ring'",
    )
    return ring()


_NAMED: Mapping[str, Callable[[int], Structure]] = MappingProxyType(
    {
        "hierarchy": lambda items: hierarchy(depth=_binary_depth(items)),
        "ring": _named_ring,
        "crossed": lambda items: crossed_hierarchy(depth=_binary_depth(items)),
    }
)
"""The structures that can be given by name, as functions of the number of items."""


def branches_of(branching: Count | Sequence[Count], depth: Count | None) -> list[int]:
    """The number of children at each level, from the root down."""
    if isinstance(branching, Sequence | np.ndarray):
        branches = list(branching)
        require(
            branches and depth in (None, len(branches)),
            "branching and depth disagree",
            got=f"{len(branches)} levels of branching, depth = {depth}",
            wanted="one number of children for each of one or more levels",
            fix="leave out depth, or give branching as one number",
        )
        return branches
    return [branching] * (3 if depth is None else depth)


def _levels(branches: Sequence[int]) -> list[np.ndarray]:
    """The rows of every level of a tree, the root first."""
    items = math.prod(branches)
    nodes = [math.prod(branches[:level]) for level in range(len(branches) + 1)]
    return [partition([items // n] * n) for n in nodes]


def _stacked(levels: Sequence[np.ndarray], amplitudes: Sequence[Finite] | None) -> Structure:
    amplitudes = [1.0] * len(levels) if amplitudes is None else amplitudes
    require(
        len(amplitudes) == len(levels),
        "every level of the tree needs an amplitude",
        got=f"{len(amplitudes)} amplitudes",
        wanted=f"{len(levels)}, from the root down to the single items",
        fix="leave them out for ones, or give depth + 1 numbers",
    )
    return np.concatenate([a * rows for a, rows in zip(amplitudes, levels, strict=True)])
