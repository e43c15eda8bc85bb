"""Fixed points of the alignment flow: the gates that a small neuron, once there, keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.possible.patterns import pattern_count, patterns

INSIDE = 1e-9
"""A sample with |v·x| below this, relative to ‖x‖, lies on the boundary of a cell."""


@final
@dataclass(frozen=True, eq=False)
class Samples:
    """A task as plain matrices: inputs, targets and weights, samples first."""

    x: Float[np.ndarray, "N d"]
    y: Float[np.ndarray, "N o"]
    p: Float[np.ndarray, " N"]

    @staticmethod
    def of(data: Dataset) -> Samples:
        """All inputs and all targets side by side, or an error where there is nothing to learn."""
        x, y = (
            np.concatenate([np.asarray(a, np.float64) for a in field.values()], axis=1)
            for field in (data.x, data.y)
        )
        for what, values in (("inputs", x), ("targets", y)):
            if not values.any():
                raise NeuralRaceError(
                    f"all {what} are zero, so that no neuron ever moves",
                    got=f"{what} of shape {values.shape}, all 0",
                    wanted=f"{what} of which some are not 0",
                    fix="check how the dataset was made",
                )
        return Samples(x, y, np.asarray(data.probability, np.float64))

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many samples, inputs and outputs there are."""
        return len(self.x), self.x.shape[1], self.y.shape[1]

    @property
    def px(self) -> Float[np.ndarray, "N d"]:
        return self.p[:, None] * self.x

    @property
    def py(self) -> Float[np.ndarray, "N o"]:
        return self.p[:, None] * self.y

    @property
    def bound(self) -> float:
        """√(⟨‖x‖²⟩⟨‖y‖²⟩), which no growth rate exceeds."""
        return math.sqrt((self.p @ self.x**2).sum() * (self.p @ self.y**2).sum())

    @property
    def size(self) -> float:
        """√(⟨‖y‖²⟩/⟨‖x‖²⟩), the strength of a map whose outputs are as large as the targets."""
        return math.sqrt((self.p @ self.y**2).sum() / (self.p @ self.x**2).sum())


@final
@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A neuron's gates, its directions (unit vectors) and its growth rate."""

    gates: Float[np.ndarray, " N"]
    w: Float[np.ndarray, " d"]
    a: Float[np.ndarray, " o"]
    rate: float


def exact_gates(
    samples: Samples, gates: Float[np.ndarray, " N"], a: Float[np.ndarray, " o"], leak: float
) -> FixedPoint:
    """A fixed point from gates of which those strictly between 0 and 1 slide.

    Sliding gates solve Σ_m p_m g_m (x_n·x_m)(a·y_m) = 0 for every sliding n, with g_n + g_m = 1
    where x_m = −x_n: exactly one of the two is on. The solution nearest to the gates given is
    taken, if all of its gates are between off and on. The input direction is then ⟨g (a·y) x⟩, and
    its length the growth rate. It need not be the leading singular vector of ⟨g y xᵀ⟩, as it is
    where no gate slides: a neuron can be held back from that by the boundary.
    """
    slides = np.flatnonzero((gates > 0) & (gates < 1))
    g = leak + (1 - leak) * gates
    if not len(slides):
        w, u, rate = _leading(samples, g)
        sign = 1.0 if u @ a >= 0 else -1.0
        return FixedPoint(g, sign * w, sign * u, rate)
    a = a / np.linalg.norm(a)
    kernel = samples.x[slides] @ samples.x.T * (samples.p * (samples.y @ a))
    scale = np.abs(kernel).max(initial=0.0) or 1.0
    rows, wanted = [kernel], [np.zeros(len(slides))]
    for i, n in enumerate(slides):
        for m in slides[i + 1 :]:
            if np.allclose(samples.x[n], -samples.x[m]):
                row = np.zeros((1, len(g)))
                row[0, [n, m]] = scale
                rows, wanted = [*rows, row], [*wanted, np.array([scale * (1 + leak)])]
    system, right = np.concatenate(rows), np.concatenate(wanted)
    new = g[slides] + np.linalg.lstsq(system[:, slides], right - system @ g, rcond=1e-9)[0]
    if ((new > leak) & (new < 1)).all():
        g[slides] = new
    push = (g * (samples.y @ a)) @ samples.px
    rate = float(np.linalg.norm(push))
    return FixedPoint(g, push / (rate or 1.0), a, rate)


def interior_fixed_points(
    samples: Samples, leak: float, limit: int
) -> tuple[list[FixedPoint], int] | None:
    """Every stable fixed point strictly inside a cell, and how many cells there are.

    None where there may be more than `limit` cells. A neuron inside a cell moves linearly, towards
    the leading singular pair (v, u) of ⟨g y xᵀ⟩; it stays there if v has the cell's own pattern.
    """
    if pattern_count(samples.x)[0] > limit:
        return None
    on = patterns(samples.x, limit=limit).on
    found = []
    for row in on:
        g = np.where(row, 1.0, leak)
        w, a, rate = _leading(samples, g)
        z = samples.x @ w / np.maximum(np.linalg.norm(samples.x, axis=1), 1e-300)
        apart = (np.abs(z[samples.x.any(axis=1)]) > INSIDE).all()
        found += [
            FixedPoint(g, sign * w, sign * a, rate)
            for sign in (1.0, -1.0)
            if apart and ((sign * z > 0) == row).all()
        ]
    return found, len(on)


def _leading(samples: Samples, g: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The leading singular pair of ⟨g y xᵀ⟩: input direction, output direction, value."""
    u, s, vt = np.linalg.svd((g[:, None] * samples.py).T @ samples.x)
    return vt[0], u[:, 0], float(s[0])
