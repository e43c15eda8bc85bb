"""MHS Fig. 1: the formalism of gated networks, on the ReLN with two hidden layers of §6."""

from __future__ import annotations

import neuralrace as nr
from papers import formalism
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of

OURS = "ours: MHS shows a sketch without numbers"
"""The source of all settings."""

SETTINGS = {
    "contexts": Setting(3, "contexts", "MHS §4"),
    "items": Setting(4, "items, fewer than the paper's 8 so that matrices can be read", OURS),
    "hidden": Setting(4, "neurons of every hidden node", OURS),
    "scale": Setting(0.5, "standard deviation of the weights", OURS),
    "key": Setting(0, "random key of the weights", "ours"),
}

SHORT = {"item": "i", "context": "c", "shared": "s", "common": "all"}
"""Short names of nodes for small drawings."""


def example(settings: Settings) -> formalism.Example:
    """The ReLN of MHS Fig. 6; the last pathway is gated at its edge instead of its node."""
    base = nr.tasks.contextual(contexts=settings["contexts"], items=settings["items"])
    arch, data = nr.tasks.common_and_all_but_one(base)
    pathways = arch.hidden
    hidden: dict[str, int] = dict.fromkeys(("shared", *pathways), int(settings["hidden"]))
    edges = {f"{v}_shared": (v, "shared") for v in arch.inputs}
    edges |= {f"shared_{v}": ("shared", v) for v in pathways}
    edges |= {f"{v}_y": (v, "y") for v in pathways}
    ends = {v: arch.sizes[v] for v in (*arch.inputs, *arch.outputs)}
    inputs = {v: ends.pop(v) for v in arch.inputs}
    gates = dict(data.gates)
    gates[f"shared_{pathways[-1]}"] = gates.pop(pathways[-1])
    deep = nr.Architecture({**inputs, **hidden, **ends}, edges)
    return formalism.Example(deep, data.gated(gates), "item_shared", SHORT)


def compute(settings: Settings) -> Table:
    """The gradient of the edge from items to the shared layer, and the term of each path."""
    return formalism.compute(example(settings), settings["key"], settings["scale"])


def draw(table: Table) -> Picture:
    """(a) the network and its gates; (b) the paths through the red edge, (c) their terms."""
    return formalism.draw(table, example(settings_of(table)), "#C1272D", "red")


FIGURE = Figure(
    name="mhs/fig1",
    title="The formalism of gated networks, on the ReLN with two hidden layers",
    states=(
        "A gated network applies gates to nodes and edges of an otherwise linear network. The "
        "gradient of an edge is a sum over the paths through it, each split into what precedes "
        "and what follows the edge (Fig. 1, Eqs. 1–4)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=formalism.measures,
)
