"""Claims about the pathways found in the activity of ReLU networks."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, at_most, claim, run_script

SECTION = "Discovery"

TASKS: dict[str, tuple[dict[str, Any], int]] = {
    "3, different": ({"structures": ("hierarchy", "ring", "crossed")}, 700),
    "3": ({"contexts": 3}, 700),
    "4": ({"contexts": 4}, 500),
    "5": ({"contexts": 5}, 600),
}
"""MHS's contextual tasks and the width of their ReLU networks."""


@functools.cache
def contextual_runs(name: str, seeds: int = 5) -> tuple[nr.Trajectory, nr.Dataset]:
    """ReLU networks on a contextual task with the step, length and start of MHS's scripts."""
    options, hidden = TASKS[name]
    data = nr.tasks.contextual(**options, joined=True)
    net = nr.ReLUNetwork((data.x["x"].shape[1], hidden, data.y["y"].shape[1]))
    runs = nr.train_ensemble(
        net,
        data,
        key=jax.random.key(0),
        seeds=seeds,
        scale=0.005 / hidden,
        learning_rate=0.001 * data.n_samples,
        steps=8000,
        record_every=100,
        record={"weights": True},
        dtype=jnp.float32,
    )
    return runs, data


def by_context(found: nr.reln.Discovery) -> list[str]:
    """For each pattern the contexts in which it is on, "?" if that depends on the item."""
    context = np.asarray(found.base.labels["context"])
    names = []
    for row in found.patterns["h"]:
        parts = [np.unique(row[context == c]) for c in np.unique(context)]
        names.append("".join(str(int(p[0])) if len(p) == 1 else "?" for p in parts))
    return sorted(names)


@claim(
    "discovery/four-pathways",
    SECTION,
    "Algorithm 1, K = 4, three contexts with different structures: one all-on and three "
    "two-of-three patterns after rounding, each seed by itself, neurons counted by weight",
    "5 of 5 seeds",
    slow=True,
)
def four_pathways(full: bool) -> Measurement:
    runs, data = contextual_runs("3, different")
    count = {}
    for weighted in (True, False):
        found = [nr.reln.discover(runs.isel(seed=s), data, 4, weighted=weighted) for s in range(5)]
        count[weighted] = sum(by_context(f) == ["011", "101", "110", "111"] for f in found)
    return Measurement(
        f"{count[True]} of 5; {count[False]} of 5 with every neuron counted alike",
        count[True] == 5,
        "as published, all neurons count equally, even those that do nothing: centroid entries "
        "near one half are then rounded differently from item to item in one of the four patterns",
    )


@claim(
    "discovery/xor",
    SECTION,
    "XoR, Δ = 0.4 and 1.2: the ReLN discovered at the elbow follows the ReLU network, mean "
    "|ΔL|/L(0), mean of 8 seeds",
    "≤ 0.6 % at both",
)
def xor(full: bool) -> Measurement:
    texts, worst = [], 0.0
    for delta in (0.4, 1.2):
        data, net = nr.tasks.extended_xor(delta), nr.ReLUNetwork((3, 128, 1))
        runs = nr.train_ensemble(
            net,
            data,
            key=jax.random.key(1),
            seeds=8 if full else 1,
            scale=2e-4 / np.sqrt(128),  # MHS Fig. 2: variance 4e-8 / N_h
            learning_rate=0.1,
            steps=1200,
            record_every=10,
            record={"weights": True},
        )
        found = nr.reln.discover(runs, data, "elbow", most=8 if full else 5)
        number = len(found.patterns["h"])
        texts.append(f"Δ = {delta}: {found.discrepancy:.2%} with {number} pathways")
        worst = np.maximum(worst, found.discrepancy)
    return Measurement(", ".join(texts).replace("%", " %"), worst <= 0.006)


@claim(
    "discovery/planted",
    SECTION,
    "planted: a network with 2–6 known pathways, its neurons gated by implementable patterns; "
    "discovery with their number, and at the elbow, returns exactly these",
    "all of them",
)
def planted(full: bool) -> Measurement:
    rng = np.random.default_rng(0)
    right = tried = 0
    for count in range(2, 7) if full else (3,):
        for _ in range(4 if full else 1):
            x = rng.normal(size=(12, 4))
            possible = nr.reln.patterns(x).on
            possible = possible[possible.any(axis=1)]
            on = possible[rng.permutation(len(possible))[:count]]
            member = rng.permutation(np.arange(60) % count)
            data = nr.Dataset({"x": x}, {"y": rng.normal(size=(12, 3))})
            data = data.gated({"h": on[member].T})
            net = nr.GDLN(nr.Architecture.chain(4, 60, 3))
            weights = net.init(jax.random.key(tried), scale=1e-3)
            run = nr.train(
                net,
                weights,
                data,
                learning_rate=0.05,
                steps=400,
                record_every=40,
                record={"weights": True},
            )
            wanted = np.unique(on, axis=0).astype(float)
            for pathways in (count, "elbow"):
                found = nr.reln.discover(run, data, pathways, most=8)
                tried += 1
                right += found.patterns["h"].shape == wanted.shape and bool(
                    (found.patterns["h"] == wanted).all()
                )
    return Measurement(f"{right} of {tried}", right == tried)


@claim(
    "discovery/contextual",
    SECTION,
    "contextual tasks (3 contexts with different structures; 3, 4, 5 with the same): the ReLN "
    "discovered at the elbow follows the ReLU network, mean |ΔL|/L(0), 5 seeds",
    "at most that of the authors' own ReLN: .0071, .0127, .0050, .0066",
    slow=True,
)
def contextual(full: bool) -> Measurement:
    bounds = dict(zip(TASKS, (0.0071, 0.0127, 0.0050, 0.0066), strict=True))
    texts, met = [], True
    for name, bound in bounds.items():
        runs, data = contextual_runs(name)
        found = nr.reln.discover(runs, data, "elbow", most=8)
        texts.append(
            f"{name}: K = {nr.reln.elbow(list(found.curve.values()))} {found.discrepancy:.4f} "
            f"(K = 4 {found.curve[4]:.4f})"
        )
        met &= found.discrepancy <= bound
    return Measurement(
        "; ".join(texts),
        met,
        "in the authors' ReLN the contextual pathways read only the items and are trained on the "
        "residual of the common pathway, and for 4 and 5 contexts the features are scaled; here "
        "all pathways read everything and are trained together, from the ReLU network's own "
        "weights. More pathways than at the elbow follow less well: neurons change their "
        "patterns, and finer fixed gates let the gated network learn too early what the ReLU "
        "network learns late",
    )


@claim(
    "discovery/refined",
    SECTION,
    "gates trained on one run of XoR, Δ = 0.4, with one pathway less than it needs, followed by "
    "runs not seen: discrepancy over that of Algorithm 1",
    "≤ 0.6",
)
def refined(full: bool) -> Measurement:
    data, net = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 32, 1))
    runs = nr.train_ensemble(
        net,
        data,
        key=jax.random.key(0),
        seeds=5 if full else 2,
        scale=1e-3,
        learning_rate=0.1,
        steps=200,
        record_every=20,
        record={"weights": True},
    )
    found = nr.reln.discover(runs, data, pathways=3)
    better = nr.reln.refine(found, iterations=100 if full else 20)
    unseen = [b.mean / a.mean for a, b in zip(found.followed[1:], better.followed[1:], strict=True)]
    return at_most(float(np.mean(unseen)), 0.6)


MANY = """
import sys, time
import numpy as np
import neuralrace as nr
size, moments = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
x, y = rng.normal(size=(size, 10)), 2 + rng.normal(size=(size, 2))
data = nr.Dataset({"x": x}, {"y": y})
net = nr.ReLUNetwork((10, size, 2))
run = nr.train(net, net.init(0, scale=0.003), data, learning_rate=0.05, steps=moments - 1,
               record={"weights": True})
began = time.process_time()
nr.reln.discover(run, data, pathways=4)
print(peak_memory(), time.process_time() - began)
"""


@claim(
    "discovery/many-patterns",
    SECTION,
    "discovery in 2000 neurons on 2000 samples at 41 moments, 70 000 different patterns: memory of "
    "the whole process, and processor time",
    "≤ 1000 MB and ≤ 15 s",
    timing=True,
)
def many_patterns(full: bool) -> Measurement:
    memory, seconds = run_script(MANY, *((2000, 41) if full else (200, 5)))
    return Measurement(f"{memory:.0f} MB, {seconds:.1f} s", memory <= 1000 and seconds <= 15)
