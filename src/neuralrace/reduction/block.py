"""A block of the race: a small gated network on the same graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.reduction.mixtures import (
    Pair,
    in_unit_sizes,
    longest_path,
    mixer_of,
    through_class,
)
from neuralrace.statistics import ClassFactor
from neuralrace.tolerances import EQUAL, NO_MODE
from neuralrace.types import Matrix

T = TypeVar("T")
"""The type of a cached result."""

CACHED = 32
"""The most results that a block keeps."""


LOOKS = 4
"""The number of random mixtures in which `failure` looks for the largest correlation."""

FEW_NODES = 4
"""Up to this many inputs or outputs are named one by one."""

MIXTURES = 2
"""The number of mixtures of all statistics in which two blocks are compared."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """A part of the problem that learns independently: a few directions at each end of the graph.

    `basis[v]` holds, in its columns, the directions of input or output node v that belong to it;
    `arch` and `data` are the same graph and task seen in these directions alone, so that
    `nr.GDLN(block.arch)` on `block.data` is the block. `drive` is the largest singular value of
    Σ^yx, summed over the paths of one length through one hidden node, all its inputs and outputs
    side by side: the s of a closed form. It is not a rate; `growth_rate` is. `aligned` holds
    weights of unit size that agree with the singular vectors of Σ^yx. Hidden nodes have as many
    neurons as these weights need: one, if the block is scalar. `copy_of` names the first block with
    the same statistics, in the directions that these have: itself, where it is the first.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": [[2.0, 0.0], [0.0, 1.0]]})
    >>> block = nr.reduce(nr.Architecture.chain(2, 8, 2), data).blocks[0]
    >>> block
    Block(mode1: x 1 → y 1, s = 1)
    >>> block.dims, round(block.drive, 6)
    ({'x': 1, 'y': 1}, 1.0)

    ```
    """

    name: str
    basis: Mapping[str, Matrix]
    arch: Architecture
    factor: ClassFactor
    drive: float
    aligned: Mapping[str, Matrix]
    copy_of: str = ""
    _cache: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def data(self) -> Dataset:
        """The task in the directions of the block, in the fewest samples that determine it."""
        factor = self.factor
        root = np.sqrt(max(len(factor.row_class), 1))
        return Dataset(
            {v: root * x for v, x in factor.x.items()},
            {v: root * y for v, y in factor.y.items()},
            {name: g[factor.row_class] for name, g in factor.gates.items()},
        )

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make` under this key, computed once; the oldest results are dropped."""
        if key not in self._cache:
            while len(self._cache) >= CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = make()
        return self._cache[key]

    @property
    def dims(self) -> dict[str, int]:
        """The number of directions at each input and output node."""
        return {v: b.shape[1] for v, b in self.basis.items()}

    @property
    def is_scalar(self) -> bool:
        """Whether there is one direction at every node: a mode of the papers."""
        return all(n == 1 for n in self.arch.sizes.values())

    @cached_property
    def growth_rate(self) -> float:
        """The largest rate at which small weights grow: W(t) ~ e^{rt}, with τ = 1.

        Around zero only paths of two edges count. At a hidden node the matrices of its edges grow
        by dW_in/dt = W_outᵀ K and dW_out/dt = K W_inᵀ, all outgoing and all incoming edges side by
        side, where K has a block Σ^yx for each path of two edges (NRR Eq. 3 to first order). So the
        rate is the largest singular value of K. Where edges are tied, K sums over the edges of a
        tie. It equals `drive` where paths have two edges each
        and no two edges of a node are parallel, and is 0 where no path has two edges.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture({"x": 1, "h": 8, "y": 1},
        ...                        {"a": ("x", "h"), "b": ("h", "y"), "c": ("h", "y")})
        >>> (block,) = nr.reduce(arch, nr.Dataset({"x": [[1.0]]}, {"y": [[3.0]]})).blocks
        >>> round(block.drive, 3), round(block.growth_rate, 3)
        (6.0, 4.243)

        ```
        """
        arch, factor = self.arch, self.factor
        if arch.ties or arch.frozen:
            classes = dict.fromkeys(arch.class_of[v] for v in arch.hidden)
            through = [through_class(arch, factor, v, {}) for v in classes]
        else:
            through = [two_edge_statistic(arch, factor, v) for v in arch.hidden]
        return max((float(np.linalg.norm(k, 2)) for k in through if k.size), default=0.0)

    @property
    def initial_loss(self) -> float:
        """The loss of the block at zero weights, ½⟨‖y‖²⟩."""
        return sum(float((y**2).sum()) for y in self.factor.y.values()) / 2

    @cached_property
    def natural_size(self) -> float:
        """The size of weights at which the drive of the longest path and its brake balance."""
        brake = sum(float((x**2).sum()) for x in self.factor.x.values())
        return (self.drive / brake) ** (1 / longest_path(self.arch))

    def fits(self, weights: Mapping[str, Matrix]) -> bool:
        """Whether these weights fit the block: one matrix per edge or tie."""
        if {e: np.shape(w) for e, w in weights.items()} == self.arch.shapes:
            return True
        if set(weights) != set(self.arch.matrices):
            return False
        of = self.arch.class_of
        widths = {of[v]: width for v, width in self.dims.items()}
        for name, (source, target) in self.arch.matrix_ends.items():
            shape = np.shape(weights[name])
            if len(shape) != 2:
                return False
            for node, width in zip((target, source), shape, strict=True):
                if widths.setdefault(of[node], width) != width:
                    return False
        return True

    def restricted(
        self, weights: Mapping[str, Float[np.ndarray, "*T _ _"]]
    ) -> dict[str, np.ndarray]:
        """The weights of a network between the block's directions; hidden nodes stay whole."""
        found, of = {}, self.arch.class_of
        basis = {of[v]: directions for v, directions in self.basis.items()}
        for name, (s, t) in self.arch.matrix_ends.items():
            w = weights[name]
            w = w @ basis[of[s]] if of[s] in basis else w
            found[name] = basis[of[t]].T @ w if of[t] in basis else w
        return found

    def couplings(self) -> list[tuple[Pair, Matrix, np.ndarray, np.ndarray]]:
        """`Mixer.couplings` of a few mixtures, the same for all blocks of one graph."""
        mixer: Any = mixer_of(self.arch, self.factor)
        rng = np.random.default_rng(0)
        return [c for _ in range(MIXTURES) for c in mixer.couplings(mixer.draw(rng))]

    @cached_property
    def failure(self) -> str:
        """In words, which statistics keep this block from being scalar, and by how much.

        Empty for a mode, and for a block whose statistics are all diagonal but whose paths have
        conflicting signs (`has_sign_conflict`).
        """
        if all(n == 1 for n in self.dims.values()):
            return ""
        of = self.arch.class_of
        width = {of[v]: n for v, n in self.dims.items()}
        sizes = {v: width.get(of[v], 1) for v in self.arch.sizes}
        mixer: Any = mixer_of(self.arch.with_sizes(sizes), in_unit_sizes(self.factor))
        rng = np.random.default_rng(0)
        draws = [mixer.draw(rng) for _ in range(LOOKS)]
        basis = {of[v]: np.eye(n) for v, n in self.dims.items()}
        seen: set[str] = set()
        outputs = {of[v] for v in self.arch.outputs}
        for (t, s), matrix in mixer.statistics(draws[0]):  # the best guess: singular vectors
            if t not in outputs:
                continue
            u, _, vt = np.linalg.svd(matrix)
            basis |= {v: b for v, b in ((t, u), (s, vt.T)) if v not in seen}
            seen |= {t, s}
        worst = ("", EQUAL)
        turned = mixer.seen_in(basis)
        for draw in draws:
            for (a, b), matrix, left, right in turned.couplings(draw):
                off = np.abs(matrix) / left[:, None] / right
                np.fill_diagonal(off, 0.0)
                size = float(off.max(initial=0.0))
                if size > worst[1]:
                    kind = "Σ^yx" if a in outputs else "Σ^x"
                    where = f"{kind} between {a!r} and {b!r} is not diagonal where another Σ^yx is"
                    worst = (f"{where} (off by {size:.2g} as a correlation)", size)
        return worst[0] and f"{self.name}: {worst[0]}"

    @property
    def has_sign_conflict(self) -> bool:
        """Whether only conflicting signs of paths keep this block from being a mode.

        In that case all its statistics are diagonal, but a hidden node needs more than one neuron.
        """
        return not self.is_scalar and not self.failure

    def __repr__(self) -> str:
        return f"Block({self})"

    def __str__(self) -> str:
        left, right = (
            ", ".join(f"{v} {n}" for v, n in self.dims.items() if v in ends)
            for ends in (self.arch.inputs, self.arch.outputs)
        )
        if len(self.arch.inputs) > FEW_NODES:
            left = f"{len(self.arch.inputs)} inputs of {_spread(self.dims, self.arch.inputs)}"
        if len(self.arch.outputs) > FEW_NODES:
            right = f"{len(self.arch.outputs)} outputs of {_spread(self.dims, self.arch.outputs)}"
        return f"{self.name}: {left} → {right}, s = {self.drive:.4g}"


def _spread(dims: Mapping[str, int], nodes: tuple[str, ...]) -> str:
    low, high = min(dims[v] for v in nodes), max(dims[v] for v in nodes)
    return str(low) if low == high else f"{low}–{high}"


def places(nodes: tuple[str, ...], sizes: Mapping[str, int]) -> dict[str, slice]:
    """The columns of each node when several nodes are put side by side."""
    ends = np.cumsum([0, *(sizes[v] for v in nodes)]).tolist()
    return {v: slice(ends[i], ends[i + 1]) for i, v in enumerate(nodes)}


def two_edge_statistic(arch: Architecture, factor: ClassFactor, node: str) -> Matrix:
    """Σ^yx of the paths of two edges through a hidden node: outgoing × incoming edges.

    The edges from inputs stand side by side in its columns, and those to outputs in its rows.
    """
    into = [e for e in arch.incoming[node] if arch.edges[e][0] in factor.x]
    out = [e for e in arch.outgoing[node] if arch.edges[e][1] in factor.y]

    def gated(field: Mapping[str, Matrix], edges: list[str], end: int) -> Matrix:
        names = [(e, arch.edges[e][end]) for e in edges]
        on = [factor.gates.get(e, 1.0) * factor.gates.get(v, 1.0) for e, v in names]
        parts = [
            np.broadcast_to(g, (factor.count,))[factor.row_class, None] * field[v]
            for g, (_, v) in zip(on, names, strict=True)
        ]
        return np.concatenate([np.zeros((len(factor.row_class), 0)), *parts], axis=1)

    here = np.broadcast_to(factor.gates.get(node, 1.0), (factor.count,))[factor.row_class, None]
    return (here * gated(factor.y, out, 1)).T @ gated(factor.x, into, 0)


def groups_of_copies(blocks: Sequence[Block]) -> list[list[int]]:
    """The places of blocks that are copies of each other, two or more in each group."""
    groups: dict[str, list[int]] = {}
    for i, block in enumerate(blocks):
        groups.setdefault(block.copy_of or block.name, []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def difference(block: Block, other: Block) -> float:
    """How far the statistics of two blocks are from equal, in correlations and relative sizes."""
    if block.arch != other.arch or abs(block.drive - other.drive) > EQUAL * other.drive:
        return np.inf
    gaps = [block.initial_loss / other.initial_loss - 1]
    for one, two in zip(*(b.cached("couplings", b.couplings) for b in (block, other)), strict=True):
        (pair, m, *sizes), (same, m_other, *sizes_other) = one, two
        if pair != same:
            return np.inf
        gaps += [a / b - 1 for a, b in zip(sizes, sizes_other, strict=True)]
        gaps.append((m - m_other) / np.multiply.outer(*sizes_other))
    return max(float(np.abs(gap).max(initial=0.0)) for gap in gaps)


def own_sizes(data: Matrix) -> np.ndarray:
    """The size of every direction of a node."""
    size = np.linalg.norm(data, axis=0)
    return np.where(size > 0, size, 1.0)


def rank_of_correlations(matrix: Matrix, left: np.ndarray, right: np.ndarray) -> int:
    """The rank of Σ^yx as a matrix of correlations, so that the choice of units hides no mode."""
    s = np.linalg.svd(matrix / left[:, None] / right, compute_uv=False)
    return int((s > NO_MODE * s[0]).sum())
