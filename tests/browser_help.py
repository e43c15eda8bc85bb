"""What tests of the page share: a server, a browser, and a page that remembers complaints."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parents[1]
TOKEN = "a-token-for-the-tests-of-the-page"

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


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
            [
                *(sys.executable, "-m", "neuralrace", "explore", "--port", str(self.port)),
                *("--token", TOKEN, "--no-browser"),
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + 300
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


@pytest.fixture(scope="session")
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


UNDER_WAY = """
window.underWay = { timers: new Set(), asked: new Set(), idle: 0 };
const { timers, asked } = window.underWay;
const plainTimeout = window.setTimeout, plainClear = window.clearTimeout;
window.setTimeout = (act, delay = 0, ...rest) => {
  const id = plainTimeout(() => { timers.delete(id); act(...rest); }, delay);
  if (delay < 5000) timers.add(id);  // a message that is shown for a while keeps nobody waiting
  return id;
};
window.clearTimeout = (id) => { timers.delete(id); plainClear(id); };
window.WebSocket = class extends window.WebSocket {
  constructor(...of) {
    super(...of);
    this.addEventListener("message", ({ data }) => {
      const answer = JSON.parse(data);
      if (answer.part === undefined) asked.delete(answer.id);
    });
    this.addEventListener("close", () => asked.clear());
  }
  send(text) {
    const { id } = JSON.parse(text);
    if (id !== undefined) asked.add(id);
    super.send(text);
  }
};
"""
"""Keeps account of what a page waits for: its timers, and questions without an answer."""

AT_REST = """() => {
  const { timers, asked } = window.underWay;
  window.underWay.idle = timers.size || asked.size ? 0 : window.underWay.idle + 1;
  return window.underWay.idle > 3;
}"""
"""Whether a page has waited for nothing in several frames, in which it has drawn what it knows."""


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
        page.add_init_script(UNDER_WAY)
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

    def settled(self) -> None:
        """Wait until no question is without an answer, no timer runs, and all is drawn."""
        self.page.evaluate("window.underWay.idle = 0")
        self.page.wait_for_function(AT_REST)

    def drawn(self) -> None:
        """Wait until the page has drawn what was last asked of it, which it does once a frame."""
        self.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def undo(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Undo steps until there is enough, or until there is no step left."""
        self.drawn()
        while not enough() and self.button("Undo").is_enabled():
            self.button("Undo").click()
            self.drawn()

    def set(self, label: str, value: float) -> None:
        field = self.page.get_by_label(label, exact=True).first
        field.fill(f"{value:g}")
        field.press("Enter")

    def task(self, title: str) -> None:
        """Choose a task; its answer is there."""
        self.page.get_by_role("combobox", name="Task", exact=True).select_option(label=title)
        self.page.locator(".headline", has_text="Predicting").wait_for(state="detached")

    def value(self, label: str) -> str:
        return self.page.get_by_label(label, exact=True).first.input_value()

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


def link(state: Any) -> str:
    """A state as the part of an address after the #."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(json.dumps(state).encode()) + packer.flush()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")
