"""The page in a browser: what sliders change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser_help import Page

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
"""Keeps account of animation frames, and of every change whose prediction is redrawn."""

SLIDERS = [
    ("Extended XoR", "Δ", "xor is"),
    ("Items in contexts", "context scale", "all_but_one is"),
    ("Routing between domains", "Criterion", "shared is"),
]
"""Tasks, a slider of each, and what is said at first."""

MOVES = 7
"""Moves of a slider."""

PLAYED = 30
"""Animation frames of a race that is played."""


@pytest.mark.browser
@pytest.mark.parametrize(("task", "slider", "said"), SLIDERS)
def test_every_move_of_a_slider_is_predicted_and_drawn(server, chromium, task, slider, said):
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
    page.settled()
    page.page.evaluate("window.redrawn.length = 0")
    page.page.get_by_label(f"{slider}, slider").first.focus()
    values = [page.value(slider)]
    for n in range(1, MOVES + 1):
        page.page.keyboard.press("ArrowRight")
        page.page.wait_for_function("n => window.redrawn.length >= n", arg=n)
        values.append(page.value(slider))
        assert f":{float(values[-1]):g}" in asked[-1].replace(" ", "")
    assert len(set(values)) == len(values)
    drawn = page.page.evaluate("window.redrawn")
    assert len(drawn) == MOVES
    page.settled()
    page.page.evaluate("window.frames_of_script.length = 0")
    page.button("Play the race").click()
    page.page.wait_for_function("n => window.frames_of_script.length >= n", arg=PLAYED)
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
