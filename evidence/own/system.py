"""The race in JAX, against finite differences and against training at full size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import neuralrace as nr
from evidence.own.rules import random_race
from evidence.promise import Measurement, at_most, claim

STEP = 1e-4
"""The step of a central difference of fourth order."""


def random_system(seed: int) -> tuple[nr.Race, nr.reduction.RaceSystem]:
    """The next exact race of a random graph from a seed on, and its system, aligned."""
    races = (random_race(s) for s in range(1000 * seed, 1000 * seed + 1000))
    race = next(race for race in races if race is not None)
    with jax.enable_x64(True):
        return race, race.system(0.3)


def gradient_gap(seed: int) -> float:
    """The derivative of the loss after some descent along a random direction, off by how much.

    The direction is in the start and in the drives; the gap is relative to the derivative, or to
    the loss where that is larger.
    """
    rng = np.random.default_rng(seed)
    _, system = random_system(seed)
    step = nr.dynamics.Descent(0.02)
    with jax.enable_x64(True):
        here = (system.b0, system.drive)
        there = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), here)

        def final(by: float) -> jax.Array:
            b0, drive = jax.tree.map(lambda a, b: a * (1 + 0.1 * by * b), here, there)
            moved = type(system)(system.blocks, drive, b0, system.outside)
            return moved.loss(nr.dynamics.unrolled_steps(moved, b0, step, 40))

        final = jax.jit(final)
        slope = float(jax.grad(final)(0.0))
        values = [float(final(k * STEP)) for k in (-2, -1, 1, 2)]
    numeric = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * STEP)
    return abs(slope - numeric) / max(abs(slope), abs(values[1]))


@claim(
    "rules/gradients",
    "Other rules",
    "The gradient through 40 steps of 50 random races (start and drives) against finite "
    "differences",
    "≤ 1e-6",
)
def gradients(full: bool) -> Measurement:
    return at_most(max(gradient_gap(seed) for seed in range(50 if full else 3)), 1e-6)
