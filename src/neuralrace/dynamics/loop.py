"""The one step loop that every descent goes through: record, step, stop, write checkpoints.

A run is a sequence of *stops*, the steps at which something is recorded; it *moves* from one to the
next. On a CPU one compiled program makes any number of moves, so that a run can be cut into calls
at will: by elapsed time, to show progress and to see an interrupt, and at checkpoints. A GPU waits
for the host wherever the length of a loop is not known, so that there the number of moves is fixed
in the program, and a run is one call. The bits of a run do not depend on the cuts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, final, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from neuralrace.door import door
from neuralrace.dynamics.methods import Stepper, Until
from neuralrace.dynamics.systems import Batch, Batches, State, System, checked_state
from neuralrace.types import Whole

BUFFER = 2**26
"""Bytes of records that one call may keep; on an accelerator a share of its memory, `SHARE`."""

SHARE = 1 / 8
"""The share of an accelerator's memory that the records of one call may take."""

SECONDS = 1.0
"""About how long a call takes on a CPU: progress is shown, and interrupts are seen, that often."""

TRIAL = 5e8
"""Multiplications in the first call of a long run, by which it is timed: about a tenth of a second.

A run with less than ten times as many is one call.
"""

LONGEST = 20.0
"""Seconds that a call on an accelerator may take, judged by `RATE` and `LAUNCH`."""

RATE = 5e12
"""Multiplications in a second of an accelerator, roughly."""

LAUNCH = 2e-5
"""Seconds that an accelerator takes for a step that computes next to nothing, roughly."""

STRETCH = 64
"""Steps between two looks at whether a run may end, each of which an accelerator waits for."""

Records: TypeAlias = tuple[Float[np.ndarray, "stops *members"], dict[str, PyTree]]
"""Losses and recorded values, the stops first."""


@final
@dataclass(frozen=True)
class Members:
    """How the runs of an ensemble share a program.

    `system` and `method` say what is batched, as in `jax.vmap`: 0, None, or a tree of these.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Descent, Members, System, take_steps
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> starts = jnp.array([[1.0], [2.0]])
    >>> take_steps(Line(), starts, Descent(0.5), np.array([0, 1]), members=Members(2)).loss
    array([[0.5  , 0.125],
           [2.   , 0.5  ]])

    ```
    """

    count: int
    system: PyTree = None
    method: PyTree = None


@runtime_checkable
class Checkpointer(Protocol):
    """Where a run is kept as it goes; see `checkpoint.Checkpoints`."""

    every: int

    def load(self, state: PyTree, record: PyTree) -> tuple[PyTree, list[PyTree]]: ...

    def save(self, part: int, state: PyTree, records: PyTree) -> None: ...


@final
@dataclass(frozen=True, eq=False)
class StepResult:
    """What `take_steps` returns; leading axes are the ensemble's, if there is one.

    `stops` are the recorded steps that were reached; `why` is "end", "until" or "diverged";
    `stopped` the step at which the loss of a single run stopped being finite.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Descent, System, take_steps
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> done = take_steps(Line(), jnp.array([1.0]), Descent(0.5), np.array([0, 2]))
    >>> done.stops, done.final, done.why, done.stopped
    (array([0, 2]), array([0.25]), 'end', None)

    ```
    """

    stops: Int[np.ndarray, " T"]
    loss: np.ndarray
    values: dict[str, PyTree]
    final: PyTree
    why: str
    stopped: int | None


@door
def take_steps(
    system: System,
    state: State,
    method: Stepper,
    stops: Int[np.ndarray, " T"],
    *,
    batches: Batches | None = None,
    until: Until | None = None,
    members: Members | None = None,
    moments: PyTree = None,
    first: int = 0,
    checkpoints: Checkpointer | None = None,
    seen: Callable[[int, float], None] = lambda step, loss: None,
) -> StepResult:
    """Let a system learn by a method that takes steps, and record it at `stops`.

    `stops` increase from 0; the last is the number of steps. A run may begin at the stop with
    index `first`. With `moments`, a pytree with one entry per stop, the system from stop i on is
    `system.during(moments[i])`. `seen(step, loss)` is called after every compiled call (the mean
    loss, of an ensemble).

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Descent, System, Until, take_steps
    >>> class Line(System):
    ...     slope: float
    ...     def loss(self, state):
    ...         return 0.5 * self.slope * jnp.sum(state**2)
    ...     def observe(self, state):
    ...         return {"largest": jnp.max(state)}
    >>> done = take_steps(Line(2.0), jnp.array([1.0, 2.0]), Descent(0.25), np.arange(0, 5, 2))
    >>> done.loss, done.values["largest"]
    (array([5.        , 0.3125    , 0.01953125]), array([2.   , 0.5  , 0.125]))
    >>> line, start, until = Line(2.0), jnp.array([1.0]), Until(loss=0.1)
    >>> early = take_steps(line, start, Descent(0.25), np.arange(9), until=until)
    >>> early.stops, early.why
    (array([0, 1, 2]), 'until')

    ```
    """
    asked = stops
    state = jax.tree.map(jnp.asarray, checked_state(state))
    if checkpoints is not None:
        stops = np.union1d(asked, np.arange(0, asked[-1], checkpoints.every))
        last = np.searchsorted(asked, stops, side="right") - 1
        moments = jax.tree.map(lambda leaf: leaf[last], moments)
    problem = (system, method, batches, moments, until or Until())
    program = Program(problem, stops, np.isin(stops, asked), members)
    carry, parts = program.begin(state, first), []
    if checkpoints is not None:
        carry, parts = checkpoints.load(carry, program.shapes(carry))
    lost = members is None and not all(np.isfinite(part[0]).all() for part in parts)
    for end in _ends(stops, None if checkpoints is None else checkpoints.every):
        since: list[Records] = []
        while int(carry.stop) < end and not (carry.ended or lost):
            carry, records = program.run(carry, end)
            since.append(records)
            lost = members is None and not np.isfinite(records[0]).all()
            seen(int(stops[int(carry.stop) - 1]), float(np.mean(records[0][-1])))
        if since:
            parts.append(joined(since))
            if checkpoints is not None:
                checkpoints.save(len(parts) - 1, carry, parts[-1])
    loss, values = joined(parts)
    reached, stopped = stops[first : first + len(loss)], None
    last, why = carry.state, "until" if bool(carry.ended) else "end"
    if lost:  # go back to the last recorded moment with a finite loss
        fine = int(np.isfinite(loss).argmin())
        reached, why = reached[:fine], "diverged"
        recorded = np.flatnonzero(np.isin(reached, asked))
        again = program.until_stop(program.begin(state, first), first + int(max([0, *recorded])))
        last = again.state
        stopped = int(stops[first])
        if fine:
            stopped = program.first_bad(program.until_stop(again, first + fine - 1))
    keep = np.flatnonzero(np.isin(reached, asked))
    lead, rows = 0 if members is None else 1, slice(len(keep)) if len(asked) == len(stops) else keep
    loss, values = jax.tree.map(lambda a: np.moveaxis(a[rows], 0, lead), (loss, values))
    final = jax.tree.map(np.asarray, program.parts.mapped(lambda s, x: s.shown(x), 0)(system, last))
    return StepResult(reached[keep], loss, values, final, why, stopped)


def _ends(stops: np.ndarray, every: int | None) -> Iterator[int]:
    """The stops before which a call must end: checkpoints, and the end of the run."""
    if every is not None:
        yield from np.searchsorted(stops, np.arange(every, stops[-1], every)).tolist()
    yield len(stops)


def joined(parts: list[PyTree]) -> PyTree:
    """Pytrees of arrays, one after the other along their first axes."""
    if len(parts) == 1:
        return parts[0]
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)


# ---- the program of a run -----------------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Carry:
    """Where a run is: the next stop to be recorded, and all that further steps depend on."""

    state: State
    memory: PyTree
    stop: Array | np.ndarray
    ended: Array | np.ndarray


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Parts:
    """What a program is made of; `steps` are the stops, of which `asked` may end the run."""

    system: System
    method: Stepper
    batches: Batches | None
    moments: PyTree
    until: Until
    steps: Array | np.ndarray
    asked: Array | np.ndarray
    members: Members | None = field(metadata={"static": True})

    def at(self, stop: int | Array) -> System:
        """What is integrated from a stop on."""
        if self.moments is None:
            return self.system
        return self.system.during(jax.tree.map(lambda leaf: leaf[stop], self.moments))

    def mapped(self, function: Callable[..., PyTree], *axes: PyTree) -> Callable[..., PyTree]:
        """A function of a system and more, over all members; `axes` are those of what is more."""
        if self.members is None:
            return function
        return jax.vmap(function, in_axes=(self.members.system, *axes))

    def observed(self, now: System, state: State) -> tuple[Array, PyTree]:
        """The loss and the observables of every run."""
        return self.mapped(lambda s, state: (s.loss(state), s.observe(state)), 0)(now, state)

    def values(self, now: System, state: State) -> PyTree:
        """The observables of every run."""
        return self.mapped(lambda s, state: s.observe(state), 0)(now, state)

    def stepped(
        self, now: System, state: State, memory: PyTree, batch: Batch | None = None
    ) -> tuple[Array, State, PyTree]:
        """The loss before a step of every run, and its state and memory after it."""
        step = lambda system, method, *rest: method.step(system, *rest)
        of_method = None if self.members is None else self.members.method
        axes = (of_method, 0, 0, None if batch is None else 0)
        return self.mapped(step, *axes)(now, self.method, state, memory, batch)

    def ends(self, now: System, stop: Array, state: State, loss: Array) -> Array:
        """Whether the run may end at a stop."""
        axes = None if self.members is None else self.members.system
        return self.asked[stop] & self.until.reached(now, state, loss, axes)


@dataclass(frozen=True)
class _Plan:
    """What is fixed in a program: the rows of its buffer, and how it moves from stop to stop.

    A move is one step, or `stretch` of them `even` times, or as many as the stops say.
    """

    rows: int
    each_step: bool
    stretch: int
    even: int | None


class Program:
    """The compiled program of a run, and how many moves each call of it makes."""

    def __init__(
        self,
        problem: tuple[System, Stepper, Batches | None, PyTree, Until],
        stops: np.ndarray,
        asked: np.ndarray,
        members: Members | None,
    ) -> None:
        self.stops, gaps = stops, np.diff(stops)
        self.fixed = on_accelerator()
        work = problem[0].work(1 if members is None else members.count)
        if self.fixed:  # calls of one length, so that one program makes them
            calls = np.ceil(stops[-1] * max(work / RATE, LAUNCH) / LONGEST)
            self.pace = np.ceil(stops[-1] / max(calls, 1))
        else:
            self.pace = TRIAL / work if stops[-1] * work >= 10 * TRIAL else np.inf
        each_step = bool((gaps == 1).all()) and problem[2] is None
        stretch, even = _stretches(gaps) if self.fixed and len(gaps) else (1, None)
        self.plan = _Plan(1, each_step, stretch, even)
        until = jax.tree.map(np.asarray, problem[4])
        self.parts = Parts(*problem[:4], until, np.append(stops, stops[-1]), asked, members)

    def begin(self, state: State, first: int) -> Carry:
        """The carry at the stop where a run begins."""
        memory = _begin.eval_shape(self.parts, state)  # compiles nothing, and is remembered
        if jax.tree.leaves(memory):
            memory = _begin(self.parts, state)
        carry = Carry(state, memory, np.asarray(first), np.zeros((), bool))
        one = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.shapes(carry)))
        room = SHARE * device_memory() if self.fixed else BUFFER
        rows = int(np.clip(room // max(one, 1), 2, len(self.stops)))
        self.plan = _Plan(rows, self.plan.each_step, self.plan.stretch, self.plan.even)
        return carry

    def shapes(self, carry: Carry) -> PyTree:
        """The shapes of the records of one stop, with an axis of length one in front."""
        shapes = _observed.eval_shape(self.parts, carry)
        return jax.tree.map(lambda s: jax.ShapeDtypeStruct((1, *s.shape), s.dtype), shapes)

    def run(self, carry: Carry, end: int) -> tuple[Carry, Records]:
        """Go on from where the carry is, before stop `end`; the records on the way."""
        began, at = time.monotonic(), int(carry.stop)
        last = len(self.stops) - 1
        ahead = int(np.searchsorted(self.stops, self.stops[at] + self.pace, side="right")) - 1
        count = int(min(max(ahead - at, 1), self.plan.rows - 1, min(end, last) - at))
        go = _go_fixed if self.fixed else _go
        carry, buffer = go(self.plan, count, self.parts, carry)
        stop, ended, buffer = jax.device_get((carry.stop, carry.ended, buffer))
        carry = Carry(carry.state, carry.memory, stop, ended)
        records = jax.tree.map(lambda rows: rows[: stop - at], buffer)
        if not self.fixed and np.isfinite(self.pace):  # the first call compiles: go gently
            steps = max(1.0, float(self.stops[at + count] - self.stops[at]))
            seconds = max(time.monotonic() - began, 1e-9)
            self.pace = steps * float(np.clip(SECONDS / seconds, 0.25, 16.0))
        return carry, records

    def until_stop(self, carry: Carry, stop: int) -> Carry:
        """Go on to a stop that is not the last, and forget the records."""
        while int(carry.stop) < stop:
            carry = self.run(carry, stop)[0]
        return carry

    def first_bad(self, carry: Carry) -> int:
        """The first step with a loss that is not finite, where that of the next stop is not."""
        at = int(carry.stop)
        steps = np.arange(self.stops[at], self.stops[at + 1] + 1)
        p = self.parts
        problem = (p.at(at), p.method, p.batches, None, Until())
        each = Program(problem, steps, np.ones(len(steps), bool), None)
        carry = Carry(carry.state, carry.memory, each.begin(carry.state, 0).stop, carry.ended)
        while int(carry.stop) < len(steps):
            before = int(carry.stop)
            carry, records = each.run(carry, len(steps))
            if not np.isfinite(records[0]).all():
                return int(steps[before + np.isfinite(records[0]).argmin()])
        return int(steps[-1])


def _stretches(gaps: np.ndarray) -> tuple[int, int | None]:
    """The steps of a stretch, and how many stretches every gap has, or None where they differ."""
    usual = int(np.bincount(gaps).argmax())
    stretch = next(n for n in range(min(usual, 2 * STRETCH), 0, -1) if usual % n == 0)
    return stretch, usual // stretch if (gaps == usual).all() else None


@jax.jit
def _begin(parts: Parts, state: State) -> PyTree:
    """What a method remembers before the first step."""
    begin = lambda method, state: method.begin(state)
    begin = begin if parts.members is None else jax.vmap(begin, (parts.members.method, 0))
    return begin(parts.method, state)


@jax.jit
def _observed(parts: Parts, carry: Carry) -> tuple[Array, PyTree]:
    """What would be recorded next."""
    return parts.observed(parts.at(jnp.asarray(carry.stop)), carry.state)


def _advance(plan: _Plan, count: int | Array, parts: Parts, carry: Carry) -> tuple[Carry, PyTree]:
    """Make `count` moves, or fewer where the run may end before, and record every stop.

    The state of a stop is recorded before the step, whose gradient comes with the loss; that of the
    last one behind the loop, so that one program can be told any number of moves.
    """
    first, ended, never = jnp.asarray(carry.stop), jnp.asarray(carry.ended), parts.until.never
    order_of, batch_of = _drawing(parts, jnp.result_type(*jax.tree.leaves(carry.state)))
    shapes = jax.eval_shape(_observed, parts, carry)
    rows = plan.rows if isinstance(count, Array) else count + 1
    buffer = jax.tree.map(lambda s: jnp.zeros((rows, *s.shape), s.dtype), shapes)

    def put(buffer: PyTree, row: Array, record: PyTree) -> PyTree:
        one = lambda rows, new: jax.lax.dynamic_update_index_in_dim(rows, new, row, 0)
        return jax.tree.map(one, buffer, record)

    def one_step(row: Array, inner: PyTree) -> PyTree:
        """A stop at every step: the loss comes with the gradient."""
        state, memory, order, buffer = inner
        now = parts.at(first + row)
        values = parts.values(now, state)
        loss, state, memory = parts.stepped(now, state, memory)
        return state, memory, order, put(buffer, row, (loss, values))

    def one_gap(row: Array, inner: PyTree) -> PyTree:
        """A stop, and the steps to the next in stretches of known length."""
        state, memory, order, buffer = inner
        now = parts.at(first + row)
        buffer = put(buffer, row, parts.observed(now, state))
        at, after = parts.steps[first + row], parts.steps[first + row + 1]

        def step(_: Array, inner: PyTree) -> PyTree:
            state, memory, order, at = inner
            batch, order = batch_of(order, at)
            _, state, memory = parts.stepped(now, state, memory, batch)
            return state, memory, order, at + 1

        def stretch(_: Array, inner: PyTree) -> PyTree:
            return jax.lax.fori_loop(0, plan.stretch, step, inner)

        whole = (after - at) // plan.stretch if plan.even is None else plan.even
        inner = jax.lax.fori_loop(0, whole, stretch, (state, memory, order, at))
        if plan.even is None and plan.stretch > 1:
            inner = jax.lax.fori_loop(0, (after - at) % plan.stretch, step, inner)
        return *inner[:3], buffer

    move = one_step if plan.each_step else one_gap

    def move_unless_ended(_: Array, inner: PyTree) -> PyTree:
        """A move, and back again where the run had ended, or all moves were made."""
        row, ended, (state, *rest, buffer) = inner
        after = move(row, (state, *rest, buffer))
        loss = after[-1][0][row]
        ended |= parts.ends(parts.at(first + row), first + row, state, loss)
        moves = (row < count) & ~ended
        kept = jax.tree.map(lambda new, old: jnp.where(moves, new, old), after[:-1], (state, *rest))
        return row + moves, ended, (*kept, after[-1])

    inner = (carry.state, carry.memory, order_of(parts.steps[first]), buffer)
    row = jnp.asarray(count, first.dtype)
    if never:
        inner = jax.lax.fori_loop(0, count, move, inner)
    else:
        row, ended, inner = jax.lax.while_loop(
            lambda inner: (inner[0] < count) & ~inner[1],
            lambda inner: jax.lax.fori_loop(
                0, STRETCH if plan.each_step else 1, move_unless_ended, inner
            ),
            (jnp.zeros_like(first), ended, inner),
        )
    state, memory, _, buffer = inner
    stop = first + row
    now = parts.at(stop)
    loss, values = parts.observed(now, state)
    ended |= parts.ends(now, stop, state, loss)
    over = ended | (stop == len(parts.asked) - 1)
    return Carry(state, memory, stop + over, ended), put(buffer, row, (loss, values))


_go = jax.jit(_advance, static_argnums=0)
_go_fixed = jax.jit(_advance, static_argnums=(0, 1))


def _drawing(
    parts: Parts, dtype: np.dtype
) -> tuple[Callable[..., PyTree], Callable[..., tuple[Batch | None, PyTree]]]:
    """How the order of an epoch is drawn, and the batch of a step taken from it."""
    batches, members = parts.batches, parts.members
    if batches is None:
        return lambda step: (), lambda order, step: (None, order)

    def order_of(step: Array) -> PyTree:
        if members is None:
            return batches.order(step)
        each = lambda key: Batches(key, batches.size, batches.samples).order(step)
        return jax.vmap(each)(batches.key)

    def batch_of(order: PyTree, step: Array) -> tuple[Batch | None, PyTree]:
        fresh = step % batches.per_epoch == 0
        order = jax.lax.cond(fresh, lambda: order_of(step), lambda: order)
        take = lambda order: batches.batch(order, step, dtype)
        return (take(order) if members is None else jax.vmap(take)(order)), order

    return order_of, batch_of


def on_accelerator() -> bool:
    """Whether simulations run on a GPU or the like."""
    return jax.default_backend() != "cpu"


def device_memory() -> int:
    """The bytes of memory of the device that simulations run on."""
    stats = jax.devices()[0].memory_stats() or {}
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return stats.get("bytes_limit", here)


# ---- without a loop of Python's -----------------------------------------------------------------


@door
def unrolled_steps(system: System, state: State, method: Stepper, count: Whole) -> State:
    """The state after `count` steps on all data, inside a compiled program.

    The number of steps is fixed, so that JAX can differentiate through them.

    ```python
    >>> import jax.numpy as jnp
    >>> from neuralrace.dynamics import Descent, System, unrolled_steps
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> unrolled_steps(Line(), jnp.array([1.0]), Descent(0.5), 3)
    Array([0.125], dtype=float64)

    ```
    """

    def step(_: Array, inner: PyTree) -> PyTree:
        state, memory = inner
        return method.step(system, state, memory)[1:]

    state = checked_state(state)
    return jax.lax.fori_loop(0, count, step, (state, method.begin(state)))[0]
