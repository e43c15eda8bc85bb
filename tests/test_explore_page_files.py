"""The files of the explorer's page as they stand: imports, hosts, style."""

from __future__ import annotations

import re

from tests.browser_help import HOME

WEB = HOME / "src" / "neuralrace" / "explorer" / "web"
IMPORT = re.compile(r'^import .* from "\./([\w./]+)";$', re.MULTILINE)


def _imports() -> dict[str, list[str]]:
    return {path.name: IMPORT.findall(path.read_text()) for path in sorted(WEB.glob("*.js"))}


def test_every_module_is_used_and_every_import_is_there():
    imports = _imports()
    found, todo = set(), ["page.js", "widget.js"]
    while todo:
        name = todo.pop()
        if name not in found and not name.startswith("vendor/"):
            assert name in imports, f"{name} is imported and not there"
            found.add(name)
            todo += imports[name]
    assert set(imports) - found == {"types.js"}  # the shapes of messages; comments alone name them


def test_imports_have_no_circle_and_stand_on_lines_of_their_own():
    imports = _imports()

    def depth(name: str, above: tuple[str, ...] = ()) -> int:
        assert name not in above, f"a circle: {' '.join((*above, name))}"
        return 1 + max((depth(n, (*above, name)) for n in imports.get(name, [])), default=0)

    assert 3 <= depth("page.js") <= 12
    for path in WEB.glob("*.js"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        assert len(IMPORT.findall(text)) == len(re.findall(r"^import\b", text, re.MULTILINE))
        assert "import.meta" not in text and "import(" not in text


def test_nothing_is_inline_and_nothing_comes_from_another_host():
    for path in WEB.iterdir():
        text = path.read_text()
        addresses = set(re.findall(r"https?://[^\s\"'`]+", text))
        assert addresses <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1998/Math/MathML",
        }, path.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text
        )
    page = (WEB / "index.html").read_text()
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", page)


def test_every_rule_of_the_style_stays_inside_the_explorer():
    text = re.sub(r"/\*.*?\*/", "", (WEB / "explorer.css").read_text(), flags=re.DOTALL)
    selectors = [s for s in re.findall(r"([^{};]+)\{", text) if not s.strip().startswith("@")]
    assert len(selectors) > 100
    for selector in selectors:
        for one in re.split(r",(?![^(]*\))", selector):
            assert one.strip().startswith((".nr-explorer", "body.nr-explorer")), one.strip()
