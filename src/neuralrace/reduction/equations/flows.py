"""Gradient flows of a block in NumPy, with one vector as their state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.reduction.blocks.mixtures import longest_path
from neuralrace.reduction.equations.polynomial import PolynomialSystem
from neuralrace.statistics import join_nodes
from neuralrace.types import Matrix

GROWTH = 20.0
"""The factor by which a state may always grow before the solver's tolerance is set again."""

CALL = 1000.0
"""A call of NumPy takes as long as this many operations."""


class FlatFlow(ABC):
    """A block as SciPy solves it: a flat state, its velocity and its loss.

    The tolerances follow from `sizes`. `work` is the number of operations per velocity. `depth` is
    the number of edges on the longest path.
    """

    start: Float[np.ndarray, " n"]
    sizes: Float[np.ndarray, " n"]
    work: float
    depth: int

    def growth_span(self, most: float) -> float:
        """The time, in units of size over speed, in which a state grows by at most this factor.

        Chains of two edges grow exponentially. Those of D edges grow as db/dt ∝ b^{D−1}, without
        bound in a finite time: they are followed until they have grown by a factor below 4.
        """
        if self.depth > 2:
            return 0.7 / (self.depth - 2)
        return float(np.log(max(most, GROWTH)))

    @abstractmethod
    def velocity(self, state: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The direction of gradient flow."""

    @abstractmethod
    def losses(self, states: Float[np.ndarray, "T n"]) -> Float[np.ndarray, " T"]:
        """The loss at several states."""

    @abstractmethod
    def weights(self, states: Float[np.ndarray, "*T n"]) -> dict[str, np.ndarray]:
        """The weights of every edge of the block at these states, `(*T, |t|, |s|)`."""


@final
class PolynomialFlow(FlatFlow):
    """The merged equations of a block."""

    def __init__(self, system: PolynomialSystem, start: Float[np.ndarray, " K"]) -> None:
        self.system, self.start, self.sizes = system, start, np.abs(start)
        self.work = 4 * CALL + 20.0 * system.powers.size
        self.depth = (int(system.powers.sum(axis=-1).max(initial=1)) + 1) // 2

    def velocity(self, state: np.ndarray) -> np.ndarray:
        return self.system.velocity_at(state)

    def losses(self, states: np.ndarray) -> np.ndarray:
        return np.asarray(self.system.loss_at(states))

    def weights(self, states: np.ndarray) -> dict[str, np.ndarray]:
        return self.system.expanded(states)


@final
class NetworkFlow(FlatFlow):
    """A gated network; its weights follow one another edge by edge.

    With `joining`, nodes between the same neighbours are one: fewer and larger products.
    """

    def __init__(
        self,
        arch: Architecture,
        weights: Mapping[str, Matrix],
        data: Dataset,
        *,
        joining: bool = False,
    ) -> None:
        self._joined = join_nodes(arch, tuple(data.gates)) if joining else None
        begin = {e: np.asarray(weights[e], np.float64) for e in arch.edges}
        sizes = {e: np.full(w.shape, np.sqrt((w**2).mean())) for e, w in begin.items()}
        if self._joined is not None:
            arch, data = self._joined.arch, self._joined.data(data)
            begin, sizes = self._joined.join(begin), self._joined.join(sizes)
        self._shapes = {e: begin[e].shape for e in arch.edges}
        self.start, self.sizes = (
            np.concatenate([a[e].ravel() for e in arch.edges]) for a in (begin, sizes)
        )
        flops = 6 * data.n_samples * float(len(self.start))
        self.work = 8 * CALL * len(arch.edges) + flops
        self.depth = longest_path(arch)
        gates = {v: np.asarray(g).reshape(len(g), -1) for v, g in data.gates.items()}
        self._x = {v: _times(np.asarray(x), gates.get(v)) for v, x in data.x.items()}
        self._y = {v: np.asarray(y) for v, y in data.y.items()}
        self._share = np.asarray(data.probability, np.float64)[:, None]
        # matrices that share the memory of one vector, of the state and of its velocity
        self._state, self._moved = np.empty((2, len(self.start)))
        weight, moved = self._shaped(self._state), self._shaped(self._moved)
        self._nodes = [
            (v, gates.get(v), [
                (arch.edges[e][0], weight[e].T, gates.get(e), e, moved[e])
                for e in arch.incoming[v]
            ], [(e, weight[e]) for e in arch.outgoing[v]])
            for v in arch.order
            if v not in data.x
        ]  # fmt: skip

    def _shaped(self, states: np.ndarray) -> dict[str, np.ndarray]:
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()])[:-1]
        parts = np.split(states, ends, axis=-1)
        return {
            e: part.reshape(*states.shape[:-1], *shape)
            for (e, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def weights(self, states: np.ndarray) -> dict[str, np.ndarray]:
        found = self._shaped(states)
        return found if self._joined is None else self._joined.split(found)

    def _activity(self, state: np.ndarray) -> dict[str, np.ndarray]:
        """The activity of every node, and this state in the memory that the matrices share."""
        self._state[:] = state
        h = dict(self._x)
        for node, gate, incoming, _ in self._nodes:
            parts = [_times(np.dot(h[source], w), g) for source, w, g, _, _ in incoming]
            h[node] = _times(_total(parts), gate)
        return h

    def velocity(self, state: np.ndarray) -> np.ndarray:
        h = self._activity(state)
        pull: dict[str, np.ndarray] = {}
        for node, gate, incoming, outgoing in reversed(self._nodes):
            if node in self._y:
                total = (self._y[node] - h[node]) * self._share
            else:
                total = _total([np.dot(pull[e], w) for e, w in outgoing])
            total = _times(total, gate)
            for source, _, edge_gate, e, moved in incoming:
                pull[e] = _times(total, edge_gate)
                np.dot(pull[e].T, h[source], out=moved)
        return self._moved.copy()

    def errors(self, state: Float[np.ndarray, " n"]) -> Float[np.ndarray, " rows"]:
        """y − h of every sample and output, times the root of its weight: the loss is ½‖·‖²."""
        h = self._activity(state)
        gaps = [np.ravel(np.sqrt(self._share) * (y - h[v])) for v, y in self._y.items()]
        return np.concatenate(gaps)

    def losses(self, states: np.ndarray) -> np.ndarray:
        return np.array([(self.errors(state) ** 2).sum() / 2 for state in states])


def _times(h: np.ndarray, gate: np.ndarray | None) -> np.ndarray:
    return h if gate is None else h * gate


def _total(parts: list[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
