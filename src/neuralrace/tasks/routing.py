"""The routing task of NRR §4: M input domains, M output domains, some routes trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.architecture import Architecture
from neuralrace.checks import entries, generator, plain_array, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.tasks.natural import label
from neuralrace.tasks.structures import hierarchy
from neuralrace.types import Count, Key

Base = tuple[Float[np.ndarray, "_ inputs"], Float[np.ndarray, "_ outputs"]]
"""The map that every route learns: inputs and targets, one row per item."""


@door
def circulant_routes(M: Count = 7, K: Count = 4) -> Bool[np.ndarray, "M M"]:
    """The trained routes of NRR Fig. 4d: input domain i with outputs i − 1 … i + K − 2 (mod M).

    **Returns:** `routes[i - 1, j - 1]`, whether input i is trained with output j; K are true in
    every row and column.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.circulant_routes(4, 2).astype(int)
    array([[1, 0, 0, 1],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])

    ```
    """
    require(
        K <= M,
        "an input domain cannot be trained with more output domains than there are",
        got=f"K = {K}, M = {M}",
        wanted="1 ≤ K ≤ M",
        fix=f"K={M} trains every route",
    )
    first, output = np.arange(M)[:, None] - 1, np.arange(M)
    return (output - first) % M < K


@door
def random_routes(M: int = 7, K: int = 4, *, key: Key = 0) -> Bool[np.ndarray, "M M"]:
    """Random trained routes, K in every row and column, drawn by `key`.

    Starts from `circulant_routes`, then lets random pairs of rows deal out anew the outputs that
    only one of them has (the curveball algorithm of Strona et al. 2014), which keeps all sums.

    ```python
    >>> from neuralrace import tasks
    >>> routes = tasks.random_routes(40, 4)
    >>> bool((routes.sum(0) == 4).all() and (routes.sum(1) == 4).all())
    True

    ```
    """
    routes = circulant_routes(M, K)
    rng = generator(key)
    for _ in range(20 * M if M > 1 else 0):  # 5 to 10 are known to be enough
        a, b = rng.choice(M, 2, replace=False)
        single = np.flatnonzero(routes[a] ^ routes[b])
        dealt = rng.permutation(single)
        half = len(single) // 2
        routes[np.ix_([a, b], single)] = False
        routes[a, dealt[:half]] = routes[b, dealt[half:]] = True
    return routes


@door
def route_ratio(routes: Bool[np.ndarray, "M M"]) -> float:
    """σ₂/σ₁ of a matrix of routes: how nearly it falls into parts that are not connected.

    0 where every route is trained, 1 where groups of domains have no route between them.

    ```python
    >>> from neuralrace import tasks
    >>> [round(tasks.route_ratio(tasks.circulant_routes(40, K)), 3) for K in (2, 4, 8, 16)]
    [0.997, 0.985, 0.936, 0.758]

    ```
    """
    wanted = "a boolean matrix of shape (M, M)"
    matrix = plain_array("routes", routes, wanted=wanted, fix="for example circulant_routes(40, 4)")
    size = len(matrix) if matrix.ndim else 0
    values = np.linalg.svd(route_matrix(matrix, size).astype(float), compute_uv=False)
    return float(values[1] / values[0]) if len(values) > 1 else 0.0


@door
def routing(
    M: Count = 7,
    K: int = 4,
    base: Base | None = None,
    routes: Bool[np.ndarray, "_ _"] | Sequence[tuple[int, int]] | None = None,
    *,
    distractors: bool = False,
    key: Key = 0,
) -> tuple[Dataset, Dataset | None]:
    """Map an item shown in any of M input domains to any of M output domains (NRR §4, Fig. 4).

    Every route learns the same map, given by `base`. A sample is a route and an item: the route's
    input domain shows the item's input, its output domain has the item's target, and all other
    domains are zero.

    **Arguments:** `M` domains on either side, each input trained with `K` outputs (NRR Fig. 4:
    7 and 4; Fig. 5: M = 10) by `circulant_routes`. `base` is `(x, y)` of shapes `(items, inputs)`
    and `(items, outputs)`, by default NRR Fig. 4c: `np.eye(4)` and
    `hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0)).T`. `routes` gives the trained routes in
    place of K: a boolean matrix of shape `(M, M)`, or pairs (input, output) counted from 1.
    `distractors=True` lets the other input domains show random items, drawn by `key` (a JAX key or
    an integer), instead of nothing; the gates must hide them.

    **Returns:** two datasets, the trained and the untrained routes (`None` if there are none), both
    with `x["x1"]` … `x["xM"]` of shape `(N, inputs)`, `y["y1"]` … `y["yM"]` of shape `(N, outputs)`
    and labels `input`, `output`, `item`, counted from 1.

    **Gatings:** `routing_pathways`, in which only the sample's route is on.

    ```python
    >>> from neuralrace import tasks
    >>> trained, untrained = tasks.routing(M=7, K=4)
    >>> trained.n_samples, untrained.n_samples, trained.y["y1"].shape
    (112, 84, (112, 7))
    >>> tasks.routing(M=3, routes=[(1, 1), (2, 2), (3, 3)])[0].labels["output"]
    array([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])

    ```
    """
    matrix = circulant_routes(M, K) if routes is None else route_matrix(routes, M)
    x, y = _checked_base(base)
    rngs = [generator(key) if distractors else None for _ in range(2)]
    trained = _samples(matrix, x, y, rngs[0])
    return trained, None if matrix.all() else _samples(~matrix, x, y, rngs[1])


@door
def routing_pathways(
    data: Dataset, P: int | None = None, hidden: int = 64
) -> tuple[Architecture, Dataset]:
    """The pathway network of NRR Fig. 4a and 5a, with only the sample's route on.

    Input domain i and output domain j are on if the sample's route begins and ends there. Since
    every route has exactly one path, only that path is on, for any `P`.

    **Arguments:** `data` of `routing`, trained or untrained. `P` routes share a hidden pathway:
    all M² by default ("shared"), 1 ("dedicated"), or the square of a divisor of M. `hidden` is
    the width of both layers of each pathway (NRR Fig. 4 and 5: 64).

    ```python
    >>> from neuralrace import tasks
    >>> trained, untrained = tasks.routing(M=10, K=4)
    >>> shared, data = tasks.routing_pathways(trained)
    >>> groups, data = tasks.routing_pathways(trained, P=4)
    >>> dedicated, data = tasks.routing_pathways(trained, P=1)
    >>> [len(arch.hidden) // 2 for arch in (shared, groups, dedicated)]
    [1, 25, 100]

    ```
    """
    source, target = (label(data, end, "tasks.routing()") for end in ("input", "output"))
    names = [f"{v}{i}" for v in "xy" for i in range(1, len(data.x) + 1)]
    require(
        {*data.x, *data.y} == set(names),
        "this is not a routing task",
        got=f"x for {listed(data.x)}, y for {listed(data.y)}",
        wanted="x for 'x1' … 'xM' and y for 'y1' … 'yM'",
        fix="make the data with tasks.routing()",
    )
    M = len(data.x)
    arch = Architecture.routing(
        M, inputs=data.x["x1"].shape[1], hidden=hidden, outputs=data.y["y1"].shape[1], P=P
    )
    gates = {f"x{i}": source == i for i in range(1, M + 1)}
    return arch, data.gated(gates | {f"y{j}": target == j for j in range(1, M + 1)})


def _samples(
    routes: Bool[np.ndarray, "M M"],
    x: Float[np.ndarray, "items inputs"],
    y: Float[np.ndarray, "items outputs"],
    rng: np.random.Generator | None,
) -> Dataset:
    """One sample for every route and item, routes in the order of the rows of `routes`."""
    M, (items, inputs) = len(routes), x.shape
    source, target = np.nonzero(routes)
    n = len(source) * items
    item = np.tile(np.arange(items), len(source))
    source, target = np.repeat(source, items), np.repeat(target, items)
    xs, ys = {}, {}
    for domain in range(M):
        shown = np.zeros((n, inputs)) if rng is None else x[rng.integers(items, size=n)]
        wanted = np.zeros((n, y.shape[1]))
        begins, ends = source == domain, target == domain
        shown[begins], wanted[ends] = x[item[begins]], y[item[ends]]
        xs[f"x{domain + 1}"], ys[f"y{domain + 1}"] = shown, wanted
    return Dataset(xs, ys, labels={"input": source + 1, "output": target + 1, "item": item + 1})


def _checked_base(base: Base | None) -> Base:
    if base is None:
        return np.eye(4), hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0)).T
    sides = entries("base", base, "pass (inputs, targets)")
    fix = "one row per item: transpose data with one column per item"
    both = [real_array("the base data", side, fix=fix) for side in sides]
    x, y = both if len(both) == 2 else (np.empty(0), np.empty(0))
    require(
        x.ndim == 2 and y.ndim == 2 and len(x) == len(y) and x.size and y.size,
        "the base data must be inputs and targets of the same items",
        got=f"shapes {x.shape} and {y.shape}",
        wanted="shapes (items, inputs) and (items, outputs)",
        fix=fix,
    )
    return x, y


@door
def route_matrix(routes: object, M: int) -> Bool[np.ndarray, "M M"]:
    """Routes as a matrix: one that is given, or pairs (input, output) counted from 1.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.route_matrix([(1, 1), (2, 1)], M=2)
    array([[ True, False],
           [ True, False]])

    ```
    """
    fix = "for example routes=[(1, 1), (2, 2)]"
    given = plain_array("routes", routes, wanted="a matrix, or pairs", fix=fix)
    if given.dtype == bool and given.shape == (M, M):
        matrix = given
    else:
        matrix = np.zeros((M, M), bool)
        pairs: Int[np.ndarray, "R 2"] = given
        if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
            raise _bad_routes(f"shape {given.shape} of dtype {given.dtype}", M)
        if pairs.min(initial=1) < 1 or pairs.max(initial=1) > M:
            raise _bad_routes(f"pairs of {pairs.min()} … {pairs.max()}", M)
        matrix[pairs[:, 0] - 1, pairs[:, 1] - 1] = True
    if not matrix.any():
        raise _bad_routes("no route", M)
    return matrix


def _bad_routes(got: str, M: int) -> NeuralRaceError:
    return NeuralRaceError(
        "these are not routes",
        got=got,
        wanted=f"a boolean matrix of shape ({M}, {M}), or pairs (input, output) in 1 … {M}, "
        "with at least one route",
        fix="turn a matrix of zeros and ones into booleans with .astype(bool); check M",
    )
