"""The graph Γ of a network: named nodes with sizes, named edges, and the paths through them.

No arrays live here. An `Architecture` is a frozen value, hashable and equal by content, so that it
can be a static argument under `jax.jit`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, final

from neuralrace.architecture import build
from neuralrace.architecture.build import (
    TRANSPOSED,
    checked_edges,
    checked_frozen,
    checked_sizes,
    checked_ties,
)
from neuralrace.checks import by_name, shown
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, listed, require, spelled
from neuralrace.types import Count, Several, Whole

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes


@final
@dataclass(frozen=True)
class Path:
    """A chain of edges from an input node to an output node (NRR §3).

    `W_p` is the ordered product of the matrices of `edges`, `g_p` the product of every gate on the
    way, those of both ends included.

    ```python
    >>> import neuralrace as nr
    >>> path = nr.Architecture.chain(2, 8, 8, 1).paths()[0]
    >>> path.before("W2"), path.after("W2")
    (('W1',), ('W3',))

    ```
    """

    edges: tuple[str, ...]
    source: str
    target: str

    @door
    def before(self, edge: str) -> tuple[str, ...]:
        """The edges that precede `edge`: s̄(p, e) of NRR Eq. 3."""
        return self.edges[: self._index(edge)]

    @door
    def after(self, edge: str) -> tuple[str, ...]:
        """The edges that follow `edge`: t̄(p, e) of NRR Eq. 3."""
        return self.edges[self._index(edge) + 1 :]

    def _index(self, edge: str) -> int:
        require(
            isinstance(edge, str) and edge in self.edges,
            f"edge {edge!r} is not on this path",
            got=repr(edge),
            wanted=f"one of {listed(self.edges)}",
            fix="ask only for edges of path.edges",
        )
        return self.edges.index(edge)

    def __str__(self) -> str:
        return f"{self.source} -[{' '.join(self.edges)}]-> {self.target}"


class Gated(Protocol):
    """What has gates by name, such as a `Dataset`."""

    @property
    def gates(self) -> Mapping[str, Any]:
        """The gate of a node or an edge on every sample."""
        ...


MANY_EDGES = 30
"""In a drawing of more edges than this, one edge of every tie has a name."""

BIAS = "bias"
"""The input node that is clamped to one wherever a dataset does not say otherwise."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Architecture:
    """A directed acyclic graph of linear layers (NRR §2).

    Node `v` has `sizes[v]` neurons; edge `e` runs from `edges[e][0]` to `edges[e][1]` and carries a
    matrix of shape `(|t(e)|, |s(e)|)`. Nodes with only outgoing edges are inputs, nodes with only
    incoming edges are outputs; every node lies on some path from an input to an output. Parallel
    edges and skip connections are welcome. Two architectures are equal when their nodes, sizes and
    edges are, in the same order: it is the order of `inputs`, `hidden` and `outputs`.

    **Shared weights.** `ties` names sets of edges that carry one matrix; `"e.T"` is an edge that
    carries it transposed. Weights, gradients and initial scales then have one entry per tie, under
    its name, and none for its edges; gates stay with edges and nodes. `frozen` names edges that
    are not learned, with a number, which is a multiple of the identity, or a matrix; they have no
    weights. See `recurrent`, `convolution`, `siamese` and `autoencoder`.

    ```python
    >>> import neuralrace as nr
    >>> arch = nr.Architecture(
    ...     sizes={"item": 8, "context": 3, "h": 100, "y": 60},
    ...     edges={"ih": ("item", "h"), "ch": ("context", "h"), "hy": ("h", "y")},
    ... )
    >>> arch.inputs, arch.hidden, arch.outputs, arch.path_count()
    (('item', 'context'), ('h',), ('y',), 2)
    >>> residual = nr.Architecture(
    ...     sizes={"x": 5, "h1": 9, "h2": 9, "h3": 9, "y": 2},
    ...     edges={"in": ("x", "h1"), "a": ("h1", "h2"), "b": ("h2", "h3"), "out": ("h3", "y"),
    ...            "skip1": ("h1", "h2"), "skip2": ("h2", "h3")},
    ...     ties={"W": ("a", "b")}, frozen={"skip1": 1.0, "skip2": 1.0})
    >>> dict(residual.shapes)
    {'in': (9, 5), 'W': (9, 9), 'out': (2, 9)}

    ```
    """

    sizes: Mapping[str, int]
    edges: Mapping[str, tuple[str, str]]
    ties: Mapping[str, Sequence[str]] = field(default_factory=dict)
    frozen: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = checked_sizes(by_name("sizes", self.sizes, "sizes={'x': 2, 'h': 100, 'y': 1}"))
        edges = checked_edges(by_name("edges", self.edges, "edges={'W1': ('x', 'h')}"), sizes)
        shapes = {e: (sizes[t], sizes[s]) for e, (s, t) in edges.items()}
        ties = by_name("ties", self.ties, "ties={'Wh': ('h1_h2', 'h2_h3')}")
        ties = checked_ties(ties, edges, shapes)
        tied = {member.removesuffix(TRANSPOSED) for members in ties.values() for member in members}
        frozen = by_name("frozen", self.frozen, "frozen={'leak': 0.9}")
        frozen = checked_frozen(frozen, shapes, tied)
        fields = {"sizes": sizes, "edges": edges, "ties": ties, "frozen": frozen}
        for name, value in fields.items():
            object.__setattr__(self, name, MappingProxyType(value))
        _ = self.order  # raises on a cycle
        self._check_every_node_on_a_path()
        require(
            self.matrices,
            "all edges are frozen",
            got=f"frozen {listed(frozen)}",
            wanted="at least one edge that is learned",
            fix="leave an edge out of frozen",
        )

    # ---- what is where -------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Nodes with only outgoing edges, in the order they were written."""
        return tuple(v for v in self.sizes if self.outgoing[v] and not self.incoming[v])

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Nodes with only incoming edges, in the order they were written."""
        return tuple(v for v in self.sizes if self.incoming[v] and not self.outgoing[v])

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Nodes with both, in the order they were written."""
        return tuple(v for v in self.sizes if self.incoming[v] and self.outgoing[v])

    @cached_property
    def matrices(self) -> Mapping[str, tuple[tuple[str, bool], ...]]:
        """Every matrix that is learned, with its edges and whether each carries it transposed.

        A tie under its name, in the place of its first edge; an edge without a tie under its own.

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Architecture.autoencoder(8, 3).matrices)
        {'W1': (('encode1', False), ('decode1', True))}

        ```
        """
        of = {m.removesuffix(TRANSPOSED): tie for tie, ms in self.ties.items() for m in ms}
        names = dict.fromkeys(of.get(edge, edge) for edge in self.edges if edge not in self.frozen)
        return MappingProxyType(
            {
                name: tuple(
                    (m.removesuffix(TRANSPOSED), m.endswith(TRANSPOSED))
                    for m in self.ties.get(name, (name,))
                )
                for name in names
            }
        )

    @cached_property
    def matrix_of(self) -> Mapping[str, tuple[str, bool]]:
        """The matrix that every learned edge carries, and whether it carries it transposed.

        ```python
        >>> import neuralrace as nr
        >>> nr.Architecture.autoencoder(8, 3).matrix_of["decode1"]
        ('W1', True)

        ```
        """
        return MappingProxyType(
            {edge: (name, turned) for name, ms in self.matrices.items() for edge, turned in ms}
        )

    @cached_property
    def matrix_ends(self) -> Mapping[str, tuple[str, str]]:
        """The source and the target of every learned matrix: those of the first edge of a tie.

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Architecture.recurrent(2, 8, 1, steps=3).matrix_ends)
        {'Wx': ('x1', 'h1'), 'Wh': ('h1', 'h2'), 'Wy': ('h3', 'y')}

        ```
        """
        first = {name: members[0] for name, members in self.matrices.items()}
        ends = {name: (self.edges[edge], turned) for name, (edge, turned) in first.items()}
        return MappingProxyType(
            {n: (t, s) if turned else (s, t) for n, ((s, t), turned) in ends.items()}
        )

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """The shape of every matrix that is learned: (|t(e)|, |s(e)|) of an edge, or of a tie.

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Architecture.recurrent(2, 8, 1, steps=3).shapes)
        {'Wx': (8, 2), 'Wh': (8, 8), 'Wy': (1, 8)}

        ```
        """
        size = self.sizes
        return MappingProxyType({n: (size[t], size[s]) for n, (s, t) in self.matrix_ends.items()})

    @cached_property
    def class_of(self) -> Mapping[str, str]:
        """The class of every node, named by its first node in the order written.

        The sources of the edges of a tie belong to one class, and their targets to another (for a
        transposed edge the other way round): rotating one of them rotates all. So do both ends of
        an edge that is frozen as a multiple of the identity. Without these every node is its own.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.recurrent(2, 8, 1, steps=2)
        >>> dict(arch.class_of)
        {'x1': 'x1', 'x2': 'x1', 'h1': 'h1', 'h2': 'h1', 'y': 'y'}

        ```
        """
        ends = [
            [self.edges[e][::-1] if turned else self.edges[e] for e, turned in members]
            for members in self.matrices.values()
        ]
        groups = [side for pairs in ends for side in zip(*pairs, strict=True)]
        groups += [self.edges[e] for e, value in self.frozen.items() if isinstance(value, float)]
        return MappingProxyType(self._joined(groups))

    def _joined(self, groups: Iterable[Iterable[str]]) -> dict[str, str]:
        """The first node of the class of every node, where all nodes of a group are in one."""
        first = {v: v for v in self.sizes}
        for group in groups:
            old = {first[v] for v in group}
            one = next(v for v in self.sizes if v in old)
            first |= {v: one for v, u in first.items() if u in old}
        return first

    @cached_property
    def incoming(self) -> Mapping[str, tuple[str, ...]]:
        """Node → names of the edges that end there, sorted."""
        return self._edges_by_end(1)

    @cached_property
    def outgoing(self) -> Mapping[str, tuple[str, ...]]:
        """Node → names of the edges that start there, sorted."""
        return self._edges_by_end(0)

    def _edges_by_end(self, end: int) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {node: [] for node in self.sizes}
        for edge, ends in sorted(self.edges.items()):
            found[ends[end]].append(edge)
        return MappingProxyType({node: tuple(edges) for node, edges in found.items()})

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All nodes, every one after those that feed it. Depends on the names alone."""
        feeding = {v: [self.edges[e][0] for e in self.incoming[v]] for v in self.sizes}
        sorter = TopologicalSorter(feeding)
        try:
            sorter.prepare()
        except CycleError as error:
            raise NeuralRaceError(
                "the graph has a cycle",
                got=f"edges {self._along(error.args[1])}",
                wanted="a directed acyclic graph",
                fix="remove or turn round one of these edges. A recurrent network is unrolled in "
                "time with shared weights: nr.Architecture.recurrent(…)",
            ) from None
        order: list[str] = []
        ready: list[str] = []
        while sorter.is_active():
            for node in sorter.get_ready():
                heappush(ready, node)
            order.append(heappop(ready))  # the first by name
            sorter.done(order[-1])
        return tuple(order)

    @cached_property
    def path_lengths(self) -> frozenset[int]:
        """The numbers of edges that paths from an input to an output have.

        ```python
        >>> import neuralrace as nr
        >>> sorted(nr.Architecture.chain(2, 8, 1).path_lengths)
        [2]

        ```
        """
        found = {v: frozenset([0]) for v in self.inputs}
        for node in self.order:
            if node not in found:
                before = (found[self.edges[e][0]] for e in self.incoming[node])
                found[node] = frozenset(n + 1 for lengths in before for n in lengths)
        return frozenset[int]().union(*(found[v] for v in self.outputs))

    def _along(self, nodes: Sequence[str]) -> str:
        """The edges from each of these nodes to the next."""
        edges = (
            next(e for e, ends in self.edges.items() if ends == pair) for pair in pairwise(nodes)
        )
        return " -> ".join(map(repr, edges))

    def _check_every_node_on_a_path(self) -> None:
        stray = [v for v in self.sizes if not self.incoming[v] and not self.outgoing[v]]
        if stray or not self.edges:
            raise NeuralRaceError(
                f"node {stray[0]!r} is on no path from an input to an output"
                if stray
                else "the graph has no edges",
                got=f"no edge starts or ends at {listed(stray)}",
                wanted="every node on a path from an input to an output",
                fix="connect it with edges, or leave it out of sizes",
            )

    # ---- paths ---------------------------------------------------------------------------------

    @door
    def path_count(
        self, edge: str | None = None, source: str | None = None, target: str | None = None
    ) -> int:
        """How many paths run from an input to an output, as an exact integer.

        Counted by dynamic programming, so that 2^40 paths cost nothing. `edge`, `source` and
        `target` restrict the count to paths through that edge, from that input, to that output
        (the pathway counting of NRR §3.1).

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.routing(7)
        >>> arch.path_count(), arch.path_count("in1"), arch.path_count(source="x1", target="y3")
        (49, 7, 1)

        ```
        """
        self._check_member(edge, self.edges, "edge")
        self._check_member(source, self.inputs, "input node")
        self._check_member(target, self.outputs, "output node")
        before = dict.fromkeys(self.sizes, 0) | {
            v: int(source is None or v == source) for v in self.inputs
        }
        for node in self.order:
            before[node] += sum(before[self.edges[e][0]] for e in self.incoming[node])
        if edge is None:
            return sum(before[v] for v in self.outputs if target is None or v == target)
        after = dict.fromkeys(self.sizes, 0) | {
            v: int(target is None or v == target) for v in self.outputs
        }
        for node in reversed(self.order):
            after[node] += sum(after[self.edges[e][1]] for e in self.outgoing[node])
        start, end = self.edges[edge]
        return before[start] * after[end]

    @door
    def paths(self, limit: Whole = 100_000) -> tuple[Path, ...]:
        """Every path from an input to an output, if there are at most `limit`.

        ```python
        >>> import neuralrace as nr
        >>> [str(p) for p in nr.Architecture.chain(2, 8, 1).paths()]
        ['x -[W1 W2]-> y']

        ```
        """
        count = self.path_count()
        require(
            count <= limit,
            "too many paths to list",
            got=f"{count} paths",
            wanted=f"at most limit={limit}",
            fix="use path_count() to count them, net.loss and jax.grad for the dynamics, "
            "nr.reduce for the race (none of them lists paths), or a larger limit",
        )
        return tuple(path for node in self.inputs for path in self._paths_from(node))

    def _paths_from(self, source: str) -> Iterator[Path]:
        stack: list[tuple[str, tuple[str, ...]]] = [(source, ())]
        while stack:
            node, edges = stack.pop()
            if not self.outgoing[node]:
                yield Path(edges, source, node)
            onward = reversed(self.outgoing[node])
            stack.extend((self.edges[edge][1], (*edges, edge)) for edge in onward)

    def _check_member(self, name: str | None, among: Any, kind: str) -> None:
        if name is not None and (not isinstance(name, str) or name not in among):
            raise NeuralRaceError(
                f"unknown {kind} {name!r}",
                got=repr(name),
                wanted=f"one of {listed(among)}",
                fix=spelled(name, among, "check the spelling; print(arch) shows every name"),
            )

    # ---- ways to make one ----------------------------------------------------------------------

    @classmethod
    @door
    def chain(cls, *sizes: SupportsIndex) -> Architecture:
        """A feed-forward chain: nodes `x`, `h` (or `h1`, `h2`, …), `y`; edges `W1`, `W2`, ….

        ```python
        >>> import neuralrace as nr
        >>> nr.Architecture.chain(11, 700, 60)
        Architecture(sizes={'x': 11, 'h': 700, 'y': 60}, edges={'W1': ('x', 'h'), 'W2': ('h', 'y')})

        ```
        """
        return cls(*build.chain(sizes))

    @classmethod
    @door
    def layered(cls, *layers: Mapping[str, int]) -> Architecture:
        """Layers of modules, each module joined to every module of the next layer.

        Edges are named `source_target`.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.layered({"eye": 4, "ear": 3}, {"h": 50}, {"name": 7, "act": 2})
        >>> tuple(arch.edges), arch.path_count()
        (('eye_h', 'ear_h', 'h_name', 'h_act'), 4)

        ```
        """
        return cls(*build.layered(layers))

    @classmethod
    @door
    def parallel(
        cls,
        inputs: Mapping[str, int],
        hidden: Mapping[str, int],
        outputs: Mapping[str, int],
        reads: Mapping[str, Sequence[str]] | None = None,
        writes: Mapping[str, Sequence[str]] | None = None,
    ) -> Architecture:
        """Parallel pathways of one hidden node each between inputs and outputs.

        `reads` and `writes` restrict a pathway to some inputs or outputs; a pathway they do not
        name reads or writes all. Edges are named `source_target`.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.parallel(
        ...     {"item": 8, "context": 3}, {"common": 100, "not1": 100}, {"y": 60},
        ...     reads={"not1": ("item",)})
        >>> tuple(arch.edges)
        ('item_common', 'context_common', 'common_y', 'item_not1', 'not1_y')

        ```
        """
        return cls(*build.parallel(inputs, hidden, outputs, reads, writes))

    @classmethod
    @door
    def routing(
        cls,
        M: Count,
        *,
        inputs: Count = 4,
        hidden: Count = 64,
        outputs: Count = 7,
        P: Count | None = None,
    ) -> Architecture:
        """The pathway network of NRR Fig. 4a and 5a: M input and M output domains.

        Every hidden pathway has two hidden nodes joined by one edge and carries `P` of the M²
        routes: √P input domains with √P output domains. `P = M²` (the default) is the shared
        network, `P = 1` gives every route its own pathway. Nodes are `x1 … xM`, `y1 … yM` and
        `h`, `k` (one pathway) or `h1_2`, `k1_2` (input group 1, output group 2); sizes default to
        NRR Fig. 4 (4 items, 7 properties, N_h = 64).

        ```python
        >>> import neuralrace as nr
        >>> nr.Architecture.routing(10, P=25).path_count("hidden1_2")
        25

        ```
        """
        return cls(*build.routing(M, inputs, hidden, outputs, P))

    @classmethod
    @door
    def recurrent(
        cls,
        inputs: Count,
        hidden: Count,
        outputs: Count,
        steps: Count,
        readout: str | Sequence[int] = "last",
        *,
        leak: float | None = None,
        initial: bool = False,
    ) -> Architecture:
        """A recurrent network unrolled in time: `h_t = W_h h_{t−1} + W_x x_t`, `y_t = W_y h_t`.

        Nodes are `x1 … xT`, `h1 … hT` and `y`; edges `x1_h1`, `h1_h2`, `hT_y`; the ties `Wx`, `Wh`
        and `Wy` hold their weights, one matrix each. Gates of a node or an edge are those of one
        time step.

        **Arguments:** `steps`, T; `readout`, `"last"` for one output `y` after the last step,
        `"all"` for outputs `y1 … yT`, or the steps that have an output, such as `(2, 4)`; `leak`,
        α, adds α h_{t−1} to h_t, an edge `h1_h2_leak` that is not learned; `initial=True` adds an
        input node `h0`, the state before the first step, which the data give for every sample.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.recurrent(inputs=5, hidden=40, outputs=4, steps=6)
        >>> arch.ties["Wy"], arch.path_count(), arch.outputs
        (('h6_y',), 6, ('y',))
        >>> nr.Architecture.recurrent(5, 40, 4, steps=6, readout=(3, 6)).outputs
        ('y3', 'y6')

        ```
        """
        return cls(*build.recurrent(inputs, hidden, outputs, steps, readout, leak, initial))

    @classmethod
    @door
    def convolution(
        cls,
        inputs: Count,
        hidden: Count,
        outputs: Count,
        positions: Count,
        width: Count = 3,
        *,
        circular: bool = False,
        pooled: bool = False,
    ) -> Architecture:
        """A linear convolution over positions: `h_p = Σ_k K_k x_{p+k−1}`, read out into `y`.

        Nodes are `x1 … xP`, one per position, `h1`, `h2`, … for every place of the kernel and `y`.
        The ties `K1 … KW` are the kernel, one matrix from input to hidden channels per place in it.

        **Arguments:** `inputs` and `hidden`, channels at each position; `width`, W; `circular`
        lets the kernel run round the end, for P hidden positions, and otherwise there are
        P − W + 1; `pooled` shares the readout in a tie `Wy`, so that `y` reads the sum over
        positions; otherwise every position has a readout of its own, `h1_y`, `h2_y`, ….

        The reduction finds blocks over channels: one basis for the channels of all positions.
        It does not change the basis over positions, so that no block belongs to one frequency.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.convolution(inputs=2, hidden=9, outputs=1, positions=5, width=2)
        >>> arch.ties["K2"], arch.path_count()
        (('x2_h1', 'x3_h2', 'x4_h3', 'x5_h4'), 8)
        >>> dict(nr.Architecture.convolution(2, 9, 1, 5, 2, pooled=True).shapes)
        {'K1': (9, 2), 'K2': (9, 2), 'Wy': (1, 9)}

        ```
        """
        return cls(*build.convolution(inputs, hidden, outputs, positions, width, circular, pooled))

    @classmethod
    @door
    def siamese(
        cls, inputs: Count, hidden: Count, outputs: Count, branches: Several = 2
    ) -> Architecture:
        """Branches with one shared matrix `W`, each from an input of its own, into one output.

        Nodes are `x1`, `x2`, …, `h1`, `h2`, … and `y`; every branch has a readout of its own,
        `h1_y`, `h2_y`, ….

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Architecture.siamese(4, 20, 1).shapes)
        {'W': (20, 4), 'h1_y': (1, 20), 'h2_y': (1, 20)}

        ```
        """
        return cls(*build.siamese(inputs, hidden, outputs, branches))

    @classmethod
    @door
    def autoencoder(cls, *sizes: SupportsIndex) -> Architecture:
        """A tied autoencoder: the decoder has the transposed matrices of the encoder.

        `sizes` are those of the input and the layers of the encoder; the ties are `W1`, `W2`, ….

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.autoencoder(8, 3)
        >>> dict(arch.sizes), dict(arch.ties)
        ({'x': 8, 'h': 3, 'y': 8}, {'W1': ('encode1', 'decode1.T')})

        ```
        """
        return cls(*build.autoencoder(sizes))

    @classmethod
    @door
    def linear_attention(
        cls, dim: Count, heads: Count, rank: Count = 1, merged: bool = False
    ) -> Architecture:
        """A layer of linear attention that reads a context `beta` for a query, as a gated network.

        Of examples (x_n, y_n) and a query x_q, a head gives v (Q x_q)ᵀ K β with β = ⟨y_n x_n⟩. The
        features of the query enter as gates: `k1` leads from `beta` to `rank` neurons, `q1_1` …
        `q1_dim`, each with a feature of the query as its real gate, from there to one neuron, and
        `v1` to `y`. `merged` heads have one matrix KᵀQ in place of two: `q1_1` … start at `beta`.
        `tasks.in_context_regression` has the gates.

        ```python
        >>> import neuralrace as nr
        >>> nr.Architecture.linear_attention(2, heads=1).edges  # doctest: +ELLIPSIS
        mappingproxy({'k1': ('beta', 'h1'), 'q1_1': ('h1', 'm1'), 'q1_2': ('h1', 'm1'), ...
        >>> len(nr.Architecture.linear_attention(2, heads=3, merged=True).edges)
        9

        ```
        """
        return cls(*build.linear_attention(dim, heads, rank, merged))

    def with_bias(self) -> Architecture:
        """The same graph with an input node `bias` of one neuron joined to all but the inputs.

        Networks clamp a node of this name to one where the data does not name it. Nodes that
        receive one shared matrix, such as the time steps of a recurrent network, share their bias
        too, in a tie `biases_h1`, named by the first of them.

        ```python
        >>> import neuralrace as nr
        >>> tuple(nr.Architecture.chain(2, 8, 1).with_bias().edges)
        ('W1', 'W2', 'bias_h', 'bias_y')

        ```
        """
        biases = {f"{BIAS}_{v}": (BIAS, v) for v in (*self.hidden, *self.outputs)}
        into = [
            {self.edges[e][1] for e, turned in members if turned == way}
            for members in self.matrices.values()
            for way in (True, False)
        ]
        first = self._joined(nodes for nodes in into if nodes)
        alike: dict[str, list[str]] = {}
        for edge, (_, node) in biases.items():
            alike.setdefault(f"biases_{first[node]}", []).append(edge)
        ties = {tie: edges for tie, edges in alike.items() if len(edges) > 1}
        for name in (BIAS, *biases, *ties):
            require(
                name not in self.sizes and name not in self.edges and name not in self.ties,
                f"the name {name!r} is taken",
                got=f"a node, an edge or a tie named {name!r}",
                wanted="that name free for the bias",
                fix="rename yours, or leave out bias=True if this is the bias already",
            )
        sizes, edges = {**self.sizes, BIAS: 1}, {**self.edges, **biases}
        return Architecture(sizes, edges, {**self.ties, **ties}, self.frozen)

    @door
    def with_sizes(self, sizes: Mapping[str, int]) -> Architecture:
        """The same graph with nodes of other sizes; what is frozen as a matrix must still fit.

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Architecture.chain(2, 8, 1).with_sizes({"x": 2, "h": 3, "y": 1}).shapes)
        {'W1': (3, 2), 'W2': (1, 3)}

        ```
        """
        if dict(sizes) == dict(self.sizes):
            return self
        return Architecture(sizes, self.edges, self.ties, self.frozen)

    @door
    def part(self, edges: Collection[str]) -> Architecture:
        """The part of the graph that has these edges, in the same order, with what they share.

        ```python
        >>> import neuralrace as nr
        >>> dict(nr.Architecture.siamese(4, 20, 1).part(["x1_h1", "h1_y"]).shapes)
        {'W': (20, 4), 'h1_y': (1, 20)}

        ```
        """
        chosen = set(edges)
        if chosen >= set(self.edges):
            return self
        kept = {e: ends for e, ends in self.edges.items() if e in chosen}
        nodes = {v for ends in kept.values() for v in ends}
        shared = {
            tie: [m for m in members if m.removesuffix(TRANSPOSED) in kept]
            for tie, members in self.ties.items()
        }
        return Architecture(
            {v: n for v, n in self.sizes.items() if v in nodes},
            kept,
            {tie: members for tie, members in shared.items() if members},
            {e: value for e, value in self.frozen.items() if e in kept},
        )

    # ---- in files ------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """What a file holds of the graph: plain dictionaries, without ties where there are none.

        ```python
        >>> import neuralrace as nr
        >>> nr.Architecture.chain(2, 1).describe()
        {'sizes': {'x': 2, 'y': 1}, 'edges': {'W1': ('x', 'y')}}

        ```
        """
        shared = {"ties": dict(self.ties), "frozen": dict(self.frozen)}
        told = {name: value for name, value in shared.items() if value}
        return {"sizes": dict(self.sizes), "edges": dict(self.edges)} | told

    @classmethod
    @door
    def from_description(cls, description: Mapping[str, Any]) -> Architecture:
        """The graph that `describe` described, also after JSON, which turns tuples to lists.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.recurrent(2, 8, 1, steps=3, leak=0.9)
        >>> nr.Architecture.from_description(arch.describe()) == arch
        True

        ```
        """
        require(
            {"sizes", "edges"} <= description.keys(),
            "description is not that of a graph",
            got=listed(description),
            wanted="at least 'sizes' and 'edges'",
            fix="pass what arch.describe() returned",
        )
        fix = "pass what arch.describe() returned"
        pairs = by_name("description['edges']", description["edges"], fix)
        for edge, ends in pairs.items():
            require(
                isinstance(ends, list | tuple) and len(ends) == 2,
                f"edge {edge!r} of description['edges'] must have two ends",
                got=shown(ends),
                wanted="the names of its source and its target",
                fix=fix,
            )
        edges = {edge: tuple(ends) for edge, ends in pairs.items()}
        shared = [description.get(name, {}) for name in ("ties", "frozen")]
        return cls(description["sizes"], edges, *shared)

    # ---- other forms ---------------------------------------------------------------------------

    def to_networkx(self) -> networkx.MultiDiGraph:
        """A `networkx.MultiDiGraph`: node attribute `size`, edge keys the edge names.

        The edge attribute `place` is the place of an edge in the order written; the graph's
        attributes `ties` and `frozen` say which weights are shared or not learned.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.routing(3)
        >>> nr.Architecture.from_networkx(arch.to_networkx()) == arch
        True

        ```
        """
        graph = build.to_networkx(self.sizes, self.edges)
        graph.graph |= {"ties": dict(self.ties), "frozen": dict(self.frozen)}
        return graph

    @classmethod
    @door
    def from_networkx(cls, graph: networkx.DiGraph) -> Architecture:
        """From a networkx digraph whose nodes carry a `size`; see `to_networkx`.

        Edges without a name are called `source_target`. They come in the order of
        their attribute `place`, or else in the graph's.
        """
        found = build.from_networkx(graph)
        return cls(*found, *(graph.graph.get(name, {}) for name in ("ties", "frozen")))

    @door
    def draw(self, data: Gated | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the graph; with a dataset, also where each node and edge is gated on.

        Edges of a tie carry its name, `Wᵀ` where transposed, and frozen ones what they are frozen
        to, such as `0.9 I`; where there are many, the first edge of each tie does.

        ```python
        >>> import neuralrace as nr
        >>> ax = nr.Architecture.routing(3).draw()

        ```
        """
        from neuralrace.plot import draw_graph

        gates = {} if data is None else getattr(data, "gates", None)
        check_kind("the gates of data", gates, Mapping, "pass the Dataset, or leave data out")
        many = len(self.edges) > MANY_EDGES
        labels = {
            edge: f"{tie}{'ᵀ' * turned}"
            for tie in self.ties
            for edge, turned in self.matrices[tie][: 1 if many else None]
        }
        for edge, value in ({} if many else self.frozen).items():
            labels[edge] = f"{value:g} I" if isinstance(value, float) else f"{edge}, frozen"
        return draw_graph(self.sizes, self.edges, gates=gates, labels=labels, ax=ax)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Architecture):
            return NotImplemented
        return self._content == other._content

    @cached_property
    def _content(self) -> tuple:
        shared = tuple(self.ties.items()), tuple(self.frozen.items())
        return tuple(self.sizes.items()), tuple(self.edges.items()), *shared

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Architecture], tuple[dict, ...]]:
        return Architecture, tuple(map(dict, (self.sizes, self.edges, self.ties, self.frozen)))

    def __repr__(self) -> str:
        return f"Architecture({', '.join(f'{k}={v}' for k, v in self.describe().items())})"
