"""A page as one HTML text that needs nothing beside it: style, script and pictures are part of it.

Jinja2 escapes whatever was given. The page also forbids itself, by its content security policy, to
load anything from elsewhere and to run any script but the package's own.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from itertools import chain, count
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote

import numpy as np

from neuralrace.mathml import formula
from neuralrace.report import chart
from neuralrace.report.page import DEFAULT, Page, Picture, Table

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SMALLEST = 0.62
"""How far a picture may shrink on a phone before it scrolls instead: seven points stay legible."""

PIXELS_PER_POINT = 1.75
"""The pixels that show one point of a picture in SVG."""

PIXELS_PER_DOT = PIXELS_PER_POINT * 72 / 200
"""The pixels that show one dot of a picture in PNG, of which an inch has 200."""


def html(page: Page, widths: Mapping[str, float] | None = None) -> str:
    """The whole page as HTML.

    **Arguments:** `widths` are those of the pictures that are files beside the page, in pixels.

    ```python
    >>> from neuralrace import report
    >>> page = report.Page("a < b", answer=["`xor` wins."])
    >>> text = report.html(page)
    >>> "<title>a &lt; b</title>" in text, "<code>xor</code> wins." in text
    (True, True)

    ```
    """
    filters = {"width": partial(_shown_width, widths or {})}
    made = _environment().overlay()
    made.filters = made.filters | filters
    return made.get_template("page.html").render(page=page, places=_Places())


def value(given: Any, digits: int = 4) -> str:
    """A value as it is read on a page.

    ```python
    >>> from neuralrace.report.markup import value
    >>> value(0.123456), value([1, 2.0]), value(None), value(True), value({"a": 1})
    ('0.1235', '1, 2', '–', 'true', 'a: 1')

    ```
    """
    if given is None:
        return "–"
    if hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, float) and np.isinf(given):
        return "never" if given > 0 else "−∞"
    if isinstance(given, float):
        return f"{given:.{digits}g}"
    if isinstance(given, (list, tuple)):
        return ", ".join(value(v, digits) for v in given)
    if isinstance(given, dict):
        return ", ".join(f"{name}: {value(v, digits)}" for name, v in given.items())
    return str(given)


@final
@dataclass
class _Entry:
    """A line of the contents, with those below it."""

    name: str
    title: str
    below: list[_Entry] = field(default_factory=list)


@final
class _Places:
    """Names for places on a page, and the contents: headings of the levels 2 and 3."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.entries: list[_Entry] = []

    def __call__(self, title: str, level: int = 0) -> str:
        """A name that no other place has; level 0 is not among the contents."""
        name = self.named(title)
        if level == 2:
            self.entries.append(_Entry(name, title))
        elif level == 3:
            self.entries[-1].below.append(_Entry(name, title))
        return name

    def named(self, title: str) -> str:
        word = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"
        later = (f"{word}-{number}" for number in count(2))
        name = next(name for name in chain([word], later) if name not in self.taken)
        self.taken.add(name)
        return name


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=PackageLoader("neuralrace.report"), autoescape=True, undefined=StrictUndefined
    )
    made.filters |= {
        "address": quote,
        "asset": lambda name: Markup(_asset(name)),
        "cells": _cells,
        "described": chart.described,
        "drawing": lambda curves: chart.drawings(curves)["svg"],
        "embedded": _embedded,
        "formula": lambda equation: Markup(formula(equation.expressions)),
        "heads": _heads,
        "inline": _inline,
        "kind": lambda part: type(part).__name__,
        "label": chart.label,
        "looks": chart.looks,
        "numbers": lambda curves: Markup(chart.numbers(curves)),
        "parts": _paragraphs,
        "picture_width": picture_width,
        "policy": _policy,
        "value": value,
    }
    made.globals |= {
        "default": DEFAULT,
        "page_scripts": [Markup(script) for script in (_script(), _asset("page.js"))],
        "palette": Markup(_palette()),
        "smallest": SMALLEST,
    }
    return made


# ---- text and tables -----------------------------------------------------------------------------


def _inline(text: str) -> Markup:
    """Escaped text, words between backticks as code; numbers are not parted from their signs."""
    from markupsafe import Markup, escape

    kept = re.sub(r"(?<=\d) (?=%)|(?<=\b\w) (?==)|(?<=\b\w =) (?=\d)", "\u00a0", str(text))
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(kept))))


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def _numeric(table: Table) -> list[bool]:
    """Whether columns have numbers alone."""
    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.head)
    there = ([_plain(cell) for cell in column if cell is not None] for column in columns)
    is_number = lambda cell: isinstance(cell, int | float) and not isinstance(cell, bool)
    return [
        name in table.right or (bool(cells) and all(map(is_number, cells)))
        for name, cells in zip(table.head, there, strict=True)
    ]


def _plain(cell: Any) -> Any:
    return cell.item() if hasattr(cell, "item") else cell


def _heads(table: Table) -> list[tuple[str, str]]:
    kinds = ("number" * numeric for numeric in _numeric(table))
    return list(zip(map(str, table.head), kinds, strict=True))


def _cells(table: Table) -> Iterator[list[tuple[str, Any]]]:
    """The cells of every row: how each is shown, and what."""
    numeric = _numeric(table)
    for row in table.rows:
        yield [_cell(_plain(cell), n) for cell, n in zip(row, numeric, strict=True)]


def _cell(cell: Any, numeric: bool) -> tuple[str, Any]:
    if isinstance(cell, bool):
        return "truth", cell
    text = value(cell)
    return "number" if numeric else "words" * (len(text) > 24), text


# ---- pictures ------------------------------------------------------------------------------------


def _embedded(picture: bytes) -> str:
    """A picture as an address that holds all of it."""
    kind = "png" if picture.startswith(b"\x89PNG") else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


def _shown_width(widths: Mapping[str, float], picture: Picture) -> float:
    source = picture.source
    return widths.get(source, 0.0) if isinstance(source, str) else picture_width(source)


def picture_width(picture: bytes) -> float:
    """The width at which a picture is shown, in pixels, told by its first bytes; 0: not known.

    Both are shown so large that text of eight points is 14 pixels high.
    """
    if picture.startswith(b"\x89PNG"):
        return struct.unpack(">I", picture[16:20])[0] * PIXELS_PER_DOT
    found = re.search(rb'<svg[^>]*?\swidth="([0-9.]+)pt"', picture)
    return float(found[1]) * PIXELS_PER_POINT if found else 0.0


# ---- style, script, policy -----------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    return files("neuralrace.report").joinpath("assets", name).read_text("utf-8")


@cache
def _script() -> str:
    """The vendored library, with its licence."""
    return f"/*\nuPlot\n{_asset('uPlot.LICENSE')}\n*/\n{_asset('uPlot.iife.min.js')}"


def _palette() -> str:
    return (
        f":root {{ {chart.palette(dark=False)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {chart.palette(dark=True)} }} }}"
    )


def _policy(scripts: Sequence[str]) -> Markup:
    """Nothing from elsewhere; of scripts only those of which this is the digest."""
    from markupsafe import Markup

    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return Markup(
        f"default-src 'none'; img-src 'self' data: file:; style-src 'unsafe-inline'; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )
