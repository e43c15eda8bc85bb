"""Claims about path statistics and the gradient flow through them."""

from __future__ import annotations

import resource
import time

import jax
import numpy as np

import neuralrace as nr
from verification.cases import random_case
from verification.claim import Measurement, at_most, claim

SECTION = "Path statistics"


@claim(
    SECTION,
    "velocity(w) = −autodiff gradient, 200 random gated graphs",
    "largest relative difference ≤ 1e-10",
)
def velocity(full: bool) -> Measurement:
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(200 if full else 25):
        case = random_case(rng)
        gradient = jax.grad(nr.GDLN(case.arch).loss)(case.weights, case.data)
        found = nr.path_statistics(case.arch, case.data).velocity(case.weights)
        scale = max(float(np.abs(g).max()) for g in gradient.values())
        for edge, g in gradient.items():
            worst = max(worst, float(np.abs(found[edge] + g).max()) / max(scale, 1e-300))
    return at_most(worst, 1e-10)
