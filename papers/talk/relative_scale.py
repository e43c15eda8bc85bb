"""Common parts of the slide "Impact of relative scale initializations in practice".

The first layer of a network without biases is divided by √r and the last one multiplied by √r.
Rectified networks are homogeneous, so that the initial outputs are the same for every ratio r. A
cell is one ratio and one seed; all ratios of a seed are trained in one program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from evidence.tables import made
from neuralrace.sweeps import CellFile
from papers.cells import origin_of, stored_rows, too_slow
from papers.cells import origins as origins
from papers.figure import Setting, Settings, Table

SLIDE = "Talk, “Impact of relative scale initializations in practice”"
"""The slide, which states two findings in words and gives no settings."""

Row: TypeAlias = Mapping[str, Any]
"""One cell: the settings that it depends on, its ratio and seed, and what was measured."""


def common_settings(**others: Setting) -> dict[str, Setting]:
    """The settings that these figures share, and further ones."""
    return others | {
        "ratios": Setting(
            (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0),
            "ratio of the last layer's scale to the first one's, at equal product; 1: as usual",
            "ours",
            quick=(1 / 64, 1.0, 64.0),
        ),
        "seeds": Setting(5, "repetitions", "ours", quick=2),
        "key": Setting(0, "random key of the draw", "ours"),
        "stored": Setting(
            True, "read cells that were measured on a GPU, where there are any", "ours", quick=False
        ),
        "cells": Setting(
            None, "file in which computed cells are kept, to go on from", "ours"
        ),
        "slow": Setting(False, "compute at full size even without a GPU", "ours", quick=True),
    }  # fmt: skip


def early_and_late(ratio: float) -> tuple[float, float]:
    """The factors of the first and of the last layer; their product is 1."""
    return ratio**-0.5, ratio**0.5


@final
@dataclass(frozen=True)
class Cells:
    """How the cells of a figure are made.

    `file` is where those measured on a GPU are stored; `depends` names the settings that a cell
    depends on; `train(settings, seed, ratios)` gives one row per ratio; `work(settings)` counts
    the multiplications and additions of a cell, roughly.
    """

    file: str
    depends: tuple[str, ...]
    train: Callable[[Settings, int, Sequence[float]], list[Row]]
    work: Callable[[Settings], float]

    def rows(self, settings: Settings) -> dict[tuple[float, int], Row]:
        """Every cell by ratio and seed: read where it is stored, computed where it is not.

        Without a GPU, cells that would take long are left out where others are stored.
        """
        wanted = json.loads(json.dumps({name: settings[name] for name in self.depends}))
        file = CellFile(settings["cells"])
        there = tuple(file)
        there += stored_rows("talk", self.file) if settings["stored"] else ()
        places = [(r, seed) for seed in range(settings["seeds"]) for r in settings["ratios"]]
        found = {
            (row["ratio"], row["seed"]): row
            for row in reversed(there)
            if all(row.get(name) == value for name, value in wanted.items())
        }
        found = {place: found[place] for place in places if place in found}
        rest = [place for place in places if place not in found]
        if rest and not settings["slow"]:
            refusal = too_slow(self.work(settings) * len(rest), len(rest))
            if refusal is not None and not found:
                raise refusal
            rest = [] if refusal is not None else rest
        for seed in sorted({seed for _, seed in rest}):
            ratios = [r for r, s in rest if s == seed]
            for ratio, row in zip(ratios, self.train(settings, seed, ratios), strict=True):
                cell, origin = wanted | {"ratio": ratio, "seed": seed}, made()
                file.add(cell, row, **origin)
                found[ratio, seed] = json.loads(json.dumps({**cell, **row, **origin}))
        return found

    def table(
        self, settings: Settings, names: Sequence[str], rows: Mapping[tuple[float, int], Row]
    ) -> Table:
        """Numbers of all cells by ratio and seed, NaN where there is none, and their origins."""
        import xarray

        ratios, seeds = settings["ratios"], range(settings["seeds"])
        cell = lambda r, s, name: (rows.get((r, s)) or {}).get(name)
        number = lambda value: np.nan if value is None else float(value)
        numbers = {
            name: (("ratio", "seed"), [[number(cell(r, s, name)) for s in seeds] for r in ratios])
            for name in names
        }
        places = [[origin_of(rows[r, s]) if (r, s) in rows else "" for s in seeds] for r in ratios]
        table = xarray.Dataset(
            {**numbers, "origin": (("ratio", "seed"), places)}, {"ratio": list(ratios)}
        )
        return table.assign_attrs(missing=len(ratios) * len(seeds) - len(rows))


def ends(table: Table, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A number of every seed at the smallest ratio, at the one nearest to 1, and at the largest."""
    ratios = table["ratio"].to_numpy()
    values = table[name].to_numpy()
    middle = int(np.abs(np.log(ratios)).argmin())
    return values[ratios.argmin()], values[middle], values[ratios.argmax()]


def trend(table: Table, name: str) -> float:
    """Spearman's rank correlation of a number with the ratio, over all cells and seeds."""
    from scipy.stats import spearmanr

    values = table[name].to_numpy()
    ratios = np.broadcast_to(table["ratio"].to_numpy()[:, None], values.shape)
    there = np.isfinite(values)
    if there.sum() < 3 or np.ptp(values[there]) == 0:
        return float("nan")
    found: Any = spearmanr(ratios[there], values[there])
    return float(found.statistic)


def spread_of(values: np.ndarray, form: str = ".3g") -> str:
    """Mean and standard deviation over seeds, in words."""
    return f"{np.nanmean(values):{form}} ± {np.nanstd(values):{form}}"


def ratio_label(ratio: float) -> str:
    """A ratio as a whole number or as a fraction of one."""
    return f"{ratio:g}" if ratio >= 1 else f"1/{1 / ratio:g}"


def ratio_axis(ax: Any, table: Table, last: str, first: str) -> None:
    """A logarithmic axis of ratios, with a tick at each."""
    ratios = table["ratio"].to_numpy()
    ax.set_xscale("log")
    ax.set_xticks(ratios, [ratio_label(r) for r in ratios])
    ax.minorticks_off()
    ax.set_xlabel(f"scale of the {last} over that of the {first}")
