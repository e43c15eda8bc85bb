"""Activity samples of one layer, and the pathways that K-means finds among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from neuralrace.checks import generator
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.observed.activity import activity
from neuralrace.reln.observed.runs import network_of
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key

RESTARTS = 10
"""The number of starts of K-means, of which the best is kept."""


@final
@dataclass(frozen=True, eq=False)
class Clusters:
    """Pathways found in one layer; see `discover`. K pathways, N samples, R runs.

    `centroid` `(K, N)` is how often its members are on; `pattern` `(K, N)` the gates made of it,
    rounded or not; `share` `(K,)` the part of all activity samples (by number or by weight) that
    belong to it; `mismatch` `(K,)` on how many samples a member differs from the rounded centroid,
    on average; `member` `(R, size)` the pathway of every neuron of every run.
    """

    centroid: Float[np.ndarray, "K N"]
    pattern: Float[np.ndarray, "K N"]
    share: Float[np.ndarray, " K"]
    mismatch: Float[np.ndarray, " K"]
    member: Int[np.ndarray, "R size"]

    def __len__(self) -> int:
        return len(self.pattern)


@final
@dataclass(frozen=True, eq=False)
class LayerActivity:
    """The activity of one layer in R runs: `bits` `(R, T, size, B)`, `votes` `(R, T, size)`.

    `bits` are patterns over N samples in B = ⌈N/8⌉ bytes; `votes` say how much each neuron counts.
    """

    bits: UInt8[np.ndarray, "R T size B"]
    votes: Float[np.ndarray, "R T size"]


def activity_of(
    runs: Sequence[Trajectory], data: Dataset, boundary: float
) -> dict[str, LayerActivity]:
    """The activity of every hidden node in all runs, each run looked at once."""
    seen = [_seen(run, data, boundary) for run in runs]
    return {
        node: LayerActivity(*map(np.stack, zip(*(each[node] for each in seen), strict=True)))
        for node in network_of(runs[0]).arch.hidden
    }


@final
@dataclass(frozen=True, eq=False)
class ActivitySamples:
    """The different activity samples of one layer, how much each counts, and whose they are.

    `pattern` `(U, N)`, `weight` `(U,)`, and `which` `(R, T, size)`: the pattern of each neuron.
    `importance` `(N,)` is the weight of every sample of the data as a part of the largest. Patterns
    that differ only where it is 0 count as one; there, `pattern` is how often its neurons are on.
    """

    pattern: Float[np.ndarray, "U N"]
    weight: Float[np.ndarray, " U"]
    which: Int[np.ndarray, "R T size"]
    importance: Float[np.ndarray, " N"]

    @staticmethod
    def of(layer: LayerActivity, data: Dataset, weighted: bool) -> ActivitySamples:
        weights = np.asarray(data.probability, np.float64)
        importance = weights / weights.max()
        bits, place = layer.bits.reshape(-1, layer.bits.shape[-1]), layer.votes.shape
        votes = layer.votes.ravel() if weighted and layer.votes.any() else np.ones(len(bits))
        counted = np.packbits(importance > 0)
        _, first, which = np.unique(bits & counted, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
        weight = np.bincount(which, weights=votes)
        pattern = _unpacked(bits[first], len(importance))
        ignored = np.flatnonzero(importance == 0)
        if len(ignored):
            on = _unpacked(bits, len(importance))[:, ignored]
            rate = [np.bincount(which, weights=votes * column) for column in on.T]
            pattern[:, ignored] = np.stack(rate, axis=1) / np.where(weight > 0, weight, 1)[:, None]
        return ActivitySamples(pattern, weight, which.reshape(place), importance)


def _unpacked(bits: UInt8[np.ndarray, "U B"], samples: int) -> Float[np.ndarray, "U N"]:
    return np.unpackbits(bits, axis=1, count=samples).astype(np.float64)


def _seen(
    run: Trajectory, data: Dataset, boundary: float
) -> dict[str, tuple[UInt8[np.ndarray, "T size B"], Float[np.ndarray, "T size"]]]:
    """For each hidden node, which neurons are on, in bits, and how much each counts."""
    if isinstance(run.net, ReLUNetwork):
        found = activity(run, data, boundary=boundary)
        return {n: (_bits(on), found.counted(n, 0.0)) for n, on in found.on.items()}
    arch, moments = network_of(run).arch, len(run.time)
    seen = {}
    for node in arch.hidden:
        gate, size = np.asarray(data.gates.get(node, np.zeros(0))), arch.sizes[node]
        if gate.shape != (data.n_samples, size) or not np.isin(gate, (0, 1)).all():
            raise NeuralRaceError(
                "activity is found in ReLU networks, or in gates of zero and one for every neuron",
                got=f"a run of {type(run.net).__name__}, gates of shape {gate.shape} at {node!r}",
                wanted=f"a run of a ReLUNetwork, or gates of shape {(data.n_samples, size)}",
                fix="train a nr.ReLUNetwork; a gated network's pathways are known already",
            )
        on = np.broadcast_to(gate > 0, (moments, *gate.shape))
        seen[node] = _bits(on), np.full((moments, size), 1 / size)
    return seen


def _bits(on: Bool[np.ndarray, "T N size"]) -> UInt8[np.ndarray, "T size B"]:
    return np.moveaxis(np.packbits(on, axis=1), 1, 2)


def clustered(
    samples: ActivitySamples, count: int, rounded: bool, leak: float, seed: int
) -> Clusters:
    """K-means on the activity samples of a layer, and the pathway of every neuron."""
    centroid, label = _means(samples, count, seed)
    counts = samples.importance > 0
    on = centroid > 0.5
    order = np.lexsort(on.T[::-1])
    on, label = on[order], np.argsort(order)[label]
    if rounded:
        on, same = np.unique(on, axis=0, return_inverse=True)
        label = same.ravel()[label]
    k = len(on)
    weight = np.bincount(label, weights=samples.weight, minlength=k)
    rows = np.eye(k)[label].T * samples.weight  # (K, U)
    total = np.where(weight > 0, weight, 1.0)
    apart = (samples.pattern[:, counts] != on[label]).sum(axis=1)
    votes = (np.eye(k)[label[samples.which]]).sum(axis=1)  # (R, size, K)
    mean = rows @ samples.pattern / total[:, None]
    slope = mean
    if rounded:
        slope = np.where(mean > 0.5, 1.0, 0.0)
        slope[:, counts] = on
    return Clusters(
        centroid=mean,
        pattern=leak + (1 - leak) * slope,
        share=weight / weight.sum(),
        mismatch=rows @ apart / total,
        member=votes.argmax(axis=2),
    )


def _means(samples: ActivitySamples, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The centroids on samples that count, and the nearest of them for every different pattern.

    Distances are weighted by the sample weights of the data, as if a sample of weight 2 were two.
    """
    counts = samples.importance > 0
    points = samples.pattern[:, counts]
    if len(points) <= count:
        return points, np.arange(len(points))
    from sklearn.cluster import KMeans

    root = np.sqrt(samples.importance[counts])
    means = KMeans(count, n_init=RESTARTS, random_state=seed)  # type: ignore[arg-type]
    means = means.fit(points * root, sample_weight=samples.weight)
    return np.asarray(means.cluster_centers_) / root, np.asarray(means.labels_)


def seed_of(key: Key) -> int:
    """The seed of K-means for a key: an integer itself, or one drawn from a key of JAX."""
    rng = generator(key)  # checks the key
    return int(key) if isinstance(key, int) else int(rng.integers(2**32))
