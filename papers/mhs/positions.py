"""Relative positions of samples in a hidden layer, and how far those of two layers differ."""

from __future__ import annotations

import numpy as np


def positions(kernel: np.ndarray) -> np.ndarray:
    """The positions (…, N, N) of N samples in all dimensions, from their inner products."""
    centred = kernel - kernel.mean(axis=-1, keepdims=True)
    centred = centred - centred.mean(axis=-2, keepdims=True)
    value, vector = np.linalg.eigh(centred)
    return vector * np.sqrt(np.maximum(value, 0.0))[..., None, :]


def disparity(first: np.ndarray, second: np.ndarray) -> float:
    """1 − (Σσ)² of the centred positions (N, d) of unit size, σ the singular values of AᵀB."""
    units = []
    for places in (first, second):
        centred = places - places.mean(axis=0)
        units.append(centred / max(np.linalg.norm(centred), 1e-300))
    return float(1 - np.linalg.svd(units[0].T @ units[1], compute_uv=False).sum() ** 2)
