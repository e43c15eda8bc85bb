"""A contest in words: who is first, a table of all, and what a ReLU network would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.contests.times import Entrant, initial_loss
from neuralrace.contests.verdicts import ALIGNED
from neuralrace.text import table_lines

if TYPE_CHECKING:
    from neuralrace.contests.contest import Contest

COLUMNS = (
    "candidate",
    "time",
    "later by",
    "strength",
    "learns",
    "implementable",
    "kept",
    "reduction",
)
"""The columns of a printed contest.

`learns` is shown where some candidate cannot learn all, `implementable` and `kept` after a check.
"""

ZERO = "½⟨‖y‖²⟩"
"""The loss of a network whose output is zero."""

UNCHECKED = "Not checked: would a ReLU network keep these gates? Ask check()."
"""The last line of a contest before its check."""

KNOWN = " of those whose time is known"
"""What is added to a winner where the time of another candidate is not known."""

WORTH = 0.05
"""A lead at other criteria is told if it spans at least this part of the criterion's range."""

ALL = 0.995
"""A candidate that can learn this part of the loss is said to learn all of it."""


def contest_text(found: Contest) -> str:
    """The lines of `print(contest)`: what was computed so far, and nothing else."""
    order = sorted(found.times, key=lambda n: (n not in found.tied, found.times[n]))
    shown = {name: found.entrants[name] for name in order}
    check = found.checked
    if ALIGNED not in shown and check is not None and check.reference is not None:
        shown[ALIGNED] = check.reference
    lines = [_first(found), *(_table(found, shown) if shown else ())]
    levels = _levels(shown)
    if levels:
        at = f"{found.rule.criterion:g} of {ZERO}, " * found.rule.relative
        named = " / ".join(f"{level:.4g}" for level in levels)
        lines += [f"criterion: {at}loss {named}", f"start: {found.start}"]
    lines += _about_criterion(found)
    lines += [
        f"{name}: when it learns is not known: {entrant.unknown}."
        for name, entrant in shown.items()
        if entrant.is_unknown
    ]
    rough = [name for name, entrant in shown.items() if entrant.starts_roughly]
    if rough:
        lines.append(
            f"{', '.join(rough)}: started from weights that are not decoupled, through paths of "
            "three edges or more, so that times are approximate."
        )
    if check is None:
        return "\n".join([*lines, UNCHECKED])
    others = [name for name in order if name not in (found.winner, ALIGNED)]
    lines += check.sentences(found.winner)
    lines += [f"{name}: {check.describe(name)}." for name in others]
    return "\n".join(lines)


def _levels(entrants: Mapping[str, Entrant]) -> list[float]:
    """The criteria of all entrants; relative ones differ by rounding, which does not count."""
    return sorted({float(f"{entrant.criterion:.9g}") for entrant in entrants.values()})


def nobody(unsure: bool) -> str:
    """What is said where no candidate is first; `unsure` if the time of some is not known."""
    return f"no candidate {'is known to reach' if unsure else 'reaches'} the criterion"


def _first(found: Contest) -> str:
    """Who is first, of those whose time is known."""
    *some, last = found.tied or ("",)
    if not last:
        said = nobody(found.is_unsure)
        return f"{said[0].upper()}{said[1:]}."
    known = KNOWN * found.is_unsure
    if some:
        return f"{', '.join(some)} and {last} are first{known}, at the same time."
    return f"{last} is first{known}."


def _table(found: Contest, shown: Mapping[str, Entrant]) -> list[str]:
    """A row for each candidate, and one for the reference."""
    first = np.nan if found.winner is None else found.times[found.winner]
    learned = {name: entrant.learns for name, entrant in shown.items()}
    check = found.checked
    rows = []
    for name, entrant in shown.items():
        margin = 0.0 if name in found.tied else entrant.time / first - 1
        share = np.nan if check is None else check.kept.get(name, np.nan)
        can = None if check is None else check.implementable.get(name)
        how = "exact" if entrant.race.is_exact else f"residual {entrant.race.residual:.1e}"
        how += "; reference" if name not in found.entrants else ""
        how += "; approximate start" if entrant.starts_roughly else ""
        rows.append(
            (
                name,
                f"{entrant.time:.5g}" if np.isfinite(entrant.time) else entrant.lateness,
                f"{100 * margin:.1f} %" if np.isfinite(margin) else "–",
                f"{entrant.strength:.4g}",
                f"{100 * learned[name]:.0f} %" if min(learned.values()) < ALL else "",
                "" if check is None else {True: "yes", False: "no", None: "–"}[can],
                "" if check is None else "–" if np.isnan(share) else f"{share:.2f}",
                f"{how}; {entrant.method}",
            )
        )
    return table_lines(COLUMNS, rows, right=COLUMNS[1:-1])


def _about_criterion(found: Contest) -> list[str]:
    """What depends on the criterion: a winner that cannot learn all, and who leads elsewhere."""
    lines = []
    winner = found.winner
    if winner is not None and found.entrants[winner].learns < ALL:
        part = 100 * found.entrants[winner].learns
        lines.append(f"{winner} can learn only {part:.0f} % of the loss, however long it learns.")
    if winner is None or len(_levels(found.entrants)) > 1:
        return lines
    level = found.entrants[winner].criterion
    every = found.followed
    least = WORTH * (every[0].high - every[-1].low) if every else 0.0
    others = [
        each for each in every if each.name not in found.tied and each.high - each.low >= least
    ]
    below = [each for each in others if each.high <= level]
    above = [each for each in others if each.low >= level]
    whole, of = 1.0, ""
    if found.rule.relative:
        whole, of = initial_loss(found.entrants[winner].race), f" of {ZERO}"
    return lines + [
        f"With a criterion between {each.low / whole:.3g} and {each.high / whole:.3g}{of}, "
        f"{each.name} would be first."
        for each in (*below[:1], *above[-1:])
    ]
