"""The alignment flow: random neurons, followed until their directions come to rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int
from threadpoolctl import threadpool_limits

from neuralrace.reln.explained.fixed_points import FixedPoint, Samples
from neuralrace.tolerances import ALIGNED_COSINE, NEURON_RESTS, NOISE, SETTLING, SLIDES

AVERAGED = 300
"""Gates and growth are averages over this number of steps, the last ones of all."""

CHECK = 25
"""After this number of steps it is checked which neurons have come to rest."""

AT_ONCE = 2**15
"""Neurons times samples that are moved at once: what a processor's cache holds."""

LOOKS = (6, 60)
"""In the first two stages directions are kept at every 6th and every 60th step.

They show when neurons aligned.
"""


@final
@dataclass(frozen=True, eq=False)
class Settled:
    """Random neurons at rest: directions, time averages of gates, growth, and when they aligned."""

    both: Float[np.ndarray, "M d_o"]
    on: Float[np.ndarray, "M N"]
    growth: Float[np.ndarray, " M"]
    bound: float
    since: Float[np.ndarray, " M"]

    @property
    def live(self) -> Bool[np.ndarray, " M"]:
        """Which neurons still grow, by more than rounding."""
        return self.growth > NOISE * self.bound

    @property
    def groups(self) -> list[Int[np.ndarray, " G"]]:
        """The neurons at each end point, as far as their gates tell it."""
        index = np.flatnonzero(self.live)
        if not len(index):
            return []
        state = np.digitize(self.on[index], (SLIDES, 1 - SLIDES)).astype(np.int8)
        group = np.unique(state, axis=0, return_inverse=True)[1].ravel()
        return [index[group == k] for k in range(group.max() + 1)]

    def gates(self, members: Int[np.ndarray, " G"]) -> Float[np.ndarray, " N"]:
        """The average gates of some neurons, those that do not seem to slide exactly 0 or 1."""
        mean = self.on[members].mean(axis=0)
        return np.where(mean <= SLIDES, 0.0, np.where(mean >= 1 - SLIDES, 1.0, mean))

    def direction(self, members: Int[np.ndarray, " G"]) -> Float[np.ndarray, " d_o"]:
        """The average weights of some neurons, inputs and outputs side by side."""
        return self.both[members].mean(axis=0)

    def is_near(self, members: Int[np.ndarray, " G"], point: FixedPoint) -> bool:
        """Whether some neurons have aligned to a fixed point, and are not only on their way."""
        mean, end = self.direction(members), np.concatenate([point.w, point.a])
        return bool(mean @ end > ALIGNED_COSINE * np.linalg.norm(mean) * np.linalg.norm(end))

    @property
    def aligned_at(self) -> float:
        """The median time that a neuron takes to align; infinite where none does."""
        return float(np.median(self.since[self.live])) if self.live.any() else math.inf


@threadpool_limits.wrap(limits=1, user_api="blas")  # these matrices are thin
def settle(samples: Samples, rng: np.random.Generator, count: int, leak: float) -> Settled:
    """Follow random neurons along the flow of their directions until they rest.

    Every neuron has unit length and takes steps of equal length: this passes through the same
    directions as the flow, at its own pace. Weights outside of the spaces that the inputs and the
    targets span never change and gate nothing, so that the flow is computed inside these spaces.
    Inputs of one direction have one gate, so that they count as one sample. A neuron that has come
    to rest strictly inside a cell is not followed further.
    """
    _, d, o = samples.shape
    x, reads = _in_own_space(samples.x)
    y, writes = _in_own_space(samples.y)
    line, side = samples.lines
    first, ray = np.unique(2 * line + (side < 0), return_index=True, return_inverse=True)[1:]
    ray = ray.ravel()
    unit, length = x[first], np.linalg.norm(x[first], axis=1)
    part = samples.p * np.linalg.norm(x, axis=1) / np.where(length > 0, length, 1.0)[ray]
    pull = np.zeros((len(first), y.shape[1]))  # Σ p_n (‖x_n‖ / ‖x‖) y_n over the samples of a ray
    np.add.at(pull, ray, part[:, None] * y)
    both = rng.normal(size=(count, d + o))
    both = _unit(np.concatenate([both[:, :d] @ reads.T, both[:, d:] @ writes.T], axis=1))
    flow = _Flow(unit, pull, leak)
    time, growth = np.zeros(count), np.zeros(count)
    on_for = np.zeros((count, len(unit)))
    path: list[tuple[np.ndarray, np.ndarray]] = []
    still = NOISE * samples.bound
    moving = np.arange(count)
    for stage, (step, steps) in enumerate(SETTLING):
        for k in range(steps):
            if stage < len(LOOKS) and k % LOOKS[stage] == 0:
                path.append((both.copy(), time.copy()))
            here = both[moving]
            velocity, on = flow.velocity(here)
            along = np.einsum("md,md->m", velocity, here)
            speed = np.sqrt(np.einsum("md,md->m", velocity, velocity))
            if k % CHECK == CHECK - 1:
                rests = speed**2 - along**2 <= (NEURON_RESTS * speed) ** 2
                settled = moving[rests]
                on_for[settled], growth[settled] = AVERAGED * on[rests], AVERAGED * along[rests]
                moving, here, on = moving[~rests], here[~rests], on[~rests]
                velocity, along, speed = velocity[~rests], along[~rests], speed[~rests]
            if stage == len(SETTLING) - 1 and k >= steps - AVERAGED:
                on_for[moving] += on
                growth[moving] += along
            pace = np.where(speed > still, step / np.maximum(speed, still), 0.0)
            both[moving] = _unit(here + pace[:, None] * velocity)
            time[moving] += pace
    since = np.zeros(count)
    for place, when in path:
        since = np.where((place * both).sum(axis=1) < ALIGNED_COSINE, when, since)
    r = x.shape[1]
    whole = np.concatenate([both[:, :r] @ reads, both[:, r:] @ writes], axis=1)
    return Settled(whole, on_for[:, ray] / AVERAGED, growth / AVERAGED, samples.bound, since)


@final
@dataclass(frozen=True, eq=False)
class _Flow:
    """The alignment flow of neurons (w, a), side by side: inputs, weighted targets, leak."""

    x: Float[np.ndarray, "N r"]
    py: Float[np.ndarray, "N q"]
    leak: float

    def velocity(
        self, both: Float[np.ndarray, "M r_q"]
    ) -> tuple[Float[np.ndarray, "M r_q"], Bool[np.ndarray, "M N"]]:
        """How neurons move, and where they are on."""
        n, r = self.x.shape
        velocity, on = np.empty_like(both), np.empty((len(both), n), bool)
        many = max(1, AT_ONCE // n)
        for some in (slice(k, k + many) for k in range(0, len(both), many)):
            z, drive = both[some, :r] @ self.x.T, both[some, r:] @ self.py.T
            on[some] = z > 0
            slope = on[some] if self.leak == 0 else np.where(on[some], 1.0, self.leak)
            velocity[some, :r] = (slope * drive) @ self.x
            velocity[some, r:] = (slope * z) @ self.py
        return velocity, on


def _in_own_space(
    rows: Float[np.ndarray, "N d"],
) -> tuple[Float[np.ndarray, "N r"], Float[np.ndarray, "r d"]]:
    """Rows in an orthonormal basis of the space that they span, and this basis."""
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    basis = vt[s > rows.shape[1] * np.finfo(np.float64).eps * s[0]]
    if len(basis) == rows.shape[1]:
        return rows, np.eye(len(basis))
    return rows @ basis.T, basis


def _unit(rows: Float[np.ndarray, "M d"]) -> Float[np.ndarray, "M d"]:
    return rows / np.sqrt(np.einsum("md,md->m", rows, rows))[:, None]
