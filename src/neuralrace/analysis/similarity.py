"""Representational similarity: how alike hidden values are on any two samples."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from neuralrace.analysis.checks import finite_array, ratio
from neuralrace.checks import one_of
from neuralrace.types import ArrayLike

KINDS = ("inner", "cosine", "correlation", "distance")
"""The kinds of similarity."""


def similarity(hidden: ArrayLike, kind: str = "inner") -> Float[np.ndarray, "*runs N N"]:
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
    one_of("kind of similarity", kind, KINDS, "kind='inner' is the one of NRR Fig. 4g")
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
