"""Activity samples of one layer, and the pathways that K-means finds among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from neuralrace.checks import generator
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.observed.activity import activity, opened
from neuralrace.reln.observed.runs import network_of
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Key

DIGITS = 3
"""Fractions count as the same if they agree in this number of digits."""

LARGE = 2_000_000
"""K-means sees at most this many numbers, patterns times samples, at once."""

PART = 2_000_000
"""Patterns are unpacked in parts of about this many numbers."""

PASSES = 10
"""The most passes over patterns, first over those that K-means sees and then over all of them."""

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
    """The activity of one layer in R runs: `gates` `(R, T, size, B)`, `votes` `(R, T, size)`.

    Patterns over N samples are kept as bits in B = ⌈N/8⌉ bytes, or as fractions with B = N. `votes`
    say how much each neuron counts.
    """

    gates: UInt8[np.ndarray, "R T size B"] | Float[np.ndarray, "R T size B"]
    votes: Float[np.ndarray, "R T size"]


def activity_of(
    runs: Sequence[Trajectory],
    data: Dataset,
    boundary: float,
    gates: Sequence[Mapping[str, ArrayLike]] | None = None,
) -> dict[str, LayerActivity]:
    """The activity of every hidden node in all runs, each run looked at once."""
    given = [None] * len(runs) if gates is None else gates
    seen = [_seen(run, data, boundary, some) for run, some in zip(runs, given, strict=True)]
    return {
        node: LayerActivity(*map(np.stack, zip(*(each[node] for each in seen), strict=True)))
        for node in network_of(runs[0]).arch.hidden
    }


@final
@dataclass(frozen=True, eq=False)
class ActivitySamples:
    """The different activity samples of one layer, how much each counts, and whose they are.

    `gates` `(U, B)` as in `LayerActivity`, `weight` `(U,)`, and `which` `(R, T, size)`: the pattern
    of each neuron. `importance` `(N,)` is the weight of every sample of the data as a part of the
    largest. Patterns that differ only where it is 0 count as one; there, `ignored` `(U, I)` says
    how often its neurons are on.
    """

    gates: UInt8[np.ndarray, "U B"] | Float[np.ndarray, "U B"]
    weight: Float[np.ndarray, " U"]
    which: Int[np.ndarray, "R T size"]
    importance: Float[np.ndarray, " N"]
    ignored: Float[np.ndarray, "U I"]

    @staticmethod
    def of(layer: LayerActivity, data: Dataset, weighted: bool) -> ActivitySamples:
        weights = np.asarray(data.probability, np.float64)
        importance = weights / weights.max()
        gates, place = layer.gates.reshape(-1, layer.gates.shape[-1]), layer.votes.shape
        votes = layer.votes.ravel() if weighted and layer.votes.any() else np.ones(len(gates))
        if gates.dtype == np.uint8:
            counted = gates & np.packbits(importance > 0)
        else:
            counted = np.where(importance > 0, np.round(gates, DIGITS), 0.0)
        _, first, which = np.unique(counted, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
        weight = np.bincount(which, weights=votes)
        without = np.flatnonzero(importance == 0)
        total = np.where(weight > 0, weight, 1)
        ignored = np.zeros((len(weight), len(without)))
        for i, n in enumerate(without):
            bits = gates.dtype == np.uint8
            on = np.unpackbits(gates[:, n // 8, None], axis=1)[:, n % 8] if bits else gates[:, n]
            ignored[:, i] = np.bincount(which, weights=votes * on) / total
        return ActivitySamples(gates[first], weight, which.reshape(place), importance, ignored)

    def __len__(self) -> int:
        return len(self.gates)

    def patterns(
        self, rows: slice | Int[np.ndarray, " r"], single: bool = False
    ) -> Float[np.ndarray, "r N"]:
        """Some of the patterns, one number for each sample, in `single` precision or double."""
        some = self.gates[rows]
        if some.dtype == np.uint8:
            some = np.unpackbits(some, axis=1, count=len(self.importance))
        found = some.astype(np.float32 if single else np.float64)
        if self.ignored.shape[1]:
            found[:, self.importance == 0] = self.ignored[rows]
        return found

    def parts(self, single: bool = False) -> Iterator[tuple[slice, Float[np.ndarray, "r N"]]]:
        """All patterns, a part of them at a time."""
        many = max(1, PART // len(self.importance))
        for begin in range(0, len(self), many):
            rows = slice(begin, begin + many)
            yield rows, self.patterns(rows, single)


def _seen(
    run: Trajectory, data: Dataset, boundary: float, gates: Mapping[str, ArrayLike] | None
) -> dict[str, tuple[np.ndarray, Float[np.ndarray, "T size"]]]:
    """For each hidden node the gates of neurons, bits or fractions, and how much each counts."""
    if isinstance(run.net, ReLUNetwork):
        found = activity(run, data, boundary=boundary, gates=gates)
        if found.fractions is not None:
            return {
                n: (opened(np.moveaxis(g, 1, 2), found.leak), found.counted(n, 0.0))
                for n, g in found.fractions.items()
            }
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
    total = np.where(weight > 0, weight, 1.0)
    mean, mismatch = np.zeros((k, len(counts))), np.zeros(k)
    for rows, patterns in samples.parts():
        each = np.eye(k)[label[rows]].T * samples.weight[rows]  # (K, rows)
        mean += each @ patterns
        points = patterns if counts.all() else patterns[:, counts]
        apart = ((points > 0.5) != on[label[rows]]).sum(axis=1)
        mismatch += each @ apart
    mean /= total[:, None]
    votes = (np.eye(k)[label[samples.which]]).sum(axis=1)  # (R, size, K)
    slope = mean
    if rounded:
        slope = np.where(mean > 0.5, 1.0, 0.0)
        slope[:, counts] = on
    return Clusters(
        centroid=mean,
        pattern=leak + (1 - leak) * slope,
        share=weight / weight.sum(),
        mismatch=mismatch / total,
        member=votes.argmax(axis=2),
    )


def _means(samples: ActivitySamples, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The centroids on samples that count, and the nearest of them for every different pattern.

    Distances are weighted by the sample weights of the data, as if a sample of weight 2 were two.
    Very many patterns are not held in memory at once: K-means sees some of them, drawn by their
    weight, and its centroids are then improved on all (Lloyd's iteration).
    """
    counts = samples.importance > 0
    if len(samples) <= count:
        return samples.patterns(slice(None))[:, counts], np.arange(len(samples))
    from sklearn.cluster import KMeans

    some, many = slice(None), LARGE // len(counts)
    if large := len(samples) > max(many, count):
        size = max(count, min(many, int((samples.weight > 0).sum())))
        rng = np.random.default_rng(seed)
        chance = samples.weight / samples.weight.sum()
        some = np.sort(rng.choice(len(samples), size, replace=False, p=chance))
    root = np.sqrt(samples.importance[counts])
    options = {"n_init": RESTARTS, "random_state": seed} | ({"max_iter": PASSES} if large else {})
    means = KMeans(count, **options)  # type: ignore[arg-type]
    points = samples.patterns(some)[:, counts] * root
    means = means.fit(points, sample_weight=samples.weight[some])
    centroids = np.asarray(means.cluster_centers_) / root
    return _improved(samples, centroids) if large else (centroids, np.asarray(means.labels_))


def _improved(
    samples: ActivitySamples, centroids: Float[np.ndarray, "K n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Lloyd's iteration over all patterns, a part of them at a time."""
    counts = samples.importance > 0
    importance = samples.importance[counts]
    label = np.full(len(samples), -1)
    for _ in range(PASSES):
        before = label.copy()
        total, weight = np.zeros_like(centroids), np.zeros(len(centroids))
        toward = (importance * centroids).T.astype(np.float32)
        size = (importance * centroids**2).sum(axis=1)
        for rows, patterns in samples.parts(single=True):
            points = patterns if counts.all() else patterns[:, counts]
            label[rows] = (size - 2 * points @ toward).argmin(axis=1)
            each = np.eye(len(centroids), dtype=np.float32)[label[rows]].T
            each = each * samples.weight[rows].astype(np.float32)
            total += each @ points
            weight += each.sum(axis=1)
        mine = weight > 0
        centroids = np.where(mine[:, None], total / np.where(mine, weight, 1)[:, None], centroids)
        if (label == before).all():
            break
    return centroids, label


def seed_of(key: Key) -> int:
    """The seed of K-means for a key: an integer itself, or one drawn from a key of JAX."""
    rng = generator(key)  # checks the key
    return int(key) if isinstance(key, int) else int(rng.integers(2**32))
