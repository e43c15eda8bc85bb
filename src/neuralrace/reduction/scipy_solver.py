"""Small races in NumPy and SciPy: nothing is compiled, so the first answer comes at once."""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.dynamics.systems import Law
from neuralrace.reduction.mixtures import (
    as_wide_as,
    columns,
    forward,
    gated,
    longest_path,
    steps_of,
)
from neuralrace.reduction.polynomial import PolynomialSystem
from neuralrace.statistics import join_nodes
from neuralrace.tolerances import (
    CLEAR,
    EQUAL,
    LAST_DIGIT,
    NEARBY,
    PLATEAU,
    RTOL,
    STAGE,
    STRETCH,
    TINY,
)
from neuralrace.types import Matrix
from neuralrace.weights import by_edge

DENSE = 200
"""With more variables than this, steps are explicit: implicit ones need n² slopes."""


MAX_STEPS = 20_000
"""The most steps between two times; a solution that needs more is compiled."""

RECENT = 8
"""The most steps by which the loss overflows before the weights do.

A descent that diverges squares its error at each step.
"""


@final
@dataclass(frozen=True, eq=False)
class BlockSolution:
    """The solution of a block: its weights `(T, |t|, |s|)`, its loss `(T,)`, and its states.

    If the solution had to stop, there are fewer times than requested, and `stopped` is the last
    step at which the loss is known to be finite, or the time that was reached.
    """

    weights: Mapping[str, np.ndarray]
    losses: Float[np.ndarray, " T"]
    solver: str
    states: Float[np.ndarray, "T n"]
    stopped: float | None = None


def solve_small(
    problem: FlatFlow,
    times: np.ndarray,
    steps: np.ndarray | None,
    rate: float | None,
    rtol: float = RTOL,
    momentum: float = 0.0,
) -> BlockSolution | None:
    """The flow at these times or, with a rate, the descent at these steps; None if it fails."""
    if steps is None or rate is None:
        solver = "LSODA" if len(problem.start) <= DENSE else "DOP853"
        states = flowed(problem, times, rtol)
        if states is None:
            return None
        losses = problem.losses(states)
        initial = max(losses[0], problem.losses(np.zeros((1, len(problem.start))))[0])
        rises = np.diff(losses).max(initial=0.0) > EQUAL * initial
        return (
            None
            if rises and problem.descends
            else BlockSolution(problem.weights(states), losses, solver, states)
        )
    states, stopped = stepped(problem, steps, rate, momentum)
    losses = problem.losses(states)
    return BlockSolution(problem.weights(states), losses, "steps", states, stopped)


def flowed(
    problem: FlatFlow, times: Float[np.ndarray, " T"], rtol: float = RTOL
) -> Float[np.ndarray, "T n"] | None:
    """The state at all times of gradient flow, or None where the solver gave up.

    Variables are in units of their start, since edges of one race can differ by any factor.
    Tolerances are relative to the largest variable, so independent parts are solved one by one:
    otherwise a large part would hide what happens in a small one.

    LSODA uses multistep methods of high order, and implicit ones where the flow is stiff: near the
    end, steps become very long. With many variables, Dormand and Prince's explicit pair of order 8
    takes its place. The flow is solved in stages, in each of which the state grows by a
    limited factor: values below the rounding of the largest variable are noise, and a tolerance
    below that would stop the solver. A larger tolerance allows longer stages. A stage lasts at most
    three times as long as all previous ones. The solution ends when the state has come to rest.
    """
    units = _units(problem)
    if units is None:
        return np.repeat(problem.start[None], len(times), axis=0)
    absolute = PLATEAU * rtol
    growth = problem.growth_span(CLEAR * absolute / LAST_DIGIT)
    now, state, first = 0.0, problem.start, 0.0
    found = [np.repeat(state[None], int(times[0] == 0), axis=0)]
    while now < times[-1]:
        sizes, speeds = (np.abs(a) / units for a in (state, problem.moves(state)))
        largest, speed = float(sizes.max()) or 1.0, float(speeds.max())
        rests = speeds * (times[-1] - now) <= rtol * np.maximum(sizes, LAST_DIGIT * largest)
        if rests.all() and _is_stable(problem, state, units, times[-1]):
            found.append(np.repeat(state[None], int((times > now).sum()), axis=0))
            break
        span = growth * largest / speed if speed > TINY else np.inf  # all has decayed
        first = first or span
        end = min(times[-1], now + min(span, max(STRETCH * now, first)))
        inside = times[(times > now) & (times < end)]
        grid = np.concatenate([[now], inside, [end]])
        solve = _lsoda if len(state) <= DENSE else _dop853
        states = solve(problem, state, grid, rtol, units * max(absolute, LAST_DIGIT * largest))
        if states is None:
            return None
        found.append(states[1:] if end == times[-1] else states[1:-1])
        if end in times and end < times[-1]:
            found.append(states[-1:])
        now, state = end, states[-1]
    return np.concatenate(found)


def _units(problem: FlatFlow) -> np.ndarray | None:
    """The unit of each variable: the size of its start, or the smallest of all where that is 0.

    If all are 0, only edges from inputs to outputs move. Their velocity is v − D·state, which leads
    to about v / D. None if there are no such edges: zero is then a stationary point.
    """
    if problem.sizes.any():
        smallest = problem.sizes[problem.sizes > 0].min()
        return np.where(problem.sizes > 0, problem.sizes, smallest)
    first = problem.moves(problem.start)
    if not first.any():
        return None
    slowed = float(np.linalg.norm(first - problem.moves(first)) / np.linalg.norm(first))
    return np.full(len(first), float(np.abs(first).max()) / (slowed or 1.0))


def _is_stable(problem: FlatFlow, state: np.ndarray, units: np.ndarray, span: float) -> bool:
    """Whether no small deviation from this state would grow by more than e within a time span.

    This is decided by the eigenvalues of the velocity's derivative. It is symmetric for gradient
    flow of the weights, and similar to a symmetric matrix for merged variables. Finite differences
    are small compared with the size of each variable, or with its unit if that is larger; units do
    not change the eigenvalues.
    """
    if len(state) > DENSE:
        return False
    sizes = np.maximum(np.abs(state), units)
    around = NEARBY * np.diag(sizes)
    slopes = [problem.moves(state + d) - problem.moves(state - d) for d in around]
    rates = np.linalg.eigvals(np.array(slopes) / sizes / (2 * NEARBY)).real
    return bool(rates.max() * span <= 1)


def _lsoda(
    problem: FlatFlow, start: np.ndarray, times: np.ndarray, rtol: float, atol: np.ndarray
) -> np.ndarray | None:
    """The states at the times, the first of which is the start."""
    from scipy.integrate import ODEintWarning, odeint

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ODEintWarning)
        states, how = odeint(
            lambda _, state: problem.moves(state),
            start,
            times,
            tfirst=True,
            rtol=rtol,
            atol=atol,
            mxstep=MAX_STEPS,
            full_output=True,
        )
    done = "successful" in how["message"] and bool(np.isfinite(states).all())
    return states if done else None


def _dop853(
    problem: FlatFlow, start: np.ndarray, times: np.ndarray, rtol: float, atol: np.ndarray
) -> np.ndarray | None:
    """The states at the times, the first of which is the start."""
    from scipy.integrate import DOP853

    tolerances: dict[str, Any] = {"rtol": rtol, "atol": atol}
    moves = lambda _, state: problem.moves(state)
    solver = DOP853(moves, times[0], start, times[-1], **tolerances)
    found = [start[None]]
    with np.errstate(all="ignore"):
        for _ in range(MAX_STEPS):
            solver.step()
            if solver.status == "failed":
                return None
            passed = times[(times > solver.t_old) & (times <= solver.t)]
            if len(passed):
                found.append(solver.dense_output()(passed).T)
            if solver.status == "finished":
                states = np.concatenate(found)
                return states if np.isfinite(states).all() else None
    return None


def stepped(
    problem: FlatFlow, steps: Int[np.ndarray, " _"], rate: float, momentum: float = 0.0
) -> tuple[Float[np.ndarray, "T n"], int | None]:
    """The state at these steps of descent and, where the loss stops being finite, the last step.

    Only the states up to there are then returned. With momentum a step is that of descent and
    `momentum` times the one before.
    """
    wanted = set(steps.tolist())
    state, found, moved = problem.start, [], np.zeros_like(problem.start)
    recent: deque[tuple[int, np.ndarray]] = deque(maxlen=RECENT)
    with np.errstate(all="ignore"):
        for step in range(max(wanted) + 1):
            recent.append((step, state))
            if step in wanted:
                found.append(state)
            moved = momentum * moved + rate * problem.moves(state)
            state = state + moved
            if not np.isfinite(state).all():
                break
        else:
            if np.isfinite(problem.losses(found[-1][None])).all():
                return np.stack(found), None
        bad = recent[-1][0] + 1
        for step, before in recent:
            if not np.isfinite(problem.losses(before[None])).all():
                bad = step
                break
    kept = sum(step < bad for step in wanted)
    return np.array(found).reshape(-1, len(problem.start))[:kept], max(bad - 1, 0)


# Gradient flows of a block in NumPy, with one vector as their state.

TOGETHER = 1_000_000
"""Numbers that are held at a time while losses are computed."""

CALL = 1000.0
"""A call of NumPy takes as long as this many operations."""


class FlatFlow(ABC):
    """A block as SciPy solves it: a flat state, its velocity and its loss.

    The tolerances follow from `sizes`. `work` is the number of operations per velocity. `depth` is
    the number of edges on the longest path. It moves by `rates` · velocity − `decay` · state; where
    these are 1 and 0, the loss never rises.
    """

    rates: np.ndarray | float = 1.0
    decay: np.ndarray | float = 0.0
    start: Float[np.ndarray, " n"]
    sizes: Float[np.ndarray, " n"]
    work: float
    depth: int

    def growth_span(self, most: float) -> float:
        """The time, in units of size over speed, in which a state grows by at most this factor.

        Chains of two edges grow exponentially. Those of D edges grow as db/dt ∝ b^{D−1}, without
        bound in a finite time: they are followed until they have grown by a factor below 4.
        """
        if self.depth > 2:
            return 0.7 / (self.depth - 2)
        return float(np.log(max(most, STAGE)))

    @functools.cached_property
    def descends(self) -> bool:
        """Whether this is plain gradient flow, in which the loss never rises."""
        return not isinstance(self.rates, np.ndarray) and not np.any(self.decay)

    def moves(self, state: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The velocity under rates and decay."""
        if self.descends:
            return self.velocity(state)
        return self.rates * self.velocity(state) - self.decay * state

    @abstractmethod
    def velocity(self, state: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The direction of gradient flow."""

    @abstractmethod
    def losses(self, states: Float[np.ndarray, "T n"]) -> Float[np.ndarray, " T"]:
        """The loss at several states."""

    @abstractmethod
    def weights(self, states: Float[np.ndarray, "*T n"]) -> dict[str, np.ndarray]:
        """The weights of every edge of the block at these states, `(*T, |t|, |s|)`."""


@final
class PolynomialFlow(FlatFlow):
    """The merged equations of a block, with the decay of each variable."""

    def __init__(
        self,
        system: PolynomialSystem,
        start: Float[np.ndarray, " K"],
        decay: Float[np.ndarray, " K"] | float = 0.0,
    ) -> None:
        self.system, self.start, self.sizes, self.decay = system, start, np.abs(start), decay
        self.work = 4 * CALL + 20.0 * system.powers.size
        self.depth = (int(system.powers.sum(axis=-1).max(initial=1)) + 1) // 2

    def velocity(self, state: np.ndarray) -> np.ndarray:
        return self.system.velocity_at(state)

    def losses(self, states: np.ndarray) -> np.ndarray:
        return np.asarray(self.system.loss_at(states))

    def weights(self, states: np.ndarray) -> dict[str, np.ndarray]:
        return self.system.expanded(states)


@final
class NetworkFlow(FlatFlow):
    """A gated network; its weights follow one another edge by edge.

    With `joining`, nodes between the same neighbours are one: fewer and larger products.
    """

    def __init__(
        self,
        arch: Architecture,
        weights: Mapping[str, Matrix],
        data: Dataset,
        *,
        joining: bool = False,
    ) -> None:
        self._joined = join_nodes(arch, tuple(data.gates)) if joining else None
        begin = {e: np.asarray(weights[e], np.float64) for e in arch.matrices}
        arch = as_wide_as(arch, begin) if arch.frozen else arch
        sizes = {e: np.full(w.shape, np.sqrt((w**2).mean())) for e, w in begin.items()}
        if self._joined is not None:
            arch, data = self._joined.arch, self._joined.data(data)
            begin, sizes = self._joined.join(begin), self._joined.join(sizes)
        self._arch, self._shapes = arch, {e: begin[e].shape for e in arch.matrices}
        self.start, self.sizes = (
            np.concatenate([a[e].ravel() for e in arch.matrices]) for a in (begin, sizes)
        )
        flops = 6 * data.n_samples * float(len(self.start))
        self.work = 8 * CALL * len(arch.edges) + flops
        self.depth = longest_path(arch)
        gates = columns(data.gates)
        self._steps = steps_of(arch, gates)
        self._x = {v: gated(np.asarray(x), gates.get(v)) for v, x in data.x.items()}
        self._y = {v: np.asarray(y) for v, y in data.y.items()}
        self._share = np.asarray(data.probability, np.float64)[:, None]
        # matrices that share the memory of one vector, of the state and of its velocity
        self._state, self._moved = np.empty((2, len(self.start)))
        moved, self._weight = self._shaped(self._moved), self._by_edge(self._state)
        self._turned = {e: w.T for e, w in self._weight.items()}
        # the velocity of every learned edge, and whether no other adds to it
        self._places = {
            e: (moved[name].T if turned else moved[name], not turned and len(members) == 1)
            for name, members in arch.matrices.items()
            for e, turned in members
        }

    def under(self, law: Law) -> NetworkFlow:
        """The flow with a rate and a decay of every edge."""
        if law.settings:
            each = [np.full(np.prod(n), law.rates.get(e, 1.0)) for e, n in self._shapes.items()]
            self.rates = np.concatenate(each)
            self.decay = law.weight_decay * self.rates
        return self

    def _by_edge(self, states: np.ndarray) -> dict[str, np.ndarray]:
        return by_edge(self._arch, self._shaped(states))

    def _shaped(self, states: np.ndarray) -> dict[str, np.ndarray]:
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()])[:-1]
        parts = np.split(states, ends, axis=-1)
        return {
            e: part.reshape(*states.shape[:-1], *shape)
            for (e, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def weights(self, states: np.ndarray) -> dict[str, np.ndarray]:
        found = self._shaped(states)
        return found if self._joined is None else self._joined.split(found)

    def _activity(self, state: np.ndarray) -> dict[str, np.ndarray]:
        """The activity of every node, and this state in the memory that the matrices share."""
        self._state[:] = state
        return forward(self._steps, self._x, self._turned)

    def velocity(self, state: np.ndarray) -> np.ndarray:
        h = self._activity(state)
        self._moved[:] = 0.0
        pull: dict[str, np.ndarray] = {}
        for node, gate, incoming in reversed(self._steps):
            if node in self._y:
                total = (self._y[node] - h[node]) * self._share
            else:
                parts = [np.dot(pull[e], self._weight[e]) for e in self._arch.outgoing[node]]
                total = functools.reduce(np.add, parts)
            total = gated(total, gate)
            for source, e, edge_gate in incoming:
                pull[e] = gated(total, edge_gate)
                if e in self._places:
                    place, alone = self._places[e]
                    if alone:
                        np.dot(pull[e].T, h[source], out=place)
                    else:
                        place += np.dot(pull[e].T, h[source])
        return self._moved.copy()

    def errors(self, state: Float[np.ndarray, " n"]) -> Float[np.ndarray, " rows"]:
        """y − h of every sample and output, times the root of its weight: the loss is ½‖·‖²."""
        h = self._activity(state)
        gaps = [np.ravel(np.sqrt(self._share) * (y - h[v])) for v, y in self._y.items()]
        return np.concatenate(gaps)

    def losses(self, states: np.ndarray) -> np.ndarray:
        totals = (square.sum(axis=1) for square in self.squares(states).values())
        return sum(totals, np.zeros(len(states))) / 2

    def squares(self, states: Float[np.ndarray, "T n"]) -> dict[str, Float[np.ndarray, "T _"]]:
        """The mean squared error of every number of an output: the loss is half of their sum.

        It is computed for as many states at a time as have `TOGETHER` activities.
        """
        size = len(self._share) * max(y.shape[-1] for y in (*self._x.values(), *self._y.values()))
        many = max(1, TOGETHER // (size + len(self.start)))
        parts = [self._squares(states[i : i + many]) for i in range(0, len(states) or 1, many)]
        return {v: np.concatenate([part[v] for part in parts]) for v in self._y}

    def _squares(self, states: np.ndarray) -> dict[str, np.ndarray]:
        turned = {e: w.swapaxes(-1, -2) for e, w in self._by_edge(states).items()}
        h = forward(self._steps, self._x, turned)
        return {v: (self._share * (y - h[v]) ** 2).sum(axis=1) for v, y in self._y.items()}
