"""The cost of `reduce` by number of features, samples, pathways and gate classes.

`python -m benchmarks.reduction` draws `benchmarks/reduction.png`, with a fitted exponent for each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import neuralrace as nr
from benchmarks.timing import shortest

Problem = tuple[nr.Architecture, nr.Dataset]


def features(n: int) -> Problem:
    """n Gaussian features through 8 hidden neurons to 3 outputs: nothing reduces."""
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(2 * n, n))}, {"y": rng.normal(size=(2 * n, 3))})
    return nr.Architecture.chain(n, 8, 3), data


def samples(n: int) -> Problem:
    """n samples of 10 features without gates."""
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(n, 10))}, {"y": rng.normal(size=(n, 3))})
    return nr.Architecture.chain(10, 8, 3), data


def pathways(n: int) -> Problem:
    """√n input and output domains with a hidden pathway for each of the n routes (NRR Fig. 5)."""
    side = round(n**0.5)
    return nr.tasks.routing_pathways(nr.tasks.routing(side, side)[0], P=1)


def gates(n: int) -> Problem:
    """n samples, each with its own gates on 4 pathways."""
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(n, 10))}, {"y": rng.normal(size=(n, 3))})
    return nr.pathways(data, {f"p{i}": rng.normal(size=n) for i in range(4)}, hidden=8)


SWEEPS: dict[str, tuple[Callable[[int], Problem], tuple[int, ...]]] = {
    "features": (features, (60, 125, 250, 500, 1000)),
    "samples": (samples, (1000, 4000, 16_000, 64_000, 256_000)),
    "pathways": (pathways, (49, 100, 196, 400, 784)),
    "gate classes": (gates, (500, 1000, 2000, 4000, 8000)),
}
"""For each sweep, the function that makes a problem and the sizes."""


def seconds(problem: Problem) -> float:
    """The shortest of three runs."""
    return shortest(lambda: nr.reduce(*problem), repeats=3)[0]


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """The slope of log time against log size, over the larger half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def ratio(name: str) -> float:
    """The time at the largest size of a sweep over the time at about half that size."""
    make, sizes = SWEEPS[name]
    small, large = make(sizes[-2]), make(sizes[-1])
    return seconds(large) / seconds(small)


def main() -> None:
    import matplotlib.pyplot as plt

    from neuralrace.plot import style

    with style():
        figure, axes = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        for (name, (make, sizes)), mark in zip(SWEEPS.items(), "os^D", strict=True):
            times = [seconds(make(n)) for n in sizes]
            power = exponent(sizes, times)
            axes.loglog(sizes, times, mark + "-", label=f"{name}, ∝ n^{power:.1f}")
            print(f"{name:14s} n^{power:.2f}", [f"{t:.3f}" for t in times], flush=True)
        axes.set(xlabel="size n", ylabel="time of reduce (s)")
        axes.legend()
        figure.savefig(Path(__file__).parent / "reduction.png", dpi=120)


if __name__ == "__main__":
    main()
