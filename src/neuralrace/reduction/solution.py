"""Solving the blocks of a race together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.dynamics.descent import descend
from neuralrace.dynamics.flow import checked_times, smallest_rms, solve_flow
from neuralrace.dynamics.setup import StoppedError, positive_rate
from neuralrace.gdln import GDLN
from neuralrace.progress import progress
from neuralrace.reduction import small
from neuralrace.reduction.block import Block
from neuralrace.reduction.closed_form import mode_form
from neuralrace.reduction.initial import Start
from neuralrace.reduction.lumping import block_system
from neuralrace.reduction.polynomial import PolynomialSystem
from neuralrace.trajectory import Trajectory

RECORDED_PATHS = 1000
"""Up to so many paths in a block, the strength of each is recorded."""

MAX_TABLE = 2**20
"""Up to so many powers in its equations, a scalar block is solved by them."""

RTOL = 1e-9


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Stack:
    """Several networks of one shape side by side: weights and data have a leading axis."""

    net: GDLN

    def losses(self, weights: Any, data: Any) -> Any:
        return jax.vmap(self.net.loss)(weights, data)

    def loss(self, weights: Any, data: Any) -> Any:
        return jnp.sum(self.losses(weights, data))

    def velocity(self, weights: Any, data: Any) -> Any:
        return self.loss_and_step(weights, data, 1.0)[1]

    def loss_and_step(self, weights: Any, data: Any, rate: Any) -> Any:
        losses, step = jax.vmap(self.net.loss_and_step, in_axes=(0, 0, None))(weights, data, rate)
        return jnp.sum(losses), step


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Polynomials:
    """Several merged scalar races side by side; the arrays of `_padded` are the data.

    Powers are below 2^bits and taken by squaring: the general power of a processor takes far
    longer, and is what a step of the flow would spend its time on.
    """

    bits: int

    def _monomials(self, b: Any, data: Any) -> Any:
        square, found = b["b"][:, None, :], 1.0
        for bit in range(self.bits):
            found = jnp.where((data["powers"] >> bit) & 1, found * square, found)
            square = square * square
        return jnp.prod(found, axis=-1)

    def losses(self, b: Any, data: Any) -> Any:
        return jnp.sum(self._monomials(b, data) * data["loss"], axis=-1)

    def loss(self, b: Any, data: Any) -> Any:
        return jnp.sum(self.losses(b, data))

    def velocity(self, b: Any, data: Any) -> Any:
        return {"b": jnp.einsum("nkm,nm->nk", data["velocity"], self._monomials(b, data))}

    def loss_and_step(self, b: Any, data: Any, rate: Any) -> Any:
        return self.loss(b, data), jax.tree.map(lambda v: rate * v, self.velocity(b, data))


@dataclass(frozen=True)
class _Record:
    """Records every variable and the loss of every block of a stack."""

    stack: _Stack | _Polynomials

    def __call__(self, weights: Any, data: Any) -> dict[str, Any]:
        return {"weights": weights, "losses": self.stack.losses(weights, data)}


@final
@dataclass(frozen=True)
class _Shape:
    """A block under names that depend on its shape alone: equal shapes are solved at once."""

    arch: Architecture
    nodes: Mapping[str, str]
    edges: Mapping[str, str]


_Member = tuple[int, dict[str, np.ndarray], Dataset, _Shape]
"""A block among those of its shape: its number, its weights and data under common names."""


def solve_blocks(
    blocks: Sequence[Block],
    start: Start,
    times: Any,
    learning_rate: float | None,
    constant: float,
    compiled: bool | None = None,
) -> Trajectory:
    """Every block from its start, by flow or by descent, and the sum of their losses.

    A block whose flow has an explicit solution is evaluated. The others are solved without
    compiling anything where that is quicker, or by compiled code; `compiled` decides if given.
    """
    times, steps = checked_times(times), None
    if learning_rate is not None:
        learning_rate = positive_rate(learning_rate)
        steps = np.unique(np.round(times / learning_rate).astype(int))
        times = learning_rate * steps
    course = _Course(times, steps, learning_rate, compiled)
    systems = {i: found for i, b in enumerate(blocks) if (found := _merged(b, start.weights[i]))}
    others = [i for i in range(len(blocks)) if i not in systems]
    answers = _scalar_answers(systems, course)
    answers += [_matrix_answer(members, course) for members in _by_shape(blocks, start, others)]
    kept = min((len(answer.losses) for answer in answers), default=len(times))
    losses = np.zeros((kept, len(blocks)))
    variables: dict[str, dict[str, np.ndarray]] = {}
    for answer in answers:
        losses[:, list(answer.variables)] = answer.losses[:kept]
        for i, found in answer.variables.items():
            variables[blocks[i].name] = {edge: w[:kept] for edge, w in found.items()}
    pathways = {
        block.name: _strengths(block.arch, variables[block.name])
        for block in blocks
        if block.arch.path_count() <= RECORDED_PATHS
    }
    solution = Trajectory(
        times[:kept],
        constant + losses.sum(axis=1),
        values={
            "losses": losses,
            "variables": {block.name: variables[block.name] for block in blocks},
            "pathways": pathways,
        },
        settings={
            "method": "race",
            "learning_rate": learning_rate,
            "start": start.description,
            "blocks": len(blocks),
            "solvers": sorted({answer.solver for answer in answers}),
        },
    )
    if kept < len(times):
        raise _stopped(solution, answers, course)
    return solution


@final
@dataclass(frozen=True)
class _Course:
    """What is asked of every block: times of flow, or steps of descent with a learning rate."""

    times: np.ndarray
    steps: np.ndarray | None
    rate: float | None
    compiled: bool | None

    def is_small(self, *problems: small.Problem) -> bool:
        """Whether NumPy is done before a program would be compiled."""
        if self.compiled is not None:
            return not self.compiled
        evaluations = USUAL_EVALUATIONS if self.steps is None else int(self.steps[-1])
        return evaluations * sum(problem.work for problem in problems) <= COMPILING


USUAL_EVALUATIONS = 2000
"""How often the velocity is evaluated in a usual flow."""

COMPILING = 4e9
"""Operations in the time that it takes to compile a program: about four seconds."""


@final
@dataclass(frozen=True)
class _Answer:
    """The solution of some blocks: their weights `(T, |t|, |s|)`, their losses `(T, blocks)`.

    There are fewer times than were asked for where the solution had to stop; `stopped` is then the
    step at which the loss is not finite, or the time that was reached.
    """

    variables: Mapping[int, Mapping[str, np.ndarray]]
    losses: np.ndarray
    solver: str
    stopped: float | None = None


def _scalar_answers(
    systems: Mapping[int, tuple[PolynomialSystem, np.ndarray]], course: _Course
) -> list[_Answer]:
    """Merged scalar races: by their explicit solution, each by itself, or all in one program."""
    answers, rest = [], dict(systems)
    if course.steps is None and course.compiled is None:
        for i, (system, begin) in systems.items():
            names = tuple(f"B{k}" for k in range(len(begin)))
            form = mode_form(system, begin, names)
            if form is not None and form.kind != "quadrature":
                found = form.variables(course.times)
                values = np.stack([found[name] for name in names], axis=-1)
                loss = np.asarray(system.loss_at(values))[:, None]
                answers.append(_Answer({i: system.expanded(values)}, loss, "closed form"))
                del rest[i]
    if not rest:
        return answers

    def expanded(members: Iterable[int], values: np.ndarray) -> dict[int, dict[str, np.ndarray]]:
        """The weights of the races in these rows of `values` (T, races, variables)."""
        return {
            i: rest[i][0].expanded(values[:, k, : len(rest[i][1])]) for k, i in enumerate(members)
        }

    alone = course.steps is None  # each flow takes steps of its own
    groups = [[i] for i in rest] if alone else [list(rest)]
    problems = [small.Polynomials([rest[i] for i in group]) for group in groups]
    if course.is_small(*problems):
        parts: list[_Answer] = []
        for group, problem in zip(groups, problems, strict=True):
            part = small.solved(problem, course.times, course.steps, course.rate)
            if part is None:
                break
            values = part.states.reshape(len(part.states), len(group), -1)
            parts.append(_Answer(expanded(group, values), part.losses, part.solver, part.stopped))
        if len(parts) == len(groups):
            return [*answers, *parts]
    values, losses, stopped = _compiled(*_padded(list(rest.values())), course)
    return [*answers, _Answer(expanded(rest, values["b"]), losses, "compiled", stopped)]


def _matrix_answer(members: Sequence[_Member], course: _Course) -> _Answer:
    """Networks of one shape, all together."""
    stack, weights, data = _stacked(members)
    networks = small.Networks(stack.net.arch, weights, data)
    part = (
        small.solved(networks, course.times, course.steps, course.rate)
        if course.is_small(networks)
        else None
    )
    if part is not None:
        weights, losses = networks.shaped(part.states), part.losses
        solver, stopped = part.solver, part.stopped
    else:
        weights, losses, stopped = _compiled(stack, weights, data, course)
        solver = "compiled"
    variables = {
        index: {edge: weights[name][:, k] for edge, name in shape.edges.items()}
        for k, (index, _, _, shape) in enumerate(members)
    }
    return _Answer(variables, losses, solver, stopped)


def _stopped(solution: Trajectory, answers: Sequence[_Answer], course: _Course) -> StoppedError:
    """The error of a solution that ends too early, with all of it that is finite."""
    first = min(answer.stopped for answer in answers if answer.stopped is not None)
    if course.steps is None:
        return StoppedError(
            solution,
            f"the race could not be solved up to t = {course.times[-1]:g}",
            got=f"a solution up to t = {first:.6g}",
            wanted="the end of times",
            fix="ask for an earlier time, or check that the start is not too large; "
            "what was reached is in error.trajectory",
        )
    return StoppedError(
        solution,
        f"the loss stopped being finite at step {int(first)}",
        got=f"learning rate {course.rate:g}",
        wanted="a descent that converges",
        fix=f"a learning rate below {course.rate:g}, or a smaller start; "
        "what was computed is in error.trajectory",
    )


def _merged(
    block: Block, weights: Mapping[str, np.ndarray]
) -> tuple[PolynomialSystem, np.ndarray] | None:
    """The merged equations of a block that is scalar and starts so, with the start values."""
    if any(w.shape != (1, 1) for w in weights.values()):
        return None
    found = block_system(block, weights)
    return None if found is None or found[0].powers.size > MAX_TABLE else found


def _padded(
    systems: Sequence[tuple[PolynomialSystem, np.ndarray]],
) -> tuple[_Polynomials, Any, Any]:
    """All systems in arrays of one shape, rounded up so that other races compile nothing anew."""
    rounded = lambda n: 1 << (int(n) - 1).bit_length()  # noqa: E731
    count, K, m = (
        len(systems),
        rounded(max(len(start) for _, start in systems)),
        rounded(max(len(system.powers) for system, _ in systems)),
    )
    b, powers = np.zeros((count, K)), np.zeros((count, m, K), int)
    velocity, loss = np.zeros((count, K, m)), np.zeros((count, m))
    for i, (system, start) in enumerate(systems):
        rows, columns = system.powers.shape
        b[i, :columns] = start
        powers[i, :rows, :columns] = system.powers
        velocity[i, :columns, :rows] = system.velocity
        loss[i, :rows] = system.loss
    data = {"powers": powers, "velocity": velocity, "loss": loss}
    return _Polynomials(max(1, int(powers.max()).bit_length())), {"b": b}, data


def _by_shape(blocks: Sequence[Block], start: Start, indices: Sequence[int]) -> list[list[_Member]]:
    """Blocks sorted into groups that one compiled program can solve."""
    groups: dict[Any, list[_Member]] = {}
    for index in indices:
        block, weights = blocks[index], start.weights[index]
        sizes = dict(block.arch.sizes)
        for edge, (s, t) in block.arch.edges.items():
            sizes[t], sizes[s] = weights[edge].shape
        shape = _canonical(Architecture(sizes, block.arch.edges))
        data = Dataset(
            {shape.nodes[v]: x for v, x in block.data.x.items()},
            {shape.nodes[v]: y for v, y in block.data.y.items()},
            {{**shape.nodes, **shape.edges}[name]: g for name, g in block.data.gates.items()},
        )
        named = {shape.edges[edge]: w for edge, w in weights.items()}
        key = (shape.arch, tuple(sorted(data.gates)))
        groups.setdefault(key, []).append((index, named, data, shape))
    return list(groups.values())


def _canonical(arch: Architecture) -> _Shape:
    nodes = {v: f"n{i}" for i, v in enumerate(arch.order)}
    position = {v: i for i, v in enumerate(arch.order)}
    ordered = sorted(arch.edges, key=lambda e: (*(position[v] for v in arch.edges[e]), e))
    edges = {e: f"e{i}" for i, e in enumerate(ordered)}
    renamed = Architecture(
        {nodes[v]: arch.sizes[v] for v in arch.order},
        {edges[e]: (nodes[arch.edges[e][0]], nodes[arch.edges[e][1]]) for e in ordered},
    )
    return _Shape(renamed, nodes, edges)


def _stacked(members: Sequence[_Member]) -> tuple[_Stack, Any, Any]:
    """One network, and the weights and data of all members with a leading axis."""
    count = max(data.n_samples for _, _, data, _ in members)

    def padded(data: Dataset) -> Dataset:
        grow = np.sqrt(count / data.n_samples)  # rows of zeros change nothing but the mean
        pad = lambda a: np.pad(a, [(0, count - len(a)), *[(0, 0)] * (a.ndim - 1)])  # noqa: E731
        return Dataset(
            {v: pad(grow * x) for v, x in data.x.items()},
            {v: pad(grow * y) for v, y in data.y.items()},
            {name: pad(g) for name, g in data.gates.items()},
        )

    stack = _Stack(GDLN(members[0][3].arch))
    weights = jax.tree.map(lambda *w: np.stack(w), *(w for _, w, _, _ in members))
    data = jax.tree.map(lambda *d: np.stack(d), *(padded(d) for _, _, d, _ in members))
    return stack, weights, data


def _compiled(
    stack: Any, weights: Any, data: Any, course: _Course
) -> tuple[Any, np.ndarray, float | None]:
    """Weights and losses of a stack by compiled code, in float64; and where it had to stop."""
    with jax.enable_x64(True):
        if course.steps is None or course.rate is None:
            return _flow(stack, weights, data, course.times)
        return _descent(stack, weights, data, course.steps, course.rate)


def _flow(
    stack: Any, weights: Any, data: Any, times: np.ndarray
) -> tuple[Any, np.ndarray, float | None]:
    entries = isinstance(stack, _Polynomials)  # every variable by itself, or every edge of a block
    sizes = {
        (name, i): part
        for name, w in weights.items()
        for i, part in enumerate(w.ravel() if entries else w)
    }
    atol = RTOL * smallest_rms(sizes)
    solution = solve_flow(
        stack, _Record(stack), weights, data, times, rtol=RTOL, atol=atol, max_steps=1_000_000
    )
    _, recorded = jax.tree.map(np.asarray, solution["recorded"])
    if solution["why"] == "end":
        return recorded["weights"], recorded["losses"], None
    seen = np.isfinite(np.asarray(solution["times"])) & np.isfinite(recorded["losses"]).all(axis=1)
    kept = len(seen) if seen.all() else int(np.argmin(seen))
    recorded = jax.tree.map(lambda a: a[:kept], recorded)
    return recorded["weights"], recorded["losses"], float(solution["end"])


def _descent(
    stack: Any, weights: Any, data: Any, steps: np.ndarray, rate: float
) -> tuple[Any, np.ndarray, float | None]:
    stops = np.unique(np.append(0, steps))
    with progress(int(stops[-1]), "race") as advance:
        recorder: Any = _Record(stack)
        done = descend(stack, recorder, weights, data, rate, stops, advance)
    asked = np.searchsorted(stops, steps)
    asked = asked[asked < done.kept]
    recorded = jax.tree.map(lambda a: a[asked], done.values)
    return recorded["weights"], recorded["losses"], done.stopped


def _strengths(arch: Architecture, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The product of the matrices along every path: its value if scalar, else its norm."""
    scalar = all(w.shape[1:] == (1, 1) for w in weights.values())
    plain = {e: w[:, 0, 0] for e, w in weights.items()} if scalar else weights
    found = {}
    for edges in _path_edges(arch):
        product = plain[edges[0]]
        for edge in edges[1:]:
            product = plain[edge] * product if scalar else plain[edge] @ product
        found["-".join(edges)] = product if scalar else np.linalg.norm(product, axis=(1, 2))
    return found


@lru_cache(maxsize=256)
def _path_edges(arch: Architecture) -> tuple[tuple[str, ...], ...]:
    return tuple(path.edges for path in arch.paths())
