"""Pictures and curves of a page also as files, in the formats that the look asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.plot import current_look, draw_curves, picture_bytes, style
from neuralrace.report.chart import shown_until
from neuralrace.report.page import Curves, File, Page, Part, Picture, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def with_copies(page: Page) -> Page:
    """The page with links under every picture and all curves to the same as files.

    They are called `figure_1.pdf`, `figure_2.pdf`, … in the order of the page. Pictures that are
    files already stay as they are. A picture that was made outside of the look has no PDF and no
    PNG: it is an SVG file.
    """
    if not current_look().formats:
        return page
    numbers = count(1)
    sections = [replace(s, parts=list(_parts(s.parts, numbers))) for s in page.sections]
    return replace(page, sections=sections)


def _parts(parts: Sequence[Part], numbers: Iterator[int]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Section):
            yield replace(part, parts=list(_parts(part.parts, numbers)))
            continue
        yield part
        if isinstance(part, Curves):
            copies = _drawn(part)
        elif isinstance(part, Picture) and isinstance(part.source, bytes):
            own = "png" if part.source.startswith(b"\x89PNG") else "svg"
            there = {**part.copies, own: part.source}
            copies = {kind: there[kind] for kind in current_look().formats if kind in there}
        else:
            continue
        name = f"figure_{next(numbers)}"  # also of one without copies: a name stays the same
        yield from (File(f"{name}.{kind}", "", data) for kind, data in copies.items())


def _drawn(curves: Curves) -> dict[str, bytes]:
    """Curves as matplotlib draws them, in every format."""
    import matplotlib.pyplot as plt

    figure = drawn_curves(curves).get_figure(root=True)
    assert figure is not None, "axes that were just made"
    found = {kind: picture_bytes(figure, kind) for kind in current_look().formats}
    plt.close(figure)
    return found


def drawn_curves(curves: Curves) -> Axes:
    """Curves as matplotlib draws them: the kinds in their order, theory on top."""
    import matplotlib.pyplot as plt

    with style():
        _, ax = plt.subplots()
        for kind in ("relu", "simulation", "theory"):
            those = [curve for curve in curves.curves if curve.kind == kind]
            if those:
                draw_curves(
                    {curve.name: np.asarray(curve.x) for curve in those},
                    {curve.name: np.asarray(curve.y) for curve in those},
                    kind=kind,
                    xlabel=curves.xlabel,
                    ylabel=curves.ylabel,
                    band="range",
                    log=curves.ylog,
                    ax=ax,
                )
        if curves.xlog:
            ax.set_xscale("log")
        until = shown_until(curves)
        if until is not None:
            ax.set_xlim(right=until)
    return ax
