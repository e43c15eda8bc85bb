"""The stages in which the routing task of NRR Fig. 4 is learned."""

from __future__ import annotations

import numpy as np

MODES = 4
"""The number of modes: one per item."""


def stages(targets: np.ndarray) -> np.ndarray:
    """The shares of the initial loss between the learning of one mode and of the next.

    They are ‖Y‖² minus the squares of the singular values learned, over ‖Y‖²; equal ones are
    learned together. For NRR Fig. 4c: 244, 59, 18, 0, over 244.
    """
    s = np.linalg.svd(targets, compute_uv=False)
    left = np.concatenate([[1.0], 1 - np.cumsum(s**2) / (s**2).sum()])
    apart = np.concatenate([[True], np.abs(np.diff(s)) > 1e-9 * s[0], [True]])
    return np.abs(left[apart])
