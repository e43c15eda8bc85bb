"""A race as one page: equations, sliders, and curves that the browser itself solves."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.mathml import formula, rounded
from neuralrace.reduction.merging import recognised
from neuralrace.reduction.mode_form import SHOWN
from neuralrace.reduction.scipy_solver import PolynomialFlow, flowed
from neuralrace.reduction.start import Start
from neuralrace.reduction.symbols import WrittenMode, equations, statistics_in_symbols
from neuralrace.text import percent, several
from neuralrace.tolerances import DEPARTS, EXACT, PAGE_RESTS, PAGE_TIMES, PICTURE, SETTLED

if TYPE_CHECKING:
    from jinja2 import Template

    from neuralrace.reduction.race import Race

TITLE = "The race, mode by mode"
"""The heading of a page."""

DOUBLINGS = 40
"""How often the time until which a race is drawn is doubled at most."""

ALIKE = 9
"""Modes share sliders where their numbers agree to this many digits."""

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
"""Digits as indices."""

HEIGHT = 900
"""The height of the page within a notebook or a report, in pixels."""


@final
class RacePage(str):
    """The text of a page; a notebook shows it in a frame of its own."""

    def _repr_html_(self) -> str:
        frame = f'width="100%" height="{HEIGHT}" style="border:0" sandbox="allow-scripts"'
        return f'<iframe title="{TITLE}" {frame} srcdoc="{html.escape(self)}"></iframe>'


@final
@dataclass(frozen=True, eq=False)
class _Kind:
    """Modes of equal equations, numbers and starts: they share their sliders."""

    modes: tuple[WrittenMode, ...]

    @property
    def names(self) -> list[str]:
        return [mode.block.name for mode in self.modes]

    @property
    def title(self) -> str:
        return several(self.names)

    def as_data(self) -> dict[str, Any]:
        """What the script needs."""
        mode = self.modes[0]
        paths, race = mode.paths, recognised(mode.system)
        groups = [
            names[0] if names else _stream(mode, g) for g, names in enumerate(mode.path_names)
        ]
        inverse = np.linalg.pinv(paths.D, EXACT, hermitian=True)
        letters = {str(n): v for n, v in statistics_in_symbols(mode).items()} if race else {}
        return {
            "modes": self.names,
            "rate": float(mode.block.growth_rate),
            "names": [self.title] if len(groups) == 1 else [f"{self.title}: {g}" for g in groups],
            "letters": letters,
            "start": mode.start.tolist(),
            "powers": paths.powers.tolist(),
            "group": paths.group.tolist(),
            "count": paths.count.tolist(),
            "S": paths.S.tolist(),
            "D": paths.D.tolist(),
            "mix": paths.mix.tolist(),
            "inverse": inverse.tolist(),
            "rest": paths.targets - float(paths.S @ inverse @ paths.S) / 2,
        }

    def shown(self) -> dict[str, Any]:
        """What stands on the page: sliders, equations and what their letters mean."""
        from markupsafe import Markup

        mode = self.modes[0]
        values = [f"{_letter(n)} = {v:.4g}" for n, v in statistics_in_symbols(mode).items()]
        count = len(mode.path_names)
        groups = [
            f"paths {g}: {several(names)}"
            for g, names in enumerate(mode.path_names, 1)
            if names and count > 1
        ]
        return {
            "modes": self.names,
            "title": self.title,
            "drives": count
            if np.linalg.matrix_rank(mode.paths.D, rtol=EXACT, hermitian=True) == count
            else 1,
            "formula": Markup(formula([rounded(equation) for equation in equations(mode)])),
            "values": f"{self.title}: {', '.join(values)}" if values else "",
            "stands": "; ".join([*map(str, mode.variables), *groups]),
        }


def _stream(mode: WrittenMode, group: int) -> str:
    """The path of a group of a matrix block, with its directions at ends that have several."""
    arch, row = mode.block.arch, int(np.argmax(mode.paths.group == group))
    parts = [mode.system.parts[k] for k in np.flatnonzero(mode.paths.powers[row])]
    entries = {edge: np.argwhere(matrix) for part in parts for edge, matrix in part.items()}
    path = next((p for p in arch.paths() if {*p.edges} == {*entries}), None)
    if path is None:
        return f"product {group + 1}"
    ends = []
    for node, (edge, side) in (
        (arch.edges[path.edges[0]][0], (path.edges[0], 1)),
        (arch.edges[path.edges[-1]][1], (path.edges[-1], 0)),
    ):
        places = {int(at[side]) + 1 for at in entries[edge]}
        several = arch.sizes[node] > 1 and len(places) == 1
        ends.append(f"{node} {places.pop()}" if several else "")
    source, target = ends
    name = "-".join(path.edges)
    return f"{f'{source}: ' * bool(source)}{name}{f' → {target}' * bool(target)}"


def _letter(symbol: object) -> str:
    """S₁ for S_1, as plain text."""
    return str(symbol).replace("_", "").translate(SUBSCRIPTS)


def race_page(race: Race, start: Start, until: float | None) -> RacePage:
    """See `Race.to_html`."""
    from markupsafe import Markup

    modes = race._modes(start)
    written = {mode.block.name for mode in modes}
    left_out = [block.name for block in race.blocks if block.name not in written]
    kinds = _kinds(modes)
    end, off = _horizon(race, start, modes, until)
    growth = max((block.growth_rate for block in race.blocks), default=0.0)
    data = {
        "kinds": [kind.as_data() for kind in kinds],
        "outside": race.outside + sum(b.initial_loss for b in race.blocks if b.name in left_out),
        "until": end,
    }
    drives = max((float(np.abs(mode.paths.S).max(initial=0.0)) for mode in modes), default=1.0)
    curves = sum(len(kind.modes[0].paths.S) for kind in kinds)
    shown, forms = [kind.shown() for kind in kinds], {}
    for kind in shown:
        forms.setdefault(kind["formula"], []).append(kind)
    script = resources.files("neuralrace.reduction").joinpath("web/race.js").read_text("utf-8")
    text = _template().render(
        title=TITLE,
        answer=race.sentences()[0].text,
        caveats=_caveats(race, start, left_out, off),
        kinds=shown,
        forms=list(forms.values()),
        more=f"The first {SHOWN} of {curves} groups of paths." if curves > SHOWN else "",
        most_decay=float(f"{growth or drives or 1.0:.2g}"),
        data=Markup(json.dumps(data).replace("<", "\\u003c")),
        script=Markup(script),
    )
    return RacePage(text)


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("neuralrace.reduction", "web"),
        undefined=StrictUndefined,
        autoescape=True,
    )
    return environment.get_template("race.html")


def _kinds(modes: Sequence[WrittenMode]) -> list[_Kind]:
    """The modes by equal equations, numbers and starts."""
    kinds: dict[str, list[WrittenMode]] = {}
    digits = lambda values: [float(f"{v:.{ALIKE}g}") for v in np.ravel(values).tolist()]
    for mode in modes:
        paths = mode.paths
        numbers = map(digits, (paths.S, paths.D, paths.count, paths.targets, mode.start))
        kinds.setdefault(str((*map(str, equations(mode)), *numbers)), []).append(mode)
    return [_Kind(tuple(members)) for members in kinds.values()]


def _caveats(race: Race, start: Start, left_out: Sequence[str], off: float) -> list[str]:
    """What the page leaves out, with how much it is."""
    found = []
    if left_out:
        found.append(
            f"{several(left_out)} has too many variables to be solved in a page: its loss stays in "
            "the curve as it is at zero weights. race.solve follows it."
        )
    if start.gap:
        found.append(
            f"The start is read from random weights; its loss is {percent(start.gap)} from theirs."
        )
    if off > DEPARTS:
        found.append(
            f"race.solve departs from these curves by up to {percent(off)} of the initial loss: it "
            "follows hidden directions that modes share, and these equations do not."
        )
    return found


def _horizon(
    race: Race, start: Start, modes: Sequence[WrittenMode], until: float | None
) -> tuple[float, float]:
    """Until when the race is drawn, and how far `race.solve` is from these equations until then.

    Where some blocks are left out, the distance is that of the others.
    """
    until = _settled(modes) if until is None else until
    times = np.linspace(0.0, until, PAGE_TIMES)
    if len(modes) < len(race.blocks) or not modes:
        return until, 0.0
    solution = race.solve(times=times, start=start, rtol=PICTURE)
    off = np.abs(race.outside + _loss(modes, times) - solution.loss).max()
    return until, float(off / solution.loss[0])


def _loss(modes: Sequence[WrittenMode], times: np.ndarray) -> np.ndarray:
    """The loss of the written modes at these times; NaN where it cannot be solved."""
    total = np.zeros(len(times))
    for mode in modes:
        states = flowed(PolynomialFlow(mode.system, mode.start), times, PICTURE)
        total = total + (np.nan if states is None else mode.system.loss_at(states))
    return total


def _settled(modes: Sequence[WrittenMode]) -> float:
    """1.3 times the time after which the loss hardly falls, from doubling.

    It ends where the loss is within `SETTLED` of the least that its quadratic form allows, or has
    not moved for `PAGE_RESTS` doublings.
    """
    least = sum(
        mode.paths.targets
        - mode.paths.S @ np.linalg.pinv(mode.paths.D, EXACT, hermitian=True) @ mode.paths.S / 2
        for mode in modes
    )
    rate = max((float(np.abs(mode.paths.S).max(initial=0.0)) for mode in modes), default=0.0)
    end, rests = 1 / rate if rate else 1.0, 0
    for _ in range(DOUBLINGS):
        times = np.linspace(0.0, end, PAGE_TIMES)
        loss = _loss(modes, times)
        fall = SETTLED * (loss[0] - least)
        rests = (
            rests + 1
            if fall < loss[0] - loss[-1] and loss[PAGE_TIMES // 2] - loss[-1] < fall
            else 0
        )
        if loss[-1] <= least + fall or rests >= PAGE_RESTS:
            return 1.3 * float(times[np.argmax(loss <= loss[-1] + fall)])
        end *= 2
    return end
