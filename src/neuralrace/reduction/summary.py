"""A race in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralrace.gdln import always_on
from neuralrace.reduction.basis import EXACT
from neuralrace.reduction.block import Block
from neuralrace.reduction.closed_form import SHOWN, mode_form
from neuralrace.reduction.equations import WrittenMode, conserved
from neuralrace.reduction.lumping import block_system

if TYPE_CHECKING:
    from neuralrace.reduction.race import Race


def summary(race: Race) -> str:
    """What a person wants to know of a race: modes, variables, exactness, closed forms."""
    if not race.blocks and not race.is_exact:
        return f"Nothing is left: every coupling is below the tolerance of {race.tolerance:g}."
    if not race.blocks:
        none = "No signal: inputs and targets are uncorrelated on every path. Nothing is learned."
        return "\n".join([none, *always_on(race.arch, race.data)])
    scalar = sum(block.is_scalar for block in race.blocks)
    many = "s" * (len(race.blocks) != 1)
    head = f"{len(race.blocks)} independent block{many}, {scalar} of them scalar modes"
    if not race.reduces:
        head = "does not reduce (one block holds all that can be learned), and solving it is"
    kind = f"exact (no coupling above {EXACT:.0e})"
    if not race.is_exact:
        kind = f"approximate: couplings up to {race.residual:.1e} dropped"
    lines = [f"{head}{';' if race.reduces else ''} {kind}."]
    lines += [f"  {_mode(block)}" for block in race.blocks[:SHOWN]]
    if len(race.blocks) > SHOWN:
        lines.append(f"  … and {len(race.blocks) - SHOWN} more")
    quiet = {v: n for v, n in race.silent.items() if n}
    if quiet:
        shown = [f"{v} {n}" for v, n in list(quiet.items())[:SHOWN]]
        rest = f", … ({sum(quiet.values())} in all)" if len(quiet) > SHOWN else ""
        lines.append("silent directions: " + ", ".join(shown) + rest)
    if race.constant > 1e-12:
        lines.append(f"loss that cannot be learned: {race.constant:.4g}")
    lines += always_on(race.arch, race.data)
    if race.failures:
        lines.append("MHS Assumption 2.1.1 (statistics diagonal in shared bases) fails:")
        lines += [f"  {failure}" for failure in race.failures[:SHOWN]]
    return "\n".join(lines)


def _mode(block: Block) -> str:
    """One line: what the block is, its merged variables, whether it has a closed form."""
    found = block_system(block)
    if found is None:
        return f"{block}; {sum(w.size for w in block.aligned.values())} variables, not merged"
    system, start = found
    mode = WrittenMode(block, system, start, None)
    kept = conserved(mode)
    if len(mode.variables) <= FEW:
        parts = [str(block), *(str(v) for v in mode.variables)]
        parts += [f"conserved: {q}" for q in kept]
    else:
        parts = [str(block), f"{len(mode.variables)} variables, {len(kept)} conserved quantities"]
    degree = int(system.powers.sum(axis=1).max())
    small = max(SMALL, np.finfo(float).tiny ** (1 / degree))  # a long product must not vanish
    form = mode_form(system, np.full(len(start), small), mode.names)
    parts.append(f"closed form: {form.kind}" if form else "no closed form known")
    return "; ".join(parts)


FEW = 3
"""Up to so many variables of a mode are named."""

SMALL = 1e-3
"""A small equal start, from which a closed form is looked for when none is given."""
