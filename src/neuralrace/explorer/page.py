"""The files of the page: as a server has them, and as one module for a notebook."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

from neuralrace.errors import NeuralRaceError

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
"""The kinds of files that are served, by their ending."""

CHARTS = "vendor/uplot.js"
"""The library of charts as a module: its one file, with an export."""

CHART_STYLE = "vendor/uPlot.css"
"""The style of the charts."""

LICENCE = "vendor/uPlot.LICENSE.txt"
"""The licence of the library of charts."""


def served(name: str) -> tuple[bytes, str] | None:
    """Content and kind of a file of the page, or None where there is no such file.

    ```python
    >>> from neuralrace.explorer.page import served
    >>> content, kind = served("vendor/uplot.js")
    >>> kind, content.endswith(b"export default uPlot;\\n"), served("../server.py")
    ('text/javascript; charset=utf-8', True, None)

    ```
    """
    ending = Path(name).suffix
    if ending not in KINDS:
        return None
    if name in (CHARTS, CHART_STYLE, LICENCE):
        return _vendored(name), KINDS[ending]
    own = {path.name: path for path in web().iterdir()}
    return (own[name].read_bytes(), KINDS[ending]) if name in own else None


def web() -> Path:
    """The folder of the page's own files."""
    return Path(__file__).parent / "web"


def _vendored(name: str) -> bytes:
    assets = resources.files("neuralrace.report") / "assets"
    file = {CHARTS: "uPlot.iife.min.js", CHART_STYLE: "uPlot.min.css", LICENCE: "uPlot.LICENSE"}
    content = (assets / file[name]).read_bytes()
    return content + b"\nexport default uPlot;\n" if name == CHARTS else content


# ---- for a notebook ----------------------------------------------------------------------------

ENTRY = "widget.js"
"""The module whose default export draws the page into an element of a notebook."""

STYLE = "explorer.css"
"""The style of the page."""

IMPORT = re.compile(r"""^\s*(?:import|export)\b[^;]*?["']\./([\w./-]+)["'];?""", re.MULTILINE)
"""A static import of another module of the page."""

LOADER = """const sources = %s;
const addresses = {};
for (const [name, text] of sources) {
  const own = text.replace(
    /((?:^|\\n)\\s*(?:import|export)\\b[^;]*?)(["'])\\.\\/([\\w./-]+)\\2/g,
    (all, before, quote, file) => before + quote + addresses[file] + quote,
  );
  addresses[name] = URL.createObjectURL(new Blob([own], { type: "text/javascript" }));
}
const found = await import(addresses[%s]);
export default found.default;
"""
"""The modules of the page as one: each is given an address in the browser, and imported there."""

MISSING = 'export default { render({ el }) { el.textContent = "the page is missing"; } };\n'
"""What is shown where the files of the page are not installed."""


def bundle() -> str:
    """All modules of the page as one, for a notebook, which loads one only."""
    order: dict[str, str] = {}

    def add(name: str, above: tuple[str, ...] = ()) -> None:
        if name in order:
            return
        found = served(name)
        if found is None or name in above:
            raise NeuralRaceError(
                f"the module {name!r} of the page cannot be loaded",
                got="an import in a circle" if found else "no such file",
                wanted="modules beside each other that import no circle",
                fix="install neuralrace again",
            )
        text = found[0].decode("utf-8")
        for inner in [] if name == CHARTS else IMPORT.findall(text):
            add(inner, (*above, name))
        order[name] = text

    if not (web() / ENTRY).is_file():
        return MISSING
    add(ENTRY)
    return LOADER % (json.dumps(list(order.items())), json.dumps(ENTRY))


def styles() -> str:
    """The styles of the page and of its charts."""
    found = [served(name) for name in (CHART_STYLE, STYLE)]
    return "\n".join(each[0].decode("utf-8") for each in found if each is not None)
