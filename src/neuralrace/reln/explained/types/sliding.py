"""Sliding gates: what a neuron that is held at the boundary of a sample does on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.architecture import BIAS
from neuralrace.checks import one_of
from neuralrace.dataset import Dataset, Sampled, check_unweighed, matched
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.reln.explained.fixed_points import Samples, lines_of
from neuralrace.reln.observed.runs import (
    check_trained_on,
    descent_of,
    recorded_weights,
    relu_of,
)
from neuralrace.relu import ReLUNetwork
from neuralrace.text import percent
from neuralrace.tolerances import ROUNDING
from neuralrace.trajectory import Trajectory
from neuralrace.types import Positive, WeightsLike
from neuralrace.weights import check_finite, check_untied, checked_weights

OFF = 0
"""The state of a neuron that is off on a sample."""

ON = 1
"""The state of a neuron that is on on a sample."""

SLIDING = 2
"""The state of a neuron that is held at the boundary of a sample."""


@final
@dataclass(frozen=True, eq=False)
class SlidingGates:
    """The gates of a ReLU network at one moment, fractions included; see `sliding_gates`.

    `gates[node]`, of shape `(N, size)`, can be used as gates of a dataset. `states[node]`, of the
    same shape, is 0 where a neuron is off, 1 where it is on and 2 where it slides.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 1, 1))
    >>> weights = {"W1": np.array([[1.0, -1.0]]), "W2": np.array([[0.5]])}
    >>> found = nr.reln.sliding_gates(relu, weights, data, learning_rate=0.1)
    >>> found.gates["h"].T, found.states["h"].T  # it slides on two samples
    (array([[0.5, 1. , 0. , 0.5]]), array([[2, 1, 0, 2]]))
    >>> found.share()
    1.0

    ```
    """

    gates: dict[str, Float[np.ndarray, "N size"]]
    states: dict[str, Int[np.ndarray, "N size"]]
    weight: dict[str, Float[np.ndarray, " size"]]

    @door
    def share(self, node: str | None = None) -> float:
        """The share of the weight Σ‖w‖‖a‖ that is in neurons which slide on some sample."""
        names = tuple(self.gates)
        name = names[0] if node is None else one_of("hidden node", node, names, "leave it out")
        weight = self.weight[name]
        slides = (self.states[name] == SLIDING).any(axis=0)
        return float(weight[slides].sum() / (weight.sum() or 1.0))

    def __str__(self) -> str:
        lines = []
        for node, states in self.states.items():
            each = (states == SLIDING).sum(axis=0)
            mean = float(each @ self.weight[node]) / (self.weight[node].sum() or 1.0)
            lines.append(
                f"{node}: neurons with {percent(self.share(node))} of the weight slide; on average "
                f"a neuron slides on {mean:.1f} of {len(states)} samples."
            )
        return "\n".join(lines)


@door
def sliding_gates(
    net: ReLUNetwork, weights: WeightsLike, data: Sampled, *, learning_rate: Positive
) -> SlidingGates:
    """The effective gates of a ReLU network: on, off, or a fraction where a neuron slides.

    A neuron with input weights w, output weights a and residual r moves by dw/dt = Σ_m g_m q_m x_m,
    q_m = p_m (a·r_m). Where it is pushed back to the boundary z_n = w·x_n = 0 from both sides, it
    stays there, and its gate g_n is the fraction for which z_n rests (Filippov's sliding mode):

        Σ_m g_m (x_n·x_m) q_m = 0   for all n that slide .

    Samples with parallel inputs share a boundary. On the one side of it the neuron is on for those
    with one sign, on the other for those with the other: g_n + g_m = 1 where x_m = −x_n, and
    g_n = g_m where x_m = x_n. With u = −q g this is a convex quadratic problem with bounds, which
    also says which gates leave the boundary: there dz_n/dt points to the side they are on.

    A boundary counts as reached where z_n is no further from zero than one step of descent goes:
    |z_n| ≤ η (|dz_n/dt| + Σ_m |x_n·x_m| |q_m|), the sum being the change when its own gate and
    those of other boundaries within reach flip.

    **Arguments:** `net`, with one hidden node; `weights` and `data` at the moment of interest;
    `learning_rate` η, that of its training.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 32, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-3), data, learning_rate=0.1,
    ...                steps=150)
    >>> found = nr.reln.sliding_gates(relu, run.final, data, learning_rate=0.1)
    >>> gated = data.gated(found.gates)
    >>> bool(nr.GDLN(relu.arch).loss(run.final, gated) < run.loss[0])
    True

    ```
    """
    layer = one_hidden_layer(net, weights, data)
    fractions, states = filippov(layer.samples, layer.w, layer.a, learning_rate, net.leak)
    weight = np.linalg.norm(layer.w, axis=1) * np.linalg.norm(layer.a, axis=1)
    node = layer.node
    return SlidingGates({node: fractions.T}, {node: states.T}, {node: weight})


@door
def sliding_over(run: Trajectory, data: Sampled) -> dict[str, Float[np.ndarray, "T N size"]]:
    """The effective gates of a ReLU network at every recorded moment of a run, fractions included.

    `horizons(run, data, gates=…)` and `copied_gates(run, data, gates=…)` take them in place of
    gates that are on or off.

    **Arguments:** `run`, of `nr.train` with a `ReLUNetwork` of one hidden layer and
    `record={"weights": True}`; `data`, the dataset it was trained on.

    **Returns:** gates `(T, N, size)` of the hidden node, as in `sliding_gates`.

    ```python
    >>> import neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 16, 1))
    >>> run = nr.train(relu, relu.init(0, scale=1e-3), data, learning_rate=0.1, steps=200,
    ...                record_every=20, record={"weights": True})
    >>> gates = nr.reln.sliding_over(run, data)
    >>> gates["h"].shape, nr.reln.horizons(run, data, gates=gates).stages().races
    ((11, 4, 16), 1)

    ```
    """
    path, net = recorded_weights(run), relu_of(run)
    check_trained_on(run, data)
    rate = descent_of(run)[0]
    found = [
        sliding_gates(net, {e: w[k] for e, w in path.items()}, data, learning_rate=rate).gates
        for k in range(len(run.time))
    ]
    return {node: np.stack([each[node] for each in found]) for node in found[0]}


@final
@dataclass(frozen=True, eq=False)
class Layer:
    """A network with one hidden layer as plain matrices: its task, and w and a of every neuron."""

    node: str
    samples: Samples
    w: Float[np.ndarray, "M d"]
    a: Float[np.ndarray, "M o"]


def one_hidden_layer(net: ReLUNetwork, weights: WeightsLike, data: Dataset) -> Layer:
    """The matrices of a network with one hidden node, or an error."""
    arch = net.arch
    check_untied(arch, "the sliding gate of a neuron")
    if len(arch.hidden) != 1:
        raise NeuralRaceError(
            "sliding gates are known for one hidden layer",
            got=f"{len(arch.hidden)} hidden nodes",
            wanted="one hidden node between inputs and outputs",
            fix="for example nr.ReLUNetwork((2, 32, 1))",
        )
    direct = {e: ends for e, ends in arch.edges.items() if arch.hidden[0] not in ends}
    if direct:
        bias = all(source == BIAS for source, _ in direct.values())
        raise NeuralRaceError(
            "sliding gates are not known for a network with an output bias"
            if bias
            else "sliding gates are not known where an input also reaches an output directly",
            got=f"the edge{'s' * (len(direct) > 1)} {listed(direct)}, past the hidden layer",
            wanted="outputs that are sums over hidden neurons alone",
            fix="train without an output bias: in PyTorch nn.Linear(…, bias=False) as last layer"
            if bias
            else "for example nr.ReLUNetwork((2, 32, 1))",
        )
    arrays = checked_weights(arch, weights)
    check_finite(arrays)
    (node,) = arch.hidden
    check_unweighed(data, "sliding gates")
    full = matched(arch, data.gated({}))
    into, out = arch.incoming[node], arch.outgoing[node]
    x = np.concatenate([np.asarray(full.x[arch.edges[e][0]], np.float64) for e in into], axis=1)
    y = np.concatenate([np.asarray(full.y[arch.edges[e][1]], np.float64) for e in out], axis=1)
    w = np.concatenate([np.asarray(arrays[e], np.float64) for e in into], axis=1)
    a = np.concatenate([np.asarray(arrays[e], np.float64).T for e in out], axis=1)
    return Layer(node, Samples(x, y, np.asarray(full.probability, np.float64)), w, a)


def filippov(
    samples: Samples,
    w: Float[np.ndarray, "M d"],
    a: Float[np.ndarray, "M o"],
    rate: float,
    leak: float = 0.0,
    outputs: Float[np.ndarray, "N o"] | None = None,
) -> tuple[Float[np.ndarray, "M N"], Int[np.ndarray, "M N"]]:
    """The gates of all neurons, and their states; see `sliding_gates`.

    `outputs` are those of the network, where they are not the sum over these neurons.
    """
    z, slope, q = _driven(samples, w, a, leak, outputs)
    gram = samples.x @ samples.x.T
    speed = (slope * q) @ gram
    near = np.abs(z) <= rate * (np.abs(speed) + np.abs(q) * np.diag(gram))
    for _ in range(2):  # a hop over one boundary moves the neuron along the others too
        near |= np.abs(z) <= rate * (np.abs(speed) + (near * np.abs(q)) @ np.abs(gram))
    return _solved(samples.x, slope, q, near, leak)


def filippov_between(
    samples: Samples,
    first: tuple[Float[np.ndarray, "M d"], Float[np.ndarray, "M o"]],
    last: tuple[Float[np.ndarray, "M d"], Float[np.ndarray, "M o"]],
    slides: Bool[np.ndarray, "M N"],
    duration: float,
    leak: float = 0.0,
) -> Float[np.ndarray, "M N"]:
    """The mean gates of all neurons between two moments, from their weights (w, a) at both.

    Over an interval of length T a neuron moves by Δw = T Σ_m g_m q_m x_m. So the condition of
    `sliding_gates` becomes, with q the mean of both ends,

        Σ_m g_m (x_n·x_m) q_m = Δz_n / T ,

    for all n that slide at one of the ends (`slides`), or whose z_n changes its sign in between.
    Where a neuron slides all the time Δz_n is zero, and this is the same condition. Where it
    arrives at a boundary, leaves or crosses it, the right-hand side says when.
    """
    _, before, early = _driven(samples, *first, leak)
    _, after, late = _driven(samples, *last, leak)
    move = (last[0] - first[0]) / duration
    free = slides | (before != after)
    return _solved(samples.x, before, (early + late) / 2, free, leak, move)[0]


def _driven(
    samples: Samples,
    w: Float[np.ndarray, "M d"],
    a: Float[np.ndarray, "M o"],
    leak: float,
    outputs: Float[np.ndarray, "N o"] | None = None,
) -> tuple[Float[np.ndarray, "M N"], Float[np.ndarray, "M N"], Float[np.ndarray, "M N"]]:
    """z, its slope and q_n = p_n (a·r_n) of every neuron on every sample."""
    z = w @ samples.x.T
    slope = np.where(z > 0, 1.0, leak)
    o = (slope * z).T @ a if outputs is None else outputs
    return z, slope, (a @ (samples.y - o).T) * samples.p


def _boundaries(
    x: Float[np.ndarray, "N d"],
) -> tuple[Int[np.ndarray, " N"], Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Of every sample: which boundary it has, on which side it is on, and the length of x."""
    line, side = lines_of(x)
    first = np.unique(line, return_index=True)[1]
    return first[line], side.astype(float), np.linalg.norm(x, axis=1)


def _solved(
    x: Float[np.ndarray, "N d"],
    slope: Float[np.ndarray, "M N"],
    q: Float[np.ndarray, "M N"],
    near: Bool[np.ndarray, "M N"],
    leak: float,
    move: Float[np.ndarray, "M d"] | None = None,
) -> tuple[Float[np.ndarray, "M N"], Int[np.ndarray, "M N"]]:
    """Gates by coordinate descent on the shares of time that neurons spend beyond boundaries.

    The share of boundary s is α_s. Samples on its side have gate leak + (1 − leak) α_s, those on
    the other side leak + (1 − leak)(1 − α_s). Where Q_s = Σ_n q_n ‖x_n‖ < 0 the boundary attracts,
    and only there a neuron stays. If it is known that it `move`s by dw/dt, the side is no matter.
    """
    boundary, sign, length = _boundaries(x)
    side = sign * length
    kinds = np.unique(boundary)
    normal = np.stack([x[s] / (np.linalg.norm(x[s]) or 1.0) for s in kinds])
    members = boundary[None] == kinds[:, None]
    push = (1 - leak) * q @ (members * np.abs(side)).T  # Q_s of every neuron, (M, S)
    reached = ((near & (length > 0)) @ members.T.astype(float)) > 0
    slides = reached & ((push < 0) if move is None else (push != 0))
    above = ((slope == 1) == (side > 0)) | (np.abs(side) == 0)
    share = np.stack([above[:, s] for s in kinds], axis=1).astype(float)
    share = np.where(slides, 0.5, share)
    cosine = normal @ normal.T
    fixed = np.where(side > 0, leak, 1.0)  # gates where every share is zero
    still = (q * fixed) @ x @ normal.T  # dz/dt along each normal where every share is zero
    if move is not None:
        still = still - move @ normal.T
    _coordinate_descent(share, slides, push, still, cosine)
    each = share[:, np.searchsorted(kinds, boundary)]
    beyond = np.where(side > 0, each, 1 - each)
    gates = np.where(np.abs(side) > 0, leak + (1 - leak) * beyond, slope)
    inside = (beyond > 0) & (beyond < 1) & (np.abs(side) > 0)
    states = np.where(inside, SLIDING, np.where(beyond == 1, ON, OFF))
    return gates, np.where(np.abs(side) > 0, states, OFF)


def _coordinate_descent(
    share: Float[np.ndarray, "M S"],
    slides: Bool[np.ndarray, "M S"],
    push: Float[np.ndarray, "M S"],
    still: Float[np.ndarray, "M S"],
    cosine: Float[np.ndarray, "S S"],
) -> None:
    """Solve for the shares of all neurons in place, one boundary after another until all rest."""
    moving = np.flatnonzero(slides.any(axis=1))
    for _ in range(2000):
        part, pushed, held = share[moving], push[moving], slides[moving]
        before = part.copy()
        for s in np.flatnonzero(held.any(axis=0)):
            mine = np.flatnonzero(held[:, s])
            speed = still[moving[mine], s] + (part[mine] * pushed[mine]) @ cosine[s]
            part[mine, s] = np.clip(part[mine, s] - speed / pushed[mine, s], 0.0, 1.0)
        share[moving] = part
        moving = moving[np.abs(part - before).max(axis=1) > ROUNDING]
        if not len(moving):
            break
