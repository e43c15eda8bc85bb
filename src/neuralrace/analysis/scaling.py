"""Multidimensional scaling of representations, as a picture that moves continuously."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.analysis.checks import finite_array, ratio
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.types import ArrayLike


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


def mds(
    points: ArrayLike | None = None,
    *,
    distances: ArrayLike | None = None,
    dimensions: int = 2,
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
    dimensions = whole_number("dimensions", dimensions, fix="2 for a picture")
    if (points is None) == (distances is None):
        raise NeuralRaceError(
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
    if d.shape[-1] != d.shape[-2] or (d < 0).any() or not np.allclose(d, np.swapaxes(d, -1, -2)):
        raise NeuralRaceError(
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
        if target.shape != last.shape:
            raise NeuralRaceError(
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
