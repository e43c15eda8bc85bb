"""Solving the blocks of a race, each in the quickest way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from neuralrace.architecture import Architecture
from neuralrace.checks import real_number
from neuralrace.dynamics import flow, train
from neuralrace.dynamics.flow import checked_times, smallest_rms
from neuralrace.dynamics.setup import StoppedError, positive_rate
from neuralrace.errors import require
from neuralrace.gdln import GDLN
from neuralrace.reduction import scipy_solver
from neuralrace.reduction.block import Block
from neuralrace.reduction.merging import block_system
from neuralrace.reduction.mixtures import as_wide_as, of_edges
from neuralrace.reduction.mode_form import mode_form
from neuralrace.reduction.polynomial import PolynomialSystem
from neuralrace.reduction.scipy_solver import (
    RTOL,
    BlockSolution,
    FlatFlow,
    NetworkFlow,
    PolynomialFlow,
)
from neuralrace.reduction.start import Start
from neuralrace.reduction.tied_start import Aside
from neuralrace.reduction.together import Together, sharing
from neuralrace.statistics import SplitNetwork
from neuralrace.tolerances import EQUAL, LEAST_ATOL
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Matrix

RECORDED_PATHS = 1000
"""Up to this many paths in a block, the strength of each is recorded."""

MAX_TABLE = 2**20
"""A scalar block is solved by its merged equations if they have at most this many powers."""

MOST_STEPS = 1e12
"""The most steps of descent that a race can be asked for; more would take years."""

FLOW_STEPS = 1_000_000
"""The most steps of a compiled flow."""

USUAL_EVALUATIONS = 2000
"""The typical number of evaluations of the velocity in a flow."""

COMPILING = 4e9
"""The number of operations in the time it takes to compile a program, about four seconds."""

WATCHED = 512
"""The number of times at which the growing halves of modes are watched, evenly and by their ratio.

A half that falls below its start and rises again between two of these times has moved by little.
"""

SOON = 1e-6
"""The first of these times, as a part of the last."""


Weights = Mapping[str, Matrix]
"""The weights of a block by edge."""


def checked_tolerance(rtol: float | None) -> float | None:
    """The relative tolerance of a step that was asked for, or None for the usual one."""
    fix = "leave it out, or pass 1e-8 for a picture"
    return None if rtol is None else real_number("rtol", rtol, least=1e-13, below=1, fix=fix)


def solve_blocks(
    blocks: Sequence[Block],
    start: Start,
    times: ArrayLike,
    learning_rate: float | None,
    constant: float,
    rtol: float | None = None,
    whole: SplitNetwork | None = None,
) -> Trajectory:
    """Every block from its start, by flow or by descent, and the sum of their losses.

    A mode of two edges starts from its growing half alone. Where the error along a path changes its
    sign and this half falls below its start, the other half grows beyond its own, and hidden
    directions that it shares with other modes matter: such blocks are solved again, together with
    all that share hidden nodes with them, and from the network's own weights. So are those with
    shared weights for which what their start leaves out comes to matter (`Aside.matters`). `rtol`
    is the relative tolerance of a step.
    """
    times, steps = checked_times(times), None
    if learning_rate is not None:
        learning_rate = positive_rate(learning_rate)
        require(
            not times[-1] / learning_rate > MOST_STEPS,
            "there are too many steps to count",
            got=f"{times[-1] / learning_rate:.3g} steps: t = {times[-1]:g} in steps of "
            f"{learning_rate:g}",
            wanted=f"at most {MOST_STEPS:.0e}",
            fix="leave out learning_rate for the flow, or ask for earlier times",
        )
        steps = np.unique(np.round(times / learning_rate).astype(int))
        times = learning_rate * steps
    request = Request(times, steps, learning_rate, RTOL if rtol is None else rtol)
    found = _solutions(
        blocks,
        {i: w for i, w in enumerate(start.weights) if i not in start.halved | start.joined},
        request,
    )
    halved = start.halved - start.joined
    turned = set(start.joined)
    if halved:
        fine = request.finer()
        once = _solutions(blocks, {i: start.weights[i] for i in halved}, fine)
        turned |= {
            i
            for i, s in once.items()
            if start.is_whole(i)
            or (_leaves_out(blocks[i], start.aside[i], s, fine) if i in start.aside else _falls(s))
        }
        found |= {i: _at(s, fine, request) for i, s in once.items()}
    for group in sharing(blocks, sorted(turned)):
        found |= _together(blocks, group, whole, start, request)
    kept = min((len(solution.losses) for solution in found.values()), default=len(times))
    losses = np.zeros((kept, len(blocks)))
    variables: dict[str, dict[str, np.ndarray]] = {}
    for i, block in enumerate(blocks):
        losses[:, i] = found[i].losses[:kept]
        variables[block.name] = {edge: w[:kept] for edge, w in found[i].weights.items()}
    pathways = {
        block.name: _strengths(block.arch, variables[block.name])
        for block in blocks
        if block.arch.path_count() <= RECORDED_PATHS
    }
    solution = Trajectory(
        times[:kept],
        constant + losses.sum(axis=1),
        values={"losses": losses, "variables": variables, "pathways": pathways},
        settings={
            "method": "race",
            "learning_rate": learning_rate,
            "start": start.description,
            "blocks": len(blocks),
            "solvers": sorted({solution.solver for solution in found.values()}),
            **({} if rtol is None else {"rtol": rtol}),
        },
    )
    if kept < len(times):
        known = [s.stopped for s in found.values() if s.stopped is not None]
        raise _stopped(solution, min(known, default=times[0]), request)
    return solution


@final
@dataclass(frozen=True, eq=False)
class Request:
    """What every block is solved for: times of flow, or steps of descent with a learning rate."""

    times: np.ndarray
    steps: np.ndarray | None
    rate: float | None
    rtol: float

    def finer(self) -> Request:
        """The same with more times in between, to see whether a weight falls below its start."""
        end = self.times[-1]
        more = np.concatenate(
            [np.linspace(0.0, end, WATCHED), np.geomspace(SOON * end, end, WATCHED)]
        )
        if self.steps is None or self.rate is None:
            return replace(self, times=np.union1d(self.times, more))
        steps = np.union1d(self.steps, np.round(more / self.rate).astype(int))
        return replace(self, times=self.rate * steps, steps=steps)

    def after(self, since: float) -> Request:
        """The same, later by a time."""
        if self.steps is None or self.rate is None:
            return replace(self, times=self.times + since)
        steps = self.steps + round(since / self.rate)
        return replace(self, times=self.rate * steps, steps=steps)


def _falls(solution: BlockSolution) -> bool:
    """Whether a growing half that starts alone falls below its start.

    Along the one path of a closed form the error keeps its sign.
    """
    return solution.solver != "closed form" and any(
        bool((np.abs(w) < (1 - EQUAL) * np.abs(w[:1])).any()) for w in solution.weights.values()
    )


def _leaves_out(
    block: Block, aside: Aside | None, solution: BlockSolution, request: Request
) -> bool:
    """Whether what the start of a block with shared weights leaves out matters on the way."""
    times = request.times[: len(solution.losses)]
    return aside is None or aside.matters(block, times, solution.weights)


def _together(
    blocks: Sequence[Block],
    group: Sequence[int],
    whole: SplitNetwork | None,
    start: Start,
    request: Request,
) -> dict[int, BlockSolution]:
    """The solutions of blocks that share hidden nodes, from the network's own weights."""
    assert start.network is not None and whole is not None  # a half is part of a whole
    joined = Together.of([blocks[i] for i in group], whole)
    weights = joined.begin(start.network)
    arch = as_wide_as(joined.whole.arch, weights)
    found = _by_network(joined.whole, arch, weights, request.after(start.since))
    return dict(zip(group, joined.apart(found, arch), strict=True))


def _at(solution: BlockSolution, fine: Request, request: Request) -> BlockSolution:
    """What was solved for the finer request at the times of another."""
    at = np.isin(fine.times, request.times)[: len(solution.losses)]
    weights = {edge: w[at] for edge, w in solution.weights.items()}
    states = solution.states[at]
    return replace(solution, weights=weights, losses=solution.losses[at], states=states)


def _solutions(
    blocks: Sequence[Block], begin: Mapping[int, Weights], request: Request
) -> dict[int, BlockSolution]:
    """The solutions of blocks from these weights; those that are alike are solved once."""
    systems = {i: found for i, w in begin.items() if (found := _merged(blocks[i], w))}
    solved: dict[int, BlockSolution] = {}
    alike: dict[object, list[int]] = {}
    for i, (system, values) in systems.items():
        alike.setdefault((system.digits, values.tobytes()), []).append(i)
    for group in alike.values():
        one = _by_equations(*systems[group[0]], request)
        if one is not None:
            each = {i: systems[i][0].expanded(one.states) for i in group}
            solved |= {i: replace(one, weights=weights) for i, weights in each.items()}
    networks: dict[object, BlockSolution] = {}
    for i in (i for i in begin if i not in solved):
        arch = as_wide_as(blocks[i].arch, begin[i])
        key = id(blocks[i].factor), arch, *(w.tobytes() for w in begin[i].values())
        if key not in networks:
            networks[key] = _by_network(blocks[i], arch, begin[i], request)
        solved[i] = networks[key]
    return solved


def _by_equations(
    system: PolynomialSystem, begin: np.ndarray, request: Request
) -> BlockSolution | None:
    """The solution of merged equations, explicit where there is one; None if it takes too long."""
    names = tuple(f"B{k}" for k in range(len(begin)))
    form = mode_form(system, begin, names) if request.steps is None else None
    if form is not None and form.kind != "quadrature":
        variables = form.variables(request.times)
        states = np.stack([variables[name] for name in names], axis=-1)
        losses = np.asarray(system.loss_at(states))
        return BlockSolution(system.expanded(states), losses, "closed form", states)
    pathway = None if form is None else form.race
    return _by_numpy(PolynomialFlow(system, begin, pathway), request)


def _by_network(
    block: Block, arch: Architecture, weights: Weights, request: Request
) -> BlockSolution:
    """The solution of a block as the small gated network that it is, of these widths."""
    with threadpool_limits(1, "blas"):  # matrices this small are quicker on one thread
        small = _by_numpy(NetworkFlow(arch, weights, block.data, joining=True), request)
    if small is not None:
        return small
    is_whole = True
    with jax.enable_x64(True):
        try:
            run = _run(GDLN(arch), block, weights, request)
        except StoppedError as error:
            run, is_whole = error.trajectory, False
    solver, asked, reached = "flow", request.times, run.time
    if request.steps is not None:
        solver, asked, reached = "train", request.steps, np.asarray(run.steps)
    fine = np.isin(reached, asked) & np.isfinite(run.loss)
    found = {edge: np.asarray(w)[fine] for edge, w in run.values["weights"].items()}
    last = None if is_whole else float(reached[-1]) if len(reached) else 0.0
    return BlockSolution(found, run.loss[fine], solver, np.zeros((fine.sum(), 0)), last)


def _run(net: GDLN, block: Block, weights: Weights, request: Request) -> Trajectory:
    """The flow or the descent of a block by a compiled program, with its weights."""
    record = {"weights": True}
    if request.steps is None:
        rtol = request.rtol
        atol = max(rtol * smallest_rms(weights.values()), LEAST_ATOL * block.natural_size)
        return flow(
            net, weights, block.data, times=request.times, record=record,
            rtol=rtol, atol=atol, max_steps=FLOW_STEPS,
        )  # fmt: skip
    return train(
        net, weights, block.data, learning_rate=request.rate, steps=int(request.steps[-1]),
        record_at=request.steps, record=record,
    )  # fmt: skip


def _by_numpy(problem: FlatFlow, request: Request) -> BlockSolution | None:
    """The solution without compiling; None where it fails or compiling is estimated to be quicker.

    The estimate depends on the problem alone.
    """
    evaluations = USUAL_EVALUATIONS if request.steps is None else int(request.steps[-1])
    if evaluations * problem.work > COMPILING:
        return None
    return scipy_solver.solve_small(
        problem, request.times, request.steps, request.rate, request.rtol
    )


def _stopped(solution: Trajectory, first: float, request: Request) -> StoppedError:
    """The error for a solution that ends too early, with its finite part."""
    if request.steps is None:
        return StoppedError(
            solution,
            f"the race could not be solved up to t = {request.times[-1]:g}",
            got=f"a solution up to t = {first:.6g}",
            wanted="the end of times",
            fix="ask for an earlier time, or check that the start is not too large; "
            "what was reached is in error.trajectory",
        )
    return StoppedError(
        solution,
        f"the loss stopped being finite after step {int(first)}",
        got=f"learning rate {request.rate:g}",
        wanted="a descent that converges",
        fix=f"a learning rate below {request.rate:g}, or a smaller start; "
        "what was computed is in error.trajectory",
    )


def _merged(block: Block, weights: Weights) -> tuple[PolynomialSystem, np.ndarray] | None:
    """The merged equations and start values of a block that is scalar and has a scalar start."""
    if any(w.shape != (1, 1) for w in weights.values()):
        return None
    found = block_system(block, weights)
    return None if found is None or found[0].powers.size > MAX_TABLE else found


def _strengths(arch: Architecture, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The product of the matrices along every path: its value if it is a number, else its norm."""
    scalar = all(w.shape[1:] == (1, 1) for w in weights.values())
    steps = len(next(iter(weights.values())))
    each = of_edges(arch, weights)
    plain = {e: w[..., 0, 0] for e, w in each.items()} if scalar else each
    found = {}
    for edges in _path_edges(arch):
        product = plain[edges[0]]
        for edge in edges[1:]:
            product = plain[edge] * product if scalar else plain[edge] @ product
        if not scalar:
            one = product.shape[-2:] == (1, 1)
            product = product[..., 0, 0] if one else np.linalg.norm(product, axis=(-2, -1))
        found["-".join(edges)] = np.broadcast_to(product, (steps,))
    return found


@lru_cache(maxsize=256)
def _path_edges(arch: Architecture) -> tuple[tuple[str, ...], ...]:
    return tuple(path.edges for path in arch.paths())
