"""MHS Fig. 5: more contexts, the same structure in each, and the closed forms of App. F and G."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from evidence import FLOOR, Basis, Measure
from papers.figure import Figure, Picture, Setting, Settings, Table, noted, stated
from papers.mhs.contextual import (
    COMMON,
    apart,
    case,
    contexts_on,
    floor,
    gaps,
    gated_runs,
    mean_and_max,
    predicted_maps,
    relu_runs,
    seed_floor,
    shares_by_number,
    strengths,
)

if TYPE_CHECKING:
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


def compute(settings: Settings) -> Table:
    """ReLU networks, ReLNs, their races, and closed forms, for each number of contexts."""
    import xarray

    s = settings
    found = [
        _compute_one(s, *each)
        for each in zip(s["contexts"], s["hidden"], s["context_scale"], strict=True)
    ]
    return xarray.concat(found, dim="contexts").assign_coords(contexts=list(s["contexts"]))


def _compute_one(s: Mapping[str, Any], contexts: int, hidden: int, size: float) -> Table:
    import jax
    import xarray

    from papers.mhs import table

    this = case(s, {"contexts": contexts, "context_scale": size}, hidden)
    of_relu, of_gated = jax.random.split(jax.random.key(s["key"]))
    relu = relu_runs(this, of_relu, s["every"], record={})
    arch, data = table.gated_network(this, "gated", s["rule"])
    gated = gated_runs(arch, data, this, of_gated, s["every"])
    predicted = table.predictions(arch, data, this, of_gated, s["seeds"], relu.time)
    others = [v for v in arch.hidden if v != "common"]
    trained = [{v: [m] for v, m in run.values["maps"].items()} for run in gated]
    raced = [predicted_maps(arch, run) for run in predicted]
    contextual = lambda maps: np.mean([strengths(maps[v], ITEM_MODES) for v in others], axis=0)
    closed_loss, closed_common, closed_others = closed_forms(
        this, arch.sizes["common"], arch.sizes[others[0]], relu.time
    )
    alone = [
        contextual_alone(this, arch.sizes[others[0]], key, relu.time)
        for key in jax.random.split(of_gated, s["seeds"])
    ]
    ends = [shares_by_number(this, relu.isel(seed=i)) for i in range(s["seeds"])]
    over, each, strength = ("seed", "step"), ("seed", "step", "mode"), ("step", "mode")
    return xarray.Dataset(
        {
            "relu": (over, relu.loss),
            "gated": (over, np.stack([run.loss for run in gated])),
            "predicted": (over, np.stack([run.loss for run in predicted])),
            "closed": (over, np.tile(closed_loss, (s["seeds"], 1))),
            "common": (each, [strengths(m["common"], ITEM_MODES) for m in trained]),
            "common_predicted": (each, [strengths(m["common"], ITEM_MODES) for m in raced]),
            "common_closed": (strength, closed_common),
            "others": (each, [contextual(maps) for maps in trained]),
            "others_predicted": (each, [contextual(maps) for maps in raced]),
            "others_closed": (strength, closed_others),
            "alone": (each, alone),
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
    for race in races.values():
        form = race.closed_form(expected_start(race, this.scale))
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


def each_number(table: Table) -> list[Table]:
    """The data for each number of contexts separately, each with its own time axis."""
    found = [table.isel(contexts=k) for k in range(table.sizes["contexts"])]
    return [one.assign_coords(time=one["rate"] * one["step"]) for one in found]


def _losses(reference: str, other: str) -> Callable[[Table], np.ndarray]:
    """Mean |ΔL|/L(0) between two losses for one number of contexts, seed by seed."""
    return lambda one: apart(*(one[name].to_numpy() for name in ("time", reference, other)))


def _strengths(name: str, how: str) -> Callable[[Table], np.ndarray]:
    """Mean difference of singular values relative to the largest, seed by seed."""

    def read(one: Table) -> np.ndarray:
        a, b = one[name], one[f"{name}_{how}"]
        return (abs(a - b).mean(("step", "mode")) / a.max()).to_numpy()

    return read


def most_weight(one: Table) -> np.ndarray:
    """The number of contexts, fewer than all, that has most of the weight, minus C; by seed."""
    C = int(one["contexts"])
    return one["share"].to_numpy()[:, : C - 1].argmax(axis=1) + 1 - C


MEASURES = {
    "follows": Measure(
        "follows",
        "ReLU networks against the trained ReLN, mean |ΔL| / L(0)",
        _losses("relu", "gated"),
        most=0.01,
        words="perfect agreement",
    ),
    "predicted": Measure(
        "predicted",
        "ReLU networks against the race from the ReLN's actual weights, mean |ΔL| / L(0)",
        _losses("relu", "predicted"),
        most=0.01,
        words="perfect agreement",
    ),
    "over floor": Measure(
        "over-floor",
        "distance of the ReLN's loss over that of another seed of the ReLU network",
        lambda one: _losses("relu", "gated")(one) / seed_floor(one, "relu"),
        most=FLOOR,
        rests=Basis.SEEDS,
    ),
    "common": Measure(
        "common",
        "race against training: singular values of the common pathway, relative to the largest",
        _strengths("common", "predicted"),
        most=0.01,
        words="match simulations exactly",
    ),
    "others": Measure(
        "others",
        "race against training: mean singular values of the contextual pathways",
        _strengths("others", "predicted"),
        most=0.01,
        words="match simulations exactly",
    ),
    "waiting": Measure(
        "waiting",
        "closed form against the race of contextual pathways alone (theory against theory)",
        _strengths("alone", "closed"),
        most=0.02,
        words="match simulations exactly",
    ),
    "common, together": Measure(
        "common-together",
        "closed form against a common pathway that is trained together with contextual ones",
        _strengths("common", "closed"),
        most=0.02,
        words="match simulations exactly",
    ),
    "together": Measure(
        "together",
        "closed form against contextual pathways that are trained together with the common one",
        _strengths("others", "closed"),
        most=0.02,
        words="match simulations exactly",
    ),
    "span": Measure(
        "span",
        "contexts, fewer than all, in which most of the weight is on (rounded), minus C",
        most_weight,
        least=-1,
        most=-1,
        form=".1f",
        rests=Basis.PAPER,
        words="active for C − 1 contexts",
    ),
}
"""The numbers for one number of contexts, with their bounds."""


def worst(name: str) -> Measure:
    """A measure over all numbers of contexts: the one that is furthest away, its seeds kept."""
    measure = MEASURES[name]

    def read(table: Table) -> Any:
        each = [measure.read(one) for one in each_number(table)]
        return max(each, key=lambda values: np.nan_to_num(np.mean(values), nan=-np.inf))

    return replace(measure, id=f"{measure.id}-worst", what=f"{measure.what}; worst C", read=read)


def only(name: str, C: int) -> Measure:
    """A measure for one number of contexts."""
    measure = MEASURES[name]

    def read(table: Table) -> Any:
        return measure.read(each_number(table.sel(contexts=[C]))[0])

    return replace(measure, id=f"{measure.id}-{C}", what=f"C = {C}: {measure.what}", read=read)


def grows(table: Table) -> np.ndarray:
    """By how much the number of contexts on grows from one C to the next: the least, by seed."""
    on = [contexts_on(one["share"].to_numpy()) for one in each_number(table)]
    return np.diff(on, axis=0).min(axis=0)


GROWS = Measure(
    "grows",
    "contexts in which the weight is on, patterns rounded: growth from one C to the next, least",
    grows,
    least=0.0,
    rests=Basis.PAPER,
    words="as the number of contexts increase, so too do the number of contexts a pathway is "
    "active for",
)
"""With more contexts, neurons are on in more of them."""


def measures(table: Table) -> tuple[Measure, ...]:
    """For each number of contexts: losses, singular values, and how many contexts gates span."""
    rows = []
    for C, one in zip(table["contexts"].to_numpy(), each_number(table), strict=True):
        share = one["share"].mean("seed").to_numpy()[: int(C)]
        beside = {
            "follows": f"another seed of the ReLU network: {mean_and_max(floor(one, 'relu'))}",
            "span": f"shares of 1, …, {C} contexts: " + ", ".join(f"{p:.0%}" for p in share),
        }
        rows += noted({name: only(name, int(C)) for name in MEASURES}, beside)
        rows.append(
            stated(
                f"closed-{C}",
                f"C = {C}: ReLU networks against the closed forms of App. F and G, corrected, "
                "from the mean start",
                "reported: the common pathway by itself, the others on its residual",
                mean_and_max(gaps(one, "relu", "closed")),
            )
        )
    if table.sizes["contexts"] > 1:
        rows.append(GROWS)
    return tuple(rows)


def draw(table: Table) -> Picture:
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
    light = {"linewidth": 2.2, "color": COLOURS["simulation"]}
    for letter, column, C in zip(ascii_lowercase, axes.T, contexts, strict=False):
        one = table.sel(contexts=C)
        unit = float(one["relu"][:, 0].mean())
        loss = {n: one[n].mean("seed") / unit for n in ("relu", "gated", "predicted", "closed")}
        top, middle, low = column
        top.plot(step, loss["relu"], color=COLOURS["relu"], linewidth=4.5, label="ReLU network")
        top.plot(step, loss["gated"], label="ReLN", **light)
        top.plot(step, loss["predicted"], label="race", **dashes)
        top.plot(step, loss["closed"], label="closed form", **dots)
        top.set(title=f"({letter}1) loss, C = {C}", ylim=(0, 1.04))
        for number, ax, name in ((2, middle, "common"), (3, low, "others")):
            ax.set_title(f"({letter}{number}) {'contextual' if name == 'others' else name}")
            ends = {
                "ReLN": ax.plot(step, one[name].mean("seed"), **light),
                "race": ax.plot(step, one[f"{name}_predicted"].mean("seed"), **dashes),
                "closed form": ax.plot(step, one[f"{name}_closed"], **dots),
            }
            if contexts[0] == C and name == "others":
                handles = [lines[0] for lines in ends.values()]
                ax.legend(handles, list(ends), loc="upper left", fontsize=6, handlelength=2)
            ax.set_ylim(0, None)
        low.set_xlabel("epoch")
    for ax, label in zip(
        axes[:, 0],
        ("loss / initial loss", "singular values", "singular values"),
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
    measures=measures,
)
