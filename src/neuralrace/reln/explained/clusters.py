"""Activity samples of one layer, and the pathways that K-means finds among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from neuralrace.architecture import Architecture
from neuralrace.checks import generator
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.progress import progress
from neuralrace.reln.observed.activity import activity, opened
from neuralrace.reln.observed.packed_patterns import blocks, different, packed, unpacked
from neuralrace.reln.observed.runs import network_of
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Key

RESTARTS = 10
"""The number of starts of K-means, of which the best is kept."""

WHOLE = 2**25
"""The most numbers (patterns times samples) on which K-means works at once: 256 MB."""

FIRST = 2**23
"""Where there are more, about this many numbers are drawn for the first guess: 64 MB."""

FEWEST = 1024
"""At least this many samples are drawn; patterns are drawn too where these are then too many."""

ROUNDS = 3
"""The most rounds of K-means on all samples that follow after one on drawn samples."""


@final
@dataclass(frozen=True, eq=False)
class Sampling:
    """How clusters were found among more patterns than K-means works on at once.

    The first guess is made on `samples` of the `of` samples, drawn at random, and in mini-batches.
    The distance of two patterns, as a part of all samples, is then known to a standard error of
    `error` at most. Rounds of K-means on all samples follow. `moved` is the part of the activity
    that still changed its pathway in the last of these rounds; where it is 0, the clusters are at
    rest, as those of K-means without sampling are.

    ```python
    >>> from neuralrace.reln import Sampling
    >>> print(Sampling(samples=2340, of=60_000, moved=0.004))
    first guess on 2340 of 60000 samples (distances to ± 1.01 %), 0.4 % moved in the last round
    >>> Sampling(samples=60_000, of=60_000, moved=0.0).error
    0.0

    ```
    """

    samples: int
    of: int
    moved: float

    @property
    def error(self) -> float:
        """√(p(1 − p)/n · (N − n)/(N − 1)) at p = ½, where it is largest; n of N are drawn."""
        left = (self.of - self.samples) / max(self.of - 1, 1)
        return float(0.5 * np.sqrt(left / self.samples))

    def __str__(self) -> str:
        return (
            f"first guess on {self.samples} of {self.of} samples (distances to "
            f"± {100 * self.error:.2f} %), {100 * self.moved:.2g} % moved in the last round"
        )


@final
@dataclass(frozen=True, eq=False)
class Clusters:
    """Pathways found in one layer; see `discover`. K pathways, N samples, R runs.

    `centroid` `(K, N)` is how often its members are on; `pattern` `(K, N)` the gates made of it,
    rounded or not; `share` `(K,)` the part of all activity samples (by number or by weight) that
    belong to it; `mismatch` `(K,)` on how many samples a member differs from the rounded centroid,
    on average; `member` `(R, size)` the pathway of every neuron of every run. `sampling` says how
    good the clusters are where there were too many patterns to cluster them at once, else None.

    ```python
    >>> import neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 32, 1))
    >>> many = nr.train_ensemble(relu, data, key=0, seeds=2, scale=1e-4, learning_rate=0.1,
    ...                          steps=300, record_every=20, record={"weights": True})
    >>> layer = nr.reln.discover(many, data, pathways=4).layers["h"]
    >>> len(layer), layer.member.shape, round(float(layer.share.sum()), 12), layer.sampling
    (4, (2, 32), 1.0, None)

    ```
    """

    centroid: Float[np.ndarray, "K N"]
    pattern: Float[np.ndarray, "K N"]
    share: Float[np.ndarray, " K"]
    mismatch: Float[np.ndarray, " K"]
    member: Int[np.ndarray, "R size"]
    sampling: Sampling | None = None

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
    """The activity of every class of hidden nodes in all runs, each run looked at once.

    Nodes that share weights, such as the time steps of a recurrent network, have the same neurons:
    a pattern is then over samples and nodes, those of each node side by side, and a neuron counts
    by its mean over nodes.
    """
    given = [None] * len(runs) if gates is None else gates
    seen = [_seen(run, data, boundary, some) for run, some in zip(runs, given, strict=True)]
    found = {}
    for first, nodes in hidden_classes(network_of(runs[0]).arch).items():
        rows = [_side_by_side([each[node] for node in nodes], data.n_samples) for each in seen]
        found[first] = LayerActivity(*map(np.stack, zip(*rows, strict=True)))
    return found


def hidden_classes(arch: Architecture) -> dict[str, list[str]]:
    """The hidden nodes of every class, by the first of them."""
    found: dict[str, list[str]] = {}
    for node in arch.hidden:
        found.setdefault(arch.class_of[node], []).append(node)
    return {nodes[0]: nodes for nodes in found.values()}


def _side_by_side(
    each: Sequence[tuple[np.ndarray, Float[np.ndarray, "T size"]]], samples: int
) -> tuple[np.ndarray, Float[np.ndarray, "T size"]]:
    """Gates of neurons at several nodes, those of each node after those before it."""
    if len(each) == 1:
        return each[0]
    bits = each[0][0].dtype == np.uint8
    parts = [unpacked(gates, samples) if bits else gates for gates, _ in each]
    joined = np.concatenate(parts, axis=-1)
    gates = np.packbits(joined, axis=-1) if bits else joined
    return gates, np.mean([votes for _, votes in each], axis=0)


@final
@dataclass(frozen=True, eq=False)
class ActivitySamples:
    """All activity samples of one layer, how much each counts, and which are the same.

    For M = R T size of them: `gates` `(M, B)`, bits or fractions as in `LayerActivity`, `votes`
    `(M,)`, and `which` `(R, T, size)`: the number of its pattern among the U different ones, whose
    first places are `first` `(U,)`. `importance` `(N,)` is the weight of every sample of the data
    as a part of the largest, at each of the `nodes` of a class in turn. Patterns that differ only
    where it is 0 count as one.
    """

    gates: UInt8[np.ndarray, "M B"] | Float[np.ndarray, "M B"]
    votes: Float[np.ndarray, " M"]
    first: Int[np.ndarray, " U"]
    which: Int[np.ndarray, "R T size"]
    importance: Float[np.ndarray, " N"]

    @staticmethod
    def of(layer: LayerActivity, data: Dataset, weighted: bool, nodes: int = 1) -> ActivitySamples:
        weights = np.tile(np.asarray(data.probability, np.float64), nodes)
        importance = weights / weights.max()
        gates, place = layer.gates.reshape(-1, layer.gates.shape[-1]), layer.votes.shape
        votes = layer.votes.ravel() if weighted and layer.votes.any() else np.ones(len(gates))
        counts, counted = importance > 0, gates
        if gates.dtype != np.uint8:
            counted = np.where(counts, np.round(gates, 3), 0.0) + 0.0  # equal to 3 digits; no −0
        elif not counts.all():
            counted = gates & np.packbits(counts)
        first, which = different(counted)
        return ActivitySamples(gates, votes, first, which.reshape(place), importance)

    @property
    def weight(self) -> Float[np.ndarray, " U"]:
        """How much every different pattern counts."""
        return np.bincount(self.which.ravel(), weights=self.votes)

    def points(
        self, which: Int[np.ndarray, " V"] | slice, columns: Int[np.ndarray, " C"]
    ) -> Float[np.ndarray, "V C"]:
        """Some of the different patterns on some samples, times √importance."""
        root = np.sqrt(self.importance[columns])
        chosen = self.first[which]
        found = np.empty((len(chosen), len(columns)))
        for rows in blocks(len(chosen), len(self.importance)):
            np.multiply(self.on(chosen[rows])[:, columns], root, out=found[rows])
        return found

    def means(self, label: Int[np.ndarray, " U"], count: int) -> Float[np.ndarray, "K N"]:
        """How often the members of every cluster are on, on every sample."""
        each = label[self.which.ravel()]
        total = np.bincount(each, weights=self.votes, minlength=count)
        found = np.zeros((count, len(self.importance)))
        for rows in blocks(len(each), len(self.importance)):
            parts = np.eye(count)[:, each[rows]] * self.votes[rows]
            found += parts @ self.on(rows)
        return np.clip(found / np.where(total > 0, total, 1.0)[:, None], 0.0, 1.0)  # rounding

    def nearest(self, centroid: Float[np.ndarray, "K N"]) -> Int[np.ndarray, " U"]:
        """The nearest centroid of every different pattern, on all samples that count."""
        scaled = centroid * self.importance
        far = (scaled * centroid).sum(axis=1)  # ‖c‖² − 2 c·x; ‖x‖² is the same for all centroids
        found = np.empty(len(self.first), int)
        for rows in blocks(len(found), len(self.importance)):
            on = self.on(self.first[rows])
            found[rows] = (far - 2 * (on @ scaled.T)).argmin(axis=1)
        return found

    def on(self, rows: Int[np.ndarray, " V"] | slice) -> Float[np.ndarray, "V N"]:
        """How open the gates of some activity samples are, one number for each sample of data."""
        some = self.gates[rows]
        if some.dtype == np.uint8:
            some = unpacked(some, len(self.importance))
        return some.astype(np.float64)


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
        return {n: (bits, found.counted(n, 0.0)) for n, bits in found.packed.bits.items()}
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
        seen[node] = packed(on), np.full((moments, size), 1 / size)
    return seen


def clustered(
    samples: ActivitySamples, count: int, rounded: bool, leak: float, seed: int, nodes: int = 1
) -> list[Clusters]:
    """K-means on the activity samples of a layer, and the pathway of every neuron.

    One set of clusters for each of the `nodes` of a class: the same neurons, and their part of the
    patterns.
    """
    centroid, label, sampling = _means(samples, count, seed)
    counts = samples.importance > 0
    on = centroid > 0.5
    order = np.lexsort(on.T[::-1])
    on, label = on[order], np.argsort(order)[label]
    if rounded:
        on, same = np.unique(on, axis=0, return_inverse=True)
        label = same.ravel()[label]
    k = len(on)
    weight = np.bincount(label, weights=samples.weight, minlength=k)
    gates = np.zeros((k, len(counts)), bool)
    gates[:, counts] = on
    votes = (np.eye(k)[label[samples.which]]).sum(axis=1)  # (R, size, K)
    mean = samples.means(label, k)
    slope = np.where(counts, gates, mean > 0.5) if rounded else mean
    found = []
    for at in np.split(np.arange(len(counts)), nodes):
        here = np.isin(np.arange(len(counts)), at)
        apart = _apart(samples, gates, counts & here, label)
        off = np.bincount(label, weights=samples.weight * apart, minlength=k)
        one = Clusters(
            centroid=mean[:, at],
            pattern=leak + (1 - leak) * slope[:, at],
            share=weight / weight.sum(),
            mismatch=off / np.where(weight > 0, weight, 1.0),
            member=votes.argmax(axis=2),
            sampling=sampling,
        )
        found.append(one)
    return found


def _apart(
    samples: ActivitySamples,
    gates: Bool[np.ndarray, "K N"],
    counts: Bool[np.ndarray, " N"],
    label: Int[np.ndarray, " U"],
) -> Int[np.ndarray, " U"]:
    """On how many samples that count every different pattern differs from its gates."""
    found = np.empty(len(label), int)
    for rows in blocks(len(label), len(counts)):
        differs = (samples.on(samples.first[rows]) > 0.5) != gates[label[rows]]
        found[rows] = (differs & counts).sum(axis=1)
    return found


def _means(
    samples: ActivitySamples, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Sampling | None]:
    """The centroids on samples that count, and the nearest of them for every different pattern.

    Distances are weighted by the sample weights of the data, as if a sample of weight 2 were two.
    """
    counts = np.flatnonzero(samples.importance)
    different = len(samples.first)
    if different <= count:
        return samples.on(samples.first)[:, counts], np.arange(different), None
    if different * len(counts) > WHOLE:
        return _sampled_means(samples, counts, count, seed)
    from sklearn.cluster import KMeans

    means = KMeans(count, n_init=RESTARTS, random_state=seed)  # type: ignore[arg-type]
    means = means.fit(samples.points(slice(None), counts), sample_weight=samples.weight)
    root = np.sqrt(samples.importance[counts])
    return np.asarray(means.cluster_centers_) / root, np.asarray(means.labels_), None


def _sampled_means(
    samples: ActivitySamples, counts: Int[np.ndarray, " C"], count: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Sampling]:
    """The same for many patterns: mini-batches on drawn samples, then rounds on all of them.

    As many samples are drawn as make `FIRST` numbers; where these are fewer than `FEWEST`, patterns
    are drawn too.
    """
    from sklearn.cluster import MiniBatchKMeans

    random = np.random.default_rng(seed)
    different = len(samples.first)
    drawn = min(max(FIRST // different, FEWEST), len(counts))
    few = np.sort(random.choice(counts, drawn, replace=False))
    rows = min(FIRST // drawn, different)
    some = np.sort(random.choice(different, rows, replace=False))
    weight = samples.weight
    with progress(ROUNDS + 1, "clustering", "rounds") as advance:
        means = MiniBatchKMeans(count, n_init=RESTARTS, random_state=seed)  # type: ignore[arg-type]
        means = means.fit(samples.points(some, few), sample_weight=weight[some])
        label = np.zeros(different, int)
        for part in blocks(different, drawn):
            label[part] = means.predict(samples.points(part, few))
        advance(1)
        centroid, moved = samples.means(label, count), 1.0
        for _ in range(ROUNDS):
            before, label = label, samples.nearest(centroid)
            moved = float(weight[label != before].sum() / weight.sum())
            if moved == 0:
                break
            used = np.bincount(label, minlength=count) > 0
            centroid = np.where(used[:, None], samples.means(label, count), centroid)
            advance(1)
    return centroid[:, counts], label, Sampling(drawn, len(counts), moved)


def seed_of(key: Key) -> int:
    """The seed of K-means for a key: an integer itself, or one drawn from a key of JAX."""
    rng = generator(key)  # checks the key
    return int(key) if isinstance(key, int) else int(rng.integers(2**32))
