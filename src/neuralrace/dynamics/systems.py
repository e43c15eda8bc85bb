"""*What* is integrated: small objects that take a state and give loss, velocity and observables.

The driver knows nothing else of a problem. A network with its data is one such object; a merged
race and a stack of blocks are others (`reduction/`).
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from neuralrace.checks import one_of, real_array, shown
from neuralrace.compression import UNCHANGED, Lift, step_work
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.dynamics.record import Recorder
from neuralrace.errors import require
from neuralrace.gdln import Network
from neuralrace.losses import SampleLoss, squared

State: TypeAlias = PyTree
"""A pytree of arrays, usually a dictionary: weights by edge, or the variables of a race."""


class System(eqx.Module):
    """Something that learns: L(state), −∂L/∂state, and what to record of a state.

    Write `loss`; everything else has a default. A system is a pytree whose leaves are arrays, so
    that one compiled program serves all systems that differ in numbers alone. `take_steps` lets it
    learn step by step, `solve_flow` by gradient flow.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Descent, Flow, System, solve_flow, take_steps
    >>> class Product(System):  # L = ½ (target − a b)²
    ...     target: float
    ...     def loss(self, state):
    ...         return 0.5 * (self.target - state["a"] * state["b"]) ** 2
    >>> start = {"a": jnp.array(0.1), "b": jnp.array(0.1)}
    >>> steps = take_steps(Product(2.0), start, Descent(0.1), np.arange(0, 201, 100))
    >>> flow = solve_flow(Product(2.0), start, Flow(1e-6, 1e-8), np.array([0.0, 10.0, 20.0]))
    >>> steps.loss.round(3), flow.loss.round(3)
    (array([1.98, 0.  , 0.  ]), array([1.98, 0.  , 0.  ]))

    ```
    """

    @abc.abstractmethod
    def loss(self, state: State) -> Float[Array, ""]:
        """The loss over all the data."""

    def loss_and_step(
        self, state: State, rate: float | Array, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State]:
        """The loss and −rate · ∂L/∂state, over all the data or over a batch of it.

        Override it for a system that learns from batches, or has a faster gradient.
        """
        require(
            batch is None,
            f"{type(self).__name__} does not learn from batches",
            got="a batch of samples",
            wanted="a system that overrides loss_and_step(state, rate, batch)",
            fix="take all samples in every step",
        )
        loss, slope = jax.value_and_grad(self.loss)(state)
        return loss, jax.tree.map(lambda leaf: jnp.asarray(-rate, leaf.dtype) * leaf, slope)

    def velocity(self, state: State) -> State:
        """−∂L/∂state: the direction of gradient flow."""
        return self.loss_and_step(state, 1.0)[1]

    def norm(self, errors: State) -> Float[Array, ""]:
        """How large the errors of a step of the flow are: their root mean square.

        Each is divided by its tolerance. Independent parts of a state need a norm that takes the
        worst of them: a mean would let one part be as wrong as all parts together may be.
        """
        from optimistix import rms_norm

        return rms_norm(errors)

    def observe(self, state: State) -> dict[str, PyTree]:
        """What is recorded of a state besides its loss."""
        return {}

    def shown(self, state: State) -> State:
        """The state as the user knows it; the same, unless it was compressed."""
        return state

    def during(self, moment: PyTree) -> System:
        """What is integrated from a stop to the next, where that changes on the way."""
        return self

    def work(self, members: int = 1) -> float:
        """About how many multiplications a step of `members` members takes."""
        return float(members * sum(np.size(leaf) for leaf in jax.tree.leaves(self)))


@final
class Batch(eqx.Module):
    """Samples for one step: which, and 1 for each (0 where a last batch is filled up).

    ```python
    >>> import jax.numpy as jnp, neuralrace as nr
    >>> from neuralrace.dynamics import Batch, NetworkSystem
    >>> net, data = nr.ReLUNetwork((2, 4, 1)), nr.tasks.xor()
    >>> first_two = Batch(jnp.array([0, 1, 0]), jnp.array([1.0, 1.0, 0.0]))
    >>> loss, change = NetworkSystem(net, data).loss_and_step(net.init(0, 0.1), 0.1, first_two)
    >>> sorted(change)
    ['W1', 'W2']

    ```
    """

    index: Int[Array, " B"]
    present: Float[Array, " B"]


@final
class View(eqx.Module):
    """How recording functions see a run: full-width weights (by a `Lift`), on all samples."""

    lift: Lift
    data: Dataset | None


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Law:
    """What moves weights besides the slope of the loss: weight decay, and a rate for every edge.

    dW_e/dt = η_e (−∂L/∂W_e − λ W_e), with λ = `weight_decay` and η_e = `rates[e]`, 1 where an edge
    is not named. A step of descent is its learning rate times this. L is the loss of the task: the
    penalty ½ λ Σ‖W_e‖² is not part of what is recorded.
    """

    weight_decay: float = 0.0
    rates: Mapping[str, float] = field(default_factory=dict)

    def moved(self, change: State, weights: State, rate: float | Array) -> State:
        """−rate · ∂L/∂W by edge as what the weights move by."""
        return {
            e: self.rates.get(e, 1.0) * (c - rate * self.weight_decay * weights[e])
            for e, c in change.items()
        }

    @property
    def settings(self) -> dict[str, Any]:
        """What a trajectory says about it."""
        decay, rates = float(self.weight_decay), {e: float(r) for e, r in self.rates.items()}
        return ({"weight_decay": decay} if decay else {}) | ({"rates": rates} if rates else {})


def checked_law(
    weight_decay: float | None, rates: Mapping[str, float] | None, edges: Collection[str]
) -> Law:
    """Weight decay and rates of edges as numbers, or an error."""
    for edge in rates or {}:
        one_of("edge in rates", edge, edges, "edges that are not named have the rate 1")
    return Law(float(weight_decay or 0), {e: float(r) for e, r in (rates or {}).items() if r != 1})


@final
class NetworkSystem(System):
    """A network with its data, as something that learns.

    `data` is what it is trained on, compressed or not; `measure` the loss per sample; `recorder`
    what is recorded, and `view` how it sees the run; `evaluations` further datasets to record the
    loss on; `law` what moves the weights besides the loss; `schedule` the sample weights of every
    phase, which `during` puts in place. Without a recorder nothing is recorded.

    ```python
    >>> import jax, neuralrace as nr
    >>> from neuralrace.dynamics import NetworkSystem
    >>> net, data = nr.ReLUNetwork((2, 4, 1)), nr.tasks.xor()
    >>> weights = net.init(0, scale=0.1)
    >>> bool(NetworkSystem(net, data).loss(weights) == net.loss(weights, data))
    True

    ```
    """

    net: Network = eqx.field(static=True)
    data: Dataset
    measure: SampleLoss = eqx.field(static=True, default=squared)
    recorder: Recorder | None = eqx.field(static=True, default=None)
    view: View = View(UNCHANGED, None)
    evaluations: Mapping[str, Dataset] | None = None
    law: Law | None = None
    schedule: Float[Array, "phases N"] | None = None

    def during(self, moment: PyTree) -> NetworkSystem:
        if self.schedule is None:
            return self
        assert self.data.sample_weight is not None  # spelled out, one row per member of an ensemble
        weight = jnp.broadcast_to(self.schedule[moment], self.data.sample_weight.shape)
        return eqx.tree_at(lambda s: s.data.sample_weight, self, weight)

    def loss(self, state: State) -> Float[Array, ""]:
        return self.net.loss(state, self.data, self.measure)

    @door
    def loss_and_step(
        self, state: State, rate: float | Array, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State]:
        data = self.data if batch is None else chosen(self.data, batch)
        loss, change = self.net.loss_and_step(state, data, rate, self.measure)
        return loss, change if self.law is None else self.law.moved(change, state, rate)

    def observe(self, state: State) -> dict[str, PyTree]:
        if self.recorder is None:
            return {}
        return self.recorder(self.shown(state), self.view.data, self.evaluations or {})

    def shown(self, state: State) -> State:
        return self.view.lift(state)

    def work(self, members: int = 1) -> float:
        return step_work(self.net.arch, members * self.data.n_samples)


def chosen(data: Dataset, batch: Batch) -> Dataset:
    """The samples of a batch; their weights are made to sum to one (where all are zero, zero)."""
    rows = jax.tree.map(lambda leaf: leaf[batch.index], data)
    given = rows.sample_weight
    weight = batch.present if given is None else given * batch.present
    total = jnp.sum(weight)
    weight = weight / jnp.where(total > 0, total, 1.0)
    return eqx.tree_at(lambda d: d.sample_weight, rows, weight, is_leaf=lambda v: v is None)


@final
class Batches(eqx.Module):
    """Batches of `size` out of `samples`; the last of an epoch has the rest.

    Epoch e sees the samples in the order `jax.random.permutation(fold_in(key, e), samples)`: any
    step can be taken up again from its number alone.
    """

    key: Array
    size: int = eqx.field(static=True)
    samples: int = eqx.field(static=True)

    @property
    def per_epoch(self) -> int:
        """How many steps an epoch has."""
        return -(-self.samples // self.size)

    def order(self, step: int | Array) -> Int[Array, " padded"]:
        """The samples of the epoch that a step belongs to, filled up to whole batches."""
        key = jax.random.fold_in(self.key, step // self.per_epoch)
        order = jax.random.permutation(key, self.samples)
        return jnp.pad(order, (0, self.per_epoch * self.size - self.samples))

    def batch(self, order: Int[Array, " padded"], step: int | Array, dtype: np.dtype) -> Batch:
        """The batch of a step, given the order of its epoch."""
        first = (step % self.per_epoch) * self.size
        index = jax.lax.dynamic_slice(order, (first,), (self.size,))
        present = (first + jnp.arange(self.size)) < self.samples
        return Batch(index, present.astype(dtype))


def checked_state(state: State) -> State:
    """A state with at least one array, all of them of floating-point numbers, or an error.

    A list of plain numbers is an array.
    """
    fix = "for example state=jnp.array([1.0, 2.0])"
    state = jax.tree.map(
        lambda leaf: real_array("state", leaf, fix=fix) if isinstance(leaf, list) else leaf,
        state,
        is_leaf=_is_numbers,
    )
    leaves = jax.tree.leaves(state)
    kinds = [getattr(leaf, "dtype", np.dtype(type(leaf))) for leaf in leaves]
    require(
        leaves
        and not isinstance(state, Dataset)
        and all(jnp.issubdtype(kind, np.floating) for kind in kinds)
        and not any(isinstance(leaf, np.ma.MaskedArray) for leaf in leaves),
        "state is not valid",
        got=shown(state),
        wanted="arrays of floating-point numbers, in any pytree",
        fix=fix,
    )
    return state


def _is_numbers(node: PyTree) -> bool:
    """Whether a part of a state is a list of plain numbers, nested or not."""
    leaves = jax.tree.leaves(node) if isinstance(node, list) else []
    return bool(leaves) and all(isinstance(leaf, int | float) for leaf in leaves)


def checked_batch_size(batch_size: int, samples: int) -> int:
    """A batch size that fits the data, or an error."""
    require(
        batch_size <= samples,
        "batch_size is larger than the dataset",
        got=f"batch_size={batch_size} for {samples} samples",
        wanted=f"a whole number from 1 to {samples}",
        fix="leave it out to use all samples in every step",
    )
    return int(batch_size)
