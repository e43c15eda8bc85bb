"""MHS Fig. 5: more contexts, the same structure in each, and the closed forms of App. F and G."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.figure import Agreement, Figure, Setting, Settings
from neuralrace.papers.mhs.contextual import (
    COMMON,
    case,
    floor,
    gaps,
    gated_runs,
    mean,
    mean_and_max,
    predicted_maps,
    relu_runs,
    shares_by_number,
    strengths,
)

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

    from neuralrace.types import Key

ITEM_MODES = 7
"""The number of modes of a contextual pathway: one per item (8), without the constant mode."""

SETTINGS = {
    "contexts": Setting((3, 4, 5), "numbers of contexts", "MHS §5"),
    "hidden": Setting(
        (700, 500, 600),
        "hidden neurons of each ReLU network",
        "the authors' scripts; MHS Table 1 says 700",
    ),
    "context_scale": Setting(
        (1.0, 1.0, 1.0),
        "size of the context features, for each number of contexts",
        "MHS §4; the authors' scripts have 1, 1.1, 1.35",
    ),
    **COMMON,
    "seeds": Setting(5, "repetitions of each network", "ours: MHS shows one", quick=2),
}


def compute(settings: Settings) -> xarray.Dataset:
    """ReLU networks, ReLNs, their races, and closed forms, for each number of contexts."""
    import xarray

    s = settings
    found = [
        _compute_one(s, *each)
        for each in zip(s["contexts"], s["hidden"], s["context_scale"], strict=True)
    ]
    return xarray.concat(found, dim="contexts").assign_coords(contexts=list(s["contexts"]))


def _compute_one(s: Mapping[str, Any], contexts: int, hidden: int, size: float) -> xarray.Dataset:
    import jax
    import xarray

    from neuralrace.papers.mhs import table

    this = case(s, {"contexts": contexts, "context_scale": size}, hidden)
    of_relu, of_gated = jax.random.split(jax.random.key(s["key"]))
    relu = relu_runs(this, of_relu, s["every"], record={})
    arch, data = table.gated_network(this, "gated", s["rule"])
    gated = gated_runs(arch, data, this, of_gated, s["every"])
    predicted = table.predictions(arch, data, this, of_gated, s["seeds"], relu.time)
    common = strengths([gated[0].values["maps"]["common"]], ITEM_MODES)
    others = [v for v in arch.hidden if v != "common"]
    maps = predicted_maps(arch, predicted[0])
    closed_loss, closed_common, closed_others = closed_forms(
        this, arch.sizes["common"], arch.sizes[others[0]], relu.time
    )
    by_themselves = contextual_alone(this, arch.sizes[others[0]], of_gated, relu.time)
    ends = [shares_by_number(this, relu.isel(seed=i)) for i in range(s["seeds"])]
    over, strength = ("seed", "step"), ("step", "mode")
    return xarray.Dataset(
        {
            "relu": (over, relu.loss),
            "gated": (over, np.stack([run.loss for run in gated])),
            "predicted": (over, np.stack([run.loss for run in predicted])),
            "closed": (over, np.tile(closed_loss, (s["seeds"], 1))),
            "common": (strength, common),
            "common_predicted": (strength, strengths(maps["common"], ITEM_MODES)),
            "common_closed": (strength, closed_common),
            "others": (
                strength,
                np.mean([strengths([gated[0].values["maps"][v]], ITEM_MODES) for v in others], 0),
            ),
            "others_predicted": (
                strength,
                np.mean([strengths(maps[v], ITEM_MODES) for v in others], 0),
            ),
            "others_closed": (strength, closed_others),
            "alone": (strength, by_themselves),
            "alone_closed": (strength, closed_others),
            "share": (("seed", "number"), [_padded(share, max(s["contexts"])) for share in ends]),
            "rate": ((), this.learning_rate),
        },
        {
            "step": np.round(relu.time / this.learning_rate).astype(int),
            "number": np.arange(1, max(s["contexts"]) + 1),
        },
    )


def _padded(values: list[float], length: int) -> list[float]:
    return values + [np.nan] * (length - len(values))


def closed_forms(
    this: Any, common: int, other: int, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """MHS App. F and G: a linear network, and contextual pathways on its residual.

    Each starts at the average for random weights, N σ²/2 for N units. Returns the loss (T,), and
    the strengths (T, modes) of the common pathway and of one contextual pathway, largest first.
    """
    from neuralrace.contests import expected_start

    joined = nr.tasks.contextual(joined=True, **this.task)
    chain = nr.Architecture.chain(joined.x["x"].shape[1], common, joined.y["y"].shape[1])
    races = {
        "common": nr.reduce(chain, joined),
        "others": nr.reduce(*nr.tasks.all_but_one(this.data, hidden=other)),
    }
    loss, found = -races["common"].constant + np.zeros(len(times)), []
    for name, race in races.items():
        form = race.closed_form(expected_start(name, race, this.scale))
        if not form.is_complete:
            raise AssertionError("the contextual task has closed forms (MHS App. F, G)")
        loss = loss + form.loss(times)
        values = np.stack([form.modes[b.name].value(times) for b in race.blocks], axis=1)
        found.append(-np.sort(-values, axis=1)[:, :ITEM_MODES])
    return loss, *found


def contextual_alone(this: Any, width: int, key: Key, times: np.ndarray) -> np.ndarray:
    """Strengths (T, modes) of contextual pathways on the residual of a learned common one.

    They are means over the pathways, from their race with random weights: the setting of App. F and
    G.
    """
    arch, data = nr.tasks.all_but_one(this.data, hidden=width)
    race = nr.reduce(arch, data)
    start = race.start(nr.GDLN(arch).init(key, this.scale))
    maps = predicted_maps(arch, race.solve(times=times, start=start))
    return np.mean([strengths(parts, ITEM_MODES) for parts in maps.values()], axis=0)


def agreement(table: xarray.Dataset) -> tuple[Agreement, ...]:
    """For each number of contexts: losses, singular values, and how many contexts gates span."""
    rows = []
    for C in table["contexts"].to_numpy():
        one = table.sel(contexts=C)
        one = one.assign_coords(time=one["rate"] * one["step"])
        rows += _rows(one, int(C))
    share = table["share"].mean("seed")
    spans = (
        float((share * share["number"]).sum("number")[0]),
        float((share * share["number"]).sum("number")[-1]),
    )
    first, last = (int(c) for c in table["contexts"].to_numpy()[[0, -1]])
    rows.append(
        Agreement(
            "contexts in which a neuron of the ReLU network is on, mean over the final weight, "
            f"patterns rounded to contexts; {first} and {last} contexts",
            "“as the number of contexts increases, so do the contexts a pathway is active for”",
            f"{spans[0]:.2f} and {spans[1]:.2f}",
            spans[1] > spans[0],
        )
    )
    return tuple(rows)


def _rows(one: xarray.Dataset, C: int) -> list[Agreement]:
    follows, fits = gaps(one, "relu", "gated"), gaps(one, "relu", "predicted")
    closed, theory = gaps(one, "relu", "closed"), gaps(one, "gated", "predicted")

    def apart(name: str, how: str) -> float:
        a, b = one[name].to_numpy(), one[f"{name}_{how}"].to_numpy()
        return float(np.abs(a - b).mean() / a.max())

    share = one["share"].mean("seed").to_numpy()
    return [
        Agreement(
            f"C = {C}: ReLU networks against the trained ReLN, mean |ΔL| / L(0)",
            "“perfect agreement”: ≤ 1 %",
            f"{mean_and_max(follows)}; another seed of the ReLU network: "
            f"{mean_and_max(floor(one, 'relu'))}",
            mean(follows) <= 0.01,
        ),
        Agreement(
            f"C = {C}: ReLU networks against the race from the ReLN's actual weights",
            "“perfect agreement”: ≤ 1 %",
            f"{mean_and_max(fits)}; the race against the trained ReLN: {mean_and_max(theory)}",
            mean(fits) <= 0.01,
        ),
        Agreement(
            f"C = {C}: ReLU networks against the closed forms of App. F and G, corrected, from the "
            "mean start",
            "reported: the common pathway by itself, the others on its residual",
            mean_and_max(closed),
        ),
        Agreement(
            f"C = {C}: singular values of the ReLN, common and mean contextual, against its race; "
            "mean difference relative to the largest",
            "“match simulations exactly”: ≤ 1 %",
            f"{apart('common', 'predicted'):.2%}, {apart('others', 'predicted'):.2%}",
            max(apart("common", "predicted"), apart("others", "predicted")) <= 0.01,
        ),
        Agreement(
            f"C = {C}: the same against the closed forms, in which contextual pathways start after "
            "the common one; trained together, they grow from the start",
            "“match simulations exactly”: ≤ 1 %",
            f"{apart('common', 'closed'):.2%}, {apart('others', 'closed'):.2%}",
            max(apart("common", "closed"), apart("others", "closed")) <= 0.01,
        ),
        Agreement(
            f"C = {C}: closed form against contextual pathways alone, on the residual of a learned "
            "common one, from random weights",
            "the equation of App. F and G, corrected: ≤ 2 %",
            f"{apart('alone', 'closed'):.2%}",
            apart("alone", "closed") <= 0.02,
        ),
        Agreement(
            f"C = {C}: share of the ReLU networks' final weight nearest to patterns on in 1, …, "
            f"{C} contexts",
            f"“active for C − 1 contexts”: {C - 1} has the largest share",
            ", ".join(f"{part:.0%}" for part in share[:C]),
            int(share[: C - 1].argmax()) == C - 2,
        ),
    ]


def draw(table: xarray.Dataset) -> matplotlib.figure.Figure:
    """One column per number of contexts: losses, common and contextual singular values."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import COLOURS

    contexts = table["contexts"].to_numpy().tolist()
    figure, axes = plt.subplots(
        3, len(contexts), figsize=(2.5 * len(contexts), 6.2), squeeze=False, sharex=True
    )
    step = table["step"].to_numpy()
    dashes = {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1, "color": COLOURS["theory"]}
    dots = {"linestyle": (0, (1, 1.2)), "linewidth": 1.2, "color": "#D55E00"}
    for column, C in zip(axes.T, contexts, strict=True):
        one = table.sel(contexts=C)
        unit = float(one["relu"][:, 0].mean())
        loss = {n: one[n].mean("seed") / unit for n in ("relu", "gated", "predicted", "closed")}
        top, middle, low = column
        top.plot(step, loss["relu"], color=COLOURS["relu"], linewidth=4.5, label="ReLU network")
        top.plot(step, loss["gated"], color=COLOURS["simulation"], linewidth=2.2, label="ReLN")
        top.plot(step, loss["predicted"], label="race", **dashes)
        top.plot(step, loss["closed"], label="closed form", **dots)
        top.set(title=f"C = {C}", ylim=(0, 1.04))
        for ax, name, light in ((middle, "common", "#7FB8DA"), (low, "others", "#80CFB9")):
            ax.plot(step, one[name], color=light, linewidth=2.4)
            ax.plot(step, one[f"{name}_predicted"], **dashes)
            ax.plot(step, one[f"{name}_closed"], **dots)
            ax.set_ylim(0, None)
        low.set_xlabel("epoch")
    for ax, label in zip(
        axes[:, 0],
        ("loss / initial loss", "singular values, common", "singular values, contextual"),
        strict=True,
    ):
        ax.set_ylabel(label)
    axes[0, 0].legend()
    return figure


FIGURE = Figure(
    name="mhs/fig5",
    title="More contexts: pathways on in all contexts but one, and their closed forms",
    states=(
        "With 3, 4 and 5 contexts the ReLU network is imitated by a common pathway and one "
        "pathway for each context that is on in all the others; the singular values of the "
        "pathways have closed forms that match simulations exactly, and the loss agrees "
        "perfectly: with more contexts, pathways are on in more of them (Fig. 5, §5, App. F, G)."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    agreement=agreement,
)
