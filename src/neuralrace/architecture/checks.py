"""What names, sizes and edges of a graph must be."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, SupportsIndex

from neuralrace.checks import by_name
from neuralrace.errors import NeuralRaceError, listed, spelled, whole_number

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
