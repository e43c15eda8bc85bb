"""Notebooks of the tutorials, with stored outputs: `python -m tools.notebooks [--stored] [NAME …]`.

Every page of docs/tutorials becomes a notebook beside it. A Python block is a code cell; what it
prints, and the figures it leaves open, are its stored outputs. A picture that follows a block on
the page is written from the figure that the block leaves open, so that pages and notebooks show
the same. Everything else is text. With `--stored`, nothing is run: outputs are those on the page.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "tutorials"
PICTURES = ROOT / "docs" / "img"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<text>.*?)^```\n)?"
    r"(?:\n!\[[^\]]*\]\((?P<picture>[^)]+)\)\n)?",
    re.MULTILINE | re.DOTALL,
)
"""A Python block, with what it prints and the picture it makes where these follow."""

DOWNLOAD = re.compile(r"\s\(\[Notebook\]\(\w+\.ipynb\)\)")
"""The link to the notebook, which the notebook itself does not need."""


def tutorials() -> list[Path]:
    """The pages of all tutorials; their index is none."""
    return [path for path in sorted(FOLDER.glob("*.md")) if path.stem != "index"]


def parts(page: str) -> list[str | re.Match[str]]:
    """Text and Python blocks of a page in their order; parts without text are left out."""
    found: list[str | re.Match[str]] = []
    end = 0
    for block in BLOCK.finditer(page):
        found += [page[end : block.start()].strip(), block]
        end = block.end()
    found.append(page[end:].strip())
    return [part for part in found if part]


def notebook(page: str, pictures: dict[str, bytes]) -> str:
    """The notebook of a page as JSON, with the outputs that stand on the page."""
    cells = []
    for count, part in enumerate(parts(DOWNLOAD.sub("", page))):
        name = {"id": f"cell{count}", "metadata": {}}
        if isinstance(part, str):
            cells.append({"cell_type": "markdown", **name, "source": _lines(_outward(part))})
            continue
        outputs: list[dict[str, object]] = []
        if part["text"]:
            text = _lines(part["text"])
            outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        if part["picture"]:
            image = base64.b64encode(pictures[Path(part["picture"]).name]).decode()
            data = {"image/png": image}
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        code = {"execution_count": None, "outputs": outputs}
        cells.append({"cell_type": "code", **name, **code, "source": _lines(part["code"].rstrip())})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _outward(text: str) -> str:
    """Links to other pages as plain names: a notebook is read anywhere."""
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"*\1*", text)


def run(page: str) -> tuple[str, dict[str, bytes]]:
    """Run the blocks of a page: the page with what they print now, and their pictures by name."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    namespace: dict[str, object] = {"__name__": "__main__"}
    new, end, pictures = "", 0, {}
    for block in BLOCK.finditer(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], "tutorial", "exec"), namespace)
        if block["text"] is not None:
            new += page[end : block.start("text")] + printed.getvalue()
            end = block.end("text")
        if block["picture"]:
            file = io.BytesIO()
            plt.gcf().savefig(file, format="png", dpi=120, bbox_inches="tight")
            pictures[Path(block["picture"]).name] = file.getvalue()
        plt.close("all")
    return new + page[end:], pictures


def stored(page: str) -> dict[str, bytes]:
    """The pictures of a page as they are, by name."""
    names = [Path(block["picture"]).name for block in BLOCK.finditer(page) if block["picture"]]
    return {name: (PICTURES / name).read_bytes() for name in names}


def main(arguments: list[str]) -> None:
    """Run tutorials, and write their pages, pictures and notebooks."""
    names = [name for name in arguments if name != "--stored"]
    for path in [FOLDER / f"{name}.md" for name in names] or tutorials():
        page = path.read_text()
        if "--stored" in arguments:
            pictures = stored(page)
        else:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                page, pictures = run(page)
        path.write_text(page)
        for name, content in pictures.items():
            (PICTURES / name).write_bytes(content)
        path.with_suffix(".ipynb").write_text(notebook(page, pictures))


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main(sys.argv[1:])
