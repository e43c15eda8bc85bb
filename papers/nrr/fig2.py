"""NRR Fig. 2: a gated deep linear network, and the gradient of an edge as a sum over paths."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from papers import formalism
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of

OURS = "ours: NRR shows a sketch without numbers"
"""The source of all settings."""

SETTINGS = {
    "samples": Setting(12, "samples, drawn at random", OURS),
    "size": Setting(3, "neurons of every node", OURS),
    "scale": Setting(0.5, "standard deviation of the weights", OURS),
    "key": Setting(0, "random key of data, gates and weights", "ours"),
}

EDGES = {
    "a": ("x1", "h1"),
    "b": ("x2", "h1"),
    "e": ("h1", "h2"),
    "c": ("h2", "y1"),
    "d": ("h2", "y2"),
    "f": ("x2", "h3"),
    "g": ("h3", "y2"),
}
"""The example: two inputs and two outputs, four paths through the edge e, and one beside it."""

GATED = ("h1", "h3", "a", "d")
"""Nodes and edges that are gated."""


def example(settings: Settings) -> formalism.Example:
    """The network with random data and random gates, each off for a third of the samples."""
    rng = np.random.default_rng(settings["key"])
    n, size = int(settings["samples"]), int(settings["size"])
    nodes = dict.fromkeys(v for ends in EDGES.values() for v in ends)
    order = sorted(nodes, key=lambda v: ("xhy".index(v[0]), v))
    sizes: dict[str, int] = dict.fromkeys(order, size)
    arch = nr.Architecture(sizes, EDGES)
    data = nr.Dataset(
        {v: rng.normal(size=(n, size)) for v in arch.inputs},
        {v: rng.normal(size=(n, size)) for v in arch.outputs},
        gates={name: rng.random(n) > 1 / 3 for name in GATED},
    )
    return formalism.Example(arch, data, "e", {})


def compute(settings: Settings) -> Table:
    """The gradient of the edge e, and the term of each of its four paths."""
    return formalism.compute(example(settings), settings["key"], settings["scale"])


def draw(table: Table) -> Picture:
    """(a) the network and its gates; (b) the paths through the orange edge, (c) their terms."""
    return formalism.draw(table, example(settings_of(table)), "#D55E00", "orange")


FIGURE = Figure(
    name="nrr/fig2",
    title="A gated deep linear network, and the gradient of an edge as a sum over paths",
    states=(
        "Gates act on nodes and edges of an otherwise linear network. The gradient of an edge is "
        "a sum over the paths through it, each split into what precedes and what follows the edge "
        "(Fig. 2, Eqs. 1–6)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=formalism.measures,
)
