"""In-context linear regression for linear attention, which is a gated linear network."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.tolerances import DEPENDENT, EQUAL
from neuralrace.types import ArrayLike, Count, Key

FIX = "for example covariance=np.diag([0.4, 0.3, 0.2, 0.1])"


@door
def in_context_regression(
    covariance: ArrayLike,
    length: Count,
    *,
    heads: Count = 1,
    samples: int | None = None,
    key: Key = 0,
) -> Dataset:
    """Report wᵀx_q of a query, from a context of examples of a linear map w that is always another.

    A sequence shows `length` = N examples (x_n, y_n = wᵀx_n) and a query x_q; x_n and x_q are drawn
    from N(0, Λ), w from N(0, I). A linear attention layer sees of the context only
    β = N⁻¹ Σ_n y_n x_n, and of the query its features, which are gates: real numbers.

    By default a population: exact moments, ⟨β βᵀ⟩ = (1 + 1/N) Λ² + (tr Λ/N) Λ and ⟨w βᵀ⟩ = Λ, for
    each of D queries √(D λ_d) u_d, u_d an eigenvector of Λ, with which the loss is that of all.

    **Arguments:** `covariance`, Λ, D × D; `length`, N; `heads`, as many as those of
    `Architecture.linear_attention`; `samples` draws that many sequences by `key` instead.

    **Returns:** `x["beta"]`, `y["y"]`, and gates `q{i}_{d}` for feature d of the query in head i.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.tasks.in_context_regression(np.diag([2.0, 1.0]), length=10, heads=3)
    >>> data
    Dataset(population in 6 rows; x: beta 2; y: y 1; gates: q1_1, q1_2, q2_1, q2_2, q3_1, q3_2; \
sample weights; labels: part (query1, query2))
    >>> nr.reduce(nr.Architecture.linear_attention(2, heads=3), data).is_exact
    True

    ```
    """
    size, roots = _roots(real_array("covariance", covariance, fix=FIX))
    if samples is not None:
        rng, dim = generator(key), len(size)
        map_, query = rng.normal(size=(samples, dim)), rng.normal(size=(samples, dim)) @ roots
        context = rng.normal(size=(samples, length, dim)) @ roots
        beta = np.einsum("sn,snd->sd", np.einsum("snd,sd->sn", context, map_), context) / length
        y = (map_ * query).sum(axis=1, keepdims=True)
        return Dataset({"beta": beta}, {"y": y}, _gates(query.T, heads))
    whole = roots.T @ roots
    seen = (1 + 1 / length) * whole @ whole + size.sum() / length * whole
    queries = np.sqrt((size > 0).sum()) * roots[size > 0]
    parts = {}
    for i, query in enumerate(queries, 1):
        yx, yy = {("y", "beta"): (query @ whole)[None]}, {"y": [[query @ query]]}
        data = Dataset.from_moments({"beta": seen}, yx, yy, _gates(query, heads))
        parts[f"query{i}"] = (1 / len(queries), data)
    return Dataset.mixture(parts)


def _gates(features: np.ndarray, heads: int) -> dict[str, Any]:
    """The features of the query as gates of every head."""
    return {f"q{i}_{d}": x for i in range(1, heads + 1) for d, x in enumerate(features, 1)}


def _roots(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, the largest first, and rows R with RᵀR = Λ: its eigenvectors by their roots."""
    scale = float(np.abs(covariance).max(initial=0.0))
    square = covariance.ndim == 2 and len(set(covariance.shape)) == 1 and 0 < scale < np.inf
    size, turn = np.linalg.eigh(covariance) if square else (np.array([np.nan]), covariance)
    require(
        square
        and np.allclose(covariance, covariance.T, rtol=0, atol=EQUAL * scale)
        and size[0] >= -EQUAL * scale,
        "covariance must be symmetric and positive semidefinite, and not zero",
        got=f"shape {covariance.shape}, the smallest eigenvalue {size[0]:.3g}",
        wanted="the second moments of inputs",
        fix=FIX,
    )
    size = np.where(size > DEPENDENT * scale, size, 0.0)[::-1]
    return size, np.sqrt(size)[:, None] * turn.T[::-1]
