"""A page as one HTML text that needs nothing beside it: style, script and pictures are part of it.

Whatever was given is escaped. The page also forbids itself, by its content security policy, to load
anything from elsewhere and to run any script but the package's own.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from neuralrace.report import chart
from neuralrace.report.formulas import formula
from neuralrace.report.names import address, place
from neuralrace.report.page import (
    DEFAULT,
    Code,
    Curves,
    Equation,
    File,
    Page,
    Part,
    Picture,
    Provenance,
    Section,
    Setting,
    Table,
    Text,
)
from neuralrace.text import numbered

SMALLEST = 0.62
"""How far a picture may shrink on a phone before it scrolls instead: seven points stay legible."""

PIXELS_PER_POINT = 1.75
"""The pixels that show one point of a picture in SVG."""

PIXELS_PER_DOT = PIXELS_PER_POINT * 72 / 200
"""The pixels that show one dot of a picture in PNG, of which an inch has 200."""


def html(page: Page) -> str:
    """The whole page as HTML.

    ```python
    >>> from neuralrace import report
    >>> page = report.Page("a < b", answer=["`xor` wins."])
    >>> text = report.html(page)
    >>> "<title>a &lt; b</title>" in text, "<code>xor</code> wins." in text
    (True, True)

    ```
    """
    return _Writer({}).page(page)


def html_in_folder(page: Page, widths: Mapping[str, float]) -> str:
    """The whole page, given the widths of the pictures that are files beside it."""
    return _Writer(widths).page(page)


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
    if isinstance(given, float):
        return f"{given:.{digits}g}"
    if isinstance(given, (list, tuple)):
        return ", ".join(value(v, digits) for v in given)
    if isinstance(given, dict):
        return ", ".join(f"{name}: {value(v, digits)}" for name, v in given.items())
    return str(given)


class _Writer:
    """Writes one page; keeps the names of places that are taken."""

    def __init__(self, widths: Mapping[str, float]) -> None:
        self.widths = widths
        self.taken: set[str] = set()
        self.drawings = 0

    def page(self, page: Page) -> str:
        sections = [*page.sections]
        entries: list[tuple[str, str, list[tuple[str, str]]]] = []
        body = [self.section(section, 2, entries) for section in sections]
        if page.settings:
            body.append(self.closing("Settings", _settings(page.settings), entries))
        if page.files:
            body.append(self.closing("Files", _file_list(page.files), entries))
        if page.provenance is not None:
            body.append(self.closing("How this was made", _provenance(page.provenance), entries))
        scripts = [_script(), _asset("page.js")] if self.drawings else []
        sheets = [_asset("page.css"), _palette()] + [_asset("uPlot.min.css")] * bool(scripts)
        answer = "".join(map(_paragraphs, page.answer))
        return "\n".join(
            [
                '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
                f"<title>{escape(page.title)}</title>",
                f"<style>{chr(10).join(sheets)}</style></head>",
                f"<body><header><h1>{_inline(page.title)}</h1>",
                f'<div class="question">{_paragraphs(page.question)}</div>' * bool(page.question),
                f'<div class="answer">{answer}</div>' * bool(answer),
                _contents(entries) if len(sections) >= 3 else "",
                "</header><main>",
                *body,
                "</main>",
                *(f"<script>{script}</script>" for script in scripts),
                "</body></html>\n",
            ]
        )

    def closing(self, title: str, body: str, entries: list[Any]) -> str:
        """A section that every report ends with."""
        name = place(title, self.taken)
        entries.append((name, title, []))
        return f'<section id="{name}"><h2>{title}</h2>{body}</section>'

    def section(self, section: Section, level: int, entries: list[Any]) -> str:
        name = place(section.title, self.taken)
        below: list[Any] = []
        if not section.folded:
            entries.append((name, section.title, below))
        heading = f"<h{level}>{_inline(section.title)}</h{level}>"
        body = "\n".join(self.parts(section.parts, min(level + 1, 6), below))
        if section.folded:
            return f'<details id="{name}"><summary>{heading}</summary>{body}</details>'
        return f'<section id="{name}">{heading}{body}</section>'

    def parts(self, parts: Sequence[Part], level: int, below: list[Any]) -> Iterable[str]:
        for are_files, group in groupby(parts, lambda part: isinstance(part, File)):
            if are_files:
                links = (_link(part) for part in group if isinstance(part, File))
                yield f'<p class="links">{" · ".join(links)}</p>'
                continue
            for part in group:
                yield self.part(part, level, below)

    def part(self, part: Part, level: int, below: list[Any]) -> str:
        match part:
            case Text():
                return _paragraphs(part.text)
            case Code():
                return f"<pre><code>{escape(part.text)}</code></pre>"
            case Table():
                return _table(part)
            case Curves():
                return self.curves(part)
            case Picture():
                return self.picture(part)
            case Equation():
                caption = _caption(part.caption)
                shown = f'<div class="equation" tabindex="0">{formula(part)}</div>'
                return f"<figure>{shown}{caption}</figure>"
            case Section():
                return self.section(part, level, below)
            case File():
                return _link(part)

    def curves(self, curves: Curves) -> str:
        self.drawings += 1
        name = place(f"curves-{self.drawings}", self.taken)
        drawing = chart.drawing(curves, name)
        entries = []
        for curve, look in zip(curves.curves, chart.looks(curves), strict=True):
            line = f'<line class="{curve.kind}" x2="34" y1="5" y2="5" style="{look}"/>'
            entries.append(
                '<li><button type="button" aria-pressed="true" disabled>'
                f'<svg aria-hidden="true">{line}</svg>{escape(chart.label(curve))} '
                "<output></output></button></li>"
            )
        return (
            f'<figure class="curves" id="{name}">'
            f'<script type="application/json">{chart.numbers(curves)}</script>'
            f'{drawing}<ul class="legend">{"".join(entries)}</ul>'
            f"{_caption(curves.caption, curves.file)}</figure>"
        )

    def picture(self, picture: Picture) -> str:
        if isinstance(picture.source, str):
            source, width = address(picture.source), self.widths.get(picture.source, 0.0)
        else:
            kind = "png" if picture.source.startswith(b"\x89PNG") else "svg+xml"
            data = base64.b64encode(picture.source).decode()
            source, width = f"data:image/{kind};base64,{data}", picture_width(picture.source)
        size = f' width="{width:.0f}" style="--least:{SMALLEST * width:.0f}px"' if width else ""
        lazy = ' loading="lazy"' * isinstance(picture.source, str)
        shown = f'<img src="{source}" alt="{escape(picture.alt)}"{lazy}{size}>'
        if isinstance(picture.source, str):
            shown = f'<a href="{source}">{shown}</a>'
        return f'<figure><div class="picture">{shown}</div>{_caption(picture.caption)}</figure>'


# ---- text ----------------------------------------------------------------------------------------


def _inline(text: str) -> str:
    """Escaped text, words between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _paragraphs(text: str) -> str:
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return "".join(f"<p>{_inline(part)}</p>" for part in parts if part)


def _caption(text: str, file: str = "") -> str:
    link = f'<p><a href="{address(file)}" download>{escape(file)}</a></p>' if file else ""
    body = _paragraphs(text) + link
    return f"<figcaption>{body}</figcaption>" if body else ""


def _contents(entries: Sequence[tuple[str, str, Sequence[Any]]]) -> str:
    """Links to the sections, and to those directly inside them."""

    def listed(those: Sequence[Any], depth: int) -> str:
        if not those or depth == 0:
            return ""
        items = (
            f'<li><a href="#{name}">{_inline(title)}</a>{listed(below, depth - 1)}</li>'
            for name, title, below in those
        )
        flat = ' class="flat"' * (depth == 2 and not any(below for _, _, below in those))
        return f"<ul{flat}>{''.join(items)}</ul>"

    return f'<nav aria-label="Contents">{listed(entries, 2)}</nav>'


# ---- tables --------------------------------------------------------------------------------------


def _table(table: Table) -> str:
    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.head)
    numeric = [_is_numeric(column) for column in columns]
    head = "".join(
        f'<th scope="col"{_number(n)}>{_inline(str(name))}</th>'
        for name, n in zip(table.head, numeric, strict=True)
    )
    rows = (
        "<tr>" + "".join(_cell(c, n) for c, n in zip(row, numeric, strict=True)) + "</tr>"
        for row in table.rows
    )
    body = _scrolling(head, rows)
    return f"<figure>{body}{_caption(table.caption, table.file)}</figure>"


def _scrolling(head: str, rows: Iterable[str], kind: str = "") -> str:
    """A table that scrolls sideways by itself where it is wider than the page."""
    return (
        f'<div class="scroll" tabindex="0"><table{kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _is_numeric(column: Sequence[Any]) -> bool:
    plain = [c.item() if hasattr(c, "item") else c for c in column if c is not None]
    return bool(plain) and all(
        isinstance(c, int | float) and c is not True and c is not False for c in plain
    )


def _number(numeric: bool) -> str:
    return ' class="number"' * numeric


def _cell(cell: Any, numeric: bool) -> str:
    if hasattr(cell, "item"):
        cell = cell.item()
    if isinstance(cell, bool):
        word, sign = ("yes", "✓") if cell else ("no", "✗")
        mark = f'<span class="{word}" role="img" aria-label="{word}">{sign}</span>'
        return f'<td class="truth">{mark}</td>'
    text = value(cell).replace(" %", "\u00a0%")  # not broken between number and sign
    kind = _number(numeric) or ' class="words"' * (len(text) > 24)
    return f"<td{kind}>{_inline(text)}</td>"


def _settings(settings: Sequence[Setting]) -> str:
    """Settings that somebody chose; the others are folded."""
    chosen = [setting for setting in settings if setting.source != DEFAULT]
    others = [setting for setting in settings if setting.source == DEFAULT]
    shown = _setting_table(chosen) if chosen else ""
    if others:
        count = f"{numbered(len(others), 'more setting', '1')} at the default"
        shown += f"<details><summary>{count}</summary>{_setting_table(others)}</details>"
    return shown


def _setting_table(settings: Sequence[Setting]) -> str:
    sources = {setting.source for setting in settings} != {DEFAULT}
    about = any(setting.about for setting in settings)
    rows = []
    for setting in settings:
        shown = _inline(value(setting.value, digits=12))
        if not setting.is_default:
            usual = _inline(value(setting.default, digits=12))
            shown = f'<span class="changed">{shown}</span> (default {usual})'
        cells = [f"<td><code>{escape(setting.name)}</code></td>", f"<td>{shown}</td>"]
        cells += [f'<td class="words">{_inline(setting.about)}</td>'] * about
        cells += [f"<td>{_inline(setting.source)}</td>"] * sources
        rows.append(f"<tr>{''.join(cells)}</tr>")
    names = ("setting", "value", *("what it is",) * about, *("from",) * sources)
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return _scrolling(head, rows, ' class="full"')


def _provenance(made: Provenance) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in made.packages.items())
    rows = {
        "command": f"<code>{escape(made.command)}</code>" if made.command else "",
        "version": escape(" ".join(filter(None, ["neuralrace", made.version])))
        * bool(made.version),
        "commit": f"<code>{escape(made.commit)}</code>" if made.commit else "",
        "date": escape(made.date),
        "seeds": escape(value(made.seeds)),
        "devices": escape(", ".join(made.devices)),
        "time": "" if made.seconds is None else f"{made.seconds:.1f} s",
        "packages": escape(packages),
    }
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{v}</dd>" for k, v in rows.items() if v) + "</dl>"


# ---- files and pictures --------------------------------------------------------------------------


def _link(file: File) -> str:
    about = f": {_inline(file.about)}" if file.about else ""
    return f'<a href="{address(file.name)}">{escape(file.name)}</a>{about}'


def _file_list(those: Sequence[File]) -> str:
    return "<ul>" + "".join(f"<li>{_link(file)}</li>" for file in those) + "</ul>"


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


@cache
def _palette() -> str:
    return (
        f":root {{ {chart.palette(dark=False)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {chart.palette(dark=True)} }} }}"
    )


def _policy(scripts: Sequence[str]) -> str:
    """Nothing from elsewhere; of scripts only those of which this is the digest."""
    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; img-src 'self' data: file:; style-src 'unsafe-inline'; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )
