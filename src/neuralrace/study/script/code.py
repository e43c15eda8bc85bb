"""Pieces of Python code as text: calls, dictionaries, comments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WIDTH = 88
"""Columns of a line; a call that is longer is broken at its arguments."""


def call(function: str, *arguments: str, **options: Any) -> str:
    """A call, on one line where it fits.

    ```python
    >>> from neuralrace.study.script.code import call
    >>> call("nr.reduce", "arch", "data", tolerance=1e-8)
    'nr.reduce(arch, data, tolerance=1e-08)'

    ```
    """
    parts = [*arguments, *(f"{name}={value!r}" for name, value in options.items())]
    one = f"{function}({', '.join(parts)})"
    if len(one) <= WIDTH and "\n" not in one:
        return one
    return f"{function}(\n" + "".join(f"{indented(part)},\n" for part in parts) + ")"


def mapping(entries: Mapping[str, str]) -> str:
    """A dictionary of code by name, on one line where it fits."""
    parts = [f"{name!r}: {value}" for name, value in entries.items()]
    one = "{" + ", ".join(parts) + "}"
    if len(one) <= WIDTH - 8 and "\n" not in one:
        return one
    return "{\n" + "".join(f"{indented(part)},\n" for part in parts) + "}"


def indented(text: str, by: int = 4) -> str:
    return "\n".join(" " * by + line for line in text.split("\n"))


def heading(text: str) -> list[str]:
    return ["", f"# {one_line(text)}"]


def one_line(text: str) -> str:
    """Text of the user's for a comment or a docstring: it cannot end either."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")
