"""A built site in a browser: `python -m tools.browse out/site` says what is wrong with its pages.

Every page is opened at 1280 and at 390 pixels, light and dark, until it has asked for nothing more
for half a second. Wrong are pages that are wider than the window, pictures and other files that are
not there, errors of their scripts until then, and pages that do not come to rest.
Words after the folder are searched for with the search of the site, which should find a page for
each. Needs chromium; the exit code is 1 where something is wrong.
"""

from __future__ import annotations

import argparse
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

from neuralrace import NeuralRaceError

WIDTHS = (1280, 390)
"""Widths of the window in pixels: a laptop and a phone."""

SCHEMES = ("light", "dark")

PATIENCE = 20_000
"""Milliseconds to wait for a page to come to rest."""

UNASKED = "/favicon.ico"
"""What a browser looks for on its own, whether or not a page names it."""

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
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


@contextmanager
def browser() -> Iterator[Any]:
    """A chromium; an error where there is none."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise NeuralRaceError(
            "there is no browser on this machine",
            got="neither chromium nor chromium-browser on the PATH",
            wanted="chromium",
            fix="install it, for example by apt install chromium",
        )
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


def pages(folder: Path) -> list[str]:
    """The pages of a site, as parts of its address; an error where there are none."""
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*.html")))
    names = [path.as_posix() for path in found if path.parts[0] != "_static"]
    if not names:
        raise NeuralRaceError(
            f"there are no pages in {str(folder)!r}",
            got="a folder without HTML files" if folder.is_dir() else "no such folder",
            wanted="the folder of a built site",
            fix="make docs builds it in out/site",
        )
    return names


def faults(
    chromium: Any,
    address: str,
    names: Sequence[str],
    *,
    widths: Sequence[int] = WIDTHS,
    schemes: Sequence[str] = SCHEMES,
    patience: int = PATIENCE,
) -> list[str]:
    """What is wrong with these pages, one line each; `patience` is in milliseconds."""
    found: list[str] = []
    for width in widths:
        for scheme in schemes:
            window = {"width": width, "height": 900}
            context = chromium.new_context(viewport=window, color_scheme=scheme)
            for name in names:
                where = f"{name} at {width} pixels, {scheme}"
                wrong = _faults(context.new_page(), address + name, patience)
                found += [f"{where}: {each}" for each in wrong]
            context.close()
    return found


def _faults(page: Any, address: str, patience: int) -> list[str]:
    """What is wrong with one page, which is closed afterwards."""
    from playwright.sync_api import Error, TimeoutError

    errors: dict[str, None] = {}  # in their order, each once

    def said(message: Any) -> None:
        place = message.location["url"]
        if message.type == "error" and not place.endswith(UNASKED):
            errors[f"{message.text} ({place})"] = None

    page.on("console", said)
    page.on("pageerror", lambda error: errors.setdefault(str(error)))
    try:
        page.goto(address, wait_until="networkidle", timeout=patience)
        found = ["wider than the window"] * bool(page.evaluate(WIDER))
        lost = page.evaluate(BROKEN)
        found += [f"no picture {place}" for place in lost]
        return found + [e for e in errors if not any(f"({place})" in e for place in lost)]
    except TimeoutError:
        return [f"not at rest after {patience / 1000:g} s", *errors]
    except Error as error:
        return [error.message.splitlines()[0], *errors]
    finally:
        page.close()


def hits(
    chromium: Any, address: str, words: Sequence[str], *, patience: int = PATIENCE
) -> dict[str, int]:
    """How many pages the search of the site finds for each word or phrase; 0 where it fails."""
    from playwright.sync_api import Error

    page = chromium.new_page()
    found = dict.fromkeys(words, 0)
    for word in words:
        try:
            page.goto(f"{address}search.html?q={quote(word)}", timeout=patience)
            page.wait_for_function(ANSWER, timeout=patience)
            found[word] = int(page.evaluate(HITS))
        except Error:
            continue
    page.close()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Say what is wrong with a site, and how many pages are found for each word."""
    parser = argparse.ArgumentParser(prog="python -m tools.browse", description=__doc__)
    parser.add_argument("folder", type=Path, help="a built site, such as out/site")
    parser.add_argument("words", nargs="*", help="words that the site's search should find")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    try:
        names = pages(folder)
        with served(folder) as address, browser() as chromium:
            wrong = faults(chromium, address, names)
            found = hits(chromium, address, given.words)
    except NeuralRaceError as error:
        parser.error(str(error))
    lines = [f"wrong: {each}" for each in wrong]
    lines += [f"{word}: {count} pages" for word, count in found.items()]
    many = len(names) * len(WIDTHS) * len(SCHEMES)
    lines.append(f"{len(names)} pages, opened {many} times; {len(wrong)} faults")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(wrong) or not all(found.values()))


if __name__ == "__main__":
    sys.exit(main())
