"""One stationary point of average learning: its values, its stability, its family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Complex, Float

from neuralrace.behaviour.agent import Agent
from neuralrace.behaviour.vectors import flat, jacobian, places, rounding, shaped, values, velocity
from neuralrace.dataset import Dataset
from neuralrace.dynamics import Until, flow
from neuralrace.tolerances import (
    DEPENDENT,
    EQUAL,
    FAMILY,
    NEVER,
    NEWTON,
    ROUTE_ENDS,
    ROUTE_RESTS,
    ROUTE_START,
    STATIONARY,
    UNSEEN,
)


@final
@dataclass(frozen=True, eq=False)
class StationaryPoint:
    """A point at which average learning stands still.

    `learned` are the hidden nodes that contribute to the values there; `weights` the point itself,
    one of its family where there is one; `outputs` and `choices` the values and the probabilities
    of the choices on every stimulus (the psychometric curve); `residual` the largest entry of the
    velocity. `eigenvalues` of the Jacobian come by decreasing real part. `is_family` says whether
    the point can be moved along all its neutral directions and stays stationary.

    ```python
    >>> from neuralrace.behaviour import decision_task, shallow_agent, stationary_points
    >>> (point,) = stationary_points(shallow_agent(), decision_task()).points
    >>> point.is_stable, point.learned, bool(point.residual < 1e-10)
    (True, (), True)

    ```
    """

    learned: tuple[str, ...]
    weights: dict[str, np.ndarray]
    outputs: dict[str, Float[np.ndarray, "N choices"]]
    choices: Float[np.ndarray, "N choices"]
    loss: float
    residual: float
    eigenvalues: Complex[np.ndarray, " n"]
    is_family: bool = False

    @property
    def index(self) -> int:
        """How many directions lead away."""
        return int((np.real(self.eigenvalues) > self._zero).sum())

    @property
    def neutral(self) -> int:
        """Directions in which nothing changes to first order: |λ| is zero to rounding.

        Where `is_family`, this is the dimension of its family.
        """
        return int((np.abs(self.eigenvalues) <= self._zero).sum())

    @property
    def is_stable(self) -> bool | None:
        """Whether no direction leads away; directions along its family do not count.

        None where eigenvalues do not decide it: there are neutral directions that are not along a
        family, such as at the zero weights of a chain of three layers, or imaginary eigenvalues.
        """
        if self.index:
            return False
        still = np.abs(np.real(self.eigenvalues)) <= self._zero
        decided = int(still.sum()) == self.neutral and (not self.neutral or self.is_family)
        return True if decided else None

    @property
    def _zero(self) -> float:
        return rounding(self.eigenvalues)


def is_rest(agent: Agent, data: Dataset, row: np.ndarray) -> bool:
    """Whether the velocity vanishes here, and is not just tiny because a choice is never taken.

    The step of Newton is then small; singular values that are zero to rounding do not count.
    """
    taken = np.asarray(agent.choices(shaped(agent, jnp.asarray(row)), data))
    share = np.asarray(data.probability)
    if (share @ taken).min() < NEVER:
        return False
    for x in data.x.values():
        seen = share * np.abs(np.asarray(x)).sum(axis=1)
        if (seen @ taken).min() < UNSEEN * seen.sum():
            return False
    J, v = (np.asarray(of(agent, data, jnp.asarray(row))) for of in (jacobian, velocity))
    step = np.linalg.lstsq(J, v, rcond=DEPENDENT)[0]
    return bool(np.linalg.norm(step) <= NEWTON * max(1.0, float(np.linalg.norm(row))))


def gap(data: Dataset, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distance of values, as in `StationaryPoints.distances`; (…, outputs, N, choices)."""
    share = np.asarray(data.probability)
    return np.asarray(np.sqrt(np.einsum("...vnc,n->...", (one - other) ** 2, share)))


def distinct(agent: Agent, data: Dataset, rows: np.ndarray) -> np.ndarray:
    """The rows whose values differ from those of every row before."""
    seen = np.asarray(values(agent, data, jnp.asarray(rows)))
    kept: list[int] = []
    for k in range(len(rows)):
        if not kept or gap(data, seen[kept], seen[k]).min() > EQUAL:
            kept.append(k)
    return rows[kept]


def simplest(agent: Agent, data: Dataset, row: np.ndarray) -> np.ndarray:
    """The member of a point's family that stands for it; see `stationary_points`."""

    def stands(tried: np.ndarray) -> bool:
        still = np.abs(np.asarray(velocity(agent, data, jnp.asarray(tried)))).max() <= STATIONARY
        pair = np.asarray(values(agent, data, jnp.asarray([row, tried])))
        return bool(still) and float(gap(data, *pair)) <= EQUAL

    for node in agent.arch.hidden:
        weights = {e: np.array(w) for e, w in shaped(agent, jnp.asarray(row)).items()}
        into, out = agent.arch.incoming[node], agent.arch.outgoing[node]
        norms = [np.sqrt(sum((weights[e] ** 2).sum() for e in edges)) for edges in (into, out)]
        largest = max((weights[e].ravel() for e in into), key=lambda w: np.abs(w).max())
        sign = -1.0 if largest[np.abs(largest).argmax()] < 0 else 1.0
        scale = np.sqrt(norms[1] / norms[0]) if min(norms) > 0 else 1.0
        for a, b in ((0.0, 0.0), (sign * scale, sign / scale), (sign, sign)):
            tried = weights | {e: a * weights[e] for e in into} | {e: b * weights[e] for e in out}
            if stands(flat(agent, tried)):
                row = flat(agent, tried)
                break
    return row


def _is_family(agent: Agent, data: Dataset, row: np.ndarray) -> bool:
    """Whether points stay stationary along the neutral directions, the kernel of the Jacobian J.

    From W + ε n, n a random direction of the kernel, steps −J⁺ v across it look for a stationary
    point. They find one if the family has the dimension of the kernel. Where it has not, such as
    where families cross, a velocity of order ε² or ε³ remains.
    """
    J = np.asarray(jacobian(agent, data, jnp.asarray(row)))
    _, sizes, turned = np.linalg.svd(J)
    floor = rounding(sizes)
    kernel = turned[sizes <= floor]
    if not len(kernel):
        return False
    inverse = np.linalg.pinv(J, rcond=floor / float(sizes[0])) if sizes[0] > floor else 0 * J
    # along neutral directions
    rng, length = np.random.default_rng(0), FAMILY * max(1.0, float(np.linalg.norm(row)))
    for _ in range(3):
        way = rng.normal(size=len(kernel)) @ kernel
        tried = row + length * way / np.linalg.norm(way)
        for _ in range(50):
            tried = tried - inverse @ np.asarray(velocity(agent, data, jnp.asarray(tried)))
        left = np.abs(np.asarray(velocity(agent, data, jnp.asarray(tried)))).max()
        if not left <= STATIONARY:
            return False
    return True


def point_at(agent: Agent, data: Dataset, row: np.ndarray) -> StationaryPoint:
    weights = {e: np.asarray(w) for e, w in shaped(agent, jnp.asarray(row)).items()}
    eigenvalues = np.linalg.eigvals(np.asarray(jacobian(agent, data, jnp.asarray(row))))
    without = [row]
    for node in agent.arch.hidden:  # which nodes change the values when they fall silent
        silent = {e: np.zeros_like(weights[e]) for e in agent.arch.outgoing[node]}
        without.append(flat(agent, weights | silent))
    seen = np.asarray(values(agent, data, jnp.asarray(without)))
    heard = gap(data, seen[1:], seen[0]) > EQUAL
    return StationaryPoint(
        tuple(v for v, one in zip(agent.arch.hidden, heard, strict=True) if one),
        weights,
        dict(zip(agent.arch.outputs, seen[0], strict=True)),
        np.asarray(agent.choices(weights, data)),
        float(agent.loss(weights, data)),
        float(np.abs(np.asarray(velocity(agent, data, jnp.asarray(row)))).max()),
        np.asarray(sorted(eigenvalues, key=lambda v: -v.real), complex),
        _is_family(agent, data, row),
    )


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
        size = ROUTE_START * max(1.0, float(np.linalg.norm(row)))
        for node, index in blocks(agent, quiet):
            for rate, direction in unstable(J[np.ix_(index, index)], floor):
                for sign in (1,) if node is not None else (1, -1):
                    start = row.copy()
                    start[index] += sign * size * direction
                    run = flow(
                        agent,
                        shaped(agent, jnp.asarray(start)),
                        data,
                        times=[ROUTE_ENDS],
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
