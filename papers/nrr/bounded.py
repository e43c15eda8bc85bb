"""Descent of many runs at once, whose steps are as long as the curvature allows.

A run ends at a given flow time. An optimizer of optax can take the place of these steps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

State: TypeAlias = dict[str, PyTree]
"""Weights by name, the flow time `"time"`, and the `"probe"` of the curvature."""


@final
class Batch(eqx.Module):
    """Images for one step: which, and 1 for each (0 where a last batch is filled up)."""

    index: Int[Array, "*runs B"]
    present: Float[Array, "*runs B"]


@final
class Batches(eqx.Module):
    """Batches of `size` out of `samples`, drawn without replacement in every epoch.

    `key` has one key per run; a last batch has the rest of its epoch.
    """

    key: Array
    size: int = eqx.field(static=True)
    samples: int = eqx.field(static=True)

    @property
    def per_epoch(self) -> int:
        """How many steps an epoch has."""
        return -(-self.samples // self.size)

    def order(self, step: int | Array) -> Int[Array, "runs padded"]:
        """The samples of the epoch of a step, filled up to whole batches."""

        def one(key: Array) -> Array:
            order = jax.random.permutation(
                jax.random.fold_in(key, step // self.per_epoch), self.samples
            )
            return jnp.pad(order, (0, self.per_epoch * self.size - self.samples))

        return jax.vmap(one)(self.key)

    def batch(self, order: Int[Array, "runs padded"], step: Array, dtype: Any) -> Batch:
        """The batch of a step for every run, given the order of its epoch."""
        first = (step % self.per_epoch) * self.size
        index = jax.lax.dynamic_slice_in_dim(order, first, self.size, axis=1)
        present = (first + jnp.arange(self.size)) < self.samples
        return Batch(index, jnp.broadcast_to(present.astype(dtype), index.shape))


class TimedSystem(eqx.Module):
    """Something that learns, and whose state counts its own flow time up to `horizon`.

    It knows a bound on its curvature, so that steps of any length can be taken safely. `routes` are
    what its runs differ in.
    """

    horizon: float | Array
    routes: eqx.AbstractVar[Array]

    @abstractmethod
    def loss(self, state: State) -> Float[Array, ""]:
        """The loss over all the data."""

    @abstractmethod
    def loss_and_step(
        self, state: State, rate: float | Array, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State]:
        """The loss and −rate · ∂L/∂state, over all the data or over a batch of it."""

    @abstractmethod
    def observe(self, state: State) -> dict[str, Array]:
        """What is recorded of a state besides its loss."""

    @abstractmethod
    def probe(self, state: State) -> PyTree:
        """What the search for the largest curvature begins from."""

    @abstractmethod
    def curvature(
        self, state: State, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], PyTree]:
        """A bound on the largest eigenvalue of the Gauss–Newton matrix, and the next probe.

        It begins from `state["probe"]`.
        """


class Method(eqx.Module):
    """How a step is taken. Its memory is what it carries from one step to the next."""

    @abstractmethod
    def begin(self, state: State) -> PyTree:
        """The memory before the first step."""

    @abstractmethod
    def step(
        self, system: TimedSystem, state: State, memory: PyTree, batch: Batch | None
    ) -> tuple[State, PyTree]:
        """State and memory after a step."""


@final
class BoundedDescent(Method):
    """Gradient descent with step min(`largest`, `caution` / curvature, what remains of the time).

    Descent on a quadratic with curvature c converges for steps below 2/c; `caution` = 1 is half
    of that. The curvature comes from power iterations that go on from step to step, one per step.
    """

    largest: float | Array
    caution: float | Array = 1.0

    def begin(self, state: State) -> PyTree:
        return ()

    def step(
        self, system: TimedSystem, state: State, memory: PyTree, batch: Batch | None
    ) -> tuple[State, PyTree]:
        curvature, probe = system.curvature(state, batch)
        bound = jnp.minimum(self.largest, self.caution / jnp.maximum(curvature, 1e-30))
        rate = jnp.maximum(jnp.minimum(bound, system.horizon - state["time"]), 0.0)
        _, change = system.loss_and_step(state, rate, batch)
        return jax.tree.map(jnp.add, state, change) | {"probe": probe}, memory


@final
class Optimized(Method):
    """An optax transformation of the gradients of the weights named `learned`, and of no others.

    It leaves the clock of the state where it is: only its caller knows what its steps mean in time.
    """

    transformation: Any = eqx.field(static=True)
    learned: tuple[str, ...] = eqx.field(static=True)

    def begin(self, state: State) -> PyTree:
        return self.transformation.init({name: state[name] for name in self.learned})

    def step(
        self, system: TimedSystem, state: State, memory: PyTree, batch: Batch | None
    ) -> tuple[State, PyTree]:
        import optax

        _, gradient = system.loss_and_step(state, -1.0, batch)
        gradient, weights = ({k: tree[k] for k in self.learned} for tree in (gradient, state))
        change, memory = self.transformation.update(gradient, memory, weights)
        moved: Any = optax.apply_updates(weights, change)
        return state | moved, memory


@final
@dataclass(frozen=True, eq=False)
class Descended:
    """Runs at the steps that were recorded; arrays have the axes (run, step)."""

    steps: Int[np.ndarray, " T"]
    loss: np.ndarray
    values: dict[str, np.ndarray]
    final: dict[str, Any]


def descend(
    system: TimedSystem,
    state: State,
    method: Method,
    stops: Int[np.ndarray, " T"],
    batches: Batches | None = None,
    seen: Callable[[int, float], None] = lambda step, loss: None,
) -> Descended:
    """Take steps of all runs together and record them at `stops`, until the last has arrived.

    `system.routes` and the state have a first axis of runs. `seen(step, loss)` is called at every
    stop with the mean loss.
    """
    memory = jax.vmap(method.begin)(state)
    order = () if batches is None else batches.order(int(stops[0]))
    records: list[Any] = []
    for k, stop in enumerate(stops):
        records.append(jax.tree.map(np.asarray, _recorded(system, state)))
        seen(int(stop), float(records[-1][0].mean()))
        if k + 1 == len(stops) or bool(arrived(system, state).all()):
            break
        span = jnp.asarray(stops[k : k + 2])
        state, memory, order = _advanced(system, method, batches, state, memory, order, span)
    loss, values = jax.tree.map(lambda *rows: np.stack(rows, axis=1), *records)
    final = {name: jax.tree.map(np.asarray, part) for name, part in state.items()}
    return Descended(np.asarray(stops[: len(records)]), loss, values, final)


def arrived(system: TimedSystem, state: State) -> Array:
    """Whether a state has reached the horizon of its system, to the rounding of its clock."""
    return state["time"] >= system.horizon * (1 - 1e-6)


def _per_run(system: TimedSystem) -> Any:
    """Which parts of a system have an axis of runs, as in `jax.vmap`."""
    shared = jax.tree.map(lambda leaf: None, system)
    return eqx.tree_at(lambda s: s.routes, shared, 0, is_leaf=lambda leaf: leaf is None)


@eqx.filter_jit
def _recorded(system: TimedSystem, state: State) -> tuple[Array, dict[str, Array]]:
    """Loss and observables of every run."""
    one = lambda system, state: (system.loss(state), system.observe(state))
    return jax.vmap(one, (_per_run(system), 0))(system, state)


@eqx.filter_jit
def _advanced(
    system: TimedSystem, method: Method, batches: Batches | None, state: State, memory: PyTree,
    order: PyTree, span: Int[Array, " 2"],
) -> tuple[State, PyTree, PyTree]:  # fmt: skip
    """State, memory and order of the images after the steps from one stop to the next."""
    take = lambda system, state, memory, batch: method.step(system, state, memory, batch)
    batched = None if batches is None else 0
    step_all = jax.vmap(take, (_per_run(system), 0, 0, batched))

    def step(at: Array, inner: Any) -> Any:
        state, memory, order = inner
        batch = None
        if batches is not None:
            fresh = at % batches.per_epoch == 0
            order = jax.lax.cond(fresh, lambda at, b=batches: b.order(at), lambda _: order, at)
            batch = batches.batch(order, at, state["time"].dtype)
        return *step_all(system, state, memory, batch), order

    return jax.lax.fori_loop(span[0], span[1], step, (state, memory, order))
