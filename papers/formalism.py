"""A gated network, and the gradient of one of its edges path by path (NRR Fig. 2, MHS Fig. 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Picture, Table, stated

if TYPE_CHECKING:
    import matplotlib.axes

    from neuralrace.types import Weights

ROUNDING = 1e-12
"""What counts as equal: a gradient and its sum over paths, relative to the largest entry."""


@final
@dataclass(frozen=True)
class Example:
    """A network with its data, and the edge whose gradient is shown; `short` are node names."""

    arch: nr.Architecture
    data: nr.Dataset
    edge: str
    short: Mapping[str, str]

    @property
    def through(self) -> tuple[nr.Path, ...]:
        """The paths through the edge."""
        return tuple(path for path in self.arch.paths() if self.edge in path.edges)


def by_paths(
    arch: nr.Architecture, data: nr.Dataset, weights: Weights, edge: str
) -> dict[nr.Path, np.ndarray]:
    """The terms of NRR Eq. 3 for an edge: W_t̄ᵀ E(p) W_s̄ᵀ for every path p through it.

    ```python
    >>> import jax, neuralrace as nr
    >>> from papers.formalism import by_paths
    >>> arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=8)
    >>> weights = nr.GDLN(arch).init(jax.random.key(0))
    >>> (term,) = by_paths(arch, data, weights, "x_sample1").values()
    >>> descent = jax.grad(nr.GDLN(arch).loss)(weights, data)["x_sample1"]
    >>> bool(abs(term + descent).max() < 1e-6)
    True

    ```
    """
    stats = nr.path_statistics(arch, data)
    w = {e: np.asarray(each, float) for e, each in weights.items()}

    def product(edges: tuple[str, ...], size: int) -> np.ndarray:
        whole = np.eye(size)
        for each in edges:
            whole = w[each] @ whole
        return whole

    terms = {}
    for p in stats.paths:
        if edge not in p.edges:
            continue
        error = stats.yx[p] - sum(
            product(j.edges, arch.sizes[j.source]) @ stats.x[j, p]
            for j in stats.paths
            if j.target == p.target
        )
        after = product(p.after(edge), arch.sizes[arch.edges[edge][1]])
        before = product(p.before(edge), arch.sizes[p.source])
        terms[p] = after.T @ error @ before.T
    return terms


def compute(example: Example, key: int, scale: float) -> Table:
    """The gradient of the edge by automatic differentiation, and the term of every path.

    `apart` is the largest difference between the gradient of any edge and its sum over paths,
    relative to the largest entry of all gradients.
    """
    import jax
    import xarray

    net = nr.GDLN(example.arch)
    weights = net.init(jax.random.key(key), scale)
    gradient = {e: -np.asarray(g) for e, g in jax.grad(net.loss)(weights, example.data).items()}
    every = {e: by_paths(example.arch, example.data, weights, e) for e in example.arch.edges}
    top = max(np.abs(g).max() for g in gradient.values())
    apart = [np.abs(gradient[e] - sum(terms.values())).max() / top for e, terms in every.items()]
    shown = every[example.edge]
    return xarray.Dataset(
        {
            "gradient": (("row", "column"), gradient[example.edge]),
            "term": (("path", "row", "column"), np.stack(list(shown.values()))),
            "apart": ("edge", apart),
            "paths": ("edge", [len(terms) for terms in every.values()]),
            "counted": ("edge", [example.arch.path_count(e) for e in every]),
        },
        {"path": [str(p) for p in shown], "edge": list(every)},
    )


def measures(table: Table) -> tuple[Measure, ...]:
    """The gradient of every edge against its sum over paths, and the number of paths."""
    apart = table["apart"].to_numpy()
    counts, listed = table["counted"].to_numpy(), table["paths"].to_numpy()
    norms = np.linalg.norm(table["term"].to_numpy(), axis=(1, 2))
    return (
        stated(
            "gradient",
            "gradient of every edge by automatic differentiation against the sum over its paths, "
            "largest difference relative to the largest entry",
            f"equal: ≤ {ROUNDING:g}",
            f"{apart.max():.1e}, over {len(apart)} edges",
            apart.max(),
            most=ROUNDING,
            rests=Basis.THEOREM,
        ),
        stated(
            "paths",
            "paths through each edge, counted without listing them, and listed",
            "equal",
            ", ".join(
                f"{e}: {n}" for e, n in zip(table["edge"].to_numpy(), counts.tolist(), strict=True)
            ),
            float((counts == listed).all()),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "terms",
            "size ‖·‖ of each path's term, over that of their sum",
            "reported",
            ", ".join(
                f"{v / np.linalg.norm(table['gradient'].to_numpy()):.2f}" for v in norms.tolist()
            ),
        ),
    )


BEFORE, AFTER = "#0072B2", "#009E73"
"""The colours of what precedes and what follows the edge on a path."""


def restyle(ax: matplotlib.axes.Axes, looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Give edges of a drawn graph their own look, and make the others faint."""
    from neuralrace.plot import COLOURS, shade

    for patch in ax.patches:
        kind, _, name = (patch.get_gid() or "").partition(":")
        if kind == "edge":
            faint = {"color": shade(COLOURS["neutral"], 0.75), "linewidth": 0.7}
            patch.set(**dict(looks.get(name, faint)))


def draw(table: Table, example: Example, colour: str, name: str) -> Picture:
    """(a) the network with its gates, one edge in colour; (b) paths, (c) their terms, (d) sum."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_graph

    paths, terms = example.through, table["term"].to_numpy()
    rows: Any = [["a", "a"], *([f"p{k}", f"m{k}"] for k in range(len(paths))), ["text", "sum"]]
    figure, axes = plt.subplot_mosaic(
        rows,
        figsize=(3.4, 2.5 + 1.14 * len(paths) + 0.9),
        width_ratios=(2.3, 1),
        height_ratios=(2.5, *[1.14] * len(paths), 0.9),
    )
    for k in range(len(paths)):
        axes[f"p{k}"].set_title(
            f"(b{k + 1})" + ("" if k else f" paths through the {name} edge"), loc="left"
        )
        axes[f"m{k}"].set_title(f"(c{k + 1})" + ("" if k else " term"))
    top = max(np.abs(terms).max(), np.abs(table["gradient"].to_numpy()).max())
    for k, path in enumerate(paths):
        draw_graph(example.arch.sizes, example.arch.edges, labels=example.short, ax=axes[f"p{k}"])
        own = {"color": colour, "linewidth": 2.4}
        restyle(
            axes[f"p{k}"],
            {
                **{e: {"color": BEFORE, "linewidth": 1.6} for e in path.before(example.edge)},
                **{
                    e: {"color": AFTER, "linewidth": 1.6, "linestyle": (0, (2, 1))}
                    for e in path.after(example.edge)
                },
                example.edge: own,
            },
        )
        _draw_term(axes[f"m{k}"], terms[k], top)
    image = _draw_term(axes["sum"], table["gradient"].to_numpy(), top)
    axes["sum"].set_title("(d) sum: −∂L/∂W")
    figure.colorbar(
        image, ax=axes["text"], orientation="horizontal", fraction=0.2, aspect=25, label="entry"
    )
    axes["text"].set_axis_off()
    axes["text"].text(
        0.5,
        0.8,
        "solid: before the edge, s̄(p, e)\ndashed: after it, t̄(p, e)\n"
        "term: $W_{t̄}^T$ ℰ(p) $W_{s̄}^T$",
        ha="center",
        va="center",
        fontsize=6.5,
        transform=axes["text"].transAxes,
    )
    example.arch.draw(example.data, ax=axes["a"])
    for patch in axes["a"].patches:
        if patch.get_gid() == f"edge:{example.edge}":
            patch.set(color=colour, linewidth=2.8)
    axes["a"].set_title("(a) gates on nodes and edges", loc="left")
    return figure


def _draw_term(ax: Any, matrix: np.ndarray, top: float) -> Any:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    return ax.imshow(matrix, cmap="RdBu_r", vmin=-top, vmax=top)
