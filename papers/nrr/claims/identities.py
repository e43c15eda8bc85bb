"""Measurements for claims of NRR that no figure makes, each a function of a few sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import neuralrace as nr

RATE = 0.16
"""The learning rate of NRR Fig. 4."""

WEAKEST = 3 / 4
"""The weakest singular value of the targets of NRR Fig. 4c, divided by the number of items."""


def other_samples(problems: int, steps: int = 200) -> dict[str, float]:
    """Descent on datasets that differ in every sample but agree in all path statistics.

    Random data and real gates on nodes and edges of the network of NRR Fig. 2. Within each class of
    samples with equal gates, inputs and targets are mixed by one random rotation: Σ^yx and Σ^x stay
    as they are, samples do not. `same` is the largest difference of any weight after descent from
    equal starts, relative to the largest change of a weight; `other` is the smallest such
    difference if targets are mixed by another rotation than the inputs. `samples` is the smallest
    change of the samples themselves, relative to their size.
    """
    import jax
    from scipy.stats import ortho_group

    from papers.nrr.fig2 import EDGES, GATED

    rng = np.random.default_rng(0)
    groups, each = 3, 5
    same, other, samples = [], [], []
    for k in range(problems):
        size = int(rng.integers(2, 5))
        sizes: dict[str, int] = dict.fromkeys(("x1", "x2", "h1", "h2", "h3", "y1", "y2"), size)
        arch = nr.Architecture(sizes, EDGES)
        gates = {g: np.repeat(rng.uniform(0, 1.5, groups), each) for g in GATED}
        x = {v: rng.normal(size=(groups * each, size)) for v in arch.inputs}
        y = {v: rng.normal(size=(groups * each, size)) for v in arch.outputs}
        turns, more = (
            [ortho_group.rvs(each, random_state=rng) for _ in range(groups)] for _ in range(2)
        )
        variants = [(x, y), (mixed(x, turns), mixed(y, turns)), (mixed(x, turns), mixed(y, more))]
        net = nr.GDLN(arch)
        start = net.init(jax.random.key(k), 0.5)
        ends = [
            nr.train(
                net, start, nr.Dataset(*both, gates=gates), learning_rate=0.05, steps=steps
            ).final
            for both in variants
        ]
        moved = max(np.abs(ends[0][e] - start[e]).max() for e in EDGES)
        apart = [max(np.abs(end[e] - ends[0][e]).max() for e in EDGES) / moved for end in ends[1:]]
        same.append(float(apart[0]))
        other.append(float(apart[1]))
        samples.append(
            min(float(np.linalg.norm(variants[1][0][v] - x[v]) / np.linalg.norm(x[v])) for v in x)
        )
    return {"same": max(same), "other": min(other), "samples": min(samples)}


def mixed(values: Mapping[str, np.ndarray], turns: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays with the rows of each group, one for every rotation, mixed by that rotation."""
    groups = {v: np.split(a, len(turns)) for v, a in values.items()}
    return {
        v: np.concatenate([turn @ rows for turn, rows in zip(turns, those, strict=True)])
        for v, those in groups.items()
    }


def conserved_quantity(problems: int) -> dict[str, float]:
    """How far M B₁² − B₂² drifts (NRR §4), relative to the final B₂² of the strongest mode.

    Races with random M = 2 … 8 domains, 2 ≤ K ≤ M trained outputs, and different random starts of
    the hidden and of all outer edges. `flow`: gradient flow, largest drift over modes and times;
    `steps`: gradient descent with the step of NRR Fig. 4.
    """
    rng = np.random.default_rng(0)
    drift: dict[str, list[float]] = {"flow": [], "steps": []}
    for _ in range(problems):
        M = int(rng.integers(2, 9))
        K = int(rng.integers(2, M + 1))  # with K = 1, routes have no domain in common
        arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], hidden=8)
        race = nr.reduce(arch, data)
        outer, hidden = rng.uniform(0.05, 0.4, 2)
        start = {e: float(hidden if e == "hidden" else outer) for e in arch.edges}
        times = RATE * np.arange(0, 601, 10)
        for name, rate in (("flow", None), ("steps", RATE)):
            solution = race.solve(times=times, start=start, learning_rate=rate)
            worst, top = 0.0, 0.0
            for mode in solution.values["variables"].values():
                first, second = (mode[e][:, 0, 0] ** 2 for e in ("in1", "hidden"))
                kept = M * first - second
                worst = max(worst, float(np.abs(kept - kept[0]).max()))
                top = max(top, float(second[-1]))
            drift[name].append(worst / top)
    return {name: max(values) for name, values in drift.items()}


def ratios_in_theory(M: int, start: float) -> dict[str, float]:
    """Final B₂ / B₁ of the race from small equal starts, for every K and every degree of sharing.

    `root_M`: the largest difference of the ratio over √M from 1, over modes and K = 1 … M; `by_K`:
    how much the ratio varies with K, relative; `by_P`: the largest difference of the ratio over
    P^¼ from 1, over modes and all P, with every route trained.
    """

    by_K = np.stack([_shared_ratios(M, K, start) for K in range(1, M + 1)])
    squares = [side**2 for side in range(1, M + 1) if M % side == 0]
    by_P = [np.abs(_ratios(M, M, P, start) / P**0.25 - 1).max() for P in squares]
    return {
        "root_M": float(np.abs(by_K / np.sqrt(M) - 1).max()),
        "by_K": float((np.ptp(by_K, axis=0) / by_K.mean(axis=0)).max()),
        "by_P": float(max(by_P)),
    }


def _ratios(M: int, K: int, P: int | None, start: float) -> np.ndarray:
    """B₂ / B₁ of every mode at the end of the race, in rising order."""
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], P, hidden=8)
    escape = M * M / (WEAKEST * start)  # of the weakest mode, without any sharing
    solution = nr.reduce(arch, data).solve(times=[0.0, 3 * escape], start=start)
    first, hidden = (next(e for e in arch.edges if e.startswith(v)) for v in ("in", "hidden"))
    modes = [m for m in solution.values["variables"].values() if first in m and hidden in m]
    return np.sort([abs(m[hidden][-1, 0, 0] / m[first][-1, 0, 0]) for m in modes])


def _shared_ratios(M: int, K: int, start: float) -> np.ndarray:
    """The same for one hidden pathway; with K = 1 from weights that share it, by gradient flow.

    With K = 1 the routes have no domain in common, and the race itself has a block for each.
    """
    import jax

    if K > 1:
        return _ratios(M, K, None, start)
    arch, every = nr.tasks.routing_pathways(nr.tasks.routing(M, M)[0], hidden=8)
    race = nr.reduce(arch, every)
    weights = race.weights(race.solve(times=[0.0, 1.0], start=start), 0.0, jax.random.key(0))
    data = nr.tasks.routing_pathways(nr.tasks.routing(M, 1)[0], hidden=8)[1]
    end = nr.flow(nr.GDLN(arch), weights, data, times=[0.0, 4 * M / (WEAKEST * start)]).final
    values = nr.analysis.singular_values(end, modes=4)
    return np.sort(values["hidden"] / values["in1"])


def ratios_trained(M: int, seeds: int, steps: int) -> dict[str, list[float]]:
    """B₂ / (√M B₁) of networks trained from random weights, strongest mode, one per seed, by K.

    Orthogonal starts × 0.2 as in NRR Fig. 4; B₁ is √(in · out).
    """
    import jax

    from papers.nrr.fig4 import layers

    found = {}
    for K in range(1, M + 1):
        arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], hidden=32)
        run = nr.train_ensemble(
            nr.GDLN(arch), data, key=jax.random.key(0), seeds=seeds, scale=0.2, kind="orthogonal",
            learning_rate=RATE, steps=steps, record_at=[0, steps],
        )  # fmt: skip
        values = [layers({e: w[i] for e, w in run.final.items()}) for i in range(seeds)]
        found[str(K)] = [float(v["hidden"][0] / v["ends"][0] / np.sqrt(M)) for v in values]
    return found


def decoupling(seeds: int, steps: int, scale: float) -> dict[str, list[float]]:
    """How far weights are decoupled: at the start, and when the strongest mode is half learned.

    The routing network of NRR Fig. 4 from orthogonal weights × `scale`, one number per seed: the
    share of the squared weights of all edges that has the form R_t B R_sᵀ (NRR Eq. 9), by
    `analysis.alignment` in the bases of the race. The weakest two modes are equal and count as one.
    `reached` is the strength of the mode at that moment, relative to its end.
    """
    import jax

    M, K = 7, 4
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], hidden=64)
    race, net = nr.reduce(arch, data), nr.GDLN(arch)
    bases = {v: np.hstack([b.basis[v] for b in race.blocks]) for v in (*arch.inputs, *arch.outputs)}
    run = nr.train_ensemble(
        net, data, key=jax.random.key(0), seeds=seeds, scale=scale, kind="orthogonal",
        learning_rate=RATE, steps=steps, record_every=max(1, steps // 100),
        record={"weights": True},
    )  # fmt: skip
    weights = run.values["weights"]
    share = nr.analysis.alignment(net, weights, bases, groups=[0, 1, 2, 2])
    size = {e: (np.asarray(w) ** 2).sum(axis=(-2, -1)) for e, w in weights.items()}
    total = np.sum([share[e] * size[e] for e in arch.edges], axis=0) / np.sum(
        list(size.values()), axis=0
    )
    strongest = np.linalg.norm(np.asarray(weights["hidden"]), ord=2, axis=(-2, -1))
    half = [int((run >= 0.5 * run[-1]).argmax()) for run in strongest]
    rows = np.arange(seeds)
    return {
        "first": total[:, 0].tolist(),
        "half": total[rows, half].tolist(),
        "reached": (strongest[rows, half] / strongest[:, -1]).tolist(),
    }


def distractors(seeds: int, steps: int) -> dict[str, list[float]]:
    """Random items on the input domains that a route does not use (NRR §4), one number per seed.

    `apart`: the largest |ΔL| / L(0) between descent with and without them, gates as in Fig. 4.
    `linear`: the loss of the best linear map of all inputs without gates, relative to zero output.
    """
    import jax

    M, K = 5, 3
    arch, plain = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], hidden=16)
    net = nr.GDLN(arch)
    apart, linear = [], []
    for seed in range(seeds):
        base = nr.tasks.routing(M, K, distractors=True, key=seed)[0]
        weights = net.init(jax.random.key(seed), 0.2, "orthogonal")
        runs = [
            nr.train(net, weights, data, learning_rate=RATE, steps=steps).loss
            for data in (plain, nr.tasks.routing_pathways(base, hidden=16)[1])
        ]
        apart.append(float(np.abs(runs[0] - runs[1]).max() / runs[0][0]))
        x, y = (np.hstack(list(side.values())) for side in (base.x, base.y))
        rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        linear.append(float((rest**2).sum() / (y**2).sum()))
    return {"apart": apart, "linear": linear}
