"""A race in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.gdln import always_on
from neuralrace.reduction.blocks.block import Block
from neuralrace.reduction.equations.mode_form import SHOWN, mode_form
from neuralrace.reduction.equations.symbols import WrittenMode, conserved_forms, written_mode
from neuralrace.text import table_lines

if TYPE_CHECKING:
    from neuralrace.reduction.race import Race


HEADINGS = ("block", "directions", "s", "variables", "conserved", "closed form")
"""The columns of the table of modes; empty ones are left out."""

LEGEND = "s: largest singular value of Σ^yx in the block; B: a variable that its edges share"
"""What the letters of the table mean."""

ALL = "print(race.describe(full=True)) names all variables"
"""How to see the variables of modes that have many."""

DIRECTIONS = "in a block that is not a mode, B is a direction of edge weights: race.variables()"
"""The meaning of a variable where the edges have matrices."""

CONFLICT = "paths with conflicting signs: a hidden node needs more than one neuron"
"""The note on blocks that are not modes although all their statistics are diagonal."""

FEW = 3
"""The number of variables of a mode that are shown by default."""

RARE = 0.2
"""Targets of an output that are zero on at most this share of the samples need no remark."""

SMALL = 1e-3
"""The small equal start for which closed forms are listed if no start is given."""

SIMPLE = 1000
"""A coefficient is written as a fraction with a denominator up to this."""

SAME_NUMBER = 1e-9
"""How close, relatively, that fraction must be to the coefficient."""


def summary(race: Race, full: bool = False) -> str:
    """A race in words: its modes, variables, exactness and closed forms."""
    if not race.blocks and not race.is_exact:
        return (
            f"No block remains: every coupling is below the tolerance of {race.tolerance:g}. What "
            "can be learned was dropped."
        )
    if not race.blocks:
        none = "No signal: inputs and targets are uncorrelated on every path. Nothing is learned."
        return "\n".join([none, *_about_gates(race)])
    shown = len(race.blocks) if full else SHOWN
    count, scalar = len(race.blocks), sum(block.is_scalar for block in race.blocks)
    head = f"{count} independent block{'s' * (count != 1)}, {_how_many_scalar(scalar, count)}"
    if not race.reduces:
        head = "does not reduce (one block holds all that can be learned), and solving it is"
    lines = [f"{head}{';' if race.reduces else ''} {race.exactness}."]
    rows = [row for block in race.blocks[:shown] for row in _rows(block, race.is_exact, full)]
    lines += table_lines(HEADINGS, rows)
    if len(race.blocks) > shown:
        lines.append(f"… and {len(race.blocks) - shown} more")
    lines.append(LEGEND)
    if any(row[3].endswith(" variables") for row in rows):
        lines.append(ALL)
    if full and scalar < len(race.blocks):
        lines.append(DIRECTIONS)
    quiet = {v: n for v, n in race.silent.items() if n}
    if quiet:
        nodes = list(quiet.items()) if full else list(quiet.items())[:SHOWN]
        rest = f", … ({sum(quiet.values())} in all)" if len(quiet) > len(nodes) else ""
        lines.append("silent directions: " + ", ".join(f"{v} {n}" for v, n in nodes) + rest)
    if race.constant:
        lines.append(f"loss outside all blocks: {race.constant:.4g}")
    if race.dropped_loss:
        lines.append(
            f"loss that the tolerance dropped: {race.dropped_loss:.4g}; it can be learned, and "
            "this race does not know when"
        )
    lines += _about_gates(race)
    conflicts = [block.name for block in race.blocks if block.has_sign_conflict]
    if conflicts:
        more = f", … and {len(conflicts) - shown} more" if len(conflicts) > shown else ""
        lines.append(f"{CONFLICT}: {', '.join(conflicts[:shown])}{more}")
    if race.failures:
        lines.append("MHS Assumption 2.1.1 (statistics diagonal in shared bases) fails:")
        lines += [f"  {failure}" for failure in race.failures[:shown]]
    return "\n".join(lines)


def _about_gates(race: Race) -> list[str]:
    """Remarks on unusual gates: none at all, or some that are never on."""
    gates = race.data.gates
    off = [name for name, gate in gates.items() if not np.asarray(gate).any()]
    they = "they learn" if len(off) > 1 else "it learns"
    never = [f"never on, so that {they} nothing: {', '.join(off)}"] if off else []
    return [*always_on(race.arch, race.data), *never, *_silenced(race)]


def _silenced(race: Race) -> list[str]:
    """Outputs that are on where their targets are zero, in a network of several outputs."""
    data, found = race.data, []
    for node in race.arch.outputs if len(race.arch.outputs) > 1 else ():
        zero = ~np.asarray(data.y[node]).any(axis=1)
        share = float(np.asarray(data.probability)[zero].sum())
        if node in data.gates or not RARE < share < 1:
            continue
        found.append(
            f"{node} is on, and its target zero, on {100 * share:.0f} % of the samples: it is "
            "trained to be zero there. If it is not queried there, give it a gate of 0"
        )
    return found


def _how_many_scalar(scalar: int, count: int) -> str:
    """How many of the blocks are scalar modes, in words."""
    if scalar == count:
        return "a scalar mode" if count == 1 else "all of them scalar modes"
    if scalar == 0:
        return "not a scalar mode" if count == 1 else "none of them a scalar mode"
    return f"{scalar} of them {'a scalar mode' if scalar == 1 else 'scalar modes'}"


def _rows(block: Block, exact: bool, full: bool) -> list[tuple[str, ...]]:
    """The rows of a block: what it is and its first variable, then one row per further variable."""
    mode = written_mode(block, exact=exact)
    what = (block.name, _directions(block), f"{block.drive:.4g}")
    if mode is None:
        count = sum(w.size for w in block.aligned.values())
        return [(*what, f"{count} variables, not merged", "", "none known")]
    if len(mode.variables) > FEW and not full:
        return [(*what, f"{len(mode.variables)} variables", "", _kind(mode))]
    kept = [_form_in_words(form, mode.names) for form in conserved_forms(mode)]
    named = [variable.described(full) for variable in mode.variables]
    rows = [(*what, named[0], "; ".join(kept), _kind(mode))]
    return rows + [("", "", "", name, "", "") for name in named[1:]]


def _directions(block: Block) -> str:
    """How many directions the block has at its inputs and outputs."""
    return str(block).partition(": ")[2].rpartition(", s = ")[0]


def _kind(mode: WrittenMode) -> str:
    """Which closed form the mode has from small equal starts."""
    degree = int(mode.system.powers.sum(axis=1).max())
    small = max(SMALL, np.finfo(float).tiny ** (1 / degree))  # a long product must not underflow
    form = mode_form(mode.system, np.full(len(mode.names), small), mode.names)
    return form.kind if form else "none known"


def _form_in_words(form: Mapping[tuple[int, int], float], names: Sequence[str]) -> str:
    """A quadratic form in the variables, such as 7*B_1**2 - B_2**2."""
    text = ""
    for (k, m), c in form.items():
        a, b = (f"{names[i][0]}_{names[i][1:]}" for i in (k, m))
        size = Fraction(abs(c)).limit_denominator(SIMPLE)
        near = abs(float(size) - abs(c)) <= SAME_NUMBER * abs(c)
        factor = "" if near and size == 1 else f"{size if near else f'{abs(c):.6g}'}*"
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += f"{sign}{factor}{f'{a}**2' if k == m else f'{a}*{b}'}"
    return text
