"""The house itself: quick imports, one list of public names, layers, pinned versions."""

import ast
import configparser
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import neuralrace as nr
from tools import links

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "neuralrace"
HEAVY = ("jax", "matplotlib", "diffrax", "xarray", "sympy", "sklearn", "networkx", "pandas")
HEAVY += ("jinja2",)


def in_a_fresh_process(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


# ---- imports ------------------------------------------------------------------------------------


def test_import_is_light():
    code = f"import sys, neuralrace; print([m for m in {HEAVY} if m in sys.modules])"
    assert in_a_fresh_process(code) == "[]"


def test_touching_every_name_leaves_jax_alone_and_optional_packages_out():
    code = (
        "import sys, neuralrace as nr, jax\n"
        "[getattr(nr, name) for name in nr.__all__]\n"
        f"print(jax.config.jax_enable_x64, [m for m in {HEAVY[1:]} if m in sys.modules])"
    )
    assert in_a_fresh_process(code) == "False []"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = nr.nonsense
    assert not hasattr(nr, "Architectures")


# ---- thresholds ---------------------------------------------------------------------------------


def test_every_tolerance_has_a_sentence_and_is_used():
    body = ast.parse((SOURCE / "tolerances.py").read_text()).body
    places = [i for i, node in enumerate(body) if isinstance(node, ast.Assign)]
    names = [ast.unparse(body[i].targets[0]) for i in places]
    said = [isinstance(body[i + 1], ast.Expr) for i in places]
    imported = {
        alias.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "neuralrace.tolerances"
        for alias in node.names
    }
    assert names and all(said) and len(set(names)) == len(names)
    assert set(names) == imported


# ---- public names -------------------------------------------------------------------------------


def declared_for_type_checkers() -> dict[str, str]:
    """Name → module in the `if TYPE_CHECKING:` block of `__init__.py`."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    declared = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, f"{alias.name} must be re-exported under its name"
            declared[alias.name] = node.module
    return declared


def test_type_checkers_see_the_names_that_are_there():
    wanted = {name: f"neuralrace.{home}" for name, home in nr._HOME.items()}
    wanted |= dict.fromkeys(nr._ROOMS, "neuralrace")
    assert declared_for_type_checkers() == wanted
    assert sorted(nr.__all__) == sorted([*nr._HOME, *nr._ROOMS])
    assert set(nr.__all__) <= set(dir(nr))


@pytest.mark.parametrize("name", nr.__all__)
def test_a_public_name_resolves_and_shows_an_example(name):
    value = getattr(nr, name)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return
    assert value.__doc__, f"{name} has no docstring"
    if not inspect.isabstract(value):
        assert ">>>" in value.__doc__, f"the docstring of {name} has no example"


@pytest.mark.parametrize("name", nr.__all__)
def test_a_public_name_is_in_the_changelog(name):
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"`(nr\.)?{name}\b", changelog), f"{name} is not in CHANGELOG.md"


def test_version_is_the_same_everywhere():
    assert f'\nversion: "{nr.__version__}"\n' in (ROOT / "CITATION.cff").read_text()


def test_the_page_of_public_names_is_current():
    from docs import api

    assert api.PAGE.read_text() == api.page(), "`python -m docs.api` writes it"
    for room in api.ROOMS:
        for name in api.public(room):
            assert api.said(room, name), f"{room}.{name} says nothing of itself"


def test_every_room_of_users_is_on_the_page():
    from docs import api

    assert {*nr._ROOMS, *nr._HOME.values()} <= set(api.ROOMS)


def test_the_glossary_is_sorted_and_has_each_word_once():
    rows = re.findall(r"^\| (\w+) \| \S", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    words = [row for row in rows if row != "word"]
    assert words == sorted(set(words), key=str.lower)
    special = "aligned block boundary decoupled exact floor gate gating kept mode pathway pattern"
    assert {*special.split(), "race", "share", "silent", "sliding", "start", "strength"} <= {*words}


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_without_a_network(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("pydata_sphinx_theme")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-E",
        "-W",
        "-q",
        "-b",
        "html",
        "docs",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        fetched = r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+"
        assert not re.search(fetched, page.read_text()), page
    assert links.dead_in_site(tmp_path) == []


# ---- layers and pins ----------------------------------------------------------------------------


def test_every_room_has_its_place_in_the_import_order():
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    contract = config["importlinter:contract:house"]
    assert contract["type"] == "layers"
    assert contract.getboolean("exhaustive")
    layers = re.findall(r"\w+", contract["layers"])
    assert len(layers) == len(set(layers))
    present = {path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")}
    present |= {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert present <= set(layers), f"{sorted(present - set(layers))} are in no layer"
    needed = set(re.findall(r"^\s*(\w+)\s*$", contract["layers"], re.MULTILINE))
    assert needed <= present, f"{sorted(needed - present)} do not exist"


def test_the_order_of_the_rooms():
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    layers = re.findall(r"\w+", config["importlinter:contract:house"]["layers"])
    plan = ["cli", "relu", "gdln", "tasks", "dataset", "architecture", "plot", "errors"]
    assert [layer for layer in layers if layer in plan] == plan


def test_constraints_are_plain_pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    odd = [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)]
    assert odd == []
    names = [line.split("==")[0].lower() for line in lines]
    assert len(names) == len(set(names))
    project = (ROOT / "pyproject.toml").read_text()
    needed = set(re.findall(r'^    "([A-Za-z0-9-]+)>=', project, re.MULTILINE))
    assert needed
    assert needed <= {name.replace("_", "-") for name in names}


# ---- tests --------------------------------------------------------------------------------------


def test_files_that_run_first_or_last_are_there():
    import conftest

    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert all(names.count(name) == 1 for name in (*conftest.INSTANT, *conftest.LONG))
