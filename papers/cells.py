"""Cells of figures: rows of numbers that are computed, or read as they were measured on a GPU.

They are kept in a `CellFile`: the settings that a cell depends on, the numbers found, and the
device and commit they were measured with.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evidence import Basis, Measure
from neuralrace.sweeps import CellFile
from papers.figure import Table, TooSlow, stated

PATIENCE = 600.0
"""Seconds on a processor that are spent without asking."""


def stored_rows(paper: str, file: str) -> tuple[Mapping[str, Any], ...]:
    """The rows that were measured on a GPU; each names its device and commit.

    There are none where the file is missing.
    """
    return tuple(_stored(Path(__file__).parent / paper / "data" / file))


@functools.cache
def _stored(path: Path) -> CellFile:
    return CellFile(path)


def origin_of(row: Mapping[str, Any]) -> str:
    """Where a row comes from: its device and commit."""
    return ", commit ".join(row[k] for k in ("device", "commit") if k in row) or "a file of cells"


def origins(table: Table) -> str:
    """Where the cells of a table come from, each place with its number of cells."""
    places, counts = np.unique(table["origin"].to_numpy().astype(str), return_counts=True)
    each = zip(places, counts, strict=True)
    return "; ".join(f"{n} cells: {place}" for place, n in each if place)


def where_from(table: Table) -> tuple[Measure, ...]:
    """Where the numbers come from, and how many cells are missing."""
    missing = int(table.attrs["missing"])
    return (
        stated("origins", "where the numbers come from", "reported", origins(table)),
        stated(
            "missing", "cells that are neither stored nor computed here, for want of a GPU",
            "0", str(missing), float(missing == 0), least=1, rests=Basis.THEOREM,
        ),
    )  # fmt: skip


def product_speed(size: int = 1024) -> float:
    """Multiplications and additions per second in a matrix product on this processor, float32."""
    import time

    matrix = np.ones((size, size), np.float32)
    begin = time.perf_counter()
    for _ in range(3):
        _ = matrix @ matrix
    return 3 * 2 * size**3 / (time.perf_counter() - begin)


def too_slow(work: float, cells: int) -> TooSlow | None:
    """An error where there is no GPU and this work would take long here; None otherwise.

    `work` counts multiplications and additions.
    """
    import jax

    if jax.default_backend() != "cpu":
        return None
    seconds = work / product_speed()
    if seconds <= PATIENCE:
        return None
    return TooSlow(
        "this is too much for a processor without a GPU",
        got=f"{cells} cells to compute, about {_duration(seconds)} here, judging by the speed "
        "of its matrix products",
        wanted="a GPU, or a smaller version",
        fix="--quick computes it on digits in minutes; --set slow=true computes it anyway",
    )


def _duration(seconds: float) -> str:
    hours = seconds / 3600
    if hours < 1:
        return f"{seconds / 60:.0f} minutes"
    return f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
