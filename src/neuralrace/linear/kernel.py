"""The tangent kernel of a two-edge linear network, from its two similarity matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float


def tangent_kernel(
    input_similarity: Any, output_similarity: Any, x: Any
) -> Float[np.ndarray, "all all"]:
    """The tangent kernel Σ_w (∂f/∂w)(∂f/∂w)ᵀ of f(x) = W₂W₁x on samples `x`.

    K[(n, i), (m, j)] = δ_ij x_nᵀ W₁ᵀW₁ x_m + (W₂W₂ᵀ)_ij x_n·x_m for samples n, m and outputs i, j.

    **Arguments:** `input_similarity` = W₁ᵀW₁ (inputs, inputs) and `output_similarity` = W₂W₂ᵀ
    (outputs, outputs), such as `lambda_balanced` returns at each time; `x` (N, inputs).

    **Returns:** shape (N · outputs, N · outputs), all outputs of a sample next to each other.

    ```python
    >>> import neuralrace as nr
    >>> nr.linear.tangent_kernel([[4.0]], [[9.0]], [[1.0], [2.0]])
    array([[13., 26.],
           [26., 52.]])

    ```
    """
    seen = np.asarray(x, np.float64)
    inner = seen @ np.asarray(input_similarity, np.float64) @ seen.T
    outer = np.asarray(output_similarity, np.float64)
    return np.kron(inner, np.eye(len(outer))) + np.kron(seen @ seen.T, outer)


def kernel_distances(
    start: tuple[np.ndarray, np.ndarray],
    later: tuple[np.ndarray, np.ndarray],
    x: np.ndarray,
) -> Float[np.ndarray, " T"]:
    """1 − ⟨K₀, K⟩ / (‖K₀‖ ‖K‖) over time, from the similarities, without forming a kernel.

    The distance of Fort et al. (2020): 0 for a kernel that only changes its size, at most 1.
    """
    gram, second = x @ x.T, x.T @ x
    moment = x.T @ gram @ x
    square = float((gram**2).sum())

    def inner(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> Any:
        """⟨K_a, K_b⟩ of K = XAXᵀ ⊗ I + XXᵀ ⊗ B, term by term."""
        (A, B), (C, D) = a, b
        return (
            B.shape[-1] * _dot(A @ second, (C @ second).swapaxes(-1, -2))
            + _dot(A, moment) * np.trace(D, axis1=-2, axis2=-1)
            + _dot(C, moment) * np.trace(B, axis1=-2, axis2=-1)
            + _dot(B, D) * square
        )

    norms = np.sqrt(inner(start, start) * inner(later, later))
    cosine = np.divide(inner(start, later), norms, out=np.ones_like(norms), where=norms > 0)
    return np.maximum(1 - cosine, 0.0)


def _dot(a: np.ndarray, b: np.ndarray) -> Any:
    return (a * b).sum(axis=(-2, -1))
