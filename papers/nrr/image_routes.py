"""Common parts of NRR Figs 7–10: cells that are computed, or read as they were measured on a GPU.

A cell is one method on one choice of routes, with all its seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

import neuralrace as nr
from evidence.tables import made as made_here
from neuralrace.sweeps import CellFile
from papers.cells import origin_of
from papers.cells import origins as origins
from papers.cells import stored_rows as rows_of_package
from papers.cells import too_slow as too_much
from papers.figure import Setting, Settings, Table, TooSlow

if TYPE_CHECKING:
    from papers.nrr.image_routing import ImageRouting

TABLES = "NRR App. D, Tables 1–5"
"""The source of settings that are the authors'."""

METHODS = ("statistics", "race", "cross")
"""Squared loss by second moments, the race of its class modes, and cross-entropy on images."""

SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""K/M of the trained routes."""


def common_settings(**others: Setting) -> dict[str, Setting]:
    """The settings that these figures share, and further ones."""
    return {
        "images": Setting(
            "mnist", "which images", "NRR §5", quick="digits",
            choices=("mnist", "digits", "cifar10"),
        ),
        "features": Setting(
            None, "file of features of your own, in place of images (`read_features`)", "ours"
        ),
        "data": Setting(None, "folder of the images; NEURALRACE_DATA if none", "ours"),
        "stored": Setting(
            True, "read cells that were measured on a GPU, where there are any", "ours", quick=False
        ),
        "cells": Setting(
            None,
            "file in which computed cells are kept, to go on from",
            "ours",
        ),
        "slow": Setting(False, "compute at full size even without a GPU", "ours", quick=True),
        "M": Setting(40, "domains on either side", "NRR Fig. 8: 40 and 100", quick=10),
        "hidden": Setting(128, "width of both hidden layers", "the authors' scripts", quick=64),
        "time": Setting(
            7500.0, "flow time: learning rate × steps / (1 − momentum)", TABLES, quick=1500.0
        ),
        "batch": Setting(
            512,
            "images of a step with cross-entropy",
            "ours; NRR: 8, at equal flow time",
            quick=32,
        ),
        "most": Setting(
            20_000, "steps after which cells with a gain above 1 end: theirs are tiny", "ours"
        ),
        "seeds": Setting(10, "repetitions of each cell", TABLES, quick=2),
        "key": Setting(0, "random key of the draw", "ours"),
    } | others  # fmt: skip


def shown_images(settings: Settings) -> str:
    """The name of the images, or the path of the features that stand in their place."""
    return settings["features"] or settings["images"]


def shared(settings: Settings, **changed: Any) -> dict[str, Any]:
    """What the cells of a figure have in common, as its settings say, and what is `changed`."""
    names = ("M", "time", "hidden", "seeds", "scale")
    given = {name: settings[name] for name in names if name in settings}
    return given | {"images": shown_images(settings)} | changed


@final
@dataclass(frozen=True)
class Cell:
    """One method on one choice of routes; `images` is a name or the path of features."""

    method: str
    K: int
    M: int
    inputs: str = "permuted"
    routes: str = "circulant"
    scale: float = 0.1
    leak: float = 1.0
    time: float = 7500.0
    hidden: int = 128
    seeds: int = 10
    images: str = "mnist"

    def is_that_of(self, row: Mapping[str, Any], *, fewer: bool = False) -> bool:
        """Whether a stored row is this cell, with at least as many seeds, or with `fewer` ones."""
        mine = {k: v for k, v in asdict(self).items() if k != "seeds"}
        own = all(row.get(k, "mnist") == v for k, v in mine.items())  # older rows name no images
        return own and (fewer or row["seeds"] >= self.seeds)


@final
@dataclass(frozen=True)
class Found:
    """The accuracy of trained and untrained routes of a cell, one of each per seed.

    `elapsed` is the flow time at which it ended, on average.
    """

    cell: Cell
    trained: np.ndarray
    untrained: np.ndarray
    origin: str
    elapsed: float


def stored_rows() -> tuple[Mapping[str, Any], ...]:
    """The rows that were measured, on a GPU or small ones on a processor.

    Each names its device and commit.
    """
    return rows_of_package("nrr", "images.jsonl")


def find_cell(
    cell: Cell, rows: Iterable[Mapping[str, Any]], *, fewer: bool = False
) -> Found | None:
    """A cell among rows, with all its seeds or the most of `fewer` ones; None if not there."""
    hits = [r for r in rows if r["method"] in METHODS and cell.is_that_of(r, fewer=fewer)]
    if not hits:
        return None
    row = max(hits, key=lambda row: min(row["seeds"], cell.seeds))
    trained, untrained = (np.array(row[k][: cell.seeds]) for k in ("trained", "untrained"))
    elapsed = float(np.mean(row.get("elapsed", cell.time)))
    return Found(cell, trained, untrained, origin_of(row), elapsed)


# ---- computing ----------------------------------------------------------------------------------


def measure(cells: Iterable[Cell], settings: Settings) -> Table:
    """All cells as one table: read where they are stored, computed where they are not.

    Without a GPU, cells that are not stored are left out where others are, unless `slow` is set.
    """
    import jax

    cells = list(dict.fromkeys(cells))
    rows = [row for row in CellFile(settings["cells"]) if row.get("key", 0) == settings["key"]]
    found = {cell: hit for cell in cells if (hit := find_cell(cell, rows)) is not None}
    stored = {}
    if settings["stored"] and settings["key"] == 0:
        there = {cell: find_cell(cell, stored_rows(), fewer=True) for cell in cells}
        stored = {cell: hit for cell, hit in there.items() if hit is not None}
    found = stored | found
    rest = [cell for cell in cells if cell not in found]
    if rest and not settings["slow"]:
        refusal = too_slow(rest)
        if refusal is not None and not found:
            raise refusal
        if refusal is not None or (stored and jax.default_backend() == "cpu"):
            rest = []
    found |= computed(rest, settings)
    table = tabled([found[cell] for cell in cells if cell in found])
    return table.assign_attrs(missing=len(cells) - table.sizes["cell"])


def computed(cells: Sequence[Cell], settings: Settings) -> dict[Cell, Found]:
    """Train every cell; each is kept in the file of cells as soon as it is done."""
    import jax

    from neuralrace.progress import progress
    from papers.nrr.routing import train_routing
    from papers.nrr.transition import MAKE

    if not cells:
        return {}
    origin = f"computed on {jax.devices()[0].device_kind}"
    fast = jax.default_backend() == "gpu"
    made = Made(settings["data"])
    found: dict[Cell, Found] = {}
    groups: dict[Cell, list[Cell]] = {}
    for cell in cells:  # one program for all routes
        groups.setdefault(replace(cell, K=0, routes=""), []).append(cell)
    with progress(len(cells), "training", "cells") as advance:
        for alike, group in groups.items():
            how: dict[str, Any] = {"steps": settings["most"]} if alike.scale > 1 else {}
            if alike.method == "cross":
                how |= {"leak": alike.leak, "products": "bfloat16" if fast else "float32"}
                how["batch_size"] = min(settings["batch"], len(made.images(alike.images).train))
            run = train_routing(
                made(alike), time=alike.time, scale=alike.scale, seeds=alike.seeds,
                hidden=alike.hidden, key=settings["key"],
                routes=[MAKE[cell.routes](cell.M, cell.K) for cell in group], **how,
            )  # fmt: skip
            ends = {k: np.asarray(run.values[k])[..., -1] for k in ("trained", "untrained")}
            for number, cell in enumerate(group):
                own = {k: v[number].astype(float).round(5) for k, v in ends.items()}
                elapsed = float(np.asarray(run.values["elapsed"])[number, ..., -1].mean())
                found[cell] = Found(cell, **own, origin=origin, elapsed=elapsed)
            keep([found[cell] for cell in group], settings)
            advance(len(group))
    return found


def keep(found: Iterable[Found], settings: Settings) -> None:
    """Add cells to the file of cells, where there is one."""
    file = CellFile(settings["cells"])
    for each in found:
        ends = {name: getattr(each, name).tolist() for name in ("trained", "untrained")}
        cell = asdict(each.cell) | {"key": settings["key"]}
        file.add(cell, ends | {"elapsed": each.elapsed}, **made_here() | {"device": each.origin})


@final
@dataclass(frozen=True)
class Made:
    """What is trained in each cell: a task or its moments, each made once."""

    data: str | None
    made: dict[Any, Any] = field(default_factory=dict)

    def images(self, name: str) -> nr.tasks.Images:
        """Images by their name, or features by their path."""
        from papers.nrr.features import read_features

        own = name not in ("mnist", "digits", "cifar10")
        read = lambda: read_features(name) if own else nr.tasks.images(cast("Any", name), self.data)
        return self._once(name, read)

    def __call__(self, cell: Cell) -> Any:
        """The task of a cell, or its moments. Of CIFAR-10, networks are shown features."""
        kind = (cell.images, cell.M, cell.inputs)
        task = self._once(kind, lambda: self._task(cell))
        if cell.method in ("cross", "authors"):
            return task
        if cell.method == "statistics":
            return self._once((*kind, "raw"), task.moments)
        white = self._once((*kind, "white"), lambda: task.moments(whiten=True))
        return white if cell.method == "white" else white.class_modes()

    def _task(self, cell: Cell) -> ImageRouting:
        from papers.nrr.features import residual_features
        from papers.nrr.image_routing import image_routing

        features = residual_features() if cell.images == "cifar10" else None
        return image_routing(
            self.images(cell.images), cell.M, 1, inputs=cell.inputs, features=features
        )

    def _once(self, name: Any, make: Callable[[], Any]) -> Any:
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]


BATCH = 512
"""Images of a step with cross-entropy."""

STEPS = {"statistics": 4000, "race": 4000, "cross": 50_000}
"""Steps to the flow time 7500 as counted on MNIST with M = 40."""

FULL = 7500.0
"""The flow time to which these counts of steps refer."""


INPUTS = {"digits": 64, "cifar10": 512}
"""Inputs of a domain; 784 of others."""


def work(cell: Cell, classes: int = 10) -> float:
    """Multiplications and additions of all steps of a cell, roughly: three products per matrix."""
    pixels = INPUTS.get(cell.images, 784)
    rows = BATCH if cell.method == "cross" else classes
    wide = classes - 1 if cell.method == "race" else pixels
    step = 6 * rows * cell.M * (wide * cell.hidden + cell.hidden**2 + 4 * classes * cell.hidden)
    return step * STEPS[cell.method] * cell.time / FULL * cell.seeds


def too_slow(cells: Sequence[Cell]) -> TooSlow | None:
    """An error where there is no GPU and the cells would take long here; None otherwise."""
    return too_much(sum(map(work, cells)), len(cells))


# ---- the table ----------------------------------------------------------------------------------


def tabled(found: Sequence[Found]) -> Table:
    """Cells as a table, one row each; `ratio` is σ₂/σ₁, `predicted` the chance of the shared mode.

    `origin` says where each row comes from, `elapsed` which share of its flow time it ran. A cell
    with fewer seeds than others is filled up with NaN.
    """
    import xarray

    from papers.nrr.transition import MAKE, shared_chance

    routes = [MAKE[f.cell.routes](f.cell.M, f.cell.K) for f in found]
    column = lambda name: ("cell", [getattr(f.cell, name) for f in found])
    names = ("method", "K", "M", "inputs", "routes", "scale", "leak", "images")
    most = max((len(f.trained) for f in found), default=0)
    filled = lambda a: np.pad(np.asarray(a, float), (0, most - len(a)), constant_values=np.nan)
    return xarray.Dataset(
        {
            **{name: column(name) for name in names},
            "share": ("cell", [f.cell.K / f.cell.M for f in found]),
            "ratio": ("cell", [nr.tasks.route_ratio(r) for r in routes]),
            "predicted": (
                "cell",
                [shared_chance(r, f.cell.hidden) for r, f in zip(routes, found, strict=True)],
            ),
            "trained": (("cell", "seed"), np.stack([filled(f.trained) for f in found])),
            "untrained": (("cell", "seed"), np.stack([filled(f.untrained) for f in found])),
            "seeds": ("cell", [len(f.trained) for f in found]),
            "elapsed": ("cell", [f.elapsed / f.cell.time for f in found]),
            "origin": ("cell", [f.origin for f in found]),
        }
    )


def rows_of(table: Table, **wanted: Any) -> Table:
    """The rows with these values."""
    keep = np.ones(table.sizes["cell"], bool)
    for name, value in wanted.items():
        keep &= table[name].to_numpy() == value
    return table.isel(cell=np.flatnonzero(keep))


def means(table: Table, name: str) -> np.ndarray:
    """The mean over seeds of every row."""
    return table[name].mean("seed").to_numpy()
