"""The gallery of figures and examples: `python -m docs.gallery` writes docs/gallery.md.

Pictures, data and facts are stored in docs/gallery, so that the page needs no computing:

    python -m docs.gallery --from out/figures    # figures whose data lie in the folder
    python -m docs.gallery --examples            # every example, run again
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import papers
from docs.store import EXAMPLES, ROOT, STUDIES, Facts, run_examples, stored, study_name, update
from evidence import pages

PAGE = ROOT / "docs/gallery.md"

COLUMNS = 4
"""Pictures side by side, where the page is not laid out by the site's style."""


def page(facts: Facts) -> str:
    """The whole page: every figure of the papers in their order, then examples and studies."""
    lines = [
        "# Gallery",
        "",
        "Every figure of the papers, made anew, and every example. A picture of a figure leads to",
        "what was measured on it; one of an example leads to its script.",
        "[reproduce.md](reproduce.md) says how to make them and change them.",
    ]
    for paper, title in papers.TITLES.items():
        mine = [n for n in papers.names() if n.startswith(f"{paper}/") and n in facts]
        cells = [
            _cell(facts, n, papers.find(n).title, f"evidence/{paper}.md#{n.split('/')[1]}-figure")
            for n in mine
        ]
        lines += ["", f"## {title}", "", *_grid(cells)]
    scripts = [
        _cell(facts, path.stem, sentence(path), f"../examples/{path.name}") for path in EXAMPLES
    ]
    studies = [
        _cell(facts, study_name(path), tomllib.loads(path.read_text())["title"],
              f"../examples/studies/{path.name}")
        for path in STUDIES
    ]  # fmt: skip
    lines += ["", "## Examples", "", *_grid(filter(None, scripts))]
    lines += ["", "## Studies", "", *_grid(filter(None, studies))]
    return "\n".join(lines) + "\n"


def _cell(facts: Facts, name: str, title: str, link: str) -> str:
    """A picture with a link and a title; nothing where none is stored."""
    if name not in facts:
        return ""
    return f"[![{title}](gallery/{facts[name]['picture']}) {name}]({link}) {title}"


def _grid(cells: Iterable[str]) -> list[str]:
    """The lines of a table of pictures without headings."""
    cells = list(cells)
    rows = [cells[i : i + COLUMNS] for i in range(0, len(cells), COLUMNS)]
    filled = [row + [""] * (COLUMNS - len(row)) for row in rows]
    return pages.table([""] * COLUMNS, filled)


def sentence(script: Path) -> str:
    """What an example is about: the first line of its docstring."""
    return script.read_text().split('"""')[1].split("\n\n")[0].strip()


def main(arguments: list[str] | None = None) -> None:
    """Update the store where asked to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="a folder with data of figures")
    parser.add_argument("--examples", nargs="*", metavar="NAME", help="run these examples, or all")
    given = parser.parse_args(arguments)
    if given.source is not None:
        sys.stdout.write(f"stored: {', '.join(update(given.source)) or 'nothing'}\n")
    if given.examples is not None:
        run_examples(given.examples)
    PAGE.write_text(page(stored()))
    pages.write()


if __name__ == "__main__":
    main()
