"""Solving the blocks of a race together, and going back to full-size weights."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.dynamics.driver import take_steps
from neuralrace.dynamics.flow import checked_times, smallest_rms, solve_flow
from neuralrace.dynamics.methods import Descent, Flow
from neuralrace.dynamics.setup import StoppedError, positive_rate
from neuralrace.dynamics.systems import System
from neuralrace.dynamics.train import diverged
from neuralrace.errors import NeuralRaceError
from neuralrace.gdln import GDLN
from neuralrace.progress import progress
from neuralrace.reduction.block import Block
from neuralrace.reduction.initial import Start
from neuralrace.reduction.lumping import block_system
from neuralrace.reduction.polynomial import PolynomialSystem
from neuralrace.statistics import SplitNetwork
from neuralrace.trajectory import Trajectory

RECORDED_PATHS = 1000
"""Up to so many paths in a block, the strength of each is recorded."""

MAX_TABLE = 2**20
"""Up to so many powers in its equations, a scalar block is solved by them."""

RTOL = 1e-9


class _Blocks(System):
    """Several blocks side by side; their states have a leading axis."""

    @abc.abstractmethod
    def losses(self, state: Any) -> Any:
        """The loss of every block."""

    def loss(self, state: Any) -> Any:
        return jnp.sum(self.losses(state))

    def observe(self, state: Any) -> dict[str, Any]:
        return {"weights": state, "losses": self.losses(state)}


@final
class _Stack(_Blocks):
    """Several networks of one shape side by side: the data has a leading axis."""

    net: GDLN = eqx.field(static=True)
    data: Any

    def losses(self, state: Any) -> Any:
        return jax.vmap(self.net.loss)(state, self.data)

    def loss_and_step(self, state: Any, rate: Any, batch: Any = None) -> Any:
        losses, step = jax.vmap(self.net.loss_and_step, in_axes=(0, 0, None))(
            state, self.data, rate
        )
        return jnp.sum(losses), step


@final
class _Polynomials(_Blocks):
    """Several merged scalar races side by side, in the arrays of `_padded`.

    Powers are below 2^bits and taken by squaring: the general power of a processor takes far
    longer, and is what a step of the flow would spend its time on.
    """

    bits: int = eqx.field(static=True)
    powers: Any
    coefficients: Any
    of_loss: Any

    def _monomials(self, state: Any) -> Any:
        square, found = state["b"][:, None, :], 1.0
        for bit in range(self.bits):
            found = jnp.where((self.powers >> bit) & 1, found * square, found)
            square = square * square
        return jnp.prod(found, axis=-1)

    def losses(self, state: Any) -> Any:
        return jnp.sum(self._monomials(state) * self.of_loss, axis=-1)

    def loss_and_step(self, state: Any, rate: Any, batch: Any = None) -> Any:
        velocity = jnp.einsum("nkm,nm->nk", self.coefficients, self._monomials(state))
        return self.loss(state), {"b": rate * velocity}


@final
@dataclass(frozen=True)
class _Shape:
    """A block under names that depend on its shape alone: equal shapes are solved at once."""

    arch: Architecture
    nodes: Mapping[str, str]
    edges: Mapping[str, str]


def solve_blocks(
    blocks: Sequence[Block],
    start: Start,
    times: Any,
    learning_rate: float | None,
    constant: float,
) -> Trajectory:
    """Every block from its start, by flow or by descent, and the sum of their losses."""
    times, steps = checked_times(times), None
    if learning_rate is not None:
        learning_rate = positive_rate(learning_rate)
        steps = np.unique(np.round(times / learning_rate).astype(int))
        times = learning_rate * steps
    loss = np.full(len(times), constant)
    losses = np.zeros((len(times), len(blocks)))
    variables: dict[str, dict[str, np.ndarray]] = {}

    def solved(stack: _Blocks, weights: Any) -> tuple[Any, np.ndarray]:
        if learning_rate is None or steps is None:
            return _flow(stack, weights, times)
        return _descent(stack, weights, steps, learning_rate)

    systems = {i: found for i, b in enumerate(blocks) if (found := _merged(b, start.weights[i]))}
    others = [i for i in range(len(blocks)) if i not in systems]
    with jax.enable_x64(True):
        if systems:
            values, losses[:, list(systems)] = solved(*_padded(list(systems.values())))
            for k, (i, (system, _)) in enumerate(systems.items()):
                at = values["b"][:, k, : len(system.parts)]
                variables[blocks[i].name] = system.expanded(at)
        for members in _by_shape(blocks, start, others):
            weights, parts = solved(*_stacked(members))
            for k, (index, _, _, shape) in enumerate(members):
                losses[:, index] = parts[:, k]
                variables[blocks[index].name] = {
                    edge: weights[name][:, k] for edge, name in shape.edges.items()
                }
    pathways = {
        block.name: _strengths(block.arch, variables[block.name])
        for block in blocks
        if block.arch.path_count() <= RECORDED_PATHS
    }
    return Trajectory(
        times,
        loss + losses.sum(axis=1),
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
        },
    )


def _merged(
    block: Block, weights: Mapping[str, np.ndarray]
) -> tuple[PolynomialSystem, np.ndarray] | None:
    """The merged equations of a block that is scalar and starts so, with the start values."""
    if any(w.shape != (1, 1) for w in weights.values()):
        return None
    found = block_system(block, weights)
    return None if found is None or found[0].powers.size > MAX_TABLE else found


def _padded(systems: Sequence[tuple[PolynomialSystem, np.ndarray]]) -> tuple[_Polynomials, Any]:
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
    bits = max(1, int(powers.max()).bit_length())
    return _Polynomials(bits, powers, velocity, loss), {"b": b}


def _by_shape(
    blocks: Sequence[Block], start: Start, indices: Sequence[int]
) -> list[list[tuple[int, dict[str, np.ndarray], Dataset, _Shape]]]:
    """Blocks sorted into groups that one compiled program can solve."""
    groups: dict[Any, list[tuple[int, dict[str, np.ndarray], Dataset, _Shape]]] = {}
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


def _stacked(members: Sequence[tuple[int, Any, Dataset, _Shape]]) -> tuple[_Stack, Any]:
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

    weights = jax.tree.map(lambda *w: np.stack(w), *(w for _, w, _, _ in members))
    data = jax.tree.map(lambda *d: np.stack(d), *(padded(d) for _, _, d, _ in members))
    return _Stack(GDLN(members[0][3].arch), data), weights


def _flow(stack: _Blocks, weights: Any, times: np.ndarray) -> tuple[Any, np.ndarray]:
    entries = isinstance(stack, _Polynomials)  # every variable by itself, or every edge of a block
    sizes = {
        (name, i): part
        for name, w in weights.items()
        for i, part in enumerate(w.ravel() if entries else w)
    }
    method = Flow(RTOL, RTOL * smallest_rms(sizes), 1_000_000)
    done = solve_flow(stack, weights, method, times)
    if done.why != "end":
        raise StoppedError(
            Trajectory(done.times, done.loss),
            f"the race could not be solved up to t = {times[-1]:g}",
            got=f"t = {done.times[-1]:.6g} after {done.steps} steps",
            wanted="the end of times",
            fix="ask for an earlier time, or check that the start is not too large",
        )
    return done.values["weights"], done.values["losses"]


def _descent(
    stack: _Blocks, weights: Any, steps: np.ndarray, rate: float
) -> tuple[Any, np.ndarray]:
    stops = np.unique(np.append(0, steps))
    with progress(int(stops[-1]), "race") as advance:
        past = [0]

        def seen(step: int, loss: float) -> None:
            advance(float(step - past[-1]))
            past.append(step)

        done = take_steps(stack, weights, Descent(jnp.asarray(rate)), stops, seen=seen)
    if done.stopped is not None:
        run = Trajectory(rate * done.stops, done.loss, steps=done.stops)
        raise diverged(run, done.stopped, rate)
    asked = np.searchsorted(stops, steps)
    recorded = jax.tree.map(lambda a: a[asked], done.values)
    return recorded["weights"], recorded["losses"]


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


def full_weights(
    blocks: Sequence[Block], whole: SplitNetwork, solution: Trajectory, t: float, key: Any
) -> dict[str, np.ndarray]:
    """W_e = Σ_blocks R_t(e) B_e R_s(e)ᵀ at the time of a solution that is nearest to t."""
    mine = {block.name: set(block.arch.edges) for block in blocks}
    if mine != {name: set(w) for name, w in solution.values.get("variables", {}).items()}:
        raise NeuralRaceError(
            "these are not the variables of this race",
            got=f"a trajectory by {solution.settings.get('method')!r}",
            wanted="what race.solve returned",
            fix="pass the solution of this race",
        )
    when = int(np.argmin(np.abs(solution.time - t)))
    if not abs(solution.time[when] - t) <= 1e-9 * max(1.0, abs(t)):
        raise NeuralRaceError(
            f"the solution has no time {t:g}",
            got=f"times from {solution.time[0]:g} to {solution.time[-1]:g}, the nearest "
            f"{solution.time[when]:g}",
            wanted="one of solution.time",
            fix="solve the race with this time among times",
        )
    at = {
        block.name: {
            e: np.asarray(w[when]) for e, w in solution.values["variables"][block.name].items()
        }
        for block in blocks
    }
    bases = _hidden_bases(blocks, whole.arch, at, key)
    weights = {
        e: np.zeros((whole.arch.sizes[target], whole.arch.sizes[source]))
        for e, (source, target) in whole.arch.edges.items()
    }
    for block in blocks:
        place = dict(block.basis) | bases[block.name]
        for e, (source, target) in block.arch.edges.items():
            weights[e] += place[target] @ at[block.name][e] @ place[source].T
    return whole.join(weights)


def _hidden_bases(
    blocks: Sequence[Block], arch: Architecture, at: Mapping[str, Any], key: Any
) -> dict[str, dict[str, np.ndarray]]:
    """Orthonormal directions of its own for every block at every hidden node."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    bases: dict[str, dict[str, np.ndarray]] = {block.name: {} for block in blocks}
    for node in arch.hidden:
        users = [block for block in blocks if node in block.arch.sizes]
        widths = [at[b.name][b.arch.incoming[node][0]].shape[0] for b in users]
        size = arch.sizes[node]
        if sum(widths) > size:
            raise NeuralRaceError(
                f"node {node!r} has too few neurons for every block to have its own",
                got=f"{size} neurons",
                wanted=f"at least {sum(widths)}",
                fix="widen the node, or start the race from a number, which needs the fewest",
            )
        q = np.linalg.qr(rng.normal(size=(size, sum(widths))))[0]
        cuts = np.cumsum([0, *widths])
        for i, block in enumerate(users):
            bases[block.name][node] = q[:, cuts[i] : cuts[i + 1]]
    return bases
