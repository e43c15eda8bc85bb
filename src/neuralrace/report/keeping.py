"""A page as JSON and back, so that a report can be written again without computing."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, check_kind
from neuralrace.mathml import Typeset, formula
from neuralrace.report.page import (
    Code,
    Curve,
    Curves,
    Equation,
    File,
    Page,
    Picture,
    Provenance,
    Section,
    Setting,
    Table,
    Text,
)

FORMAT = "neuralrace page 1"
KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (Text, Code, Table, Curve, Curves, Picture, Equation, File, Section)
} | {kind.__name__: kind for kind in (Setting, Provenance, Page)}
"""All that a page is made of, by name."""

KIND = "is"
"""The key under which an object says what it is."""

LEFT_OUT = ("copies", "content")
"""Fields that are not kept: what they hold lies in files beside the page."""


@door
def to_json(page: Page) -> str:
    """A page as JSON, from which `from_json` makes it again.

    Equations are kept as they are typeset, and pictures as they are drawn. Files are kept by
    their names alone.

    ```python
    >>> from neuralrace import report
    >>> page = report.Page("XoR", sections=[report.Section("S", [report.Text("`xor` wins.")])])
    >>> report.html(report.from_json(report.to_json(page))) == report.html(page)
    True

    ```
    """
    return json.dumps({"format": FORMAT, "page": _written(page)}, ensure_ascii=False)


def from_json(text: str) -> Page:
    """The page that `to_json` wrote; nothing in it is evaluated or imported.

    ```python
    >>> from neuralrace import report
    >>> report.from_json(report.to_json(report.Page("XoR", answer=["`xor` wins."]))).answer
    ['`xor` wins.']

    ```
    """
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r:.60}")
        page = _read(content["page"])
        check_kind("page", page, Page, "a page")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise NeuralRaceError(
            "this cannot be read as the page of a report",
            got=told[0][:200],
            wanted=f"JSON of format {FORMAT!r}, as to_json writes it",
            fix="run the study again: it writes a new one",
        ) from error
    return page


def _written(value: Any) -> Any:
    if isinstance(value, Equation):
        return {
            KIND: "Equation",
            "expressions": formula(value.expressions),
            "caption": value.caption,
        }
    if type(value) in KINDS.values():
        kept = (field.name for field in fields(value) if field.name not in LEFT_OUT)
        return {KIND: type(value).__name__} | {n: _written(getattr(value, n)) for n in kept}
    if isinstance(value, bytes):
        return {KIND: "bytes", "base64": base64.b64encode(value).decode()}
    if hasattr(value, "tolist"):  # arrays and NumPy's numbers
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _written(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_written(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {KIND: "float", "text": str(value)}
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(KIND)
    if kind is None:
        return {name: _read(inner) for name, inner in value.items()}
    if kind == "bytes":
        return base64.b64decode(value["base64"], validate=True)
    if kind == "float":
        return float(value["text"])
    if kind == "Equation":
        return Equation(Typeset(value["expressions"]), value["caption"])
    return KINDS[kind](**{name: _read(inner) for name, inner in value.items() if name != KIND})
