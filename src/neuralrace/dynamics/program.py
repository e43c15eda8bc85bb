"""The compiled program of a run: from any stop to any other, recording on the way."""

from __future__ import annotations

import functools
from dataclasses import dataclass
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
    def done(self) -> bool:
        """Whether the run is over: it has ended early, or a single run has diverged."""
        return bool(self.ended) or (np.ndim(self.first_bad) == 0 and int(self.first_bad) >= 0)


@dataclass(frozen=True)
class _Plan:
    """What is fixed in a program: the size of its buffer and the kind of loop."""

    rows: int
    each_step: bool
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
        self.system, self.method, self.batches, self.members = system, method, batches, members
        self.gaps = jnp.asarray(np.append(np.diff(stops), 0))
        self.watched = jnp.asarray(np.isin(stops, asked))
        self.moments, self.stops = moments, stops
        self.until = jax.tree.map(jnp.asarray, until)
        self.count = len(stops)
        self.each_step = bool((np.diff(stops) <= 1).all()) and batches is None and until.never
        self.rows = self.count
        self.work = system.work(1 if members is None else members.count)

    def start(self, state: State, first: int) -> Carry:
        """The carry at the stop where a run begins."""
        lead = () if self.members is None else (self.members.count,)
        begin = self.method.begin
        if self.members is not None:
            begin = jax.vmap(lambda method, state: method.begin(state), (self.members.method, 0))
            memory = begin(self.method, state)
        else:
            memory = begin(state)
        stop, step = jnp.asarray(first), jnp.asarray(int(self.stops[first]))
        carry = Carry(state, memory, stop, step, jnp.full(lead, -1), jnp.zeros((), bool))
        self.rows = self._rows(carry)
        return carry

    def records(self, carry: Carry) -> PyTree:
        """The shapes of the records of a call."""
        return jax.eval_shape(self._call, carry, self.rows)[1]

    def run(self, carry: Carry, end: int) -> tuple[Carry, PyTree]:
        """Go on from where the carry is until before stop `end`; the records on the way."""
        first = int(carry.stop)
        carry, buffer = self._call(carry, end)
        taken = int(carry.stop) - first
        return carry, jax.tree.map(lambda rows: np.asarray(rows[:taken]), buffer)

    def _call(self, carry: Carry, end: int | Array) -> tuple[Carry, PyTree]:
        plan = _Plan(
            self.rows,
            self.each_step,
            self.members,
        )
        given = (self.system, self.method, self.batches, self.gaps, self.watched, self.moments)
        return _go(plan, *given, self.until, end, carry)

    def _rows(self, carry: Carry) -> int:
        record = _record.eval_shape(self.members, self.system, self.moments, carry.state)
        leaves = jax.tree.leaves(record)
        one = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
        return int(max(1, min(self.count, BUFFER // max(one, 1))))


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
def _record(members: Members | None, system: System, moments: PyTree, state: State) -> PyTree:
    """What is recorded at the first stop."""
    return _observed(members, _now(system, moments, 0), state)


@functools.partial(jax.jit, static_argnums=0)
def _go(
    plan: _Plan,
    system: System,
    method: Stepper,
    batches: Batches | None,
    gaps: Array,
    watched: Array,
    moments: PyTree,
    until: Until,
    end: int | Array,
    carry: Carry,
) -> tuple[Carry, PyTree]:
    """From stop to stop: record, then take the steps to the next. Notes the first bad loss."""
    members = plan.members
    axes = None if members is None else members.system
    dtype = jnp.result_type(*jax.tree.leaves(carry.state))
    first = carry.stop

    def one_step(system: Any, method: Any, state: Any, memory: Any, batch: Any, going: Any) -> Any:
        return method.step(system, state, memory, batch, going)

    def observe(system: Any, state: Any) -> Any:
        return system.observe(state)

    if members is not None:
        batched = None if batches is None else 0
        one_step = jax.vmap(one_step, in_axes=(axes, members.method, 0, 0, batched, None))
        observe = jax.vmap(observe, in_axes=(axes, 0))
    order_of, batch_of = _drawing(batches, members, dtype)

    def moved(
        now: Any, state: Any, memory: Any, step: Any, bad: Any, batch: Any, going: Any
    ) -> Any:
        loss, state, memory = one_step(now, method, state, memory, batch, going)
        bad = jnp.where(jnp.isfinite(loss) | (bad >= 0), bad, step)
        return state, memory, bad, loss

    def stop_by_step(carry: Carry) -> tuple[Carry, Any]:
        """One step at every stop: the loss comes with the gradient; the last stands still."""
        gap, now = gaps[carry.stop], _now(system, moments, carry.stop)
        values = observe(now, carry.state)
        state, memory, bad, loss = moved(
            now, carry.state, carry.memory, carry.step, carry.first_bad, None, gap.astype(dtype)
        )
        after = Carry(state, memory, carry.stop + 1, carry.step + gap, bad, carry.ended)
        return after, (loss, values)

    def stop_by_gap(carry: Carry, order: Any) -> tuple[Carry, Any, Any]:
        now = _now(system, moments, carry.stop)
        loss, values = _observed(members, now, carry.state)
        fine = jnp.isfinite(loss) | (carry.first_bad >= 0)
        bad = jnp.where(fine, carry.first_bad, carry.step)
        ended = watched[carry.stop] & until.reached(now, carry.state, loss, axes)

        def step(_: Any, inner: Any) -> Any:
            state, memory, at, bad, order = inner
            batch, order = batch_of(order, at)
            state, memory, bad, _ = moved(now, state, memory, at, bad, batch, None)
            return state, memory, at + 1, bad, order

        count = jnp.where(ended, 0, gaps[carry.stop])
        inner = (carry.state, carry.memory, carry.step, bad, order)
        state, memory, at, bad, order = jax.lax.fori_loop(0, count, step, inner)
        return Carry(state, memory, carry.stop + 1, at, bad, ended), order, (loss, values)

    def body(inner: Any) -> Any:
        carry, order, buffer = inner
        row = carry.stop - first
        if plan.each_step:
            carry, record = stop_by_step(carry)
        else:
            carry, order, record = stop_by_gap(carry, order)
        put = lambda rows, new: jax.lax.dynamic_update_index_in_dim(rows, new, row, 0)
        return carry, order, jax.tree.map(put, buffer, record)

    def going(inner: Any) -> Any:
        carry, _, _ = inner
        single = carry.first_bad.ndim == 0
        diverged = carry.first_bad >= 0 if single else jnp.zeros((), bool)
        return (carry.stop < end) & ~carry.ended & ~diverged

    here = _now(system, moments, first)
    shapes = jax.eval_shape(functools.partial(_observed, members), here, carry.state)
    buffer = jax.tree.map(lambda s: jnp.zeros((plan.rows, *s.shape), s.dtype), shapes)
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
