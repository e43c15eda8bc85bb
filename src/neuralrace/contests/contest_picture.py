"""The picture of a contest: predicted losses, the criterion, and when each reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralrace.contests.colours import candidate_colours
from neuralrace.contests.outcome import KNOWN, nobody
from neuralrace.contests.verdicts import ALIGNED, Kept
from neuralrace.plot import COLOURS, draw_curves, mark_line, style
from neuralrace.tolerances import LONGER

if TYPE_CHECKING:
    import matplotlib.axes

    from neuralrace.contests.contest import Contest

FEW = 4
"""The legend of up to this number of curves stands above them."""

MARGIN, ENTRY = 0.06, 0.085
"""The parts of the height that are left free above all curves, and for each entry of a legend."""

MARKED = (Kept.NOT_KEPT, Kept.NOT_REACHED, Kept.OUTRUN)
"""What is said of a candidate in the legend."""


def draw_contest(found: Contest, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """See `Contest.plot`."""
    check = found.checked
    verdicts = {} if check is None else check.verdicts
    marks = {name: f" ({v.value})" for name, v in verdicts.items() if v in MARKED}
    named = {name: name + marks.get(name, "") for name in found.entrants}
    shown = {named[name]: entrant for name, entrant in found.entrants.items()}
    colours = dict(zip(shown, candidate_colours(found.entrants).values(), strict=True))
    if ALIGNED not in found.entrants and check is not None and check.reference is not None:
        shown[f"{ALIGNED} (reference)"] = check.reference
        colours[f"{ALIGNED} (reference)"] = COLOURS["theory"]
    reached = [entrant.time for entrant in shown.values() if np.isfinite(entrant.time)]
    times = np.linspace(0, LONGER * max(reached, default=1.0), 301)
    curves = {
        name: entrant.race.solve(times=times, start=entrant.start).loss
        for name, entrant in shown.items()
    }
    ax = draw_curves(times, curves, kind="theory", color=colours, ax=ax)
    with style():
        for level in {entrant.criterion for entrant in found.entrants.values()}:
            mark_line(ax, "criterion, reached at ●", y=level)
        for name, entrant in shown.items():
            if np.isfinite(entrant.time):
                ax.plot([entrant.time], [entrant.criterion], "o", color=colours[name], markersize=4)
        above = MARGIN + ENTRY * len(curves)  # room for the legend, if it is not beside the axes
        if len(curves) <= FEW:
            ax.legend(loc="upper right")
        part = 1 - (above if len(curves) <= FEW else MARGIN)
        top = max((loss[0] for loss in curves.values()), default=1.0) / part
        ax.set(ylim=(0, top), xlim=(0, times[-1]))
        ax.set_title(
            f"first{KNOWN * found.is_unsure}: {', '.join(named[name] for name in found.tied)}"
            if found.tied
            else nobody(found.is_unsure)
        )
    return ax
