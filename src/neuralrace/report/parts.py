"""Runs and races as parts of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neuralrace.checks import by_name
from neuralrace.errors import check_kind, require
from neuralrace.mathml import rounded
from neuralrace.report.page import Curve, Curves, Equation, Kind, Part, Section, Table, Text
from neuralrace.text import ends

if TYPE_CHECKING:
    from neuralrace.reduction import Race
    from neuralrace.trajectory import Trajectory

MEANING = (
    "S and D are Σʸˣ and Σˣ of a path along the mode, given that the path is on; where paths "
    "overlap or differ, they are coefficients of the merged equations."
)
"""What the letters of `Race.equations` stand for."""


def curves_of(
    runs: Mapping[str, Trajectory],
    what: str = "loss",
    *,
    ylog: bool = False,
    caption: str = "",
    alt: str = "",
    file: str = "",
) -> Curves:
    """The curves of runs and solutions by name: solutions dashed, ReLU networks wide.

    Give a run and its prediction as two entries; they share a colour where their names differ only
    in a trailing `", theory"`. Of an ensemble the mean over seeds is drawn and the range shaded.

    **Arguments:** `what` is `"loss"` or what `Trajectory.plot` takes. The others are those of
    `Curves`.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace import report
    >>> arch, data = nr.tasks.xor_pathways(nr.tasks.xor())
    >>> sol = nr.reduce(arch, data).solve(times=range(5), start=0.01)
    >>> [(c.name, c.kind) for c in report.curves_of({"xor": sol}).curves]
    [('xor', 'theory')]

    ```
    """
    from neuralrace.trajectory import Trajectory
    from neuralrace.trajectory.curves import named_curves

    fix = "for example curves_of({'trained': run, 'predicted': solution})"
    found: list[Curve] = []
    clocks = {}
    for name, run in by_name("runs", runs, fix).items():
        check_kind(f"run {name!r}", run, Trajectory, fix)
        clocks["step" if run.clock == "steps" else "time"] = name
        kind = _kind(run)
        label = name.removesuffix(", theory") if kind == "theory" else name
        found += [
            Curve(n, run.time, values, kind) for n, values in named_curves(run, what, label).items()
        ]
    require(
        len(clocks) <= 1,
        "these runs have different clocks",
        got=", ".join(f"{name!r} over {clock}" for clock, name in clocks.items()),
        wanted="runs over time, or runs over steps",
        fix="draw them apart",
    )
    xlabel = next(iter(clocks), "time")
    return Curves(found, xlabel=xlabel, ylabel=what, ylog=ylog, caption=caption, alt=alt, file=file)


def _kind(run: Trajectory) -> Kind:
    from neuralrace.relu import ReLUNetwork
    from neuralrace.trajectory.curves import THEORY

    if run.settings.get("method") in THEORY:
        return "theory"
    return "relu" if isinstance(run.net, ReLUNetwork) else "simulation"


def equations_of(race: Race, start: Any = None) -> tuple[Part, ...]:
    """The equations of a race, those of equal form once, with the modes that they hold for.

    Numbers in them are shown to three digits. Blocks that are not scalar have long equations, which
    are folded away.

    **Arguments:** `start` is that of `Race.equations`.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace import report
    >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))
    >>> [type(part).__name__ for part in report.equations_of(race)]
    ['Equation', 'Text', 'Section']

    ```
    """
    from neuralrace.reduction import Race
    from neuralrace.reduction.symbols import equations as race_equations
    from neuralrace.reduction.symbols import statistics_in_symbols

    check_kind("race", race, Race, "for example equations_of(nr.reduce(arch, data))")
    modes, left_out = race._written(start)
    written = {mode.block.name: race_equations(mode) for mode in modes}
    values = {mode.block.name: statistics_in_symbols(mode) for mode in modes}
    groups: dict[str, list[str]] = {}
    for name, equations in written.items():
        groups.setdefault(str(equations), []).append(name)
    scalar = {block.name for block in race.blocks if block.is_scalar}
    parts: list[Part] = []
    folded: list[Part] = []
    for names in groups.values():
        shown = [rounded(equation) for equation in written[names[0]]]
        place = parts if scalar.issuperset(names) else folded
        place.append(Equation(shown, caption=_caption(names, values)))
    if folded:
        parts.append(Section("Equations of blocks that are not scalar", folded, folded=True))
    if values:
        parts.append(Text(MEANING))
    if left_out:
        parts.append(Text(f"{ends(left_out)}: too many variables to be written out."))
    variables = [variable for mode in modes for variable in mode.variables]
    rows = [(v.mode, v.name, v.multiplicity, ", ".join(v.edges)) for v in variables]
    table = Table(("mode", "variable", "edges", "which"), rows)
    if rows:
        parts.append(Section("What each variable stands for", [table], folded=True))
    return tuple(parts)


def _caption(names: list[str], values: Mapping[str, Mapping[Any, float]]) -> str:
    """The modes that equations hold for, with the values of S and D in each."""
    alike: dict[str, list[str]] = {}
    for name in names:
        text = ", ".join(f"{letter} = {_short(v)}" for letter, v in values.get(name, {}).items())
        alike.setdefault(text, []).append(name)
    return "; ".join(ends(those) + (f": {text}" if text else "") for text, those in alike.items())


def _short(value: float) -> str:
    """Four digits; numbers that differ by rounding alone read the same.

    ```python
    >>> from neuralrace.report.parts import _short
    >>> _short(0.15125 - 1e-15), _short(0.15125 + 1e-15)
    ('0.1512', '0.1512')

    ```
    """
    return f"{float(f'{value:.10g}'):.4g}"
