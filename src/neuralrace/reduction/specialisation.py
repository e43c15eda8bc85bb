"""Learned gates: the race at a moment, and the splits by which equal pathways specialise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import check_kind, listed, require
from neuralrace.learned import LearnedGates
from neuralrace.reduction.race import Race, reduce
from neuralrace.relu import ReLUNetwork
from neuralrace.results import TIME, Result, Sentence, framed
from neuralrace.tolerances import ROUNDING
from neuralrace.trajectory import Trajectory
from neuralrace.types import Finite, Positive

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

ROUNDS = 10_000
"""At most this many rounds of the search for the state of equal gates."""


@door
def race_of(run: Trajectory, data: Dataset, time: Finite | None = None) -> Race:
    """The race with the gates that a network had made at a moment of a run.

    With gates held as they were, a network that learns its gates, or a ReLU network, is a gated
    linear network, and `nr.reduce` finds its blocks. `race.solve(start=weights)` says how it would
    go on.

    **Arguments:** `run` with recorded weights, `record={"weights": True}`; `data`, what it was
    trained on; `time`, of which the nearest recorded moment is taken, or the end.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[1.0], [-1.0]]}, labels={"task": [1, 2]})
    >>> net = nr.LearnedGates(nr.Architecture.parallel({"x": 1}, {"a": 8, "b": 8}, {"y": 1}),
    ...                       labels={"task": (1, 2)}, budget=1.0)
    >>> run = nr.flow(net, net.init(0, scale=0.1), data, times=[0, 100], record={"weights": True})
    >>> nr.reduction.race_of(run, data, 100).blocks[0].dims
    {'x': 1, 'y': 1}

    ```
    """
    net = run.net
    require(
        isinstance(net, LearnedGates | ReLUNetwork) and not run.axes,
        "run must be one run of a network that makes its gates",
        got=f"{type(net).__name__} with axes {listed(run.axes or {})}",
        wanted="a run of a LearnedGates or a ReLUNetwork",
        fix="of an ensemble, run.isel(seed=0); a GDLN has the gates of its data",
    )
    assert isinstance(net, LearnedGates | ReLUNetwork)
    if time is None:
        weights = run.final
    else:
        require(
            "weights" in run.values and run.time[0] <= time <= run.time[-1],
            "run has no weights at this time",
            got=f"time={time:g} of a run that recorded {listed(run.values)}",
            wanted=f"recorded weights, and a time from {run.time[0]:g} to {run.time[-1]:g}",
            fix='record={"weights": True}',
        )
        at = int(np.abs(run.time - time).argmin())
        weights = {edge: w[at] for edge, w in run.values["weights"].items()}
    gates = {n: np.asarray(g) for n, g in net.activity(weights, data).items()}
    if isinstance(net, LearnedGates):
        return reduce(net.graph, data.gated({**data.gates, **gates}))
    return reduce(net.arch, data.gated(gates))


@final
@dataclass(frozen=True, eq=False)
class Splits(Result):
    """How pathways with equal gates come to differ, the fastest split first.

    `growth[k]` is the rate at which split k grows from small differences; `patterns[k]` by how much
    the gates of a pathway rise or fall in each of the `values` of the label, a unit vector; other
    pathways have it with other signs, which sum to zero. `weights` is the state of equal gates,
    from which pathways split; `totals[z]` is the sum of its gates in each context.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.Dataset({"x": np.tile(np.eye(2), (2, 1))}, {"y": [[1.0], [2.0], [2.0], [1.0]]},
    ...                   labels={"task": ["one", "one", "two", "two"]})
    >>> net = nr.LearnedGates(nr.Architecture.parallel({"x": 2}, {"a": 8, "b": 8}, {"y": 1}),
    ...                       labels={"task": ("one", "two")}, rate=4.0, budget=1.0)
    >>> found = nr.reduction.splits(net, data)
    >>> found.growth.round(4), abs(found.patterns[0].round(4))
    (array([0.7282]), array([0.7071, 0.7071]))

    ```
    """

    label: str
    values: tuple[int | float | str, ...]
    growth: Float[np.ndarray, " splits"]
    patterns: Float[np.ndarray, "splits values"]
    totals: Float[np.ndarray, " values"]
    weights: dict[str, np.ndarray]

    @door
    def time(self, start: Positive, level: Positive = 0.5) -> float:
        """When the gates of the fastest split differ by `level`, if by `start` along it at first.

        log(level/start)/growth: exact while differences are small, infinite where nothing grows.

        ```python
        >>> import numpy as np
        >>> from neuralrace.reduction import Splits
        >>> one = Splits("task", (1, 2), np.array([2.0]), np.array([[0.7, -0.7]]), np.ones(2), {})
        >>> round(one.time(1e-3), 3)
        3.107

        ```
        """
        return math.log(level / start) / float(self.growth[0]) if len(self.growth) else math.inf

    def frame(self) -> pandas.DataFrame:
        """One row per split and value of the label.

        `split`; its rate of `growth` and the time of one `doubling`; `value` of the label; `gate`,
        by how much the gate of a pathway changes there, in units of the whole pattern.
        """
        rows = [
            {
                "split": f"split{i + 1}",
                "growth": float(g),
                "doubling": math.log(2) / float(g),
                "value": value,
                "gate": float(gate),
            }
            for i, (g, pattern) in enumerate(zip(self.growth, self.patterns, strict=True))
            for value, gate in zip(self.values, pattern, strict=True)
        ]
        return framed(["split", "growth", "doubling", "value", "gate"], rows, {"doubling": TIME})

    def sentences(self) -> tuple[Sentence, ...]:
        if not len(self.growth):
            return (Sentence("none", "Equal pathways stay equal: no split grows."),)
        first = self.patterns[0] * np.sign(self.patterns[0][np.abs(self.patterns[0]).argmax()])
        gates = ", ".join(f"{v} {p:+.2f}" for v, p in zip(self.values, first, strict=True))
        said = f"Gates of a pathway first split by {gates}, at the rate {self.growth[0]:.4g}."
        return (Sentence("first", said),)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The pattern of every split over the values of the label."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        names = [str(value) for value in self.values]
        for k, (g, pattern) in enumerate(zip(self.growth, self.patterns, strict=True)):
            ax.plot(names, pattern, "o-", label=f"split {k + 1}, rate {g:.3g}")
        ax.set(xlabel=self.label, ylabel="change of the gates of a pathway")
        if len(self.growth):
            ax.legend()
        return ax


@door
def splits(net: LearnedGates, data: Dataset) -> Splits:
    """Which contexts equal pathways split first, and at what rate, from the statistics alone.

    P equal pathways with gates c_p(z), one per value z of a label, first learn as one. They come to
    rest where all gates of a context are S_z/P and every pathway has the map F: the least loss of
    ŷ = S_z F x, with the penalties of the gates. What is left of context z is

        E_z = Σ^yx_z − S_z F Σ^x_z,    each weighted by the probability of z.

    A small difference between pathways, in gates by ε_z and in weights by δθ, moves as
    dδθ/dt = Σ_z ε_z ∇φ_z, dε_z/dt = rate · (∇φ_z · δθ − decay · q_z ε_z), with φ_z = ⟨E_z, F⟩ as a
    function of the weights of one pathway and q_z the probability of z. So splits are the
    eigenvectors of G_zz' = ∇φ_z · ∇φ_z' = ⟨E_z, K(E_z')⟩, and without decay they grow at
    √(rate · eigenvalue). A budget acts through S and F alone: gates of a split sum to zero. Gates
    that are held at zero (S_z = 0) do not take part. K(E) is
    E for pathways of one learned edge, and (F Fᵀ)^½ E + E (Fᵀ F)^½ for two balanced ones, as after
    a small start. The derivation is ours.

    **Arguments:** `net` with free gates of nodes and one label, or none; hidden nodes that are
    parallel and equal, from one input to one output, each wide enough for F. A frozen edge must be
    the identity. With two edges and no budget, S_z and F are known up to a factor only: the
    gates are taken to sum to 1 on average.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> rng = np.random.default_rng(0)
    >>> x, task = rng.normal(size=(60, 4)), np.arange(60) % 3
    >>> y = np.einsum("nij,nj->ni", rng.normal(size=(3, 2, 4))[task], x)
    >>> net = nr.LearnedGates(nr.Architecture.parallel({"x": 4}, {"a": 8, "b": 8}, {"y": 2}),
    ...                       labels={"task": (0, 1, 2)}, rate=10.0, budget=20.0)
    >>> print(nr.reduction.splits(net, nr.Dataset({"x": x}, {"y": y}, labels={"task": task})))
    Gates of a pathway first split by 0 -0.58, 1 -0.03, 2 +0.81, at the rate 6.544.
    split   growth  doubling  value     gate
    split1   6.544    0.1059      0   0.5835
    split1   6.544    0.1059      1  0.02635
    split1   6.544    0.1059      2  -0.8117
    split2   3.306    0.2097      0   0.4641
    split2   3.306    0.2097      1   -0.831
    split2   3.306    0.2097      2   0.3066

    ```
    """
    learned, factor = _parallel(net)
    label, values = net.labels[0] if net.labels else ("", ("all",))
    yx, xx, chance = _by_context(net, data, label, values)
    totals, total_map = _equal_state(net, yx, xx, chance)
    residuals = yx - totals[:, None, None] * (total_map @ xx)
    moving = (totals > 0) | net.signed  # a gate that is held at zero stays there
    u, s, vt = np.linalg.svd(total_map, full_matrices=False)
    if learned == 2:
        width = min(net.graph.sizes[node] for node in net.nodes)
        rank = int((s > ROUNDING * max(s.max(), ROUNDING)).sum())
        require(
            width >= rank,
            "pathways are too narrow to be equal",
            got=f"{width} neurons for a map of rank {rank}",
            wanted=f"at least {rank} neurons in each",
            fix="wider hidden nodes",
        )
        moved = (u * s) @ u.T @ residuals + residuals @ (vt.T * s) @ vt
    else:
        moved = factor**2 * residuals
    gram = np.einsum("zij,wij->zw", residuals, moved) * np.outer(moving, moving)
    whole = float(np.linalg.norm(yx) ** 2) * (2 * float(s.max()) if learned == 2 else factor**2)
    z, rate = len(values), net.rate
    decay = -rate * net.decay * np.diag(chance)
    found, vectors = np.linalg.eig(np.block([[np.zeros((z, z)), gram], [rate * np.eye(z), decay]]))
    least = math.sqrt(ROUNDING * rate * whole)  # what residuals of rounding would grow at
    speed, turned = np.real(found), np.real(vectors)
    growing = [k for k in np.argsort(-speed) if speed[k] > least]
    patterns = np.array([turned[z:, k] for k in growing]).reshape(-1, z)
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    weights: dict[str, np.ndarray] = {}
    for node in net.nodes:
        into, out = net.graph.incoming[node][0], net.graph.outgoing[node][0]
        if learned == 2:
            rows = np.zeros((net.graph.sizes[node], len(s)))
            np.fill_diagonal(rows, 1.0)
            weights |= {into: rows @ (np.sqrt(s)[:, None] * vt), out: (u * np.sqrt(s)) @ rows.T}
        else:
            weights[out if into in net.graph.frozen else into] = total_map / factor
    for edge in net.gate_edges:
        weights[edge] = totals[None] / len(net.nodes)
    return Splits(label, values, speed[growing], patterns, totals, weights)


def _parallel(net: LearnedGates) -> tuple[int, float]:
    """How many edges of each pathway are learned, and the factor of the other, or an error."""
    check_kind("net", net, LearnedGates, "nr.LearnedGates(arch, labels={'context': (1, 2)})")
    graph = net.graph
    sources = {tuple(graph.edges[e][0] for e in graph.incoming[p]) for p in graph.hidden}
    targets = {tuple(graph.edges[e][1] for e in graph.outgoing[p]) for p in graph.hidden}
    plain = (
        net.kind == "free"
        and not net.neurons
        and set(net.nodes) == set(graph.hidden)
        and len(net.nodes) > 1
        and not graph.ties
        and len(graph.inputs) == len(graph.outputs) == 1
        and len(graph.edges) == 2 * len(graph.hidden)
        and len(sources) == len(targets) == 1
    )
    require(
        plain,
        "splits are known for equal pathways side by side, with a free gate each",
        got=f"{net.kind} gates of {listed(net.nodes)} in a graph of {len(graph.edges)} edges",
        wanted="kind='free', all hidden nodes gated, each with one edge in and one out, no ties",
        fix="nr.Architecture.parallel({'x': 4}, {'a': 8, 'b': 8}, {'y': 2})",
    )
    ends = [(graph.incoming[p][0], graph.outgoing[p][0]) for p in graph.hidden]
    frozen = {tuple(edge in graph.frozen for edge in pair) for pair in ends}
    factors = set(graph.frozen.values()) if graph.frozen else {1.0}
    require(
        len(frozen) == 1 and len(factors) == 1 and all(isinstance(f, float) for f in factors),
        "pathways must be equal",
        got=f"frozen edges {listed(graph.frozen)}",
        wanted="the same edge of each pathway frozen, as a multiple of the identity, or none",
        fix="frozen={'x_a': 1.0, 'x_b': 1.0}",
    )
    return 2 - sum(frozen.pop()), factors.pop()


def _by_context(
    net: LearnedGates, data: Dataset, label: str, values: tuple[int | float | str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ^yx and Σ^x of every context, weighted by its probability, and these probabilities."""
    net.completed(data)  # says what is wrong
    require(
        not data.gates and not data.loss_weight,
        "splits are not known where data have gates or loss_weight",
        got=f"gates {listed(data.gates)}, loss_weight {listed(data.loss_weight)}",
        wanted="neither",
        fix="data.gated({})",
    )
    (x,), (y,) = net.graph.inputs, net.graph.outputs
    whole = np.asarray(data.probability, float)
    labels = np.asarray(data.labels[label]) if label else np.full(data.n_samples, values[0])
    yx, xx, chance = [], [], []
    for value in values:
        here = np.sqrt(whole * (labels == value))[:, None]
        inputs, targets = (here * np.asarray(v, float) for v in (data.x[x], data.y[y]))
        yx.append(targets.T @ inputs)
        xx.append(inputs.T @ inputs)
        chance.append(float((here**2).sum()))
    return np.array(yx), np.array(xx), np.array(chance)


def _equal_state(
    net: LearnedGates, yx: np.ndarray, xx: np.ndarray, chance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """S_z and F of the least loss of ŷ = S_z F x with the penalties, by turns from S = 1."""
    totals, pull = np.ones(len(chance)), net.budget * chance
    resist = pull + net.decay * chance / len(net.nodes)
    total_map, moved, size = np.zeros_like(yx[0]), np.inf, 0.0
    for _ in range(ROUNDS):
        before = total_map
        moments = np.einsum("z,zij->ij", totals**2, xx)
        total_map = np.einsum("z,zij->ij", totals, yx) @ np.linalg.pinv(moments, hermitian=True)
        moved, size = np.abs(total_map - before).max(), np.abs(total_map).max()
        if not net.rate or moved <= ROUNDING**1.5 * size:
            break
        stiff = np.einsum("ij,zjk,ik->z", total_map, xx, total_map) + resist
        wish = np.einsum("zij,ij->z", yx, total_map) + pull
        totals = np.divide(wish, stiff, out=totals.copy(), where=stiff > 0)
        totals = totals if net.signed else np.maximum(totals, 0.0)
        totals = totals if net.budget or net.decay else totals / float(totals @ chance)
    require(
        not net.rate or moved <= ROUNDING * size,
        "the state of equal gates was not found for data",
        got=f"it still changes by {moved / size:.1e} of its size after {ROUNDS} rounds",
        wanted=f"at most {ROUNDING:g}",
        fix="a larger budget, or a smaller decay",
    )
    return totals, total_map
