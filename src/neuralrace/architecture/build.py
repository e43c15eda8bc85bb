"""Ways to write down the nodes and edges of a graph, and what names, sizes and edges must be."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from neuralrace.checks import by_name
from neuralrace.errors import NeuralRaceError, listed, require, spelled, whole_number

if TYPE_CHECKING:
    import networkx

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


def checked_sizes(sizes: Mapping[str, SupportsIndex]) -> dict[str, int]:
    for node in sizes:
        _check_name(node, "node")
    fix = "give it at least one neuron, or leave out the node"
    return {v: whole_number(f"the size of node {v!r}", n, fix=fix) for v, n in sizes.items()}


def checked_edges(
    edges: Mapping[str, Sequence[str]], sizes: Mapping[str, SupportsIndex]
) -> dict[str, tuple[str, str]]:
    checked = {}
    for edge, ends in edges.items():
        _check_name(edge, "edge")
        if edge in sizes:
            raise NeuralRaceError(
                f"a node and an edge are both called {edge!r}",
                got=repr(edge),
                wanted="names that say which of the two is meant",
                fix="rename the edge; gates are given by name",
            )
        if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
            raise NeuralRaceError(
                f"edge {edge!r} needs a source and a target",
                got=repr(ends),
                wanted="(source node, target node)",
                fix=f"for example {{{edge!r}: ('x', 'h')}}",
            )
        for end in ends:
            if not isinstance(end, str) or end not in sizes:
                raise NeuralRaceError(
                    f"edge {edge!r} touches an unknown node {end!r}",
                    got=repr(tuple(ends)),
                    wanted=f"two of {listed(sizes)}",
                    fix=spelled(end, sizes, "add the node to sizes, or check the spelling"),
                )
        checked[edge] = (ends[0], ends[1])
    return checked


def _check_name(name: Any, kind: str) -> None:
    if not isinstance(name, str) or not _NAME.match(name):
        raise NeuralRaceError(
            f"{name!r} cannot name {'an edge' if kind == 'edge' else 'a node'}",
            got=repr(name),
            wanted="letters, digits and underscores, a letter first",
            fix="rename it, for example 'h1'",
        )


def check_ends(
    choice: Mapping[str, Sequence[str]],
    pathways: Collection[str],
    nodes: Collection[str],
    kind: str,
) -> None:
    """Raise where `choice`, {pathway: its input or output nodes}, has a name that is not there."""
    for name, ends in by_name(
        f"the choice of {kind}s", choice, f"for example {{'pathway': ['{kind}']}}"
    ).items():
        if isinstance(ends, str) or not isinstance(ends, Iterable):
            raise NeuralRaceError(
                f"the {kind}s of pathway {name!r} must be a sequence of names",
                got=repr(ends),
                wanted="a sequence of names",
                fix="put a single name in a tuple",
            )
        unknown = [repr(name)] if name not in pathways else []
        unknown += [repr(end) for end in ends if not isinstance(end, str) or end not in nodes]
        if unknown:
            raise NeuralRaceError(
                f"unknown name in the {kind}s of pathway {name!r}",
                got=", ".join(unknown),
                wanted=f"a pathway among {listed(pathways)}, {kind}s among {listed(nodes)}",
                fix="check the spelling; name pathways and nodes that exist",
            )


def joined(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Edges named `source_target`, or an error where two of them would share a name."""
    edges: dict[str, tuple[str, str]] = {}
    for source, target in pairs:
        name = f"{source}_{target}"
        if edges.get(name, (source, target)) != (source, target):
            raise NeuralRaceError(
                f"two edges would be called {name!r}",
                got=f"{edges[name]} and {(source, target)}",
                wanted="a different name for each edge",
                fix="rename a node, or name the edges yourself with Architecture(sizes, edges)",
            )
        edges[name] = (source, target)
    return edges


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
