"""Large races by compiled programs: blocks of one shape side by side, in the common driver."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from neuralrace.dataset import Dataset
from neuralrace.dynamics.driver import take_steps
from neuralrace.dynamics.flow import smallest_rms, solve_flow
from neuralrace.dynamics.methods import Descent, Flow
from neuralrace.dynamics.systems import Batch, System
from neuralrace.gdln import GDLN
from neuralrace.progress import progress
from neuralrace.reduction.equations.polynomial import PolynomialSystem
from neuralrace.statistics import Place, cut_out
from neuralrace.types import Array

State = Mapping[str, Array]
"""The state of blocks side by side, by edge or under one name."""

RTOL = 1e-9
"""The relative tolerance of a step of the flow, if none is asked for."""

MAX_STEPS = 1_000_000
"""The most steps of a flow."""


class Blocks(System):
    """Several blocks side by side; their states have a leading axis."""

    @abc.abstractmethod
    def losses(self, state: State) -> jax.Array:
        """The loss of every block."""

    @abc.abstractmethod
    def sizes(self, state: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The parts of a state whose sizes decide the absolute tolerance."""

    def counts(self, errors: State) -> float | jax.Array:
        """The number of variables of each block."""
        return sum(leaf[0].size for leaf in errors.values())

    def norm(self, errors: State) -> jax.Array:
        """The largest root mean square error of any block, so that each meets the tolerance."""
        squares = [jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1) for leaf in errors.values()]
        return jnp.sqrt(jnp.max(sum(squares) / self.counts(errors)))

    def loss(self, state: State) -> jax.Array:
        return jnp.sum(self.losses(state))

    def observe(self, state: State) -> dict[str, PyTree]:
        return {"state": state, "losses": self.losses(state)}


@final
class NetworkStack(Blocks):
    """Several networks of one shape side by side: the data has a leading axis.

    Their nodes may be joined; `places` says then which parts of the matrices were edges.
    """

    net: GDLN = eqx.field(static=True)
    data: Dataset
    places: tuple[tuple[str, Place], ...] = eqx.field(static=True, default=())

    def losses(self, state: State) -> jax.Array:
        return jax.vmap(self.net.loss)(state, self.data)

    def loss_and_step(
        self, state: State, rate: float | jax.Array, batch: Batch | None = None
    ) -> tuple[jax.Array, State]:
        one = jax.vmap(self.net.loss_and_step, in_axes=(0, 0, None))
        losses, step = one(state, self.data, rate)
        return jnp.sum(losses), step

    def sizes(self, state: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        edges = cut_out(state, self.places) if self.places else state
        return [w for stack in edges.values() for w in stack]


@final
class PolynomialStack(Blocks):
    """Several merged scalar races side by side, in the arrays of `padded`.

    Powers are below 2^bits and computed by repeated squaring: a general power function is much
    slower and would dominate the time of a step.
    """

    bits: int = eqx.field(static=True)
    powers: Array
    coefficients: Array
    errors: Array

    def _monomials(self, state: State) -> jax.Array:
        square, found = state["b"][:, None, :], 1.0
        for bit in range(self.bits):
            found = jnp.where((self.powers >> bit) & 1, found * square, found)
            square = square * square
        return jnp.prod(found, axis=-1)

    def losses(self, state: State) -> jax.Array:
        errors = jnp.einsum("nrm,nm->nr", self.errors, self._monomials(state))
        return jnp.sum(errors**2, axis=-1) / 2

    def loss_and_step(
        self, state: State, rate: float | jax.Array, batch: Batch | None = None
    ) -> tuple[jax.Array, State]:
        velocity = jnp.einsum("nkm,nm->nk", self.coefficients, self._monomials(state))
        return self.loss(state), {"b": rate * velocity}

    def counts(self, errors: State) -> jax.Array:
        """The number of variables of each block that move; the others are padding."""
        moving = jnp.any(jnp.asarray(self.coefficients) != 0, axis=-1)
        return jnp.maximum(1, jnp.sum(moving, axis=-1))

    def sizes(self, state: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return list(state["b"].reshape(-1, 1))


def padded(
    systems: Sequence[tuple[PolynomialSystem, np.ndarray]],
) -> tuple[PolynomialStack, dict[str, np.ndarray]]:
    """All systems in arrays of one shape, rounded up so that other races can reuse the program."""
    rounded = lambda n: 1 << (int(n) - 1).bit_length()
    count, K, m = (
        len(systems),
        rounded(max(len(start) for _, start in systems)),
        rounded(max(len(system.powers) for system, _ in systems)),
    )
    b, powers = np.zeros((count, K)), np.zeros((count, m, K), int)
    r = rounded(max(1, *(len(system.errors) for system, _ in systems)))
    velocity, errors = np.zeros((count, K, m)), np.zeros((count, r, m))
    for i, (system, start) in enumerate(systems):
        rows, columns = system.powers.shape
        b[i, :columns] = start
        powers[i, :rows, :columns] = system.powers
        velocity[i, :columns, :rows] = system.velocity
        errors[i, : len(system.errors), :rows] = system.errors
    bits = max(1, int(powers.max()).bit_length())
    return PolynomialStack(bits, powers, velocity, errors), {"b": b}


def stacked(
    members: Sequence[tuple[Mapping[str, np.ndarray], Dataset]],
) -> tuple[dict[str, np.ndarray], Dataset]:
    """The weights and data of networks of one shape, with a leading axis."""
    count = max(data.n_samples for _, data in members)

    def filled(data: Dataset) -> Dataset:
        grow = np.sqrt(count / data.n_samples)  # rows of zeros change nothing but the mean
        pad = lambda a: np.pad(a, [(0, count - len(a)), *[(0, 0)] * (a.ndim - 1)])
        return Dataset(
            {v: pad(grow * x) for v, x in data.x.items()},
            {v: pad(grow * y) for v, y in data.y.items()},
            {name: pad(g) for name, g in data.gates.items()},
        )

    weights = jax.tree.map(lambda *w: np.stack(w), *(dict(w) for w, _ in members))
    return weights, jax.tree.map(lambda *d: np.stack(d), *(filled(d) for _, d in members))


def one(weights: Mapping[str, np.ndarray], data: Dataset) -> tuple[dict[str, np.ndarray], Dataset]:
    """The weights and data of one network, with a leading axis."""
    return {e: w[None] for e, w in weights.items()}, jax.tree.map(
        lambda a: np.asarray(a)[None], data
    )


def solve_compiled(
    blocks: Blocks,
    start: Mapping[str, np.ndarray],
    times: np.ndarray,
    steps: np.ndarray | None,
    rate: float | None,
    rtol: float | None = None,
) -> tuple[dict[str, np.ndarray], np.ndarray, float | None]:
    """States and losses at the times or, with a rate, at the steps, in float64.

    If the solution had to stop early, there are fewer of them, and the third value is the step at
    which the loss is not finite, or the time that was reached.
    """
    with jax.enable_x64(True):
        if steps is None or rate is None:
            return _flowed(blocks, dict(start), times, rtol or RTOL)
        return _stepped(blocks, dict(start), steps, rate)


def _flowed(
    blocks: Blocks, start: dict[str, np.ndarray], times: np.ndarray, rtol: float
) -> tuple[dict[str, np.ndarray], np.ndarray, float | None]:
    method = Flow(rtol, rtol * smallest_rms(blocks.sizes(start)), MAX_STEPS)
    done = solve_flow(blocks, start, method, times)
    if done.why == "end":
        return done.values["state"], done.values["losses"], None
    fine = np.isin(done.times, times) & np.isfinite(done.values["losses"]).all(axis=1)
    kept = len(fine) if fine.all() else int(np.argmin(fine))
    values = jax.tree.map(lambda a: a[:kept], done.values)
    return values["state"], values["losses"], float(done.times[-1])


def _stepped(
    blocks: Blocks, start: dict[str, np.ndarray], steps: np.ndarray, rate: float
) -> tuple[dict[str, np.ndarray], np.ndarray, float | None]:
    stops = np.unique(np.append(0, steps))
    past = [0]
    with progress(int(stops[-1]), "race") as advance:

        def seen(step: int, loss: float) -> None:
            advance(float(step - past[-1]))
            past.append(step)

        done = take_steps(blocks, start, Descent(jnp.asarray(rate)), stops, seen=seen)
    values = jax.tree.map(lambda a: a[np.isin(done.stops, steps)], done.values)
    return values["state"], values["losses"], done.stopped
