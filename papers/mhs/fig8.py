"""MHS Fig. 8: the gates that Algorithm 1 finds in ReLU networks, by number of clusters."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, stated
from papers.mhs.contextual import COMMON, STRUCTURES, case, relu_runs

DISCOVERY = {
    "structures": Setting(STRUCTURES, "the structure of each context", "MHS App. B"),
    "hidden": Setting(700, "hidden neurons of the ReLU network", "MHS Table 1"),
    **{name: COMMON[name] for name in ("init", "step", "steps", "key")},
    "every": Setting(100, "steps between samples of the activity", "MHS Algorithm 1"),
    "weighted": Setting(
        False, "whether neurons are weighted by ‖w_in‖‖w_out‖, or all equally", "MHS App. B"
    ),
    "cluster_seed": Setting(0, "seed of K-means", "ours"),
}
"""Settings of the figures on Algorithm 1."""

SETTINGS = {
    **DISCOVERY,
    "clusters": Setting((2, 3, 4), "numbers of clusters K", "MHS Fig. 8"),
    "seeds": Setting(5, "trainings whose activity is stacked", "ours: MHS says several", quick=2),
}


def trained(settings: Settings) -> tuple[nr.Dataset, nr.Trajectory]:
    """The task, and ReLU networks with their weights at every sample of the activity."""
    import jax

    from papers.mhs.table import narrowed

    s = settings
    this = case(s, {"structures": tuple(s["structures"])}, s["hidden"])
    data = narrowed(nr.tasks.contextual(joined=True, **this.task))
    return data, relu_runs(this, jax.random.key(s["key"]), s["every"], record={"weights": True})


def compute(settings: Settings) -> Table:
    """Clusters for every K, each with the gated network built from them."""
    import xarray

    s = settings
    data, runs = trained(s)
    most = max(s["clusters"])
    found = [
        nr.reln.discover(runs, data, k, weighted=s["weighted"], key=s["cluster_seed"])
        for k in s["clusters"]
    ]
    layers = [each.layers["h"] for each in found]
    return xarray.Dataset(
        {
            "centroid": (
                ("clusters", "cluster", "sample"),
                [filled(layer.centroid, most) for layer in layers],
            ),
            "share": (("clusters", "cluster"), [filled(layer.share, most) for layer in layers]),
            "discrepancy": ("clusters", [each.discrepancy for each in found]),
            "context": ("sample", data.labels["context"]),
        },
        {"clusters": list(s["clusters"]), "cluster": np.arange(most)},
    )


def filled(values: np.ndarray, length: int) -> np.ndarray:
    """The array padded with rows of NaN up to a length."""
    room = np.full((length - len(values), *values.shape[1:]), np.nan)
    return np.concatenate([values, room])


def by_context(rounded: np.ndarray, context: np.ndarray) -> list[tuple[int, ...]]:
    """For each pattern that depends only on the context, the contexts where it is on; else `()`.

    A pattern that is off everywhere also gives `()`.
    """
    found = []
    for pattern in rounded:
        on = [pattern[context == c] for c in np.unique(context)]
        pure = all(len(set(part.tolist())) == 1 for part in on)
        contexts = tuple(
            int(c) for c, part in zip(np.unique(context), on, strict=True) if part.all()
        )
        found.append(contexts if pure else ())
    return found


def measures(table: Table) -> tuple[Measure, ...]:
    """Which gates are found for each number of clusters, and how clear they are."""
    context = table["context"].to_numpy()
    every = tuple(int(c) for c in np.unique(context))
    pairs = [tuple(c for c in every if c != off) for off in every]
    rows, blur, common = [], [], []
    for k in table["clusters"].to_numpy():
        centroid = table["centroid"].sel(clusters=k).dropna("cluster").to_numpy()
        found = by_context(centroid > 0.5, context)
        share = table["share"].sel(clusters=k).to_numpy()[: len(found)]
        blur.append(float(share @ np.minimum(centroid, 1 - centroid).mean(axis=1)))
        common.append(every in found)
        named = ", ".join(
            ("in " + "+".join(map(str, f)) if f else "depends on the item") + f" {part:.0%}"
            for f, part in zip(found, share, strict=True)
        )
        exact = sorted(found) == sorted([every, *pairs])
        rows.append(
            stated(
                f"gates-{k}",
                f"K = {k}: contexts in which each rounded centroid is on, and its share",
                "“the exact gating pattern used in Section 4”: all, and all but one"
                if k == len(every) + 1
                else "reported",
                named,
                rests=Basis.PAPER,
                **({"value": exact, "least": 1} if k == len(every) + 1 else {}),
            )
        )
    ks = ", ".join(str(int(k)) for k in table["clusters"])
    return (
        *rows,
        stated(
            "common-found",
            f"a common pathway, on for all samples, is found with K = {ks}",
            "“all of the clusterings find a common pathway”",
            ", ".join("yes" if c else "no" for c in common),
            float(all(common)),
            least=1,
            rests=Basis.PAPER,
        ),
        stated(
            "inconsistency",
            f"distance of the centroids from 0 and 1, mean over neurons, K = {ks}",
            "“inconsistency … from having too few clusters”: falls",
            ", ".join(f"{b:.3f}" for b in blur),
            np.max(np.diff(blur)),
            most=0,
            rests=Basis.PAPER,
        ),
        stated(
            "loss",
            "gated networks with these gates against the ReLU networks, mean |ΔL| / L(0), "
            f"K = {ks}",
            "reported; Fig. 9 has more",
            ", ".join(f"{100 * d:.2g} %" for d in table["discrepancy"].to_numpy()),
        ),
    )


def draw(table: Table) -> Picture:
    """How often the members of each cluster are on, one row per cluster, one column per sample."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_matrix

    context = table["context"].to_numpy()
    columns = {f"context {c}": int((context == c).sum()) for c in np.unique(context)}
    kept = [
        table["centroid"].sel(clusters=k).dropna("cluster").to_numpy() for k in table["clusters"]
    ]
    figure, axes = plt.subplots(
        len(kept),
        1,
        figsize=(5.0, 0.6 * len(kept) + 0.36 * sum(map(len, kept))),
        height_ratios=[len(c) + 0.5 for c in kept],
        squeeze=False,
    )
    every = zip(ascii_lowercase, axes[:, 0], table["clusters"].to_numpy(), kept, strict=False)
    for letter, ax, k, centroid in every:
        share = table["share"].sel(clusters=k).to_numpy()
        names = [f"{part:.0%}" for part in share[: len(centroid)]]
        draw_matrix(
            centroid,
            rows=names,
            blocks={"columns": columns},
            title=f"({letter}) {k} clusters",
            scale="how often on",
            ax=ax,
        )
        ax.set_ylabel("share of neurons")
        ax.get_images()[0].set_clim(0, 1)
    return figure


FIGURE = Figure(
    name="mhs/fig8",
    title="Algorithm 1: clusters of the ReLU networks' activity, and the gates they give",
    states=(
        "K-means on the binary activity of hidden neurons, sampled over training and runs, finds a "
        "common pathway with 2, 3 and 4 clusters; too few clusters have centroids between 0 and "
        "1; with 4 the exact gating of §4 emerges (Fig. 8, App. B)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
