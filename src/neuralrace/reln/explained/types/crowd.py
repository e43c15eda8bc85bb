"""Self-gated neurons that learn together, on a task that may be symmetric."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from neuralrace.dynamics import (
    Descent,
    Members,
    State,
    StepResult,
    System,
    Until,
    take_steps,
)
from neuralrace.dynamics.train import watched
from neuralrace.errors import require
from neuralrace.progress import progress
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.reln.explained.types.evaluation import Elsewhere
from neuralrace.reln.explained.types.symmetries import Symmetries

Neurons = dict[str, np.ndarray]
"""Input weights `w` of shape (M, d) and output weights `a` of shape (M, o) of M neurons.

Where outputs have biases, these are `c`, of shape (o,).
"""


@final
class Crowd(System):
    """Neurons with one hidden layer that gate themselves, as something that learns.

    o_n = Σ_j a_j g(w_j·x_n) w_j·x_n, with g = 1 for a positive argument and `leak` otherwise, plus
    the biases `c` where the state has them. With a `basis` E of the outputs that respect the
    symmetries of the task, o is replaced by E Eᵀ o: every neuron then stands for all of its images.
    The targets respect the symmetries too, so that this is still the gradient of a loss.

    A state that holds `on`, of shape (M, N), counts there on how many steps each neuron was on.
    With `gates`, of shape (N, M), neurons obey these instead of their own: a gated network.
    `others` are further samples on which the outputs of self-gated neurons are observed; without
    `seen` nothing but the loss is.
    """

    x: Float[Array, "N d"]
    y: Float[Array, "N o"]
    p: Float[Array, " N"]
    basis: Float[Array, "k N o"] | None
    gates: Float[Array, "N M"] | None = None
    others: dict[str, Elsewhere] | None = None
    leak: float = eqx.field(static=True, default=0.0)
    seen: bool = eqx.field(static=True, default=True)

    @staticmethod
    def of(samples: Samples, symmetries: Symmetries | None, leak: float) -> Crowd:
        """The neurons of a task; call it where JAX computes in float64."""
        basis = None if symmetries is None or symmetries.order == 1 else symmetries.basis
        x, y, p = (jnp.asarray(values) for values in (samples.x, samples.y, samples.p))
        return Crowd(x, y, p, None if basis is None else jnp.asarray(basis), leak=leak)

    def outputs(self, state: State) -> Float[Array, "N o"]:
        """The outputs of all neurons together, averaged over their images."""
        z = self.x @ state["w"].T
        return self._together(self._slope(z) * z, state)

    def loss(self, state: State) -> Float[Array, ""]:
        return self._loss(self.y - self.outputs(state))

    def loss_and_step(
        self, state: State, rate: Any, batch: Any = None
    ) -> tuple[Float[Array, ""], State]:
        w, a = state["w"], state["a"]
        z = self.x @ w.T
        slope = self._slope(z)
        h = slope * z
        error = self.y - self._together(h, state)
        drive = rate * self.p[:, None] * error
        step = {"w": (slope * (drive @ a.T)).T @ self.x, "a": h.T @ drive}
        if "c" in state:
            step["c"] = drive.sum(axis=0)
        if "on" in state:
            step["on"] = jnp.where(z > 0, 1.0, 0.0).T
        return self._loss(error), step

    def observe(self, state: State) -> dict[str, Any]:
        if not self.seen:
            return {}
        seen: dict[str, Any] = {"outputs": self.outputs(state)}
        if self.others is not None:
            w, a = state["w"], state["a"]
            seen["others"] = {n: at.outputs(w, a, self.leak) for n, at in self.others.items()}
        return seen | (state if "on" in state else {})

    def observing(self, others: dict[str, Elsewhere]) -> Crowd:
        """The same neurons, observed on further samples."""
        if not others:
            return self
        return eqx.tree_at(lambda s: s.others, self, others, is_leaf=lambda v: v is None)

    def during(self, moment: Any) -> Crowd:
        return eqx.tree_at(lambda s: s.gates, self, moment, is_leaf=lambda v: v is None)

    def work(self, members: int = 1) -> float:
        n, d = self.x.shape
        return float(members * 500 * n * (2 * d + 3 * self.y.shape[1]))

    def _slope(self, z: Array) -> Array:
        return jnp.where(z > 0, 1.0, self.leak) if self.gates is None else self.gates

    def _together(self, h: Array, state: State) -> Array:
        o = h @ state["a"]
        if "c" in state:
            o = o + state["c"]
        if self.basis is None:
            return o
        k = len(self.basis)
        flat = self.basis.reshape(k, -1)
        return (flat.T @ (flat @ o.ravel())).reshape(o.shape)

    def _loss(self, error: Array) -> Array:
        return 0.5 * jnp.dot(self.p, jnp.sum(error**2, axis=1))


@final
@dataclass(frozen=True, eq=False)
class Descended:
    """What became of some neurons: recorded steps, loss, outputs and other values, last state."""

    stops: Int[np.ndarray, " T"]
    loss: Float[np.ndarray, " T"]
    values: dict[str, Any]
    final: Neurons


def descend(
    crowd: Crowd,
    neurons: Neurons,
    rate: float,
    stops: Int[np.ndarray, " T"],
    *,
    until: float | None = None,
    counting: bool = False,
    gates: Float[np.ndarray, "T N M"] | None = None,
) -> Descended:
    """Let neurons learn by gradient descent; `stops` are the recorded steps, the first of them now.

    `until` is a loss at which to stop. With `counting`, weights and counts of gates are recorded.
    With `gates`, neurons obey `gates[i]` from stop i to the next.
    """
    with jax.enable_x64(True):
        state = {name: jnp.asarray(values) for name, values in neurons.items()}
        if counting:
            state["on"] = jnp.zeros((len(neurons["w"]), len(crowd.x)))
        steps = np.asarray(stops) - stops[0]
        with progress(float(steps[-1]), "neurons") as advance:
            done: StepResult = take_steps(
                crowd,
                state,
                Descent(jnp.asarray(rate)),
                steps,
                until=Until(loss=until),
                moments=None if gates is None else jnp.asarray(gates),
                seen=watched(advance, None),
            )
    _check_finite(done.stopped is None, rate)
    last = {name: np.asarray(done.final[name]) for name in neurons}
    return Descended(done.stops + stops[0], np.asarray(done.loss), done.values, last)


def losses_of(
    crowd: Crowd, networks: Neurons, rate: float, stops: Int[np.ndarray, " T"]
) -> Float[np.ndarray, "n T"]:
    """The losses at `stops` of several networks, whose weights have one axis more."""
    many = len(networks["a"])
    with jax.enable_x64(True), progress(float(stops[-1]), "networks") as advance:
        done = take_steps(
            dataclasses.replace(crowd, basis=None, seen=False),
            {name: jnp.asarray(values) for name, values in networks.items()},
            Descent(jnp.asarray(rate)),
            np.asarray(stops),
            members=Members(many),
            seen=watched(advance, None),
        )
    losses = np.asarray(done.loss)
    _check_finite(bool(np.isfinite(losses).all()), rate)
    return losses


def _check_finite(fine: bool, rate: float) -> None:
    require(
        fine,
        "the loss of the neurons stopped being finite: the scale is too large for learning_rate",
        got=f"learning_rate = {rate:g}",
        wanted="a rate at which descent from these weights is stable",
        fix="use a smaller learning_rate, and as many more steps, or a smaller scale",
    )
