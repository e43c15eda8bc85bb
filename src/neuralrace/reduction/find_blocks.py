"""The blocks of a network: its independent parts, the shared bases of each, and what they drop."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import zero_loss
from neuralrace.reduction.basis import shared_basis
from neuralrace.reduction.block import Block, difference
from neuralrace.reduction.build_block import blocks_of
from neuralrace.reduction.mixtures import Mixer, Pair, in_unit_sizes, mixer_of, rows_of
from neuralrace.statistics import ClassFactor, SplitNetwork, class_factor, restricted
from neuralrace.tolerances import DEPENDENT, EQUAL, EXACT, NOISE, RANGE
from neuralrace.types import Matrix


@final
@dataclass(frozen=True, eq=False)
class FoundBlocks:
    """The blocks of a network, strongest first, with what lies outside all of them.

    `constant` is the loss outside the blocks of an exact reduction, which no weights can remove; it
    is set to zero if it is rounding compared with the loss at zero weights. What else is missing
    from the sum of the blocks' losses, a tolerance dropped (`Exactness.dropped_loss`). `silent`
    counts, for every input and output node, the directions that belong to no block.
    """

    blocks: tuple[Block, ...]
    constant: float
    silent: Mapping[str, int]
    exactness: Exactness


def find_blocks(whole: SplitNetwork, tolerance: float) -> FoundBlocks:
    """The finest blocks of a network whose couplings to each other stay below `tolerance`."""
    factor = class_factor(whole.data)
    cutoff = 0.0 if tolerance <= EXACT else tolerance
    parts, dropped = components(whole.arch, factor, tolerance, cutoff)
    bases = [shared_basis(mixer_of(arch, in_unit_sizes(f)), tolerance) for arch, f in parts]
    blocks = [
        (block, (i, basis.spaces_of(k)))
        for i, ((arch, seen), basis) in enumerate(zip(parts, bases, strict=True))
        for k, block in enumerate(blocks_of(arch, seen, basis))
        if block is not None
    ]
    blocks.sort(key=lambda found: -found[0].drive)
    named = _with_copies(blocks)
    total = zero_loss(whole.data)
    left = fsum([total, *(-block.initial_loss for block in named)])
    outside = left if left > DEPENDENT * total else 0.0
    constant = find_blocks(whole, EXACT).constant if cutoff else outside
    ends = (*whole.arch.inputs, *whole.arch.outputs)
    silent = {
        v: whole.arch.sizes[v] - _rank([block.basis[v] for block in named if v in block.basis])
        for v in ends
    }
    exactness = Exactness(
        max([dropped, *(basis.residual for basis in bases)]),
        faint_nodes(factor, ends),
        all(basis.settled for basis in bases),
        any(basis.dropped_directions for basis in bases),
        max(outside - constant, 0.0),
        max(-left / total, 0.0) if total else 0.0,
        too_narrow(whole, named),
    )
    return FoundBlocks(named, constant, silent, exactness)


def _with_copies(blocks: Sequence[tuple[Block, Hashable]]) -> tuple[Block, ...]:
    """The blocks with their names, and which are copies: those of one key with equal statistics.

    A copy whose statistics differ by rounding alone has those of the first one.
    """
    firsts: dict[Hashable, Block] = {}
    named = []
    for i, (block, key) in enumerate(blocks):
        name = f"{'mode' if block.is_scalar else 'block'}{i + 1}"
        first = firsts.setdefault(key, replace(block, name=name, copy_of=name))
        gap = difference(block, first) if first.name != name else 0.0
        if gap <= NOISE:
            named.append(replace(first, name=name, basis=block.basis))
        else:
            named.append(replace(block, name=name, copy_of=first.name if gap <= EQUAL else name))
    return tuple(named)


def places_of(whole: SplitNetwork) -> dict[str, str]:
    """The place of every node: hidden neurons of one place can serve the same hidden directions.

    Nodes that share a basis have one place. So have hidden nodes with equal gates, and edges with
    equal gates, from and to the same nodes: together they are one node that was cut into parts.
    """
    arch, gates = whole.arch, whole.data.gates
    if arch.ties or arch.frozen:
        return dict(arch.class_of)

    def gate(name: str) -> bytes:
        return np.asarray(gates[name], np.float64).tobytes() if name in gates else b""

    def ends(edges: Iterable[str], end: int) -> tuple[tuple[str, bytes], ...]:
        return tuple(sorted((arch.edges[e][end], gate(e)) for e in edges))

    first: dict[Hashable, str] = {}
    key = lambda v: (gate(v), ends(arch.incoming[v], 0), ends(arch.outgoing[v], 1))
    hidden = {v: first.setdefault(key(v), v) for v in arch.hidden}
    return {v: hidden.get(v, v) for v in arch.sizes}


def hidden_room(
    whole: SplitNetwork, blocks: Sequence[Block]
) -> Iterator[tuple[int, str, int, int]]:
    """How many hidden directions every block has, and how many neurons stronger blocks leave it.

    Each result is the place of a block in the list, one of hidden nodes (`places_of`), and the two.
    In decoupled weights every block has hidden directions of its own (MHS Assumption 2.1.2).
    """
    of, classes = places_of(whole), whole.arch.class_of
    ends = {of[v] for v in (*whole.arch.inputs, *whole.arch.outputs)}
    left: dict[str, int] = {}
    for v in dict.fromkeys(classes.values()):  # nodes of a class have the same neurons
        left[of[v]] = left.get(of[v], 0) + whole.arch.sizes[v]
    for i, block in enumerate(blocks):
        wide = {of[v]: block.arch.sizes[v] for v in block.arch.hidden if of[v] not in ends}
        for node, n in wide.items():
            yield i, node, n, max(left[node], 0)
            left[node] -= n


def too_narrow(whole: SplitNetwork, blocks: Sequence[Block]) -> dict[str, int]:
    """How many hidden directions of blocks are more than a place of hidden nodes has neurons."""
    over: dict[str, int] = {}
    for _, node, n, left in hidden_room(whole, blocks):
        over[node] = over.get(node, 0) + max(n - left, 0)
    return {node: n for node, n in over.items() if n}


def _rank(bases: list[Matrix]) -> int:
    """The dimension of the space that these bases span together."""
    if not bases:
        return 0
    return int(np.linalg.matrix_rank(np.concatenate(bases, axis=1), tol=EXACT))


# What "exact" means for a reduction: the one place that defines it.


@final
@dataclass(frozen=True)
class Exactness:
    """How far the blocks of a race can be trusted.

    `residual` is the largest relative size that was dropped: of a coupling between blocks, relative
    to the sizes of the two directions it couples, or of a direction, relative to its node.
    `dropped_directions` says whether any direction was dropped. A direction smaller than 1e-6 of
    its node (`mixtures.SIZE_FLOOR`) is judged as if it had that size. `faint` names the nodes with
    directions more than `RANGE` times smaller than others: float64 cannot distinguish their
    contribution from rounding. `settled` says whether fresh mixtures of the statistics confirmed
    the blocks. `dropped_loss` is the loss at zero weights that is in no block, although an exact
    reduction has it in one: a tolerance dropped it, and it can be learned. `excess` is the part by
    which the losses of all blocks at zero weights exceed that of the network, of which each should
    have its own part. `narrow` counts, for every class of hidden nodes with fewer neurons than the
    blocks have directions there, how many directions are too many (`Race.start`): the network
    cannot learn all that the blocks do.
    """

    residual: float
    faint: tuple[str, ...] = ()
    settled: bool = True
    dropped_directions: bool = False
    dropped_loss: float = 0.0
    excess: float = 0.0
    narrow: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_split(self) -> bool:
        """Whether the blocks are exact: settled, only rounding dropped, nothing faint."""
        dropped = self.dropped_directions or max(self.residual, self.excess) > EXACT
        return self.settled and not self.faint and not dropped

    def __bool__(self) -> bool:
        """Whether the reduction is exact: the blocks are, and each has room in hidden nodes."""
        return self.is_split and not self.narrow

    def __str__(self) -> str:
        if self.faint:
            names = ", ".join(self.faint)
            return f"not checked: directions of {names} differ too much in size for float64"
        if not self.settled:
            return f"not settled: fresh mixtures still couple the blocks by {self.residual:.1e}"
        if self.is_split and self.narrow:
            lacking = ", ".join(f"{v} by {n}" for v, n in self.narrow.items())
            return f"not exact: hidden nodes are too narrow for all blocks ({lacking})"
        if self:
            return f"exact (no coupling above {EXACT:.0e})"
        if self.excess > max(EXACT, self.residual):
            return f"approximate: the losses of the blocks exceed the whole by {self.excess:.1e}"
        what = "couplings or directions" if self.dropped_directions else "couplings"
        return f"approximate: {what} up to {self.residual:.1e} dropped"


def faint_nodes(factor: ClassFactor, nodes: Iterable[str]) -> tuple[str, ...]:
    """The nodes with directions or features that differ in size by more than `RANGE`."""
    values = {**factor.x, **factor.y}
    return tuple(v for v in nodes if _span_of_sizes(values[v]) > RANGE)


def _span_of_sizes(values: Matrix) -> float:
    """The ratio of the largest to the smallest size, for features and for principal directions.

    Sizes that are zero, or rounding compared with the largest, do not count.
    """
    features = np.linalg.norm(values, axis=0)
    directions = np.linalg.svd(values, compute_uv=False) if values.size else features
    spans = [1.0]
    for sizes in (features, directions):
        counted = sizes[sizes > DEPENDENT * sizes.max(initial=0.0)]
        spans += [float(counted.max() / counted.min())] if len(counted) else []
    return max(spans)


# Parts of a network that learn independently of each other.


def components(
    arch: Architecture, factor: ClassFactor, tolerance: float, cutoff: float = 0.0, seed: int = 0
) -> tuple[list[tuple[Architecture, ClassFactor]], float]:
    """The finest parts of a gated network that learn independently of each other.

    Also returns the largest correlation between inputs of different parts that was dropped because
    it does not exceed the tolerance. Directions of an input that are smaller than the `cutoff`,
    relative to the largest, do not count.
    """
    rng = np.random.default_rng(seed)
    unit = in_unit_sizes(factor)
    place = {e: i for i, e in enumerate(arch.edges)}
    parts = [arch.part(edges) for edges in _edge_components(arch)]
    mixers = [Mixer(part, unit) for part in parts]
    sums = [mixer.path_sums(mixer.scalars(rng)) for mixer in mixers]
    spans: list[dict[Pair, tuple[np.ndarray, np.ndarray]]] = [{} for _ in parts]
    group = list(range(len(parts)))

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = group[group[i]]
            i = group[i]
        return i

    apart: dict[tuple[int, int], float] = {}
    for i, k, shared in _meeting_parts(sums):
        if root(i) == root(k):
            continue
        for part in (i, k):
            for pair in sums[part]:
                if pair[0] in shared and pair not in spans[part]:
                    spans[part][pair] = _span(mixers[part], pair[1], sums[part][pair], cutoff)
        correlation = _correlation(spans[i], spans[k], len(unit.row_class))
        if correlation > tolerance:
            group[root(k)] = root(i)
        else:
            apart[i, k] = correlation
    members: dict[int, list[int]] = {}
    for i in range(len(parts)):
        members.setdefault(root(i), []).append(i)
    found = []
    for together in members.values():
        on = np.zeros(factor.count, bool)
        for i in together:
            for value in sums[i].values():
                on |= value != 0
        if on.any():
            edges = sorted((e for i in together for e in parts[i].edges), key=place.__getitem__)
            part = arch.part(edges)
            found.append((part, restricted(factor, part, on)))
    dropped = [size for (i, k), size in apart.items() if root(i) != root(k)]
    return found, max(dropped, default=0.0)


def _edge_components(arch: Architecture) -> list[list[str]]:
    """Groups of edges joined through hidden nodes or ties; inputs and outputs join nothing."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {e: i for i, e in enumerate(arch.edges)}
    near = [[place[e] for e in (*arch.incoming[v], *arch.outgoing[v])] for v in arch.hidden]
    near += [[place[e] for e, _ in members] for members in arch.matrices.values()]
    joined = [(edges[0], e) for edges in near for e in edges]
    first, other = np.array(joined, int).reshape(-1, 2).T
    graph = coo_array((np.ones(len(joined)), (first, other)), shape=(len(place), len(place)))
    label = connected_components(graph, directed=False)[1]
    parts: dict[int, list[str]] = {}
    for edge, i in place.items():
        parts.setdefault(int(label[i]), []).append(edge)
    return list(parts.values())


def _meeting_parts(sums: list[dict[Pair, np.ndarray]]) -> Iterator[tuple[int, int, set[str]]]:
    """Pairs of parts that drive an output together in some gate class, with these outputs."""
    at: dict[str, dict[int, np.ndarray]] = {}
    for i, part in enumerate(sums):
        for (t, _), value in part.items():
            on = value != 0
            here = at.setdefault(t, {})
            here[i] = here[i] | on if i in here else on
    found: dict[tuple[int, int], set[str]] = {}
    for t, here in at.items():
        index = list(here)
        on = np.array(list(here.values()), np.float32)
        for i, k in np.argwhere(np.triu(on @ on.T, k=1)):
            found.setdefault((index[i], index[k]), set()).add(t)
    for (i, k), shared in sorted(found.items()):
        yield i, k, shared


def _span(
    mixer: Mixer, node: str, value: np.ndarray, cutoff: float
) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis of what a part sees of an input through its gates, and the rows used."""
    rows, weight = rows_of(mixer.factor, value)
    rows = np.arange(len(mixer.factor.row_class))[rows]
    u, s, _ = np.linalg.svd(weight[:, None] * mixer.factor.x[node][rows], full_matrices=False)
    return rows, u[:, s > max(DEPENDENT, cutoff) * s.max(initial=0.0)]


def _correlation(
    left: Mapping[Pair, tuple[np.ndarray, np.ndarray]],
    right: Mapping[Pair, tuple[np.ndarray, np.ndarray]],
    count: int,
) -> float:
    """How correlated the inputs of two parts are where both drive one output, from 0 to 1.

    This is the largest canonical correlation: the largest between a direction of one part's input
    and one of the other's.
    """
    found = 0.0
    for (t, _), (rows, u) in left.items():
        at = np.full(count, -1)
        at[rows] = np.arange(len(rows))
        for (target, _), (others, v) in right.items():
            if t == target:
                both = at[others] >= 0
                inner = u[at[others[both]]].T @ v[both]
                found = max(found, float(np.linalg.norm(inner, 2)) if inner.size else 0.0)
    return found
