"""Gradient flow: the limit of small steps, by an adaptive solver."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from neuralrace.checks import real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.dynamics.methods import Flow, Until, UntilLike, checked_until, in_precision
from neuralrace.dynamics.record import Record
from neuralrace.dynamics.schedule import Schedule
from neuralrace.dynamics.setup import StoppedError, joined, pose
from neuralrace.dynamics.systems import State, System, checked_state
from neuralrace.errors import listed, require
from neuralrace.gdln import Network
from neuralrace.losses import SampleLoss
from neuralrace.progress import progress
from neuralrace.tolerances import FLOW_RTOL, LATEST
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, NotNegative, Positive, WeightsLike

if TYPE_CHECKING:
    from diffrax import AbstractProgressMeter, AbstractSolver, AbstractStepSizeController
    from diffrax._custom_types import FloatScalarLike, RealScalarLike

T = TypeVar("T")

USUAL_STEPS = 1000
"""Evaluations of the gradient in a usual solution, to judge whether compressing pays."""


@door
def flow(
    net: Network,
    weights: WeightsLike,
    data: Dataset,
    *,
    times: ArrayLike,
    loss: str | SampleLoss = "squared",
    evaluate: Mapping[str, Dataset] | None = None,
    rtol: Positive | None = None,
    atol: Positive | None = None,
    record: Record | None = None,
    until: UntilLike | None = None,
    max_steps: Count = 100_000,
    compress: bool | None = None,
    solver: AbstractSolver[Any] | None = None,
    stepsize_controller: AbstractStepSizeController[Any, Any] | None = None,
    weight_decay: NotNegative | None = None,
    rates: Mapping[str, Positive] | None = None,
    schedule: Schedule | None = None,
) -> Trajectory:
    """Gradient flow dW/dt = −∂L/∂W (NRR Eq. 2 with τ = 1) from t = 0, seen at `times`.

    Solved by Dormand and Prince's pair of order 8. From small weights a network first grows
    exponentially out of the saddle at zero; the usual absolute tolerances would mistime that, so
    `atol` defaults to `rtol` times the smallest nonzero root mean square of an edge's weights.

    **Arguments:** `times`, increasing and not negative, spaced as you like; `rtol` defaults to
    1e-8 in float64 and 1e-4 in float32; `record`, `loss` and `evaluate` as in `train`;
    `until`, a loss, a function of the weights, or an `Until`, such as `Until(stationary=1e-6)`,
    ends the flow at the first step of the solver where it is reached (the end of the trajectory is
    then the time of that step);
    `max_steps` bounds the work;
    `compress` as in `train` (tolerances then hold for the compressed weights); `solver`, such as
    `diffrax.Kvaerno5()`, and `stepsize_controller`, such as `diffrax.PIDController(…)`, which then
    has the tolerances, in place of the usual ones; with `weight_decay` λ and `rates={edge: η}`
    (1 if not named) the flow is dW_e/dt = −η_e (∂L/∂W_e + λ W_e), and the loss recorded is L;
    `schedule`, a `dynamics.Schedule`, weighs the samples anew in every phase.

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
    times = checked_times(times)
    problem = pose(
        net,
        weights,
        data,
        loss=loss,
        record=record,
        evaluate=evaluate,
        steps=USUAL_STEPS,
        compressing=compress,
        weight_decay=weight_decay,
        rates=rates,
        schedule=schedule,
    )
    method = make_flow(problem.weights.values(), rtol, atol, max_steps, schedule)
    require(
        stepsize_controller is None or (rtol, atol) == (None, None),
        "rtol and atol beside a stepsize_controller, which has its own",
        got=f"rtol={rtol}, atol={atol}, stepsize_controller={stepsize_controller}",
        wanted="one or the other",
        fix="pass them to the controller: diffrax.PIDController(rtol=1e-8, atol=1e-10)",
    )
    kinds = ("AbstractAdaptiveStepSizeController", *(["StepTo"] if schedule is None else []))
    method = replace(
        method,
        solver=_of_diffrax("solver", solver, "AbstractSolver"),
        controller=_of_diffrax("stepsize_controller", stepsize_controller, *kinds),
    )
    ends = checked_until(until, flow=True)
    one = joined(problem)
    done = solve_flow(one.system, one.weights, method, times, until=ends)
    run = Trajectory(
        done.times,
        done.loss,
        values=done.values,
        final=done.final,
        **problem.provenance(
            flow_settings(method) | {"solver_steps": done.steps, "stopped": done.why}
        ),
    )
    if done.why == "failed":
        raise StoppedError(
            run,
            f"the flow could not reach t = {times[-1]:g}",
            got=f"t = {done.times[-1]:.6g} with loss {done.loss[-1]:.4g} after {done.steps} steps",
            wanted=f"the end of times within max_steps = {max_steps}",
            fix="a larger max_steps or rtol, or fewer times; nr.train takes steps of fixed size. "
            "What was reached is in error.trajectory",
        )
    return run


def make_flow(
    weights: Collection[ArrayLike],
    rtol: float | None,
    atol: float | None,
    max_steps: int,
    schedule: Schedule | None = None,
) -> Flow:
    """The solver's settings, with tolerances that follow the weights."""
    dtype = str(jnp.result_type(*weights))
    require(
        dtype in FLOW_RTOL,
        "the flow needs weights of single or double precision",
        got=f"dtype {dtype}",
        wanted=f"one of {listed(FLOW_RTOL)}",
        fix="weights.astype(jnp.float32); descent (nr.train) takes any precision",
    )
    rtol = FLOW_RTOL[dtype] if rtol is None else float(rtol)
    atol = rtol * smallest_rms(weights) if atol is None else float(atol)
    jumps = None if schedule is None else schedule.starts[1:]
    return Flow(rtol, atol, int(max_steps), jumps=jumps)


def _of_diffrax(name: str, value: T | None, *kinds: str) -> T | None:
    """An object of one of these classes of diffrax, or an error."""
    import diffrax

    require(
        value is None or isinstance(value, tuple(getattr(diffrax, k) for k in kinds)),
        f"{name} must be an object of diffrax",
        got=f"{value!r:.80}",
        wanted=f"one of {listed(kinds)}",
        fix="solver=diffrax.Tsit5(), stepsize_controller=diffrax.PIDController(rtol=1e-8, "
        "atol=1e-10) or diffrax.StepTo(times)",
    )
    return value


def flow_settings(method: Flow) -> dict[str, str | float]:
    """What a trajectory says about the flow that made it."""
    told: dict[str, str | float] = {"method": "gradient flow", "clock": "flow"}
    if method.solver is not None:
        told["solver"] = type(method.solver).__name__
    if method.controller is not None:
        return told | {"stepsize_controller": repr(method.controller)}
    return told | {"rtol": float(method.rtol), "atol": float(method.atol)}


def smallest_rms(weights: Collection[ArrayLike]) -> float:
    """The smallest nonzero root mean square of one of the arrays, or 1 where all are zero."""
    sizes = [float(np.sqrt(np.mean(np.asarray(w, np.float64) ** 2))) for w in weights]
    return min((size for size in sizes if size > 0), default=1.0)


@final
@dataclass(frozen=True, eq=False)
class FlowResult:
    """What `solve_flow` returns: the times that were reached, and why it ended there.

    `why` is "end", "loss", "stationary", "function" or "failed"; `steps` counts those of
    the solver.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Flow, System, Until, solve_flow
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> flow, times = Flow(1e-8, 1e-10), np.array([0.0, 100.0])
    >>> done = solve_flow(Line(), jnp.array([1.0]), flow, times, until=Until(loss=1e-3))
    >>> done.why, bool(done.times[-1] < 100)
    ('loss', True)

    ```
    """

    times: np.ndarray
    loss: np.ndarray
    values: dict[str, PyTree]
    final: PyTree
    why: str
    steps: int


@door
def solve_flow(
    system: System,
    state: State,
    method: Flow,
    times: np.ndarray,
    *,
    until: Until | None = None,
) -> FlowResult:
    """The gradient flow of a system, seen at `times`, until the end or where `until` is reached.

    ```python
    >>> import jax.numpy as jnp, numpy as np
    >>> from neuralrace.dynamics import Flow, System, solve_flow
    >>> class Line(System):
    ...     def loss(self, state):
    ...         return 0.5 * jnp.sum(state**2)
    >>> done = solve_flow(Line(), jnp.array([1.0]), Flow(1e-6, 1e-8), np.array([0.0, 1.0]))
    >>> done.loss.round(4), done.why  # L = ½ e^(−2t)
    (array([0.5   , 0.0677]), 'end')

    ```
    """
    import diffrax

    until, times = until or Until(), checked_times(times)
    state = checked_state(state)
    dtype = jnp.result_type(*jax.tree.leaves(state))
    t, method, ends = in_precision(dtype, (times, method, jax.tree.map(np.asarray, until)))
    with _watched() as run:
        solution, last, final = _compiled(run, system, state, method, t, ends)
    if solution.result == diffrax.RESULTS.successful:
        why = "end"
    elif solution.result == diffrax.RESULTS.event_occurred:
        why = next(name for name, fired in solution.event_mask.items() if fired)
    else:
        why = "failed"
    reached = float(solution.ts[1][0])
    solved = np.asarray(solution.ts[0])  # in the precision of the state, as `reached` is
    seen = np.isfinite(solved)
    loss, values = jax.tree.map(lambda leaf: np.asarray(leaf)[seen], solution.ys[0])
    shown_times = times[seen]
    if not seen.any() or reached > solved[seen][-1]:
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], last)
        shown_times = np.append(shown_times, reached)
        loss, values = jax.tree.map(lambda a, b: np.concatenate([a, b]), (loss, values), one)
    final = jax.tree.map(np.asarray, final)
    return FlowResult(shown_times, loss, values, final, why, int(solution.stats["num_steps"]))


def solve_flows(
    system: System, states: State, method: Flow, times: np.ndarray, axes: PyTree
) -> tuple[np.ndarray, dict[str, PyTree], PyTree, np.ndarray]:
    """The flows of many systems from many states at once; `axes` say what of them is batched.

    **Returns:** losses and values with the members first, the last states, and which members
    reached the end.
    """
    t, method = in_precision(jnp.result_type(*jax.tree.leaves(states)), (times, method))
    loss, values, final, fine = jax.tree.map(
        np.asarray, _compiled_many(axes, system, states, method, t)
    )
    return loss, values, final, fine


@eqx.filter_jit
def _compiled_many(
    axes: PyTree, system: System, states: State, method: Flow, times: Array
) -> PyTree:
    import diffrax

    def one(system: System, state: State) -> PyTree:
        solution, _, final = _solved(None, system, state, method, times, Until())
        fine = solution.result == diffrax.RESULTS.successful
        return *solution.ys[0], final, fine

    return jax.vmap(one, in_axes=(axes, 0))(system, states)


def _solved(
    run: Array | None,
    system: System,
    state: State,
    method: Flow,
    times: Array,
    until: Until,
) -> PyTree:
    import diffrax

    flat, state_of = ravel_pytree(state)  # as one vector, a solver of many edges compiles quickly

    def now(t: RealScalarLike) -> System:
        if method.jumps is None:
            return system
        return system.during(jnp.searchsorted(jnp.asarray(method.jumps), t, side="right"))

    def velocity(t: RealScalarLike, flat: Array, args: None) -> Array:
        return ravel_pytree(now(t).velocity(state_of(flat)))[0]

    def observed(t: RealScalarLike, flat: Array, args: None) -> PyTree:
        state = state_of(flat)
        return now(t).loss(state), now(t).observe(state)

    def low_loss(t: Array, flat: Array, args: None, **kwargs: object) -> Array:
        assert until.loss is not None
        return now(t).loss(state_of(flat)) <= until.loss

    def stationary(t: Array, flat: Array, args: None, **kwargs: object) -> Array:
        assert until.stationary is not None
        state = state_of(flat)
        speed, size = (_square(v) for v in (now(t).velocity(state), system.shown(state)))
        return jnp.sqrt(speed) <= until.stationary * jnp.sqrt(size)

    def reached(t: Array, flat: Array, args: None, **kwargs: object) -> Array:
        assert until.function is not None
        return jnp.asarray(until.function(now(t), state_of(flat)))

    controller = method.controller or diffrax.PIDController(
        rtol=method.rtol, atol=method.atol, norm=lambda errors: system.norm(state_of(errors))
    )
    if method.jumps is not None:
        assert isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
        jumps = jnp.asarray(method.jumps)
        controller = diffrax.ClipStepSizeController(controller, jump_ts=jumps)
    asked = {
        "loss": (until.loss, low_loss),
        "stationary": (until.stationary, stationary),
        "function": (until.function, reached),
    }
    events = {name: event for name, (limit, event) in asked.items() if limit is not None}
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        method.solver or diffrax.Dopri8(),
        t0=jnp.zeros((), times.dtype),
        t1=times[-1],
        dt0=None,
        y0=flat,
        saveat=diffrax.SaveAt(
            subs=[
                diffrax.SubSaveAt(ts=times, fn=observed),
                diffrax.SubSaveAt(t1=True),
            ]
        ),
        stepsize_controller=controller,
        event=diffrax.Event(events) if events else None,
        max_steps=method.max_steps,
        throw=False,
        progress_meter=diffrax.NoProgressMeter() if run is None else _meter()(run),
    )
    assert solution.ys is not None and solution.ts is not None
    final = solution.ys[1][0]
    last = observed(solution.ts[1][0], final, None)
    return solution, last, system.shown(state_of(final))


_compiled = eqx.filter_jit(_solved)


def _square(tree: PyTree) -> Array:
    """The sum of squares of all entries of a pytree."""
    return sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)), jnp.zeros(()))


def checked_times(times: ArrayLike) -> np.ndarray:
    """Times as an increasing array, or an error."""
    fix = "for example np.linspace(0, 100, 201) or np.geomspace(0.1, 1000, 50)"
    wanted = f"increasing finite numbers up to {LATEST:.0e}, none negative, the last positive"
    times = np.atleast_1d(real_array("times", times, wanted=wanted, fix=fix))
    fine = times.ndim == 1 and times.size > 0 and bool((times <= LATEST).all())
    require(
        fine and times[0] >= 0 and (np.diff(times) > 0).all() and times[-1] != 0,
        "times must increase",
        got=np.array2string(times, threshold=6),
        wanted=wanted,
        fix=fix,
    )
    return times


# ---- progress ----------------------------------------------------------------------------------

_LISTENERS: dict[int, Callable[[float], None]] = {}
"""Who is told about the progress of each running flow, by the number of the run."""

_RUNS = itertools.count()
"""The numbers of the runs."""


@contextmanager
def _watched() -> Iterator[Array | None]:
    """Yield the number under which the solver reports its progress; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    run = next(_RUNS) % 2**31
    with progress(1.0, "gradient flow", "of the time") as advance:
        _LISTENERS[run] = advance
        try:
            yield jnp.asarray(run, jnp.int32)
        finally:
            jax.effects_barrier()
            del _LISTENERS[run]


def _tell(run: Array, amount: Array) -> None:
    listener = _LISTENERS.get(int(run))
    if listener is not None:
        listener(float(amount))


@functools.cache
def _meter() -> Callable[[Array], AbstractProgressMeter]:
    """A progress meter that reports each further hundredth of the time to the listener of a run."""
    import diffrax

    class Meter(diffrax.AbstractProgressMeter):
        run: Array

        def init(self) -> Array:
            return jnp.zeros(())

        def step(self, state: Array, progress: FloatScalarLike) -> Array:
            more = progress - state >= 0.01
            tell = lambda: jax.debug.callback(_tell, self.run, progress - state)
            jax.lax.cond(more, tell, lambda: None)
            return jnp.where(more, progress, state)

        def close(self, state: Array) -> None:
            return None

    return Meter
