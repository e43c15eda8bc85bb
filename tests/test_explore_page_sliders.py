"""The page in a browser: what sliders change, and how long that takes."""

from __future__ import annotations

import json
import logging
import os
import statistics
import subprocess
import sys
from typing import Any

import pytest

from tests.browser_help import HOME, Page

SPY = """
window.frames_of_script = [];
const plain = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (act) => plain((now) => {
  const begun = performance.now();
  act(now);
  window.frames_of_script.push(performance.now() - begun);
});
window.redrawn = [];
document.addEventListener("DOMContentLoaded", () => document.body.addEventListener(
  "redrawn", (event) => event.detail.since !== null && window.redrawn.push(event.detail)));
"""
"""Times every animation frame, and every way from a change to its redrawn prediction."""

TIMED = [
    ("Extended XoR", "Δ", "xor is", 100),
    ("Items in contexts", "context scale", "all_but_one is", 300),
    ("Routing between domains", "Criterion", "shared is", 300),
]
"""Tasks, a slider of each, what is said at first, and the bound of the median in milliseconds."""

QUIET = os.environ.get("NEURALRACE_QUIET") == "1"
"""Whether nothing else runs on this machine, so that times can be held to their bounds."""

MOVES = 7
"""Moves of a slider; the first two are not counted."""

PLAIN = """
import json, pathlib, sys, time
import jax
jax.config.update("jax_enable_x64", True)
from neuralrace.explorer.handler import answered
from neuralrace.explorer.trust import Trust
for line in sys.stdin:
    said, begun = [], time.perf_counter()
    answered(json.loads(line), Trust(pathlib.Path(sys.argv[1])), said.append)
    assert said[-1]["done"]
    print(1e3 * (time.perf_counter() - begun), flush=True)
"""
"""A process that answers requests without a server, and prints how many milliseconds each took."""

MOST = 5
"""How many times as long a slider may take: on a busy machine, processes wait for each other."""

WAITED = 50
"""Milliseconds in which nothing is computed: the slider's move and the answer wait for frames."""


@pytest.mark.browser
@pytest.mark.parametrize(("task", "slider", "said", "bound"), TIMED)
def test_how_long_a_slider_takes(server, chromium, tmp_path, task, slider, said, bound):
    """Beside the same predictions in a process of their own, which have no page to draw."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(SPY)
    asked: list[str] = []

    def sent(text: Any) -> None:
        if json.loads(text)["kind"] == "predict":
            asked.append(text)

    opened = context.new_page()
    opened.on("websocket", lambda socket: socket.on("framesent", sent))
    page = Page(opened, server.address)
    page.page.get_by_role("combobox", name="Task", exact=True).select_option(label=task)
    page.headline(said)
    page.page.wait_for_timeout(3000)
    page.page.evaluate("window.redrawn.length = 0")
    page.page.get_by_label(f"{slider}, slider").first.focus()
    plain = []
    command = [sys.executable, "-c", PLAIN, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(HOME / "src")}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as alone:
        assert alone.stdin is not None and alone.stdout is not None
        for n in range(1, MOVES + 1):
            page.page.keyboard.press("ArrowRight")
            for _ in range(400):
                if page.page.evaluate("window.redrawn.length") >= n:
                    break
                page.page.wait_for_timeout(100)
            alone.stdin.write(f"{asked[-1]}\n")
            alone.stdin.flush()
            plain.append(float(alone.stdout.readline()))
        alone.stdin.close()
    drawn = page.page.evaluate("window.redrawn")
    assert len(drawn) == MOVES
    page.page.evaluate("window.frames_of_script.length = 0")
    page.button("Play the race").click()
    page.page.wait_for_timeout(1000)
    times = {
        "plain": plain[2:],
        "redrawn": [one["since"] for one in drawn[2:]],
        "script": [one["script"] for one in drawn[2:]],
        "played": page.page.evaluate("window.frames_of_script"),
    }
    found = {name: statistics.median(each) for name, each in times.items()}
    logging.getLogger(__name__).info(
        "%s, median ms: %s", task, {name: round(value, 1) for name, value in found.items()}
    )
    assert found["redrawn"] - WAITED <= MOST * found["plain"]
    assert max(found["script"], found["played"]) <= found["redrawn"] / 2
    if QUIET:
        assert found["redrawn"] <= bound
        assert found["script"] <= 8 and found["played"] <= 8
    page.check()
    context.close()


def _note(page: Page, label: str) -> Any:
    """What is said below a slider."""
    field = page.page.locator(".task .field").filter(has=page.page.get_by_label(label, exact=True))
    return field.locator(".note")


@pytest.mark.browser
def test_sliders_that_do_not_move_the_race_say_so(page):
    """Neurons where gatings have their own, and σ where the race has its own start."""
    _note(page, "Neurons").get_by_text("The candidates do not use this").wait_for()
    assert _note(page, "Initial σ").is_hidden()
    page.task("Two streams and a cue")
    _note(page, "Neurons").wait_for(state="hidden")
    before = page.headline("^by_answer is")
    page.set("Neurons", 40)
    page.page.locator(".headline").filter(has_not_text=before).wait_for()

    page.task("Routing between domains")
    _note(page, "Initial σ").get_by_text("Only trained networks use this").wait_for()
    choices = page.page.get_by_label("over", exact=True).inner_text().split("\n")
    assert "Start" in choices and "Initial σ" not in choices
    before = page.headline("^shared is")
    page.set("Start", 0.2)
    page.page.locator(".headline").filter(has_not_text=before).wait_for()
    page.check()
