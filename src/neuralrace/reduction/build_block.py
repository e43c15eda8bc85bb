"""How a block is made from its directions: its graph, its data, its signs and aligned weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from neuralrace.architecture import Architecture
from neuralrace.reduction.basis import SharedBasis
from neuralrace.reduction.block import Block, own_sizes, places, rank_of_correlations
from neuralrace.reduction.mixtures import (
    Mixer,
    Pair,
    as_wide_as,
    in_unit_sizes,
    longest_path,
    rows_of,
    through_class,
    ways,
)
from neuralrace.statistics import ClassFactor, reachable, restricted
from neuralrace.tolerances import EQUAL, NOISE, ROUNDING
from neuralrace.types import Matrix


def blocks_of(
    arch: Architecture, factor: ClassFactor, basis: SharedBasis
) -> Iterator[Block | None]:
    """The blocks of a part of the network; None where no signal joins inputs to outputs in one."""
    ends = (*arch.inputs, *arch.outputs)
    turn = {v: basis.directions[arch.class_of[v]] for v in ends}
    seen = Mixer(arch, factor).seen_in(turn).factor
    for k in range(basis.count):
        yield _block(arch, seen, {v: basis.block[arch.class_of[v]] == k for v in ends}, turn)


def _block(
    arch: Architecture,
    seen: ClassFactor,
    columns: Mapping[str, Bool[np.ndarray, " _"]],
    turn: Mapping[str, Matrix],
) -> Block | None:
    """The block with these of the directions of all ends, in which `seen` is the data."""
    of = arch.class_of
    width = {of[v]: int(own.sum()) for v, own in columns.items() if own.any()}
    pruned = _pruned(arch, {v for v, own in columns.items() if own.any()})
    if pruned is None:
        return None
    arch = pruned.with_sizes({v: width.get(of[v], 1) for v in pruned.sizes})
    columns = {v: columns[v] for v in (*arch.inputs, *arch.outputs)}
    ends = {v: turn[v][:, own] for v, own in columns.items()}
    factor = restricted(seen, arch, columns=columns)
    if not _has_signal(Mixer(arch, in_unit_sizes(factor))):
        return None
    basis, factor = _signed(arch, within_reach(arch, factor), ends)
    mixer = Mixer(arch, factor)
    aligned = _tied_aligned(mixer) if arch.ties or arch.frozen else _aligned(mixer)
    arch = as_wide_as(arch, aligned)
    return Block("", basis, arch, factor, _drive(mixer), aligned)


def within_reach(arch: Architecture, factor: ClassFactor) -> ClassFactor:
    """The data with the part of the targets that the paths can reach: no weights learn the rest.

    Blocks whose paths are orthogonal have different parts of the targets of one output.
    """
    spans = reachable(factor, arch)
    y = {t: spans[t] @ (spans[t].T @ a) for t, a in factor.y.items()}
    left = sum(float(((a - y[t]) ** 2).sum()) for t, a in factor.y.items())
    return replace(factor, y=y, left=factor.left + left)


def _has_signal(mixer: Mixer) -> bool:
    """Whether some Σ^yx is more than rounding, relative to the sizes of what it joins."""
    draw = mixer.draw(np.random.default_rng(0))
    if mixer.arch.ties or mixer.arch.frozen:
        sums = mixer.path_sums(mixer.scalars(np.random.default_rng(0)))
        size = {v: own_sizes(a) for f in (mixer.factor.x, mixer.factor.y) for v, a in f.items()}
        pairs = mixer.yx({p: rows_of(mixer.factor, T) for p, T in sums.items()}).items()
        sizes = [
            float(np.abs(m / size[t][:, None] / size[s]).max(initial=0.0)) for (t, s), m in pairs
        ]
        return max(sizes, default=0.0) > NOISE
    return any(
        float(np.abs(matrix / left[:, None] / right).max(initial=0.0)) > NOISE
        for (a, _), matrix, left, right in mixer.couplings(draw)
        if a in mixer.arch.outputs
    )


def _drive(mixer: Mixer) -> float:
    """The largest singular value of Σ^yx through one hidden node, or along one direct edge.

    All inputs and outputs that the node joins stand side by side, and Σ^yx is summed over its
    paths of one length: products of different numbers of weights do not add up to one strength.
    """
    arch = mixer.arch
    if arch.ties or arch.frozen:
        return max(map(_largest_value, _by_length_and_class(mixer)), default=0.0)
    through = [_edges_through(arch, node) for node in dict.fromkeys(_same_paths(arch).values())]
    through += [{e} for e, (s, t) in arch.edges.items() if s in arch.inputs and t in arch.outputs]
    matrices = (m for part in through for m in _by_length(mixer, part))
    return max(map(_largest_value, matrices), default=0.0)


def _by_length_and_class(mixer: Mixer) -> list[Matrix]:
    """Σ^yx from class to class, summed over their paths of each number of learned edges.

    Learned edges count with 1 and frozen ones with their number. These are the coefficients of the
    drive of one mode at the powers of its shared weights.
    """
    arch, of = mixer.arch, mixer.arch.class_of
    found: dict[tuple[str, str, int], Any] = {}
    count = longest_path(arch) + 1
    # the number of learned edges so far is the place in a row
    longer = dict.fromkeys(arch.edges, np.eye(count, k=1))
    turned = longer | {e: number * np.eye(count) for e, number in arch.frozen.items()}
    for (t, s), products in mixer.path_products(turned, np.eye(count)[0]).items():
        for length in np.flatnonzero(products.any(axis=0)).tolist():
            matrix = mixer.yx({(t, s): rows_of(mixer.factor, products[:, length])})[t, s]
            key = of[t], of[s], length
            found[key] = found.get(key, 0.0) + matrix
    return list(found.values())


def _by_length(mixer: Mixer, edges: set[str]) -> list[Matrix]:
    """`_side_by_side` for the paths of each number of edges.

    The number of edges so far is the place in a row.
    """
    count, found = longest_path(mixer.arch) + 1, []
    longer = dict.fromkeys(edges, np.eye(count, k=1))
    products = mixer.path_products(longer, np.eye(count)[0])
    for length in mixer.arch.path_lengths:
        sums = {pair: T[:, length] for pair, T in products.items() if T[:, length].any()}
        outputs, inputs = (dict.fromkeys(pair[k] for pair in sums) for k in (0, 1))
        found.append(_side_by_side(mixer, sums, inputs, outputs))
    return found


def _side_by_side(
    mixer: Mixer, sums: Mapping[Pair, np.ndarray], inputs: Iterable[str], outputs: Iterable[str]
) -> Matrix:
    """Σ^yx for these sums over paths between these nodes, side by side."""
    rows, columns = (places(tuple(nodes), mixer.arch.sizes) for nodes in (outputs, inputs))
    total = np.zeros(tuple(max((p.stop for p in e.values()), default=0) for e in (rows, columns)))
    for (t, s), matrix in mixer.yx({p: rows_of(mixer.factor, T) for p, T in sums.items()}).items():
        total[rows[t], columns[s]] = matrix
    return total


def _largest_value(matrix: Matrix) -> float:
    """The largest singular value."""
    one = min(matrix.shape) == 1  # a row or a column has one
    return float(np.linalg.norm(matrix, None if one else 2)) if matrix.size else 0.0


def _signed(
    arch: Architecture, factor: ClassFactor, basis: Mapping[str, Matrix]
) -> tuple[dict[str, Matrix], ClassFactor]:
    """The same directions with signs that make Σ^yx positive wherever a block is scalar."""
    if any(b.shape[1] != 1 for b in basis.values()):
        return dict(basis), factor
    mixer, of = Mixer(arch, factor), arch.class_of
    total: dict[Pair, float] = {}
    for (t, s), m in mixer.yx_of(dict.fromkeys(arch.edges, 1.0)).items():
        if of[t] != of[s]:
            total[of[t], of[s]] = total.get((of[t], of[s]), 0.0) + float(m[0, 0])
    by_class = _factors({pair: float(np.sign(m)) for pair, m in total.items() if m})
    sign = {v: by_class.get(of[v], 1.0) for v in basis}
    turn = {v: np.full((1, 1), value) for v, value in sign.items()}
    return {v: sign[v] * b for v, b in basis.items()}, mixer.seen_in(turn).factor


def _factors(values: Mapping[Pair, float]) -> dict[str, float]:
    """Numbers whose products are these values of pairs of nodes, along a tree of the pairs."""
    neighbours: dict[str, list[tuple[str, float]]] = {}
    for (t, s), value in values.items():
        neighbours.setdefault(s, []).append((t, value))
        neighbours.setdefault(t, []).append((s, value))
    factors: dict[str, float] = {}
    for first in dict.fromkeys(s for _, s in values):
        waiting = [] if first in factors else [first]
        factors.setdefault(first, 1.0)
        while waiting:
            node = waiting.pop()
            for other, value in neighbours[node]:
                if other not in factors:
                    factors[other] = value / factors[node]
                    waiting.append(other)
    return factors


def _pruned(arch: Architecture, ends: set[str]) -> Architecture | None:
    """The graph of the edges on paths between these inputs and outputs."""
    forward = {v for v in arch.inputs if v in ends}
    for node in arch.order:
        fed = any(arch.edges[e][0] in forward for e in arch.incoming[node])
        if fed and (node in arch.hidden or node in ends):
            forward.add(node)
    backward = {v for v in arch.outputs if v in ends and v in forward}
    for node in reversed(arch.order):
        if any(arch.edges[e][1] in backward for e in arch.outgoing[node]) and node in forward:
            backward.add(node)
    edges = {e: st for e, st in arch.edges.items() if st[0] in backward and st[1] in backward}
    return arch.part(list(edges)) if edges else None


def _aligned(mixer: Mixer) -> dict[str, Matrix]:
    """Weights of unit size along the singular vectors of Σ^yx.

    In a block with one direction per node, every edge is 1 or −1, if one neuron per node can carry
    all paths through it. Otherwise each hidden node reads and writes the singular vectors of Σ^yx
    summed over the paths through it, with all inputs and all outputs of the block side by side.
    """
    arch = mixer.arch
    inputs, outputs = (places(ends, arch.sizes) for ends in (arch.inputs, arch.outputs))
    scalar = all(arch.sizes[v] == 1 for v in (*arch.inputs, *arch.outputs))
    first = _same_paths(arch)
    through = {v: _edges_through(arch, v) for v in dict.fromkeys(first.values())}
    found = {v: _signs(mixer, edges) if scalar else None for v, edges in through.items()}
    one_neuron = all(pair is not None for pair in found.values())
    pairs = {
        v: signs if one_neuron and signs else _singular_vectors(mixer, through[v])
        for v, signs in found.items()
    }
    writes, reads = ({v: pairs[u][side] for v, u in first.items()} for side in (0, 1))
    aligned = {}
    for edge, (s, t) in arch.edges.items():
        if s in inputs and t in outputs:
            u, vt = _singular_vectors(mixer, {edge})
            aligned[edge] = u[outputs[t]] @ vt[:, inputs[s]]
        elif s in inputs:
            aligned[edge] = reads[t][:, inputs[s]]
        elif t in outputs:
            aligned[edge] = writes[s][outputs[t]]
        else:
            joined = reads[t] @ reads[s].T
            aligned[edge] = np.sign(joined) if scalar and one_neuron else joined
    return aligned


def _tied_aligned(mixer: Mixer) -> dict[str, Matrix]:
    """Weights of unit size where some are shared: those within a class of nodes are the identity.

    Those from inputs and to outputs are the singular vectors of Σ^yx through each class of hidden
    nodes, summed over paths on which all that lies between counts with 1. In a scalar block all are
    1 or −1. A class that has an input or output keeps the directions of that.
    """
    arch, of = mixer.arch, mixer.arch.class_of
    shapes = arch.shapes
    ends = {of[v] for v in (*arch.inputs, *arch.outputs)}
    aligned = {name: np.eye(*shape) for name, shape in shapes.items()}
    ones = dict.fromkeys(arch.matrices, 1.0)
    free = [v for v in dict.fromkeys(of[v] for v in arch.hidden) if v not in ends]
    width = {}
    for node in free:
        into, out = ways(arch, node)
        total = through_class(arch, mixer.factor, node, ones)
        if not total.size:
            continue
        u, s, vt = np.linalg.svd(total, full_matrices=False)
        width[node] = max(1, int((s > NOISE * s[0]).sum()))
        for side, part in ((into, vt), (out, u.T)):
            at = 0
            for name, turned in side:
                n = shapes[name][1 - turned] if side is into else shapes[name][int(turned)]
                piece = part[: width[node], at : at + n]
                aligned[name] = piece if (side is into) != turned else piece.T
                at += n
    for name, (s, t) in arch.matrix_ends.items():
        if of[s] in free and of[t] in free:
            aligned[name] = np.eye(width.get(of[t], 1), width.get(of[s], 1))
    return aligned


def _signs(mixer: Mixer, edges: set[str]) -> tuple[Matrix, Matrix] | None:
    """Signs with which one neuron can carry all paths through it, or None where it cannot.

    It can if Σ^yx = α_t β_s for every pair of an output t and an input s that a path joins.
    """
    arch = mixer.arch
    found = mixer.yx_of({e: float(e in edges) for e in arch.edges})
    values = {pair: float(m[0, 0]) for pair, m in found.items()}
    (y, _), (x, _) = _ends(mixer)
    own = {v: float(own_sizes(a)[0]) for v, a in (*x.items(), *y.items())}
    if any(abs(value) <= ROUNDING * own[t] * own[s] for (t, s), value in values.items()):
        return None
    factors = _factors(values)
    for (t, s), value in values.items():
        if abs(factors[t] * factors[s] - value) > EQUAL * abs(value):
            return None
    up = np.array([[np.sign(factors.get(t, 1.0))] for t in arch.outputs])
    return up, np.array([[np.sign(factors.get(s, 1.0)) for s in arch.inputs]])


def _singular_vectors(mixer: Mixer, edges: set[str]) -> tuple[Matrix, Matrix]:
    """Left and right singular vectors of Σ^yx summed over the paths made of these edges."""
    arch = mixer.arch
    sums = mixer.path_sums({e: float(e in edges) for e in arch.edges})
    total = _side_by_side(mixer, sums, arch.inputs, arch.outputs)
    u, _, vt = np.linalg.svd(total, full_matrices=False)
    sizes = (np.concatenate([own_sizes(f[v]) for v in ends]) for f, ends in _ends(mixer))
    rank = max(1, rank_of_correlations(total, *sizes))
    return u[:, :rank], vt[:rank]


def _ends(mixer: Mixer) -> list[tuple[Mapping[str, Matrix], tuple[str, ...]]]:
    """The targets with the output nodes, then the inputs with the input nodes."""
    return [(mixer.factor.y, mixer.arch.outputs), (mixer.factor.x, mixer.arch.inputs)]


def _same_paths(arch: Architecture) -> dict[str, str]:
    """For every hidden node, the first node with the same paths: the head of its unforked chain."""
    first: dict[str, str] = {}
    for node in arch.order:
        if arch.incoming[node] and arch.outgoing[node]:
            before = arch.edges[arch.incoming[node][0]][0]
            alone = len(arch.incoming[node]) == 1 and len(arch.outgoing[before]) == 1
            first[node] = first.get(before, node) if alone else node
    return first


def _edges_through(arch: Architecture, node: str) -> set[str]:
    """The edges of the paths that run through a node."""
    before, after = {node}, {node}
    for v in reversed(arch.order):
        if any(arch.edges[e][1] in before for e in arch.outgoing[v]):
            before.add(v)
    for v in arch.order:
        if any(arch.edges[e][0] in after for e in arch.incoming[v]):
            after.add(v)
    return {e for e, (s, t) in arch.edges.items() if t in before or s in after}
