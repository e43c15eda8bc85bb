"""Claims about the public interface and the source: definite types, no repetition."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import neuralrace
from evidence.promise import Measurement, claim

SECTION = "Public interface"
SOURCE = Path(neuralrace.__file__).parent
"""The folder of the package."""

TYPES_BEFORE = 490
"""The number of public parameters, of 1647, without a definite type in version 0.1.0."""

RUNS_BEFORE = 2
"""The number of repeated runs of lines in version 0.1.0, counted as below."""

SAME = 6
"""The number of equal lines in a row that make a repetition."""

CALLED = ("__call__", "__init__", "__getitem__")
"""Methods that count as public although their names begin with an underscore."""


def _says_any(annotation: ast.expr | None) -> bool:
    """Whether a parameter has no annotation, or one that contains `Any`."""
    if annotation is None:
        return True
    nodes = ast.walk(annotation)
    return any("Any" in (getattr(n, "id", ""), getattr(n, "attr", "")) for n in nodes)


def _parameters(body: list[ast.stmt]) -> list[ast.expr | None]:
    """The annotations of all parameters of the public functions and methods."""
    found: list[ast.expr | None] = []
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found += _parameters(node.body)
        elif isinstance(node, ast.FunctionDef):
            if node.name.startswith("_") and node.name not in CALLED:
                continue
            a = node.args
            every = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
            found += [p.annotation for p in every if p and p.arg not in ("self", "cls")]
    return found


def untyped(source: Path) -> tuple[int, int]:
    """How many parameters have no definite type, and how many there are."""
    found = [p for f in source.rglob("*.py") for p in _parameters(ast.parse(f.read_text()).body)]
    return sum(map(_says_any, found)), len(found)


def _lines(path: Path) -> list[str]:
    """The lines of code that could repeat something.

    Blank lines, comments, imports and signatures do not count: related functions take the same
    arguments on purpose.
    """
    text = path.read_text()
    passed = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            passed |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.FunctionDef):
            passed |= set(range(node.lineno, node.body[0].lineno))
    numbered = enumerate(text.splitlines(), start=1)
    lines = (" ".join(line.split()) for i, line in numbered if i not in passed)
    thin = re.compile(r"$|#|[\W_]*$|>>>|\.\.\. |```")
    return [line for line in lines if not thin.match(line)]


def repeated_runs(source: Path) -> int:
    """The number of runs of at least `SAME` lines that occur twice; each pair counts once."""
    files = {path: _lines(path) for path in sorted(source.rglob("*.py"))}
    places = defaultdict(list)
    for path, lines in files.items():
        for i in range(len(lines) - SAME + 1):
            places[tuple(lines[i : i + SAME])].append((path, i))
    pairs = {
        (a, b)
        for where in places.values()
        for n, a in enumerate(where)
        for b in where[n + 1 :]
        if a[0] != b[0] or b[1] - a[1] >= SAME
    }
    begins = [((a, i), (b, k)) for (a, i), (b, k) in pairs if ((a, i - 1), (b, k - 1)) not in pairs]
    return len(begins)


@claim(
    "public/types",
    SECTION,
    f"public parameters annotated Any, or not at all ({TYPES_BEFORE} of 1647 in version 0.1.0)",
    "at most 100",
    slow=True,
)
def typed(full: bool) -> Measurement:
    count, every = untyped(SOURCE)
    rooms = {path.name: untyped(path)[0] for path in SOURCE.iterdir() if path.is_dir()}
    most = sorted(rooms.items(), key=lambda room: -room[1])[:4]
    told = ", ".join(f"{name} {n}" for name, n in most)
    note = (
        f"By room: {told}. Explorer and papers take messages, and axes of pictures, as they come."
    )
    return Measurement(f"{count} of {every}", count <= 100, note if count > 100 else "")


@claim(
    "public/repetition",
    SECTION,
    f"runs of {SAME} or more equal lines of code that stand twice ({RUNS_BEFORE} in version 0.1.0)",
    "fewer than in version 0.1.0",
    slow=True,
)
def once(full: bool) -> Measurement:
    count = repeated_runs(SOURCE)
    return Measurement(str(count), count < RUNS_BEFORE)
