"""The pages of the seminar kit: `python -m docs.teach` writes them to docs/teach.

Each is one race on one file, solved in the browser. Questions and answers are in howto/teach.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import neuralrace as nr

FOLDER = Path(__file__).with_name("teach")

START = {"chain": 1e-3, "xor": 1e-3, "routing": 0.1, "modalities": 1e-3, "recurrent": 1e-3}
"""The initial value of every variable. Three layers grow too slowly from a small one to be seen."""


def chain() -> nr.reduction.Race:
    """Three modes of a deep linear network, of strengths 3, 2 and 1."""
    x = np.sqrt(3) * np.eye(3)
    return nr.reduce(nr.Architecture.chain(3, 30, 3), nr.Dataset({"x": x}, {"y": x * [3, 2, 1]}))


def xor(delta: float = 0.6) -> nr.reduction.Race:
    """Two ways to learn the extended XoR side by side, each with an output of its own."""
    data = nr.tasks.extended_xor(delta)
    gatings = {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}
    sizes, edges, gates = dict(gatings["xor"][0].sizes), {}, {}
    del sizes["y"]
    for name, (arch, gated) in gatings.items():
        own = lambda node, name=name: "x" if node == "x" else f"{name}_{node}"
        sizes |= {own(v): n for v, n in arch.sizes.items()}
        edges |= {own(edge): (own(a), own(b)) for edge, (a, b) in arch.edges.items()}
        gates |= {own(node): gate for node, gate in gated.gates.items()}
    sizes = {node: n for node, n in sizes.items() if any(node in ends for ends in edges.values())}
    targets = {f"{name}_y": data.y["y"] for name in gatings}
    return nr.reduce(nr.Architecture(sizes, edges), nr.Dataset(data.x, targets, gates))


def routing() -> nr.reduction.Race:
    """Shared routes between three domains, of which all nine are trained."""
    data, _ = nr.tasks.routing(3, 3)
    return nr.reduce(*nr.tasks.routing_pathways(data))


def modalities(correlation: float = 0.5) -> nr.reduction.Race:
    """Two modalities of standard deviations 2 and 1 that meet in the output."""
    cross = 2 * correlation
    data = nr.Dataset.from_moments(
        {"A": [[4.0]], "B": [[1.0]], ("A", "B"): [[cross]]},
        {("y", "A"): [[4 + cross]], ("y", "B"): [[1 + cross]]},
        [[5 + 2 * cross]],
    )
    late = nr.Architecture.parallel(
        {"A": 1, "B": 1}, {"seen": 30, "heard": 30}, {"y": 1}, reads={"seen": ["A"], "heard": ["B"]}
    )
    return nr.reduce(late, data)


def recurrent() -> nr.reduction.Race:
    """A recurrent network with six steps: a strong mode that fades, a weaker one that stays."""
    data = nr.tasks.sequence_teacher(2, 2, steps=6, strengths=(2, 1), decays=(0.5, 0.95))
    return nr.reduce(nr.Architecture.recurrent(inputs=2, hidden=30, outputs=2, steps=6), data)


PAGES: dict[str, Callable[[], nr.reduction.Race]] = {
    "chain": chain,
    "xor": xor,
    "routing": routing,
    "modalities": modalities,
    "recurrent": recurrent,
}
"""Every page by its name."""


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, race in PAGES.items():
        race().to_html(FOLDER / f"{name}.html", start=START[name])
