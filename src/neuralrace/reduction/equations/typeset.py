"""The merged race in LaTeX: one system for all modes of one form, and what its letters mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.reduction.equations.mode_form import SHOWN
from neuralrace.reduction.equations.pathway import recognised
from neuralrace.reduction.equations.symbols import (
    SAME_NUMBER,
    TAU,
    WrittenMode,
    equation,
    equations,
    first_few,
    number,
    right_side,
    statistics_in_symbols,
    subscripted,
)

if TYPE_CHECKING:
    import sympy


LISTED = 4
"""Up to this many modes with equal equations are listed; beyond, only the first and the last."""

GIVEN_ON = (
    r"$S$, $D$: $\Sigma^{yx}$ and $\Sigma^{x}$ of a path along the mode, given that the path is on"
)
"""The meaning of S and D where paths do not overlap and have the same drive."""

MERGED = (
    r"$S$, $D$: coefficients of the merged equations, scaled so that the largest path count is 1"
)
"""The meaning of S and D otherwise."""

DIRECTIONS = r"$B$ is the size of a direction in the weights of its edges, see race.variables()"
"""The meaning of a variable in a block that is not a mode."""


def latex(modes: Sequence[WrittenMode], left_out: Sequence[str] = (), full: bool = False) -> str:
    """The equations of all modes as LaTeX; modes of one form share one system.

    They are followed by the values of its letters in every mode, by their meaning, and by the edges
    of every variable. Where S and D do not appear, coefficients that differ between modes are
    called c.
    """
    groups: dict[object, list[WrittenMode]] = {}
    for mode in modes:
        groups.setdefault(_form(mode), []).append(mode)
    parts = []
    for members in groups.values():
        lines, values = _system(members)
        named: dict[str, list[str]] = {}
        for mode, value in zip(members, values, strict=True):
            if value or len(groups) > 1:
                named.setdefault(value, []).append(mode.block.name)
        where = [rf"\mathrm{{{_listed(n)}}}" + (f": {v}" if v else "") for v, n in named.items()]
        more = len(where) - SHOWN
        if not full and more > 0:
            where = [*where[:SHOWN], rf"\text{{… and {more} more}}"]
        told = r",\quad ".join(where)
        system = "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"
        parts.append(system + (f"\n\\qquad {told}" if told else ""))
    parts += _meanings(modes)
    turned = [mode.block.name for mode in modes if not mode.block.is_scalar]
    parts += [rf"\mathrm{{{_listed(turned)}}}:\quad \text{{{DIRECTIONS}}}"] if turned else []
    stands: dict[str, list[str]] = {}
    for mode in modes:
        stands.setdefault(_edges_in_latex(mode, full), []).append(mode.block.name)
    lines = [rf"\mathrm{{{_listed(names)}}}:\quad {text}" for text, names in stands.items()]
    more = len(lines) - SHOWN
    parts += lines if full or more <= 0 else [*lines[:SHOWN], rf"\text{{… and {more} more}}"]
    parts += [rf"\text{{{name}: too many variables to be written out}}" for name in left_out]
    return "\n\n".join(parts)


def _form(mode: WrittenMode) -> object:
    """What modes of one form share: their equations in S and D, or else the terms of these."""
    if recognised(mode.system) is not None:
        return tuple(map(str, equations(mode)))
    terms = mode.system.powers.tolist(), (mode.system.velocity != 0).tolist()
    return mode.names, str(terms)


def _system(members: Sequence[WrittenMode]) -> tuple[list[str], list[str]]:
    """The lines of one system for modes of one form, and the values of its letters in each mode."""
    import sympy

    first = members[0]
    if recognised(first.system) is not None:
        told = []
        for mode in members:
            value = statistics_in_symbols(mode)
            assert value is not None
            told.append(", ".join(f"{n} = {sympy.latex(number(v))}" for n, v in value.items()))
        return [_aligned(eq) for eq in equations(first)], told
    velocity = np.stack([mode.system.velocity for mode in members])
    letters: list[tuple[sympy.Symbol, np.ndarray]] = []

    def coefficient(k: int, m: int) -> sympy.Expr:
        """A number if all modes have it, otherwise a letter, or a multiple of one."""
        values = velocity[:, k, m]
        if np.ptp(values) <= SAME_NUMBER * np.abs(values).max():
            return number(values[0])
        for letter, known in letters:
            ratio = values / known
            if np.ptp(ratio) <= SAME_NUMBER * np.abs(ratio).max():
                return number(ratio[0]) * letter
        sign = -1 if (values < 0).all() else 1
        letters.append((sympy.Symbol(f"c_{len(letters) + 1}", real=True), sign * values))
        return sign * letters[-1][0]

    t, tau = sympy.Symbol("t", real=True), sympy.Symbol(TAU, positive=True)
    B = [sympy.Function(subscripted(name))(t) for name in first.names]
    lines = [
        _aligned(
            equation(
                tau * sympy.Derivative(b, t),
                right_side(first.system, k, B, lambda m, k=k: coefficient(k, m)),
            )
        )
        for k, b in enumerate(B)
    ]
    told = [
        ", ".join(f"{sympy.latex(c)} = {sympy.latex(number(v[i]))}" for c, v in letters)
        for i in range(len(members))
    ]
    return lines, told


def _meanings(modes: Sequence[WrittenMode]) -> list[str]:
    """The meaning of S and D; if it differs between modes, which modes each meaning applies to."""
    found: dict[str, list[str]] = {}
    for mode in modes:
        if recognised(mode.system) is not None:
            meaning = MERGED if mode.S is None else GIVEN_ON
            found.setdefault(meaning, []).append(mode.block.name)
    if len(found) < 2:
        return [rf"\text{{{meaning}}}" for meaning in found]
    return [
        rf"\mathrm{{{_listed(names)}}}:\quad \text{{{meaning}}}" for meaning, names in found.items()
    ]


def _edges_in_latex(mode: WrittenMode, full: bool) -> str:
    """Which edges the variables of a mode stand for."""
    shown = []
    for variable in mode.variables:
        edges = ", ".join(first_few(variable.edges, full)).replace("_", r"\_")
        shown.append(rf"{subscripted(variable.name).replace('_', '_{')}}}: \text{{{edges}}}")
    return r",\quad ".join(shown)


def _listed(names: Sequence[str]) -> str:
    """All names if there are few, otherwise the first and the last."""
    return ", ".join(names) if len(names) <= LISTED else f"{names[0]}, …, {names[-1]}"


def _aligned(equation: sympy.Eq) -> str:
    import sympy

    text = sympy.latex(equation, mul_symbol=None).replace("{\\left(t \\right)}", "")
    return text.replace(" = ", " &= ", 1)
