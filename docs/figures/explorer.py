"""The picture of docs/explorer.md: the page in a browser, a trained network on the prediction."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path

from docs.figures import FOLDER

LINE = "The explorer is at "
"""How the line begins in which the command prints its address."""

PATIENCE = 180_000
"""Milliseconds to wait for an answer of the page."""


def main(folder: Path = FOLDER) -> None:
    """Open the page, train networks on two streams and a cue, and write `explorer.png`."""
    chromium = shutil.which("chromium")
    if chromium is None:
        logging.getLogger(__name__).warning("there is no chromium: explorer.png stays as it is")
        return
    command = [sys.executable, "-m", "neuralrace", "explore", "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = next(line for line in server.stdout if line.startswith(LINE))
        take(said.removeprefix(LINE).strip(), chromium, folder / "explorer.png")
    finally:
        server.terminate()
        server.wait()


def take(address: str, chromium: str, path: Path) -> None:
    """Bring the page to where its picture is taken."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, device_scale_factor=1.25)
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.get_by_role("combobox", name="Task").select_option(label="Two streams and a cue")
        page.locator(".verdict", has_text="would not keep").wait_for()
        page.get_by_role("button", name="Draw").click()
        page.locator(".phases .caption", has_text="predicted to change").wait_for()
        page.locator(".panel.relu").get_by_role("button", name="Train", exact=True).click()
        page.get_by_role("button", name="Train again").wait_for()
        page.locator(".equations details, .equations math").first.wait_for()
        page.mouse.move(1, 1)
        page.screenshot(path=path, full_page=True)
        browser.close()
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    main()
