"""What one ReLU neuron could do at all: every activity pattern it can have on given inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import DTypeLike

from neuralrace.checks import generator, plain_array, real_array
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.possible.cells import Lines, enumerated, solved, too_many
from neuralrace.tolerances import MARGIN
from neuralrace.types import ArrayLike, Count, Key

LIMIT = 1_000_000
"""How many patterns are enumerated before the attempt is given up."""

MATRIX = 'for a dataset with one input node pass data.x["x"]'
"""How to get the inputs of a neuron."""


@final
@dataclass(frozen=True, eq=False)
class Patterns:
    """Activity patterns of one ReLU neuron, with weights that have them; see `patterns`.

    `on[p, n]` says whether the neuron is on (z > 0) for sample n, and `weights[p]`, of shape
    `(P, d)`, or `(P, d + 1)` with the bias last, has exactly that pattern. `complete` says whether
    these are all there are; `bound` is how many there can be, and `is_exact` whether it is their
    number. Used as an array it is `on`.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> found = nr.reln.patterns([[1.0, 0.0], [0.0, 1.0]])
    >>> len(found), np.asarray(found).shape, found.weights.shape
    (4, (4, 2), (4, 2))
    >>> print(found)
    all 4 patterns of one neuron on 2 inputs

    ```
    """

    on: Bool[np.ndarray, "P N"]
    weights: Float[np.ndarray, "P _"]
    complete: bool
    bound: int
    is_exact: bool

    def __len__(self) -> int:
        return len(self.on)

    def __iter__(self) -> Iterator[Bool[np.ndarray, " N"]]:
        return iter(self.on)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.on, dtype=dtype, copy=copy)

    def __str__(self) -> str:
        many, n = len(self), self.on.shape[1]
        if self.complete:
            return f"all {many} patterns of one neuron on {n} inputs"
        there = "there are" if self.is_exact else "there are at most"
        return f"{many} patterns of one neuron on {n} inputs, a sample: {there} {self.bound:,}"


@door
def patterns(
    X: ArrayLike, bias: bool = False, closed: bool = False, limit: Count = LIMIT
) -> Patterns:
    """Every activity pattern that one ReLU neuron can have on the inputs `X`, exactly.

    A neuron with weights w is on for the samples with w·x > 0. The hyperplanes w·x_n = 0 cut the
    space of weights into cells, and each cell is a pattern. N inputs in general position in d
    dimensions have 2 Σ_{k<d} C(N−1, k) of them (Cover 1965); none of that is assumed here: inputs
    may repeat, oppose each other, vanish, or lie in a subspace. Neither the scales of features and
    samples nor, with a bias, the origin matter: they are taken out first. Inputs that then differ
    in direction by less than 1e-9 count as equal.

    Samples are inserted one at a time. Every cell keeps weights inside it, which settle one side
    of the new sample. Whether the other side is there too is settled by a relaxation, which finds
    weights, or by a linear program, which finds weights or a proof that there are none: a
    positive combination of ± inputs that vanishes (Gordan's theorem). A proof names few samples,
    so that it rules out every other cell with the same signs there, with no program of its own.

    **Arguments:** `X` of shape `(N, d)`, one row per sample; `bias=True` adds an input that is
    always one. `closed=True` also counts the patterns that only weights on the border of a cell
    have, where some w·x_n is exactly zero and the sample is off. The neuron with w = 0 is an
    example. They take up no volume, and are left out by default. `limit`, after how
    many patterns to give up.

    **Returns:** `Patterns`, sorted by pattern, complete.

    **Raises:** `NeuralRaceError` where there are more than `limit`; use `sample_patterns` there.

    ```python
    >>> import neuralrace as nr
    >>> xor = nr.tasks.xor().x["x"]
    >>> len(nr.reln.patterns(xor)), len(nr.reln.patterns(xor, bias=True))
    (4, 14)
    >>> items = nr.tasks.contextual(contexts=3, items=4, joined=True).x["x"]
    >>> len(nr.reln.patterns(items))
    1066

    ```
    """
    lines = Lines.of(_inputs(X), bias, closed)
    bound, is_exact = _bound(X, lines, bias, closed)
    if is_exact and bound > limit:
        raise too_many(f"{bound:,} patterns", bound, is_exact, limit)
    on, weights = enumerated(lines, limit, bound, is_exact)
    on, weights = lines.patterns(on), lines.weights(weights)
    order = np.lexsort(on.T[::-1])
    return Patterns(on[order], weights[order], True, len(on), True)


@door
def sample_patterns(
    X: ArrayLike, count: Count = 1000, key: Key = 0, bias: bool = False, draws: Count = LIMIT
) -> Patterns:
    """Some of the patterns one ReLU neuron can have, where there are too many to list.

    Weights are drawn from a Gaussian, with all features on one scale, which finds wide cells
    first; `key`, a JAX key or an integer, draws them. Drawing ends when `count` different patterns
    are found or `draws` weights were drawn. The result
    says how many patterns there are, or at most are (`bound`), and whether these are all.

    ```python
    >>> import neuralrace as nr
    >>> X = nr.tasks.contextual(contexts=5, joined=True).x["x"]
    >>> print(nr.reln.sample_patterns(X, count=100))
    100 patterns of one neuron on 40 inputs, a sample: there are 117,437,746

    ```
    """
    lines = Lines.of(_inputs(X), bias, False)
    rng = generator(key)
    found: dict[bytes, np.ndarray] = {}
    for low in range(0, draws, 1000):
        weights = rng.normal(size=(min(1000, draws - low), lines.x.shape[1]))
        for pattern, w in zip(weights @ lines.x.T > 0, weights, strict=True):
            found.setdefault(np.packbits(pattern).tobytes(), w)
        if len(found) >= count:
            break
    kept = np.stack(list(found.values())[:count])
    bound, is_exact = _bound(X, lines, bias, False)
    on = lines.patterns(kept @ lines.x.T > 0)
    complete = is_exact and len(kept) == bound
    return Patterns(on, lines.weights(kept), complete, bound, is_exact)


@door
def is_implementable(
    pattern: ArrayLike, X: ArrayLike, bias: bool = False, closed: bool = False
) -> bool:
    """Whether one ReLU neuron can be on for exactly these samples: one linear program.

    `pattern` of shape `(N,)`; the rest as in `patterns`.

    ```python
    >>> import neuralrace as nr
    >>> xor = nr.tasks.xor().x["x"]
    >>> nr.reln.is_implementable([0, 1, 1, 0], xor, bias=True)
    False
    >>> nr.reln.is_implementable([0, 1, 1, 1], xor, bias=True)
    True

    ```
    """
    form = "zeros and ones, one per sample"
    on = plain_array("pattern", pattern, wanted=form, fix="for example [1, 0, 1]")
    x = plain_array("the inputs of a neuron", X, wanted="shape (N, d)", fix=MATRIX)
    if on.ndim > x.ndim:
        raise NeuralRaceError(
            "the pattern comes first, then the inputs",
            got=f"a pattern of shape {on.shape}, inputs of shape {x.shape}",
            wanted="is_implementable(pattern, X)",
            fix="swap the two",
        )
    given = _inputs(X)
    if on.shape != (len(given),) or not np.isin(on, (0, 1)).all():
        raise NeuralRaceError(
            "a pattern says for every sample whether the neuron is on",
            got=f"shape {on.shape}, {on.ravel()[:5].tolist()}",
            wanted=f"shape ({len(given)},), zeros and ones",
            fix="round real-valued gates first: pattern > 0.5",
        )
    on = on.astype(bool)
    lines = Lines.of(given, bias, closed)
    signs = lines.signs(on)
    if not (lines.patterns(signs[None])[0] == on).all():
        return False  # equal inputs that differ, opposite ones that agree, a zero that is on
    return solved(lines.x, signs, lines.off_margin)[0] is not None


@door
def pattern_count(X: ArrayLike, bias: bool = False) -> tuple[int, bool]:
    """How many patterns there are at most, and whether that is their number.

    Items × contexts, one-hot: the number Σ_j (j!)² S(n+1, j+1) S(C+1, j+1), S the Stirling
    numbers of the second kind. Otherwise Cover's 2 Σ_{k<r} C(m−1, k), with r the rank of the
    inputs and m the number of different lines they lie on: an upper bound, reached in general
    position, which is known without a search only for r ≤ 2 or m ≤ r + 1.

    ```python
    >>> import neuralrace as nr
    >>> nr.reln.pattern_count(nr.tasks.contextual(joined=True).x["x"])
    (354106, True)
    >>> nr.reln.pattern_count([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    (6, True)

    ```
    """
    return _bound(X, Lines.of(_inputs(X), bias, False), bias, False)


def _inputs(X: ArrayLike) -> Float[np.ndarray, "N d"]:
    given = real_array("X, the inputs of a neuron,", X, wanted="shape (N, d)", fix=MATRIX)
    if given.ndim != 2 or not given.size or not np.isfinite(given).all():
        raise NeuralRaceError(
            "X, the inputs of a neuron, must be a matrix of finite numbers",
            got=f"shape {given.shape}",
            wanted="shape (N, d), one row per sample",
            fix=MATRIX,
        )
    return given


def _bound(X: ArrayLike, lines: Lines, bias: bool, closed: bool) -> tuple[int, bool]:
    given = _inputs(X)
    grid = _grid(np.hstack([given, np.ones((len(given), 1))]) if bias else given)
    if grid is not None:
        return _lonesum(*grid), True
    count, rank = lines.x.shape
    if not count or closed:
        return 2**count, not count
    cover = 2 * sum(math.comb(count - 1, k) for k in range(rank))
    # Generic: any two lines differ (rank 2), or the one dependency has every input in it.
    generic = rank <= 2 or count == rank
    if count == rank + 1:
        dependency = np.linalg.svd(lines.x.T)[2][-1]
        generic |= bool((np.abs(dependency) > MARGIN).all())
    return cover, generic


def _grid(given: Float[np.ndarray, "N d"]) -> tuple[int, int] | None:
    """(items, contexts) where the inputs are each pair of one-hot vectors once (scaled or not)."""
    hot = given > 0
    for n in range(1, given.shape[1]):
        contexts = given.shape[1] - n
        if len(given) != n * contexts or len(np.unique(hot, axis=0)) != len(given):
            continue
        parts = given[:, :n], given[:, n:]
        if all(((part != 0).sum(axis=1) == 1).all() and np.ptp(part.max(1)) == 0 for part in parts):
            return n, contexts
    return None


def _lonesum(n: int, c: int) -> int:
    """Σ_j (j!)² S(n+1, j+1) S(c+1, j+1): the 0/1 matrices [a_i + b_c > 0], n by c.

    Sorted by size, the a_i and the −b_c form alternating groups; S counts the groups.
    """
    from scipy.special import stirling2

    count = range(min(n, c) + 1)
    S = {k: [int(stirling2(k + 1, j + 1, exact=True)) for j in count] for k in {n, c}}
    return sum(math.factorial(j) ** 2 * S[n][j] * S[c][j] for j in count)
