"""The gain from the reduction: solving the merged race against training the full network."""

from __future__ import annotations

import time

import jax
import numpy as np

import neuralrace as nr
from benchmarks.timing import medians


def routing_ratio(M: int = 7, K: int = 4, steps: int = 500) -> tuple[float, float]:
    """(training over solving, seconds of the reduction), with both programs compiled beforehand.

    The network has NRR Fig. 4's width (64) and learning rate (0.16 in the mean loss).
    """
    rate = 0.16
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0])
    begun = time.perf_counter()
    race = nr.reduce(arch, data)
    reduced = time.perf_counter() - begun
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), scale=0.2, kind="orthogonal")
    times = np.linspace(0, rate * steps, 101)
    start = race.start(0.08)

    def train() -> object:
        return nr.train(net, weights, data, learning_rate=rate, steps=steps, record_every=steps)

    def solve() -> object:
        return race.solve(times=times, start=start)

    train(), solve()
    trained, solved = medians(train, solve, repeats=3)
    return trained / solved, reduced
