"""Claims about path statistics and the gradient flow through them."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np

import neuralrace as nr
from evidence.own.cases import random_case
from evidence.promise import Measurement, claim, run_script

SECTION = "Path statistics"


@claim(
    "statistics/velocity",
    SECTION,
    "velocity(w) = −autodiff gradient, 200 random gated graphs",
    "largest relative difference ≤ 1e-10",
    most=1e-10,
)
def velocity(full: bool) -> Iterator[float]:
    rng = np.random.default_rng(3)
    for _ in range(200 if full else 25):
        case = random_case(rng)
        gradient = jax.grad(nr.GDLN(case.arch).loss)(case.weights, case.data)
        found = nr.path_statistics(case.arch, case.data).velocity(case.weights)
        scale = max(float(np.abs(g).max()) for g in gradient.values())
        for edge, g in gradient.items():
            yield float(np.abs(found[edge] + g).max()) / max(scale, 1e-300)


ROUTING_PROBE = """
import sys, time, numpy as np, neuralrace as nr
M, K = map(int, sys.argv[1:])
arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0])
start = time.perf_counter()
stats = nr.path_statistics(arch, data)
on = [group for group in stats.groups if len(group.classes)]
paths = [group.paths[0] for group in on]
worst = max(abs(stats.yx[p] - stats.yx[paths[0]]).max() for p in paths)
worst = max(worst, *(abs(stats.x[p, p] - np.eye(4) / (4 * K * M)).max() for p in paths))
seconds = time.perf_counter() - start
print(len(stats.paths), len(on), seconds, peak_memory() / 1024, worst)
"""
"""A script that measures the statistics of a routing task."""


@claim(
    "statistics/large-routing",
    SECTION,
    "routing M = 100, K = 40: every Σ^yx(p) and Σ^x(p,p) of the trained paths",
    "10 000 paths, 4000 of them trained; seconds; under 1 GB in all; as NRR Eqs. 11–12 to 1e-15",
)
def large_routing(full: bool) -> Measurement:
    M, K = (100, 40) if full else (12, 5)
    paths, trained, seconds, memory, worst = run_script(ROUTING_PROBE, M, K)
    text = (
        f"{paths:.0f} paths, {trained:.0f} trained; {seconds:.1f} s; {memory:.2f} GB; {worst:.1g}"
    )
    right = paths == M * M and trained == M * K and memory < 1 and worst <= 1e-15
    return Measurement(text, right and (seconds < 10 or not full))


def _statistics(gating: tuple[nr.Architecture, nr.Dataset]) -> nr.PathStatistics:
    return nr.path_statistics(*gating)


@claim(
    "statistics/printed-nrr",
    SECTION,
    "the printed statistics of NRR Eqs. 11–12 (routing), 18–20 (XoR), 24–29 (contextual "
    "classification)",
    "each to 1e-12",
    most=1e-12,
)
def printed_nrr(full: bool) -> Iterator[float]:
    off = lambda found, wanted: float(np.abs(np.asarray(found) - np.asarray(wanted)).max())

    M, K = 7, 4
    trained, _ = nr.tasks.routing(M, K)
    stats = _statistics(nr.tasks.routing_pathways(trained))
    on = [group.paths[0] for group in stats.groups if len(group.classes)]
    first = trained.mask(input=1, output=1)
    x, y = np.asarray(trained.x["x1"])[first], np.asarray(trained.y["y1"])[first]
    for p in on:
        yield off(stats.yx[p], y.T @ x / len(x) / (K * M))
        yield off(stats.x[p, p], x.T @ x / len(x) / (K * M))
    for j, p in ((on[0], on[1]), (on[0], on[-1]), (on[3], on[K])):
        yield off(stats.x[j, p], 0)

    data = nr.tasks.xor(sign=-1.0)  # NRR's worked example: x = (1, 1), y = 1
    stats = _statistics(nr.tasks.xor_pathways(data))
    p = next(p for p in stats.paths if np.allclose(stats.yx[p], [[0.25, 0.25]]))
    yield off(stats.yx[p], [[0.25, 0.25]])
    yield off(stats.x[p, p], np.full((2, 2), 0.25))
    yield off(np.mean(np.asarray(data.y["y"]) ** 2) / 4, 1 / 4)  # Σ^y of one pathway, Eq. 20

    data = nr.tasks.contextual_classification()
    stats = _statistics(nr.tasks.single_pathway(data))
    (p,) = stats.paths
    yield off(stats.yx[p], [[1 / 6, 1 / 6]])
    yield off(stats.x[p, p], np.eye(2) / 3)
    stats = _statistics(nr.tasks.pathway_per_context(data))
    p, q = stats.paths
    yield off(stats.yx[p], [[1 / 6, 0]])
    yield off(stats.yx[q], [[0, 1 / 6]])
    yield off(stats.x[p, p], np.eye(2) / 6)
    yield off(stats.x[q, q], np.eye(2) / 6)
    yield off(stats.x[p, q], 0)


@claim(
    "statistics/printed-mhs",
    SECTION,
    "the printed statistics of MHS Eqs. 13–17 and, for the XoR gating, s = √(1/8 + Δ²/16), "
    "d = (2 + Δ²)/4, over Δ = 0 … 2",
    "each to 1e-12",
    most=1e-12,
)
def printed_mhs(full: bool) -> Iterator[float]:
    for delta in np.linspace(0, 2, 9):
        data = nr.tasks.extended_xor(float(delta))
        stats = _statistics(nr.tasks.linear_pathways(data))
        p = next(p for p in stats.paths if "positive" in p.edges[0])
        wanted = 0.5 * np.array([[1, -1, 0], [-1, 1, 0], [0, 0, delta**2]])
        singular = np.linalg.svd(stats.yx[p])[1][0]
        yield from (
            float(np.abs(stats.yx[p] - [[0, 0, delta / 2]]).max()),
            float(np.abs(stats.x[p, p] - wanted).max()),
            abs(singular - delta / 2),
        )
        stats = _statistics(nr.tasks.xor_pathways(data))
        for p in stats.paths:
            _, s, vt = np.linalg.svd(stats.yx[p])
            d = vt[0] @ stats.x[p, p] @ vt[0]
            yield abs(s[0] - np.sqrt(1 / 8 + delta**2 / 16))
            yield abs(d - (2 + delta**2) / 4)


@claim(
    "statistics/all-but-one",
    SECTION,
    "Σ^x(j,p) = (C−2)/(C−1) Σ^x(p,p) between all-but-one pathways, C = 3 … 8",
    "to 1e-14",
    most=1e-14,
)
def all_but_one(full: bool) -> Iterator[float]:
    for C in range(3, 9):
        stats = _statistics(nr.tasks.common_and_all_but_one(nr.tasks.contextual(C)))
        paths = [p for p in stats.paths if "not" in p.edges[0]]
        for j in paths:
            for p in paths:
                factor = 1 if j == p else (C - 2) / (C - 1)
                gap = stats.x[j, p] - factor * stats.x[p, p]
                yield float(np.abs(gap).max())
