"""Representations: hidden values, their similarity, and their scaling in a few dimensions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import jax
import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.checks import one_of, real_array
from neuralrace.dataset import Dataset, Sampled, check_moments
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.gdln import Network
from neuralrace.tolerances import LARGEST
from neuralrace.types import ArrayLike, Count, WeightsLike
from neuralrace.weights import checked_weights


@door
def hidden(
    net: Network, weights: WeightsLike, data: Sampled, node: str
) -> Float[np.ndarray, "*runs N size"]:
    """The values of one node on every sample, for one set of weights or for those of many runs.

    **Arguments:** `weights[edge]` of shape `(…, |t|, |s|)`: one network's, a run's, an ensemble's.
    `data` may differ from the data that the network was trained on.

    **Returns:** an array of shape `(…, N, size)`, computed in float64.

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 1))
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> run = nr.train(net, net.init(jax.random.key(0)), data, learning_rate=0.01, steps=5,
    ...                record={"weights": True})
    >>> nr.analysis.hidden(net, run.values["weights"], data, "h").shape
    (6, 2, 8)

    ```
    """
    one_of("node", node, net.arch.sizes, "net.arch.hidden lists the hidden nodes")
    return over_runs(_Hidden(node), net, weights, data)


def over_runs(
    measure: Callable[..., Any], net: Network, weights: WeightsLike, data: Dataset
) -> Float[np.ndarray, ...]:
    """`measure(net, weights, data)` for every set of weights, in float64, with leading axes kept.

    `measure` is a key of the compilation cache: one that compares equal is not compiled again.
    """
    check_moments(data)
    with jax.enable_x64(True):
        lead, stacked = weights_of_runs(net.arch, weights)
        found = np.asarray(_over_runs(measure, net, stacked, data))
    return found.reshape((*lead, *found.shape[1:]))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _over_runs(
    measure: Callable[..., Any], net: Network, weights: Mapping[str, Any], data: Dataset
) -> jax.Array:
    return jax.lax.map(lambda w: measure(net, w, data), weights, batch_size=32)  # bounds the memory


class _Hidden(str):
    """A measure that returns the values of one node."""

    __slots__ = ()

    def __call__(self, net: Network, weights: Mapping[str, jax.Array], data: Dataset) -> jax.Array:
        return net.responses(weights, data)[str(self)]


Kind: TypeAlias = Literal["inner", "cosine", "correlation", "distance"]
"""The kinds of similarity."""


@door
def similarity(hidden: ArrayLike, kind: Kind = "inner") -> Float[np.ndarray, "*runs N N"]:
    """How alike the hidden values h of a layer are on any two samples n and m (NRR §4, Fig. 4g).

    **Arguments:** `hidden` of shape `(…, N, size)`, one row per sample, with any leading axes
    (time). `kind`: `"inner"` is h_n · h_m, as in NRR ("the dot product between the neural activity
    in the first hidden layer"); `"cosine"` divides it by both norms; `"correlation"` first
    subtracts each sample's mean over neurons; `"distance"` is ‖h_n − h_m‖, for `mds`.

    **Returns:** shape `(…, N, N)`. The cosine with a sample without activity is NaN, and so is the
    correlation with one of constant activity.

    ```python
    >>> from neuralrace import analysis
    >>> analysis.similarity([[3.0, 0.0], [3.0, 4.0]], kind="cosine")
    array([[1. , 0.6],
           [0.6, 1. ]])

    ```
    """
    h = finite_array("hidden", hidden, "(…, N, size)")
    if kind == "distance":
        return _distances(h)
    if kind == "correlation":
        constant = np.ptp(h, axis=-1, keepdims=True) == 0
        h = np.where(constant, 0.0, h - h.mean(axis=-1, keepdims=True))
    if kind != "inner":
        h = ratio(h, np.linalg.norm(h, axis=-1, keepdims=True))
    return h @ np.swapaxes(h, -1, -2)


def _distances(h: Float[np.ndarray, "*runs N size"]) -> Float[np.ndarray, "*runs N N"]:
    """Distances from the differences themselves, which is accurate for close samples."""
    from scipy.spatial.distance import cdist

    found = [cdist(frame, frame) for frame in h.reshape(-1, *h.shape[-2:])]
    return np.asarray(found).reshape(*h.shape[:-1], h.shape[-2])


@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """Positions of samples in a few dimensions; see `mds`.

    `positions` `(…, T, N, dimensions)`, and `share` `(…, T)`, the share of the squared distances
    that they preserve; it is 1 if the picture is exact.

    ```python
    >>> from neuralrace import analysis
    >>> found = analysis.mds([[0.0, 5.0], [0.0, 5.0], [3.0, 5.0]], dimensions=1)
    >>> found.positions.round(6), float(found.share)
    (array([[-1.],
           [-1.],
           [ 2.]]), 1.0)

    ```
    """

    positions: Float[np.ndarray, "*runs N dimensions"]
    share: Float[np.ndarray, "*runs"]


@door
def mds(
    points: ArrayLike | None = None,
    *,
    distances: ArrayLike | None = None,
    dimensions: Count = 2,
    reference: ArrayLike | None = None,
) -> Scaling:
    """Classical multidimensional scaling, with each frame rotated to match the next one in time.

    With D² the squared distances and J = 1 − 11ᵀ/N, the positions are the leading eigenvectors of
    −½ J D² J times the roots of their eigenvalues (Torgerson); for `points` these are their
    principal components. Each frame may be rotated or reflected freely. The last frame lies in its
    principal axes; backwards in time, each frame is brought as near as possible to the one after it
    (orthogonal Procrustes problem), so that the picture moves as little as possible. It starts from
    the end because early frames, near zero, have no well-defined axes.

    **Arguments:** either `points` `(…, T, N, size)`, the hidden values of a layer, or `distances`
    `(…, T, N, N)`; a single frame without T is also accepted. `reference` `(N, dimensions)`: other
    positions of the same samples, which the last frame is rotated to match, to compare two
    networks.

    **Returns:** a `Scaling`. Distances that no set of points can have (negative eigenvalues) lower
    its `share`.

    ```python
    >>> import numpy as np
    >>> from neuralrace import analysis
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 2.0]])
    >>> found = analysis.mds(np.linspace(0.1, 1, 10)[:, None, None] * square)
    >>> found.positions.shape, bool(np.allclose(found.positions[0], 0.1 * found.positions[-1]))
    ((10, 4, 2), True)

    ```
    """
    require(
        (points is None) != (distances is None),
        "mds takes points or distances",
        got="neither" if points is None else "both",
        wanted="one of them",
        fix="mds(hidden), or mds(distances=analysis.similarity(hidden, 'distance'))",
    )
    if points is None:
        value, vector = _from_distances(distances)  # type: ignore[arg-type]
    else:
        h = finite_array("points", points, "(…, N, size)")
        u, s, _ = np.linalg.svd(h - h.mean(axis=-2, keepdims=True), full_matrices=False)
        value, vector = s**2, u
    kept = np.maximum(value[..., :dimensions], 0.0)
    positions = vector[..., :dimensions] * np.sqrt(kept)[..., None, :]
    room = dimensions - positions.shape[-1]
    positions = np.pad(positions, [(0, 0)] * (positions.ndim - 1) + [(0, max(room, 0))])
    share = ratio(kept.sum(axis=-1), np.abs(value).sum(axis=-1))
    frames = (
        positions.reshape(-1, *positions.shape[-3:])
        if positions.ndim > 2
        else positions[None, None]
    )
    turned = np.stack([_continuous(run, reference) for run in frames])
    return Scaling(turned.reshape(positions.shape), share)


def _from_distances(distances: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, largest first, and eigenvectors of −½ J D² J."""
    d = finite_array("distances", distances, "(…, N, N)")
    require(
        not (
            d.shape[-1] != d.shape[-2]
            or (d < 0).any()
            or (not np.allclose(d, np.swapaxes(d, -1, -2)))
        ),
        "these are not distances",
        got=f"shape {d.shape}, least {d.min():.3g}",
        wanted="symmetric matrices (…, N, N) without negative entries",
        fix="make them with analysis.similarity(hidden, kind='distance')",
    )
    square = d**2
    for axis in (-1, -2):
        square = square - square.mean(axis=axis, keepdims=True)
    value, vector = np.linalg.eigh(-square / 2)
    return value[..., ::-1], vector[..., ::-1]


def _continuous(
    frames: Float[np.ndarray, "T N dimensions"], reference: ArrayLike | None
) -> Float[np.ndarray, "T N dimensions"]:
    """The frames, each rotated to match the one after it, the last to match the reference."""
    turned = frames.copy()
    last = frames[-1]
    if reference is None:
        largest = last[np.abs(last).argmax(axis=0), np.arange(last.shape[1])]
        turned[-1] = last * np.where(largest < 0, -1.0, 1.0)
    else:
        target = finite_array("reference", reference, "(N, dimensions)")
        require(
            target.shape == last.shape,
            "reference does not fit the positions",
            got=f"shape {target.shape}",
            wanted=f"shape {last.shape} = (N, dimensions)",
            fix="pass one frame of other positions: other.positions[-1]",
        )
        turned[-1] = _turned(last, target - target.mean(axis=0))
    for t in reversed(range(len(frames) - 1)):
        turned[t] = _turned(frames[t], turned[t + 1])
    return turned


def _turned(points: np.ndarray, target: np.ndarray) -> np.ndarray:
    """`points` after the rotation or reflection that brings them nearest to `target`."""
    from scipy.linalg import orthogonal_procrustes

    return points @ orthogonal_procrustes(points, target)[0]


def finite_array(what: str, value: ArrayLike, shape: str) -> Float[np.ndarray, ...]:
    """`value` in float64, with at least the axes of `shape`, "(…, N, size)", and all finite."""
    wanted = f"an array of shape {shape}"
    fix = "pass one entry of a dictionary: hidden['h'], weights['W1']"
    array = real_array(what, value, wanted=wanted, fix=fix)
    least = len(shape.split(",")) - ("…" in shape)
    require(
        not (array.ndim < least or 0 in array.shape),
        f"{what} has the wrong shape",
        got=f"shape {array.shape}",
        wanted=f"shape {shape}, no axis empty",
        fix="leading axes (ensemble, time) come first; keep axes of length one",
    )
    unknown, largest = int((~np.isfinite(array)).sum()), np.abs(array).max()
    require(
        not unknown,
        f"{what} holds NaN or infinity",
        got=f"{unknown} such values of {array.size}",
        wanted="finite numbers",
        fix="leave out the runs that diverged, or train them with a smaller learning rate",
    )
    require(
        largest <= LARGEST,
        f"{what} is so large that its squares would overflow",
        got=f"numbers up to {largest:.3g}",
        wanted=f"numbers up to {LARGEST:.0e}",
        fix="divide by a constant, or leave out the runs that diverged",
    )
    return array


def weights_of_runs(
    arch: Architecture, weights: WeightsLike
) -> tuple[tuple[int, ...], dict[str, Float[np.ndarray, "runs _ _"]]]:
    """The leading axes of the weights, and the weights with these axes merged into one."""
    named = dict(weights) if isinstance(weights, Mapping) else {}
    if set(named) != set(arch.matrices):
        checked_weights(arch, named)  # says which edge is missing or unknown
    arrays = {
        edge: finite_array(f"the weights of edge {edge!r}", w, "(…, |t|, |s|)")
        for edge, w in named.items()
    }
    leads = {edge: w.shape[:-2] for edge, w in arrays.items()}
    lead = next(iter(leads.values()))
    for edge, other in leads.items():
        require(
            other == lead,
            f"the weights of edge {edge!r} have other leading axes than the first edge",
            got=f"{other} and {lead}",
            wanted="the same leading axes for every edge",
            fix="pass run.values['weights'] or run.final as it is",
        )
    checked_weights(arch, {edge: w[(0,) * len(lead)] for edge, w in arrays.items()})
    return lead, {
        edge: arrays[edge].reshape(-1, *arrays[edge].shape[-2:]) for edge in arch.matrices
    }


def ratio(part: ArrayLike, whole: ArrayLike) -> Float[np.ndarray, ...]:
    """`part / whole`, NaN where the whole is zero."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole != 0)
