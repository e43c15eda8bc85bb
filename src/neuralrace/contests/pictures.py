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
    """See `PhaseDiagram.plot`."""
    curves = {
        name: np.where(np.isfinite(times), times, np.nan) for name, times in found.times.items()
    }
    colours = candidate_colours(curves)
    ax = draw_curves(
        found.values, curves, kind="theory", ylabel="learning time", color=colours, ax=ax
    )
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
        fastest = np.min(list(found.times.values()), axis=0)
        top = fastest[np.isfinite(fastest)].max(initial=0.0)
        ax.set(xlabel=found.parameter, xlim=(found.values[0], found.values[-1]))
        ax.set_ylim(0, 2 * top or None)  # candidates far behind leave the picture
    return ax


def _draw_regions(ax: Axes, found: PhaseDiagram, colours: Mapping[str, str]) -> None:
    """Shade and name where each candidate is first, and mark where two are equal."""
    first, last = found.values[0], found.values[-1]
    for low, high in pairwise([first, *(c.value for c in found.crossovers), last]):
        winner = found.winner_at((low + high) / 2)
        if winner is not None:
            ax.axvspan(low, high, color=shade(colours[winner], 0.85), linewidth=0, zorder=0)
        share, unsure = (high - low) / (last - first), found.is_unsure(low, high)
        if share > NARROW:
            ax.annotate(
                f"{', '.join([winner, *found.equals(low, high)])} first"
                if winner
                else f"no candidate {'is known to learn' if unsure else 'learns'}",
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
