"""Pictures of docs/explorer.md: the page with a trained network, and a story on a narrow screen."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from docs.figures import FOLDER

LINE = "The explorer is at "
"""How the line begins in which the command prints its address."""

GAP = 24
"""Pixels between two pictures side by side."""

WIDE = 760
"""Pixels of the wide page: about those that the documentation shows, so that text can be read."""

PATIENCE = 180_000
"""Milliseconds to wait for an answer of the page."""


def main(folder: Path = FOLDER) -> None:
    """Open the page, and write `explorer.png` and `explorer_narrow.png`."""
    chromium = shutil.which("chromium")
    if chromium is None:
        logging.getLogger(__name__).warning("there is no chromium: its pictures stay as they are")
        return
    command = [sys.executable, "-m", "neuralrace", "explore", "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = next(line for line in server.stdout if line.startswith(LINE))
        take(said.removeprefix(LINE).strip(), chromium, folder)
    finally:
        server.terminate()
        server.wait()


def take(address: str, chromium: str, folder: Path) -> None:
    """Take both pictures."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        shots = [[_wide(browser, address)], _narrow(browser, address)]
        browser.close()
    for name, shown in zip(("explorer", "explorer_narrow"), shots, strict=True):
        pictures = [Image.open(BytesIO(shot)).convert("RGB") for shot in shown]
        wide = sum(one.width for one in pictures) + GAP * (len(pictures) - 1)
        whole = Image.new("RGB", (wide, max(one.height for one in pictures)), "white")
        left = 0
        for one in pictures:
            whole.paste(one, (left, 0))
            left += one.width + GAP
        whole.quantize(128).save(folder / f"{name}.png", optimize=True)


def _opened(browser: Any, address: str, width: int) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 800}, device_scale_factor=2)
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.locator(".lanes li").first.wait_for()
    return page


def _wide(browser: Any, address: str) -> bytes:
    """Two streams and a cue: a contest that is wrong, with trained networks."""
    page = _opened(browser, address, WIDE)
    page.get_by_role("combobox", name="Task").select_option(label="Two streams and a cue")
    page.locator(".verdict", has_text="would not keep").wait_for()
    page.locator(".panel.relu").get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("button", name="Train again").wait_for()
    page.mouse.move(1, 1)
    page.evaluate("scrollTo(0, 0)")
    last = page.locator(".panel.gates").bounding_box()  # the panels below it are of less interest
    whole = {"x": 0, "y": 0, "width": WIDE, "height": last["y"] + last["height"] + 5}
    return page.screenshot(full_page=True, clip=whole)


def _narrow(browser: Any, address: str) -> list[bytes]:
    """A step of a story, and a phase diagram over two numbers, on 390 pixels."""
    page = _opened(browser, address, 390)
    page.locator("summary", has_text="Stories").click()
    page.get_by_role("button", name="XoR, from linear").click()
    for _ in range(2):
        page.get_by_role("button", name="Next", exact=True).click()
    page.get_by_label("and", exact=True).select_option(label="Initial σ")
    page.get_by_role("button", name="Draw").click()
    page.locator(".phases .caption", has_text="Click a cell").wait_for()
    return [page.locator(f".panel.{name}").screenshot() for name in ("story", "phases")]


if __name__ == "__main__":
    main()
