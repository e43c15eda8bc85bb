"""Gradient flow: the limit of small steps, by an adaptive solver."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.compression import UNCHANGED
from neuralrace.dynamics.setup import StoppedError, View, make_recorder, prepared, shrunk
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.gdln import Weights
from neuralrace.progress import progress
from neuralrace.trajectory import Trajectory

RTOL = {"float64": 1e-8, "float32": 1e-4}
"""Relative tolerance of a step by precision: errors far below what a plot or a table shows."""

USUAL_STEPS = 1000
"""Evaluations of the gradient in a usual solution, to judge whether compressing pays."""


def flow(
    net: Any,
    weights: Any,
    data: Any,
    *,
    times: Any,
    rtol: float | None = None,
    atol: float | None = None,
    record: Any = None,
    until_loss: float | None = None,
    until_stationary: float | None = None,
    max_steps: int = 100_000,
    compress: bool = True,
) -> Trajectory:
    """Gradient flow dW/dt = −∂L/∂W (NRR Eq. 2 with τ = 1) from t = 0, seen at `times`.

    Solved by Dormand and Prince's pair of order 8. From small weights a network first grows
    exponentially out of the saddle at zero; the usual absolute tolerances would mistime that, so
    `atol` defaults to `rtol` times the smallest nonzero root mean square of an edge's weights.

    **Arguments:** `times`, increasing and not negative, spaced as you like; `rtol` defaults to
    1e-8 in float64 and 1e-4 in float32; `record` as in `train`; `until_loss` stops at the first
    step where the loss is at most this, `until_stationary` where ‖dW/dt‖ is at most this times ‖W‖
    (the end of the trajectory is then the time of that step); `max_steps` bounds the work;
    `compress` as in `train` (tolerances then hold for the compressed weights).

    **Raises:** `StoppedError` when the solver cannot reach the end, with what was reached.

    ```python
    >>> import jax, numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(1, 4, 1))
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    >>> run = nr.flow(net, net.init(jax.random.key(0), scale=1e-6), data, times=[0, 10, 20, 40])
    >>> run.loss.round(3)
    array([0.5  , 0.499, 0.   , 0.   ])

    ```
    """
    weights, data = prepared(net, weights, data)
    recorder = make_recorder(net, record, weights, data)
    times = checked_times(times)
    dtype = jnp.result_type(*weights.values())
    if str(dtype) not in RTOL:
        raise NeuralRaceError(
            "the flow needs weights of single or double precision",
            got=f"dtype {dtype}",
            wanted=f"one of {listed(RTOL)}",
            fix="weights.astype(jnp.float32); descent (nr.train) takes any precision",
        )
    rtol = RTOL[str(dtype)] if rtol is None else rtol
    problem = shrunk(net, weights, data, USUAL_STEPS, compress)
    atol = rtol * smallest_rms(problem.weights) if atol is None else atol
    solution = solve_flow(
        problem.net,
        recorder,
        problem.weights,
        problem.data,
        times,
        view=problem.view,
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
        until_loss=until_loss,
        until_stationary=until_stationary,
    )
    reached = float(solution["end"])
    solved = np.asarray(solution["times"])  # in the weights' precision, as `reached` is
    seen = np.isfinite(solved)
    loss, values = jax.tree.map(lambda leaf: np.asarray(leaf)[seen], solution["recorded"])
    shown_times = times[seen]
    if not seen.any() or reached > solved[seen][-1]:
        last = jax.tree.map(lambda leaf: np.asarray(leaf)[None], solution["last"])
        shown_times = np.append(shown_times, reached)
        loss, values = jax.tree.map(lambda a, b: np.concatenate([a, b]), (loss, values), last)
    run = Trajectory(
        shown_times,
        loss,
        values=values,
        final=jax.tree.map(np.asarray, solution["final"]),
        net=net,
        settings={
            "method": "gradient flow",
            "rtol": float(rtol),
            "atol": float(atol),
            "solver_steps": int(solution["steps"]),
            "stopped": solution["why"],
            "dtype": str(dtype),
            "compression": problem.compression,
        },
    )
    if solution["why"] == "failed":
        raise StoppedError(
            run,
            f"the flow could not reach t = {times[-1]:g}",
            got=f"t = {reached:.6g} with loss {loss[-1]:.4g} after {int(solution['steps'])} steps",
            wanted=f"the end of times within max_steps = {max_steps}",
            fix="a larger max_steps or rtol, or fewer times; nr.train takes steps of fixed size. "
            "What was reached is in error.trajectory",
        )
    return run


def smallest_rms(weights: Mapping[Any, Any]) -> float:
    """The smallest nonzero root mean square of an edge's weights, or 1 where all are zero."""
    sizes = [float(np.sqrt(np.mean(np.asarray(w, np.float64) ** 2))) for w in weights.values()]
    return min((size for size in sizes if size > 0), default=1.0)


def solve_flow(
    net: Any,
    recorder: Any,
    weights: Any,
    data: Any,
    times: np.ndarray,
    *,
    view: View | None = None,
    rtol: float,
    atol: float,
    max_steps: int,
    until_loss: float | None = None,
    until_stationary: float | None = None,
) -> dict[str, Any]:
    """The flow of anything hashable with a `loss` and a `velocity`, and in a word why it ended."""
    import diffrax

    view = View(UNCHANGED, data) if view is None else view
    stops = (until_loss is not None, until_stationary is not None)
    dtype = jnp.result_type(*jax.tree.leaves(weights))
    t, r, a = (np.asarray(value, dtype) for value in (times, rtol, atol))
    limits = np.asarray([until_loss or 0.0, until_stationary or 0.0], dtype)
    with _shown_progress() as shown:
        solution, recorded, final = _compiled(
            net, recorder, stops, max_steps, shown, weights, data, view, t, r, a, limits
        )
    seen, _ = solution.ys
    result = solution.result
    if result == diffrax.RESULTS.successful:
        why = "end"
    elif result == diffrax.RESULTS.event_occurred:
        fired = [bool(mask) for mask in solution.event_mask]
        why = "loss" if stops[0] and fired[0] else "stationary"
    else:
        why = "failed"
    return {
        "times": solution.ts[0],
        "recorded": seen,
        "end": solution.ts[1][0],
        "last": recorded,
        "final": final,
        "steps": solution.stats["num_steps"],
        "why": why,
    }


@eqx.filter_jit
def _compiled(
    net: Any,
    recorder: Any,
    stops: tuple[bool, bool],
    max_steps: int,
    shown: bool,
    weights: Any,
    data: Any,
    view: View,
    times: Any,
    rtol: Any,
    atol: Any,
    limits: Any,
) -> Any:
    import diffrax

    def velocity(t: Any, w: Weights, args: Any) -> Weights:
        return net.velocity(w, data)

    def observed(t: Any, w: Weights, args: Any) -> Any:
        return net.loss(w, data), recorder(view.lift(w), view.data)

    def low_loss(t: Any, w: Weights, args: Any, **kwargs: Any) -> Any:
        return net.loss(w, data) <= limits[0]

    def stationary(t: Any, w: Weights, args: Any, **kwargs: Any) -> Any:
        speed, size, still = (_square(v) for v in (velocity(t, w, args), w, view.lift.frozen))
        return jnp.sqrt(speed) <= limits[1] * jnp.sqrt(size + still)

    events = [event for event, asked in zip((low_loss, stationary), stops, strict=True) if asked]
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Dopri8(),
        t0=jnp.zeros((), times.dtype),
        t1=times[-1],
        dt0=None,
        y0=weights,
        saveat=diffrax.SaveAt(
            subs=[
                diffrax.SubSaveAt(ts=times, fn=observed),
                diffrax.SubSaveAt(t1=True),
            ]
        ),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        event=diffrax.Event(events) if events else None,
        max_steps=max_steps,
        throw=False,
        progress_meter=_meter() if shown else diffrax.NoProgressMeter(),
    )
    assert solution.ys is not None
    final = jax.tree.map(lambda leaf: leaf[0], solution.ys[1])
    return solution, observed(None, final, None), view.lift(final)


def _square(tree: Any) -> Any:
    """The sum of squares of all entries of a pytree."""
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree))


def checked_times(times: Any) -> np.ndarray:
    times = np.atleast_1d(np.asarray(times, np.float64))
    fine = times.ndim == 1 and times.size > 0 and bool(np.isfinite(times).all())
    if not fine or times[0] < 0 or (np.diff(times) <= 0).any() or times[-1] == 0:
        raise NeuralRaceError(
            "times must increase",
            got=np.array2string(times, threshold=6),
            wanted="increasing finite numbers, none negative, the last positive",
            fix="for example np.linspace(0, 100, 201) or np.geomspace(0.1, 1000, 50)",
        )
    return times


# ---- progress ----------------------------------------------------------------------------------

_LISTENERS: list[Callable[[float], None]] = []


@contextmanager
def _shown_progress() -> Iterator[bool]:
    """Listen to the solver where someone watches; yields whether it should report at all."""
    if not sys.stderr.isatty():
        yield False
        return
    with progress(1.0, "gradient flow", "of the time") as advance:
        _LISTENERS.append(advance)
        try:
            yield True
        finally:
            jax.effects_barrier()
            _LISTENERS.remove(advance)


def _tell(amount: Any) -> None:
    for listener in _LISTENERS:
        listener(float(amount))


@functools.cache
def _meter() -> Any:
    """A progress meter that reports each further hundredth of the time to whoever listens."""
    import diffrax

    class Meter(diffrax.AbstractProgressMeter):
        def init(self) -> Any:
            return jnp.zeros(())

        def step(self, state: Any, progress: Any) -> Any:
            more = progress - state >= 0.01
            jax.lax.cond(more, lambda: jax.debug.callback(_tell, progress - state), lambda: None)
            return jnp.where(more, progress, state)

        def close(self, state: Any) -> None:
            return None

    return Meter()
