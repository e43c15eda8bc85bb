"""From a solution of the blocks back to full-size weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import jax
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import random_key, real_number
from neuralrace.dataset import Dataset, matched
from neuralrace.errors import listed, require
from neuralrace.reduction.block import Block
from neuralrace.reduction.mixtures import columns, forward, gated, of_edges, steps_of
from neuralrace.statistics import SplitNetwork
from neuralrace.tolerances import EQUAL
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key


@final
@dataclass(frozen=True, eq=False)
class Source:
    """Computes the outputs and weights of a race's solution on request."""

    blocks: tuple[Block, ...]
    split: SplitNetwork

    def outputs(self, solution: Trajectory) -> dict[str, np.ndarray]:
        """The outputs on every sample at every time of a solution: `{node: (T, N, size)}`."""
        whole, found = self.split, {}
        parts = self.part_outputs(solution, whole.data)
        for node in whole.whole.outputs:
            shape = (len(solution.time), whole.data.n_samples, whole.whole.sizes[node])
            found[node] = np.zeros(shape)
            for name, neurons in whole.parts[node]:
                found[node][..., neurons] = parts[name]
        return found

    def weights(self, solution: Trajectory, t: float, key: Key) -> dict[str, np.ndarray]:
        """W_e = Σ_blocks R_t(e) B_e R_s(e)ᵀ at the time of a solution that is nearest to t."""
        t = real_number("t", t, fix="pass one of solution.time")
        key = random_key(key, "race.weights")
        require(
            _belongs(self.blocks, solution.values.get("variables", {})),
            "these are not the variables of this race",
            got=f"a trajectory by {solution.settings.get('method')!r}",
            wanted="what race.solve returned",
            fix="pass the solution of this race",
        )
        when = int(np.argmin(np.abs(solution.time - t)))
        require(
            abs(solution.time[when] - t) <= EQUAL * _spacing(solution.time),
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
            for block in self.blocks
        }
        bases = _hidden_bases(self.blocks, self.split.arch, at, key)
        weights = {e: np.zeros(shape) for e, shape in self.split.arch.shapes.items()}
        for block in self.blocks:
            of, place = self.split.arch.class_of, bases[block.name]
            for e, (source, target) in block.arch.matrix_ends.items():
                weights[e] += place[of[target]] @ at[block.name][e] @ place[of[source]].T
        return self.split.join(weights)

    def loss_on(self, solution: Trajectory, data: Dataset) -> np.ndarray:
        """The loss on samples of the split network, at every time of a solution: (T,)."""
        square: Any = 0.0
        for node, output in self.part_outputs(solution, data).items():
            off = ((np.asarray(data.y[node], np.float64) - output) ** 2).sum(axis=-1)
            square = square + off * np.asarray(data.loss_weight.get(node, 1.0))
        return square @ np.asarray(data.probability, np.float64) / 2

    def part_outputs(self, solution: Trajectory, data: Dataset) -> dict[str, np.ndarray]:
        """The outputs of the split network on these samples at every time.

        Each block is a small gated network that sees the inputs in its own directions and writes to
        its own directions of the outputs; the outputs of all blocks add up.
        """
        steps = len(solution.time)
        gates = columns(data.gates)
        parts = {
            v: np.zeros((steps, data.n_samples, self.split.arch.sizes[v]))
            for v in self.split.arch.outputs
        }
        for block in self.blocks:
            weights = of_edges(block.arch, solution.values["variables"][block.name])
            turned = {e: w.swapaxes(-1, -2) for e, w in weights.items()}
            seen = {
                v: np.asarray(data.x[v], np.float64) @ block.basis[v] for v in block.arch.inputs
            }
            x = {v: gated(own, gates.get(v)) for v, own in seen.items()}
            activity = forward(steps_of(block.arch, gates), x, turned)
            for node in block.arch.outputs:
                parts[node] += activity[node] @ block.basis[node].T
        return parts


def _belongs(blocks: Sequence[Block], variables: Mapping[str, Any]) -> bool:
    """Whether names, edges and shapes are those of the blocks' variables over time."""
    if set(variables) != {block.name for block in blocks}:
        return False
    return all(
        isinstance(variables[block.name], Mapping)
        and block.fits({e: w[0] for e, w in variables[block.name].items() if len(w)})
        for block in blocks
    )


def _spacing(times: np.ndarray) -> float:
    """The smallest distance between two times; for a single time, the time itself."""
    return float(np.diff(times).min()) if len(times) > 1 else abs(float(times[0]))


TAKEN = ("losses", "variables", "pathways", "outputs")
"""Names of what a solution holds, which no evaluation can have."""


def evaluations(whole: SplitNetwork, evaluate: Mapping[str, Dataset] | None) -> dict[str, Dataset]:
    """Datasets to predict the loss on, checked, for the parts that the network was split into."""
    given = evaluate or {}
    for name in given:
        require(
            name not in TAKEN,
            "this name is taken by something else of the solution",
            got=repr(name),
            wanted=f"a name other than {listed(TAKEN)}",
            fix="for example evaluate={'test': data}",
        )
    return {name: _split_as(whole, data) for name, data in given.items()}


def _split_as(whole: SplitNetwork, data: Dataset) -> Dataset:
    """Another dataset of the network, with gates for the parts of its nodes and edges."""
    data = matched(whole.whole, data)
    gates: dict[str, np.ndarray] = {}
    for node, parts in whole.parts.items():
        for part, neurons in parts if node in data.gates else ():
            gate = np.asarray(data.gates[node], np.float64)
            if gate.ndim == 2:
                require(
                    not np.ptp(gate[:, neurons], axis=1).any(),
                    f"the gates of node {node!r} differ among neurons that learn as one",
                    got=f"different gates of {len(neurons)} neurons",
                    wanted="gates per neuron that are equal where those of the race are",
                    fix="gate the groups of neurons that the race was reduced with",
                )
                gate = gate[:, neurons[0]]
            gates[part] = gate
    for edge, pieces in whole.pieces.items():
        if edge in data.gates:
            gates |= dict.fromkeys(pieces, np.asarray(data.gates[edge], np.float64))
    cut = lambda field: {
        part: np.asarray(field[node])[:, neurons]
        for node in field
        for part, neurons in whole.parts[node]
    }
    return replace(data, x=cut(data.x), y=cut(data.y), gates=gates, labels=None)


def _hidden_bases(
    blocks: Sequence[Block],
    arch: Architecture,
    at: Mapping[str, Mapping[str, np.ndarray]],
    key: Key,
) -> dict[str, dict[str, np.ndarray]]:
    """The directions of every block at every class of nodes; at hidden ones, separate new ones."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    of = arch.class_of
    bases = {b.name: {of[v]: basis for v, basis in b.basis.items()} for b in blocks}
    width: dict[str, dict[str, int]] = {}
    for block in blocks:
        for name, ends in block.arch.matrix_ends.items():
            for node, n in zip(ends[::-1], at[block.name][name].shape, strict=True):
                width.setdefault(of[node], {})[block.name] = n
    for node in arch.sizes:
        users = [b for b in blocks if b.name in width.get(node, {}) and node not in bases[b.name]]
        if not users:
            continue
        widths = [width[node][b.name] for b in users]
        size = arch.sizes[node]
        require(
            not sum(widths) > size,
            f"node {node!r} has too few neurons for every block to have its own",
            got=f"{size} neurons",
            wanted=f"at least {sum(widths)}",
            fix="widen the node, or start the race from a number, which needs the fewest",
        )
        taken = [bases[b.name][node] for b in blocks if node in bases[b.name]]
        fresh = rng.normal(size=(size, sum(widths)))
        q = np.linalg.qr(np.concatenate([*taken, fresh], axis=1))[0][:, -sum(widths) :]
        cuts = np.cumsum([0, *widths])
        for i, block in enumerate(users):
            bases[block.name][node] = q[:, cuts[i] : cuts[i + 1]]
    return bases
