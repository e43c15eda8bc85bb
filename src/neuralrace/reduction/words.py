"""A race in words and in LaTeX: its blocks, how far to trust them, and what its letters mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.gdln import always_on
from neuralrace.reduction.block import Block
from neuralrace.reduction.merging import recognised
from neuralrace.reduction.mode_form import SHOWN, mode_form
from neuralrace.reduction.symbols import (
    NAMED,
    SIMPLE,
    Form,
    WrittenMode,
    conserved_forms,
    equations,
    first_few,
    number,
    statistics_in_symbols,
    subscripted,
    written_mode,
)
from neuralrace.results import Sentence, framed
from neuralrace.text import ends, numbered
from neuralrace.tolerances import ROUNDING, SMALL_START, ZERO_TARGETS

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import sympy

    from neuralrace.reduction.race import Race


HEADINGS: tuple[str, ...] = ("block", "directions", "s", "variables", "conserved", "closed form")
"""The columns of the printed table; empty ones are left out."""


def sentences(race: Race, full: bool = False) -> Iterator[Sentence]:
    """What the blocks of a race are, how exact they are, and what else is worth a remark."""
    count, scalar = len(race.blocks), sum(block.is_scalar for block in race.blocks)
    shown = count if full else SHOWN
    if not count and not race.exactness.is_split:
        text = (
            f"No block remains: every coupling is below the tolerance of {race.tolerance:g}. What "
            "can be learned was dropped."
        )
    elif not count:
        text = "No signal: inputs and targets are uncorrelated on every path. Nothing is learned."
    elif not race.reduces:
        text = f"does not reduce: one block; its solution is {race.exactness}."
    else:
        kinds = _how_many_scalar(scalar, count)
        text = f"{numbered(count, 'independent block', '1')}, {kinds}; {race.exactness}."
    yield Sentence("blocks", text)
    if race.dropped_loss:
        yield Sentence(
            "dropped",
            f"loss that the tolerance dropped: {race.dropped_loss:.4g}; it can be learned, and "
            "this race does not know when",
        )
    for remark in _about_gates(race):
        yield Sentence("gates", remark)
    conflicts = [block.name for block in race.blocks if block.has_sign_conflict]
    if conflicts:
        more = f", … and {len(conflicts) - shown} more" if len(conflicts) > shown else ""
        text = "paths with conflicting signs: a hidden node needs more than one neuron"
        yield Sentence("signs", f"{text}: {', '.join(conflicts[:shown])}{more}")
    if race.failures:
        text = "MHS Assumption 2.1.1 (statistics diagonal in shared bases) fails: "
        more = f" (and {len(race.failures) - 1} more: race.failures)" * (len(race.failures) > 1)
        yield Sentence(
            "assumption",
            text + ("; ".join(race.failures) if full else race.failures[0] + more),
        )
    if count > shown:
        yield Sentence("more", f"… and {count - shown} more")
    if count:
        yield Sentence(
            "legend",
            "s: largest singular value of Σ^yx in the block; B: a variable that its edges share",
        )
    if not full and any(row[3].endswith(" variables") for row in printed_rows(race)):
        yield Sentence("variables", "print(race.describe(full=True)) names all variables")
    if full and scalar < count:
        text = "in a block that is not a mode, B is a direction of edge weights: race.variables()"
        yield Sentence("variables", text)
    quiet = [f"{v} {n}" for v, n in race.silent.items() if n]
    if quiet:
        rest = f", … ({sum(race.silent.values())} in all)" * (len(quiet) > SHOWN and not full)
        names = ", ".join(quiet if full else quiet[:SHOWN])
        yield Sentence("silent", f"silent directions: {names}{rest}")
    if race.constant:
        yield Sentence("constant", f"loss outside all blocks: {race.constant:.4g}")


def printed_rows(race: Race, full: bool = False) -> list[tuple[str, ...]]:
    """The rows of the printed table, below `HEADINGS`: of the first blocks, or of all."""
    blocks = race.blocks if full else race.blocks[:SHOWN]
    return [row for block in blocks for row in _rows(block, race.exactness.is_split, full)]


def block_frame(race: Race) -> pandas.DataFrame:
    """See `Race.frame`."""
    rows = (
        {
            "block": block.name,
            "inputs": sum(block.dims[v] for v in block.arch.inputs),
            "outputs": sum(block.dims[v] for v in block.arch.outputs),
            "s": block.drive,
            "growth_rate": block.growth_rate,
            "scalar": block.is_scalar,
            "weights": sum(w.size for w in block.aligned.values()),
            "loss": block.initial_loss,
            "copy_of": block.copy_of,
        }
        for block in race.blocks
    )
    names = ("block", "inputs", "outputs", "s", "growth_rate", "scalar", "weights", "loss")
    return framed((*names, "copy_of"), rows)


def draw_blocks(race: Race, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """See `Race.plot`."""
    from neuralrace.plot import COLOURS, style
    from neuralrace.plot.curves import axes_or_new

    colour = COLOURS["theory"]
    with style():
        ax = axes_or_new(ax)
        for label, scalar, face in (("mode", True, colour), ("other block", False, "none")):
            at = [i for i, block in enumerate(race.blocks, 1) if block.is_scalar == scalar]
            drives = [race.blocks[i - 1].drive for i in at]
            if at:
                ax.plot(at, drives, "o", mec=colour, mfc=face, label=label)
        ax.set(xlabel="block", ylabel="drive s", ylim=(0, None))
        if race.blocks:
            ax.legend()
    return ax


def _about_gates(race: Race) -> list[str]:
    """Remarks on unusual gates: none at all, or some that are never on."""
    gates = race.data.gates
    off = [name for name, gate in gates.items() if not np.asarray(gate).any()]
    they = "they learn" if len(off) > 1 else "it learns"
    never = [f"never on, so that {they} nothing: {', '.join(off)}"] if off else []
    return [*always_on(race.arch, race.data), *never, *_silenced(race)]


def _silenced(race: Race) -> list[str]:
    """Outputs that are on where their targets are zero, in a network of several outputs."""
    data, silenced = race.data, []
    for node in race.arch.outputs if len(race.arch.outputs) > 1 else ():
        zero = ~np.asarray(data.y[node]).any(axis=1)
        share = float(np.asarray(data.probability)[zero].sum())
        if node in data.gates or not ZERO_TARGETS < share < 1:
            continue
        silenced.append(
            f"{node} is on, and its target zero, on {100 * share:.0f} % of the samples: it is "
            "trained to be zero there. If it is not queried there, give it a gate of 0"
        )
    return silenced


def _how_many_scalar(scalar: int, count: int) -> str:
    """How many of the blocks are scalar modes, in words."""
    if scalar == count:
        return "a scalar mode" if count == 1 else "all of them scalar modes"
    if scalar == 0:
        return "not a scalar mode" if count == 1 else "none of them a scalar mode"
    return f"{scalar} of them {'a scalar mode' if scalar == 1 else 'scalar modes'}"


def _rows(block: Block, exact: bool, full: bool) -> list[tuple[str, ...]]:
    """The rows of a block: what it is and its first variable, then one row per further variable."""
    return block.cached(("rows", block.name, exact, full), lambda: _new_rows(block, exact, full))


def _new_rows(block: Block, exact: bool, full: bool) -> list[tuple[str, ...]]:
    mode = written_mode(block, exact=exact)
    what = (block.name, _directions(block), f"{block.drive:.4g}")
    if mode is None:
        count = sum(w.size for w in block.aligned.values())
        return [(*what, f"{count} variables, not merged", "", "none known")]
    if len(mode.variables) > NAMED and not full:
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
    small = max(
        SMALL_START, np.finfo(float).tiny ** (1 / degree)
    )  # a long product must not underflow
    form = mode_form(mode.system, np.full(len(mode.names), small), mode.names)
    return form.kind if form else "none known"


def _form_in_words(form: Mapping[tuple[int, int], float], names: Sequence[str]) -> str:
    """A quadratic form in the variables, such as 7*B_1**2 - B_2**2."""
    text = ""
    for (k, m), c in form.items():
        a, b = (f"{names[i][0]}_{names[i][1:]}" for i in (k, m))
        size = Fraction(abs(c)).limit_denominator(SIMPLE)
        near = abs(float(size) - abs(c)) <= ROUNDING * abs(c)
        factor = "" if near and size == 1 else f"{size if near else f'{abs(c):.6g}'}*"
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += f"{sign}{factor}{f'{a}**2' if k == m else f'{a}*{b}'}"
    return text


GIVEN_ON = (
    r"$S$, $D$: $\Sigma^{yx}$ and $\Sigma^{x}$ of a path along the mode, given that the path is on"
)
"""The meaning of S and D where paths do not overlap and have the same drive."""

MERGED = (
    r"$S$, $D$: coefficients of the merged equations, scaled so that the largest path count is 1"
)
"""The meaning of S and D of a single pathway otherwise."""

BY_PATHS = (
    r"$S_g$, $D_{gh}$: $\Sigma^{yx}$ of a path of group $g$, $\Sigma^{x}$ of paths of two groups"
)
"""The meaning of letters with an index."""

BY_POWERS = (
    r"$S_k$, $D$: $\Sigma^{yx}$ and $\Sigma^{x}$ of the path with $k$ steps of the shared weight"
)
"""The meaning of letters where paths are powers of one shared weight."""

BY_DIRECTIONS = (
    r"$S_g$, $D_{gh}$: drive of a product of directions, and coupling between two of them"
)
"""The same in a block that is not a mode."""

DIRECTIONS = r"$B$ is the size of a direction in the weights of its edges, see race.variables()"
"""The meaning of a variable in a block that is not a mode."""


def latex(
    modes: Sequence[WrittenMode],
    left_out: Sequence[str] = (),
    full: bool = False,
    form: Form = "paths",
) -> str:
    """The equations of all modes as LaTeX; modes of one form share one system.

    They are followed by the values of its letters in every mode, by their meaning, and by the edges
    of every variable.
    """
    groups: dict[tuple[str, ...], list[WrittenMode]] = {}
    written = {mode.block.name: equations(mode, form) for mode in modes}
    for mode in modes:
        groups.setdefault(tuple(map(str, written[mode.block.name])), []).append(mode)
    parts = []
    for members in groups.values():
        named: dict[str, list[str]] = {}
        for mode in members:
            value = _values(mode, form, full)
            if value or len(groups) > 1:
                named.setdefault(value, []).append(mode.block.name)
        where = [rf"\mathrm{{{ends(n)}}}" + (f": {v}" if v else "") for v, n in named.items()]
        more = len(where) - SHOWN
        if not full and more > 0:
            where = [*where[:SHOWN], rf"\text{{… and {more} more}}"]
        values = r",\quad ".join(where)
        lines = map(_aligned, written[members[0].block.name])
        system = "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"
        parts.append(system + (f"\n\\qquad {values}" if values else ""))
    parts += _meanings(modes, form, full)
    turned = [mode.block.name for mode in modes if not mode.block.is_scalar]
    parts += [rf"\mathrm{{{ends(turned)}}}:\quad \text{{{DIRECTIONS}}}"] if turned else []
    stands: dict[str, list[str]] = {}
    for mode in modes:
        stands.setdefault(_edges_in_latex(mode, full), []).append(mode.block.name)
    lines = [rf"\mathrm{{{ends(names)}}}:\quad {text}" for text, names in stands.items()]
    more = len(lines) - SHOWN
    parts += lines if full or more <= 0 else [*lines[:SHOWN], rf"\text{{… and {more} more}}"]
    parts += [rf"\text{{{name}: too many variables to be written out}}" for name in left_out]
    return "\n\n".join(parts)


def _values(mode: WrittenMode, form: Form, full: bool) -> str:
    """The values of the letters of a mode; drives that decay evenly are one power."""
    import sympy

    letters, powers = statistics_in_symbols(mode, form), mode.powers
    given = {sympy.latex(n): sympy.latex(number(v)) for n, v in letters.items()}
    if powers is None or form != "paths" or len(letters) <= len(powers.S):
        return ", ".join(f"{name} = {value}" for name, value in given.items())
    every = [f"{name} = {value}" for name, value in given.items()]
    drives, rest = every[: len(powers.S)], every[len(powers.S) :]
    if powers.ratio is not None:
        first, ratio = (sympy.latex(number(v)) for v in (powers.S[0], powers.ratio))
        shift = "k" if powers.first == 0 else f"k - {powers.first}"
        drives = [rf"S_{{k}} = {first} \cdot \left({ratio}\right)^{{{shift}}}"]
    elif not full:
        drives = [*drives[:NAMED], r"\ldots"]
    return ", ".join([*drives, *rest])


def _meanings(modes: Sequence[WrittenMode], form: Form, full: bool) -> list[str]:
    """The meaning of letters; if it differs between modes, which modes each meaning applies to."""
    meanings: dict[str, list[str]] = {}
    for mode in modes:
        if recognised(mode.system) is not None:
            meaning = rf"\text{{{MERGED if mode.S is None else GIVEN_ON}}}"
        elif mode.powers is not None and form == "paths":
            meaning = rf"\text{{{BY_POWERS}}}"
        elif statistics_in_symbols(mode, form):
            meaning = rf"\text{{{BY_PATHS if mode.block.is_scalar else BY_DIRECTIONS}}}"
            listed = [", ".join(first_few(names, full)) for names in mode.path_names if names]
            for g, names in enumerate(listed, 1):
                meaning += rf",\quad {g}: \text{{{names}}}".replace("_", r"\_")
        else:
            continue
        meanings.setdefault(meaning, []).append(mode.block.name)
    if len(meanings) < 2:
        return list(meanings)
    return [rf"\mathrm{{{ends(names)}}}:\quad {text}" for text, names in meanings.items()]


def _edges_in_latex(mode: WrittenMode, full: bool) -> str:
    """Which edges the variables of a mode stand for."""
    shown = []
    for variable in mode.variables:
        edges = ", ".join(first_few(variable.edges, full)).replace("_", r"\_")
        shown.append(rf"{subscripted(variable.name).replace('_', '_{')}}}: \text{{{edges}}}")
    return r",\quad ".join(shown)


def _aligned(equation: sympy.Eq) -> str:
    import sympy

    text = sympy.latex(equation, mul_symbol=None).replace("{\\left(t \\right)}", "")
    return text.replace(" = ", " &= ", 1)
