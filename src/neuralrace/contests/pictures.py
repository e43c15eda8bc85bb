"""Pictures of contests and phase diagrams, and the colours of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.checks import entries, real_array, shown
from neuralrace.contests.outcome import KNOWN, nobody
from neuralrace.contests.times import moments
from neuralrace.contests.verdicts import ALIGNED, Kept
from neuralrace.errors import require
from neuralrace.plot import COLOURS, cycle_colour, draw_curves, mark_line, shade, style
from neuralrace.tolerances import EQUAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from neuralrace.contests.contest import Contest
    from neuralrace.contests.phases import PhaseDiagram

ORDER = (5, 3, 4, 7, 2, 6, 0, 1)
"""The style's colours in the order of candidates; pathways have them from the first on."""

FEW = 4
"""The legend of up to this number of curves stands above them."""

MARGIN, ENTRY = 0.06, 0.085
"""The parts of the height that are left free above all curves, and for each entry of a legend."""

NARROW, WIDE = 0.05, 0.2
"""Regions above the first share of the range are named, above the second by level text."""


def candidate_colours(names: Iterable[str]) -> dict[str, str]:
    """The colour of each candidate, other ones than those of pathways, simulations and ReLU.

    ```python
    >>> candidate_colours(["linear", "xor"])
    {'linear': '#D55E00', 'xor': '#7A1460'}

    ```
    """
    return {name: cycle_colour(ORDER[i % len(ORDER)]) for i, name in enumerate(names)}


def draw_contest(contest: Contest, ax: Axes | None) -> Axes:
    """See `Contest.plot`."""
    check, colours = contest.checked, candidate_colours(contest.entrants)
    verdicts = {} if check is None else check.verdicts
    kept = (None, Kept.KEPT, Kept.UNKNOWN)
    label = {
        name: name if (verdict := verdicts.get(name)) in kept else f"{name} ({verdict.value})"
        for name in contest.entrants
    }
    entrants, runs = dict(contest.entrants), dict(contest.curves)
    if check is not None and check.reference is not None and check.curve is not None:
        entrants[ALIGNED], runs[ALIGNED] = check.reference, check.curve
        colours[ALIGNED], label[ALIGNED] = COLOURS["theory"], f"{ALIGNED} (reference)"
    ax = draw_curves(
        {label[name]: run.time for name, run in runs.items()},
        {label[name]: run.loss for name, run in runs.items()},
        kind="theory",
        color={label[name]: colours[name] for name in runs},
        ax=ax,
    )
    with style():
        for level in {entrant.criterion for entrant in contest.entrants.values()}:
            mark_line(ax, "criterion, reached at ●", y=level)
        for name, entrant in entrants.items():
            if np.isfinite(entrant.time):
                ax.plot([entrant.time], [entrant.criterion], "o", color=colours[name], markersize=4)
        above = MARGIN + ENTRY * len(runs)  # room for the legend, if it is not beside the axes
        if len(runs) <= FEW:
            ax.legend(loc="upper right")
        part = 1 - (above if len(runs) <= FEW else MARGIN)
        top = max((run.loss[0] for run in runs.values()), default=1.0) / part
        ax.set(ylim=(0, top), xlim=(0, moments(entrants.values())[-1]))
        first = f"first{KNOWN * contest.is_unsure}: {', '.join(label[n] for n in contest.tied)}"
        ax.set_title(first if contest.tied else nobody(contest.is_unsure))
    return ax


def draw_phases(found: PhaseDiagram, trained: object, ax: Axes | None) -> Axes:
    """See `PhaseDiagram.plot`, over one parameter."""
    curves = {
        name: np.where(np.isfinite(each), each, np.nan) for name, each in found.measured.items()
    }
    colours = candidate_colours(curves)
    ylabel = f"strength at {found.criterion}" if found.is_of_paths else "learning time"
    ax = draw_curves(found.values, curves, kind="theory", ylabel=ylabel, color=colours, ax=ax)
    with style():
        _draw_regions(ax, found, colours)
        not_kept = _not_kept(found)
        for index, (low, high) in enumerate(not_kept):
            label = "winner not kept by ReLU networks" if index == 0 else None
            ax.axvspan(
                low, high, facecolor="none", edgecolor="0.75", hatch="//", linewidth=0.5,
                zorder=0.5, label=label,
            )  # fmt: skip
        if trained is not None:
            _draw_trained(ax, trained)
        if trained is not None or not_kept:
            ax.legend(loc="upper right", bbox_to_anchor=(1.0, 0.93))  # below the marks
        ax.set(xlabel=found.parameter, xlim=(found.values[0], found.values[-1]))
        if _grows_by_factors(found.values):
            ax.set_xscale("log")
        if not found.is_of_paths:
            fastest = np.min(list(found.times.values()), axis=0)
            top = fastest[np.isfinite(fastest)].max(initial=0.0)
            ax.set_ylim(0, 2 * top or None)  # candidates far behind leave the picture
    return ax


def draw_map(found: PhaseDiagram, ax: Axes | None) -> Axes:
    """See `PhaseDiagram.plot`, over two parameters."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap

    names = [name for name in found.counts if name is not None]
    colours = candidate_colours(found.measured)
    winner = np.reshape([len(names) if n is None else names.index(n) for n in found.winners],
                        found.shape)  # fmt: skip
    each = [shade(colours[name], (0.35, 0.75)[i % 2]) for i, name in enumerate(names)]
    (x, across), (y, up) = found.axes.items()
    with style():
        ax = plt.subplots()[1] if ax is None else ax
        ax.set(xlabel=x, ylabel=y)
        if _grows_by_factors(across):
            ax.set_xscale("log")
        if _grows_by_factors(up):
            ax.set_yscale("log")
        ax.pcolormesh(
            _edges(across), _edges(up), winner.T,
            cmap=ListedColormap([*each, "white"]), vmin=-0.5, vmax=len(names) + 0.5,
        )  # fmt: skip
        places = [
            (c.value, c.at[y]) if c.along == x else (c.at[x], c.value) for c in found.crossovers
        ]
        if places:
            ax.plot(*np.transpose(places), "o", color="0.1", markersize=2, label="boundary")
        for k, name in enumerate([*names, "nobody"]):
            inside = np.argwhere(winner == k)
            if not len(inside):
                continue
            middle = np.abs(inside - inside.mean(axis=0)).sum(axis=1).argmin()
            i, j = inside[middle]
            ax.annotate(
                f"{name} {'leads' if found.is_of_paths else 'first'}",
                (across[i], up[j]),
                ha="center",
                va="center",
                fontsize="small",
                bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.0},
            )
    return ax


def _grows_by_factors(values: np.ndarray) -> bool:
    """Whether values grow by equal factors, as those of `np.geomspace`."""
    if len(values) < 3 or values[0] <= 0:
        return False
    factors = values[1:] / values[:-1]
    return bool(np.ptp(factors) < EQUAL * factors[0] and factors[0] > 1 + EQUAL)


def _edges(values: np.ndarray) -> np.ndarray:
    """The edges of cells around values: half way to their neighbours, by size or by factor."""
    plain = not _grows_by_factors(values)
    at = values if plain else np.log(values)
    middle = (at[1:] + at[:-1]) / 2
    ends = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return ends if plain else np.exp(ends)


def _draw_regions(ax: Axes, found: PhaseDiagram, colours: Mapping[str, str]) -> None:
    """Shade and name where each candidate is first, and mark where two are equal."""
    first, last = found.values[0], found.values[-1]
    for low, high in pairwise([first, *(c.value for c in found.crossovers), last]):
        winner = found.winner_at((low + high) / 2)
        if winner is not None:
            ax.axvspan(low, high, color=shade(colours[winner], 0.85), linewidth=0, zorder=0)
        share, unsure = (high - low) / (last - first), found.is_unsure(low, high)
        learner = f"candidate {'is known to learn' if unsure else 'learns'}"
        if share > NARROW:
            ax.annotate(
                f"{', '.join([winner, *found.equals(low, high)])} first"
                if winner
                else f"no {'path is known' if found.is_of_paths else learner}",
                ((low + high) / 2, 0.0),
                (0, 3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize="small",
                rotation=0 if share > WIDE else 90,
                color=shade(colours[winner], -0.4) if winner else COLOURS["neutral"],
                bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.6},
            )
    for crossover in found.crossovers:
        what = "equal at" if crossover.below and crossover.above else "learned up to"
        what = what if crossover.below else "learned from"
        text = f"{what} {found.parameter} = {crossover.value:.4g}"
        late = crossover.value - first > 0.6 * (last - first)
        mark_line(ax, text, x=crossover.value, before=late)


def _not_kept(found: PhaseDiagram) -> list[tuple[float, float]]:
    """The ranges of the parameter, around values in `values`, where the winner is not kept."""
    middles = (found.values[1:] + found.values[:-1]) / 2
    ends = [float(v) for v in (found.values[0], *middles, found.values[-1])]
    ranges: list[tuple[float, float]] = []
    for low, high, kept in zip(ends, ends[1:], found.checked or (), strict=False):
        if kept is False and ranges and ranges[-1][1] == low:
            ranges[-1] = (ranges[-1][0], high)
        elif kept is False:
            ranges.append((low, high))
    return ranges


def _draw_trained(ax: Axes, trained: object) -> None:
    fix = "pass trained=(values, times), with one row of times per value and one column per seed"
    pair = entries("trained", trained, fix)
    require(len(pair) == 2, "trained must be a pair", got=shown(trained), wanted="two", fix=fix)
    values, times = (real_array("trained", each, fix=fix) for each in pair)
    require(
        values.ndim == 1 and times.ndim == 2 and len(values) == len(times),
        "the times of trained networks do not fit their values",
        got=f"values of shape {values.shape}, times of shape {times.shape}",
        wanted="(V,) and (V, seeds)",
        fix=fix,
    )
    ax.plot(
        np.repeat(values, times.shape[1]),
        times.ravel(),
        "o",
        color=COLOURS["relu"],
        markeredgecolor=COLOURS["theory"],
        markeredgewidth=0.8,
        markersize=4,
        clip_on=False,
        label="ReLU networks",
    )
