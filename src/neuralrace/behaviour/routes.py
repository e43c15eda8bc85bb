"""Which stationary point leads to which: along every unstable direction to where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from neuralrace.behaviour.agent import Agent
from neuralrace.behaviour.vectors import flat, jacobian, places, rounding, shaped
from neuralrace.dataset import Dataset
from neuralrace.dynamics import Until, flow
from neuralrace.tolerances import EQUAL, ROUTE_RESTS

START = 1e-5
"""How far from a point, relative to the size of its weights or 1, a route starts."""

HORIZON = 1e5
"""The time by which a route must have come to rest."""


@final
@dataclass(frozen=True)
class Route:
    """A way from one stationary point to another: their places in `StationaryPoints.points`.

    `node` is the silent hidden node that starts to learn on it, None where no silent one does;
    `rate` the growth rate with which it leaves; `target` None where it ends at no listed point.
    Routes with the same ends, node and rate are one.

    ```python
    >>> from neuralrace.behaviour import Route
    >>> Route(source=0, target=1, node="cortex_left", rate=0.1).node
    'cortex_left'

    ```
    """

    source: int
    target: int | None
    node: str | None
    rate: float


def find_routes(
    agent: Agent,
    data: Dataset,
    points: Sequence[Mapping[str, np.ndarray]],
    silent: Sequence[Sequence[str]],
    nearest: Callable[[Mapping[str, np.ndarray]], int | None],
) -> tuple[Route, ...]:
    """The routes from every point, given its weights and its silent hidden nodes.

    Near a point, the weights of each neuron of a silent node move by themselves to first order,
    all neurons alike. The Jacobian is taken apart into one block per silent node, that of its first
    neuron, and one for the rest. A route starts along every `unstable` direction of a block (both
    ways along one of the rest; the two ways of a silent node are mirror images), and follows the
    average learning until it rests.
    """
    found: list[Route] = []
    for source, (weights, quiet) in enumerate(zip(points, silent, strict=True)):
        row = flat(agent, weights)
        J = np.asarray(jacobian(agent, data, jnp.asarray(row)))
        floor = rounding(np.linalg.eigvals(J))
        size = START * max(1.0, float(np.linalg.norm(row)))
        for node, index in blocks(agent, quiet):
            for rate, direction in unstable(J[np.ix_(index, index)], floor):
                for sign in (1,) if node is not None else (1, -1):
                    start = row.copy()
                    start[index] += sign * size * direction
                    run = flow(
                        agent,
                        shaped(agent, jnp.asarray(start)),
                        data,
                        times=[HORIZON],
                        until=Until(stationary=ROUTE_RESTS),
                    )
                    route = Route(source, nearest(run.final), node, rate)
                    if not any(_same(route, other) for other in found):
                        found.append(route)
    return tuple(found)


def _same(one: Route, other: Route) -> bool:
    ends = (one.source, one.target, one.node) == (other.source, other.target, other.node)
    return ends and abs(one.rate - other.rate) <= EQUAL * other.rate


def blocks(agent: Agent, quiet: Sequence[str]) -> Iterator[tuple[str | None, np.ndarray]]:
    """The weights of the first neuron of every silent node, then those of the rest."""
    where, sizes, rest = places(agent), agent.arch.sizes, set(agent.arch.edges)
    for node in quiet:
        index = []
        for edge, (source, target) in agent.arch.edges.items():
            table = where[edge].reshape(sizes[target], sizes[source])
            if node in (source, target):
                index.append(table[0] if node == target else table[:, 0])
                rest.discard(edge)
        yield node, np.concatenate(index)
    kept = [where[e] for e in agent.arch.edges if e in rest]
    if kept:
        yield None, np.concatenate(kept)


def unstable(
    block: Float[np.ndarray, "n n"], floor: float
) -> Iterator[tuple[float, Float[np.ndarray, " n"]]]:
    """Growth rates above `floor`, the fastest first, each with the unit directions that have it.

    Of an eigenvalue with several eigenvectors, a basis: every direction has one weight at which all
    others are zero, so that modes of different weights stay apart. Of a complex pair, along which
    weights leave in a spiral, the real and the imaginary part. Other mixtures of these directions
    grow at the same rate; they are not followed.
    """
    from scipy.linalg import qr

    values, vectors = np.linalg.eig(block)
    order = np.argsort(-np.real(values))
    left = [k for k in order if np.real(values[k]) > floor and np.imag(values[k]) >= 0]
    while left:
        first = values[left[0]]
        group = [k for k in left if abs(values[k] - first) <= EQUAL * abs(first)]
        left = [k for k in left if k not in group]
        span = np.hstack([np.real(vectors[:, group]), np.imag(vectors[:, group])])
        basis, sizes, _ = np.linalg.svd(span, full_matrices=False)
        basis = basis[:, sizes > EQUAL * sizes[0]]
        pivoted: Any = qr(basis.T, pivoting=True, mode="r")
        own = pivoted[1][: basis.shape[1]]
        for direction in np.linalg.solve(basis[own].T, basis.T):
            yield float(np.real(first)), direction / np.linalg.norm(direction)
