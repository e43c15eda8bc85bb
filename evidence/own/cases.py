"""Random architectures, gates, weights and data, and their outputs by brute force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import neuralrace as nr

GATE_KINDS = ("none", "binary", "real", "neurons")
"""The kinds of random gates."""


@dataclass(frozen=True)
class Case:
    arch: nr.Architecture
    data: nr.Dataset
    weights: dict[str, np.ndarray]


def random_architecture(rng: np.random.Generator, max_size: int = 5) -> nr.Architecture:
    """A random graph of up to 8 nodes with several inputs and outputs, skip and parallel edges."""
    inputs = [f"in{i}" for i in range(rng.integers(1, 3))]
    hidden = [f"h{i}" for i in range(rng.integers(0, 5))]
    outputs = [f"out{i}" for i in range(rng.integers(1, 3))]
    pairs: list[tuple[str, str]] = []
    for i, node in enumerate(hidden):
        pairs.append((str(rng.choice(inputs + hidden[:i])), node))
        pairs.append((node, str(rng.choice(hidden[i + 1 :] + outputs))))
    pairs += [(node, str(rng.choice(hidden + outputs))) for node in inputs]
    pairs += [(str(rng.choice(inputs + hidden)), node) for node in outputs]
    order = inputs + hidden + outputs
    for _ in range(rng.integers(0, 4)):
        source = str(rng.choice(inputs + hidden))
        later = [v for v in order[order.index(source) + 1 :] if v not in inputs]
        pairs.append((source, str(rng.choice(later))))
    sizes = {v: int(rng.integers(1, max_size + 1)) for v in order}
    return nr.Architecture(sizes, {f"e{i}": pair for i, pair in enumerate(pairs)})


def random_gate(rng: np.random.Generator, kind: str, n: int, size: int) -> np.ndarray:
    if kind == "binary":
        return rng.integers(0, 2, n).astype(float)
    if kind == "real":
        return rng.normal(size=n)
    return rng.normal(size=(n, size)) * rng.integers(0, 2, (n, size))


def random_case(rng: np.random.Generator, *, samples: int = 7, neurons: bool = True) -> Case:
    """A random graph with random gates on about half of its nodes and edges."""
    arch = random_architecture(rng)
    kinds = GATE_KINDS if neurons else GATE_KINDS[:-1]
    gates = {}
    for name in (*arch.sizes, *arch.edges):
        kind = str(rng.choice(kinds if name in arch.sizes else kinds[:3]))
        if kind != "none":
            gates[name] = random_gate(rng, kind, samples, arch.sizes.get(name, 1))
    data = nr.Dataset(
        x={v: rng.normal(size=(samples, arch.sizes[v])) for v in arch.inputs},
        y={v: rng.normal(size=(samples, arch.sizes[v])) for v in arch.outputs},
        gates=gates,
        sample_weight=rng.uniform(0.1, 1, samples) if rng.integers(2) else None,
    )
    weights = {
        e: rng.normal(size=(arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()
    }
    return Case(arch, data, weights)


def brute_force_outputs(case: Case) -> dict[str, np.ndarray]:
    """The outputs as the sum over all paths of the gated products of matrices (NRR §3)."""
    arch, data = case.arch, case.data
    n = data.n_samples

    def gate(name: str) -> np.ndarray:
        g = np.asarray(data.gates.get(name, np.ones(n)))
        return g[:, None] if g.ndim == 1 else g

    outputs = {v: np.zeros((n, arch.sizes[v])) for v in arch.outputs}
    for path in arch.paths():
        h = np.asarray(data.x[path.source]) * gate(path.source)
        for edge in path.edges:
            h = (h @ case.weights[edge].T) * gate(edge) * gate(arch.edges[edge][1])
        outputs[path.target] += h
    return outputs


def wide_case(rng: np.random.Generator, *, classes: int = 4, samples: int = 120) -> Case:
    """A random graph with wide hidden nodes, and many samples in few gate classes."""
    narrow = random_case(rng, samples=classes)
    sizes = {v: n * (8 if v in narrow.arch.hidden else 1) for v, n in narrow.arch.sizes.items()}
    arch = nr.Architecture(sizes, narrow.arch.edges)
    index = rng.integers(classes, size=samples)
    gates = {
        name: np.repeat(gate[index], sizes[name] // narrow.arch.sizes[name], axis=1)
        if gate.ndim == 2
        else gate[index]
        for name, gate in ((n, np.asarray(g)) for n, g in narrow.data.gates.items())
    }
    data = nr.Dataset(
        x={v: rng.normal(size=(samples, sizes[v])) for v in arch.inputs},
        y={v: rng.normal(size=(samples, sizes[v])) for v in arch.outputs},
        gates=gates,
        sample_weight=rng.uniform(0.1, 1, samples),
    )
    weights = {
        e: rng.normal(size=(sizes[t], sizes[s])) * 0.3 / np.sqrt(sizes[s])
        for e, (s, t) in arch.edges.items()
    }
    return Case(arch, data, weights)
