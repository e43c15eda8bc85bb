"""Gradient flows with a flat state in NumPy, for small solvers and closed subspaces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.reduction.blocks.mixtures import longest_path
from neuralrace.types import WeightsLike

GROWTH = 20.0
"""The factor by which a state may always grow before the solver's tolerance is set again."""

CALL = 1000.0
"""A call of NumPy takes as long as this many operations."""


class FlatFlow(ABC):
    """A problem that can be solved here: a flat state, its velocity, and the loss of each part.

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
    def losses(self, states: Float[np.ndarray, "T n"]) -> Float[np.ndarray, "T parts"]:
        """The loss of each part at several states."""


@final
class NetworkFlow(FlatFlow):
    """Gated networks of one shape side by side; weights, inputs and gates have a leading axis."""

    def __init__(self, arch: Architecture, weights: WeightsLike, data: Dataset) -> None:
        self.arch = arch
        self.shapes = {e: np.shape(weights[e]) for e in arch.edges}
        self.start = np.concatenate([np.ravel(weights[e]) for e in arch.edges])
        self.sizes = np.concatenate([_sizes(np.asarray(weights[e])) for e in arch.edges])
        gates = {name: np.asarray(g)[..., None] for name, g in data.gates.items()}
        self._gate = gates
        self._x = {v: _times(np.asarray(x), gates.get(v)) for v, x in data.x.items()}
        self._y = {v: np.asarray(y) for v, y in data.y.items()}
        samples = next(iter(self._y.values())).shape[-2]
        flops = 6 * samples * sum(float(np.prod(s)) for s in self.shapes.values())
        self.work = 8 * CALL * len(arch.edges) + flops
        self.depth = longest_path(arch)
        self._share = 1.0 / next(iter(self._y.values())).shape[-2]
        self._ends = np.cumsum([0, *(int(np.prod(s)) for s in self.shapes.values())]).tolist()
        self._two_layers = self._stacked_layers()

    def shaped(self, states: np.ndarray) -> dict[str, np.ndarray]:
        """The weights of every edge, `(*T, parts, |t|, |s|)`."""
        ends = self._ends
        lead = states.shape[:-1]
        return {
            e: states[..., ends[i] : ends[i + 1]].reshape(*lead, *shape)
            for i, (e, shape) in enumerate(self.shapes.items())
        }

    def _activity(self, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        h: dict[str, np.ndarray] = {}
        for node in self.arch.order:
            if node in self._x:
                h[node] = self._x[node]
                continue
            total: Any = 0.0
            for e in self.arch.incoming[node]:
                part = h[self.arch.edges[e][0]] @ weights[e].swapaxes(-1, -2)
                total = total + _times(part, self._gate.get(e))
            h[node] = _times(total, self._gate.get(node))
        return h

    def _stacked_layers(self) -> _TwoLayers | None:
        """One network whose paths all have two edges, and gates on hidden nodes or inputs alone."""
        arch = self.arch
        two = all((s in self._x) == (t not in self._y) for s, t in arch.edges.values())
        two = two and len(set(arch.edges.values())) == len(arch.edges)  # no parallel edges
        gated = set(self._gate) <= {*arch.hidden, *self._x}
        several = any(len(s) != 2 and s[:-2] != (1,) for s in self.shapes.values())
        if not two or not gated or several:
            return None
        ends = dict(zip(self.shapes, self._ends[:-1], strict=True))
        shapes = {edge: shape[-2:] for edge, shape in self.shapes.items()}
        places = {e: ends[e] + np.arange(np.prod(s)).reshape(s) for e, s in shapes.items()}
        x, y, gates = (
            {v: a.reshape(a.shape[-2:]) for v, a in arrays.items()}
            for arrays in (self._x, self._y, self._gate)
        )
        return _TwoLayers(arch, places, x, y, gates, len(self.start), self._share)

    def velocity(self, state: np.ndarray) -> np.ndarray:
        if self._two_layers is not None:
            return self._two_layers.velocity(state)
        weights = self.shaped(state)
        h = self._activity(weights)
        pull: dict[str, np.ndarray] = {}
        found = {}
        for node in reversed(self.arch.order):
            if node in self._x:
                continue
            if node in self._y:
                total: Any = (self._y[node] - h[node]) * self._share
            else:
                total = 0.0
                for e in self.arch.outgoing[node]:
                    total = total + pull[e] @ weights[e]
            total = _times(total, self._gate.get(node))
            for e in self.arch.incoming[node]:
                pull[e] = _times(total, self._gate.get(e))
                found[e] = pull[e].swapaxes(-1, -2) @ h[self.arch.edges[e][0]]
        return np.concatenate([found[e].ravel() for e in self.shapes])

    def errors(self, state: Float[np.ndarray, " n"]) -> Float[np.ndarray, " rows"]:
        """y − h of every sample and output, times the root of its weight: the loss is ½‖·‖²."""
        h = self._activity(self.shaped(state))
        gaps = [np.ravel(y - h[v]) for v, y in self._y.items()]
        return np.sqrt(self._share) * np.concatenate(gaps)

    def losses(self, states: np.ndarray) -> np.ndarray:
        h = self._activity(self.shaped(states))
        terms = [((y - h[v]) ** 2).sum(axis=(-1, -2)) for v, y in self._y.items()]
        return np.sum(terms, axis=0) * self._share / 2


@final
class _TwoLayers:
    """The velocity of a network with one hidden layer: all its nodes side by side in two matrices.

    For small nodes this is quicker than node by node, and `np.dot` is quicker than `np.matmul`.
    Where there is no edge, a matrix holds a zero that never moves.
    """

    def __init__(
        self,
        arch: Architecture,
        places: Mapping[str, np.ndarray],
        x: Mapping[str, np.ndarray],
        y: Mapping[str, np.ndarray],
        gates: Mapping[str, np.ndarray],
        count: int,
        share: float,
    ) -> None:
        sizes = {v: a.shape[-1] for v, a in (*x.items(), *y.items())}
        for edge, (source, target) in arch.edges.items():
            size_t, size_s = places[edge].shape
            sizes |= {target: size_t, source: size_s}
        samples = next(iter(y.values())).shape[-2]
        at = {}
        for layer in (x, arch.hidden, y):
            ends = np.cumsum([0, *(sizes[v] for v in layer)]).tolist()
            at |= {v: slice(a, b) for v, a, b in zip(layer, ends[:-1], ends[1:], strict=True)}
        wide = sum(sizes[v] for v in arch.hidden)
        root = np.sqrt(share)  # input and target times this: the mean over samples is a sum
        self._x, self._y = (root * np.concatenate(list(a.values()), axis=-1) for a in (x, y))
        self._gate = np.ones((samples, wide))
        for node in arch.hidden:
            if node in gates:
                self._gate[:, at[node]] = gates[node]
        # where each weight stands in the state; the last place of the longer state holds a zero
        first = np.full((wide, self._x.shape[1]), count)
        second = np.full((self._y.shape[1], wide), count)
        for edge, (source, target) in arch.edges.items():
            table = first if source in x else second
            table[at[target], at[source]] = places[edge]
        self._there = np.concatenate([first.ravel(), second.ravel()])
        self._back = np.argsort(self._there, kind="stable")[:count]
        self._state = np.zeros(count + 1)
        self._weights, self._moved = np.zeros((2, len(self._there)))
        self._first, self._second = _halves(self._weights, first.shape, second.shape)
        self._first_moved, self._second_moved = _halves(self._moved, first.shape, second.shape)
        self._h, self._pull = np.zeros((2, samples, wide))
        self._error = np.zeros_like(self._y)
        self._is_full = bool((self._there < count).all())
        self._first_t, self._second_t = self._first.T, self._second.T
        self._pull_t, self._error_t = self._pull.T, self._error.T

    def velocity(self, state: np.ndarray) -> np.ndarray:
        if not self._is_full:
            self._state[:-1] = state
            state = self._state
        state.take(self._there, out=self._weights, mode="clip")
        np.dot(self._x, self._first_t, self._h)
        np.multiply(self._h, self._gate, self._h)
        np.dot(self._h, self._second_t, self._error)
        np.subtract(self._y, self._error, self._error)
        np.dot(self._error, self._second, self._pull)
        np.multiply(self._pull, self._gate, self._pull)
        np.dot(self._pull_t, self._x, self._first_moved)
        np.dot(self._error_t, self._h, self._second_moved)
        return self._moved.take(self._back)


def _halves(
    flat: np.ndarray, first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices that share the memory of one vector."""
    cut = int(np.prod(first))
    return flat[:cut].reshape(first), flat[cut:].reshape(second)


def _sizes(weights: Float[np.ndarray, "parts t s"]) -> Float[np.ndarray, " n"]:
    """The root mean square of each part's weights, repeated for every one of them."""
    squares = (weights**2).mean(axis=(1, 2), keepdims=True)
    return np.broadcast_to(np.sqrt(squares), weights.shape).ravel()


def _times(h: np.ndarray, gate: np.ndarray | None) -> np.ndarray:
    return h if gate is None else h * gate
