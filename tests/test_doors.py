"""What is public, and that everything above the library is written with public names alone.

A name is public where its room says so in `__all__`. Rooms are the modules and packages directly
below `neuralrace`.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import neuralrace as nr

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "neuralrace"
TOLERANCES = "neuralrace.tolerances"
"""Thresholds, which all rooms share and users do not import."""

ROOMS = [f"neuralrace.{path.stem}" for path in sorted(SOURCE.glob("[a-z]*.py"))]
ROOMS.remove(TOLERANCES)
ROOMS += [f"neuralrace.{path.parent.name}" for path in sorted(SOURCE.glob("*/__init__.py"))]

FENCE = re.compile(r"^```python\b[^\n]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def outside() -> Iterator[tuple[str, str]]:
    """Name and text of everything that may use public names only: modules, scripts and pages."""
    folders = [
        "src/neuralrace/cli",
        "src/neuralrace/explorer",
        "papers",
        "src/neuralrace/study",
        "examples",
        "docs",
        "tools",
    ]
    for folder in [*folders, "evidence", "benchmarks"]:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for i, block in enumerate(FENCE.finditer(path.read_text())):
            yield f"{path.relative_to(ROOT)}, block {i + 1}", without_prompts(block["code"])


def without_prompts(code: str) -> str:
    """The statements of an example with prompts; other code as it is."""
    if ">>>" not in code:
        return code
    lines = (line for line in code.splitlines() if line.startswith((">>>", "...")))
    return "\n".join(line[4:] for line in lines)


def private_names(text: str, room: str = "") -> list[str]:
    """What this code takes from the package through another door than a room's `__all__`.

    `room` is the room that the code belongs to; it may import its own modules.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules = [a.name for a in node.names if a.name.startswith("neuralrace.")]
            found += [m for m in modules if m not in ROOMS]
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuralrace"):
            own = f"{node.module}.".startswith(f"{room}.") or node.module == TOLERANCES
            if room and own:
                continue
            known = is_room = node.module in (*ROOMS, "neuralrace")
            if is_room:
                known = {*import_module(node.module).__all__, "__version__"}
            for alias in node.names:
                if not is_room or alias.name not in known:
                    found.append(f"{node.module}.{alias.name}")
        if isinstance(node, ast.Attribute) and re.match(r"nr\.(\w+\.)*_[a-z]", ast.unparse(node)):
            found.append(ast.unparse(node))
    return found


def room_of(name: str) -> str:
    parts = re.match(r"src/(neuralrace)/(\w+)/", name)
    return ".".join(parts.groups()) if parts else ""


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_is_public(room):
    names = import_module(room).__all__
    assert len(names) == len(set(names)) > 0
    for name in names:
        assert not name.startswith("_")
        value = getattr(import_module(room), name, None) or import_module(f"{room}.{name}")
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{room}.{name} has no docstring"


def test_only_public_names_are_used_outside():
    found = {name: private_names(text, room_of(name)) for name, text in outside()}
    assert len(found) > 100
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from neuralrace.reduction.race import reduce",
        "from neuralrace.reduction import Matrix",
        "import neuralrace.reduction.race",
        "def f():\n    from neuralrace import _HOME",
        "nr.reduction._x",
        without_prompts("text\n>>> from neuralrace.gdln import check_finite\n1\n"),
    ],
)
def test_a_private_name_is_found(code):
    assert private_names(code)


def test_public_names_and_own_modules_are_allowed():
    assert private_names("from neuralrace.reduction import reduce, Race") == []
    assert private_names("import neuralrace as nr\nfrom neuralrace import reln") == []
    own = "from neuralrace.study.build import names_of"
    assert private_names(own, "neuralrace.study") == []
    assert private_names(own) == ["neuralrace.study.build.names_of"]


BESIDE = ("papers", "evidence", "benchmarks", "docs", "tools", "tests", "examples")
"""Folders of a checkout that the package and its examples do not need."""


def beside(text: str) -> list[str]:
    """Modules that this code imports from folders beside the package."""
    imported = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and not node.level:
            imported.append(node.module or "")
    return [name for name in imported if name.split(".")[0] in BESIDE]


def test_the_package_and_examples_stand_without_papers():
    files = [*SOURCE.rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    used = {str(path.relative_to(ROOT)): beside(path.read_text()) for path in files}
    assert {name: modules for name, modules in used.items() if modules} == {}
    for study in (ROOT / "examples").rglob("*.toml"):
        assert not re.search(r"\bpapers\.", study.read_text()), study.name
    assert beside("from papers.nrr import fig4\nimport papers") == ["papers.nrr", "papers"]


@pytest.mark.parametrize("room", nr._ROOMS)
def test_a_public_function_of_a_room_shows_an_example(room):
    missing = []
    for name in getattr(nr, room).__all__:
        value = getattr(getattr(nr, room), name)
        if inspect.isfunction(value) and ">>>" not in (value.__doc__ or ""):
            missing.append(name)
    assert missing == []


def test_the_evidence_finds_claims_by_name_and_imports_none():
    """Its core could judge the claims of any papers; figures know its measures, not it theirs."""
    for path in (ROOT / "evidence").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(m.startswith(("papers", "evidence.own")) for m in modules), path
