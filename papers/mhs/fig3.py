"""MHS Fig. 3: the contextual task, the function of each pathway of its ReLN, and lesions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated
from papers.mhs.contextual import COMMON, STRUCTURES, case

SETTINGS = {
    "structures": Setting(STRUCTURES, "the structure of each context", "MHS Fig. 3"),
    "hidden": Setting(700, "hidden neurons of the ReLU network, for the widths", "MHS Table 1"),
    **{name: COMMON[name] for name in ("init", "step", "steps", "rule", "key")},
    "factors": Setting(
        (0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5),
        "by which the strength of one pathway is multiplied; 0 is a lesion",
        "ours: MHS says “if this fine balance … is broken”",
    ),
    "seeds": Setting(5, "starts of the ReLN", "ours: MHS gives none"),
}


def compute(settings: Settings) -> Table:
    """The task, and the ReLN's pathways at the end of training, computed by its race."""
    import jax
    import xarray

    from papers.mhs.table import gated_network

    s = settings
    this = case(s, {"structures": tuple(s["structures"])}, s["hidden"])
    arch, data = gated_network(this, "gated", s["rule"])
    net, race = nr.GDLN(arch), nr.reduce(arch, data)
    pathways = list(arch.hidden)
    outputs = []
    for key in jax.random.split(jax.random.key(s["key"]), s["seeds"]):
        start = race.start(net.init(key, this.scale))
        times = this.learning_rate * np.array([0.0, this.steps])
        end = race.solve(times=times, start=start, learning_rate=this.learning_rate)
        weights = race.weights(end, times[-1], key)
        outputs.append([_alone(net, weights, data, v) for v in pathways])
    x = np.hstack([data.x["item"], data.x["context"]])
    linear = x @ np.linalg.lstsq(x, data.y["y"], rcond=None)[0]
    return xarray.Dataset(
        {
            "x": (("input", "sample"), x.T),
            "y": (("output", "sample"), data.y["y"].T),
            "gates": (("pathway", "sample"), [_gate(data, v) for v in pathways]),
            "outputs": (("seed", "pathway", "output", "sample"), np.array(outputs)),
            "linear": (("output", "sample"), linear.T),
            "context": ("sample", data.labels["context"]),
        },
        {"pathway": pathways, "seed": np.arange(s["seeds"])},
    )


def _gate(data: nr.Dataset, node: str) -> np.ndarray:
    return np.asarray(data.gates.get(node, np.ones(data.n_samples)), float)


def _alone(net: nr.GDLN, weights: Mapping[str, Any], data: nr.Dataset, node: str) -> np.ndarray:
    """What one pathway adds to the outputs, (outputs, samples)."""
    silent = {v: np.zeros(data.n_samples) for v in net.arch.hidden if v != node}
    return np.asarray(net(weights, data.gated({**data.gates, **silent}))["y"]).T


def _blocks(table: Table) -> np.ndarray:
    """The outputs (seed, pathway, block, row, sample); block 0 is common to all contexts."""
    outputs = table["outputs"].to_numpy()
    contexts = len(np.unique(table["context"]))
    return outputs.reshape(*outputs.shape[:2], contexts + 1, -1, outputs.shape[-1])


def unbalanced(table: Table, factors: Any) -> np.ndarray:
    """(seed, pathway, factor): the loss when one pathway is weaker or stronger than it learned.

    Relative to zero output. Outputs of pathways add up, so that a pathway of strength f changes
    them by f − 1 times what it adds.
    """
    outputs, y = table["outputs"].to_numpy(), table["y"].to_numpy()
    error = outputs.sum(axis=1, keepdims=True) - y
    scaled = [error + (f - 1) * outputs for f in factors]
    return np.stack([(e**2).sum(axis=(2, 3)) for e in scaled], axis=-1) / (y**2).sum()


def misplaced(table: Table) -> np.ndarray:
    """(seed, pathway): the share of a lesion's squared error where the target is zero."""
    outputs, y = table["outputs"].to_numpy(), table["y"].to_numpy()
    square = (outputs.sum(axis=1, keepdims=True) - y - outputs) ** 2
    return (square * (y == 0)).sum(axis=(2, 3)) / square.sum(axis=(2, 3))


def _lesions(table: Table) -> list[Measure]:
    loss = unbalanced(table, (0.0, 0.9, 1.0, 1.1))
    lesion, intact = loss[..., 0], loss[..., 2]
    names = table["pathway"].to_numpy()
    slight = (loss[..., [1, 3]].min(axis=-1) - intact).min()
    return [
        stated(
            "silenced",
            "loss with one pathway silenced, relative to zero output, mean of the seeds",
            "“if this fine balance … is broken then errors will be incurred”: ≥ 5 %, every "
            "pathway and seed",
            ", ".join(f"{n} {v:.0%}" for n, v in zip(names, lesion.mean(axis=0), strict=True))
            + f"; all pathways {intact.mean():.2%}",
            lesion.min(),
            least=0.05,
        ),
        stated(
            "nudged",
            "rise of the loss when one pathway is 10 % stronger or weaker, smallest over pathways "
            "and seeds, relative to zero output",
            "“fine balance”: above 0",
            f"{slight:.2%}",
            slight,
            least=0,
            rests=Basis.PAPER,
        ),
        stated(
            "lesion-misplaced",
            "share of the errors after a lesion that are outputs where the target is zero",
            "reported: “errors which other pathways learn to remove”",
            ", ".join(
                f"{n} {v:.0%}" for n, v in zip(names, misplaced(table).mean(axis=0), strict=True)
            ),
        ),
    ]


def measures(table: Table) -> tuple[Measure, ...]:
    """The task against its description, and what the pathways add to each block of outputs."""
    x, y, gates = (table[name].to_numpy() for name in ("x", "y", "gates"))
    context = table["context"].to_numpy()
    contexts = np.unique(context)
    outputs = table["outputs"].to_numpy()
    size = np.linalg.norm(y)
    left = (np.linalg.norm(y - outputs.sum(axis=1), axis=(1, 2)) ** 2).max() / size**2
    blocks = _blocks(table)
    strength = np.sqrt((blocks**2).mean(axis=(0, 3, 4)))  # (pathway, block)
    of_context, of_all = strength[1:, 1:], strength[1:, 0]
    elsewhere = context[None, :] != contexts[:, None]  # (context block, sample)
    square = (blocks[:, 1:, 1:] ** 2).sum(axis=(0, 1, 3))
    wrong = float((square * elsewhere).sum() / square.sum())
    linear = np.linalg.norm(outputs[:, 0] - table["linear"].to_numpy(), axis=(1, 2)).max() / size
    on = [len({*context[g > 0]}) for g in gates]
    ones = [int((x[: len(x) - len(contexts)].sum(axis=0) == 1).all()), int((x.sum(0) == 2).all())]
    return (
        stated(
            "samples",
            "samples, inputs and outputs; each input one item and one context",
            "every item in all contexts: 24, 11, 60",
            f"{x.shape[1]}, {x.shape[0]}, {y.shape[0]}",
            float((x.shape[1], x.shape[0], y.shape[0]) == (24, 11, 60) and all(ones)),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "contexts-on",
            "contexts in which each pathway is on",
            "four modules: one in all, the others in two out of three",
            ", ".join(map(str, on)),
            float(on == [len(contexts)] + [len(contexts) - 1] * len(contexts)),
            least=1,
            rests=Basis.THEOREM,
        ),
        stated(
            "final-loss",
            "final loss of all pathways together / initial loss",
            "“couple together to produce the correct output labels”: ≤ 1 %",
            f"{left:.2%}",
            left,
            most=0.01,
        ),
        stated(
            "least-contribution",
            "smallest contribution of a contextual pathway to the outputs of any context, root "
            "mean square, over its largest",
            "“labels for all three context-specific parts”: ≥ 10 %",
            f"{(of_context.min(axis=1) / of_context.max(axis=1)).min():.0%}",
            (of_context.min(axis=1) / of_context.max(axis=1)).min(),
            least=0.1,
        ),
        stated(
            "misplaced",
            "share of the contextual pathways' squared outputs where the target is zero",
            "“creates errors which other pathways learn to remove”: > 10 %",
            f"{wrong:.0%}",
            wrong,
            least=0.1,
        ),
        stated(
            "common-linear",
            "the common pathway at the end against the best linear map, ‖Δ‖ / ‖Y‖",
            "reported: trained together, the pathways share what the linear map could do",
            f"{linear:.1%}; contextual pathways put {of_all.mean() / strength[0, 0]:.1%} of its "
            "size on the outputs of all contexts",
        ),
        *_lesions(table),
    )


def draw(table: Table) -> Picture:
    """The task, the gates, what each pathway adds to the outputs, and what its loss breaks."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_matrix

    context = table["context"].to_numpy()
    contexts = np.unique(context).tolist()
    columns = {f"context {c}": int((context == c).sum()) for c in contexts}
    rows = {n: len(table["y"]) // (len(contexts) + 1) for n in ("all", *map(str, contexts))}
    items = len(table["x"]) - len(contexts)
    names = table["pathway"].to_numpy().tolist()
    above, below = ["y", *names], [f"without {name}" for name in names]
    figure, axes = plt.subplot_mosaic(
        [above, ["balance", *below], ["x", *("gates",) * len(names)]],
        figsize=(7.4, 6.8),
        height_ratios=(2.4, 2.4, 1),
        width_ratios=(1.25, *[1] * len(names)),
    )
    short = {str(c): n for c, n in zip(contexts, columns.values(), strict=True)}
    blocks: Any = {"rows": rows, "columns": short}
    shown, y = table["outputs"].to_numpy()[0], table["y"].to_numpy()
    pictures = {"y": (y, "(a) targets")}
    for k, name in enumerate(names):
        pictures[name] = (shown[k], f"(b{k + 1}) {name} adds")
        rest = shown.sum(axis=0) - shown[k] - y
        pictures[f"without {name}"] = (rest, f"(d{k + 1}) no {name}")
    for panel, (matrix, title) in pictures.items():
        ax = axes[panel]
        draw_matrix(matrix.round(6) + 0.0, title=title, blocks=blocks, scale=False, ax=ax)
        if panel not in ("y", below[0]):
            ax.set_yticklabels([])
    _draw_balance(table, axes["balance"])
    axes["y"].set_ylabel("outputs of context")
    draw_matrix(
        table["x"],
        title="(e) inputs; dark: 1",
        blocks={"rows": {"item": items, "context": len(contexts)}, "columns": short},
        ax=axes["x"],
    )
    axes["x"].set_xlabel("samples by context")
    draw_matrix(
        table["gates"],
        rows=names,
        blocks={"columns": columns},
        title="(f) gates of the ReLN's pathways; dark: on",
        ax=axes["gates"],
    )
    for row, label in ((above, "target, output"), (below, "error")):
        top = max(np.abs(pictures[panel][0]).max() for panel in row)
        images = [axes[panel].images[0] for panel in row]
        for image in images:
            image.set(cmap="RdBu_r", clim=(-top, top))
        bar = figure.colorbar(images[-1], ax=[axes[n] for n in row], label=label, aspect=25)
        bar.outline.set_linewidth(0.5)
    return figure


def _draw_balance(table: Table, ax: Any) -> None:
    from neuralrace.plot import cycle_colour

    factors = sorted(settings_of(table)["factors"])
    loss = unbalanced(table, factors).mean(axis=0)
    for k, name in enumerate(table["pathway"].to_numpy()):
        # one inside the other: the curves of contextual pathways nearly coincide
        look = {
            "color": cycle_colour(k),
            "marker": "osv^"[k % 4],
            "markersize": (4, 8, 5, 2)[k % 4],
        }
        ax.plot(factors, loss[k], label=name, markerfacecolor="none", linewidth=1.0, **look)
    ax.set(
        title="(c) balance of pathways",
        xlabel="strength / learned strength",
        ylabel="loss / loss of zero output",
        yscale="log",
    )
    ax.set_ylim(top=20 * loss.max())
    ax.legend(loc="upper right", fontsize=6)


FIGURE = Figure(
    name="mhs/fig3",
    title=(
        "The contextual task, and the pathways of the gated network that represents a ReLU network"
    ),
    states=(
        "Every item appears in every context; some properties are required in all contexts, some "
        "in one. The ReLN has four modules: one always on, and three that are on in two of three "
        "contexts but produce labels for all three; the errors this creates are removed by the "
        "other pathways, and if this balance is broken, errors are incurred (Fig. 3, §4)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
