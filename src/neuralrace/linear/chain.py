"""The statistics of the data that matter to an ungated chain: correlations, best map, its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.checks import check_known
from neuralrace.dataset import Dataset, check_moments, matched
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.gdln import GDLN, Network
from neuralrace.types import ArrayLike, WeightsLike
from neuralrace.weights import check_finite, checked_weights


@final
@dataclass(frozen=True, eq=False)
class LinearTask:
    """A task as an ungated chain sees it: flow depends only on Σ^yx = ⟨y xᵀ⟩ and Σ^x = ⟨x xᵀ⟩.

    `best` is the linear map of least loss (of least norm if inputs are degenerate) and `floor` is
    its loss. Then L(M) = floor + ½ tr (M − best) Σ^x (M − best)ᵀ, which involves no cancellation.
    """

    yx: Float[np.ndarray, "outputs inputs"]
    x: Float[np.ndarray, "inputs inputs"]
    best: Float[np.ndarray, "outputs inputs"]
    floor: float

    @property
    def variance(self) -> float:
        """The mean variance d of an input; for white inputs Σ^x = d I."""
        return float(np.trace(self.x) / len(self.x))

    @property
    def whiteness(self) -> float:
        """How far Σ^x is from d I: the largest eigenvalue of their difference, relative to d."""
        if self.variance == 0:
            return np.inf
        return float(np.abs(np.linalg.eigvalsh(self.x) / self.variance - 1).max())

    def loss(self, maps: ArrayLike) -> np.ndarray | np.floating:
        """The loss of one map (outputs, inputs) or of a stack of them."""
        gap = np.asarray(maps, np.float64) - self.best
        return self.floor + np.einsum("...ij,jk,...ik->...", gap, self.x, gap) / 2


def linear_task(net: GDLN, data: Dataset, *, edges: int | None = None) -> LinearTask:
    """The correlations of a dataset; `net` must be an ungated chain (of `edges` edges)."""
    check_kind("net", net, GDLN, "for example nr.GDLN(nr.Architecture.chain(4, 8, 3))")
    check_kind("data", data, Dataset, "for example nr.Dataset({'x': x}, {'y': y})")
    chain_edges(net, edges)
    full = matched(net.arch, data)
    check_moments(full)
    gated = [name for name, gate in full.gates.items() if not np.all(np.asarray(gate) == 1)]
    if gated:
        raise NeuralRaceError(
            "the solutions of linear networks hold without gates",
            got=f"gates on {listed(gated)}",
            wanted="a dataset without gates",
            fix="data.gated({}) removes them; nr.reduce takes gates",
        )
    x = np.asarray(full.x[net.arch.inputs[0]], np.float64)
    y = np.asarray(full.y[net.arch.outputs[0]], np.float64)
    root = np.sqrt(np.asarray(full.probability, np.float64))[:, None]
    best = np.linalg.lstsq(root * x, root * y, rcond=None)[0].T
    floor = float((root**2 * (y - x @ best.T) ** 2).sum() / 2)
    weighted = root**2 * x
    return LinearTask(y.T @ weighted, x.T @ weighted, best, floor)


def chain_edges(net: Network, edges: int | None = None) -> tuple[str, ...]:
    """The edges of a chain from input to output; raises if the graph is not a chain."""
    arch = net.arch
    chain = len(arch.inputs) == len(arch.outputs) == 1 and arch.path_count() == 1
    found = arch.paths()[0].edges if chain else ()
    if not found or (edges is not None and len(found) != edges):
        raise NeuralRaceError(
            f"this holds for a chain of {edges} edges" if edges else "this holds for a chain",
            got=f"{len(arch.edges)} edges, {arch.path_count()} paths",
            wanted="one path from one input to one output"
            + (f", of {edges} edges" if edges else ""),
            fix="nr.Architecture.chain(inputs, hidden, outputs)",
        )
    return found


def chain_weights(net: GDLN, weights: WeightsLike) -> list[np.ndarray]:
    """The matrices of a chain from input to output, checked, in float64."""
    given = checked_weights(net.arch, weights)
    check_known("the weights", given)
    check_finite(given)
    return [np.asarray(weights[edge], np.float64) for edge in chain_edges(net)]
