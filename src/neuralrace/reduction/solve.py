"""Solving the blocks of a race, each in the quickest way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import zero_loss
from neuralrace.dynamics import flow, train
from neuralrace.dynamics.flow import checked_times, smallest_rms
from neuralrace.dynamics.methods import Clock, Stepper
from neuralrace.dynamics.setup import StoppedError
from neuralrace.dynamics.systems import Law
from neuralrace.dynamics.train import checked_momentum, chosen_method, method_settings
from neuralrace.errors import require
from neuralrace.gdln import GDLN
from neuralrace.reduction import scipy_solver
from neuralrace.reduction.block import Block
from neuralrace.reduction.merging import block_system
from neuralrace.reduction.mixtures import as_wide_as, longest_path, of_edges
from neuralrace.reduction.mode_form import mode_form
from neuralrace.reduction.polynomial import PolynomialSystem
from neuralrace.reduction.scipy_solver import (
    BlockSolution,
    FlatFlow,
    NetworkFlow,
    PolynomialFlow,
)
from neuralrace.reduction.start import Start
from neuralrace.reduction.symbols import decays_of
from neuralrace.reduction.together import Together, sharing
from neuralrace.reduction.two_edge_start import narrowed
from neuralrace.statistics import SplitNetwork, class_factor
from neuralrace.tolerances import ALONE, EQUAL, LEAST_ATOL, RTOL
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Matrix

if TYPE_CHECKING:
    from optax import GradientTransformation

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


def solve_blocks(
    blocks: Sequence[Block],
    start: Start,
    request: Request,
    constant: float,
    whole: SplitNetwork | None = None,
    *,
    accuracy: float | None = ALONE,
    settings: Mapping[str, Any] | None = None,
    **about: Any,
) -> Trajectory:
    """Every block from its start, by flow or by descent, and the sum of their losses.

    `settings` and `about` are what else the trajectory is to hold.

    A mode of two edges starts from its growing half alone. Where the error along a path changes its
    sign and this half falls below its start, the other half grows beyond its own, and hidden
    directions that it shares with other modes matter: such blocks are solved again, together with
    all that share hidden nodes with them, and from the network's own weights. Rates of edges, and
    optimizers other than descent with momentum, move both halves in other ways: with them all such
    blocks are followed together from the beginning. Where weights are shared, how far the blocks
    are off is measured (`_measured`).
    """
    times, turned = request.times, set(start.joined)
    if start.network is not None and request.mixes and not start.is_measured:
        turned |= {i for group in sharing(blocks, range(len(blocks))) for i in group}
    halved = start.halved - turned if not start.is_measured else frozenset[int]()
    found = _solutions(
        blocks, {i: w for i, w in enumerate(start.weights) if i not in halved | turned}, request
    )
    if halved:
        fine = request.finer()
        once = _solutions(blocks, {i: start.weights[i] for i in halved}, fine)
        turned |= {i for i, s in once.items() if start.is_whole(i) or _falls(s)}
        found |= {i: _at(s, fine, request) for i, s in once.items()}
    for group in sharing(blocks, sorted(turned)):
        found |= _together(blocks, group, whole, start, request)
    rest, off = np.zeros(len(times)), dict[str, float]()
    if start.is_measured and accuracy is not None and whole is not None:
        found, rest, off = _measured(blocks, found, whole, start, request, constant, accuracy)
    kept = min((len(solution.losses) for solution in found.values()), default=len(times))
    losses = np.zeros((kept, len(blocks)))
    variables: dict[str, dict[str, np.ndarray]] = {}
    for i, block in enumerate(blocks):
        losses[:, i] = found[i].losses[:kept]
        variables[block.name] = {edge: w[:kept] for edge, w in found[i].weights.items()}
    pathways = {
        block.name: _strengths(block.arch, variables[block.name])
        for block in blocks
        if _path_edges(block.arch) is not None
    }
    solution = Trajectory(
        times[:kept],
        constant + losses.sum(axis=1) + rest[:kept],
        values={"losses": losses, "variables": variables, "pathways": pathways},
        **about,
        settings={
            "method": "race",
            "start": start.description,
            "blocks": len(blocks),
            "solvers": sorted({solution.solver for solution in found.values()}),
            **request.settings,
            **(settings or {}),
            **off,
        },
    )
    if kept < len(times):
        known = [s.stopped for s in found.values() if s.stopped is not None]
        raise _stopped(solution, min(known, default=times[0]), request)
    return solution


@final
@dataclass(frozen=True, eq=False)
class Request:
    """What every block is solved for: times of flow, or steps, and what takes the steps.

    `law` is what moves the weights besides the loss, by the names of the blocks' edges; `clock`
    says what a step means in time. `rtol` is the relative tolerance of a step of the flow.
    """

    times: np.ndarray
    steps: np.ndarray | None = None
    clock: Clock = field(default_factory=Clock)
    rtol: float | None = None
    law: Law = field(default_factory=Law)
    optimizer: GradientTransformation | Stepper | None = None

    @classmethod
    def of(
        cls,
        times: ArrayLike,
        learning_rate: float | None = None,
        *,
        rtol: float | None = None,
        law: Law | None = None,
        momentum: float | None = None,
        optimizer: GradientTransformation | Stepper | None = None,
    ) -> Request:
        """A request with checked arguments; times are rounded to whole steps."""
        request = cls(checked_times(times), None, Clock(), rtol, law or Law(), optimizer)
        if learning_rate is None and optimizer is None:
            checked_momentum(momentum, learning_rate)
            return request
        clock = chosen_method(learning_rate, optimizer, 1, momentum)[1]
        if not isinstance(clock.rates, float):
            clock = Clock()
        request = replace(request, clock=clock)
        require(
            not request.times[-1] / request.unit > MOST_STEPS,
            "there are too many steps to count",
            got=f"{request.times[-1] / request.unit:.3g} steps: t = {request.times[-1]:g} in "
            f"steps of {request.unit:g}",
            wanted=f"at most {MOST_STEPS:.0e}",
            fix="leave out learning_rate for the flow, or ask for earlier times",
        )
        return request.at_steps(request.times)

    @property
    def unit(self) -> float:
        """The time of a step: 1 where time counts steps."""
        return float(self.clock.time(np.array([1]))[0])

    @property
    def rate(self) -> float | None:
        """The learning rate of descent, with momentum or without; None for the flow."""
        return self.clock.rate

    @property
    def mixes(self) -> bool:
        """Whether the two halves of a start move in other ways than by e^{st} and e^{−st}."""
        return bool(self.law.rates) or not self.is_plain

    @property
    def is_plain(self) -> bool:
        """Whether this is the flow, or descent with momentum or without."""
        return self.optimizer is None or self.clock.kind != "steps"

    @property
    def settings(self) -> dict[str, Any]:
        """What a solution says about how it was made."""
        clock = {"clock": "flow"} if self.steps is None else {"clock": self.clock.kind}
        of = {"momentum": self.clock.momentum, "rtol": self.rtol}
        if self.optimizer is not None:
            of |= method_settings(self.clock, 0, self.optimizer)
            of = {name: of.get(name) for name in ("transformation", "momentum", "rtol")}
        decay = {"weight_decay": float(self.law.weight_decay) + self.clock.weight_decay}
        of |= self.law.settings | decay
        told = {name: value for name, value in of.items() if value}
        return {"learning_rate": self.rate} | clock | told

    def at_steps(self, times: np.ndarray) -> Request:
        """The same at the steps nearest to these times."""
        steps = np.unique(np.round(times / self.unit).astype(int))
        return replace(self, times=self.unit * steps, steps=steps)

    @property
    def tolerance(self) -> float:
        """The relative tolerance of a step of the flow: the usual one, or what was asked for."""
        return RTOL if self.rtol is None else self.rtol

    def finer(self) -> Request:
        """The same with more times in between, to see whether a weight falls below its start."""
        end = self.times[-1]
        more = np.concatenate(
            [np.linspace(0.0, end, WATCHED), np.geomspace(SOON * end, end, WATCHED)]
        )
        if self.steps is None:
            return replace(self, times=np.union1d(self.times, more))
        return self.at_steps(np.union1d(self.times, more))

    def after(self, since: float) -> Request:
        """The same, later by a time."""
        if self.steps is None:
            return replace(self, times=self.times + since)
        return self.at_steps(self.times + since)


def _falls(solution: BlockSolution) -> bool:
    """Whether a growing half that starts alone falls below its start.

    Along the one path of a closed form the error keeps its sign.
    """
    return solution.solver != "closed form" and any(
        bool((np.abs(w) < (1 - EQUAL) * np.abs(w[:1])).any()) for w in solution.weights.values()
    )


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


def _measured(
    blocks: Sequence[Block],
    alone: Mapping[int, BlockSolution],
    whole: SplitNetwork,
    start: Start,
    request: Request,
    constant: float,
    accuracy: float,
) -> tuple[dict[int, BlockSolution], np.ndarray, dict[str, float]]:
    """The blocks one by one where the loss is accurate enough, otherwise as parts of the network.

    No bound is known for what a start leaves out of random shared weights: modes whose growth
    overlaps disturb each other, and so do the weights within a class of hidden nodes. So the whole
    network is followed from its own weights, and the loss of the blocks is compared with its loss
    at all times asked for. Also the loss that no block has alone, and what the solution says of its
    error (`Race.solve`).
    """
    assert start.network is not None  # what is measured was made from weights
    drive = max(block.drive for block in blocks)
    network = Block("network", {}, whole.arch, class_factor(whole.data), drive, {})
    solution = _by_network(network, whole.arch, start.network, request.after(start.since))
    loss = solution.losses + zero_loss(whole.data) - network.initial_loss - constant
    apart = {i: _part(block, solution) for i, block in enumerate(blocks)}
    steps = min(len(loss), *(len(part.losses) for part in alone.values()))
    gaps = loss[:steps] - sum(part.losses[:steps] for part in alone.values())
    with jax.enable_x64(True):
        initial = float(GDLN(whole.arch).loss(dict(start.network), whole.data))
    off = float(np.abs(gaps).max(initial=0.0)) / initial
    if off <= accuracy:
        return dict(alone), np.zeros(len(request.times)), {"error": off, "error_alone": off}
    rest = loss - sum(part.losses for part in apart.values())
    return apart, rest, {"error": 0.0, "error_alone": off}


def _part(block: Block, network: BlockSolution) -> BlockSolution:
    """What a block has of the solution of its network: its weights, and its loss alone."""
    weights = block.restricted(network.weights)
    arch = as_wide_as(block.arch, weights)
    flow = NetworkFlow(arch, {name: w[0] for name, w in weights.items()}, block.data)
    states = [weights[name].reshape(len(network.losses), -1) for name in arch.matrices]
    return replace(network, weights=weights, losses=flow.losses(np.concatenate(states, axis=1)))


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
    begin = {i: _reached(blocks[i].arch, w, request) for i, w in begin.items()}
    found = {} if request.optimizer is not None else begin
    systems = {
        i: merged for i, w in found.items() if (merged := _merged(blocks[i], w, request.law))
    }
    solved: dict[int, BlockSolution] = {}
    alike: dict[object, list[int]] = {}
    for i, (system, values) in systems.items():
        decay = decays_of(system, request.law).tobytes()
        alike.setdefault((system.digits, values.tobytes(), decay), []).append(i)
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


def _reached(arch: Architecture, weights: Weights, request: Request) -> Weights:
    """The weights between the hidden directions that learning reaches, where paths are deep.

    Rules that enlarge what is small may reach more, so that they start from all.
    """
    wide = any(min(w.shape) > 1 for w in weights.values())
    if not wide or not request.is_plain or arch.ties or arch.frozen or longest_path(arch) < 3:
        return weights
    return narrowed(arch, weights)


def _by_equations(
    system: PolynomialSystem, begin: np.ndarray, request: Request
) -> BlockSolution | None:
    """The solution of merged equations, explicit where there is one; None if it takes too long."""
    names = tuple(f"B{k}" for k in range(len(begin)))
    decay = decays_of(system, request.law)
    form = mode_form(system, begin, names, decay) if request.steps is None else None
    if form is not None:
        variables = form.variables(request.times)
        states = np.stack([variables[name] for name in names], axis=-1)
        losses = np.asarray(system.loss_at(states))
        return BlockSolution(system.expanded(states), losses, "closed form", states)
    return _by_numpy(PolynomialFlow(system, begin, decay), request)


def _by_network(
    block: Block, arch: Architecture, weights: Weights, request: Request
) -> BlockSolution:
    """The solution of a block as the small gated network that it is, of these widths."""
    small = None
    if request.optimizer is None:
        problem = NetworkFlow(arch, weights, block.data, joining=not request.law.rates)
        small = _by_numpy(problem.under(request.law), request)
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
    known = {e: r for e, r in request.law.rates.items() if e in weights}
    law: Any = {"weight_decay": request.law.weight_decay, "rates": known}
    if request.steps is None:
        rtol = request.tolerance
        atol = max(rtol * smallest_rms(weights.values()), LEAST_ATOL * block.natural_size)
        return flow(
            net, weights, block.data, times=request.times, record=record,
            rtol=rtol, atol=atol, max_steps=FLOW_STEPS, **law,
        )  # fmt: skip
    if request.optimizer is None:
        law |= {"learning_rate": request.rate, "momentum": request.clock.momentum}
    return train(
        net, weights, block.data, optimizer=request.optimizer, steps=int(request.steps[-1]),
        record_at=request.steps, record=record, **law,
    )  # fmt: skip


def _by_numpy(problem: FlatFlow, request: Request) -> BlockSolution | None:
    """The solution without compiling; None where it fails or compiling is estimated to be quicker.

    The estimate depends on the problem alone.
    """
    evaluations = USUAL_EVALUATIONS if request.steps is None else int(request.steps[-1])
    if evaluations * problem.work > COMPILING:
        return None
    return scipy_solver.solve_small(
        problem, request.times, request.steps, request.rate, request.tolerance,
        request.clock.momentum,
    )  # fmt: skip


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
        got=f"learning rate {request.rate}",
        wanted="a descent that converges",
        fix=f"a learning rate below {request.rate}, or a smaller start; "
        "what was computed is in error.trajectory",
    )


def _merged(block: Block, weights: Weights, law: Law) -> tuple[PolynomialSystem, np.ndarray] | None:
    """The merged equations and start values of a block that is scalar and has a scalar start."""
    if any(w.shape != (1, 1) for w in weights.values()):
        return None
    found = block_system(block, weights, law.rates)
    return None if found is None or found[0].powers.size > MAX_TABLE else found


def _strengths(arch: Architecture, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The product of the matrices along every path: its value if it is a number, else its norm."""
    scalar = all(w.shape[1:] == (1, 1) for w in weights.values())
    steps = len(next(iter(weights.values())))
    each = of_edges(arch, weights)
    plain = {e: w[..., 0, 0] for e, w in each.items()} if scalar else each
    found = {}
    for edges in _path_edges(arch) or ():
        product = plain[edges[0]]
        for edge in edges[1:]:
            product = plain[edge] * product if scalar else plain[edge] @ product
        if not scalar:
            one = product.shape[-2:] == (1, 1)
            product = product[..., 0, 0] if one else np.linalg.norm(product, axis=(-2, -1))
        found["-".join(edges)] = product if len(product) == steps else np.repeat(product, steps)
    return found


@lru_cache(maxsize=256)
def _path_edges(arch: Architecture) -> tuple[tuple[str, ...], ...] | None:
    """The edges of every path, or None where there are too many to be recorded."""
    few = arch.path_count() <= RECORDED_PATHS
    return tuple(path.edges for path in arch.paths()) if few else None
