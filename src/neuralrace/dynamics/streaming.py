"""Training on samples that stay on the host, in files larger than memory included.

The batches are those of the compiled loop, in the same order. While one step is computed the
samples of the next are read.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.dataset import Dataset
from neuralrace.dynamics.batches import Batches
from neuralrace.dynamics.driver import SECONDS, Checkpointer, Steps, joined
from neuralrace.dynamics.methods import Stepper
from neuralrace.dynamics.systems import NetworkSystem, State, reweighted
from neuralrace.dynamics.until import Until

AHEAD = 2
"""How many batches are read ahead of the step that is computed."""

CHUNK = 2**24
"""Bytes of samples that are sent at once when the loss over all data is computed."""


def stream_steps(
    system: NetworkSystem,
    state: State,
    method: Stepper,
    stops: np.ndarray,
    *,
    batches: Batches | None,
    until: Until,
    checkpoints: Checkpointer | None = None,
    seen: Callable[[int, float], None] = lambda step, loss: None,
) -> Steps:
    """As `driver.take_steps`, with samples that are sent to the device batch by batch."""
    assert batches is not None
    host, dtype = system.data, jnp.result_type(*jax.tree.leaves(state))
    small = eqx.tree_at(lambda s: s.data, system, None)
    asked = stops
    if checkpoints is not None:
        stops = np.union1d(asked, np.arange(0, asked[-1], checkpoints.every))
    start = state
    shown = jax.tree.map(jnp.asarray, small.shown(start))  # at the last recorded moment
    carry = (state, method.begin(state), jnp.zeros((), int), shown)
    parts: list[Any] = []
    if checkpoints is not None:
        record = jax.eval_shape(lambda s: (jnp.zeros((), dtype), small.observe(s)), state)
        rows = jax.tree.map(lambda r: jax.ShapeDtypeStruct((1, *r.shape), r.dtype), record)
        carry, parts = checkpoints.load(carry, (carry, rows))
    records: list[Any] = []
    done = sum(len(part[0]) for part in parts)
    why, stopped, told = "end", None, time.monotonic()
    with _read_ahead(host, batches, int(carry[2]), int(stops[-1]), dtype) as next_batch:
        for i in range(done, len(stops)):
            state, memory, step, shown = carry
            loss = _loss_of(small, host, state, dtype)
            if not np.isfinite(loss):
                why, stopped = "diverged", int(step)
                break
            records.append(jax.tree.map(lambda v: np.asarray(v)[None], (loss, _seen(small, state))))
            shown = small.shown(state)
            if stops[i] in asked and until.reached(small, state, jnp.asarray(loss)):
                carry = (state, memory, step, shown)
                why = "until"
                break
            for _ in range(stops[i + 1] - stops[i] if i + 1 < len(stops) else 0):
                state, memory = _step(small, method, state, memory, next_batch())
            carry = (state, memory, jnp.asarray(stops[min(i + 1, len(stops) - 1)]), shown)
            if checkpoints is not None and _ends_part(stops, i, checkpoints.every):
                parts.append(joined(records))
                records = []
                checkpoints.save(len(parts) - 1, carry, parts[-1])
            if time.monotonic() - told > SECONDS or i + 1 == len(stops):
                seen(int(stops[i]), float(loss))
                told = time.monotonic()
    if records:
        parts.append(joined(records))
    if not parts:
        empty = jax.eval_shape(lambda s: (jnp.zeros((), dtype), small.observe(s)), start)
        parts = [jax.tree.map(lambda r: np.zeros((0, *r.shape), r.dtype), empty)]
    loss, values = joined(parts)
    reached = stops[: len(loss)]
    keep = np.isin(reached, asked)
    loss, values = jax.tree.map(lambda a: a[keep], (loss, values))
    final = jax.tree.map(np.asarray, carry[3])
    return Steps(reached[keep], loss, values, final, why, stopped)


def _ends_part(stops: np.ndarray, i: int, every: int) -> bool:
    """Whether the next stop begins a new part: a checkpoint, or the end."""
    return i + 1 == len(stops) or int(stops[i + 1]) % every == 0


@jax.jit
def _step(system: Any, method: Any, state: Any, memory: Any, batch: Dataset) -> Any:
    whole = eqx.tree_at(lambda s: s.data, system, batch, is_leaf=lambda v: v is None)
    _, state, memory = method.step(whole, state, memory, None, None)
    return state, memory


@jax.jit
def _seen(system: Any, state: Any) -> Any:
    return system.observe(state)


# ---- samples ------------------------------------------------------------------------------------


def _rows(data: Dataset, index: Any, dtype: Any) -> Dataset:
    """Some samples as arrays of one precision, with their weights in the average over all."""
    weight = data.probability[index] if data.sample_weight is not None else None
    count = len(index) if not isinstance(index, slice) else index.stop - index.start
    if weight is None:
        weight = np.full(count, 1 / data.n_samples)
    arrays: Any = {
        field: {name: np.asarray(a[index], dtype) for name, a in getattr(data, field).items()}
        for field in ("x", "y", "gates")
    }
    bare = Dataset(**arrays)
    return eqx.tree_at(
        lambda d: d.sample_weight, bare, np.asarray(weight, dtype), is_leaf=lambda v: v is None
    )


def _loss_of(system: NetworkSystem, data: Dataset, state: State, dtype: Any) -> np.ndarray:
    """The loss over all samples, chunk by chunk of equal length."""
    leaves = [*data.x.values(), *data.y.values(), *data.gates.values()]
    row = sum(int(np.prod(a.shape[1:])) for a in leaves) * np.dtype(dtype).itemsize
    chunk = int(min(data.n_samples, max(1, CHUNK // row)))
    total = np.zeros((), np.float64)
    for low in range(0, data.n_samples, chunk):
        part = _rows(data, slice(low, min(low + chunk, data.n_samples)), dtype)
        short = chunk - part.n_samples
        if short:  # filled up with samples of no weight
            part = jax.tree.map(
                lambda a, n=short: np.pad(a, [(0, n), *[(0, 0)] * (a.ndim - 1)]), part
            )
        total += float(_chunk_loss(system, state, part))
    return total.astype(dtype)


@jax.jit
def _chunk_loss(system: Any, state: Any, part: Dataset) -> Any:
    return system.net.loss(state, part, system.measure)


@contextmanager
def _read_ahead(
    data: Dataset, batches: Batches, first: int, last: int, dtype: Any
) -> Iterator[Callable[[], Dataset]]:
    """Yield a function that returns the batch of the next step, read by a thread beforehand."""
    ready: queue.Queue[Any] = queue.Queue(AHEAD)
    stop = threading.Event()

    def put(item: Any) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def read() -> None:
        try:
            for batch in _in_order(data, batches, first, last, dtype):
                put(batch)
                if stop.is_set():
                    return
        except Exception as error:  # raised where the batch is asked for
            put(error)

    def next_batch() -> Dataset:
        batch = ready.get()
        if isinstance(batch, Exception):
            raise batch
        return batch

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield next_batch
    finally:
        stop.set()
        reader.join()


def _in_order(
    data: Dataset, batches: Batches, first: int, last: int, dtype: Any
) -> Iterator[Dataset]:
    order = None
    for step in range(first, last):
        if order is None or step % batches.per_epoch == 0:
            order = np.asarray(_order(batches, step))
        low = (step % batches.per_epoch) * batches.size
        index = order[low : low + batches.size]
        present = (low + np.arange(batches.size)) < batches.samples
        rows = _rows(data, index, dtype)
        weight = np.asarray(rows.sample_weight) * present
        yield reweighted(rows, jnp.asarray(weight, dtype))


@jax.jit
def _order(batches: Batches, step: Any) -> Any:
    return batches.order(step)
