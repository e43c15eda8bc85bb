"""Reports: plain values in, one HTML page with its data files beside it out."""

from neuralrace.report.keeping import from_json, to_json
from neuralrace.report.markup import html
from neuralrace.report.page import (
    DEFAULT,
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
from neuralrace.report.parts import curves_of, equations_of
from neuralrace.report.writing import provenance, write

__all__ = [
    "DEFAULT",
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
    "curves_of",
    "equations_of",
    "from_json",
    "html",
    "provenance",
    "to_json",
    "write",
]
