"""What compression saves: flow against the number of samples, and against width."""

from __future__ import annotations

import time
from dataclasses import dataclass

import jax
import numpy as np

import neuralrace as nr
from benchmarks.timing import medians

INPUTS, OUTPUTS = 11, 60
"""The features of the three-context task, so that sizes are those of a real one."""


@dataclass(frozen=True)
class Ratio:
    """Flow of the large over that of the small problem, and the seconds each took to compress.

    `whole` is the ratio of two calls of `nr.flow` on the problems as they are, checks, compression
    and the way back included.
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
        run = lambda s=small: nr.flow(  # noqa: E731
            s.net, s.weights, s.data, times=times, compress=False
        )
        whole = lambda n=net, w=weights, d=data: nr.flow(n, w, d, times=times)  # noqa: E731
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
    """A chain with hidden layers of these widths, all matrices orthogonal, of one size."""

    def problem(hidden: tuple[int, ...]) -> tuple[nr.GDLN, dict, nr.Dataset]:
        net = nr.GDLN(nr.Architecture.chain(INPUTS, *hidden, OUTPUTS))
        weights = net.init(jax.random.key(0), scale=0.1, kind="orthogonal")
        return net, weights, _data(1000, np.random.default_rng(0))

    return _ratio(problem(narrow), problem(wide))
