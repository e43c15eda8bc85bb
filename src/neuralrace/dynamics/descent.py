"""Full-batch gradient descent as one compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.compression import UNCHANGED
from neuralrace.dynamics.checkpoint import Checkpoints, describe
from neuralrace.dynamics.setup import (
    StoppedError,
    View,
    make_recorder,
    positive_rate,
    prepared,
    recording_steps,
    shrunk,
)
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.progress import progress
from neuralrace.trajectory import Trajectory

CALLS = 32
"""Into how many compiled calls a run is cut, so that progress can be shown and a stop seen."""


def train(
    net: Any,
    weights: Any,
    data: Any,
    *,
    learning_rate: float,
    steps: int,
    record_every: int = 1,
    record_at: Any = None,
    record: Any = None,
    compress: bool = True,
    checkpoint: Any = None,
    checkpoint_every: int | None = None,
) -> Trajectory:
    """Full-batch gradient descent: `W ← W − learning_rate · ∂L/∂W`, L the mean loss.

    One compiled program: a second call with equal shapes and settings compiles nothing. Memory
    follows what is recorded. The loss is always recorded; the weights are those *before* the step.

    **Arguments:** `record_every` steps, the first and last always, or at the increasing steps
    `record_at`; `record` names what else to keep: `"outputs"`, `"weights"`, `"activity"` (ReLU
    networks) with `True`, or any name with a function of the weights that JAX can compile.
    Functions are recognised by identity: pass the same one again to compile nothing anew.
    `compress=True` simulates long runs of gated linear networks by `nr.compress` where that at
    least halves the work; recorded and final weights are the full-width ones. `checkpoint`, a
    folder, makes the run survive being killed: every `checkpoint_every` steps (1000 if left
    out) what is needed to go on is written there, and the same call goes on from it, to
    bit-identical results.

    **Returns:** a `Trajectory` with `time = learning_rate · step`.

    **Raises:** `StoppedError` when the loss stops being finite, with what was computed.

    ```python
    >>> import jax, jax.numpy as jnp, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 8, 1))
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> run = nr.train(net, net.init(jax.random.key(0), scale=0.1), data, learning_rate=0.1,
    ...                steps=200, record_every=50, record={"norm": lambda w: jnp.sum(w["W1"] ** 2)})
    >>> run.time, bool(run.loss[-1] < 1e-3), run.values["norm"].shape
    (array([ 0.,  5., 10., 15., 20.]), True, (5,))

    ```
    """
    weights, data = prepared(net, weights, data)
    recorder = make_recorder(net, record, weights, data)
    stops = recording_steps(steps, record_every, record_at)
    rate = positive_rate(learning_rate)
    if checkpoint is None and checkpoint_every is not None:
        raise NeuralRaceError(
            "checkpoint_every without a folder for the checkpoints",
            got=f"checkpoint_every={checkpoint_every!r}, checkpoint=None",
            wanted="both, or neither",
            fix="name a folder, for example checkpoint='runs/first', or leave checkpoint_every out",
        )
    problem = shrunk(net, weights, data, int(stops[-1]), compress)
    saved = None
    if checkpoint is not None:
        every = 1000 if checkpoint_every is None else checkpoint_every
        every = whole_number("checkpoint_every", every, fix="leave it out for 1000")
        mine = describe(net, recorder, weights, data, rate, stops, every, problem.compression)
        saved = Checkpoints(checkpoint, mine, every)
        problem = saved.begin(problem)
    settings = {
        "method": "gradient descent",
        "learning_rate": rate,
        "steps": int(stops[-1]),
        "dtype": str(jnp.result_type(*weights.values())),
        "compression": problem.compression,
    }
    with progress(int(stops[-1]), "gradient descent") as advance:
        done = descend(
            problem.net,
            recorder,
            problem.weights,
            problem.data,
            rate,
            stops,
            advance,
            view=problem.view,
            checkpoints=saved,
        )
    run = Trajectory(
        rate * stops[: done.kept],
        done.loss,
        values=done.values,
        final=done.final,
        net=net,
        settings=settings,
    )
    if done.stopped is not None:
        raise StoppedError(
            run,
            f"the loss stopped being finite at step {done.stopped}",
            got=f"a last finite loss of {run.loss[-1]:.3g} at step {stops[done.kept - 1]}"
            if done.kept
            else "a loss that is not finite to begin with",
            wanted="a loss that falls",
            fix=f"a learning rate below {rate:g}, or smaller initial weights; "
            "what was computed is in error.trajectory",
        )
    return run


@final
@dataclass(frozen=True)
class Descent:
    """The result of `descend`: leading axes are the ensemble's, if there is one."""

    loss: np.ndarray
    values: dict[str, Any]
    final: dict[str, Any]
    kept: int
    stopped: int | None


def descend(
    net: Any,
    recorder: Any,
    weights: Any,
    data: Any,
    rate: Any,
    stops: np.ndarray,
    advance: Callable[[float], None],
    batched: tuple[bool, bool, bool] | None = None,
    view: View | None = None,
    checkpoints: Checkpoints | None = None,
) -> Descent:
    """Descend from stop to stop, in a few compiled calls of equal shape."""
    view = View(UNCHANGED, data) if view is None else view
    gaps, place = _calls(stops, None if checkpoints is None else checkpoints.every)
    each_step = bool((gaps <= 1).all())
    members = () if batched is None else (jax.tree.leaves(weights)[0].shape[0],)
    rate = jnp.asarray(rate, jnp.result_type(*weights.values()))
    state = (weights, jnp.zeros((), int), jnp.full(members, -1))
    parts: list[Any] = []
    if checkpoints is not None:
        shapes = jax.eval_shape(
            functools.partial(_descend_part, net, recorder, each_step, batched),
            *(*state, data, view, rate, jnp.asarray(gaps[0])),
        )
        state, parts = checkpoints.load(state, shapes)
        advance(float(gaps[: len(parts)].sum()))
    for call in range(len(parts), len(gaps)):
        if batched is None and state[2] >= 0:
            break
        part = jnp.asarray(gaps[call])
        state, recorded = _descend_part(
            net, recorder, each_step, batched, *state, data, view, rate, part
        )
        parts.append(jax.tree.map(np.asarray, recorded))
        if checkpoints is not None:
            checkpoints.save(call, state, parts[-1])
        advance(float(part.sum()))
    weights, _, first_bad = state

    def joined(*arrays: np.ndarray) -> np.ndarray:
        whole = np.concatenate(arrays)
        return np.moveaxis(whole[place[place < len(whole)]], 0, len(members))

    stopped = int(first_bad) if batched is None and first_bad >= 0 else None
    kept = len(stops) if stopped is None else int(np.searchsorted(stops, stopped))
    keep = lambda array: array[(slice(None),) * len(members) + (slice(None, kept),)]  # noqa: E731
    loss, values = jax.tree.map(lambda *arrays: keep(joined(*arrays)), *parts)
    final = jax.tree.map(np.asarray, _lifted(view.lift, weights))
    return Descent(loss, values, final, kept, stopped)


def _calls(stops: np.ndarray, every: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The steps from stop to stop, a row a call, and where in them each stop that was asked for is.

    Calls are of equal length, filled up with gaps of 0. Without checkpoints there are about
    `CALLS` of them; with one `every` so many steps, a call ends at each.
    """
    asked, last = stops, int(stops[-1])
    if every is None:
        per_call = -(-len(stops) // CALLS)
        call = np.arange(len(stops)) // per_call
    else:
        stops = np.union1d(stops, np.arange(0, last, every))
        call = np.minimum(stops, last - 1) // every
        per_call = int(np.bincount(call).max())
    within = np.arange(len(stops)) - np.searchsorted(call, call)
    gaps = np.zeros((call[-1] + 1, per_call), stops.dtype)
    gaps[call, within] = np.append(np.diff(stops), 0)
    place = call * per_call + within
    return gaps, place[np.searchsorted(stops, asked)]


@jax.jit
def _lifted(lift: Any, weights: Any) -> Any:
    return lift(weights)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _descend_part(
    net: Any,
    recorder: Any,
    each_step: bool,
    batched: tuple[bool, bool, bool] | None,
    weights: Any,
    step: Any,
    first_bad: Any,
    data: Any,
    view: View,
    rate: Any,
    gaps: Any,
) -> Any:
    """At every stop record, then take `gap` steps; note the first whose loss is not finite.

    With `batched`, all runs of an ensemble step together: (weights, data, rate) are batched where
    it says so.
    """

    def one_step(weights: Any, data: Any, rate: Any, step: Any, first_bad: Any) -> Any:
        loss, change = net.loss_and_step(weights, data, rate)
        moved = jax.tree.map(jnp.add, weights, change)
        fine = jnp.isfinite(loss) | (first_bad >= 0)
        return moved, jnp.where(fine, first_bad, step), loss

    def observe(weights: Any, view: View) -> Any:
        return recorder(view.lift(weights), view.data)

    loss_of: Callable[..., Any] = net.loss
    if batched is not None:
        w, d, r = (0 if b else None for b in batched)
        one_step = jax.vmap(one_step, in_axes=(w, d, r, None, 0))
        observe = jax.vmap(observe, in_axes=(w, d))
        loss_of = jax.vmap(loss_of, in_axes=(w, d))

    def stop(carry: Any, gap: Any) -> Any:
        weights, step, first_bad = carry
        values = observe(weights, view)
        if each_step:  # the loss comes with the gradient; a gap of 0 (padding) stands still
            pace = rate * gap.astype(rate.dtype)
            weights, first_bad, loss = one_step(weights, data, pace, step, first_bad)
            return (weights, step + gap, first_bad), (loss, values)
        loss = loss_of(weights, data)

        def body(_: Any, inner: Any) -> Any:
            weights, step, first_bad = inner
            weights, first_bad, _ = one_step(weights, data, rate, step, first_bad)
            return weights, step + 1, first_bad

        weights, step, first_bad = jax.lax.fori_loop(0, gap, body, carry)
        first_bad = jnp.where(jnp.isfinite(loss) | (first_bad >= 0), first_bad, step)
        return (weights, step, first_bad), (loss, values)

    carry, recorded = jax.lax.scan(stop, (weights, step, first_bad), gaps)
    return carry, recorded
