"""Fixed points of the alignment flow: the gates that a small neuron, once there, keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.dataset import Dataset, check_unweighed
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.possible.patterns import pattern_count, patterns
from neuralrace.tolerances import EQUAL, MARGIN, TINY
from neuralrace.types import ArrayLike


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
        check_unweighed(data, "what neurons align to")
        x, y = side_by_side(data.x), side_by_side(data.y)
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

    @cached_property
    def lines(self) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """The line through the origin that every input lies on, and on which side of it."""
        return lines_of(self.x)

    @property
    def bound(self) -> float:
        """√(⟨‖x‖²⟩⟨‖y‖²⟩), which no growth rate exceeds."""
        return math.sqrt((self.p @ self.x**2).sum() * (self.p @ self.y**2).sum())

    @property
    def size(self) -> float:
        """√(⟨‖y‖²⟩/⟨‖x‖²⟩), the strength of a map whose outputs are as large as the targets."""
        return math.sqrt((self.p @ self.y**2).sum() / (self.p @ self.x**2).sum())


def side_by_side(arrays: Mapping[str, ArrayLike]) -> Float[np.ndarray, "N d"]:
    """The columns of all nodes in one matrix."""
    return np.concatenate([np.asarray(a, np.float64) for a in arrays.values()], axis=1)


@final
@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A neuron's gates, its directions (unit vectors) and its growth rate."""

    gates: Float[np.ndarray, " N"]
    w: Float[np.ndarray, " d"]
    a: Float[np.ndarray, " o"]
    rate: float


def fixed_point(
    samples: Samples, gates: Float[np.ndarray, " N"], near: Float[np.ndarray, " d_o"], leak: float
) -> FixedPoint | None:
    """The fixed point with these gates, of which those strictly between 0 and 1 slide.

    On sliding samples S the neuron is held at w·x = 0. In the space of such weights it moves
    linearly, so that it ends in the leading singular pair (w, a) of ⟨g y xᵀ⟩ P, with g the gates
    of the other samples and P the projection that removes the directions of S. The value of this
    pair is the growth rate. Where the leading value is not simple, the pair nearest to `near`,
    input and output weights side by side, is taken. The gates on S follow from `held_gates`.

    `gates` is a guess. A sample whose own gate disagrees with w·x is held at the boundary in
    truth, and one whose sliding gate would be off or on altogether does not slide. Both are
    corrected, one at a time, together with the samples whose inputs lie on the same line.

    **Returns:** None where no gates near the guess hold themselves.
    """
    state = np.where(gates <= 0, -1, np.where(gates >= 1, 1, 0))
    length = np.maximum(np.linalg.norm(samples.x, axis=1), TINY)
    guess = leak + (1 - leak) * gates
    line, side = samples.lines
    for _ in range(2 * len(gates)):
        slides = state == 0
        g = np.where(state > 0, 1.0, leak)
        w, a, rate = _leading(samples, np.where(slides, 0.0, g), slides, near)
        drive = samples.p * (samples.y @ a)
        g[slides] = held_gates(samples.x, drive, g, slides, guess[slides], leak)
        z = samples.x @ w / length
        wrong = np.where(slides, 0.0, np.maximum(0.0, -state * z))
        beyond = np.where(slides, np.maximum(leak - g, g - 1), 0.0)
        if wrong.max() <= MARGIN and beyond.max() <= 0:
            return FixedPoint(np.clip(g, leak, 1.0), w, a, rate)
        if leak == 1:
            return FixedPoint(g, w, a, rate)  # a linear network has no boundaries
        if beyond.max() > 0:
            n = int(np.argmax(beyond))
            same = line == line[n]
            state[same] = (1 if g[n] > 1 else -1) * side[n] * side[same]
        else:
            state[line == line[int(np.argmax(wrong))]] = 0
    return None


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
        z = samples.x @ w / np.maximum(np.linalg.norm(samples.x, axis=1), TINY)
        apart = (np.abs(z[samples.x.any(axis=1)]) > MARGIN).all()
        found += [
            FixedPoint(g, sign * w, sign * a, rate)
            for sign in (1.0, -1.0)
            if apart and ((sign * z > 0) == row).all()
        ]
    return found, len(on)


def _leading(
    samples: Samples,
    g: Float[np.ndarray, " N"],
    slides: Bool[np.ndarray, " N"] | None = None,
    near: Float[np.ndarray, " d_o"] | None = None,
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " o"], float]:
    """The leading singular pair of ⟨g y xᵀ⟩ P: input direction, output direction, value."""
    matrix = (g[:, None] * samples.py).T @ samples.x
    if slides is not None and slides.any():
        _, s, vt = np.linalg.svd(samples.x[slides], full_matrices=False)
        held = vt[s > MARGIN * s[0]]
        matrix = matrix - matrix @ held.T @ held
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    if near is None:
        return vt[0], u[:, 0], float(s[0])
    equal = s >= (1 - EQUAL) * s[0]
    d = samples.shape[1]
    mixed = vt[equal] @ near[:d] + near[d:] @ u[:, equal]
    mixed = mixed / max(float(np.linalg.norm(mixed)), TINY)
    return mixed @ vt[equal], u[:, equal] @ mixed, float(s[0])


def held_gates(
    x: Float[np.ndarray, "N d"],
    drive: Float[np.ndarray, " N"],
    gates: Float[np.ndarray, " N"],
    slides: Bool[np.ndarray, " N"],
    guess: Float[np.ndarray, " S"],
    leak: float = 0.0,
) -> Float[np.ndarray, " S"]:
    """The effective gates g of the samples on which a neuron slides.

    Pushed back to w·x_n = 0 from both sides, a neuron is on for a fraction g_n of the time, such
    that on average it does not move across:

        Σ_m g_m drive_m (x_n·x_m) = 0   for every sliding sample n

    (a sliding mode in the sense of Filippov). Samples whose inputs point in the same direction
    have one gate, and those with opposite inputs gates that sum to 1 + leak: exactly one of the
    two is on. Where this does not settle all gates, the solution nearest to `guess` is taken.

    **Arguments:** inputs `x`; `drive`, p_m (a·r_m) with p the sample weights, a the output weights
    and r the residual; `gates` of the samples that do not slide; `slides`, which do.

    **Returns:** one gate per sliding sample, not necessarily between `leak` and 1: outside of
    that range the sample does not slide.
    """
    if not slides.any():
        return np.zeros(0)
    here = x[slides]
    line, side = lines_of(here)
    # on line l the gate is γ_l for inputs on its positive side, and 1 + leak − γ_l on the other
    part = (side[:, None] * (np.arange(line.max() + 1) == line[:, None])).astype(np.float64)
    fixed = np.where(side < 0, 1 + leak, 0.0)
    kernel = (here @ here.T) * drive[slides]
    still = ~slides
    pushed = here @ (x[still].T @ (gates[still] * drive[still])) + kernel @ fixed
    start = np.linalg.lstsq(part, guess - fixed, rcond=None)[0]
    step = np.linalg.lstsq(kernel @ part, -(pushed + kernel @ part @ start), rcond=MARGIN)[0]
    return fixed + part @ (start + step)


def lines_of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The line through the origin that every input lies on, and on which side of it: 1 or −1."""
    from scipy.spatial import KDTree

    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), TINY)
    tree = KDTree(unit)
    near, opposite = (tree.query_ball_point(s * unit, MARGIN) for s in (1, -1))
    first = np.array([min(a + b) for a, b in zip(near, opposite, strict=True)], int)
    first = first[first]  # of three inputs in a row, the outer two can be further apart
    line = np.unique(first, return_inverse=True)[1].ravel()
    return line, np.where(np.einsum("nd,nd->n", unit, unit[first]) >= 0, 1, -1)
