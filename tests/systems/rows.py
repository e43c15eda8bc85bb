"""One row per kind of network: the network, its blocks by hand, and where known its loss by hand.

A new kind of network is one more entry of `ROWS`; `test_systems.py` asks all of them the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import neuralrace as nr
from tests.systems.truth import Network, Weights, integrated

Curve = Callable[[np.ndarray, dict[str, float]], np.ndarray]
"""From times and the starting value of every edge of a mode, by how much the loss has changed."""

S, D = np.array([1.2, 0.8, 0.5]), np.array([1.0, 0.7, 0.4])
"""Σ^yx and Σ^x of three modes."""


@dataclass(frozen=True)
class System:
    """A gated network on a task, and what is known of it without the package."""

    arch: nr.Architecture
    data: nr.Dataset
    blocks: tuple[tuple[int, ...], ...]
    """Directions of every block at input and output nodes, in the order of the graph."""
    horizon: float = 8.0
    """Until when it learns from `start`, in units of τ."""
    start: float | Mapping[str, float] = 0.4
    """Aligned starting value of every edge, or of each by name."""
    curve: Curve | None = None
    """L(t) − L(0 weights) of the race from an aligned start."""
    closed: str = ""
    """The kind of closed form of every mode; empty if none is known."""
    depth: int | None = 2
    """Edges on every path; None if paths differ."""
    white: bool = False
    """Whether Σ^x is d I, so that λ-balanced weights have a solution."""

    @property
    def net(self) -> nr.GDLN:
        return nr.GDLN(self.arch)

    def truth(self) -> Network:
        data = self.data
        arrays = [{k: np.asarray(a) for k, a in part.items()} for part in (data.x, data.y)]
        p = np.ones(data.n_samples) if data.sample_weight is None else data.sample_weight
        gates = {k: np.asarray(g) for k, g in data.gates.items()}
        sizes, edges = dict(self.arch.sizes), dict(self.arch.edges)
        shared = dict(self.arch.ties), dict(self.arch.frozen)
        return Network(sizes, edges, *arrays, gates, np.asarray(p) / np.sum(p), *shared)

    def weights(self, seed: int, scale: float = 0.5) -> Weights:
        rng = np.random.default_rng(seed)
        return {e: scale * rng.normal(size=shape) for e, shape in self.arch.shapes.items()}


# ---- tasks with known modes ----------------------------------------------------------------------


def turned(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Orthonormal columns."""
    return np.linalg.qr(rng.normal(size=(rows, columns)))[0]


def task(d: np.ndarray = D, inputs: int = 4, weight: np.ndarray | None = None) -> nr.Dataset:
    """Σ^yx = U S Vᵀ, Σ^x = V D Vᵀ of 9 samples with 5 targets, not all of which can be learned."""
    rng, n, k = np.random.default_rng(0), 9, len(d)
    q = turned(rng, n, k + 1) / np.sqrt(np.full(n, 1 / n) if weight is None else weight)[:, None]
    v, u = turned(rng, inputs, k), turned(rng, 5, k)
    y = q[:, :k] * (S[:k] / np.sqrt(d)) @ u.T + 0.3 * q[:, [k]]
    return nr.Dataset({"x": q[:, :k] * np.sqrt(d) @ v.T}, {"y": y}, sample_weight=weight)


def falls(s: float, d: float, a: np.ndarray) -> np.ndarray:
    """½⟨(y − a x)²⟩ − ½⟨y²⟩."""
    return d * a**2 / 2 - s * a


def modes(strength: Callable[..., np.ndarray], s=S, d=D) -> Curve:
    """Modes that learn one by one, with a(t; s, d, start) each."""
    return lambda t, b: sum(falls(*sd, strength(t, *sd, b)) for sd in zip(s, d, strict=True))


def one_edge(t, s, d, b):
    return s / d + (b["W1"] - s / d) * np.exp(-d * t)


def logistic(t, s, d, b):
    """Two balanced edges; a = b² at the start."""
    return s / d / (1 - (1 - s / d / np.prod([*b.values()][:2])) * np.exp(-2 * s * t))


def unbalanced(t, s, d, b):
    """Two edges, in y = (b₁ + b₂)² with (b₂² − b₁²)² conserved."""
    k2, y0 = (b["W2"] ** 2 - b["W1"] ** 2) ** 2, (b["W1"] + b["W2"]) ** 2
    w = np.sqrt(s**2 + d**2 * k2 / 4)
    high, low = 2 / d * (s + w), 2 / d * (s - w)
    q = (y0 - high) / (y0 - low) * np.exp(-2 * w * t)
    y = (high - low * q) / (1 - q)
    return (y - k2 / y) / 4


def solved(velocity: Callable[..., Weights], result: Callable[[Weights], np.ndarray]):
    """A strength that has no formula: `result` of variables that move with `velocity`."""

    def strength(t, s, d, b):
        start = {e: np.array(value) for e, value in b.items()}
        states = integrated(lambda b: velocity(s, d, **b), start, t)
        return np.array([result(**b) for b in states])

    return strength


def deep(t, s, d, b):
    """D edges that start alike: db/dt = b^{D−1} (s − d b^D)."""
    n, (first, *_) = len(b), b.values()
    a = solved(lambda s, d, b: {"b": b ** (n - 1) * (s - d * b**n)}, lambda b: b**n)
    return a(t, s, d, {"b": first})


def routed(M: int) -> Callable[..., np.ndarray]:
    """NRR §4: a shared edge B₂ learns from every route, an outer one from 1/M of them."""
    move = lambda s, d, out, mid: {
        "out": mid * out * (s - d * mid * out**2) / M,
        "mid": out**2 * (s - d * mid * out**2),
    }
    whole = solved(move, lambda out, mid: mid * out**2)
    return lambda t, s, d, b: whole(t, s, d, {"out": b["in1"], "mid": b["hidden"]})


def skip(t, s, d, b):
    """One path of two edges and two of one edge between the same ends."""

    def move(s, d, xh, hy, one, two):
        left = s - d * (xh * hy + one + two)
        return {"xh": hy * left, "hy": xh * left, "one": left, "two": left}

    return solved(move, lambda xh, hy, one, two: xh * hy + one + two)(t, s, d, b)


def overlapping(t, b):
    """A pathway that is always on and one that is on for half of the samples of every mode."""
    total = 0.0
    for s, d in zip(S, D, strict=True):

        def move(s, d, x_all, all_y, x_half, half_y):
            both, alone = s - d * (x_all * all_y + x_half * half_y), s - d * x_all * all_y
            drive = (both + alone) / 2
            return {
                "x_all": all_y * drive, "all_y": x_all * drive,
                "x_half": half_y * both / 2, "half_y": x_half * both / 2,
            }  # fmt: skip

        pair = lambda x_all, all_y, x_half, half_y: (x_all * all_y, x_half * half_y)
        a, h = solved(move, pair)(t, s, d, b).T
        total = total + (falls(s, d, a + h) + falls(s, d, a)) / 2
    return total


# ---- the rows ------------------------------------------------------------------------------------


def chain(depth: int) -> nr.Architecture:
    return nr.Architecture.chain(4, *[5] * (depth - 1), 5)


def skip_graph() -> nr.Architecture:
    edges = {"xh": ("x", "h"), "hy": ("h", "y"), "one": ("x", "y"), "two": ("x", "y")}
    return nr.Architecture({"x": 4, "h": 4, "y": 5}, edges)


def halves() -> tuple[nr.Architecture, nr.Dataset]:
    base = task()
    twice = nr.Dataset(
        *({k: np.tile(a, (2, 1)) for k, a in part.items()} for part in (base.x, base.y))
    )
    return nr.pathways(twice, {"all": None, "half": np.arange(18) < 9}, hidden=4)


def random_task(rng, n, x, y, gates=None, weight=None) -> nr.Dataset:
    draw = lambda sizes: {v: rng.normal(size=(n, size)) for v, size in sizes.items()}
    return nr.Dataset(draw(x), draw(y), gates, weight)


def copies(rng: np.random.Generator, data: nr.Dataset) -> nr.Dataset:
    """The samples twice, each time in directions of their own, turned in every node."""
    wide = lambda a: np.kron(np.eye(2), a) @ turned(rng, *[2 * np.shape(a)[1]] * 2)
    x, y = ({v: wide(np.asarray(a)) for v, a in part.items()} for part in (data.x, data.y))
    twice = lambda a: np.tile(np.asarray(a), 2)
    weight = None if data.sample_weight is None else twice(data.sample_weight)
    return nr.Dataset(x, y, {name: twice(g) for name, g in data.gates.items()}, weight)


def real_gates() -> tuple[nr.Architecture, nr.Dataset]:
    """Paths of one, two and three edges, real gates on nodes and edges, weighted samples.

    The output is off for two samples, whose targets count in the loss all the same.
    """
    rng, n = np.random.default_rng(2), 8
    arch = nr.Architecture(
        {"x": 4, "a": 6, "b": 5, "y": 4},
        {"xa": ("x", "a"), "ab": ("a", "b"), "ay": ("a", "y"), "by": ("b", "y"), "xy": ("x", "y")},
    )
    gates = {name: rng.normal(size=n) for name in ("x", "a", "b", "ay", "xy", "y")}
    gates["y"][:2] = 0.0
    data = random_task(rng, n, {"x": 2}, {"y": 2}, gates, rng.uniform(0.2, 1, n))
    return arch, copies(rng, data)


def neurons() -> tuple[nr.Architecture, nr.Dataset]:
    """Gates per neuron, of two kinds that overlap, and weighted samples."""
    rng, n = np.random.default_rng(4), 9
    kinds = np.stack([np.arange(n) < 5, np.arange(n) >= 3], axis=1).astype(float)
    gates = {"h": np.tile(kinds, 3)}
    data = random_task(rng, n, {"x": 2}, {"y": 2}, gates, rng.uniform(0.2, 1, n))
    return nr.Architecture.chain(2, 6, 2), data


def many_ends() -> tuple[nr.Architecture, nr.Dataset]:
    """Two inputs and two outputs through one node."""
    rng = np.random.default_rng(3)
    arch = nr.Architecture(
        {"u": 2, "v": 2, "h": 6, "y": 2, "z": 2},
        {"uh": ("u", "h"), "vh": ("v", "h"), "hy": ("h", "y"), "hz": ("h", "z")},
    )
    return arch, copies(rng, random_task(rng, 7, {"u": 1, "v": 1}, {"y": 1, "z": 1}))


SIZES, DECAYS, STEPS = np.array([1.2, 0.8]), np.array([0.5, -0.4]), 3


def sequences(readout: str = "last", leak: float | None = None) -> tuple:
    """White inputs; every input of mode k has c_k λ_k^d at the outputs d steps later."""
    arch = nr.Architecture.recurrent(3, 4, 3, STEPS, readout, leak=leak)
    rng = np.random.default_rng(5)
    n = 3 * STEPS
    white = np.sqrt(n) * turned(rng, n, n)
    x = {f"x{t + 1}": white[:, 3 * t : 3 * t + 3] for t in range(STEPS)}
    v, u = turned(rng, 3, 2), turned(rng, 3, 2)
    y = {}
    for target in arch.outputs:
        last = STEPS if readout == "last" else int(target[1:])
        y[target] = sum(
            x[f"x{t}"] @ v * SIZES * DECAYS ** (last - t) @ u.T for t in range(1, last + 1)
        )
    return arch, nr.Dataset(x, y)


def recurrent(leak: float = 0.0) -> Curve:
    """a, b, c of h_t = (b + leak) h_{t−1} + a x_t and y = c h_T, for white inputs."""
    lags = np.arange(STEPS)

    def curve(t, start):
        total = 0.0
        for s in SIZES[:, None] * DECAYS[:, None] ** lags:

            def move(s, d, Wx, Wh, Wy):
                power = (Wh + leak) ** lags
                slope = lags * (Wh + leak) ** np.maximum(lags - 1, 0)
                e = s - Wx * Wy * power
                return {"Wx": Wy * power @ e, "Wy": Wx * power @ e, "Wh": Wx * Wy * slope @ e}

            strengths = lambda Wx, Wh, Wy: Wx * Wy * (Wh + leak) ** lags
            a = solved(move, strengths)(t, s, 1.0, start)
            total = total + falls(s, 1.0, a).sum(axis=1)
        return total

    return curve


def autoencoder() -> tuple[nr.Architecture, nr.Dataset]:
    base = np.asarray(task(inputs=4).x["x"])
    return nr.Architecture.autoencoder(4, 5), nr.Dataset({"x": base}, {"y": base})


def tied_logistic(t, s, d, b):
    """W and Wᵀ: both velocities add up, so that twice as fast as two edges."""
    return 1 / (1 - (1 - 1 / b["W1"] ** 2) * np.exp(-4 * d * t))


def siamese() -> tuple[nr.Architecture, nr.Dataset]:
    """Two inputs, one of which weighs less and of the other sign, as in a comparison."""
    rng, n = np.random.default_rng(6), 6
    white = np.sqrt(n) * turned(rng, n, n)
    x = {"x1": white[:, :3], "x2": white[:, 3:]}
    m = turned(rng, 4, 2) * [1.2, 0.8] @ turned(rng, 3, 2).T
    return nr.Architecture.siamese(3, 4, 4), nr.Dataset(x, {"y": (x["x1"] - 0.6 * x["x2"]) @ m.T})


def gated_sequences() -> tuple[nr.Architecture, nr.Dataset]:
    """Gates per node, edge and time step, a leak, two inputs; no two statistics share a basis."""
    rng, n = np.random.default_rng(7), 9
    arch = nr.Architecture.recurrent(2, 5, 2, 3, leak=0.4)
    gates = {"h1": rng.normal(size=n), "h2_h3": rng.integers(0, 2, n), "x2": rng.normal(size=n)}
    return arch, random_task(rng, n, dict.fromkeys(arch.inputs, 2), {"y": 2}, gates)


TWO = nr.Architecture.chain(3, 3, 5)
WHITE = np.full(3, 0.8)
ROUTES = np.eye(2), np.array([[2.0, 1.0], [2.0, -1.0]])
DELTA = 0.5
XOR = [np.sqrt(1 / 8 + DELTA**2 / 16)] * 4, [(2 + DELTA**2) / 4] * 4
CONTEXTS = nr.tasks.contextual(3, items=2)
SCALAR = ((1, 1),) * 3

ROWS: dict[str, System] = {
    "one edge": System(
        chain(1), task(), SCALAR, curve=modes(one_edge), closed="exponential", depth=1
    ),
    "two edges": System(TWO, task(inputs=3), SCALAR, curve=modes(logistic), closed="logistic"),
    "three edges": System(
        chain(3), task(), SCALAR, curve=modes(deep), closed="quadrature", depth=3
    ),
    "four edges": System(chain(4), task(), SCALAR, 12.0, 0.6, modes(deep), "quadrature", 4),
    "unequal layers": System(
        TWO, task(inputs=3), SCALAR, start={"W1": 0.1, "W2": 0.6}, curve=modes(unbalanced),
        closed="unbalanced",
    ),
    "white inputs": System(
        TWO, task(WHITE, inputs=3), SCALAR, curve=modes(logistic, d=WHITE), closed="logistic",
        white=True,
    ),
    "sample weights": System(
        chain(2), task(weight=np.linspace(1, 3, 9) / 18), SCALAR, curve=modes(logistic),
        closed="logistic",
    ),
    "XoR": System(
        *nr.tasks.xor_pathways(nr.tasks.extended_xor(DELTA), total=8), SCALAR + SCALAR[:1], 12.0,
        curve=modes(logistic, *XOR), closed="logistic",
    ),
    "routing": System(
        *nr.tasks.routing_pathways(nr.tasks.routing(3, 2, base=ROUTES)[0], hidden=4),
        ((1,) * 6,) * 2, 10.0, curve=modes(routed(3), np.sqrt([2.0, 0.5]), [0.5, 0.5]), depth=3,
        closed="quadrature",
    ),
    "contexts": System(
        *nr.tasks.common_and_all_but_one(CONTEXTS, hidden=6), ((1, 3, 3), (1, 3)), 12.0
    ),
    "skip connection": System(skip_graph(), task(), SCALAR, 4.0, curve=modes(skip), depth=None),
    "overlapping pathways": System(*halves(), SCALAR, curve=overlapping),
    "real gates": System(*real_gates(), ((2, 2),) * 2, 3.0, depth=None),
    "gates per neuron": System(*neurons(), ((2, 2),), 4.0),
    "recurrent": System(*sequences(), ((1, 1, 1, 1),) * 2, curve=recurrent(), depth=None),
    "leaky recurrent": System(
        *sequences(leak=0.3), ((1, 1, 1, 1),) * 2, curve=recurrent(0.3), depth=None
    ),
    "recurrent, all outputs": System(*sequences("all"), ((1,) * 6,) * 2, 4.0, depth=None),
    "gated recurrent": System(*gated_sequences(), ((2, 2, 2, 2),), 3.0, depth=None),
    "tied autoencoder": System(
        *autoencoder(), ((1, 1),) * 3, 4.0, curve=modes(tied_logistic, D, D), closed="logistic"
    ),
    "siamese": System(*siamese(), ((1, 1, 1),) * 2),
    "several ends": System(*many_ends(), ((1, 1, 1, 1),) * 2, 4.0),
}  # fmt: skip
