"""Solving the blocks of a race together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import real_number
from neuralrace.dataset import Dataset
from neuralrace.dynamics.flow import checked_times
from neuralrace.dynamics.setup import StoppedError, positive_rate
from neuralrace.errors import NeuralRaceError
from neuralrace.gdln import GDLN
from neuralrace.reduction.blocks.block import Block
from neuralrace.reduction.equations.flows import FlatFlow, NetworkFlow
from neuralrace.reduction.equations.mode_form import mode_form
from neuralrace.reduction.equations.polynomial import PolynomialSystem
from neuralrace.reduction.equations.system import block_system
from neuralrace.reduction.solving import compiled, small
from neuralrace.reduction.solving.alike import alike_networks, alike_races, turned
from neuralrace.reduction.solving.initial import Start
from neuralrace.statistics import join_nodes
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike

RECORDED_PATHS = 1000
"""Up to this many paths in a block, the strength of each is recorded."""

MAX_TABLE = 2**20
"""A scalar block is solved by its merged equations if they have at most this many powers."""

MOST_STEPS = 1e12
"""The most steps of descent that a race can be asked for; more would take years."""

USUAL_EVALUATIONS = 2000
"""The typical number of evaluations of the velocity in a flow."""

COMPILING = 4e9
"""The number of operations in the time it takes to compile a program, about four seconds."""


AGAIN = 0.25
"""A large flow is compiled when NumPy has taken this part of the time of compiling for its like."""

_SPENT: Counter[Hashable] = Counter()
"""The number of operations so far in large flows of one graph, by graph, number and times."""

WATCHED = 512
"""The number of times at which the growing halves of modes are watched, evenly and by their ratio.

A half that falls below its start and rises again between two of these times has moved by little.
"""

SOON = 1e-6
"""The first of these times, as a part of the last."""

FALLEN = 1e-6
"""A weight that is below its start by less than this part has only been rounded."""


@final
@dataclass(frozen=True)
class _Shape:
    """A block under names that depend only on its shape: equal shapes are solved together."""

    arch: Architecture
    nodes: Mapping[str, str]
    edges: Mapping[str, str]


_Member = tuple[int, dict[str, np.ndarray], Dataset, _Shape]
"""One block of a group of equal shape: its index, and its weights and data under common names."""


def checked_tolerance(rtol: float | None) -> float | None:
    """The relative tolerance of a step that was asked for, or None for each solver's own."""
    fix = "leave it out, or pass 1e-8 for a picture"
    return None if rtol is None else real_number("rtol", rtol, least=1e-13, below=1, fix=fix)


def solve_blocks(
    blocks: Sequence[Block],
    start: Start,
    times: ArrayLike,
    learning_rate: float | None,
    constant: float,
    compiling: bool | None = None,
    rtol: float | None = None,
) -> Trajectory:
    """Every block from its start, by flow or by descent, and the sum of their losses.

    A mode of two edges starts from its growing half alone. Where the error along a path changes its
    sign and this half falls below its start, the other half grows beyond its own: such blocks are
    solved again with both halves.

    A block whose flow has an explicit solution is evaluated directly. The others are solved without
    compiling anything where that is quicker, otherwise by compiled code; `compiling`, if given,
    decides. `rtol` is the relative tolerance of a step; each solver has its own default.
    """
    times, steps = checked_times(times), None
    if learning_rate is not None:
        learning_rate = positive_rate(learning_rate)
        if times[-1] / learning_rate > MOST_STEPS:
            raise NeuralRaceError(
                "there are too many steps to count",
                got=f"{times[-1] / learning_rate:.3g} steps: t = {times[-1]:g} in steps of "
                f"{learning_rate:g}",
                wanted=f"at most {MOST_STEPS:.0e}",
                fix="leave out learning_rate for the flow, or ask for earlier times",
            )
        steps = np.unique(np.round(times / learning_rate).astype(int))
        times = learning_rate * steps
    course = _Course(times, steps, learning_rate, compiling, rtol)
    both = start.both or (None,) * len(blocks)
    halved = [i for i, weights in enumerate(both) if weights is not None]
    others = [i for i, weights in enumerate(both) if weights is None]
    answers = _answers(blocks, start.weights, others, course)
    if halved:
        fine = course.finer()
        once = _answers(blocks, start.weights, halved, fine)
        turned = {i for answer in once for i in answer.turned(both)}
        answers += [kept for answer in once if (kept := answer.seen_by(fine, course, turned))]
        answers += _answers(blocks, both, sorted(turned), course)
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
            **({} if rtol is None else {"rtol": rtol}),
        },
    )
    if kept < len(times):
        raise _stopped(solution, answers, course)
    return solution


@final
@dataclass(frozen=True, eq=False)
class _Course:
    """What every block is solved for: times of flow, or steps of descent with a learning rate."""

    times: np.ndarray
    steps: np.ndarray | None
    rate: float | None
    compiling: bool | None
    rtol: float | None = None

    @property
    def asked(self) -> tuple[np.ndarray, np.ndarray | None, float | None, float | None]:
        """What a solver needs to know: times, steps, the rate and the tolerance."""
        return self.times, self.steps, self.rate, self.rtol

    def finer(self) -> _Course:
        """The same with more times in between, to see whether a weight falls below its start."""
        end = self.times[-1]
        more = np.concatenate(
            [np.linspace(0.0, end, WATCHED), np.geomspace(SOON * end, end, WATCHED)]
        )
        if self.steps is None or self.rate is None:
            return replace(self, times=np.union1d(self.times, more))
        steps = np.union1d(self.steps, np.round(more / self.rate).astype(int))
        return replace(self, times=self.rate * steps, steps=steps)

    def is_small(self, *problems: FlatFlow, program: Hashable = None) -> bool:
        """Whether NumPy would finish before a program is compiled.

        A large `program` that NumPy was asked for again and again will be asked for once more.
        """
        if self.compiling is not None:
            return not self.compiling
        evaluations = USUAL_EVALUATIONS if self.steps is None else int(self.steps[-1])
        work = evaluations * sum(problem.work for problem in problems)
        if program is None or max(len(problem.start) for problem in problems) <= small.DENSE:
            return work <= COMPILING
        spent = _SPENT[program]
        _SPENT[program] += work
        return work <= COMPILING and spent <= AGAIN * COMPILING


@final
@dataclass(frozen=True, eq=False)
class _Answer:
    """The solution of some blocks: their weights `(T, |t|, |s|)`, their losses `(T, blocks)`.

    If the solution had to stop, there are fewer times than requested, and `stopped` is the step at
    which the loss is not finite, or the time that was reached.
    """

    variables: Mapping[int, Mapping[str, np.ndarray]]
    losses: np.ndarray
    solver: str
    stopped: float | None = None

    def turned(self, both: Sequence[Mapping[str, np.ndarray] | None]) -> list[int]:
        """The blocks in which a growing half that starts alone falls below its start.

        Along the one path of a closed form the error keeps its sign.
        """
        if self.solver == "closed form":
            return []
        return [
            i
            for i, found in self.variables.items()
            for edge, weights in (both[i] or {}).items()
            if weights.shape != found[edge].shape[1:]
            and (np.abs(found[edge]) < (1 - FALLEN) * np.abs(found[edge][:1])).any()
        ]

    def seen_by(self, fine: _Course, course: _Course, left_out: Collection[int]) -> _Answer | None:
        """What was solved for the finer course at the times of another, without some blocks."""
        at = np.isin(fine.times, course.times)[: len(self.losses)]
        kept = [i not in left_out for i in self.variables]
        variables = {
            i: {edge: w[at] for edge, w in found.items()}
            for i, found in self.variables.items()
            if i not in left_out
        }
        part = _Answer(variables, self.losses[at][:, kept], self.solver, self.stopped)
        return part if variables else None


def _answers(
    blocks: Sequence[Block],
    weights: Sequence[Mapping[str, np.ndarray] | None],
    indices: Sequence[int],
    course: _Course,
) -> list[_Answer]:
    """The solutions of these blocks from these weights."""
    begin = {i: w for i in indices if (w := weights[i]) is not None}
    systems = {i: found for i, w in begin.items() if (found := _merged(blocks[i], w))}
    answers = _scalar_answers(systems, course)
    for members in _by_shape(blocks, begin, [i for i in begin if i not in systems]):
        answers += _matrix_answers(members, course)
    return answers


def _scalar_answers(
    systems: Mapping[int, tuple[PolynomialSystem, np.ndarray]], course: _Course
) -> list[_Answer]:
    """Merged scalar races: by their explicit solution, one by one, or all in one program.

    Flows with equal equations and starts are solved once.
    """
    answers, rest = [], dict(systems)
    if course.steps is None and course.compiling is None:
        for group in alike_races(systems):
            system, begin = systems[group[0]]
            names = tuple(f"B{k}" for k in range(len(begin)))
            form = mode_form(system, begin, names)
            if form is not None and form.kind != "quadrature":
                found = form.variables(course.times)
                values = np.stack([found[name] for name in names], axis=-1)
                loss = np.asarray(system.loss_at(values))[:, None]
                variables = {i: rest.pop(i)[0].expanded(values) for i in group}
                answers.append(_Answer(variables, loss, "closed form"))
    if not rest:
        return answers

    def expanded(members: Iterable[int], values: np.ndarray) -> dict[int, dict[str, np.ndarray]]:
        """The weights of the races in these rows of `values` (T, races, variables)."""
        return {
            i: rest[i][0].expanded(values[:, k, : len(rest[i][1])]) for k, i in enumerate(members)
        }

    alone = course.steps is None  # each flow takes its own steps
    groups = alike_races(rest) if alone else [list(rest)]
    solved = [group[:1] if alone else group for group in groups]
    problems = [small.PolynomialFlow([rest[i] for i in those]) for those in solved]
    if course.is_small(*problems):
        parts: list[_Answer] = []
        for group, those, problem in zip(groups, solved, problems, strict=True):
            part = small.solve_small(problem, *course.asked)
            if part is None:
                break
            shape = (len(part.states), len(those), len(problem.start) // len(those))
            values = part.states.reshape(shape)
            values = np.repeat(values, len(group), axis=1) if alone else values
            parts.append(_Answer(expanded(group, values), part.losses, part.solver, part.stopped))
        if len(parts) == len(groups):
            return [*answers, *parts]
    races, begin = compiled.padded(list(rest.values()))
    values, losses, stopped = compiled.solve_compiled(races, begin, *course.asked)
    return [*answers, _Answer(expanded(rest, values["b"]), losses, "compiled", stopped)]


def _matrix_answers(members: Sequence[_Member], course: _Course) -> list[_Answer]:
    """Networks of one shape: flows one by one, or all in one program; steps all together.

    Flows that are equal up to rotations are solved once.
    """
    arch = members[0][3].arch
    pairs = [(w, data) for _, w, data, _ in members]
    alone = course.steps is None
    groups = alike_networks(arch, pairs) if alone else [[(i, {}) for i in range(len(members))]]
    stacks = [
        compiled.one(*pairs[group[0][0]]) if alone else compiled.stacked(pairs) for group in groups
    ]
    networks = [NetworkFlow(arch, weights, data) for weights, data in stacks]
    program = (arch, tuple(sorted(pairs[0][1].gates)), len(pairs), len(course.times))
    if course.is_small(*networks, program=program):
        found: list[_Answer] = []
        for group, network in zip(groups, networks, strict=True):
            part = small.solve_small(network, *course.asked)
            if part is None:
                break
            states = network.shaped(part.states)
            if not alone:
                variables = _by_edge(members, states)
                return [_Answer(variables, part.losses, part.solver, part.stopped)]
            for i, turns in group:
                variables = _by_edge([members[i]], turned(arch, states, turns))
                found.append(_Answer(variables, part.losses, part.solver, part.stopped))
        if len(found) == len(members):
            return found
    one = join_nodes(arch, pairs[0][1].gates)
    if one is not None:
        pairs = [(one.join(w), one.data(data)) for w, data in pairs]
    weights, data = compiled.stacked(pairs)
    stack = (
        compiled.NetworkStack(GDLN(arch), data)
        if one is None
        else compiled.NetworkStack(GDLN(one.arch), data, one.places)
    )
    weights, losses, stopped = compiled.solve_compiled(stack, weights, *course.asked)
    weights = weights if one is None else one.split(weights)
    return [_Answer(_by_edge(members, weights), losses, "compiled", stopped)]


def _by_edge(
    members: Sequence[_Member], weights: Mapping[str, np.ndarray]
) -> dict[int, dict[str, np.ndarray]]:
    """The weights `(T, members, |t|, |s|)` of every member under the names of its own edges."""
    return {
        index: {edge: weights[name][:, k] for edge, name in shape.edges.items()}
        for k, (index, _, _, shape) in enumerate(members)
    }


def _stopped(solution: Trajectory, answers: Sequence[_Answer], course: _Course) -> StoppedError:
    """The error for a solution that ends too early, with its finite part."""
    known = [answer.stopped for answer in answers if answer.stopped is not None]
    first = min(known, default=course.times[0])
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
    """The merged equations and start values of a block that is scalar and has a scalar start."""
    if any(w.shape != (1, 1) for w in weights.values()):
        return None
    found = block_system(block, weights)
    return None if found is None or found[0].powers.size > MAX_TABLE else found


def _by_shape(
    blocks: Sequence[Block],
    begin: Mapping[int, Mapping[str, np.ndarray]],
    indices: Sequence[int],
) -> list[list[_Member]]:
    """Blocks sorted into groups that one compiled program can solve."""
    groups: dict[Hashable, list[_Member]] = {}
    for index in indices:
        block, weights = blocks[index], begin[index]
        sizes = dict(block.arch.sizes)
        for edge, (s, t) in block.arch.edges.items():
            sizes[t], sizes[s] = weights[edge].shape
        shape, data = block.cached(("shape", *sizes.values()), partial(_renamed, block, sizes))
        named = {shape.edges[edge]: w for edge, w in weights.items()}
        key = (shape.arch, tuple(sorted(data.gates)))
        groups.setdefault(key, []).append((index, named, data, shape))
    return list(groups.values())


def _renamed(block: Block, sizes: Mapping[str, int]) -> tuple[_Shape, Dataset]:
    """The shape of a block, and its data under common names."""
    shape = _canonical(Architecture(sizes, block.arch.edges))
    data = Dataset(
        {shape.nodes[v]: x for v, x in block.data.x.items()},
        {shape.nodes[v]: y for v, y in block.data.y.items()},
        {{**shape.nodes, **shape.edges}[name]: g for name, g in block.data.gates.items()},
    )
    return shape, data


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


def _strengths(arch: Architecture, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The product of the matrices along every path: its value if it is a number, else its norm."""
    scalar = all(w.shape[1:] == (1, 1) for w in weights.values())
    plain = {e: w[:, 0, 0] for e, w in weights.items()} if scalar else weights
    found = {}
    for edges in _path_edges(arch):
        product = plain[edges[0]]
        for edge in edges[1:]:
            product = plain[edge] * product if scalar else plain[edge] @ product
        if not scalar:
            one = product.shape[1:] == (1, 1)
            product = product[:, 0, 0] if one else np.linalg.norm(product, axis=(1, 2))
        found["-".join(edges)] = product
    return found


@lru_cache(maxsize=256)
def _path_edges(arch: Architecture) -> tuple[tuple[str, ...], ...]:
    return tuple(path.edges for path in arch.paths())
