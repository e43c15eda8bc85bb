"""Gated deep linear networks in plain NumPy and SciPy, which every way to solve one must match.

Nothing here uses the package; a network is its graph and arrays, weights are arrays by edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import solve_ivp

Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class Network:
    """h_v = g_v ∘ Σ_e g_e W_e h_s(e), L = ½ Σ_n p_n ‖y_n − h_n‖².

    Nodes come in the order of the graph. `ties` are {name: (edge, transposed edge + ".T", …)}, and
    `frozen` {edge: multiple of the identity}.
    """

    sizes: Mapping[str, int]
    edges: Mapping[str, tuple[str, str]]
    x: Mapping[str, np.ndarray]
    y: Mapping[str, np.ndarray]
    gates: Mapping[str, np.ndarray]
    p: np.ndarray
    ties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    frozen: Mapping[str, float] = field(default_factory=dict)

    def untied(self, w: Weights) -> Weights:
        """The matrix of every edge."""
        found = {e: a * np.eye(self.sizes[self.edges[e][0]]) for e, a in self.frozen.items()}
        for name, a in w.items():
            for member in self.ties.get(name, (name,)):
                found[member.removesuffix(".T")] = a.T if member.endswith(".T") else a
        return found

    def gate(self, name: str) -> np.ndarray:
        g = np.asarray(self.gates.get(name, 1.0), float)
        return g[:, None] if g.ndim == 1 else g

    def forward(self, w: Weights) -> dict[str, np.ndarray]:
        w = self.untied(w)
        h = {v: self.gate(v) * x for v, x in self.x.items()}
        for v in self.sizes:
            if v not in h:
                into = [e for e, (_, t) in self.edges.items() if t == v]
                h[v] = self.gate(v) * sum(
                    self.gate(e) * (h[self.edges[e][0]] @ w[e].T) for e in into
                )
        return h

    def loss(self, w: Weights) -> float:
        h = self.forward(w)
        return sum(float(self.p @ ((y - h[v]) ** 2).sum(axis=1)) for v, y in self.y.items()) / 2

    def velocity(self, w: Weights) -> Weights:
        """−∂L/∂W of every edge or tie, by going back through the graph."""
        h, learned, w = self.forward(w), w, self.untied(w)
        back = {v: self.gate(v) * self.p[:, None] * (y - h[v]) for v, y in self.y.items()}
        for v in reversed(list(self.sizes)):
            if v not in back:
                out = [e for e, (s, _) in self.edges.items() if s == v]
                back[v] = self.gate(v) * sum(
                    self.gate(e) * back[self.edges[e][1]] @ w[e] for e in out
                )
        each = {e: (self.gate(e) * back[t]).T @ h[s] for e, (s, t) in self.edges.items()}
        each |= {f"{e}.T": v.T for e, v in each.items()}
        return {name: sum(each[e] for e in self.ties.get(name, (name,))) for name in learned}

    def flow(self, w: Weights, times: np.ndarray) -> tuple[np.ndarray, list[Weights]]:
        """Losses and weights of τ dW/dt = −∂L/∂W, τ = 1."""
        states = integrated(self.velocity, w, times)
        return np.array([self.loss(state) for state in states]), states

    def descent(self, w: Weights, rate: float, steps: int) -> np.ndarray:
        """The losses before, and after every step of, gradient descent."""
        losses = [self.loss(w)]
        for _ in range(steps):
            w = {e: w[e] + rate * v for e, v in self.velocity(w).items()}
            losses.append(self.loss(w))
        return np.array(losses)


def integrated(velocity: Callable[[Weights], Weights], w: Weights, times: np.ndarray):
    """The states at `times`, which begin at 0, of dw/dt = velocity(w)."""
    shapes = {e: np.shape(a) for e, a in w.items()}

    def unpacked(flat: np.ndarray) -> Weights:
        parts = np.split(flat, np.cumsum([int(np.prod(s)) for s in shapes.values()])[:-1])
        return {e: a.reshape(s) for (e, s), a in zip(shapes.items(), parts, strict=True)}

    packed = lambda w: np.concatenate([np.ravel(w[e]) for e in shapes])
    done = solve_ivp(
        lambda t, flat: packed(velocity(unpacked(flat))), (0, times[-1]), packed(w),
        t_eval=times, method="DOP853", rtol=1e-10, atol=1e-13,
    )  # fmt: skip
    return [unpacked(flat) for flat in done.y.T]
