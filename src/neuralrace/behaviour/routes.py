"""Which stationary point leads to which: along every unstable direction to where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from neuralrace.behaviour.agent import Agent
from neuralrace.behaviour.vectors import NEUTRAL, flat, jacobian, places, shaped
from neuralrace.dataset import Dataset
from neuralrace.dynamics.flow import flow

START = 1e-5
"""How far from a point, relative to the size of its weights or 1, a route starts."""

HORIZON = 1e5
"""The time by which a route must have come to rest."""

REST = 1e-10
"""Relative speed ‖dW/dt‖ / ‖W‖ at which it has."""


@final
@dataclass(frozen=True)
class Route:
    """A way from one stationary point to another: their places in `StationaryPoints.points`.

    `node` is the silent hidden node that starts to learn on it, None where no silent one does;
    `rate` the growth rate with which it leaves; `target` None where it ends at no listed point.

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

    Near a point, the weights of each silent node move by themselves to first order: the Jacobian is
    taken apart into one block per silent node and one for the rest. A route starts along every
    unstable eigenvector of a block (both ways along one of the rest; the two ways of a silent node
    are mirror images), and follows the average learning until it rests.
    """
    found = []
    for source, (weights, quiet) in enumerate(zip(points, silent, strict=True)):
        row = flat(agent, weights)
        J = np.asarray(jacobian(agent, data, jnp.asarray(row)))
        size = START * max(1.0, float(np.linalg.norm(row)))
        for node, index in blocks(agent, quiet):
            for rate, direction in _unstable(J[np.ix_(index, index)]):
                for sign in (1,) if node is not None else (1, -1):
                    start = row.copy()
                    start[index] += sign * size * direction
                    run = flow(
                        agent,
                        shaped(agent, jnp.asarray(start)),
                        data,
                        times=[HORIZON],
                        until_stationary=REST,
                    )
                    found.append(Route(source, nearest(run.final), node, rate))
    return tuple(found)


def blocks(agent: Agent, quiet: Sequence[str]) -> Iterator[tuple[str | None, np.ndarray]]:
    """One block of weights per silent node, then the rest."""
    where, rest = places(agent), set(agent.arch.edges)
    for node in quiet:
        edges = [e for e, ends in agent.arch.edges.items() if node in ends]
        rest -= set(edges)
        yield node, np.concatenate([where[e] for e in edges])
    kept = [where[e] for e in agent.arch.edges if e in rest]
    if kept:
        yield None, np.concatenate(kept)


def _unstable(block: Float[np.ndarray, "n n"]) -> Iterator[tuple[float, np.ndarray]]:
    """Growth rates and unit directions; of equal rates (such as of a node's neurons) the first."""
    values, vectors = np.linalg.eig(block)
    rates, directions = np.real(values), np.real(vectors)
    floor = NEUTRAL * max(1.0, float(np.abs(values).max()))
    seen: list[float] = []
    for k in np.argsort(-rates):
        rate = float(rates[k])
        if rate > floor and not any(abs(rate - r) <= 1e-6 * abs(r) for r in seen):
            seen.append(rate)
            yield rate, directions[:, k] / np.linalg.norm(directions[:, k])
