"""Activity samples of one layer, and the pathways that K-means finds among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

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
@dataclass(frozen=True)
class ActivitySamples:
    """The different activity samples of one layer, how much each counts, and whose they are.

    `pattern` `(U, N)`, `weight` `(U,)`, and `which` `(R, T, size)`: the pattern of each neuron.
    """

    pattern: Bool[np.ndarray, "U N"]
    weight: Float[np.ndarray, " U"]
    which: Int[np.ndarray, "R T size"]

    @staticmethod
    def of(
        runs: Sequence[Trajectory], data: Dataset, node: str, weighted: bool, boundary: float
    ) -> ActivitySamples:
        seen = [_seen(run, data, node, boundary) for run in runs]
        on = np.stack([each[0] for each in seen])  # (R, T, N, size)
        flat = np.moveaxis(on, 2, -1).reshape(-1, on.shape[2])
        votes = np.stack([each[1] for each in seen]) if weighted else np.ones(on[:, :, 0].shape)
        _, first, which = np.unique(
            np.packbits(flat, axis=1), axis=0, return_index=True, return_inverse=True
        )
        weight = np.bincount(which.ravel(), weights=votes.ravel())
        return ActivitySamples(flat[first], weight, which.reshape(on[:, :, 0].shape))


def _seen(
    run: Trajectory, data: Dataset, node: str, boundary: float
) -> tuple[Bool[np.ndarray, "T N size"], Float[np.ndarray, "T size"]]:
    """Which neurons of a node are on, `(T, N, size)`, and how much each counts, `(T, size)`."""
    if isinstance(run.net, ReLUNetwork):
        found = activity(run, data, boundary=boundary)
        return found.on[node], found.counted(node, 0.0)
    gate = np.asarray(data.gates.get(node, np.zeros(0)))
    size = network_of(run).arch.sizes[node]
    if gate.shape != (data.n_samples, size) or not np.isin(gate, (0, 1)).all():
        raise NeuralRaceError(
            "activity is found in ReLU networks, or in gates of zero and one for every neuron",
            got=f"a run of {type(run.net).__name__}, gates of shape {gate.shape} at {node!r}",
            wanted=f"a run of a ReLUNetwork, or gates of shape {(data.n_samples, size)}",
            fix="train a nr.ReLUNetwork; a gated network's pathways are known already",
        )
    moments = len(run.time)
    return np.broadcast_to(gate > 0, (moments, *gate.shape)), np.full((moments, size), 1 / size)


def clustered(
    samples: ActivitySamples, count: int, rounded: bool, leak: float, seed: int
) -> Clusters:
    """K-means on the activity samples of a layer, and the pathway of every neuron."""
    centroid, label = _means(samples, count, seed)
    on = centroid > 0.5
    order = np.lexsort(on.T[::-1])
    centroid, on, label = centroid[order], on[order], np.argsort(order)[label]
    if rounded:
        on, same = np.unique(on, axis=0, return_inverse=True)
        label = same.ravel()[label]
    k = len(on)
    weight = np.bincount(label, weights=samples.weight, minlength=k)
    rows = np.eye(k)[label].T * samples.weight  # (K, U)
    total = np.where(weight > 0, weight, 1.0)
    apart = (samples.pattern != on[label]).sum(axis=1)
    votes = (np.eye(k)[label[samples.which]]).sum(axis=1)  # (R, size, K)
    mean = rows @ samples.pattern / total[:, None]
    slope = np.where(on, 1.0, 0.0) if rounded else mean
    return Clusters(
        centroid=mean,
        pattern=leak + (1 - leak) * slope,
        share=weight / weight.sum(),
        mismatch=rows @ apart / total,
        member=votes.argmax(axis=2),
    )


def _means(samples: ActivitySamples, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The centroids, and the nearest of them for every different pattern."""
    points = samples.pattern.astype(np.float64)
    if len(points) <= count:
        return points, np.arange(len(points))
    from sklearn.cluster import KMeans

    means = KMeans(count, n_init=RESTARTS, random_state=seed)  # type: ignore[arg-type]
    means = means.fit(points, sample_weight=samples.weight)
    return np.asarray(means.cluster_centers_), np.asarray(means.labels_)


def seed_of(key: Key) -> int:
    """The seed of K-means for a key: an integer itself, or one drawn from a key of JAX."""
    rng = generator(key)  # checks the key
    return int(key) if isinstance(key, int) else int(rng.integers(2**32))
