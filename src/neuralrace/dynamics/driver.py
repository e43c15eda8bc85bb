"""The one loop that every descent goes through: step, record, stop, write checkpoints.

A run is a sequence of *stops*, the steps at which something is recorded. One compiled program goes
from any stop to any other, so that a run can be cut into calls at will: by elapsed time, to show
progress and to see an interrupt, and at checkpoints. Its bits do not depend on the cuts.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from neuralrace.dynamics.batches import Batches
from neuralrace.dynamics.methods import Stepper
from neuralrace.dynamics.systems import State, Stop, System

SECONDS = 1.0
"""About how long a call may take: so often is progress shown and an interrupt seen."""

TRIAL = 5e8
"""Multiplications in the first call of a long run, by which it is timed: about a tenth of a second.

A run with less than ten times as many is one call.
"""

BUFFER = 2**26
"""Bytes of records that one call may keep on the device."""


@runtime_checkable
class Checkpointer(Protocol):
    """Where a run is kept as it goes; see `checkpoint.Checkpoints`."""

    every: int

    def load(self, state: Any, shapes: Any) -> tuple[Any, list[Any]]: ...

    def save(self, part: int, state: Any, recorded: Any) -> None: ...


@final
@dataclass(frozen=True)
class Members:
    """How the runs of an ensemble share a program.

    `system` and `method` say what is batched, as in `jax.vmap`: 0, None, or a tree of these.
    """

    count: int
    system: Any = None
    method: Any = None


@final
@dataclass(frozen=True)
class Until:
    """When a run ends early: at a loss, or where a function of system and state is true."""

    loss: float | None = None
    function: Stop | None = None


@final
@dataclass(frozen=True)
class Steps:
    """What `take_steps` returns; leading axes are the ensemble's, if there is one.

    `stops` are the recorded steps that were reached; `why` is "end", "until" or "diverged";
    `stopped` the step at which the loss of a single run stopped being finite.
    """

    stops: Int[np.ndarray, " T"]
    loss: np.ndarray
    values: dict[str, Any]
    final: Any
    why: str
    stopped: int | None


def take_steps(
    system: System,
    state: State,
    method: Stepper,
    stops: Int[np.ndarray, " T"],
    *,
    batches: Batches | None = None,
    until: Until | None = None,
    members: Members | None = None,
    moments: Any = None,
    first: int = 0,
    checkpoints: Checkpointer | None = None,
    seen: Callable[[int, float], None] = lambda step, loss: None,
) -> Steps:
    """Integrate a system by a method that takes steps, and record it at `stops`.

    `stops` increase from 0; the last is the number of steps. A run may begin at the stop with
    index `first`. With `moments`, a pytree with one entry per stop, the system from stop i on is
    `system.during(moments[i])`. `seen(step, loss)` is called after every compiled call (the mean
    loss, of an ensemble).
    """
    asked, until = stops, until or Until()
    if checkpoints is not None:
        stops = np.union1d(asked, np.arange(0, asked[-1], checkpoints.every))
    program = _Program(system, method, stops, asked, batches, until, members, moments)
    carry = program.start(state, first)
    parts: list[Any] = []
    if checkpoints is not None:
        carry, saved = checkpoints.load(carry, program.shapes(carry))
        parts += saved
    ends = _ends(stops, None if checkpoints is None else checkpoints.every)
    pace = _Pace(program.work, stops)
    for end in ends:
        if carry.done or end <= carry.stop:
            continue
        since: list[Any] = []
        while carry.stop < end and not carry.done:
            before = int(carry.stop)
            began = time.monotonic()
            carry, records = program.run(carry, min(end, pace.next(before, program.rows)))
            since.append(records)
            pace.took(before, int(carry.stop), time.monotonic() - began)
            seen(int(carry.step), float(np.mean(records[0][-1])))
        parts.append(_joined(since))
        if checkpoints is not None:
            checkpoints.save(len(parts) - 1, carry, parts[-1])
    lead = () if members is None else (members.count,)
    reached = stops[first : first + sum(len(part[0]) for part in parts)]
    keep = np.isin(reached, asked)
    whole = jax.tree.map(lambda a: np.moveaxis(a[keep], 0, len(lead)), _joined(parts))
    reached = reached[keep]
    why = "until" if bool(carry.ended) else "end"
    stopped = int(carry.first_bad) if members is None and carry.first_bad >= 0 else None
    last = carry.state
    if stopped is not None:  # go back to the last recorded moment with a finite loss
        fine = int(np.searchsorted(reached, stopped))
        whole = jax.tree.map(lambda a: a[:fine], whole)
        reached, why = reached[:fine], "diverged"
        again = program.start(state, first)
        end = int(np.searchsorted(stops, reached[-1])) if fine else 0
        while again.stop < end:
            again = program.run(again, min(end, int(again.stop) + program.rows))[0]
        last = again.state
    loss, values = whole
    final = jax.tree.map(np.asarray, _shown(members, system, last))
    return Steps(reached, loss, values, final, why, stopped)


def _ends(stops: np.ndarray, every: int | None) -> Iterator[int]:
    """The stops before which a call must end: checkpoints, and the end of the run."""
    if every is not None:
        yield from np.searchsorted(stops, np.arange(every, stops[-1], every)).tolist()
    yield len(stops)


def _joined(parts: list[Any]) -> Any:
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)


@functools.partial(jax.jit, static_argnums=0)
def _shown(members: Members | None, system: System, state: State) -> State:
    if members is None:
        return system.shown(state)
    return jax.vmap(lambda system, state: system.shown(state), (members.system, 0))(system, state)


class _Pace:
    """How many stops the next call may go: as many as take about `SECONDS`."""

    def __init__(self, work: float, stops: np.ndarray) -> None:
        self.stops = stops
        total = work * float(stops[-1])
        self.allowed = np.inf if total < 10 * TRIAL else max(1.0, TRIAL / work)

    def next(self, stop: int, rows: int) -> int:
        """The stop before which the next call ends."""
        if not np.isfinite(self.allowed):
            return stop + rows
        end = int(np.searchsorted(self.stops, self.stops[stop] + self.allowed, side="right"))
        return min(max(end - 1, stop + 1), stop + rows)

    def took(self, before: int, after: int, seconds: float) -> None:
        """Learn from a call; the first includes the compilation, so that changes are gradual."""
        last = min(after, len(self.stops) - 1)
        steps = max(1.0, float(self.stops[last] - self.stops[before]))
        if np.isfinite(self.allowed):
            self.allowed = steps * float(np.clip(SECONDS / max(seconds, 1e-9), 0.25, 16.0))


def march(system: System, state: State, method: Stepper, count: int) -> State:
    """The state after `count` steps on all data, inside a compiled program.

    The number of steps is fixed, so that JAX can differentiate through them.
    """

    def step(_: Any, inner: Any) -> Any:
        state, memory = inner
        return method.step(system, state, memory, None, None)[1:]

    return jax.lax.fori_loop(0, count, step, (state, method.begin(state)))[0]


# ---- the compiled program -----------------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Carry:
    """Where a run is: the next stop, the step it is at, and all that further steps depend on."""

    state: Any
    memory: Any
    stop: Any
    step: Any
    first_bad: Any
    ended: Any

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: it has ended early, or a single run has diverged."""
        return bool(self.ended) or (np.ndim(self.first_bad) == 0 and int(self.first_bad) >= 0)


@dataclass(frozen=True)
class _Plan:
    """What is fixed in a program: the size of its buffer and the kind of loop."""

    rows: int
    each_step: bool
    at_loss: bool
    function: Stop | None
    members: Members | None


class _Program:
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
        moments: Any,
    ) -> None:
        self.system, self.method, self.batches, self.members = system, method, batches, members
        self.gaps = jnp.asarray(np.append(np.diff(stops), 0))
        self.watched = jnp.asarray(np.isin(stops, asked))
        self.moments, self.stops = moments, stops
        self.until = until
        self.count = len(stops)
        early = until.loss is not None or until.function is not None
        self.each_step = bool((np.diff(stops) <= 1).all()) and batches is None and not early
        self.rows = self.count
        self.work = system.work(1 if members is None else members.count)

    def start(self, state: State, first: int) -> _Carry:
        """The carry at the stop where a run begins."""
        lead = () if self.members is None else (self.members.count,)
        begin = self.method.begin
        if self.members is not None:
            begin = jax.vmap(lambda method, state: method.begin(state), (self.members.method, 0))
            memory = begin(self.method, state)
        else:
            memory = begin(state)
        stop, step = jnp.asarray(first), jnp.asarray(int(self.stops[first]))
        carry = _Carry(state, memory, stop, step, jnp.full(lead, -1), jnp.zeros((), bool))
        self.rows = self._rows(carry)
        return carry

    def shapes(self, carry: _Carry) -> tuple[Any, Any]:
        """The shapes of a carry and of the records of one stop."""
        _, buffer = jax.eval_shape(self._call, carry, self.rows)
        return carry, buffer

    def run(self, carry: _Carry, end: int) -> tuple[_Carry, Any]:
        """Go on from where the carry is until before stop `end`; the records on the way."""
        first = int(carry.stop)
        carry, buffer = self._call(carry, end)
        taken = int(carry.stop) - first
        return carry, jax.tree.map(lambda rows: np.asarray(rows[:taken]), buffer)

    def _call(self, carry: _Carry, end: Any) -> tuple[_Carry, Any]:
        plan = _Plan(
            self.rows,
            self.each_step,
            self.until.loss is not None,
            self.until.function,
            self.members,
        )
        limit = jnp.asarray(0.0 if self.until.loss is None else self.until.loss)
        given = (self.system, self.method, self.batches, self.gaps, self.watched, self.moments)
        return _go(plan, *given, limit, end, carry)

    def _rows(self, carry: _Carry) -> int:
        record = _record.eval_shape(self.members, self.system, self.moments, carry.state)
        leaves = jax.tree.leaves(record)
        one = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
        return int(max(1, min(self.count, BUFFER // max(one, 1))))


def _now(system: System, moments: Any, stop: Any) -> System:
    """What is integrated from a stop on."""
    if moments is None:
        return system
    return system.during(jax.tree.map(lambda leaf: leaf[stop], moments))


def _observed(members: Members | None, system: System, state: State) -> Any:
    """The loss and the observables of every run."""

    def one(system: System, state: State) -> Any:
        return system.loss(state), system.observe(state)

    return (one if members is None else jax.vmap(one, (members.system, 0)))(system, state)


@functools.partial(jax.jit, static_argnums=0)
def _record(members: Members | None, system: System, moments: Any, state: State) -> Any:
    """What is recorded at the first stop."""
    return _observed(members, _now(system, moments, 0), state)


@functools.partial(jax.jit, static_argnums=0)
def _go(
    plan: _Plan,
    system: System,
    method: Stepper,
    batches: Batches | None,
    gaps: Any,
    watched: Any,
    moments: Any,
    limit: Any,
    end: Any,
    carry: _Carry,
) -> tuple[_Carry, Any]:
    """From stop to stop: record, then take the steps to the next. Notes the first loss gone bad."""
    members = plan.members
    dtype = jnp.result_type(*jax.tree.leaves(carry.state))
    first = carry.stop

    def one_step(system: Any, method: Any, state: Any, memory: Any, batch: Any, going: Any) -> Any:
        return method.step(system, state, memory, batch, going)

    def observe(system: Any, state: Any) -> Any:
        return system.observe(state)

    if members is not None:
        batched = None if batches is None else 0
        axes = (members.system, members.method, 0, 0, batched, None)
        one_step = jax.vmap(one_step, in_axes=axes)
        observe = jax.vmap(observe, in_axes=(members.system, 0))
    order_of, batch_of = _drawing(batches, members, dtype)

    def moved(
        now: Any, state: Any, memory: Any, step: Any, bad: Any, batch: Any, going: Any
    ) -> Any:
        loss, state, memory = one_step(now, method, state, memory, batch, going)
        bad = jnp.where(jnp.isfinite(loss) | (bad >= 0), bad, step)
        return state, memory, bad, loss

    def stop_by_step(carry: _Carry) -> tuple[_Carry, Any]:
        """One step at every stop: the loss comes with the gradient; the last stands still."""
        gap, now = gaps[carry.stop], _now(system, moments, carry.stop)
        values = observe(now, carry.state)
        state, memory, bad, loss = moved(
            now, carry.state, carry.memory, carry.step, carry.first_bad, None, gap.astype(dtype)
        )
        after = _Carry(state, memory, carry.stop + 1, carry.step + gap, bad, carry.ended)
        return after, (loss, values)

    def stop_by_gap(carry: _Carry, order: Any) -> tuple[_Carry, Any, Any]:
        now = _now(system, moments, carry.stop)
        loss, values = _observed(members, now, carry.state)
        fine = jnp.isfinite(loss) | (carry.first_bad >= 0)
        bad = jnp.where(fine, carry.first_bad, carry.step)
        ended = watched[carry.stop] & _reached(plan, now, limit, loss, carry.state)

        def step(_: Any, inner: Any) -> Any:
            state, memory, at, bad, order = inner
            batch, order = batch_of(order, at)
            state, memory, bad, _ = moved(now, state, memory, at, bad, batch, None)
            return state, memory, at + 1, bad, order

        count = jnp.where(ended, 0, gaps[carry.stop])
        inner = (carry.state, carry.memory, carry.step, bad, order)
        state, memory, at, bad, order = jax.lax.fori_loop(0, count, step, inner)
        return _Carry(state, memory, carry.stop + 1, at, bad, ended), order, (loss, values)

    def body(inner: Any) -> Any:
        carry, order, buffer = inner
        row = carry.stop - first
        if plan.each_step:
            carry, record = stop_by_step(carry)
        else:
            carry, order, record = stop_by_gap(carry, order)
        put = lambda rows, new: jax.lax.dynamic_update_index_in_dim(rows, new, row, 0)  # noqa: E731
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


def _reached(plan: _Plan, system: System, limit: Any, loss: Any, state: State) -> Any:
    """Whether every run has come to where it may end."""
    ended: Any = jnp.zeros((), bool)
    if plan.at_loss:  # a run that has diverged holds up no others
        ended = ended | jnp.all((loss <= limit) | ~jnp.isfinite(loss))
    if plan.function is not None:
        told = plan.function
        if plan.members is not None:
            told = jax.vmap(told, in_axes=(plan.members.system, 0))
        ended = ended | jnp.all(told(system, state))
    return ended


def _drawing(batches: Batches | None, members: Members | None, dtype: Any) -> tuple[Any, Any]:
    """How the order of an epoch is drawn, and the batch of a step taken from it."""
    if batches is None:
        return lambda step: (), lambda order, step: (None, order)

    def order_of(step: Any) -> Any:
        if members is None:
            return batches.order(step)
        each = lambda key: Batches(key, batches.size, batches.samples).order(step)  # noqa: E731
        return jax.vmap(each)(batches.key)

    def batch_of(order: Any, step: Any) -> Any:
        fresh = step % batches.per_epoch == 0
        order = jax.lax.cond(fresh, lambda: order_of(step), lambda: order)
        take = lambda order: batches.batch(order, step, dtype)  # noqa: E731
        return (take(order) if members is None else jax.vmap(take)(order)), order

    return order_of, batch_of
