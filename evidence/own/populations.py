"""Claims about populations: datasets of second moments against the samples they are taken of."""

from __future__ import annotations

import time
from itertools import pairwise

import jax
import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, at_most, claim

SECTION = "Populations"

LAYERS = (
    (("x", "z"), ("a", "b"), ("y", "w")),
    (("x",), ("a", "b", "c"), ("y",)),
    (("x", "z"), ("a",), ("b", "c"), ("y",)),
    (("x",), ("y", "w")),
)
"""Nodes by layer: every node is joined to all of the next layer, so that all paths are as long."""


def layered(layers: tuple[tuple[str, ...], ...]) -> nr.Architecture:
    edges = {
        f"{s}_{t}": (s, t) for first, second in pairwise(layers) for s in first for t in second
    }
    ends = (*layers[0], *layers[-1])
    return nr.Architecture({v: 3 if v in ends else 4 for layer in layers for v in layer}, edges)


def random_problem(
    rng: np.random.Generator, which: int, exponents: tuple[float, float]
) -> tuple[nr.GDLN, dict, nr.Dataset, np.ndarray]:
    """A network, weights, samples with gates and weights of their own, and times to see it learn.

    Inputs have the size 10^first exponent and targets 10^second; weights and times follow.
    """
    layers = LAYERS[which]
    arch, samples, classes = layered(layers), 40, 3
    size_x, size_y = (10.0**e for e in exponents)
    index = np.arange(samples) % classes
    gates = {
        v: (rng.uniform(0.5, 1.5, classes) * rng.choice([-1, 0, 1], classes, p=[0.2, 0.2, 0.6]))[
            index
        ]
        for v in (*arch.hidden, *list(arch.edges)[:1])
    }
    x = {v: rng.normal(size=(samples, 3)) @ rng.normal(size=(3, 3)) * size_x for v in arch.inputs}
    y = {
        v: size_y * (sum(a @ rng.normal(size=(3, 3)) for a in x.values()) / size_x)
        + 0.5 * size_y * rng.normal(size=(samples, 3))
        for v in arch.outputs
    }
    data = nr.Dataset(x, y, gates, rng.uniform(0.1, 1.0, samples))
    depth = len(layers) - 1
    each = (size_y / size_x) ** (1 / depth)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(int(rng.integers(2**31))), scale=0.1 * each)
    unit = size_x**2 * each ** (2 * depth - 2)
    return net, weights, data, np.linspace(0.0, 5.0, 6) / unit


def differences(seed: int, which: int) -> float:
    """The largest difference of reduction, solution and flow, relative to the size of each."""
    rng = np.random.default_rng([seed, which])
    net, weights, data, times = random_problem(rng, which, tuple(rng.uniform(-6, 6, 2)))
    both = (data, nr.Dataset.from_moments(data.moments()))
    races = [nr.reduce(net.arch, each) for each in both]
    blocks = [[block.drive for block in race.blocks] for race in races]
    if len(blocks[0]) != len(blocks[1]):
        return np.inf
    zero = [float(net.loss(jax.tree.map(np.zeros_like, weights), each)) for each in both]
    apart = [
        abs(zero[0] / zero[1] - 1),
        float(np.abs(np.divide(*map(np.array, blocks)) - 1).max(initial=0.0)),
        abs(races[0].constant - races[1].constant) / zero[0],
    ]
    curves = [
        [race.solve(times=times, start=weights).loss for race in races],
        [nr.flow(net, weights, each, times=times, rtol=1e-11).loss for each in both],
    ]
    return max(*apart, *(float(np.abs(a - b).max()) / zero[0] for a, b in curves))


@claim(
    "populations/moments",
    SECTION,
    "200 random problems with gate classes and sample weights, inputs and targets of size 1e-6 to "
    "1e6: reduction, solution and flow of the moments against those of the samples",
    "≤ 1e-9 of each",
)
def moments(full: bool) -> Measurement:
    seeds = range(50) if full else range(1)
    worst = max(differences(seed, which) for which in range(len(LAYERS)) for seed in seeds)
    return at_most(worst, 1e-9)


@claim(
    "populations/size",
    SECTION,
    "A covariance of 2000 × 2000 with 3 outputs: `from_moments` and `reduce` over one "
    "eigendecomposition",
    "≤ 5 times",
    timing=True,
)
def size(full: bool) -> Measurement:
    n = 2000 if full else 300
    rng = np.random.default_rng(0)
    root = rng.normal(size=(n, 2 * n)) / np.sqrt(2 * n)
    xx = root @ root.T
    yx = rng.normal(size=(3, n)) @ xx / np.sqrt(n)
    arch = nr.Architecture.chain(n, 10, 3)
    begun = time.perf_counter()
    np.linalg.eigh(xx)
    once = time.perf_counter() - begun
    begun = time.perf_counter()
    nr.reduce(arch, nr.Dataset.from_moments(xx, yx))
    taken = time.perf_counter() - begun
    return at_most(taken / once, 5.0, f"{once:.2f} s for the eigendecomposition")
