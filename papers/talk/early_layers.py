"""Talk, "Promotes interpretability of early layers in CNNs": first filters and relative scale."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import neuralrace as nr
from evidence import Basis, Measure
from papers.cells import where_from
from papers.figure import Figure, Picture, Setting, Settings, Table, stated
from papers.talk.filters import gabor_share, low_frequency_share, of_noise
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

SHOWN = 16
"""Filters of the first seed that are kept for the picture: those with the largest energy."""

LEVELS = 127
"""Filters are kept as whole numbers from −`LEVELS` to `LEVELS`, each relative to its largest."""

MARGIN = 0.05
"""By how much a measure must differ to count; set before anything was measured."""

SHARES = {"low": low_frequency_share, "gabor": gabor_share}
"""The two measures of structure."""

SETTINGS = common_settings(
    images=Setting(
        "cifar10", "which images", f"ours; {SLIDE}: none named", quick="digits",
        choices=("cifar10", "digits"),
    ),
    data=Setting(None, "folder of the images; NEURALRACE_DATA if none", "ours"),
    channels=Setting((64, 128), "channels of the convolutions", "ours", quick=(16, 32)),
    kernels=Setting((9, 3), "widths of their kernels", "ours", quick=(5, 3)),
    strides=Setting((2, 1), "their strides", "ours", quick=(1, 1)),
    batch=Setting(256, "images of a step", "ours", quick=64),
    epochs=Setting(20, "passes over the training images", "ours", quick=30),
    learning_rate=Setting(
        1e-3, "learning rate of Adam at the start; it falls to 0 as a cosine", "ours; usual"
    ),
)  # fmt: skip


def network(settings: Settings, image: tuple[int, ...], classes: int) -> Any:
    """The convolutional network of these settings."""
    from papers.talk.convolution import Convolutional

    names = ("channels", "kernels", "strides")
    sizes = {name: tuple(settings[name]) for name in names}
    height, width = image[-2:]
    channels = image[0] if len(image) == 3 else 1
    return Convolutional.of((channels, height, width), classes, **sizes)


def usual_scales(net: Any) -> dict[str, float]:
    """Standard deviations that keep the size of responses: √(2/fan in), and √(1/fan in) last."""
    fans = {edge: math.prod(shape[1:]) for edge, shape in net.shapes.items()}
    return {edge: math.sqrt((1 if edge == "readout" else 2) / fan) for edge, fan in fans.items()}


@functools.cache
def data_of(name: str, folder: str | None) -> tuple[nr.Dataset, nr.Dataset, tuple[int, ...]]:
    """Training and test images with mean 0 and variance 1 in every channel, and their shape."""
    images = nr.tasks.images(cast("Any", name), folder)
    channels = images.shape[0] if len(images.shape) == 3 else 1
    by_channel = images.train.reshape(len(images.train), channels, -1)
    mean, sd = (f(by_channel, axis=(0, 2), keepdims=True) for f in (np.mean, np.std))
    hot = np.eye(images.classes, dtype=np.float32)

    def dataset(rows: np.ndarray, labels: np.ndarray) -> nr.Dataset:
        x = (rows.reshape(len(rows), channels, -1) - mean) / sd
        return nr.Dataset({"x": x.reshape(rows.shape).astype(np.float32)}, {"y": hot[labels]})

    test = dataset(images.test, images.test_labels)
    return dataset(images.train, images.labels), test, tuple(images.shape)


@functools.cache
def optimizer(rate: float, steps: int) -> GradientTransformation:
    """Adam with a rate that falls to 0; made once, so that one program serves all seeds."""
    import optax

    return optax.adam(optax.cosine_decay_schedule(rate, steps))


def train(settings: Settings, seed: int, ratios: Sequence[float]) -> list[Row]:
    """The networks of one seed at all ratios, and how structured their first filters become."""
    s = settings
    trained, tested, image = data_of(s["images"], s["data"])
    net = network(s, image, trained.y["y"].shape[1])
    usual = usual_scales(net)
    pairs = [early_and_late(r) for r in ratios]
    scales = [
        usual | {"K1": usual["K1"] * early, "readout": usual["readout"] * late}
        for early, late in pairs
    ]
    steps = s["epochs"] * -(-trained.n_samples // s["batch"])
    run = nr.train_ensemble(
        net, trained, key=s["key"], seeds=[seed], scale=scales, steps=steps,
        optimizer=optimizer(s["learning_rate"], steps), batch_size=s["batch"],
        record_every=-(-steps // 6), record={"filters": first_filters}, loss="cross_entropy",
        evaluate={"test": tested}, dtype="float32",
    )  # fmt: skip
    rows = []
    for i in range(len(ratios)):
        begin, *_, final = np.asarray(run.values["filters"])[i, 0].astype(float)
        accuracy = np.asarray(run.values["test"]["accuracy"])[i, 0]
        row = {
            "accuracy": round(float(accuracy[-1]), 4),
            "loss": round(float(run.loss[i, 0, -1]), 5),
            "changed": round(changed(begin, final), 4),
        }
        for name, share in SHARES.items():
            row[name] = round(float(share(final).mean()), 4)
            row[f"{name}_at_start"] = round(float(share(begin).mean()), 4)
        rows.append(row | ({"filters": kept_filters(final)} if seed == 0 else {}))
    return rows


def first_filters(weights: Any) -> Any:
    """The kernels of the first convolution."""
    return weights["K1"]


def changed(begin: np.ndarray, final: np.ndarray) -> float:
    """1 − the cosine of the angle between the filters before and after training, all together."""
    return 1 - float((begin * final).sum() / np.linalg.norm(begin) / np.linalg.norm(final))


def kept_filters(filters: np.ndarray) -> list[Any]:
    """The filters with the largest energy as whole numbers."""
    order = np.argsort(-(filters**2).sum(axis=(1, 2, 3)))[:SHOWN]
    largest = np.abs(filters[order]).max(axis=(1, 2, 3), keepdims=True)
    return np.round(LEVELS * filters[order] / largest).astype(int).tolist()


def work(settings: Settings) -> float:
    """Multiplications and additions of a cell: three products per kernel, image and epoch."""
    channels, *sides = (3, 32, 32) if settings["images"] == "cifar10" else (1, 8, 8)
    samples = 50_000 if settings["images"] == "cifar10" else 1437
    total, sources = 0, (channels, *settings["channels"][:-1])
    names = ("channels", "kernels", "strides")
    for source, (count, kernel, stride) in zip(
        sources, zip(*(settings[n] for n in names), strict=True), strict=True
    ):
        sides = [(side - kernel) // stride + 1 for side in sides]
        total += math.prod(sides) * kernel**2 * source * count
    return 6.0 * total * samples * settings["epochs"]


CELLS = Cells(
    "early_layers.jsonl",
    ("images", "channels", "kernels", "strides", "batch", "epochs", "learning_rate", "key"),
    train,
    work,
)

NUMBERS = ("accuracy", "loss", "low", "gabor", "low_at_start", "gabor_at_start", "changed")
"""What is measured in every cell."""


def compute(settings: Settings) -> Table:
    """Structure of the first filters and accuracy by ratio and seed, and filters of the first."""
    rows = CELLS.rows(settings)
    table = CELLS.table(settings, NUMBERS, rows)
    kept = [rows.get((r, 0), {}).get("filters") for r in settings["ratios"]]
    shape = next((np.shape(one) for one in kept if one), None)
    if shape is not None:
        filled = [np.zeros(shape, int) if one is None else np.array(one) for one in kept]
        table["filters"] = (("ratio", "filter", "channel", "row", "column"), np.stack(filled))
    channels, size = 3 if settings["images"] == "cifar10" else 1, settings["kernels"][0]
    for name, share in SHARES.items():
        table[f"{name}_of_noise"] = of_noise(share, channels, size)
    return table


MEASURES = (
    ("low", "share of energy at low frequencies"),
    ("gabor", "share of energy in one Gabor function"),
)
"""What the two measures of structure are called."""


def gained(name: str) -> Callable[[Table], np.ndarray]:
    """How much larger a number is at the largest ratio than at the usual one, for every seed."""

    def gain(table: Table) -> np.ndarray:
        _, usual, large = ends(table, name)
        return large - usual

    return gain


GAINS = {
    name: Measure(
        f"{name}-gain", f"{label}: a large last and small first layer − the usual scales",
        gained(name), least=MARGIN, words="promotes interpretability of early layers",
    )
    for name, label in MEASURES
}  # fmt: skip
"""By how much the first filters become more structured."""

OVER_NOISE = {
    name: Measure(
        f"{name}-over-noise",
        f"{label}: a large last and small first layer − white noise",
        lambda table, name=name: ends(table, name)[2] - float(table[f"{name}_of_noise"]),
        least=MARGIN,
    )
    for name, label in MEASURES
}
"""Whether they are more structured than noise; added, with the same margin, when the numbers were
known."""

IN_ORDER = {
    name: Measure(
        f"{name}-in-order", f"rank correlation of the ratio with the {label}, all cells",
        lambda table, name=name: trend(table, name), least=0.5,
        otherwise=f"The {label} does not rise steadily with the ratio: the rank correlation is "
        "{:.2f}.",
    )
    for name, label in MEASURES
}  # fmt: skip
"""The larger the ratio, the more structured; the bound was chosen before anything was measured."""

AS_GOOD = Measure(
    "accuracy-gain", "test accuracy: a large last and small first layer − the usual scales",
    gained("accuracy"), least=-0.02,
    otherwise="It costs accuracy: the difference is {:+.3f}.",
)  # fmt: skip
"""Whether structure costs accuracy; the talk does not say."""


def measures(table: Table) -> tuple[Measure, ...]:
    """Both measures at the largest ratio against the usual one, and over all ratios."""
    lines = [*where_from(table)]
    for name, label in MEASURES:
        by_ratio = "; ".join(
            f"{ratio_label(r)}: {spread_of(table[name].sel(ratio=r).to_numpy())}"
            for r in table["ratio"].to_numpy()
        )
        lines += [
            stated(
                f"{name}-by-ratio",
                f"first filters, {label}, by last layer over first", "reported; white noise: "
                f"{float(table[f'{name}_of_noise']):.3g}, before training: "
                f"{spread_of(table[f'{name}_at_start'].to_numpy())}", by_ratio,
            ),
            replace(GAINS[name], beside=f"over seeds {spread_of(gained(name)(table))}"),
            stated(
                f"{name}-seeds", f"seeds in which the {label} is larger by {MARGIN} or more", "all",
                f"{(gained(name)(table) >= MARGIN).sum()} of {table.sizes['seed']}",
                np.min(gained(name)(table)), least=MARGIN, rests=Basis.PAPER,
            ),
            OVER_NOISE[name],
            IN_ORDER[name],
        ]  # fmt: skip
    accuracy = "; ".join(
        f"{ratio_label(r)}: {spread_of(table['accuracy'].sel(ratio=r).to_numpy())}"
        for r in table["ratio"].to_numpy()
    )
    changes = ", ".join(spread_of(v) for v in ends(table, "changed"))
    return (
        *lines,
        stated("accuracy", "test accuracy, by last layer over first", "reported", accuracy),
        AS_GOOD,
        stated(
            "changed",
            "1 − cosine of first filters before and after: smallest ratio, usual, largest",
            "reported", changes,
        ),
    )  # fmt: skip


def draw(table: Table) -> Picture:
    """First filters at three ratios; both measures and the accuracy against the ratio."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import letter_panels

    figure = plt.figure(figsize=(7.2, 5.2))
    grid = figure.add_gridspec(2, 6, height_ratios=(1.0, 1.0))
    ratios = table["ratio"].to_numpy()
    three = ratios.argmin(), int(np.abs(np.log(ratios)).argmin()), ratios.argmax()
    for place, i in enumerate(three):
        ax = figure.add_subplot(grid[0, 2 * place : 2 * place + 2])
        if "filters" in table:
            ax.imshow(mosaic(table["filters"].isel(ratio=i).to_numpy()), interpolation="nearest")
        ax.set(xticks=(), yticks=())
        ax.spines[:].set_visible(False)
        ax.set_title(f"last / first layer = {ratio_label(ratios[i])}")
    left, right = figure.add_subplot(grid[1, :3]), figure.add_subplot(grid[1, 3:])
    for (name, label), colour, marker in zip(MEASURES, ("#0072B2", "#D55E00"), "^s", strict=True):
        _draw_measure(left, table, name, colour, marker, label.removeprefix("share of energy "))
        noise = float(table[f"{name}_of_noise"])
        left.axhline(noise, color=colour, linestyle=":", linewidth=0.9)
    left.plot([], [], color="0.4", linestyle=":", linewidth=0.9, label="white noise")
    left.set(ylabel="share of energy", ylim=(0, 1))
    left.set_title("structure of the first filters")
    left.legend(loc="best")
    _draw_measure(right, table, "accuracy", "0.3", "o", "test images")
    right.set(ylabel="accuracy on test images")
    right.set_title("accuracy")
    for ax in (left, right):
        ratio_axis(ax, table, "last layer", "first")
    letter_panels(figure)
    return figure


def _draw_measure(ax: Any, table: Table, name: str, colour: str, marker: str, label: str) -> None:
    ratios, values = table["ratio"].to_numpy(), table[name].to_numpy()
    ax.plot(ratios, np.nanmean(values, axis=1), color=colour, marker=marker, label=label)
    ax.plot(ratios, values, color=colour, marker=marker, markersize=3, linestyle="", alpha=0.35)


def mosaic(filters: np.ndarray) -> np.ndarray:
    """Filters side by side as one picture from 0 to 1, grey or in colour; 0 is the middle."""
    count, channels, size, _ = filters.shape
    columns = 4
    rows = -(-count // columns)
    picture = np.ones((rows * (size + 1) - 1, columns * (size + 1) - 1, 3))
    for i, each in enumerate(filters):
        top, left = (size + 1) * (i // columns), (size + 1) * (i % columns)
        shown = 0.5 + each / (2 * LEVELS)
        three = shown if channels == 3 else np.repeat(shown[:1], 3, axis=0)
        picture[top : top + size, left : left + size] = np.moveaxis(three, 0, -1)
    return np.clip(picture, 0, 1)


FIGURE = Figure(
    name="talk/early_layers",
    title="First filters of a convolutional network against the relative scale of its layers",
    states=(
        "The relative scale of the initial weights promotes the interpretability of early layers "
        f"in convolutional networks ({SLIDE}). That a small first and a large last layer do so is "
        "inferred: the slide does not say which layer is larger, nor how it is measured."
    ),
    settings=SETTINGS,
    compute=compute,
    draw=draw,
    measures=measures,
)
