"""A built site in a browser: `python -m tools.browse out/site` says what is wrong with its pages.

Every page is opened at 1280 and at 390 pixels, light and dark. Wrong are pages that are wider than
the window, pictures that are not there, and errors of their scripts. Words after the folder are
searched for with the search of the site, which should find a page for each. Needs chromium; the
exit code is 1 where something is wrong.
"""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

WIDTHS = (1280, 390)
"""Widths of the window in pixels: a laptop and a phone."""

SCHEMES = ("light", "dark")

PATIENCE = 20_000
"""Milliseconds to wait for a page."""

WIDER = "() => document.documentElement.scrollWidth > window.innerWidth + 1"
BROKEN = "() => [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
SAID = "document.querySelector('.search-summary')?.textContent"
ANSWER = f"() => /finished|did not match/.test({SAID})"
HITS = "() => document.querySelectorAll('#search-results ul.search > li').length"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which a folder can be opened."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def browser() -> Iterator[Any]:
    """A chromium; an error where there is none."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise FileNotFoundError("there is no chromium on this machine")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


def pages(folder: Path) -> list[str]:
    """The pages of a site, as parts of its address."""
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*.html")))
    return [path.as_posix() for path in found if path.parts[0] != "_static"]


def faults(
    chromium: Any,
    address: str,
    names: Sequence[str],
    widths: Sequence[int] = WIDTHS,
    schemes: Sequence[str] = SCHEMES,
) -> list[str]:
    """What is wrong with these pages, one line each."""
    found: list[str] = []
    for width in widths:
        for scheme in schemes:
            window = {"width": width, "height": 900}
            context = chromium.new_context(viewport=window, color_scheme=scheme)
            page = context.new_page()
            errors: list[str] = []
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            page.on(
                "console",
                lambda m, errors=errors: errors.append(m.text) if m.type == "error" else None,
            )
            for name in names:
                page.goto(address + name, wait_until="load", timeout=PATIENCE)
                where = f"{name} at {width} pixels, {scheme}"
                found += [f"{where}: wider than the window"] * bool(page.evaluate(WIDER))
                found += [f"{where}: no picture {src}" for src in page.evaluate(BROKEN)]
                found += [f"{where}: {error}" for error in errors]
                errors.clear()
            context.close()
    return found


def hits(chromium: Any, address: str, words: Sequence[str]) -> dict[str, int]:
    """How many pages the search of the site finds for each word or phrase."""
    page = chromium.new_page()
    found = {}
    for word in words:
        page.goto(f"{address}search.html?q={quote(word)}", timeout=PATIENCE)
        page.wait_for_function(ANSWER, timeout=PATIENCE)
        found[word] = int(page.evaluate(HITS))
    page.close()
    return found


def main(arguments: Sequence[str]) -> int:
    """Say what is wrong with a site, and how many pages are found for each word."""
    folder, words = Path(arguments[0]).resolve(), arguments[1:]
    names = pages(folder)
    with served(folder) as address, browser() as chromium:
        wrong = faults(chromium, address, names)
        found = hits(chromium, address, words)
    lines = [f"wrong: {each}" for each in wrong]
    lines += [f"{word}: {count} pages" for word, count in found.items()]
    many = len(names) * len(WIDTHS) * len(SCHEMES)
    lines.append(f"{len(names)} pages, opened {many} times; {len(wrong)} faults")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(wrong) or not all(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
