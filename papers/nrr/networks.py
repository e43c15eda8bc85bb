"""Pictures of the routing network and its gating schemes (NRR Fig. 4a, b and 5a)."""

from __future__ import annotations

from typing import Any

import neuralrace as nr
from papers.formalism import restyle

ROUTE = "#D55E00"
"""The colour of a route that is picked out."""


def draw_gated(ax: Any, M: int, K: int, hidden: int) -> None:
    """The network of NRR Fig. 4a with the gates of its inputs and outputs on every sample."""
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], hidden=hidden)
    arch.draw(data, ax=ax)


def draw_counts(ax: Any, M: int, hidden: int, route: tuple[int, int] = (2, 4)) -> None:
    """The network of NRR Fig. 4b with one route picked out, and the paths through its edges."""
    from neuralrace.plot import draw_graph

    arch = nr.Architecture.routing(M, hidden=hidden)
    source, target = (min(k, M) for k in route)
    picked = (f"in{source}", "hidden", f"out{target}")
    labels = {e: str(arch.path_count(e)) for e in picked}
    draw_graph(arch.sizes, arch.edges, labels=labels, ax=ax)
    restyle(ax, {e: {"color": ROUTE, "linewidth": 2.0} for e in picked})
    for text in list(ax.texts):
        if text.get_text() in labels.values():  # a count goes above its edge, which is short
            look = {"ha": "center", "va": "center", "fontsize": text.get_fontsize()}
            ax.annotate(
                text.get_text(), text.get_position(), (0, 7), textcoords="offset points", **look
            )
            text.remove()


def draw_scheme(ax: Any, M: int, P: int) -> None:
    """A gating scheme of NRR Fig. 5a: P routes share a hidden pathway; one route picked out."""
    from neuralrace.plot import draw_graph

    arch = nr.Architecture.routing(M, P=P)
    pathways = [v for v in arch.hidden if v.startswith("h")]
    names = {v: str(n + 1) for n, v in enumerate(pathways)} if len(pathways) > 1 else {}
    short = {end + v[1:]: end + number for v, number in names.items() for end in "hk"}
    draw_graph(arch.sizes, arch.edges, labels=short, ax=ax)
    first = next(p for p in arch.paths() if (p.source, p.target) == ("x1", "y1"))
    faint = {"color": "#8A8A8A", "linewidth": 0.5}
    restyle(
        ax,
        {
            **dict.fromkeys(arch.edges, faint),
            **{e: {"color": ROUTE, "linewidth": 1.6} for e in first.edges},
        },
    )
