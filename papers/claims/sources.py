"""Which code computed a table: a hash of the definitions in `papers` that a function goes through.

The names in a function's body are followed to their definitions, in the same module or imported
from others of `papers`. Docstrings, comments, annotations, and the modules in which
definitions stand do not count: text can be edited and files can be split without a new hash. The
package, and modules here that have tests of their own, do not count either: the commit names them.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

ROOM = "papers"
"""The modules whose definitions are followed."""

FORMERLY = f"neuralrace.{ROOM}"
"""Their name while they were part of the package, which stored hashes and old commits have."""

FRAME = frozenset(f"{ROOM}.{name}" for name in ("figure", "measure", "record"))
"""Modules that hold and judge numbers and compute none: they are not followed."""

TESTED = frozenset(
    f"{ROOM}.nrr.{name}"
    for name in (
        *("bounded", "domains", "features", "image_routing", "route_errors"),
        *("routed", "routed_images", "routing", "transforms"),
    )
)
"""Modules that were part of the package, and have tests of their own: they are not followed."""

MADE = "made.json"
"""The file in a folder of tables that says which code computed each of them."""


@final
@dataclass(frozen=True)
class Origin:
    """Which code computed a table: the commit, and the hash of what it went through.

    `code` names the function, as `module:name`. `stale` marks a table whose code has changed since.
    `device` is what computed it, for figures that say so. Texts are empty if nothing is known.
    """

    commit: str = ""
    source: str = ""
    code: str = ""
    stale: bool = False
    device: str = ""

    @property
    def unchanged(self) -> bool:
        """Whether the code of `papers` that computed the table, if it is known, is still here."""
        module, _, name = self.code.partition(":")
        return not self.source or self.source == hash_of(module, name)


def read_origins(folder: Path) -> dict[str, Origin]:
    """Where the tables of a folder come from, by the names of their files."""
    path = folder / MADE
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: Origin(**each) for name, each in found.items()}


def write_origins(folder: Path, made: Mapping[str, Origin]) -> None:
    """Add to what a folder says of its tables; other processes may be writing too."""
    with (folder / "made.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = {**read_origins(folder), **made}
        text = {
            name: {"commit": made.commit, "source": made.source}
            for name, made in sorted(whole.items())
        }
        part = folder / "made.part"
        part.write_text(json.dumps(text, indent=1) + "\n")
        part.replace(folder / MADE)


Reader = Callable[[str], str | None]
"""The source of a module by its name, or None if there is no such module."""


@cache
def installed(module: str) -> str | None:
    """The source of a module of `papers` as it is here."""
    stem = Path(__file__).parents[2].joinpath(*module.split("."))
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.exists():
            return path.read_text()
    return None


def place_of(function: Callable[..., Any]) -> str:
    """Where a function is defined, as `module:name`."""
    return f"{function.__module__}:{function.__qualname__.split('.')[0]}"


def source_hash(function: Callable[..., Any], read: Reader = installed) -> str:
    """The hash of everything in `papers` that a function of a module goes through.

    ```python
    >>> from papers.claims.mhs.measurements import census, interlacing
    >>> from papers.claims import source_hash
    >>> len(source_hash(census)), source_hash(census) == source_hash(interlacing)
    (12, False)

    ```
    """
    module, _, name = place_of(function).partition(":")
    return hash_of(module, name, read)


def hash_of(module: str, name: str, read: Reader = installed) -> str:
    """The same for a definition by its place, which need not be importable."""
    todo, found = [(module, name)], {}
    while todo:
        place = todo.pop()
        if place not in found:
            text, uses = _definition(*place, read)
            found[place] = text
            todo += uses
    whole = "\n".join(sorted(filter(None, found.values())))
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


@cache
def _statements(source: str) -> list[ast.stmt]:
    """The statements of a module, which are not to be changed."""
    return ast.parse(source).body


@cache
def _definition(module: str, name: str, read: Reader) -> tuple[str, list[tuple[str, str]]]:
    """The text of a definition, and the definitions that it uses."""
    source = None if module in FRAME | TESTED else read(module)
    if source is None:
        return "", []
    body = _statements(source)
    known = dict(_imported(body, read))
    if name in known:
        return "", [known[name]]
    defined = {each: node for node in body for each in _names(node)}
    if name not in defined:
        return "", []
    node = _Bare().visit(deepcopy(defined[name]))
    known |= {each: (module, each) for each in defined}
    known = {k: place for k, place in known.items() if k not in _local(node)}
    known |= dict(_imported(ast.walk(node), read))
    uses = [known[n.id] for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in known]
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            where, inner = known.get(part.value.id, ("", "-"))
            uses += [(where, part.attr)] if not inner else []
    text = ast.unparse(ast.fix_missing_locations(node))
    text = text.replace('"', "'")  # Python 3.12 quotes f-strings otherwise than 3.11
    return text, [use for use in uses if use[1]]


def _local(node: ast.AST) -> set[str]:
    """The names that a function binds itself, as arguments or variables."""
    if not isinstance(node, ast.FunctionDef):
        return set()
    inside = list(ast.walk(node))
    bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bound | {n.arg for n in inside if isinstance(n, ast.arg)}


def _names(node: ast.AST) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _imported(nodes: Any, read: Reader) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names that are imported from `papers`: (module, name), or (module, "") for a module."""
    for node in nodes:
        module = getattr(node, "module", None) or ""
        module = module.removeprefix("neuralrace.") if module.startswith(FORMERLY) else module
        if isinstance(node, ast.ImportFrom) and module.startswith(ROOM):
            for each in node.names:
                inner = f"{module}.{each.name}"
                place = (inner, "") if read(inner) is not None else (module, each.name)
                yield each.asname or each.name, place


class _Bare(ast.NodeTransformer):
    """Removes docstrings and annotations, and of a figure all but its settings and its numbers.

    Imports from `papers` are written as they were when it was part of the package.
    """

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if (node.module or "").startswith(ROOM):
            node.module = f"neuralrace.{node.module}"
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "Figure":
            node.keywords = [k for k in node.keywords if k.arg in ("settings", "compute")]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.Pass() if text else self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(0)
        return self.generic_visit(node)


def checked_out() -> str:
    """The commit that is checked out where this package lies, marked if `papers` was changed.

    Empty where there is no repository.
    """
    here = Path(__file__).parent
    git = lambda *words: subprocess.run(
        ["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--", str(here.parent))
        return git("rev-parse", "--short", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""
