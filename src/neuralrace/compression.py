"""Exact compressions: a smaller network on fewer samples that learns exactly as the large one.

Samples with equal gates shrink to a triangular factor; a hidden node shrinks to the smallest
subspace that learning ever reaches. Everything is found once, on the host, in float64.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, matched
from neuralrace.door import door
from neuralrace.gdln import GDLN
from neuralrace.statistics import (
    Place,
    SplitNetwork,
    class_factor,
    cut_out,
    split_neurons,
    threads_for,
)
from neuralrace.tolerances import DEPENDENT
from neuralrace.types import Array, Weights, WeightsLike
from neuralrace.weights import check_finite, checked_weights

__all__ = [
    "Compressed",
    "compress",
]

Bases = dict[str, np.ndarray | None]
"""An orthonormal basis of the subspace that matters at each node, or None for all of it."""


@final
class Piece(eqx.Module):
    """Where a small matrix acts in a large one: `left · w · rightᵀ`.

    `rows` and `columns` are the neurons it joins (None: all), `left` and `right` the bases of
    their subspaces (None: the neurons themselves).
    """

    edge: str = eqx.field(static=True)
    rows: Array | None
    columns: Array | None
    left: Array | None
    right: Array | None


@final
class Lift(eqx.Module):
    """The way back from the weights of a compressed network to those of the full one.

    `W = Q_t W̃ Q_sᵀ + (W(0) − P_t W(0) P_s)`, P = QQᵀ: the last part never moves and is kept in
    `frozen`. JAX can compile it; without pieces it leaves the weights as they are. Where nodes of
    the compressed network were joined, `places` says which parts of its matrices are its edges.
    """

    pieces: dict[str, tuple[Piece, ...]]
    frozen: dict[str, PyTree]
    places: tuple[tuple[str, Place], ...] = eqx.field(static=True, default=())

    def __call__(self, weights: PyTree) -> PyTree:
        weights = cut_out(weights, self.places) if self.places else weights
        if not self.pieces:
            return weights
        full: Weights = {}
        for edge, pieces in self.pieces.items():
            full[edge] = self.frozen[edge]
            for piece in pieces:
                part = weights[piece.edge]
                part = part if piece.left is None else piece.left @ part
                part = part if piece.right is None else part @ piece.right.T
                rows, columns = piece.rows, piece.columns
                place = slice(None)
                if rows is not None and columns is not None:
                    place = jnp.ix_(rows, columns)
                full[edge] = full[edge].at[place].add(part)
        return full


UNCHANGED = Lift({}, {})
"""The way back where nothing was compressed."""


@final
class Compressed(eqx.Module):
    """A smaller network, weights and dataset with the same learning, and the way back.

    `lift(weights)` are the full-width weights at any time; with them the full network gives the
    representations, `net.responses(compressed.lift(w), data)`.

    ```python
    >>> import jax, numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 500, 1))
    >>> x = np.random.default_rng(0).normal(size=(1000, 2))
    >>> weights = net.init(jax.random.key(0), scale=0.1)
    >>> nr.compress(net, weights, nr.Dataset({"x": x}, {"y": x[:, :1] ** 2})).summary
    '1000 → 3 samples, 502 → 5 neurons'

    ```
    """

    net: GDLN = eqx.field(static=True)
    weights: Weights
    data: Dataset
    lift: Lift
    full: GDLN = eqx.field(static=True)
    full_samples: int = eqx.field(static=True)

    @property
    def work(self) -> float:
        """The share of a step's work that is left."""
        left = step_work(self.net.arch, self.data.n_samples)
        return left / step_work(self.full.arch, self.full_samples)

    @property
    def summary(self) -> str:
        """What became smaller, in a phrase; neurons are those of inputs and hidden nodes."""
        before, after = (
            sum(n for v, n in arch.sizes.items() if v not in arch.outputs)
            for arch in (self.full.arch, self.net.arch)
        )
        return f"{self.full_samples} → {self.data.n_samples} samples, {before} → {after} neurons"


EDGE = 2e4
"""What an edge costs a step whatever its size, in multiplications: starting a few products."""


def step_work(arch: Architecture, samples: int) -> float:
    """The multiplications of a step: three products an edge, and the step itself."""
    weights = (arch.sizes[s] * arch.sizes[t] for s, t in arch.edges.values())
    return sum((3 * samples + 1) * n + EDGE for n in weights)


def search_work(arch: Architecture) -> float:
    """About the multiplications that finding the subspaces takes, if a node grows to the end."""
    ends = sum(n for v, n in arch.sizes.items() if v not in arch.hidden)
    weights = sum(arch.sizes[s] * arch.sizes[t] for s, t in arch.edges.values())
    return (len(arch.hidden) + SWEEPS) * weights * ends


def split_work(arch: Architecture, data: Dataset) -> float:
    """The least work of a step once neurons with gates of their own are nodes of their own."""
    parts = {
        v: len(np.unique(np.asarray(gate), axis=1).T) if np.ndim(gate) == 2 else 1
        for v, gate in data.gates.items()
    }
    return EDGE * sum(parts.get(s, 1) * parts.get(t, 1) for s, t in arch.edges.values())


@door
def compress(
    net: GDLN, weights: WeightsLike, data: Dataset, *, samples: bool = True, width: bool = True
) -> Compressed:
    """Smaller equivalents of a gated linear network, its weights and its data.

    Gradient descent and gradient flow from the compressed weights give the losses of the full
    network, and `lift` its weights, to rounding; so does momentum. Optimizers that treat every
    weight by itself, such as Adam, need `width=False`: they are not invariant under rotation. Any
    graph and gates, real ones and one gate per neuron included.

    **Samples.** In each class of equal gates, the inputs √p·X = QR of all input nodes side by
    side keep the rows of R with targets QᵀY; one row of zero input carries the norm of the
    targets that is left, which no weights can change.

    **Width.** The smallest subspaces with S_in = span of the data, S_out = everything,
    `S_v ⊇ W_e S_{s(e)}` for edges into v and `S_v ⊇ W_fᵀ S_{t(f)}` for edges out of v: all
    gradients lie in them, now and later. Nodes whose edges share weights share one subspace, which
    holds what each of them needs. One hidden layer keeps at most inputs + outputs neurons;
    two adjacent wide Gaussian layers keep all. Orthogonal ones shrink in float64 only: in float32
    they are not orthogonal enough, and nothing that could still grow is dropped.

    **Arguments:** `net`, a `GDLN` (a ReLU network's gates change as it learns, and it cannot be
    compressed so); `weights`, the start; `data`; `samples` and `width` switch the two off.

    **Returns:** `Compressed`, whose weights have the precision of those given.

    ```python
    >>> import jax, numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 500, 1))
    >>> x = np.random.default_rng(0).normal(size=(1000, 2))
    >>> data = nr.Dataset({"x": x}, {"y": x[:, :1]})
    >>> small = nr.compress(net, net.init(jax.random.key(0), scale=0.1), data)
    >>> dict(small.net.arch.sizes), small.lift(small.weights)["W1"].shape
    ({'x': 2, 'h': 3, 'y': 1}, (500, 2))

    ```
    """
    given = checked_weights(net.arch, weights)
    check_finite(given)
    dtype = jnp.result_type(*given.values())
    count = matched(net.arch, data).n_samples
    if not samples and not width:
        return Compressed(net, given, data, UNCHANGED, net, count)
    whole = split_neurons(net.arch, data)
    start = whole.split(given)
    bases: Bases = dict.fromkeys(whole.arch.sizes)
    with threads_for(max(whole.arch.sizes.values())):
        fewer, shown = _fewer_samples(whole.data)
        if width:
            bases = _subspaces(whole.arch, start, shown)
        fewer = fewer if samples else whole.data
        if any(bases[v] is not None for v in fewer.x):
            x = {v: x if (q := bases[v]) is None else np.asarray(x) @ q for v, x in fewer.x.items()}
            fewer = replace(fewer, x=x)
            fewer = _fewer_samples(fewer)[0] if samples else fewer
    sizes = {v: n if (q := bases[v]) is None else q.shape[1] for v, n in whole.arch.sizes.items()}
    frozen = {
        edge: value
        if isinstance(value, float)
        else _between(np.array(value), *(bases[v] for v in whole.arch.edges[edge]))
        for edge, value in whole.arch.frozen.items()
    }
    arch = Architecture(sizes, whole.arch.edges, whole.arch.ties, frozen)
    small = {
        name: jnp.asarray(_between(start[name], bases[source], bases[target]), dtype)
        for name, (source, target) in arch.matrix_ends.items()
    }
    lift = _lift(whole, {e: np.asarray(w, np.float64) for e, w in given.items()}, bases, dtype)
    return Compressed(GDLN(arch), small, fewer, lift, net, count)


def _between(matrix: np.ndarray, right: np.ndarray | None, left: np.ndarray | None) -> np.ndarray:
    """A matrix from the subspace of its source to that of its target."""
    matrix = matrix if left is None else left.T @ matrix
    return matrix if right is None else matrix @ right


def _fewer_samples(data: Dataset) -> tuple[Dataset, Mapping[str, np.ndarray]]:
    """A dataset of few rows that learning cannot tell from this one, and what its inputs show.

    Gates are per node or edge. Every row weighs the same, 1/R, hence the √R.
    """
    factor = class_factor(data)
    norm = factor.left + sum(float(np.vdot(y, y)) for y in factor.y.values())
    rounding = data.n_samples * np.finfo(float).eps ** 2 * norm
    extra = int(factor.left > rounding or len(factor.row_class) == 0)
    rows = len(factor.row_class) + extra
    scaled = lambda a: np.sqrt(rows) * np.concatenate([a, np.zeros((extra, a.shape[1]))])
    x = {v: scaled(a) for v, a in factor.x.items()}
    y = {v: scaled(a) for v, a in factor.y.items()}
    if extra:
        left = factor.left if len(factor.row_class) else norm
        next(iter(y.values()))[-1, 0] = np.sqrt(rows * left)
    index = np.append(factor.row_class, np.zeros(extra, int))
    gates = {name: gate[index] for name, gate in factor.gates.items()}
    return Dataset(x, y, gates, part=index), factor.x


def _span(x: np.ndarray) -> np.ndarray | None:
    """An orthonormal basis of the span of the rows, or None where that is everything."""
    if not x.any():
        return np.eye(x.shape[1], 1) if x.shape[1] > 1 else None
    _, size, directions = np.linalg.svd(x, full_matrices=False)
    rank = int((size > size.max() * max(x.shape) * np.finfo(float).eps).sum())
    return None if rank == x.shape[1] else directions[:rank].T


SWEEPS = 8
"""Sweeps over the hidden nodes, beyond one for each, before one that still grows is kept whole."""


def _subspaces(
    arch: Architecture, weights: Mapping[str, np.ndarray], shown: Mapping[str, np.ndarray]
) -> Bases:
    """The smallest subspaces that contain all gradients, by sweeping until none grows.

    Nodes of one class have one subspace. A class that grows on and on, as between wide Gaussian
    matrices, is kept whole: any larger subspace is as exact, and the search stays cheap. From then
    on every sweep that goes on makes one more class whole, so that the search ends, and it ends
    only where nothing grows.
    """
    of = arch.class_of
    members = {c: [v for v in arch.sizes if of[v] == c] for c in dict.fromkeys(of.values())}
    bases: Bases = {}
    for c, nodes in members.items():
        seen = [shown[v] for v in nodes if v in shown]
        span = _span(np.concatenate(seen)) if seen else np.zeros((arch.sizes[c], 0))
        bases[c] = None if any(v in arch.outputs for v in nodes) else span
    grown = [c for c, nodes in members.items() if any(v in arch.hidden for v in nodes)]
    around = {c: _neighbours(arch, weights, members[c]) for c in grown}
    pushed: dict[tuple[str, int], int] = {}  # how much of a neighbour's basis went to a class
    sweeps = len(grown) + SWEEPS
    for sweep in range(2 * sweeps):
        before = {c: _dimension(bases[c], arch.sizes[c]) for c in grown}
        for c in grown:
            for i, (matrix, other) in enumerate(around[c]):
                basis = bases[c]
                if basis is None:
                    break
                q, k = bases[other], pushed.get((c, i), 0)
                pushed[c, i] = _dimension(q, arch.sizes[other])
                reached = (
                    (matrix if k < matrix.shape[1] else matrix[:, :0])
                    if q is None
                    else (matrix @ q[:, k:])
                )
                if sweep >= sweeps and reached.shape[1] >= len(basis):
                    bases[c] = None
                else:
                    bases[c] = _grown(basis, reached, DEPENDENT * float(np.linalg.norm(matrix)))
        grew = [c for c in grown if _dimension(bases[c], arch.sizes[c]) != before[c]]
        if not grew:
            break
        if sweep + 1 >= sweeps:
            bases |= dict.fromkeys(grew)
    return {
        v: np.eye(len(q), 1) if (q := bases[of[v]]) is not None and q.shape[1] == 0 else q
        for v in arch.sizes
    }  # where nothing arrives, one neuron stands for all


def _neighbours(
    arch: Architecture, weights: Mapping[str, np.ndarray], nodes: Collection[str]
) -> list[tuple[np.ndarray, str]]:
    """What these nodes receive, forward and backward: every matrix once, and the class it is from.

    Multiples of the identity join nodes of one class, and bring nothing new.
    """
    found: dict[tuple[str, bool], tuple[np.ndarray, str]] = {}
    for v in nodes:
        into = [(e, False, arch.edges[e][0]) for e in arch.incoming[v]]
        for edge, back, other in (*into, *((e, True, arch.edges[e][1]) for e in arch.outgoing[v])):
            value = arch.frozen.get(edge)
            if isinstance(value, float):
                continue
            name, turned = arch.matrix_of.get(edge, (edge, False))
            matrix = weights[name] if value is None else np.array(value)
            way = back != turned
            found[name, way] = (matrix.T if way else matrix, arch.class_of[other])
    return list(found.values())


def _dimension(basis: np.ndarray | None, size: int) -> int:
    return size if basis is None else basis.shape[1]


def _grown(basis: np.ndarray, vectors: np.ndarray, nothing: float) -> np.ndarray | None:
    """The basis with what the vectors add to it above `nothing`; None once it is everything."""
    if vectors.shape[1] > len(vectors):
        vectors = np.linalg.qr(vectors.T)[1].T  # the same span, by fewer
    if vectors.size == 0:
        return basis
    for _ in range(2):  # twice, for orthogonality to rounding
        vectors = vectors - basis @ (basis.T @ vectors)
    directions, amounts, _ = np.linalg.svd(vectors, full_matrices=False)
    basis = np.hstack([basis, directions[:, amounts > nothing]])
    return None if basis.shape[1] >= len(basis) else basis


def _lift(
    whole: SplitNetwork, given: dict[str, np.ndarray], bases: Bases, dtype: jnp.dtype
) -> Lift:
    """The way back, with the part of the starting weights that never moves."""
    cast = lambda a: None if a is None else jnp.asarray(a, dtype)
    pieces: dict[str, tuple[Piece, ...]] = dict.fromkeys(given, ())
    frozen = {edge: w.copy() for edge, w in given.items()}
    for name, edge, (rows, columns) in whole.blocks():
        source, target = whole.arch.matrix_ends[name]
        left, right = bases[target], bases[source]
        moving = given[edge][rows, columns]
        moving = moving if left is None else left @ (left.T @ moving)
        moving = moving if right is None else (moving @ right) @ right.T
        frozen[edge][rows, columns] -= moving
        split = len(whole.pieces[edge]) > 1
        place = (rows[:, 0], columns[0]) if split else (None, None)
        pieces[edge] += (Piece(name, *place, cast(left), cast(right)),)
    return Lift(pieces, {edge: jnp.asarray(w, dtype) for edge, w in frozen.items()})
