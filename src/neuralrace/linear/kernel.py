"""How far the tangent kernel of a two-edge linear network travels, from similarities alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def kernel_distances(
    start: tuple[np.ndarray, np.ndarray],
    later: tuple[np.ndarray, np.ndarray],
    x: np.ndarray,
) -> Float[np.ndarray, " T"]:
    """1 − ⟨K₀, K⟩ / (‖K₀‖ ‖K‖) over time, from the similarities, without forming a kernel.

    The kernel of f(x) = W₂W₁x on samples X is K = XAXᵀ ⊗ I + XXᵀ ⊗ B with A = W₁ᵀW₁, B = W₂W₂ᵀ;
    `start` and `later` are (A, B), the later ones over time. As in `analysis.kernel_distance`, it
    is 0 if the kernel only changes its size, at most 1, and NaN if a kernel is zero.
    """
    gram, second = x @ x.T, x.T @ x
    moment = x.T @ gram @ x
    square = float((gram**2).sum())

    def inner(
        a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray | np.floating:
        """⟨K_a, K_b⟩, term by term."""
        (A, B), (C, D) = a, b
        return (
            B.shape[-1] * _dot(A @ second, (C @ second).swapaxes(-1, -2))
            + _dot(A, moment) * np.trace(D, axis1=-2, axis2=-1)
            + _dot(C, moment) * np.trace(B, axis1=-2, axis2=-1)
            + _dot(B, D) * square
        )

    norms = np.sqrt(inner(start, start) * inner(later, later))
    cosine = np.divide(inner(start, later), norms, out=np.full_like(norms, np.nan), where=norms > 0)
    return np.maximum(1 - cosine, 0.0)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray | np.floating:
    return (a * b).sum(axis=(-2, -1))
