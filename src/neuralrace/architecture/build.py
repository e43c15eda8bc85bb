"""Ways to write down the nodes and edges of a graph; see the class methods of `Architecture`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from neuralrace.architecture.checks import check_ends, checked_sizes, joined
from neuralrace.checks import by_name
from neuralrace.errors import NeuralRaceError, require

if TYPE_CHECKING:
    import networkx

Graph: TypeAlias = tuple[dict[str, int], dict[str, tuple[str, str]]]
"""The size of every node, and the source and target of every edge."""


def chain(sizes: Sequence[SupportsIndex]) -> Graph:
    """See `Architecture.chain`."""
    require(
        len(sizes) >= 2,
        "a chain needs at least an input and an output",
        got=f"sizes {sizes}",
        wanted="two or more sizes",
        fix="for example Architecture.chain(2, 100, 1)",
    )
    depth = len(sizes) - 2
    hidden = ["h"] if depth == 1 else [f"h{i}" for i in range(1, depth + 1)]
    nodes = ["x", *hidden, "y"]
    steps = enumerate(pairwise(nodes), start=1)
    named = checked_sizes(dict(zip(nodes, sizes, strict=True)))
    return named, {f"W{i}": ends for i, ends in steps}


def layered(layers: Sequence[Mapping[str, int]]) -> Graph:
    """See `Architecture.layered`."""
    sizes: dict[str, int] = {}
    for layer in layers:
        for node, size in by_name("a layer", layer, "for example {'h': 50}").items():
            if node in sizes:
                raise NeuralRaceError(
                    f"node {node!r} stands in two layers",
                    got=repr(node),
                    wanted="each name once",
                    fix="rename one of the two",
                )
            sizes[node] = size
    return sizes, joined((s, t) for a, b in pairwise(layers) for s in a for t in b)


def parallel(
    inputs: Mapping[str, int],
    hidden: Mapping[str, int],
    outputs: Mapping[str, int],
    reads: Mapping[str, Sequence[str]] | None,
    writes: Mapping[str, Sequence[str]] | None,
) -> Graph:
    """See `Architecture.parallel`."""
    reads = {} if reads is None else reads
    writes = {} if writes is None else writes
    check_ends(reads, hidden, inputs, "input")
    check_ends(writes, hidden, outputs, "output")
    pairs: list[tuple[str, str]] = []
    for name in hidden:
        pairs += [(v, name) for v in reads.get(name, inputs)]
        pairs += [(name, v) for v in writes.get(name, outputs)]
    return {**inputs, **hidden, **outputs}, joined(pairs)


def routing(M: int, inputs: int, hidden: int, outputs: int, P: int | None) -> Graph:
    """See `Architecture.routing`."""
    P = M * M if P is None else P
    side = round(P**0.5)
    if side * side != P or M % side:
        raise NeuralRaceError(
            "routes cannot be shared this way",
            got=f"P = {P} routes per pathway for M = {M} domains",
            wanted="P the square of a divisor of M",
            fix=f"use one of {', '.join(str(d * d) for d in range(1, M + 1) if M % d == 0)}",
        )
    sizes: dict[str, int] = {f"x{i}": inputs for i in range(1, M + 1)}
    edges: dict[str, tuple[str, str]] = {}
    groups = M // side
    for a in range(1, groups + 1):
        for b in range(1, groups + 1):
            tag = "" if groups == 1 else f"{a}_{b}"
            sizes |= {f"h{tag}": hidden, f"k{tag}": hidden}
            edges[f"hidden{tag}"] = (f"h{tag}", f"k{tag}")
            via = tag and f"_{tag}"
            for i in range((a - 1) * side + 1, a * side + 1):
                edges[f"in{i}{via}"] = (f"x{i}", f"h{tag}")
            for j in range((b - 1) * side + 1, b * side + 1):
                edges[f"out{j}{via}"] = (f"k{tag}", f"y{j}")
    return sizes | {f"y{j}": outputs for j in range(1, M + 1)}, edges


# ---- networkx -----------------------------------------------------------------------------------


def to_networkx(
    sizes: Mapping[str, int], edges: Mapping[str, tuple[str, str]]
) -> networkx.MultiDiGraph:
    """See `Architecture.to_networkx`."""
    import networkx

    graph = networkx.MultiDiGraph()
    for node, size in sizes.items():
        graph.add_node(node, size=size)
    for place, (edge, (source, target)) in enumerate(edges.items()):
        graph.add_edge(source, target, key=edge, place=place)
    return graph


def from_networkx(graph: networkx.DiGraph) -> Graph:
    """See `Architecture.from_networkx`."""
    require(
        all(hasattr(graph, name) for name in ("nodes", "edges", "is_multigraph")),
        "expected a networkx graph",
        got=type(graph).__name__,
        wanted="a networkx digraph whose nodes carry a size",
        fix="graph = networkx.DiGraph(); graph.add_node('x', size=2); …",
    )
    for node, size in graph.nodes(data="size"):
        require(
            size is not None,
            f"node {node!r} of the networkx graph has no size",
            got="no attribute 'size'",
            wanted="graph.nodes[node]['size'], a positive integer",
            fix=f"graph.add_node({node!r}, size=…)",
        )
    kind = {"keys": True} if graph.is_multigraph() else {}
    ends = sorted(graph.edges(data="place", default=0, **kind), key=lambda end: end[-1])
    edges: dict[str, tuple[str, str]] = {}
    for source, target, *key, _ in ends:
        name = key[0] if key and isinstance(key[0], str) else f"{source}_{target}"
        if name in edges:
            raise NeuralRaceError(
                f"two edges of the networkx graph are called {name!r}",
                got=f"{edges[name]} and {(source, target)}",
                wanted="a different name for each edge",
                fix="pass key=… to add_edge for parallel edges",
            )
        edges[name] = (source, target)
    return dict(graph.nodes(data="size")), edges
