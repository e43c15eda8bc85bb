"""Reports: plain values in, one HTML page with its data files beside it out."""

from neuralrace.report.markup import html
from neuralrace.report.page import (
    Code,
    Curve,
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
from neuralrace.report.writing import write

__all__ = [
    "Code",
    "Curve",
    "Curves",
    "Equation",
    "File",
    "Page",
    "Part",
    "Picture",
    "Provenance",
    "Section",
    "Setting",
    "Table",
    "Text",
    "html",
    "write",
]
