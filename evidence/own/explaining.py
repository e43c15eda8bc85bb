"""Claims about what is advised to explain a network by: `nr.explain` on trained networks."""

from __future__ import annotations

import itertools
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import jax
import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, claim

SECTION = "Explanations"

KEPT, LATE = 0.85, 0.15
"""The targets: the least kept share of gates, and the most by which a half-time may be off."""

WIDTH, RATE, SEEDS = 32, 0.05, 3
"""Neurons per hidden layer, the learning rate, and how many seeds are trained."""

STARTS = {
    "small": {1: 1e-3, 2: 0.05, 3: 0.1},
    "medium": {1: 0.1, 2: 0.15, 3: 0.2},
    "torch": {1: None, 2: None, 3: None},
}
"""The standard deviation of all initial weights by depth; None for PyTorch's own start."""

STEPS = {1: 1500, 2: 2000, 3: 2500}
"""How long networks are trained, by depth."""


def rule_task(cue: float = 1.0) -> nr.Dataset:
    """Three features ±1 and three rules; the target is the value of the feature of the rule."""
    features = np.array(list(itertools.product((1.0, -1.0), repeat=3)))
    rows = [(r, f) for r in range(3) for f in features]
    x = np.array([[*f, *(cue * np.eye(3)[r])] for r, f in rows])
    y = np.array([[f[r]] for r, f in rows])
    return nr.Dataset({"x": x}, {"y": y}, labels={"rule": [r + 1 for r, _ in rows]})


TASKS = {
    "rule": lambda: rule_task(),
    "decision": lambda: nr.tasks.context_decision(levels=2, cue=1.0),
    "xor": lambda: nr.tasks.extended_xor(1.2),
    "transitive": lambda: nr.tasks.transitive_inference(),
}

CASES = [
    *[(task, 1) for task in ("rule", "decision", "xor", "transitive")],
    *[(task, depth) for depth in (2, 3) for task in ("rule", "decision", "xor")],
]
"""Tasks and numbers of hidden layers; with each of three starts, 30 networks."""


def gatings_of(data: nr.Dataset, depth: int) -> dict[str, tuple[nr.Architecture, nr.Dataset]]:
    """By answer, by sample, by every label, and one pathway that is always on, as deep."""
    answer = nr.tasks.answers(data)
    masks = {"by_answer": {f"answer{a}": answer == a for a in np.unique(answer)}}
    masks["by_sample"] = dict(data.one_per_sample())
    for label in ("rule", "context"):
        if label in data.labels:
            values = np.asarray(data.labels[label])
            masks[f"by_{label}"] = {f"{label}{v}": values == v for v in np.unique(values)}
    masks["linear"] = {"common": None}
    return {
        name: nr.pathways(data, each, hidden=max(1, WIDTH // len(each)), depth=depth)
        for name, each in masks.items()
    }


def start_of(net: nr.ReLUNetwork, scale: float | None, seed: int) -> dict[str, np.ndarray]:
    """Gaussian weights, or those of PyTorch's linear layers: uniform up to ±1/√(fan in)."""
    random = np.random.default_rng(seed)
    if scale is not None:
        return {e: scale * random.normal(size=shape) for e, shape in net.shapes.items()}
    arch = net.arch
    fan = {
        v: sum(arch.sizes[s] for s, t in arch.edges.values() if t == v and s != "bias")
        for v in arch.order
    }
    bounds = {e: 1 / np.sqrt(fan[t]) for e, (_, t) in arch.edges.items()}
    return {e: random.uniform(-bounds[e], bounds[e], shape) for e, shape in net.shapes.items()}


def network(task: str, depth: int, start: str) -> tuple[nr.Trajectory, nr.Dataset]:
    """A trained ReLU network, with biases where it starts as PyTorch's do."""
    data, scale = TASKS[task](), STARTS[start][depth]
    sizes = (data.x["x"].shape[1], *[WIDTH] * depth, data.y["y"].shape[1])
    net = nr.ReLUNetwork(sizes, bias=scale is None)
    weights = start_of(net, scale, seed=10 * depth + list(TASKS).index(task))
    steps = STEPS[depth]
    often = np.append(np.linspace(0, steps, 101), np.geomspace(1, steps, 100))
    run = nr.train(net, weights, data, learning_rate=RATE, steps=steps,
                   record_at=np.unique(often.round().astype(int)),
                   record={"weights": True, "outputs": True})  # fmt: skip
    return run, data


def half(run: nr.Trajectory) -> float:
    """When half of the initial loss is gone, by hand; infinite where it is not seen."""
    below = np.flatnonzero(run.loss <= run.loss[0] / 2)
    if not len(below):
        return np.inf
    i = below[0]
    return float(np.interp(-run.loss[0] / 2, -run.loss[i - 1 : i + 1], run.time[i - 1 : i + 1]))


def advised(case: tuple[str, int, str]) -> tuple[str, str, float, float | None]:
    """Of one network its name, what it is to be explained by, that half-time over its own, kept.

    The kept share is measured anew, with other random weights; None for what has no gates.
    """
    task, depth, start = case
    run, data = network(task, depth, start)
    gatings = gatings_of(data, depth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = nr.explain(run, gatings, data=data, seeds=SEEDS, neurons=500, stages=32)
        name, best = f"{task}, depth {depth}, {start}", found.best
        if best is None or best.trajectory is None:
            return name, "", 1.0, None
        kept = None
        if best.kind == "gating":
            pair = gatings.get(best.name)
            if isinstance(best.found, nr.reln.Discovery):
                pair = best.found.arch, best.found.data
            scale = STARTS[start][depth] or WIDTH**-0.5 / 3**0.5
            kept = best.kept if pair is None else (
                nr.reln.consistency(*pair, scale=scale, key=1).share
            )  # fmt: skip
    return name, best.name, half(best.trajectory) / half(run), kept


def in_float64() -> None:
    """Let a process compute as this one does."""
    jax.config.update("jax_enable_x64", True)


@claim(
    "explanations/advice",
    SECTION,
    "30 ReLU networks (rule task, context decisions, XoR, transitive inference; one to three "
    "hidden layers of 32; two Gaussian starts and PyTorch's own, with biases): what `explain` says "
    f"to use has a half-time off by at most {LATE:.0%} and, if it is a gating, a kept share of at "
    f"least {KEPT:g}",
    "all that are advised",
)
def advice(full: bool) -> Measurement:
    cases = [(task, depth, start) for task, depth in CASES for start in STARTS]
    if full:
        with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=in_float64) as pool:
            every = list(pool.map(advised, cases))
    else:
        every = [advised(case) for case in (("xor", 1, "small"), ("xor", 2, "torch"))]
    used = [each for each in every if each[1]]
    missed = [
        f"{name}: {use} (half-time × {ratio:.3g}, kept {kept})"
        for name, use, ratio, kept in used
        if not abs(ratio - 1) <= LATE or (kept is not None and kept < KEPT)
    ]
    text = f"{len(used)} of {len(every)} are advised, {len(missed)} wrongly"
    said = "; ".join(f"{name}: {use}" for name, use, _, _ in used)
    return Measurement(text, not missed, f"missed: {'; '.join(missed)}" if missed else said)
