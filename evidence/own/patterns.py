"""Claims about the activity patterns that one ReLU neuron can have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, claim

SECTION = "Patterns"


def realised(found: nr.reln.Patterns, x: Any) -> bool:
    """Whether all patterns differ and every witness realises its own."""
    different = len(np.unique(np.packbits(found.on, axis=1), axis=0)) == len(found)
    return different and bool(((found.weights @ x.T > 0) == found.on).all())


@claim(
    "patterns/cover",
    SECTION,
    "number of patterns on 30 random sets in general position, N ≤ 12, d ≤ 4, against Cover's "
    "2 Σ C(N−1, k); every witness realises its pattern",
    "equal on all 30",
)
def cover(full: bool) -> Measurement:
    rng = np.random.default_rng(0)
    sizes = [(int(n), int(d)) for n, d in rng.integers((2, 1), (13, 5), size=(29, 2))] + [(12, 4)]
    sizes = sizes if full else sizes[:5]
    right = 0
    for n, d in sizes:
        x = rng.normal(size=(n, d))
        found = nr.reln.patterns(x)
        number = 2 * sum(math.comb(n - 1, k) for k in range(d))
        right += len(found) == number and realised(found, x)
    return Measurement(f"{right} of {len(sizes)}", right == len(sizes))


@claim(
    "patterns/contexts",
    SECTION,
    "number of patterns of items × contexts, 2×2, 3×2, 3×3, 4×3 and 8×3; every witness realises "
    "its pattern",
    "14, 46, 230, 1066, 354106",
)
def items_and_contexts(full: bool) -> Measurement:
    wanted = {(2, 2): 14, (3, 2): 46, (3, 3): 230, (4, 3): 1066, (8, 3): 354106}
    numbers, met = [], True
    for (n, c), number in list(wanted.items())[: 5 if full else 4]:
        one = np.eye(n)
        x = nr.tasks.contextual(c, n, structures=one, common=one, joined=True).x["x"]
        found = nr.reln.patterns(x)
        numbers.append(str(len(found)))
        met &= len(found) == number and realised(found, x)
    return Measurement(", ".join(numbers), met)


@claim(
    "patterns/sampled",
    SECTION,
    "8 items × 5 contexts: enumeration says there are too many, 10000 are sampled with witnesses",
    "Σ_j (j!)² S(9, j+1) S(6, j+1) = 117 437 746 patterns",
)
def beyond(full: bool) -> Measurement:
    x = nr.tasks.contextual(5, joined=True).x["x"]
    some = nr.reln.sample_patterns(x, count=10_000 if full else 100)
    try:
        nr.reln.patterns(x)
        refused = False
    except nr.NeuralRaceError as error:
        refused = "117,437,746" in str(error)
    met = refused and not some.complete and some.bound == 117_437_746 and realised(some, x)
    return Measurement(str(some), met)
