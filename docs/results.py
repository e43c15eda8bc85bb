"""Every result and its columns on one page: `python -m docs.results` writes them to results.md."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from neuralrace.results import Result

PAGE = Path(__file__).with_name("results.md")

MARK = "Below are the columns of every result.\n"
"""What stands below this line is written here; the rest of the page is by hand."""


def results() -> Iterator[type[Result]]:
    """Every public kind of result, in the order of the rooms on the page of public names."""
    from docs.api import ROOMS

    for room in ROOMS:
        module = import_module(f"neuralrace.{room}")
        for name in getattr(module, "__all__", ()):
            kind = getattr(module, name)
            if inspect.isclass(kind) and issubclass(kind, Result) and kind is not Result:
                yield kind


def section(kind: type[Result]) -> str:
    """What the page says of one kind of result: its name, what it is, its columns."""
    room = kind.__module__.split(".")[1]
    first = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
    columns = inspect.cleandoc(kind.frame.__doc__ or "").split("```")[0].strip()
    return f"## `nr.{room}.{kind.__name__}`\n\n{' '.join(first.split())}\n\n{columns}\n"


def page() -> str:
    """The whole page."""
    return "\n".join([PAGE.read_text().partition(MARK)[0] + MARK, *map(section, results())])


if __name__ == "__main__":
    PAGE.write_text(page())
