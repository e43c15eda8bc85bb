"""Common parts of NRR Figs 7–10: cells that are computed, or read as they were measured on a GPU.

A cell is one method on one choice of routes, with all its seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

import neuralrace as nr
from neuralrace.papers.cells import keep_rows, kept_rows, origin_of
from neuralrace.papers.cells import origins as origins
from neuralrace.papers.cells import stored_rows as rows_of_package
from neuralrace.papers.cells import too_slow as too_much
from neuralrace.papers.figure import Setting, Settings, TooSlow

if TYPE_CHECKING:
    import xarray

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
            "mnist", "which images", "NRR §5", quick="digits", choices=("mnist", "digits")
        ),
        "data": Setting(None, "folder of the images; NEURALRACE_DATA if none", "ours"),
        "stored": Setting(
            True, "read cells that were measured on a GPU, where there are any", "ours", quick=False
        ),
        "cells": Setting(
            None,
            "file in which computed cells are kept, to go on from; as of tools/route_images.py",
            "ours",
        ),
        "slow": Setting(False, "compute at full size even without a GPU", "ours", quick=True),
        "M": Setting(40, "domains on either side", "NRR Fig. 8: 40 and 100", quick=10),
        "hidden": Setting(128, "width of both hidden layers", "the authors' scripts", quick=32),
        "time": Setting(
            7500.0, "flow time: learning rate × steps / (1 − momentum)", TABLES, quick=500.0
        ),
        "batch": Setting(
            512,
            "images of a step with cross-entropy",
            "ours; NRR: 8, at equal flow time",
            quick=128,
        ),
        "seeds": Setting(10, "repetitions of each cell", TABLES, quick=2),
        "key": Setting(0, "random key of the draw", "ours"),
    } | others


@final
@dataclass(frozen=True)
class Cell:
    """One method on one choice of routes."""

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

    def is_that_of(self, row: Mapping[str, Any]) -> bool:
        """Whether a stored row is this cell, with at least as many seeds."""
        mine = {k: v for k, v in asdict(self).items() if k != "seeds"}
        return all(row[k] == v for k, v in mine.items()) and row["seeds"] >= self.seeds


@final
@dataclass(frozen=True)
class Found:
    """The accuracy of trained and untrained routes of a cell, one of each per seed."""

    cell: Cell
    trained: np.ndarray
    untrained: np.ndarray
    origin: str


def stored_rows() -> tuple[dict[str, Any], ...]:
    """The rows that were measured on a GPU; each names its device and commit."""
    return rows_of_package("nrr", "images.jsonl")


def find_cell(cell: Cell, rows: Iterable[Mapping[str, Any]]) -> Found | None:
    """A cell among rows; None if it is not there."""
    for row in rows:
        if row["method"] in METHODS and cell.is_that_of(row):
            trained, untrained = (np.array(row[k][: cell.seeds]) for k in ("trained", "untrained"))
            return Found(cell, trained, untrained, origin_of(row))
    return None


# ---- computing ----------------------------------------------------------------------------------


def measure(cells: Iterable[Cell], settings: Settings) -> xarray.Dataset:
    """All cells as one table: read where they are stored, computed where they are not.

    Without a GPU, cells that would take long are left out where others are stored.
    """
    cells = list(dict.fromkeys(cells))
    rows = tuple(
        row for row in kept_rows(settings["cells"])
        if (row.get("images", "mnist"), row.get("key", 0)) == (settings["images"], settings["key"])
    )  # fmt: skip
    if settings["stored"] and settings["images"] == "mnist" and settings["key"] == 0:
        rows += stored_rows()
    found = {cell: hit for cell in cells if (hit := find_cell(cell, rows)) is not None}
    rest = [cell for cell in cells if cell not in found]
    if rest and not settings["slow"] and (refusal := too_slow(rest)) is not None:
        if not found:
            raise refusal
        rest = []
    found |= computed(rest, settings)
    table = tabled([found[cell] for cell in cells if cell in found])
    return table.assign_attrs(missing=len(cells) - table.sizes["cell"])


def computed(cells: Sequence[Cell], settings: Settings) -> dict[Cell, Found]:
    """Train every cell; each is kept in the file of cells as soon as it is done."""
    import jax

    from neuralrace.dynamics import train_routing
    from neuralrace.papers.nrr.transition import MAKE
    from neuralrace.progress import progress

    if not cells:
        return {}
    images = nr.tasks.images(settings["images"], settings["data"])
    origin = f"computed on {jax.devices()[0].device_kind}"
    fast = jax.default_backend() == "gpu"
    made = Made(images)
    found: dict[Cell, Found] = {}
    groups: dict[Cell, list[Cell]] = {}
    for cell in cells:  # one program for all routes
        groups.setdefault(replace(cell, K=0, routes=""), []).append(cell)
    with progress(len(cells), "training", "cells") as advance:
        for alike, group in groups.items():
            how: dict[str, Any] = {}
            if alike.method == "cross":
                how = {"leak": alike.leak, "products": "bfloat16" if fast else "float32"}
                how["batch_size"] = min(settings["batch"], len(images.train))
            run = train_routing(
                made(alike), time=alike.time, scale=alike.scale, seeds=alike.seeds,
                hidden=alike.hidden, key=settings["key"],
                routes=[MAKE[cell.routes](cell.M, cell.K) for cell in group], **how,
            )  # fmt: skip
            ends = {k: np.asarray(run.values[k])[..., -1] for k in ("trained", "untrained")}
            for number, cell in enumerate(group):
                own = {k: v[number].astype(float).round(5) for k, v in ends.items()}
                found[cell] = Found(cell, **own, origin=origin)
            keep([found[cell] for cell in group], settings)
            advance(len(group))
    return found


def keep(found: Iterable[Found], settings: Settings) -> None:
    """Add cells to the file of cells, where there is one."""
    keep_rows(
        settings["cells"],
        (
            asdict(each.cell)
            | {k: settings[k] for k in ("images", "key")}
            | {k: getattr(each, k).tolist() for k in ("trained", "untrained")}
            | {"device": each.origin}
            for each in found
        ),
    )


@final
@dataclass(frozen=True)
class Made:
    """What is trained in each cell: a task or its moments, each made once."""

    images: nr.tasks.Images
    made: dict[Any, Any] = field(default_factory=dict)

    def __call__(self, cell: Cell) -> Any:
        """The task of a cell, or its moments."""
        task = self._once(
            (cell.M, cell.inputs),
            lambda: nr.tasks.image_routing(self.images, cell.M, 1, inputs=cell.inputs),
        )
        if cell.method == "cross":
            return task
        kind = (cell.M, cell.inputs, cell.method)
        if cell.method == "statistics":
            return self._once(kind, task.moments)
        return self._once(kind, lambda: task.moments(whiten=True).class_modes())

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


def work(cell: Cell, pixels: int = 784, classes: int = 10) -> float:
    """Multiplications and additions of all steps of a cell, roughly: three products per matrix."""
    rows = BATCH if cell.method == "cross" else classes
    wide = classes - 1 if cell.method == "race" else pixels
    step = 6 * rows * cell.M * (wide * cell.hidden + cell.hidden**2 + 4 * classes * cell.hidden)
    return step * STEPS[cell.method] * cell.time / FULL * cell.seeds


def too_slow(cells: Sequence[Cell]) -> TooSlow | None:
    """An error where there is no GPU and the cells would take long here; None otherwise."""
    return too_much(sum(map(work, cells)), len(cells))


# ---- the table ----------------------------------------------------------------------------------


def tabled(found: Sequence[Found]) -> xarray.Dataset:
    """Cells as a table, one row each; `ratio` is σ₂/σ₁, `predicted` the chance of the shared mode.

    `origin` says where each row comes from.
    """
    import xarray

    from neuralrace.papers.nrr.transition import MAKE, shared_chance

    routes = [MAKE[f.cell.routes](f.cell.M, f.cell.K) for f in found]
    column = lambda name: ("cell", [getattr(f.cell, name) for f in found])
    names = ("method", "K", "M", "inputs", "routes", "scale", "leak")
    return xarray.Dataset(
        {
            **{name: column(name) for name in names},
            "share": ("cell", [f.cell.K / f.cell.M for f in found]),
            "ratio": ("cell", [nr.tasks.route_ratio(r) for r in routes]),
            "predicted": (
                "cell",
                [shared_chance(r, f.cell.hidden) for r, f in zip(routes, found, strict=True)],
            ),
            "trained": (("cell", "seed"), np.stack([f.trained for f in found])),
            "untrained": (("cell", "seed"), np.stack([f.untrained for f in found])),
            "origin": ("cell", [f.origin for f in found]),
        }
    )


def rows_of(table: xarray.Dataset, **wanted: Any) -> xarray.Dataset:
    """The rows with these values."""
    keep = np.ones(table.sizes["cell"], bool)
    for name, value in wanted.items():
        keep &= table[name].to_numpy() == value
    return table.isel(cell=np.flatnonzero(keep))


def means(table: xarray.Dataset, name: str) -> np.ndarray:
    """The mean over seeds of every row."""
    return table[name].mean("seed").to_numpy()
