"""Talk, "Decreases the time to grokking in modular arithmetic": epochs against relative scale."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.cells import where_from
from papers.figure import Figure, Picture, Setting, Settings, Table, settings_of, stated
from papers.talk.relative_scale import (
    SLIDE,
    Cells,
    Row,
    common_settings,
    early_and_late,
    ends,
    ratio_axis,
    ratio_label,
    spread_of,
    trend,
)

if TYPE_CHECKING:
    from optax import GradientTransformation

FITTED = 0.99
"""Accuracy on trained sums from which on a network has fitted them."""

GENERAL = 0.95
"""Accuracy on the other sums from which on a network generalises."""

SHOWN = 60
"""The largest number of epochs at which accuracies are kept for the curves."""

SETTINGS = common_settings(
    p=Setting(97, "the sums are taken modulo p", "ours; usual for grokking", quick=31),
    share=Setting(0.5, "share of the p² sums that are trained", "ours", quick=0.8),
    hidden=Setting(512, "hidden neurons", "ours", quick=128),
    scale=Setting(1.0, "scale of all initial weights, times Xavier's", "ours"),
    learning_rate=Setting(1e-3, "learning rate of AdamW", "ours; usual", quick=0.01),
    decay=Setting(1.0, "weight decay of AdamW", "ours; usual for grokking"),
    epochs=Setting(30_000, "steps on all trained sums", "ours", quick=1200),
    every=Setting(20, "epochs from one measurement of accuracy to the next", "ours"),
)


def sums(p: int, share: float, key: int) -> tuple[nr.Dataset, nr.Dataset]:
    """Trained and other sums a + b modulo p: both terms and the sum are one-hot rows.

    `share` of all p² pairs are trained, drawn by `key`.
    """
    first, second = map(np.ravel, np.divmod(np.arange(p * p), p))
    order = np.random.default_rng(key).permutation(p * p)
    count = round(share * p * p)
    hot = np.eye(p, dtype=np.float32)

    def chosen(rows: np.ndarray) -> nr.Dataset:
        a, b = first[rows], second[rows]
        return nr.Dataset({"a": hot[a], "b": hot[b]}, {"y": hot[(a + b) % p]})

    return chosen(order[:count]), chosen(order[count:])


def network(p: int, hidden: int) -> nr.ReLUNetwork:
    """One embedding for each term, their rectified sum, and a readout; no biases."""
    edges = {"embed_a": ("a", "h"), "embed_b": ("b", "h"), "readout": ("h", "y")}
    return nr.ReLUNetwork(nr.Architecture({"a": p, "b": p, "h": hidden, "y": p}, edges))


@functools.cache
def optimizer(rate: float, decay: float) -> GradientTransformation:
    """AdamW; made once, so that one program serves all seeds."""
    import optax

    return optax.adamw(rate, weight_decay=decay)


def train(settings: Settings, seed: int, ratios: Sequence[float]) -> list[Row]:
    """The networks of one seed at all ratios; the seed also draws which sums are trained."""
    s = settings
    trained, others = sums(s["p"], s["share"], s["key"] + seed)
    scales = [
        {"embed_a": e * s["scale"], "embed_b": e * s["scale"], "readout": late * s["scale"]}
        for e, late in map(early_and_late, ratios)
    ]
    run = nr.train_ensemble(
        network(s["p"], s["hidden"]), trained, key=s["key"], seeds=[seed], scale=scales,
        kind="xavier", optimizer=optimizer(s["learning_rate"], s["decay"]), steps=s["epochs"],
        record_every=s["every"], loss="cross_entropy", dtype="float32",
        evaluate={"trained": trained, "others": others},
    )  # fmt: skip
    epochs = np.asarray(run.steps)
    shown = np.unique(np.geomspace(1, len(epochs), SHOWN).round().astype(int)) - 1
    rows = []
    for i in range(len(ratios)):
        accuracy = {
            name: np.asarray(run.values[name]["accuracy"])[i, 0] for name in ("trained", "others")
        }
        rows.append(
            {
                "fitted": first_at(epochs, accuracy["trained"], FITTED),
                "generalised": first_at(epochs, accuracy["others"], GENERAL),
                "epochs_shown": epochs[shown].tolist(),
                **{name: _short(values[shown]) for name, values in accuracy.items()},
            }
        )
    return rows


def first_at(epochs: np.ndarray, accuracy: np.ndarray, least: float) -> int | None:
    """The first epoch with at least this accuracy; None where there is none."""
    there = np.flatnonzero(accuracy >= least)
    return int(epochs[there[0]]) if there.size else None


def _short(values: np.ndarray) -> list[float]:
    return values.astype(float).round(4).tolist()


def work(settings: Settings) -> float:
    """Multiplications and additions of a cell: three products per matrix and step."""
    s = settings
    return 6 * s["share"] * s["p"] ** 2 * 3 * s["p"] * s["hidden"] * s["epochs"]


CELLS = Cells(
    "grokking.jsonl",
    ("p", "share", "hidden", "scale", "learning_rate", "decay", "epochs", "every", "key"),
    train,
    work,
)


def compute(settings: Settings) -> Table:
    """Epochs to fit and to generalise, and accuracies over epochs, by ratio and seed."""
    rows = CELLS.rows(settings)
    table = CELLS.table(settings, ("fitted", "generalised"), rows)
    epochs = next(iter(rows.values()))["epochs_shown"]
    nothing = [np.nan] * len(epochs)
    for name in ("trained", "others"):
        table[name] = (
            ("ratio", "seed", "epoch"),
            [
                [rows.get((r, seed), {}).get(name, nothing) for seed in range(settings["seeds"])]
                for r in settings["ratios"]
            ],
        )
    return table.assign_coords(epoch=epochs)


def times(table: Table) -> Table:
    """Both times, with the last epoch in place of those that were not reached.

    Such a time is a lower bound.
    """
    found = table[["fitted", "generalised"]].fillna(float(settings_of(table)["epochs"]))
    return found.where(table["origin"] != "")


def there(table: Table) -> np.ndarray:
    """Which cells are there, by ratio and seed."""
    return table["origin"].to_numpy() != ""


def sooner(table: Table) -> np.ndarray:
    """Epochs to generalise at the largest ratio over those at the usual one, for every seed."""
    _, usual, large = ends(times(table), "generalised")
    return large / usual


def later(table: Table) -> np.ndarray:
    """Epochs to generalise at the smallest ratio over those at the usual one, for every seed."""
    small, usual, _ = ends(times(table), "generalised")
    return small / usual


def soonest(table: Table) -> np.ndarray:
    """Epochs at the ratio that is best on average over those at the usual one, for every seed."""
    reached = times(table)["generalised"].to_numpy()
    _, usual, _ = ends(times(table), "generalised")
    return reached[reached.mean(axis=1).argmin()] / usual


SOONER = Measure(
    "sooner", "epochs to generalise: a large readout and small embedding over the usual scales",
    sooner, most=1.0, words="decreases the time to grokking",
)  # fmt: skip
"""A decrease, in the talk's word: less than 1. Which scales decrease it, and against which others,
the slide does not say: the direction is inferred, and the comparison is ours, with its leeway."""

IN_ORDER = Measure(
    "in-order", "rank correlation of the ratio with the epochs to generalise, all cells",
    lambda table: trend(times(table), "generalised"), most=-0.5,
    otherwise="The time does not fall steadily with the ratio: the rank correlation is {:.2f}.",
)  # fmt: skip
"""The larger the ratio, the sooner; the bound was chosen before anything was measured."""

FITS = Measure(
    "fits", f"share of the networks with an accuracy of {FITTED} on trained sums",
    lambda table: np.isfinite(table["fitted"].to_numpy()[there(table)]).mean(), least=1.0,
    rests=Basis.PAPER,
)  # fmt: skip
"""Without this there is nothing to call grokking."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Epochs to generalise at the largest ratio against the usual one, and over all ratios."""
    reached = times(table)
    small, usual, large = ends(reached, "generalised")
    general = int(np.isfinite(table["generalised"]).sum())
    cells = int(there(table).sum())
    by_ratio = "; ".join(
        f"{ratio_label(r)}: {spread_of(reached['generalised'].sel(ratio=r).to_numpy(), '.4g')}"
        for r in table["ratio"].to_numpy()
    )
    lag = reached["generalised"] - reached["fitted"]
    return (
        *where_from(table),
        FITS,
        stated(
            "generalised",
            f"cells with an accuracy of {GENERAL} on the other sums", "reported; in the others, "
            "the last epoch counts as the time", f"{general} of {cells}",
        ),
        stated(
            "by-ratio", "epochs to generalise, by readout over embedding", "reported", by_ratio,
        ),
        stated(
            "lag",
            "epochs from fitting to generalising: smallest ratio, usual, largest", "reported",
            ", ".join(spread_of(v, ".4g") for v in ends(lag.to_dataset(name="lag"), "lag")),
        ),
        replace(SOONER, beside=f"over seeds {spread_of(large / usual)}"),
        stated(
            "seeds",
            "seeds in which a large readout and small embedding generalise sooner than usual",
            "all", f"{(large < usual).sum()} of {np.isfinite(large).sum()}",
            float((large < usual).all()), least=1, rests=Basis.PAPER,
        ),
        stated(
            "reverse",
            "epochs to generalise: a small readout and large embedding over the usual scales",
            "reported", spread_of(small / usual),
        ),
        IN_ORDER,
    )  # fmt: skip


def draw(table: Table) -> Picture:
    """Accuracies over epochs at three ratios; epochs to fit and to generalise against the ratio."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9))
    _draw_courses(table, left)
    _draw_times(table, right)
    letter_panels(figure)
    return figure


LOOKS = (("#D55E00", "s"), ("0.4", "o"), ("#0072B2", "^"))
"""Colour and marker of the smallest ratio, the usual one and the largest."""


def _draw_courses(table: Table, ax: Any) -> None:
    ratios = table["ratio"].to_numpy()
    three = ratios.argmin(), np.abs(np.log(ratios)).argmin(), ratios.argmax()
    epoch = np.maximum(table["epoch"].to_numpy(), 1)
    for i, (colour, marker) in zip(three, LOOKS, strict=True):
        for name, width in (("trained", 1.5), ("others", 1.6)):
            ax.plot(
                epoch, table[name].isel(ratio=i).mean("seed").to_numpy(), color=colour,
                linewidth=width, linestyle="-" if name == "others" else ":", marker=marker,
                markersize=3.5, markevery=0.2 if name == "others" else [],
                label=ratio_label(ratios[i]) if name == "others" else None,
            )  # fmt: skip
    ax.plot([], [], color="0.2", linestyle=":", linewidth=1.5, label="trained sums")
    ax.set(xscale="log", xlabel="epoch", ylabel="accuracy", ylim=(-0.02, 1.04))
    ax.set_title("trained sums and others")
    ax.legend(title="readout / embedding", loc="best")


def _draw_times(table: Table, ax: Any) -> None:
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    reached = times(table)
    ratios = table["ratio"].to_numpy()
    for name, colour, marker, label in (
        ("fitted", "0.4", "o", f"trained sums: {100 * FITTED:g} % right"),
        ("generalised", "#0072B2", "^", f"other sums: {100 * GENERAL:g} % right"),
    ):
        values = np.maximum(reached[name].to_numpy(), 1)
        ax.plot(ratios, values.mean(axis=1), color=colour, marker=marker, label=label)
        ax.plot(ratios, values, color=colour, marker=marker, markersize=3, linestyle="", alpha=0.35)
    ax.set(yscale="log", ylabel="epochs")
    ax.set_ylim(ax.get_ylim()[0] / 1.5, 1.5 * ax.get_ylim()[1])
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_title("time to fit and to generalise")
    ratio_axis(ax, table, "readout", "embedding")
    ax.legend(loc="best")


FIGURE = Figure(
    name="talk/grokking",
    title="Grokking of modular addition against the relative scale of embedding and readout",
    states=(
        "The relative scale of the initial weights decreases the time to grokking in modular "
        f"arithmetic ({SLIDE}). That a large readout and a small embedding do so is inferred: "
        "the slide does not say which layer is larger."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
