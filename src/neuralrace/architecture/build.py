"""Ways to write down the nodes and edges of a graph, and what names, sizes and edges must be."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from neuralrace.checks import by_name, is_number, one_of, real_array, real_number
from neuralrace.errors import NeuralRaceError, listed, require, spelled, whole_number
from neuralrace.types import ArrayLike

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
        require(
            edge not in sizes,
            f"a node and an edge are both called {edge!r}",
            got=repr(edge),
            wanted="names that say which of the two is meant",
            fix="rename the edge; gates are given by name",
        )
        require(
            not isinstance(ends, str) and isinstance(ends, Sequence) and len(ends) == 2,
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
    require(
        isinstance(name, str) and _NAME.match(name),
        f"{name!r} cannot name {'an edge' if kind == 'edge' else f'a {kind}'}",
        got=repr(name),
        wanted="letters, digits and underscores, a letter first",
        fix="rename it, for example 'h1'",
    )


TRANSPOSED = ".T"
"""What follows the name of an edge that carries the transposed matrix of its tie."""

Shape: TypeAlias = tuple[int, int]
"""Rows and columns of a matrix."""


def checked_ties(
    ties: Mapping[str, Sequence[str]],
    edges: Mapping[str, tuple[str, str]],
    shapes: Mapping[str, Shape],
) -> dict[str, tuple[str, ...]]:
    """The edges of every tie, as they were written; `shapes` are those of single edges."""
    checked: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    nodes = {node for ends in edges.values() for node in ends}
    for tie, members in ties.items():
        _check_name(tie, "tie")
        require(
            tie not in edges and tie not in nodes,
            f"a tie and a node or an edge are both called {tie!r}",
            got=repr(tie),
            wanted="a name of its own: weights are given by it",
            fix="rename the tie",
        )
        require(
            not isinstance(members, str) and isinstance(members, Sequence) and len(members) > 0,
            f"tie {tie!r} needs the names of its edges",
            got=repr(members),
            wanted="a sequence of edges, 'e.T' for one that carries the transposed matrix",
            fix=f"for example ties={{{tie!r}: ('h1_h2', 'h2_h3')}}",
        )
        for member in members:
            edge = member.removesuffix(TRANSPOSED) if isinstance(member, str) else member
            if not isinstance(edge, str) or edge not in edges:
                raise NeuralRaceError(
                    f"tie {tie!r} has an unknown edge {member!r}",
                    got=repr(tuple(members)),
                    wanted=f"some of {listed(edges)}",
                    fix=spelled(edge, edges, "name edges that exist"),
                )
            require(
                edge not in seen,
                f"edge {edge!r} is in two ties, or twice in one",
                got=f"{seen.get(edge)!r} and {tie!r}",
                wanted="every edge in one tie at most, once",
                fix="join the two ties, or leave the edge out of one",
            )
            seen[edge] = tie
            shape, first = (
                _oriented(shapes[name.removesuffix(TRANSPOSED)], name)
                for name in (member, members[0])
            )
            require(
                shape == first,
                f"the edges of tie {tie!r} join nodes of different sizes",
                got=f"{member!r} of shape {shape}, {members[0]!r} of shape {first}",
                wanted="one shape, (size of the target, size of the source)",
                fix="give their nodes equal sizes, or write 'e.T' for the transposed matrix",
            )
        checked[tie] = tuple(members)
    return checked


def _oriented(shape: Shape, member: str) -> Shape:
    """The shape of the tie's matrix, given that of one of its edges."""
    rows, columns = shape
    return (columns, rows) if member.endswith(TRANSPOSED) else shape


Fixed: TypeAlias = float | tuple[tuple[float, ...], ...]
"""What a frozen edge carries: a multiple of the identity, or the rows of a matrix."""


def checked_frozen(
    frozen: Mapping[str, ArrayLike], shapes: Mapping[str, Shape], tied: Collection[str]
) -> dict[str, Fixed]:
    """The number or the rows of every frozen edge; `shapes` are those of single edges."""
    checked: dict[str, Fixed] = {}
    for edge, value in frozen.items():
        if edge not in shapes:
            raise NeuralRaceError(
                f"an unknown edge {edge!r} is frozen",
                got=repr(edge),
                wanted=f"some of {listed(shapes)}",
                fix=spelled(edge, shapes, "name edges that exist"),
            )
        require(
            edge not in tied,
            f"edge {edge!r} is frozen and in a tie",
            got=repr(edge),
            wanted="one of the two: a tie is learned",
            fix="leave it out of the tie, or out of frozen",
        )
        rows, columns = shapes[edge]
        what = f"frozen[{edge!r}]"
        if is_number(value):
            require(
                rows == columns,
                f"{what} is a multiple of the identity between nodes of different sizes",
                got=f"shape {(rows, columns)}",
                wanted="nodes of one size, or a matrix",
                fix=f"frozen={{{edge!r}: a matrix of shape {(rows, columns)}}}",
            )
            checked[edge] = real_number(what, value, fix="for example frozen={'leak': 0.9}")
            continue
        wanted = f"a number, or a matrix of shape {(rows, columns)}"
        matrix = real_array(what, value, wanted=wanted, fix="for example frozen={'leak': 0.9}")
        require(
            matrix.shape == (rows, columns) and bool((abs(matrix) < math.inf).all()),
            f"{what} has the wrong shape, or is not finite",
            got=f"shape {matrix.shape}, largest size {abs(matrix).max(initial=0.0):.3g}",
            wanted=wanted,
            fix="a matrix maps its source (columns) to its target (rows)",
        )
        checked[edge] = tuple(tuple(row) for row in matrix.tolist())
    return checked


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
        require(
            not isinstance(ends, str) and isinstance(ends, Iterable),
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
            require(
                node not in sizes,
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


Tied: TypeAlias = tuple[
    dict[str, int], dict[str, tuple[str, str]], dict[str, tuple[str, ...]], dict[str, float]
]
"""A graph with the edges of every tie and the frozen edges."""


def recurrent(
    inputs: int,
    hidden: int,
    outputs: int,
    steps: int,
    readout: str | Sequence[int],
    leak: float | None,
    initial: bool,
) -> Tied:
    """See `Architecture.recurrent`."""
    known = {"last": (steps,), "all": range(1, steps + 1)}
    if isinstance(readout, str):
        read = known[one_of("readout", readout, known, "readout='all' has a target at every step")]
    else:
        read = [
            whole_number("a step of readout", t, fix="steps are counted from 1") for t in readout
        ]
    require(
        len(read) > 0 and max(read) == steps and len({*read}) == len(read),
        "readout must name different steps, the last among them",
        got=f"readout={tuple(read)}, steps={steps}",
        wanted=f"steps from 1 to {steps}, with {steps}",
        fix="leave out the steps after the last that is read: they change nothing",
    )
    only = isinstance(readout, str) and readout == "last"
    outs = {"y" if only else f"y{t}": t for t in sorted(read)}
    at = range(1, steps + 1)
    sizes = {f"x{t}": inputs for t in at} | ({"h0": hidden} if initial else {})
    sizes |= {f"h{t}": hidden for t in at} | dict.fromkeys(outs, outputs)
    onward = [(f"h{t - 1}", f"h{t}") for t in at if t > 1 or initial]
    parts = {
        "Wx": joined((f"x{t}", f"h{t}") for t in at),
        "Wh": joined(onward),
        "Wy": joined((f"h{t}", y) for y, t in outs.items()),
    }
    ties = {name: tuple(edges) for name, edges in parts.items() if edges}
    edges = {edge: ends for part in parts.values() for edge, ends in part.items()}
    kept = {} if leak is None else {f"{s}_{t}_leak": (s, t) for s, t in onward}
    return sizes, edges | kept, ties, dict.fromkeys(kept, 0.0 if leak is None else leak)


def convolution(
    inputs: int, hidden: int, outputs: int, positions: int, width: int, circular: bool, pooled: bool
) -> Tied:
    """See `Architecture.convolution`."""
    require(
        width <= positions,
        "the kernel is wider than the input",
        got=f"width={width}, positions={positions}",
        wanted=f"a width from 1 to {positions}",
        fix="raise positions, or lower width",
    )
    places = range(1, positions + 1)
    at = range(1, (positions if circular else positions - width + 1) + 1)
    sizes = {f"x{p}": inputs for p in places} | {f"h{p}": hidden for p in at} | {"y": outputs}
    read = lambda p, k: f"x{(p + k - 2) % positions + 1}"
    taps = {f"K{k}": joined((read(p, k), f"h{p}") for p in at) for k in range(1, width + 1)}
    out = joined((f"h{p}", "y") for p in at)
    ties = {name: tuple(edges) for name, edges in taps.items()} | (
        {"Wy": tuple(out)} if pooled else {}
    )
    edges = {edge: ends for tap in taps.values() for edge, ends in tap.items()}
    return sizes, edges | out, ties, {}


def siamese(inputs: int, hidden: int, outputs: int, branches: int) -> Tied:
    """See `Architecture.siamese`."""
    at = range(1, branches + 1)
    sizes = {f"x{k}": inputs for k in at} | {f"h{k}": hidden for k in at} | {"y": outputs}
    shared = joined((f"x{k}", f"h{k}") for k in at)
    return sizes, shared | joined((f"h{k}", "y") for k in at), {"W": tuple(shared)}, {}


def autoencoder(sizes: Sequence[SupportsIndex]) -> Tied:
    """See `Architecture.autoencoder`."""
    require(
        len(sizes) >= 2,
        "an autoencoder needs an input and a hidden layer",
        got=f"sizes {sizes}",
        wanted="two or more sizes",
        fix="for example Architecture.autoencoder(8, 3)",
    )
    named, edges = chain((*sizes, *reversed(sizes[:-1])))
    depth = len(sizes) - 1
    mirrored = {f"W{k}": f"W{2 * depth + 1 - k}" for k in range(1, depth + 1)}
    names = {e: f"encode{e[1:]}" for e in mirrored} | {
        back: f"decode{e[1:]}" for e, back in mirrored.items()
    }
    ties = {e: (names[e], names[back] + TRANSPOSED) for e, back in mirrored.items()}
    return named, {names[e]: ends for e, ends in edges.items()}, ties, {}


def linear_attention(dim: int, heads: int, rank: int, merged: bool) -> Graph:
    """See `Architecture.linear_attention`."""
    sizes, edges = {"beta": dim, "y": 1}, {}
    for i in range(1, heads + 1):
        key, read = f"h{i}", f"m{i}"
        if not merged:
            sizes[key] = rank
            edges[f"k{i}"] = ("beta", key)
        sizes[read] = 1
        source = "beta" if merged else key
        edges |= {f"q{i}_{d}": (source, read) for d in range(1, dim + 1)}
        edges[f"v{i}"] = (read, "y")
    return sizes, edges


def routing(M: int, inputs: int, hidden: int, outputs: int, P: int | None) -> Graph:
    """See `Architecture.routing`."""
    P = M * M if P is None else P
    side = round(P**0.5)
    require(
        side * side == P and not M % side,
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
