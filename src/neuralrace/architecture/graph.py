"""The graph Γ of a network: named nodes with sizes, named edges, and the paths through them.

No arrays live here. An `Architecture` is a frozen value, hashable and equal by content, so that it
can be a static argument under `jax.jit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, final

from neuralrace.architecture import build
from neuralrace.architecture.build import checked_edges, checked_sizes
from neuralrace.checks import by_name
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind, listed, require, spelled
from neuralrace.types import Count, Whole

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
        if not isinstance(edge, str) or edge not in self.edges:
            raise NeuralRaceError(
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

    ```python
    >>> import neuralrace as nr
    >>> arch = nr.Architecture(
    ...     sizes={"item": 8, "context": 3, "h": 100, "y": 60},
    ...     edges={"ih": ("item", "h"), "ch": ("context", "h"), "hy": ("h", "y")},
    ... )
    >>> arch.inputs, arch.hidden, arch.outputs, arch.path_count()
    (('item', 'context'), ('h',), ('y',), 2)

    ```
    """

    sizes: Mapping[str, int]
    edges: Mapping[str, tuple[str, str]]

    def __post_init__(self) -> None:
        sizes = by_name("sizes", self.sizes, "sizes={'x': 2, 'h': 100, 'y': 1}")
        edges = by_name("edges", self.edges, "edges={'W1': ('x', 'h')}")
        object.__setattr__(self, "sizes", MappingProxyType(checked_sizes(sizes)))
        object.__setattr__(self, "edges", MappingProxyType(checked_edges(edges, sizes)))
        _ = self.order  # raises on a cycle
        self._check_every_node_on_a_path()

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
                fix="remove or turn round one of these edges. A recurrent network can be unrolled "
                "in time, but sharing is lost: every step then learns weights of its own, and so "
                "at another speed",
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

    def with_bias(self) -> Architecture:
        """The same graph with an input node `bias` of one neuron joined to all but the inputs.

        Networks clamp a node of this name to one where the data does not name it.

        ```python
        >>> import neuralrace as nr
        >>> tuple(nr.Architecture.chain(2, 8, 1).with_bias().edges)
        ('W1', 'W2', 'bias_h', 'bias_y')

        ```
        """
        biases = {f"{BIAS}_{v}": (BIAS, v) for v in (*self.hidden, *self.outputs)}
        for name in (BIAS, *biases):
            require(
                name not in self.sizes and name not in self.edges,
                f"the name {name!r} is taken",
                got=f"a node or edge named {name!r}",
                wanted="that name free for the bias",
                fix="rename yours, or leave out bias=True if this is the bias already",
            )
        return Architecture({**self.sizes, BIAS: 1}, {**self.edges, **biases})

    # ---- other forms ---------------------------------------------------------------------------

    def to_networkx(self) -> networkx.MultiDiGraph:
        """A `networkx.MultiDiGraph`: node attribute `size`, edge keys the edge names.

        The edge attribute `place` is the place of an edge in the order written.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.routing(3)
        >>> nr.Architecture.from_networkx(arch.to_networkx()) == arch
        True

        ```
        """
        return build.to_networkx(self.sizes, self.edges)

    @classmethod
    @door
    def from_networkx(cls, graph: networkx.DiGraph) -> Architecture:
        """From a networkx digraph whose nodes carry a `size`; see `to_networkx`.

        Edges without a name are called `source_target`. They come in the order of
        their attribute `place`, or else in the graph's.
        """
        return cls(*build.from_networkx(graph))

    @door
    def draw(self, data: Gated | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the graph; with a dataset, also where each node and edge is gated on.

        ```python
        >>> import neuralrace as nr
        >>> ax = nr.Architecture.routing(3).draw()

        ```
        """
        from neuralrace.plot import draw_graph

        gates = {} if data is None else getattr(data, "gates", None)
        check_kind("the gates of data", gates, Mapping, "pass the Dataset, or leave data out")
        return draw_graph(self.sizes, self.edges, gates=gates, ax=ax)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Architecture):
            return NotImplemented
        return self._content == other._content

    @cached_property
    def _content(self) -> tuple:
        return tuple(self.sizes.items()), tuple(self.edges.items())

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Architecture], tuple[dict, dict]]:
        return Architecture, (dict(self.sizes), dict(self.edges))

    def __repr__(self) -> str:
        return f"Architecture(sizes={dict(self.sizes)}, edges={dict(self.edges)})"
