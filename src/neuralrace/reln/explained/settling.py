"""The alignment flow: random neurons, followed until their directions come to rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.reln.explained.fixed_points import Samples

STEP = 0.2
"""The first step of the flow, as the change of a neuron of unit length."""

STEPS = 600
"""How many steps are taken with the first step, with a tenth, and with a hundredth of it."""

SLIDES = 0.02
"""A gate that is on for a share of the time between this and one minus this slides."""

STILL = 1e-3
"""A neuron that grows by less than this, relative to √(⟨‖x‖²⟩⟨‖y‖²⟩), does not learn.

That product bounds the growth rate of any neuron.
"""

LOOKS = frozenset(range(0, 60, 2)) | frozenset(range(60, STEPS, 20))
"""At which of the first steps directions are kept, to see when neurons aligned."""

NEAR = 0.9
"""A neuron is aligned from when the cosine to its final direction stays above this."""


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
        """Which neurons learn."""
        return self.growth > STILL * self.bound

    @property
    def dead(self) -> float:
        """The share of neurons that stop learning."""
        return 1 - float(self.live.mean())

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

    @property
    def aligned_at(self) -> float:
        """The median time that a neuron takes to align; infinite where none does."""
        return float(np.median(self.since[self.live])) if self.live.any() else math.inf


def settle(samples: Samples, rng: np.random.Generator, count: int, leak: float) -> Settled:
    """Follow random neurons along the flow of their directions until they rest.

    Every neuron has unit length and takes steps of equal length: this passes through the same
    directions as the flow, at a pace of its own.
    """
    _, d, o = samples.shape
    both = _unit(rng.normal(size=(count, d + o)))
    time, since = np.zeros(count), np.zeros(count)
    path: list[tuple[np.ndarray, np.ndarray]] = []
    still = STILL**2 * samples.bound
    total = np.zeros((count, samples.shape[0]))
    growth = np.zeros(count)
    for stage, step in enumerate((STEP, STEP / 10, STEP / 100)):
        total[:], growth[:] = 0.0, 0.0
        for k in range(STEPS):
            if stage == 0 and k in LOOKS:
                path.append((both, time.copy()))
            velocity, on = _velocity(samples, both, leak)
            speed = np.linalg.norm(velocity, axis=1)
            pace = np.where(speed > still, step / np.maximum(speed, still), 0.0)
            if 2 * k >= STEPS:
                total += on
                growth += (velocity * both).sum(axis=1)
            both = _unit(both + pace[:, None] * velocity)
            time += pace
    since = np.zeros(count)
    for place, when in path:
        since = np.where((place * both).sum(axis=1) < NEAR, when, since)
    kept = STEPS - (STEPS + 1) // 2
    return Settled(both, total / kept, growth / kept, samples.bound, since)


def _velocity(samples: Samples, both: np.ndarray, leak: float) -> tuple[np.ndarray, np.ndarray]:
    """How neurons (w, a) side by side move, and where they are on."""
    d = samples.shape[1]
    w, a = both[:, :d], both[:, d:]
    z = w @ samples.x.T
    on = z > 0
    slope = on if leak == 0 else np.where(on, 1.0, leak)
    pull = (slope * (a @ samples.y.T)) @ samples.px
    return np.concatenate([pull, (slope * z) @ samples.py], axis=1), on


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
