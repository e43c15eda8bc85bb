"""What compression saves: flow against the number of samples, and against width."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import jax
import numpy as np

import neuralrace as nr
from benchmarks.timing import medians

INPUTS = 11
"""The number of inputs, that of the three-context task."""

OUTPUTS = 60
"""The number of outputs, that of the three-context task."""


@dataclass(frozen=True)
class Ratio:
    """The time of flow for the large over the small problem, and the seconds to compress each.

    `whole` is the ratio of two calls of `nr.flow` on the uncompressed problems, including checks,
    compression and the way back.
    """

    flow: float
    whole: float
    small: float
    large: float


def _ratio(*problems: tuple[nr.GDLN, dict, nr.Dataset]) -> Ratio:
    flows, wholes, seconds = [], [], []
    times = np.linspace(0, 20, 21)
    for net, weights, data in problems:
        begun = time.perf_counter()
        small = nr.compress(net, weights, data)
        seconds.append(time.perf_counter() - begun)
        run = lambda s=small: nr.flow(s.net, s.weights, s.data, times=times, compress=False)
        whole = lambda n=net, w=weights, d=data: nr.flow(n, w, d, times=times)
        run(), whole()
        flows.append(run)
        wholes.append(whole)
    (few, many), (least, most) = medians(*flows, repeats=5), medians(*wholes, repeats=1)
    return Ratio(many / few, most / least, *seconds)


def _data(samples: int, rng: np.random.Generator) -> nr.Dataset:
    x = rng.normal(size=(samples, INPUTS))
    y = x @ rng.normal(size=(INPUTS, OUTPUTS)) / 4
    y[: samples // 2] *= -1
    return nr.Dataset({"x": x}, {"y": y})


def samples(few: int, many: int, hidden: int = 100) -> Ratio:
    """Two pathways, each gated on one half of the samples, with few and with many samples."""

    def problem(count: int) -> tuple[nr.GDLN, dict, nr.Dataset]:
        first = np.arange(count) < count // 2
        base = _data(count, np.random.default_rng(0))
        arch, data = nr.pathways(base, {"first": first, "second": ~first}, hidden=hidden)
        net = nr.GDLN(arch)
        return net, net.init(jax.random.key(0), scale=0.01), data

    return _ratio(problem(few), problem(many))


def widths(narrow: tuple[int, ...], wide: tuple[int, ...]) -> Ratio:
    """A chain with hidden layers of these widths, and orthogonal matrices of equal size."""

    def problem(hidden: tuple[int, ...]) -> tuple[nr.GDLN, dict, nr.Dataset]:
        net = nr.GDLN(nr.Architecture.chain(INPUTS, *hidden, OUTPUTS))
        weights = net.init(jax.random.key(0), scale=0.1, kind="orthogonal")
        return net, weights, _data(1000, np.random.default_rng(0))

    return _ratio(problem(narrow), problem(wide))


def factor_ratio(count: int = 10**6, hidden: int = 100) -> float:
    """The time to sort all samples by gate class and factorise each, over that of `nr.compress`."""
    first = np.arange(count) < count // 2
    base = _data(count, np.random.default_rng(0))
    arch, data = nr.pathways(base, {"first": first, "second": ~first}, hidden=hidden)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), scale=0.01)
    plain, ours = medians(
        lambda: _sorted_factor(data), lambda: nr.compress(net, weights, data), repeats=3
    )
    return plain / ours


def _sorted_factor(data: nr.Dataset) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """R, Qᵀy and the rest of the targets for each gate class, as 0.1.0 computed them."""
    index = data.gate_classes().index
    order = np.argsort(index, kind="stable")
    root = np.sqrt(data.probability)[order, None]
    x, y = (root * field[order] for field in (data.x["x"], data.y["y"]))
    bounds = np.searchsorted(index[order], np.arange(index.max() + 2))
    found = []
    for low, high in itertools.pairwise(bounds):
        q, r = np.linalg.qr(x[low:high])
        seen = q.T @ y[low:high]
        found.append((r, seen, float(((y[low:high] - q @ seen) ** 2).sum())))
    return found


def classes_ratio(few: int = 10**4, many: int = 10**5) -> float:
    """The time per sample if all samples have different gates: many over few samples."""

    def problem(count: int) -> tuple[nr.GDLN, dict, nr.Dataset]:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(count, INPUTS))
        data = nr.Dataset({"x": x}, {"y": x[:, :1]}, gates={"h": rng.uniform(size=count)})
        net = nr.GDLN(nr.Architecture.chain(INPUTS, 5, 1))
        return net, net.init(jax.random.key(0)), data

    small, large = problem(few), problem(many)
    least, most = medians(lambda: nr.compress(*small), lambda: nr.compress(*large), repeats=5)
    return most / least / (many / few)
