"""The files of a page: those of the folder `web`, and the library of charts that reports use."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

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
    >>> from neuralrace.explorer.files import served
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
