"""Claims about graphs with ties: velocities, blocks, conserved matrices, long networks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence.promise import Measurement, at_most, claim

SECTION = "Shared weights"

Weights = Mapping[str, np.ndarray]


def carried(arch: nr.Architecture, weights: Weights, edge: str) -> np.ndarray:
    """The matrix of an edge, by the words of `ties` and `frozen` alone."""
    if edge in arch.frozen:
        return arch.frozen[edge] * np.eye(arch.sizes[arch.edges[edge][0]])
    for tie, members in arch.ties.items():
        if edge in members:
            return weights[tie]
        if f"{edge}.T" in members:
            return weights[tie].T
    return weights[edge]


def loss(arch: nr.Architecture, weights: Weights, data: nr.Dataset) -> complex:
    """½ Σ_v ⟨‖y_v − h_v‖²⟩ in NumPy, node after node; analytic in the weights."""
    gate = lambda name: np.reshape(data.gates.get(name, 1.0), (-1, 1))
    h = {v: gate(v) * x for v, x in data.x.items()}
    for node in arch.order:
        if node not in h:
            into = (e for e, (_, t) in arch.edges.items() if t == node)
            sent = (gate(e) * (h[arch.edges[e][0]] @ carried(arch, weights, e).T) for e in into)
            h[node] = gate(node) * sum(sent)
    return sum(((y - h[v]) ** 2).sum() for v, y in data.y.items()) / (2 * data.n_samples)


def downhill(arch: nr.Architecture, weights: Weights, data: nr.Dataset) -> dict[str, np.ndarray]:
    """−∂L/∂W of every matrix, by complex steps: exact to rounding."""
    found = {}
    for name, w in weights.items():
        found[name] = np.zeros(w.shape)
        for at in np.ndindex(w.shape):
            moved = w.astype(complex)
            moved[at] += 1e-30j
            found[name][at] = -loss(arch, {**weights, name: moved}, data).imag / 1e-30
    return found


def random_case(seed: int, hidden: int | None = None) -> tuple[nr.Architecture, nr.Dataset]:
    """A recurrent, siamese or transposed graph, or a tie across depths, with gates and data."""
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(1, 4, 3).tolist()
    m = m if hidden is None else hidden
    if seed % 4 == 0:
        leak = 0.7 if rng.integers(2) else None
        arch = nr.Architecture.recurrent(n, m, k, int(rng.integers(2, 5)), "all", leak=leak)
    elif seed % 4 == 1:
        arch = nr.Architecture.siamese(n, m, k, 2)
    elif seed % 4 == 2:
        arch = nr.Architecture.autoencoder(n + 1, m, k if hidden is None else m)
    else:
        sizes = {"x": n, "a": m, "b": m, "c": m, "y": k}
        edges = {"xa": ("x", "a"), "ab": ("a", "b"), "bc": ("b", "c"), "cy": ("c", "y"),
                 "ac": ("a", "c")}  # fmt: skip
        arch = nr.Architecture(sizes, edges, ties={"W": ("ab", "bc.T", "ac")})
    draw = lambda nodes: {v: rng.normal(size=(6, arch.sizes[v])) for v in nodes}
    names = [name for name in (*arch.sizes, *arch.edges) if rng.integers(3) == 0]
    gates = {name: rng.integers(0, 2, 6).astype(float) for name in names}
    return arch, nr.Dataset(draw(arch.inputs), draw(arch.outputs), gates)


@claim(
    "shared/velocity",
    SECTION,
    "Loss and velocity of 30 random gated graphs with ties (recurrent, siamese, transposed, across "
    "depths; weights of scale 1e-3 to 1e3) are those of plain NumPy, by complex steps",
    "≤ 1e-8",
    most=1e-8,
)
def velocity(full: bool) -> Iterator[float]:
    for seed in range(30 if full else 8):
        arch, data = random_case(seed)
        rng, scale = np.random.default_rng(seed), 10.0 ** (seed % 7 - 3)
        weights = {n: scale * rng.normal(size=shape) for n, shape in arch.shapes.items()}
        wanted, stats = downhill(arch, weights, data), nr.path_statistics(arch, data)
        unit = max(float(np.abs(v).max()) for v in wanted.values()) or 1.0
        for found in (nr.GDLN(arch).velocity(weights, data), stats.velocity(weights)):
            off = (float(np.abs(found[n] - v).max()) / unit for n, v in wanted.items())
            yield from off
        true = float(loss(arch, weights, data))
        yield abs(float(nr.GDLN(arch).loss(weights, data)) / true - 1)


@claim(
    "shared/reduction",
    SECTION,
    "The race of 30 random gated graphs with ties, from decoupled weights, against SciPy's "
    "solution of the whole network in plain NumPy; the largest difference, of the initial loss",
    "≤ 1e-6",
)
def reduction(full: bool) -> Measurement:
    worst, times = 0.0, np.linspace(0, 1.5, 5)
    for seed in range(30 if full else 4):
        arch, data = random_case(seed, hidden=6)
        race = nr.reduce(arch, data)
        if not race.blocks:
            continue
        run = race.solve(times=times, start=0.3)
        begin = race.weights(run, 0.0, key=0)
        cuts = np.cumsum([w.size for w in begin.values()])[:-1]

        def shaped(state: Float[np.ndarray, " n"], begin=begin, cuts=cuts) -> Weights:
            parts = np.split(state, cuts)
            return {n: p.reshape(w.shape) for (n, w), p in zip(begin.items(), parts, strict=True)}

        def moves(_: float, state: Float[np.ndarray, " n"], arch=arch, data=data) -> np.ndarray:
            return np.concatenate([v.ravel() for v in downhill(arch, shaped(state), data).values()])

        first = np.concatenate([w.ravel() for w in begin.values()])
        true = solve_ivp(moves, (0, 1.5), first, "DOP853", times, rtol=1e-9, atol=1e-12)
        losses = [float(loss(arch, shaped(state), data)) for state in true.y.T]
        worst = np.maximum(worst, float(np.abs(run.loss - losses).max() / losses[0]))
    return at_most(worst, 1e-6)


@claim(
    "shared/conserved",
    SECTION,
    "WyᵀWy + WhᵀWh − WxWxᵀ − WhWhᵀ of a recurrent network in gradient flow: its largest change",
    "≤ 1e-10",
    most=1e-10,
)
def conserved(full: bool) -> Iterator[float]:
    for seed in range(3 if full else 1):
        rng, arch = np.random.default_rng(seed), nr.Architecture.recurrent(5, 12, 4, steps=6)
        x = {v: rng.normal(size=(9, 5)) for v in arch.inputs}
        data, net = nr.Dataset(x, {"y": rng.normal(size=(9, 4))}), nr.GDLN(arch)
        start = {n: 0.3 * rng.normal(size=shape) for n, shape in arch.shapes.items()}
        run = nr.flow(net, start, data, times=[0, 0.5, 1], rtol=1e-12, atol=1e-14,
                      record={"weights": True})  # fmt: skip
        x, h, y = (np.asarray(run.values["weights"][n]) for n in ("Wx", "Wh", "Wy"))
        t = lambda a: a.swapaxes(1, 2)
        kept = t(y) @ y + t(h) @ h - x @ t(x) - h @ t(h)
        yield float(np.abs(kept - kept[0]).max())


@claim(
    "shared/reduce-long",
    SECTION,
    "Reducing a recurrent network of T = 100 steps with 40 modes of 40 inputs, in seconds",
    "≤ 2 s",
    timing=True,
)
def reduce_long(full: bool) -> Measurement:
    steps, n = (100, 40) if full else (10, 4)
    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    white = np.sqrt(n * steps) * np.eye(n * steps)
    x = {f"x{t + 1}": white[:, n * t : n * t + n] for t in range(steps)}
    c, decay = np.linspace(1, 3, n), np.linspace(0.5, 0.95, n)
    y = sum(x[f"x{t}"] @ v * (c * decay ** (steps - t)) @ u.T for t in range(1, steps + 1))
    arch, data = nr.Architecture.recurrent(n, 2 * n, n, steps), nr.Dataset(x, {"y": y})
    nr.reduce(arch, data)
    begin = time.perf_counter()
    race = nr.reduce(arch, data)
    lasted = time.perf_counter() - begin
    return at_most(lasted if race.is_decoupled and len(race.blocks) == n else np.inf, 2.0)
