"""A ReLU network that takes over from a gated one, and what its neurons see there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.dynamics.flow import flow
from neuralrace.dynamics.train import train
from neuralrace.gdln import GDLN
from neuralrace.reduction import reduce
from neuralrace.reln.explained.fall import BEGIN
from neuralrace.relu import ReLUNetwork
from neuralrace.statistics import SplitNetwork, split_neurons
from neuralrace.types import WeightsLike

STEP = 0.02
"""The learning rate of a ReLU network that takes over, times the largest growth rate."""


def handover(arch: Architecture, data: Dataset, weights: WeightsLike, leak: float) -> float:
    """The half-time of a ReLU network that takes over at 1 % of the fall, over the gating's.

    The gated network is trained from actual weights, in which every neuron has a direction of its
    own: a solved race has the directions of its modes only.
    """
    race = reduce(arch, data)
    initial = race.constant + sum(block.initial_loss for block in race.blocks)
    begin, half = (initial - part * (initial - race.constant) for part in (BEGIN, 0.5))
    strength = max(block.drive for block in race.blocks)
    net, relu = GDLN(arch), ReLUNetwork(arch, leak=leak)
    times = np.linspace(0, 1000 / strength, 3)
    first = flow(net, weights, data, times=times, until_loss=begin)
    gated = first.time[-1] + flow(net, first.final, data, times=times, until_loss=half).time[-1]
    final = {e: np.array(w) for e, w in first.final.items()}
    split = split_neurons(arch, data)
    parts = split.split(final)
    for node, (z, drive, _) in seen_by_neurons(split, parts).items():
        gate = np.asarray(split.data.gates.get(node, np.ones(len(z))))[:, None]
        q = np.abs(z * drive)
        missed = [(np.abs(gate - np.where(s * z > 0, 1.0, leak)) * q).sum(axis=0) for s in (1, -1)]
        sign = np.where(missed[0] <= missed[1], 1.0, -1.0)
        for e in split.arch.incoming[node]:
            parts[e] = sign[:, None] * parts[e]
        for e in split.arch.outgoing[node]:
            parts[e] = parts[e] * sign
    rate = STEP / strength
    steps = math.ceil(4 * gated / rate)
    run = train(
        relu, split.join(parts), data.gated({}),
        learning_rate=rate, steps=steps, record_every=max(1, steps // 2000), until=half,
    )  # fmt: skip
    return float((first.time[-1] + run.time[-1]) / gated) if run.loss[-1] <= half else math.inf


def seen_by_neurons(
    net: SplitNetwork, weights: Mapping[str, np.ndarray]
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of every hidden node: inputs z and errors that reach it, (N, size), and neurons' weight."""
    arch, data = net.arch, net.data
    gate = {v: np.asarray(g)[:, None] for v, g in data.gates.items()}
    z: dict[str, np.ndarray] = {}
    h = {v: np.asarray(data.x[v], np.float64) for v in arch.inputs}
    for node in arch.order:
        if node not in arch.inputs:
            into = arch.incoming[node]
            z[node] = np.asarray(sum(h[arch.edges[e][0]] @ weights[e].T for e in into))
            h[node] = gate.get(node, 1.0) * z[node]
    error = {v: np.asarray(data.y[v], np.float64) - h[v] for v in arch.outputs}
    found = {}
    for node in reversed(arch.order):
        if node not in arch.hidden:
            continue
        out, into = arch.outgoing[node], arch.incoming[node]
        back = np.asarray(sum(error[arch.edges[e][1]] @ weights[e] for e in out))
        size = [
            np.sqrt(sum((weights[e] ** 2).sum(axis=axis) for e in edges))
            for edges, axis in ((into, 1), (out, 0))
        ]
        found[node] = (z[node], back, size[0] * size[1])
        error[node] = gate.get(node, 1.0) * back
    return {v: found[v] for v in arch.hidden}
