"""The page of the explorer: its files as they stand, and the whole of it in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parents[1]
WEB = HOME / "src" / "neuralrace" / "explorer" / "web"
IMPORT = re.compile(r'^import .* from "\./([\w./]+)";$', re.MULTILINE)
TOKEN = "a-token-for-the-tests-of-the-page"

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


# ---- the files as they stand --------------------------------------------------------------------


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
        text = path.read_text()
        assert len(IMPORT.findall(text)) == len(re.findall(r"^import\b", text, re.MULTILINE))
        assert "import.meta" not in text and not re.search(r"(?<!\{)\bimport\(", text)


def test_nothing_is_inline_and_nothing_comes_from_another_host():
    for path in WEB.iterdir():
        text = path.read_text()
        addresses = set(re.findall(r"https?://[^\s\"'`]+", text))
        assert addresses <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1998/Math/MathML",
        }, path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    page = (WEB / "index.html").read_text()
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", page)


def test_every_rule_of_the_style_stays_inside_the_explorer():
    text = re.sub(r"/\*.*?\*/", "", (WEB / "explorer.css").read_text(), flags=re.DOTALL)
    selectors = [s for s in re.findall(r"([^{};]+)\{", text) if not s.strip().startswith("@")]
    assert len(selectors) > 100
    for selector in selectors:
        for one in re.split(r",(?![^(]*\))", selector):
            assert one.strip().startswith((".nr-explorer", "body.nr-explorer")), one.strip()


def test_types_of_the_page():
    tsc = shutil.which("tsc")
    if tsc is None:
        pytest.skip("there is no tsc")
    made = subprocess.run(
        [tsc, "-p", str(HOME / "tools" / "jsconfig.json")], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout


# ---- in a browser -------------------------------------------------------------------------------


class Server:
    """A server of its own process, which can be killed and started again at the same address."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/{TOKEN}/"
        self.process: Any = None

    def start(self) -> None:
        paths = [str(HOME / "src"), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "neuralrace", "explore", "--port", str(self.port)]
            + ["--token", TOKEN, "--no-browser"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + 90
        while time.monotonic() < end:
            assert self.process.poll() is None, "the server has ended"
            try:
                urllib.request.urlopen(self.address, timeout=1).read()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    pytest.importorskip("playwright")
    made = Server()
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Page:
    """A page that remembers what its browser complains of, and whom it asks."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        self.foreign: list[str] = []
        page.set_default_timeout(60_000)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._asked)
        page.goto(address)
        page.locator(".lanes li").first.wait_for()

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _asked(self, request: Any) -> None:
        own = self.address.rsplit("/", 2)[0]
        if not request.url.startswith((own, own.replace("http", "ws", 1), "blob:", "data:")):
            self.foreign.append(request.url)

    def button(self, name: str, within: str = "body") -> Any:
        return self.page.locator(within).get_by_role("button", name=name, exact=True).first

    def set(self, label: str, value: float) -> None:
        field = self.page.get_by_label(label, exact=True).first
        field.fill(f"{value:g}")
        field.press("Enter")

    def headline(self, pattern: str) -> str:
        """The answer, once it matches."""
        found = self.page.locator(".headline", has_text=re.compile(pattern))
        found.wait_for()
        return found.inner_text()

    def check(self) -> None:
        assert self.errors == []
        assert self.foreign == []


@pytest.fixture
def page(server, chromium) -> Iterator[Page]:
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800}, permissions=["clipboard-read", "clipboard-write"]
    )
    made = Page(context.new_page(), server.address)
    yield made
    context.close()


def test_imports_of_this_file():
    assert json and statistics and Page and Server
