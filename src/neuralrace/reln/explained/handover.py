"""A ReLU network that takes over from a gated one, and what its neurons see there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.dynamics import flow, train
from neuralrace.errors import NeuralRaceError
from neuralrace.gdln import GDLN
from neuralrace.reduction import reduce
from neuralrace.reln.explained.fall import FIRST, stretches
from neuralrace.relu import ReLUNetwork
from neuralrace.statistics import SplitNetwork, split_neurons
from neuralrace.tolerances import FALLEN, LONGEST, TAKEOVER_STEP
from neuralrace.trajectory import crossing_time
from neuralrace.types import WeightsLike


def handover(arch: Architecture, data: Dataset, weights: WeightsLike, leak: float) -> float:
    """The half-time of a ReLU network that takes over at 1 % of the fall, over the gating's.

    Both times are to half of the fall that the gating can make.

    The gated network is trained from actual weights, in which every neuron has its own direction:
    a solved race has the directions of its modes only.

    **Returns:** infinity where the ReLU network takes more than four times as long.

    **Raises:** `NeuralRaceError` where the gated network does not learn half of what it can.
    """
    race = reduce(arch, data)
    initial = race.constant + sum(block.initial_loss for block in race.blocks)
    begin, half = (initial - part * (initial - race.constant) for part in (FALLEN, 0.5))
    strength = max(block.drive for block in race.blocks)
    net, relu = GDLN(arch), ReLUNetwork(arch, leak=leak)
    before, middle = _fallen_to(begin, net, weights, data, strength)
    gated = before + _fallen_to(half, net, middle, data, strength)[0]
    final = {e: np.array(w) for e, w in middle.items()}
    split = split_neurons(arch, data)
    parts = split.split(final)
    probability = np.asarray(data.probability)
    for node, (z, drive, _) in seen_by_neurons(split, parts).items():
        gate = np.asarray(split.data.gates.get(node, np.ones(len(z))))
        sign = kept_by_neurons(z, drive, gate, probability, leak)[2]
        for e in split.arch.incoming[node]:
            parts[e] = sign[:, None] * parts[e]
        for e in split.arch.outgoing[node]:
            parts[e] = parts[e] * sign
    rate = TAKEOVER_STEP / strength
    steps = math.ceil(4 * gated / rate)
    run = train(
        relu, split.join(parts), data.gated({}),
        learning_rate=rate, steps=steps, record_every=max(1, steps // 2000), until=half,
    )  # fmt: skip
    took = float(crossing_time(run.time, run.loss, half))
    return math.inf if math.isnan(took) else (before + took) / gated


def _fallen_to(
    level: float, net: GDLN, weights: WeightsLike, data: Dataset, strength: float
) -> tuple[float, WeightsLike]:
    """When the loss of a gated network has fallen to a level, and its weights then.

    It is not known in advance how long that takes, so the flow is followed in `stretches`.
    """
    for begin, _, run in stretches(
        lambda w, lasts: flow(net, w, data, times=[0, lasts / 2, lasts], until=level),
        lambda _, run: run.final,
        dict(weights),
        FIRST / strength,
        LONGEST / strength,
    ):
        if run.loss[-1] <= level:
            return begin + float(run.time[-1]), run.final
    raise NeuralRaceError(
        "the gated network does not learn, so that there is nothing to hand over",
        got=f"a loss above {level:.6g} at t = {LONGEST / strength:.4g}",
        wanted="weights from which the loss of the gating falls",
        fix="start from larger weights, or from other ones: pass another key",
    )


def kept_by_neurons(
    z: Float[np.ndarray, "N h"],
    drive: Float[np.ndarray, "N h"],
    gate: Float[np.ndarray, " N"],
    p: Float[np.ndarray, " N"],
    leak: float,
) -> tuple[Float[np.ndarray, " h"], Float[np.ndarray, "N h"], Float[np.ndarray, " h"]]:
    """Of every neuron: its kept share, on which samples the rest is lost, and the better sign.

    z are the inputs of the neurons, `drive` the errors that reach them, p the sample weights; see
    `consistency`.
    """
    q = p[:, None] * np.abs(z * drive)
    whole = gate @ q
    safe = np.where(whole > 0, whole, 1.0)
    ways = [np.abs(gate[:, None] - np.where(s * z > 0, 1.0, leak)) * q / safe for s in (1, -1)]
    missed = np.stack([way.sum(axis=0) for way in ways])
    first = missed[0] <= missed[1]
    share = np.maximum(0.0, 1 - missed.min(axis=0)) * (whole > 0)
    return share, np.where(first, ways[0], ways[1]), np.where(first, 1.0, -1.0)


def seen_by_neurons(
    net: SplitNetwork,
    weights: Mapping[str, np.ndarray],
    gates: Mapping[str, Float[np.ndarray, "N size"]] | None = None,
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of every hidden node: inputs z and errors that reach it, (N, size), and neurons' weight.

    With the gates of the data, or with `gates`, one per neuron.
    """
    arch, data = net.arch, net.data
    gate = {v: np.asarray(g)[:, None] for v, g in data.gates.items()} if gates is None else gates
    z: dict[str, np.ndarray] = {}
    h = {v: np.asarray(data.x[v], np.float64) for v in arch.inputs}
    for node in arch.order:
        if node not in arch.inputs:
            into = arch.incoming[node]
            z[node] = np.asarray(sum(h[arch.edges[e][0]] @ weights[e].T for e in into))
            h[node] = gate.get(node, 1.0) * z[node]
    count = {v: np.reshape(np.asarray(data.loss_weight.get(v, 1.0)), (-1, 1)) for v in arch.outputs}
    error = {v: count[v] * (np.asarray(data.y[v], np.float64) - h[v]) for v in arch.outputs}
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
