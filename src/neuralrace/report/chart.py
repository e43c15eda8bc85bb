"""Curves as a drawing that needs no script, and as numbers for the one that can be hovered."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuralrace.plot import COLOURS as ROLES
from neuralrace.plot import DASHES, SHADES, colour_places, is_lone, is_unpaired
from neuralrace.report.page import Curve, Curves
from neuralrace.tolerances import AT_REST

COLOURS = ("0072B2", "E69F00", "2AA37A", "7A1460", "56B4E9", "D55E00", "CC79A7", "999933")
"""The cycle of the package's style: safe for the colour-blind, the first four different in grey."""

DARK = {"simulation": 0.25, "relu": 0.1, "theory": 0.55}
"""How far a kind of curve is mixed with white on dark paper; on white paper it is as in files."""

ROLE = {"simulation": 0.0, "relu": 0.0, "theory": 0.9}
"""How far the colour of a role is mixed with white on dark paper."""

UNPAIRED = (0.0, 0.25)
"""How far the colour of a theory without a simulation is mixed with white, on white and dark."""

DASH = 2.0
"""Pixels of one unit of a dash."""

POINTS = 600
"""The largest number of points of a curve on the page; the file beside it has all."""

DOTS = 12
"""Up to this number of points of a curve are marked each."""

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 76, 14, 30, 46
"""The size of a drawing and its margins, in units of a pixel."""


def palette(dark: bool) -> str:
    """The colours as variables of CSS, those that files have on white paper.

    `--theory` is that of a lone theory, `--theory0` that of the first name's theory, `--unpaired0`
    that of the first theory without a simulation.
    """
    lines = []
    for kind, shade in SHADES.items():
        role = ROLES[kind].lstrip("#")
        lines.append(f"--{kind}: {_mixed(role, ROLE[kind] if dark else 0.0)};")
        for i, colour in enumerate(COLOURS):
            lines.append(f"--{kind}{i}: {_mixed(colour, DARK[kind] if dark else shade)};")
    for i, colour in enumerate(COLOURS):
        lines.append(f"--unpaired{i}: {_mixed(colour, UNPAIRED[dark])};")
    return " ".join(lines)


def _mixed(colour: str, amount: float) -> str:
    end = 255 if amount > 0 else 0
    parts = (int(colour[i : i + 2], 16) for i in (0, 2, 4))
    return "#" + "".join(f"{round(c + abs(amount) * (end - c)):02x}" for c in parts)


def _pairs(curves: Curves) -> list[tuple[str, str]]:
    """Kind and name of all curves in the order in which files draw them."""
    kinds = list(SHADES)
    return sorted(((c.kind, c.name) for c in curves.curves), key=lambda p: kinds.index(p[0]))


def looks(curves: Curves) -> list[str]:
    """Colour and dashes of each curve in CSS, as `draw_curves` has them in files."""
    pairs = _pairs(curves)
    places = colour_places(pairs)
    found = []
    for curve, stroke in zip(curves.curves, strokes(curves), strict=True):
        dash = ""
        if is_unpaired((curve.kind, curve.name), pairs):
            units = DASHES[places[curve.kind, curve.name] % len(DASHES)]
            dash = f";stroke-dasharray:{' '.join(f'{DASH * unit:.3g}' for unit in units)}"
        found.append(f"stroke:{stroke}{dash}")
    return found


def strokes(curves: Curves) -> list[str]:
    """The colour of each curve in CSS: by kind if alone in it, else by name and kind."""
    names = list(dict.fromkeys(curve.name for curve in curves.curves))
    if len(names) <= len(COLOURS):
        pairs = _pairs(curves)
        places = colour_places(pairs)
        found = []
        for curve in curves.curves:
            pair = (curve.kind, curve.name)
            which = "unpaired" if is_unpaired(pair, pairs) else curve.kind
            number = "" if is_lone(pair, pairs) else places[pair] % len(COLOURS)
            found.append(f"var(--{which}{number})")
        return found
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    ramp = colormaps["viridis"]
    places = {name: 0.25 + 0.6 * i / (len(names) - 1) for i, name in enumerate(names)}
    return [to_hex(ramp(places[curve.name])) for curve in curves.curves]


# ---- how far the axis goes -----------------------------------------------------------------------


def shown_until(curves: Curves) -> float | None:
    """Where the axis ends at first: a little after all curves rest; None where they end by then.

    ```python
    >>> import numpy as np
    >>> from neuralrace.report import Curve, Curves
    >>> from neuralrace.report.chart import shown_until
    >>> t = np.linspace(0, 300, 301)
    >>> [shown_until(Curves([Curve("a", t, values)])) for values in (np.exp(-t), -t)]
    [6.25, None]

    ```
    """
    few = max(len(np.asarray(c.x)) for c in curves.curves) <= DOTS
    if curves.xlog or curves.ylog or few:
        return None
    first = min(float(np.asarray(c.x)[0]) for c in curves.curves)
    last = max(float(np.asarray(c.x)[-1]) for c in curves.curves)
    rests = -math.inf
    for curve in curves.curves:
        x = np.asarray(curve.x, float)
        for values in curve.seeds:
            there = np.isfinite(values)
            if there.any():
                known = values[there]
                away = np.abs(known - known[-1]) > AT_REST * np.ptp(known)
                rests = max(rests, float(x[there][away][-1]) if away.any() else rests)
    moving = [x for c in curves.curves for x in np.asarray(c.x, float) if x > rests]
    until = float(first + 1.25 * (min(moving, default=last) - first))  # free at the end
    return until if math.isfinite(rests) and until < last else None


# ---- numbers for the script ----------------------------------------------------------------------


def numbers(curves: Curves) -> str:
    """The curves as JSON that can stand inside a page: no sign in it can end the element."""
    found = {
        "xlabel": curves.xlabel,
        "ylabel": curves.ylabel,
        "xlog": bool(curves.xlog),
        "ylog": bool(curves.ylog),
        "until": shown_until(curves),
        "curves": [_points(curve) for curve in curves.curves],
    }
    text = json.dumps(found, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _points(curve: Curve) -> dict[str, Any]:
    kept = thinned(curve.mean)
    found = {"kind": curve.kind, "x": _rounded(np.asarray(curve.x)[kept])}
    found["y"] = _rounded(curve.mean[kept])
    if len(curve.seeds) > 1:
        found["low"] = _rounded(curve.seeds.min(axis=0)[kept])
        found["high"] = _rounded(curve.seeds.max(axis=0)[kept])
    return found


def thinned(values: np.ndarray, most: int = POINTS) -> np.ndarray:
    """Places of at most `most` values: the least and the largest of each stretch, and both ends.

    ```python
    >>> import numpy as np
    >>> from neuralrace.report.chart import thinned
    >>> values = np.zeros(10_000)
    >>> values[1234] = 1.0
    >>> places = thinned(values)
    >>> len(places) <= 600, 1234 in places
    (True, True)

    ```
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    kept = {0, count - 1}
    for stretch in np.array_split(np.arange(count), (most - 2) // 2):
        inside = stretch[np.isfinite(values[stretch])]
        chosen = inside if len(inside) else stretch
        kept |= {int(chosen[values[chosen].argmin()]), int(chosen[values[chosen].argmax()])}
    return np.array(sorted(kept))


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]


# ---- the drawing ---------------------------------------------------------------------------------


def drawing(curves: Curves, name: str) -> str:
    """The curves as SVG; `name` tells its places from those of other drawings on the page."""
    x_range = _range([np.asarray(c.x) for c in curves.curves], curves.xlog, tight=True)
    y_range = _range([c.seeds for c in curves.curves], curves.ylog)
    x_range = (x_range[0], shown_until(curves) or x_range[1])
    across = _Axis(x_range, curves.xlog, LEFT, WIDTH - RIGHT)
    up = _Axis(y_range, curves.ylog, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg class="drawing" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{name}-title">',
        f'<title id="{name}-title">{html.escape(described(curves))}</title>',
        f'<clipPath id="{name}-inside"><rect x="{LEFT}" y="{TOP}" '
        f'width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"/></clipPath>',
    ]
    for value in ticks(*x_range, curves.xlog, whole=_is_whole(curves)):
        at = across(value)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text class="x" x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}">{_short(value)}</text>'
        )
    for value in ticks(*y_range, curves.ylog):
        at = up(value)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="y" x="{LEFT - 7}" y="{at + 4:.1f}">{_short(value)}</text>')
    parts += [
        f'<text class="x label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}">'
        f"{html.escape(curves.xlabel)}</text>",
        f'<text class="label" x="4" y="16">{html.escape(curves.ylabel)}</text>',
        f'<g clip-path="url(#{name}-inside)">',
    ]
    drawn = list(zip(curves.curves, strokes(curves), looks(curves), strict=True))
    for curve, stroke, _ in drawn:
        if len(curve.seeds) > 1:
            area = _area(curve, across, up)
            parts.append(f'<path class="range" d="{area}" style="fill:{stroke}"/>')
    for kind in ("relu", "simulation", "theory"):  # theory on top
        for curve, stroke, look in drawn:
            if curve.kind == kind:
                kept = thinned(curve.mean)
                line = _line(across(np.asarray(curve.x)[kept]), up(curve.mean[kept]))
                parts.append(f'<path class="{kind}" d="{line}" style="{look}"/>')
                if len(kept) <= DOTS:
                    parts += _dots(across(np.asarray(curve.x)[kept]), up(curve.mean[kept]), stroke)
    return "".join([*parts, "</g></svg>"])


def _short(number: float) -> str:
    """A number as it stands at an axis: 1e-8, not 1e-08."""
    return re.sub(r"e([-+])0", r"e\1", f"{number:g}")


def described(curves: Curves) -> str:
    """What the curves show, in words: the text that was given, or the names of what is drawn."""
    if curves.alt:
        return curves.alt
    names = ", ".join(label(curve) for curve in curves.curves)
    return f"{curves.ylabel} over {curves.xlabel}: {names}"


def label(curve: Curve) -> str:
    """The name of a curve as the legend has it."""
    told = curve.kind == "theory" and "theory" not in curve.name.lower()
    return f"{curve.name}, theory" if told else curve.name


class _Axis:
    """Places of values along one axis of a drawing; NaN for those that have none."""

    def __init__(self, ends: tuple[float, float], log: bool, first: float, last: float) -> None:
        self.log, self.first, self.last = log, first, last
        self.low, self.high = (math.log10(end) if log else end for end in ends)

    def __call__(self, values: Any) -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):
            v = np.log10(np.asarray(values, float)) if self.log else np.asarray(values, float)
        v = np.where(np.isfinite(v), v, np.nan)
        return self.first + (v - self.low) / (self.high - self.low) * (self.last - self.first)


def _range(arrays: Sequence[np.ndarray], log: bool, tight: bool = False) -> tuple[float, float]:
    """From the least to the largest value, with a little space around if not `tight`."""
    values = np.concatenate([array.ravel() for array in arrays])
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not len(values):
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return (low / 2, low * 2) if log else (low - (abs(low) or 1) / 2, low + (abs(low) or 1) / 2)
    if tight:
        return low, high
    if log:
        room = (high / low) ** 0.04
        return low / room, high * room
    room = 0.04 * (high - low)
    return (0.0 if 0 <= low < room else low - room), high + room


def _is_whole(curves: Curves) -> bool:
    """Whether all x are whole numbers, such as counts."""
    return all(bool((np.asarray(c.x) == np.round(np.asarray(c.x))).all()) for c in curves.curves)


def ticks(low: float, high: float, log: bool = False, *, whole: bool = False) -> list[float]:
    """Round numbers between two ends, about six; on a logarithmic axis powers of ten.

    With `whole` they are whole numbers, which is for an axis of counts.

    ```python
    >>> from neuralrace.report.chart import ticks
    >>> ticks(0.0, 1.04), ticks(0.001, 1.0, log=True), ticks(1, 4, whole=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.001, 0.01, 0.1, 1.0], [1.0, 2.0, 3.0, 4.0])

    ```
    """
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first) / 6))
        decades = [float(f"1e{n}") for n in range(first, last + 1, step)]
        if len(decades) > 1:
            return decades
    rough = max((high - low) / 7, 1.0 if whole else 0.0)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def _line(x: np.ndarray, y: np.ndarray) -> str:
    """A path through the points, broken where there is none."""
    parts, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isfinite(a) and math.isfinite(b):
            parts.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(parts)


def _dots(x: np.ndarray, y: np.ndarray, colour: str) -> list[str]:
    points = zip(x.tolist(), y.tolist(), strict=True)
    return [
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" style="fill:{colour}"/>'
        for a, b in points
        if math.isfinite(a) and math.isfinite(b)
    ]


def _area(curve: Curve, across: _Axis, up: _Axis) -> str:
    """The range of the seeds as a closed path, where it can be drawn."""
    kept = thinned(curve.mean)
    x = across(np.asarray(curve.x)[kept])
    low, high = (up(f(curve.seeds[:, kept], axis=0)) for f in (np.min, np.max))
    there = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    if there.sum() < 2:
        return ""
    x, low, high = x[there], low[there], high[there]
    return _line(np.r_[x, x[::-1]], np.r_[high, low[::-1]]) + "Z"
