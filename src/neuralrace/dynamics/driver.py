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
from typing import Protocol, final, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from neuralrace.dynamics.batches import Batches
from neuralrace.dynamics.methods import Stepper
from neuralrace.dynamics.program import Members, Program
from neuralrace.dynamics.systems import State, System
from neuralrace.dynamics.until import Until

SECONDS = 1.0
"""About how long a call may take: progress is shown, and interrupts are seen, that often."""


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
    """

    stops: Int[np.ndarray, " T"]
    loss: np.ndarray
    values: dict[str, PyTree]
    final: PyTree
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
    asked, until = stops, until or Until()
    state = jax.tree.map(jnp.asarray, state)
    if checkpoints is not None:
        stops = np.union1d(asked, np.arange(0, asked[-1], checkpoints.every))
    program = Program(system, method, stops, asked, batches, until, members, moments)
    carry = program.start(state, first, int(stops[first]))
    parts: list[PyTree] = []
    if checkpoints is not None:
        carry, parts = checkpoints.load(carry, program.records(carry))
    pace = _Pace(program.trial, stops)
    for end in _ends(stops, None if checkpoints is None else checkpoints.every):
        since: list[PyTree] = []
        while (before := int(carry.stop)) < end and not carry.over:
            began = time.monotonic()
            ahead = program.ahead(pace.ahead(before))
            carry, records = program.run(carry, min(end, before + ahead))
            since.append(records)
            pace.took(before, int(carry.stop), time.monotonic() - began)
            seen(int(carry.step), float(np.mean(records[0][-1])))
        parts += [joined(since)] if since else []
        if since and checkpoints is not None:
            checkpoints.save(len(parts) - 1, carry, parts[-1])
    lead = () if members is None else (members.count,)
    reached = stops[first : first + sum(len(part[0]) for part in parts)]
    keep = np.isin(reached, asked)
    whole = jax.tree.map(lambda a: np.moveaxis(a[keep], 0, len(lead)), joined(parts))
    reached = reached[keep]
    why = "until" if bool(carry.ended) else "end"
    stopped = int(carry.first_bad) if members is None and carry.first_bad >= 0 else None
    last = carry.state
    if stopped is not None:  # go back to the last recorded moment with a finite loss
        fine = int(np.searchsorted(reached, stopped))
        whole = jax.tree.map(lambda a: a[:fine], whole)
        reached, why = reached[:fine], "diverged"
        again = program.start(state, first, int(stops[first]))
        end = int(np.searchsorted(stops, reached[-1])) if fine else 0
        while (stop := int(again.stop)) < end:
            again = program.run(again, min(end, stop + program.ahead(end)))[0]
        last = again.state
    loss, values = whole
    final = jax.tree.map(np.asarray, _shown(members, system, last))
    return StepResult(reached, loss, values, final, why, stopped)


def _ends(stops: np.ndarray, every: int | None) -> Iterator[int]:
    """The stops before which a call must end: checkpoints, and the end of the run."""
    if every is not None:
        yield from np.searchsorted(stops, np.arange(every, stops[-1], every)).tolist()
    yield len(stops)


def joined(parts: list[PyTree]) -> PyTree:
    """Pytrees of arrays, one after the other along their first axes."""
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)


@functools.partial(jax.jit, static_argnums=0)
def _shown(members: Members | None, system: System, state: State) -> State:
    if members is None:
        return system.shown(state)
    return jax.vmap(lambda system, state: system.shown(state), (members.system, 0))(system, state)


class _Pace:
    """How many stops the next call may cover: as many as take about `SECONDS`."""

    def __init__(self, trial: float, stops: np.ndarray) -> None:
        self.stops = stops
        self.allowed = np.inf if stops[-1] < 10 * trial else max(1.0, trial)

    def ahead(self, stop: int) -> int:
        """How many stops the next call may pass."""
        if not np.isfinite(self.allowed):
            return len(self.stops)
        end = np.searchsorted(self.stops, self.stops[stop] + self.allowed, side="right")
        return max(int(end) - 1 - stop, 1)

    def took(self, before: int, after: int, seconds: float) -> None:
        """Learn from a call; the first includes the compilation, so that changes are gradual."""
        last = min(after, len(self.stops) - 1)
        steps = max(1.0, float(self.stops[last] - self.stops[before]))
        if np.isfinite(self.allowed):
            self.allowed = steps * float(np.clip(SECONDS / max(seconds, 1e-9), 0.25, 16.0))


def unrolled_steps(system: System, state: State, method: Stepper, count: int) -> State:
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

    return jax.lax.fori_loop(0, count, step, (state, method.begin(state)))[0]
