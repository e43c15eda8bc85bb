"""Curves as numbers and colours for a page that can be hovered, and as matplotlib draws them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.plot import COLOURS as ROLES
from neuralrace.plot import (
    DASHES,
    SHADES,
    colour_places,
    draw_curves,
    is_lone,
    is_unpaired,
    picture_bytes,
    style,
)
from neuralrace.report.page import Curve, Curves
from neuralrace.tolerances import AT_REST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    places = {name: 0.92 * i / (len(names) - 1) for i, name in enumerate(names)}
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


def drawings(curves: Curves, formats: Collection[str] = ("svg",)) -> dict[str, bytes]:
    """The curves as pictures, by their formats: SVG for pages whose script does not run."""
    import matplotlib.pyplot as plt

    figure = drawn_curves(curves).get_figure(root=True)
    assert figure is not None, "axes that were just made"
    found = {kind: picture_bytes(figure, kind) for kind in formats}
    plt.close(figure)
    return found


def drawn_curves(curves: Curves, ax: Axes | None = None) -> Axes:
    """Curves as matplotlib draws them: the kinds in their order, theory on top."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    positive = any((curve.seeds > 0).any() for curve in curves.curves)
    with style():
        ax = plt.subplots()[1] if ax is None else ax
        for kind in ("relu", "simulation", "theory"):
            those = [curve for curve in curves.curves if curve.kind == kind]
            if those:
                draw_curves(
                    {_shown(curve.name): np.asarray(curve.x) for curve in those},
                    {_shown(curve.name): np.asarray(curve.y) for curve in those},
                    kind=kind,
                    xlabel=_shown(curves.xlabel),
                    ylabel=_shown(curves.ylabel),
                    band="range",
                    log=curves.ylog and positive,
                    ax=ax,
                )
        if curves.xlog:
            ax.set_xscale("log")
        every = [np.asarray(curve.x) for curve in curves.curves]
        if all((x == np.round(x)).all() for x in every) and not curves.xlog:  # such as counts
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        for line in ax.get_lines():
            line.set_marker("o" if np.size(line.get_xdata()) <= DOTS else "")
        until = shown_until(curves)
        if until is not None:
            ax.set_xlim(right=until)
    return ax


def _shown(text: str) -> str:
    """A text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


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
