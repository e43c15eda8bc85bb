"""Promises about gates that are learned."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, at_most, claim

SECTION = "Learned gates"

KINDS = {
    "free": {"labels": {"task": (0, 1, 2)}, "budget": 0.7, "decay": 0.2, "rate": 3.0},
    "sigmoid": {"labels": {"task": (0, 1, 2)}, "inputs": ("x",), "kind": "sigmoid", "bias": True},
    "softmax of neurons": {"inputs": ("x",), "kind": "softmax", "neurons": True, "decay": 0.4},
}
"""Gates as variables, and gating networks of nodes and of neurons."""


def problem(
    seed: int, edges: int = 2, contexts: int = 3
) -> tuple[nr.Architecture, nr.Dataset, np.random.Generator]:
    """Two equal pathways of one or two learned edges, and a random teacher in every context."""
    rng = np.random.default_rng(seed)
    z = np.arange(24) % contexts
    x = rng.normal(size=(24, 4)) @ rng.normal(size=(4, 4))
    y = np.einsum("nij,nj->ni", rng.normal(size=(contexts, 3, 4))[z], x)
    y += 0.3 * rng.normal(size=y.shape)
    data = nr.Dataset({"x": x}, {"y": y}, None, rng.uniform(0.5, 2, 24), labels={"task": z})
    width = 5 if edges == 2 else 4
    arch = nr.Architecture.parallel({"x": 4}, {"a": width, "b": width}, {"y": 3})
    if edges == 1:
        arch = nr.Architecture(arch.sizes, arch.edges, frozen={"x_a": 1.0, "x_b": 1.0})
    return arch, data, rng


def started(net: nr.LearnedGates, rng: np.random.Generator, scale: float) -> dict[str, np.ndarray]:
    """Random weights, with free gates above zero."""
    weights = {e: scale * rng.normal(size=shape) for e, shape in net.shapes.items()}
    if net.kind == "free":
        weights |= {e: 0.1 + np.abs(weights[e]) for e in net.gate_edges}
    return weights


@claim(
    "learned-gates/gradients",
    SECTION,
    "velocity of gates and weights, gates as variables and gating networks, against central "
    "differences of loss and penalty, largest error over the largest slope",
    "≤ 1e-7",
)
def gradients(full: bool) -> Measurement:
    worst = 0.0
    for seed in range(5 if full else 1):
        for options in KINDS.values():
            arch, data, rng = problem(seed)
            net = nr.LearnedGates(arch, **options)
            weights = started(net, rng, 0.5)
            found = net.velocity(weights, data)
            total = lambda w, net=net, data=data: float(net.loss(w, data) + net.penalty(w, data))
            errors, largest = [], 0.0
            for edge, w in weights.items():
                rate = net.rate if edge in net.gate_edges else 1.0
                for at in list(np.ndindex(w.shape))[:: 1 if full else 5]:
                    step = np.zeros_like(w)
                    step[at] = 1e-5
                    ends = [total({**weights, edge: w + s * step}) for s in (1, -1)]
                    slope = -rate * (ends[0] - ends[1]) / 2e-5
                    errors.append(abs(float(found[edge][at]) - slope))
                    largest = max(largest, abs(slope))
            worst = max(worst, max(errors) / largest)
    return at_most(worst, 1e-7)


@claim(
    "learned-gates/held",
    SECTION,
    "with gates held, a network that learns its gates against the gated linear network with these "
    "gates, both kinds: losses of 200 steps, relative, and outputs",
    "≤ 1e-12",
)
def held(full: bool) -> Measurement:
    worst = 0.0
    for seed in range(5 if full else 1):
        for options in KINDS.values():
            arch, data, rng = problem(seed)
            net = nr.LearnedGates(arch, **options | {"rate": 0.0})
            weights = started(net, rng, 0.3)
            gated = data.gated(net.activity(weights, data))
            plain = {e: weights[e] for e in arch.matrices}
            call = {"learning_rate": 0.01, "steps": 200, "record": {"outputs": True}}
            one = nr.train(net, weights, data, **call)
            same = nr.train(nr.GDLN(arch), plain, gated, **call)
            outputs = [run.values["outputs"]["y"] for run in (one, same)]
            worst = max(worst, np.abs(one.loss / same.loss - 1).max())
            worst = max(worst, np.abs(outputs[0] - outputs[1]).max() / np.abs(outputs[1]).max())
    return at_most(float(worst), 1e-12)


def growth_errors(count: int) -> np.ndarray:
    """Predicted over simulated growth of the fastest split, minus 1, on random problems.

    From the state of equal gates and differences of 1e-12; the slope of the logarithm of the
    difference of the gates between 15 and 20 over the predicted rate, where the fastest split has
    outgrown all others and is still small.
    Rates are drawn log-uniform from .1 to 30; every other problem has pathways of one edge.
    """
    errors = []
    for seed in range(count):
        arch, data, rng = problem(100 + seed, edges=1 + seed % 2)
        rate = float(np.exp(rng.uniform(np.log(0.1), np.log(30.0))))
        options = {"labels": {"task": (0, 1, 2)}, "budget": 20.0}
        predicted = nr.reduction.splits(nr.LearnedGates(arch, rate=rate, **options), data)
        net = nr.LearnedGates(arch, **options)  # one program for all: the rate is a number
        noise = {e: 1e-12 * rng.normal(size=w.shape) for e, w in predicted.weights.items()}
        start = {e: w + noise[e] for e, w in predicted.weights.items()}
        growth = float(predicted.growth[0])
        run = nr.flow(
            net, start, data, times=np.array([0.0, 15.0, 20.0]) / growth,
            rates=dict.fromkeys(net.gate_edges, rate), record={"weights": True}, rtol=1e-11,
        )  # fmt: skip
        w = run.values["weights"]
        apart = np.linalg.norm((w["task_gates_a"] - w["task_gates_b"])[:, 0], axis=1)
        errors.append(growth / (np.log(apart[2] / apart[1]) * growth / 5.0) - 1)
    return np.array(errors)


@claim(
    "learned-gates/growth",
    SECTION,
    "growth rate of the first split of equal pathways, from the statistics, against flows of the "
    "network on 20 random problems: largest relative error",
    "≤ 5 %",
)
def growth(full: bool) -> Measurement:
    errors = np.abs(growth_errors(20 if full else 2))
    text = f"largest {100 * errors.max():.2g} %, median {100 * np.median(errors):.2g} %"
    return Measurement(text, bool(errors.max() <= 0.05))
