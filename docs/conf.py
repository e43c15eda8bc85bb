"""Sphinx configuration: these pages and a reference from the docstrings, built offline.

The docstrings are written in Markdown, for `help()` and for editors; `as_rst` converts them for
Sphinx. `make docs` builds the site in out/site.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "src")]

import neuralrace  # noqa: E402
from docs import api  # noqa: E402

project = "neuralrace"
author = "the neuralrace authors"
version = release = neuralrace.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["figures"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
suppress_warnings = ["ref.python"]  # a type of the same name in two rooms, such as Rest
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "neuralrace"
html_show_sourcelink = False
html_theme_options = {
    "navbar_center": [],
    "footer_start": [],
    "footer_end": [],
    "use_edit_page_button": False,
}
html_context = {"default_mode": "auto"}
html_sidebars = {"**": ["globaltoc.html"]}
html_static_path = ["static"]
html_css_files = ["site.css"]
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


# ---- docstrings ---------------------------------------------------------------------------------


def as_rst(text: str) -> str:
    """A docstring in Markdown as reStructuredText.

    Fenced and indented blocks become literal blocks, code spans become literals, and signs that
    reStructuredText would read as markup are escaped.
    """
    found: list[str] = []
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.strip().startswith("```"):
            end = next(k for k in range(i + 1, len(lines)) if lines[k].strip() == "```")
            found += _literal(lines[i + 1 : end])
            i = end + 1
        elif line.startswith("    ") and (not found or not found[-1].strip()):
            end = i
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            found += _literal(lines[i:end])
            i = end
        elif line.startswith("|"):
            end = next(
                (k for k in range(i, len(lines)) if not lines[k].startswith("|")), len(lines)
            )
            found += _literal(lines[i:end])
            i = end
        else:
            end = i + 1
            while end < len(lines) and _goes_on(lines[end]):
                end += 1
            found += _inline("\n".join(lines[i:end])).split("\n")
            i = end
    return "\n".join(found)


def _goes_on(line: str) -> bool:
    """Whether a line continues the paragraph above it."""
    return bool(line.strip()) and not line.strip().startswith(("```", "|", "- "))


def _literal(lines: list[str]) -> list[str]:
    body = inspect.cleandoc("\n".join(lines)).split("\n")
    kind = "pycon" if any(line.startswith(">>>") for line in body) else "text"
    return ["", f".. code-block:: {kind}", "", *(f"   {line}" for line in body), ""]


SPAN = re.compile(r"(``.+?``|`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*[^*\s][^*]*\*(?![\w*]))", re.DOTALL)
"""A code span, bold text, or text in italics."""


def _inline(text: str) -> str:
    parts = SPAN.split(text)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = re.sub(r"([\\|_*])", r"\\\1", part)
        elif part.startswith("`"):
            code = " ".join(part.strip("`").split())
            before = "\\ " if parts[i - 1][-1:].isalnum() else ""
            parts[i] = f"{before}``{code}``" + ("\\ " if parts[i + 1][:1].isalnum() else "")
    return "".join(parts)


def docstring(app: object, what: str, name: str, value: object, options: object, lines: list[str]):
    """Let autodoc read Markdown."""
    lines[:] = as_rst("\n".join(lines)).split("\n")


def signature(
    app: object,
    what: str,
    name: str,
    value: object,
    options: object,
    arguments: str | None,
    result: str | None,
) -> tuple[str | None, str | None]:
    """A signature with short type names and without private fields."""
    if arguments is not None:
        parts = _split(arguments.strip("()"))
        arguments = f"({', '.join(p for p in map(_short, parts) if not p.startswith('_'))})"
    return arguments, None if result is None else _short(result)


def _short(text: str) -> str:
    return re.sub(r"~?\b(?:[a-z_]\w*\.)+(?=\w)", "", text.replace("~", ""))


def _split(arguments: str) -> list[str]:
    """The arguments of a signature, split at its outermost commas."""
    found, depth = [""], 0
    for sign in arguments:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [part.strip() for part in found if part.strip()]


# ---- the reference ------------------------------------------------------------------------------


def write_reference(app: object) -> None:
    """One page per package, with a table of its names and then the full text of each."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for page in folder.glob("*.rst"):
        if page.stem not in {*api.ROOMS, "index"}:  # of a package that is gone
            page.unlink()
    for room, title in api.ROOMS.items():
        _write(folder / f"{room}.rst", _room(room, title))
    index = ["Reference", "=========", "", "The full docstrings, one page per package.", ""]
    index += [".. toctree::", "   :maxdepth: 1", "", *(f"   {room}" for room in api.ROOMS), ""]
    _write(folder / "index.rst", index)


def _room(room: str, title: str) -> list[str]:
    module = import_module(f"neuralrace.{room}")
    names = api.public(room)
    objects = [n for n in names if inspect.isclass(v := getattr(module, n)) or inspect.isroutine(v)]
    about = as_rst(inspect.getdoc(module) or "").split("\n")
    lines = [title, "=" * len(title), "", f"``neuralrace.{room}``", "", *about, ""]
    lines += [
        f".. currentmodule:: neuralrace.{room}",
        "",
        ".. list-table::",
        "   :widths: auto",
        "",
    ]
    for name in names:
        lines += [f"   * - :py:obj:`{name}`", f"     - {_inline(api.said(room, name))}"]
    lines.append("")
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value):
            lines += [f".. autoclass:: {name}", "   :members:", ""]
        elif name in objects:
            lines += [f".. autofunction:: {name}", ""]
        else:
            lines += [f".. py:data:: {name}", "", f"   {_inline(api.said(room, name))}", ""]
    return lines


def _write(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def without_outer_links(app: object, page: str, text: list[str]) -> None:
    """Replace links to pages outside docs/, which the site does not have, by their names.

    Anchors in HTML become those of Sphinx, so that it checks the links to them.
    """
    up = r"\.\./" * (page.count("/") + 1)
    text[0] = re.sub(r'^<a id="([\w-]+)"></a>', r"(\1)=\n", text[0], flags=re.MULTILINE)
    text[0] = re.sub(rf"\[([^]]+)\]\({up}([\w/]+\.md)[^)]*\)", r"\1 (`\2`)", text[0])


INCH = 130
"""Pixels of the screen for an inch of a picture of a figure: letters of 7 points are 13 high."""


def size_thumbnails(app, doctree) -> None:
    """Show pictures of figures on the pages of the evidence at one scale.

    Those of the gallery fill their cells.
    """
    from docutils import nodes
    from PIL import Image

    if app.env.docname.startswith("evidence/"):
        for node in doctree.findall(nodes.image):
            with Image.open(HERE / node["uri"]) as picture:
                inches = picture.width / picture.info["dpi"][0]
            node["width"] = f"{round(INCH * inches)}px"


# ---- formulas -----------------------------------------------------------------------------------


def inline_math(writer, node) -> None:
    """An inline formula as MathML, which browsers draw without a script."""
    _mathml(writer, node, "inline")


def display_math(writer, node) -> None:
    """A formula on its own line, as MathML."""
    _mathml(writer, node, "block")


def _mathml(writer, node, kind: str) -> None:
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    formula = tex2mathml(node.astext(), as_block=kind == "block")
    # The bars of a norm are of one height; a browser would stretch the first alone.
    writer.body.append(re.sub(r"<mo[^>]*>‖</mo>", '<mo stretchy="false">‖</mo>', formula))
    raise nodes.SkipNode


def setup(app) -> None:
    """Register the hooks above with Sphinx."""
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    app.connect("builder-inited", write_reference)
    app.connect("source-read", without_outer_links)
    app.connect("doctree-read", size_thumbnails)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
