"""λ-balanced two-edge weights, W₂ᵀW₂ − W₁W₁ᵀ = λI: how to make them and how to test for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.gdln import GDLN
from neuralrace.linear.chain import chain_edges, chain_weights, linear_task
from neuralrace.tolerances import LARGEST
from neuralrace.types import ArrayLike, Finite, Key, WeightsLike


@final
@dataclass(frozen=True)
class Balance:
    """The λ of two-edge weights, and how far they are from being λ-balanced; see `balance`.

    ```python
    >>> import neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(1, 1, 1))
    >>> nr.linear.balance(net, {"W1": [[1.0]], "W2": [[2.0]]})
    Balance(lam=3.0, deviation=0.0)

    ```
    """

    lam: float
    deviation: float


@door
def balance(net: GDLN, weights: WeightsLike) -> Balance:
    """The λ of given two-edge weights, and how far W₂ᵀW₂ − W₁W₁ᵀ is from λI.

    Gradient flow conserves W₂ᵀW₂ − W₁W₁ᵀ; `lam` is its mean eigenvalue and `deviation` the largest
    |eigenvalue − λ|, relative to the largest eigenvalue of W₂ᵀW₂ + W₁W₁ᵀ. Small random weights are
    *not* balanced in this sense: their deviation is of order one (see `grown_weights`).

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(4, 3, 5))
    >>> round(nr.linear.balance(net, nr.linear.balanced_weights(net, -0.5)).lam, 12)
    -0.5
    >>> nr.linear.balance(net, net.init(jax.random.key(0))).deviation > 0.1
    True

    ```
    """
    chain_edges(net, 2)
    first, second = chain_weights(net, weights)
    into, out = first @ first.T, second.T @ second
    lam = float(np.trace(out - into) / len(into))
    size = float(np.linalg.eigvalsh(out + into)[-1])
    gap = float(np.abs(np.linalg.eigvalsh(out - into) - lam).max())
    return Balance(lam, gap / size if size > 0 else 0.0)


@door
def balanced_weights(
    net: GDLN,
    lam: Finite,
    *,
    scale: ArrayLike = 0.01,
    key: Key = 0,
    aligned_to: Dataset | None = None,
) -> dict[str, np.ndarray]:
    """Initial weights of a two-edge chain with W₂ᵀW₂ − W₁W₁ᵀ = λI (Dominé et al. 2025).

    W₁ = R B₁ Vᵀ and W₂ = U B₂ Rᵀ with diagonal B₁ and B₂, B₂² − B₁² = λ and B₂B₁ = `scale`. The
    initial map is the same for all λ, which only decides how the layers share it. Hidden directions
    beyond min(inputs, outputs) carry √|λ| in one layer only.

    **Arguments:** `net`, a two-edge chain; `lam`, λ of either sign or zero: λ > 0 needs hidden ≤
    outputs, λ < 0 hidden ≤ inputs; `scale`, the singular values of the initial map W₂W₁, one for
    all or one each, at least 0; `key` draws the random bases U, V and R; with a dataset
    `aligned_to`, U and V are instead the singular vectors of its Σ^yx, largest first.

    **Returns:** `{edge: matrix}` in float64 NumPy.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(4, 3, 5))
    >>> w = nr.linear.balanced_weights(net, 2.0, scale=0.1)
    >>> np.allclose(w["W2"].T @ w["W2"] - w["W1"] @ w["W1"].T, 2 * np.eye(3))
    True

    ```
    """
    edges = chain_edges(net, 2)
    inputs, hidden, outputs = (net.arch.sizes[node] for node in net.arch.order)
    _check_lambda(lam, inputs, hidden, outputs)
    modes = min(inputs, hidden, outputs)
    strengths = np.zeros(hidden)
    strengths[:modes] = _checked_scale(scale, modes)
    rng = generator(key)
    bases = [_rotation(rng, size) for size in (outputs, hidden, inputs)]
    if aligned_to is not None:
        left, _, right = np.linalg.svd(linear_task(net, aligned_to, edges=2).yx)
        bases[0], bases[2] = left, right.T
    # b₂² and b₁² are the roots ±λ/2 + √(λ²/4 + a²); the smaller without cancellation
    larger = np.sqrt(abs(lam) / 2 + np.sqrt(lam**2 / 4 + strengths**2))
    smaller = np.divide(strengths, larger, out=np.zeros(hidden), where=larger > 0)
    into, out = (smaller, larger) if lam >= 0 else (larger, smaller)
    first, second = np.zeros((hidden, inputs)), np.zeros((outputs, hidden))
    np.fill_diagonal(first, into[: min(hidden, inputs)])
    np.fill_diagonal(second, out[: min(hidden, outputs)])
    U, R, V = bases
    return {edges[0]: R @ first @ V.T, edges[1]: U @ second @ R.T}


@door
def aligned_weights(
    net: GDLN, data: Dataset, strength: ArrayLike, *, key: Key = 0
) -> dict[str, np.ndarray]:
    """Balanced weights of a chain of any depth, aligned with the modes of its data.

    W_l = R_l B R_{l−1}ᵀ with R₀ = V and R_D = U the singular vectors of Σ^yx, random orthogonal R
    at the hidden nodes and `strength` on the diagonal of every B. For white inputs, each mode is
    then a chain of D scalars that all start at b₀ = `strength`; `chain_time` gives its learning
    time. Small strengths are an exact version of the talk's small start, and larger ones represent
    its pretrained network. By contrast, `net.init(key, kind="orthogonal")` is not aligned with the
    data.

    **Arguments:** `strength`, one number of at least 0 or one for each of min(sizes) modes, largest
    singular value first. **Returns:** `{edge: matrix}` in float64 NumPy.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 4, 4, 2))
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 2.0])})
    >>> w = nr.linear.aligned_weights(net, data, 0.5)
    >>> (w["W3"] @ w["W2"] @ w["W1"]).round(6) + 0.0
    array([[0.125, 0.   ],
           [0.   , 0.125]])

    ```
    """
    task, edges = linear_task(net, data), chain_edges(net)
    sizes = [net.arch.sizes[node] for node in net.arch.order]
    strengths = _checked_scale(strength, min(sizes))
    rng = generator(key)
    left, _, right = np.linalg.svd(task.yx)
    bases = [right.T, *(_rotation(rng, size) for size in sizes[1:-1]), left]
    found = {}
    for layer, edge in enumerate(edges):
        source, target = (bases[layer + k][:, : min(sizes)] for k in (0, 1))
        found[edge] = (target * strengths) @ source.T
    return found


@door
def grown_weights(net: GDLN, weights: WeightsLike, data: Dataset) -> dict[str, np.ndarray]:
    """The balanced weights that small random ones grow into, for use where λ must be exact.

    From small weights, W₁v + W₂ᵀu grows as e^{st} and W₁v − W₂ᵀu decays, for each pair of singular
    vectors u, v of Σ^yx with value s. If only c = ½(W₁v + W₂ᵀu) is kept, W₁ = C Vᵀ and W₂ = U Cᵀ
    are 0-balanced, so `lambda_balanced` solves their flow exactly. It differs from the flow of
    `weights` by terms that have decayed before anything is visibly learned. The smaller the
    weights, the smaller the difference.

    **Returns:** `{edge: matrix}` in float64 NumPy.

    ```python
    >>> import jax, numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 2))
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 2.0])})
    >>> grown = nr.linear.grown_weights(net, net.init(jax.random.key(0), 1e-6), data)
    >>> nr.linear.balance(net, grown).deviation < 1e-6
    True

    ```
    """
    task = linear_task(net, data, edges=2)
    edges = chain_edges(net, 2)
    first, second = chain_weights(net, weights)
    left, _, right = np.linalg.svd(task.yx, full_matrices=False)
    grown = (first @ right.T + second.T @ left) / 2
    return {edges[0]: grown @ right, edges[1]: left @ grown.T}


def _rotation(rng: np.random.Generator, size: int) -> np.ndarray:
    """A random orthogonal matrix (Haar)."""
    q, r = np.linalg.qr(rng.normal(size=(size, size)))
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def _check_lambda(lam: float, inputs: int, hidden: int, outputs: int) -> None:
    require(
        not abs(lam) > LARGEST,
        "λ is too large to compute with its square",
        got=f"{lam:g}",
        wanted=f"at most {LARGEST:g}",
        fix="such as lam=0.5",
    )
    for sign, end, size in ((">", "outputs", outputs), ("<", "inputs", inputs)):
        require(
            not (hidden > size and (lam > 0 if sign == ">" else lam < 0)),
            f"these sizes do not permit λ = {lam:g}",
            got=f"{inputs} inputs, {hidden} hidden, {outputs} outputs",
            wanted=f"hidden ≤ {end} for λ {sign} 0",
            fix=f"{size} hidden neurons or fewer, {hidden} {end} or more, or λ = 0",
        )


def _checked_scale(scale: object, modes: int) -> np.ndarray:
    wanted = f"one number of at least 0, or {modes} of them"
    values = real_array("scale", scale, wanted=wanted, fix="for example scale=0.01")
    require(
        not (values.shape not in ((), (modes,)) or not (np.isfinite(values) & (values >= 0)).all()),
        "scale holds the singular values of the initial map",
        got=scale,
        wanted=wanted,
        fix="for example scale=0.01",
    )
    return np.broadcast_to(values, modes)
