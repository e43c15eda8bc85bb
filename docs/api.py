"""The public interface on one page: `python -m docs.api` writes docs/api.md."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import neuralrace as nr

PAGE = Path(__file__).with_name("api.md")

ROOMS = {
    "architecture": "The graph",
    "dataset": "Data",
    "tasks": "Tasks and their gatings",
    "gdln": "Gated deep linear networks",
    "learned": "Gates that are learned",
    "relu": "ReLU networks",
    "losses": "Losses",
    "dynamics": "Training and gradient flow",
    "trajectory": "Runs and solutions",
    "statistics": "Statistics of paths",
    "compression": "Exact compression",
    "reduction": "The neural race reduction",
    "contests": "Which gating learns first",
    "reln": "ReLU networks as gated ones",
    "explanation": "Which small model explains a network",
    "interop": "Networks from elsewhere",
    "sweeps": "Many cells, here or on a cluster",
    "linear": "Deep linear networks",
    "behaviour": "Learning from rewards with several teaching signals",
    "analysis": "What was learned",
    "plot": "Pictures",
    "report": "Reports",
    "study": "Studies",
    "explorer": "The explorer",
    "errors": "The package's error",
    "types": "Types of arguments and results",
}
"""The packages that users meet, in the order in which they meet them, each with a title."""

LEFT_OUT = {"errors": ("check_kind", "listed", "warn_user", "whole_number")}
"""Names that are public for packages further up, but of no use to a reader of this page."""


FROM_ELSEWHERE = {
    "ArrayLike": "NumPy's type for everything that can be read as an array: lists, arrays, numbers."
}
"""Names without a docstring of our own."""


SENTENCE_END = re.compile(r"(?<=\.)(?<!App\.)(?<!Fig\.)(?<!Eq\.)(?<!Eqs\.)\s(?=[A-Z`])")
"""The end of a sentence: a full stop, but not one of an abbreviation."""


def public(room: str) -> list[str]:
    """The public names of a room, functions and classes together, in alphabetical order."""
    names = import_module(f"neuralrace.{room}").__all__
    return sorted((n for n in names if n not in LEFT_OUT.get(room, ())), key=str.lower)


def spoken(room: str, name: str) -> str:
    """How users write a name: `nr.reduce`, or `nr.reduction.Block` if it is only in its package."""
    if name in nr.__all__ and getattr(nr, name) is getattr(
        import_module(f"neuralrace.{room}"), name
    ):
        return f"nr.{name}"
    return f"nr.{room}.{name}" if room in nr.__all__ else f"neuralrace.{room}.{name}"


def said(room: str, name: str) -> str:
    """The first sentence of the documentation of a name."""
    module = import_module(f"neuralrace.{room}")
    value = getattr(module, name)
    if name in FROM_ELSEWHERE:
        return FROM_ELSEWHERE[name]
    if inspect.isclass(value) or inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        text = inspect.getdoc(value) or ""
    else:
        text = documented_values(_home(module, name)).get(name, "")
    first = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return re.split(r"(?<!App\.)(?<!Fig\.)(?<!Eq\.)(?<!Eqs\.)(?<!al\.)(?<=\.)\s(?=[A-Z`])", first)[
        0
    ].rstrip(":")


def _home(module: ModuleType, name: str) -> ModuleType:
    """The module in which a value is defined, followed through the imports of its room."""
    for node in ast.parse(Path(str(module.__file__)).read_text()).body:
        if isinstance(node, ast.ImportFrom) and name in {a.name for a in node.names}:
            return import_module(str(node.module))
    return module


def documented_values(module: ModuleType) -> dict[str, str]:
    """The values of a module that have a docstring below their definition."""
    body = ast.parse(Path(str(module.__file__)).read_text()).body
    found = {}
    for node, below in pairwise(body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found[ast.unparse(target)] = str(getattr(below.value, "value", ""))
    return found


def page() -> str:
    """The whole page."""
    lines = [
        "# Every public name",
        "",
        "One line per name, from the docstrings; `python -m docs.api` writes this page. `nr` is",
        "`import neuralrace as nr`. `help(nr.reduce)` shows arguments, equations and an example;",
        "special words are in the [glossary](glossary.md).",
    ]
    for room, title in ROOMS.items():
        lines += ["", f"## {title}", "", "| name | what it is |", "|---|---|"]
        for name in public(room):
            sentence = said(room, name).replace("|", "\\|")
            lines.append(f"| `{spoken(room, name)}` | {sentence} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
