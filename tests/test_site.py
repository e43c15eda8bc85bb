"""The site: every page is listed, links lead somewhere, words are found, notebooks are current."""

import json
import re
from pathlib import Path

import pytest

from evidence.own.documentation import WORDS
from tools import links, notebooks

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("word", [" ".join(word.split()) for word in WORDS.split(",")])
def test_a_word_that_people_search_for_is_on_a_page(word):
    """Or an honest "not supported"."""
    text = {page: page.read_text() for page in PAGES if page.stem not in ("api", "claims")}
    assert any(re.search(rf"\b{re.escape(word)}", t, re.IGNORECASE) for t in text.values()), word


@pytest.mark.parametrize("word", ["attention", "normalisation", "spiking"])
def test_what_is_not_supported_is_said(word):
    rows = [row for row in (DOCS / "faq.md").read_text().splitlines() if row.startswith("|")]
    assert any(word in row and "not supported" in row for row in rows)


def test_every_page_is_in_the_list_of_the_front_page():
    listed = set()
    for block in re.findall(
        r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL
    ):
        listed |= {line for line in block.splitlines() if line and not line.startswith(":")}
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} - {"index"}
    assert listed - {"reference/index"} == pages


def test_links_between_pages_lead_somewhere():
    assert links.dead_in_sources() == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a><a href="c.html">c</a>')
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1><a href="#there">up</a>')
    assert links.dead_in_site(tmp_path) == ["a.html: b.html#here", "a.html: c.html"]


def test_external_links_are_listed_with_their_pages():
    found = links.external()
    assert "README.md" in found["https://arxiv.org/abs/1312.6120"]
    assert all(re.match(r"https?://|mailto:", link) for link in found)


# ---- notebooks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", notebooks.tutorials(), ids=lambda page: page.stem)
def test_a_notebook_says_what_its_page_says(page):
    text = page.read_text()
    stored = page.with_suffix(".ipynb").read_text()
    assert stored == notebooks.notebook(text, notebooks.stored(text)), (
        "`python -m tools.notebooks` writes it"
    )


def test_a_page_becomes_a_notebook():
    page = "# A ([Notebook](a.ipynb))\n\nSee [b](b.md).\n\n```python\nprint(1 + 1)\n```\n"
    page += "\n```text\n2\n```\n\nEnd.\n"
    cells = json.loads(notebooks.notebook(page, {}))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert "".join(cells[0]["source"]) == "# A\n\nSee *b*."
    assert cells[1]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": ["2\n"]}]


def test_running_a_page_writes_what_is_printed_and_drawn():
    page = "```python\nimport matplotlib.pyplot as plt\n\nplt.plot([1, 2])\nprint('new')\n```\n"
    page += "\n```text\nold\n```\n\n![line](../img/line.png)\n"
    new, pictures = notebooks.run(page)
    assert "```text\nnew\n```" in new
    assert pictures["line.png"].startswith(b"\x89PNG")
    assert "image/png" in notebooks.notebook(new, pictures)
