"""The compiled program of a run: from any stop to any other, recording on the way.

Its inner loops have a known length, a `stretch`; between stretches it sees whether the run is over.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from neuralrace.dynamics.batches import Batches
from neuralrace.dynamics.methods import Stepper
from neuralrace.dynamics.systems import State, System
from neuralrace.dynamics.until import Until

BUFFER = 2**26
"""Bytes of records that one call may keep on the device."""

STRETCH = 128
"""The most steps between two looks at whether the run is over, which cost a GPU microseconds."""

TRIAL = 5e8
"""Multiplications in the first call of a long run, by which it is timed: about a tenth of a second.

A run with less than ten times as many is one call.
"""


@final
@dataclass(frozen=True)
class Members:
    """How the runs of an ensemble share a program.

    `system` and `method` say what is batched, as in `jax.vmap`: 0, None, or a tree of these.
    """

    count: int
    system: PyTree = None
    method: PyTree = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Carry:
    """Where a run is: the next stop, the step it is at, and all that further steps depend on."""

    state: State
    memory: PyTree
    stop: Array
    step: Array
    first_bad: Array
    ended: Array

    @property
    def over(self) -> Array:
        """Whether the run has ended early: at its `until`, or a single one has diverged."""
        return self.ended | (self.first_bad >= 0) if self.first_bad.ndim == 0 else self.ended


@dataclass(frozen=True)
class _Plan:
    """What is fixed in a program: the rows of its buffer, the kind of loop, and its stretches."""

    rows: int
    each_step: bool
    stretch: int
    members: Members | None


class Program:
    """A system, a method and the stops of a run, bound together."""

    def __init__(
        self,
        system: System,
        method: Stepper,
        stops: np.ndarray,
        asked: np.ndarray,
        batches: Batches | None,
        until: Until,
        members: Members | None,
        moments: PyTree,
    ) -> None:
        self.members, gaps = members, np.diff(stops)
        self.trial = TRIAL / system.work(1 if members is None else members.count)
        most = int(np.clip(self.trial / 10, 1, STRETCH))
        each_step = bool((gaps <= 1).all()) and batches is None
        if each_step:
            stretch = -(-len(stops) // -(-len(stops) // most))
        else:
            common = int(np.gcd.reduce(gaps))
            stretch = next(n for n in range(min(most, common), 0, -1) if common % n == 0)
        self.plan = _Plan(len(stops), each_step, stretch, members)
        self.parts = (
            system, method, batches, jnp.asarray(np.append(gaps, 0)),
            jnp.asarray(np.isin(stops, asked)), moments, jax.tree.map(jnp.asarray, until),
        )  # fmt: skip

    def start(self, state: State, first: int, step: int) -> Carry:
        """The carry at the stop, and the step, where a run begins."""
        carry, record = _start(self.members, self.parts, state, first, step)
        one = sum(leaf.nbytes for leaf in jax.tree.leaves(record))
        rows = int(np.clip(BUFFER // max(one, 1), 1, self.plan.rows))
        stretch = min(self.plan.stretch, rows) if self.plan.each_step else self.plan.stretch
        self.plan = replace(self.plan, rows=rows, stretch=stretch)
        return carry

    def ahead(self, stops: int) -> int:
        """That many stops, or as many as one call takes well: whole stretches that fit."""
        whole = self.plan.stretch if self.plan.each_step else 1
        return min(max(stops // whole, 1) * whole, self.plan.rows)

    def records(self, carry: Carry) -> PyTree:
        """The shapes of the records of a call."""
        return jax.eval_shape(functools.partial(_go, self.plan, self.parts), 0, carry)[1]

    def run(self, carry: Carry, end: int) -> tuple[Carry, PyTree]:
        """Go on from where the carry is until before stop `end`; the records on the way."""
        first = int(carry.stop)
        carry, buffer = _go(self.plan, self.parts, end, carry)
        taken = int(carry.stop) - first
        return carry, jax.tree.map(lambda rows: np.asarray(rows)[:taken], buffer)


def _now(system: System, moments: PyTree, stop: int | Array) -> System:
    """What is integrated from a stop on."""
    if moments is None:
        return system
    return system.during(jax.tree.map(lambda leaf: leaf[stop], moments))


def _observed(members: Members | None, system: System, state: State) -> PyTree:
    """The loss and the observables of every run."""

    def one(system: System, state: State) -> PyTree:
        return system.loss(state), system.observe(state)

    return (one if members is None else jax.vmap(one, (members.system, 0)))(system, state)


@functools.partial(jax.jit, static_argnums=0)
def _start(
    members: Members | None, parts: PyTree, state: State, first: int | Array, step: int | Array
) -> tuple[Carry, PyTree]:
    """The carry at a stop, and what is recorded there."""
    system, method, moments = parts[0], parts[1], parts[5]
    begin = lambda method, state: method.begin(state)
    lead = ()
    if members is not None:
        begin, lead = jax.vmap(begin, (members.method, 0)), (members.count,)
    stop, bad = jnp.asarray(first), jnp.full(lead, -1)
    carry = Carry(state, begin(method, state), stop, jnp.asarray(step), bad, jnp.zeros((), bool))
    return carry, _observed(members, _now(system, moments, first), state)


@functools.partial(jax.jit, static_argnums=0)
def _go(plan: _Plan, parts: PyTree, end: int | Array, carry: Carry) -> tuple[Carry, PyTree]:
    """From stop to stop: record, then take the steps to the next. Notes the first bad loss."""
    system, method, batches, gaps, watched, moments, until = parts
    members = plan.members
    axes = None if members is None else members.system
    dtype = jnp.result_type(*jax.tree.leaves(carry.state))
    first = carry.stop
    order_of, batch_of = _drawing(batches, members, dtype)

    def observe(system: Any, state: Any) -> Any:
        return system.observe(state)

    def one_step(system: Any, method: Any, state: Any, memory: Any, batch: Any) -> Any:
        return method.step(system, state, memory, batch)

    if members is not None:
        observe = jax.vmap(observe, (axes, 0))
        one_step = jax.vmap(one_step, (axes, members.method, 0, 0, None if batches is None else 0))

    def ends(now: Any, carry: Carry, loss: Any) -> Any:
        return watched[carry.stop] & until.reached(now, carry.state, loss, axes)

    def noted(bad: Any, loss: Any, step: Any) -> Any:
        return jnp.where(jnp.isfinite(loss) | (bad >= 0), bad, step)

    def stop_by_step(carry: Carry, _: None) -> tuple[Carry, Any]:
        """A stop at every step: the loss comes with the gradient. Behind the end nothing moves."""
        now = _now(system, moments, carry.stop)
        values = observe(now, carry.state)
        loss, state, memory = one_step(now, method, carry.state, carry.memory, None)
        active = (carry.stop < end) & ~carry.over
        ended = carry.ended | (active & ends(now, carry, loss))
        moves = active & ~ended & (gaps[carry.stop] > 0)
        choose = lambda new, old: jnp.where(moves, new, old)
        state, memory = jax.tree.map(choose, (state, memory), (carry.state, carry.memory))
        bad = jnp.where(active, noted(carry.first_bad, loss, carry.step), carry.first_bad)
        after = Carry(state, memory, carry.stop + active, carry.step + moves, bad, ended)
        return after, (loss, values)

    def stop_by_gap(carry: Carry, order: Any) -> tuple[Carry, Any, Any]:
        """A stop, and the steps to the next in stretches of equal length."""
        now = _now(system, moments, carry.stop)
        loss, values = _observed(members, now, carry.state)
        ended = ends(now, carry, loss)

        def step(_: Any, inner: Any) -> Any:
            state, memory, at, bad, order = inner
            batch, order = batch_of(order, at)
            loss, state, memory = one_step(now, method, state, memory, batch)
            return state, memory, at + 1, noted(bad, loss, at), order

        def stretch(_: Any, inner: Any) -> Any:
            return jax.lax.fori_loop(0, plan.stretch, step, inner)

        count = jnp.where(ended, 0, gaps[carry.stop] // plan.stretch)
        bad = noted(carry.first_bad, loss, carry.step)
        inner = (carry.state, carry.memory, carry.step, bad, order)
        state, memory, at, bad, order = jax.lax.fori_loop(0, count, stretch, inner)
        return Carry(state, memory, carry.stop + 1, at, bad, ended), order, (loss, values)

    def body(inner: Any) -> Any:
        carry, order, buffer = inner
        row = carry.stop - first
        if plan.each_step:
            carry, record = jax.lax.scan(stop_by_step, carry, length=plan.stretch)
        else:
            carry, order, record = stop_by_gap(carry, order)
            record = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], record)
        put = lambda rows, new: jax.lax.dynamic_update_slice_in_dim(rows, new, row, 0)
        return carry, order, jax.tree.map(put, buffer, record)

    def going(inner: Any) -> Any:
        return (inner[0].stop < end) & ~inner[0].over

    here = _now(system, moments, first)
    shapes = jax.eval_shape(functools.partial(_observed, members), here, carry.state)
    rows = plan.rows + (plan.stretch if plan.each_step else 0)  # the last may reach behind the end
    buffer = jax.tree.map(lambda s: jnp.zeros((rows, *s.shape), s.dtype), shapes)
    carry, _, buffer = jax.lax.while_loop(going, body, (carry, order_of(carry.step), buffer))
    return carry, buffer


def _drawing(batches: Batches | None, members: Members | None, dtype: Any) -> tuple[Any, Any]:
    """How the order of an epoch is drawn, and the batch of a step taken from it."""
    if batches is None:
        return lambda step: (), lambda order, step: (None, order)

    def order_of(step: Any) -> Any:
        if members is None:
            return batches.order(step)
        each = lambda key: Batches(key, batches.size, batches.samples).order(step)
        return jax.vmap(each)(batches.key)

    def batch_of(order: Any, step: Any) -> Any:
        fresh = step % batches.per_epoch == 0
        order = jax.lax.cond(fresh, lambda: order_of(step), lambda: order)
        take = lambda order: batches.batch(order, step, dtype)
        return (take(order) if members is None else jax.vmap(take)(order)), order

    return order_of, batch_of
